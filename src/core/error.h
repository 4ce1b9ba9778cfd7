// How a call is refused.
//
// Inside the library a refusal is a thrown Error; guarded() is the only try, at the C boundary. It stores one line per
// thread (BNNSExtLastError), hands it to the log callback, and returns the entry point's failure value.
// A message names operator, field, what came and what was expected:
//   fully_connected: w_desc.size[0] is 5, expected 4 = elements of i_desc
#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "src/core/float_mode.h"

namespace bnns {

enum class ErrorKind { invalid, unsupported, out_of_memory };

// Fixed storage: an out-of-memory refusal must not allocate.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, int code) noexcept : kind_(kind), code_(code) {}
  const char* what() const noexcept override { return text_; }
  ErrorKind kind() const noexcept { return kind_; }
  int code() const noexcept { return code_; }
  static constexpr size_t kTextSize = 400;
  char* text() noexcept { return text_; }

 private:
  ErrorKind kind_;
  int code_;  // what an int entry point returns
  char text_[kTextSize] = "";
};

// The caller made a mistake.
[[noreturn, gnu::format(printf, 1, 2)]] void fail_invalid(const char* format, ...);
// The same with a code other than -1 (BNNSGather's -1005, ...).
[[noreturn, gnu::format(printf, 2, 3)]] void fail_with_code(int code, const char* format, ...);
// The call is right but this library does not offer it.
[[noreturn, gnu::format(printf, 1, 2)]] void fail_unsupported(const char* format, ...);
[[noreturn]] void fail_out_of_memory(const char* what, size_t bytes);

// Stores and logs "function: message".
void report(const char* function, const Error& error) noexcept;
void report_out_of_memory(const char* function) noexcept;

const char* last_error() noexcept;
void clear_last_error() noexcept;

// Runs body() in the library's floating-point mode and returns its value; any refusal is reported under the entry
// point's name, in the caller's mode, and becomes `fallback`.
template <class Result, class Body>
Result guarded(const char* function, Result fallback, Body&& body) noexcept {
  try {
    const FloatMode mode;
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    report(function, error);
  } catch (const std::bad_alloc&) {
    report_out_of_memory(function);
  }
  return fallback;
}

// The same for entry points that return a status: 0, or the error's code (-1 unless the specification has another).
template <class Body>
int guarded_status(const char* function, Body&& body) noexcept {
  try {
    const FloatMode mode;
    std::forward<Body>(body)();
    return 0;
  } catch (const Error& error) {
    report(function, error);
    return error.code();
  } catch (const std::bad_alloc&) {
    report_out_of_memory(function);
    return -1;
  }
}

}  // namespace bnns
