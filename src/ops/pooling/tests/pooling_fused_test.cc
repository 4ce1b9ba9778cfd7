// Pooling: bias, fused activations, accumulation, layouts and types, and the constructor of 2016.

#include <gtest/gtest.h>

#include <algorithm>

#include "src/engine/activation/activation.h"
#include "src/ops/pooling/tests/pooling_testing.h"
#include "tests/support/layouts.h"

namespace bnns {
namespace {

using namespace bnns::testing;

constexpr BNNSDataType kTypes[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};

// Element-wise functions that a float layer can have.
std::vector<BNNSActivationFunction> activations() {
  std::vector<BNNSActivationFunction> all;
  for (unsigned f = 0; f <= BNNSActivationFunctionGELUApproximationSigmoid; ++f) {
    switch (BNNSActivationFunction(f)) {
      case BNNSActivationFunctionIntegerLinearSaturate:
      case BNNSActivationFunctionIntegerLinearSaturatePerChannel:
      case BNNSActivationFunctionSoftmax:
      case BNNSActivationFunctionLogSoftmax:
      case BNNSActivationFunctionGumbel:
      case BNNSActivationFunctionGumbelMax:
        break;
      default:
        all.push_back(BNNSActivationFunction(f));
    }
  }
  return all;
}

std::vector<PoolShape> some_shapes() {
  PoolShape strided = square(3, 9, 2, 3, 1);
  return {square(3, 12, 2, 2), square(3, 11, 3, 2, 1), square(3, 9, 3, 1, 1), square(3, 6, 6, 1), strided};
}

// y = act(pool + b), dx = pool'(dy act'), db = sum of dy act': bit for bit what the two steps give one after the other.
TEST(PoolingFused, EveryActivationWithBias) {
  const size_t N = 2;
  Random random(11);
  for (const PoolShape& s : some_shapes()) {
    for (Pool f : kPools) {
      const auto x = random.normals(N * s.large());
      auto dy = random.normals(N * s.small());
      const std::vector<float> bias = {0.5f, -0.25f, 0.125f};
      const size_t plane = size_t(s.OH * s.OW);
      std::vector<float> z(N * s.small()), y(z.size()), want(z.size()), g(z.size()), dx(x.size()), dx_want(x.size());
      const auto plain = PoolLayer(f, s).make();
      ASSERT_EQ(BNNSFilterApplyBatch(plain.get(), N, x.data(), 0, z.data(), 0), 0);
      for (size_t i = 0; i < z.size(); ++i) z[i] += bias[i / plane % 3];
      for (const auto function : activations()) {
        PoolLayer layer(f, s);
        layer.parameters.bias = vector_descriptor(3, const_cast<float*>(bias.data()));
        layer.parameters.activation.function = function;
        layer.parameters.activation.alpha = 0.5f, layer.parameters.activation.beta = 0.75f;
        const auto filter = layer.make();
        SCOPED_TRACE(text(s) + " function " + std::to_string(int(f)) + " " + activation_name(function));
        const Activation activation = make_fused_activation(layer.parameters.activation, "test");
        activation_forward(activation, z.data(), want.data(), z.size());
        ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), N, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
        ASSERT_TRUE(same_bits(y, want));
        if (has_derivative_from_output(activation))
          activation_backward_from_output(activation, y.data(), dy.data(), g.data(), g.size());
        else
          activation_backward_from_input(activation, z.data(), dy.data(), g.data(), g.size());
        auto dx_desc = large_descriptor(s, dx.data()), want_desc = large_descriptor(s, dx_want.data());
        auto dy_desc = small_descriptor(s, dy.data()), g_desc = small_descriptor(s, g.data());
        float db[3];
        auto db_desc = vector_descriptor(3, db);
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), N, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                               nullptr, &db_desc),
                  0)
            << BNNSExtLastError();
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(plain.get(), N, x.data(), 0, &want_desc, 0, nullptr, 0, &g_desc, 0,
                                               nullptr, nullptr),
                  0);
        ASSERT_TRUE(same_bits(dx, dx_want));
        for (size_t c = 0; c < 3; ++c) {
          double sum = 0, magnitude = 0;
          for (size_t i = 0; i < g.size(); ++i) {
            if (i / plane % 3 == c) sum += double(g[i]), magnitude += std::fabs(double(g[i]));
          }
          EXPECT_NEAR(db[c], sum, 0x1p-22 * magnitude);
        }
      }
    }
  }
}

TEST(PoolingFused, BiasOfTheClientOrACopy) {
  float bias[] = {1}, x[] = {3}, y;
  for (const bool client : {false, true}) {
    bias[0] = 1;
    PoolLayer layer(Pool::max, square(1, 1, 1, 1));
    layer.parameters.bias = vector_descriptor(1, bias);
    if (client) layer.options.flags = BNNSFlagsUseClientPtr;
    const auto filter = layer.make();
    bias[0] = 5;
    ASSERT_EQ(BNNSFilterApply(filter.get(), x, &y), 0);
    EXPECT_EQ(y, client ? 8 : 4);
  }
}

// The same image in dense memory, with padded rows and planes, and with every second element.
struct Form {
  size_t unit, pad;
};
constexpr Form kForms[] = {{1, 0}, {1, 3}, {2, 0}, {3, 5}};

void fill(LayoutTensor& t, const std::vector<float>& values) {
  size_t i = 0;
  for_each_coordinate(t.size(), [&](const Coordinates& at) { t.set(at, values[i++]); });
}
std::vector<float> values_of(const LayoutTensor& t) {
  std::vector<float> values;
  for_each_coordinate(t.size(), [&](const Coordinates& at) { values.push_back(float(t.get(at))); });
  return values;
}

// BC15: one logical problem in every layout and type gives equal bits, and gaps keep what they hold.
TEST(PoolingFused, BC15_LayoutsAndTypes) {
  Random random(12);
  auto shapes = some_shapes();
  shapes.push_back(square(2, 37, 3, 1, 1));
  shapes.push_back(square(1, 70, 40, 30, 10));  // windows that do not fit the conversion buffer
  for (const PoolShape& s : shapes) {
    const std::vector<size_t> large = {size_t(s.W), size_t(s.H), size_t(s.C)},
                              small = {size_t(s.OW), size_t(s.OH), size_t(s.C)};
    for (Pool f : kPools) {
      // Exact in every type: small integers; sums and quotients of Average are rounded to the type once.
      const auto x = random.integers(s.large(), 4);
      const auto g = random.integers(s.small(), 4);
      std::vector<float> y(s.small()), dx(s.large());
      {
        const auto filter = PoolLayer(f, s).make();
        auto gs = g;
        auto dx_desc = large_descriptor(s, dx.data()), dy_desc = small_descriptor(s, gs.data());
        ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
        ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                               nullptr, nullptr),
                  0);
      }
      for (const Form form : kForms)
        for (const auto type : kTypes) {
          SCOPED_TRACE(text(s) + " function " + std::to_string(int(f)) + " unit " + std::to_string(form.unit) +
                       " type " + std::to_string(unsigned(type)));
          LayoutTensor xs(BNNSDataLayoutImageCHW, large, type, form.unit, form.pad),
              ys(BNNSDataLayoutImageCHW, small, type, form.unit, form.pad);
          LayoutTensor dxs(BNNSDataLayoutImageCHW, large, type, form.unit, form.pad),
              dys(BNNSDataLayoutImageCHW, small, type, form.unit, form.pad);
          fill(xs, x), fill(dys, g);
          PoolLayer layer(f, s);
          layer.parameters.i_desc = xs.descriptor();
          layer.parameters.o_desc = ys.descriptor();
          const auto filter = layer.make();
          auto dx_desc = dxs.descriptor(), dy_desc = dys.descriptor();
          ASSERT_EQ(BNNSFilterApply(filter.get(), xs.data(), ys.data()), 0) << BNNSExtLastError();
          ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, xs.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                 nullptr, nullptr),
                    0)
              << BNNSExtLastError();
          const auto rounded = [&](std::vector<float> v) {
            for (float& e : v) {
              if (type == BNNSDataTypeFloat16) e = half_to_float(float_to_half(e));
              if (type == BNNSDataTypeBFloat16) e = bfloat16_to_float(float_to_bfloat16(e));
            }
            return v;
          };
          EXPECT_TRUE(same_bits(values_of(ys), rounded(y)));
          EXPECT_TRUE(same_bits(values_of(dxs), rounded(dx)));
          EXPECT_TRUE(xs.gaps_untouched() && ys.gaps_untouched() && dxs.gaps_untouched() && dys.gaps_untouched());
          // Accumulating into the result doubles it.
          dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
          const auto before = values_of(dxs);
          ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, xs.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                 nullptr, nullptr),
                    0);
          std::vector<float> sum = before;
          for (size_t i = 0; i < sum.size(); ++i) sum[i] += dx[i];
          EXPECT_TRUE(same_bits(values_of(dxs), rounded(sum)));
          EXPECT_TRUE(dxs.gaps_untouched());
          if (::testing::Test::HasFailure()) return;
        }
    }
  }
}

// Index arrays have the strides of the small image.
TEST(PoolingFused, IndicesWithStrides) {
  const PoolShape s = square(2, 9, 3, 2, 1);
  Random random(13);
  const auto x = random.normals(s.large());
  std::vector<size_t> dense(s.small());
  std::vector<float> y(s.small()), dx(s.large()), dx_want(s.large());
  auto g = random.normals(s.small());
  const auto plain = PoolLayer(Pool::max, s).make();
  ASSERT_EQ(BNNSPoolingFilterApplyBatch(plain.get(), 1, x.data(), 0, y.data(), 0, dense.data(), 0), 0);
  auto want_desc = large_descriptor(s, dx_want.data()), g_desc = small_descriptor(s, g.data());
  ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(plain.get(), 1, nullptr, 0, &want_desc, 0, nullptr, 0, &g_desc, 0,
                                                nullptr, dense.data(), 0),
            0);
  for (const Form form : kForms) {
    LayoutTensor ys(BNNSDataLayoutImageCHW, {size_t(s.OW), size_t(s.OH), size_t(s.C)}, BNNSDataTypeFloat32, form.unit,
                    form.pad);
    LayoutTensor index(BNNSDataLayoutImageCHW, ys.size(), BNNSDataTypeUInt64, form.unit, form.pad);
    PoolLayer layer(Pool::max, s);
    layer.parameters.o_desc = ys.descriptor();
    const auto filter = layer.make();
    ASSERT_EQ(
        BNNSPoolingFilterApplyBatch(filter.get(), 1, x.data(), 0, ys.data(), 0, static_cast<size_t*>(index.data()), 0),
        0)
        << BNNSExtLastError();
    size_t i = 0;
    for_each_coordinate(index.size(),
                        [&](const Coordinates& at) { EXPECT_EQ(index.raw_at<uint64_t>(at), dense[i++]); });
    EXPECT_TRUE(index.gaps_untouched());
    auto dx_desc = large_descriptor(s, dx.data());
    ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), 1, nullptr, 0, &dx_desc, 0, nullptr, 0, &g_desc, 0,
                                                  nullptr, static_cast<size_t*>(index.data()), 0),
              0)
        << BNNSExtLastError();
    EXPECT_TRUE(same_bits(dx, dx_want));
  }
}

// Existing programs describe gradients as vectors.
TEST(PoolingFused, VectorDescriptorsForGradients) {
  const PoolShape s = square(2, 6, 2, 2);
  Random random(14);
  const auto x = random.normals(s.large());
  auto g = random.normals(s.small());
  std::vector<float> dx(s.large()), dx_want(s.large());
  const auto filter = PoolLayer(Pool::max, s).make();
  auto chw = large_descriptor(s, dx_want.data()), g_chw = small_descriptor(s, g.data());
  auto vector = vector_descriptor(s.large(), dx.data()), g_vector = vector_descriptor(s.small(), g.data());
  ASSERT_EQ(
      BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &chw, 0, nullptr, 0, &g_chw, 0, nullptr, nullptr), 0);
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &vector, 0, nullptr, 0, &g_vector, 0, nullptr,
                                         nullptr),
            0)
      << BNNSExtLastError();
  EXPECT_TRUE(same_bits(dx, dx_want));
}

TEST(PoolingLegacy, MapsToTheLayer) {
  // 2 channels of 4 x 4 with a gap after each row and each image; windows 2 x 2.
  const size_t row = 5, image = 22;
  std::vector<float> x(2 * image, poison()), y(8);
  for (size_t c = 0; c < 2; ++c)
    for (size_t i = 0; i < 16; ++i) x[c * image + i / 4 * row + i % 4] = float(i + 100 * c);
  const float bias[] = {1, 2};
  BNNSImageStackDescriptor in = {4, 4, 2, row, image, BNNSDataTypeFloat32, 0, 0},
                           out = {2, 2, 2, 2, 4, BNNSDataTypeFloat32, 0, 0};
  BNNSPoolingLayerParameters p;
  std::memset(&p, 0, sizeof p);
  p.x_stride = p.y_stride = p.k_width = p.k_height = p.in_channels = p.out_channels = 2;
  p.pooling_function = BNNSPoolingFunctionAverage;
  p.bias.data = bias, p.bias.data_type = BNNSDataTypeFloat32;
  FilterHandle filter(BNNSFilterCreatePoolingLayer(&in, &out, &p, nullptr), &BNNSFilterDestroy);
  ASSERT_TRUE(filter) << BNNSExtLastError();
  ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
  EXPECT_EQ(y, (std::vector<float>{3.5f, 5.5f, 11.5f, 13.5f, 104.5f, 106.5f, 112.5f, 114.5f}));
  p.out_channels = 3;
  EXPECT_EQ(BNNSFilterCreatePoolingLayer(&in, &out, &p, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"BNNSFilterCreatePoolingLayer", "2 to 3 channels, expected 2 to 2"}));
  EXPECT_EQ(BNNSFilterCreatePoolingLayer(nullptr, &out, &p, nullptr), nullptr);
}

}  // namespace
}  // namespace bnns
