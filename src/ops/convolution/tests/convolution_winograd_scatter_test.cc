// Winograd's algorithm transposed, where its work is cut: into bands of rows of tiles, pieces of rows,
// samples and parts of the target channels.

#include <gtest/gtest.h>

#include "src/ops/convolution/tests/convolution_testing.h"
#include "src/ops/convolution/tests/convolution_winograd_testing.h"
#include "src/ops/convolution/winograd/transposed.h"

namespace bnns {
namespace {

using namespace bnns::testing;

std::vector<NamedShape> cases() {
  std::vector<NamedShape> all = {
      {"bands", make_shape(1, 32, 78, 28, 32, 3, 1, 0)},
      {"bands, odd", make_shape(1, 35, 83, 29, 33, 3, 1, 0)},
      {"bands, two samples", make_shape(2, 32, 45, 27, 32, 3, 1, 0)},
      {"bands, parts of the channels", make_shape(1, 97, 35, 59, 32, 3, 1, 0)},
      {"short bands", make_shape(1, 32, 22, 110, 32, 3, 1, 0)},
      {"pieces of rows", make_shape(1, 32, 14, 535, 32, 3, 1, 0)},
      {"pieces of rows, one tile high", make_shape(2, 40, 6, 474, 70, 3, 1, 0)},
      {"few tiles, depth blocks", make_shape(1, 200, 10, 11, 150, 3, 1, 0)},
      {"few tiles, three samples", make_shape(3, 65, 14, 15, 48, 3, 1, 0)},
      {"few tiles, one block of channels", make_shape(3, 32, 9, 8, 32, 3, 1, 0)},
      {"one tile", make_shape(1, 48, 6, 6, 32, 3, 1, 0)},
      {"eight samples", make_shape(8, 33, 12, 11, 34, 3, 1, 0)},
      {"4x4, bands", make_shape(1, 40, 45, 41, 32, 4, 1, 0)},
      {"4x4, pieces of rows", make_shape(1, 26, 9, 400, 33, 4, 1, 0)},
      {"4x4, few tiles", make_shape(2, 100, 12, 15, 40, 4, 1, 0)},
      {"4x4, few channels", make_shape(8, 12, 13, 12, 32, 4, 1, 0)},
      {"5x5, bands", make_shape(1, 33, 43, 38, 32, 5, 1, 0)},
      {"5x5, short bands", make_shape(1, 32, 16, 66, 32, 5, 1, 0)},
      {"5x5, pieces of rows", make_shape(1, 32, 10, 260, 34, 5, 1, 0)},
      {"5x5, few tiles", make_shape(3, 68, 12, 14, 135, 5, 1, 0)},
      {"7x7 s2, bands", make_shape(1, 8, 118, 76, 32, 7, 2, 3)},
      {"7x7 s2, little padding", make_shape(2, 7, 77, 61, 33, 7, 2, 2)},
      {"8x8 s2, no padding", make_shape(2, 7, 78, 62, 33, 8, 2, 0)},
      {"7x7 s2, pieces of rows", make_shape(1, 7, 21, 601, 32, 7, 2, 3)},
      {"9x9 s2, bands", make_shape(1, 9, 75, 66, 32, 9, 2, 4)},
      {"transposed, bands", make_shape(1, 32, 67, 25, 32, 3, 1, 0, 1, 1, true)},
      {"transposed 5x5, pieces of rows", make_shape(1, 32, 6, 230, 30, 5, 1, 0, 1, 1, true)},
      {"transposed 7x7 s2, bands", make_shape(1, 32, 56, 40, 8, 7, 2, 3, 1, 1, true)},
  };
  // Pieces of rows that end before the image begins, or lie across its first pixel.
  ConvolutionShape padded = make_shape(1, 8, 15, 55, 130, 7, 2, 3);
  padded.left = 150;
  all.push_back({"7x7 s2, pieces in the padding", fitted(padded)});
  // Ends of tiles.
  for (size_t k = 0; k < 4; ++k) all.push_back({"3x3, ends", make_shape(1 + k % 2, 33, 8 + k, 14 - k, 32, 3, 1, 0)});
  for (size_t k = 0; k < 3; ++k) all.push_back({"4x4, ends", make_shape(1 + k, 28, 12 + k, 14 - k, 32, 4, 1, 0)});
  for (size_t k = 0; k < 2; ++k) all.push_back({"5x5, ends", make_shape(3 - k, 34, 10 + k, 12 - k, 32, 5, 1, 0)});
  return all;
}

struct Data {
  std::vector<float> small, w;
  explicit Data(const ConvolutionShape& s) {
    Random random(s.x_count());
    small = random.normals(s.transposed ? s.x_count() : s.y_count()), w = random.normals(s.w_count());
  }
};

// How the large image lies: rows and planes with gaps, added to what is there.
struct Form {
  size_t threads = 1, row_gap = 0, plane_gap = 0;
  bool accumulate = false;
  float before = poison();  // in the whole large image
};

// dX, or Y of a transposed layer, with its gaps.
std::vector<float> run(const ConvolutionShape& s, const Data& d, const Form& form = {}) {
  const size_t width = s.transposed ? s.ow : s.iw, height = s.transposed ? s.oh : s.ih,
               channels = s.transposed ? s.o : s.i;
  const size_t row = width + form.row_gap, plane = height * row + form.plane_gap;
  Guarded<float> small(d.small), w(d.w), large(s.n * channels * plane - form.plane_gap - form.row_gap);
  std::fill_n(large.data(), large.size(), form.before);
  const auto strided = [&](BNNSNDArrayDescriptor image) {
    image.stride[0] = 1, image.stride[1] = row, image.stride[2] = plane;
    return image;
  };
  ConvolutionLayer layer(s, w.data(), nullptr);
  layer.options.n_threads = form.threads;
  if (s.transposed) {
    layer.parameters.o_desc = strided(layer.parameters.o_desc);
    EXPECT_EQ(BNNSFilterApplyBatch(layer.make().get(), s.n, small.data(), 0, large.data(), channels * plane), 0)
        << BNNSExtLastError();
  } else {
    auto dx = strided(image(s.iw, s.ih, s.i, large.data())), dy = image(s.ow, s.oh, s.o, small.data());
    if (form.accumulate) dx.flags = BNNSNDArrayFlagBackpropAccumulate;
    EXPECT_EQ(BNNSFilterApplyBackwardBatch(layer.make().get(), s.n, nullptr, 0, &dx, channels * plane, nullptr, 0, &dy,
                                           0, nullptr, nullptr),
              0)
        << BNNSExtLastError();
  }
  return {large.data(), large.data() + large.size()};
}

TEST(WinogradScatter, CasesUseIt) {
  for (const NamedShape& c : cases()) {
    EXPECT_TRUE(takes_transposed(map_of(c.shape), c.shape.n)) << c.name << " " << text(c.shape);
  }
  // Few target channels want samples; every target pixel must be reached.
  EXPECT_FALSE(takes_transposed(map_of(make_shape(7, 24, 30, 30, 64, 5, 1, 0)), 7));
  EXPECT_FALSE(takes_transposed(map_of(make_shape(8, 31, 30, 30, 64, 3, 1, 0)), 8));
  ConvolutionShape surplus = make_shape(8, 32, 30, 30, 64, 3, 1, 0);
  surplus.ow -= 1;
  EXPECT_FALSE(takes_transposed(map_of(surplus), 8));
}

// |error| <= eps (channels + 24) S, and the bound of the other algorithms, since the data are ordinary.
TEST(WinogradScatter, WithinTheBound) {
  const double eps = std::numeric_limits<float>::epsilon();
  for (const NamedShape& c : cases()) {
    const ConvolutionShape& s = c.shape;
    SCOPED_TRACE(c.name + std::string(": ") + text(s));
    const Data d(s);
    const auto small = widen(d.small), w = widen(d.w);
    const std::vector<double> none(std::max(s.x_count(), s.y_count())), no_bias(s.o);
    const auto up = [&](const std::vector<double>& from, const std::vector<double>& weights) {
      return s.transposed ? ref::convolution_forward(s, from, weights, no_bias)
                          : ref::convolution_backward(s, none, weights, from).dx;
    };
    const auto want = up(small, w), terms = up(absolute(d.small), absolute(d.w));
    const Spreads spreads(s, s.transposed ? absolute(d.small) : none, absolute(d.w),
                          s.transposed ? none : absolute(d.small), false, false, true, false);
    const auto& spread = s.transposed ? spreads.y : spreads.dx;
    const size_t channels = s.transposed ? s.i : s.o;
    for_each_isa([&] {
      const auto got = run(s, d, {.threads = 2});
      EXPECT_TRUE(within(got, want, want.size(), [&](size_t j) {
        return eps * std::min(double(channels + 24) * spread[j], 2 * double(channels * s.kh * s.kw) * terms[j]);
      }));
    });
  }
}

TEST(WinogradScatter, SameBitsForAnyNumberOfThreads) {
  for_each_isa([&] {
    for (const NamedShape& c : cases()) {
      SCOPED_TRACE(c.name + std::string(": ") + text(c.shape));
      const Data d(c.shape);
      const auto one = run(c.shape, d);
      for (const size_t threads : {2, 3, 5, 16}) {
        EXPECT_TRUE(same_bits(one, run(c.shape, d, {.threads = threads}))) << threads;
      }
    }
  });
}

// Strides and accumulation change no bits; gaps stay as they are.
TEST(WinogradScatter, LayoutsAndSums) {
  for (const NamedShape& c : cases()) {
    const ConvolutionShape& s = c.shape;
    SCOPED_TRACE(c.name + std::string(": ") + text(s));
    const Data d(s);
    const size_t width = s.transposed ? s.ow : s.iw, height = s.transposed ? s.oh : s.ih;
    const auto plain = run(s, d);
    for (const bool accumulate : {false, true}) {
      if (accumulate && s.transposed) continue;
      const auto got = run(s, d, {3, 3, 5, accumulate, 2.0f});
      for (size_t j = 0; j < got.size(); ++j) {
        const size_t row = width + 3, plane = height * row + 5, y = j % plane / row, x = j % plane % row;
        const bool gap = y >= height || x >= width;
        const float want = gap ? 0 : plain[(j / plane * height + y) * width + x];
        ASSERT_EQ(got[j], gap ? 2.0f : accumulate ? 2.0f + want : want) << j;
      }
    }
  }
}

// BC16 for each pixel on its own, since those of the border have the terms of few taps: over channels and samples the
// errors are at most four times those of plain f32 sums.
TEST(WinogradScatter, NoPixelIsLessAccurate) {
  const auto layer = [](size_t k, size_t height, size_t width, size_t near, size_t far) {
    ConvolutionShape s = make_shape(9, 48, 1, 1, 32, k, k < 6 ? 1 : 2, 9);
    s.oh = height, s.ow = width, s.top = s.left = near;
    s.ih = s.sy * (height - 1) + k - near - far, s.iw = s.sx * (width - 1) + k - near - far;
    return s;
  };
  for (const ConvolutionShape& s :
       {layer(3, 9, 10, 0, 0), layer(3, 11, 12, 0, 0), layer(4, 7, 8, 0, 0), layer(4, 9, 9, 0, 0), layer(5, 7, 8, 0, 0),
        layer(7, 8, 7, 0, 0), layer(7, 9, 8, 1, 1), layer(7, 8, 9, 0, 2), layer(7, 9, 7, 3, 3), layer(9, 6, 8, 0, 0),
        layer(9, 8, 6, 0, 2), layer(8, 7, 8, 0, 0), layer(5, 2, 2, 0, 0), layer(5, 10, 2, 0, 0),
        layer(10, 2, 2, 0, 0)}) {
    SCOPED_TRACE(text(s));
    const size_t plane = s.ih * s.iw;
    const Data d(s);
    const std::vector<double> none(s.x_count()), small = widen(d.small), w = widen(d.w);
    const auto want = ref::convolution_backward(s, none, w, small).dx;
    const auto terms = ref::convolution_backward(s, none, absolute(d.w), absolute(d.small)).dx;
    std::vector<float> plain(s.x_count());
    ref::for_each_product(s, [&](size_t x, size_t j, size_t y) { plain[x] += d.w[j] * d.small[y]; });
    const auto squares = [&](const std::vector<float>& got) {
      std::vector<double> sums(plane);
      for (size_t j = 0; j < got.size(); ++j) sums[j % plane] += std::pow((double(got[j]) - want[j]) / terms[j], 2);
      return sums;
    };
    const auto direct = squares(plain);
    for_each_isa([&] {
      const auto ours = squares(run(s, d, {.threads = 2}));
      for (size_t j = 0; j < plane; ++j) EXPECT_LE(std::sqrt(ours[j] / direct[j]), 4) << j / s.iw << ", " << j % s.iw;
    });
  }
}

// What else is in the batch does not matter.
TEST(WinogradScatter, SamplesAreAlone) {
  for (const NamedShape& c : cases()) {
    const ConvolutionShape& s = c.shape;
    if (s.n == 1) continue;
    SCOPED_TRACE(c.name + std::string(": ") + text(s));
    Data d(s);
    const size_t small = d.small.size() / s.n;
    const auto before = run(s, d, {.threads = 2});
    for (size_t j = 0; j < d.small.size(); ++j) {
      if (j / small != 1) d.small[j] = poison();
    }
    const auto after = run(s, d, {.threads = 3});
    const size_t large = before.size() / s.n;
    const auto sample = [&](const std::vector<float>& v) {
      return std::vector<float>(v.begin() + static_cast<ptrdiff_t>(large),
                                v.begin() + static_cast<ptrdiff_t>(2 * large));
    };
    EXPECT_TRUE(same_bits(sample(before), sample(after)));
  }
}

}  // namespace
}  // namespace bnns
