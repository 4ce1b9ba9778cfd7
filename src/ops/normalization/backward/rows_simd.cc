// Backward over rows that are sets of their own (layer normalization): sums and dx in one go, the sums of the next row
// while dx of one is written, as in forward/rows_simd.cc.

#include "src/ops/normalization/common/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/backward/rows_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/normalization/backward/gradient-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <bool kStream>
HWY_INLINE void GradientEachRowOf(const GradientBlock& b, const float* gamma, const float* rstd, float* sum_g,
                                  float* sum_gx, const GradientTarget& to) {
  const hn::ScalableTag<float> d;
  using D = hn::ScalableTag<float>;
  const size_t N = hn::Lanes(d);
  GradientCoefficients set{};
  for (size_t r = 0; r <= b.rows; ++r) {  // dx of row r - 1, sums of row r
    const bool write = r != 0, sum = r != b.rows;
    const auto last = RowAt<Relu::none>(d, b, write ? r - 1 : 0), next = RowAt<Relu::none>(d, b, sum ? r : 0);
    float* dx = to.dx + (write ? r - 1 : 0) * to.dx_stride;
    const AlongRowGradient<D> f{d, hn::Set(d, set.scale), hn::Set(d, set.slope), hn::Set(d, set.offset), gamma};
    const auto put = [&](size_t i) HWY_ATTR {
      const auto out = f(last.G(i), last.X(i), i);
      kStream ? hn::Stream(out, d, dx + i) : hn::StoreU(out, d, dx + i);
    };
    GradientSums total;
    for (size_t first = 0; first < b.n; first += kMomentBlock) {
      const size_t end = HWY_MIN(b.n, first + kMomentBlock);
      RowSums<Relu::none, D> sums(d, next, gamma, sum_g, sum_gx);
      size_t i = first;
      if (write && sum) {
        for (; i + 4 * N <= end; i += 4 * N) {
          next.FetchRow(i + kFetchAhead, 4 * N);
          sums.AddFour(i);
          put(i), put(i + N), put(i + 2 * N), put(i + 3 * N);
        }
      }
      if (sum) {
        size_t j = i;
        for (; j + 4 * N <= end; j += 4 * N) sums.AddFour(j);
        sums.AddRest(j, end - j);
        float add[2];
        sums.Finish(add);
        total.g += static_cast<double>(add[0]), total.gx += static_cast<double>(add[1]);
      }
      if (write) {
        for (; i + N <= end; i += N) put(i);
        if (i < end) StorePartial(d, f(last.G(i, end - i), last.X(i, end - i), i, end - i), dx + i, end - i);
      }
    }
    if (sum) set = make_gradient_coefficients(rstd[r], b.n, total.g, total.gx);
  }
}

void GradientEachRow(const GradientBlock& b, const float* gamma, const float* rstd, float* sum_g, float* sum_gx,
                     const GradientTarget& to) {
  const size_t N = hn::Lanes(hn::ScalableTag<float>());
  const bool aligned = reinterpret_cast<uintptr_t>(to.dx) / sizeof(float) % N == 0 && to.dx_stride % N == 0;
  to.stream&& aligned ? GradientEachRowOf<true>(b, gamma, rstd, sum_g, sum_gx, to)
                      : GradientEachRowOf<false>(b, gamma, rstd, sum_g, sum_gx, to);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void gradient_each_row(const GradientBlock& block, const float* gamma, const float* rstd, float* sum_g, float* sum_gx,
                       const GradientTarget& to) noexcept {
  BNNS_DISPATCH(GradientEachRow)(block, gamma, rstd, sum_g, sum_gx, to);
}

}  // namespace bnns
#endif
