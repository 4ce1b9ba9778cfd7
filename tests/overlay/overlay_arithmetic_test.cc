// Arithmetic layers of one, two and three inputs against the C calls, to the bit: every function.

#include <set>

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

using A = ActivationFunction;

template <std::size_t N, class Layer, class Forward, class Backward>
void expect_arithmetic(Layer& layer, BNNSArithmeticFunction function, void* fields, const Shape& shape, float low,
                       float high, Forward&& forward, Backward&& backward) {
  BNNSLayerParametersArithmetic c{};
  c.arithmetic_function = function, c.arithmetic_function_fields = fields;
  c.activation.function = BNNSActivationFunctionSigmoid;
  const Filter filter(BNNSFilterCreateLayerArithmetic(&c, nullptr));
  std::vector<NDArray> x, dx, cdx;
  std::vector<const void*> in;
  for (unsigned i = 0; i < N; ++i) {
    x.push_back(data(shape, i + 1, kBatch, low, high));
    dx.push_back(output(shape)), cdx.push_back(output(shape));
    in.push_back(static_cast<const Desc&>(x[i]).data);
  }
  const NDArray dy = data(shape, 9);
  NDArray y = output(shape), cy = output(shape);
  const std::size_t zero[3]{};
  const Desc yd = cy;
  forward(layer, x, y);
  ASSERT_EQ(BNNSArithmeticFilterApplyBatch(filter, kBatch, N, in.data(), zero, yd.data, 0), 0);
  EXPECT_TRUE(same(y, cy));
  std::vector<Desc> d(cdx.begin(), cdx.end());
  std::vector<Desc*> dp;
  for (Desc& k : d) dp.push_back(&k);
  Desc dyd = dy;
  if (BNNSArithmeticFilterApplyBackwardBatch(filter, kBatch, N, in.data(), zero, dp.data(), zero, yd.data, 0, &dyd,
                                             0) != 0) {  // division with rounding has no gradient
    EXPECT_TRUE(refuses(kApply, {"BNNSArithmeticFilterApplyBackwardBatch", "gradient"},
                        [&] { backward(layer, x, y, dy, dx); }));
    return;
  }
  backward(layer, x, y, dy, dx);
  for (unsigned i = 0; i < N; ++i) EXPECT_TRUE(same(dx[i], cdx[i])) << i;
}

TEST(OverlayArithmetic, EveryFunctionEqualsC) {
  const Shape shape = Shape::imageCHW(4, 2, 3);
  const Desc d = descriptor(shape);
  constexpr auto sample = DescriptorType::sample;
  std::set<std::uint32_t> seen;
  for (ArithmeticUnaryFunction f : allArithmeticUnaryFunctions) {
    SCOPED_TRACE(static_cast<std::uint32_t>(f));
    EXPECT_TRUE(seen.insert(static_cast<std::uint32_t>(f)).second);
    UnaryArithmeticLayer layer({.input = d,
                                .inputDescriptorType = sample,
                                .output = d,
                                .outputDescriptorType = sample,
                                .function = f,
                                .activation = A::sigmoid()});
    BNNSArithmeticUnary fields{d, BNNSSample, d, BNNSSample};
    const bool above_one = f == ArithmeticUnaryFunction::acosh;
    expect_arithmetic<1>(
        layer, static_cast<BNNSArithmeticFunction>(f), &fields, shape, above_one ? 1.1f : 0.1f, above_one ? 2.0f : 0.9f,
        [](auto& l, auto& x, auto& y) { l.apply(kBatch, x[0], y); },
        [](auto& l, auto& x, auto& y, auto& dy, auto& dx) { l.applyBackward(kBatch, x[0], y, dy, dx[0]); });
  }
  EXPECT_EQ(seen.size(), 27u);
  for (ArithmeticBinaryFunction f : allArithmeticBinaryFunctions) {
    SCOPED_TRACE(static_cast<std::uint32_t>(f));
    EXPECT_TRUE(seen.insert(static_cast<std::uint32_t>(f)).second);
    BinaryArithmeticLayer layer({.inputA = d,
                                 .inputADescriptorType = sample,
                                 .inputB = d,
                                 .inputBDescriptorType = sample,
                                 .output = d,
                                 .outputDescriptorType = sample,
                                 .function = f,
                                 .activation = A::sigmoid()});
    BNNSArithmeticBinary fields{d, BNNSSample, d, BNNSSample, d, BNNSSample};
    expect_arithmetic<2>(
        layer, static_cast<BNNSArithmeticFunction>(f), &fields, shape, 0.1f, 0.9f,
        [](auto& l, auto& x, auto& y) { l.apply(kBatch, x[0], x[1], y); },
        [](auto& l, auto& x, auto& y, auto& dy, auto& dx) {
          l.applyBackward(kBatch, x[0], x[1], y, dy, dx[0], dx[1]);
        });
  }
  EXPECT_EQ(seen.size(), 39u);
  for (ArithmeticTernaryFunction f : {ArithmeticTernaryFunction::multiplyAdd, ArithmeticTernaryFunction::select}) {
    TernaryArithmeticLayer layer({.inputA = d,
                                  .inputADescriptorType = sample,
                                  .inputB = d,
                                  .inputBDescriptorType = sample,
                                  .inputC = d,
                                  .inputCDescriptorType = sample,
                                  .output = d,
                                  .outputDescriptorType = sample,
                                  .function = f,
                                  .activation = A::sigmoid()});
    BNNSArithmeticTernary fields{d, BNNSSample, d, BNNSSample, d, BNNSSample, d, BNNSSample};
    expect_arithmetic<3>(
        layer, static_cast<BNNSArithmeticFunction>(f), &fields, shape, 0.1f, 0.9f,
        [](auto& l, auto& x, auto& y) { l.apply(kBatch, x[0], x[1], x[2], y); },
        [](auto& l, auto& x, auto& y, auto& dy, auto& dx) {
          l.applyBackward(kBatch, x[0], x[1], x[2], y, dy, dx[0], dx[1], dx[2]);
        });
  }
}

// A constant needs no gradient, a parameter's is summed, and a sum needs no inputs.
TEST(OverlayArithmetic, Roles) {
  const Desc d = descriptor({4});
  BinaryArithmeticLayer layer({.inputA = d,
                               .inputADescriptorType = DescriptorType::parameter,
                               .inputB = d,
                               .inputBDescriptorType = DescriptorType::constant,
                               .output = d,
                               .outputDescriptorType = DescriptorType::sample,
                               .function = ArithmeticBinaryFunction::add});
  const NDArray a = data({4}, 1, 1), b = data({4}, 2, 1), dy = NDArray::repeating(1.0f, {4}, kBatch);
  NDArray y = output({4}), da = output({4}, 1);
  layer.apply(kBatch, a, b, y);
  layer.applyBackward(kBatch, descriptor({4}), descriptor({4}), descriptor({4}), dy, da, std::nullopt);
  EXPECT_EQ(da.makeArray<float>(), std::vector<float>(4, 3.0f));
  EXPECT_TRUE(refuses(kApply, {"BNNSArithmeticFilterApplyBackwardBatch"},
                      [&] { layer.applyBackward(kBatch, a, b, y, dy, std::nullopt, std::nullopt); }));
}

// A role that is left out is a sample's: each sample of the batch has its own inputs.
TEST(OverlayArithmetic, RolesLeftOut) {
  const Desc d = descriptor({2});
  const NDArray x = NDArray::from({1.0f, 4.0f, 9.0f, 16.0f}, {2}, 2),
                b = NDArray::from({1.0f, 2.0f, 3.0f, 4.0f}, {2}, 2);
  NDArray y = output({2}, 2);
  UnaryArithmeticLayer root({.input = d, .output = d, .function = ArithmeticUnaryFunction::squareRoot});
  root.apply(2, x, y);
  EXPECT_EQ(y.makeArray<float>(), (std::vector<float>{1, 2, 3, 4}));
  BinaryArithmeticLayer sum({.inputA = d, .inputB = d, .output = d, .function = ArithmeticBinaryFunction::add});
  sum.apply(2, y, b, y);
  EXPECT_EQ(y.makeArray<float>(), (std::vector<float>{2, 4, 6, 8}));
  TernaryArithmeticLayer both(
      {.inputA = d, .inputB = d, .inputC = d, .output = d, .function = ArithmeticTernaryFunction::multiplyAdd});
  both.apply(2, x, b, x, y);
  EXPECT_EQ(y.makeArray<float>(), (std::vector<float>{2, 12, 36, 80}));
}

}  // namespace
}  // namespace overlay
