// Squared Euclidean distances from one sample to many.

#include "src/ops/nearest_neighbors/nearest_neighbors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/nearest_neighbors/nearest_neighbors_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

// Differences first: |a|^2 - 2 ab + |b|^2 would lose the digits of near neighbours.
void SquaredDistances(const float* query, const float* rows, size_t n, size_t d, float* squares) {
  for (size_t i = 0; i < n; ++i) {
    squares[i] = Reduce2(query, rows + i * d, d, SumOp(), [](auto /*d*/, auto a, auto b) HWY_ATTR {
      const auto difference = hn::Sub(a, b);
      return hn::Mul(difference, difference);
    });
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void squared_distances(const float* query, const float* rows, size_t n, size_t d, float* squares) noexcept {
  BNNS_DISPATCH(SquaredDistances)(query, rows, n, d, squares);
}

}  // namespace bnns
#endif
