// The grammar of contraction strings.

#include <cctype>
#include <cstdio>
#include <cstring>

#include "src/core/error.h"
#include "src/ops/contraction/contraction.h"

namespace bnns {
namespace {

constexpr const char* kOp = "contraction";
constexpr size_t kMaxLength = 1024;

class Parser {
 public:
  explicit Parser(const char* text) : text_(text) {
    if (strnlen(text, kMaxLength + 1) > kMaxLength) {
      fail_invalid("%s: operation has more than %zu characters", kOp, kMaxLength);
    }
  }

  ContractionString parse() {
    ContractionString result;
    result.operand[kSideA] = operand();
    if (peek() == ',') {
      ++at_;
      result.has_b = true;
      result.operand[kSideB] = operand();
      if (peek() == ',') fail("'->': two operands at most");
    }
    if (peek() != '-') fail(result.has_b ? "'->'" : "',' or '->'");
    ++at_;
    if (text_[at_] != '>') fail("'>' after '-'");
    ++at_;
    result.operand[kSideC] = operand();
    if (peek() != '\0') fail("the end of the string");
    return result;
  }

  [[noreturn]] void fail_at(size_t position, const char* expected) const {
    const char c = text_[position];
    char found[16];
    if (c == '\0') {
      std::strcpy(found, "the end");
    } else if (std::isprint(static_cast<unsigned char>(c))) {
      std::snprintf(found, sizeof found, "'%c'", c);
    } else {
      std::snprintf(found, sizeof found, "byte 0x%02x", static_cast<unsigned char>(c));
    }
    char shown[101];  // in one line
    std::snprintf(shown, sizeof shown, "%s", text_);
    for (char* at = shown; *at != '\0'; ++at) {
      if (std::iscntrl(static_cast<unsigned char>(*at))) *at = ' ';
    }
    fail_invalid("%s: operation \"%s\": character %zu is %s, expected %s", kOp, shown, position, found, expected);
  }

 private:
  [[noreturn]] void fail(const char* expected) const { fail_at(at_, expected); }

  char peek() {
    while (std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return text_[at_];
  }

  ContractionOperand operand() {
    ContractionOperand o;
    peek();
    o.position = at_;
    while (std::isalnum(static_cast<unsigned char>(text_[at_]))) o.name += text_[at_++];
    if (o.name.empty()) fail("a name of letters and digits");
    if (peek() != '_') fail("'_' after the name");
    ++at_;
    if (peek() == '*') ++at_, o.star_first = true;
    while (std::isalpha(static_cast<unsigned char>(peek()))) {
      const char letter = text_[at_];
      if (o.letters.find(letter) != std::string::npos) fail("a letter that this operand does not have yet");
      if (o.letters.size() == kMaxRank) fail("eight indices at most");
      o.letter_position[o.letters.size()] = at_;
      o.letters += letter;
      ++at_;
    }
    if (peek() == '*') {
      if (o.star_first) fail("one '*' per operand at most");
      ++at_;
      o.star_last = true;
    }
    const char next = peek();
    if (next != ',' && next != '-' && next != '\0') {
      fail(o.star_last ? "',' or '->': '*' stands before or after all letters" : "an index letter, '*', ',' or '->'");
    }
    return o;
  }

  const char* text_;
  size_t at_ = 0;
};

}  // namespace

ContractionString parse_contraction(const char* text) {
  if (!text) fail_invalid("%s: operation is NULL, expected a string like \"a_ij, b_jk -> out_ik\"", kOp);
  Parser parser(text);
  const ContractionString s = parser.parse();
  const ContractionOperand &a = s.operand[kSideA], &b = s.operand[kSideB], &c = s.operand[kSideC];
  for (size_t i = 0; i < c.letters.size(); ++i) {
    if (a.letters.find(c.letters[i]) == std::string::npos && b.letters.find(c.letters[i]) == std::string::npos) {
      parser.fail_at(c.letter_position[i], "an index that an operand on the left has");
    }
  }
  if (c.star() != (a.star() || b.star())) {
    parser.fail_at(c.position, c.star() ? "no '*': no operand on the left has one"
                                        : "an operand with '*': its indices are never summed");
  }
  const ContractionOperand* end = nullptr;  // the first that says at which end '*' stands; a bare one does not
  for (const ContractionOperand* o : {&a, &b, &c}) {
    if (!o->star() || o->letters.empty()) continue;
    if (!end) end = o;
    if (o->star_first != end->star_first) parser.fail_at(o->position, "an operand with '*' at the same end as before");
  }
  const bool trained_a = a.name[0] == 'w', trained_b = s.has_b && b.name[0] == 'w';
  if (trained_a && trained_b) parser.fail_at(b.position, "an input: one trained operand (w) at most");
  if (trained_a && !s.has_b) parser.fail_at(a.position, "an input: a trained operand (w) needs another one");
  return s;
}

}  // namespace bnns
