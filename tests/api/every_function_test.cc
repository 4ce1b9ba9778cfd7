// Every function of the C API succeeds on a real case and fails with a reason on a bad one: the walk itself. The cases
// are in the other files of this name.

#include <map>
#include <string>

#include "tests/api/every_function_testing.h"

namespace bnns::testing {
namespace {

std::vector<Entry> all_entries() {
  std::vector<Entry> all;
  for (const auto& group : {create_entries(), create_shape_entries(), apply_entries(), backward_entries(),
                            gradient_entries(), parameter_entries(), matrix_entries(), tensor_entries(),
                            search_entries(), sparse_entries(), random_entries()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

const char* const kSymbols[] = {
#define BNNS_SYMBOL(name, group, types, note) #name,
#include "src/c_api/symbols.h"
};

class EveryFunction : public ::testing::TestWithParam<Entry> {};

TEST_P(EveryFunction, Succeeds) {
  BNNSExtClearLastError();
  GetParam().good();
  EXPECT_STREQ(BNNSExtLastError(), "");
}

TEST_P(EveryFunction, FailsWithAReason) {
  const Entry& entry = GetParam();
  BNNSExtClearLastError();
  entry.bad();
  const std::string reason = BNNSExtLastError(), prefix = std::string(entry.name) + ": ";
  if (entry.harmless) {
    EXPECT_EQ(reason, "") << entry.harmless;
    return;
  }
  EXPECT_EQ(reason.substr(0, prefix.size()), prefix);
  EXPECT_GT(reason.size(), prefix.size());
  EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
}

INSTANTIATE_TEST_SUITE_P(All, EveryFunction, ::testing::ValuesIn(all_entries()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(EveryFunctionList, EverySymbolHasOneEntry) {
  std::map<std::string, int> entries;
  for (const Entry& entry : all_entries()) ++entries[entry.name];
  EXPECT_EQ(std::size(kSymbols), 97u);
  for (const char* symbol : kSymbols) {
    EXPECT_EQ(entries[symbol], 1) << symbol << ": number of entries";
    entries.erase(symbol);
  }
  for (const auto& [name, count] : entries) ADD_FAILURE() << name << " is no symbol of the list";
}

}  // namespace
}  // namespace bnns::testing
