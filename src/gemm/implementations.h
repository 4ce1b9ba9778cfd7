// The algorithms of the GEMM core, in the order in which they are asked. src/core/implementation.h says how such a
// table works, README.md shows it.
#pragma once

#include <cstddef>

#include "src/core/implementation.h"
#include "src/gemm/plan.h"

namespace bnns::detail {

struct GemmImplementation {
  const char* name;
  const char* when;
  bool (*accepts)(const GemmCall& call);
  void (*run)(const GemmCall& call, float* workspace);
  size_t (*workspace_floats)(const GemmCall& call);
  bool by_isa;  // which of these entries runs depends on the instruction set, and so does the workspace
};

inline constexpr size_t kGemmEntries = 8;
extern const GemmImplementation kGemmImplementations[kGemmEntries];

}  // namespace bnns::detail
