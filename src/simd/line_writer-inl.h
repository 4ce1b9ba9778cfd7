// Writes runs of elements that follow each other in memory through a small buffer in L1.
//
// Kernels fill the buffer with whole vectors, whatever the length of a row; full cache lines leave it as aligned
// vectors, by non-temporal stores if asked (these need whole lines: anything else would be slower than an ordinary
// store). Nothing outside the committed elements is written.

#if defined(BNNS_SIMD_LINE_WRITER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_LINE_WRITER_INL_H_
#undef BNNS_SIMD_LINE_WRITER_INL_H_
#else
#define BNNS_SIMD_LINE_WRITER_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
class LineWriter {
 public:
  static constexpr size_t kLine = 64 / sizeof(T);
  static constexpr size_t kSlack = 2 * kLine;            // elements that may be written past a reservation
  static constexpr size_t kCapacity = 8192 / sizeof(T);  // 8 KiB: a quarter of L1
  static constexpr size_t kLongest = kCapacity - kLine;  // what one reservation may ask for
  // Lines leave from 1 KiB on: in long bursts the stores would wait for memory, and then memory for the next burst.
  static constexpr size_t kFull = 1024 / sizeof(T);

  explicit LineWriter(bool stream) : stream_(stream) {}

  // Space for n elements that belong at `to`.
  HWY_INLINE T* Reserve(T* to, size_t n) {
    if (HWY_UNLIKELY(to != base_ + fill_ || base_ == nullptr)) Restart(to);
    if (fill_ >= kFull || HWY_UNLIKELY(fill_ + n > kCapacity)) FlushLines();
    return buffer_ + fill_;
  }
  HWY_INLINE void Commit(size_t n) { fill_ += n; }

  // Brings everything to memory. Must be called before the writer goes.
  HWY_NOINLINE void Finish() {
    FlushLines();
    if (fill_ > head_) std::memcpy(base_ + head_, buffer_ + head_, (fill_ - head_) * sizeof(T));
    base_ = nullptr;
    head_ = fill_ = 0;
    if (stream_) hwy::FlushStream();
  }

 private:
  HWY_NOINLINE void Restart(T* to) {
    FlushLines();
    if (fill_ > head_) std::memcpy(base_ + head_, buffer_ + head_, (fill_ - head_) * sizeof(T));
    head_ = fill_ = reinterpret_cast<uintptr_t>(to) % 64 / sizeof(T);
    base_ = to - head_;  // a line begins here; its elements before head_ are not ours
  }

  HWY_NOINLINE void FlushLines() {
    const hn::ScalableTag<T> d;
    const size_t lines = fill_ / kLine * kLine;
    if (lines == 0) return;
    size_t i = 0;
    if (head_ != 0) {
      std::memcpy(base_ + head_, buffer_ + head_, (kLine - head_) * sizeof(T));
      head_ = 0;
      i = kLine;
    }
    if (stream_) {
      for (; i < lines; i += hn::Lanes(d)) hn::Stream(hn::Load(d, buffer_ + i), d, base_ + i);
    } else {
      for (; i < lines; i += hn::Lanes(d)) hn::Store(hn::Load(d, buffer_ + i), d, base_ + i);
    }
    fill_ -= lines;
    std::memcpy(buffer_, buffer_ + lines, kLine * sizeof(T));  // a constant length: one vector; the tail is in front
    base_ += lines;
  }

  T* base_ = nullptr;           // where buffer_[0] belongs; the beginning of a cache line
  size_t head_ = 0, fill_ = 0;  // [head_, fill_) waits
  bool stream_;
  alignas(64) T buffer_[kCapacity + kSlack];
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_LINE_WRITER_INL_H_
