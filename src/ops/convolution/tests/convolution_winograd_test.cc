// Winograd's algorithm behind the public calls: its error bound, edges, layouts, threads.

#include <gtest/gtest.h>

#include "src/ops/convolution/convolution.h"
#include "src/ops/convolution/tests/convolution_testing.h"
#include "src/ops/convolution/tests/convolution_winograd_testing.h"
#include "src/ops/convolution/winograd/dw.h"
#include "src/ops/convolution/winograd/gather.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// Few and many tiles, tails of every kind: tiles, channel groups, columns, depth blocks, pieces of rows.
std::vector<NamedShape> cases() {
  return {
      {"parts of dW", make_shape(1, 32, 112, 136, 32, 3, 1, 1)},
      {"whole tiles", make_shape(1, 32, 8, 8, 32, 3, 1, 1)},
      {"one half tile", make_shape(2, 33, 7, 7, 47, 3, 1, 1)},
      {"few rows", make_shape(3, 36, 4, 21, 32, 3, 1, 1)},
      {"two depth blocks", make_shape(1, 150, 7, 6, 33, 3, 1, 1)},
      {"many tiles", make_shape(9, 33, 15, 14, 37, 3, 1, 1)},
      {"long rows", make_shape(1, 32, 5, 530, 32, 3, 1, 1)},
      {"many samples", make_shape(70, 32, 4, 4, 33, 3, 1, 1)},
      {"transposed", make_shape(2, 34, 9, 10, 33, 3, 1, 1, 1, 1, true)},
      {"5x5", make_shape(4, 16, 12, 12, 16, 5, 1, 2)},
      {"5x5, odd", make_shape(3, 21, 9, 11, 27, 5, 1, 2)},
      {"5x5, many tiles", make_shape(9, 22, 13, 14, 26, 5, 1, 2)},
      {"5x5 transposed", make_shape(3, 20, 9, 11, 31, 5, 1, 2, 1, 1, true)},
      {"4x4", make_shape(6, 21, 11, 13, 22, 4, 1, 1)},
      {"4x4, many tiles", make_shape(9, 16, 20, 13, 16, 4, 1, 1)},
      {"4x4 transposed", make_shape(5, 20, 11, 12, 31, 4, 1, 1, 1, 1, true)},
  };
}

// Only the down map is Winograd's.
std::vector<NamedShape> down_cases() {
  return {
      {"no padding", make_shape(1, 40, 13, 15, 35, 3, 1, 0)},
      {"5x5, no padding", make_shape(5, 20, 12, 12, 50, 5, 1, 0)},
      {"7x7 s2", make_shape(2, 3, 40, 46, 64, 7, 2, 3)},
      {"7x7 s2, odd", make_shape(4, 5, 25, 32, 27, 7, 2, 2)},
      {"7x7 s2, few tiles, depth blocks", make_shape(2, 37, 17, 18, 16, 7, 2, 3)},
      {"7x7 s2, surplus pixels", make_shape(3, 4, 38, 40, 32, 7, 2, 0)},
      {"8x8 s2", make_shape(4, 4, 30, 29, 32, 8, 2, 3)},
      {"10x10 s2", make_shape(3, 9, 25, 26, 16, 10, 2, 4)},
      {"9x9 s2", make_shape(3, 9, 24, 23, 16, 9, 2, 4)},
      {"7x7 s2 transposed", make_shape(2, 32, 14, 15, 7, 7, 2, 3, 1, 1, true)},
      {"non-temporal stores", make_shape(1, 3, 223, 221, 96, 7, 2, 3)},
  };
}

// Only the up map is: pixels of the down map have one of nine taps in the corners.
std::vector<NamedShape> up_cases() {
  return {{"padding 2", make_shape(2, 32, 9, 12, 34, 3, 1, 2)}};
}

// The up map is computed from the side of the small image.
std::vector<NamedShape> scatter_cases() {
  return {
      {"scatter 3x3", make_shape(8, 33, 9, 12, 34, 3, 1, 0)},
      {"scatter 5x5", make_shape(8, 20, 12, 12, 50, 5, 1, 0)},
      {"scatter 5x5, odd", make_shape(9, 13, 9, 12, 33, 5, 1, 0)},
      {"scatter 4x4", make_shape(8, 14, 9, 9, 34, 4, 1, 0)},
      {"scatter 7x7 s2", make_shape(8, 3, 20, 26, 64, 7, 2, 3)},
      {"scatter 7x7 s2, odd", make_shape(8, 5, 21, 17, 33, 7, 2, 2)},
      {"scatter 8x8 s2, three groups", make_shape(8, 11, 16, 18, 32, 8, 2, 3)},
      {"scatter 7x7 s2, long rows", make_shape(8, 3, 8, 362, 32, 7, 2, 3)},
      {"scatter, several rows of tiles", make_shape(8, 3, 50, 70, 32, 7, 2, 3)},
      {"scatter 5x5 transposed", make_shape(8, 34, 8, 9, 13, 5, 1, 0, 1, 1, true)},
      {"scatter 7x7 s2 transposed", make_shape(8, 32, 10, 11, 7, 7, 2, 3, 1, 1, true)},
  };
}

std::vector<NamedShape> all_cases() {
  auto all = cases();
  for (const NamedShape& c : down_cases()) all.push_back(c);
  for (const NamedShape& c : up_cases()) all.push_back(c);
  for (const NamedShape& c : scatter_cases()) all.push_back(c);
  return all;
}

bool is_down(const ConvolutionMap& m, size_t batch) {
  return accepts_winograd_gather(make_patch_map(m, false, batch));
}
bool is_up(const ConvolutionMap& m, size_t batch) {
  return m.y.stride == 1 && accepts_winograd_gather(make_patch_map(m, true, batch));
}

std::vector<float> rough(Random& random, size_t n) {
  auto v = random.normals(n);
  for (size_t i = 0; i < n; ++i) v[i] *= i % 5 == 0 ? 1000.0f : (i % 7 == 0 ? -0.001f : 1.0f);
  return v;
}

TEST(Winograd, CasesUseIt) {
  for (const NamedShape& c : cases()) {
    EXPECT_TRUE(is_down(map_of(c.shape), c.shape.n)) << c.name;
    EXPECT_TRUE(is_up(map_of(c.shape), c.shape.n)) << c.name;
  }
  for (const NamedShape& c : down_cases()) EXPECT_TRUE(is_down(map_of(c.shape), c.shape.n)) << c.name;
  for (const NamedShape& c : up_cases()) {
    EXPECT_TRUE(is_up(map_of(c.shape), c.shape.n) && !is_down(map_of(c.shape), c.shape.n)) << c.name;
  }
  for (const NamedShape& c : scatter_cases()) {
    EXPECT_TRUE(takes_transposed(map_of(c.shape), c.shape.n)) << c.name;
  }
}

// |error| <= eps (channels + 24) S, and on data without cancellation the bound of the other algorithms, which those
// passes have that are not Winograd's.
TEST(Winograd, WithinTheBound) {
  const double eps = std::numeric_limits<float>::epsilon();
  for (const bool hard : {false, true}) {
    auto all = all_cases();
    all.push_back({"transposed, non-temporal stores", make_shape(8, 3, 210, 212, 32, 7, 2, 3)});
    for (const NamedShape& c : all) {
      const ConvolutionShape& s = c.shape;
      const bool large = s.x_count() > 100000;  // the reference takes seconds
      if (hard && large) continue;
      Random random(s.x_count());
      const auto make = [&](size_t n) { return hard ? rough(random, n) : random.normals(n); };
      const auto x = make(s.x_count()), w = make(s.w_count()), b = make(s.o), dy = make(s.y_count());
      const auto want_y = ref::convolution_forward(s, widen(x), widen(w), widen(b));
      const auto want = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
      const ConvolutionMap map = map_of(s);
      const auto ab = absolute(b);
      const Spreads spreads(s, absolute(x), absolute(w), absolute(dy), is_down(map, s.n), is_up(map, s.n),
                            takes_transposed(map, s.n), !large && accepts_winograd_dw(make_weight_map(map, s.n)));
      std::vector<double> size_y;
      ref::ConvolutionGradients size;
      if (!large) {
        size_y = ref::convolution_forward(s, absolute(x), absolute(w), ab);
        size = ref::convolution_backward(s, absolute(x), absolute(w), absolute(dy));
      }
      for_each_isa([&] {
        SCOPED_TRACE(c.name);
        const auto got = run_convolution(s, x, w, b, dy);
        const auto &spread_y = spreads.y, &spread_dx = spreads.dx, &spread_dw = spreads.dw;
        const size_t phases = spreads.phases, tiles = spreads.tiles;
        // The channels that are summed over: only those of the large image have phases.
        const size_t n_y = s.i * (s.transposed ? 1 : phases), n_dx = s.o * (s.transposed ? phases : 1);
        const auto bound_y = [&](size_t j) {
          return eps * double(n_y + 24) * (spread_y[j] + ab[j / (s.oh * s.ow) % s.o]);
        };
        const auto bound_dx = [&](size_t j) { return eps * double(n_dx + 24) * spread_dx[j]; };
        const auto bound_dw = [&](size_t j) { return eps * double(tiles + 24) * spread_dw[j]; };
        if (!spread_y.empty()) {
          EXPECT_TRUE(within(got.y, want_y, s.y_count(), bound_y)) << "y";
        }
        if (!spread_dx.empty()) {
          EXPECT_TRUE(within(got.dx, want.dx, s.x_count(), bound_dx)) << "dx";
        }
        if (!spread_dw.empty()) {
          // Not without FMA.
          if (accepts_winograd_dw(make_weight_map(map, s.n))) {
            EXPECT_TRUE(within(got.dw, want.dw, s.w_count(), bound_dw)) << "dw";
          }
        }
        if (large) return;
        const size_t taps = s.kh * s.kw;
        const auto terms_y = [&](size_t j) { return 2 * eps * double(s.i * taps + 1) * size_y[j]; };
        const auto terms_dx = [&](size_t j) { return 2 * eps * double(s.o * taps + 1) * size.dx[j]; };
        const auto terms_dw = [&](size_t j) { return 2 * eps * double(s.n * map.y.small * map.x.small) * size.dw[j]; };
        if (!hard || spread_dw.empty()) {
          EXPECT_TRUE(within(got.dw, want.dw, s.w_count(), terms_dw)) << "dw, terms";
        }
        if (!hard || spread_y.empty()) {
          EXPECT_TRUE(within(got.y, want_y, s.y_count(), terms_y)) << "y, terms";
        }
        if (!hard || spread_dx.empty()) {
          EXPECT_TRUE(within(got.dx, want.dx, s.x_count(), terms_dx)) << "dx, terms";
        }
      });
    }
  }
}

TEST(Winograd, SameBitsForAnyNumberOfThreads) {
  for_each_isa([&] {
    for (const NamedShape& c : all_cases()) {
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

// A NaN reaches the pixels whose taps read it, others of the tiles that do, and nothing else.
TEST(Winograd, NanStaysInItsTiles) {
  for (const ConvolutionShape& s : {make_shape(8, 16, 14, 13, 32, 5, 1, 2), make_shape(8, 16, 14, 13, 32, 5, 1, 0),
                                    make_shape(8, 3, 40, 38, 64, 7, 2, 3)}) {
    const ConvolutionMap map = map_of(s);
    ASSERT_TRUE(is_down(map, s.n) && (is_up(map, s.n) || takes_transposed(map, s.n))) << text(s);
    const size_t tile = winograd_tile(winograd_taps(down_axis(map.y), down_axis(map.x)));
    const size_t reach = s.sy * (tile + 4);  // of a tile, in pixels of the large image, with both neighbours' share
    Random random(3);
    auto x = random.normals(s.x_count()), dy = random.normals(s.y_count());
    const auto w = random.normals(s.w_count()), b = random.normals(s.o);
    for_each_isa([&] {
      SCOPED_TRACE(text(s));
      const auto clean = run_convolution(s, x, w, b, dy);
      auto bad_x = x, bad_dy = dy;
      const size_t row = 5, column = 6, n = 3;  // of both images
      bad_x[(n * s.i * s.ih + row) * s.iw + column] = bad_dy[(n * s.o * s.oh + row) * s.ow + column] = std::nanf("");
      const auto got = run_convolution(s, bad_x, w, b, bad_dy);
      const auto check = [&](const std::vector<float>& result, const std::vector<float>& want, size_t channels,
                             size_t height, size_t width, bool down) {
        for (size_t j = 0; j < result.size(); ++j) {
          const size_t r = j / width % height, c = j % width;
          const auto tap = [&](size_t large, size_t small, size_t pad) {  // which tap hangs them together
            return static_cast<ptrdiff_t>(large + pad) - static_cast<ptrdiff_t>(s.sy * small);
          };
          const ptrdiff_t ty = down ? tap(row, r, s.top) : tap(r, row, s.top);
          const ptrdiff_t tx = down ? tap(column, c, s.left) : tap(c, column, s.left);
          const auto kernel = static_cast<ptrdiff_t>(s.kh), far = static_cast<ptrdiff_t>(reach);
          const bool same_sample = j / (channels * height * width) == n;
          const bool reads = same_sample && ty >= 0 && ty < kernel && tx >= 0 && tx < kernel;
          const bool near = same_sample && ty > -far && ty < kernel + far && tx > -far && tx < kernel + far;
          if (reads) {
            ASSERT_TRUE(std::isnan(result[j])) << j;
          } else if (!near) {
            ASSERT_EQ(result[j], want[j]) << j;
          }
        }
      };
      check(got.y, clean.y, s.o, s.oh, s.ow, true);
      check(got.dx, clean.dx, s.i, s.ih, s.iw, false);
    });
  }
}

// A second stage gets the bits that Y gets, every element once, in the parts that were announced.
TEST(Winograd, SinksGetWhatTheTargetGets) {
  struct Seen {
    const ConvolutionShape* s;
    SinkParts parts;
    std::vector<float> y;
    std::vector<int> count;
  };
  for (const NamedShape& c : all_cases()) {
    const ConvolutionShape& s = c.shape;
    SCOPED_TRACE(c.name);
    if (s.transposed && takes_transposed(map_of(s), s.n)) continue;  // sinks take another algorithm
    if (s.transposed && s.sy == 2) continue;
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
