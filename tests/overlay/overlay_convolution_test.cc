// ConvolutionLayer, TransposedConvolutionLayer and FullyConnectedLayer against the C calls, to the bit.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

// Forward and backward through the overlay and through C, all gradients.
template <class L>
void expect_same(L& layer, BNNSFilter filter, const Shape& in, const Shape& weights, const Shape& out) {
  const NDArray x = data(in, 1), dy = data(out, 2);
  NDArray y = output(out), cy = output(out), dx = output(in), cdx = output(in), dw = output(weights, 1),
          cdw = output(weights, 1), db = output({4}, 1), cdb = output({4}, 1);
  layer.apply(kBatch, x, y);
  const Desc xd = x, yd = cy;
  ASSERT_EQ(BNNSFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0), 0) << BNNSExtLastError();
  EXPECT_TRUE(same(y, cy));
  layer.applyBackward(kBatch, x, y, dy, dx, dw, db);
  ASSERT_EQ(backward(filter, x, cy, dy, &cdx, &cdw, &cdb), 0) << BNNSExtLastError();
  EXPECT_TRUE(same(dx, cdx));
  EXPECT_TRUE(same(dw, cdw));
  EXPECT_TRUE(same(db, cdb));

  // The labelled form, one gradient alone, and one added to what is there.
  NDArray alone = output(weights, 1), twice = NDArray::from<float>(dw.span<float>(), weights);
  layer.applyBackward(
      {.batchSize = kBatch, .input = x, .output = y, .outputGradient = dy, .generatingWeightsGradient = alone});
  EXPECT_TRUE(same(alone, dw));
  layer.applyBackward(kBatch, x, y, dy, std::nullopt, twice.accumulating());
  for (std::size_t i = 0; i < dw.span<float>().size(); ++i) {
    ASSERT_EQ(twice.span<float>()[i], 2 * dw.span<float>()[i]) << i;
  }
  NDArray only = output(in);
  layer.applyBackward(kBatch, x, y, dy, only);  // the call of UnaryLayer
  EXPECT_TRUE(same(only, dx));
}

TEST(OverlayConvolution, EqualsC) {
  const Shape in = Shape::imageCHW(9, 8, 2), weights = Shape::convolutionWeightsOIHW(3, 2, 1, 4),
              out = Shape::imageCHW(4, 7, 4);
  const NDArray w = data(weights, 3, 1), b = data({4}, 4, 1);
  // Width (9 + 1 + 2 - (2 * 2 + 1)) / 2 + 1 = 4; height (8 + 0 + 1 - (1 * 1 + 1)) / 1 = 7.
  ConvolutionLayer layer({.input = descriptor(in),
                          .weights = w,
                          .output = descriptor(out),
                          .bias = b,
                          .padding = ConvolutionPadding::asymmetric(1, 2, 0, 1),
                          .activation = ActivationFunction::tanh(),
                          .groupCount = 2,
                          .stride = {2, 1},
                          .dilationStride = {2, 1},
                          .filterParameters = useClientPointer});
  BNNSLayerParametersConvolution c{};
  c.i_desc = descriptor(in), c.w_desc = w, c.o_desc = descriptor(out), c.bias = b;
  c.activation.function = BNNSActivationFunctionTanh;
  c.x_stride = 2, c.y_stride = 1, c.x_dilation_stride = 2, c.y_dilation_stride = 1, c.groups = 2;
  c.pad[0] = 1, c.pad[1] = 2, c.pad[2] = 0, c.pad[3] = 1;
  const Filter filter(BNNSFilterCreateLayerConvolution(&c, nullptr));
  expect_same(layer, filter, in, weights, out);
}

TEST(OverlayConvolution, TransposedEqualsC) {
  const Shape in = Shape::imageCHW(4, 3, 2), weights = Shape::convolutionWeightsOIHW(3, 3, 2, 4),
              out = Shape::imageCHW(7, 5, 4);
  const NDArray w = data(weights, 3, 1), b = data({4}, 4, 1);
  const ConvolutionLayer::Parameters p{.input = descriptor(in),
                                       .weights = w,
                                       .output = descriptor(out),
                                       .bias = b,
                                       .padding = ConvolutionPadding::symmetric(1, 1),
                                       .stride = {2, 2}};
  ConvolutionLayer::Parameters q = p;
  q.type = ConvolutionType::transposed;
  TransposedConvolutionLayer layer(p);
  ConvolutionLayer same_layer(q);
  BNNSLayerParametersConvolution c{};
  c.i_desc = descriptor(in), c.w_desc = w, c.o_desc = descriptor(out), c.bias = b;
  c.x_stride = c.y_stride = 2, c.x_padding = c.y_padding = 1;
  const Filter filter(BNNSFilterCreateLayerTransposedConvolution(&c, nullptr));
  expect_same(layer, filter, in, weights, out);
  expect_same(same_layer, filter, in, weights, out);
}

TEST(OverlayFullyConnected, EqualsC) {
  const Shape in = Shape::vector(12), weights = Shape::matrixRowMajor(12, 4), out = Shape::vector(4);
  const NDArray w = data(weights, 3, 1), b = data({4}, 4, 1);
  FullyConnectedLayer layer({.input = descriptor(in),
                             .output = descriptor(out),
                             .weights = w,
                             .bias = b,
                             .activation = ActivationFunction::leakyRectifiedLinear(0.25f)});
  BNNSLayerParametersFullyConnected c{};
  c.i_desc = descriptor(in), c.w_desc = w, c.o_desc = descriptor(out), c.bias = b;
  c.activation.function = BNNSActivationFunctionLeakyRectifiedLinear, c.activation.alpha = 0.25f;
  const Filter filter(BNNSFilterCreateLayerFullyConnected(&c, nullptr));
  expect_same(layer, filter, in, weights, out);
  // Apple's sample applies a layer made for a vector to an image with as many elements.
  expect_same(layer, filter, Shape::imageCHW(3, 2, 2), weights, out);
}

// The client's pointer is read at every call; without the flag the layer has a copy.
TEST(OverlayFullyConnected, ClientPointer) {
  const NDArray x = NDArray::from({1.0f, 1.0f}, {2});
  NDArray w = NDArray::from({1.0f, 2.0f}, Shape::matrixRowMajor(2, 1)), y = output({1}, 1);
  FullyConnectedLayer live({.input = x, .output = y, .weights = w, .filterParameters = useClientPointer});
  FullyConnectedLayer copied({.input = x, .output = y, .weights = w, .filterParameters = FilterParameters{}});
  w.span<float>()[0] = 10;
  live.apply(1, x, y);
  EXPECT_EQ(y.span<float>()[0], 12);
  copied.apply(1, x, y);
  EXPECT_EQ(y.span<float>()[0], 3);
}

// A batch stride comes from the shape: samples with gaps between their elements.
TEST(OverlayFullyConnected, StridesOfTheBatch) {
  std::vector<float> x = {1, 9, 2, 9, 3, 9, 4, 9}, y(2, -1.0f);
  const NDArray w = NDArray::from({1.0f, 10.0f}, Shape::matrixRowMajor(2, 1));
  const Desc in = NDArray::view<float>(x, Shape::vector(2, 2), 2), out = NDArray::view<float>(y, Shape::vector(1), 2);
  FullyConnectedLayer layer({.input = in, .output = out, .weights = w});
  layer.apply(2, in, out);
  EXPECT_EQ(y, (std::vector<float>{21, 43}));
}

}  // namespace
}  // namespace overlay
