// The stand-alone layer through the C interface: layouts, types, strides, threads, in place, the trained alphas.

#include <thread>

#include "src/core/half.h"
#include "src/engine/activation/activation_testing.h"
#include "src/ops/activation/tests/activation_layouts_testing.h"

namespace bnns::testing {
namespace {

// The filter's forward on f32 must equal the kernel's bits, whatever the layout and the number of threads.
std::vector<float> kernel_forward(const Activation& a, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  activation_forward(a, x.data(), y.data(), x.size());
  return y;
}

std::vector<float> kernel_backward(const Activation& a, bool from_output, const std::vector<float>& s,
                                   const std::vector<float>& dy) {
  std::vector<float> g(s.size());
  if (from_output)
    activation_backward_from_output(a, s.data(), dy.data(), g.data(), s.size());
  else
    activation_backward_from_input(a, s.data(), dy.data(), g.data(), s.size());
  return g;
}

TEST(ActivationFilter, VectorsOfTheRealFramework) {
  const float leaky_in[] = {-4, 4}, clamp_in[] = {-5, -1, 0.5, 2, 7}, round_in[] = {1.5, -2.5, 300.25};
  float y[5];
  int32_t rounded[3];
  TestFilter leaky(layer_of(vector_descriptor(2, nullptr), vector_descriptor(2, nullptr),
                            BNNSActivationFunctionLeakyRectifiedLinear, 0.25f));
  ASSERT_EQ(BNNSFilterApply(leaky, leaky_in, y), 0);
  EXPECT_EQ(y[0], -1);
  EXPECT_EQ(y[1], 4);
  TestFilter clamp(
      layer_of(vector_descriptor(5, nullptr), vector_descriptor(5, nullptr), BNNSActivationFunctionClamp, -1, 2));
  ASSERT_EQ(BNNSFilterApply(clamp, clamp_in, y), 0);
  const float clamped[] = {-1, -1, 0.5, 2, 2};
  EXPECT_TRUE(same_bits(y, clamped, 5));
  TestFilter convert(layer_of(vector_descriptor(3, nullptr), vector_descriptor(3, nullptr, BNNSDataTypeInt32),
                              BNNSActivationFunctionIdentity));
  ASSERT_EQ(BNNSFilterApply(convert, round_in, rounded), 0);
  EXPECT_EQ(rounded[0], 2);
  EXPECT_EQ(rounded[1], -2);
  EXPECT_EQ(rounded[2], 300);
}

struct Pair {
  Shape in, out;
};

// Reshapes in memory order, inner strides, and the rank that leaves no axis for the batch.
std::vector<Pair> shape_pairs() {
  const Shape dense = {BNNSDataLayoutImageCHW, {7, 3, 5}, {}},
              strided = {BNNSDataLayoutImageCHW, {7, 3, 5}, {1, 9, 30}};
  const Shape vector = {BNNSDataLayoutVector, {105}, {}}, sparse = {BNNSDataLayoutVector, {105}, {2}};
  const Shape matrix = {BNNSDataLayout2DFirstMajor, {15, 7}, {1, 8}};
  const Shape eight = {BNNSDataLayout8DLastMajor, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 3, 7, 15, 31, 63, 127, 255}};
  const Shape flat = {BNNSDataLayoutVector, {256}, {}};
  return {{dense, dense},   {dense, vector},    {strided, dense}, {vector, strided},
          {sparse, matrix}, {strided, strided}, {eight, eight},   {eight, flat}};
}

TEST(ActivationFilter, AnyLayoutEqualsTheKernel) {
  for_each_isa([] {
    Random random(21);
    for (const Activation& a : element_cases()) {
      for (const Pair& pair : shape_pairs()) {
        const size_t batch = 3, n = batch * pair.in.count();
        const std::vector<float> x = random.normals(n, 2), dy = random.normals(n);
        PoisonedBatch px(pair.in, batch, 2), py(pair.out, batch, 1), pdx(pair.in, batch, 3), pdy(pair.out, batch);
        px.fill(x);
        pdy.fill(dy);
        SCOPED_TRACE(activation_name(a.function));
        TestFilter filter(
            layer_of(pair.in.descriptor(nullptr), pair.out.descriptor(nullptr), a.function, a.alpha, a.beta));
        ASSERT_EQ(BNNSFilterApplyBatch(filter, batch, px.data(), px.stride(), py.data(), py.stride()), 0)
            << BNNSExtLastError();
        const std::vector<float> y = py.values();
        ASSERT_TRUE(same_bits(y, kernel_forward(a, x)));
        ASSERT_TRUE(py.gaps_are_poison());
        const BNNSNDArrayDescriptor ddy = pdy.descriptor();
        for (bool with_out : {true, false}) {
          const bool from_output = with_out && has_derivative_from_output(a);
          const std::vector<float> want = kernel_backward(a, from_output, from_output ? y : x, dy);
          BNNSNDArrayDescriptor ddx = pdx.descriptor();
          ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, batch, px.data(), px.stride(), &ddx, pdx.stride(),
                                                 with_out ? py.data() : nullptr, py.stride(), &ddy, pdy.stride(),
                                                 nullptr, nullptr),
                    0);
          ASSERT_TRUE(same_bits(pdx.values(), want));
          ddx.flags = BNNSNDArrayFlagBackpropAccumulate;
          ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, batch, px.data(), px.stride(), &ddx, pdx.stride(),
                                                 with_out ? py.data() : nullptr, py.stride(), &ddy, pdy.stride(),
                                                 nullptr, nullptr),
                    0);
          const std::vector<float> twice = pdx.values();
          for (size_t i = 0; i < n; ++i) ASSERT_EQ(twice[i], want[i] + want[i]);
          ASSERT_TRUE(pdx.gaps_are_poison());
        }
      }
    }
  });
}

// f16 and bf16: read exactly, computed in f32, rounded to nearest even once.
template <class FromBits, class ToBits>
void check_half_type(BNNSDataType type, FromBits from_bits, ToBits to_bits) {
  Random random(22);
  std::vector<Activation> cases = element_cases();
  cases.push_back({BNNSActivationFunctionSoftmax, 0, 0});
  cases.push_back({BNNSActivationFunctionLogSoftmax, 0, 0});
  for (const Activation& a : cases) {
    for (size_t n : {1u, 5u, 16u, 33u, 600u}) {
      SCOPED_TRACE(activation_name(a.function));
      std::vector<uint16_t> x(n), y(n), dy(n), dx(n);
      std::vector<float> xf(n), dyf(n), yf(n);
      for (size_t i = 0; i < n; ++i) {
        xf[i] = from_bits(x[i] = to_bits(float(random.normal())));
        dyf[i] = from_bits(dy[i] = to_bits(float(random.normal())));
      }
      TestFilter filter(layer_of(vector_descriptor(n, nullptr, type), vector_descriptor(n, nullptr, type), a.function,
                                 a.alpha, a.beta));
      ASSERT_EQ(BNNSFilterApply(filter, x.data(), y.data()), 0);
      const std::vector<float> want = kernel_forward(a, xf);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(y[i], to_bits(want[i])) << i;
        yf[i] = from_bits(y[i]);
      }
      BNNSNDArrayDescriptor ddx = vector_descriptor(n, dx.data(), type), ddy = vector_descriptor(n, dy.data(), type);
      const bool from_output = has_derivative_from_output(a);
      ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, x.data(), 0, &ddx, 0, y.data(), 0, &ddy, 0, nullptr, nullptr),
                0);
      const std::vector<float> g = kernel_backward(a, from_output, from_output ? yf : xf, dyf);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(dx[i], to_bits(g[i])) << i;
    }
  }
}

TEST(ActivationFilter, HalfTypes) {
  for_each_isa([] {
    check_half_type(
        BNNSDataTypeFloat16, [](uint16_t h) { return half_to_float(h); }, [](float f) { return float_to_half(f); });
    check_half_type(
        BNNSDataTypeBFloat16, [](uint16_t h) { return bfloat16_to_float(h); },
        [](float f) { return float_to_bfloat16(f); });
  });
}

TEST(ActivationFilter, SameBitsForAnyThreadCount) {
  Random random(23);
  const size_t batch = 7, count = 30011, n = batch * count;  // 13 tasks, the last one partial
  const std::vector<float> x = random.normals(n, 2), dy = random.normals(n);
  for (const Activation& a : {Activation{BNNSActivationFunctionGELU, 0, 0},
                              Activation{BNNSActivationFunctionLeakyRectifiedLinear, 0.1f, 0}}) {
    std::vector<float> first_y, first_dx;
    float first_dalpha = 0;
    for (size_t threads : kThreadCounts) {
      std::vector<float> y(n), dx(n), g = dy;
      float dalpha = 0;
      TestFilter filter(
          layer_of(vector_descriptor(count, nullptr), vector_descriptor(count, nullptr), a.function, a.alpha), threads);
      ASSERT_EQ(BNNSFilterApplyBatch(filter, batch, x.data(), 0, y.data(), 0), 0);
      BNNSNDArrayDescriptor ddx = vector_descriptor(count, dx.data()), ddy = vector_descriptor(count, g.data());
      BNNSNDArrayDescriptor dw = vector_descriptor(1, &dalpha);
      const bool leaky = a.function == BNNSActivationFunctionLeakyRectifiedLinear;
      ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, batch, x.data(), 0, &ddx, 0, y.data(), 0, &ddy, 0,
                                             leaky ? &dw : nullptr, nullptr),
                0);
      if (threads == 1) first_y = y, first_dx = dx, first_dalpha = dalpha;
      EXPECT_TRUE(same_bits(y, first_y));
      EXPECT_TRUE(same_bits(dx, first_dx));
      EXPECT_EQ(bits(dalpha), bits(first_dalpha));
    }
  }
}

TEST(ActivationFilter, BatchStrideZeroIsDenseAndBatchZeroDoesNothing) {
  const std::vector<float> x = {-1, 2, -3, 4};
  std::vector<float> y(4), strided(5, poison());
  TestFilter filter(layer_of(vector_descriptor(2, nullptr), vector_descriptor(2, nullptr), BNNSActivationFunctionAbs));
  ASSERT_EQ(BNNSFilterApplyBatch(filter, 2, x.data(), 0, y.data(), 0), 0);
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 4}));
  ASSERT_EQ(BNNSFilterApplyBatch(filter, 2, x.data(), 2, strided.data(), 3), 0);
  EXPECT_TRUE(is_poison(strided[2]));
  EXPECT_EQ(strided[3], 3);
  std::vector<float> untouched(2, poison());
  EXPECT_EQ(BNNSFilterApplyBatch(filter, 0, x.data(), 0, untouched.data(), 0), 0);
  EXPECT_EQ(BNNSFilterApplyBatch(filter, 0, null<void>(), 0, null<void>(), 0), 0);
  EXPECT_TRUE(is_poison(untouched[0]));
}

// ---- memory that is shared --------------------------------------------------------------------------------------

TEST(ActivationFilter, BC41_InPlaceEqualsOutOfPlace) {
  for_each_isa([] {
    Random random(24);
    for (const Activation& a : element_cases()) {
      for (size_t n = 1; n <= 67; n += 3) {
        std::vector<float> x = random.normals(2 * n, 2);
        const std::vector<float> want = kernel_forward(a, x);
        TestFilter filter(
            layer_of(vector_descriptor(n, nullptr), vector_descriptor(n, nullptr), a.function, a.alpha, a.beta));
        ASSERT_EQ(BNNSFilterApplyBatch(filter, 2, x.data(), 0, x.data(), 0), 0);
        ASSERT_TRUE(same_bits(x, want));
      }
    }
  });
}

TEST(ActivationFilter, BC41_OverlapIsRefusedAndInterleavingIsNot) {
  std::vector<float> buffer(40);
  for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = float(i) - 20;
  const std::vector<float> before = buffer;
  TestFilter filter(layer_of(vector_descriptor(5, nullptr), vector_descriptor(5, nullptr), BNNSActivationFunctionAbs));
  for (size_t shift : {1u, 4u}) {
    EXPECT_EQ(BNNSFilterApplyBatch(filter, 3, buffer.data(), 10, buffer.data() + shift, 10), -1);
    EXPECT_TRUE(refused_because({"BNNSFilterApplyBatch", "activation", "out and in overlap"}));
    EXPECT_TRUE(same_bits(buffer, before));
  }
  // Samples of in and out take turns in one buffer: nothing is shared.
  ASSERT_EQ(BNNSFilterApplyBatch(filter, 4, buffer.data(), 10, buffer.data() + 5, 10), 0);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(buffer[i], i % 10 < 5 ? before[i] : std::fabs(before[i - 5]));
  // f32 to i32 in place: elements of the same width and order.
  TestFilter convert(layer_of(vector_descriptor(5, nullptr), vector_descriptor(5, nullptr, BNNSDataTypeInt32),
                              BNNSActivationFunctionIdentity));
  float values[] = {1, -2, 3.4f, 4.6f, 5};
  ASSERT_EQ(BNNSFilterApply(convert, values, values), 0);
  int32_t integers[5];
  std::memcpy(integers, values, sizeof integers);
  EXPECT_EQ(integers[3], 5);
  EXPECT_EQ(integers[1], -2);
  TestFilter narrow(layer_of(vector_descriptor(5, nullptr), vector_descriptor(5, nullptr, BNNSDataTypeFloat16),
                             BNNSActivationFunctionIdentity));
  EXPECT_EQ(BNNSFilterApply(narrow, values, values), -1);
}

// The gradient may take the place of any of its operands.
TEST(ActivationFilter, BackwardInPlace) {
  Random random(25);
  const size_t n = 1030;
  const std::vector<float> x = random.normals(n), dy = random.normals(n);
  const Activation a = {BNNSActivationFunctionSiLU, 0, 0};
  const std::vector<float> want = kernel_backward(a, false, x, dy);
  TestFilter filter(layer_of(vector_descriptor(n, nullptr), vector_descriptor(n, nullptr), a.function));
  for (int in_place : {0, 1}) {
    std::vector<float> xs = x, dys = dy;
    BNNSNDArrayDescriptor ddy = vector_descriptor(n, dys.data()),
                          ddx = vector_descriptor(n, in_place ? xs.data() : dys.data());
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, xs.data(), 0, &ddx, 0, nullptr, 0, &ddy, 0, nullptr, nullptr), 0);
    EXPECT_TRUE(same_bits(in_place ? xs : dys, want));
  }
  // out_delta in bf16 passes through a room; in_delta is the memory of in.
  std::vector<float> xs = x, rounded(n);
  std::vector<uint16_t> narrow(n);
  for (size_t i = 0; i < n; ++i) rounded[i] = bfloat16_to_float(narrow[i] = float_to_bfloat16(dy[i]));
  BNNSNDArrayDescriptor ddy = vector_descriptor(n, narrow.data(), BNNSDataTypeBFloat16),
                        ddx = vector_descriptor(n, xs.data());
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, xs.data(), 0, &ddx, 0, nullptr, 0, &ddy, 0, nullptr, nullptr), 0);
  EXPECT_TRUE(same_bits(xs, kernel_backward(a, false, x, rounded)));
}

// BC46: one filter, many threads, each with its own buffers.
TEST(ActivationFilter, BC46_OneFilterManyThreads) {
  Random random(26);
  const Shape image = {BNNSDataLayoutImageCHW, {40, 6, 9}, {}};
  const std::vector<float> x = random.normals(4 * image.count());
  for (uint32_t flags : {4u, 1u}) {
    TestFilter filter(layer_of(image.descriptor(nullptr),
                               {Shape{BNNSDataLayoutImageCHW, {40, 6, 9}, {1, 41, 300}}.descriptor(nullptr)},
                               BNNSActivationFunctionSoftmax, 0, 0, flags));
    std::vector<std::vector<float>> results(8, std::vector<float>(4 * 2700));
    std::vector<std::thread> threads;
    for (std::vector<float>& y : results) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) ASSERT_EQ(BNNSFilterApplyBatch(filter, 4, x.data(), 0, y.data(), 2700), 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<float>& y : results) EXPECT_TRUE(same_bits(y, results[0]));
  }
}

// ---- direct and first-generation calls --------------------------------------------------------------------------

TEST(ActivationFilter, DirectAndLegacyCallsEqualTheFilter) {
  Random random(27);
  std::vector<float> x = random.normals(30), y(30), direct(30), legacy(30);
  const BNNSLayerParametersActivation layer =
      layer_of(vector_descriptor(10, x.data()), vector_descriptor(10, direct.data()), BNNSActivationFunctionSoftmax);
  TestFilter filter(layer);
  ASSERT_EQ(BNNSFilterApplyBatch(filter, 3, x.data(), 10, y.data(), 10), 0);
  ASSERT_EQ(BNNSDirectApplyActivationBatch(&layer, nullptr, 3, 10, 10), 0);
  EXPECT_TRUE(same_bits(direct, y));
  const BNNSVectorDescriptor v = {10, BNNSDataTypeFloat32, 0, 0};
  BNNSFilter old = BNNSFilterCreateVectorActivationLayer(&v, &v, &layer.activation, nullptr);
  ASSERT_NE(old, nullptr);
  ASSERT_EQ(BNNSFilterApplyBatch(old, 3, x.data(), 10, legacy.data(), 10), 0);
  BNNSFilterDestroy(old);
  EXPECT_TRUE(same_bits(legacy, y));
}

// ---- alpha and beta ---------------------------------------------------------------------------------------------

TEST(ActivationFilter, PointersReadAndWriteAlphaAndBeta) {
  TestFilter filter(layer_of(vector_descriptor(2, nullptr), vector_descriptor(2, nullptr),
                             BNNSActivationFunctionLinearWithBias, 2, 1));
  const BNNSNDArrayDescriptor alpha = BNNSGetPointer(filter, BNNSPointerSpecifierAlpha),
                              beta = BNNSGetPointer(filter, BNNSPointerSpecifierBeta);
  ASSERT_NE(alpha.data, nullptr);
  EXPECT_EQ(alpha.layout, BNNSDataLayoutVector);
  EXPECT_EQ(alpha.data_type, BNNSDataTypeFloat32);
  EXPECT_EQ(alpha.size[0], 1u);
  EXPECT_EQ(*static_cast<float*>(alpha.data), 2);
  EXPECT_EQ(*static_cast<float*>(beta.data), 1);
  const float x[] = {1, 10};
  float y[2];
  *static_cast<float*>(alpha.data) = 3;
  *static_cast<float*>(beta.data) = -1;
  ASSERT_EQ(BNNSFilterApply(filter, x, y), 0);
  EXPECT_EQ(y[0], 2);
  EXPECT_EQ(y[1], 29);
}

// Two channels of a 2 x 1 image, alpha 0.5 then {0.5, 2}:
//   x = {-1, 2 | -3, 4}   y = {-0.5, 2 | -6, 4}   dy = 1: dx = {0.5, 1 | 2, 1}   dalpha = sum dy x over x < 0 = {-1,
//   -3}
TEST(ActivationFilter, PReLUPerChannelTrainsItsAlphas) {
  const Shape image = {BNNSDataLayoutImageCHW, {2, 1, 2}, {}};
  TestFilter filter(
      layer_of(image.descriptor(nullptr), image.descriptor(nullptr), BNNSActivationFunctionPReLUPerChannel, 0.5f));
  const BNNSNDArrayDescriptor alpha = BNNSGetPointer(filter, BNNSPointerSpecifierAlpha);
  ASSERT_EQ(alpha.size[0], 2u);
  float* alphas = static_cast<float*>(alpha.data);
  EXPECT_EQ(alphas[0], 0.5f);
  EXPECT_EQ(alphas[1], 0.5f);
  alphas[1] = 2;
  const float x[] = {-1, 2, -3, 4};
  float y[4], dx[4], dalpha[2] = {100, 100}, ones[] = {1, 1, 1, 1};
  ASSERT_EQ(BNNSFilterApply(filter, x, y), 0);
  EXPECT_TRUE(same_bits(y, std::vector<float>{-0.5, 2, -6, 4}.data(), 4));
  BNNSNDArrayDescriptor ddx = image.descriptor(dx), ddy = image.descriptor(ones), dw = vector_descriptor(2, dalpha);
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, x, 0, &ddx, 0, y, 0, &ddy, 0, &dw, nullptr), 0);
  EXPECT_TRUE(same_bits(dx, std::vector<float>{0.5, 1, 2, 1}.data(), 4));
  EXPECT_EQ(dalpha[0], -1);
  EXPECT_EQ(dalpha[1], -3);
  // From y alone while every alpha is positive; after that x is needed.
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, nullptr, 0, &ddx, 0, y, 0, &ddy, 0, nullptr, nullptr), 0);
  EXPECT_EQ(dx[2], 2);
  alphas[0] = -1;
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, nullptr, 0, &ddx, 0, y, 0, &ddy, 0, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in is NULL", "prelu_per_channel"}));
}

// Every channel its own alpha, over blocks that begin and end anywhere in a channel, in the tail of a batch too.
TEST(ActivationFilter, PReLUPerChannelFindsTheChannelOfEveryElement) {
  Random random(29);
  for (const Shape& image :
       {Shape{BNNSDataLayoutImageCHW, {37, 20, 3}, {}}, Shape{BNNSDataLayoutImageCHW, {1, 1, 700}, {}},
        Shape{BNNSDataLayoutImageCHW, {37, 20, 3}, {1, 40, 900}}}) {
    const size_t batch = 3, plane = image.size[0] * image.size[1];
    PoisonedBatch px(image, batch, 1), py(image, batch, 2), pdy(image, batch), pdx(image, batch);
    const std::vector<float> x = random.integers(batch * image.count()), dy = random.integers(batch * image.count());
    px.fill(x);
    pdy.fill(dy);
    TestFilter filter(
        layer_of(image.descriptor(nullptr), image.descriptor(nullptr), BNNSActivationFunctionPReLUPerChannel, 0.5f));
    float* alphas = static_cast<float*>(BNNSGetPointer(filter, BNNSPointerSpecifierAlpha).data);
    for (size_t c = 0; c < image.size[2]; ++c) alphas[c] = float(c % 50) - 7;
    ASSERT_EQ(BNNSFilterApplyBatch(filter, batch, px.data(), px.stride(), py.data(), py.stride()), 0);
    BNNSNDArrayDescriptor ddx = pdx.descriptor(), ddy = pdy.descriptor();
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, batch, px.data(), px.stride(), &ddx, pdx.stride(), nullptr, 0, &ddy,
                                           pdy.stride(), nullptr, nullptr),
              0);
    const std::vector<float> y = py.values(), dx = pdx.values();
    for (size_t i = 0; i < x.size(); ++i) {
      const float alpha = alphas[i % image.count() / plane];
      ASSERT_EQ(y[i], x[i] < 0 ? alpha * x[i] : x[i]) << i;
      ASSERT_EQ(dx[i], x[i] < 0 ? alpha * dy[i] : dy[i]) << i;
    }
    EXPECT_TRUE(py.gaps_are_poison() && pdx.gaps_are_poison());
  }
}

// Integers: the sums are exact, so any order of adding gives the reference's number.
TEST(ActivationFilter, AlphaGradientsSumOverTheBatch) {
  for_each_isa([] {
    Random random(28);
    for (const Shape& shape :
         {Shape{BNNSDataLayoutImageCHW, {13, 5, 3}, {}}, Shape{BNNSDataLayoutImageCHW, {13, 5, 3}, {1, 15, 80}},
          Shape{BNNSDataLayoutImageCHW, {1, 1, 600}, {}}, Shape{BNNSDataLayoutImageCHW, {300, 300, 1}, {}}}) {
      for (BNNSActivationFunction function :
           {BNNSActivationFunctionPReLUPerChannel, BNNSActivationFunctionLeakyRectifiedLinear}) {
        const size_t batch = 4, channels = function == BNNSActivationFunctionPReLUPerChannel ? shape.size[2] : 1;
        PoisonedBatch px(shape, batch, 1), pdy(shape, batch);
        const std::vector<float> x = random.integers(batch * shape.count()),
                                 dy = random.integers(batch * shape.count());
        px.fill(x);
        pdy.fill(dy);
        std::vector<double> want(channels);
        for (size_t i = 0; i < x.size(); ++i) {
          if (x[i] < 0) want[i % shape.count() / (shape.count() / channels)] += double(x[i]) * dy[i];
        }
        TestFilter filter(layer_of(shape.descriptor(nullptr), shape.descriptor(nullptr), function, 0.5f));
        std::vector<float> dalpha(channels, 7);
        BNNSNDArrayDescriptor dw = vector_descriptor(channels, dalpha.data()), ddy = pdy.descriptor();
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, batch, px.data(), px.stride(), nullptr, 0, nullptr, 0, &ddy,
                                               pdy.stride(), &dw, nullptr),
                  0)
            << BNNSExtLastError();
        for (size_t c = 0; c < channels; ++c) ASSERT_EQ(dalpha[c], want[c]);
        dw.flags = BNNSNDArrayFlagBackpropAccumulate;
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, batch, px.data(), px.stride(), nullptr, 0, nullptr, 0, &ddy,
                                               pdy.stride(), &dw, nullptr),
                  0);
        for (size_t c = 0; c < channels; ++c) ASSERT_EQ(dalpha[c], 2 * want[c]);
        // A batch of nothing: accumulate keeps, set clears.
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, 0, px.data(), 0, nullptr, 0, nullptr, 0, &ddy, 0, &dw, nullptr),
                  0);
        EXPECT_EQ(dalpha[0], 2 * want[0]);
        dw.flags = BNNSNDArrayFlagBackpropSet;
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, 0, px.data(), 0, nullptr, 0, nullptr, 0, &ddy, 0, &dw, nullptr),
                  0);
        for (float v : dalpha) EXPECT_EQ(v, 0);
      }
    }
  });
}

}  // namespace
}  // namespace bnns::testing
