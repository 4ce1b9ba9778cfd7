// The layers that `bnns explain` knows, each with the function of the C interface that makes it.
#pragma once

#include <bnns/bnns.h>
#include <bnns/bnns_extensions.h>
#include <sys/types.h>

#include <vector>

#include "tools/bnns/explain/fields.h"

namespace bnns::tool {

struct Layer {
  const char* name;
  std::vector<BNNSExtPass> passes;  // that such a layer has
  // Reads `parameters` and creates the filter; NULL where the library refuses. Throws DataError.
  BNNSFilter (*create)(const Json& parameters, Zeros& zeros, const BNNSFilterParameters& options);
  // The bytes that one call needs beside its tensors; nullptr where no function tells.
  ssize_t (*workspace)(const Json& parameters, Zeros& zeros, const BNNSFilterParameters& options);
  const char* example;  // a complete description
};
const std::vector<Layer>& layers();
std::vector<std::string> layer_names();

}  // namespace bnns::tool
