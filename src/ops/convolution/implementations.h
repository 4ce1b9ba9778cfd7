// The algorithms of convolution, by name and in the order in which they are asked: the first that accepts runs, the
// last of each table accepts everything (src/core/implementation.h).
#pragma once

#include "src/core/call_scratch.h"
#include "src/core/implementation.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

struct MapImplementation {
  const char* name;
  const char* when;
  bool (*accepts)(const PatchMap& p);
  void (*run)(const PatchMap& p, CallScratch& scratch);
  SinkParts (*sink_parts)(const PatchMap& p);  // null: hands over no blocks
};

// Down, and up without a stride, or one phase of it.
extern const MapImplementation kMaps[12];
// Up over a stride; its phases take theirs from kMaps.
extern const MapImplementation kStridedMaps[5];

// Integer data, which no other can take.
extern const MapImplementation kIntegerMaps[1];

struct WeightImplementation {
  const char* name;
  const char* when;
  bool (*accepts)(const WeightMap& p);
  void (*run)(const WeightMap& p, CallScratch& scratch);
  bool stores_dw;  // writes dw itself, bf16 or f32, instead of the f32 target
};

// dW of both layers.
extern const WeightImplementation kWeightGradients[8];

// The entry that a map takes, and for a call: recorded and run.
const MapImplementation& find_map(const PatchMap& p);
void run_map(const PatchMap& p, CallScratch& scratch);

}  // namespace bnns
