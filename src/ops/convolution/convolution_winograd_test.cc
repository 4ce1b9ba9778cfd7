// Winograd's algorithm behind the public calls: its error bound, edges, layouts, threads.

#include "src/ops/convolution/convolution_winograd.h"

#include <gtest/gtest.h>

#include "src/ops/convolution/convolution.h"
#include "src/ops/convolution/convolution_test_layer.h"
#include "src/ops/convolution/convolution_winograd_test_bound.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// dX of a stride-1 layer is a down map of dY with the channels of W exchanged and its taps flipped.
ConvolutionShape backward_shape(const ConvolutionShape& s) {
  ConvolutionShape t = s;
  t.i = s.o, t.ih = s.oh, t.iw = s.ow, t.o = s.i, t.oh = s.ih, t.ow = s.iw, t.top = 2 - s.top, t.left = 2 - s.left;
  return t;
}
std::vector<double> flipped(const ConvolutionShape& s, const std::vector<double>& w) {
  std::vector<double> result(w.size());
  for (size_t o = 0; o < s.o; ++o) {
    for (size_t i = 0; i < s.i; ++i) {
      for (size_t t = 0; t < 9; ++t) result[(i * s.o + o) * 9 + t] = w[(o * s.i + i) * 9 + 8 - t];
    }
  }
  return result;
}

// Few and many tiles, tails of every kind: tiles, channel groups, columns, depth blocks, pieces of rows.
std::vector<NamedShape> cases() {
  return {
      {"parts of dW", make_shape(1, 32, 112, 136, 32, 3, 1, 1)},
      {"whole tiles", make_shape(1, 32, 8, 8, 32, 3, 1, 1)},
      {"one half tile", make_shape(2, 33, 7, 7, 47, 3, 1, 1)},
      {"no padding", make_shape(1, 40, 13, 15, 35, 3, 1, 0)},
      {"padding 2", make_shape(2, 32, 9, 12, 34, 3, 1, 2)},
      {"few rows", make_shape(3, 36, 4, 21, 32, 3, 1, 1)},
      {"two depth blocks", make_shape(1, 150, 7, 6, 33, 3, 1, 1)},
      {"many tiles", make_shape(9, 33, 15, 14, 37, 3, 1, 1)},
      {"long rows", make_shape(1, 32, 5, 530, 32, 3, 1, 1)},
      {"many samples", make_shape(70, 32, 4, 4, 33, 3, 1, 1)},
      {"transposed", make_shape(2, 34, 9, 10, 33, 3, 1, 1, 1, 1, true)},
  };
}

std::vector<float> rough(Random& random, size_t n) {
  auto v = random.normals(n);
  for (size_t i = 0; i < n; ++i) v[i] *= i % 5 == 0 ? 1000.0f : (i % 7 == 0 ? -0.001f : 1.0f);
  return v;
}

TEST(Winograd, CasesUseIt) {
  for (const NamedShape& c : cases()) {
    const ConvolutionShape& s = c.shape;
    const ConvolutionAxis y{s.transposed ? s.ih : s.oh, s.transposed ? s.oh : s.ih, 3, 1, 1, s.top};
    const ConvolutionAxis x{s.transposed ? s.iw : s.ow, s.transposed ? s.ow : s.iw, 3, 1, 1, s.left};
    EXPECT_TRUE(is_winograd(down_axis(y), down_axis(x), 1, s.o, s.i, s.n)) << c.name;
    EXPECT_TRUE(is_winograd(up_axis(y, 0), up_axis(x, 0), 1, s.i, s.o, s.n)) << c.name;
  }
}

// |error| <= eps (channels + 24) S, and on data without cancellation the bound of the other ways.
TEST(Winograd, WithinTheBound) {
  const double eps = std::numeric_limits<float>::epsilon();
  for (const bool hard : {false, true}) {
    for (const NamedShape& c : cases()) {
      const ConvolutionShape& s = c.shape;
      const bool large = s.x_count() > 100000;  // the reference takes seconds
      if (hard && large) continue;
      Random random(s.x_count());
      const auto make = [&](size_t n) { return hard ? rough(random, n) : random.normals(n); };
      const auto x = make(s.x_count()), w = make(s.w_count()), b = make(s.o), dy = make(s.y_count());
      const auto want_y = ref::convolution_forward(s, widen(x), widen(w), widen(b));
      const auto want = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
      // The transposed layer runs the same two maps the other way round.
      ConvolutionShape down = s;
      if (s.transposed)
        down.transposed = false, std::swap(down.i, down.o), std::swap(down.ih, down.oh), std::swap(down.iw, down.ow);
      const auto aw = absolute(w), ab = absolute(b);
      std::vector<double> down_w = aw;
      if (s.transposed) {
        for (size_t o = 0; o < s.o; ++o) {
          for (size_t i = 0; i < s.i; ++i) std::copy_n(&aw[(o * s.i + i) * 9], 9, &down_w[(i * s.o + o) * 9]);
        }
      }
      const auto spread_down = spread(down, absolute(s.transposed ? dy : x), down_w);
      const auto spread_up = spread(backward_shape(down), absolute(s.transposed ? x : dy), flipped(down, down_w));
      const auto &spread_y = s.transposed ? spread_up : spread_down,
                 &spread_dx = s.transposed ? spread_down : spread_up;
      // dW of the transposed layer is that of the down map, channels exchanged.
      const double tiles = double(s.n * div_up(down.oh, 4) * div_up(down.ow, 4));
      const auto spread_dw = spread_weights(down, absolute(s.transposed ? dy : x), absolute(s.transposed ? x : dy));
      const auto at_dw = [&](size_t j) {
        const size_t o = j / 9 / s.i, i = j / 9 % s.i;
        return spread_dw[s.transposed ? (i * s.o + o) * 9 + j % 9 : j];
      };
      std::vector<double> size_y;
      ref::ConvolutionGradients size;
      if (!hard && !large) {
        size_y = ref::convolution_forward(s, absolute(x), aw, ab);
        size = ref::convolution_backward(s, absolute(x), aw, absolute(dy));
      }
      for_each_isa([&] {
        SCOPED_TRACE(c.name);
        const auto got = run_convolution(s, x, w, b, dy);
        const auto bound_y = [&](size_t j) {
          return eps * double(s.i + 24) * (spread_y[j] + ab[j / (s.oh * s.ow) % s.o]);
        };
        const auto bound_dx = [&](size_t j) { return eps * double(s.o + 24) * spread_dx[j]; };
        EXPECT_TRUE(within(got.y, want_y, s.y_count(), bound_y)) << "y";
        const auto bound_dw = [&](size_t j) { return eps * (tiles + 24) * at_dw(j); };
        EXPECT_TRUE(within(got.dx, want.dx, s.x_count(), bound_dx)) << "dx";
        EXPECT_TRUE(within(got.dw, want.dw, s.w_count(), bound_dw)) << "dw";
        if (hard || large) return;
        const auto terms_y = [&](size_t j) { return 2 * eps * double(s.i * 9 + 1) * size_y[j]; };
        const auto terms_dx = [&](size_t j) { return 2 * eps * double(s.o * 9 + 1) * size.dx[j]; };
        const auto terms_dw = [&](size_t j) { return 2 * eps * double(s.n * down.oh * down.ow) * size.dw[j]; };
        EXPECT_TRUE(within(got.dw, want.dw, s.w_count(), terms_dw)) << "dw, terms";
        EXPECT_TRUE(within(got.y, want_y, s.y_count(), terms_y)) << "y, terms";
        EXPECT_TRUE(within(got.dx, want.dx, s.x_count(), terms_dx)) << "dx, terms";
      });
    }
  }
}

TEST(Winograd, SameBitsForAnyNumberOfThreads) {
  for_each_isa([&] {
    for (const NamedShape& c : cases()) {
      const ConvolutionShape& s = c.shape;
      SCOPED_TRACE(c.name);
      Random random(5);
      const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), b = random.normals(s.o),
                 dy = random.normals(s.y_count());
      const auto one = run_convolution(s, x, w, b, dy, 1, BNNSActivationFunctionSigmoid);
      for (const size_t threads : {2, 3, 7}) {
        const auto many = run_convolution(s, x, w, b, dy, threads, BNNSActivationFunctionSigmoid);
        EXPECT_TRUE(same_bits(one.y, many.y)) << "y " << threads;
        EXPECT_TRUE(same_bits(one.dx, many.dx)) << "dx " << threads;
        EXPECT_TRUE(same_bits(one.dw, many.dw)) << "dw " << threads;
      }
    }
  });
}

// A second stage gets the bits that Y gets, every element once, in the parts that were announced.
TEST(Winograd, SinksGetWhatTheTargetGets) {
  struct Seen {
    const ConvolutionShape* s;
    SinkParts parts;
    std::vector<float> y;
    std::vector<int> count;
  };
  for (const NamedShape& c : cases()) {
    const ConvolutionShape& s = c.shape;
    SCOPED_TRACE(c.name);
    Random random(9);
    const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), b = random.normals(s.o);
    ConvolutionLayer layer(s, w.data(), b.data(), BNNSActivationFunctionTanh);
    ConvolutionFilter filter({}, make_convolution_problem(&layer.parameters, s.transposed));
    std::vector<float> want(s.y_count()), y(s.y_count());
    filter.forward(s.n, x.data(), 0, want.data(), 0);
    const SinkParts parts = filter.sink_parts(s.n);
    if (parts.pixels == 0) continue;  // pieces of rows
    for (const bool instead : {false, true}) {
      Seen seen{&s, parts, std::vector<float>(s.y_count()), std::vector<int>(s.y_count())};
      const BlockSink sink{[](void* context, const FinishedBlock& f) {
                             Seen& to = *static_cast<Seen*>(context);
                             EXPECT_EQ(f.first_pixel % to.parts.pixels, 0u);
                             EXPECT_EQ(f.n0 % to.parts.samples, 0u);
                             const size_t plane = to.s->oh * to.s->ow;
                             for (size_t n = f.n0; n < f.n1; ++n) {
                               for (size_t j = 0; j < f.channels * f.pixels; ++j) {
                                 const size_t channel = j / f.pixels, pixel = j % f.pixels;
                                 const size_t at =
                                     (n * to.s->o + f.first_channel + channel) * plane + f.first_pixel + pixel;
                                 to.y[at] = f.values[(n - f.n0) * f.sample_stride + channel * f.channel_stride + pixel];
                                 ++to.count[at];
                               }
                             }
                           },
                           &seen, instead};
      filter.forward(s.n, x.data(), 0, instead ? nullptr : y.data(), 0, &sink);
      EXPECT_TRUE(same_bits(seen.y, want));
      EXPECT_EQ(seen.count, std::vector<int>(s.y_count(), 1));
      if (!instead) {
        EXPECT_TRUE(same_bits(y, want));
      }
    }
  }
}

}  // namespace
}  // namespace bnns
