// A process that makes and destroys layers for ever, or meets new shapes all the time, does not grow.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "tests/process/amount.h"
#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  const int read = std::fscanf(file, "%zu %zu", &total, &resident);
  std::fclose(file);
  return read == 2 ? resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

constexpr size_t kMegabyte = 1 << 20;

void live_once(Layer& layer, const FilterOptions& options) {
  BNNSFilter filter = layer.create ? layer.create(&options) : nullptr;
  for (const Layer::Call& call : layer.calls) EXPECT_EQ(call.run(filter, &options), 0) << BNNSExtLastError();
  BNNSFilterDestroy(filter);
}

TEST(Growth, LayersMadeUsedAndDestroyed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  if (!resident_bytes()) GTEST_SKIP() << "/proc/self/statm cannot be read";
  const Layers layers = every_layer();
  FilterOptions options = {};
  options.n_threads = 2;
  for (int warm = 0; warm < 3; ++warm) {
    for (const auto& layer : layers) live_once(*layer, options);
  }
  const size_t cycles = amount(3, 20, 2000), before = resident_bytes();
  for (size_t cycle = 0; cycle < cycles; ++cycle) {
    for (const auto& layer : layers) live_once(*layer, options);
  }
  const size_t after = resident_bytes(), grown = after > before ? after - before : 0;
  EXPECT_LT(grown, kMegabyte);
  RecordProperty("figure", std::to_string(cycles * layers.size()) +
                               " layers made, used and destroyed: " + std::to_string(grown >> 10) + " KiB more");
}

TEST(Growth, NewShapesAllTheTime) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  if (!resident_bytes()) GTEST_SKIP() << "/proc/self/statm cannot be read";
  constexpr size_t kLargest = 317;  // squared: 100,489 shapes
  std::vector<float> x(kLargest * kLargest), y(2 * kLargest * kLargest), w(kLargest * 2 * kLargest * 9, 0.5f);
  // Two families in turn: a fully connected layer of each size, a convolution of each picture.
  const auto one = [&](size_t number) {
    const size_t a = 1 + number % kLargest, b = 1 + number / kLargest % kLargest;
    BNNSFilter filter;
    if (number % 2) {
      BNNSLayerParametersFullyConnected p = {};
      p.i_desc = vector_descriptor(a, nullptr);
      p.o_desc = vector_descriptor(b, nullptr);
      p.w_desc = row_major(a, b, w.data());
      filter = BNNSFilterCreateLayerFullyConnected(&p, nullptr);
    } else {
      BNNSLayerParametersConvolution p = {};
      p.i_desc = image(1, a, b);
      p.o_desc = image(2, a, b);
      p.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 1, 2}, w.data());
      p.x_stride = p.y_stride = 1;
      p.x_padding = p.y_padding = 1;
      filter = BNNSFilterCreateLayerConvolution(&p, nullptr);
    }
    ASSERT_NE(filter, nullptr) << BNNSExtLastError();
    EXPECT_EQ(BNNSFilterApply(filter, x.data(), y.data()), 0) << BNNSExtLastError();
    BNNSFilterDestroy(filter);
  };
  const size_t shapes = amount(3'200, 20'000, 100'000);
  for (size_t i = 0; i < 400; ++i) one(i * 251);
  const size_t before = resident_bytes();
  for (size_t i = 0; i < shapes; ++i) one(i * 7);
  const size_t after = resident_bytes(), grown = after > before ? after - before : 0;
  EXPECT_LT(grown, kMegabyte);
  RecordProperty("figure",
                 std::to_string(shapes) + " layers of changing shape: " + std::to_string(grown >> 10) + " KiB more");
}

}  // namespace
}  // namespace bnns::testing
