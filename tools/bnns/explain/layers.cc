#include "tools/bnns/explain/layers.h"

#include <cstring>

#include "tools/bnns/data/idx.h"
#include "tools/bnns/explain/examples.h"

namespace bnns::tool {
namespace {

constexpr char kPath[] = "parameters";

// As a program begins: memset to 0.
template <class T>
T zeroed() {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memset(&value, 0, sizeof value);
  return value;
}

// What convolution and pooling share.
template <class P>
void add_windows(Fields& fields, P& p) {
  fields.add("x_stride", p.x_stride).add("y_stride", p.y_stride).add("x_padding", p.x_padding);
  fields.add("y_padding", p.y_padding).add("pad", p.pad, std::size(p.pad));
  fields.add("x_dilation_stride", p.x_dilation_stride).add("y_dilation_stride", p.y_dilation_stride);
}

template <auto Create>
BNNSFilter convolution(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  auto p = zeroed<BNNSLayerParametersConvolution>();
  Fields fields(zeros);
  fields.add("i_desc", p.i_desc).add("w_desc", p.w_desc).add("o_desc", p.o_desc).add("bias", p.bias);
  fields.add("activation", p.activation).add("groups", p.groups);
  add_windows(fields, p);
  fields.read(json, kPath);
  return Create(&p, &options);
}

BNNSFilter fully_connected(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  auto p = zeroed<BNNSLayerParametersFullyConnected>();
  Fields fields(zeros);
  fields.add("i_desc", p.i_desc).add("w_desc", p.w_desc).add("o_desc", p.o_desc).add("bias", p.bias);
  fields.add("activation", p.activation);
  fields.read(json, kPath);
  return BNNSFilterCreateLayerFullyConnected(&p, &options);
}

BNNSFilter pooling(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  auto p = zeroed<BNNSLayerParametersPooling>();
  Fields fields(zeros);
  fields.add("i_desc", p.i_desc).add("o_desc", p.o_desc).add("bias", p.bias).add("activation", p.activation);
  fields.add("pooling_function", p.pooling_function, "BNNSPoolingFunction");
  fields.add("k_width", p.k_width).add("k_height", p.k_height);
  add_windows(fields, p);
  fields.read(json, kPath);
  return BNNSFilterCreateLayerPooling(&p, &options);
}

BNNSFilter activation(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  auto p = zeroed<BNNSLayerParametersActivation>();
  Fields fields(zeros);
  fields.add("i_desc", p.i_desc).add("o_desc", p.o_desc).add("activation", p.activation);
  fields.add("axis_flags", p.axis_flags);
  fields.read(json, kPath);
  return BNNSFilterCreateLayerActivation(&p, &options);
}

BNNSFilter normalization(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  auto p = zeroed<BNNSLayerParametersNormalization>();
  BNNSFilterType type = BNNSBatchNorm;
  Fields fields(zeros);
  fields.add("normType", type, "BNNSFilterType").add("i_desc", p.i_desc).add("o_desc", p.o_desc);
  fields.add("beta_desc", p.beta_desc).add("gamma_desc", p.gamma_desc).add("moving_mean_desc", p.moving_mean_desc);
  fields.add("moving_variance_desc", p.moving_variance_desc).add("momentum", p.momentum).add("epsilon", p.epsilon);
  fields.add("activation", p.activation).add("num_groups", p.num_groups);
  fields.add("normalization_axis", p.normalization_axis);
  fields.read(json, kPath);
  return BNNSFilterCreateLayerNormalization(type, &p, &options);
}

// The structures of the losses differ in their last member, and all begin like the base.
BNNSFilter loss(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  union {
    BNNSLayerParametersLossBase base;
    BNNSLayerParametersLossSoftmaxCrossEntropy softmax;
    BNNSLayerParametersLossSigmoidCrossEntropy sigmoid;
    BNNSLayerParametersLossHuber huber;
  } p;
  std::memset(&p, 0, sizeof p);
  float label_smooth = 0, huber_delta = 0;
  Fields fields(zeros);
  fields.add("function", p.base.function, "BNNSLossFunction").add("i_desc", p.base.i_desc).add("o_desc", p.base.o_desc);
  fields.add("reduction", p.base.reduction, "BNNSLossReductionFunction");
  fields.add("label_smooth", label_smooth).add("huber_delta", huber_delta);
  fields.read(json, kPath);
  if (p.base.function == BNNSLossFunctionYolo) throw DataError("parameters.function: Yolo is not explained");
  if (p.base.function == BNNSLossFunctionHuber) {
    p.huber.huber_delta = huber_delta;
  } else if (p.base.function == BNNSLossFunctionSoftmaxCrossEntropy) {
    p.softmax.label_smooth = label_smooth;
  } else if (p.base.function == BNNSLossFunctionSigmoidCrossEntropy) {
    p.sigmoid.label_smooth = label_smooth;
  }
  return BNNSFilterCreateLayerLoss(&p, &options);
}

// in3 means a function of three operands, in one of one.
BNNSFilter arithmetic(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  auto p = zeroed<BNNSLayerParametersArithmetic>();
  auto one = zeroed<BNNSArithmeticUnary>();
  auto three = zeroed<BNNSArithmeticTernary>();
  Fields fields(zeros);
  constexpr char kType[] = "BNNSDescriptorType";
  fields.add("arithmetic_function", p.arithmetic_function, "BNNSArithmeticFunction").add("activation", p.activation);
  fields.add("in", one.in).add("in_type", one.in_type, kType);
  fields.add("in1", three.in1).add("in1_type", three.in1_type, kType);
  fields.add("in2", three.in2).add("in2_type", three.in2_type, kType);
  fields.add("in3", three.in3).add("in3_type", three.in3_type, kType);
  fields.add("out", three.out).add("out_type", three.out_type, kType);
  fields.read(json, kPath);
  one.out = three.out, one.out_type = three.out_type;
  auto two = zeroed<BNNSArithmeticBinary>();
  two.in1 = three.in1, two.in1_type = three.in1_type, two.in2 = three.in2, two.in2_type = three.in2_type;
  two.out = three.out, two.out_type = three.out_type;
  if (json.contains("in") && json.contains("in1")) throw DataError("parameters: in excludes in1");
  p.arithmetic_function_fields = json.contains("in")    ? static_cast<void*>(&one)
                                 : json.contains("in3") ? static_cast<void*>(&three)
                                                        : static_cast<void*>(&two);
  return BNNSFilterCreateLayerArithmetic(&p, &options);
}

BNNSFilter permute(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  auto p = zeroed<BNNSLayerParametersPermute>();
  Fields fields(zeros);
  fields.add("i_desc", p.i_desc).add("o_desc", p.o_desc).add("permutation", p.permutation, std::size(p.permutation));
  fields.read(json, kPath);
  return BNNSFilterCreateLayerPermute(&p, &options);
}

BNNSLayerParametersBroadcastMatMul matmul_parameters(const Json& json, Zeros& zeros) {
  auto p = zeroed<BNNSLayerParametersBroadcastMatMul>();
  Fields fields(zeros);
  fields.add("alpha", p.alpha).add("beta", p.beta).add("transA", p.transA).add("transB", p.transB);
  fields.add("quadratic", p.quadratic).add("a_is_weights", p.a_is_weights).add("b_is_weights", p.b_is_weights);
  fields.add("iA_desc", p.iA_desc).add("iB_desc", p.iB_desc).add("o_desc", p.o_desc);
  fields.read(json, kPath);
  return p;
}

BNNSFilter matmul(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  const auto p = matmul_parameters(json, zeros);
  return BNNSFilterCreateLayerBroadcastMatMul(&p, &options);
}

ssize_t matmul_workspace(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  const auto p = matmul_parameters(json, zeros);
  return BNNSMatMulWorkspaceSize(p.transA, p.transB, p.alpha, &p.iA_desc, p.quadratic ? &p.iA_desc : &p.iB_desc,
                                 &p.o_desc, &options);
}

BNNSFilter reduction(const Json& json, Zeros& zeros, const BNNSFilterParameters& options) {
  auto p = zeroed<BNNSLayerParametersReduction>();
  Fields fields(zeros);
  fields.add("i_desc", p.i_desc).add("o_desc", p.o_desc).add("w_desc", p.w_desc).add("epsilon", p.epsilon);
  fields.add("reduce_func", p.reduce_func, "BNNSReduceFunction");
  fields.read(json, kPath);
  return BNNSFilterCreateLayerReduction(&p, &options);
}

}  // namespace

const std::vector<Layer>& layers() {
  static const std::vector<BNNSExtPass> two = {BNNSExtPassForward, BNNSExtPassInputGradient},
                                        three = {BNNSExtPassForward, BNNSExtPassInputGradient,
                                                 BNNSExtPassWeightsGradient};
  static const std::vector<Layer> all = {
      {"convolution", three, convolution<BNNSFilterCreateLayerConvolution>, nullptr, examples::kConvolution},
      {"transposed_convolution", three, convolution<BNNSFilterCreateLayerTransposedConvolution>, nullptr,
       examples::kTransposedConvolution},
      {"fully_connected", three, fully_connected, nullptr, examples::kFullyConnected},
      {"pooling", two, pooling, nullptr, examples::kPooling},
      {"activation", two, activation, nullptr, examples::kActivation},
      {"normalization", two, normalization, nullptr, examples::kNormalization},
      {"loss", two, loss, nullptr, examples::kLoss},
      {"arithmetic", two, arithmetic, nullptr, examples::kArithmetic},
      {"permute", two, permute, nullptr, examples::kPermute},
      {"matmul", two, matmul, matmul_workspace, examples::kMatMul},
      {"reduction", two, reduction, nullptr, examples::kReduction},
  };
  return all;
}

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const Layer& each : layers()) names.push_back(each.name);
  return names;
}

}  // namespace bnns::tool
