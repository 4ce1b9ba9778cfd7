#include "src/mps/guard.h"

#include <cstdarg>
#include <cstdio>

namespace bnns::mps {

void refuse(const char* function, const char* format, ...) noexcept {
  Error error(ErrorKind::invalid, -1);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error.text(), Error::kTextSize, format, arguments);
  va_end(arguments);
  report(function, error);
}

Error foreign_exception() noexcept {
  Error error(ErrorKind::invalid, -1);
  std::snprintf(error.text(), Error::kTextSize, "the caller's own code threw an exception");
  return error;
}

}  // namespace bnns::mps
