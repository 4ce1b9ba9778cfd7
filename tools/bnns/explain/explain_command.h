// `bnns explain`: what the library would do with a layer, or why it refuses it.
#pragma once

#include <string>

namespace bnns::tool {

struct ExplainCommand {
  std::string file;     // a description in JSON; "-": stdin
  std::string example;  // the layer whose example is printed instead
  bool json = false;
};

// Returns the exit code: 0, or 1 where the library refuses the layer. Throws UsageError, and DataError for a
// description that cannot be read.
int run_explain(const ExplainCommand& command);

}  // namespace bnns::tool
