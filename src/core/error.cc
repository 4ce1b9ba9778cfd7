#include "src/core/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "src/core/log.h"

namespace bnns {
namespace {

thread_local char last_error_text[Error::kTextSize + 80] = "";

[[noreturn]] void fail(ErrorKind kind, int code, const char* format, va_list arguments) {
  Error error(kind, code);
  std::vsnprintf(error.text(), Error::kTextSize, format, arguments);
  va_end(arguments);
  throw error;
}

void store(BNNSExtLogLevel level, const char* function, const char* message) noexcept {
  std::snprintf(last_error_text, sizeof last_error_text, "%s: %s", function, message);
  log_message(level, last_error_text);
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

void report(const char* function, const Error& error) noexcept {
  store(error.kind() == ErrorKind::unsupported ? BNNSExtLogInfo : BNNSExtLogError, function, error.what());
}

void report_out_of_memory(const char* function) noexcept {
  store(BNNSExtLogError, function, "out of memory");
}

const char* last_error() noexcept {
  return last_error_text;
}

void clear_last_error() noexcept {
  last_error_text[0] = '\0';
}

}  // namespace bnns
