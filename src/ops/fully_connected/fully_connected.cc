// The checks of a fully connected layer, its text, and the algorithm of each pass.

#include "src/ops/fully_connected/fully_connected.h"

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "fully_connected";

// The size axis of W that runs over outputs; the other one runs over inputs.
size_t output_axis(const Tensor& w) {
  switch (w.layout) {
    case BNNSDataLayoutRowMajorMatrix:
      return 1;                            // size = {in, out}
    case BNNSDataLayoutColumnMajorMatrix:  // size = {out, in}
    case BNNSDataLayout2DFirstMajor:
    case BNNSDataLayout2DLastMajor:
      return 0;
    default:
      fail_invalid(
          "%s: w_desc.layout is %s, expected BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutColumnMajorMatrix, "
          "BNNSDataLayout2DFirstMajor or BNNSDataLayout2DLastMajor",
          kOp, enum_text(w.layout).text);
  }
}

}  // namespace

FullyConnectedProblem make_fully_connected_problem(const BNNSLayerParametersFullyConnected* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersFullyConnected", kOp);
  FullyConnectedProblem p;
  p.x = resolve(layer->i_desc, kOp, "i_desc");
  p.y = resolve(layer->o_desc, kOp, "o_desc");
  check_distinct(p.y, kOp, "o_desc");
  p.w = resolve_with_data(layer->w_desc, kOp, "w_desc");
  p.inputs = p.x.count;
  p.outputs = p.y.count;
  const size_t o = output_axis(p.w), i = 1 - o;
  if (p.w.size[o] != p.outputs) {
    fail_invalid("%s: w_desc.size[%zu] is %zu, expected %zu = elements of o_desc", kOp, o, p.w.size[o], p.outputs);
  }
  if (p.w.size[i] != p.inputs) {
    fail_invalid("%s: w_desc.size[%zu] is %zu, expected %zu = elements of i_desc", kOp, i, p.w.size[i], p.inputs);
  }
  p.output_axis = o;
  if (!is_absent(layer->bias)) {
    p.b = resolve_with_data(layer->bias, kOp, "bias");
    if (p.b.count != p.outputs) {
      fail_invalid("%s: bias has %zu elements, expected %zu = elements of o_desc", kOp, p.b.count, p.outputs);
    }
  }
  for (const Tensor* t : {&p.x, &p.y}) {
    if (is_indexed(t->type) || type_bytes(t->type) == 0) {
      fail_unsupported("%s: %s has type %s; inputs and outputs are floats or whole-byte integers", kOp,
                       t == &p.x ? "i_desc" : "o_desc", type_name(t->type));
    }
  }
  if (is_integer_saturation(layer->activation.function)) {
    p.integer = true;
    p.saturation = make_integer_saturation(layer->activation, {&p.x, &p.w, &p.y}, p.b, kOp);
  } else {
    p.activation = make_fused_activation(layer->activation, kOp);
  }
  return p;
}

const char* FullyConnectedFilter::implementation(BNNSExtPass pass, size_t batch) const {
  const FullyConnectedProblem& p = problem_;
  if (p.integer) return filter_kind_name(kKind);
  MatrixOperand x(p.x, nullptr, batch, p.x.sample_stride());
  const MatrixOperand dy(p.y, nullptr, batch, p.y.sample_stride());
  const bool forward = pass == BNNSExtPassForward;
  const MatrixOperand w = forward ? weight_operand(batch) : MatrixOperand(weights_.tensor(), p.output_axis);
  if (forward) x.multiply_by(w.factor());
  // g is dY where there is no activation, else dense f32.
  const Lens g = p.activation.is_identity()
                     ? dy.shape()
                     : strided_lens(nullptr, FloatType::f32, static_cast<ptrdiff_t>(p.outputs), 1);
  switch (pass) {
    case BNNSExtPassForward:
      return gemm_implementation({batch, p.outputs, p.inputs}, x.shape(), w.shape(),
                                 MatrixResult(p.y, nullptr, batch, p.y.sample_stride()).output());
    case BNNSExtPassInputGradient:
      return gemm_implementation({batch, p.inputs, p.outputs}, g, transposed(w.shape()),
                                 MatrixResult(p.x, nullptr, batch, p.x.sample_stride()).output());
    case BNNSExtPassWeightsGradient:
      break;
  }
  return gemm_implementation({p.outputs, p.inputs, batch}, transposed(g), transposed(x.shape()),
                             MatrixResult(p.w, p.output_axis).output());
}

std::string FullyConnectedProblem::text() const {
  std::string result = std::string(kOp) + " " + type_name(x.type);
  if (w.type != x.type) result += std::string(" w:") + type_name(w.type);
  result += " i" + std::to_string(inputs) + " o" + std::to_string(outputs);
  if (!has_bias()) result += " nobias";
  if (integer) return result + " integer_saturate";
  return activation.is_identity() ? result : result + " " + activation_name(activation.function);
}

FullyConnectedFilter::FullyConnectedFilter(const Options& options, const FullyConnectedProblem& problem)
    : Filter(kKind, options),
      problem_(problem),
      weights_(problem.w, options, "the weights"),
      bias_(problem.has_bias() ? Parameter(problem.b, options, "the bias") : Parameter()),
      scratch_(options) {}

}  // namespace bnns
