// PoolingLayer against the C calls, to the bit: every function, with indices of each kind and without.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

const Shape kIn = Shape::imageCHW(7, 6, 2), kOut = Shape::imageCHW(4, 3, 2);  // 3x2 windows, steps of 2, 1 to the left
constexpr std::size_t kCount = 24;

BNNSLayerParametersPooling c_layer(BNNSPoolingFunction function, const Shape& in, const Shape& out) {
  BNNSLayerParametersPooling c{};
  c.i_desc = descriptor(in), c.o_desc = descriptor(out), c.pooling_function = function;
  c.k_width = 3, c.k_height = 2, c.x_stride = c.y_stride = 2, c.pad[0] = 1, c.pad[1] = 1;
  return c;
}
PoolingLayer::Parameters parameters(const PoolingType& type, const Shape& in, const Shape& out) {
  return {.type = type,
          .input = descriptor(in),
          .output = descriptor(out),
          .kernelSize = {3, 2},
          .stride = {2, 2},
          .padding = ConvolutionPadding::asymmetric(1, 1, 0, 0)};
}

TEST(OverlayPooling, FunctionsWithoutIndices) {
  struct Case {
    PoolingType type;
    BNNSPoolingFunction function;
  };
  const Case cases[] = {{PoolingType::max(), BNNSPoolingFunctionMax},
                        {PoolingType::maxEx(), BNNSPoolingFunctionMax},
                        {PoolingType::average(true), BNNSPoolingFunctionAverageCountIncludePadding},
                        {PoolingType::average(false), BNNSPoolingFunctionAverageCountExcludePadding},
                        {PoolingType::l2Norm(), BNNSPoolingFunctionL2Norm}};
  const NDArray x = data(kIn, 1), dy = data(kOut, 2), b = data({2}, 3, 1);
  for (const Case& k : cases) {
    EXPECT_EQ(k.type.bnnsPoolingFunction(), k.function);
    auto p = parameters(k.type, kIn, kOut);
    p.bias = b, p.activation = ActivationFunction::sigmoid();
    PoolingLayer layer(p);
    auto c = c_layer(k.function, kIn, kOut);
    c.bias = b, c.activation.function = BNNSActivationFunctionSigmoid;
    const Filter filter(BNNSFilterCreateLayerPooling(&c, nullptr));
    NDArray y = output(kOut), cy = output(kOut), dx = output(kIn), cdx = output(kIn), db = output({2}, 1),
            cdb = output({2}, 1);
    const Desc xd = x, yd = cy;
    layer.apply(kBatch, x, y);
    ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0, nullptr, 0), 0);
    EXPECT_TRUE(same(y, cy));
    layer.applyBackward(kBatch, x, y, dy, dx, db);
    Desc dxd = cdx, dyd = dy, dbd = cdb;
    ASSERT_EQ(
        BNNSPoolingFilterApplyBackwardBatch(filter, kBatch, xd.data, 0, &dxd, 0, yd.data, 0, &dyd, 0, &dbd, nullptr, 0),
        0)
        << BNNSExtLastError();
    EXPECT_TRUE(same(dx, cdx));
    EXPECT_TRUE(same(db, cdb));
    // Apple's sample gives the output gradient as a vector of as many elements.
    NDArray again = output(kIn);
    layer.applyBackward(kBatch, x, y, NDArray::inputView(dy.span<float>(), {kCount}, kBatch), again);
    EXPECT_TRUE(same(again, cdx));
  }
}

// Max with indices, then UnMax by the same indices, both ways, with each kind of index.
template <class Index>
void expect_indices(bool extended) {
  std::vector<std::size_t> plain(kBatch * kCount), c_plain(kBatch * kCount);
  NDArray ex = NDArray::repeating(Index{0}, kOut, kBatch), c_ex = NDArray::repeating(Index{0}, kOut, kBatch);
  const Desc cexd = c_ex;
  const BNNSDataType type = DataTypeOf<Index>::value;
  PoolingLayer pool(parameters(extended ? PoolingType::maxEx(ex) : PoolingType::max(plain), kIn, kOut));
  PoolingLayer unpool(parameters(extended ? PoolingType::unMaxEx(ex) : PoolingType::unMax(plain), kOut, kIn));
  const auto c = c_layer(BNNSPoolingFunctionMax, kIn, kOut), u = c_layer(BNNSPoolingFunctionUnMax, kOut, kIn);
  const Filter cpool(BNNSFilterCreateLayerPooling(&c, nullptr)), cunpool(BNNSFilterCreateLayerPooling(&u, nullptr));
  const NDArray x = data(kIn, 1), dy = data(kOut, 2);
  NDArray y = output(kOut), cy = output(kOut), dx = output(kIn), cdx = output(kIn), up = output(kIn), cup = output(kIn),
          back = output(kOut), cback = output(kOut);
  const Desc xd = x, yd = cy, upd = cup;
  Desc dxd = cdx, dyd = dy, backd = cback;
  const Desc none = descriptor(kIn), none_out = descriptor(kOut);
  pool.apply(kBatch, x, y);
  pool.applyBackward(kBatch, none, none_out, dy, dx);  // the indices are enough
  unpool.apply(kBatch, y, up);
  unpool.applyBackward(kBatch, none_out, none, dx, back);
  if (extended) {
    ASSERT_EQ(BNNSPoolingFilterApplyBatchEx(cpool, kBatch, xd.data, 0, yd.data, 0, type, cexd.data, 0), 0);
    ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(cpool, kBatch, nullptr, 0, &dxd, 0, nullptr, 0, &dyd, 0, nullptr,
                                                    type, cexd.data, 0),
              0);
    ASSERT_EQ(BNNSPoolingFilterApplyBatchEx(cunpool, kBatch, yd.data, 0, upd.data, 0, type, cexd.data, 0), 0);
    ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(cunpool, kBatch, nullptr, 0, &backd, 0, nullptr, 0, &dxd, 0,
                                                    nullptr, type, cexd.data, 0),
              0);
    EXPECT_EQ(ex.makeArray<Index>(), c_ex.makeArray<Index>());
  } else {
    ASSERT_EQ(BNNSPoolingFilterApplyBatch(cpool, kBatch, xd.data, 0, yd.data, 0, c_plain.data(), 0), 0);
    ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(cpool, kBatch, nullptr, 0, &dxd, 0, nullptr, 0, &dyd, 0, nullptr,
                                                  c_plain.data(), 0),
              0);
    ASSERT_EQ(BNNSPoolingFilterApplyBatch(cunpool, kBatch, yd.data, 0, upd.data, 0, c_plain.data(), 0), 0);
    ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(cunpool, kBatch, nullptr, 0, &backd, 0, nullptr, 0, &dxd, 0, nullptr,
                                                  c_plain.data(), 0),
              0);
    EXPECT_EQ(plain, c_plain);
  }
  EXPECT_TRUE(same(y, cy));
  EXPECT_TRUE(same(dx, cdx));
  EXPECT_TRUE(same(up, cup));
  EXPECT_TRUE(same(back, cback));
}

TEST(OverlayPooling, Indices) {
  expect_indices<std::uint64_t>(false);
  expect_indices<std::uint64_t>(true);
  expect_indices<std::uint32_t>(true);
}

TEST(OverlayPooling, Refusals) {
  std::vector<std::size_t> few(2 * kCount);
  PoolingLayer layer(parameters(PoolingType::max(few), kIn, kOut));
  const NDArray x = data(kIn, 1);
  NDArray y = output(kOut), dx = output(kIn);
  EXPECT_NO_THROW(layer.apply(2, x, y));
  EXPECT_TRUE(refuses(kData, {"indices", "72", "48"}, [&] { layer.apply(3, x, y); }));
  NDArray at = NDArray::repeating(std::uint32_t{0}, {kCount}, 2);  // with room for the indices that are not described
  PoolingLayer extended(parameters(PoolingType::maxEx(at), kIn, kOut));
  EXPECT_NO_THROW(extended.apply(2, x, y));
  Desc narrow = at;
  narrow.size[0] = kCount - 1;
  PoolingLayer narrowed(parameters(PoolingType::maxEx(narrow), kIn, kOut));
  EXPECT_TRUE(refuses(kData, {"indicesDescriptor", "24", "23"}, [&] { narrowed.apply(1, x, y); }));
  EXPECT_TRUE(refuses(kData, {"indicesDescriptor"}, [&] { narrowed.applyBackward(1, x, y, y, dx); }));
  EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreateLayerPooling", "width"},
                      [&] { PoolingLayer(parameters(PoolingType::max(), kIn, Shape::imageCHW(40, 3, 2))); }));
  // Average pooling cannot be dilated; the dilation of max reaches the C structure.
  auto p = parameters(PoolingType::max({}, 2, 1), kIn, Shape::imageCHW(3, 3, 2));
  auto c = c_layer(BNNSPoolingFunctionMax, kIn, Shape::imageCHW(3, 3, 2));
  c.x_dilation_stride = 2;
  PoolingLayer dilated(p);
  const Filter filter(BNNSFilterCreateLayerPooling(&c, nullptr));
  NDArray dy = output(Shape::imageCHW(3, 3, 2)), cy = output(Shape::imageCHW(3, 3, 2));
  dilated.apply(kBatch, x, dy);
  const Desc xd = x, yd = cy;
  ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0, nullptr, 0), 0);
  EXPECT_TRUE(same(dy, cy));
}

}  // namespace
}  // namespace overlay
