// The weights of Winograd's algorithm, U = G g G', with target channels in the lanes. The points and the matrices are
// those of convolution/winograd/points_simd.cc.

#include <hwy/cache_control.h>

#include <algorithm>

#include "src/ops/convolution/winograd/kernels.h"

#ifndef BNNS_WINOGRAD_WEIGHT_LANES  // this file is included once per target
#define BNNS_WINOGRAD_WEIGHT_LANES
namespace bnns {

// Weights that do not lie side by side: to[tap * lanes + row], of one phase of the kernel.
void winograd_weight_lanes(const WinogradWeights& w, const float* from, size_t phase, size_t rows, size_t taps,
                           size_t lanes, float* to);

}  // namespace bnns
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/winograd/weights_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/winograd/winograd-inl.h"
#include "src/simd/dispatch.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace winograd;

// G along one axis of weights g[0], g[step], ...
template <size_t kTaps>
HWY_INLINE void WeightAxis(const V* HWY_RESTRICT g, size_t step, V& u0, V& u1, V& u2, V& u3, V& u4, V& u5) {
  const D d;
  using P = Points<kTaps>;
  u0 = hn::Mul(g[0], hn::Set(d, P::kWeight0));
  V even_a = hn::MulAdd(g[2 * step], hn::Set(d, P::kWeightA[2]), hn::Mul(g[0], hn::Set(d, P::kWeightA[0])));
  V even_b = hn::MulAdd(g[2 * step], hn::Set(d, P::kWeightB[2]), hn::Mul(g[0], hn::Set(d, P::kWeightB[0])));
  u5 = g[(kTaps - 1) * step];
  const V a = hn::Set(d, P::kWeightA[1]), b = hn::Set(d, P::kWeightB[1]);
  if constexpr (kTaps == 3) {
    u1 = hn::MulAdd(g[step], a, even_a);
    u2 = hn::NegMulAdd(g[step], a, even_a);
    u3 = hn::MulAdd(g[step], b, even_b);
    u4 = hn::NegMulAdd(g[step], b, even_b);
  } else {
    if constexpr (kTaps == 5) {
      even_a = hn::MulAdd(g[4 * step], hn::Set(d, P::kWeightA[4]), even_a);
      even_b = hn::MulAdd(g[4 * step], hn::Set(d, P::kWeightB[4]), even_b);
    }
    const V odd_a = hn::MulAdd(g[3 * step], hn::Set(d, P::kWeightA[3]), hn::Mul(g[step], a));
    const V odd_b = hn::MulAdd(g[3 * step], hn::Set(d, P::kWeightB[3]), hn::Mul(g[step], b));
    u1 = hn::Add(even_a, odd_a);
    u2 = hn::Sub(even_a, odd_a);
    u3 = hn::Add(even_b, odd_b);
    u4 = hn::Sub(even_b, odd_b);
  }
}

// The weights of kLanes rows, lane by lane, of one phase.
template <size_t kTaps>
HWY_INLINE void LoadWeights(const WinogradWeights& w, const float* from, size_t phase, size_t rows, V* HWY_RESTRICT g) {
  const D d;
  constexpr size_t kAll = kTaps * kTaps;
  constexpr ptrdiff_t kRow = kTaps;
  const bool forward = w.step == 1 && w.y == kRow && w.x == 1, backward = w.y == -kRow && w.x == -1;
  if (rows == kLanes && (forward || backward)) {
    const float* first = forward ? from : from - (kAll - 1);
    for (size_t t = 0; t + 4 <= kAll; t += 4) LoadColumns(first + t, w.row, g[t], g[t + 1], g[t + 2], g[t + 3]);
    if constexpr (kAll % 4 != 0) {
      static_assert(kAll % 4 == 1, "one tap is left");
      V unused0, unused1, unused2;  // once more
      LoadColumns(first + kAll - 4, w.row, unused0, unused1, unused2, g[kAll - 1]);
    }
    if (forward) return;
    for (size_t t = 0; t < kAll / 2; ++t) {
      const V other = g[t];
      g[t] = g[kAll - 1 - t];
      g[kAll - 1 - t] = other;
    }
    return;
  }
  HWY_ALIGN float lanes[kAll * kLanes];
  winograd_weight_lanes(w, from, phase, rows, kTaps, kLanes, lanes);
  for (size_t t = 0; t < kAll; ++t) g[t] = hn::Load(d, lanes + t * kLanes);
}

constexpr ptrdiff_t kDepthAhead = 8;

template <size_t kTaps>
void WeightBlock(const WinogradWeights& w, size_t rows, size_t depth, float* HWY_RESTRICT u, size_t point_stride) {
  const D d;
  constexpr size_t kPanel = 2 * kLanes;  // as the tile kernel reads B
  for (size_t r = 0; r < kWinogradColumns; r += kLanes) {
    float* to = u + r / kPanel * kPanel * depth + r % kPanel;
    const float* from = w.data + static_cast<ptrdiff_t>(w.phased_rows ? r / 4 : r) * w.row;
    const size_t phases = w.phased_rows ? 1 : w.step * w.step;
    const size_t some = r < rows ? HWY_MIN(kLanes, rows - r) : 0;
    for (size_t k = 0; k < depth; ++k, to += kPanel, from += k % phases == 0 ? w.depth : 0) {
      V g[kTaps * kTaps], t[6 * kTaps];
      // Kernels are far apart along the rows or along the depth: more streams than the hardware follows.
      for (size_t i = 0; i < kLanes; ++i) {
        hwy::Prefetch(from + static_cast<ptrdiff_t>(i) * w.row + kDepthAhead * w.depth);
      }
      LoadWeights<kTaps>(w, from, k % phases, some, g);
      for (size_t j = 0; j < kTaps; ++j) {
        V* HWY_RESTRICT x = t + j;
        WeightAxis<kTaps>(g + j, kTaps, x[0], x[kTaps], x[2 * kTaps], x[3 * kTaps], x[4 * kTaps], x[5 * kTaps]);
      }
      float* at = to;
      for (size_t i = 0; i < 6; ++i) {
        V u0, u1, u2, u3, u4, u5;
        WeightAxis<kTaps>(t + kTaps * i, 1, u0, u1, u2, u3, u4, u5);
        hn::StoreU(u0, d, at);
        hn::StoreU(u1, d, at + point_stride);
        hn::StoreU(u2, d, at + 2 * point_stride);
        hn::StoreU(u3, d, at + 3 * point_stride);
        hn::StoreU(u4, d, at + 4 * point_stride);
        hn::StoreU(u5, d, at + 5 * point_stride);
        at += 6 * point_stride;
      }
    }
  }
}

void WinogradWeightBlock(size_t taps, const WinogradWeights& w, size_t rows, size_t depth, float* u,
                         size_t point_stride) {
  const auto run = taps == 3 ? &WeightBlock<3> : taps == 4 ? &WeightBlock<4> : &WeightBlock<5>;
  run(w, rows, depth, u, point_stride);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void winograd_weight_lanes(const WinogradWeights& w, const float* from, size_t phase, size_t rows, size_t taps,
                           size_t lanes, float* to) {
  const size_t phases = w.phased_rows ? 4 : 1;  // side by side in the lanes
  std::fill_n(to, taps * taps * lanes, 0.0f);
  for (size_t t = 0; t < taps * taps; ++t, to += lanes) {
    for (size_t i = 0; i < phases; ++i) {
      const size_t ky = w.step * (t / taps) + (phase + i) / 2, kx = w.step * (t % taps) + (phase + i) % 2;
      if (w.step == 2 && (ky >= w.taps_y || kx >= w.taps_x)) continue;
      const float* at = from + static_cast<ptrdiff_t>(ky) * w.y + static_cast<ptrdiff_t>(kx) * w.x;
      for (size_t r = i; r < rows; r += phases, at += w.row) to[r] = *at;
    }
  }
}

void winograd_weight_block(Isa isa, size_t taps, const WinogradWeights& w, size_t rows, size_t depth, float* u,
                           size_t point_stride) noexcept {
  BNNS_DISPATCH_FOR(isa, WinogradWeightBlock)(taps, w, rows, depth, u, point_stride);
}

}  // namespace bnns
#endif
