// Reductions, embedding, top-K, crop-and-resize, nearest neighbours and sparse weights against the C calls.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

using R = ReductionFunction;

TEST(OverlayReduction, EveryFunctionEqualsC) {
  struct Case {
    R function;
    BNNSReduceFunction expected;
    bool differentiable = true;
  };
  const Case cases[] = {{R::max(), BNNSReduceFunctionMax},
                        {R::min(), BNNSReduceFunctionMin},
                        {R::argMax(), BNNSReduceFunctionArgMax, false},
                        {R::argMin(), BNNSReduceFunctionArgMin, false},
                        {R::maxIndex(), BNNSReduceFunctionArgMax, false},
                        {R::minIndex(), BNNSReduceFunctionArgMin, false},
                        {R::mean(), BNNSReduceFunctionMean},
                        {R::meanNonZero(), BNNSReduceFunctionMeanNonZero},
                        {R::sum(), BNNSReduceFunctionSum},
                        {R::product(), BNNSReduceFunctionProduct},
                        {R::sumOfSquares(), BNNSReduceFunctionSumSquare},
                        {R::sumOfAbsolutes(), BNNSReduceFunctionL1Norm},
                        {R::l2Norm(), BNNSReduceFunctionL2Norm},
                        {R::logSumExp(), BNNSReduceFunctionLogSumExp},
                        {R::sumOfLogs(0.5f), BNNSReduceFunctionSumLog},
                        {R::logicalAnd(), BNNSReduceFunctionLogicalAnd, false},
                        {R::logicalOr(), BNNSReduceFunctionLogicalOr, false},
                        {R::all(), BNNSReduceFunctionLogicalAnd, false},
                        {R::any(), BNNSReduceFunctionLogicalOr, false},
                        {R::logOfSum(), BNNSReduceFunctionLogSum}};
  const Shape in = Shape::imageCHW(4, 3, 2), out = Shape::imageCHW(1, 3, 1);
  const NDArray x = data(in, 1, kBatch, 0.1f, 1.0f), w = data(in, 2, 1, 0.1f, 1.0f), dy = data(out, 3);
  for (const Case& k : cases) {
    SCOPED_TRACE(k.expected);
    EXPECT_EQ(k.function.bnnsReduceFunction(), k.expected);
    ReductionLayer layer({.function = k.function, .input = descriptor(in), .output = descriptor(out), .weights = w});
    BNNSLayerParametersReduction c{};
    c.i_desc = descriptor(in), c.o_desc = descriptor(out), c.w_desc = w, c.reduce_func = k.expected;
    c.epsilon = k.expected == BNNSReduceFunctionSumLog ? 0.5f : 0.0f;
    const Filter filter(BNNSFilterCreateLayerReduction(&c, nullptr));
    NDArray y = output(out), cy = output(out), dx = output(in), cdx = output(in), dw = output(in, 1),
            cdw = output(in, 1), direct = output(out), one = output(out, 1), cone = output(out, 1);
    const Desc xd = x, yd = cy;
    layer.apply(kBatch, x, y);
    ASSERT_EQ(BNNSFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0), 0) << BNNSExtLastError();
    EXPECT_TRUE(same(y, cy));
    applyReduction(k.function, x, direct, w);  // every sample
    EXPECT_TRUE(same(direct, cy));
    applyReduction(k.function, xd, one, w);  // a descriptor is one sample
    c.i_desc = x, c.o_desc = cone;
    ASSERT_EQ(BNNSDirectApplyReduction(&c, nullptr), 0);
    EXPECT_TRUE(same(one, cone));
    if (!k.differentiable) {
      EXPECT_TRUE(
          refuses(kApply, {"BNNSFilterApplyBackwardBatch"}, [&] { layer.applyBackward(kBatch, x, y, dy, dx); }));
      continue;
    }
    layer.applyBackward(kBatch, x, y, dy, dx, dw);
    ASSERT_EQ(backward(filter, x, cy, dy, &cdx, &cdw), 0) << BNNSExtLastError();
    EXPECT_TRUE(same(dx, cdx));
    EXPECT_TRUE(same(dw, cdw));
  }
  EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreateLayerReduction"}, [&] {
    ReductionLayer({.function = R::none(), .input = descriptor(in), .output = descriptor(out)});
  }));
  EXPECT_FALSE(make<ReductionLayer>({.function = R::sum(), .input = descriptor(in), .output = descriptor({7})}));
}

TEST(OverlayEmbedding, EqualsC) {
  const Shape table = Shape::matrixLastMajor(4, 6), indices = Shape::vector(3), out = Shape::matrixLastMajor(4, 3);
  const NDArray dictionary = data(table, 1, 1), dy = data(out, 2),
                x = NDArray::from({0, 5, 2, 2, 2, 1, 4, 0, 5}, indices, kBatch);
  for (bool scaled : {false, true}) {
    EmbeddingLayer layer({.input = descriptor<int>(indices),
                          .output = descriptor(out),
                          .dictionary = dictionary,
                          .paddingIndex = 5,
                          .maximumNorm = 0.5f,
                          .normType = scaled ? Norm::maximum : Norm::taxicab,
                          .scalesGradientByFrequency = scaled});
    BNNSLayerParametersEmbedding c{};
    if (scaled) c.flags = BNNSEmbeddingFlagScaleGradientByFrequency;
    c.i_desc = descriptor<int>(indices), c.o_desc = descriptor(out), c.dictionary = dictionary, c.padding_idx = 5;
    c.max_norm = 0.5f, c.norm_type = scaled ? std::numeric_limits<float>::infinity() : 1.0f;
    const Filter filter(BNNSFilterCreateLayerEmbedding(&c, nullptr));
    NDArray y = output(out), cy = output(out), dw = output(table, 1), cdw = output(table, 1);
    const Desc xd = x, yd = cy;
    layer.apply(kBatch, x, y);
    ASSERT_EQ(BNNSFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0), 0) << BNNSExtLastError();
    EXPECT_TRUE(same(y, cy));
    layer.applyBackward(kBatch, x, y, dy, dw);
    ASSERT_EQ(backward(filter, x, cy, dy, nullptr, &cdw), 0) << BNNSExtLastError();
    EXPECT_TRUE(same(dw, cdw));
    const NDArray far = NDArray::from({0, 6, 2}, indices);
    EXPECT_TRUE(refuses(kApply, {"BNNSFilterApplyBatch", "6"}, [&] { layer.apply(1, far, y); }));
  }
  EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreateLayerEmbedding"}, [&] {
    EmbeddingLayer({.input = descriptor<int>(indices), .output = descriptor({7}), .dictionary = dictionary});
  }));
  EXPECT_EQ(Norm::l1.rawValue, 1);
  EXPECT_EQ(Norm::l2.rawValue, Norm::euclidean.rawValue);
}

TEST(OverlayTopK, EqualsC) {
  const Shape in = Shape::matrixLastMajor(5, 4), best = Shape::matrixLastMajor(2, 4);
  const NDArray x = data(in, 1);
  NDArray v = output(best), cv = output(best), i = NDArray::repeating(0, best, kBatch),
          ci = NDArray::repeating(0, best, kBatch);
  const Desc xd = x;
  Desc vd = cv, id = ci;
  applyTopK(2, x, v, i, 0, kBatch);
  ASSERT_EQ(BNNSDirectApplyTopK(2, 0, kBatch, &xd, 20, &vd, 8, &id, 8, nullptr), 0) << BNNSExtLastError();
  EXPECT_TRUE(same(v, cv));
  EXPECT_EQ(i.makeArray<int>(), ci.makeArray<int>());
  applyTopK(2, x, v, std::nullopt, 0, kBatch);

  const NDArray test = NDArray::from({0, 1, 2, 3, 4, 3, 2, 1, 0, 1, 2, 3}, {4}, kBatch);
  NDArray in_top = NDArray::repeating(false, {4}, kBatch), c_in_top = NDArray::repeating(false, {4}, kBatch);
  const Desc td = test;
  Desc od = c_in_top;
  applyInTopK(2, x, test, in_top, 0, kBatch);
  ASSERT_EQ(BNNSDirectApplyInTopK(2, 0, kBatch, &xd, 20, &td, 4, &od, 4, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(in_top.makeArray<bool>(), c_in_top.makeArray<bool>());
  EXPECT_TRUE(refuses(kApply, {"BNNSDirectApplyTopK"}, [&] { applyTopK(6, x, v, i, 0, kBatch); }));
  EXPECT_TRUE(refuses(kApply, {"BNNSDirectApplyInTopK"}, [&] { applyInTopK(2, x, test, in_top, 9, kBatch); }));
}

TEST(OverlayCropResize, EqualsC) {
  using L = CropResizeLayer;
  const Shape image = Shape::tensor4DLastMajor({6, 5, 2, 1}), boxes = Shape::matrixLastMajor(4, 2),
              out = Shape::tensor5DLastMajor({3, 3, 2, 1, 2});
  const NDArray x = data(image, 1, 1), roi = NDArray::from({0.5f, 1.0f, 3.0f, 4.5f, 1.0f, 0.0f, 2.0f, 7.0f}, boxes),
                dy = data(out, 2, 1);
  for (auto sampling :
       {L::LinearSamplingMode::default_, L::LinearSamplingMode::alignCorners, L::LinearSamplingMode::unalignCorners,
        L::LinearSamplingMode::strictAlignCorners, L::LinearSamplingMode::offsetCorners}) {
    for (auto box : {L::BoxCoordinateMode::cornersHeightFirst, L::BoxCoordinateMode::cornersWidthFirst,
                     L::BoxCoordinateMode::centerSizeHeightFirst, L::BoxCoordinateMode::centerSizeWidthFirst}) {
      const CropResizeLayer layer({.coordinatesAreNormalized = false,
                                   .spatialScale = 0.75f,
                                   .extrapolationValue = 9,
                                   .samplingMode = sampling,
                                   .boxCoordinateMode = box});
      BNNSLayerParametersCropResize c{};
      c.spatial_scale = 0.75f, c.extrapolation_value = 9, c.method = BNNSInterpolationMethodLinear;
      c.sampling_mode = static_cast<BNNSLinearSamplingMode>(sampling);
      c.box_coordinate_mode = static_cast<BNNSBoxCoordinateMode>(box);
      NDArray y = output(out, 1), cy = output(out, 1), dx = output(image, 1), cdx = output(image, 1);
      const Desc xd = x, rd = roi, dyd = dy;
      Desc yd = cy, dxd = cdx;
      layer.apply(x, roi, y);
      ASSERT_EQ(BNNSCropResize(&c, &xd, &rd, &yd, nullptr), 0) << BNNSExtLastError();
      EXPECT_TRUE(same(y, cy));
      layer.applyBackward(roi, dy, dx);
      ASSERT_EQ(BNNSCropResizeBackward(&c, &dxd, &rd, &dyd, nullptr), 0) << BNNSExtLastError();
      EXPECT_TRUE(same(dx, cdx));
      EXPECT_TRUE(refuses(kApply, {"BNNSCropResize"}, [&] { layer.apply(x, x, y); }));
    }
  }
}

TEST(OverlayNearestNeighbors, EqualsC) {
  NearestNeighbors store({.capacity = 6, .dimensionCount = 1, .neighborCount = 3});
  const NDArray samples = NDArray::from({0.0f, 1.0f, 2.0f, 10.0f, 11.0f}, {5, 1});
  store.append(samples);
  BNNSNearestNeighbors c = BNNSCreateNearestNeighbors(6, 1, 3, BNNSDataTypeFloat32, nullptr);
  ASSERT_NE(c, nullptr);
  const Desc sd = samples;
  ASSERT_EQ(BNNSNearestNeighborsLoad(c, 5, sd.data), 0);
  NDArray i = NDArray::repeating(-9, {5, 3}), d = output({5, 3}, 1), cd = output({5, 3}, 1);
  std::vector<int> ci(15, -9);
  const Desc dd = cd;
  store.apply(std::nullopt, i, d);
  ASSERT_EQ(BNNSNearestNeighborsGetInfo(c, -1, ci.data(), dd.data), 0);
  EXPECT_EQ(i.makeArray<int>(), ci);
  EXPECT_TRUE(same(d, cd));
  BNNSDestroyNearestNeighbors(c);
  NDArray one = NDArray::repeating(-9, {3});
  store.apply(3, one, std::nullopt);
  EXPECT_EQ(one.makeArray<int>(), (std::vector<int>{3, 4, 2}));

  EXPECT_TRUE(refuses(kData, {"outputIndices", "3 elements, expected 15"}, [&] { store.apply({}, one, {}); }));
  EXPECT_TRUE(refuses(kData, {"outputDistances", "another type"}, [&] { store.apply({}, {}, i); }));
  EXPECT_TRUE(refuses(kApply, {"BNNSNearestNeighborsGetInfo", "5"}, [&] { store.apply(5, one, {}); }));
  EXPECT_TRUE(refuses(kApply, {"BNNSNearestNeighborsLoad"}, [&] { store.append(samples); }));  // only one more fits
  EXPECT_TRUE(refuses(kData, {"another type"}, [&] { store.append(i); }));
  NearestNeighbors moved = std::move(store);
  moved.apply(3, one, {});
  EXPECT_TRUE(refuses(kApply, {"moved from"}, [&] { store.apply(3, one, {}); }));  // NOLINT: on purpose
  EXPECT_TRUE(refuses(kCreate, {"BNNSCreateNearestNeighbors"}, [] { NearestNeighbors(4, 0, 1, BNNSDataTypeFloat32); }));
  EXPECT_FALSE(
      make<NearestNeighbors>({.capacity = 4, .dimensionCount = 2, .neighborCount = 1, .dataType = BNNSDataTypeInt8}));
  NearestNeighbors pairs(4, 2, 1, BNNSDataTypeFloat32);
  EXPECT_TRUE(refuses(kData, {"no whole number of samples"}, [&] { pairs.append(samples); }));
}

// A sparse matrix, by coordinates and by rows, is the layer of the dense one.
TEST(OverlaySparse, EqualsDense) {
  const Shape matrix = Shape::matrixRowMajor(8, 8);
  NDArray dense = NDArray::repeating(0.0f, matrix);
  std::vector<std::uint32_t> pairs, columns, starts = {0};
  std::vector<float> values;
  for (std::uint32_t r = 0; r < 8; ++r) {
    for (std::uint32_t c = 0; c < 8; ++c) {
      const float v = c == r ? 2.0f : r == 3 && c == 0 ? 7.0f : 0.0f;
      dense.span<float>()[r * 8 + c] = v;
      if (v != 0) pairs.push_back(c), pairs.push_back(r), columns.push_back(c), values.push_back(v);
    }
    starts.push_back(static_cast<std::uint32_t>(columns.size()));
  }
  const Desc vd = NDArray::view<float>(values, {values.size()}),
             coo = NDArray::view<std::uint32_t>(pairs, {values.size(), 2}),
             csr = NDArray::view<std::uint32_t>(columns, {columns.size()}),
             rows = NDArray::view<std::uint32_t>(starts, {starts.size()});
  const NDArray x = data({8}, 1);
  NDArray want = output({8});
  FullyConnectedLayer reference({.input = descriptor({8}), .output = descriptor({8}), .weights = dense});
  reference.apply(kBatch, x, want);
  for (const SparseLayout& layout : {SparseLayout::coo(coo), SparseLayout::csr(csr, rows)}) {
    const NDArray memory = NDArray::repeating(0.0f, matrix);
    Desc packed = memory;
    FullyConnectedLayer::sparsify(1, layout, descriptor(matrix), vd, packed,
                                  SparseParameters{.ratio = {.numerator = 9, .denominator = 64}});
    EXPECT_EQ(packed.layout, BNNSDataLayoutFullyConnectedSparse);
    EXPECT_LT(BNNSNDArrayGetDataSize(&packed), 256u);
    FullyConnectedLayer layer({.input = descriptor({8}), .output = descriptor({8}), .weights = packed});
    NDArray y = output({8});
    layer.apply(kBatch, x, y);
    EXPECT_TRUE(same(y, want));
    Desc again = memory;
    EXPECT_TRUE(refuses(kApply, {"BNNSNDArrayFullyConnectedSparsifySparse"}, [&] {
      FullyConnectedLayer::sparsify(1, layout, descriptor({8}), vd, again);  // no matrix
    }));
  }
}

}  // namespace
}  // namespace overlay
