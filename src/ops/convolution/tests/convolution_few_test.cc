// The direct algorithms of convolution: depthwise 3x3 on planes as they lie, few channels, and channels as lanes.
// Shapes around the edges of their blocks, exact on integers against the reference, with guard pages around every
// array; the same bits for any number of threads; the bound on real data.

#include <gtest/gtest.h>

#include <cstdint>

#include "src/ops/convolution/tests/convolution_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

ConvolutionShape rectangle(size_t n, size_t i, size_t ih, size_t iw, size_t o, size_t kh, size_t kw, size_t stride,
                           size_t top, size_t left, size_t groups = 1) {
  ConvolutionShape s = make_shape(n, i, ih, iw, o, 1, stride, 0, groups);
  s.kh = kh, s.kw = kw, s.top = top, s.left = left;
  return fitted(s);
}

std::vector<NamedShape> shapes() {
  std::vector<NamedShape> all = {
      // Depthwise 3x3. Blocks are seven rows by one vector; planes above 64K floats go in bands.
      {"dw 7x7", make_shape(3, 70, 7, 7, 70, 3, 1, 1, 70)},
      {"dw 14x14", make_shape(2, 9, 14, 14, 9, 3, 1, 1, 9)},
      {"dw 14x14 s2", make_shape(2, 9, 14, 14, 9, 3, 2, 1, 9)},
      {"dw 15x17 s2", make_shape(2, 3, 15, 17, 3, 3, 2, 1, 3)},
      {"dw 16x33 s2 no padding", make_shape(2, 3, 16, 33, 3, 3, 2, 0, 3)},
      {"dw 33x2 s2", rectangle(2, 3, 33, 2, 3, 3, 3, 2, 1, 1, 3)},
      {"dw padding 2", make_shape(1, 3, 9, 20, 3, 3, 1, 2, 3)},
      {"dw no padding", make_shape(1, 3, 9, 50, 3, 3, 1, 0, 3)},
      {"dw padding beyond the kernel", rectangle(1, 2, 5, 6, 2, 3, 3, 1, 4, 3, 2)},
      {"dw one column", rectangle(1, 2, 20, 1, 2, 3, 3, 1, 1, 1, 2)},
      {"dw uneven padding", rectangle(1, 2, 12, 19, 2, 3, 3, 2, 0, 1, 2)},
      {"dw bands", make_shape(1, 2, 300, 260, 2, 3, 1, 1, 2)},
      {"dw bands s2", make_shape(1, 2, 301, 262, 2, 3, 2, 1, 2)},
      // Few channels: rows of a tile, compact slabs, samples side by side, several blocks of rows.
      {"few blocks of rows", make_shape(1, 3, 90, 70, 5, 3, 1, 1)},
      {"few, uneven batch", make_shape(9, 4, 9, 9, 7, 3, 1, 1)},
      {"few, merged batch", make_shape(32, 4, 9, 9, 7, 3, 1, 1)},
      {"few groups", make_shape(2, 24, 11, 11, 16, 3, 1, 1, 4)},
      {"few rectangular", rectangle(2, 3, 17, 20, 4, 5, 2, 1, 2, 0)},
      {"few stride 2 backward", make_shape(2, 3, 21, 22, 12, 5, 2, 2)},
      {"few dilated", make_shape(2, 3, 30, 40, 4, 3, 1, 2, 1, 2)},
      {"fold", make_shape(3, 6, 13, 17, 1, 5, 1, 2)},
      {"fold backward", make_shape(3, 2, 13, 17, 6, 5, 1, 2)},
      {"fold, blocks of rows, s2", make_shape(1, 1, 240, 70, 3, 7, 2, 3)},
      {"few, many taps", make_shape(8, 3, 9, 11, 50, 5, 1, 1)},
      {"phases, no padding", make_shape(2, 3, 21, 22, 12, 5, 2, 0)},
      {"phases 7x7", make_shape(1, 3, 61, 130, 20, 7, 2, 3)},
      {"phases transposed", make_shape(2, 12, 15, 16, 8, 4, 2, 1, 1, 1, true)},
      {"few, a row of taps", rectangle(2, 3, 5, 40, 4, 1, 7, 1, 0, 3)},
      // Backward from the small side.
      {"scatter", make_shape(16, 6, 14, 14, 16, 5, 1, 0)},
      {"scatter, odd batch", make_shape(5, 3, 12, 12, 10, 5, 1, 0)},
      {"scatter, some padding", make_shape(8, 3, 10, 9, 9, 5, 1, 1)},
      {"scatter, surplus pixels", make_shape(3, 3, 13, 14, 9, 4, 1, 0)},
      {"scatter, one pixel", make_shape(4, 3, 5, 5, 11, 5, 1, 0)},
      {"scatter transposed", make_shape(8, 12, 9, 9, 4, 5, 1, 0, 1, 1, true)},
  };
  all[all.size() - 3].shape.oh -= 2, all[all.size() - 3].shape.ow -= 1;
  // Depthwise: 4 MB, which are prefetched; small planes of several samples at a time, more than the lanes take.
  all.push_back({"dw from memory", make_shape(12, 3, 120, 130, 3, 3, 1, 1, 3)});
  all.push_back({"dw from memory, s2", make_shape(16, 3, 140, 130, 3, 3, 2, 1, 3)});
  all.push_back({"dw 7x7, many samples", make_shape(91, 3, 7, 7, 3, 3, 1, 1, 3)});
  all.push_back({"few, planes of whole vectors", make_shape(3, 1, 28, 28, 6, 5, 1, 2)});
  all.push_back({"few, tall tiles", rectangle(8, 20, 12, 12, 27, 5, 6, 1, 0, 0)});
  all.push_back({"few, one sample", make_shape(1, 1, 28, 28, 20, 5, 1, 0)});
  all.push_back({"scatter, one sample", make_shape(1, 20, 12, 12, 50, 5, 1, 0)});
  all.push_back({"scatter, pairs of channels", make_shape(32, 5, 12, 12, 20, 5, 1, 0)});
  all.push_back({"scatter, padding", make_shape(16, 2, 16, 15, 6, 5, 1, 2)});
  // One tap in x, in a kernel or in a phase of it, and a batch that would lie side by side.
  all.push_back({"few, a column of taps", rectangle(16, 2, 8, 8, 4, 3, 1, 1, 1, 0)});
  all.push_back({"few, a column of taps, no padding", rectangle(16, 5, 5, 9, 1, 3, 1, 1, 0, 0)});
  all.push_back({"phases of one tap, two columns", rectangle(16, 3, 28, 16, 16, 5, 2, 2, 2, 1)});
  all.push_back({"phases of one tap, s3", make_shape(32, 3, 24, 24, 8, 5, 3, 1)});
  all.push_back({"phases of one tap, s4", make_shape(16, 3, 32, 32, 8, 5, 4, 1)});
  for (size_t o = 1; o <= 25; o += 4) all.push_back({"few rows", make_shape(2, 2, 9, 13, o, 3, 1, 1)});
  // Channels as lanes: one to four vectors, tiles that overlap, rows of one pixel, several blocks of rows.
  for (size_t o : {14, 16, 30, 32, 45, 48, 50, 60, 64}) all.push_back({"lanes", make_shape(3, 3, 15, 13, o, 5, 1, 2)});
  all.push_back({"lanes, one pixel", make_shape(2, 3, 7, 7, 16, 7, 2, 0)});
  all.push_back({"lanes, three pixels", rectangle(2, 5, 20, 9, 16, 5, 7, 1, 0, 0)});
  all.push_back({"lanes groups", make_shape(2, 24, 11, 11, 32, 5, 1, 1, 2)});
  all.push_back({"lanes 3x3 s2", make_shape(2, 9, 23, 31, 32, 3, 2, 1)});
  all.push_back({"lanes transposed", make_shape(2, 16, 9, 9, 4, 5, 2, 1, 1, 1, true)});
  all.push_back({"lanes 5x7 s2", rectangle(2, 3, 40, 230, 64, 5, 7, 2, 2, 3)});
  return all;
}

TEST(ConvolutionDirect, ExactOnIntegers) {
  for_each_isa([&] {
    for (const NamedShape& c : shapes()) {
      const ConvolutionShape& s = c.shape;
      SCOPED_TRACE(c.name + std::string(": ") + text(s));
      Random random(s.x_count());
      const auto x = random.integers(s.x_count()), w = random.integers(s.w_count()), b = random.integers(s.o),
                 dy = random.integers(s.y_count());
      const auto got = run_convolution(s, x, w, b, dy, 2);
      EXPECT_TRUE(within(got.y, ref::convolution_forward(s, widen(x), widen(w), widen(b)), s.y_count(), kExact));
      const auto want = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
      EXPECT_TRUE(within(got.dx, want.dx, s.x_count(), kExact)) << "dx";
      if (has_exact_weights(s)) {
        EXPECT_TRUE(within(got.dw, want.dw, s.w_count(), kExact)) << "dw";
      }
    }
  });
}

// |error| <= 2 eps k sum |terms|, and the same bits for any number of threads.
TEST(ConvolutionDirect, RealDataAndThreads) {
  for_each_isa([&] {
    for (const NamedShape& c : shapes()) {
      const ConvolutionShape& s = c.shape;
      SCOPED_TRACE(c.name + std::string(": ") + text(s));
      Random random(5);
      const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), b = random.normals(s.o),
                 dy = random.normals(s.y_count());
      const auto one = run_convolution(s, x, w, b, dy, 1);
      const auto three = run_convolution(s, x, w, b, dy, 3);
      EXPECT_TRUE(same_bits(one.y, three.y)) << "y";
      EXPECT_TRUE(same_bits(one.dx, three.dx)) << "dx";
      EXPECT_TRUE(same_bits(one.dw, three.dw)) << "dw";
      const auto absolute = [](std::vector<double> v) {
        for (double& e : v) e = std::fabs(e);
        return v;
      };
      const double eps = std::numeric_limits<float>::epsilon();
      const double kx = double(s.o / s.groups * s.kh * s.kw), kw = double(s.n * std::max(s.oh * s.ow, s.ih * s.iw));
      const auto want = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
      const auto size = ref::convolution_backward(s, absolute(widen(x)), absolute(widen(w)), absolute(widen(dy)));
      EXPECT_TRUE(within(one.dx, want.dx, s.x_count(), [&](size_t j) { return 2 * eps * kx * size.dx[j]; })) << "dx";
      EXPECT_TRUE(within(one.dw, want.dw, s.w_count(), [&](size_t j) { return 2 * eps * kw * size.dw[j]; })) << "dw";
    }
  });
}

// Padded rows and planes, and a gradient that is added to another: the same bits as dense and overwritten.
TEST(ConvolutionDirect, SameBitsForPaddedRows) {
  for (const NamedShape& c :
       {shapes()[0], shapes()[3], shapes()[15], shapes()[20], shapes()[21], shapes()[28], shapes().back()}) {
    const ConvolutionShape& s = c.shape;
    SCOPED_TRACE(c.name);
    Random random(9);
    const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), dy = random.normals(s.y_count());
    const auto want = run_convolution(s, x, w, {}, dy, 2);
    const auto spread = [](const std::vector<float>& dense, size_t width, size_t stride) {
      std::vector<float> out(dense.size() / width * stride, poison());
      for (size_t j = 0; j < dense.size(); ++j) out[j / width * stride + j % width] = dense[j];
      return out;
    };
    const size_t ix = s.iw + 3, ox = s.ow + 5;
    auto xs = spread(x, s.iw, ix), dys = spread(dy, s.ow, ox);
    auto ys = spread(want.y, s.ow, ox), dxs = spread(std::vector<float>(s.x_count()), s.iw, ix);
    ConvolutionLayer layer(s, w.data(), nullptr);
    const auto stretch = [](BNNSNDArrayDescriptor d, size_t stride, std::vector<float>& data) {
      d.stride[0] = 1, d.stride[1] = stride, d.stride[2] = stride * d.size[1];
      d.data = data.data();
      return d;
    };
    layer.parameters.i_desc = stretch(layer.parameters.i_desc, ix, xs);
    layer.parameters.o_desc = stretch(layer.parameters.o_desc, ox, ys);
    const auto filter = layer.make();
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, xs.data(), s.i * s.ih * ix, ys.data(), s.o * s.oh * ox), 0)
        << BNNSExtLastError();
    EXPECT_TRUE(same_bits(ys, spread(want.y, s.ow, ox)));
    std::vector<float> dw(s.w_count());
    auto dw_desc = layer.parameters.w_desc;
    dw_desc.data = dw.data();
    auto dx_desc = stretch(layer.parameters.i_desc, ix, dxs), dy_desc = stretch(layer.parameters.o_desc, ox, dys);
    dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;  // onto zeros
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, xs.data(), s.i * s.ih * ix, &dx_desc, s.i * s.ih * ix,
                                           ys.data(), s.o * s.oh * ox, &dy_desc, s.o * s.oh * ox, &dw_desc, nullptr),
              0)
        << BNNSExtLastError();
    EXPECT_TRUE(same_bits(dw, want.dw)) << "dw";
    auto expected = spread(want.dx, s.iw, ix);
    for (float& e : expected) e = e + 0.0f;  // a sum added to zero: -0 becomes 0
    EXPECT_TRUE(same_bits(dxs, expected)) << "dx";
  }
}

// Elements that do not lie side by side are gathered sample by sample, dense ones are read several samples at a time:
// the same sums.
TEST(ConvolutionDirect, SameBitsForSpacedElements) {
  const ConvolutionShape s = make_shape(91, 5, 7, 7, 5, 3, 1, 1, 5);
  Random random(6);
  const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), dy = random.normals(s.y_count());
  const auto want = run_convolution(s, x, w, {}, dy, 1);
  std::vector<float> xs(2 * x.size(), poison());
  for (size_t j = 0; j < x.size(); ++j) xs[2 * j] = x[j];
  ConvolutionLayer layer(s, w.data(), nullptr);
  BNNSNDArrayDescriptor& i = layer.parameters.i_desc;
  i.stride[0] = 2, i.stride[1] = 2 * s.iw, i.stride[2] = 2 * s.iw * s.ih;
  const auto filter = layer.make();
  std::vector<float> dw(s.w_count());
  auto dw_desc = layer.parameters.w_desc, dy_desc = layer.parameters.o_desc;
  auto dys = dy;
  dw_desc.data = dw.data(), dy_desc.data = dys.data();
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, xs.data(), 2 * s.i * s.ih * s.iw, nullptr, 0, nullptr, 0,
                                         &dy_desc, s.o * s.oh * s.ow, &dw_desc, nullptr),
            0)
      << BNNSExtLastError();
  EXPECT_TRUE(same_bits(dw, want.dw));
}

// Targets of 4 MB leave by non-temporal stores: the same bits as sample by sample, which do not.
TEST(ConvolutionDirect, SameBitsForLargeTargets) {
  for (const NamedShape& c : {NamedShape{"dw s2 backward", make_shape(11, 5, 150, 143, 5, 3, 2, 1, 5)},
                              NamedShape{"dw s2 backward, small planes", make_shape(70, 90, 13, 13, 90, 3, 2, 1, 90)},
                              NamedShape{"dw", make_shape(20, 6, 100, 97, 6, 3, 1, 1, 6)},
                              NamedShape{"dw, small planes", make_shape(60, 101, 14, 14, 101, 3, 1, 1, 101)},
                              NamedShape{"few", make_shape(7, 1, 86, 88, 20, 7, 1, 3)},
                              NamedShape{"lanes", make_shape(17, 2, 131, 133, 16, 7, 2, 3)}}) {
    SCOPED_TRACE(c.name);
    ConvolutionShape one = c.shape;
    one.n = 1;
    Random random(3);
    const auto x = random.normals(c.shape.x_count()), w = random.normals(one.w_count()),
               dy = random.normals(c.shape.y_count());
    const auto all = run_convolution(c.shape, x, w, {}, dy, 2);
    for (size_t n = 0; n < c.shape.n; ++n) {
      const auto part = [n](const std::vector<float>& v, size_t count) {
        return std::vector<float>(v.begin() + ptrdiff_t(n * count), v.begin() + ptrdiff_t((n + 1) * count));
      };
      const auto got = run_convolution(one, part(x, one.x_count()), w, {}, part(dy, one.y_count()), 1);
      EXPECT_TRUE(same_bits(part(all.y, one.y_count()), got.y)) << "y " << n;
      EXPECT_TRUE(same_bits(part(all.dx, one.x_count()), got.dx)) << "dx " << n;
    }
  }
}

// Where the lines of a large target are whole, they are stored from the registers, with the bias.
TEST(ConvolutionDirect, SameBitsForAlignedTargets) {
  const ConvolutionShape s = make_shape(13, 1, 64, 64, 20, 7, 1, 3);
  Random random(4);
  const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), b = random.normals(s.o);
  ConvolutionLayer layer(s, w.data(), b.data());
  const auto filter = layer.make();
  const size_t floats = s.y_count() + 32;
  std::vector<float> buffer(floats, poison()), shifted(floats, poison());
  const auto line = [](std::vector<float>& v) {
    return v.data() + (64 - reinterpret_cast<uintptr_t>(v.data()) % 64) % 64 / sizeof(float);
  };
  float *const aligned = line(buffer), *const other = line(shifted) + 1;
  for (float* y : {aligned, other}) {
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, x.data(), s.x_count() / s.n, y, s.y_count() / s.n), 0)
        << BNNSExtLastError();
  }
  EXPECT_TRUE(
      same_bits(std::vector<float>(aligned, aligned + s.y_count()), std::vector<float>(other, other + s.y_count())));
}

}  // namespace
}  // namespace bnns
