// Legal but surely wrong: what is said about calls that are carried out (BNNSExtLogNote). Callers ask notes_wanted()
// first, so that a program without a listener pays one relaxed load.
#pragma once

#include <atomic>
#include <cstddef>

#include "src/core/log.h"

namespace bnns {

[[gnu::format(printf, 1, 2)]] void note(const char* format, ...) noexcept;

// An output that is smaller than its windows allow, so that the last columns or rows of the padded input are not read.
void note_unread_pixels(const char* op, size_t columns, size_t rows, size_t x_stride, size_t y_stride) noexcept;

// ---- parameters that a filter copied at its creation -------------------------------------------------------------

// An optimizer that changes the caller's array does not change the copy. The copies of living filters are kept in a
// fixed table without a lock, best effort, and only those made while notes are wanted.
void remember_copy(const void* copy, const void* original, size_t bytes, const char* what) noexcept;

namespace detail {
extern std::atomic<size_t> remembered_copies;
void forget_copy(const void* copy) noexcept;
}  // namespace detail

// For every block that is given back.
inline void forget_copy(const void* copy) noexcept {
  if (detail::remembered_copies.load(std::memory_order_relaxed) != 0) detail::forget_copy(copy);
}

// The note for parameters[index] of an optimizer's step, once per copy.
void note_copied_parameter(const void* data, size_t bytes, size_t index) noexcept;

}  // namespace bnns
