// The lines of a CSV file as fields.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bnns::tool {

// Fields are parted by commas, semicolons or tabs: the first of tab, semicolon, comma that the first line has outside
// of quotes. A field in double quotes may hold the separator, line ends and doubled quotes. Blank lines are skipped.
class Csv {
 public:
  // Reads the whole file, plain or gzip. Throws DataError.
  explicit Csv(const std::filesystem::path& file);

  // The fields of the next line without the spaces around them; false at the end.
  bool next(std::vector<std::string>& fields);
  std::size_t line() const { return line_; }  // where the last fields began, from 1
  // "FILE:17: " and what is wrong there.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string file_, text_;
  std::size_t at_ = 0, line_ = 0, next_line_ = 1;
  char separator_ = ',';
};

// A number in all of the text; neither infinite nor NaN, also as a float.
std::optional<float> number_in(const std::string& text);
// "6.07" for "6,07": what a number with a decimal comma should be; "" for all other texts.
std::string with_point(std::string text);

}  // namespace bnns::tool
