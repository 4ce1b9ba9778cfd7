// Updates of whole rows: the outer product of two vectors, and the sum of several rows. Both are bound by memory.
//   rank one  c[i, :] = or += x[i] y[:]
//   add rows  y = or += rows[0] + rows[1] + ..., in this order

#include <hwy/cache_control.h>

#include "src/gemm/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/gemm/skinny/rank_one_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/gemm/load-inl.h"
#include "src/simd/dispatch.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

void RankOne(Range rows, size_t n, const float* HWY_RESTRICT x, const float* HWY_RESTRICT y, float* HWY_RESTRICT c,
             size_t c_stride, bool accumulate, bool stream) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const size_t whole = n / lanes * lanes, left = n - whole;
  const V last = left ? LoadFirst(d, y + whole, left) : hn::Zero(d);
  for (size_t i = rows.begin; i < rows.end; ++i) {
    const V a = hn::Set(d, x[i]);
    float* row = c + i * c_stride;
    if (accumulate) {
      for (size_t j = 0; j < whole; j += lanes) {
        hn::StoreU(hn::MulAdd(a, hn::LoadU(d, y + j), hn::LoadU(d, row + j)), d, row + j);
      }
      if (left) StoreFirst(hn::MulAdd(a, last, LoadFirst(d, row + whole, left)), d, row + whole, left);
      continue;
    }
    if (stream) {
      for (size_t j = 0; j < whole; j += lanes) hn::Stream(hn::Mul(a, hn::LoadU(d, y + j)), d, row + j);
    } else {
      for (size_t j = 0; j < whole; j += lanes) hn::StoreU(hn::Mul(a, hn::LoadU(d, y + j)), d, row + j);
    }
    if (left) StoreFirst(hn::Mul(a, last), d, row + whole, left);
  }
  if (stream) hwy::FlushStream();
}

void AddRows(const float* HWY_RESTRICT rows, size_t stride, size_t count, size_t n, bool accumulate,
             float* HWY_RESTRICT y) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    V sum = accumulate ? hn::LoadU(d, y + j) : hn::Zero(d);
    for (size_t i = 0; i < count; ++i) sum = hn::Add(sum, hn::LoadU(d, rows + i * stride + j));
    hn::StoreU(sum, d, y + j);
  }
  if (j < n) {
    V sum = accumulate ? LoadFirst(d, y + j, n - j) : hn::Zero(d);
    for (size_t i = 0; i < count; ++i) sum = hn::Add(sum, LoadFirst(d, rows + i * stride + j, n - j));
    StoreFirst(sum, d, y + j, n - j);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void add_rows(const float* rows, size_t stride, size_t count, size_t n, bool accumulate, float* y) noexcept {
  BNNS_DISPATCH(AddRows)(rows, stride, count, n, accumulate, y);
}
void rank_one(Range rows, size_t n, const float* x, const float* y, float* c, size_t c_stride, bool accumulate,
              bool stream) noexcept {
  BNNS_DISPATCH(RankOne)(rows, n, x, y, c, c_stride, accumulate, stream);
}

}  // namespace bnns
#endif
