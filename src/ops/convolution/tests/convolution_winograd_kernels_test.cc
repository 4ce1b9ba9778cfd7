// The transforms of Winograd's algorithm on their own, for every size of kernel: 16 channels of a row of tiles against
// plain sums in double, on guarded memory.

#include <gtest/gtest.h>

#include "src/gemm/kernels.h"
#include "src/ops/convolution/tests/convolution_winograd_testing.h"
#include "src/ops/convolution/winograd/kernels.h"
#include "tests/support/testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

constexpr size_t kPoints = kWinogradPoints, kGroup = kWinogradGroup;
constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

// The sum of |A'| (|G||g||G'| * |B'||d||B|) |A| over entries at most 1: what bounds both results by eps 24 S.
double most_of(size_t taps) {
  const AbsoluteTransforms f(taps);
  double y = 0;
  for (size_t k = 0; k < 6; ++k) {
    double b = 0, g = 0, a = 0;
    for (size_t j = 0; j < 6; ++j) b += f.b[k][j];
    for (size_t j = 0; j < taps; ++j) g += f.g[k][j];
    for (size_t i = 0; i < f.tile; ++i) a = std::max(a, f.a[i][k]);
    y += b * g * a;
  }
  return y * y;
}

std::vector<float> uniform(Random& random, size_t n) {
  std::vector<float> v(n);
  for (float& e : v) e = static_cast<float>(random.uniform(-1, 1));
  return v;
}

// Row-of-tiles source: six rows of pixels, 16 channels each.
struct Source {
  size_t taps, tile, tiles, pixels;
  std::vector<float> x;
  Source(size_t taps_, size_t tiles_, Random& random)
      : taps(taps_), tile(winograd_tile(taps)), tiles(tiles_), pixels(tile * tiles + taps - 1) {
    x = uniform(random, 6 * pixels * kGroup);
  }
  double at(size_t row, size_t column, size_t channel) const {
    return double{x[(row * pixels + column) * kGroup + channel]};
  }
  std::vector<float> points(Guarded<float>& v) const {
    Guarded<float> rows(x);
    winograd_source_row(taps, rows.data(), pixels * kGroup, tiles, v.data(), kGroup, tiles * kGroup);
    return {v.data(), v.data() + v.size()};
  }
};

TEST(WinogradKernels, TargetPixelsOfEverySizeOfKernel) {
  for_each_isa([&] {
    for (const size_t taps : {3, 4, 5}) {
      for (const size_t tiles : {1, 2, 3, 5, 11, 18}) {
        Random random(taps * 100 + tiles);
        const Source s(taps, tiles, random);
        SCOPED_TRACE("taps " + std::to_string(taps) + " tiles " + std::to_string(tiles));
        Guarded<float> v(kPoints * tiles * kGroup);
        s.points(v);
        // One weight per channel: depth 1, rows the channels; backwards too.
        for (const bool flipped : {false, true}) {
          const size_t all = taps * taps;
          Guarded<float> w(uniform(random, kGroup * all)), u(kPoints * kWinogradColumns);
          const auto row = static_cast<ptrdiff_t>(taps), last = static_cast<ptrdiff_t>(all - 1);
          const WinogradWeights weights = flipped ? WinogradWeights{w.data() + last, last + 1, 0, -row, -1}
                                                  : WinogradWeights{w.data(), last + 1, 0, row, 1};
          winograd_weight_block(isa(), taps, weights, kGroup, 1, u.data(), kWinogradColumns);
          Guarded<float> m(kPoints * tiles * kGroup);
          for (size_t j = 0; j < m.size(); ++j) {
            m.data()[j] = v.data()[j] * u.data()[j / (tiles * kGroup) * kWinogradColumns + j % kGroup];
          }
          // Rows as long as the pixels: the last row of the last channel ends at a guard page.
          const auto bias = uniform(random, kGroup);
          const size_t width = s.tile * tiles;
          Guarded<float> y(kGroup * s.tile * width);
          std::fill_n(y.data(), y.size(), poison());
          winograd_target_row(taps, m.data(), kGroup, tiles * kGroup, tiles, bias.data(), y.data(), s.tile * width,
                              width);
          const double bound = kEpsilon * 25 * (most_of(taps) + 1);
          for (size_t j = 0; j < y.size(); ++j) {
            const size_t c = j / (s.tile * width), r = j / width % s.tile, x = j % width;
            double want = double{bias[c]};
            for (size_t t = 0; t < all; ++t) {
              want += s.at(r + t / taps, x + t % taps, c) * double{w.data()[c * all + (flipped ? all - 1 - t : t)]};
            }
            ASSERT_NEAR(double{y.data()[j]}, want, bound) << "pixel " << j;
          }
        }
      }
    }
  });
}

TEST(WinogradKernels, WeightGradientsOfEverySizeOfKernel) {
  for_each_isa([&] {
    for (const size_t taps : {3, 4, 5}) {
      for (const size_t tiles : {1, 2, 3, 18}) {
        Random random(taps * 100 + tiles);
        const Source s(taps, tiles, random);
        SCOPED_TRACE("taps " + std::to_string(taps) + " tiles " + std::to_string(tiles));
        Guarded<float> v(kPoints * tiles * kGroup), z(kPoints * tiles * kGroup);
        s.points(v);
        const size_t width = s.tile * tiles, all = taps * taps;
        Guarded<float> dy(uniform(random, s.tile * width * kGroup));
        winograd_gradient_row(taps, dy.data(), width * kGroup, tiles, z.data(), kGroup, tiles * kGroup);
        // One large channel, 16 small ones.
        Guarded<float> m(kPoints * kWinogradColumns);
        for (size_t k = 0; k < kPoints; ++k) {
          for (size_t c = 0; c < kGroup; ++c) {
            float sum = 0;
            for (size_t t = 0; t < tiles; ++t) {
              sum += v.data()[(k * tiles + t) * kGroup] * z.data()[(k * tiles + t) * kGroup + c];
            }
            m.data()[k * kWinogradColumns + c] = sum;
          }
        }
        for (const size_t columns : {1, 15, 16}) {
          for (const bool accumulate : {false, true}) {
            Guarded<float> dw(columns * all);
            std::fill_n(dw.data(), dw.size(), accumulate ? 1.0f : poison());
            WeightTarget target;
            target.small = static_cast<ptrdiff_t>(all), target.y = static_cast<ptrdiff_t>(taps), target.x = 1;
            target.data = dw.data(), target.accumulate = accumulate;
            winograd_gradient_block(taps, m.data(), kWinogradColumns, 1, columns, target);
            const double bound = kEpsilon * double(tiles + 24) * double(tiles * s.tile * s.tile) * most_of(taps);
            for (size_t j = 0; j < dw.size(); ++j) {
              const size_t c = j / all, t = j % all;
              double want = accumulate ? 1 : 0;
              for (size_t p = 0; p < s.tile * width; ++p) {
                want += s.at(p / width + t / taps, p % width + t % taps, 0) * double{dy.data()[p * kGroup + c]};
              }
              ASSERT_NEAR(double{dw.data()[j]}, want, bound) << "weight " << j;
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace bnns
