// What BNNS_PRECISION promises: strict does without Winograd's algorithm, and the error of fast does not depend on the
// batch.

#include <gtest/gtest.h>

#include "src/core/process/precision.h"
#include "src/ops/convolution/tests/convolution_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

struct Strict {
  Strict() { set_strict_precision(true); }
  ~Strict() { set_strict_precision(false); }
};

std::string implementation(const FilterHandle& filter, BNNSExtPass pass) {
  return BNNSExtImplementation(filter.get(), pass, 8);
}

TEST(ConvolutionPrecision, StrictDoesWithoutWinograd) {
  for_each_isa([&] {
    for (const ConvolutionShape& s : {make_shape(8, 64, 16, 16, 64, 3, 1, 1), make_shape(8, 64, 18, 18, 64, 3, 1, 0),
                                      make_shape(8, 32, 16, 16, 32, 5, 1, 2), make_shape(8, 16, 32, 32, 64, 7, 2, 3)}) {
      const std::vector<float> w(s.w_count(), 0.5f);
      const FilterHandle filter = ConvolutionLayer(s, w.data(), nullptr).make();
      const auto is_winograd = [&](BNNSExtPass pass) {
        return implementation(filter, pass).find("winograd") != std::string::npos;
      };
      const bool fast = s.kh == 3 || isa() != Isa::baseline;  // the larger kernels need FMA
      EXPECT_EQ(is_winograd(BNNSExtPassForward), fast) << text(s);
      const Strict strict;
      for (auto pass : {BNNSExtPassForward, BNNSExtPassInputGradient, BNNSExtPassWeightsGradient}) {
        EXPECT_FALSE(is_winograd(pass)) << text(s);
      }
    }
  });
}

// A NaN and a huge pixel reach the pixels of Y whose window has them, and fast also the others of their tiles.
TEST(ConvolutionPrecision, StrictKeepsAPixelInItsWindow) {
  const ConvolutionShape s = make_shape(8, 32, 12, 12, 32, 3, 1, 1);
  Random random(1);
  const auto w = random.normals(s.w_count());
  const auto clean = random.normals(s.x_count());
  const FilterHandle filter = ConvolutionLayer(s, w.data(), nullptr).make();
  const auto forward = [&](const std::vector<float>& x) {
    std::vector<float> y(s.y_count());
    EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
    return y;
  };
  const size_t at_y = 5, at_x = 6;  // of channel 3 of sample 2
  for (float bad : {NAN, 1e30f}) {
    auto x = clean;
    x[((2 * s.i + 3) * s.ih + at_y) * s.iw + at_x] = bad;
    const auto others_touched = [&](const std::vector<float>& before, const std::vector<float>& after) {
      size_t touched = 0;
      for (size_t i = 0; i < s.y_count(); ++i) {
        const size_t px = i % s.ow, py = i / s.ow % s.oh, n = i / (s.ow * s.oh * s.o);
        const bool window = n == 2 && px + 1 >= at_x && px <= at_x + 1 && py + 1 >= at_y && py <= at_y + 1;
        touched += !window && !(std::fabs(before[i] - after[i]) < 1e-3f);
      }
      return touched;
    };
    EXPECT_GT(others_touched(forward(clean), forward(x)), 0u) << bad;
    const Strict strict;
    EXPECT_EQ(others_touched(forward(clean), forward(x)), 0u) << bad;
  }
}

// Sums over channels are cut alike for few tiles and for many: batches of 16 had 1.4 times the error of batches of 8.
TEST(ConvolutionPrecision, SameErrorForAnyBatch) {
  constexpr size_t kChannels = 2;  // whose error is looked at
  const auto error = [&](size_t batch) {
    const ConvolutionShape s = make_shape(batch, 256, 14, 14, 256, 3, 1, 1);
    Random random(batch);
    const auto w = random.normals(s.w_count()), x = random.normals(s.x_count());
    const FilterHandle filter = ConvolutionLayer(s, w.data(), nullptr).make();
    EXPECT_EQ(implementation(filter, BNNSExtPassForward), "convolution/winograd/gather");
    std::vector<float> y(s.y_count());
    EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), s.n, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
    double squares = 0;
    const size_t plane = s.ih * s.iw;
    for (size_t n = 0; n < s.n; ++n) {
      for (size_t o = 0; o < kChannels; ++o) {
        ConvolutionShape one = s;
        one.n = 1, one.o = 1;
        const std::vector<float> xs(x.begin() + ptrdiff_t(n * s.i * plane),
                                    x.begin() + ptrdiff_t((n + 1) * s.i * plane));
        const std::vector<float> ws(w.begin() + ptrdiff_t(o * s.i * 9), w.begin() + ptrdiff_t((o + 1) * s.i * 9));
        const auto want = ref::convolution_forward(one, widen(xs), widen(ws), std::vector<double>(1));
        for (size_t i = 0; i < plane; ++i) {
          const double d = double(y[(n * s.o + o) * plane + i]) - want[i];
          squares += d * d;
        }
      }
    }
    return std::sqrt(squares / double(s.n * kChannels * plane));
  };
  const double few = error(8), many = error(16);
  EXPECT_LE(many, 1.15 * few);
  EXPECT_LE(few, 1.15 * many);
}

}  // namespace
}  // namespace bnns
