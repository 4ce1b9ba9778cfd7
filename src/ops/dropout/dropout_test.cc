// Dropout: the generator against its published vectors, the kernels against the reference on every instruction set and
// thread count, and what holds for all inputs.

#include "src/ops/dropout/dropout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "src/ops/dropout/dropout_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// The known-answer vectors of the generator's authors.
TEST(Dropout, GeneratorMatchesPublishedVectors) {
  using Words = std::pair<uint32_t, uint32_t>;
  const uint32_t all = 0xffffffffu;
  EXPECT_EQ(ref::threefry2x32(13, 0, 0, 0, 0), Words(0x9d1c5ec6, 0x8bd50731));
  EXPECT_EQ(ref::threefry2x32(13, all, all, all, all), Words(0xfd36d048, 0x2d17272c));
  EXPECT_EQ(ref::threefry2x32(13, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), Words(0xba3e4725, 0xf27d669e));
  EXPECT_EQ(ref::threefry2x32(20, 0, 0, 0, 0), Words(0x6b200159, 0x99ba4efe));
}

TEST(Dropout, WordsMatchTheReference) {
  for_each_isa([] {
    uint32_t room[kDropoutBlock + 2 * kDropoutGroup];
    for (uint64_t pass : {uint64_t{1}, uint64_t{77}, (uint64_t{3} << 32) + 5}) {
      for (uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{31}, uint64_t{1000}, (uint64_t{1} << 33) - 7}) {
        for (size_t n : {1, 2, 31, 32, 33, 64, 500, 512}) {
          const uint32_t* words = dropout_words(9, pass, first, n, room);
          for (size_t i = 0; i < n; ++i)
            ASSERT_EQ(words[i], ref::dropout_word(9, pass, first + i)) << first << " + " << i;
        }
      }
    }
  });
}

// The documented example: a row-major 4 x 4, control 0b0010: the rows share, so whole columns go.
TEST(Dropout, ControlSharesDecisionsAlongAnAxis) {
  const DropoutLayer layer(BNNSDataLayoutRowMajorMatrix, {4, 4}, 0.5f, 3, 2);
  const auto filter = layer.make();
  const std::vector<float> x(16, 1);
  bool mixed = false;
  for (int pass = 0; pass < 20; ++pass) {
    std::vector<float> y(16, poison());
    ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
    for (size_t column = 0; column < 4; ++column) {
      for (size_t row = 1; row < 4; ++row) EXPECT_EQ(y[4 * row + column], y[column]);
      mixed |= y[column] != y[0];
    }
  }
  EXPECT_TRUE(mixed) << "columns decide for themselves";
}

struct Case {
  BNNSDataLayout layout;
  std::vector<size_t> size, order;  // order: axes by place in memory, fastest first
};
std::vector<Case> cases() {
  return {{BNNSDataLayoutVector, {1}, {0}},
          {BNNSDataLayoutVector, {67}, {0}},
          {BNNSDataLayoutVector, {1000}, {0}},
          {BNNSDataLayoutRowMajorMatrix, {7, 5}, {0, 1}},
          {BNNSDataLayout2DFirstMajor, {7, 5}, {1, 0}},
          {BNNSDataLayoutImageCHW, {9, 4, 3}, {0, 1, 2}},
          {BNNSDataLayoutImageCHW, {1, 33, 2}, {0, 1, 2}},
          {BNNSDataLayout3DFirstMajor, {3, 4, 5}, {2, 1, 0}},
          {BNNSDataLayout4DLastMajor, {2, 3, 4, 5}, {0, 1, 2, 3}},
          {BNNSDataLayout5DFirstMajor, {2, 3, 2, 3, 2}, {4, 3, 2, 1, 0}}};
}

// BC28, BC53: every control word, three passes, forward and backward, equal on every instruction set and thread count.
TEST(Dropout, BC28_BC53_MatchesReferenceOnEveryIsaAndThreadCount) {
  const size_t batch = 3;
  for (const Case& c : cases()) {
    const size_t count = std::accumulate(c.size.begin(), c.size.end(), size_t{1}, std::multiplies<>());
    for (unsigned control = 0; control < 1u << std::min<size_t>(4, c.size.size()); ++control) {
      for (float rate : {0.0f, 0.25f, 0.3f, 0.999f}) {
        Random random(5);
        const auto x = random.normals(batch * count);
        auto dy = random.normals(batch * count);
        for_each_isa([&] {
          for (size_t threads : kThreadCounts) {
            DropoutLayer layer(c.layout, c.size, rate, 11, control);
            layer.options.n_threads = threads;
            const auto filter = layer.make();
            for (uint64_t pass = 1; pass <= 3; ++pass) {
              std::vector<float> y(x.size(), poison()), dx(x.size(), poison());
              ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
              const auto want = ref::dropout(c.size, c.order, control, rate, 11, pass, batch, {x.begin(), x.end()});
              // one rounding of the factor, one of the product
              ASSERT_TRUE(
                  within(y, want, y.size(), [&](size_t i) { return rate == 0 ? 0 : 0x1p-23 * std::fabs(want[i]); }));
              auto dx_desc = descriptor(c.layout, c.size, dx.data()), dy_desc = descriptor(c.layout, c.size, dy.data());
              ASSERT_EQ(backward(filter.get(), batch, &dx_desc, &dy_desc), 0) << BNNSExtLastError();
              const auto gradient =
                  ref::dropout(c.size, c.order, control, rate, 11, pass, batch, {dy.begin(), dy.end()});
              ASSERT_TRUE(within(dx, gradient, dx.size(),
                                 [&](size_t i) { return rate == 0 ? 0 : 0x1p-23 * std::fabs(gradient[i]); }));
            }
          }
        });
      }
    }
  }
}

// Large enough for several threads and tasks: the same mask, forward and backward, for any number of them.
TEST(Dropout, BC28_BC53_SameMaskForAnyThreadCount) {
  const size_t count = 100003;
  Random random(7);
  std::vector<float> x(2 * count), first_y, first_dx;
  for (float& v : x) v = float(random.uniform(-1, 1));
  auto dy = x;
  std::reverse(dy.begin(), dy.end());
  for (size_t threads : {1, 2, 3, 4, 7, 8, 16}) {
    DropoutLayer layer(count, 0.4f, 5);
    layer.options.n_threads = threads;
    const auto filter = layer.make();
    std::vector<float> y(x.size()), dx(x.size());
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0), 0);
    auto dx_desc = vector_descriptor(count, dx.data()), dy_desc = vector_descriptor(count, dy.data());
    ASSERT_EQ(backward(filter.get(), 2, &dx_desc, &dy_desc), 0) << BNNSExtLastError();
    if (threads == 1) first_y = y, first_dx = dx;
    ASSERT_TRUE(same_bits(y, first_y) && same_bits(dx, first_dx)) << threads << " threads";
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i] == 0, dx[i] == 0);  // neither x nor dy has a 0
  }
}

// BC28: rate 0 is the identity, bit for bit; rate 1 would divide by 0 and is refused; just below it all is finite.
TEST(Dropout, BC28_EndsOfTheRate) {
  std::vector<float> x = {1.1f, -0.0f, 0, INFINITY, -3e38f, 1e-40f, poison()}, y(7), dx(7), ones(7, 1);
  auto dx_desc = vector_descriptor(7, dx.data()), dy_desc = vector_descriptor(7, ones.data());
  const auto identity = DropoutLayer(7, 0, 3).make();
  ASSERT_EQ(BNNSFilterApply(identity.get(), x.data(), y.data()), 0);
  EXPECT_TRUE(same_bits(y, x));
  ASSERT_EQ(backward(identity.get(), 1, &dx_desc, &dy_desc), 0);
  EXPECT_EQ(dx, ones);

  const DropoutLayer everything(7, 1, 3);
  EXPECT_EQ(BNNSFilterCreateLayerDropout(&everything.parameters, &everything.options), nullptr);
  EXPECT_TRUE(refused_because({"rate is 1, expected at least 0 and below 1"}));

  const auto most = DropoutLayer(7, 1 - 0x1p-24f, 3).make();
  ASSERT_EQ(BNNSFilterApply(most.get(), ones.data(), y.data()), 0);
  ASSERT_EQ(backward(most.get(), 1, &dx_desc, &dy_desc), 0);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_TRUE(y[i] == 0 || y[i] == 0x1p24f);
    EXPECT_EQ(dx[i], y[i]);
  }
}

// BC28: the gradient of ones is the mask times the scale, exactly, also where x is 0, infinite or NaN.
TEST(Dropout, BC28_GradientOfOnesIsTheMask) {
  const size_t n = 5000;
  std::vector<float> x(n, 0), y(n), ones(n, 1), dx(n);
  for (size_t i = 0; i < n; i += 3) x[i] = i % 2 ? INFINITY : NAN;
  const auto filter = DropoutLayer(n, 0.5f, 17).make();
  ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  auto dx_desc = vector_descriptor(n, dx.data()), dy_desc = vector_descriptor(n, ones.data());
  ASSERT_EQ(backward(filter.get(), 1, &dx_desc, &dy_desc), 0);
  size_t kept = 0;
  for (size_t i = 0; i < n; ++i) {
    const bool keep = double(ref::dropout_word(17, 1, i)) >= 0x1p31;
    kept += keep;
    ASSERT_EQ(dx[i], keep ? 2.0f : 0.0f);
    if (i % 3 == 0) {
      ASSERT_TRUE(keep ? !std::isfinite(y[i]) : y[i] == 0);  // what is dropped is 0, whatever it was
    }
  }
  EXPECT_GT(kept, n / 3);
}

// BC28: keep rate within five deviations over a million decisions; passes, samples and seeds differ.
TEST(Dropout, BC28_KeepRateAndIndependence) {
  const size_t n = 1000000;
  const std::vector<float> x(n, 1);
  std::vector<float> y(n), z(n);
  for (float rate : {0.01f, 0.1f, 0.5f, 0.9f}) {
    const auto filter = DropoutLayer(n, rate, 23).make();
    const auto other = DropoutLayer(n, rate, 24).make();
    const double p = 1 - double(rate), scale = 1 / p;
    const auto apply = [&](BNNSFilter f, std::vector<float>& to) {
      ASSERT_EQ(BNNSFilterApply(f, x.data(), to.data()), 0);
    };
    const auto kept = [&](const std::vector<float>& v) {
      return double(n - size_t(std::count(v.begin(), v.end(), 0.0f)));
    };
    apply(filter.get(), y);
    EXPECT_NEAR(kept(y), n * p, 5 * std::sqrt(n * p * (1 - p)));
    EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0) / n, 1,
                5 * scale * std::sqrt(p * (1 - p) / n));  // the mean stays
    for (BNNSFilter f : {filter.get(), other.get()}) {    // the next pass, another seed: independent of the first
      apply(f, z);
      double both = 0;
      for (size_t i = 0; i < n; ++i) both += y[i] != 0 && z[i] != 0;
      EXPECT_NEAR(both, n * p * p, 5 * std::sqrt(n * p * p * (1 - p * p)));
    }
    double neighbours = 0;
    for (size_t i = 0; i + 1 < n; ++i) neighbours += y[i] != 0 && y[i + 1] != 0;
    EXPECT_NEAR(neighbours, n * p * p, 8 * std::sqrt(n * p * p * (1 - p * p)));  // pairs overlap: a little more room
  }
}

TEST(Dropout, SeedsRepeatAndZeroDoesNot) {
  const size_t n = 256;
  const std::vector<float> x(n, 1);
  const auto passes = [&](uint32_t seed) {
    const auto filter = DropoutLayer(n, 0.5f, seed).make();
    std::vector<float> all;
    for (int i = 0; i < 3; ++i) {
      std::vector<float> y(n);
      EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  };
  EXPECT_EQ(passes(5), passes(5));
  EXPECT_NE(passes(5), passes(6));
  EXPECT_NE(passes(0), passes(0));
}

// <F x, g> = <x, F' g>, exactly: a scale of 2 or 4 and small integers.
TEST(Dropout, AdjointIdentity) {
  Random random(41);
  for (int round = 0; round < 1500; ++round) {
    const std::vector<size_t> size = {1 + random.below(9), 1 + random.below(9), 1 + random.below(5)};
    const size_t batch = 1 + random.below(4), count = size[0] * size[1] * size[2];
    const DropoutLayer layer(BNNSDataLayoutImageCHW, size, random.below(2) ? 0.5f : 0.75f, uint32_t(1 + round),
                             unsigned(random.below(8)));
    const auto filter = layer.make();
    const auto x = random.integers(batch * count);
    auto g = random.integers(batch * count);
    std::vector<float> y(x.size()), dx(x.size());
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0);
    auto dx_desc = descriptor(BNNSDataLayoutImageCHW, size, dx.data()),
         g_desc = descriptor(BNNSDataLayoutImageCHW, size, g.data());
    ASSERT_EQ(backward(filter.get(), batch, &dx_desc, &g_desc), 0);
    double left = 0, right = 0;
    for (size_t i = 0; i < x.size(); ++i) left += double(y[i]) * g[i], right += double(x[i]) * dx[i];
    ASSERT_EQ(left, right) << "round " << round;
  }
}

}  // namespace
}  // namespace bnns
