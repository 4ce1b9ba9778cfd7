// Errors with a formatted text, thrown.
#include "src/core/error.h"

#include <cstdarg>
#include <cstdio>

namespace bnns {
namespace {

[[noreturn]] void fail(ErrorKind kind, int code, const char* format, va_list arguments) {
  Error error(kind, code);
  std::vsnprintf(error.text(), Error::kTextSize, format, arguments);
  va_end(arguments);
  throw error;
}

}  // namespace

void fail_invalid(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail(ErrorKind::invalid, -1, format, arguments);
}

void fail_with_code(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail(ErrorKind::invalid, code, format, arguments);
}

void fail_unsupported(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail(ErrorKind::unsupported, -1, format, arguments);
}

void fail_out_of_memory(const char* what, size_t bytes) {
  Error error(ErrorKind::out_of_memory, -1);
  std::snprintf(error.text(), Error::kTextSize, "out of memory: %zu bytes for %s", bytes, what);
  throw error;
}

}  // namespace bnns
