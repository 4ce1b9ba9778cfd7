#include "tools/bnns/options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "tools/bnns/data/csv.h"
#include "tools/bnns/text.h"

namespace bnns::tool {
namespace {

constexpr std::size_t kMeaningColumn = 30;

// Why the text is none of the numbers that are expected.
[[noreturn]] void refuse_number(const char* name, const std::string& text, bool whole, const std::string& range) {
  const std::string what = std::string(name) + ": " + text, point = with_point(text);
  if (!point.empty() && !whole) throw UsageError(what + " is not a number, expected a point: " + point);
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') throw UsageError(what + " is not a number");
  if (whole && text.find_first_not_of("+-0123456789") != text.npos) throw UsageError(what + " is not a whole number");
  throw UsageError(what + " is not in the range " + range);
}

}  // namespace

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string closest(const std::string& word, const std::vector<std::string>& known) {
  return *std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
    return distance(word, a) < distance(word, b);
  });
}

std::string help_line(const std::string& left, const std::string& meaning, bool narrow) {
  std::string line = "  " + left;
  if (narrow || line.size() + 1 > kMeaningColumn) {
    return line + "\n" + std::string(narrow ? 6 : kMeaningColumn, ' ') + meaning + "\n";
  }
  return line + std::string(kMeaningColumn - line.size(), ' ') + meaning + "\n";
}

Options::Options(std::string name, std::string about, std::string usage, std::string footer)
    : name_(std::move(name)), about_(std::move(about)), usage_(std::move(usage)), footer_(std::move(footer)) {}

Options::Option& Options::add(const char* name, const char* type, const char* meaning, std::string shown) {
  options_.push_back({name, type, meaning, std::move(shown), {}});
  return options_.back();
}

void Options::number(const char* name, std::size_t& value, const char* meaning, std::size_t low, std::size_t high,
                     const char* shown) {
  add(name, "N", meaning, shown != nullptr ? shown : std::to_string(value)).take = [=,
                                                                                    &value](const std::string& text) {
    char* end = nullptr;
    errno = 0;
    const bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9';
    const unsigned long long number = digits ? std::strtoull(text.c_str(), &end, 10) : 0;
    if (!digits || *end != '\0' || errno != 0 || number < low || number > high) {
      refuse_number(name, text, true, std::to_string(low) + " to " + std::to_string(high));
    }
    value = number;
  };
}

void Options::number(const char* name, float& value, const char* meaning, double low, double high) {
  add(name, "N", meaning, format("%g", static_cast<double>(value))).take = [=, &value](const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    // NaN is neither below nor above.
    if (text.empty() || *end != '\0' || !(number >= low && number <= high)) {
      refuse_number(name, text, false, format("%.9g to %.9g", low, high));
    }
    value = static_cast<float>(number);
  };
}

void Options::text(const char* name, const char* type, std::string& value, const char* meaning) {
  add(name, type, meaning, value).take = [&value](const std::string& text) { value = text; };
}

void Options::choice(const char* name, std::string& value, const char* meaning, std::vector<std::string> values) {
  add(name, "NAME", meaning, value).take = [name, values = std::move(values), &value](const std::string& text) {
    if (std::find(values.begin(), values.end(), text) == values.end()) {
      std::string all;
      for (const std::string& each : values) all += (all.empty() ? "" : " or ") + each;
      throw UsageError(std::string(name) + ": " + text + " is not " + all);
    }
    value = text;
  };
}

void Options::flag(const char* name, bool& value, const char* meaning) {
  add(name, "", meaning, "").take = [&value](const std::string&) { value = true; };
}

void Options::word(const char* name, std::string& value, const char* meaning) {
  words_.push_back({name, "", meaning, "", [&value](const std::string& text) { value = text; }});
}

void Options::optional_word(const char* name, std::string& value, const char* meaning) {
  word(name, value, meaning);
  last_optional_ = true;
}

void Options::words(const char* name, std::vector<std::string>& values, const char* meaning) {
  words_.push_back({name, "", meaning, "", [&values](const std::string& text) { values.push_back(text); }});
  many_words_ = true;
}

// What was not understood and the option that was probably meant.
std::string Options::unknown(const std::string& name) const {
  std::vector<std::string> names;
  for (const Option& each : options_) names.push_back(each.name);
  const std::string near = closest(name, names), text = name + " is not an option of bnns " + name_;
  return distance(name, near) <= kLikelyMeant ? text + "; did you mean " + near + "?" : text;
}

const Options::Option& Options::find(const std::string& name) const {
  const auto found =
      std::find_if(options_.begin(), options_.end(), [&](const Option& each) { return each.name == name; });
  if (found == options_.end()) throw UsageError(unknown(name));
  return *found;
}

bool Options::parse(const std::vector<std::string>& arguments) {
  if (std::any_of(arguments.begin(), arguments.end(), [](const auto& a) { return a == "-h" || a == "--help"; })) {
    return false;
  }
  std::size_t words = 0;
  bool only_words = false;  // after "--"
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_words || argument.empty() || argument[0] != '-' || argument == "-") {
      if (words >= words_.size() && !many_words_) throw UsageError(argument + " was not expected");
      const Option& word = words_[std::min(words++, words_.size() - 1)];
      given_.insert(word.name);
      word.take(argument);
      continue;
    }
    if (argument == "--") {
      only_words = true;
      continue;
    }
    const std::size_t equals = argument.find('=');
    const Option& option = find(argument.substr(0, equals));
    if (!given_.insert(option.name).second) throw UsageError(option.name + " is given twice, expected once");
    if (option.type.empty()) {
      if (equals != argument.npos) throw UsageError(option.name + " takes no value");
      option.take("");
    } else if (equals != argument.npos) {
      option.take(argument.substr(equals + 1));
    } else if (++i < arguments.size()) {
      option.take(arguments[i]);
    } else {
      throw UsageError(option.name + ": " + option.type + " is missing");
    }
  }
  if (words + (last_optional_ ? 1 : 0) < words_.size())
    throw UsageError(words_[words].name + " is missing: " + words_[words].meaning);
  for (const auto& [one, other] : excluded_) {
    if (given_.count(one) != 0 && given_.count(other) != 0) throw UsageError(one + " excludes " + other);
  }
  return true;
}

std::string Options::help(bool narrow) const {
  std::string text = about_ + "\nUsage: bnns " + name_ + " " + usage_ + "\n\n";
  for (const Option& each : words_) text += help_line(each.name, each.meaning, narrow);
  text += std::string(words_.empty() ? "" : "\n") + "Options:\n" +
          help_line("-h,--help", "Print this help message and exit", narrow);
  for (const Option& each : options_) {
    const std::string shown = each.shown.empty() ? "" : " [" + each.shown + "]";
    text += help_line(each.name + (each.type.empty() ? "" : " " + each.type), each.meaning + shown, narrow);
  }
  return text + "\n" + footer_ + "\n";
}

}  // namespace bnns::tool
