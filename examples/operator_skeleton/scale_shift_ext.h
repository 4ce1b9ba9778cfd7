// The C interface of the skeleton's operator. An operator of Apple's API finds these declarations in <bnns/bnns.h>; one
// of our own has them in <bnns/bnns_extensions.h>, under names that begin with BNNSExt.
#pragma once

#include <stddef.h>

#include "bnns/bnns.h"

#ifdef __cplusplus
extern "C" {
#define BNNS_SKELETON_NOEXCEPT noexcept
#else
#define BNNS_SKELETON_NOEXCEPT
#endif

/// A layer that multiplies each channel by a number and adds another: y = scale[c] x + shift[c].
typedef struct {
  BNNSNDArrayDescriptor i_desc;  ///< One sample of x: Float32, Float16 or BFloat16, any layout and strides
  BNNSNDArrayDescriptor o_desc;  ///< One sample of y: the sizes of i_desc
  BNNSNDArrayDescriptor scale;   ///< A vector of i_desc.size[axis] numbers
  BNNSNDArrayDescriptor shift;   ///< As scale; without data: 0
  size_t axis;                   ///< The axis of the channels, an index of i_desc.size: 2 for ImageCHW, 0 for Vector
} BNNSExtLayerParametersScaleShift;

/// Makes a scale-and-shift filter; NULL, with a reason, if it cannot.
/// BNNSFilterApplyBatch applies it. BNNSFilterApplyBackwardBatch writes in_delta, and the gradients of scale and shift
/// to weights_delta and bias_delta; each of the three may be NULL, `in` is read for weights_delta alone and `out`
/// never.
__attribute__((visibility("default"))) BNNSFilter BNNSExtFilterCreateLayerScaleShift(
    const BNNSExtLayerParametersScaleShift* layer_params,
    const BNNSFilterParameters* filter_params) BNNS_SKELETON_NOEXCEPT;

#undef BNNS_SKELETON_NOEXCEPT
#ifdef __cplusplus
}  // extern "C"
#endif
