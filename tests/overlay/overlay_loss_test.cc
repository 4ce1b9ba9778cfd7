// LossLayer against the C calls, to the bit: every function and reduction, weights, and the gradient call.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

struct Loss {
  LossFunction function;
  BNNSLossFunction expected;
};

TEST(OverlayLoss, EveryFunctionEqualsC) {
  const Loss losses[] = {{LossFunction::softmaxCrossEntropy(0.125f), BNNSLossFunctionSoftmaxCrossEntropy},
                         {LossFunction::sigmoidCrossEntropy(0.125f), BNNSLossFunctionSigmoidCrossEntropy},
                         {LossFunction::meanSquareError(), BNNSLossFunctionMeanSquareError},
                         {LossFunction::huber(0.25f), BNNSLossFunctionHuber},
                         {LossFunction::log(), BNNSLossFunctionLog},
                         {LossFunction::cosineDistance(), BNNSLossFunctionCosineDistance},
                         {LossFunction::hinge(), BNNSLossFunctionHinge},
                         {LossFunction::meanAbsoluteError(), BNNSLossFunctionMeanAbsoluteError},
                         {LossFunction::categoricalCrossEntropy(), BNNSLossFunctionCategoricalCrossEntropy}};
  const LossReduction reductions[] = {LossReduction::none, LossReduction::sum, LossReduction::weightedMean,
                                      LossReduction::reductionMean, LossReduction::zeroWeightMean};
  const Shape shape = {5};
  const NDArray x = data(shape, 1, kBatch, 0.1f, 0.9f), labels = data(shape, 2, kBatch, 0.1f, 0.9f),
                weights = data({kBatch}, 3, 1, 0.5f, 1.5f);
  for (const Loss& k : losses) {
    EXPECT_EQ(k.function.bnnsLossFunction(), k.expected);
    for (LossReduction r : reductions) {
      SCOPED_TRACE(static_cast<int>(k.expected) * 10 + static_cast<int>(r));
      const bool per_sample = k.expected == BNNSLossFunctionSoftmaxCrossEntropy ||
                              k.expected == BNNSLossFunctionCosineDistance ||
                              k.expected == BNNSLossFunctionCategoricalCrossEntropy;
      const Shape out = {r != LossReduction::none || per_sample ? std::size_t{1} : std::size_t{5}};
      LossLayer layer(
          {.input = descriptor(shape), .output = descriptor(out), .lossFunction = k.function, .lossReduction = r});
      BNNSLayerParametersLossSoftmaxCrossEntropy c{};  // every structure begins like this
      c.function = k.expected, c.i_desc = descriptor(shape), c.o_desc = descriptor(out);
      c.reduction = static_cast<BNNSLossReductionFunction>(r);
      c.label_smooth = k.expected == BNNSLossFunctionHuber ? 0.25f : 0.125f;
      const Filter filter(BNNSFilterCreateLayerLoss(&c, nullptr));
      NDArray y = output(out), cy = output(out), dx = output(shape), cdx = output(shape), wy = output(out);
      const Desc xd = x, ld = labels, wd = weights, yd = cy;
      Desc dxd = cdx;
      layer.apply(kBatch, x, labels, y, dx);
      ASSERT_EQ(BNNSLossFilterApplyBatch(filter, kBatch, xd.data, 0, ld.data, 0, nullptr, 0, yd.data, &dxd, 0), 0);
      EXPECT_TRUE(same(y, cy));
      EXPECT_TRUE(same(dx, cdx));
      layer.apply(kBatch, x, labels, y, weights, false, dx);
      ASSERT_EQ(BNNSLossFilterApplyBatch(filter, kBatch, xd.data, 0, ld.data, 0, wd.data, kBatch, yd.data, &dxd, 0), 0);
      EXPECT_TRUE(same(y, cy));
      EXPECT_TRUE(same(dx, cdx));
      layer.apply(kBatch, x, labels, y, weights, true, std::nullopt);
      ASSERT_EQ(BNNSLossFilterApplyBatch(filter, kBatch, xd.data, 0, ld.data, 0, wd.data, 1, yd.data, nullptr, 0), 0);
      EXPECT_TRUE(same(y, cy));
      const NDArray dy = data(out, 4);
      const Desc dyd = dy;
      layer.applyBackward(kBatch, x, labels, dy, dx, weights, false);
      ASSERT_EQ(
          BNNSLossFilterApplyBackwardBatch(filter, kBatch, xd.data, 0, &dxd, 0, ld.data, 0, wd.data, kBatch, &dyd, 0),
          0);
      EXPECT_TRUE(same(dx, cdx));
    }
  }
}

TEST(OverlayLoss, Yolo) {
  float anchors[] = {1, 2, 2, 1};
  const Shape shape = Shape::tensor4DLastMajor({7, 2, 3, 2});  // values, anchors, columns, rows
  const LossFunction::YoloParameters yolo{.huberDelta = 0.5f,
                                          .gridColumnCount = 3,
                                          .gridRowsCount = 2,
                                          .anchorBoxCount = 2,
                                          .anchorBoxSize = 7,
                                          .rescore = true,
                                          .xyScale = 10,
                                          .whScale = 9,
                                          .objectScale = 100,
                                          .noObjectScale = 5,
                                          .classificationScale = 2,
                                          .objectMinimumIoU = 0.7f,
                                          .noObjectMaximumIoU = 0.3f,
                                          .anchorsData = anchors};
  BNNSLayerParametersLossYolo c{};
  c.function = BNNSLossFunctionYolo, c.i_desc = descriptor(shape), c.o_desc = descriptor({1});
  c.reduction = BNNSLossReductionSum, c.huber_delta = 0.5f, c.number_of_grid_columns = 3, c.number_of_grid_rows = 2;
  c.number_of_anchor_boxes = 2, c.anchor_box_size = 7, c.rescore = true, c.scale_xy = 10, c.scale_wh = 9;
  c.scale_object = 100, c.scale_no_object = 5, c.scale_classification = 2, c.object_minimum_iou = 0.7f;
  c.no_object_maximum_iou = 0.3f, c.anchors_data = anchors;
  const Filter filter(BNNSFilterCreateLayerLoss(&c, nullptr));
  LossLayer layer({.input = descriptor(shape),
                   .output = descriptor({1}),
                   .lossFunction = LossFunction::yolo(yolo),
                   .lossReduction = LossReduction::sum});
  const NDArray x = data(shape, 1);
  NDArray labels = data(shape, 2, kBatch, 0.1f, 0.9f);
  for (std::size_t i = 4; i < labels.span<float>().size(); i += 7) labels.span<float>()[i] = (i / 14) % 2 ? 1.0f : 0.0f;
  NDArray y = output({1}, 1), cy = output({1}, 1), dx = output(shape), cdx = output(shape);
  const Desc xd = x, ld = labels, yd = cy;
  Desc dxd = cdx;
  layer.apply(kBatch, x, labels, y, dx);
  ASSERT_EQ(BNNSLossFilterApplyBatch(filter, kBatch, xd.data, 0, ld.data, 0, nullptr, 0, yd.data, &dxd, 0), 0)
      << BNNSExtLastError();
  EXPECT_TRUE(same(y, cy));
  EXPECT_TRUE(same(dx, cdx));
}

TEST(OverlayLoss, Refusals) {
  const LossLayer::Parameters p{.input = descriptor({5}),
                                .output = descriptor({1}),
                                .lossFunction = LossFunction::meanSquareError(),
                                .lossReduction = LossReduction::sum};
  LossLayer layer(p);
  const NDArray x = data({5}, 1), two = data({2}, 2, 1);
  NDArray y = output({1});
  EXPECT_TRUE(refuses(kApply, {"BNNSLossFilterApplyBatch", "weights"},
                      [&] { layer.apply(kBatch, x, x, y, two, false, std::nullopt); }));
  EXPECT_TRUE(refuses(kData, {"labels", "no data"}, [&] { layer.apply(kBatch, x, descriptor({5}), y, std::nullopt); }));
  LossLayer::Parameters q = p;
  q.lossReduction = static_cast<LossReduction>(9);
  EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreateLayerLoss", "reduction"}, [&] { LossLayer bad(q); }));
  EXPECT_FALSE(make<LossLayer>(q));
}

}  // namespace
}  // namespace overlay
