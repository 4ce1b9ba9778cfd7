// Maxima with indices where only the order of comparisons decides: ties, zeros of both signs, -inf, NaN, in every
// geometry of pooling/forward/positions_simd.cc and around it. Values and indices must be those of the first largest
// pixel in raster order (the first NaN if there is one), bit by bit.

#include <cmath>

#include "src/ops/pooling/tests/pooling_testing.h"

namespace bnns::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

PoolShape random_row_shape(Random& random) {
  const auto pick = [&](long low, long high) { return long(random.integer(int(low), int(high))); };
  const long kind = pick(0, 3);  // 2 x 2; 3 x 3 padded; 3 x 3; 3 x 3 with stride 1
  PoolShape s = square(pick(1, 3), 2, kind == 0 ? 2 : 3, kind == 3 ? 1 : 2, kind % 2);
  s.W = random.below(3) ? pick(2, 70) : pick(2, 16);
  s.H = pick(2, 30);
  s.right = s.left + pick(0, 1), s.bottom = s.top + pick(0, 1);
  s.OW = std::max(1L, (s.W + s.left + s.right - s.kw) / s.sx + 1);
  s.OH = std::max(1L, (s.H + s.top + s.bottom - s.kh) / s.sy + 1);
  return s;
}

// Few different values, so that most windows have ties.
float pixel(Random& random, unsigned kind) {
  const unsigned percent = unsigned(random.below(100));
  if (kind == 1 && percent < 30) return -kInf;
  if (kind == 2 && percent < 3) return std::numeric_limits<float>::quiet_NaN();
  if (kind == 3 && percent < 93) return percent < 90 ? -kInf : kInf;
  const float v = float(random.integer(-2, 2));
  return v == 0 && percent % 2 ? -0.0f : v;
}

TEST(PoolingPositions, FirstLargestPixelInRasterOrder) {
  for_each_isa([] {
    Random random(29);
    for (unsigned round = 0; round < 2000; ++round) {
      const PoolShape s = random_row_shape(random);
      const size_t plane = size_t(s.H * s.W), windows = size_t(s.OH * s.OW);
      std::vector<float> x(s.large());
      for (float& v : x) v = pixel(random, round % 4);
      const auto filter = PoolLayer(Pool::max, s).make();
      Guarded<float> in(x, Guarded<float>::Side::end);
      Guarded<float> y(s.small(), Guarded<float>::Side::end);
      Guarded<size_t> wide(s.small(), Guarded<size_t>::Side::end);
      Guarded<uint32_t> narrow(s.small(), Guarded<uint32_t>::Side::end);
      ASSERT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), 1, in.data(), 0, y.data(), 0, BNNSDataTypeUInt32,
                                              narrow.data(), 0),
                0);
      ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), 1, in.data(), 0, y.data(), 0, wide.data(), 0), 0);
      for (size_t o = 0; o < y.size(); ++o) {
        const float* pixels = x.data() + o / windows * plane;
        size_t best = plane;
        ref::for_each_pixel(s, long(o % windows) / s.OW, long(o % windows) % s.OW, [&](size_t i) {
          if (best == plane || (!std::isnan(pixels[best]) && (std::isnan(pixels[i]) || pixels[i] > pixels[best]))) {
            best = i;
          }
        });
        if (best == plane) continue;  // a window without a pixel
        ASSERT_EQ(wide.data()[o], best) << text(s) << " window " << o;
        ASSERT_EQ(narrow.data()[o], best) << text(s) << " window " << o;
        ASSERT_TRUE(same_bits(&y.data()[o], &pixels[best], 1)) << text(s) << " window " << o;
      }
    }
  });
}

}  // namespace
}  // namespace bnns::testing
