#include "src/tensor/tensor.h"

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"

namespace bnns {
namespace {

constexpr unsigned kGenericLayout = 0x8000, kFirstMajorBit = 0x1;

bool is_first_major(BNNSDataLayout layout) {
  const unsigned value = static_cast<unsigned>(layout);
  return (value & kGenericLayout) && (value & kFirstMajorBit);
}

// stride position j -> size axis
size_t axis_at(BNNSDataLayout layout, size_t rank, size_t position) {
  if (is_first_major(layout)) return rank - 1 - position;
  if (layout == BNNSDataLayoutMHA_DHK) return position == 1 ? 2 : position == 2 ? 1 : 0;
  return position;
}

void check_type(const BNNSNDArrayDescriptor& d, const char* op, const char* field) {
  if (!is_known_type(d.data_type)) {
    fail_invalid("%s: %s.data_type is %s, expected a type of elements such as BNNSDataTypeFloat32", op, field,
                 enum_text(d.data_type).text);
  }
  if (!is_indexed(d.data_type)) return;
  if (d.data && !d.table_data) {
    fail_invalid("%s: %s.table_data is NULL, expected the %zu values that %s indexes", op, field,
                 size_t{1} << type_bits(d.data_type), type_name(d.data_type));
  }
  if (d.table_data && !is_float(d.table_data_type) &&
      !(is_integer(d.table_data_type) && type_bytes(d.table_data_type))) {
    fail_invalid("%s: %s.table_data_type is %s, expected a float or whole-byte integer type", op, field,
                 enum_text(d.table_data_type).text);
  }
}

// The span of t, or a factor of it, leaves 64 bits. The largest number that the caller gave is the one to name.
[[noreturn]] void fail_too_large(const Tensor& t, const BNNSNDArrayDescriptor& d, const char* op, const char* field) {
  const size_t size = static_cast<size_t>(std::max_element(d.size, d.size + t.rank) - d.size);
  const size_t stride = static_cast<size_t>(std::max_element(d.stride, d.stride + t.rank) - d.stride);
  const bool by_stride = d.stride[stride] > d.size[size];
  fail_invalid("%s: %s.%s[%zu] is %zu, too large: %s does not fit in 2^64 bits", op, field,
               by_stride ? "stride" : "size", by_stride ? stride : size, by_stride ? d.stride[stride] : d.size[size],
               t.text().c_str());
}

// Pack32: output channels innermost in groups of 32; the last group is stored whole.
void resolve_pack32(Tensor* t, const BNNSNDArrayDescriptor& d, const char* op, const char* field) {
  for (size_t k = 0; k < t->rank; ++k) {
    if (d.stride[k] != 0) {
      fail_invalid("%s: %s.stride[%zu] is %zu, expected 0: OIHW_Pack32 is contiguous", op, field, k, d.stride[k]);
    }
  }
  size_t groups = div_up(t->size[3], 32), span = 32;
  for (size_t extent : {t->size[0], t->size[1], t->size[2], groups}) {
    if (__builtin_mul_overflow(span, extent, &span)) fail_too_large(*t, d, op, field);
  }
  t->span = span;
  t->dense = span == t->count;
  // stride[k] is not a constant here; convolution computes the address by the layout's own formula.
}

}  // namespace

size_t layout_rank(BNNSDataLayout layout) noexcept {
  const unsigned value = static_cast<unsigned>(layout), rank = value >> 16, variant = value & 0xffff;
  if (rank < 1 || rank > kMaxRank) return SIZE_MAX;
  if (variant == kGenericLayout || variant == (kGenericLayout | kFirstMajorBit)) return rank;
  static constexpr BNNSDataLayout kSpecial[] = {BNNSDataLayoutVector,
                                                BNNSDataLayoutRowMajorMatrix,
                                                BNNSDataLayoutColumnMajorMatrix,
                                                BNNSDataLayoutFullyConnectedSparse,
                                                BNNSDataLayoutImageCHW,
                                                BNNSDataLayoutSNE,
                                                BNNSDataLayoutNSE,
                                                BNNSDataLayoutMHA_DHK,
                                                BNNSDataLayoutConvolutionWeightsOIHW,
                                                BNNSDataLayoutConvolutionWeightsOIHrWr,
                                                BNNSDataLayoutConvolutionWeightsIOHrWr,
                                                BNNSDataLayoutConvolutionWeightsOIHW_Pack32};
  for (BNNSDataLayout known : kSpecial) {
    if (known == layout) return rank;
  }
  return SIZE_MAX;
}

Tensor resolve(const BNNSNDArrayDescriptor& d, const char* op, const char* field) {
  Tensor t;
  t.layout = d.layout;
  t.rank = layout_rank(d.layout);
  if (t.rank == SIZE_MAX) {
    fail_invalid("%s: %s.layout is %s%s", op, field, enum_text(d.layout).text,
                 d.layout == BNNSDataLayout{} ? ": the descriptor is missing or not filled in" : "");
  }
  if (d.layout == BNNSDataLayoutFullyConnectedSparse) {
    fail_unsupported("%s: %s.layout is FullyConnectedSparse, which only the weights of a fully connected layer have",
                     op, field);
  }
  check_type(d, op, field);
  t.type = d.data_type;
  t.accumulate = d.flags == BNNSNDArrayFlagBackpropAccumulate;
  t.data = d.data;
  if (is_integer(d.data_type)) {
    t.scale = d.data_scale == 0 ? 1 : d.data_scale;
    t.bias = d.data_bias;
  }
  t.table = d.table_data;
  t.table_type = d.table_data_type;

  t.count = 1;
  bool too_large = false;
  for (size_t k = 0; k < t.rank; ++k) {
    t.size[k] = d.size[k];
    if (d.size[k] == 0) fail_invalid("%s: %s.size[%zu] is 0, expected at least 1", op, field, k);
    too_large |= __builtin_mul_overflow(t.count, d.size[k], &t.count);
  }
  if (too_large) fail_too_large(t, d, op, field);
  if (d.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    for (size_t k = 0; k < t.rank; ++k) t.axis[k] = static_cast<uint8_t>(k);
    resolve_pack32(&t, d, op, field);
  } else {
    t.dense = true;
    size_t last = 0, contiguous = 1, default_stride = 1;
    for (size_t j = 0; j < t.rank; ++j) {
      const size_t k = axis_at(d.layout, t.rank, j);
      const size_t stride = d.stride[j] ? d.stride[j] : default_stride;
      t.axis[j] = static_cast<uint8_t>(k);
      t.stride[k] = stride;
      if (stride != contiguous && t.size[k] != 1) t.dense = false;
      contiguous *= t.size[k];
      size_t reach;
      too_large |= __builtin_mul_overflow(stride, t.size[k], &default_stride);
      too_large |= __builtin_mul_overflow(stride, t.size[k] - 1, &reach);
      too_large |= __builtin_add_overflow(last, reach, &last);
      if (too_large) fail_too_large(t, d, op, field);
    }
    too_large |= __builtin_add_overflow(last, size_t{1}, &t.span);
  }
  size_t bits;  // byte counts cannot wrap anywhere below
  too_large |= __builtin_mul_overflow(t.span, type_bits(t.type), &bits);
  if (too_large) fail_too_large(t, d, op, field);
  return t;
}

Tensor resolve_with_data(const BNNSNDArrayDescriptor& d, const char* op, const char* field) {
  Tensor t = resolve(d, op, field);
  check_data(t.data, t.type, op, field, ".data");
  return t;
}

Tensor resolve_with_data(const BNNSNDArrayDescriptor* d, const char* op, const char* field) {
  if (!d) fail_invalid("%s: %s is NULL, expected a descriptor", op, field);
  return resolve_with_data(*d, op, field);
}

Tensor resolve_delta(const BNNSNDArrayDescriptor* d, const Tensor& like, const char* op, const char* field) {
  Tensor t = resolve_with_data(d, op, field);
  if (t.count != like.count) {
    fail_invalid("%s: %s has %zu elements, expected %zu as in %s", op, field, t.count, like.count, like.text().c_str());
  }
  if (t.layout == like.layout && !std::equal(t.size, t.size + t.rank, like.size)) {
    fail_invalid("%s: %s is %s, expected %s", op, field, t.text().c_str(), like.text().c_str());
  }
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; gradients are f32, f16 or bf16", op, field, type_name(t.type));
  }
  return t;
}

Tensor resolve_delta_view(const BNNSNDArrayDescriptor* d, const Tensor& like, const char* op, const char* field) {
  Tensor t = resolve_delta(d, like, op, field);
  if (t.rank == like.rank && std::equal(t.size, t.size + t.rank, like.size)) return t;
  if (!t.dense && t.rank != 1) {
    fail_unsupported("%s: %s is %s with gaps; expected the sizes of %s, or no gaps", op, field, t.text().c_str(),
                     like.text().c_str());
  }
  size_t step = t.dense ? 1 : t.stride[0];
  t.layout = like.layout;
  t.rank = like.rank;
  for (size_t j = 0; j < like.rank; ++j) {
    const size_t k = like.axis[j];
    t.axis[j] = like.axis[j];
    t.size[k] = like.size[k];
    t.stride[k] = step;
    step *= like.size[k];
  }
  return t;
}

Tensor vector_tensor(size_t n, void* data) {
  Tensor t;
  t.layout = BNNSDataLayoutVector;
  t.rank = 1;
  t.size[0] = t.count = t.span = n;
  t.stride[0] = 1;
  t.dense = true;
  t.data = data;
  return t;
}

size_t Tensor::sample_stride() const {
  if (dense) return span;
  size_t slowest = span;
  for (size_t k = 0; k < rank; ++k) slowest = std::max(slowest, stride[k] * size[k]);
  return slowest;
}

std::string Tensor::text() const {
  std::string result = type_name(type);
  for (size_t k = 0; k < rank; ++k) result += (k ? 'x' : ' ') + std::to_string(size[k]);
  return result;
}

void check_data(const void* data, BNNSDataType type, const char* op, const char* field, const char* part) {
  if (!data) fail_invalid("%s: %s%s is NULL, expected %s data", op, field, part, type_name(type));
  const size_t bytes = type_bytes(type);  // 0, 1, 2, 4 or 8
  if (bytes > 1 && (reinterpret_cast<uintptr_t>(data) & (bytes - 1)) != 0) {
    fail_invalid("%s: %s%s is %p, expected a multiple of %zu for %s", op, field, part, data, bytes, type_name(type));
  }
}

size_t input_batch_stride(size_t stride, size_t batch, const Tensor& sample, const char* op, const char* field) {
  if (stride == 0) stride = sample.sample_stride();
  batch_bytes(batch, stride, sample, op, field);
  return stride;
}

size_t output_batch_stride(size_t stride, size_t batch, const Tensor& sample, const char* op, const char* field) {
  if (stride != 0 && stride < sample.span && batch > 1) {
    fail_invalid("%s: %s is %zu, expected 0 or at least %zu so that samples do not overlap", op, field, stride,
                 sample.span);
  }
  return input_batch_stride(stride, batch, sample, op, field);
}

size_t batch_bytes(size_t batch, size_t stride, const Tensor& sample, const char* op, const char* field) {
  if (batch == 0) return 0;
  size_t elements, bits;
  if (__builtin_mul_overflow(batch - 1, stride, &elements) ||
      __builtin_add_overflow(elements, sample.span, &elements) ||
      __builtin_mul_overflow(elements, type_bits(sample.type), &bits)) {
    fail_invalid("%s: batch_size is %zu and %s is %zu: samples do not fit in memory", op, batch, field, stride);
  }
  return (bits + 7) / 8;
}

void check_disjoint(const void* a, size_t a_bytes, const char* a_name, const void* b, size_t b_bytes,
                    const char* b_name, const char* op) {
  const uintptr_t x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  if (a && b && x < y + b_bytes && y < x + a_bytes) {
    fail_invalid("%s: %s and %s overlap; this operator does not work in place", op, a_name, b_name);
  }
}

}  // namespace bnns
