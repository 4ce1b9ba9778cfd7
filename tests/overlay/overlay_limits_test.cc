// Arrays at the limits: no samples, sizes that wrap, gaps in other places, lists with holes, constants of other types.

#include <memory>

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

TEST(OverlayLimits, ArraysWithoutSamples) {
  const NDArray x = data({2}, 1, 1), dy = data({1}, 2, 1);
  NDArray y = output({1}, 1), w = NDArray::repeating(1.0f, Shape::matrixRowMajor(2, 1)),
          none = NDArray::repeating(1.0f, Shape::matrixRowMajor(2, 1), 0),
          dw = NDArray::repeating(0.0f, Shape::matrixRowMajor(2, 1));
  FullyConnectedLayer layer({.input = x, .output = y, .weights = w});
  EXPECT_TRUE(refuses(kData, {"FullyConnectedLayer::applyBackward: generatingWeightsGradient holds 0 samples"},
                      [&] { layer.applyBackward(1, x, y, dy, {}, none); }));
  const SGDMomentumOptimizer sgd{.learningRate = 1};
  EXPECT_TRUE(refuses(kData, {"parameters[0] holds 0 samples"}, [&] { sgd.step({none}, {dw}, {}); }));
  EXPECT_TRUE(refuses(kData, {"holds 0 samples, the function takes one"},
                      [&] { applyMatrixMultiplication(x, false, x, false, none, 1); }));
  // A layer takes descriptors: there an array without samples is one of zeros.
  FullyConnectedLayer zeros({.input = x, .output = y, .weights = none});
  zeros.apply(1, x, y);
  EXPECT_EQ(y.span<float>()[0], 0.0f);
  EXPECT_NO_THROW(zeros.apply(0, NDArray::inputView<float>(x.span<float>(), {2}, 0), y));
  std::vector<float> one(1);
  EXPECT_TRUE(refuses(kData, {"NDArray::view", "smaller than one sample"}, [&] { NDArray::view<float>(one, {2}, 0); }));
}

TEST(OverlayLimits, SizesThatWrap) {
  std::vector<float> two(2);
  EXPECT_TRUE(refuses(kData, {"does not fit in size_t"}, [&] { NDArray::view<float>(two, {3}, 0x5555555555555556); }));
  constexpr std::size_t half = ~std::size_t{0} / 2;
  EXPECT_TRUE(refuses(kData, {"does not fit in size_t"}, [&] {
    Shape({2, 2, 2}, DataLayout::tensor3DLastMajor, {3, half, half});
  }));
}

// The C calls use the strides of the layer: equal counts over equally much memory are not enough.
TEST(OverlayLimits, GapsInOtherPlaces) {
  const NDArray x = data({6}, 1, 1);
  std::vector<float> memory(9, -1.0f);
  const View block = NDArray::view<float>(memory, Shape::matrixRowMajor(2, 3, {1, 3}));
  ActivationLayer other({.function = ActivationFunction::identity(),
                         .input = x,
                         .output = descriptor(Shape::matrixRowMajor(3, 2, {1, 5}))});
  EXPECT_TRUE(refuses(kData, {"output spreads 6 elements"}, [&] { other.apply(1, x, block); }));
  ActivationLayer same({.function = ActivationFunction::identity(),
                        .input = x,
                        .output = descriptor(Shape::matrixColumnMajor(2, 3, {1, 3}))});
  same.apply(1, x, block);  // another layout of the same elements
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(memory[i], i % 3 == 2 ? -1.0f : x.span<float>()[i / 3 * 2 + i % 3]) << i;
  }
}

TEST(OverlayLimits, NeighborsTakePackedRows) {
  NearestNeighbors store(4, 2, 1, BNNSDataTypeFloat32);
  const NDArray gaps = NDArray::from({0.0f, 9.0f, 0.0f, 9.0f, 3.0f, 9.0f, 4.0f, 9.0f}, Shape::vector(2, 2), 2);
  EXPECT_TRUE(refuses(kData, {"NearestNeighbors::append: samples have gaps"}, [&] { store.append(gaps); }));
}

TEST(OverlayLimits, IndexBuffersCoverTheOutput) {
  const NDArray x = data(Shape::imageCHW(4, 4, 1), 1, 1);
  NDArray y = output(Shape::imageCHW(2, 2, 1), 1);
  std::vector<std::uint32_t> one(1);
  const View short_ = NDArray::view<std::uint32_t>(one, Shape::vector(1, 4));
  PoolingLayer layer(
      {.type = PoolingType::maxEx(short_), .input = x, .output = y, .kernelSize = {2, 2}, .stride = {2, 2}});
  EXPECT_TRUE(
      refuses(kData, {"PoolingLayer::apply: indicesDescriptor has 1 indices a sample"}, [&] { layer.apply(1, x, y); }));
}

template <class T>
std::vector<T> padded(float constant) {
  NDArray x = NDArray::repeating(T(1), {1}), y = NDArray::repeating(T(0), {2});
  PaddingLayer layer({.input = x, .output = y, .mode = PaddingMode::constantScalar(constant), .size = {{1, 0}}});
  layer.apply(1, x, y);
  return y.makeArray<T>();
}

TEST(OverlayLimits, PaddingConstantsInEveryType) {
  EXPECT_EQ(padded<float>(7)[0], 7.0f);
  EXPECT_EQ(padded<Float16>(7)[0].bits, Float16(7).bits);
  EXPECT_EQ(padded<BFloat16>(-7)[0].bits, BFloat16(-7).bits);
  EXPECT_EQ(padded<std::int8_t>(-7)[0], -7);
  EXPECT_EQ(padded<std::uint16_t>(65535)[0], 65535);
  EXPECT_EQ(padded<std::int32_t>(-7)[0], -7);
  EXPECT_EQ(padded<std::int64_t>(7)[0], 7);
  EXPECT_TRUE(refuses(Error::Code::unableToCreateLayer, {"128", "no value of Int8"}, [] { padded<std::int8_t>(128); }));
  EXPECT_TRUE(refuses(Error::Code::unableToCreateLayer, {"no value of Int32"}, [] { padded<std::int32_t>(0.5f); }));
  EXPECT_TRUE(refuses(Error::Code::unableToCreateLayer, {"no value of Int64"}, [] { padded<std::int64_t>(-7); }));
}

TEST(OverlayLimits, ListsWithHoles) {
  NDArray w = output({2}, 1), dw = output({2}, 1);
  const SGDMomentumOptimizer sgd{.learningRate = 1};
  std::vector<NDArray*> holes{&w, nullptr};
  std::vector<std::unique_ptr<NDArray>> none(1);
  EXPECT_TRUE(refuses(kData, {"entry 1 is a null pointer"}, [&] { sgd.step(holes, {dw, dw}, {}); }));
  EXPECT_TRUE(refuses(kData, {"entry 0 is a null pointer"}, [&] { sgd.step(none, {dw}, {}); }));
}

TEST(OverlayLimits, PermutationsHaveTheRank) {
  for (const std::vector<std::size_t>& wrong : {std::vector<std::size_t>{1}, {1, 0, 5}}) {
    EXPECT_TRUE(
        refuses(Error::Code::unableToCreateLayer, {"PermuteLayer: permutation has", "the rank of input is 2"}, [&] {
          PermuteLayer({.input = descriptor({2, 3}), .output = descriptor({3, 2}), .permutation = wrong});
        }));
  }
}

TEST(OverlayLimits, RandomCharacters) {
  RandomGenerator random({.seed = 1});
  const NDArray letters = NDArray::uniform(random, 'a', 'z', {200});
  for (const char letter : letters.span<char>()) EXPECT_TRUE(letter >= 'a' && letter <= 'z');
  EXPECT_TRUE(refuses(Error::Code::layerApplyFail, {"desc.data_type is bool, expected an integer type"},
                      [&] { NDArray::uniform(random, false, true, {3}); }));
}

TEST(OverlayLimits, MasksAndAxesSayWhatIsWrong) {
  EXPECT_TRUE(refuses(Error::Code::unableToCreateLayer, {"ActivationLayer: no array has an axis 77"}, [] {
    ActivationLayer(
        {.function = ActivationFunction::softmax(), .input = descriptor({2}), .output = descriptor({2}), .axes = {77}});
  }));
}

}  // namespace
}  // namespace overlay
