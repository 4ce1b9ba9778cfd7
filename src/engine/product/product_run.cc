// Runs the steps of a plan.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/log.h"
#include "src/core/memory.h"
#include "src/engine/copy/copy.h"
#include "src/engine/product/product_plan.h"

namespace bnns {
namespace detail {
namespace {

// A view as the copy kernels want it: their axes carry the strides.
Tensor copy_side(const ProductView& v, size_t count) {
  Tensor t;
  if (v.tensor) t = *v.tensor;
  t.type = v.type();
  t.count = count;
  t.data = v.data;
  return t;
}

void scale_block(float* values, size_t n, float alpha, size_t threads) {
  constexpr size_t kPiece = 16384;
  const size_t pieces = div_up(n, kPiece);
  parallel_for(pieces, threads_for(threads, pieces, n), [&](size_t i, size_t) {
    for (size_t k = i * kPiece; k < std::min(n, (i + 1) * kPiece); ++k) values[k] *= alpha;
  });
}

void copy_run(const ProductStep& s, size_t threads) {
  CopyProblem p;
  size_t from_count = 1, to_count = 1;
  CopyAxis axes[kMaxIndices];
  for (size_t i = 0; i < s.axes.n; ++i) {
    const ProductAxis& a = s.axes.axis[i];
    axes[i] = {a.extent, static_cast<ptrdiff_t>(a.stride[kSideA]), static_cast<ptrdiff_t>(a.stride[kSideC])};
    from_count *= a.stride[kSideA] ? a.extent : 1;
    to_count *= a.extent;
  }
  p.from = copy_side(s.view[kSideA], from_count);
  p.to = copy_side(s.view[kSideC], to_count);
  if (s.alpha != 1) scale_block(static_cast<float*>(p.from.data), from_count, s.alpha, threads);
  const bool same = p.from.type == p.to.type && p.from.scale == p.to.scale && p.from.bias == p.to.bias;
  p.kind = same && !s.accumulate ? CopyKind::bytes : CopyKind::values;
  p.accumulate = s.accumulate;
  set_copy_axes(&p, axes, s.axes.n);
  copy_tensor(p, threads);
}

}  // namespace
}  // namespace detail

size_t product_scratch_bytes(const Product& product, size_t threads) {
  if (detail::SmallProduct(product).accepted()) return 0;
  detail::ProductPlan plan;
  detail::make_product_plan(product, &plan);
  size_t bytes = 0;
  for (size_t i = 0; i < plan.steps; ++i) {
    if (plan.step[i].kind == detail::ProductStep::Kind::multiply) {
      bytes = std::max(bytes, detail::multiply_scratch_bytes(plan.step[i], threads));
    }
  }
  return checked_add(plan.temp_bytes, bytes, "scratch of the product");
}

void product_run(const Product& product, void* scratch, size_t threads) {
  if (recording()) {
    double operations = product.b.tensor ? 2 : 1;
    for (size_t k = 0; k < product.indices; ++k) operations *= static_cast<double>(product.extent[k]);
    count_work(0, operations);
  }
  if (const detail::SmallProduct small(product); small.accepted()) return small.run();
  detail::ProductPlan plan;
  detail::make_product_plan(product, &plan);
  char* const memory = static_cast<char*>(scratch);
  for (size_t i = 0; i < plan.steps; ++i) {
    detail::ProductStep& s = plan.step[i];
    for (detail::ProductView& v : s.view) {
      if (v.is_temp()) v.data = memory + (v.temp - 1);
    }
    if (s.kind == detail::ProductStep::Kind::copy) {
      detail::copy_run(s, threads);
    } else {
      detail::multiply_run(s, memory + plan.temp_bytes, threads);
    }
  }
}

}  // namespace bnns
