// Labelled items in memory: pictures, as the digit generator makes them and files hold them, rows of numbers, or
// windows of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bnns::tool {

inline constexpr std::size_t kClasses = 10, kMaxClasses = 1000;  // of digits; of a user's own data

// Most bytes of one file unpacked, and of all pictures of a folder: 30 times the largest MNIST-style set in common use.
inline constexpr std::uint64_t kMaxDataBytes = std::uint64_t{1} << 31;

struct Dataset {
  std::size_t rows = 0, columns = 0;    // of a picture; 1 and the number of columns where the items are rows of numbers
  std::vector<std::uint8_t> pixels{};   // count() x channels x rows x columns, 0 = paper, 255 = ink
  std::vector<std::uint16_t> labels{};  // each below classes
  std::size_t channels = 1, classes = kClasses;
  std::vector<float> values{};         // of rows of numbers, count() x columns; there are no pixels then
  std::vector<std::string> origins{};  // "cat/7.png", "line 12" for each item, or nothing

  std::size_t steps = 1;  // labels of an item: of a text, the next character at each place of a window. Its pixels are
                          // the numbers of its characters.

  std::size_t count() const { return labels.size() / steps; }
  bool is_text() const { return steps > 1; }
  bool is_pictures() const { return values.empty() && !is_text(); }
  std::size_t inputs() const { return channels * rows * columns; }
  const std::uint8_t* image(std::size_t i) const { return pixels.data() + i * inputs(); }
};

// The columns of a table besides the class: what a later table must have, and how their numbers are scaled.
struct Columns {
  std::vector<std::string> names{};  // or nothing: the table has no header
  std::string target{};              // the class's column: its name, or ""
  std::size_t target_at = 0;         // counted from 0 among all columns
  std::vector<float> mean{}, deviation{};

  std::size_t count() const { return mean.size(); }
};

struct DataSplit {
  Dataset train{}, test{};
  std::string source{};                // one line for people: where the items come from
  std::vector<std::string> classes{};  // their names
  std::string noun = "digits";         // what an item is, for people: "digits", "pictures", "rows", "characters"
  Columns columns{};                   // of a table
};

// "0" to "9"
std::vector<std::string> digit_names();
// A name from outside as one that cannot move a terminal's cursor.
std::string printable(std::string name);

}  // namespace bnns::tool
