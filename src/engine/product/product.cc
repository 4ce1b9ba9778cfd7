// Checks that the three layers share, and how their axes become indices.

#include "src/engine/product/product.h"

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns {

Tensor resolve_product_tensor(const BNNSNDArrayDescriptor& d, const char* op, const char* field) {
  const Tensor t = resolve(d, op, field);
  switch (t.layout) {
    case BNNSDataLayoutConvolutionWeightsOIHrWr:
    case BNNSDataLayoutConvolutionWeightsIOHrWr:
    case BNNSDataLayoutConvolutionWeightsOIHW_Pack32:
      fail_unsupported("%s: %s.layout is %s; products take layouts with one stride per axis: copy it to OIHW", op,
                       field, enum_text(t.layout).text);
    default:
      break;
  }
  if (!is_float(t.type) && !(is_integer(t.type) && type_bytes(t.type) != 0)) {
    fail_unsupported("%s: %s has type %s; products take f32, f16, bf16 and whole-byte integers", op, field,
                     type_name(t.type));
  }
  return t;
}

bool resolve_beta(float beta, const char* op) {
  if (beta != 0 && beta != 1) fail_invalid("%s: beta is %g, expected 0 or 1", op, static_cast<double>(beta));
  return beta == 1;
}

void bind_indices(ProductProblem* p, const IndexList (&lists)[kSides], const char* labels, uint32_t strict) {
  for (const IndexList& list : lists) {
    for (size_t l = 0; l < list.rank; ++l) p->indices = std::max<size_t>(p->indices, list.index[l] + 1);
  }
  const char* first_field[kMaxIndices];  // where an extent was first seen
  size_t first_extent[kMaxIndices];
  for (size_t i = 0; i < p->indices; ++i) {  // few of many: a filter may be made for one small product
    for (auto& side : p->axis) side[i] = -1;
    p->extent[i] = 1;
    first_field[i] = nullptr;
    first_extent[i] = 0;
  }
  for (size_t side = 0; side < kSides; ++side) {
    const Tensor& t = p->tensor[side];
    for (size_t l = 0; l < lists[side].rank; ++l) {
      const size_t i = lists[side].index[l], k = logical_axis(t, l), size = t.size[k];
      const bool broadcasts = (strict >> i & 1) == 0;
      const bool fits = first_field[i] == nullptr || size == first_extent[i] || (broadcasts && first_extent[i] == 1) ||
                        (broadcasts && size == 1 && side != kSideC);
      if (!fits) {
        fail_invalid("%s: index %c is %zu in %s.size[%zu], expected %zu as in %s%s", p->op, labels[i], size,
                     lists[side].field, k, first_extent[i], first_field[i],
                     broadcasts && side != kSideC ? ", or 1" : "");
      }
      if (first_field[i] == nullptr || size > first_extent[i]) {
        first_field[i] = lists[side].field;
        first_extent[i] = size;
      }
      p->axis[side][i] = static_cast<int8_t>(k);
      p->extent[i] = first_extent[i];
    }
  }
  check_distinct(p->tensor[kSideC], p->op, lists[kSideC].field);
  // An extent of 1 has no stride worth knowing; one that broadcasts is not an index of that tensor at all.
  size_t terms = 1;  // so that sizes of scratch cannot wrap
  for (size_t i = 1; i < p->indices; ++i) {
    if (__builtin_mul_overflow(terms, p->extent[i], &terms)) {
      fail_invalid("%s: index %c is %zu in %s, too large: the number of products does not fit in 64 bits", p->op,
                   labels[i], p->extent[i], first_field[i]);
    }
    for (size_t side = 0; side < kSides; ++side) {
      int8_t& axis = p->axis[side][i];
      if (axis >= 0 && p->tensor[side].size[axis] == 1) axis = -1;
    }
  }
}

std::string ProductProblem::text() const {
  std::string result = op;
  const auto add = [&](const std::string& word) { result.append(1, ' ').append(word); };
  add(name);
  add(tensor[kSideA].text());
  if (has_b) add(self ? "self" : tensor[kSideB].text());
  if (weights >= 0) add(weights == kSideA ? "weights:a" : "weights:b");
  add("to");
  add(tensor[kSideC].text());
  return result;
}

IndexedTensor indexed(const ProductProblem& p, ProductSide side, const Tensor& t, const void* data,
                      size_t batch_stride) {
  IndexedTensor result;
  result.tensor = &t;
  result.data = data;
  result.stride[0] = batch_stride;
  for (size_t i = 1; i < p.indices; ++i) {
    const int8_t axis = p.axis[side][i];
    result.stride[i] = axis >= 0 ? t.stride[axis] : 0;
  }
  return result;
}

}  // namespace bnns
