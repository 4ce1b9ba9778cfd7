// The reference against a hand-worked example and against central differences, all in double.
#include "src/ops/mps_pooling/mps_pooling_ref.h"

#include "src/ops/mps_pooling/tests/mps_pooling_testing.h"

namespace bnns::testing {
namespace {

using mps::PoolEdge;
using mps::PoolKind;
using ref::PoolWindow;

TEST(PoolingReference, HandWorked) {
  // 1 2 / 3 4, window 2x2 at (0, 0): taps -1..0, so one pixel inside. At (1, 1): all four.
  PoolImage image(1, 1, 2, 2);
  image.v = {1, 2, 3, 4};
  PoolWindow w{PoolKind::average, PoolEdge::zero, 2, 2, 1, 1, 0, 0};
  EXPECT_EQ(w.forward(image, 0, 0, 0, 0), 0.25);
  EXPECT_EQ(w.forward(image, 0, 0, 1, 1), 2.5);
  w.edge = PoolEdge::clamp;
  EXPECT_EQ(w.forward(image, 0, 0, 0, 0), 1);
  w.zx = 1;  // two columns count, one row
  EXPECT_EQ(w.forward(image, 0, 0, 0, 0), 0.5);
  w.kind = PoolKind::l2_norm;
  EXPECT_EQ(w.forward(image, 0, 0, 0, 0), 2);  // four times the pixel 1
  EXPECT_EQ(w.forward(image, 0, 0, 1, 1), std::sqrt(30.0));
  w.kind = PoolKind::max;
  EXPECT_EQ(w.forward(image, 0, 0, 1, 1), 4);
  PoolImage d(1, 1, 2, 2);
  w.backward(image, 0, 0, 1, 1, 5, &d);
  EXPECT_EQ(d.v, (std::vector<double>{0, 0, 0, 5}));
}

// L = sum of G(j) out(j) over a row of windows; dL / d in by both ways.
TEST(PoolingReference, CentralDifferences) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    PoolWindow w;
    w.kind = PoolKind(round % 3);
    w.edge = PoolEdge(random.integer(0, 1));
    w.kx = random.integer(1, 4), w.ky = random.integer(1, 4);
    if (w.kind == PoolKind::max) w.dx = random.integer(1, 3), w.dy = random.integer(1, 3);
    w.zx = random.integer(0, 2), w.zy = random.integer(0, 2);
    const int64_t sx = random.integer(1, 3), sy = random.integer(1, 3), ox = random.integer(-3, 3);
    const int64_t oy = random.integer(-3, 3), width = random.integer(1, 4), height = random.integer(1, 4);
    PoolImage image = shuffled_grid(random, 1, 1, random.integer(1, 7), random.integer(1, 7));
    const PoolImage g = random_image(random, 1, 1, height, width, false);
    const auto loss = [&] {
      double sum = 0;
      for (int64_t i = 0; i < height; ++i) {
        for (int64_t j = 0; j < width; ++j) {
          sum += g.at(0, 0, i, j) * w.forward(image, 0, 0, oy + sy * i, ox + sx * j);
        }
      }
      return sum;
    };
    PoolImage d(1, 1, image.H, image.W);
    for (int64_t i = 0; i < height; ++i) {
      for (int64_t j = 0; j < width; ++j) w.backward(image, 0, 0, oy + sy * i, ox + sx * j, g.at(0, 0, i, j), &d);
    }
    for (size_t k = 0; k < image.v.size(); ++k) {
      const double step = 1e-5, before = image.v[k];
      image.v[k] = before + step;
      const double up = loss();
      image.v[k] = before - step;
      const double down = loss();
      image.v[k] = before;
      // L2's third derivative is at most of order 1 / x^2, and |x| >= 1 / 49 on the grid.
      EXPECT_NEAR(d.v[k], (up - down) / (2 * step), 1e-6) << "round " << round << " pixel " << k;
    }
  }
}

}  // namespace
}  // namespace bnns::testing
