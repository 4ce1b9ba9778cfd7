// ActivationLayer and applyActivation against the C calls, to the bit: every function.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

using A = ActivationFunction;

struct Activation {
  ActivationFunction function;
  BNNSActivationFunction expected;
  float alpha = 0, beta = 0;
};
const std::vector<Activation>& activations() {
  static const std::vector<Activation> all = {
      {A::identity(), BNNSActivationFunctionIdentity},
      {A::rectifiedLinear(), BNNSActivationFunctionRectifiedLinear},
      {A::leakyRectifiedLinear(0.5f), BNNSActivationFunctionLeakyRectifiedLinear, 0.5f},
      {A::sigmoid(), BNNSActivationFunctionSigmoid},
      {A::tanh(), BNNSActivationFunctionTanh},
      {A::scaledTanh(2, 0.5f), BNNSActivationFunctionScaledTanh, 2, 0.5f},
      {A::abs(), BNNSActivationFunctionAbs},
      {A::linear(3), BNNSActivationFunctionLinear, 3},
      {A::clamp({-0.5f, 0.25f}), BNNSActivationFunctionClamp, -0.5f, 0.25f},
      {A::softmax(), BNNSActivationFunctionSoftmax},
      {A::logSoftmax(), BNNSActivationFunctionLogSoftmax},
      {A::logSigmoid(), BNNSActivationFunctionLogSigmoid},
      {A::softsign(), BNNSActivationFunctionSoftsign},
      {A::selu(), BNNSActivationFunctionSELU},
      {A::silu(), BNNSActivationFunctionSiLU},
      {A::tanhShrink(), BNNSActivationFunctionTanhShrink},
      {A::elu(0.5f), BNNSActivationFunctionELU, 0.5f},
      {A::celu(0.5f), BNNSActivationFunctionCELU, 0.5f},
      {A::hardShrink(0.25f), BNNSActivationFunctionHardShrink, 0.25f},
      {A::softShrink(0.25f), BNNSActivationFunctionSoftShrink, 0.25f},
      {A::linearWithBias(2, 1), BNNSActivationFunctionLinearWithBias, 2, 1},
      {A::clampedLeakyRectifiedLinear(0.5f, 0.75f), BNNSActivationFunctionClampedLeakyRectifiedLinear, 0.5f, 0.75f},
      {A::softplus(1, 2), BNNSActivationFunctionSoftplus, 1, 2},
      {A::threshold(0.25f, -2), BNNSActivationFunctionThreshold, 0.25f, -2},
      {A::hardSigmoid(0.5f, 0.25f), BNNSActivationFunctionHardSigmoid, 0.5f, 0.25f},
      {A::hardSwish(), BNNSActivationFunctionHardSwish},
      {A::geluApproximation(0.797885f, 0.044715f), BNNSActivationFunctionGELUApproximation, 0.797885f, 0.044715f},
      {A::geluApproximation2(), BNNSActivationFunctionGELUApproximation2},
      {A::preluPerChannel(0.5f), BNNSActivationFunctionPReLUPerChannel, 0.5f},
      {A::relu6(), BNNSActivationFunctionReLU6},
      {A::erf(), BNNSActivationFunctionErf},
      {A::gelu(), BNNSActivationFunctionGELU},
      {A::geluApproximationSigmoid(), BNNSActivationFunctionGELUApproximationSigmoid}};
  return all;
}

TEST(OverlayActivation, EveryFunctionEqualsC) {
  const Shape shape = Shape::imageCHW(5, 2, 3);
  for (const Activation& k : activations()) {
    SCOPED_TRACE(k.expected);
    EXPECT_EQ(k.function.bnnsActivation().function, k.expected);
    const NDArray x = data(shape, 1), dy = data(shape, 2);
    NDArray y = output(shape), cy = output(shape), direct = output(shape), dx = output(shape), cdx = output(shape);
    ActivationLayer layer({.function = k.function, .input = descriptor(shape), .output = descriptor(shape)});
    BNNSLayerParametersActivation c{};
    c.i_desc = c.o_desc = descriptor(shape);
    c.activation.function = k.expected, c.activation.alpha = k.alpha, c.activation.beta = k.beta;
    const Filter filter(BNNSFilterCreateLayerActivation(&c, nullptr));
    const Desc xd = x, yd = cy;
    layer.apply(kBatch, x, y);
    ASSERT_EQ(BNNSFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0), 0);
    EXPECT_TRUE(same(y, cy));
    applyActivation(k.function, x, direct, kBatch);
    EXPECT_TRUE(same(direct, cy));
    layer.applyBackward(kBatch, x, y, dy, dx);
    ASSERT_EQ(backward(filter, x, cy, dy, &cdx), 0) << BNNSExtLastError();
    EXPECT_TRUE(same(dx, cdx));
  }
}

TEST(OverlayActivation, AxesAlphaAndGumbel) {
  const Shape shape = Shape::matrixRowMajor(4, 3);
  const NDArray x = data(shape, 1);
  NDArray y = output(shape), cy = output(shape), direct = output(shape);
  ActivationLayer layer(
      {.function = A::softmax(), .input = descriptor(shape), .output = descriptor(shape), .axes = {0, 1}});
  BNNSLayerParametersActivation c{};
  c.i_desc = c.o_desc = descriptor(shape), c.activation.function = BNNSActivationFunctionSoftmax, c.axis_flags = 3;
  const Filter filter(BNNSFilterCreateLayerActivation(&c, nullptr));
  const Desc xd = x, yd = cy;
  layer.apply(kBatch, x, y);
  ASSERT_EQ(BNNSFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0), 0);
  EXPECT_TRUE(same(y, cy));
  const std::size_t axes[] = {0, 1};
  applyActivation(A::softmax(), axes, x, direct, kBatch);
  EXPECT_TRUE(same(direct, cy));
  EXPECT_EQ(A::gumbel(1, 2).bnnsActivation().function, BNNSActivationFunctionGumbel);
  EXPECT_EQ(A::gumbelMax(1, 2).bnnsActivation().beta, 2);

  ActivationLayer leaky(
      {.function = A::leakyRectifiedLinear(0.5f), .input = descriptor(shape), .output = descriptor(shape)});
  NDArray dx = output(shape), dalpha = output({1}, 1);
  leaky.apply(kBatch, x, y);
  leaky.applyBackward(kBatch, x, y, x, dx, dalpha);
  EXPECT_GT(dalpha.span<float>()[0], 0);  // the sum of x * x over negative x
  EXPECT_EQ(*static_cast<float*>(leaky.parameter(BNNSPointerSpecifierAlpha).data), 0.5f);
  const std::size_t far[] = {40};
  EXPECT_TRUE(refuses(kApply, {"axis 40"}, [&] { applyActivation(A::softmax(), far, x, direct, kBatch); }));
}

TEST(OverlayActivation, Converts) {
  const NDArray x = NDArray::from({1.5f, -2.5f, 300.25f}, {3});
  NDArray y = NDArray::repeating(0, {3});
  ActivationLayer layer({.function = A::identity(), .input = x, .output = y});
  layer.apply(1, x, y);
  EXPECT_EQ(y.makeArray<int>(), (std::vector<int>{2, -2, 300}));
}

}  // namespace
}  // namespace overlay
