// The caller's floating-point mode: no call changes it, none depends on it, and subnormal numbers do not slow a call
// down.

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <string>

#include "tests/process/every_layer.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace bnns::testing {
namespace {

constexpr unsigned kDefaultMode = 0x1f80, kUpward = 0x5f80, kTowardZeroFlushing = 0xffc0, kTrapping = 0x1000;
constexpr unsigned kRaised = 0x0001;  // "invalid", which the caller has not looked at yet

// What all calls of the layer write in a mode, from its creation on.
std::vector<char> run_in(Layer& layer, unsigned mode, size_t threads) {
  const std::vector<char> before = layer.written();
  FilterOptions options = {};
  options.n_threads = threads;
  _mm_setcsr(mode);
  BNNSFilter filter = layer.create ? layer.create(&options) : nullptr;
  EXPECT_EQ(_mm_getcsr(), mode) << layer.name << ": creation";
  for (const Layer::Call& call : layer.calls) {
    const int status = call.run(filter, &options);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(kDefaultMode);
    EXPECT_EQ(after, mode) << layer.name << ": " << call.name;
    EXPECT_EQ(status, 0) << BNNSExtLastError();
    _mm_setcsr(mode);
  }
  BNNSFilterDestroy(filter);
  EXPECT_EQ(_mm_getcsr(), mode) << layer.name << ": destruction";
  _mm_setcsr(kDefaultMode);
  std::vector<char> written = layer.written();
  layer.restore(before);
  return written;
}

TEST(FloatMode, NoCallChangesItOrDependsOnIt) {
  for (const auto& layer : every_layer()) {
    const std::vector<char> expected = run_in(*layer, kDefaultMode, 1);
    for (const unsigned mode : {kUpward, kTowardZeroFlushing, kTrapping, kDefaultMode | kRaised}) {
      for (const size_t threads : {size_t{1}, kTableThreads}) {
        EXPECT_TRUE(run_in(*layer, mode, threads) == expected)
            << layer->name << ": other results in mode " << mode << " with " << threads << " threads";
      }
    }
  }
}

TEST(FloatMode, RefusedCallsKeepIt) {
  unsigned seen = 0;
  BNNSExtSetLogCallback([](BNNSExtLogLevel, const char*, void* mode) { *static_cast<unsigned*>(mode) = _mm_getcsr(); },
                        &seen);
  float x = 0, y = 0;
  _mm_setcsr(kUpward);
  EXPECT_NE(BNNSFilterApply(nullptr, &x, &y), 0);
  EXPECT_EQ(_mm_getcsr(), kUpward);
  EXPECT_EQ(BNNSFilterCreateLayerActivation(nullptr, nullptr), nullptr);
  EXPECT_EQ(_mm_getcsr(), kUpward);
  EXPECT_EQ(seen, kUpward) << "in the log callback";
  _mm_setcsr(kDefaultMode);
  BNNSExtSetLogCallback(nullptr, nullptr);
}

// Seconds of the quickest of some rounds over all calls.
double seconds(Layer& layer, BNNSFilter filter, const FilterOptions& options) {
  double best = 1;
  for (int round = 0; round < 9; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (const Layer::Call& call : layer.calls) call.run(filter, &options);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// The promise is 2; 4 leaves room for what else the machine does. Without the library's mode up to 190 were seen.
TEST(FloatMode, SubnormalNumbersAreNotSlow) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "times under a sanitizer say nothing";
#endif
  FilterOptions options = {};
  options.n_threads = 1;
  const Layers normal = every_layer(), subnormal = every_layer();
  for (size_t i = 0; i < normal.size(); ++i) {
    subnormal[i]->make_inputs_subnormal();
    BNNSFilter filter = normal[i]->create ? normal[i]->create(&options) : nullptr;
    BNNSFilter slow = subnormal[i]->create ? subnormal[i]->create(&options) : nullptr;
    double ratio = 1e9;
    for (int attempt = 0; attempt < 8 && ratio > 2; ++attempt) {
      ratio = std::min(ratio, seconds(*subnormal[i], slow, options) / seconds(*normal[i], filter, options));
    }
    if (std::getenv("BNNS_TEST_RATIOS")) std::printf("%5.2f %s\n", ratio, normal[i]->name.c_str());
    EXPECT_LE(ratio, 4) << normal[i]->name;
    BNNSFilterDestroy(filter);
    BNNSFilterDestroy(slow);
  }
}

}  // namespace
}  // namespace bnns::testing
#endif
