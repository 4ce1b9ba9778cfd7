// Fused layers of one, two and three inputs, each with the C filter it must equal.
#pragma once

#include <functional>

#include "tests/overlay/overlay_testing.h"

namespace overlay {

inline constexpr auto kSample = DescriptorType::sample;
inline constexpr auto kParameter = DescriptorType::parameter;

inline BNNSFilterParameters client() {
  return useClientPointer;
}

// A FusedParametersLayer of one to three inputs, its C twin, and everything both read and write.
struct Case {
  std::vector<Shape> inputs;
  Shape out;
  std::vector<Shape> parameters;  // of the slots
  std::function<std::vector<FusableLayerParameters>(std::vector<NDArray>&)> stages;
  std::function<BNNSFilter(std::vector<NDArray>&)> filter;
  std::vector<std::size_t> batch;  // of each input: kBatch, or 1 for a parameter
  float low = -1, high = 1;
};

struct Fixture {
  explicit Fixture(const Case& c) : k(c), y(output(c.out)), dy(data(c.out, 90)) {
    for (std::size_t i = 0; i < k.inputs.size(); ++i) {
      x.push_back(data(k.inputs[i], 10 + static_cast<unsigned>(i), k.batch[i], k.low, k.high));
      dx.push_back(output(k.inputs[i], k.batch[i]));
    }
    for (std::size_t i = 0; i < k.parameters.size(); ++i) {
      w.push_back(data(k.parameters[i], 20 + static_cast<unsigned>(i), 1, 0.2f, 1.0f));
      dw.push_back(output(k.parameters[i], 1));
      slots.push_back(dw.back());
    }
  }
  FusedParametersLayer make_layer() {
    const std::vector<FusableLayerParameters> stages = k.stages(w);
    const Desc o = descriptor(k.out);
    std::vector<Desc> i;
    for (const Shape& s : k.inputs) i.push_back(descriptor(s));
    if (i.size() == 1) return FusedParametersLayer(i[0], o, stages, useClientPointer);
    if (i.size() == 2) return FusedParametersLayer(i[0], i[1], o, stages, useClientPointer);
    return FusedParametersLayer(i[0], i[1], i[2], o, stages, useClientPointer);
  }
  void forward(FusedParametersLayer& layer, LearningPhase phase = LearningPhase::training) {
    if (x.size() == 1) layer.apply(kBatch, x[0], y, phase);
    if (x.size() == 2) layer.apply(kBatch, x[0], x[1], y, phase);
    if (x.size() == 3) layer.apply(kBatch, x[0], x[1], x[2], y, phase);
  }
  void backward(FusedParametersLayer& layer) {
    if (x.size() == 1) layer.applyBackward(kBatch, x[0], y, dy, dx[0], slots);
    if (x.size() == 2) layer.applyBackward(kBatch, x[0], x[1], y, dy, dx[0], dx[1], slots);
    if (x.size() == 3) layer.applyBackward(kBatch, x[0], x[1], x[2], y, dy, dx[0], dx[1], dx[2], slots);
  }

  const Case& k;
  std::vector<NDArray> x, dx, w, dw;
  NDArray y, dy;
  std::vector<Desc> slots;
};

inline BNNSLayerParametersNormalization c_norm(const Shape& out, const NDArray& beta, const NDArray& gamma) {
  BNNSLayerParametersNormalization n{};
  n.i_desc = n.o_desc = descriptor(out), n.beta_desc = beta, n.gamma_desc = gamma;
  n.epsilon = 1e-2f, n.activation.function = BNNSActivationFunctionTanh;
  return n;
}
inline FusedNormalizationParameters norm(const NormalizationType& type, const NDArray& beta, const NDArray& gamma) {
  return {.type = type, .beta = beta, .gamma = gamma, .epsilon = 1e-2f, .activation = ActivationFunction::tanh()};
}

inline const Shape kImage = Shape::imageCHW(4, 3, 2);

inline std::vector<std::pair<const char*, Case>> cases() {
  std::vector<std::pair<const char*, Case>> all;
  all.push_back({"one input: convolution, batch normalization",
                 {{Shape::imageCHW(6, 5, 2)},
                  kImage,
                  {Shape::convolutionWeightsOIHW(3, 3, 2, 2), {2}, {2}, {2}},
                  [](std::vector<NDArray>& w) {
                    return std::vector<FusableLayerParameters>{
                        FusedConvolutionParameters{.weights = w[0], .bias = w[1]},
                        norm(NormalizationType::batch({}, {}), w[2], w[3])};
                  },
                  [](std::vector<NDArray>& w) {
                    BNNSLayerParametersConvolution c{};
                    c.i_desc = descriptor(Shape::imageCHW(6, 5, 2)), c.w_desc = w[0], c.bias = w[1];
                    c.o_desc = descriptor(kImage);
                    const auto n = c_norm(kImage, w[2], w[3]);
                    const BNNSFilterType types[] = {BNNSConvolution, BNNSBatchNorm};
                    const void* layers[] = {&c, &n};
                    const BNNSFilterParameters o = client();
                    return BNNSFilterCreateFusedLayer(2, types, layers, &o);
                  },
                  {kBatch}}});
  all.push_back({"one input: fully connected, layer normalization",
                 {{{7}},
                  {6},
                  {Shape::matrixRowMajor(7, 6), {6}, {6}, {6}},
                  [](std::vector<NDArray>& w) {
                    return std::vector<FusableLayerParameters>{
                        FusedFullyConnectedParameters{.weights = w[0], .bias = w[1]},
                        norm(NormalizationType::layer(0), w[2], w[3])};
                  },
                  [](std::vector<NDArray>& w) {
                    BNNSLayerParametersFullyConnected c{};
                    c.i_desc = descriptor({7}), c.o_desc = descriptor({6}), c.w_desc = w[0], c.bias = w[1];
                    const auto n = c_norm({6}, w[2], w[3]);
                    const BNNSFilterType types[] = {BNNSFullyConnected, BNNSLayerNorm};
                    const void* layers[] = {&c, &n};
                    const BNNSFilterParameters o = client();
                    return BNNSFilterCreateFusedLayer(2, types, layers, &o);
                  },
                  {kBatch}}});
  all.push_back({"one input: unary arithmetic, instance normalization",
                 {{kImage},
                  kImage,
                  {{2}, {2}},
                  [](std::vector<NDArray>& w) {
                    return std::vector<FusableLayerParameters>{
                        FusedUnaryArithmeticParameters{.inputDescriptorType = kSample,
                                                       .outputDescriptorType = kSample,
                                                       .function = ArithmeticUnaryFunction::exp},
                        norm(NormalizationType::instance({}, {}), w[0], w[1])};
                  },
                  [](std::vector<NDArray>& w) {
                    const Desc d = descriptor(kImage);
                    BNNSArithmeticUnary f{d, BNNSSample, d, BNNSSample};
                    BNNSLayerParametersArithmetic c{};
                    c.arithmetic_function = BNNSArithmeticExp, c.arithmetic_function_fields = &f;
                    const auto n = c_norm(kImage, w[0], w[1]);
                    const BNNSFilterType types[] = {BNNSArithmetic, BNNSInstanceNorm};
                    const void* layers[] = {&c, &n};
                    const BNNSFilterParameters o = client();
                    return BNNSFilterCreateFusedLayer(2, types, layers, &o);
                  },
                  {kBatch}}});
  all.push_back({"two inputs: multiply, group normalization",
                 {{kImage, kImage},
                  kImage,
                  {{2}, {2}},
                  [](std::vector<NDArray>& w) {
                    return std::vector<FusableLayerParameters>{
                        FusedBinaryArithmeticParameters{.inputADescriptorType = kSample,
                                                        .inputBDescriptorType = kParameter,
                                                        .outputDescriptorType = kSample,
                                                        .function = ArithmeticBinaryFunction::multiply},
                        norm(NormalizationType::group(1), w[0], w[1])};
                  },
                  [](std::vector<NDArray>& w) {
                    const Desc d = descriptor(kImage);
                    BNNSArithmeticBinary f{d, BNNSSample, d, BNNSParameter, d, BNNSSample};
                    BNNSLayerParametersArithmetic c{};
                    c.arithmetic_function = BNNSArithmeticMultiply, c.arithmetic_function_fields = &f;
                    auto n = c_norm(kImage, w[0], w[1]);
                    n.num_groups = 1;
                    const BNNSFilterType types[] = {BNNSArithmetic, BNNSGroupNorm};
                    const void* layers[] = {&c, &n};
                    const BNNSFilterParameters o = client();
                    return BNNSFilterCreateFusedLayer(2, types, layers, &o);
                  },
                  {kBatch, 1}}});
  all.push_back({"three inputs: multiply-add, batch normalization",
                 {{kImage, kImage, kImage},
                  kImage,
                  {{2}, {2}},
                  [](std::vector<NDArray>& w) {
                    return std::vector<FusableLayerParameters>{
                        FusedTernaryArithmeticParameters{.inputADescriptorType = kSample,
                                                         .inputBDescriptorType = kParameter,
                                                         .inputCDescriptorType = kSample,
                                                         .outputDescriptorType = kSample,
                                                         .function = ArithmeticTernaryFunction::multiplyAdd},
                        norm(NormalizationType::batch({}, {}), w[0], w[1])};
                  },
                  [](std::vector<NDArray>& w) {
                    const Desc d = descriptor(kImage);
                    BNNSArithmeticTernary f{d, BNNSSample, d, BNNSParameter, d, BNNSSample, d, BNNSSample};
                    BNNSLayerParametersArithmetic c{};
                    c.arithmetic_function = BNNSArithmeticMultiplyAdd, c.arithmetic_function_fields = &f;
                    const auto n = c_norm(kImage, w[0], w[1]);
                    const BNNSFilterType types[] = {BNNSArithmetic, BNNSBatchNorm};
                    const void* layers[] = {&c, &n};
                    const BNNSFilterParameters o = client();
                    return BNNSFilterCreateFusedLayer(2, types, layers, &o);
                  },
                  {kBatch, 1, kBatch}}});
  return all;
}

}  // namespace overlay
