// BNNS_MPS_DEVICE with a text that means nothing is named on stderr, in a process of its own.

#include <gtest/gtest.h>

#include <cstdlib>

#include "Metal/Metal.hpp"

namespace {

[[noreturn]] void ask_with(const char* text) {
  unsetenv("BNNS_VERBOSE");
  setenv("BNNS_MPS_DEVICE", text, 1);
  MTL::CreateSystemDefaultDevice()->release();
  std::exit(0);
}

TEST(MpsSetting, DeviceThatMeansNothingIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ask_with("gpu"), ::testing::ExitedWithCode(0),
              "^openbnns: BNNS_MPS_DEVICE=gpu in the environment is ignored, expected cpu");
  EXPECT_EXIT(ask_with("cpu"), ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
