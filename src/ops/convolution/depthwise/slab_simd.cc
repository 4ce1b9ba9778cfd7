// The direct kernels of depthwise convolution. Vectors run along a row; a row of targets is finished in registers
// before it is stored, and a gradient's dot products share the loads of g, up to nine taps at a time.

#include "src/ops/convolution/depthwise/slab.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/depthwise/slab_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Two vectors at a time hide the latency of each other's sums.
void DirectRows(const DirectTaps& t, const float* HWY_RESTRICT weight, size_t rows, size_t width, float* HWY_RESTRICT y,
                size_t y_stride) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < rows; ++r) {
    const float* from = t.slab + static_cast<ptrdiff_t>(r) * t.target_row_stride;
    float* to = y + r * y_stride;
    size_t v = 0;
    for (; v + 2 * lanes <= width; v += 2 * lanes) {
      V a = hn::Zero(d), b = hn::Zero(d);
      for (size_t k = 0; k < t.taps; ++k) {
        const V w = hn::Set(d, weight[k]);
        const float* at = from + t.offset[k] + v;
        a = hn::MulAdd(w, hn::LoadU(d, at), a);
        b = hn::MulAdd(w, hn::LoadU(d, at + lanes), b);
      }
      hn::StoreU(a, d, to + v);
      hn::StoreU(b, d, to + v + lanes);
    }
    for (; v < width; v += lanes) {
      const size_t left = width - v;
      V a = hn::Zero(d);
      if (left >= lanes) {
        for (size_t k = 0; k < t.taps; ++k) {
          a = hn::MulAdd(hn::Set(d, weight[k]), hn::LoadU(d, from + t.offset[k] + v), a);
        }
        hn::StoreU(a, d, to + v);
      } else {
        for (size_t k = 0; k < t.taps; ++k) {
          a = hn::MulAdd(hn::Set(d, weight[k]), LoadPartial(d, from + t.offset[k] + v, left), a);
        }
        StorePartial(d, a, to + v, left);
      }
    }
  }
}

#define BNNS_EACH_TAP(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)

// kTaps taps from the first on; lanes are summed at the end, so the order depends on rows and width alone.
template <size_t kTaps>
HWY_NOINLINE void Dots(const DirectTaps& t, size_t first, const float* HWY_RESTRICT g, size_t g_stride, size_t rows,
                       size_t width, double* HWY_RESTRICT sum) {
  const D d;
  const size_t lanes = hn::Lanes(d);
#define BNNS_DECLARE(k) [[maybe_unused]] V s##k = hn::Zero(d);
  BNNS_EACH_TAP(BNNS_DECLARE)
#undef BNNS_DECLARE
  for (size_t r = 0; r < rows; ++r) {
    const float* from = t.slab + static_cast<ptrdiff_t>(r) * t.target_row_stride;
    const float* row = g + r * g_stride;
    size_t v = 0;
    for (; v + lanes <= width; v += lanes) {
      const V x = hn::LoadU(d, row + v);
#define BNNS_TAP(k) \
  if constexpr (k < kTaps) s##k = hn::MulAdd(x, hn::LoadU(d, from + t.offset[first + k] + v), s##k);
      BNNS_EACH_TAP(BNNS_TAP)
#undef BNNS_TAP
    }
    if (v < width) {
      const size_t left = width - v;
      const V x = LoadPartial(d, row + v, left);
#define BNNS_TAP(k) \
  if constexpr (k < kTaps) s##k = hn::MulAdd(x, LoadPartial(d, from + t.offset[first + k] + v, left), s##k);
      BNNS_EACH_TAP(BNNS_TAP)
#undef BNNS_TAP
    }
  }
#define BNNS_SUM(k) \
  if constexpr (k < kTaps) sum[first + k] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, s##k)));
  BNNS_EACH_TAP(BNNS_SUM)
#undef BNNS_SUM
}

void DirectDots(const DirectTaps& t, const float* g, size_t g_stride, size_t rows, size_t width, double* sum) {
  for (size_t first = 0; first < t.taps;) {
    switch (HWY_MIN(t.taps - first, size_t{9})) {
#define BNNS_CASE(k)                                      \
  case k + 1:                                             \
    Dots<k + 1>(t, first, g, g_stride, rows, width, sum); \
    first += k + 1;                                       \
    break;
      BNNS_EACH_TAP(BNNS_CASE)
#undef BNNS_CASE
    }
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void direct_rows(const DirectTaps& t, const float* weight, size_t rows, size_t width, float* y,
                 size_t y_stride) noexcept {
  BNNS_DISPATCH(DirectRows)(t, weight, rows, width, y, y_stride);
}
void direct_dots(const DirectTaps& t, const float* g, size_t g_stride, size_t rows, size_t width,
                 double* sum) noexcept {
  BNNS_DISPATCH(DirectDots)(t, g, g_stride, rows, width, sum);
}

}  // namespace bnns
#endif
