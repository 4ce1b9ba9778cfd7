// Tables of algorithms: the first entry that accepts runs, BNNS_SKIP leaves entries out, calls record what they chose.

#include "src/core/implementation.h"

#include <cstdlib>

#include "src/core/log.h"
#include "tests/support/implementations.h"

namespace bnns {
namespace {

using testing::Skip;
using Run = int (*)();
bool is_small(const int& n) {
  return n < 10;
}
bool is_even(const int& n) {
  return n % 2 == 0;
}
constexpr Implementation<int, Run> kTable[] = {
    {"op/fast/small", "n < 10", is_small, [] { return 1; }},
    {"op/fast/even", "even n", is_even, [] { return 2; }},
    {"op/plain", "anything", accepts_any<int>, [] { return 3; }},
};

TEST(Implementation, FirstThatAcceptsRuns) {
  EXPECT_EQ(choose(kTable, 4).run(), 1);
  EXPECT_EQ(choose(kTable, 12).run(), 2);
  EXPECT_EQ(choose(kTable, 13).run(), 3);
}

TEST(Implementation, NamesAreLeftOut) {
  {
    const Skip skip("op/fast/small");
    EXPECT_EQ(find(kTable, 4).run(), 2);
    EXPECT_EQ(find(kTable, 5).run(), 3);
  }
  {
    const Skip skip("nothing,op/fast");  // a folder
    EXPECT_EQ(find(kTable, 4).run(), 3);
  }
  {
    const Skip skip("op/fas,op/fast/smaller,,op/plain,op");  // no folder, no entry, nothing; the last entry stays
    EXPECT_EQ(find(kTable, 12).run(), 3);
  }
  {
    const Skip skip("op/fas,op/fast/smaller,");
    EXPECT_EQ(find(kTable, 4).run(), 1);
  }
  EXPECT_EQ(find(kTable, 4).run(), 1);
  EXPECT_EQ(testing::names_before(kTable, 2), "op/fast/small,op/fast/even");
}

TEST(Implementation, EnvironmentIsReadAndTold) {
  std::string heard;
  set_log_callback(
      [](BNNSExtLogLevel, const char* message, void* user) { *static_cast<std::string*>(user) += message; }, &heard);
  setenv("BNNS_SKIP", "op/fast/even", 1);
  set_skipped(nullptr);  // reads it again
  EXPECT_EQ(find(kTable, 12).run(), 3);
  EXPECT_EQ(find(kTable, 14).run(), 3);
  unsetenv("BNNS_SKIP");
  set_skipped(nullptr);
  set_log_callback(nullptr, nullptr);
  EXPECT_EQ(heard, "BNNS_SKIP leaves out op/fast/even");
  EXPECT_EQ(find(kTable, 12).run(), 2);
}

TEST(Implementation, CallsRecord) {
  char text[64];
  const CallRecord outer;
  choose(kTable, 12);
  {
    const CallRecord inner;
    inner.join(text, sizeof text);
    EXPECT_STREQ(text, "-");
    choose(kTable, 4);
    choose(kTable, 13);
    choose(kTable, 4);
    inner.join(text, sizeof text);
    EXPECT_STREQ(text, "op/fast/small+op/plain");
    inner.join(text, 9);
    EXPECT_STREQ(text, "op/fast/");
  }
  find(kTable, 13);
  EXPECT_EQ(outer.size(), 1u);
  EXPECT_TRUE(outer.has("op/fast/even"));
}

}  // namespace
}  // namespace bnns
