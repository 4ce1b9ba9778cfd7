// apply, applyBackward and an optimizer's step allocate what the C call allocates and nothing else.
//
// This binary replaces malloc, posix_memalign and operator new with counting versions. Each call of the overlay is
// counted beside the same call of C on a filter of its own, after both have settled.

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/overlay/overlay_testing.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BNNS_INTERPOSE 0  // sanitizers replace the same functions
#else
#define BNNS_INTERPOSE 1
#endif

namespace {
std::atomic<std::size_t> allocations{0};
}

#if BNNS_INTERPOSE
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void* malloc(size_t bytes) {  // operator new of libstdc++ comes here too
  ++allocations;
  return __libc_malloc(bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  ++allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;
}
}
#endif

namespace overlay {
namespace {

template <class Body>
std::size_t count(Body&& body) {
  for (int i = 0; i < 4; ++i) body();  // scratch shelves settle
  allocations = 0;
  for (int i = 0; i < 10; ++i) body();
  return allocations;
}

TEST(OverlayAllocation, CountersSee) {
  if (!BNNS_INTERPOSE) GTEST_SKIP() << "a sanitizer has replaced malloc; the plain build proves this";
  void* volatile memory = nullptr;  // volatile: a compiler may leave out a pair it sees through
  EXPECT_EQ(count([&] {
              memory = std::malloc(10);
              std::free(memory);
            }),
            10u);
  EXPECT_EQ(count([&] {
              memory = ::operator new(10);
              ::operator delete(memory);
            }),
            10u);
}

TEST(OverlayAllocation, SimpleLayers) {
  if (!BNNS_INTERPOSE) GTEST_SKIP() << "a sanitizer has replaced malloc; the plain build proves this";
  const Shape shape = Shape::imageCHW(6, 6, 2);
  const Desc d = descriptor(shape);
  const NDArray x = data(shape, 1), dy = data(shape, 2), w = data(Shape::convolutionWeightsOIHW(3, 3, 2, 2), 3, 1),
                b = data({2}, 4, 1);
  NDArray y = output(shape), dx = output(shape), dz = output(shape),
          dw = output(Shape::convolutionWeightsOIHW(3, 3, 2, 2), 1), db = output({2}, 1);
  const Desc xd = x, yd = y, dyd = dy, bd = db;
  Desc dxd = dx, dwd = dw, dbd = bd, dyc = dy;
  {
    ConvolutionLayer layer(
        {.input = d, .weights = w, .output = d, .bias = b, .padding = ConvolutionPadding::symmetric(1, 1)});
    const BNNSFilter f = layer.bnnsFilter();
    EXPECT_EQ(count([&] { layer.apply(kBatch, x, y); }),
              count([&] { BNNSFilterApplyBatch(f, kBatch, xd.data, 0, yd.data, 0); }));
    EXPECT_EQ(count([&] { layer.applyBackward(kBatch, x, y, dy, dx, dw, db); }), count([&] {
                BNNSFilterApplyBackwardBatch(f, kBatch, xd.data, 0, &dxd, 0, yd.data, 0, &dyd, 0, &dwd, &dbd);
              }));
  }
  {
    PoolingLayer layer({.type = PoolingType::max(), .input = d, .output = d, .kernelSize = {1, 1}});
    const BNNSFilter f = layer.bnnsFilter();
    EXPECT_EQ(count([&] { layer.apply(kBatch, x, y); }),
              count([&] { BNNSPoolingFilterApplyBatch(f, kBatch, xd.data, 0, yd.data, 0, nullptr, 0); }));
    EXPECT_EQ(count([&] { layer.applyBackward(kBatch, x, y, dy, dx); }), count([&] {
                BNNSPoolingFilterApplyBackwardBatch(f, kBatch, xd.data, 0, &dxd, 0, yd.data, 0, &dyc, 0, nullptr,
                                                    nullptr, 0);
              }));
  }
  {
    NormalizationLayer layer({.type = NormalizationType::batch({}, {}), .input = d, .output = d, .epsilon = 1e-5f});
    const BNNSFilter f = layer.bnnsFilter();
    EXPECT_EQ(count([&] { layer.apply(kBatch, x, y, LearningPhase::training); }),
              count([&] { BNNSNormalizationFilterApplyBatch(f, kBatch, xd.data, 0, yd.data, 0, true); }));
    EXPECT_EQ(count([&] { layer.applyBackward(kBatch, x, y, dy, dx); }), count([&] {
                BNNSNormalizationFilterApplyBackwardBatch(f, kBatch, &dxd, 0, yd.data, 0, &dyc, 0, nullptr, nullptr);
              }));
  }
  {
    constexpr auto sample = DescriptorType::sample;
    BinaryArithmeticLayer layer({.inputA = d,
                                 .inputADescriptorType = sample,
                                 .inputB = d,
                                 .inputBDescriptorType = sample,
                                 .output = d,
                                 .outputDescriptorType = sample,
                                 .function = ArithmeticBinaryFunction::multiply});
    const BNNSFilter f = layer.bnnsFilter();
    const void* in[] = {xd.data, dyd.data};
    const std::size_t zero[2]{};
    Desc second = dz, *delta[] = {&dxd, &second};
    EXPECT_EQ(count([&] { layer.apply(kBatch, x, dy, y); }),
              count([&] { BNNSArithmeticFilterApplyBatch(f, kBatch, 2, in, zero, yd.data, 0); }));
    EXPECT_EQ(count([&] { layer.applyBackward(kBatch, x, dy, y, dy, dx, dz); }), count([&] {
                BNNSArithmeticFilterApplyBackwardBatch(f, kBatch, 2, in, zero, delta, zero, yd.data, 0, &dyc, 0);
              }));
  }
  {
    LossLayer layer({.input = d,
                     .output = descriptor({1}),
                     .lossFunction = LossFunction::meanSquareError(),
                     .lossReduction = LossReduction::sum});
    const BNNSFilter f = layer.bnnsFilter();
    NDArray loss = output({1}, 1);
    const Desc lossd = loss;
    EXPECT_EQ(count([&] { layer.apply(kBatch, x, dy, loss, dx); }), count([&] {
                BNNSLossFilterApplyBatch(f, kBatch, xd.data, 0, dyd.data, 0, nullptr, 0, lossd.data, &dxd, 0);
              }));
    EXPECT_EQ(count([&] { layer.applyBackward(kBatch, x, dy, loss, dx); }), count([&] {
                BNNSLossFilterApplyBackwardBatch(f, kBatch, xd.data, 0, &dxd, 0, dyd.data, 0, nullptr, 0, &lossd, 0);
              }));
  }
}

TEST(OverlayAllocation, FusedLayersAndOptimizer) {
  if (!BNNS_INTERPOSE) GTEST_SKIP() << "a sanitizer has replaced malloc; the plain build proves this";
  const Shape shape = Shape::imageCHW(4, 4, 2);
  const Desc d = descriptor(shape);
  const NDArray x = data(shape, 1), dy = data(shape, 2), beta = data({2}, 3, 1), gamma = data({2}, 4, 1);
  NDArray y = output(shape), da = output(shape), db = output(shape), dbeta = output({2}, 1), dgamma = output({2}, 1);
  constexpr auto sample = DescriptorType::sample;
  const FusableLayerParameters stages[] = {
      FusedBinaryArithmeticParameters{.inputADescriptorType = sample,
                                      .inputBDescriptorType = sample,
                                      .outputDescriptorType = sample,
                                      .function = ArithmeticBinaryFunction::multiply},
      FusedNormalizationParameters{
          .type = NormalizationType::batch({}, {}), .beta = beta, .gamma = gamma, .epsilon = 1e-5f}};
  FusedParametersLayer layer(d, d, d, stages);
  const BNNSFilter f = layer.bnnsFilter();
  const Desc slots[] = {dbeta, dgamma};
  Desc s0 = dbeta, s1 = dgamma, a = da, b = db, dyc = dy, *parameters[] = {&s0, &s1}, *delta[] = {&a, &b};
  const Desc xd = x, dyd = dy, yd = y;
  const void* in[] = {xd.data, dyd.data};
  const std::size_t zero[2]{};
  EXPECT_EQ(count([&] { layer.apply(kBatch, x, dy, y, LearningPhase::training); }),
            count([&] { BNNSFusedFilterApplyMultiInputBatch(f, kBatch, 2, in, zero, yd.data, 0, true); }));
  EXPECT_EQ(count([&] { layer.applyBackward(kBatch, x, dy, y, dy, da, db, slots); }), count([&] {
              BNNSFusedFilterApplyBackwardMultiInputBatch(f, kBatch, 2, in, zero, delta, zero, yd.data, 0, &dyc, 0,
                                                          parameters);
            }));
  NDArray m = NDArray::repeating(0.0f, {2}), v = NDArray::repeating(0.0f, {2});
  const Desc p[] = {gamma}, g[] = {dgamma}, state[] = {m, v};
  const AdamOptimizer adam;
  EXPECT_EQ(count([&] { adam.step(p, g, state); }), 0u);
}

// Layers with one input and the generic calls.
template <class L>
void expect_no_more(L& layer, const NDArray& x, NDArray& y, NDArray& dx) {
  const BNNSFilter f = layer.bnnsFilter();
  const Desc xd = x, yd = y;
  Desc dxd = dx;
  EXPECT_EQ(count([&] { layer.apply(kBatch, x, y); }),
            count([&] { BNNSFilterApplyBatch(f, kBatch, xd.data, 0, yd.data, 0); }));
  EXPECT_EQ(count([&] { layer.applyBackward(kBatch, x, y, y, dx); }), count([&] {
              BNNSFilterApplyBackwardBatch(f, kBatch, xd.data, 0, &dxd, 0, yd.data, 0, &yd, 0, nullptr, nullptr);
            }));
}

TEST(OverlayAllocation, OtherLayers) {
  if (!BNNS_INTERPOSE) GTEST_SKIP() << "a sanitizer has replaced malloc; the plain build proves this";
  const Shape image = Shape::imageCHW(4, 4, 2), wide = Shape::imageCHW(8, 8, 2), gram = Shape::matrixRowMajor(2, 2);
  const NDArray x = data(image, 1);
  NDArray y = output(image), dx = output(image), big = output(wide), small = output(gram);
  const Desc d = descriptor(image);
  ActivationLayer activation({.function = ActivationFunction::softmax(), .input = d, .output = d, .axes = {0}});
  expect_no_more(activation, x, y, dx);
  DropoutLayer dropout({.input = d, .output = d, .rate = 0.5f, .seed = 1});
  expect_no_more(dropout, x, y, dx);
  PermuteLayer permute({.input = d, .output = d, .permutation = {1, 0, 2}});
  expect_no_more(permute, x, y, dx);
  PaddingLayer padding(
      {.input = d, .output = descriptor(wide), .mode = PaddingMode::reflect(), .size = {{2, 2}, {2, 2}, {0, 0}}});
  expect_no_more(padding, x, big, dx);
  ResizeLayer resize({.interpolationMethod = InterpolationMethod::linear,
                      .input = d,
                      .output = descriptor(wide),
                      .alignsCorners = true});
  expect_no_more(resize, x, big, dx);
  GramLayer products({.input = d, .output = descriptor(gram), .alpha = 1});
  expect_no_more(products, x, small, dx);
  NDArray one = output(Shape::imageCHW(1, 1, 1));
  ReductionLayer reduction(
      {.function = ReductionFunction::mean(), .input = d, .output = descriptor(Shape::imageCHW(1, 1, 1))});
  expect_no_more(reduction, x, one, dx);

  // Two inputs.
  const Shape square = Shape::matrixRowMajor(4, 4);
  const NDArray a = data(square, 2), b = data(square, 3);
  NDArray c = output(square), da = output(square), db = output(square);
  BroadcastMatrixMultiplyLayer matrices({.inputA = a, .inputB = b, .output = c});
  TensorContractionLayer contraction({.operation = "a_ij, b_jk -> o_ik", .inputA = a, .inputB = b, .output = c});
  const auto expect_two = [&](auto& layer) {
    const BNNSFilter f = layer.bnnsFilter();
    const Desc ad = a, bd = b, cd = c;
    Desc dad = da, dbd = db;
    EXPECT_EQ(count([&] { layer.apply(kBatch, a, b, c); }),
              count([&] { BNNSFilterApplyTwoInputBatch(f, kBatch, ad.data, 0, bd.data, 0, cd.data, 0); }));
    EXPECT_EQ(count([&] { layer.applyBackward(kBatch, a, b, c, c, da, db); }), count([&] {
                BNNSFilterApplyBackwardTwoInputBatch(f, kBatch, ad.data, 0, &dad, 0, bd.data, 0, &dbd, 0, cd.data, 0,
                                                     &cd, 0, nullptr, nullptr);
              }));
  };
  expect_two(matrices);
  expect_two(contraction);

  // Attention without a cache, and embedding.
  const Shape target = {4, 4}, heads = Shape::tensor3DLastMajor(4, 4, 1);
  const NDArray w = data(heads, 4, 1), merge = data({4, 4}, 5, 1);
  const AttentionProjection in{.target = descriptor(target), .weights = w};
  MultiheadAttentionLayer attention(
      {.query = in, .key = in, .value = in, .output = {.target = descriptor(target), .weights = merge}});
  const Desc ad = a, cd = c;
  EXPECT_EQ(count([&] { attention.apply(kBatch, a, a, a, c); }), count([&] {
              BNNSApplyMultiheadAttention(attention.bnnsFilter(), kBatch, ad.data, 0, ad.data, 0, nullptr, 0, ad.data,
                                          0, cd.data, 0, nullptr, nullptr, nullptr, nullptr, nullptr);
            }));
  const NDArray words = NDArray::from({1, 0, 2}, {1}, kBatch), table = data(Shape::matrixLastMajor(4, 3), 6, 1);
  NDArray items = output(Shape::matrixLastMajor(4, 1)), slope = output(Shape::matrixLastMajor(4, 3), 1);
  EmbeddingLayer embedding({.input = words, .output = items, .dictionary = table});
  const Desc wd = words, id = items;
  Desc sd = slope;
  EXPECT_EQ(count([&] { embedding.apply(kBatch, words, items); }),
            count([&] { BNNSFilterApplyBatch(embedding.bnnsFilter(), kBatch, wd.data, 0, id.data, 0); }));
  EXPECT_EQ(count([&] { embedding.applyBackward(kBatch, words, items, items, slope); }), count([&] {
              BNNSFilterApplyBackwardBatch(embedding.bnnsFilter(), kBatch, wd.data, 0, nullptr, 0, id.data, 0, &id, 0,
                                           &sd, nullptr);
            }));
}

}  // namespace
}  // namespace overlay
