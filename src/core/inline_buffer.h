// Space for a list that is nearly always short: on the stack up to kInline entries, from the client's allocator beyond.
#pragma once

#include <cstddef>
#include <type_traits>

#include "src/core/checked.h"
#include "src/core/memory.h"

namespace bnns {

template <class T, size_t kInline>
class InlineBuffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // n entries, uninitialised: filling kilobytes of stack would cost more than a small call does.
  InlineBuffer(const Options& options, size_t n, const char* what)
      : heap_(options, n > kInline ? checked_mul(n, sizeof(T), what) : 0, what),
        data_(n > kInline ? heap_.as<T>() : reinterpret_cast<T*>(inline_)) {}
  InlineBuffer(const InlineBuffer&) = delete;
  InlineBuffer& operator=(const InlineBuffer&) = delete;

  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  alignas(T) unsigned char inline_[kInline * sizeof(T)];  // T objects begin to live here by assignment
  Buffer heap_;
  T* data_;
};

}  // namespace bnns
