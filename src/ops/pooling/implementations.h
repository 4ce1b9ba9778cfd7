// Which algorithm a pooling takes: ordered tables. The first entry that accepts the problem runs, the last one
// accepts all.
//
// Kernels read and write rows of f32. Other images (f16, bf16, gaps between columns) are converted around them in
// pieces that stay in L1, or by the kernel row by row; the call is seen by the tables as it is after that step, so that
// a tensor gives the same bits in every type and layout. Where the step is taken, the verbose line has kConvertName,
// too; BNNS_SKIP=pooling/convert/pieces leaves it to the kernels.
#pragma once

#include "src/core/implementation.h"
#include "src/ops/pooling/common/kernels.h"
#include "src/ops/pooling/convert/pieces.h"

namespace bnns {

template <class Call>
struct PoolingImplementation {
  const char* name;
  const char* when;
  bool (*accepts)(const Call& call) noexcept;
  void (*run)(const Call& call, Range planes, Span rows) noexcept;
  bool bands;     // takes some rows of a plane: a large one is divided
  bool converts;  // reads and writes what is not f32 itself, always
};
inline constexpr const char* kConvertName = "pooling/convert/pieces";

extern const PoolingImplementation<PoolingForward> kPoolingForward[5];
extern const PoolingImplementation<PoolingBackward> kPoolingBackward[11];
extern const PoolingImplementation<PoolingForward> kUnmaxForward[1];
extern const PoolingImplementation<PoolingBackward> kUnmaxBackward[1];

// How blocks of windows are folded, in forward and where backward needs values, maxima or norms again.
struct WindowsImplementation {
  const char* name;
  const char* when;
  bool (*accepts)(const WindowsProblem& problem) noexcept;
  WindowsFunction (*kernel)(const WindowsProblem& problem) noexcept;
};
extern const WindowsImplementation kPoolingWindows[3];

// What runs a call, and the pieces that it is given.
template <class Call>
struct PoolingPlan {
  const PoolingImplementation<Call>* implementation;
  ConvertPieces pieces;

  void run(const Call& call, Range planes, Span rows) const {
    if (pieces.planes)
      pooling_in_pieces(call, pieces, planes, rows, implementation->run);
    else
      implementation->run(call, planes, rows);
  }
  void record() const {
    CallRecord* record = CallRecord::current();
    if (!record) return;
    if (pieces.planes) record->add(kConvertName);
    record->add(implementation->name);
  }
};
// Before that, planes of one column become planes of one row: the axes change places, so that kernels have their lanes
// full. Positions of maxima stay what they are.
void lay_column_flat(PoolingForward* call) noexcept;
void lay_column_flat(PoolingBackward* call) noexcept;
PoolingPlan<PoolingForward> plan_pooling(const PoolingForward& call) noexcept;
PoolingPlan<PoolingBackward> plan_pooling(const PoolingBackward& call) noexcept;

}  // namespace bnns
