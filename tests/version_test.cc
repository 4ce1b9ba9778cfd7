// One version: CMake's project, the header's macros, the library.

#include <gtest/gtest.h>

#include <string>

#include "bnns/bnns_extensions.h"

namespace {

#if OPENBNNS_VERSION < 100 || OPENBNNS_VERSION_MAJOR < 0
#error "the version is a number that the preprocessor compares"
#endif

TEST(Version, ProjectHeaderAndLibraryAgree) {
  EXPECT_STREQ(OPENBNNS_VERSION_TEXT, BNNS_PROJECT_VERSION);
  EXPECT_STREQ(BNNSExtVersion(), BNNS_PROJECT_VERSION);
  EXPECT_EQ(std::to_string(OPENBNNS_VERSION_MAJOR) + "." + std::to_string(OPENBNNS_VERSION_MINOR) + "." +
                std::to_string(OPENBNNS_VERSION_PATCH),
            BNNS_PROJECT_VERSION);
  EXPECT_EQ(OPENBNNS_VERSION, OPENBNNS_VERSION_MAJOR * 10000 + OPENBNNS_VERSION_MINOR * 100 + OPENBNNS_VERSION_PATCH);
  EXPECT_LT(OPENBNNS_VERSION_MINOR, 100);
  EXPECT_LT(OPENBNNS_VERSION_PATCH, 100);
}

}  // namespace
