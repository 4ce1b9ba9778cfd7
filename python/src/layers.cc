// The constructors of layers: keyword arguments of Python's classes to the C parameter structures.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "python/src/filters.h"

namespace openbnns {

namespace {

using Handle = nb::handle;
using Two = std::array<std::size_t, 2>;
using Four = std::array<std::size_t, 4>;
constexpr bool kNeeded = false, kOptional = true, kRead = false, kWritten = true;

void convolution(Unary& f, Handle x, Handle w, Handle y, Handle b, Two stride, Two dilation, Four pad,
                 std::size_t groups, const BNNSActivation& act, const Options& o, bool transposed) {
  const char* where = transposed ? "TransposedConvolutionLayer" : "ConvolutionLayer";
  BNNSLayerParametersConvolution p{};
  p.i_desc = f.argument(x, Role::image, f.input[0], kNeeded, kRead, where, "input");
  p.w_desc = f.argument(w, Role::kernel, f.parameter[0], kNeeded, kRead, where, "weights");
  p.o_desc = f.argument(y, Role::image, f.output, kNeeded, kRead, where, "output");
  p.bias = f.argument(b, Role::vector, f.parameter[1], kOptional, kRead, where, "bias");
  p.activation = act;
  p.x_stride = stride[0], p.y_stride = stride[1], p.x_dilation_stride = dilation[0], p.y_dilation_stride = dilation[1];
  p.groups = groups;
  for (std::size_t k = 0; k < 4; ++k) p.pad[k] = pad[k];
  const BNNSFilterParameters options = o.c();
  f.own(transposed ? BNNSFilterCreateLayerTransposedConvolution(&p, &options)
                   : BNNSFilterCreateLayerConvolution(&p, &options),
        where);
}

void fully_connected(Unary& f, Handle x, Handle y, Handle w, Handle b, const BNNSActivation& act, const Options& o) {
  constexpr auto where = "FullyConnectedLayer";
  BNNSLayerParametersFullyConnected p{};
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  p.w_desc = f.argument(w, Role::matrix, f.parameter[0], kNeeded, kRead, where, "weights");
  p.bias = f.argument(b, Role::vector, f.parameter[1], kOptional, kRead, where, "bias");
  p.activation = act;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerFullyConnected(&p, &options), where);
}

void pooling(Pooling& f, std::uint32_t function, Handle x, Handle y, Handle b, const BNNSActivation& act, Two kernel,
             Two stride, Two dilation, Four pad, const Options& o) {
  constexpr auto where = "PoolingLayer";
  BNNSLayerParametersPooling p{};
  p.i_desc = f.argument(x, Role::image, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::image, f.output, kNeeded, kRead, where, "output");
  p.bias = f.argument(b, Role::vector, f.parameter[1], kOptional, kRead, where, "bias");
  p.activation = act, p.pooling_function = static_cast<BNNSPoolingFunction>(function);
  p.k_width = kernel[0], p.k_height = kernel[1], p.x_stride = stride[0], p.y_stride = stride[1];
  p.x_dilation_stride = dilation[0], p.y_dilation_stride = dilation[1];
  for (std::size_t k = 0; k < 4; ++k) p.pad[k] = pad[k];
  f.shared[0] = p.pooling_function == BNNSPoolingFunctionUnMax;  // indices are read, one for each input
  f.parameter[2] = f.shared[0] ? f.input[0] : f.output;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerPooling(&p, &options), where);
}

void activation(Unary& f, const BNNSActivation& act, Handle x, Handle y, std::uint32_t axes, const Options& o) {
  constexpr auto where = "ActivationLayer";
  BNNSLayerParametersActivation p{};
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  p.activation = act, p.axis_flags = axes;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerActivation(&p, &options), where);
  // The gradient of alpha: one number, or one for each channel.
  Desc alpha = BNNSGetPointer(f.filter, BNNSPointerSpecifierAlpha);
  if (alpha.data) {
    Array form;
    form.rank = 1, form.shape[0] = form.count = alpha.size[0], form.stride[0] = 1, form.type = alpha.data_type;
    f.parameter[0] = Expected(alpha, form);
  } else {
    BNNSExtClearLastError();
  }
}

void normalization(Normalization& f, std::uint32_t kind, Handle x, Handle y, Handle beta, Handle gamma, Handle mean,
                   Handle variance, float momentum, float epsilon, const BNNSActivation& act, std::size_t groups,
                   std::size_t axis, const Options& o) {
  constexpr auto where = "NormalizationLayer";
  BNNSLayerParametersNormalization p{};
  Expected moving[2];
  p.i_desc = f.argument(x, Role::image, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::image, f.output, kNeeded, kRead, where, "output");
  p.beta_desc = f.argument(beta, Role::vector, f.parameter[0], kOptional, kRead, where, "beta");
  p.gamma_desc = f.argument(gamma, Role::vector, f.parameter[1], kOptional, kRead, where, "gamma");
  p.moving_mean_desc = f.argument(mean, Role::vector, moving[0], kOptional, kWritten, where, "moving_mean");
  p.moving_variance_desc = f.argument(variance, Role::vector, moving[1], kOptional, kWritten, where, "moving_variance");
  p.momentum = momentum, p.epsilon = epsilon, p.activation = act;
  p.num_groups = groups, p.normalization_axis = axis;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerNormalization(static_cast<BNNSFilterType>(kind), &p, &options), where);
}

void dropout(Unary& f, Handle x, Handle y, float rate, std::uint32_t seed, std::uint8_t control, const Options& o) {
  constexpr auto where = "DropoutLayer";
  BNNSLayerParametersDropout p{};
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  p.rate = rate, p.seed = seed, p.control = control;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerDropout(&p, &options), where);
}

void padding(Unary& f, Handle x, Handle y, const std::vector<Two>& size, std::uint32_t mode, std::uint32_t value,
             const Options& o) {
  constexpr auto where = "PaddingLayer";
  BNNSLayerParametersPadding p{};
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  if (size.size() > 8) refuse(where, "size has " + std::to_string(size.size()) + " axes, expected at most 8");
  for (std::size_t k = 0; k < size.size(); ++k) p.padding_size[k][0] = size[k][0], p.padding_size[k][1] = size[k][1];
  p.padding_mode = static_cast<BNNSPaddingMode>(mode), p.padding_value = value;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerPadding(&p, &options), where);
}

void permute(Permute& f, Handle x, Handle y, const std::vector<std::size_t>& permutation, const Options& o) {
  constexpr auto where = "PermuteLayer";
  BNNSLayerParametersPermute p{};
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  if (permutation.size() > 8) refuse(where, "permutation has more than 8 axes");
  for (std::size_t k = 0; k < permutation.size(); ++k) p.permutation[k] = permutation[k];
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerPermute(&p, &options), where);
}

void reduction(Unary& f, std::uint32_t function, Handle x, Handle y, Handle w, float epsilon, const Options& o) {
  constexpr auto where = "ReductionLayer";
  BNNSLayerParametersReduction p{};
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  p.w_desc = f.argument(w, Role::generic, f.parameter[0], kOptional, kRead, where, "weights");
  p.reduce_func = static_cast<BNNSReduceFunction>(function), p.epsilon = epsilon;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerReduction(&p, &options), where);
}

void resize(Unary& f, std::uint32_t method, Handle x, Handle y, bool align, const Options& o) {
  constexpr auto where = "ResizeLayer";
  BNNSLayerParametersResize p{};
  p.method = static_cast<BNNSInterpolationMethod>(method), p.align_corners = align;
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerResize(&p, &options), where);
}

void gram(Unary& f, Handle x, Handle y, float alpha, const Options& o) {
  constexpr auto where = "GramLayer";
  BNNSLayerParametersGram p{};
  p.alpha = alpha;
  p.i_desc = f.argument(x, Role::image, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::matrix, f.output, kNeeded, kRead, where, "output");
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerGram(&p, &options), where);
}

void embedding(Unary& f, Handle x, Handle y, Handle table, std::size_t padding_index, float max_norm, float norm_type,
               bool by_frequency, const Options& o) {
  constexpr auto where = "EmbeddingLayer";
  BNNSLayerParametersEmbedding p{};
  p.i_desc = f.argument(x, Role::generic, f.input[0], kNeeded, kRead, where, "input");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  p.dictionary = f.argument(table, Role::generic, f.parameter[0], kNeeded, kRead, where, "dictionary");
  p.padding_idx = padding_index, p.max_norm = max_norm, p.norm_type = norm_type;
  if (by_frequency) p.flags = BNNSEmbeddingFlagScaleGradientByFrequency;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerEmbedding(&p, &options), where);
}

void matrix_product(Binary& f, Handle a, Handle b, Handle y, bool at, bool bt, bool a_weights, bool b_weights,
                    float alpha, bool accumulates, bool quadratic, const Options& o) {
  constexpr auto where = "BroadcastMatrixMultiplyLayer";
  BNNSLayerParametersBroadcastMatMul p{};
  p.iA_desc = f.argument(a, Role::generic, f.input[0], kNeeded, kRead, where, "input_a");
  p.iB_desc = f.argument(b, Role::generic, f.input[1], quadratic, kRead, where, "input_b");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  p.transA = at, p.transB = bt, p.a_is_weights = a_weights, p.b_is_weights = b_weights, p.quadratic = quadratic;
  p.alpha = alpha, p.beta = accumulates ? 1.0f : 0.0f;
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerBroadcastMatMul(&p, &options), where);
  if (a_weights) f.parameter[0] = f.input[0], f.input[0] = f.input[1];  // the call with one input brings the other
  if (b_weights) f.parameter[0] = f.input[1];
}

void contraction(Binary& f, const std::string& operation, Handle a, Handle b, Handle y, float alpha, bool accumulates,
                 const Options& o) {
  constexpr auto where = "TensorContractionLayer";
  BNNSLayerParametersTensorContraction p{};
  p.operation = operation.c_str(), p.alpha = alpha, p.beta = accumulates ? 1.0f : 0.0f;
  p.iA_desc = f.argument(a, Role::generic, f.input[0], kNeeded, kRead, where, "input_a");
  p.iB_desc = f.argument(b, Role::generic, f.input[1], kOptional, kRead, where, "input_b");
  p.o_desc = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerTensorContraction(&p, &options), where);
}

void arithmetic(Arithmetic& f, std::uint32_t function, const std::vector<nb::object>& x,
                const std::vector<std::uint32_t>& roles, Handle y, std::uint32_t y_role, const BNNSActivation& act,
                const Options& o) {
  constexpr auto where = "ArithmeticLayer";
  if (x.empty() || x.size() > 3 || roles.size() != x.size()) refuse(where, "expected 1 to 3 inputs with a role each");
  Desc in[3]{};
  BNNSDescriptorType role[3]{};
  constexpr const char* names[] = {"input_a", "input_b", "input_c"};
  for (std::size_t i = 0; i < x.size(); ++i) {
    in[i] = f.argument(x[i], Role::generic, f.input[i], kNeeded, kRead, where, names[i]);
    role[i] = static_cast<BNNSDescriptorType>(roles[i]);
    f.shared[i] = role[i] != BNNSSample;
  }
  const Desc out = f.argument(y, Role::generic, f.output, kNeeded, kRead, where, "output");
  const BNNSDescriptorType out_role = static_cast<BNNSDescriptorType>(y_role);
  f.inputs = x.size();
  BNNSArithmeticUnary one{in[0], role[0], out, out_role};
  BNNSArithmeticBinary two{in[0], role[0], in[1], role[1], out, out_role};
  BNNSArithmeticTernary three{in[0], role[0], in[1], role[1], in[2], role[2], out, out_role};
  BNNSLayerParametersArithmetic p{};
  p.arithmetic_function = static_cast<BNNSArithmeticFunction>(function), p.activation = act;
  void* fields[] = {&one, &two, &three};
  p.arithmetic_function_fields = fields[x.size() - 1];
  const BNNSFilterParameters options = o.c();
  f.own(BNNSFilterCreateLayerArithmetic(&p, &options), where);
}

}  // namespace

void bind_layers(nb::module_& m) {
  m.def("make_convolution", &convolution, nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
        nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
#define OPENBNNS_MAKE(name) m.def("make_" #name, &name)
  const auto n = [] { return nb::arg().none(); };
  const auto a = [] { return nb::arg(); };
  m.def("make_fully_connected", &fully_connected, a(), a(), a(), a(), n(), a(), a());
  m.def("make_pooling", &pooling, a(), a(), a(), a(), n(), a(), a(), a(), a(), a(), a());
  m.def("make_normalization", &normalization, a(), a(), a(), a(), n(), n(), n(), n(), a(), a(), a(), a(), a(), a());
  m.def("make_reduction", &reduction, a(), a(), a(), a(), n(), a(), a());
  m.def("make_matrix_product", &matrix_product, a(), a(), n(), a(), a(), a(), a(), a(), a(), a(), a(), a());
  m.def("make_contraction", &contraction, a(), a(), a(), n(), a(), a(), a(), a());
  OPENBNNS_MAKE(activation);
  OPENBNNS_MAKE(dropout);
  OPENBNNS_MAKE(padding);
  OPENBNNS_MAKE(permute);
  OPENBNNS_MAKE(resize);
  OPENBNNS_MAKE(gram);
  OPENBNNS_MAKE(embedding);
  OPENBNNS_MAKE(arithmetic);
#undef OPENBNNS_MAKE
}

}  // namespace openbnns
