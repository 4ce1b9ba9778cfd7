// The CPU device's fast kernels against its plain loops (which the other tests hold against the reference): random
// encodes at the seam, on every instruction set, on images that end or begin at a page that faults.
//   max, and everything on small integers: the same bits
//   band kernels: the same bits always (they add in the plain loops' order)
//   global average and L2: sums in another order, see bound()
// and the same bits for every number of threads.

#include <algorithm>
#include <limits>
#include <memory>

#include "src/core/half.h"
#include "src/core/isa.h"
#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/cpu/direct.h"
#include "src/ops/mps_pooling/tests/mps_pooling_images.h"

namespace bnns::mps {
namespace {

using testing::Random;
using testing::TestImage;
using testing::Values;

struct Case {
  PoolEncode e;
  bool global = false;
  Values values = Values::integers;
  std::unique_ptr<TestImage> source, gradient, target;

  std::string text() const {
    return std::string(e.backward ? "backward" : "forward") + " kind " + std::to_string(int(e.kind)) + " edge " +
           std::to_string(int(e.edge)) + " type " + std::to_string(int(e.target.type)) + " k" +
           std::to_string(e.x.kernel) + "x" + std::to_string(e.y.kernel) + " s" + std::to_string(e.x.stride) + " c" +
           std::to_string(e.x.first_centre) + "," + std::to_string(e.y.first_centre) + " source " +
           std::to_string(e.source.width) + "x" + std::to_string(e.source.height) + " clip " + std::to_string(e.width) +
           "x" + std::to_string(e.height) + " at " + std::to_string(e.target_x) + "," + std::to_string(e.target_y) +
           " windows " + std::to_string(e.gradient_width) + "x" + std::to_string(e.gradient_height) + " y0 " +
           std::to_string(e.source_x) + "," + std::to_string(e.source_y) + " channels " + std::to_string(e.channels) +
           " to " + std::to_string(e.target_channel) + " of image " + std::to_string(e.target_image) + " target " +
           std::to_string(e.target.width) + "x" + std::to_string(e.target.height) + "x" +
           std::to_string(4 * e.target.slices) + " values " + std::to_string(int(values));
  }
};

// Mostly what the fast kernels take; sizes, offsets, clips, image and channel ranges at random.
enum class Aim { band, direct, global };
Case random_case(Random& random, Aim aim) {
  const bool global = aim == Aim::global, planes = aim == Aim::direct;  // planes: whole ones, many
  Case c;
  PoolEncode& e = c.e;
  const auto pick = [&](int low, int high) { return int64_t{random.integer(low, high)}; };
  c.e.backward = random.below(2), c.global = global;
  const size_t v = random.below(8);
  c.values = v < 4 ? Values::integers : v < 7 ? Values::reals : Values::with_nan;
  e.kind = static_cast<PoolKind>(random.below(3)), e.edge = static_cast<PoolEdge>(random.below(2));
  const PixelType type = random.below(2) ? PixelType::f32 : PixelType::f16;
  const int64_t most = random.below(4) ? 20 : 70;
  const int64_t w = global ? pick(1, 17) : pick(1, int(most)), h = global ? pick(1, 17) : pick(1, int(most));
  const int64_t k = pick(2, 3), s = k == 2 ? 2 : pick(1, 2);
  e.x.kernel = global ? w : k, e.y.kernel = global ? h : k;
  e.x.stride = e.y.stride = global ? pick(1, 3) : s;
  e.x.zero_pad = pick(0, 2), e.y.zero_pad = pick(0, 2);
  e.x.first_centre = global ? w / 2 : planes ? k / 2 - pick(0, 1) : pick(-1, 2);
  e.y.first_centre = global ? h / 2 : planes ? k / 2 - pick(0, 1) : pick(-1, 2);
  const int64_t wx = global ? 1 : pick(1, int(w / s) + 1), wy = global ? 1 : pick(1, int(h / s) + 1);
  // More images and channels than are used.
  e.images = pick(planes ? 2 : 1, 3), e.channels = 4 * pick(planes ? 4 : 1, 6);
  e.source_image = pick(0, 1), e.target_image = pick(0, 1), e.gradient_image = pick(0, 1);
  e.source_channel = 4 * pick(0, 1), e.target_channel = 4 * pick(0, 1), e.gradient_channel = 4 * pick(0, 1);
  c.source = std::make_unique<TestImage>(random, type, e.images + e.source_image, e.channels + e.source_channel, h, w,
                                         c.values);
  e.source = c.source->view;
  const bool whole = global && random.below(3);  // a gradient's clip is the plane
  e.target_x = whole || random.below(2) ? 0 : pick(0, 3), e.target_y = whole || random.below(2) ? 0 : pick(0, 3);
  const int64_t right = whole || random.below(2) ? 0 : pick(0, 3);
  if (!c.e.backward) {
    e.width = wx, e.height = wy;
  } else {
    e.gradient_width = wx, e.gradient_height = wy;
    const bool all = whole || planes;
    e.source_x = all || random.below(3) ? 0 : pick(0, 4), e.source_y = all || random.below(3) ? 0 : pick(0, 4);
    e.width = all || random.below(2) ? w : pick(1, int(w) + 3),
    e.height = all || random.below(2) ? h : pick(1, int(h) + 3);
    e.gradient_x = pick(0, 2), e.gradient_y = pick(0, 2);
    c.gradient = std::make_unique<TestImage>(random, type, e.images + e.gradient_image, e.channels + e.gradient_channel,
                                             wy + e.gradient_y + pick(0, 1), wx + e.gradient_x + pick(0, 1),
                                             c.values == Values::with_nan ? Values::reals : c.values);
    e.gradient = c.gradient->view;
  }
  c.target = std::make_unique<TestImage>(random, type, e.images + e.target_image, e.channels + e.target_channel,
                                         e.height + e.target_y + (whole ? 0 : pick(0, 1)), e.width + e.target_x + right,
                                         c.values);
  e.target = c.target->view;
  return c;
}

std::vector<unsigned char> run(Case& c, const std::vector<unsigned char>& before, bool plain, size_t threads) {
  c.target->restore(before);
  plain ? run_plain(c.e, threads) : pool_cpu(c.e, threads);
  return c.target->bytes();
}

// Sums of n terms in two orders differ by at most 2 (n - 1) eps times the sum of magnitudes, of squares by that much of
// the result; a root halves it; quotients, products and the format's rounding (half an ulp, twice) come on top.
double bound(const Case& c, double want) {
  const double n = double(c.e.x.kernel * c.e.y.kernel), eps = 0x1p-23;
  const double store = c.e.target.type == PixelType::f16 ? 0x1p-10 * std::fabs(want) + 0x1p-24 : 0;
  if (c.e.kind == PoolKind::average) return 2 * eps * (n + 2) + store;  // terms are at most 1
  return eps * (n + 4) * std::fabs(want) + store;
}

bool is_nan_bits(double x) {
  return std::isnan(x);
}

// Equal bits; NaN equals NaN.
::testing::AssertionResult same(const Case& c, const std::vector<unsigned char>& a, const std::vector<unsigned char>& b,
                                bool exact) {
  const size_t size = bytes_of(c.e.target.type);
  for (size_t i = 0; i < c.target->elements; ++i) {
    if (std::memcmp(&a[i * size], &b[i * size], size) == 0) continue;
    const double x = c.target->at(a, i), y = c.target->at(b, i);
    if (is_nan_bits(x) && is_nan_bits(y)) continue;
    if (!exact && std::fabs(x - y) <= bound(c, y)) continue;
    return ::testing::AssertionFailure() << c.text() << ": element " << i << " is " << x << ", plain " << y;
  }
  return ::testing::AssertionSuccess();
}

void check_cases(int count, Aim aim, uint64_t seed, int* taken) {
  const bool global = aim == Aim::global;
  const auto accepts = global ? accepts_global : aim == Aim::direct ? accepts_direct<DirectForm::rows> : accepts_band;
  const auto aimed = global ? run_global : aim == Aim::direct ? run_direct<DirectForm::rows> : run_band;
  for (int i = 0; i < count; ++i) {
    Random random(seed + uint64_t(i));
    Case c = random_case(random, aim);
    const std::vector<unsigned char> before = c.target->bytes();
    const std::vector<unsigned char> want = run(c, before, true, 1);
    c.target->restore(before);
    const bool took = accepts(c.e);
    *taken += took ? 1 : 0;
    const bool exact = !global || c.e.kind == PoolKind::max || c.values == Values::integers;
    if (took) {
      aimed(c.e, 1);
      ASSERT_TRUE(same(c, c.target->bytes(), want, exact)) << "seed " << seed + uint64_t(i);
    }
    for (const size_t threads : {size_t{1}, testing::kThreadCounts[i % 4]}) {
      const std::vector<unsigned char> have = run(c, before, false, threads);
      ASSERT_TRUE(same(c, have, want, exact)) << "seed " << seed + uint64_t(i) << " threads " << threads;
    }
  }
}

TEST(MpsPoolingCpu, BandEqualsPlain) {
  testing::for_each_isa([] {
    int taken = 0;
    check_cases(2000, Aim::band, 1, &taken);
    EXPECT_GT(taken, 1000);  // most are meant for it
  });
}

TEST(MpsPoolingCpu, DirectEqualsPlain) {
  testing::for_each_isa([] {
    if (isa() < Isa::avx512) return;  // not taken there
    int taken = 0;
    check_cases(1500, Aim::direct, 50000, &taken);
    EXPECT_GT(taken, 700);
  });
}

TEST(MpsPoolingCpu, GlobalEqualsPlain) {
  testing::for_each_isa([] {
    int taken = 0;
    check_cases(1000, Aim::global, 100000, &taken);
    EXPECT_GT(taken, 500);
  });
}

// Large enough for non-temporal stores, in rows that are no multiple of a cache line, next to each other and
// with gaps; tasks on several threads share lines. From 12 on gradients whose rows are made of cache lines, which go
// there straight from registers, in both phases. From 36 on many small planes.
TEST(MpsPoolingCpu, LargeTargets) {
  testing::for_each_isa([] {
    for (int i = 0; i < 42; ++i) {
      const bool small = i >= 36, lines = i >= 12 && !small;
      Random random(500 + uint64_t(i));
      Case c;
      PoolEncode& e = c.e;
      c.e.backward = i >= 12 ? !small || i % 4 != 2 : i % 2, c.values = Values::integers;
      const PixelType type = i / 2 % 2 ? PixelType::f32 : PixelType::f16;
      const int64_t k = i % 3 == 0 && (c.e.backward || !small) ? 2 : 3,
                    s = i % 3 == 2 || (small && !c.e.backward) ? (lines ? 2 : 1) : 2,
                    gap = lines ? 4 * (i / 12 - 1) : i / 4 % 2;
      const int64_t w = small ? 13 : lines ? 112 : c.e.backward ? 101 : 101 * s;
      const int64_t h = small ? 11 : c.e.backward ? 67 : 67 * s;
      e.kind = static_cast<PoolKind>(lines ? i / 4 % 3 : random.below(3));
      e.x.kernel = e.y.kernel = k, e.x.stride = e.y.stride = s;
      e.y.first_centre = 1, e.x.first_centre = i >= 12 ? i % 2 : 1;
      e.images = 2, e.channels = (type == PixelType::f32 ? 44 : 88) * (small ? 62 : 1);
      const int64_t wx = (w - k) / s + 1, wy = (h - k) / s + 1;
      c.source = std::make_unique<TestImage>(random, type, e.images, e.channels, h, w, c.values);
      e.source = c.source->view;
      e.width = c.e.backward ? w : wx, e.height = c.e.backward ? h : wy;
      if (c.e.backward) {
        e.gradient_width = wx, e.gradient_height = wy;
        c.gradient = std::make_unique<TestImage>(random, type, e.images, e.channels, wy, wx, c.values);
        e.gradient = c.gradient->view;
      }
      e.target_x = gap;
      c.target = std::make_unique<TestImage>(random, type, e.images, e.channels, e.height, e.width + 2 * gap, c.values);
      e.target = c.target->view;
      ASSERT_GE(target_bytes(e), kStreamBytes);
      const std::vector<unsigned char> before = c.target->bytes();
      const std::vector<unsigned char> want = run(c, before, true, 2);
      c.target->restore(before);
      ASSERT_TRUE(accepts_band(e));
      run_band(e, 2);  // the one-pass kernels come first
      ASSERT_TRUE(same(c, c.target->bytes(), want, true)) << i;
      for (const size_t threads : testing::kThreadCounts) {
        if (i >= 12 && threads % 2 == 0) continue;
        ASSERT_TRUE(same(c, run(c, before, false, threads), want, true)) << i << " threads " << threads;
      }
    }
  });
}

// Sums are made tap by tap in row-major order in the common windows, by columns in others, as on the GPU
// (mps_pooling/window.h): another order on one of the two devices would fail only where there is a GPU
// (scripts/gpu-pooling).
TEST(MpsPoolingCpu, PlainAddsTapsInTheOrderOfTheGpu) {
  constexpr int64_t kWidth = 11, kHeight = 9;
  for (int run_of = 0; run_of < 4; ++run_of) {
    const PoolKind kind = run_of % 2 ? PoolKind::l2_norm : PoolKind::average;
    const bool columns = run_of >= 2;
    const int64_t k = columns ? 5 : 3;
    Random random(4000);
    Case c;
    PoolEncode& e = c.e;
    c.values = Values::reals;
    e.kind = kind, e.x.kernel = e.y.kernel = k, e.x.first_centre = e.y.first_centre = 1;
    e.images = 1, e.channels = 4, e.width = kWidth, e.height = kHeight;
    c.source = std::make_unique<TestImage>(random, PixelType::f32, 1, 4, kHeight, kWidth, c.values);
    c.target = std::make_unique<TestImage>(random, PixelType::f32, 1, 4, kHeight, kWidth, c.values);
    e.source = c.source->view, e.target = c.target->view;
    const std::vector<unsigned char> have = run(c, c.target->bytes(), true, 1);
    const auto* x = reinterpret_cast<const float*>(c.source->memory->data());
    for (int64_t i = 0; i < kHeight * kWidth * 4; ++i) {
      const int64_t lane = i % 4, column = i / 4 % kWidth, row = i / 4 / kWidth;
      float sum = 0, part = 0;
      for (int64_t t = 0; t < k * k; ++t) {
        const int64_t down = columns ? t % k : t / k, across = columns ? t / k : t % k;
        const int64_t y = row + 1 - k / 2 + down, at = column + 1 - k / 2 + across;
        if (y >= 0 && y < kHeight && at >= 0 && at < kWidth) {
          const float v = x[(y * kWidth + at) * 4 + lane];
          (columns ? part : sum) += kind == PoolKind::average ? v : v * v;
        }
        if (columns && down == k - 1) sum += part, part = 0;
      }
      const float want = kind == PoolKind::average ? sum / float(k * k) : std::sqrt(sum);
      ASSERT_EQ(float(c.target->at(have, size_t(i))), want) << "run " << run_of << ", element " << i;
    }
  }
}

// The GPU divides sums by the number of taps without a division (averaged in mps_pooling/cuda/shared.cuh): the same
// bits for every significand. Other numbers of taps are these times powers of 2.
TEST(MpsPoolingCpu, QuotientsWithoutDivision) {
  for (const float n : {3.0f, 9.0f}) {
    const float reciprocal = 1.0f / n;
    for (uint32_t significand = 0; significand < 1u << 23; ++significand) {
      const float sum = std::ldexp(static_cast<float>((1u << 23) + significand), -23), q = sum * reciprocal;
      ASSERT_EQ(std::fma(std::fma(-q, n, sum), reciprocal, q), sum / n) << sum << " / " << n;
    }
  }
}

// The plain loops with scratch for few rows, and for none, give what they give with scratch for all.
TEST(MpsPoolingCpu, PlainWithLittleScratch) {
  for (int i = 0; i < 300; ++i) {
    Random random(7000 + uint64_t(i));
    Case c = random_case(random, Aim::band);
    if (!c.e.backward) continue;
    const std::vector<unsigned char> before = c.target->bytes();
    const std::vector<unsigned char> want = run(c, before, true, 1);
    std::vector<double> scratch(4 * size_t(c.e.gradient_width) * random.below(6) + 2);
    void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 15) / 16 * 16);
    c.target->restore(before);
    for (int64_t n = 0; n < c.e.images; ++n) {
      for (int64_t slice = 0; slice < c.e.channels / 4; ++slice) {
        plain_rows(c.e, n, slice, 0, c.e.height, aligned, scratch.size() * 8 - 16);
      }
    }
    ASSERT_TRUE(same(c, c.target->bytes(), want, true));
  }
}

}  // namespace
}  // namespace bnns::mps
