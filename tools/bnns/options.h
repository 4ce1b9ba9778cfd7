// Options of one subcommand: a table that parses the command line, writes the help and knows what was probably meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace bnns::tool {

// What is wrong with the command line, in one line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "one, two, three"
std::string listed(const std::vector<std::string>& words);

// The one of `known` with the fewest letters put in, taken out or changed; and how many those are.
std::string closest(const std::string& word, const std::vector<std::string>& known);
std::size_t distance(const std::string& a, const std::string& b);
inline constexpr std::size_t kLikelyMeant = 2;  // edits that are taken for a slip of the fingers

class Options {
 public:
  // `usage` follows the name in the help: "bnns predict [OPTIONS] WEIGHTS PICTURES...".
  Options(std::string name, std::string about, std::string usage, std::string footer);

  // Each shows in brackets what the value is now; `shown` says it in other words.
  void number(const char* name, std::size_t& value, const char* meaning, std::size_t low, std::size_t high,
              const char* shown = nullptr);
  void number(const char* name, float& value, const char* meaning, double low, double high);
  void text(const char* name, const char* type, std::string& value, const char* meaning);
  void choice(const char* name, std::string& value, const char* meaning, std::vector<std::string> values);
  void flag(const char* name, bool& value, const char* meaning);
  void excludes(const char* one, const char* other) { excluded_.push_back({one, other}); }
  // Words without "--": one, or, in the last place, one and more, or one that need not be there.
  void word(const char* name, std::string& value, const char* meaning);
  void optional_word(const char* name, std::string& value, const char* meaning);
  void words(const char* name, std::vector<std::string>& values, const char* meaning);

  // The arguments after the name. Returns false where they ask for help. Throws UsageError.
  bool parse(const std::vector<std::string>& arguments);
  const std::set<std::string>& given() const { return given_; }

  const std::string& name() const { return name_; }
  const std::string& about() const { return about_; }
  // Meanings begin in column 30, or below their options where `narrow`.
  std::string help(bool narrow) const;

 private:
  struct Option {
    std::string name, type, meaning, shown;
    std::function<void(const std::string&)> take;  // of the value; "" for a flag
  };
  Option& add(const char* name, const char* type, const char* meaning, std::string shown);
  const Option& find(const std::string& name) const;
  std::string unknown(const std::string& name) const;

  std::string name_, about_, usage_, footer_;
  std::vector<Option> options_, words_;
  std::vector<std::pair<std::string, std::string>> excluded_;
  bool many_words_ = false, last_optional_ = false;
  std::set<std::string> given_;
};

// "  --batch N                   Digits per step [64]"
std::string help_line(const std::string& left, const std::string& meaning, bool narrow);

}  // namespace bnns::tool
