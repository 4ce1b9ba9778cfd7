// The CPU device's ways to run an encode. pool_forward_cpu and pool_backward_cpu (mps_pooling.h) take the first that
// accepts it; the plain one accepts everything and is what the tests compare the others with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

// One piece of scratch per thread, asked for before the threads start; null where there is no memory.
class ThreadScratch {
 public:
  ThreadScratch(size_t threads, size_t bytes)
      : bytes_((bytes + 127) / 128 * 128), memory_(std::aligned_alloc(128, threads * bytes_)) {}
  explicit operator bool() const { return memory_ != nullptr; }
  size_t bytes() const { return memory_ ? bytes_ : 0; }
  void* of(size_t worker) const { return memory_ ? static_cast<char*>(memory_.get()) + worker * bytes_ : nullptr; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  size_t bytes_;
  std::unique_ptr<void, Free> memory_;
};

// Plain loops over all windows, formats and channel counts: rows [begin, end) of the clip, slice `slice` of image n.
// Backward keeps what windows send in `scratch`, as many rows at a time as fit; without room for one row it computes
// each window wherever it is needed: slower, the same bits.
void pool_forward_plain_rows(const PoolForward& e, int64_t n, int64_t slice, int64_t begin, int64_t end) noexcept;
void pool_backward_plain_rows(const PoolBackward& e, int64_t n, int64_t slice, int64_t begin, int64_t end,
                              void* scratch, size_t bytes) noexcept;

void pool_forward_plain(const PoolForward& encode, size_t threads) noexcept;
void pool_backward_plain(const PoolBackward& encode, size_t threads) noexcept;

// Windows 2x2 stride 2 and 3x3 stride 1 or 2 of f32 and f16 images in whole slices: whole planes with AVX-512
// (mps_pooling/cpu/direct.h), all others (mps_pooling/cpu/band.h); and windows that are their whole plane
// (mps_pooling/cpu/global_simd.cc). False: not taken, nothing written.
bool pool_direct(const PoolBackward& encode, bool backward, size_t threads) noexcept;
bool pool_band(const PoolBackward& encode, bool backward, size_t threads) noexcept;
bool pool_global(const PoolBackward& encode, bool backward, size_t threads) noexcept;

// Targets from this size on are written around the caches: reading lines only to overwrite them costs a third of the
// time, and what is read passes through the caches too: together they are more than a core's second-level cache, so
// that the next encode would not find them there anyway.
inline constexpr size_t kStreamBytes = size_t{1} << 20;

inline size_t target_bytes(const PoolEncode& e) {
  return static_cast<size_t>(e.images * e.channels * e.width * e.height) * bytes_of(e.target.type);
}

// A forward encode as the backward one that the shared plans read.
inline PoolBackward as_backward(const PoolForward& e) {
  PoolBackward b;
  static_cast<PoolEncode&>(b) = e;
  return b;
}
inline PoolForward as_forward(const PoolBackward& e) {
  PoolForward f;
  static_cast<PoolEncode&>(f) = e;
  return f;
}

}  // namespace bnns::mps
