// The part of JSON that the header of a safetensors file is made of, read strictly and in one pass: objects, strings,
// lists of whole numbers. The grammar has a fixed depth, so nothing here recurses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bnns::io {

// A piece of a text from outside for a message: one line, at most so many bytes, what is no printable ASCII or UTF-8 as
// '?', and "..." where something was left out.
struct Shown {
  char text[68];
};
Shown shown(const char* text) noexcept;

// The last part of a path, which is what tells files apart.
Shown shown_path(const char* path) noexcept;

// The length of the UTF-8 sequence at `at`, or 0 if there is none that is well formed (no overlong forms, no
// surrogates).
size_t utf8_length(const char* at, const char* end) noexcept;

// A cursor over the text. Every refusal names the file and the byte of the header. Strings are decoded in place: what
// is written lies before what is still to be read, because no decoded string is longer than its text.
class JsonCursor {
 public:
  JsonCursor(const char* file, char* begin, size_t bytes)
      : file_(file), begin_(begin), at_(begin), end_(begin + bytes) {}

  char next();        // the next character that is no white space, not taken; '\0' at the end
  bool take(char c);  // takes it if it is the next one
  void expect(char c, const char* expected);
  void expect_end();
  uint64_t number();         // a whole number below 2^64, without sign, fraction, exponent or leading zeros
  size_t string(char* out);  // decodes the string to `out` <= the cursor, ends it with NUL, returns its length

 private:
  [[noreturn]] void refuse(const char* expected);
  uint32_t escaped_unit();  // four hexadecimal digits
  char* escape(char* out);

  const char* file_;
  char *begin_, *at_, *end_;
};

}  // namespace bnns::io
