// Small products: plain f32 tensors with at most one index of each kind. A plan of steps, scratch and threads would
// cost several times what the arithmetic does. The GEMM core gets what the plan would give it, so the bits are the
// same.

#include <algorithm>
#include <utility>

#include "src/core/parallel.h"
#include "src/engine/product/product_plan.h"

namespace bnns::detail {

SmallProduct::SmallProduct(const Product& p) {
  const auto plain = [](const IndexedTensor& t) { return t.tensor && t.tensor->is(BNNSDataTypeFloat32); };
  if (!plain(p.a) || !plain(p.b) || !plain(p.c) || (p.accumulate && p.alpha != 1)) return;
  // By the sides that have an index, bits as in product_plan.cc: rows (A and C), columns, depth, repetition.
  ProductAxis rows{1, {}}, columns{1, {}}, depth{1, {}}, loop{1, {}};
  ProductAxis* const kinds[] = {nullptr, nullptr, nullptr, &depth, nullptr, &rows, &columns, &loop};
  for (size_t i = 0; i < p.indices; ++i) {
    const size_t a = p.a.stride[i], b = p.b.stride[i], c = p.c.stride[i];
    const unsigned sides = (a ? 1u : 0u) | (b ? 2u : 0u) | (c ? 4u : 0u);
    if (p.extent[i] == 1 || sides == 0) continue;
    if (!kinds[sides] || kinds[sides]->extent != 1) return;
    *kinds[sides] = {p.extent[i], {a, b, c}};
  }
  ProductSide first = kSideA, second = kSideB;  // exchanged where that makes C's rows contiguous
  if (rows.extent != 1 && (columns.extent == 1 || rows.stride[kSideC] < columns.stride[kSideC])) {
    std::swap(rows, columns);
    std::swap(first, second);
  }
  if (columns.extent != 1 && columns.stride[kSideC] != 1) return;
  const auto lens = [&](ProductSide side, const ProductAxis& axis) {
    const void* const data = side == kSideA ? p.a.data : p.b.data;
    return strided_lens(data, FloatType::f32, static_cast<ptrdiff_t>(axis.stride[side]),
                        static_cast<ptrdiff_t>(depth.stride[side]));
  };
  problem_ = {rows.extent, columns.extent, depth.extent, p.accumulate ? GemmInit::accumulate : GemmInit::overwrite};
  a_ = lens(first, rows), b_ = lens(second, columns);
  c_ = {static_cast<float*>(const_cast<void*>(p.c.data)), rows.stride[kSideC], 1};
  if (!gemm_is_small(problem_, a_, b_, c_)) return;
  const size_t work = problem_.m * problem_.n * problem_.k;
  alpha_ = p.alpha;
  count_ = loop.extent;
  a_step_ = loop.stride[first], b_step_ = loop.stride[second], c_step_ = loop.stride[kSideC];
  // Many of a few terms each are better run element by element, and much work on several threads.
  accepted_ = !by_elements(work, count_) && count_ < 2 * kMinThreadWork / work;
}

void SmallProduct::run() const {
  for (size_t i = 0; i < count_; ++i) {
    Lens a = a_, b = b_;
    GemmOutput c = c_;
    a.data = static_cast<const float*>(a.data) + i * a_step_;
    b.data = static_cast<const float*>(b.data) + i * b_step_;
    c.data += i * c_step_;
    gemm(problem_, a, b, c, nullptr, {}, nullptr, 1);
    if (alpha_ == 1) continue;
    for (size_t r = 0; r < problem_.m; ++r) {
      float* const row = c.data + r * c.row_stride;
      for (size_t j = 0; j < problem_.n; ++j) row[j] *= alpha_;
    }
  }
}

}  // namespace bnns::detail
