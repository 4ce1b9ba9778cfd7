#include "src/core/notes.h"

#include <cstdarg>
#include <cstdint>
#include <cstdio>

namespace bnns {

void note(const char* format, ...) noexcept {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  log_message(BNNSExtLogNote, line);
}

void note_unread_pixels(const char* op, size_t columns, size_t rows, size_t x_stride, size_t y_stride) noexcept {
  note(
      "%s: the last %zu columns and %zu rows of i_desc with its padding are not read: "
      "o_desc is smaller than x_stride %zu and y_stride %zu make it; is a larger stride missing?",
      op, columns, rows, x_stride, y_stride);
}

std::atomic<size_t> detail::remembered_copies{0};

namespace {

struct Copy {
  std::atomic<const void*> copy{nullptr};  // nullptr: the slot is free; kTaken: being filled
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<const char*> what{nullptr};
  std::atomic<bool> noted{false};
};
constexpr size_t kCopies = 512;
Copy copies[kCopies];
const char kTaken = 0;

}  // namespace

void remember_copy(const void* copy, const void* original, size_t bytes, const char* what) noexcept {
  for (Copy& slot : copies) {
    const void* expected = nullptr;
    if (!slot.copy.compare_exchange_strong(expected, &kTaken, std::memory_order_acquire)) continue;
    const auto begin = reinterpret_cast<uintptr_t>(original);
    slot.begin.store(begin, std::memory_order_relaxed);
    slot.end.store(begin + bytes, std::memory_order_relaxed);
    slot.what.store(what, std::memory_order_relaxed);
    slot.noted.store(false, std::memory_order_relaxed);
    slot.copy.store(copy, std::memory_order_release);
    detail::remembered_copies.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

void detail::forget_copy(const void* copy) noexcept {
  for (Copy& slot : copies) {
    if (slot.copy.load(std::memory_order_relaxed) != copy) continue;
    remembered_copies.fetch_sub(1, std::memory_order_relaxed);
    slot.copy.store(nullptr, std::memory_order_release);
    return;
  }
}

void note_copied_parameter(const void* data, size_t bytes, size_t index) noexcept {
  if (detail::remembered_copies.load(std::memory_order_relaxed) == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  for (Copy& slot : copies) {
    const void* copy = slot.copy.load(std::memory_order_acquire);
    if (!copy || copy == &kTaken) continue;
    if (begin >= slot.end.load(std::memory_order_relaxed) ||
        begin + bytes <= slot.begin.load(std::memory_order_relaxed))
      continue;
    if (slot.noted.exchange(true, std::memory_order_relaxed)) continue;
    note(
        "optimizer: parameters[%zu] was copied when a filter was created (%s), "
        "so this step does not change the filter; create it with BNNSFlagsUseClientPtr",
        index, slot.what.load(std::memory_order_relaxed));
  }
}

}  // namespace bnns
