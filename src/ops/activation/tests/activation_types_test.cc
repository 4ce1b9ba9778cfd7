// Conversions between data types, the integer functions, and Gumbel noise.

#include <limits>
#include <utility>

#include "src/engine/activation/activation_ref.h"
#include "src/ops/activation/gumbel_noise.h"
#include "src/ops/activation/tests/activation_layouts_testing.h"

namespace bnns::testing {
namespace {

BNNSNDArrayDescriptor scaled(size_t n, BNNSDataType type, float scale, float bias) {
  BNNSNDArrayDescriptor d = vector_descriptor(n, nullptr, type);
  d.data_scale = scale;
  d.data_bias = bias;
  return d;
}

template <class In, class Out>
std::vector<Out> convert(const std::vector<In>& x, BNNSNDArrayDescriptor in, BNNSNDArrayDescriptor out,
                         BNNSActivationFunction function = BNNSActivationFunctionIdentity) {
  std::vector<Out> y(x.size());
  TestFilter filter(layer_of(in, out, function));
  EXPECT_NE(filter, nullptr) << BNNSExtLastError();
  EXPECT_EQ(BNNSFilterApply(filter, x.data(), y.data()), 0) << BNNSExtLastError();
  return y;
}

template <class T>
struct TypeOf;
#define BNNS_TEST_TYPE(c_type, name)                          \
  template <>                                                 \
  struct TypeOf<c_type> {                                     \
    static constexpr BNNSDataType value = BNNSDataType##name; \
  };
BNNS_TEST_TYPE(int8_t, Int8)
BNNS_TEST_TYPE(int16_t, Int16)
BNNS_TEST_TYPE(int32_t, Int32)
BNNS_TEST_TYPE(int64_t, Int64)
BNNS_TEST_TYPE(uint8_t, UInt8)
BNNS_TEST_TYPE(uint16_t, UInt16)
BNNS_TEST_TYPE(uint32_t, UInt32)
BNNS_TEST_TYPE(uint64_t, UInt64)
#undef BNNS_TEST_TYPE

template <class F>
void for_each_integer_type(F&& f) {
  f(int8_t{}), f(int16_t{}), f(int32_t{}), f(int64_t{}), f(uint8_t{}), f(uint16_t{}), f(uint32_t{}), f(uint64_t{});
}

// ---- Identity between types -------------------------------------------------------------------------------------

// Integer to float: scale x + bias (3, 10 -> 0.5 * 3 - 1 = 0.5). Float to integer: round(f / scale - bias), ties to
// even, saturated (K42): 7 / 2 - 1 = 2.5 -> 2.
TEST(ActivationConversion, ScaleAndBias) {
  EXPECT_EQ(
      (convert<int8_t, float>({3, 10, -128}, scaled(3, BNNSDataTypeInt8, 0.5f, -1), vector_descriptor(3, nullptr))),
      (std::vector<float>{0.5, 4, -65}));
  EXPECT_EQ(
      (convert<float, int8_t>({7, 9, 1000, -1000}, vector_descriptor(4, nullptr), scaled(4, BNNSDataTypeInt8, 2, 1))),
      (std::vector<int8_t>{2, 4, 127, -128}));
  // A scale of 0 is 1.
  EXPECT_EQ((convert<uint16_t, float>({40000}, scaled(1, BNNSDataTypeUInt16, 0, 2), vector_descriptor(1, nullptr))),
            (std::vector<float>{40002}));
}

TEST(ActivationConversion, EveryIntegerTypeSaturatesAndRounds) {
  for_each_integer_type([](auto t) {
    using T = decltype(t);
    const auto type = TypeOf<T>::value;
    const std::vector<float> x = {0, 1.5f, 2.5f, -1.5f, 100, 1e30f, -1e30f, NAN};
    const std::vector<T> y = convert<float, T>(x, vector_descriptor(8, nullptr), vector_descriptor(8, nullptr, type));
    const bool negative = std::is_signed_v<T>;
    const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    EXPECT_EQ(y, (std::vector<T>{0, 2, 2, negative ? T(-2) : T(0), 100, high, low, 0}));
    const std::vector<T> small = {0, 1, 100, T(negative ? -100 : 27)};
    const std::vector<float> back =
        convert<T, float>(small, vector_descriptor(4, nullptr, type), vector_descriptor(4, nullptr));
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(back[i], float(small[i]));
  });
}

// Integers to integers without a bias keep every bit that fits.
TEST(ActivationConversion, IntegersStayExact) {
  for_each_integer_type([](auto from) {
    using In = decltype(from);
    const In low = std::numeric_limits<In>::min(), high = std::numeric_limits<In>::max();
    const std::vector<In> x = {low, In(low + 1), 0, 1, 77, In(high - 1), high};
    for_each_integer_type([&](auto to) {
      using Out = decltype(to);
      const std::vector<Out> y =
          convert<In, Out>(x, scaled(7, TypeOf<In>::value, 3, 0), scaled(7, TypeOf<Out>::value, 3, 0));
      for (size_t i = 0; i < x.size(); ++i) {
        const bool below = std::cmp_less(x[i], std::numeric_limits<Out>::min());
        const bool above = std::cmp_greater(x[i], std::numeric_limits<Out>::max());
        EXPECT_EQ(y[i], below ? std::numeric_limits<Out>::min() : above ? std::numeric_limits<Out>::max() : Out(x[i]));
      }
    });
  });
}

TEST(ActivationConversion, NarrowIntegersAndBooleans) {
  // u4, low bits first: 0x31 0x0f -> 1 3 15 0. i2: 0b11100100 -> 0 1 -2 -1.
  EXPECT_EQ(
      (convert<uint8_t, float>({0x31, 0x0f, 0, 0}, scaled(4, BNNSDataTypeUInt4, 2, 0), vector_descriptor(4, nullptr))),
      (std::vector<float>{2, 6, 30, 0}));
  EXPECT_EQ(
      (convert<uint8_t, float>({0xe4, 0, 0, 0}, scaled(4, BNNSDataTypeInt2, 1, 0), vector_descriptor(4, nullptr))),
      (std::vector<float>{0, 1, -2, -1}));
  const std::vector<uint8_t> packed =
      convert<float, uint8_t>({1, 3, 99, -5}, vector_descriptor(4, nullptr), scaled(4, BNNSDataTypeUInt4, 1, 0));
  EXPECT_EQ(packed[0], 0x31);
  EXPECT_EQ(packed[1], 0x0f);
  EXPECT_EQ((convert<float, uint8_t>({0, -0.5f, NAN, 1}, vector_descriptor(4, nullptr),
                                     vector_descriptor(4, nullptr, BNNSDataTypeBoolean))),
            (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ((convert<uint8_t, float>({0, 1, 7, 0}, vector_descriptor(4, nullptr, BNNSDataTypeBoolean),
                                     vector_descriptor(4, nullptr))),
            (std::vector<float>{0, 1, 1, 0}));
}

// A float function between integers: dequantise, apply, requantise.
TEST(ActivationConversion, FunctionsOfQuantisedData) {
  EXPECT_EQ((convert<int8_t, uint8_t>({-10, 10, 4}, scaled(3, BNNSDataTypeInt8, 0.5f, 0),
                                      scaled(3, BNNSDataTypeUInt8, 0.25f, 0), BNNSActivationFunctionRectifiedLinear)),
            (std::vector<uint8_t>{0, 20, 8}));
}

// A copy keeps every bit, NaN included.
TEST(ActivationConversion, IdentityCopiesBits) {
  for (size_t n : {1u, 100u, 40000u}) {
    std::vector<float> x(n, poison());
    EXPECT_TRUE(same_bits(convert<float, float>(x, vector_descriptor(n, nullptr), vector_descriptor(n, nullptr)), x));
    const std::vector<uint16_t> h(n, 0x7d01);  // a signalling NaN of f16
    EXPECT_EQ((convert<uint16_t, uint16_t>(h, vector_descriptor(n, nullptr, BNNSDataTypeFloat16),
                                           vector_descriptor(n, nullptr, BNNSDataTypeFloat16))),
              h);
  }
}

// ---- integer functions ------------------------------------------------------------------------------------------

// (3 x + 5) >> 2, rounding towards minus infinity: -7 -> -16 >> 2 = -4; -6 -> -13 >> 2 = -4; 100 -> 305 >> 2 = 76.
TEST(IntegerLinearSaturate, HandWorked) {
  BNNSLayerParametersActivation layer =
      layer_of(vector_descriptor(5, nullptr, BNNSDataTypeInt32), vector_descriptor(5, nullptr, BNNSDataTypeInt8),
               BNNSActivationFunctionIntegerLinearSaturate);
  layer.activation.iscale = 3;
  layer.activation.ioffset = 5;
  layer.activation.ishift = 2;
  const int32_t x[] = {-7, -6, 100, 1000, -1000};
  int8_t y[5];
  TestFilter filter(layer);
  ASSERT_EQ(BNNSFilterApply(filter, x, y), 0) << BNNSExtLastError();
  const int8_t want[] = {-4, -4, 76, 127, -128};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(y[i], want[i]);
}

// 64-bit products need 96 bits: 2^31-ish scale times the ends of the range.
TEST(IntegerLinearSaturate, WideProductsDoNotWrap) {
  BNNSLayerParametersActivation layer =
      layer_of(vector_descriptor(4, nullptr, BNNSDataTypeInt64), vector_descriptor(4, nullptr, BNNSDataTypeInt64),
               BNNSActivationFunctionIntegerLinearSaturate);
  layer.activation.iscale = 1 << 30;
  layer.activation.ishift = 30;
  const int64_t x[] = {INT64_MAX, INT64_MIN, -1, 12345678901};
  int64_t y[4];
  {
    TestFilter filter(layer);
    ASSERT_EQ(BNNSFilterApply(filter, x, y), 0);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], x[i]);
  }
  layer.activation.ishift = 0;
  TestFilter filter(layer);
  ASSERT_EQ(BNNSFilterApply(filter, x, y), 0);
  EXPECT_EQ(y[0], INT64_MAX);
  EXPECT_EQ(y[1], INT64_MIN);
  EXPECT_EQ(y[2], -(int64_t{1} << 30));
}

// The arrays are the filter's own after creation; channels follow ImageCHW, strides included.
TEST(IntegerLinearSaturate, PerChannel) {
  for (const Shape& shape :
       {Shape{BNNSDataLayoutImageCHW, {2, 2, 3}, {}}, Shape{BNNSDataLayoutImageCHW, {2, 2, 3}, {1, 3, 7}},
        Shape{BNNSDataLayoutVector, {12}, {}}}) {
    const bool vector = shape.layout == BNNSDataLayoutVector;
    std::vector<int32_t> scale(12), offset(12), shift(12);
    for (int c = 0; c < 12; ++c) scale[c] = c + 1, offset[c] = 10 * c, shift[c] = c % 3;
    BNNSLayerParametersActivation layer =
        layer_of(shape.descriptor(nullptr, BNNSDataTypeInt16), shape.descriptor(nullptr, BNNSDataTypeUInt8),
                 BNNSActivationFunctionIntegerLinearSaturatePerChannel);
    layer.activation.iscale_per_channel = scale.data();
    layer.activation.ioffset_per_channel = offset.data();
    layer.activation.ishift_per_channel = shift.data();
    TestFilter filter(layer);
    ASSERT_NE(filter, nullptr) << BNNSExtLastError();
    const std::vector<int32_t> s = scale, o = offset, h = shift;
    scale.assign(12, -1), offset.assign(12, -1), shift.assign(12, 60);
    const size_t batch = 2, step = shape.span();
    std::vector<int16_t> x(batch * step, 999);
    std::vector<uint8_t> y(batch * step, 222);
    for (size_t n = 0; n < batch; ++n) {
      for (size_t m = 0; m < 12; ++m) x[n * step + shape.offset(m)] = int16_t(int(7 * m + n) - 20);
    }
    ASSERT_EQ(BNNSFilterApplyBatch(filter, batch, x.data(), step, y.data(), step), 0);
    size_t named = 0;
    for (size_t n = 0; n < batch; ++n) {
      for (size_t m = 0; m < 12; ++m) {
        const size_t at = n * step + shape.offset(m), c = vector ? m : m / 4;
        const int64_t value = (int64_t(s[c]) * x[at] + o[c]) >> h[c];
        EXPECT_EQ(y[at], std::clamp<int64_t>(value, 0, 255));
        ++named;
      }
    }
    size_t untouched = 0;
    for (size_t i = 0; i < y.size(); ++i) untouched += x[i] == 999 && y[i] == 222;
    EXPECT_EQ(untouched, y.size() - named);
  }
}

// ---- Gumbel -----------------------------------------------------------------------------------------------------

// Mean 0.5772 (Euler's constant) and variance pi^2 / 6; 6 sigma of the sample mean is 6 * 1.283 / sqrt(n).
TEST(Gumbel, HasTheMomentsOfItsDistribution) {
  seed_noise(1);
  const size_t n = 200000;
  std::vector<float> y(n), again(n);
  TestFilter filter(
      layer_of(vector_descriptor(n, nullptr), vector_descriptor(n, nullptr), BNNSActivationFunctionGumbel, 1, 0));
  ASSERT_EQ(BNNSFilterApply(filter, null<void>(), y.data()), 0);
  double mean = 0, square = 0;
  for (float v : y) {
    ASSERT_TRUE(std::isfinite(v));
    mean += v;
    square += double(v) * v;
  }
  mean /= n;
  EXPECT_NEAR(mean, 0.5772156649, 6 * 1.2825 / std::sqrt(double(n)));
  EXPECT_NEAR(square / n - mean * mean, 1.6449340668, 6 * 3 / std::sqrt(double(n)));
  ASSERT_EQ(BNNSFilterApply(filter, null<void>(), again.data()), 0);
  EXPECT_FALSE(same_bits(y, again)) << "two applies draw different noise";
}

TEST(Gumbel, SameNumbersForAnyThreadCount) {
  std::vector<float> first;
  for (size_t threads : kThreadCounts) {
    seed_noise(2);
    std::vector<float> y(100000);
    TestFilter filter(layer_of(vector_descriptor(50000, nullptr), vector_descriptor(50000, nullptr),
                               BNNSActivationFunctionGumbel, 1, 0),
                      threads);
    ASSERT_EQ(BNNSFilterApplyBatch(filter, 2, null<void>(), 0, y.data(), 0), 0);
    if (threads == 1) first = y;
    EXPECT_TRUE(same_bits(y, first));
  }
}

// The arg max of x + noise is drawn with the probabilities softmax(x); 5 sigma of a binomial share.
TEST(Gumbel, MaxDrawsFromTheSoftmax) {
  seed_noise(3);
  const size_t n = 20000;
  const std::vector<double> p = ref::softmax_forward(false, {0, 1, 2});
  std::vector<float> x(3 * n), y(n);
  for (size_t i = 0; i < 3 * n; ++i) x[i] = float(i % 3);
  TestFilter filter(
      layer_of(vector_descriptor(3, nullptr), vector_descriptor(1, nullptr), BNNSActivationFunctionGumbelMax, 1, 0));
  ASSERT_EQ(BNNSFilterApplyBatch(filter, n, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
  double share[3] = {};
  for (float v : y) share[int(v)] += 1.0 / n;
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(share[k], p[k], 5 * std::sqrt(p[k] * (1 - p[k]) / n));
}

// alpha 0: the noise is the same for every element, so the index is the arg max. Channels of an image, one index each.
TEST(Gumbel, MaxWithoutNoiseIsArgMax) {
  const Shape in = {BNNSDataLayoutImageCHW, {2, 2, 3}, {}}, out = {BNNSDataLayoutImageCHW, {2, 2, 1}, {}};
  TestFilter filter(
      layer_of(in.descriptor(nullptr), out.descriptor(nullptr), BNNSActivationFunctionGumbelMax, 0, 0, 4));
  //                 channel 0     channel 1     channel 2
  const float x[] = {5, 1, 0, NAN, 2, 1, 3, 8, 1, 0, 9, 9};
  float y[4];
  ASSERT_EQ(BNNSFilterApply(filter, x, y), 0) << BNNSExtLastError();
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0);  // 1, 1, 0: the first of equals
  EXPECT_EQ(y[2], 2);
  EXPECT_EQ(y[3], 0);  // NaN wins
}

}  // namespace
}  // namespace bnns::testing
