#include "src/io/json.h"

#include <cstdio>
#include <cstring>

#include "src/core/error.h"

namespace bnns::io {
namespace {

using Byte = unsigned char;

constexpr bool is_tail(char c) {
  return (static_cast<Byte>(c) & 0xc0) == 0x80;
}

char* put_utf8(char* out, uint32_t code) {
  const auto put = [&](uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  }
  return out;
}

}  // namespace

size_t utf8_length(const char* at, const char* end) noexcept {
  const Byte first = static_cast<Byte>(*at), second = end - at > 1 ? static_cast<Byte>(at[1]) : 0;
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length == 0 || static_cast<size_t>(end - at) < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!is_tail(at[i])) return 0;
  }
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;  // overlong; surrogates
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;  // overlong; past U+10FFFF
  return length;
}

Shown shown(const char* text) noexcept {
  Shown s{};
  const char* const end = text + std::strlen(text);
  size_t used = 0;
  for (const char* at = text; at < end;) {
    const size_t length = utf8_length(at, end);
    if (used + (length ? length : 1) > sizeof s.text - 4) {
      std::memcpy(s.text + used, "...", 4);
      return s;
    }
    if (length == 0 || static_cast<Byte>(*at) < 0x20 || *at == 0x7f) {
      s.text[used++] = '?';
      ++at;
    } else {
      std::memcpy(s.text + used, at, length);
      used += length, at += length;
    }
  }
  return s;
}

Shown shown_path(const char* path) noexcept {
  const size_t length = std::strlen(path), room = sizeof(Shown::text) - 1;
  if (length <= room - 3) return shown(path);
  const char* from = path + length - (room - 9);
  while (is_tail(*from)) ++from;
  char text[sizeof(Shown::text)];
  std::snprintf(text, sizeof text, "...%s", from);
  return shown(text);
}

void JsonCursor::refuse(const char* expected) {
  if (at_ == end_) fail_invalid("%s: the header ends at byte %td, expected %s", file_, at_ - begin_, expected);
  const char c = *at_;
  if (c >= 0x20 && c < 0x7f) {
    fail_invalid("%s: byte %td of the header is '%c', expected %s", file_, at_ - begin_, c, expected);
  }
  fail_invalid("%s: byte %td of the header is 0x%02x, expected %s", file_, at_ - begin_, static_cast<Byte>(c),
               expected);
}

char JsonCursor::next() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  return at_ < end_ ? *at_ : '\0';
}

bool JsonCursor::take(char c) {
  if (next() != c || at_ == end_) return false;
  ++at_;
  return true;
}

void JsonCursor::expect(char c, const char* expected) {
  if (!take(c)) refuse(expected);
}

void JsonCursor::expect_end() {
  next();
  if (at_ != end_) refuse("nothing but spaces after the object");
}

uint64_t JsonCursor::number() {
  const char first = next();
  if (at_ == end_ || first < '0' || first > '9') refuse("a whole number");
  uint64_t value = 0;
  const char* const begin = at_;
  for (; at_ < end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(*at_ - '0'), &value)) {
      fail_invalid("%s: byte %td of the header begins a number that does not fit in 64 bits", file_, begin - begin_);
    }
  }
  if (first == '0' && at_ - begin > 1) {
    at_ = begin_ + (begin - begin_);
    refuse("a number without leading zeros");
  }
  if (at_ < end_ && (*at_ == '.' || *at_ == 'e' || *at_ == 'E')) refuse("a whole number");
  return value;
}

uint32_t JsonCursor::escaped_unit() {
  uint32_t unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ == end_) refuse("four hexadecimal digits");
    const char c = *at_;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) refuse("four hexadecimal digits");
    unit = unit << 4 | static_cast<uint32_t>(digit);
  }
  return unit;
}

// What follows a backslash.
char* JsonCursor::escape(char* out) {
  if (at_ == end_) refuse("the rest of an escape");
  static constexpr char kNames[] = "\"\\/bfnrt", kMeanings[] = "\"\\/\b\f\n\r\t";
  if (*at_ != 'u') {
    const char* const name = *at_ != '\0' ? std::strchr(kNames, *at_) : nullptr;
    if (!name) refuse("one of \" \\ / b f n r t u after a backslash");
    ++at_;
    *out = kMeanings[name - kNames];
    return out + 1;
  }
  char* const begin = at_++;
  uint32_t code = escaped_unit();
  if (code >= 0xd800 && code < 0xdc00 && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
    at_ += 2;
    const uint32_t low = escaped_unit();
    code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00)) : 0xd800;
  }
  if (code == 0 || (code >= 0xd800 && code < 0xe000)) {
    at_ = begin;
    refuse(code == 0 ? "no NUL in a text" : "both halves of a surrogate pair");
  }
  return put_utf8(out, code);
}

size_t JsonCursor::string(char* out) {
  if (next() != '"') refuse("a text in quotes");
  ++at_;
  char* const begin = out;
  while (true) {
    if (at_ == end_) refuse("the end of a text");
    if (*at_ == '"') break;
    if (*at_ == '\\') {
      ++at_;
      out = escape(out);
      continue;
    }
    const size_t length = utf8_length(at_, end_);
    if (length == 0) refuse("UTF-8");
    if (static_cast<Byte>(*at_) < 0x20) refuse("no control character in a text");
    std::memmove(out, at_, length);
    out += length, at_ += length;
  }
  ++at_;
  *out = '\0';
  return static_cast<size_t>(out - begin);
}

}  // namespace bnns::io
