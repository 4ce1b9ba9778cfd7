// OpenBNNS C++ overlay: the C headers, and what is thrown when a call is refused.
#pragma once

#if __cplusplus < 202002L
#error "the C++ overlay of BNNS needs C++20: compile with -std=c++20 (the C headers, <bnns/bnns.h>, need C99 or C++11)"
#endif

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
#include <utility>

namespace bnns {

/// A refused call. what() is "function: reason", such as "FullyConnectedLayer::apply: input has 2 elements a sample,
/// the layer takes 4".
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
  /// The layer and its call ("FullyConnectedLayer::apply"), the layer that could not be made ("FullyConnectedLayer"),
  /// or the function ("copy").
  const std::string& function() const noexcept { return function_; }
  /// What the C function returned; 0 if the overlay found the mistake.
  int status() const noexcept { return status_; }
  /// Why, in words. Where the C library refused, its own: "C function: operator: reason".
  const std::string& reason() const noexcept { return reason_; }

 private:
  Code code_;
  std::string function_;
  int status_;
  std::string reason_;
};

namespace detail {

// A call as messages name it: "layer::call", or one name alone.
struct Where {
  Where(const char* name) : scope(name) {}
  Where(const char* layer, const char* member) : scope(layer), call(member) {}
  std::string text() const { return call ? std::string(scope) + "::" + call : std::string(scope); }

  const char* scope;
  const char* call = nullptr;
};

// The text that our C library leaves per thread; Apple's library leaves none.
inline std::string lastReason(const char* function) {
#if __has_include(<bnns/bnns_extensions.h>)
  if (const char* text = ::BNNSExtLastError(); text && *text) return text;
#endif
  return std::string(function) + " refused without a reason";
}

// Out of line of the calls: a call that succeeds builds no text.
[[noreturn]] inline void refused(int status, const Where& where, const char* function, Error::Code code) {
  throw Error(code, where.text(), status, lastReason(function));
}
[[noreturn]] inline void mistake(Error::Code code, const Where& where, std::string reason) {
  throw Error(code, where.text(), 0, std::move(reason));
}
[[noreturn]] inline void badArray(const Where& where, std::string reason) {
  mistake(Error::Code::arrayDescriptorInvalidData, where, std::move(reason));
}

// What a call of the C function returned.
inline void check(int status, const Where& where, const char* function,
                  Error::Code code = Error::Code::layerApplyFail) {
  if (status != 0) refused(status, where, function, code);
}

// Products and sums of sizes, refused where they do not fit.
inline std::size_t times(std::size_t a, std::size_t b, const Where& where) {
  std::size_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) badArray(where, "the size of the array does not fit in size_t");
  return product;
}
inline std::size_t plus(std::size_t a, std::size_t b, const Where& where) {
  std::size_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) badArray(where, "the size of the array does not fit in size_t");
  return sum;
}

}  // namespace detail
}  // namespace bnns
