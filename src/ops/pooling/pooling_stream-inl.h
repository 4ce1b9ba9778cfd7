// Puts a run of pixels that follow each other in memory together in a register, whatever the length of its pieces.
//
// Every vector that leaves is aligned and whole, around the caches if asked: rows of 14 or 28 pixels would otherwise be
// stores across cache lines, or a way through a buffer whose loads wait for several stores. It costs a permutation and
// a blend a piece. Nothing outside the appended pixels is written. Loops work on a copy of their own: then it is
// registers.

#if defined(BNNS_OPS_POOLING_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_STREAM_INL_H_
#undef BNNS_OPS_POOLING_STREAM_INL_H_
#else
#define BNNS_OPS_POOLING_STREAM_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/ops/pooling/pooling_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes [begin, end) of v.
HWY_NOINLINE inline void StoreLanes(VLane v, int64_t begin, int64_t end, float* to) {
  HWY_ALIGN float lanes[hn::MaxLanes(DLane())];
  hn::Store(v, DLane(), lanes);
  if (end > begin) std::memcpy(to + begin, lanes + begin, static_cast<size_t>(end - begin) * sizeof(float));
}

// From kLanes - k on: lane i comes from lane i - k, going round.
struct LaneTurns {
  int32_t lane[2 * kLanes];
  constexpr LaneTurns() : lane() {
    for (int64_t i = 0; i < 2 * kLanes; ++i) lane[i] = static_cast<int32_t>(i % kLanes);
  }
};
constexpr LaneTurns kTurns;

class PixelStream {
 public:
  explicit HWY_INLINE PixelStream(bool around_caches) : around_caches_(around_caches), waiting_(hn::Zero(DLane())) {}

  // The next pixel belongs at `to`: costs nothing where the last one was before it.
  HWY_INLINE void Start(float* to) {
    if (HWY_LIKELY(vector_ != nullptr && to == vector_ + fill_)) return;
    Flush();
    head_ = fill_ = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(float)) & (kLanes - 1);
    vector_ = to - fill_;
  }
  // The first n lanes, 0 < n <= kLanes.
  HWY_INLINE void Append(VLane pixels, int64_t n) {
    const DLane d;
    const VLane turned = hn::TableLookupLanes(pixels, hn::SetTableIndices(d, kTurns.lane + kLanes - fill_));
    waiting_ = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(fill_)), waiting_, turned);
    fill_ += n;
    if (fill_ < kLanes) return;
    Leave();
    fill_ -= kLanes;
    waiting_ = turned;
  }
  // make(i) for the vectors i = 0, kLanes, ... of n pixels: what does not change from one to the next is made once.
  template <class Make>
  HWY_INLINE void AppendRun(int64_t n, const Make& make) {
    const DLane d;
    const auto turns = hn::SetTableIndices(d, kTurns.lane + kLanes - fill_);
    const MLane before = hn::FirstN(d, static_cast<size_t>(fill_));
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const VLane turned = hn::TableLookupLanes(make(i), turns);
      waiting_ = hn::IfThenElse(before, waiting_, turned);
      Leave();
      waiting_ = turned;
    }
    if (i < n) Append(make(i), n - i);
  }
  // Must be called before the stream goes.
  HWY_INLINE void Finish() {
    Flush();
    if (around_caches_) hwy::FlushStream();
  }

 private:
  // The waiting vector is whole.
  HWY_INLINE void Leave() {
    const DLane d;
    if (HWY_UNLIKELY(head_ != 0)) {
      StoreLanes(waiting_, head_, kLanes, vector_);
      head_ = 0;
    } else if (around_caches_) {
      hn::Stream(waiting_, d, vector_);
    } else {
      hn::Store(waiting_, d, vector_);
    }
    vector_ += kLanes;
  }
  HWY_INLINE void Flush() {
    if (fill_ > head_) StoreLanes(waiting_, head_, fill_, vector_);
    vector_ = nullptr;
    head_ = fill_ = 0;
  }

  bool around_caches_;
  VLane waiting_;                // lanes [head_, fill_) belong at vector_
  float* vector_ = nullptr;      // aligned to a vector
  int64_t head_ = 0, fill_ = 0;  // less than kLanes
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_STREAM_INL_H_
