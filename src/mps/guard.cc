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

}  // namespace bnns::mps
