// Pooling: hand-worked examples, the reference against central differences, the kernels against the reference, and
// properties over random problems.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "src/ops/pooling/tests/pooling_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// ---- 1. Examples with numbers from the specification (section 6) and worked by hand ------------------------------

TEST(Pooling, MaxOfTwoByTwoWithPadding) {
  PoolShape s = square(1, 2, 2, 1, 1);
  const float x[] = {1, 2, 3, 4}, want[] = {1, 2, 2, 3, 4, 4, 3, 4, 4};
  float y[9];
  ASSERT_EQ(BNNSFilterApply(PoolLayer(Pool::max, s).make().get(), x, y), 0) << BNNSExtLastError();
  EXPECT_TRUE(same_bits(y, want, 9));
}

TEST(Pooling, MaxIndicesAndTheirGradient) {
  const PoolShape s = square(1, 4, 2, 2);
  float x[16], y[4], dx[16], dy[] = {1, 2, 3, 4};
  size_t index[4];
  for (const float sign : {1.0f, -1.0f}) {
    for (int i = 0; i < 16; ++i) x[i] = sign * float(i + 1);
    const auto filter = PoolLayer(Pool::max, s).make();
    ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), 1, x, 0, y, 0, index, 0), 0) << BNNSExtLastError();
    const std::vector<size_t> want = sign > 0 ? std::vector<size_t>{5, 7, 13, 15} : std::vector<size_t>{0, 2, 8, 10};
    EXPECT_EQ(std::vector<size_t>(index, index + 4), want);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], x[want[size_t(i)]]);
    for (const bool by_index : {true, false}) {
      std::fill_n(dx, 16, poison());
      auto dx_desc = large_descriptor(s, dx), dy_desc = small_descriptor(s, dy);
      ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), 1, by_index ? nullptr : x, 0, &dx_desc, 0, nullptr, 0,
                                                    &dy_desc, 0, nullptr, by_index ? index : nullptr, 0),
                0)
          << BNNSExtLastError();
      for (size_t i = 0; i < 16; ++i) {
        const auto at = std::find(want.begin(), want.end(), i);
        EXPECT_EQ(dx[i], at == want.end() ? 0.0f : dy[at - want.begin()]) << i;
      }
    }
  }
}

TEST(Pooling, AverageCountsThePadding) {
  const PoolShape s = square(1, 2, 2, 2, 1);
  const float x[] = {1, 2, 3, 4};
  float y[4];
  ASSERT_EQ(BNNSFilterApply(PoolLayer(Pool::average_include, s).make().get(), x, y), 0);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{.25f, .5f, .75f, 1}));
  ASSERT_EQ(BNNSFilterApply(PoolLayer(Pool::average_exclude, s).make().get(), x, y), 0);
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{1, 2, 3, 4}));  // one real pixel in each window
}

// norm of {3, 4, 0, 0} = 5; dx = dy x / 5
TEST(Pooling, L2NormAndItsGradient) {
  const PoolShape s = square(1, 2, 2, 1);
  const float x[] = {3, 4, 0, 0};
  float y, dy = 10, dx[4];
  const auto filter = PoolLayer(Pool::l2, s).make();
  ASSERT_EQ(BNNSFilterApply(filter.get(), x, &y), 0);
  EXPECT_EQ(y, 5);
  auto dx_desc = large_descriptor(s, dx), dy_desc = small_descriptor(s, &dy);
  ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), 1, x, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0, nullptr,
                                                nullptr, 0),
            0);
  EXPECT_EQ(std::vector<float>(dx, dx + 4), (std::vector<float>{6, 8, 0, 0}));
}

// ---- 2. The reference's gradient ---------------------------------------------------------------------------------

TEST(Pooling, ReferenceGradientEqualsDifferences) {
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    const PoolShape s = random_shape(random, 7);
    for (Pool f : kPools) {
      const auto x = random.spread(s.large(), 0.05), g = widen(random.normals(s.small()));
      const auto loss = [&](const std::vector<double>& v) {
        const auto y = ref::pool_forward(f, s, 1, v).y;
        double sum = 0;
        for (size_t i = 0; i < y.size(); ++i) sum += y[i] * g[i];
        return sum;
      };
      EXPECT_LE(gradient_error(ref::pool_backward(f, s, 1, x, g), central_differences(x, loss, 1e-6)), 1e-7)
          << text(s) << " function " << int(f);
    }
  }
}

// ---- 3. The kernels against the reference ------------------------------------------------------------------------

void compare(Pool f, const PoolShape& s, size_t N, const std::vector<float>& x, const std::vector<float>& g, bool exact,
             const Results& r) {
  expect_reference(f, s, N, x, g, exact, r);
  if (f != Pool::max) return;
  EXPECT_TRUE(same_bits(r.dx, r.dx_by_index));
}

const std::vector<PoolShape>& shapes() {
  static const std::vector<PoolShape> all = [] {
    std::vector<PoolShape> list;
    for (const long size : {1, 2, 3, 5, 7, 8, 9, 14, 15, 16, 17, 24, 28, 31, 32, 33, 56, 64, 65, 100}) {
      for (const long p : {0, 1}) {
        if (size + 2 * p >= 2) list.push_back(square(2, size, 2, 2, p));
        if (size + 2 * p >= 3) list.push_back(square(2, size, 3, 2, p)), list.push_back(square(2, size, 3, 1, p));
      }
      list.push_back(square(3, size, size, 1));  // global
      PoolShape over = square(1, size, 1, 2);    // windows hang over the right and lower edge
      over.kw = over.kh = 3, over.OW = over.OH = (size - 1) / 2 + 1;
      list.push_back(over);
      PoolShape dilated = square(1, size + 8, 3, 1);
      dilated.dx = 2, dilated.dy = 3, dilated.OW = dilated.W - 4, dilated.OH = std::max(1L, dilated.H - 6);
      list.push_back(dilated);
      PoolShape wide = square(1, size, 1, 1);  // strides that have no vector kernel
      wide.kw = 4, wide.kh = 3, wide.sx = 3, wide.sy = 4, wide.OW = (size - 1) / 3 + 1, wide.OH = (size - 1) / 4 + 1;
      list.push_back(wide);
      PoolShape flat = square(1, size, 1, 1, 2);  // more padding than image
      flat.H = 1, flat.kw = 5, flat.kh = 5, flat.OW = size, flat.OH = 1;
      list.push_back(flat);
    }
    PoolShape long_row = square(1, 3, 3, 1, 1);  // rows longer than any buffer on the stack
    long_row.W = long_row.OW = 7001;
    list.push_back(long_row);
    long_row.sx = 2, long_row.OW = 3501;
    list.push_back(long_row);
    PoolShape tall = square(1, 40, 3, 2, 1);
    tall.H = 900, tall.OH = 450;
    list.push_back(tall);
    return list;
  }();
  return all;
}

TEST(Pooling, KernelsEqualReferenceOnExactData) {
  for_each_isa([] {
    Random random(3);
    for (const PoolShape& s : shapes()) {
      for (Pool f : kPools) {
        SCOPED_TRACE(text(s) + " function " + std::to_string(int(f)));
        const size_t N = 1 + random.below(2);
        const auto x = random.integers(N * s.large());
        // Multiples of every number of taps a window of this shape can have.
        double all_counts = 1;
        for (long k = 1; k <= std::min(5L, std::max(s.kw, s.kh)); ++k) all_counts *= double(k);
        std::vector<float> g(N * s.small());
        for (float& v : g) v = float(all_counts * all_counts * random.integer(-2, 2));
        const bool exact = s.kw <= 5 && s.kh <= 5;  // larger windows divide by other numbers
        compare(f, s, N, x, g, exact,
                run(f, s, N, x, g, 0, random.below(2) ? Guarded<float>::Side::end : Guarded<float>::Side::begin));
        if (HasFailure()) return;
      }
    }
  });
}

TEST(Pooling, KernelsStayWithinTheBoundOnRealData) {
  for_each_isa([] {
    Random random(4);
    for (int round = 0; round < 250; ++round) {
      const PoolShape s = random_shape(random, 48);
      const size_t N = 1 + random.below(2);
      for (Pool f : kPools) {
        SCOPED_TRACE(text(s) + " function " + std::to_string(int(f)) + " round " + std::to_string(round));
        auto x = random.normals(N * s.large());
        if (round % 3 == 1)
          for (float& v : x) v += 1000;
        if (round % 3 == 2)
          for (float& v : x) v *= float(std::exp2(random.integer(-20, 20)));
        const auto g = random.normals(N * s.small());
        compare(f, s, N, x, g, false, run(f, s, N, x, g, 0));
        if (HasFailure()) return;
      }
    }
  });
}

// Large enough for several tasks: groups of planes, and bands of rows of one plane.
TEST(Pooling, SameBitsForAnyNumberOfThreads) {
  std::vector<std::pair<PoolShape, size_t>> problems = {{square(24, 64, 3, 2, 1), 6},  {square(20, 28, 2, 2), 40},
                                                        {square(64, 14, 3, 1, 1), 40}, {square(512, 7, 7, 1), 16},
                                                        {square(1, 700, 3, 1, 1), 1},  {square(2, 600, 3, 2, 1), 1},
                                                        {square(1, 500, 5, 3, 2), 2}};
  for_each_isa([&] {
    for (const auto& [s, N] : problems) {
      Random random(5);
      const auto x = random.normals(N * s.large()), g = random.normals(N * s.small());
      for (Pool f : kPools) {
        SCOPED_TRACE(text(s) + " function " + std::to_string(int(f)));
        const Results one = run(f, s, N, x, g, 1);
        compare(f, s, N, x, g, false, one);
        for (const size_t threads : kThreadCounts) {
          const Results many = run(f, s, N, x, g, threads);
          EXPECT_TRUE(same_bits(one.y, many.y) && same_bits(one.dx, many.dx) && one.index == many.index) << threads;
        }
        if (HasFailure()) return;
      }
    }
  });
}

// ---- 4. Properties -----------------------------------------------------------------------------------------------

// <F x, g> = <x, F' g> on exact data: Average with either count, and Max, which is linear once its indices are chosen.
TEST(Pooling, AdjointIdentityOfThousandsOfProblems) {
  for (Pool f : {Pool::max, Pool::average_include, Pool::average_exclude}) {
    Random random(6);
    for (int round = 0; round < 1500; ++round) {
      const PoolShape s = random_shape(random, round % 2 ? 8 : 36);
      const size_t N = 1 + random.below(2);
      // Sums stay below 2^24 and every quotient is whole: all counts of up to 5 x 5 taps divide 3600.
      auto x = random.integers(N * s.large(), 2);
      for (float& v : x) v *= 3600;
      auto g = exact_gradients(random, N * s.small());
      const Results r = run(f, s, N, x, g, 0);
      double left = 0, right = 0, magnitude = 0;
      for (size_t i = 0; i < r.y.size(); ++i)
        left += double(r.y[i]) * g[i], magnitude += std::fabs(double(r.y[i]) * g[i]);
      for (size_t i = 0; i < x.size(); ++i)
        right += double(x[i]) * r.dx[i], magnitude += std::fabs(double(x[i]) * r.dx[i]);
      // Every quotient is whole, but for global windows, which divide by other numbers: one rounding a term.
      const double bound = s.kw <= 5 && s.kh <= 5 ? 0 : kEpsilon * magnitude;
      ASSERT_NEAR(left, right, bound) << text(s) << " function " << int(f) << " round " << round;
    }
  }
}

// A batch equals its samples one by one, whatever lies between them.
TEST(Pooling, BatchStridesAndGaps) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    const PoolShape s = random_shape(random, 20);
    const size_t N = 3, xs = s.large() + random.below(5), ys = s.small() + random.below(5);
    for (Pool f : kPools) {
      const auto filter = PoolLayer(f, s).make();
      auto x = random.normals(N * xs), g = random.normals(N * ys);
      std::vector<float> y(N * ys, poison()), dx(N * xs, poison());
      std::vector<uint32_t> index(N * ys, 77);
      auto dx_desc = large_descriptor(s, dx.data()), dy_desc = small_descriptor(s, g.data());
      ASSERT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), N, x.data(), xs, y.data(), ys, BNNSDataTypeUInt32,
                                              index.data(), ys),
                0)
          << BNNSExtLastError();
      ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(filter.get(), N, x.data(), xs, &dx_desc, xs, nullptr, 0, &dy_desc,
                                                      ys, nullptr, BNNSDataTypeUInt32, index.data(), ys),
                0)
          << BNNSExtLastError();
      for (size_t n = 0; n < N; ++n) {
        const std::vector<float> x1(&x[n * xs], &x[n * xs] + s.large()), g1(&g[n * ys], &g[n * ys] + s.small());
        const Results one = run(f, s, 1, x1, g1, 0);
        EXPECT_TRUE(same_bits(&y[n * ys], one.y.data(), one.y.size())) << text(s);
        EXPECT_TRUE(same_bits(&dx[n * xs], one.dx.data(), one.dx.size())) << text(s) << int(f);
        for (size_t i = s.small(); i < ys; ++i) EXPECT_TRUE(is_poison(y[n * ys + i]) && index[n * ys + i] == 77);
        for (size_t i = s.large(); i < xs; ++i) EXPECT_TRUE(is_poison(dx[n * xs + i]));
        for (size_t i = 0; i < s.small() && f == Pool::max; ++i) EXPECT_EQ(index[n * ys + i], one.index[i]);
      }
    }
  }
}

// Pixels that no window covers reach nobody, NaN or not.
TEST(Pooling, NanOutsideTheWindowsOfL2Norm) {
  for_each_isa([] {
    for (const long size : {6, 14, 16, 30}) {
      PoolShape pairs = square(2, size, 2, 2), neighbours = square(2, size, 3, 1, 1);
      pairs.OW -= 1, neighbours.OW -= 3;
      for (const PoolShape& s : {pairs, neighbours}) {
        std::vector<float> x(s.large(), 1.0f);
        for (size_t i = size_t(size) - 1; i < x.size(); i += size_t(size)) x[i] = NAN;
        const std::vector<float> g(s.small(), 1.0f);
        const auto want = ref::pool_backward(Pool::l2, s, 1, widen(x), widen(g));
        const auto dx = run(Pool::l2, s, 1, x, g, 0).dx;
        for (size_t i = 0; i < dx.size(); ++i) {
          ASSERT_EQ(std::isnan(dx[i]), std::isnan(want[i])) << text(s) << " pixel " << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace bnns
