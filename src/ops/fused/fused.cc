#include "src/ops/fused/fused.h"

#include <algorithm>

#include "src/core/enum_name.h"
#include "src/core/error.h"

namespace bnns {
namespace {

constexpr const char* kOp = "fused";

bool is_normalization(BNNSFilterType type) {
  return type == BNNSBatchNorm || type == BNNSInstanceNorm || type == BNNSLayerNorm || type == BNNSGroupNorm;
}

FusedFirst make_first(BNNSFilterType type, const void* layer) {
  FusedFirst first;
  switch (type) {
    case BNNSConvolution:
    case BNNSTransposedConvolution:
      first.convolution = make_convolution_problem(static_cast<const BNNSLayerParametersConvolution*>(layer),
                                                   type == BNNSTransposedConvolution);
      return first;
    case BNNSFullyConnected:
      first.fully_connected =
          make_fully_connected_problem(static_cast<const BNNSLayerParametersFullyConnected*>(layer));
      return first;
    case BNNSArithmetic:
      first.arithmetic = make_arithmetic_problem(static_cast<const BNNSLayerParametersArithmetic*>(layer));
      return first;
    default:
      fail_invalid(
          "%s: filter_type[0] is %s, expected BNNSConvolution, BNNSTransposedConvolution, BNNSFullyConnected or "
          "BNNSArithmetic",
          kOp, enum_text(type).text);
  }
}

// Size, stride and type of the middle tensor as both stages see it.
void check_middle(const Tensor& out, const Tensor& in) {
  if (out.layout != in.layout) {
    fail_invalid("%s: the first stage gives layout %s, but the second takes layout %s", kOp, enum_text(out.layout).text,
                 enum_text(in.layout).text);
  }
  if (out.type != in.type) {
    fail_invalid("%s: the first stage gives %s, but the second takes %s", kOp, type_name(out.type), type_name(in.type));
  }
  for (size_t k = 0; k < out.rank; ++k) {
    if (out.size[k] != in.size[k]) {
      fail_invalid(
          "%s: size[%zu] of the first stage's output is %zu, of the second stage's input %zu; expected the same", kOp,
          k, out.size[k], in.size[k]);
    }
    if (out.stride[k] != in.stride[k]) {
      fail_invalid(
          "%s: axis %zu of the first stage's output has stride %zu, of the second stage's input %zu; expected "
          "the same",
          kOp, k, out.stride[k], in.stride[k]);
    }
  }
}

// The same tensor, f32 and dense.
void make_dense(Tensor& t) {
  t.type = BNNSDataTypeFloat32;
  t.scale = 1, t.bias = 0;
  size_t stride = 1;
  for (size_t j = 0; j < t.rank; ++j) {
    t.stride[t.axis[j]] = stride;
    stride *= t.size[t.axis[j]];
  }
  t.span = t.count, t.dense = true;
}

}  // namespace

const Tensor& FusedFirst::out() const {
  return convolution ? convolution->y : fully_connected ? fully_connected->y : arithmetic->out;
}

bool FusedFirst::has_activation() const {
  return !(convolution       ? convolution->activation
           : fully_connected ? fully_connected->activation
                             : arithmetic->activation)
              .is_identity();
}

FusedProblem make_fused_problem(size_t count, const BNNSFilterType* types, const void* const* layers) {
  if (!types || !layers)
    fail_invalid("%s: %s is NULL, expected two entries", kOp, types ? "layer_params" : "filter_type");
  if (count != 2) fail_invalid("%s: number_of_fused_filters is %zu, expected 2", kOp, count);
  if (!layers[0] || !layers[1])
    fail_invalid("%s: layer_params[%d] is NULL, expected the parameters of its layer", kOp, layers[0] ? 1 : 0);
  FusedProblem p;
  p.first = make_first(types[0], layers[0]);
  const bool quantizes = types[1] == BNNSQuantization && !p.first.arithmetic;
  if (!is_normalization(types[1]) && !quantizes) {
    fail_invalid("%s: filter_type[1] is %s, expected BNNSBatchNorm, BNNSInstanceNorm, BNNSLayerNorm or BNNSGroupNorm%s",
                 kOp, enum_text(types[1]).text, p.first.arithmetic ? "" : ", or BNNSQuantization");
  }
  if ((p.first.convolution && p.first.convolution->integer) ||
      (p.first.fully_connected && p.first.fully_connected->integer)) {
    fail_unsupported("%s: the first stage saturates integers; the second stage takes floats", kOp);
  }
  if (quantizes) {
    p.quantization = make_quantization_problem(static_cast<const BNNSLayerParametersQuantization*>(layers[1]));
  } else {
    p.normalization =
        make_normalization_problem(types[1], static_cast<const BNNSLayerParametersNormalization*>(layers[1]));
  }
  check_middle(p.first.out(), quantizes ? p.quantization->x : p.normalization->x);
  make_dense(const_cast<Tensor&>(p.first.out()));
  return p;
}

FusedFilter::FusedFilter(const Options& options, const FusedProblem& problem)
    : Filter(kKind, options), shape_(problem.first), scratch_(options) {
  if (shape_.convolution) convolution_.emplace(options, *shape_.convolution);
  if (shape_.fully_connected) fully_connected_.emplace(options, *shape_.fully_connected);
  if (shape_.arithmetic) arithmetic_.emplace(options, *shape_.arithmetic);
  if (problem.normalization) normalization_.emplace(*problem.normalization, options);
  if (problem.quantization) {
    quantization_.emplace(Quantization{*problem.quantization, QuantizationParameters(*problem.quantization, options)});
  }
}

const char* FusedFilter::implementation(BNNSExtPass pass, size_t batch) const {
  if (convolution_ && pass == BNNSExtPassForward) {  // handing blocks over leaves some algorithms out
    const SinkParts parts = convolution_->sink_parts(std::max<size_t>(batch, 1));
    if (parts.pixels != 0) return parts.implementation;
  }
  return convolution_       ? convolution_->implementation(pass, batch)
         : fully_connected_ ? fully_connected_->implementation(pass, batch)
                            : arithmetic_->implementation(pass, batch);
}

std::string FusedFilter::text() const {
  const std::string first = convolution_       ? convolution_->text()
                            : fully_connected_ ? fully_connected_->text()
                                               : arithmetic_->text();
  return "fused " + first + " + " + (normalization_ ? normalization_->problem.text() : quantization_->problem.text());
}

}  // namespace bnns
