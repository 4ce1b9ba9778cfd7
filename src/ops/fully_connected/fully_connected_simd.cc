// db[o] (=|+=) sum over rows of g(row, o): the rows in order for each o, so the result does not depend on how o is
// split into vectors.

#include "src/ops/fully_connected/fully_connected.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/fully_connected/fully_connected_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void BiasGradient(const float* g, size_t rows, size_t stride, size_t outputs, bool accumulate, float* db) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t o = 0;
  // Four vectors side by side hide the latency of the additions.
  for (; o + 4 * lanes <= outputs; o += 4 * lanes) {
    auto sum0 = accumulate ? hn::LoadU(d, db + o) : hn::Zero(d);
    auto sum1 = accumulate ? hn::LoadU(d, db + o + lanes) : hn::Zero(d);
    auto sum2 = accumulate ? hn::LoadU(d, db + o + 2 * lanes) : hn::Zero(d);
    auto sum3 = accumulate ? hn::LoadU(d, db + o + 3 * lanes) : hn::Zero(d);
    for (size_t n = 0; n < rows; ++n) {
      const float* row = g + n * stride + o;
      sum0 = hn::Add(sum0, hn::LoadU(d, row));
      sum1 = hn::Add(sum1, hn::LoadU(d, row + lanes));
      sum2 = hn::Add(sum2, hn::LoadU(d, row + 2 * lanes));
      sum3 = hn::Add(sum3, hn::LoadU(d, row + 3 * lanes));
    }
    hn::StoreU(sum0, d, db + o);
    hn::StoreU(sum1, d, db + o + lanes);
    hn::StoreU(sum2, d, db + o + 2 * lanes);
    hn::StoreU(sum3, d, db + o + 3 * lanes);
  }
  for (; o + lanes <= outputs; o += lanes) {
    auto sum = accumulate ? hn::LoadU(d, db + o) : hn::Zero(d);
    for (size_t n = 0; n < rows; ++n) sum = hn::Add(sum, hn::LoadU(d, g + n * stride + o));
    hn::StoreU(sum, d, db + o);
  }
  for (; o < outputs; ++o) {
    float sum = accumulate ? db[o] : 0.0f;
    for (size_t n = 0; n < rows; ++n) sum += g[n * stride + o];
    db[o] = sum;
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void fully_connected_bias_gradient(const float* g, size_t rows, size_t stride, size_t outputs, bool accumulate,
                                   float* db) noexcept {
  BNNS_DISPATCH(BiasGradient)(g, rows, stride, outputs, accumulate, db);
}

}  // namespace bnns
#endif
