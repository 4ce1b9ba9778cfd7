// What becomes of a refusal: the calling thread's last error, and the log.
#include <cstdio>

#include "src/core/error.h"
#include "src/core/log.h"

namespace bnns {
namespace {

thread_local char last_error_text[Error::kTextSize + 80] = "";

void store(BNNSExtLogLevel level, const char* function, const char* message) noexcept {
  std::snprintf(last_error_text, sizeof last_error_text, "%s: %s", function, message);
  log_message(level, last_error_text);
}

}  // namespace

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
