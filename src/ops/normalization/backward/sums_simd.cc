// Backward: the sums of g and g x^ over a block, in f32; blocks are short and go to double in between.

#include "src/ops/normalization/common/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/backward/sums_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/normalization/backward/gradient-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Four accumulators each; the order depends on the block's rows and n alone. kScaled: gamma[i] g takes the place of g.
// kShifted: g - about takes the place of g in the sum of g x^.
template <Relu kRelu, bool kScaled, bool kShifted = false>
HWY_INLINE void BlockGradientSums(const GradientBlock& b, const float* gamma, float out[2], float about = 0) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t N = hn::Lanes(d), n = b.n;
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  const V shift = hn::Set(d, about);
  const auto less = [shift](V g) HWY_ATTR { return kShifted ? hn::Sub(g, shift) : g; };
  for (size_t r = 0; r < b.rows; ++r) {
    const auto row = RowAt<kRelu>(d, b, r);
    const auto g_at = [&](size_t i)
                          HWY_ATTR { return kScaled ? hn::Mul(hn::LoadU(d, gamma + i), row.G(i)) : row.G(i); };
    const auto next = RowAt<kRelu>(d, b, r + b.rows);
    const bool fetch = r < b.next_rows;
    size_t i = 0;
    for (; i + 4 * N <= n; i += 4 * N) {
      if (fetch) next.FetchRow(i, 4 * N);
      const V g0 = g_at(i), g1 = g_at(i + N), g2 = g_at(i + 2 * N), g3 = g_at(i + 3 * N);
      a0 = hn::Add(a0, g0), b0 = hn::MulAdd(less(g0), row.X(i), b0);
      a1 = hn::Add(a1, g1), b1 = hn::MulAdd(less(g1), row.X(i + N), b1);
      a2 = hn::Add(a2, g2), b2 = hn::MulAdd(less(g2), row.X(i + 2 * N), b2);
      a3 = hn::Add(a3, g3), b3 = hn::MulAdd(less(g3), row.X(i + 3 * N), b3);
    }
    if (fetch) next.FetchRow(i, n - i);
    if (i + N <= n) {
      const V g0 = g_at(i);
      a0 = hn::Add(a0, g0), b0 = hn::MulAdd(less(g0), row.X(i), b0), i += N;
    }
    if (i + N <= n) {
      const V g1 = g_at(i);
      a1 = hn::Add(a1, g1), b1 = hn::MulAdd(less(g1), row.X(i), b1), i += N;
    }
    if (i + N <= n) {
      const V g2 = g_at(i);
      a2 = hn::Add(a2, g2), b2 = hn::MulAdd(less(g2), row.X(i), b2), i += N;
    }
    if (i < n) {
      V g3 = row.G(i, n - i);
      if (kScaled) g3 = hn::Mul(LoadPartial(d, gamma + i, n - i), g3);
      a3 = hn::Add(a3, g3), b3 = hn::MulAdd(less(g3), row.X(i, n - i), b3);
    }
  }
  const V sa = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), sb = hn::Add(hn::Add(b0, b1), hn::Add(b2, b3));
  out[0] = hn::GetLane(hn::SumOfLanes(d, sa));
  out[1] = hn::GetLane(hn::SumOfLanes(d, sb));
}

void PlainGradientSums(const GradientBlock& b, float out[2]) {
  if (b.gamma) return BlockGradientSums<Relu::from_values, false>(b, nullptr, out);
  b.y ? BlockGradientSums<Relu::from_y, false>(b, nullptr, out) : BlockGradientSums<Relu::none, false>(b, nullptr, out);
}

void ShiftedGradientSums(const GradientBlock& b, float shift, float out[2]) {
  BlockGradientSums<Relu::none, false, true>(b, nullptr, out, shift);
}

void ScaledGradientSums(const GradientBlock& b, const float* gamma, float out[2]) {
  b.y ? BlockGradientSums<Relu::from_y, true>(b, gamma, out) : BlockGradientSums<Relu::none, true>(b, gamma, out);
}

template <Relu kRelu>
HWY_INLINE void RowGradientSumsOf(const GradientBlock& b, const float* gamma, float* sum_g, float* sum_gx,
                                  float out[2]) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  RowSums<kRelu, hn::ScalableTag<float>> sums(d, RowAt<kRelu>(d, b, 0), gamma, sum_g, sum_gx);
  size_t i = 0;
  for (; i + 4 * N <= b.n; i += 4 * N) sums.AddFour(i);
  sums.AddRest(i, b.n - i);
  sums.Finish(out);
}

void RowGradientSums(const GradientBlock& b, const float* gamma, float* sum_g, float* sum_gx, float out[2]) {
  b.y ? RowGradientSumsOf<Relu::from_y>(b, gamma, sum_g, sum_gx, out)
      : RowGradientSumsOf<Relu::none>(b, gamma, sum_g, sum_gx, out);
}

// Row by row along each vector of columns; eight rows at a time, so that the chains of additions stay short.
template <Relu kRelu>
HWY_INLINE void ColumnGradientSumsOf(const GradientBlock& b, float* sum_g, float* sum_gx) {
  constexpr size_t kRows = 8;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t N = hn::Lanes(d);
  size_t j = 0;
  for (; j + 2 * N <= b.n; j += 2 * N) {  // two at a time: neighbouring cache lines of a row together
    V a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0;
    for (size_t first = 0; first < b.rows; first += kRows) {
      V c0 = hn::Zero(d), c1 = c0, d0 = c0, d1 = c0;
      for (size_t r = first; r < HWY_MIN(b.rows, first + kRows); ++r) {
        const auto row = RowAt<kRelu>(d, b, r);
        const V g0 = row.G(j), g1 = row.G(j + N);
        c0 = hn::Add(c0, g0), d0 = hn::MulAdd(g0, row.X(j), d0);
        c1 = hn::Add(c1, g1), d1 = hn::MulAdd(g1, row.X(j + N), d1);
      }
      a0 = hn::Add(a0, c0), a1 = hn::Add(a1, c1), b0 = hn::Add(b0, d0), b1 = hn::Add(b1, d1);
    }
    hn::StoreU(a0, d, sum_g + j), hn::StoreU(a1, d, sum_g + j + N);
    hn::StoreU(b0, d, sum_gx + j), hn::StoreU(b1, d, sum_gx + j + N);
  }
  for (; j < b.n; j += N) {
    const size_t count = HWY_MIN(N, b.n - j);
    V a0 = hn::Zero(d), b0 = a0;
    for (size_t first = 0; first < b.rows; first += kRows) {
      V c0 = hn::Zero(d), d0 = c0;
      for (size_t r = first; r < HWY_MIN(b.rows, first + kRows); ++r) {
        const auto row = RowAt<kRelu>(d, b, r);
        const V g0 = count == N ? row.G(j) : row.G(j, count);
        const V x0 = count == N ? row.X(j) : row.X(j, count);
        c0 = hn::Add(c0, g0), d0 = hn::MulAdd(g0, x0, d0);
      }
      a0 = hn::Add(a0, c0), b0 = hn::Add(b0, d0);
    }
    if (count == N) {
      hn::StoreU(a0, d, sum_g + j), hn::StoreU(b0, d, sum_gx + j);
    } else {
      StorePartial(d, a0, sum_g + j, count), StorePartial(d, b0, sum_gx + j, count);
    }
  }
}

void ColumnGradientSums(const GradientBlock& b, float* sum_g, float* sum_gx) {
  b.y ? ColumnGradientSumsOf<Relu::from_y>(b, sum_g, sum_gx) : ColumnGradientSumsOf<Relu::none>(b, sum_g, sum_gx);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void add_gradient_sums(const GradientBlock& block, float shift, GradientSums* sums) noexcept {
  float add[2];
  if (shift != 0)
    BNNS_DISPATCH(ShiftedGradientSums)(block, shift, add);
  else
    BNNS_DISPATCH(PlainGradientSums)(block, add);
  sums->g += static_cast<double>(add[0]);
  sums->gx += static_cast<double>(add[1]);
}

void add_channel_gradient_sums(const GradientBlock& block, size_t plane, const float* shifts,
                               GradientSums* sums) noexcept {
  for (size_t c = 0; c < block.n / plane; ++c) {
    for (size_t i = 0; i < plane; i += kMomentBlock) {
      const size_t at = c * plane + i;
      GradientBlock part = block;
      part.dy += at, part.values += at, part.n = HWY_MIN(kMomentBlock, plane - i);
      if (part.y) part.y += at;
      if (part.gamma) part.gamma += c, part.beta += c;
      add_gradient_sums(part, shifts ? shifts[c] : 0, &sums[c]);
    }
  }
}

void add_scaled_gradient_sums(const GradientBlock& block, const float* gamma, GradientSums* sums) noexcept {
  float add[2];
  BNNS_DISPATCH(ScaledGradientSums)(block, gamma, add);
  sums->g += static_cast<double>(add[0]);
  sums->gx += static_cast<double>(add[1]);
}

void add_row_gradient_sums(const GradientBlock& block, const float* gamma, float* sum_g, float* sum_gx,
                           GradientSums* sums) noexcept {
  float add[2];
  BNNS_DISPATCH(RowGradientSums)(block, gamma, sum_g, sum_gx, add);
  sums->g += static_cast<double>(add[0]);
  sums->gx += static_cast<double>(add[1]);
}

void add_column_gradient_sums(const GradientBlock& block, GradientSums* sums) noexcept {
  float g[kGradientColumns], gx[kGradientColumns];
  BNNS_DISPATCH(ColumnGradientSums)(block, g, gx);
  for (size_t j = 0; j < block.n; ++j) {
    sums[j].g += static_cast<double>(g[j]);
    sums[j].gx += static_cast<double>(gx[j]);
  }
}

}  // namespace bnns
#endif
