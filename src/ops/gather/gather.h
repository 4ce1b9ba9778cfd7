// Gather and scatter, along one axis or by index vectors (ND): one problem for all four.
//
// Points (the positions of `indices`) name places in `data`; at each, a slab of elements is copied from data to
// `values` (gather) or from values to data (scatter).
//   1-D indices   points i                   data[.., indices[i], ..]       slab: the axes faster than the axis;
//                                                                           the slower ones are walked outside
//   full indices  points: all of values      data[.., indices[p], ..]       slab: one element
//   ND            points: all but the last   data[indices[p, 0], .., indices[p, L - 1], ..]
//                 index of indices                                          slab: the indices after L
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/core/memory.h"
#include "src/tensor/tensor.h"

namespace bnns {

inline constexpr int kGatherShapeCode = -1003, kGatherIndexCode = -1005;

enum class GatherAction : uint8_t { gather, scatter, scatter_sum };

// An axis of points, of a slab or of the outer loop; strides in elements.
struct GatherAxis {
  size_t extent = 1;
  size_t data = 0, values = 0, indices = 0;
};

struct GatherAxes {
  GatherAxis axis[kMaxRank];
  size_t rank = 0, count = 1;
  void append(const GatherAxis& a) {
    axis[rank++] = a;
    count *= a.extent;
  }
};

struct GatherProblem {
  const char* op = "gather";
  GatherAction action = GatherAction::gather;
  Tensor data, values, indices;
  GatherAxes points, outer, slab;  // fastest of values first (points: of indices)
  // An index vector: component l at offset l * component_stride of the point names a place on an axis of data.
  size_t components = 1, component_stride = 0;
  size_t limit[kMaxRank] = {}, step[kMaxRank] = {};  // extent and stride of that axis

  std::string text() const;  // "gather f32 10x3 i64 4"
};

// Every check but that of the index values. axis is a size axis. output of scatter is `data`.
GatherProblem make_gather_problem(GatherAction action, size_t axis, const BNNSNDArrayDescriptor* input,
                                  const BNNSNDArrayDescriptor* indices, const BNNSNDArrayDescriptor* output);
GatherProblem make_gather_nd_problem(GatherAction action, const BNNSNDArrayDescriptor* input,
                                     const BNNSNDArrayDescriptor* indices, const BNNSNDArrayDescriptor* output);

// The action of a BNNSReduceFunction: None overwrites, Sum adds; others are refused.
GatherAction scatter_action(BNNSReduceFunction function, const char* op);

// Checks every index, then moves. Where indices repeat, the last one wins (None), or all are added in order (Sum).
void run_gather(const GatherProblem& problem, size_t n_threads);

}  // namespace bnns
