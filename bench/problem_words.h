// The parts of a line of the log (problem_line.h) and of the descriptions that are made of it.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bnns::bench {

[[noreturn]] inline void refuse(const std::string& why) {
  throw std::runtime_error(why);
}

using Sizes = std::vector<std::size_t>;

// "64x56x56"
inline Sizes sizes_of(const std::string& text) {
  Sizes sizes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const std::string number = text.substr(at, end - at);
    if (number.empty() || number.size() > 12 || number.find_first_not_of("0123456789") != number.npos) {
      refuse("\"" + text + "\" is no list of sizes such as 64x56x56");
    }
    sizes.push_back(std::strtoull(number.c_str(), nullptr, 10));
    at = end + 1;
  }
  return sizes;
}

// A line of the log, or the problem alone.
struct Line {
  std::string action, problem;  // action: "" where there is none
  std::size_t batch = 1;

  explicit Line(std::string text) {
    const auto drop = [&](const std::string& prefix) {
      if (text.rfind(prefix, 0) == 0) text.erase(0, prefix.size());
    };
    drop("bnns_verbose,");
    for (const char* one : {"apply", "create", "train", "forward", "direct", "backward", "direct_backward"}) {
      if (text.rfind(std::string(one) + ",", 0) != 0) continue;
      action = one;
      text.erase(0, action.size() + 1);
      break;
    }
    const std::size_t at = text.rfind(",batch ");
    if (at != text.npos) {
      batch = std::max<std::size_t>(1, std::strtoull(text.c_str() + at + 7, nullptr, 10));  // a layer's creation has 0
      text.erase(at);
    }
    problem = text;
  }
  bool forward() const { return action.find("backward") == action.npos; }
  bool backward() const { return !forward() || action.empty() || action == "create"; }
};

// The words of a problem, in order.
class Words {
 public:
  explicit Words(const std::string& problem) {
    std::istringstream in(problem);
    for (std::string word; in >> word;) words_.push_back(word);
  }
  std::string next() {
    if (at_ == words_.size()) refuse("\"" + all() + "\" ends too early");
    return words_[at_++];
  }
  bool take(const std::string& word) { return at_ < words_.size() && words_[at_] == word && ++at_ != 0; }
  void expect(const std::string& word) {
    const std::string there = next();
    if (there != word) refuse("\"" + there + "\" is there, expected \"" + word + "\"");
  }
  // The sizes behind a word that begins with these letters and a digit, "k3x3"; `otherwise` where there is none.
  Sizes numbers(const std::string& letters, Sizes otherwise = {}) {
    if (at_ < words_.size() && words_[at_].rfind(letters, 0) == 0 && words_[at_].size() > letters.size() &&
        std::isdigit(static_cast<unsigned char>(words_[at_][letters.size()])) != 0) {
      return sizes_of(words_[at_++].substr(letters.size()));
    }
    if (otherwise.empty()) refuse("\"" + all() + "\" has no " + letters);
    return otherwise;
  }
  std::size_t number(const std::string& letters) { return numbers(letters)[0]; }
  std::string type() {
    const std::string name = next();
    if (name != "f32" && name != "f16" && name != "bf16") refuse(name + " is there, expected f32, f16 or bf16");
    return name;
  }
  void end() {
    if (at_ < words_.size()) refuse("\"" + words_[at_] + "\" is not among what the rows of bnns bench have");
  }

 private:
  std::string all() const {
    std::string text;
    for (const std::string& word : words_) text += (text.empty() ? "" : " ") + word;
    return text;
  }
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

// "family op DIRECTION type name=value ...", once for each direction that the line means.
class Made {
 public:
  Made(const Line& line, const std::string& family, const std::string& op, const std::string& type)
      : line_(line), head_(family + " " + op + " "), type_(" " + type) {}
  Made& set(const std::string& name, std::size_t value) {
    numbers_ += " " + name + "=" + std::to_string(value);
    return *this;
  }
  // a= is the slowest axis; the line has the fastest first. A batch is one axis more.
  Made& axes(const Sizes& sizes, const char* prefix = "") {
    Sizes all = sizes;
    if (line_.batch > 1) all.push_back(line_.batch);
    if (all.size() > 5) refuse("rows of bnns bench have up to five axes");
    std::reverse(all.begin(), all.end());
    for (std::size_t k = 0; k < all.size(); ++k) set(prefix + std::string(1, char('a' + k)), all[k]);
    return *this;
  }
  std::vector<std::string> lines(const std::vector<std::string>& forward, const std::vector<std::string>& backward) {
    std::vector<std::string> all;
    const auto add = [&](const std::vector<std::string>& directions, const std::string& more) {
      for (const std::string& each : directions) all.push_back(head_ + each + type_ + numbers_ + more);
    };
    if (line_.forward()) add(forward, forward_);
    if (line_.backward()) add(backward, "");
    if (all.empty()) refuse("no row of bnns bench has the gradient of this operator");
    return all;
  }
  Made& only_forward(const std::string& name, bool given) {
    if (given) forward_ += " " + name + "=1";
    return *this;
  }

 private:
  const Line& line_;
  std::string head_, type_, numbers_, forward_;
};
using Texts = std::vector<std::string>;

}  // namespace bnns::bench
