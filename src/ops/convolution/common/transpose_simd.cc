// The end of a product that was computed transposed: the sum of its slices, turned around block by block.

#include "src/ops/convolution/common/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/common/transpose_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/winograd/winograd-inl.h"
#include "src/simd/dispatch.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using winograd::D;
using winograd::kLanes;
using winograd::LoadColumns;
using winograd::V;

// kLanes rows by four columns at (i, j).
HWY_INLINE void StoreBlock(const SlicedSums& s, size_t i, size_t j, bool accumulate, float* HWY_RESTRICT to,
                           size_t to_stride) {
  const D d;
  const float* from = s.from + i * s.from_stride + j;
  V sum[4];
  LoadColumns(from, static_cast<ptrdiff_t>(s.from_stride), sum[0], sum[1], sum[2], sum[3]);
  for (size_t slice = 1; slice < s.slices; ++slice) {
    V more[4];
    LoadColumns(from + slice * s.slice_stride, static_cast<ptrdiff_t>(s.from_stride), more[0], more[1], more[2],
                more[3]);
    for (size_t q = 0; q < 4; ++q) sum[q] = hn::Add(sum[q], more[q]);
  }
  to += j * to_stride + i;
  for (size_t q = 0; q < 4; ++q, to += to_stride) {
    hn::StoreU(accumulate ? hn::Add(hn::LoadU(d, to), sum[q]) : sum[q], d, to);
  }
}

HWY_INLINE void StoreOne(const SlicedSums& s, size_t i, size_t j, bool accumulate, float* to, size_t to_stride) {
  const float* from = s.from + i * s.from_stride + j;
  float sum = *from;
  for (size_t slice = 1; slice < s.slices; ++slice) sum += from[slice * s.slice_stride];
  float& at = to[j * to_stride + i];
  at = accumulate ? at + sum : sum;
}

void StoreTransposed(const SlicedSums& s, size_t rows, size_t columns, bool accumulate, float* to, size_t to_stride) {
  const size_t whole = rows / kLanes * kLanes;
  size_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    for (size_t i = 0; i < whole; i += kLanes) StoreBlock(s, i, j, accumulate, to, to_stride);
    for (size_t q = j; q < j + 4; ++q) {
      for (size_t i = whole; i < rows; ++i) StoreOne(s, i, q, accumulate, to, to_stride);
    }
  }
  for (; j < columns; ++j) {
    for (size_t i = 0; i < rows; ++i) StoreOne(s, i, j, accumulate, to, to_stride);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void store_transposed(const SlicedSums& sums, size_t rows, size_t columns, bool accumulate, float* to,
                      size_t to_stride) noexcept {
  BNNS_DISPATCH(StoreTransposed)(sums, rows, columns, accumulate, to, to_stride);
}

}  // namespace bnns
#endif
