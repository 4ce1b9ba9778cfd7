// Gram, dropout, padding, permutation and resizing against the C calls, to the bit.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

// Forward and backward of a layer with one input and no parameters.
template <class L>
void expect_unary(L& layer, BNNSFilter filter, const Shape& in, const Shape& out) {
  const NDArray x = data(in, 1), dy = data(out, 2);
  NDArray y = output(out), cy = output(out), dx = output(in), cdx = output(in);
  const Desc xd = x, yd = cy;
  layer.apply(kBatch, x, y);
  ASSERT_EQ(BNNSFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0), 0) << BNNSExtLastError();
  EXPECT_TRUE(same(y, cy));
  layer.applyBackward(kBatch, x, y, dy, dx);
  ASSERT_EQ(backward(filter, x, cy, dy, &cdx), 0) << BNNSExtLastError();
  EXPECT_TRUE(same(dx, cdx));
}

TEST(OverlayLayers, GramEqualsC) {
  const Shape in = Shape::imageCHW(4, 3, 2), out = Shape::matrixRowMajor(2, 2);
  GramLayer layer({.input = descriptor(in), .output = descriptor(out), .alpha = 0.25f});
  BNNSLayerParametersGram c{};
  c.alpha = 0.25f, c.i_desc = descriptor(in), c.o_desc = descriptor(out);
  const Filter filter(BNNSFilterCreateLayerGram(&c, nullptr));
  expect_unary(layer, filter, in, out);
}

TEST(OverlayLayers, DropoutEqualsC) {
  const Shape shape = Shape::matrixRowMajor(16, 8);
  DropoutLayer layer({.input = descriptor(shape), .output = descriptor(shape), .rate = 0.5f, .seed = 9, .control = 2});
  BNNSLayerParametersDropout c{};
  c.i_desc = c.o_desc = descriptor(shape), c.rate = 0.5f, c.seed = 9, c.control = 2;
  const Filter filter(BNNSFilterCreateLayerDropout(&c, nullptr));
  expect_unary(layer, filter, shape, shape);
  expect_unary(layer, filter, shape, shape);  // the next pattern
}

TEST(OverlayLayers, PaddingEqualsC) {
  const Shape in = Shape::matrixRowMajor(4, 3), out = Shape::matrixRowMajor(7, 4);
  const PaddingMode modes[] = {PaddingMode::constantScalar(2.5f), PaddingMode::constantBitPattern(0x3f800000),
                               PaddingMode::reflect(), PaddingMode::symmetric()};
  const std::uint32_t bits[] = {0x40200000, 0x3f800000, 0, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(modes[i].paddingBitPattern(), bits[i]);
    PaddingLayer layer(
        {.input = descriptor(in), .output = descriptor(out), .mode = modes[i], .size = {{1, 2}, {0, 1}}});
    BNNSLayerParametersPadding c{};
    c.i_desc = descriptor(in), c.o_desc = descriptor(out), c.padding_mode = modes[i].bnnsPaddingMode();
    c.padding_value = bits[i], c.padding_size[0][0] = 1, c.padding_size[0][1] = 2, c.padding_size[1][1] = 1;
    const Filter filter(BNNSFilterCreateLayerPadding(&c, nullptr));
    expect_unary(layer, filter, in, out);
  }
  EXPECT_TRUE(refuses(kCreate, {"9 entries"}, [&] {
    PaddingLayer({.input = descriptor(in), .output = descriptor(out), .mode = modes[0], .size = std::vector<XY>(9)});
  }));
}

TEST(OverlayLayers, PermuteEqualsC) {
  const Shape in = Shape::tensor3DFirstMajor(2, 3, 4), out = Shape::tensor3DFirstMajor(4, 2, 3);
  PermuteLayer layer({.input = descriptor(in), .output = descriptor(out), .permutation = {2, 0, 1}});
  BNNSLayerParametersPermute c{};
  c.i_desc = descriptor(in), c.o_desc = descriptor(out), c.permutation[0] = 2, c.permutation[2] = 1;
  const Filter filter(BNNSFilterCreateLayerPermute(&c, nullptr));
  expect_unary(layer, filter, in, out);
  EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreateLayerPermute"}, [&] {
    PermuteLayer({.input = descriptor(in), .output = descriptor(out), .permutation = {2, 2, 1}});
  }));
  EXPECT_TRUE(refuses(kCreate, {"9 entries"}, [&] {
    PermuteLayer({.input = descriptor(in), .output = descriptor(out), .permutation = std::vector<std::size_t>(9)});
  }));
}

TEST(OverlayLayers, ResizeEqualsC) {
  const Shape in = Shape::imageCHW(3, 2, 2), out = Shape::imageCHW(6, 4, 2);
  for (InterpolationMethod m : {InterpolationMethod::linear, InterpolationMethod::nearestNeighbor}) {
    ResizeLayer layer({.interpolationMethod = m,
                       .input = descriptor(in),
                       .output = descriptor(out),
                       .alignsCorners = m == InterpolationMethod::linear});
    BNNSLayerParametersResize c{};
    c.method = m == InterpolationMethod::linear ? BNNSInterpolationMethodLinear : BNNSInterpolationMethodNearest;
    c.i_desc = descriptor(in), c.o_desc = descriptor(out), c.align_corners = m == InterpolationMethod::linear;
    const Filter filter(BNNSFilterCreateLayerResize(&c, nullptr));
    expect_unary(layer, filter, in, out);
  }
}

}  // namespace
}  // namespace overlay
