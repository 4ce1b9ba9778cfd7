// Arrays that do not fit the layer: every apply and applyBackward refuses another type, count or batch, and says which.
//
// The C calls see pointers only, so that each of these would read or write past an array.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

constexpr std::size_t kFew = 2, kMany = 64;
const Shape kOdd = {97};  // the size of no layer here

// A refusal with exactly this text.
template <class Body>
::testing::AssertionResult says(const std::string& text, Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.what() == text && e.code() == kData && e.status() == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "another refusal: " << e.what();
  }
  return ::testing::AssertionFailure() << "nothing was thrown";
}
std::string count(const std::string& call, const char* label, const Shape& given, const Shape& taken) {
  const bool many = std::string(label).back() == 's';
  return call + ": " + label + (many ? " have " : " has ") + std::to_string(given.elementCount()) +
         " elements a sample, the layer takes " + std::to_string(taken.elementCount());
}
// The same of an array that the samples share.
std::string total(const std::string& call, const char* label, std::size_t given, std::size_t taken) {
  return call + ": " + label + " has " + std::to_string(given) + " elements, the layer takes " + std::to_string(taken);
}
std::string batch(const std::string& call, const char* label) {
  const bool many = std::string(label).back() == 's';
  return call + ": " + label + (many ? " hold " : " holds ") + "2 samples, the batch is 64";
}

// The calls of a layer with one input. forward(n, x, y) and backward(n, x, y, dy, dx) run it.
template <class Forward, class Backward>
void expect_checked(const std::string& name, const Shape& in, const Shape& out, Forward&& forward,
                    Backward&& backward) {
  SCOPED_TRACE(name);
  const std::string apply = name + "::apply", back = name + "::applyBackward";
  const NDArray x = data(in, 1, kFew), x64 = data(in, 1, kMany), oddX = data(kOdd, 2, kMany), dy = data(out, 3, kFew),
                dy64 = data(out, 3, kMany);
  const NDArray half = NDArray::repeating(BFloat16(0.5f), in, kMany), whole = NDArray::repeating(1, in, kMany);
  NDArray y = output(out, kFew), y64 = output(out, kMany), oddY = output(kOdd, kMany), dx = output(in, kFew),
          dx64 = output(in, kMany), halfY = NDArray::repeating(BFloat16(0.5f), out, kMany);
  ASSERT_NO_THROW(forward(kFew, x, y));
  ASSERT_NO_THROW(backward(kFew, x, y, dy, dx));
  EXPECT_TRUE(says(count(apply, "input", kOdd, in), [&] { forward(1, oddX, y); }));
  EXPECT_TRUE(says(count(apply, "output", kOdd, out), [&] { forward(1, x, oddY); }));
  EXPECT_TRUE(says(batch(apply, "input"), [&] { forward(kMany, x, y64); }));
  EXPECT_TRUE(says(batch(apply, "output"), [&] { forward(kMany, x64, y); }));
  EXPECT_TRUE(says(apply + ": input is BFloat16, the layer takes Float32", [&] { forward(1, half, y); }));
  EXPECT_TRUE(says(apply + ": input is Int32, the layer takes Float32", [&] { forward(1, whole, y); }));
  EXPECT_TRUE(says(apply + ": output is BFloat16, the layer takes Float32", [&] { forward(1, x, halfY); }));
  EXPECT_TRUE(says(count(back, "outputGradient", kOdd, out), [&] { backward(1, x, y, oddX, dx); }));
  EXPECT_TRUE(says(batch(back, "outputGradient"), [&] { backward(kMany, x64, y64, dy, dx64); }));
  EXPECT_TRUE(says(count(back, "generatingInputGradient", kOdd, in), [&] { backward(1, x, y, dy, oddY); }));
  EXPECT_TRUE(says(batch(back, "generatingInputGradient"), [&] { backward(kMany, x64, y64, dy64, dx); }));
  for (float v : y.span<float>()) ASSERT_NE(v, -77.25f) << "the good call wrote no output";
  for (float v : oddY.span<float>()) ASSERT_EQ(v, -77.25f) << "a refused call wrote";
}
// The same where the gradient reads input and output.
template <class Backward>
void expect_read(const std::string& name, const Shape& in, const Shape& out, Backward&& backward) {
  const std::string back = name + "::applyBackward";
  const NDArray x = data(in, 1, kFew), x64 = data(in, 1, kMany), odd = data(kOdd, 2, kMany), dy64 = data(out, 3, kMany),
                y = data(out, 4, kFew), y64 = data(out, 4, kMany);
  NDArray dx64 = output(in, kMany);
  EXPECT_TRUE(says(count(back, "input", kOdd, in), [&] { backward(1, odd, y64, dy64, dx64); }));
  EXPECT_TRUE(says(batch(back, "input"), [&] { backward(kMany, x, y64, dy64, dx64); }));
  EXPECT_TRUE(says(count(back, "output", kOdd, out), [&] { backward(1, x64, odd, dy64, dx64); }));
  EXPECT_TRUE(says(batch(back, "output"), [&] { backward(kMany, x64, y, dy64, dx64); }));
}
template <class L>
void expect_unary(const std::string& name, const Shape& in, const Shape& out, L layer) {
  const auto backward = [&](std::size_t n, auto& x, auto& y, auto& dy, auto& dx) {
    layer.applyBackward(n, x, y, dy, dx);
  };
  expect_checked(
      name, in, out, [&](std::size_t n, auto& x, auto& y) { layer.apply(n, x, y); }, backward);
  if constexpr (!std::is_same_v<L, PermuteLayer>) expect_read(name, in, out, backward);
}

const Shape kImage = Shape::imageCHW(4, 4, 2), kVector = {6}, kKernel = Shape::convolutionWeightsOIHW(3, 3, 2, 2);
const auto kSame = ConvolutionPadding::symmetric(1, 1);

TEST(OverlayMisuse, LayersOfOneInput) {
  const Desc v = descriptor(kVector), image = descriptor(kImage), five = descriptor({5});
  const NDArray w = data({5, 6}, 1, 1), kernel = data(kKernel, 2, 1);
  expect_unary<ActivationLayer>("ActivationLayer", kVector, kVector,
                                ActivationLayer({.function = ActivationFunction::tanh(), .input = v, .output = v}));
  expect_unary<ConvolutionLayer>(
      "ConvolutionLayer", kImage, kImage,
      ConvolutionLayer({.input = image, .weights = kernel, .output = image, .padding = kSame}));
  expect_unary<TransposedConvolutionLayer>(
      "TransposedConvolutionLayer", kImage, kImage,
      TransposedConvolutionLayer({.input = image, .weights = kernel, .output = image, .padding = kSame}));
  expect_unary<FullyConnectedLayer>("FullyConnectedLayer", kVector, {5},
                                    FullyConnectedLayer({.input = v, .output = five, .weights = w}));
  expect_unary<PoolingLayer>("PoolingLayer", kImage, Shape::imageCHW(2, 2, 2),
                             PoolingLayer({.type = PoolingType::max(),
                                           .input = image,
                                           .output = descriptor(Shape::imageCHW(2, 2, 2)),
                                           .kernelSize = {2, 2},
                                           .stride = {2, 2}}));
  expect_unary<DropoutLayer>("DropoutLayer", kVector, kVector,
                             DropoutLayer({.input = v, .output = v, .rate = 0.5f, .seed = 1}));
  expect_unary<PaddingLayer>(
      "PaddingLayer", kVector, {8},
      PaddingLayer({.input = v, .output = descriptor({8}), .mode = PaddingMode::constantScalar(1), .size = {{1, 1}}}));
  expect_unary<PermuteLayer>(
      "PermuteLayer", {2, 3}, {3, 2},
      PermuteLayer({.input = descriptor({2, 3}), .output = descriptor({3, 2}), .permutation = {1, 0}}));
  expect_unary<ResizeLayer>("ResizeLayer", kVector, {12},
                            ResizeLayer({.interpolationMethod = InterpolationMethod::nearestNeighbor,
                                         .input = v,
                                         .output = descriptor({12}),
                                         .alignsCorners = false}));
  const Shape square = Shape::matrixRowMajor(2, 2);
  expect_unary<GramLayer>("GramLayer", kImage, square,
                          GramLayer({.input = image, .output = descriptor(square), .alpha = 1}));
  expect_unary<ReductionLayer>(
      "ReductionLayer", kVector, {1},
      ReductionLayer({.function = ReductionFunction::sum(), .input = v, .output = descriptor({1})}));
  UnaryArithmeticLayer exp({.input = v,
                            .inputDescriptorType = DescriptorType::sample,
                            .output = v,
                            .outputDescriptorType = DescriptorType::sample,
                            .function = ArithmeticUnaryFunction::exp});
  expect_unary<UnaryArithmeticLayer>("UnaryArithmeticLayer", kVector, kVector, std::move(exp));
}

TEST(OverlayMisuse, NormalizationAndFused) {
  constexpr auto training = LearningPhase::training;
  const Desc image = descriptor(kImage);
  const NDArray kernel = data(kKernel, 2, 1), two = data({2}, 3, 1);
  NormalizationLayer norm({.type = NormalizationType::batch({}, {}),
                           .input = image,
                           .output = image,
                           .beta = two,
                           .gamma = two,
                           .epsilon = 1e-5f});
  expect_checked(
      "NormalizationLayer", kImage, kImage, [&](std::size_t n, auto& x, auto& y) { norm.apply(n, x, y, training); },
      [&](std::size_t n, auto& x, auto& y, auto& dy, auto& dx) { norm.applyBackward(n, x, y, dy, dx); });
  const NDArray x = data(kImage, 1, 1), dy = data(kImage, 2, 1);
  NDArray y = output(kImage, 1), dx = output(kImage, 1), three = output({3}, 1), dw = output({17}, 1);
  EXPECT_TRUE(says(total("NormalizationLayer::applyBackward", "generatingBetaGradient", 3, 2),
                   [&] { norm.applyBackward(1, x, y, dy, dx, three); }));
  EXPECT_TRUE(says(total("NormalizationLayer::applyBackward", "generatingGammaGradient", 3, 2),
                   [&] { norm.applyBackward(1, x, y, dy, dx, {}, three); }));

  FusedConvolutionNormalizationLayer fused({.input = image,
                                            .output = image,
                                            .convolutionWeights = kernel,
                                            .convolutionPadding = kSame,
                                            .normalization = NormalizationType::batch({}, {}),
                                            .normalizationBeta = two,
                                            .normalizationGamma = two,
                                            .normalizationMomentum = 0,
                                            .normalizationEpsilon = 1e-5f});
  const auto backward = [&](std::size_t n, auto& a, auto& b, auto& c, auto& d) {
    fused.applyBackward(n, a, b, c, d, std::span<const Desc>());
  };
  expect_checked(
      "FusedConvolutionNormalizationLayer", kImage, kImage,
      [&](std::size_t n, auto& a, auto& b) { fused.apply(n, a, b, training); }, backward);
  expect_read("FusedConvolutionNormalizationLayer", kImage, kImage, backward);
  const Desc wrong[] = {dw, Desc{}, Desc{}, Desc{}}, beta[] = {Desc{}, Desc{}, three, Desc{}};
  EXPECT_TRUE(
      says("FusedConvolutionNormalizationLayer::applyBackward: generatingParameterGradients[0] has 17 elements, the "
           "parameter 36",
           [&] { fused.applyBackward(1, x, y, dy, dx, wrong); }));
  EXPECT_TRUE(
      says("FusedConvolutionNormalizationLayer::applyBackward: generatingParameterGradients[2] has 3 elements, the "
           "parameter 2",
           [&] { fused.applyBackward(1, x, y, dy, dx, beta); }));
}

TEST(OverlayMisuse, ParameterGradients) {
  const Desc v = descriptor(kVector), five = descriptor({5}), image = descriptor(kImage);
  const NDArray w = data({5, 6}, 1, 1), b = data({5}, 2, 1), x = data(kVector, 3, 1), dy = data({5}, 4, 1);
  NDArray y = output({5}, 1), dw = output({5, 5}, 1), db = output({6}, 1);
  FullyConnectedLayer dense({.input = v, .output = five, .weights = w, .bias = b});
  EXPECT_TRUE(says(total("FullyConnectedLayer::applyBackward", "generatingWeightsGradient", 25, 30),
                   [&] { dense.applyBackward(1, x, y, dy, {}, dw); }));
  EXPECT_TRUE(says(total("FullyConnectedLayer::applyBackward", "generatingBiasGradient", 6, 5),
                   [&] { dense.applyBackward(1, x, y, dy, {}, {}, db); }));
  const NDArray bias = data({2}, 5, 1), xi = data(kImage, 6, 1);
  NDArray yi = output(kImage, 1);
  PoolingLayer pool({.type = PoolingType::max(), .input = image, .output = image, .bias = bias, .kernelSize = {1, 1}});
  EXPECT_TRUE(says(total("PoolingLayer::applyBackward", "generatingBiasGradient", 6, 2),
                   [&] { pool.applyBackward(1, xi, yi, xi, {}, db); }));
  ReductionLayer sum({.function = ReductionFunction::sum(), .input = v, .output = descriptor({1}), .weights = x});
  const NDArray one = data({1}, 7, 1);
  NDArray reduced = output({1}, 1);
  EXPECT_TRUE(says(total("ReductionLayer::applyBackward", "generatingWeightsGradient", 5, 6),
                   [&] { sum.applyBackward(1, x, reduced, one, {}, y); }));
}

// The cases a new user met.
TEST(OverlayMisuse, FirstContact) {
  const Desc four = descriptor({4}), two = descriptor({2});
  ActivationLayer tanh({.function = ActivationFunction::tanh(), .input = four, .output = four});
  const NDArray arrayOf2 = data({2}, 1, 1), x = data({4}, 2, 2);
  NDArray y = output({4}, 2), short_y = output({2}, 2);
  EXPECT_TRUE(says("ActivationLayer::apply: input has 2 elements a sample, the layer takes 4",
                   [&] { tanh.apply(1, arrayOf2, y); }));
  EXPECT_TRUE(says("ActivationLayer::apply: input holds 2 samples, the batch is 64", [&] { tanh.apply(64, x, y); }));
  const NDArray w = data({2, 4}, 3, 1);
  FullyConnectedLayer dense({.input = four, .output = two, .weights = w});
  NDArray z = output({4}, 2);
  EXPECT_TRUE(says("FullyConnectedLayer::apply: input has 2 elements a sample, the layer takes 4",
                   [&] { dense.apply(2, short_y, z); }));  // x and y swapped
  const Desc bare = arrayOf2;  // a descriptor without its array still has a count and a type
  EXPECT_TRUE(says("ActivationLayer::apply: input has 2 elements a sample, the layer takes 4",
                   [&] { tanh.apply(1, bare, y); }));
}

// Views know the memory they were made of, also where it holds more than the batch they name.
TEST(OverlayMisuse, Views) {
  const Desc four = descriptor({4});
  ActivationLayer tanh({.function = ActivationFunction::tanh(), .input = four, .output = four});
  std::vector<float> in = numbers(4 * 3, 1), out(4 * 3);
  tanh.apply(3, NDArray::inputView<float>(in, {4}), NDArray::view<float>(out, {4}));
  EXPECT_NE(out[11], 0);
  EXPECT_TRUE(says("ActivationLayer::apply: input holds 3 samples, the batch is 4", [&] {
    NDArray y = output({4}, 4);
    tanh.apply(4, NDArray::inputView<float>(in, {4}, 3), y);
  }));
  EXPECT_TRUE(says("ActivationLayer::apply: output holds 2 samples, the batch is 3", [&] {
    tanh.apply(3, NDArray::inputView<float>(in, {4}), NDArray::view(std::span(out).first(11), {4}));
  }));
  // The C call uses the strides of the layer: packed numbers in a layer with gaps would be read past their end.
  const Desc gaps = descriptor(Shape::vector(4, 2));
  ActivationLayer spread({.function = ActivationFunction::tanh(), .input = gaps, .output = gaps});
  const NDArray packed = data({4}, 2, 1);
  NDArray wide = output(Shape::vector(4, 2), 1);
  EXPECT_TRUE(says(
      "ActivationLayer::apply: input spreads 4 elements over 4, the layer over 7: the strides of the shapes differ",
      [&] { spread.apply(1, packed, wide); }));
  const NDArray x = data(Shape::vector(4, 2), 3, 1);
  EXPECT_NO_THROW(spread.apply(1, x, wide));
  // Another layout of as many elements is what programs pass.
  ActivationLayer image(
      {.function = ActivationFunction::tanh(), .input = descriptor(kImage), .output = descriptor(kImage)});
  const NDArray flat = data({32}, 4, 2);
  NDArray same_count = output({4, 8}, 2), dx = output({32}, 2);
  EXPECT_NO_THROW(image.apply(2, flat, same_count));
  EXPECT_NO_THROW(image.applyBackward(2, flat, same_count, flat, dx));
}

}  // namespace
}  // namespace overlay
