// What the tests of a table of implementations share (src/core/implementation.h): leaving entries out, asking which
// ones ran, and the README's table, which is written from the code.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "src/core/implementation.h"

namespace bnns::testing {

// Leaves entries out while it lives: names divided by commas.
class Skip {
 public:
  explicit Skip(const std::string& names) { set_skipped(names.c_str()); }
  ~Skip() { set_skipped(nullptr); }
  Skip(const Skip&) = delete;
  Skip& operator=(const Skip&) = delete;
};

// The names before entry k: with these left out, a problem that k accepts runs k.
template <class Entry, size_t N>
std::string names_before(const Entry (&table)[N], size_t k) {
  std::string names;
  for (size_t i = 0; i < k; ++i) names += (i ? "," : "") + std::string(table[i].name);
  return names;
}

// Table `title` of a README, `file` below the root of the sources, is that of the code. `make tables` runs the tests
// with BNNS_WRITE_TABLES=1, which writes it instead. The README has the place between two comments:
//   <!-- table: forward -->
//   <!-- end of table -->
template <class Entry, size_t N>
void expect_table_in_readme(const Entry (&table)[N], const std::string& title, const std::string& file) {
  const char* root = std::getenv("BNNS_SOURCE_DIR");
  const std::string path = std::string(root ? root : ".") + "/" + file;
  std::ifstream in(path);
  ASSERT_TRUE(in) << path << " cannot be read; run by ctest, or in the root of the sources";
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string first = "<!-- table: " + title + " -->\n", last = "<!-- end of table -->";
  const size_t begin = text.find(first);
  ASSERT_NE(begin, std::string::npos) << path << " has no line " << first;
  const size_t from = begin + first.size(), end = text.find(last, from);
  ASSERT_NE(end, std::string::npos) << path << " has no end of table " << title;
  std::string wanted = "| algorithm | takes |\n| --- | --- |\n";
  for (const Entry& entry : table) wanted += "| `" + std::string(entry.name) + "` | " + entry.when + " |\n";
  if (std::getenv("BNNS_WRITE_TABLES")) {
    text.replace(from, end - from, wanted);
    std::ofstream(path) << text;
    return;
  }
  EXPECT_EQ(text.substr(from, end - from), wanted) << "table " << title << " of " << file << ": run make tables";
}

}  // namespace bnns::testing
