// Puts a run of pixels that follow each other in memory together in a register, whatever the length of its pieces.
//
// Every vector that leaves is aligned and whole, a non-temporal store if asked: rows of 14 or 28 pixels would otherwise
// be stores across cache lines, or pass a buffer whose loads wait for several stores. It costs two permutations a
// piece. Nothing outside the appended pixels is written. Loops work on a copy of their own: then it is
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

#include "src/ops/pooling/common/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes [begin, end) of v.
HWY_NOINLINE inline void StoreLanes(VLane v, int64_t begin, int64_t end, float* to) {
  HWY_ALIGN float lanes[hn::MaxLanes(DLane())];
  hn::Store(v, DLane(), lanes);
  if (end > begin) std::memcpy(to + begin, lanes + begin, static_cast<size_t>(end - begin) * sizeof(float));
}

// From k on: lane i comes from lane i + k of two vectors; or of one, going round.
struct LaneNumbers {
  int32_t lane[2 * kLanes];
  constexpr explicit LaneNumbers(int64_t round) : lane() {
    for (int64_t i = 0; i < 2 * kLanes; ++i) lane[i] = static_cast<int32_t>(i % round);
  }
};
#if HWY_TARGET == HWY_AVX3
constexpr LaneNumbers kNumbers(2 * kLanes);
// Lanes [k, k + kLanes) of `low` and `high`, one after the other.
HWY_INLINE VLane LanesFrom(int64_t k, VLane low, VLane high) {
  return VLane{_mm512_permutex2var_ps(low.raw, _mm512_loadu_si512(kNumbers.lane + k), high.raw)};
}
#else
constexpr LaneNumbers kTurns(kLanes);
#endif

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
#if HWY_TARGET == HWY_AVX3
    if (fill_ + n >= kLanes) Leave(LanesFrom(kLanes - fill_, waiting_, pixels));
    waiting_ = LanesFrom(n, waiting_, pixels);
    fill_ = (fill_ + n) & (kLanes - 1);
#else
    const DLane d;
    const VLane turned = hn::TableLookupLanes(pixels, hn::SetTableIndices(d, kTurns.lane + kLanes - fill_));
    waiting_ = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(fill_)), waiting_, turned);
    fill_ += n;
    if (fill_ < kLanes) return;
    Leave(waiting_);
    fill_ -= kLanes;
    waiting_ = turned;
#endif
  }
  // All lanes.
  HWY_INLINE void Append(VLane pixels) {
#if HWY_TARGET == HWY_AVX3
    Leave(LanesFrom(kLanes - fill_, waiting_, pixels));
    waiting_ = pixels;
#else
    Append(pixels, kLanes);
#endif
  }
  // Must be called before the stream goes.
  HWY_INLINE void Finish() {
    Flush();
    if (around_caches_) hwy::FlushStream();
  }

 private:
  // A whole vector.
  HWY_INLINE void Leave(VLane pixels) {
    const DLane d;
    if (HWY_UNLIKELY(head_ != 0)) {
      StoreLanes(pixels, head_, kLanes, vector_);
      head_ = 0;
    } else if (around_caches_) {
      hn::Stream(pixels, d, vector_);
    } else {
      hn::Store(pixels, d, vector_);
    }
    vector_ += kLanes;
  }
  HWY_INLINE void Flush() {
#if HWY_TARGET == HWY_AVX3
    const VLane pixels = LanesFrom(kLanes - fill_, waiting_, waiting_);
#else
    const VLane pixels = waiting_;
#endif
    if (fill_ > head_) StoreLanes(pixels, head_, fill_, vector_);
    vector_ = nullptr;
    head_ = fill_ = 0;
  }

  bool around_caches_;
  VLane waiting_;                // lanes [head_, fill_) belong at vector_; on AVX-512 they are the last ones of fill_
  float* vector_ = nullptr;      // aligned to a vector
  int64_t head_ = 0, fill_ = 0;  // less than kLanes
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_STREAM_INL_H_
