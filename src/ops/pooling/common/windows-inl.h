// The vector kernel of a block of windows, for the other files of this folder: chosen once, called without dispatch.

#if defined(BNNS_OPS_POOLING_WINDOWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_WINDOWS_INL_H_
#undef BNNS_OPS_POOLING_WINDOWS_INL_H_
#else
#define BNNS_OPS_POOLING_WINDOWS_INL_H_
#endif

#include <hwy/highway.h>

#include "src/ops/pooling/common/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

using WindowsFunction = void (*)(const WindowBlock& block);

// For f32 sources with column stride 1; NULL where the geometry has no vector kernel.
WindowsFunction ChooseWindows(PoolingFold fold, const PoolingGeometry& geometry);
// Its part for 2 x 2 and 3 x 3 windows row by row.
WindowsFunction ChooseRows(PoolingFold fold, const PoolingGeometry& geometry);

// Maxima with their positions in the plane, y width + x, as uint64_t (wide) or uint32_t, in the order and the pitch of
// block.values; both arrays may be written up to kWindowSlack elements past the last one. The bits of arg_max.
using PositionsFunction = void (*)(const WindowBlock& block, void* positions);

// For whole planes of f32 with column stride 1 and fewer than 2^31 pixels; NULL where there is no such kernel.
PositionsFunction ChoosePositions(const PoolingGeometry& geometry, bool wide);

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_WINDOWS_INL_H_
