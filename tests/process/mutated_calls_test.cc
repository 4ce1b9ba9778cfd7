// Every call of the table with one number of its arguments changed to nonsense: a field of a descriptor, an enumerator,
// a flag, a pointer to NULL. The call works, or is refused with a reason that names the function, and has written
// nothing. Never a signal, never a hang.

#include <gtest/gtest.h>
#include <time.h>

#include <numeric>

#include "tests/process/amount.h"
#include "tests/process/every_layer.h"
#include "tests/process/mutation.h"

namespace bnns::testing {
namespace {

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Tally {
  size_t calls = 0, refused = 0;
};

// Calls `call` (nonzero: refused) with numbers of its arguments changed, one at a time: all of them, or `most` drawn.
template <class Call>
void change_numbers(Tally& tally, Layer& layer, const std::string& title, size_t most, Call&& call) {
  const std::vector<char> before = layer.written();
  Random random(title.size() + 17);
  // How many numbers there are is known after a call.
  mutation = {};
  mutation.armed = true;
  mutation.target = SIZE_MAX;
  call();
  mutation.armed = false;
  layer.restore(before);
  std::vector<size_t> choices(mutation.numbers * Mutation::kValues);
  std::iota(choices.begin(), choices.end(), size_t{0});
  for (size_t i = choices.size(); i > 1; --i) std::swap(choices[i - 1], choices[random.below(i)]);
  for (size_t i = 0, made = 0; i < choices.size() && made < most; ++i) {
    mutation.target = choices[i] / Mutation::kValues, mutation.value = choices[i] % Mutation::kValues;
    mutation.changed = false, mutation.armed = true, mutation.numbers = 0, mutation.functions.clear();
    BNNSExtClearLastError();
    const double began = cpu_seconds();
    const bool refused = call();
    const double seconds = cpu_seconds() - began;
    mutation.armed = false;
    if (mutation.changed) ++made, ++tally.calls;
    if (!mutation.changed || !refused) {
      layer.restore(before);
      continue;
    }
    ++tally.refused;
    // The function that was called says why, or one after it that is given what it returned.
    const std::string reason = BNNSExtLastError(), name = reason.substr(0, reason.find(':'));
    EXPECT_NE(mutation.functions.find(name + ","), std::string::npos)
        << title << ": " << mutation.what << ": '" << reason << "'";
    EXPECT_TRUE(layer.written() == before) << title << ": " << mutation.what << " was refused and has written";
    EXPECT_LT(seconds, 0.5) << title << ": " << mutation.what << ": " << reason;
    layer.restore(before);
  }
}

TEST(EveryLayer, ChangedCallsAreRefusedOrWork) {
  const size_t most = amount(40, 200, SIZE_MAX);
  Tally tally;
  for (const auto& layer : every_layer(Memory::spare)) {
    FilterOptions options = {};
    options.n_threads = 2;
    if (layer->create) {
      change_numbers(tally, *layer, layer->name + ", creation", most, [&] {
        BNNSFilter filter = layer->create(&options);
        BNNSFilterDestroy(filter);
        return !filter;
      });
    }
    for (const Layer::Call& call : layer->calls) {
      BNNSFilter filter = layer->create ? layer->create(&options) : nullptr;
      change_numbers(tally, *layer, layer->name + ", " + call.name, most,
                     [&] { return call.run(filter, &options) != 0; });
      BNNSFilterDestroy(filter);
    }
  }
  EXPECT_GT(tally.calls, 20'000u);
  RecordProperty("figure", std::to_string(tally.calls) + " changed calls, " + std::to_string(tally.refused) +
                               " refused with a reason");
}

}  // namespace
}  // namespace bnns::testing
