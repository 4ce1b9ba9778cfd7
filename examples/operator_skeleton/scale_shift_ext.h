// The C interface of the skeleton's operator. An operator of Apple's API is declared in <bnns/bnns.h>; one of our own
// in <bnns/bnns_extensions.h>, under names that begin with BNNSExt. The macros are those that both headers have.
#ifndef BNNS_SCALE_SHIFT_EXT_HEADER
#define BNNS_SCALE_SHIFT_EXT_HEADER

#include "bnns/bnns.h"

#define BNNS_API __attribute__((visibility("default")))
#ifdef __cplusplus
#define BNNS_NOEXCEPT noexcept
#else
#define BNNS_NOEXCEPT
#endif
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnullability-extension"
#define BNNS_NULLABLE _Nullable
#else
#define BNNS_NULLABLE
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---- Scale and shift --------------------------------------------------------------------------------

/// A layer that multiplies each channel c by a number and adds another: y = scale[c] x + shift[c].
typedef struct {
  BNNSNDArrayDescriptor i_desc;  ///< One sample of x: Float32, Float16 or BFloat16, any layout and strides
  BNNSNDArrayDescriptor o_desc;  ///< One sample of y: the sizes of i_desc
  BNNSNDArrayDescriptor scale;   ///< A vector of i_desc.size[axis] numbers
  BNNSNDArrayDescriptor shift;   ///< As scale; without data: 0
  size_t axis;                   ///< The axis of the channels, an index of i_desc.size: 2 for ImageCHW, 0 for Vector
} BNNSExtLayerParametersScaleShift;

/// Makes a filter that scales and shifts; NULL, with a reason, if it cannot. filter_params may be NULL.
/// BNNSFilterApplyBatch applies it. BNNSFilterApplyBackwardBatch writes in_delta, and the gradients of scale and shift
/// to weights_delta and bias_delta; each of the three may be NULL. `in` is read for weights_delta alone, `out` never.
BNNS_API BNNSFilter
BNNSExtFilterCreateLayerScaleShift(const BNNSExtLayerParametersScaleShift* BNNS_NULLABLE layer_params,
                                   const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---------------------------------------------------------------------------------------------------------------------

#ifdef __cplusplus
}  // extern "C"
#endif

#undef BNNS_API
#undef BNNS_NOEXCEPT
#undef BNNS_NULLABLE
#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif  // BNNS_SCALE_SHIFT_EXT_HEADER
