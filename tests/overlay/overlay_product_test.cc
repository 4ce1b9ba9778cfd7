// Matrix products and contraction against the C calls, to the bit.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

TEST(OverlayProduct, MatrixMultiplyEqualsC) {
  const Shape a = Shape::matrixRowMajor(4, 3), b = Shape::matrixRowMajor(4, 5), out = Shape::matrixRowMajor(5, 3);
  for (int weights : {0, 1, 2}) {  // none, A, B
    SCOPED_TRACE(weights);
    const NDArray xa = data(a, 1), xb = data(b, 2), dy = data(out, 3);
    const std::size_t na = weights == 1 ? 1 : kBatch, nb = weights == 2 ? 1 : kBatch;
    NDArray y = output(out), cy = output(out), da = output(a, na), cda = output(a, na), db = output(b, nb),
            cdb = output(b, nb);
    BroadcastMatrixMultiplyLayer layer({.inputA = xa,
                                        .aIsWeights = weights == 1,
                                        .inputB = xb,
                                        .bTransposed = true,
                                        .bIsWeights = weights == 2,
                                        .output = descriptor(out),
                                        .alpha = 0.5f});
    BNNSLayerParametersBroadcastMatMul c{};
    c.alpha = 0.5f, c.transB = true, c.a_is_weights = weights == 1, c.b_is_weights = weights == 2;
    c.iA_desc = xa, c.iB_desc = xb, c.o_desc = descriptor(out);
    const Filter filter(BNNSFilterCreateLayerBroadcastMatMul(&c, nullptr));
    const Desc ad = xa, bd = xb, yd = cy, dyd = dy;
    Desc dad = cda, dbd = cdb;
    layer.apply(kBatch, xa, xb, y);
    layer.applyBackward(kBatch, xa, xb, y, dy, da, db);
    if (weights == 0) {
      ASSERT_EQ(BNNSFilterApplyTwoInputBatch(filter, kBatch, ad.data, 0, bd.data, 0, yd.data, 0), 0);
      ASSERT_EQ(BNNSFilterApplyBackwardTwoInputBatch(filter, kBatch, ad.data, 0, &dad, 0, bd.data, 0, &dbd, 0, yd.data,
                                                     0, &dyd, 0, nullptr, nullptr),
                0);
    } else {
      const bool is_a = weights == 1;
      ASSERT_EQ(BNNSFilterApplyBatch(filter, kBatch, is_a ? bd.data : ad.data, 0, yd.data, 0), 0);
      ASSERT_EQ(backward(filter, is_a ? bd : ad, yd, dy, is_a ? &cdb : &cda, is_a ? &cda : &cdb), 0);
    }
    EXPECT_TRUE(same(y, cy));
    EXPECT_TRUE(same(da, cda));
    EXPECT_TRUE(same(db, cdb));
  }
}

TEST(OverlayProduct, QuadraticAndAccumulating) {
  const Shape a = Shape::matrixRowMajor(3, 3);
  const NDArray x = data(a, 1), dy = data(a, 2);
  NDArray y = NDArray::repeating(1.0f, a, kBatch), cy = NDArray::repeating(1.0f, a, kBatch), dx = output(a),
          cdx = output(a);
  BroadcastMatrixMultiplyLayer layer(
      {.inputA = x, .inputB = x, .output = descriptor(a), .accumulatesToOutput = true, .isQuadratic = true});
  BNNSLayerParametersBroadcastMatMul c{};
  c.alpha = c.beta = 1, c.quadratic = true, c.iA_desc = c.iB_desc = x, c.o_desc = descriptor(a);
  const Filter filter(BNNSFilterCreateLayerBroadcastMatMul(&c, nullptr));
  const Desc xd = x, yd = cy;
  layer.apply(kBatch, x, x, y);
  ASSERT_EQ(BNNSFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0), 0);
  EXPECT_TRUE(same(y, cy));
  layer.applyBackward(kBatch, x, x, y, dy, dx, std::nullopt);
  ASSERT_EQ(backward(filter, x, cy, dy, &cdx), 0);
  EXPECT_TRUE(same(dx, cdx));
}

TEST(OverlayProduct, ContractionEqualsC) {
  const Shape a = {4, 2}, b = {4, 3}, out = {2, 3};
  const NDArray xa = data(a, 1), xb = data(b, 2), dy = data(out, 3);
  NDArray y = output(out), cy = output(out), da = output(a), cda = output(a), db = output(b), cdb = output(b);
  TensorContractionLayer layer(
      {.operation = "a_ip, b_iq -> o_pq", .alpha = 2, .inputA = xa, .inputB = xb, .output = descriptor(out)});
  BNNSLayerParametersTensorContraction c{};
  c.operation = "a_ip, b_iq -> o_pq", c.alpha = 2, c.iA_desc = xa, c.iB_desc = xb, c.o_desc = descriptor(out);
  const Filter filter(BNNSFilterCreateLayerTensorContraction(&c, nullptr));
  const Desc ad = xa, bd = xb, yd = cy, dyd = dy;
  Desc dad = cda, dbd = cdb;
  layer.apply(kBatch, xa, xb, y);
  layer.applyBackward(kBatch, xa, xb, y, dy, da, db);
  ASSERT_EQ(BNNSFilterApplyTwoInputBatch(filter, kBatch, ad.data, 0, bd.data, 0, yd.data, 0), 0);
  ASSERT_EQ(BNNSFilterApplyBackwardTwoInputBatch(filter, kBatch, ad.data, 0, &dad, 0, bd.data, 0, &dbd, 0, yd.data, 0,
                                                 &dyd, 0, nullptr, nullptr),
            0);
  EXPECT_TRUE(same(y, cy));
  EXPECT_TRUE(same(da, cda));
  EXPECT_TRUE(same(db, cdb));

  // The second operand as weights: one input, and the weights' gradient.
  TensorContractionLayer fixed(
      {.operation = "a_ip, w_iq -> o_pq", .alpha = 2, .inputA = xa, .inputB = xb, .output = descriptor(out)});
  c.operation = "a_ip, w_iq -> o_pq";
  const Filter cfixed(BNNSFilterCreateLayerTensorContraction(&c, nullptr));
  NDArray dw = output(b, 1), cdw = output(b, 1);
  fixed.apply(kBatch, xa, y);
  fixed.applyBackward(kBatch, xa, y, dy, da, dw);
  ASSERT_EQ(BNNSFilterApplyBatch(cfixed, kBatch, ad.data, 0, yd.data, 0), 0);
  ASSERT_EQ(backward(cfixed, xa, cy, dy, &cda, &cdw), 0);
  EXPECT_TRUE(same(y, cy));
  EXPECT_TRUE(same(da, cda));
  EXPECT_TRUE(same(dw, cdw));
  EXPECT_TRUE(refuses(kApply, {"BNNSFilterApplyTwoInputBatch"}, [&] { fixed.apply(kBatch, xa, xb, y); }));
  EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreateLayerTensorContraction"}, [&] {
    TensorContractionLayer({.operation = "no arrow", .inputA = xa, .inputB = xb, .output = descriptor(out)});
  }));
}

}  // namespace
}  // namespace overlay
