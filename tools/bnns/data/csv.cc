#include "tools/bnns/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tools/bnns/data/byte_source.h"
#include "tools/bnns/data/data_error.h"
#include "tools/bnns/data/dataset.h"

namespace bnns::tool {
namespace {

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

char separator_of(const std::string& text) {
  std::string line;
  bool quoted = false;
  for (std::size_t i = text.find_first_not_of("\r\n"); i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) break;
    if (!quoted) line += text[i];
  }
  for (const char each : {'\t', ';'}) {
    if (line.find(each) != line.npos) return each;
  }
  return ',';
}

}  // namespace

Csv::Csv(const std::filesystem::path& file) : file_(file.string()), text_(read_all(file)) {
  if (text_.compare(0, 3, "\xef\xbb\xbf") == 0) at_ = 3;  // a byte order mark
  separator_ = separator_of(text_);
}

void Csv::fail(const std::string& what) const {
  throw DataError(file_ + ":" + std::to_string(line_) + ": " + printable(what));
}

bool Csv::next(std::vector<std::string>& fields) {
  while (at_ < text_.size()) {
    fields.clear();
    line_ = next_line_;
    std::string field;
    bool quoted = false, was_quoted = false, more = true;
    const auto end_field = [&] {
      fields.push_back(was_quoted ? field : trimmed(field));
      field.clear(), was_quoted = false;
    };
    while (more && at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\n') ++next_line_;
      if (quoted) {
        if (c != '"') {
          field += c;
        } else if (at_ < text_.size() && text_[at_] == '"') {
          field += text_[at_++];
        } else {
          quoted = false;
        }
      } else if (c == '"' && trimmed(field).empty() && !was_quoted) {
        field.clear(), quoted = was_quoted = true;
      } else if (c == separator_) {
        end_field();
      } else if (c == '\n') {
        more = false;
      } else if (was_quoted && c != ' ' && c != '\r') {
        fail("a letter follows the quotes of a field, expected a separator: write \"\" for a quote within");
      } else if (!was_quoted) {
        field += c;
      }
    }
    if (quoted) fail("a field begins with a quote that never ends");
    const bool blank = fields.empty() && !was_quoted && trimmed(field).empty();
    end_field();
    if (!blank) return true;
  }
  return false;
}

std::optional<float> number_in(const std::string& text) {
  const char *begin = text.data() + (!text.empty() && text[0] == '+' ? 1 : 0), *end = text.data() + text.size();
  double number = 0;
  const auto [rest, error] = std::from_chars(begin, end, number);
  const auto value = static_cast<float>(number);
  if (error != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string with_point(std::string text) {
  const std::size_t comma = text.find(',');
  if (comma == text.npos) return "";
  text[comma] = '.';
  return number_in(text) ? text : "";
}

}  // namespace bnns::tool
