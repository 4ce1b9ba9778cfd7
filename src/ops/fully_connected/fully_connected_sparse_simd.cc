// Products of compressed rows with samples side by side: a nonzero is multiplied with one input of every sample.

#include "src/ops/fully_connected/fully_connected_sparse.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/fully_connected/fully_connected_sparse_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Four accumulators hide the latency of the additions; nonzero k goes to accumulator k mod 4 of its row.
template <class D>
HWY_INLINE void MultiplyRows(D d, const SparseRows& rows, size_t begin, size_t end, const float* x, size_t used,
                             float* y, size_t y_stride) {
  const size_t N = hn::Lanes(d);
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  for (size_t o = begin; o < end; ++o) {
    auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
    size_t k = rows.starts[o];
    const size_t last = rows.starts[o + 1];
    const auto add = [&](size_t at, auto sum) HWY_ATTR {
      return hn::MulAdd(hn::Set(d, rows.values[at]), hn::LoadU(d, x + rows.columns[at] * N), sum);
    };
    for (; k + 4 <= last; k += 4) {
      a0 = add(k, a0);
      a1 = add(k + 1, a1);
      a2 = add(k + 2, a2);
      a3 = add(k + 3, a3);
    }
    if (k < last) a0 = add(k, a0);
    if (k + 1 < last) a1 = add(k + 1, a1);
    if (k + 2 < last) a2 = add(k + 2, a2);
    auto sum = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));
    if (rows.bias) sum = hn::Add(sum, hn::Set(d, rows.bias[o]));
    hn::Store(sum, d, lanes);
    for (size_t n = 0; n < used; ++n) y[n * y_stride + o] = lanes[n];
  }
}

size_t SparseLanes() {
  return hn::Lanes(hn::ScalableTag<float>());
}

void SparseMultiply(const SparseRows& rows, size_t begin, size_t end, const float* x, size_t lanes, size_t used,
                    float* y, size_t y_stride) {
  if (lanes == 1) {
    MultiplyRows(hn::CappedTag<float, 1>(), rows, begin, end, x, used, y, y_stride);
  } else {
    MultiplyRows(hn::ScalableTag<float>(), rows, begin, end, x, used, y, y_stride);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

size_t sparse_lanes() noexcept {
  return BNNS_DISPATCH(SparseLanes)();
}
void sparse_multiply(const SparseRows& rows, size_t begin, size_t end, const float* x, size_t lanes, size_t used,
                     float* y, size_t y_stride) noexcept {
  BNNS_DISPATCH(SparseMultiply)(rows, begin, end, x, lanes, used, y, y_stride);
}

}  // namespace bnns
#endif
