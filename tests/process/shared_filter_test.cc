// Sixteen threads call one filter at a time, forward and backward, each with arrays of its own, and get what one thread
// alone gets; a filter is made, used and destroyed on different threads.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/process/amount.h"
#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

constexpr size_t kThreads = 16;

TEST(EveryLayer, OneFilterForSixteenThreads) {
  const size_t rounds = amount(2, 20, 1000);
  std::vector<Layers> sets;
  for (size_t t = 0; t < kThreads; ++t) sets.push_back(every_layer());
  size_t applies = 0, left_out = 0;
  std::atomic<size_t> different{0};
  for (size_t i = 0; i < sets[0].size(); ++i) {
    if (sets[0][i]->keeps_state) {  // a filter's statistics or random stream: the order of calls counts
      ++left_out;
      continue;
    }
    FilterOptions options = {};
    options.n_threads = 2;
    BNNSFilter filter = sets[0][i]->create ? sets[0][i]->create(&options) : nullptr;
    const std::vector<char> before = sets[0][i]->written();
    for (const Layer::Call& call : sets[0][i]->calls) EXPECT_EQ(call.run(filter, &options), 0) << BNNSExtLastError();
    const std::vector<char> expected = sets[0][i]->written();
    sets[0][i]->restore(before);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Layer& layer = *sets[t][i];
        for (size_t round = 0; round < rounds; ++round) {
          layer.restore(before);
          bool good = true;
          for (const Layer::Call& call : layer.calls) good = call.run(filter, &options) == 0 && good;
          different += !good || layer.written() != expected;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(different.exchange(0), 0u) << sets[0][i]->name;
    applies += kThreads * rounds * sets[0][i]->calls.size();
    BNNSFilterDestroy(filter);
  }
  RecordProperty("figure", std::to_string(applies) + " calls by 16 threads equal to one thread's; " +
                               std::to_string(left_out) + " layers with state left out");
}

// The thread that made a filter is gone before another uses it, and a third destroys it.
TEST(EveryLayer, BC47_MadeUsedAndDestroyedOnDifferentThreads) {
  constexpr size_t kUsers = 4;
  std::vector<Layers> sets;
  for (size_t t = 0; t < kUsers; ++t) sets.push_back(every_layer());
  const Layers alone = every_layer();
  FilterOptions options = {};
  options.n_threads = 2;
  for (size_t i = 0; i < alone.size(); ++i) {
    Layer& layer = *alone[i];
    if (!layer.create) continue;
    BNNSFilter filter = layer.create(&options);
    for (const Layer::Call& call : layer.calls) EXPECT_EQ(call.run(filter, &options), 0) << BNNSExtLastError();
    BNNSFilterDestroy(filter);
    const std::vector<char> expected = layer.written();
    std::thread([&] { filter = sets[0][i]->create(&options); }).join();
    std::vector<std::thread> users;
    std::atomic<size_t> different{0};
    for (size_t t = 0; t < (layer.keeps_state ? 1 : kUsers); ++t) {
      users.emplace_back([&, t] {
        for (const Layer::Call& call : sets[t][i]->calls) different += call.run(filter, &options) != 0;
        different += sets[t][i]->written() != expected;
      });
    }
    for (std::thread& user : users) user.join();
    EXPECT_EQ(different, 0u) << layer.name;
    std::thread([&] { BNNSFilterDestroy(filter); }).join();
  }
}

}  // namespace
}  // namespace bnns::testing
