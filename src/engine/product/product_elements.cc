// Products of so few terms each (element-wise products, short dot products over a batch) that a call of the GEMM core
// would cost more than they do. Blocks of results are summed term by term, in order of the depth.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/engine/product/product_plan.h"
#include "src/simd/convert.h"
#include "src/tensor/elements.h"

namespace bnns::detail {
namespace {

// n elements, `stride` apart, as f32: in place where they are that already.
const float* load_run(const ProductView& v, size_t offset, size_t stride, size_t n, float* buffer) {
  const void* from = v.data + offset * type_bytes(v.type());
  if (v.type() == BNNSDataTypeFloat32) {
    const float* values = static_cast<const float*>(from);
    if (stride == 1) return values;
    for (size_t i = 0; i < n; ++i) buffer[i] = values[i * stride];
    return buffer;
  }
  const uint16_t* values = static_cast<const uint16_t*>(from);
  uint16_t gathered[kBlock];
  if (stride != 1) {
    for (size_t i = 0; i < n; ++i) gathered[i] = values[i * stride];
    values = gathered;
  }
  v.type() == BNNSDataTypeFloat16 ? half_to_float(values, buffer, n) : bfloat16_to_float(values, buffer, n);
  return buffer;
}

// Offset on axes [first, n) of a list.
size_t offset_of(const AxisList& axes, size_t first, size_t index, ProductSide side) {
  size_t result = 0;
  for (size_t i = first; i < axes.n; ++i) {
    result += index % axes.axis[i].extent * axes.axis[i].stride[side];
    index /= axes.axis[i].extent;
  }
  return result;
}

Tensor line_tensor(const ProductView& c, const ProductAxis& axis) {
  Tensor t;
  if (c.tensor) t = *c.tensor;
  t.type = c.type();
  t.rank = 1;
  t.axis[0] = 0;
  t.size[0] = t.count = axis.extent;
  t.stride[0] = axis.stride[kSideC];
  return t;
}

}  // namespace

void element_product_run(const ElementProduct& p, size_t threads) {
  const ProductStep& s = p.step;
  AxisList loops = p.loops;
  // Blocks along the longest of the axes; among equals the fastest of C.
  loops.sort(kSideC);
  size_t best = 0;
  for (size_t i = 1; i < loops.n; ++i) {
    if (loops.axis[best].extent < kBlock / 8 && loops.axis[i].extent > loops.axis[best].extent) best = i;
  }
  std::swap(loops.axis[0], loops.axis[best]);
  const ProductAxis inner = loops.axis[0];
  const Elements line(line_tensor(s.view[kSideC], inner));
  const size_t terms = p.k.count(), pieces = div_up(inner.extent, kBlock), outer = loops.count() / inner.extent;
  const size_t group = std::max<size_t>(1, 16384 / (std::min(inner.extent, kBlock) * terms));
  const size_t lines = outer * pieces, tasks = div_up(lines, group);
  parallel_for(tasks, threads_for(threads, tasks, loops.count() * terms * 4), [&](size_t task, size_t) {
    float sum[kBlock], a_buffer[kBlock], b_buffer[kBlock];
    for (size_t i = task * group; i < std::min(lines, (task + 1) * group); ++i) {
      const size_t first = i % pieces * kBlock, n = std::min(kBlock, inner.extent - first);
      size_t at[kSides];
      for (const ProductSide side : {kSideA, kSideB, kSideC}) {
        at[side] = offset_of(loops, 1, i / pieces, side) + (side == kSideC ? 0 : first * inner.stride[side]);
      }
      for (size_t t = 0; t < terms; ++t) {
        const float* a =
            load_run(s.view[kSideA], at[kSideA] + offset_of(p.k, 0, t, kSideA), inner.stride[kSideA], n, a_buffer);
        if (s.has_b) {
          const float* b =
              load_run(s.view[kSideB], at[kSideB] + offset_of(p.k, 0, t, kSideB), inner.stride[kSideB], n, b_buffer);
          if (t == 0) {
            for (size_t j = 0; j < n; ++j) sum[j] = a[j] * b[j];
          } else {
            for (size_t j = 0; j < n; ++j) sum[j] += a[j] * b[j];
          }
        } else if (t == 0) {
          std::memcpy(sum, a, n * sizeof(float));
        } else {
          for (size_t j = 0; j < n; ++j) sum[j] += a[j];
        }
      }
      if (s.alpha != 1) {
        for (size_t j = 0; j < n; ++j) sum[j] *= s.alpha;
      }
      void* to = s.view[kSideC].data + at[kSideC] * type_bytes(s.view[kSideC].type());
      if (s.accumulate) {
        line.accumulate(to, first, n, sum);
      } else if (line.direct()) {
        std::memcpy(static_cast<float*>(to) + first, sum, n * sizeof(float));
      } else {
        line.write(to, first, n, sum);
      }
    }
  });
}

}  // namespace bnns::detail
