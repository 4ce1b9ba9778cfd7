// OpenBNNS C++ overlay: the C headers, and what is thrown when a call is refused.
#pragma once

#if defined(__APPLE__)
#include <Accelerate/Accelerate.h>
#else
#include <bnns/bnns.h>
#endif
#if __has_include(<bnns/bnns_extensions.h>)
#include <bnns/bnns_extensions.h>
#endif

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace bnns {

/// A refused call. what() is "function: reason".
class Error : public std::runtime_error {
 public:
  /// The cases of Swift's BNNS.Error.
  enum class Code { arrayDescriptorInvalidData, layerApplyFail, optimizerStepFail, unableToCreateLayer };

  Error(Code code, std::string function, int status, std::string reason)
      : std::runtime_error(function + ": " + reason),
        code_(code),
        function_(std::move(function)),
        status_(status),
        reason_(std::move(reason)) {}

  /// What kind of call failed.
  Code code() const noexcept { return code_; }
  /// The C function that refused, or the member of the overlay that found the mistake before any C call.
  const std::string& function() const noexcept { return function_; }
  /// What the C function returned; 0 if the overlay found the mistake.
  int status() const noexcept { return status_; }
  /// Why, in words.
  const std::string& reason() const noexcept { return reason_; }

 private:
  Code code_;
  std::string function_;
  int status_;
  std::string reason_;
};

namespace detail {

// The text that our C library leaves per thread, without the function's name in front; Apple's library leaves none.
inline std::string lastReason([[maybe_unused]] std::string_view function) {
#if __has_include(<bnns/bnns_extensions.h>)
  std::string_view text = ::BNNSExtLastError();
  if (text.starts_with(function) && text.substr(function.size()).starts_with(": ")) {
    text.remove_prefix(function.size() + 2);
  }
  if (!text.empty()) return std::string(text);
#endif
  return "refused without a reason";
}

// Out of line of the calls: a call that succeeds builds no text.
[[noreturn]] inline void refused(int status, const char* function, Error::Code code) {
  throw Error(code, function, status, lastReason(function));
}
[[noreturn]] inline void mistake(Error::Code code, const char* where, std::string reason) {
  throw Error(code, where, 0, std::move(reason));
}
[[noreturn]] inline void badArray(const char* where, std::string reason) {
  mistake(Error::Code::arrayDescriptorInvalidData, where, std::move(reason));
}

inline void check(int status, const char* function, Error::Code code = Error::Code::layerApplyFail) {
  if (status != 0) refused(status, function, code);
}

// A product of sizes, refused where it does not fit.
inline std::size_t times(std::size_t a, std::size_t b, const char* where) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) badArray(where, "the size of the array does not fit in size_t");
  return product;
}

}  // namespace detail
}  // namespace bnns
