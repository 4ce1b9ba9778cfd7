#include "src/ops/activation/batch_elements.h"

#include "src/core/error.h"

namespace bnns {
namespace {

// Appends an axis, merged with the last one where the two are one run.
bool append_axis(Tensor* t, size_t extent, size_t stride) noexcept {
  if (extent == 1) return true;
  if (t->rank > 0 && stride == t->stride[t->rank - 1] * t->size[t->rank - 1]) {
    t->size[t->rank - 1] *= extent;
    return true;
  }
  if (t->rank == kMaxRank) return false;
  t->size[t->rank] = extent;
  t->stride[t->rank] = stride;
  t->axis[t->rank] = static_cast<uint8_t>(t->rank);
  ++t->rank;
  return true;
}

bool same_elements(const BatchOperand& a, const BatchOperand& b, size_t batch) {
  Tensor x, y;
  if (a.base != b.base || type_bits(a.sample.type) != type_bits(b.sample.type)) return false;
  if (!join_batch(a.sample, batch, a.stride, &x) || !join_batch(b.sample, batch, b.stride, &y)) {
    return a.stride == b.stride && std::equal(a.sample.size, a.sample.size + kMaxRank, b.sample.size) &&
           std::equal(a.sample.stride, a.sample.stride + kMaxRank, b.sample.stride);
  }
  return x.rank == y.rank && std::equal(x.size, x.size + x.rank, y.size) &&
         std::equal(x.stride, x.stride + x.rank, y.stride);
}

}  // namespace

bool join_batch(const Tensor& sample, size_t batch, size_t stride, Tensor* joined) noexcept {
  *joined = sample;
  joined->rank = 0;
  for (size_t j = 0; j < sample.rank; ++j) {
    const size_t k = sample.axis[j];
    if (!append_axis(joined, sample.size[k], sample.stride[k])) return false;
  }
  if (!append_axis(joined, batch, stride)) return false;
  if (joined->rank == 0) {  // a single element
    joined->rank = 1;
    joined->size[0] = joined->stride[0] = 1;
    joined->axis[0] = 0;
  }
  joined->count = sample.count * batch;
  joined->span = (batch - 1) * stride + sample.span;
  joined->dense = joined->rank == 1 && joined->stride[0] == 1;
  return true;
}

BatchElements::BatchElements(const Tensor& sample, size_t batch, size_t stride, const void* base) noexcept
    : base_(const_cast<void*>(base)), count_(sample.count), stride_(stride), type_(sample.type) {
  Tensor joined;
  joined_ = join_batch(sample, batch, stride, &joined);
  contiguous_ = joined_ && joined.dense;
  elements_ = Elements(joined_ ? joined : sample);
}

void check_in_place(const BatchOperand& input, const BatchOperand& output, size_t batch, const char* op) {
  const uintptr_t a = reinterpret_cast<uintptr_t>(input.base), b = reinterpret_cast<uintptr_t>(output.base);
  const size_t a_bytes = batch_bytes(batch, input.stride, input.sample, op, input.name);
  const size_t b_bytes = batch_bytes(batch, output.stride, output.sample, op, output.name);
  if (batch == 0 || a >= b + b_bytes || b >= a + a_bytes || same_elements(input, output, batch)) return;
  if (!input.sample.dense || !output.sample.dense) return;
  // Two rows of intervals by rising address: the one that ends first cannot meet anything further.
  const size_t a_span = input.sample.span_bytes(), b_span = output.sample.span_bytes();
  const size_t a_step = input.stride * type_bits(input.sample.type),
               b_step = output.stride * type_bits(output.sample.type);
  for (size_t i = 0, j = 0; i < batch && j < batch;) {
    const uintptr_t from_a = a + i * a_step / 8, from_b = b + j * b_step / 8;
    if (from_a < from_b + b_span && from_b < from_a + a_span) {
      fail_invalid("%s: %s and %s overlap, expected memory apart, or the same elements (in place)", op, output.name,
                   input.name);
    }
    from_a + a_span <= from_b + b_span ? ++i : ++j;
  }
}

}  // namespace bnns
