// Shared by the tests of src/simd: every instruction set of the machine, errors in ulp, buffers between guard pages.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "src/core/isa.h"

namespace bnns::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kMax = std::numeric_limits<float>::max();
inline constexpr float kDenorm = std::numeric_limits<float>::denorm_min();

// Calls body(isa) with each of Highway's targets that the machine has in use, then restores the best.
template <class Body>
void for_each_isa(Body body) {
  for (int i = 0; i <= static_cast<int>(std::min(best_isa(), Isa::avx512)); ++i) {
    set_max_isa(static_cast<Isa>(i));
    SCOPED_TRACE(isa_name(static_cast<Isa>(i)));
    body(static_cast<Isa>(i));
  }
  set_max_isa(best_isa());
}

inline bool exhaustive() {
  const char* text = std::getenv("BNNS_TEST_EXHAUSTIVE");
  return text != nullptr && text[0] == '1';
}

// |y - exact| in units of the float spacing at `exact` (2^-149 for subnormals). inf counts as 2^128, the next number
// after the largest, so that rounding over the edge is one ulp and not infinitely many. Wrong NaN: inf.
inline double ulp_error(float y, double exact) {
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0 : HUGE_VAL;
  const auto cap = [](double v) { return v > 0x1p128 ? 0x1p128 : v < -0x1p128 ? -0x1p128 : v; };
  const double target = cap(exact);
  const uint64_t field = std::bit_cast<uint64_t>(target) >> 52 & 0x7FF;
  const uint64_t clamped = std::min<uint64_t>(std::max<uint64_t>(field, 1023 - 126), 1023 + 127);
  return std::fabs(cap(y) - target) * std::bit_cast<double>((2046 - clamped + 23) << 52);  // times 1 / ulp
}

// Room for n elements of T whose end (or start) touches an inaccessible page: a stray access ends the process.
template <typename T>
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t n) : size_(n) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = (n * sizeof(T) + page - 1) / page * page;
    length_ = bytes + 2 * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + page, bytes, PROT_READ | PROT_WRITE) != 0) std::abort();
    first_ = base_ + page;
    last_ = first_ + bytes;
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(base_, length_); }

  T* at_start() { return reinterpret_cast<T*>(first_); }                   // guard page before element 0
  T* at_end() { return reinterpret_cast<T*>(last_ - size_ * sizeof(T)); }  // guard page after element n - 1

 private:
  size_t size_, length_;
  std::byte *base_, *first_, *last_;
};

}  // namespace bnns::test
