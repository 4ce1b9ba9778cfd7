// The tables of names against include/bnns/bnns_constants.h, read as text: an enumerator that is added there is missed
// here.

#include "src/core/enum_name.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#ifndef BNNS_SOURCE_DIR
#error "BNNS_SOURCE_DIR is the root of the repository"
#endif

namespace bnns {
namespace {

using Names = std::map<std::string, std::map<std::string, uint32_t>>;  // enumeration -> enumerator -> value

Names names_of_header() {
  std::ifstream file(BNNS_SOURCE_DIR "/include/bnns/bnns_constants.h");
  Names names;
  std::string line, type;
  const std::regex begin(R"(^BNNS_ENUM\((\w+)\) \{)"), entry(R"(^\s*(BNNS\w+)\s*=\s*(0x[0-9a-f]+|\d+))");
  while (std::getline(file, line)) {
    std::smatch match;
    if (std::regex_search(line, match, begin)) type = match[1];
    if (std::regex_search(line, match, entry)) {
      names[type][match[1]] = static_cast<uint32_t>(std::stoul(match[2], nullptr, 0));
    }
  }
  return names;
}

TEST(EnumName, EveryEnumeratorOfTheHeaderHasItsName) {
  const Names header = names_of_header();
  ASSERT_GE(header.size(), 30u);
  Names tables;
  for (const EnumTable* table : enum_tables()) {
    for (const EnumName& name : table->names) tables[table->type][name.name] = name.value;
  }
  for (const auto& [type, names] : header) EXPECT_EQ(tables[type], names) << type;
  EXPECT_EQ(tables.size(), header.size());
}

TEST(EnumName, NamesAndNumbers) {
  EXPECT_STREQ(enum_text(BNNSDataLayoutVector).text, "BNNSDataLayoutVector (0x10000)");
  EXPECT_STREQ(enum_text(BNNSDataTypeFloat32).text, "BNNSDataTypeFloat32 (0x10020)");
  EXPECT_STREQ(enum_text(BNNSPoolingFunctionAverage).text, "BNNSPoolingFunctionAverageCountIncludePadding (1)");
  EXPECT_STREQ(enum_text(BNNSPoolingFunction(9)).text, "9, which is no BNNSPoolingFunction");
  EXPECT_STREQ(enum_text(BNNSDataLayout(0)).text, "0x0, which is no BNNSDataLayout");
  const auto longest = enum_text(BNNSOptimizerSGDMomentumVariant(0xffffffff));
  EXPECT_STREQ(longest.text, "4294967295, which is no BNNSOptimizerSGDMomentumVariant");
}

}  // namespace
}  // namespace bnns
