// The kernels of few channels: dot products of gradients and shifted sources, for weight gradients.

#include "src/ops/convolution/few/few.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/few/dots_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace few_dots {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// kRows gradients by kTaps taps. Only the loads of taps are unaligned: they cost two of the cache's cycles each, so
// no more taps than gradients.
template <size_t kRows, size_t kTaps>
HWY_NOINLINE void Dots(FewDots& t, size_t row, size_t column) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const float* HWY_RESTRICT g = t.g + row * t.g_stride;
  const float* HWY_RESTRICT x = t.x;
  const ptrdiff_t* offset = t.offset + column;
  float* HWY_RESTRICT to = t.lanes + (row * t.columns + column) * 16;
  V sum[kRows * kTaps];
  HWY_UNROLL(6)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(5)
    for (size_t k = 0; k < kTaps; ++k) sum[r * kTaps + k] = hn::Load(d, to + (r * t.columns + k) * 16);
  }
  const auto step = [&](auto load, size_t j) HWY_ATTR {
    V gs[kRows];
    HWY_UNROLL(6)
    for (size_t r = 0; r < kRows; ++r) gs[r] = load(g + r * t.g_stride + j);
    HWY_UNROLL(5)
    for (size_t k = 0; k < kTaps; ++k) {
      const V at = load(x + offset[k] + j);
      HWY_UNROLL(6)
      for (size_t r = 0; r < kRows; ++r) sum[r * kTaps + k] = hn::MulAdd(gs[r], at, sum[r * kTaps + k]);
    }
  };
  size_t j = 0;
  for (; j + lanes <= t.flat; j += lanes) {
    prefetch_ahead(t);
    step([&](const float* p) HWY_ATTR { return hn::LoadU(d, p); }, j);
  }
  if (j < t.flat) step([&](const float* p) HWY_ATTR { return LoadPartial(d, p, t.flat - j); }, j);
  HWY_UNROLL(6)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(5)
    for (size_t k = 0; k < kTaps; ++k) hn::Store(sum[r * kTaps + k], d, to + (r * t.columns + k) * 16);
  }
}

template <size_t kRows>
HWY_INLINE void DotRows(FewDots& t, size_t row) {
  constexpr size_t kMost = kRows < 6 ? 5 : 4;  // the sums, the gradients and a tap fill 32 registers
  size_t i = 0;
  for (; i + kMost <= t.columns; i += kMost) Dots<kRows, kMost>(t, row, i);
  switch (t.columns - i) {
    case 4:
      return Dots<kRows, 4>(t, row, i);
    case 3:
      return Dots<kRows, 3>(t, row, i);
    case 2:
      return Dots<kRows, 2>(t, row, i);
    case 1:
      return Dots<kRows, 1>(t, row, i);
    default:
      return;
  }
}

void FewDotsRows(FewDots& t) {
  const size_t groups = (t.rows + 5) / 6;
  size_t row = 0;
  for (size_t i = 0; i < groups; ++i) {
    const size_t rows = (t.rows - row + groups - i - 1) / (groups - i);
    switch (rows) {
      case 1:
        DotRows<1>(t, row);
        break;
      case 2:
        DotRows<2>(t, row);
        break;
      case 3:
        DotRows<3>(t, row);
        break;
      case 4:
        DotRows<4>(t, row);
        break;
      case 5:
        DotRows<5>(t, row);
        break;
      default:
        DotRows<6>(t, row);
        break;
    }
    row += rows;
  }
}

// Four sums at a time: two steps of a transposition leave them side by side in every block of four lanes.
void FewLaneSums(const float* lanes, size_t n, float* sum) {
  const D d;
  const hn::Repartition<double, D> d2;
  for (size_t i = 0; i < n; i += 4, lanes += 64) {
    const V a = hn::Load(d, lanes), b = hn::Load(d, lanes + 16), c = hn::Load(d, lanes + 32),
            e = hn::Load(d, lanes + 48);
    const auto ab = hn::BitCast(d2, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
    const auto ce = hn::BitCast(d2, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
    const V all =
        hn::Add(hn::BitCast(d, hn::InterleaveLower(d2, ab, ce)), hn::BitCast(d, hn::InterleaveUpper(d2, ab, ce)));
    HWY_ALIGN float blocks[hn::MaxLanes(D())];
    hn::Store(all, d, blocks);
    for (size_t k = 0; k < 4; ++k) {
      sum[i + k] = blocks[k];
      for (size_t j = 4; j < hn::Lanes(d); j += 4) sum[i + k] += blocks[j + k];
    }
  }
}

}  // namespace few_dots
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void few_dots(FewDots& dots) noexcept {
  BNNS_DISPATCH(few_dots::FewDotsRows)(dots);
}
void few_lane_sums(const float* lanes, size_t n, float* sum) noexcept {
  BNNS_DISPATCH(few_dots::FewLaneSums)(lanes, n, sum);
}

}  // namespace bnns
#endif
