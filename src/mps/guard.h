// The boundary of the MPS classes: no exception passes it.
#pragma once

#include <new>
#include <utility>

#include "src/core/error.h"

namespace bnns::mps {

// Reports without throwing: for calls that do nothing when refused.
[[gnu::format(printf, 2, 3)]] void refuse(const char* function, const char* format, ...) noexcept;

// What the caller's own code (allocators, paddings, handlers) threw.
Error foreign_exception() noexcept;

// Like bnns::guarded, for any exception.
template <class Result, class Body>
Result protect(const char* function, Result fallback, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    report(function, error);
  } catch (const std::bad_alloc&) {
    report_out_of_memory(function);
  } catch (...) {
    report(function, foreign_exception());
  }
  return fallback;
}

}  // namespace bnns::mps
