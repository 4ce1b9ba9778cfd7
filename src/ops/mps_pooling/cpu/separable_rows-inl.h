// The rows of the separable kernel (mps_pooling/cpu/separable_simd.cc): texels to floats and back, source rows with
// what lies outside at their sides, and the loops that reduce them.

#if defined(BNNS_OPS_MPS_POOLING_CPU_SEPARABLE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_SEPARABLE_ROWS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_SEPARABLE_ROWS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_SEPARABLE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/pixels.h"
#include "src/simd/convert.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using mps::AxisTaps;
using mps::CpuSeparable;
using mps::PixelType;
using mps::Plane;
using mps::PoolAxis;
using mps::PoolEdge;
using mps::PoolEncode;
using mps::PoolKind;
using mps::WindowRange;

constexpr float kLeast = -HUGE_VALF;

// Texels [x, x + n) of row y, as floats.
void LoadTexels(const Plane& plane, int64_t y, int64_t x, int64_t n, float* to) {
  const unsigned char* from = plane.data + plane.offset(y, x) * bytes_of(plane.type);
  const auto floats = static_cast<size_t>(4 * n);
  if (plane.type == PixelType::f32 && plane.lanes == 4) {
    std::memcpy(to, from, floats * sizeof(float));
  } else if (plane.type == PixelType::f16 && plane.lanes == 4 && reinterpret_cast<uintptr_t>(from) % 2 == 0) {
    half_to_float(reinterpret_cast<const uint16_t*>(from), to, floats);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const mps::Texel t = plane.read(y, x + i);
      std::memcpy(to + 4 * i, t.v, sizeof t.v);
    }
  }
}
void StoreTexels(const Plane& plane, int64_t y, int64_t x, int64_t n, const float* from) {
  unsigned char* to = plane.data + plane.offset(y, x) * bytes_of(plane.type);
  const auto floats = static_cast<size_t>(4 * n);
  if (plane.type == PixelType::f32 && plane.lanes == 4) {
    std::memcpy(to, from, floats * sizeof(float));
  } else if (plane.type == PixelType::f16 && plane.lanes == 4 && reinterpret_cast<uintptr_t>(to) % 2 == 0) {
    float_to_half(from, reinterpret_cast<uint16_t*>(to), floats);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      mps::Texel t;
      std::memcpy(t.v, from + 4 * i, sizeof t.v);
      plane.write(y, x + i, t);
    }
  }
}

class SeparableRows {
 protected:
  SeparableRows(const CpuSeparable& plan, const PoolEncode& encode, int64_t n, int64_t slice, float* scratch)
      : p(plan), e(encode), W(e.source.width), H(e.source.height) {
    const auto lanes = static_cast<int32_t>(std::min<int64_t>(4, e.channels - 4 * slice));
    source_ = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
    target_ = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, lanes);
    if (e.backward) gradient_ = plane_of(e.gradient, e.gradient_image + n, e.gradient_channel / 4 + slice, lanes);
    windows_ = e.backward ? e.gradient_width : e.width;
    first_x_ = e.x.first_centre - e.x.before(), first_y_ = e.y.first_centre - e.y.before();
    clamp_ = e.edge == PoolEdge::clamp && e.kind != PoolKind::average;
    rows_ = scratch, scratch += p.rows * std::max(p.row, p.slot_row);
    sums_ = scratch, scratch += p.band * p.target_row;
    column_ = scratch, scratch += p.row;
    tap_ = scratch, scratch += p.row;
    best_ = scratch, scratch += p.slot_row;
    route_ = scratch, scratch += p.slot_row;
    sent_ = scratch, scratch += p.slot_row;
    part_ = scratch;
  }

  using DF = hn::ScalableTag<float>;
  using DTexel = hn::CappedTag<float, 4>;

  static int64_t Into(int64_t y, int64_t size) { return std::clamp<int64_t>(y, 0, size - 1); }
  float* Row(int64_t y) { return rows_ + (y - row_begin_) * row_floats_; }

  // Source rows [first, last] into scratch, with what lies outside at their sides.
  void LoadSource(int64_t first, int64_t last) {
    row_begin_ = first, row_end_ = last + 1, row_floats_ = std::max(p.row, p.slot_row);
    for (int64_t y = first; y <= last; ++y) {
      float* const to = Row(y);
      const int64_t right = p.left + W;
      LoadTexels(source_, y, 0, W, to + 4 * p.left);
      for (int64_t x = 0; x < 4 * p.left; ++x) to[x] = clamp_ ? to[4 * p.left + x % 4] : Outside();
      for (int64_t x = 4 * right; x < p.row; ++x) to[x] = clamp_ ? to[4 * (right - 1) + x % 4] : Outside();
    }
  }
  float Outside() const { return e.kind == PoolKind::max ? kLeast : 0.0f; }

  // The source rows of a row of windows; in clamped windows rows may be there more than once.
  void FindRows(const AxisTaps& taps) {
    first_tap_ = clamp_ ? 0 : taps.begin, count_ = (clamp_ ? taps.kernel : taps.end) - first_tap_;
    for (int32_t j = 0; j < count_; ++j) {
      from_[j] = Row(clamp_ ? taps.clamped(first_tap_ + j) : taps.at(first_tap_ + j));
    }
  }

  // Over the rows of a row of windows, n floats. Of maxima strictly the first.
  template <PoolKind kKind>
  void Reduce(const AxisTaps& taps, int64_t n, float* to) {
    FindRows(taps);
    const DF d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < n; i += lanes) {
      auto r = hn::Set(d, kKind == PoolKind::max ? kLeast : 0.0f);
      for (int32_t j = 0; j < count_; ++j) {
        const auto v = hn::LoadU(d, from_[j] + i);
        if constexpr (kKind == PoolKind::max) {
          r = hn::IfThenElse(hn::Gt(v, r), v, r);
        } else {
          r = hn::Add(r, kKind == PoolKind::average ? v : hn::Mul(v, v));
        }
      }
      hn::StoreU(r, d, to + i);
    }
  }
  void ReduceWithTaps(const AxisTaps& taps) {
    FindRows(taps);
    const DF d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto one = hn::Set(d, 1.0f), first = hn::Set(d, static_cast<float>(first_tap_));
    for (int64_t i = 0; i < 4 * p.extended; i += lanes) {
      auto r = hn::Set(d, kLeast), at = hn::Zero(d), tap = first;
      for (int32_t j = 0; j < count_; ++j) {
        const auto v = hn::LoadU(d, from_[j] + i);
        const auto better = hn::Gt(v, r);
        r = hn::IfThenElse(better, v, r), at = hn::IfThenElse(better, tap, at);
        tap = hn::Add(tap, one);
      }
      hn::StoreU(r, d, column_ + i), hn::StoreU(at, d, tap_ + i);
    }
  }

  // Calls f(d, float of a row of windows, float of their first taps in a row of pixels): whole vectors where windows
  // lie side by side, else a window at a time.
  template <class F>
  HWY_INLINE void ForEachWindow(F&& f) {
    const int64_t first = 4 * (first_x_ + p.left), n = 4 * windows_;
    if (e.x.stride == 1) {
      const DF d;
      for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d))) f(d, i, first + i);
    } else {
      const DTexel d;
      for (int64_t i = 0; i < n; i += 4) f(d, i, first + i * e.x.stride);
    }
  }
  void MaxOfWindows(const float* from, float* to) {
    const int64_t step = 4 * e.x.dilation, end = step * e.x.kernel;
    ForEachWindow([&](auto d, int64_t i, int64_t at) HWY_ATTR {
      auto r = hn::LoadU(d, from + at);
      r = hn::IfThenElse(hn::Eq(r, r), r, hn::Set(d, kLeast));
      for (int64_t t = step; t < end; t += step) {
        const auto v = hn::LoadU(d, from + at + t);
        r = hn::IfThenElse(hn::Gt(v, r), v, r);
      }
      hn::StoreU(r, d, to + i);
    });
  }
  void SumOfWindows(float* to) {
    const int64_t end = 4 * e.x.kernel;
    ForEachWindow([&](auto d, int64_t i, int64_t at) HWY_ATTR {
      auto r = hn::Zero(d);
      for (int64_t t = 0; t < end; t += 4) r = hn::Add(r, hn::LoadU(d, column_ + at + t));
      hn::StoreU(r, d, to + i);
    });
  }
  // The greatest column; of equal ones that whose tap comes first, then the leftmost.
  void RouteWindows() {
    ForEachWindow([&](auto d, int64_t i, int64_t at) HWY_ATTR {
      auto r = hn::Set(d, kLeast), tap = hn::Zero(d), column = hn::Zero(d), own = hn::Zero(d);
      const auto one = hn::Set(d, 1.0f);
      for (int64_t k = 0; k < e.x.kernel; ++k) {
        const int64_t from = at + 4 * k * e.x.dilation;
        const auto v = hn::LoadU(d, column_ + from), t = hn::LoadU(d, tap_ + from);
        const auto better = hn::Or(hn::Gt(v, r), hn::And(hn::Eq(v, r), hn::Lt(t, tap)));
        r = hn::IfThenElse(better, v, r), tap = hn::IfThenElse(better, t, tap);
        column = hn::IfThenElse(better, own, column), own = hn::Add(own, one);
      }
      hn::StoreU(r, d, best_ + i), hn::StoreU(column, d, route_ + i);
    });
  }

  const CpuSeparable& p;
  const PoolEncode& e;
  const int64_t W, H;
  Plane source_, target_, gradient_;
  int64_t windows_, first_x_, first_y_;
  bool clamp_;                                            // taps outside count where they resolve to
  int64_t row_begin_ = 0, row_end_ = 0, row_floats_ = 0;  // source rows in scratch
  const float* from_[mps::kMostSeparableKernel];          // the rows of a row of windows, from tap first_tap_ on
  int32_t first_tap_ = 0, count_ = 0;
  float *rows_, *sums_, *column_, *tap_, *best_, *route_, *sent_, *part_;
};

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
