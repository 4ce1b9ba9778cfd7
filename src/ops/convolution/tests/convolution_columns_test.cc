// Images one pixel wide, 1-D data as H x 1: the maps see them as rows, so that a layer on a column has the bits, and
// the algorithms, of the same layer on a row. Kernels that are wider than the image, fused functions that run along x,
// and layouts with gaps.

#include <gtest/gtest.h>

#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

ConvolutionShape turned(ConvolutionShape s) {
  std::swap(s.ih, s.iw), std::swap(s.oh, s.ow), std::swap(s.kh, s.kw), std::swap(s.sy, s.sx), std::swap(s.dy, s.dx);
  std::swap(s.top, s.left);
  return s;
}

ConvolutionShape row(size_t n, size_t i, size_t width, size_t o, size_t k, size_t stride, size_t dilation, size_t pad,
                     size_t groups = 1, bool transposed = false) {
  ConvolutionShape s;
  s.transposed = transposed, s.n = n, s.i = i, s.o = o, s.groups = groups;
  s.iw = width, s.kw = k, s.sx = stride, s.dx = dilation, s.left = pad;
  return fitted(s);
}

const std::vector<ConvolutionShape>& rows() {
  static const std::vector<ConvolutionShape> all = {
      row(2, 16, 50, 24, 3, 1, 1, 1),          row(1, 3, 200, 8, 31, 4, 1, 0),        row(2, 8, 41, 8, 5, 2, 2, 3),
      row(2, 9, 60, 9, 7, 1, 1, 3, 9),         row(1, 6, 33, 6, 3, 2, 1, 1, 6),       row(3, 40, 30, 40, 1, 1, 1, 0),
      row(2, 12, 20, 16, 4, 2, 1, 1, 1, true), row(2, 12, 20, 3, 5, 1, 1, 2, 1, true)};
  return all;
}

TEST(ConvolutionColumns, HaveTheBitsOfRows) {
  for_each_isa([&] {
    for (const ConvolutionShape& s : rows()) {
      SCOPED_TRACE(text(s));
      for (const auto function :
           {BNNSActivationFunctionIdentity, BNNSActivationFunctionTanh, BNNSActivationFunctionSiLU}) {
        Random random(41);
        Form form(function);
        const bool half = !s.transposed && function == BNNSActivationFunctionTanh;
        if (half) form.x_type = form.w_type = form.y_type = BNNSDataTypeFloat16;
        const auto values = [&](size_t count) { return half ? random.integers(count) : random.normals(count); };
        const auto x = values(s.x_count()), w = values(s.w_count()), b = values(s.o), dy = values(s.y_count());
        const FormResults want = run_form(s, form, x, w, b, dy), got = run_form(turned(s), form, x, w, b, dy);
        EXPECT_EQ(got.y, want.y);
        EXPECT_EQ(got.dx, want.dx);
        EXPECT_EQ(got.dw, want.dw);
        EXPECT_EQ(got.db, want.db);
      }
    }
  });
}

TEST(ConvolutionColumns, TakeTheAlgorithmsOfRows) {
  for (const ConvolutionShape& s : rows()) {
    SCOPED_TRACE(text(s));
    const std::vector<float> w(s.w_count(), 1.0f);
    const ConvolutionLayer layers[] = {{s, w.data(), nullptr}, {turned(s), w.data(), nullptr}};
    const auto of_row = layers[0].make(), of_column = layers[1].make();
    for (const auto pass : {BNNSExtPassForward, BNNSExtPassInputGradient, BNNSExtPassWeightsGradient}) {
      EXPECT_STREQ(BNNSExtImplementation(of_column.get(), pass, s.n), BNNSExtImplementation(of_row.get(), pass, s.n));
    }
  }
}

// Kernels of three columns, of which two meet no pixel, in every layout of the weights; gaps; sums added to what is
// there.
TEST(ConvolutionColumns, WiderKernelsAndGaps) {
  ConvolutionShape s = turned(row(2, 5, 23, 6, 4, 1, 1, 2));
  s.kw = 3, s.left = 1;
  const ConvolutionShape shapes[] = {fitted(s), make_shape(2, 4, 17, 1, 4, 3, 2, 1, 4),
                                     make_shape(1, 3, 9, 1, 2, 3, 1, 1)};
  for (const ConvolutionShape& shape : shapes) {
    const IntegerData data(shape, 42);
    for (const auto layout : kWeightLayouts) {
      if (shape.groups > 1 && layout != BNNSDataLayoutConvolutionWeightsOIHW) continue;
      for (const bool gaps : {false, true}) {
        SCOPED_TRACE(text(shape) + " layout " + std::to_string(layout) + (gaps ? ", gaps" : ""));
        Form form;
        form.w_layout = layout;
        if (gaps) form.x = form.y = form.dx = form.dy = {2, 3};
        expect_exact(data, run_form(shape, form, data.x, data.w, data.b, data.dy));
      }
    }
  }
}

// A fused softmax runs along x (K10), where a column has one pixel: 1 everywhere, and no gradient.
TEST(ConvolutionColumns, SoftmaxOfOnePixel) {
  const ConvolutionShape s = turned(row(2, 3, 12, 4, 3, 1, 1, 1));
  Random random(43);
  for (const auto type : {BNNSDataTypeFloat32, BNNSDataTypeBFloat16}) {
    Form form(BNNSActivationFunctionSoftmax);
    form.y_type = type;
    const FormResults got = run_form(s, form, random.normals(s.x_count()), random.normals(s.w_count()),
                                     random.normals(s.o), random.integers(s.y_count()));
    EXPECT_EQ(got.y, std::vector<double>(s.y_count(), 1.0));
    EXPECT_EQ(got.dx, std::vector<double>(s.x_count(), 0.0));
  }
}

}  // namespace
}  // namespace bnns
