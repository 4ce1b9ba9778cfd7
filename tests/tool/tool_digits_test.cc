// The digit generator, its random numbers, and SHA-256.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "tools/bnns/data/digits.h"
#include "tools/bnns/data/prng.h"
#include "tools/bnns/data/sha256.h"

namespace bnns::tool {
namespace {

// The examples of FIPS 180-4, and the lengths around the padding's edges against sums worked by another program
// (Python's hashlib on n times "a").
TEST(Sha256, KnownDigests) {
  const auto of = [](const std::string& text) { return sha256_hex(text.data(), text.size()); };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(55, 'a')), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(of(std::string(56, 'a')), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(of(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(of(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The first outputs of SplitMix64 from state 1234567, worked by hand-written Python from the paper's recurrence.
TEST(Prng, MixIsSplitMix64) {
  std::uint64_t state = 1234567;
  const std::array<std::uint64_t, 3> expected = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u};
  for (std::uint64_t value : expected) EXPECT_EQ(mix64(state += 0x9e3779b97f4a7c15u), value);
}

TEST(Prng, MomentsAndRange) {
  Prng random(7);
  double sum = 0, square = 0, uniform_sum = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double v = static_cast<double>(random.normal()), u = static_cast<double>(random.uniform());
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += v, square += v * v, uniform_sum += u;
  }
  // Five standard errors: 5 / sqrt(n) for the mean, times sqrt(2) for the variance, times 0.29 for uniforms.
  const double error = 5 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(sum / n, 0.0, error);
  EXPECT_NEAR(square / n, 1.0, error * std::sqrt(2.0));
  EXPECT_NEAR(uniform_sum / n, 0.5, error * 0.29);
}

TEST(Prng, ShuffleIsAPermutation) {
  std::vector<std::uint32_t> values(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) values[i] = i;
  Prng(3).shuffle(values);
  std::vector<bool> seen(1000);
  std::size_t unmoved = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_LT(values[i], 1000u);
    EXPECT_FALSE(seen[values[i]]);
    seen[values[i]] = true;
    unmoved += values[i] == i ? 1 : 0;
  }
  EXPECT_LT(unmoved, 12u);  // Poisson with mean 1: twelve or more has a chance of 1e-9
}

TEST(Digits, ThreadsChangeNothing) {
  const Dataset one = draw_digits(5, 0, 103, 1);
  for (std::size_t threads : {2, 3, 8, 200}) {
    const Dataset many = draw_digits(5, 0, 103, threads);
    EXPECT_EQ(many.pixels, one.pixels) << threads << " threads";
    EXPECT_EQ(many.labels, one.labels);
  }
}

// The same bytes with every compiler, optimisation level and machine: nothing but exact arithmetic is used.
TEST(Digits, BytesAreFixedBySeed) {
  const Dataset set = draw_digits(1, 0, 1000, 2);
  EXPECT_EQ(sha256_hex(set.pixels.data(), set.pixels.size()),
            "faa51af13d7353c5c6a012590e2cdf3ef3836ec95f5c668d038c5adef8fb7bff");
}

TEST(Digits, SeedsAndStreamsDiffer) {
  const Dataset a = draw_digits(1, 0, 10, 1), b = draw_digits(2, 0, 10, 1), c = draw_digits(1, 1, 10, 1);
  EXPECT_NE(a.pixels, b.pixels);
  EXPECT_NE(a.pixels, c.pixels);
}

// Every class has its share; every picture has ink, is mostly paper, and keeps off the border.
TEST(Digits, LookLikeDigits) {
  const Dataset set = draw_digits(9, 0, 2000, 2);
  std::array<std::size_t, kClasses> count{};
  std::size_t touching = 0;
  for (std::size_t i = 0; i < set.count(); ++i) {
    ++count[set.labels[i]];
    std::size_t ink = 0;
    bool border = false;
    for (std::size_t k = 0; k < set.inputs(); ++k) {
      ink += set.image(i)[k];
      const std::size_t y = k / kDigitSide, x = k % kDigitSide, last = kDigitSide - 1;
      border = border || (set.image(i)[k] > 140 && (y == 0 || x == 0 || y == last || x == last));  // 140: above specks
    }
    EXPECT_GT(ink, 12u * 255) << "digit " << i;  // the faintest bar: 16 pixels long, 1.1 wide, 0.85 dark
    EXPECT_LT(ink, set.inputs() * 255 / 2) << "digit " << i;
    touching += border ? 1 : 0;
  }
  for (std::size_t n : count) EXPECT_EQ(n, 200u);
  EXPECT_LT(touching, 40u);  // two in a hundred: a 20-pixel digit moved by three deviations
}

}  // namespace
}  // namespace bnns::tool
