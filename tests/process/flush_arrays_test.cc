// Every array of a caller lies flush against a page that faults, first at its end, then at its start: no call reads or
// writes a byte beyond what it was given, on any instruction set.

#include <gtest/gtest.h>

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

TEST(EveryLayer, NoByteBeyondTheArrays) {
  size_t calls = 0;
  for_each_isa([&] {
    for (const Memory place : {Memory::flush_end, Memory::flush_start}) {
      for (const auto& layer : every_layer(place)) {
        for (const size_t threads : {1, 3}) {
          SCOPED_TRACE(layer->name);
          FilterOptions options = {};
          options.n_threads = threads;
          BNNSFilter filter = layer->create ? layer->create(&options) : nullptr;
          for (const Layer::Call& call : layer->calls) {
            EXPECT_EQ(call.run(filter, &options), 0) << BNNSExtLastError();
            ++calls;
          }
          BNNSFilterDestroy(filter);
        }
      }
    }
  });
  RecordProperty("figure", std::to_string(calls) + " calls with each array against an unmapped page, 0 bytes beyond");
}

}  // namespace
}  // namespace bnns::testing
