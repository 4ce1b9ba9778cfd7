// Every call gives the same bits with any number of threads, however often it is repeated, on each instruction set.

#include <gtest/gtest.h>

#include "tests/process/amount.h"
#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

// What all calls of the layer write, with a filter of their own.
std::vector<char> run_once(Layer& layer, size_t threads) {
  const std::vector<char> before = layer.written();
  FilterOptions options = {};
  options.n_threads = threads;
  BNNSFilter filter = layer.create ? layer.create(&options) : nullptr;
  for (const Layer::Call& call : layer.calls) EXPECT_EQ(call.run(filter, &options), 0) << BNNSExtLastError();
  BNNSFilterDestroy(filter);
  std::vector<char> written = layer.written();
  layer.restore(before);
  return written;
}

TEST(EveryLayer, SameBitsWithAnyThreadsAndEachTime) {
  const size_t repetitions = amount(1, 5, 100);
  size_t runs = 0, different = 0;
  for_each_isa([&] {
    for (const auto& layer : every_layer()) {
      const std::vector<char> expected = run_once(*layer, 1);
      for (size_t repetition = 0; repetition < repetitions; ++repetition) {
        for (const size_t threads : {1, 2, 3, 4, 7, 8, 16}) {
          ++runs;
          const bool same = run_once(*layer, threads) == expected;
          different += !same;
          EXPECT_TRUE(same) << layer->name << " with " << threads << " threads";
        }
      }
    }
  });
  RecordProperty("figure", std::to_string(runs) + " runs of a layer with 1 to 16 threads, " +
                               std::to_string(different) + " with other bits");
}

}  // namespace
}  // namespace bnns::testing
