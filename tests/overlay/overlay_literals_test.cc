// What a port from Swift writes: lists in braces, labels, and the names that an Error carries. And what must not
// compile: constant memory as an output.

#include <functional>

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

// ---- An output is memory that may be written.
template <class To, class From>
concept takes = std::is_convertible_v<From, To>;

static_assert(takes<Input, NDArray&> && takes<Input, const NDArray&> && takes<Input, Desc> && takes<Input, InputView>);
static_assert(takes<Output, NDArray&> && takes<Output, Desc> && takes<Output, View>);
static_assert(!takes<Output, const NDArray&>, "a const NDArray cannot be an output");
static_assert(!takes<Output, NDArray> && !takes<Input, NDArray>, "nor can a temporary be an argument");
static_assert(!takes<Output, InputView>, "nor memory that is only read");
static_assert(takes<OptOutput, NDArray&> && takes<OptOutput, std::nullopt_t> && takes<OptOutput, OptDesc>);
static_assert(!takes<OptOutput, const NDArray&> && !takes<OptOutput, NDArray> && !takes<OptOutput, InputView>);
static_assert(takes<Outputs, std::vector<NDArray>&> && takes<Outputs, const std::vector<Desc>&>);
static_assert(!takes<Outputs, const std::vector<NDArray>&>, "nor do the elements of a const vector");
static_assert(takes<Inputs, const std::vector<NDArray>&> && takes<Inputs, std::array<const NDArray*, 2>&>);
static_assert(!takes<Outputs, std::array<const NDArray*, 2>&>);

template <class L>
concept writes_const = requires(L& layer, const NDArray& x) {
  layer.apply(1, x, x);
};
static_assert(!writes_const<ActivationLayer> && !writes_const<PoolingLayer> && !writes_const<EmbeddingLayer>);
template <class Array>
concept copies_to = requires(const NDArray& x, Array& y) {
  copy(x, y);
};
static_assert(copies_to<NDArray> && !copies_to<const NDArray>);
template <class Array>
concept accumulates = requires(Array& a) {
  a.accumulating();
};
static_assert(accumulates<NDArray> && !accumulates<const NDArray>);

std::vector<float> values(const NDArray& a) {
  return a.makeArray<float>();
}

TEST(OverlayLiterals, OptimizerLists) {
  const SGDMomentumOptimizer sgd{.learningRate = 1};
  const auto fresh = [](float v) { return NDArray::repeating(v, {2}); };
  NDArray w = fresh(5), b = fresh(7);
  const NDArray dw = fresh(1), db = fresh(2);
  sgd.step({w, b}, {dw, db}, {});
  EXPECT_EQ(values(w), (std::vector<float>{4, 4}));
  EXPECT_EQ(values(b), (std::vector<float>{5, 5}));

  // Containers of arrays, of pointers and of references.
  std::vector<NDArray> parameters, gradients;
  parameters.push_back(fresh(5)), gradients.push_back(fresh(1));
  parameters.push_back(fresh(7)), gradients.push_back(fresh(2));
  sgd.step(parameters, gradients, {});
  EXPECT_EQ(values(parameters[1]), (std::vector<float>{5, 5}));
  NDArray plain[] = {fresh(5), fresh(7)};
  const NDArray slopes[] = {fresh(1), fresh(2)};
  sgd.step(plain, slopes, {});
  EXPECT_EQ(values(plain[0]), (std::vector<float>{4, 4}));
  std::array<NDArray, 2> array = {fresh(5), fresh(7)};
  sgd.step(array, std::array<const NDArray*, 2>{&dw, &db}, {});
  EXPECT_EQ(values(array[1]), (std::vector<float>{5, 5}));
  sgd.step(std::vector<NDArray*>{&w, &b}, std::vector<std::reference_wrapper<const NDArray>>{dw, db}, {});
  EXPECT_EQ(values(w), (std::vector<float>{3, 3}));
  std::vector<std::unique_ptr<NDArray>> owned;
  owned.push_back(std::make_unique<NDArray>(fresh(5)));
  sgd.step(owned, {dw}, {});
  EXPECT_EQ(values(*owned[0]), (std::vector<float>{4, 4}));

  NDArray m1 = fresh(0), m2 = fresh(0), v1 = fresh(0), v2 = fresh(0);
  AdamOptimizer{.learningRate = 0.5f}.step({w, b}, {dw, db}, {m1, m2, v1, v2});
  EXPECT_NEAR(values(w)[0], 2.5f, 1e-4f);
  NDArray cw = fresh(0), cb = fresh(0);
  clipByGlobalNorm(1, {dw, db}, {cw, cb});
  EXPECT_NEAR(values(cb)[0] / values(cw)[0], 2, 1e-5f);
}

const Shape kImage = Shape::imageCHW(4, 4, 2), kKernel = Shape::convolutionWeightsOIHW(3, 3, 2, 2);

TEST(OverlayLiterals, FusedLayers) {
  constexpr auto training = LearningPhase::training;
  const NDArray x = data(kImage, 1), w = data(kKernel, 2, 1), b = data({2}, 3, 1), beta = data({2}, 4, 1),
                gamma = data({2}, 5, 1), dy = data(kImage, 6);
  NDArray y = output(kImage), dx = output(kImage), dw = output(kKernel, 1), db = output({2}, 1), dBeta = output({2}, 1),
          dGamma = output({2}, 1);
  const FusedConvolutionParameters conv{.weights = w, .bias = b, .padding = ConvolutionPadding::symmetric(1, 1)};
  const FusedNormalizationParameters norm{
      .type = NormalizationType::batch({}, {}), .beta = beta, .gamma = gamma, .epsilon = 1e-2f};
  FusedParametersLayer layer(x, y, {conv, norm});
  layer.apply(kBatch, x, y, training);
  layer.applyBackward(kBatch, x, y, dy, dx, {dw, db, dBeta, dGamma});
  const auto expected = values(dGamma), slope = values(dw), shift = values(dBeta);
  EXPECT_NE(expected, values(output({2}, 1)));

  // The same with labels, and with an entry left out.
  FusedParametersLayer labelled(
      {.input = x, .output = y, .fusedLayerParameters = {conv, norm}, .filterParameters = useClientPointer});
  labelled.apply({.batchSize = kBatch, .input = x, .output = y, .learningPhase = training});
  NDArray dBeta2 = output({2}, 1), dGamma2 = output({2}, 1), dw2 = output(kKernel, 1);
  labelled.applyBackward({.batchSize = kBatch,
                          .input = x,
                          .output = y,
                          .outputGradient = dy,
                          .generatingInputGradient = dx,
                          .generatingParameterGradients = {dw2, std::nullopt, dBeta2, dGamma2}});
  EXPECT_EQ(values(dGamma2), expected);
  EXPECT_EQ(values(dBeta2), shift);
  EXPECT_EQ(values(dw2), slope);
  // What the call takes may be made first: it keeps the descriptors.
  const FusedLayer::Backward later{.batchSize = kBatch,
                                   .input = x,
                                   .output = y,
                                   .outputGradient = dy,
                                   .generatingParameterGradients = {dw, db, dBeta.accumulating(), dGamma}};
  labelled.applyBackward(later);
  EXPECT_NEAR(values(dBeta)[0], 2 * shift[0], 1e-5f);
  // Arrays and vectors of NDArray.
  NDArray list[] = {output(kKernel, 1), output({2}, 1), output({2}, 1), output({2}, 1)};
  labelled.applyBackward(kBatch, x, y, dy, dx, list);
  EXPECT_EQ(values(list[3]), expected);
  std::array<NDArray*, 4> pointers{&dw, &db, &dBeta, &dGamma2};
  labelled.applyBackward(kBatch, x, y, dy, dx, pointers);
  EXPECT_EQ(values(dGamma2), expected);
  EXPECT_TRUE(refuses(kApply, {"expected 4 parameter gradients", "got 5"}, [&] {
    labelled.applyBackward(kBatch, x, y, dy, dx, {dw, db, dBeta, dGamma, db});
  }));
}

TEST(OverlayLiterals, FusedLayersOfTwoAndThreeInputs) {
  constexpr auto sample = DescriptorType::sample;
  constexpr auto training = LearningPhase::training;
  const NDArray a = data(kImage, 1), b = data(kImage, 2), c = data(kImage, 3), dy = data(kImage, 4),
                two = data({2}, 5, 1);
  NDArray y = output(kImage), da = output(kImage), dBeta = output({2}, 1), dGamma = output({2}, 1);
  const FusedNormalizationParameters norm{
      .type = NormalizationType::batch({}, {}), .beta = two, .gamma = two, .epsilon = 1e-2f};
  const FusedBinaryArithmeticParameters add{.inputADescriptorType = sample,
                                            .inputBDescriptorType = sample,
                                            .outputDescriptorType = sample,
                                            .function = ArithmeticBinaryFunction::add};
  const FusedTernaryArithmeticParameters multiplyAdd{.inputADescriptorType = sample,
                                                     .inputBDescriptorType = sample,
                                                     .inputCDescriptorType = sample,
                                                     .outputDescriptorType = sample,
                                                     .function = ArithmeticTernaryFunction::multiplyAdd};
  FusedParametersLayer positional(a, b, y, {add, norm});
  positional.apply(kBatch, a, b, y, training);
  const auto expected = values(y);
  positional.applyBackward(kBatch, a, b, y, dy, da, {}, {dBeta, dGamma});
  const auto slope = values(dGamma);
  FusedParametersLayer pair({.inputA = a, .inputB = b, .output = y, .fusedLayerParameters = {add, norm}});
  NDArray again = output(kImage), dGamma2 = output({2}, 1);
  pair.apply({.batchSize = kBatch, .inputA = a, .inputB = b, .output = again, .learningPhase = training});
  EXPECT_EQ(values(again), expected);
  pair.applyBackward({.batchSize = kBatch,
                      .inputA = a,
                      .inputB = b,
                      .output = again,
                      .outputGradient = dy,
                      .generatingInputAGradient = da,
                      .generatingParameterGradients = {dBeta, dGamma2}});
  EXPECT_EQ(values(dGamma2), slope);
  FusedParametersLayer samples(a, b, y,
                               {FusedBinaryArithmeticParameters{.function = ArithmeticBinaryFunction::add}, norm});
  NDArray third = output(kImage);
  samples.apply(kBatch, a, b, third, training);  // roles that are left out
  EXPECT_EQ(values(third), expected);

  auto triple = make<FusedParametersLayer>(
      {.inputA = a, .inputB = b, .inputC = c, .output = y, .fusedLayerParameters = {multiplyAdd, norm}});
  ASSERT_TRUE(triple);
  triple->apply({.batchSize = kBatch, .inputA = a, .inputB = b, .inputC = c, .output = y, .learningPhase = training});
  triple->applyBackward({.batchSize = kBatch,
                         .inputA = a,
                         .inputB = b,
                         .inputC = c,
                         .output = y,
                         .outputGradient = dy,
                         .generatingInputCGradient = da,
                         .generatingParameterGradients = {dBeta, dGamma}});
  EXPECT_NE(values(dGamma), slope);
  EXPECT_FALSE(make<FusedParametersLayer>({.inputA = a, .output = y, .fusedLayerParameters = {add, norm}}));
}

TEST(OverlayLiterals, Shapes) {
  const Shape row({2, 3}, DataLayout::matrixRowMajor), gaps({2, 3}, DataLayout::matrixRowMajor, {1, 4});
  EXPECT_EQ(row.layout(), DataLayout::matrixRowMajor);
  EXPECT_EQ(row.batchStride(), 6u);
  EXPECT_EQ(gaps.batchStride(), 12u);
  EXPECT_EQ(Shape({2, 3}, std::nullopt).layout(), DataLayout::matrixFirstMajor);
  EXPECT_EQ(NDArray::repeating(1.0f, Shape({4}, DataLayout::vector)).span<float>().size(), 4u);
  EXPECT_TRUE(refuses(kData, {"layout has 3 sizes, got 2"}, [] { Shape({2, 3}, DataLayout::imageCHW); }));
}

// Each call in its labelled form does what the positional form does.
TEST(OverlayLiterals, Labels) {
  const Desc v = descriptor({4});
  const NDArray x = data({4}, 1), z = data({4}, 2), dy = data({4}, 3);
  NDArray y = output({4}), y2 = output({4}), dx = output({4}), dx2 = output({4});
  ActivationLayer tanh({.function = ActivationFunction::tanh(), .input = v, .output = v});
  tanh.apply(kBatch, x, y), tanh.apply({.batchSize = kBatch, .input = x, .output = y2});
  EXPECT_TRUE(same(y, y2));
  tanh.applyBackward(kBatch, x, y, dy, dx);
  tanh.applyBackward(
      {.batchSize = kBatch, .input = x, .output = y, .outputGradient = dy, .generatingInputGradient = dx2});
  EXPECT_TRUE(same(dx, dx2));
  constexpr auto sample = DescriptorType::sample;
  BinaryArithmeticLayer product({.inputA = v,
                                 .inputADescriptorType = sample,
                                 .inputB = v,
                                 .inputBDescriptorType = sample,
                                 .output = v,
                                 .outputDescriptorType = sample,
                                 .function = ArithmeticBinaryFunction::multiply});
  product.apply(kBatch, x, z, y), product.apply({.batchSize = kBatch, .inputA = x, .inputB = z, .output = y2});
  EXPECT_TRUE(same(y, y2));
  product.applyBackward(kBatch, x, z, y, dy, y2, dx);
  product.applyBackward({.batchSize = kBatch,
                         .inputA = x,
                         .inputB = z,
                         .output = y,
                         .outputGradient = dy,
                         .generatingInputAGradient = y2,
                         .generatingInputBGradient = dx2});
  EXPECT_TRUE(same(dx, dx2));
  LossLayer loss({.input = v,
                  .output = descriptor({1}),
                  .lossFunction = LossFunction::meanSquareError(),
                  .lossReduction = LossReduction::sum});
  NDArray l = output({1}, 1), l2 = output({1}, 1);
  loss.apply(kBatch, x, z, l, dx);
  loss.apply({.batchSize = kBatch, .input = x, .labels = z, .output = l2, .generatingInputGradient = dx2});
  EXPECT_TRUE(same(l, l2));
  EXPECT_TRUE(same(dx, dx2));
}

// what() begins with the layer and the call, whoever refused.
TEST(OverlayLiterals, ErrorsNameLayerAndCall) {
  const NDArray x = data({4}, 1), w = data({2, 4}, 2, 1), dy = data({2}, 3);
  NDArray y = output({2}), dx = output({4});
  const auto begins = [](const char* text, auto&& body) {
    try {
      body();
      FAIL() << "nothing was thrown";
    } catch (const Error& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with(text)) << e.what();
    }
  };
  FullyConnectedLayer dense({.input = x, .output = y, .weights = w, .activation = ActivationFunction::tanh()});
  begins("FullyConnectedLayer::apply: ", [&] { dense.apply(kBatch, y, y); });
  begins("FullyConnectedLayer::applyBackward: BNNSFilterApplyBackwardBatch: ", [&] {
    dense.applyBackward(kBatch, x, descriptor({2}), dy, dx);  // the activation's gradient needs y
  });
  begins("FullyConnectedLayer: BNNSFilterCreateLayerFullyConnected: ",
         [&] { FullyConnectedLayer({.input = y, .output = y, .weights = w}); });
  FullyConnectedLayer gone = std::move(dense);
  begins("FullyConnectedLayer::apply: the layer was moved from", [&] { dense.apply(1, x, y); });  // NOLINT: on purpose
  NDArray seven = output({7}, 1);
  begins("copy: BNNSCopy: ", [&] { copy(w, seven); });
  begins("RandomGenerator::fillUniform: ",
         [&] { RandomGenerator(RandomGeneratorMethod::aesCtr, 1).fillUniform(seven, 2.0f, 1.0f); });
}

}  // namespace
}  // namespace overlay
