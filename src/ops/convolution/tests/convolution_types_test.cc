// Convolution on every type of data: floats in any mix, integers that mean scale and bias, indexed weights, exact
// integers.

#include <gtest/gtest.h>

#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// f32, f16 and bf16 in any mix, in any stride; sums in f32, so results are the exact ones rounded once.
TEST(ConvolutionTypes, FloatTypeMixes) {
  constexpr BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  for (const ConvolutionShape& s :
       {make_shape(2, 6, 9, 10, 5, 3, 1, 1), make_shape(2, 4, 9, 35, 4, 3, 2, 1, 4),
        make_shape(2, 6, 5, 7, 5, 3, 2, 1, 1, 1, true), make_shape(2, 6, 6, 5, 8, 4, 2, 1, 2, 1, true)}) {
    const IntegerData data(s, 3);
    for (const auto x : types) {
      for (const auto w : types) {
        for (const auto y : types) {
          for (const Spacing spacing : {Spacing{1, 0}, Spacing{2, 1}}) {
            SCOPED_TRACE(text(s) + " types " + std::to_string(x) + " " + std::to_string(w) + " " + std::to_string(y));
            Form form;
            form.x_type = x, form.w_type = w, form.y_type = y;
            form.x = form.y = form.dx = form.dy = spacing;
            const auto got = run_form(s, form, data.x, data.w, data.b, data.dy);
            EXPECT_EQ(got.y, rounded(y, data.y));
            EXPECT_EQ(got.dx, rounded(x, data.gradients.dx));
            EXPECT_EQ(got.dw, rounded(w, data.gradients.dw));
            EXPECT_EQ(got.db, data.gradients.db);
            EXPECT_TRUE(got.gaps_untouched);
          }
        }
      }
    }
  }
}

// Accumulation in a narrow type: old + new in f32, then one rounding.
TEST(ConvolutionTypes, AccumulateInNarrowTypes) {
  const ConvolutionShape s = make_shape(2, 3, 8, 9, 5, 3, 2, 1);
  const IntegerData data(s, 4);
  for (const auto layout : kWeightLayouts) {
    for (const auto type : {BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
      Form form;
      form.x_type = form.w_type = type, form.w_layout = layout;
      form.accumulate = true, form.old = 3;
      const auto got = run_form(s, form, data.x, data.w, data.b, data.dy);
      for (size_t j = 0; j < got.dx.size(); ++j) EXPECT_EQ(got.dx[j], rounded(type, data.gradients.dx[j] + 3));
      for (size_t j = 0; j < got.dw.size(); ++j) EXPECT_EQ(got.dw[j], rounded(type, data.gradients.dw[j] + 3));
      for (size_t j = 0; j < got.db.size(); ++j) EXPECT_EQ(got.db[j], data.gradients.db[j] + 3);
      EXPECT_TRUE(got.gaps_untouched);
    }
  }
}

// Integer inputs and weights mean scale * value + bias; scales are powers of two, so everything stays exact.
TEST(ConvolutionTypes, IntegerDataWithScaleAndBias) {
  const ConvolutionShape s = make_shape(2, 3, 8, 9, 5, 3, 1, 1);
  Random random(5);
  const auto x = random.integers(s.x_count()), b = random.integers(s.o);
  auto w = random.integers(s.w_count());
  for (const auto x_type : {BNNSDataTypeInt8, BNNSDataTypeUInt8, BNNSDataTypeInt16, BNNSDataTypeFloat32}) {
    for (const auto w_type : {BNNSDataTypeFloat32, BNNSDataTypeInt8, BNNSDataTypeInt16}) {
      std::vector<double> raw = widen(x), meant = raw, weights = widen(w);
      if (x_type == BNNSDataTypeUInt8) {
        for (double& v : raw) v += 4;
        meant = raw;
      }
      ImageBatch xs(s.n, s.i, s.ih, s.iw, x_type, {1, 1});
      Weights ws(BNNSDataLayoutConvolutionWeightsOIHW, s, w_type);
      xs.fill(raw), ws.fill(weights);
      ConvolutionLayer layer(s, nullptr, b.data());
      layer.parameters.i_desc = xs.descriptor();
      layer.parameters.w_desc = ws.descriptor();
      layer.parameters.i_desc.data_scale = 0.5f, layer.parameters.i_desc.data_bias = 2;
      layer.parameters.w_desc.data_scale = 0.25f, layer.parameters.w_desc.data_bias = -1;
      if (x_type != BNNSDataTypeFloat32) {  // floats ignore scale and bias
        for (double& v : meant) v = 0.5 * v + 2;
      }
      if (w_type != BNNSDataTypeFloat32) {
        for (double& v : weights) v = 0.25 * v - 1;
      }
      std::vector<float> y(s.y_count(), poison());
      const auto filter = layer.make();
      ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, xs.data(), xs.batch_stride(), y.data(), 0), 0);
      EXPECT_TRUE(within(y, ref::convolution_forward(s, meant, weights, widen(b)), y.size(), kExact));

      // dW of an integer layer with float sums is a float tensor.
      auto dy = random.integers(s.y_count());
      std::vector<float> dw(s.w_count());
      auto dy_desc = image(s.ow, s.oh, s.o, dy.data());
      auto dw_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, s.i, s.o}, dw.data());
      ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, xs.data(), xs.batch_stride(), nullptr, 0, nullptr, 0,
                                             &dy_desc, 0, &dw_desc, nullptr),
                0)
          << BNNSExtLastError();
      EXPECT_TRUE(within(dw, ref::convolution_backward(s, meant, weights, widen(dy)).dw, dw.size(), kExact));
    }
  }
}

// K43: an integer output with a float activation is saturate(round(act(..) / scale - bias)).
TEST(ConvolutionTypes, QuantisedOutput) {
  const ConvolutionShape s = make_shape(2, 3, 8, 9, 5, 3, 1, 1);
  const IntegerData data(s, 6);
  for (const Spacing spacing : {Spacing{1, 0}, Spacing{2, 1}}) {
    ImageBatch ys(s.n, s.o, s.oh, s.ow, BNNSDataTypeInt8, spacing);
    ConvolutionLayer layer(s, data.w.data(), data.b.data(), BNNSActivationFunctionRectifiedLinear);
    layer.parameters.o_desc = ys.descriptor();
    layer.parameters.o_desc.data_scale = 0.25f, layer.parameters.o_desc.data_bias = 7;
    ASSERT_EQ(BNNSFilterApplyBatch(layer.make().get(), s.n, data.x.data(), 0, ys.data(), ys.batch_stride()), 0)
        << BNNSExtLastError();
    std::vector<double> want = data.y;
    for (double& v : want) v = std::min(127.0, std::max(0.0, v) / 0.25 - 7);
    EXPECT_EQ(ys.values(), want);
    EXPECT_TRUE(ys.gaps_untouched());
  }
}

TEST(ConvolutionTypes, IndexedWeights) {
  ConvolutionShape s = make_shape(1, 2, 5, 6, 3, 2, 1, 0);
  Random random(7);
  const auto x = random.integers(s.x_count());
  for (const auto type : {BNNSDataTypeIndexed1, BNNSDataTypeIndexed2, BNNSDataTypeIndexed4, BNNSDataTypeIndexed8}) {
    const size_t width = size_t(type) & 0xff;
    std::vector<float> table(size_t{1} << width);
    for (float& v : table) v = float(random.integer(-9, 9));
    std::vector<uint8_t> packed((s.w_count() * width + 7) / 8);
    std::vector<double> w;
    for (size_t k = 0; k < s.w_count(); ++k) {
      const size_t index = random.below(table.size());
      packed[k * width / 8] = uint8_t(packed[k * width / 8] | index << (k * width % 8));
      w.push_back(table[index]);
    }
    ConvolutionLayer layer(s, nullptr, nullptr);
    layer.parameters.w_desc.data = packed.data(), layer.parameters.w_desc.data_type = type;
    layer.parameters.w_desc.table_data = table.data();
    layer.parameters.w_desc.table_data_type = BNNSDataTypeFloat32;
    const auto filter = layer.make();
    const auto want = ref::convolution_forward(s, widen(x), w, {});
    std::fill(table.begin(), table.end(), poison());  // the filter has its own copy
    std::vector<float> y(s.y_count());
    ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
    EXPECT_TRUE(within(y, want, y.size(), kExact)) << width << " bits";
  }
}

// saturate((iscale * (sum + bias) + ioffset) >> ishift) on exact integers, the shift rounding down.
TEST(ConvolutionTypes, IntegerLinearSaturate) {
  ConvolutionShape s;
  s.n = 2, s.i = 4, s.o = 6, s.groups = 2, s.ih = 6, s.iw = 7, s.kh = 3, s.kw = 2, s.sx = 2, s.dy = 2, s.top = 1;
  s = fitted(s);
  for (const auto x_type : {BNNSDataTypeInt8, BNNSDataTypeUInt8, BNNSDataTypeInt16}) {
    for (const auto y_type : {BNNSDataTypeInt8, BNNSDataTypeUInt8, BNNSDataTypeInt16, BNNSDataTypeInt32}) {
      Random random(8);
      const bool wide = x_type == BNNSDataTypeInt16;
      std::vector<double> x(s.x_count()), w(s.w_count()), b(s.o);
      for (double& v : x)
        v = x_type == BNNSDataTypeUInt8 ? random.integer(0, 255) : random.integer(-128, 127) * (wide ? 256 : 1);
      for (double& v : w) v = random.integer(-128, 127);
      std::vector<int32_t> bias(s.o);
      for (size_t o = 0; o < s.o; ++o) b[o] = bias[o] = random.integer(-100000, 100000);
      ImageBatch xs(s.n, s.i, s.ih, s.iw, x_type, {2, 1}), ys(s.n, s.o, s.oh, s.ow, y_type, {1, 3});
      Weights ws(BNNSDataLayoutConvolutionWeightsOIHrWr, s, BNNSDataTypeInt8);
      xs.fill(x), ws.fill(w);
      ConvolutionLayer layer(s, nullptr, nullptr, BNNSActivationFunctionIntegerLinearSaturate);
      layer.parameters.i_desc = xs.descriptor(), layer.parameters.o_desc = ys.descriptor();
      layer.parameters.w_desc = ws.descriptor();
      layer.parameters.bias = vector_descriptor(s.o, bias.data(), BNNSDataTypeInt32);
      layer.parameters.activation.iscale = -3, layer.parameters.activation.ioffset = 1000,
      layer.parameters.activation.ishift = y_type == BNNSDataTypeInt32 ? 0 : 9;
      ASSERT_EQ(
          BNNSFilterApplyBatch(layer.make().get(), s.n, xs.data(), xs.batch_stride(), ys.data(), ys.batch_stride()), 0)
          << BNNSExtLastError();
      std::vector<double> want = ref::convolution_forward(s, x, w, b);  // below 2^53: exact
      const double low = y_type == BNNSDataTypeUInt8   ? 0
                         : y_type == BNNSDataTypeInt8  ? -128
                         : y_type == BNNSDataTypeInt16 ? -32768
                                                       : -2147483648.0;
      const double high = y_type == BNNSDataTypeUInt8   ? 255
                          : y_type == BNNSDataTypeInt8  ? 127
                          : y_type == BNNSDataTypeInt16 ? 32767
                                                        : 2147483647.0;
      for (double& v : want) {
        const double shifted = std::floor((-3 * v + 1000) / double(1 << layer.parameters.activation.ishift));
        v = std::min(high, std::max(low, shifted));
      }
      EXPECT_EQ(ys.values(), want);
      EXPECT_TRUE(ys.gaps_untouched());
    }
  }
}

}  // namespace
}  // namespace bnns
