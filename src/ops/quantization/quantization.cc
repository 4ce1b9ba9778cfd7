#include "src/ops/quantization/quantization.h"

#include <algorithm>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "quantization";

// Floats and whole-byte integers. data_scale and data_bias play no part in this layer.
void require_number(Tensor* t, const char* field) {
  if (!is_float(t->type) && !(is_integer(t->type) && type_bytes(t->type))) {
    fail_unsupported("%s: %s has type %s; expected a float or an integer of 8, 16, 32 or 64 bits", kOp, field,
                     type_name(t->type));
  }
  t->scale = 1, t->bias = 0;
}

Tensor read_data(const BNNSNDArrayDescriptor& d, const char* field) {
  Tensor t = resolve(d, kOp, field);
  require_number(&t, field);
  if (t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: %s.layout is OIHW_Pack32: quantize before packing", kOp, field);
  }
  return t;
}

Tensor read_vector(const BNNSNDArrayDescriptor& d, const char* field) {
  if (is_absent(d)) return {};
  Tensor t = resolve_with_data(d, kOp, field);
  require_number(&t, field);
  if (t.rank != 1) fail_invalid("%s: %s.layout has rank %zu, expected a Vector", kOp, field, t.rank);
  return t;
}

void check_entries(const Tensor& vector, const char* field, size_t entries, const char* why) {
  if (vector.data && vector.count != entries) {
    fail_invalid("%s: %s.size[0] is %zu, expected %zu: %s", kOp, field, vector.count, entries, why);
  }
}

size_t stretch_length(const Tensor& t) {
  size_t length = 1;
  for (size_t j = 0; j < t.rank; ++j) {
    const size_t k = t.axis[j];
    if (t.size[k] == 1) continue;
    if (t.stride[k] != length) break;
    length *= t.size[k];
  }
  return length;
}

// The one axis of a mask, or kNoAxis.
size_t read_axis(size_t mask, size_t rank) {
  if (mask == 0) return QuantizationProblem::kNoAxis;
  if ((mask & (mask - 1)) != 0 || (mask >> rank) > 1) {
    fail_invalid(
        "%s: axis_mask is 0x%zx, expected 0 or one of the bits 0 to %zu: i_desc has rank %zu, bit %zu is the batch",
        kOp, mask, rank, rank, rank);
  }
  return static_cast<size_t>(__builtin_ctzll(mask));
}

void set_axis(QuantizationProblem* p) {
  const Tensor& x = p->x;
  if (!p->scale.data && !p->bias.data) return;  // 1 and 0 for all, whatever the axis
  if (p->axis == QuantizationProblem::kNoAxis) {
    for (const auto& [vector, field] : {std::pair{&p->scale, "scale"}, {&p->bias, "bias"}}) {
      check_entries(*vector, field, 1, "axis_mask is 0");
    }
    return;
  }
  p->inner = 1;
  if (p->along_batch()) {
    p->inner = x.count;
    p->entries = p->scale.data ? p->scale.count : p->bias.count;
    if (p->scale.data) check_entries(p->bias, "bias", p->scale.count, "scale has as many");
    return;
  }
  const bool rotated =
      x.layout == BNNSDataLayoutConvolutionWeightsOIHrWr || x.layout == BNNSDataLayoutConvolutionWeightsIOHrWr;
  if (rotated && p->axis < 2) {
    fail_unsupported(
        "%s: axis_mask selects axis %zu, which i_desc.layout rotates; axes 2 and 3 and the batch are offered", kOp,
        p->axis);
  }
  for (size_t j = 0; x.axis[j] != p->axis; ++j) p->inner *= x.size[x.axis[j]];
  p->entries = x.size[p->axis];
  check_entries(p->scale, "scale", p->entries, "i_desc's size along axis_mask");
  check_entries(p->bias, "bias", p->entries, "i_desc's size along axis_mask");
}

}  // namespace

QuantizationProblem make_quantization_problem(const BNNSLayerParametersQuantization* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersQuantization", kOp);
  QuantizationProblem p;
  if (layer->function != BNNSQuantizerFunctionQuantize && layer->function != BNNSQuantizerFunctionDequantize) {
    fail_invalid("%s: function is %s", kOp, enum_text(layer->function).text);
  }
  p.dequantize = layer->function == BNNSQuantizerFunctionDequantize;
  p.x = read_data(layer->i_desc, "i_desc");
  p.y = read_data(layer->o_desc, "o_desc");
  check_distinct(p.y, kOp, "o_desc");
  if (p.x.count != p.y.count || (p.x.layout == p.y.layout && !std::equal(p.x.size, p.x.size + p.x.rank, p.y.size))) {
    fail_invalid("%s: o_desc is %s, expected the sizes of i_desc, %s", kOp, p.y.text().c_str(), p.x.text().c_str());
  }
  p.scale = read_vector(layer->scale, "scale");
  p.bias = read_vector(layer->bias, "bias");
  p.axis = read_axis(layer->axis_mask, p.x.rank);
  set_axis(&p);
  p.x_elements = Elements(p.x), p.y_elements = Elements(p.y);
  p.x_run = stretch_length(p.x), p.y_run = stretch_length(p.y);
  return p;
}

std::string QuantizationProblem::text() const {
  std::string result = dequantize ? "dequantize " : "quantize ";
  result += x.text() + " to " + type_name(y.type);
  if (along_batch()) return result + " axis batch";
  return axis == kNoAxis ? result : result + " axis " + std::to_string(axis);
}

QuantizationParameters::QuantizationParameters(const QuantizationProblem& problem, const Options& options)
    : scale_(problem.scale, options, "the scale"), bias_(problem.bias, options, "the bias") {}

void check_quantization_call(const QuantizationProblem& p, const QuantizationParameters& parameters, size_t batch,
                             const void* out, size_t out_stride) {
  const size_t out_bytes = batch_bytes(batch, out_stride, p.y, kOp, "out_stride");
  const Tensor* vectors[] = {&parameters.scale(), &parameters.bias()};
  const char* const names[] = {"scale", "bias"};
  for (size_t k = 0; k < 2; ++k) {
    if (p.along_batch()) check_entries(*vectors[k], names[k], batch, "axis_mask selects the batch");
    check_disjoint(vectors[k]->data, vectors[k]->data ? vectors[k]->span_bytes() : 0, names[k], out, out_bytes,
                   "o_desc.data", kOp);
  }
}

}  // namespace bnns
