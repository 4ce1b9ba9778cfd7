// Every class: a refused creation throws with a reason and make() is empty; a layer that was moved from refuses; one
// release for each creation, whatever is thrown on the way.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

int live = 0;  // blocks that filters hold
int allocate(void** memory, std::size_t alignment, std::size_t bytes) {
  const int status = posix_memalign(memory, alignment, bytes);
  if (status == 0) ++live;
  return status;
}
void release(void* memory) {
  if (memory) --live;
  std::free(memory);
}
const FilterParameters kCounted{.allocator = &allocate, .deallocator = &release};

const Shape kVector = Shape::vector(6), kImage = Shape::imageCHW(4, 4, 2);

// `good` makes a layer, `bad` is refused by the C library with a reason that has this word. `call` applies it.
template <class L, class Call>
void expect_lifetime(const typename L::Parameters& good, const typename L::Parameters& bad, const char* word,
                     Call&& call) {
  static_assert(!std::is_copy_constructible_v<L> && std::is_nothrow_move_constructible_v<L>);
  const int before = live;
  {
    typename L::Parameters p = good, q = bad;
    p.filterParameters = q.filterParameters = kCounted;
    L layer(p);
    ASSERT_NE(layer.bnnsFilter(), nullptr);
    call(layer);
    L moved = std::move(layer);
    EXPECT_EQ(layer.bnnsFilter(), nullptr);                              // NOLINT: on purpose
    EXPECT_TRUE(refuses(kApply, {"moved from"}, [&] { call(layer); }));  // NOLINT
    call(moved);
    std::optional<L> made = make<L>(p);
    ASSERT_TRUE(made);
    call(*made);
    *made = std::move(moved);
    call(*made);
    EXPECT_TRUE(refuses(kApply, {"moved from"}, [&] { call(moved); }));  // NOLINT: nor after an assignment
    L& itself = *made;
    *made = std::move(itself);
    call(*made);
    layer = std::move(*made);
    call(layer);
    EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreate", word}, [&] { L refused(q); }));
    EXPECT_FALSE(make<L>(q));
  }
  EXPECT_EQ(live, before) << "blocks that nobody released";
}

TEST(OverlayLifetime, EveryLayer) {
  const Desc v = descriptor(kVector), image = descriptor(kImage), seven = descriptor({7});
  const NDArray x = data(kVector, 1), xi = data(kImage, 2), w = data(Shape::matrixRowMajor(6, 6), 3, 1),
                kernel = data(Shape::convolutionWeightsOIHW(3, 3, 2, 2), 4, 1), beta = data({2}, 5, 1);
  NDArray y = output(kVector), yi = output(kImage);
  const auto unary = [&](auto& layer) { layer.apply(kBatch, x, y); };
  const auto picture = [&](auto& layer) { layer.apply(kBatch, xi, yi); };
  constexpr auto sample = DescriptorType::sample;

  expect_lifetime<ActivationLayer>({.function = ActivationFunction::tanh(), .input = v, .output = v},
                                   {.function = ActivationFunction::tanh(), .input = v, .output = seven}, "7", unary);
  expect_lifetime<ConvolutionLayer>(
      {.input = image, .weights = kernel, .output = image, .padding = ConvolutionPadding::symmetric(1, 1)},
      {.input = image, .weights = kernel, .output = image}, "width", picture);
  expect_lifetime<TransposedConvolutionLayer>(
      {.input = image, .weights = kernel, .output = image, .padding = ConvolutionPadding::symmetric(1, 1)},
      {.input = image, .weights = kernel, .output = descriptor(Shape::imageCHW(4, 4, 3))}, "3", picture);
  expect_lifetime<FullyConnectedLayer>({.input = v, .output = v, .weights = w},
                                       {.input = v, .output = seven, .weights = w}, "w_desc", unary);
  expect_lifetime<PoolingLayer>({.type = PoolingType::max(), .input = image, .output = image, .kernelSize = {1, 1}},
                                {.type = PoolingType::max(), .input = image, .output = image, .kernelSize = {0, 1}},
                                "k_width", picture);
  expect_lifetime<NormalizationLayer>(
      {.type = NormalizationType::batch({}, {}), .input = image, .output = image, .epsilon = 1e-5f},
      {.type = NormalizationType::batch({}, {}), .input = image, .output = v, .epsilon = 1e-5f}, "normalization",
      [&](auto& layer) { layer.apply(kBatch, xi, yi, LearningPhase::training); });
  expect_lifetime<LossLayer>(
      {.input = v, .output = v, .lossFunction = LossFunction::meanSquareError(), .lossReduction = LossReduction::none},
      {.input = image,
       .output = v,
       .lossFunction = LossFunction::meanSquareError(),
       .lossReduction = static_cast<LossReduction>(7)},
      "loss", [&](auto& layer) { layer.apply(kBatch, x, x, y, std::nullopt); });
  expect_lifetime<UnaryArithmeticLayer>({.input = v,
                                         .inputDescriptorType = sample,
                                         .output = v,
                                         .outputDescriptorType = sample,
                                         .function = ArithmeticUnaryFunction::exp},
                                        {.input = v,
                                         .inputDescriptorType = sample,
                                         .output = seven,
                                         .outputDescriptorType = sample,
                                         .function = ArithmeticUnaryFunction::exp},
                                        "7", unary);
  expect_lifetime<BinaryArithmeticLayer>({.inputA = v,
                                          .inputADescriptorType = sample,
                                          .inputB = v,
                                          .inputBDescriptorType = sample,
                                          .output = v,
                                          .outputDescriptorType = sample,
                                          .function = ArithmeticBinaryFunction::add},
                                         {.inputA = v,
                                          .inputADescriptorType = sample,
                                          .inputB = seven,
                                          .inputBDescriptorType = sample,
                                          .output = v,
                                          .outputDescriptorType = sample,
                                          .function = ArithmeticBinaryFunction::add},
                                         "7", [&](auto& layer) { layer.apply(kBatch, x, x, y); });
  expect_lifetime<TernaryArithmeticLayer>({.inputA = v,
                                           .inputADescriptorType = sample,
                                           .inputB = v,
                                           .inputBDescriptorType = sample,
                                           .inputC = v,
                                           .inputCDescriptorType = sample,
                                           .output = v,
                                           .outputDescriptorType = sample,
                                           .function = ArithmeticTernaryFunction::multiplyAdd},
                                          {.inputA = v,
                                           .inputADescriptorType = sample,
                                           .inputB = v,
                                           .inputBDescriptorType = sample,
                                           .inputC = seven,
                                           .inputCDescriptorType = sample,
                                           .output = v,
                                           .outputDescriptorType = sample,
                                           .function = ArithmeticTernaryFunction::multiplyAdd},
                                          "7", [&](auto& layer) { layer.apply(kBatch, x, x, x, y); });
  const Desc row = descriptor(Shape::matrixRowMajor(6, 1)), square = descriptor(Shape::matrixRowMajor(6, 6));
  expect_lifetime<BroadcastMatrixMultiplyLayer>({.inputA = row, .inputB = square, .output = row},
                                                {.inputA = row, .inputB = row, .output = row}, "matmul",
                                                [&](auto& layer) { layer.apply(1, x, w, y); });
  expect_lifetime<TensorContractionLayer>({.operation = "a_i, b_i -> o_i", .inputA = v, .inputB = v, .output = v},
                                          {.operation = "a_i, b_i", .inputA = v, .inputB = v, .output = v}, "operation",
                                          [&](auto& layer) { layer.apply(kBatch, x, x, y); });
  NDArray products = output(Shape::matrixRowMajor(2, 2));
  expect_lifetime<GramLayer>({.input = image, .output = descriptor(Shape::matrixRowMajor(2, 2)), .alpha = 1},
                             {.input = image, .output = descriptor(Shape::matrixRowMajor(2, 3)), .alpha = 1}, "gram",
                             [&](auto& layer) { layer.apply(kBatch, xi, products); });
  expect_lifetime<DropoutLayer>({.input = v, .output = v, .rate = 0.5f, .seed = 1},
                                {.input = v, .output = v, .rate = 1.5f, .seed = 1}, "rate", unary);
  expect_lifetime<PaddingLayer>({.input = v, .output = v, .mode = PaddingMode::reflect(), .size = {{0, 0}}},
                                {.input = v, .output = seven, .mode = PaddingMode::reflect(), .size = {{0, 0}}}, "7",
                                unary);
  expect_lifetime<PermuteLayer>({.input = v, .output = v, .permutation = {0}},
                                {.input = v, .output = v, .permutation = {1}}, "permutation", unary);
  expect_lifetime<ResizeLayer>(
      {.interpolationMethod = InterpolationMethod::nearestNeighbor, .input = v, .output = v, .alignsCorners = false},
      {.interpolationMethod = InterpolationMethod::nearestNeighbor,
       .input = v,
       .output = image,
       .alignsCorners = false},
      "resize", unary);
  const auto fused = [&](auto& layer) { layer.apply(kBatch, xi, yi, LearningPhase::training); };
  expect_lifetime<FusedConvolutionNormalizationLayer>({.input = image,
                                                       .output = image,
                                                       .convolutionWeights = kernel,
                                                       .convolutionPadding = ConvolutionPadding::symmetric(1, 1),
                                                       .normalization = NormalizationType::batch({}, {}),
                                                       .normalizationMomentum = 0,
                                                       .normalizationEpsilon = 1e-5f},
                                                      {.input = image,
                                                       .output = image,
                                                       .convolutionWeights = kernel,
                                                       .normalization = NormalizationType::batch({}, {}),
                                                       .normalizationMomentum = 0,
                                                       .normalizationEpsilon = 1e-5f},
                                                      "width", fused);
  expect_lifetime<FusedFullyConnectedNormalizationLayer>(
      {.input = v,
       .output = v,
       .fullyConnectedWeights = w,
       .normalization = NormalizationType::batch({}, {}),
       .normalizationMomentum = 0,
       .normalizationEpsilon = 1e-5f},
      {.input = seven,
       .output = v,
       .fullyConnectedWeights = w,
       .normalization = NormalizationType::batch({}, {}),
       .normalizationMomentum = 0,
       .normalizationEpsilon = 1e-5f},
      "7", [&](auto& layer) { layer.apply(kBatch, x, y, LearningPhase::training); });
  expect_lifetime<FusedParametersLayer>(
      {.inputs = {v},
       .output = v,
       .fusedLayerParameters = {FusedFullyConnectedParameters{.weights = w},
                                FusedNormalizationParameters{.type = NormalizationType::batch({}, {}),
                                                             .epsilon = 1e-5f}}},
      {.inputs = {v},
       .output = v,
       .fusedLayerParameters = {FusedFullyConnectedParameters{.weights = w},
                                FusedFullyConnectedParameters{.weights = w}}},
      "fused", [&](auto& layer) { layer.apply(kBatch, x, y, LearningPhase::training); });
  NDArray sum = output({1});
  expect_lifetime<ReductionLayer>({.function = ReductionFunction::sum(), .input = v, .output = descriptor({1})},
                                  {.function = ReductionFunction::sum(), .input = v, .output = seven}, "7",
                                  [&](auto& layer) { layer.apply(kBatch, x, sum); });
  const NDArray table = data(Shape::matrixLastMajor(6, 4), 8, 1), words = NDArray::from({1, 3, 0}, {1}, kBatch);
  const Desc word = descriptor<int>({1}), items = descriptor(Shape::matrixLastMajor(6, 1));
  expect_lifetime<EmbeddingLayer>({.input = word, .output = items, .dictionary = table},
                                  {.input = v, .output = items, .dictionary = table}, "i_desc",
                                  [&](auto& layer) { layer.apply(kBatch, words, y); });
  const Shape target = {3, 2}, heads = Shape::tensor3DLastMajor(2, 2, 1);
  const NDArray wa = data(heads, 6, 1), wo = data({2, 2}, 7, 1);
  const MultiheadAttentionLayer::Projection in{.target = descriptor(target), .weights = wa},
      out{.target = descriptor(target), .weights = wo}, twisted{.target = descriptor({3, 5}), .weights = wo};
  expect_lifetime<MultiheadAttentionLayer>({.query = in, .key = in, .value = in, .output = out},
                                           {.query = in, .key = in, .value = in, .output = twisted}, "attention",
                                           [&](auto& layer) { layer.apply(kBatch, x, x, x, y); });
}

// Handles of the base class are enough to own and to release.
TEST(OverlayLifetime, PolymorphicOwnership) {
  const int before = live;
  {
    const Desc v = descriptor(kVector);
    std::vector<std::unique_ptr<Layer>> net;
    net.push_back(std::make_unique<ActivationLayer>(ActivationLayer::Parameters{
        .function = ActivationFunction::tanh(), .input = v, .output = v, .filterParameters = kCounted}));
    net.push_back(std::make_unique<DropoutLayer>(
        DropoutLayer::Parameters{.input = v, .output = v, .rate = 0.5f, .seed = 1, .filterParameters = kCounted}));
    EXPECT_GT(live, before);
  }
  EXPECT_EQ(live, before);
  static_assert(!std::is_move_constructible_v<Layer> && !std::is_constructible_v<UnaryLayer, ActivationLayer>,
                "a layer cannot be sliced");
}

// Absent data is found before the C call, which would see a null pointer only.
TEST(OverlayLifetime, MissingData) {
  const Desc v = descriptor(kVector);
  ActivationLayer layer({.function = ActivationFunction::tanh(), .input = v, .output = v});
  const NDArray x = data(kVector, 1);
  NDArray y = output(kVector);
  EXPECT_TRUE(refuses(kData, {"input", "no data"}, [&] { layer.apply(kBatch, v, y); }));
  EXPECT_TRUE(refuses(kData, {"output", "no data"}, [&] { layer.apply(kBatch, x, v); }));
  EXPECT_TRUE(refuses(kData, {"outputGradient"}, [&] { layer.applyBackward(kBatch, x, y, v, y); }));
  EXPECT_TRUE(refuses(kData, {"generatingInputGradient"}, [&] { layer.applyBackward(kBatch, x, y, x, v); }));
  const NDArray dy = data({7}, 2);
  EXPECT_TRUE(refuses(kData, {"ActivationLayer::applyBackward: outputGradient has 7 elements", "takes 6"},
                      [&] { layer.applyBackward(kBatch, x, y, dy, y); }));
}

TEST(OverlayError, CarriesEverything) {
  try {
    FullyConnectedLayer layer({.input = descriptor({4}), .output = descriptor({2}), .weights = descriptor({4, 2})});
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), kCreate);
    EXPECT_EQ(e.function(), "FullyConnectedLayer");
    EXPECT_NE(e.status(), 0);
    EXPECT_EQ(e.reason(), BNNSExtLastError());  // "function: operator: reason"
    EXPECT_TRUE(e.reason().starts_with("BNNSFilterCreateLayerFullyConnected: ")) << e.reason();
    EXPECT_EQ(e.what(), "FullyConnectedLayer: " + e.reason());
  }
  static_assert(std::is_base_of_v<std::runtime_error, Error>);
}

}  // namespace
}  // namespace overlay
