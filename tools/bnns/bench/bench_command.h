// `bnns bench`: how fast operators are on this machine.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bnns::tool {

struct BenchCommand {
  std::string family;   // "": all
  std::string problem;  // one line instead of a family's
  bool one_problem = false;
  std::string json;  // a file; "-": stdout
  std::size_t threads = 0;
  float seconds = 0.3f;  // for each line of the table
};

// Prints one line for each call that was timed. Returns the exit code; throws UsageError for a family or a problem that
// there is not.
int run_bench(const BenchCommand& command);

}  // namespace bnns::tool
