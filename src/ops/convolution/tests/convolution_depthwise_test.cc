// convolution/depthwise/rows: every size of kernel with every stride and dilation, on planes around the edges of tiles,
// bands and groups of planes. Exact on integers against the reference, with guard pages around every array; the same
// for strided, f16 and bf16 images and for gradients that are added to.

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/ops/convolution/implementations.h"
#include "src/ops/convolution/tests/convolution_forms_testing.h"
#include "tests/support/implementations.h"

namespace bnns {
namespace {

using namespace bnns::testing;

ConvolutionShape window(size_t n, size_t channels, size_t ih, size_t iw, size_t kh, size_t kw, size_t sy, size_t sx,
                        size_t dy, size_t dx, size_t top, size_t left) {
  ConvolutionShape s;
  s.n = n, s.i = s.o = s.groups = channels, s.ih = ih, s.iw = iw, s.kh = kh, s.kw = kw;
  s.sy = sy, s.sx = sx, s.dy = dy, s.dx = dx, s.top = top, s.left = left;
  return fitted(s);
}

void expect_exact(const ConvolutionShape& s, const Form& f) {
  const IntegerData data(s, 31);
  const FormResults got = run_form(s, f, data.x, data.w, data.b, data.dy);
  const auto expect = [&](const std::vector<double>& values, const std::vector<double>& want, const char* what) {
    std::vector<double> wanted = want;
    for (double& v : wanted) v += f.accumulate && what[0] == 'd' ? f.old : 0.0;
    EXPECT_TRUE(within(values, rounded(f.y_type, wanted), values.size(), kExact)) << what;
  };
  expect(got.y, data.y, "y");
  expect(got.dx, data.gradients.dx, "dx");
  expect(got.dw, data.gradients.dw, "dw");
  EXPECT_TRUE(got.gaps_untouched);
}

std::vector<ConvolutionShape> windows() {
  std::vector<ConvolutionShape> all;
  // Square kernels 1 to 13 with all strides and dilations in turn, on planes of 1 to 40 rows.
  for (size_t k = 1; k <= 13; ++k) {
    for (const size_t stride : {1, 2, 3 + static_cast<int>(k % 3)}) {
      const size_t dilation = 1 + (k + stride) % 3, size = 1 + (k * 7 + stride * 5) % 33, pad = dilation * (k / 2);
      all.push_back(
          window(1 + k % 2, 3 + k % 15, size, size + k % 4, k, k, stride, stride, dilation, dilation, pad, pad));
    }
  }
  all.push_back(window(2, 19, 14, 14, 5, 5, 1, 1, 1, 1, 2, 2));   // two groups of planes
  all.push_back(window(1, 17, 7, 7, 7, 7, 1, 1, 1, 1, 3, 3));     // one tile
  all.push_back(window(1, 3, 5, 40, 5, 5, 1, 1, 1, 1, 2, 2));     // less than one
  all.push_back(window(2, 3, 1, 300, 1, 31, 1, 1, 1, 1, 0, 15));  // one row, wide tiles
  all.push_back(window(2, 3, 300, 1, 31, 1, 1, 1, 1, 1, 15, 0));
  all.push_back(window(1, 2, 150, 140, 7, 5, 1, 1, 1, 1, 3, 2));  // bands
  all.push_back(window(1, 2, 151, 141, 5, 7, 2, 2, 1, 1, 2, 3));
  all.push_back(window(1, 2, 65, 33, 3, 3, 1, 1, 18, 18, 18, 18));  // classes of rows that fill no tile
  all.push_back(window(1, 3, 30, 20, 3, 4, 2, 3, 3, 2, 2, 1));
  all.push_back(window(1, 3, 12, 12, 2, 2, 5, 5, 1, 1, 0, 0));  // phases without taps
  all.push_back(window(1, 3, 13, 11, 5, 3, 1, 2, 1, 1, 2, 1));  // a stride along one axis
  all.push_back(window(1, 3, 13, 11, 4, 5, 2, 1, 1, 1, 1, 2));
  return all;
}

// The 3x3 windows among them too: tile is left out.
TEST(ConvolutionDepthwise, EveryWindow) {
  const Skip skip("convolution/depthwise/tile,convolution/depthwise/tile_dw");
  for_each_isa([&] {
    for (const ConvolutionShape& s : windows()) {
      SCOPED_TRACE(text(s));
      expect_exact(s, Form());
    }
  });
}

TEST(ConvolutionDepthwise, OtherTypesAndLayouts) {
  const Skip skip("convolution/depthwise/tile,convolution/depthwise/tile_dw");
  const std::vector<ConvolutionShape> all = {
      window(2, 5, 14, 15, 5, 5, 1, 1, 1, 1, 2, 2), window(1, 18, 9, 7, 4, 4, 2, 2, 1, 1, 1, 1),
      window(1, 3, 110, 100, 5, 5, 1, 1, 1, 1, 2, 2), window(1, 3, 21, 20, 3, 3, 3, 3, 1, 1, 1, 1)};
  for_each_isa([&] {
    for (const ConvolutionShape& s : all) {
      for (const BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
        for (const bool spaced : {false, true}) {
          SCOPED_TRACE(text(s) + " type " + std::to_string(type) + (spaced ? ", spaced" : ""));
          Form f;
          f.x_type = f.w_type = f.y_type = type, f.threads = 2;
          if (spaced) f.x = f.y = f.dx = f.dy = {2, 3};
          expect_exact(s, f);
          f.accumulate = true, f.old = 2;
          expect_exact(s, f);
        }
      }
    }
  });
}

// A NaN or infinity beside the pixels that a sum reads does not reach it: vectors run past the end of rows.
TEST(ConvolutionDepthwise, NeighboursStayOut) {
  const ConvolutionShape s = window(1, 2, 9, 11, 5, 5, 2, 2, 1, 1, 2, 2);
  const IntegerData data(s, 32);
  std::vector<float> x = data.x;
  for (size_t k = s.ih * s.iw; k < x.size(); ++k) x[k] = NAN;  // the second plane
  for_each_isa([&] {
    const FormResults got = run_form(s, Form(), x, data.w, data.b, data.dy);
    EXPECT_TRUE(within(got.y, data.y, s.oh * s.ow, kExact)) << "y";
    EXPECT_TRUE(within(got.dw, data.gradients.dw, s.kh * s.kw, kExact)) << "dw";
  });
}

}  // namespace
}  // namespace bnns
