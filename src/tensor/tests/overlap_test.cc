// check_in_place_or_apart against a comparison of every sample with every other, and how long it takes.

#include "src/tensor/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "src/core/error.h"

namespace bnns {
namespace {

Tensor bytes(size_t span) {
  Tensor t = vector_tensor(span, nullptr);
  t.type = BNNSDataTypeInt8;
  t.dense = false;  // so that equal bases are not taken for in place
  return t;
}

const void* at(uintptr_t address) {
  return reinterpret_cast<const void*>(address);
}

bool refused(uintptr_t a, size_t a_span, size_t a_step, uintptr_t b, size_t b_span, size_t b_step, size_t batch) {
  const Tensor x = bytes(a_span), y = bytes(b_span);
  try {
    check_in_place_or_apart({x, at(a), a_step, "in"}, {y, at(b), b_step, "out"}, batch, "test");
  } catch (const Error&) {
    return true;
  }
  return false;
}

TEST(Overlap, AgreesWithEverySampleAgainstEveryOther) {
  std::mt19937 random(1);
  const auto up_to = [&](size_t n) { return 1 + random() % n; };
  size_t met = 0;
  for (int round = 0; round < 40000; ++round) {
    const size_t batch = up_to(9), a_step = up_to(30), b_step = up_to(30);
    const size_t a_span = up_to(round % 2 ? 4 : 40), b_span = std::min(up_to(round % 2 ? 4 : 40), b_step);
    const uintptr_t a = 1000 + up_to(120), b = 1000 + up_to(120);
    if (a == b && a_span == b_span && (batch == 1 || a_step == b_step)) continue;  // in place
    bool expected = false;
    for (size_t i = 0; i < batch; ++i) {
      for (size_t j = 0; j < batch; ++j) {
        const uintptr_t p = a + i * a_step, q = b + j * b_step;
        expected |= p < q + b_span && q < p + a_span;
      }
    }
    met += expected;
    ASSERT_EQ(refused(a, a_span, a_step, b, b_span, b_step, batch), expected)
        << "a " << a << " +" << a_span << " by " << a_step << ", b " << b << " +" << b_span << " by " << b_step
        << ", batch " << batch;
  }
  EXPECT_GT(met, 4000u);
  EXPECT_LT(met, 36000u);
}

TEST(Overlap, TakesNoTimeForLargeBatches) {
  // The quickest of some rounds: the machine may do something else meanwhile.
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const size_t batch = size_t{1} << 40;
    EXPECT_FALSE(refused(4096, 4, 8, 4100, 4, 8, batch));    // they alternate
    EXPECT_FALSE(refused(4096, 4, 12, 4100, 4, 24, batch));  // so they do with another step
    EXPECT_TRUE(refused(4096, 4, 1023, 4100, 4, 1024, batch));
    EXPECT_TRUE(refused(4096, 1, (1 << 20) - 1, 4097, 1, 1 << 20, batch));
    EXPECT_FALSE(refused(4096, 4, 4, 4096 + 4 * batch, 4, 4, batch));  // one after the other
    quickest = std::min(quickest, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(quickest, std::chrono::milliseconds(10));
}

}  // namespace
}  // namespace bnns
