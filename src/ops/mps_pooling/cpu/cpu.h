// The CPU device's algorithms: the entries of its tables (mps_pooling/implementations.cc), and what they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

// One piece of scratch per thread, allocated before the threads start; null where there is no memory.
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
// Backward keeps what windows send in `scratch`, as many rows at a time as fit; where not even one row fits it computes
// each window wherever it is needed: slower, the same bits.
void plain_rows(const PoolEncode& e, int64_t n, int64_t slice, int64_t begin, int64_t end, void* scratch,
                size_t bytes) noexcept;

// An entry's run: the whole encode on up to `threads` threads. Where there is no memory for its scratch the plain loops
// run instead, which need none.
void run_plain(const PoolEncode& e, size_t threads) noexcept;

// A window that is its whole plane (mps_pooling/cpu/global_simd.cc).
bool accepts_global(const PoolEncode& e) noexcept;
void run_global(const PoolEncode& e, size_t threads) noexcept;

// Whole planes in 2x2 stride 2, 3x3 stride 2 and 3x3 stride 1 windows of f32 and f16 images with AVX-512, in one pass
// (mps_pooling/cpu/direct.h).
enum class DirectForm : uint8_t;
template <DirectForm kForm>
bool accepts_direct(const PoolEncode& e) noexcept;
template <DirectForm kForm>
void run_direct(const PoolEncode& e, size_t threads) noexcept;

// The same windows in any clip, on any instruction set (mps_pooling/cpu/band.h).
bool accepts_band(const PoolEncode& e) noexcept;
void run_band(const PoolEncode& e, size_t threads) noexcept;

// Any window, at a cost that grows with its sides and not with its area (mps_pooling/cpu/separable_simd.cc).
bool accepts_separable(const PoolEncode& e) noexcept;
void run_separable(const PoolEncode& e, size_t threads) noexcept;
inline constexpr int64_t kMostSeparableKernel = 1024;  // taps on a side

// A task is a band of target rows of one plane. Rows of scratch are of floats, four for each pixel or window.
struct CpuSeparable {
  int64_t left, extended;             // source rows in scratch begin with pixel -left and have so many pixels
  int64_t before, slots;              // rows of what windows send begin with window -before and have so many slots
  int64_t band, rows;                 // target rows of a band; source rows that it reads, at most
  int64_t row, slot_row, target_row;  // floats of a row of pixels, of slots, of the source's pixels alone

  size_t scratch_bytes() const;
};

// Targets from this size on are written with non-temporal stores: reading lines only to overwrite them costs a third of
// the time, and what is read passes through the caches too: together they are more than a core's second-level cache, so
// that the next encode would not find them there anyway.
inline constexpr size_t kStreamBytes = size_t{1} << 20;

inline size_t target_bytes(const PoolEncode& e) {
  return static_cast<size_t>(e.images * e.channels * e.width * e.height) * bytes_of(e.target.type);
}

}  // namespace bnns::mps
