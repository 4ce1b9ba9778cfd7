// Do all indices of a plane lie in their windows? What nearly all of them do, as they come from a forward pass.

#if defined(BNNS_OPS_POOLING_INDEX_WINDOWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_INDEX_WINDOWS_INL_H_
#undef BNNS_OPS_POOLING_INDEX_WINDOWS_INL_H_
#else
#define BNNS_OPS_POOLING_INDEX_WINDOWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "src/ops/pooling/common/kernels.h"
#include "src/ops/pooling/common/lanes-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DWord = hn::ScalableTag<int32_t>;
using VWord = hn::Vec<DWord>;

// Whether all indices of a plane lie in their windows: 2 x 2 or 3 x 3 pixels, each with one in the image, only the
// first and the last window of a row over an edge of it. Few operations and one answer a plane.
class WindowCheck {
 public:
  explicit WindowCheck(const PoolingGeometry& g) : g_(g) {
    accepts_ = (g.is_small_stride_2() || g.is_small_stride_1()) && g.x.in >= 3;
    if (!accepts_) return;
    const auto whole = [&](int64_t wy) { return g.y.taps(wy).size() == g.y.kernel; };
    for (inside_.begin = 0; inside_.begin < g.y.out && !whole(inside_.begin);) ++inside_.begin;
    for (inside_.end = g.y.out; inside_.end > inside_.begin && !whole(inside_.end - 1);) --inside_.end;
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t window[3] = {i, -1, (g.x.out - 1) / kLanes * kLanes + i};  // of the first, any, the last vector
      for (int k = 0; k < 3; ++k) {
        const int64_t columns = k == 1 ? g.x.kernel : g.x.taps(window[k]).size();
        most_[k][i] = window[k] < g.x.out ? static_cast<uint32_t>(columns - 1) : ~uint32_t{0};
        skip_[k][i] = window[k] == 0 ? static_cast<int32_t>(g.x.taps(0).begin) : 0;
      }
    }
  }
  bool accepts() const { return accepts_; }

  // Rows of indices are `pitch` apart.
  template <typename T>
  HWY_INLINE bool Plane(const T* indices, int64_t pitch) const {
    bool good = Rows(indices, pitch, inside_);
    for (int64_t wy = 0; wy < inside_.begin; ++wy) good = Rows(indices, pitch, {wy, wy + 1}) && good;
    for (int64_t wy = inside_.end; wy < g_.y.out; ++wy) good = Rows(indices, pitch, {wy, wy + 1}) && good;
    return good;
  }

 private:
  // Rows of windows that have the same rows of taps in the image.
  template <typename T>
  HWY_NOINLINE bool Rows(const T* indices, int64_t pitch, Span rows) const {
    if (rows.empty()) return true;
    const DWord d;
    const hn::RebindToUnsigned<DWord> du;
    constexpr int64_t kWords = sizeof(T) / 4;
    const int64_t n = g_.x.out;
    const Span taps = g_.y.taps(rows.begin);
    // Position of the first pixel of the first window in its first row inside the image; the other rows follow.
    const int64_t origin = g_.origin(0, rows.begin) + taps.begin * g_.x.in;
    const int64_t second = taps.size() > 1 ? g_.x.in : 0, third = taps.size() > 2 ? 2 * g_.x.in : second;
    const VWord down = hn::Set(d, static_cast<int32_t>(second)), down2 = hn::Set(d, static_cast<int32_t>(third));
    const VWord step = hn::Set(d, static_cast<int32_t>(g_.x.stride * kLanes));
    const VWord next_row = hn::Set(d, static_cast<int32_t>(g_.y.stride * g_.x.in));
    VWord row = hn::Add(hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<int32_t>(g_.x.stride))),
                        hn::Set(d, static_cast<int32_t>(origin)));
    auto bad = hn::Zero(du);
    for (int64_t wy = rows.begin; wy < rows.end; ++wy, row = hn::Add(row, next_row)) {
      VWord first = row;
      for (int64_t i = 0; i < n; i += kLanes, first = hn::Add(first, step)) {
        const int32_t* words = reinterpret_cast<const int32_t*>(indices + wy * pitch + i);
        const int64_t count = (n - i) * kWords;
        const auto load = [&](int64_t at) HWY_ATTR {
          FetchAhead(reinterpret_cast<const float*>(words + at), kLanes);
          if (HWY_LIKELY(count >= at + kLanes)) return hn::LoadU(d, words + at);
          return count > at ? LoadPartial(d, words + at, static_cast<size_t>(count - at)) : hn::Zero(d);
        };
        VWord low = load(0);
        if constexpr (kWords == 2) {  // little-endian: the even words are the low ones
          const VWord more = load(kLanes);
          bad = hn::Or(bad, hn::BitCast(du, hn::ConcatOdd(d, more, low)));
          low = hn::ConcatEven(d, more, low);
        }
        const int k = i == 0 ? 0 : i + kLanes < n ? 1 : 2;
        // Columns of the padding are pixels of the row above or below: they count from the first one of the image.
        const VWord offset = hn::Sub(low, hn::Add(first, hn::Load(d, skip_[k])));
        const auto column = hn::Min(hn::BitCast(du, offset), hn::Min(hn::BitCast(du, hn::Sub(offset, down)),
                                                                     hn::BitCast(du, hn::Sub(offset, down2))));
        const auto most = hn::Load(du, most_[k]);
        bad = hn::Or(bad, hn::Sub(hn::Max(column, most), most));
      }
    }
    return hn::AllTrue(du, hn::Eq(bad, hn::Zero(du)));
  }

  const PoolingGeometry& g_;
  bool accepts_;
  Span inside_;  // rows of windows with all their rows of taps
  // Of the first, any other and the last vector of a row: columns before the image, the last column (any past the end).
  alignas(64) int32_t skip_[3][kLanes];
  alignas(64) uint32_t most_[3][kLanes];
};

// The same of small planes without gaps, by a shift: bit (index - first pixel) of a window's word says whether that
// pixel is one of its own.
class SmallCheck {
 public:
  static constexpr int64_t kMost = 256;  // windows

  explicit SmallCheck(const PoolingGeometry& g) : windows_(g.x.out * g.y.out) {
    constexpr bool kShiftsOut = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;  // a shift by 64 or more gives 0
    accepts_ = kShiftsOut && windows_ <= kMost && (g.is_small_stride_2() || g.is_small_stride_1()) &&
               g.tap_offset(g.x.kernel - 1, g.y.kernel - 1) < 64;
    for (int64_t i = 0; accepts_ && i < windows_; ++i) {
      const Span x = g.x.taps(i % g.x.out), y = g.y.taps(i / g.x.out);
      origin_[i] = static_cast<uint64_t>(g.origin(i % g.x.out, i / g.x.out));
      own_[i] = 0;
      for (int64_t ty = y.begin; ty < y.end; ++ty) {
        own_[i] |= ((uint64_t{1} << x.end) - (uint64_t{1} << x.begin)) << (ty * g.x.in);
      }
    }
    for (int64_t i = windows_; accepts_ && i < windows_ + kLanes; ++i) origin_[i] = 0, own_[i] = 1;
  }
  bool accepts() const { return accepts_; }

  template <typename T>
  HWY_INLINE bool Plane(const T* indices) const {
    const hn::ScalableTag<uint64_t> d;
    const hn::Rebind<T, decltype(d)> dt;
    constexpr int64_t N = kLanes / 2;
    auto own = hn::Set(d, 1);
    for (int64_t i = 0; i < windows_; i += N) {
      FetchAhead(reinterpret_cast<const float*>(indices + i));
      const auto index = HWY_LIKELY(i + N <= windows_)
                             ? hn::LoadU(dt, indices + i)
                             : LoadPartial(dt, indices + i, static_cast<size_t>(windows_ - i));
      const auto place = hn::Sub(Widen(d, index), hn::Load(d, origin_ + i));
      own = hn::And(own, hn::Shr(hn::Load(d, own_ + i), place));
    }
    return hn::AllTrue(d, hn::Eq(own, hn::Set(d, 1)));
  }

 private:
  template <class D64, class V64>
  static HWY_INLINE hn::Vec<D64> Widen(D64 d, V64 index) {
    if constexpr (sizeof(hn::TFromV<V64>) == 8)
      return index;
    else
      return hn::PromoteTo(d, index);
  }

  int64_t windows_;
  bool accepts_;
  alignas(64) uint64_t origin_[kMost + kLanes], own_[kMost + kLanes];
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_INDEX_WINDOWS_INL_H_
