// Free functions against the C calls, to the bit.

#include <algorithm>

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

// One C call and one overlay call, each with an output of its own.
template <class Overlay, class C>
void expect_function(const Shape& out, Overlay&& overlay, C&& c) {
  NDArray y = NDArray::repeating(0.5f, out), cy = NDArray::repeating(0.5f, out);
  overlay(y);
  Desc d = cy;
  ASSERT_EQ(c(&d), 0) << BNNSExtLastError();
  EXPECT_TRUE(same(y, cy));
}

TEST(OverlayFunctions, NormsEqualC) {
  const Shape shape = Shape::tensor3DFirstMajor(2, 3, 4);
  const NDArray x = data(shape, 1, 1), z = data(shape, 2, 1);
  const Desc xd = x;
  const std::size_t axes[] = {0, 2};
  expect_function(
      shape,
      [&](auto& y) {
        clip({-0.5f, 0.25f}, x, y);
      },
      [&](Desc* y) { return BNNSClipByValue(y, &xd, -0.5f, 0.25f); });
  expect_function(
      shape, [&](auto& y) { clipByNorm(0.5f, x, y, axes); }, [&](Desc* y) { return BNNSClipByNorm(y, &xd, 0.5f, 5); });
  expect_function(
      shape, [&](auto& y) { clipByNorm(0.5f, x, y); }, [&](Desc* y) { return BNNSClipByNorm(y, &xd, 0.5f, 0); });
  expect_function(
      {3}, [&](auto& y) { computeNorm(x, y, axes); }, [&](Desc* y) { return BNNSComputeNorm(y, &xd, BNNSL2Norm, 5); });
  NDArray n = output({3}, 1);
  computeNorm(x, n, axes);
  const NDArray dn = data({3}, 3, 1);
  const Desc nd = n, dnd = dn;
  expect_function(
      shape, [&](auto& dx) { computeNormBackward(x, n, dn, dx, axes); },
      [&](Desc* dx) { return BNNSComputeNormBackward(xd.data, dx, nd.data, &dnd, BNNSL2Norm, 5); });
  NDArray a = output(shape, 1), b = output(shape, 1), ca = output(shape, 1), cb = output(shape, 1);
  const Desc in[] = {x, z}, out[] = {a, b};
  clipByGlobalNorm(1.5f, in, out);
  Desc cad = ca, cbd = cb, *cout[] = {&cad, &cbd};
  const Desc* cin[] = {&in[0], &in[1]};
  ASSERT_EQ(BNNSClipByGlobalNorm(cout, cin, 2, 1.5f, 0), 0);
  EXPECT_TRUE(same(a, ca));
  EXPECT_TRUE(same(b, cb));
  EXPECT_TRUE(refuses(kApply, {"2 inputs, but 1 outputs"},
                      [&] { clipByGlobalNorm(1, in, std::span<const Desc>(out).first(1)); }));
}

TEST(OverlayFunctions, MovesEqualC) {
  const Shape shape = Shape::matrixFirstMajor(3, 4);
  const NDArray x = data(shape, 1, 1);
  const Desc xd = x;
  expect_function(
      Shape::matrixLastMajor(3, 4), [&](auto& y) { copy(x, y); }, [&](Desc* y) { return BNNSCopy(y, &xd, nullptr); });
  expect_function(
      {4, 3}, [&](auto& y) { transpose(x, y, 0, 1); }, [&](Desc* y) { return BNNSTranspose(y, &xd, 0, 1, nullptr); });
  expect_function(
      {6, 8}, [&](auto& y) { tile(x, y); }, [&](Desc* y) { return BNNSTile(&xd, y, nullptr); });
  const NDArray big = data({6, 8}, 3, 1);
  const Desc bigd = big;
  expect_function(
      shape, [&](auto& dx) { tileBackward(big, dx); }, [&](Desc* dx) { return BNNSTileBackward(dx, &bigd, nullptr); });
  expect_function(
      shape, [&](auto& y) { copyBandPart(x, y, 1, std::nullopt); },
      [&](Desc* y) { return BNNSBandPart(1, -1, &xd, y, nullptr); });
  expect_function(
      shape, [&](auto& y) { copyBandPart(x, y, std::nullopt, 0); },
      [&](Desc* y) { return BNNSBandPart(-1, 0, &xd, y, nullptr); });
  const NDArray deep = data({1, 8, 2, 3}, 4, 1), wide = data({1, 2, 4, 6}, 5, 1);
  const Desc deepd = deep, wided = wide;
  for (ShuffleType t : {ShuffleType::depthToSpaceNCHW, ShuffleType::pixelShuffleNCHW}) {
    expect_function(
        {1, 2, 4, 6}, [&](auto& y) { shuffle(t, deep, y); },
        [&](Desc* y) {
          return BNNSShuffle(
              t == ShuffleType::depthToSpaceNCHW ? BNNSShuffleTypeDepthToSpaceNCHW : BNNSShuffleTypePixelShuffleNCHW,
              &deepd, y, nullptr);
        });
  }
  for (ShuffleType t : {ShuffleType::spaceToDepthNCHW, ShuffleType::pixelUnshuffleNCHW}) {
    expect_function(
        {1, 8, 2, 3}, [&](auto& y) { shuffle(t, wide, y); },
        [&](Desc* y) {
          return BNNSShuffle(
              t == ShuffleType::spaceToDepthNCHW ? BNNSShuffleTypeSpaceToDepthNCHW : BNNSShuffleTypePixelUnshuffleNCHW,
              &wided, y, nullptr);
        });
  }
  const NDArray rows = NDArray::from({2, 0, 2}, {3}), pairs = NDArray::from({1, 2, 0, 3}, {2, 2});
  const Desc rowsd = rows, pairsd = pairs;
  expect_function(
      {3, 4}, [&](auto& y) { gather(x, rows, y, 0); }, [&](Desc* y) { return BNNSGather(0, &xd, &rowsd, y, nullptr); });
  expect_function(
      {2}, [&](auto& y) { gatherND(x, pairs, y); }, [&](Desc* y) { return BNNSGatherND(&xd, &pairsd, y, nullptr); });
  expect_function(
      {3, 4}, [&](auto& y) { scatter(x, rows, y, 0); },
      [&](Desc* y) { return BNNSScatter(0, BNNSReduceFunctionNone, &xd, &rowsd, y, nullptr); });
  expect_function(
      {3, 4}, [&](auto& y) { scatter(x, rows, y, 0, ReductionFunction::sum()); },
      [&](Desc* y) { return BNNSScatter(0, BNNSReduceFunctionSum, &xd, &rowsd, y, nullptr); });
  const NDArray two = data({2}, 6, 1);
  const Desc twod = two;
  expect_function(
      {3, 4}, [&](auto& y) { scatterND(two, pairs, y); },
      [&](Desc* y) { return BNNSScatterND(BNNSReduceFunctionNone, &twod, &pairsd, y, nullptr); });
  expect_function(
      {3, 4}, [&](auto& y) { scatterND(two, pairs, y, ReductionFunction::sum()); },
      [&](Desc* y) { return BNNSScatterND(BNNSReduceFunctionSum, &twod, &pairsd, y, nullptr); });
  NDArray y = output({3, 4}, 1);
  const NDArray far = NDArray::from({2, 9, 2}, {3});
  try {
    gather(x, far, y, 0);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), -1005);  // what the C call returned
    EXPECT_EQ(e.function(), "gather");
    EXPECT_TRUE(e.reason().starts_with("BNNSGather: ")) << e.reason();
    EXPECT_NE(e.reason().find("9"), std::string::npos) << e.reason();
  }
}

TEST(OverlayFunctions, CompareEqualsC) {
  const RelationalOperator operators[] = {
      RelationalOperator::equal,   RelationalOperator::less,         RelationalOperator::lessEqual,
      RelationalOperator::greater, RelationalOperator::greaterEqual, RelationalOperator::notEqual,
      RelationalOperator::and_,    RelationalOperator::or_,          RelationalOperator::not_,
      RelationalOperator::nand,    RelationalOperator::nor,          RelationalOperator::xor_};
  const NDArray a = NDArray::from({0.0f, 1.0f, 2.0f, 0.0f}, {4}), b = NDArray::from({0.0f, 2.0f, 1.0f, 3.0f}, {4});
  const NDArray ba = NDArray::from({false, true, true, false}, {4}),
                bb = NDArray::from({false, true, false, true}, {4});
  for (std::uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ(static_cast<std::uint32_t>(operators[i]), i);  // the order of the C values
    const NDArray &p = i < 6 ? a : ba, &q = i < 6 ? b : bb;
    NDArray y = NDArray::repeating(false, {4}), cy = NDArray::repeating(false, {4});
    const Desc pd = p, qd = q;
    Desc yd = cy;
    compare(p, q, operators[i], y);
    ASSERT_EQ(BNNSCompareTensor(&pd, &qd, static_cast<BNNSRelationalOperator>(i), &yd), 0) << BNNSExtLastError();
    EXPECT_EQ(y.makeArray<bool>(), cy.makeArray<bool>());
  }
  NDArray y = output({4}, 1);
  EXPECT_TRUE(refuses(kApply, {"BNNSCompareTensor"}, [&] { compare(a, b, RelationalOperator::less, y); }));
}

TEST(OverlayFunctions, MatrixMultiplicationEqualsC) {
  const NDArray a = data(Shape::matrixRowMajor(4, 3), 1, 1), b = data(Shape::matrixRowMajor(4, 5), 2, 1);
  const Desc ad = a, bd = b;
  const Shape out = Shape::matrixRowMajor(5, 3);
  expect_function(
      out, [&](auto& y) { applyMatrixMultiplication(a, false, b, true, y, 0.5f); },
      [&](Desc* y) { return BNNSMatMul(false, true, 0.5f, &ad, &bd, y, nullptr, nullptr); });
  const auto bytes = matrixMultiplicationWorkspaceSize(a, false, b, true, descriptor(out), 0.5f);
  ASSERT_TRUE(bytes);
  std::vector<std::byte> workspace(std::max<std::size_t>(*bytes, 1));
  expect_function(
      out, [&](auto& y) { applyMatrixMultiplication(a, false, b, true, y, 0.5f, workspace); },
      [&](Desc* y) { return BNNSMatMul(false, true, 0.5f, &ad, &bd, y, nullptr, nullptr); });
  EXPECT_FALSE(matrixMultiplicationWorkspaceSize(a, true, b, true, descriptor(out), 0.5f));
  NDArray y = output(out, 1);
  EXPECT_TRUE(refuses(kApply, {"BNNSMatMul"}, [&] { applyMatrixMultiplication(a, true, b, true, y, 1); }));
  if (*bytes > 1) {
    EXPECT_TRUE(refuses(kApply, {"workspace", std::to_string(*bytes).c_str()},
                        [&] { applyMatrixMultiplication(a, false, b, true, y, 1, std::span(workspace).first(1)); }));
  }
}

TEST(OverlayFunctions, QuantizeEqualsC) {
  const Shape shape = Shape::matrixRowMajor(3, 2);
  const NDArray x = data(shape, 1, kBatch, -3, 3), scale = NDArray::from({2.0f, 20.0f, 30.0f}, {3}),
                bias = NDArray::from({1.0f, 0.0f, -1.0f}, {3});
  NDArray y = NDArray::repeating(std::int8_t{0}, shape, kBatch), cy = NDArray::repeating(std::int8_t{0}, shape, kBatch),
          back = output(shape), cback = output(shape);
  BNNSLayerParametersQuantization c{};
  c.axis_mask = 1, c.function = BNNSQuantizerFunctionQuantize, c.i_desc = x, c.o_desc = cy, c.scale = scale;
  c.bias = bias;
  quantize(kBatch, x, y, 0, scale, bias);
  ASSERT_EQ(BNNSDirectApplyQuantizer(&c, nullptr, kBatch, 0, 0), 0);
  EXPECT_EQ(y.makeArray<std::int8_t>(), cy.makeArray<std::int8_t>());
  c.function = BNNSQuantizerFunctionDequantize, c.i_desc = cy, c.o_desc = cback;
  dequantize(kBatch, y, back, 0, scale, bias);
  ASSERT_EQ(BNNSDirectApplyQuantizer(&c, nullptr, kBatch, 0, 0), 0);
  EXPECT_TRUE(same(back, cback));
  EXPECT_TRUE(refuses(kApply, {"BNNSDirectApplyQuantizer"}, [&] { quantize(kBatch, x, y, 7, scale, bias); }));
}

}  // namespace
}  // namespace overlay
