// The check at load, with the words of cpuid of CPUs old and new; and, where qemu-user is installed, on an old one.

#include "src/core/process/minimum_cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace bnns {
namespace {

constexpr unsigned kSse3 = 1u << 0, kSsse3 = 1u << 9, kCx16 = 1u << 13, kSse41 = 1u << 19, kSse42 = 1u << 20,
                   kPopcnt = 1u << 23, kLahf = 1u << 0;
constexpr unsigned kAll = kSse3 | kSsse3 | kCx16 | kSse41 | kSse42 | kPopcnt;

TEST(MinimumCpu, EveryFeatureIsNeeded) {
  EXPECT_TRUE(has_minimum({kAll, kLahf}));
  EXPECT_TRUE(has_minimum({~0u, ~0u}));
  for (const unsigned feature : {kSse3, kSsse3, kCx16, kSse41, kSse42, kPopcnt}) {
    EXPECT_FALSE(has_minimum({kAll & ~feature, kLahf})) << feature;
    EXPECT_FALSE(has_minimum({~feature, ~0u})) << feature;
  }
  EXPECT_FALSE(has_minimum({kAll, 0}));
}

TEST(MinimumCpuDeathTest, OneLineAndStatus127) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // A Core 2 Duo: SSE4.1 at most, no POPCNT.
  EXPECT_EXIT(require_minimum({kSse3 | kSsse3 | kCx16 | kSse41, kLahf}), ::testing::ExitedWithCode(127),
              "^OpenBNNS needs a CPU with SSE4.2 and POPCNT \\(x86-64-v2[^\n]*lacks them\n$");
}

// This very binary on an emulated Core 2 Duo: the constructor runs before anything else does.
TEST(MinimumCpu, BinaryOnAnOldCpu) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory map does not fit into the emulator; the plain build proves this";
#endif
  if (std::system("command -v qemu-x86_64 > /dev/null") != 0) GTEST_SKIP() << "needs qemu-x86_64 (package qemu-user)";
  char self[4096] = "";
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  const std::string run = std::string("qemu-x86_64 -cpu core2duo ") + self + " --gtest_list_tests 2>&1";
  FILE* pipe = popen(run.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (char piece[512]; fgets(piece, sizeof piece, pipe);) output += piece;
  const int status = pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 127) << status;
  EXPECT_EQ(output.find("OpenBNNS needs a CPU with SSE4.2"), output.rfind("OpenBNNS needs a CPU with SSE4.2"));
  EXPECT_NE(output.find("OpenBNNS needs a CPU with SSE4.2"), output.npos) << output;
}

}  // namespace
}  // namespace bnns
