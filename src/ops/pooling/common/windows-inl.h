// Kernels of one instruction set that other files of the folder call without dispatch.

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

// Maxima with their positions in the plane, y width + x, as uint64_t (wide) or uint32_t, in the order and the pitch of
// block.values; both arrays may be written up to kWindowSlack elements past the last one. The bits of arg_max.
using PositionsFunction = void (*)(const WindowBlock& block, void* positions);

// For whole planes of f32 with column stride 1 and fewer than 2^31 pixels; NULL where there is no such kernel.
PositionsFunction ChoosePositions(const PoolingGeometry& geometry, bool wide);

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_WINDOWS_INL_H_
