// OpenBNNS: the functions of the BNNS C API.
//
// The text is ours; names, values and layouts are those of the classic BNNS C API, so that code written for Apple's
// Accelerate framework compiles unmodified and structures can be passed between independently built modules.
//
// Conventions. A descriptor describes one sample; batch sizes and strides between samples are arguments, and strides
// count values, not bytes (0: densely packed). A BNNSFilterCreate* function copies what it is given, except tensor
// data under BNNSFlagsUseClientPtr, and returns NULL on failure. Functions that return int return 0 on success and a
// negative number on failure, with no output written. `filter_params` may be NULL for the defaults. The reason of a
// failure is in BNNSExtLastError() of <bnns/bnns_extensions.h>. docs/bnns.md lists the types that each function
// takes. Parentheses at the end of a comment give the macOS release that brought (and deprecated) a function.

// clang-format off

#ifndef __BNNS_HEADER__
#define __BNNS_HEADER__

#include <sys/types.h>

#include "bnns_constants.h"
#include "bnns_structures.h"

// Nullability is a clang extension; other compilers see nothing. Removed again at the end of this file.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnullability-extension"
#define BNNS_NONNULL _Nonnull
#define BNNS_NULLABLE _Nullable
#define BNNS_NULL_UNSPECIFIED _Null_unspecified
#else
#define BNNS_NONNULL
#define BNNS_NULLABLE
#define BNNS_NULL_UNSPECIFIED
#endif

// Functions are exported, and never throw. Removed again at the end of this file.
#define BNNS_API __attribute__((visibility("default")))
#ifdef __cplusplus
#define BNNS_NOEXCEPT noexcept
#else
#define BNNS_NOEXCEPT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// A filter: a layer ready to run. Created by BNNSFilterCreate*, released by BNNSFilterDestroy. (macOS 10.12,
/// deprecated 15.0)
typedef void* BNNS_NULLABLE BNNSFilter;

/// A generator of random numbers. Created by BNNSCreateRandomGenerator*, released by BNNSDestroyRandomGenerator.
/// (macOS 12.0)
typedef void* BNNS_NULLABLE BNNSRandomGenerator;

/// A store of samples for k nearest neighbours. Created by BNNSCreateNearestNeighbors, released by
/// BNNSDestroyNearestNeighbors. (macOS 14.0)
typedef void* BNNS_NULLABLE BNNSNearestNeighbors;

// ---- Creating filters -----------------------------------------------------------------------------------------------

/// Creates a 2-D convolution: strides, dilation, padding, groups, bias and activation. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerConvolution(
    const BNNSLayerParametersConvolution* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a transposed 2-D convolution. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerTransposedConvolution(
    const BNNSLayerParametersConvolution* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a fully connected layer with bias and activation. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerFullyConnected(
    const BNNSLayerParametersFullyConnected* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a pooling or unpooling layer. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerPooling(const BNNSLayerParametersPooling* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates an activation, or a conversion of data types. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerActivation(
    const BNNSLayerParametersActivation* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a loss. layer_params points to a structure that begins like BNNSLayerParametersLossBase, as its function
/// asks. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerLoss(const void* BNNS_NONNULL layer_params,
                                              const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a batch, instance, layer or group normalization, as normType says. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerNormalization(
    BNNSFilterType normType, const BNNSLayerParametersNormalization* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates an element-wise function of one, two or three inputs. Run by BNNSArithmeticFilterApplyBatch. (macOS 11.0,
/// deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerArithmetic(
    const BNNSLayerParametersArithmetic* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a copy that reorders axes. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerPermute(const BNNSLayerParametersPermute* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a dropout. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerDropout(const BNNSLayerParametersDropout* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a copy with padding. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerPadding(const BNNSLayerParametersPadding* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a batched matrix product with broadcasting. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerBroadcastMatMul(
    const BNNSLayerParametersBroadcastMatMul* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a contraction of two tensors, or of one with itself. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerTensorContraction(
    const BNNSLayerParametersTensorContraction* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a Gram matrix of channels. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerGram(const BNNSLayerParametersGram* BNNS_NONNULL layer_params,
                                              const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a resize by nearest neighbour or linear interpolation. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerResize(const BNNSLayerParametersResize* BNNS_NONNULL layer_params,
                                                const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a multi-head attention. Run by BNNSApplyMultiheadAttention. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerMultiheadAttention(
    const BNNSLayerParametersMultiheadAttention* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a reduction over axes. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerReduction(
    const BNNSLayerParametersReduction* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates one filter from number_of_fused_filters layers; filter_type[k] says what layer_params[k] points to. Two
/// stages: convolution or fully connected, then normalization or quantization; or arithmetic, then normalization.
/// (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateFusedLayer(const size_t number_of_fused_filters,
                                               const BNNSFilterType* BNNS_NONNULL filter_type,
                                               const void* BNNS_NONNULL* BNNS_NONNULL layer_params,
                                               const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a table lookup. (macOS 12.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerEmbedding(
    const BNNSLayerParametersEmbedding* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Running filters ------------------------------------------------------------------------------------------------

/// Runs a filter on one sample. Returns 0, or -1 on failure. (macOS 10.12, deprecated 15.0)
BNNS_API int BNNSFilterApply(BNNSFilter filter, const void* BNNS_NONNULL in, void* BNNS_NONNULL out) BNNS_NOEXCEPT;

/// Runs a filter on a batch. (macOS 10.12, deprecated 15.0)
BNNS_API int BNNSFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in, size_t in_stride,
                                  void* BNNS_NONNULL out, size_t out_stride) BNNS_NOEXCEPT;

/// Runs a pooling on a batch. `indices` receives the positions of the maxima (Max) or gives them (UnMax). (macOS 11.0,
/// deprecated 15.0)
BNNS_API int BNNSPoolingFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                         size_t in_stride, void* BNNS_NONNULL out, size_t out_stride,
                                         size_t* BNNS_NULLABLE indices, size_t idx_stride) BNNS_NOEXCEPT;

/// As BNNSPoolingFilterApplyBatch, with indices of type UInt32 or UInt64. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSPoolingFilterApplyBatchEx(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                           size_t in_stride, void* BNNS_NONNULL out, size_t out_stride,
                                           const BNNSDataType indices_data_type, void* BNNS_NULLABLE indices,
                                           size_t idx_stride) BNNS_NOEXCEPT;

/// Runs a filter of two inputs on one sample. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFilterApplyTwoInput(BNNSFilter filter, const void* BNNS_NONNULL inA, const void* BNNS_NONNULL inB,
                                     void* BNNS_NONNULL out) BNNS_NOEXCEPT;

/// Runs a filter of two inputs on a batch. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFilterApplyTwoInputBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL inA,
                                          size_t inA_stride, const void* BNNS_NONNULL inB, size_t inB_stride,
                                          void* BNNS_NONNULL out, size_t out_stride) BNNS_NOEXCEPT;

/// Runs a normalization on a batch. training: use the statistics of the batch and update the running ones. (macOS 11.0,
/// deprecated 15.0)
BNNS_API int BNNSNormalizationFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                               size_t in_stride, void* BNNS_NONNULL out, size_t out_stride,
                                               bool training) BNNS_NOEXCEPT;

/// Runs a fused filter on a batch. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFusedFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                       size_t in_stride, void* BNNS_NONNULL out, size_t out_stride,
                                       bool training) BNNS_NOEXCEPT;

/// Runs a fused filter whose first stage has several inputs. (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSFusedFilterApplyMultiInputBatch(BNNSFilter filter, size_t batch_size, size_t number_of_inputs,
                                                 const void* BNNS_NONNULL* BNNS_NONNULL in,
                                                 const size_t* BNNS_NONNULL in_stride, void* BNNS_NONNULL out,
                                                 size_t out_stride, bool training) BNNS_NOEXCEPT;

/// Runs an arithmetic filter on a batch; in[k] and in_stride[k] belong to operand k. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSArithmeticFilterApplyBatch(BNNSFilter filter, size_t batch_size, size_t number_of_inputs,
                                            const void* BNNS_NONNULL* BNNS_NONNULL in,
                                            const size_t* BNNS_NONNULL in_stride, void* BNNS_NONNULL out,
                                            size_t out_stride) BNNS_NOEXCEPT;

/// Runs multi-head attention on a batch. A size pointer given with a NULL buffer is a question: the size is written and
/// nothing is computed. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSApplyMultiheadAttention(BNNSFilter F, size_t batch_size, const void* BNNS_NONNULL query,
                                         size_t query_stride, const void* BNNS_NONNULL key, size_t key_stride,
                                         const BNNSNDArrayDescriptor* BNNS_NULLABLE key_mask, size_t key_mask_stride,
                                         const void* BNNS_NONNULL value, size_t value_stride, void* BNNS_NONNULL output,
                                         size_t output_stride,
                                         const BNNSNDArrayDescriptor* BNNS_NULLABLE add_to_attention,
                                         size_t* BNNS_NULLABLE backprop_cache_size, void* BNNS_NULLABLE backprop_cache,
                                         size_t* BNNS_NULLABLE workspace_size,
                                         void* BNNS_NULLABLE workspace) BNNS_NOEXCEPT;

/// Quantizes or dequantizes a batch; data come from the descriptors. (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSDirectApplyQuantizer(const BNNSLayerParametersQuantization* BNNS_NONNULL layer_params,
                                      const BNNSFilterParameters* BNNS_NULLABLE filter_params, size_t batch_size,
                                      size_t input_stride, size_t output_stride) BNNS_NOEXCEPT;

// ---- Releasing filters ----------------------------------------------------------------------------------------------

/// Releases a filter. NULL is allowed. (macOS 10.12, deprecated 15.0)
BNNS_API void BNNSFilterDestroy(BNNSFilter filter) BNNS_NOEXCEPT;

// ---- Optimizers -----------------------------------------------------------------------------------------------------

/// Updates number_of_parameters tensors by one step. OptimizerAlgFields points to the structure of `function`;
/// accumulators holds all first accumulators, then all second ones, and so on. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSOptimizerStep(BNNSOptimizerFunction function, const void* BNNS_NONNULL OptimizerAlgFields,
                               size_t number_of_parameters,
                               BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL parameters,
                               const BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL gradients,
                               BNNSNDArrayDescriptor* BNNS_NULLABLE* BNNS_NULLABLE accumulators,
                               const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Clipping and norms ---------------------------------------------------------------------------------------------

/// Clamps every element to [min_val, max_val]. (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSClipByValue(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                             float min_val, float max_val) BNNS_NOEXCEPT;

/// Scales down so that the L2 norm over the axes of axis_flags is at most max_norm. 0 means all axes. (macOS 12.0,
/// deprecated 15.0)
BNNS_API int BNNSClipByNorm(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                            float max_norm, uint32_t axis_flags) BNNS_NOEXCEPT;

/// Scales down `count` tensors so that their joint L2 norm is at most max_norm. use_norm is that norm if known; 0 means
/// compute it. (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSClipByGlobalNorm(BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL dest,
                                  const BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL src, size_t count,
                                  float max_norm, float use_norm) BNNS_NOEXCEPT;

/// Computes a norm over the axes of axis_flags. (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSComputeNorm(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                             BNNSNormType norm_type, uint32_t axis_flags) BNNS_NOEXCEPT;

/// Gradient of BNNSComputeNorm; in and out are its data. (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSComputeNormBackward(const void* BNNS_NONNULL in, BNNSNDArrayDescriptor* BNNS_NONNULL in_delta,
                                     const void* BNNS_NONNULL out, const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                     BNNSNormType norm_type, uint32_t axis_flags) BNNS_NOEXCEPT;

// ---- Backward: gradients of filters ---------------------------------------------------------------------------------

/// Gradients of a filter: of the input, the weights and the bias. NULL for a gradient skips it. Parameter gradients are
/// summed over the batch. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE in,
                                          size_t in_stride, BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                          size_t in_delta_stride, const void* BNNS_NULLABLE out, size_t out_stride,
                                          const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta, size_t out_delta_stride,
                                          BNNSNDArrayDescriptor* BNNS_NULLABLE weights_delta,
                                          BNNSNDArrayDescriptor* BNNS_NULLABLE bias_delta) BNNS_NOEXCEPT;

/// Gradients of a pooling; `indices` as the forward call wrote them. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSPoolingFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE in,
                                                 size_t in_stride, BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                                 size_t in_delta_stride, const void* BNNS_NULLABLE out,
                                                 size_t out_stride, BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                 size_t out_delta_stride,
                                                 BNNSNDArrayDescriptor* BNNS_NULLABLE bias_delta,
                                                 const size_t* BNNS_NULLABLE indices, size_t idx_stride) BNNS_NOEXCEPT;

/// As BNNSPoolingFilterApplyBackwardBatch, with indices of type UInt32 or UInt64. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSPoolingFilterApplyBackwardBatchEx(BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE in,
                                                   size_t in_stride, BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                                   size_t in_delta_stride, const void* BNNS_NULLABLE out,
                                                   size_t out_stride, BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                   size_t out_delta_stride,
                                                   BNNSNDArrayDescriptor* BNNS_NULLABLE bias_delta,
                                                   const BNNSDataType indices_data_type,
                                                   const void* BNNS_NULLABLE indices, size_t idx_stride) BNNS_NOEXCEPT;

/// Gradients of a filter of two inputs. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFilterApplyBackwardTwoInputBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE inA,
                                                  size_t inA_stride, BNNSNDArrayDescriptor* BNNS_NULLABLE inA_delta,
                                                  size_t inA_delta_stride, const void* BNNS_NULLABLE inB,
                                                  size_t inB_stride, BNNSNDArrayDescriptor* BNNS_NULLABLE inB_delta,
                                                  size_t inB_delta_stride, const void* BNNS_NULLABLE out,
                                                  size_t out_stride,
                                                  const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                  size_t out_delta_stride,
                                                  BNNSNDArrayDescriptor* BNNS_NULLABLE weights_delta,
                                                  BNNSNDArrayDescriptor* BNNS_NULLABLE bias_delta) BNNS_NOEXCEPT;

/// Gradients of a normalization, after a forward call with training. out_delta may be modified. (macOS 11.0, deprecated
/// 15.0)
BNNS_API int BNNSNormalizationFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size,
                                                       BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                                       size_t in_delta_stride, const void* BNNS_NULLABLE out,
                                                       size_t out_stride, BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                       size_t out_delta_stride,
                                                       BNNSNDArrayDescriptor* BNNS_NULLABLE beta_delta,
                                                       BNNSNDArrayDescriptor* BNNS_NULLABLE gamma_delta) BNNS_NOEXCEPT;

/// Gradients of a fused filter; delta_parameters lists those of the stages in order (weights, bias, beta, gamma).
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFusedFilterApplyBackwardBatch(
    BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE in, size_t in_stride,
    BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta, size_t in_delta_stride, const void* BNNS_NULLABLE out,
    size_t out_stride, BNNSNDArrayDescriptor* BNNS_NONNULL out_delta, size_t out_delta_stride,
    BNNSNDArrayDescriptor* BNNS_NULLABLE* BNNS_NULLABLE delta_parameters) BNNS_NOEXCEPT;

/// Gradients of a fused filter whose first stage has several inputs. (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSFusedFilterApplyBackwardMultiInputBatch(
    BNNSFilter filter, size_t batch_size, size_t number_of_inputs, const void* BNNS_NULLABLE* BNNS_NULLABLE in,
    const size_t* BNNS_NULLABLE in_stride, BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL in_delta,
    const size_t* BNNS_NONNULL in_delta_stride, const void* BNNS_NULLABLE out, const size_t out_stride,
    BNNSNDArrayDescriptor* BNNS_NONNULL out_delta, size_t out_delta_stride,
    BNNSNDArrayDescriptor* BNNS_NULLABLE* BNNS_NULLABLE delta_parameters) BNNS_NOEXCEPT;

/// Gradients of an arithmetic filter; in_delta[k] belongs to operand k. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSArithmeticFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, size_t number_of_inputs,
                                                    const void* BNNS_NULLABLE* BNNS_NULLABLE in,
                                                    const size_t* BNNS_NULLABLE in_stride,
                                                    BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL in_delta,
                                                    const size_t* BNNS_NONNULL in_delta_stride,
                                                    const void* BNNS_NULLABLE out, const size_t out_stride,
                                                    BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                    const size_t out_delta_stride) BNNS_NOEXCEPT;

/// Gradient of a permute filter. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSPermuteFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size,
                                                 BNNSNDArrayDescriptor* BNNS_NONNULL in_delta, size_t in_delta_stride,
                                                 const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                 size_t out_delta_stride) BNNS_NOEXCEPT;

/// Computes the loss of a batch, and the gradient of the input if in_delta is not NULL. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSLossFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                      size_t in_stride, const void* BNNS_NONNULL labels, size_t labels_stride,
                                      const void* BNNS_NULLABLE weights, size_t weights_size, void* BNNS_NONNULL out,
                                      BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                      size_t in_delta_stride) BNNS_NOEXCEPT;

/// Gradient of a loss, given the gradient of its output. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSLossFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                              size_t in_stride, BNNSNDArrayDescriptor* BNNS_NONNULL in_delta,
                                              size_t in_delta_stride, const void* BNNS_NONNULL labels,
                                              size_t labels_stride, const void* BNNS_NULLABLE weights,
                                              size_t weights_size, const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                              size_t out_delta_stride) BNNS_NOEXCEPT;

/// Gradients of multi-head attention. The cache is the one the forward call filled; the workspace is asked for as
/// there. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSApplyMultiheadAttentionBackward(BNNSFilter F, size_t batch_size, const void* BNNS_NULLABLE query,
                                                 size_t query_stride,
                                                 BNNSMHAProjectionParameters* BNNS_NULLABLE query_param_delta,
                                                 const void* BNNS_NULLABLE key, size_t key_stride,
                                                 const BNNSNDArrayDescriptor* BNNS_NULLABLE key_mask,
                                                 size_t key_mask_stride,
                                                 BNNSMHAProjectionParameters* BNNS_NULLABLE key_param_delta,
                                                 const void* BNNS_NULLABLE value, size_t value_stride,
                                                 BNNSMHAProjectionParameters* BNNS_NULLABLE value_param_delta,
                                                 const BNNSNDArrayDescriptor* BNNS_NULLABLE add_to_attention,
                                                 BNNSNDArrayDescriptor* BNNS_NULLABLE key_attn_bias_delta,
                                                 BNNSNDArrayDescriptor* BNNS_NULLABLE value_attn_bias_delta,
                                                 const void* BNNS_NULLABLE output, size_t output_stride,
                                                 BNNSMHAProjectionParameters* BNNS_NONNULL output_param_delta,
                                                 size_t backprop_cache_size, void* BNNS_NULLABLE backprop_cache,
                                                 size_t* BNNS_NULLABLE workspace_size,
                                                 void* BNNS_NULLABLE workspace) BNNS_NOEXCEPT;

// ---- Without a filter: recurrent layers, activation, matrices, tensors ----------------------------------------------

/// Bytes of the cache that training an LSTM needs; SIZE_MAX on failure. (macOS 11.0, deprecated 15.0)
BNNS_API size_t BNNSComputeLSTMTrainingCacheCapacity(
    const BNNSLayerParametersLSTM* BNNS_NONNULL layer_params) BNNS_NOEXCEPT;

/// Runs an LSTM; fills the training cache if one is given. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSDirectApplyLSTMBatchTrainingCaching(const BNNSLayerParametersLSTM* BNNS_NONNULL layer_params,
                                                     const BNNSFilterParameters* BNNS_NULLABLE filter_params,
                                                     void* BNNS_NULLABLE training_cache_ptr,
                                                     const size_t training_cache_capacity) BNNS_NOEXCEPT;

/// Runs an activation on a batch; data come from the descriptors. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSDirectApplyActivationBatch(const BNNSLayerParametersActivation* BNNS_NONNULL layer_params,
                                            const BNNSFilterParameters* BNNS_NULLABLE filter_params, size_t batch_size,
                                            size_t in_stride, size_t out_stride) BNNS_NOEXCEPT;

/// Copies between tensors of the same shape; layouts and strides may differ. Memory must not overlap. (macOS 11.0)
BNNS_API int BNNSCopy(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                      const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Bytes of workspace for BNNSMatMul; negative on failure. (macOS 13.0, deprecated 15.0)
BNNS_API ssize_t BNNSMatMulWorkspaceSize(const bool transA, const bool transB, const float alpha,
                                         const BNNSNDArrayDescriptor* BNNS_NONNULL inputA,
                                         const BNNSNDArrayDescriptor* BNNS_NONNULL inputB,
                                         const BNNSNDArrayDescriptor* BNNS_NONNULL output,
                                         const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Batched matrix product with broadcasting: output = alpha * A * B. A NULL workspace is allocated inside. (macOS 13.0,
/// deprecated 15.0)
BNNS_API int BNNSMatMul(const bool transA, const bool transB, const float alpha,
                        const BNNSNDArrayDescriptor* BNNS_NONNULL inputA,
                        const BNNSNDArrayDescriptor* BNNS_NONNULL inputB,
                        const BNNSNDArrayDescriptor* BNNS_NONNULL output, void* BNNS_NULLABLE workspace,
                        const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// As BNNSMatMul, without a result code. (macOS 11.0, deprecated 13.0)
BNNS_API void BNNSDirectApplyBroadcastMatMul(const bool transA, const bool transB, const float alpha,
                                             const BNNSNDArrayDescriptor* BNNS_NONNULL inputA,
                                             const BNNSNDArrayDescriptor* BNNS_NONNULL inputB,
                                             const BNNSNDArrayDescriptor* BNNS_NONNULL output,
                                             const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Swaps two axes. Memory must not overlap. (macOS 11.0)
BNNS_API int BNNSTranspose(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                           size_t axis0, size_t axis1,
                           const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Runs a reduction; data come from the descriptors. (macOS 11.0)
BNNS_API int BNNSDirectApplyReduction(const BNNSLayerParametersReduction* BNNS_NONNULL layer_params,
                                      const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Compares element by element into Boolean. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSCompareTensor(const BNNSNDArrayDescriptor* BNNS_NONNULL in0,
                               const BNNSNDArrayDescriptor* BNNS_NONNULL in1, BNNSRelationalOperator op,
                               BNNSNDArrayDescriptor* BNNS_NONNULL out) BNNS_NOEXCEPT;

/// Repeats a tensor; the sizes imply how often. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSTile(const BNNSNDArrayDescriptor* BNNS_NONNULL input, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                      const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Finds the K largest values along an axis and, if best_indices is not NULL, where they are. (macOS 11.0)
BNNS_API int BNNSDirectApplyTopK(size_t K, size_t axis, size_t batch_size,
                                 const BNNSNDArrayDescriptor* BNNS_NONNULL input, size_t input_batch_stride,
                                 BNNSNDArrayDescriptor* BNNS_NONNULL best_values, size_t best_values_batch_stride,
                                 BNNSNDArrayDescriptor* BNNS_NULLABLE best_indices, size_t best_indices_batch_stride,
                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Tells whether given indices are among the K largest along an axis; ties count as in. (macOS 11.0)
BNNS_API int BNNSDirectApplyInTopK(size_t K, size_t axis, size_t batch_size,
                                   const BNNSNDArrayDescriptor* BNNS_NONNULL input, size_t input_batch_stride,
                                   const BNNSNDArrayDescriptor* BNNS_NONNULL test_indices,
                                   size_t test_indices_batch_stride, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                                   size_t output_batch_stride,
                                   const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Gathers along one axis. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSGather(size_t axis, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                        const BNNSNDArrayDescriptor* BNNS_NONNULL indices, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                        const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Scatters along one axis; op is None (overwrite) or Sum. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSScatter(size_t axis, BNNSReduceFunction op, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                         const BNNSNDArrayDescriptor* BNNS_NONNULL indices, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                         const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Gathers slices by index vectors. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSGatherND(const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                          const BNNSNDArrayDescriptor* BNNS_NONNULL indices, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                          const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Scatters slices by index vectors; op is None (overwrite) or Sum. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSScatterND(BNNSReduceFunction op, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                           const BNNSNDArrayDescriptor* BNNS_NONNULL indices,
                           BNNSNDArrayDescriptor* BNNS_NONNULL output,
                           const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Moves blocks between channels and space. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSShuffle(const BNNSShuffleType type, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                         BNNSNDArrayDescriptor* BNNS_NONNULL output,
                         const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Keeps a band of diagonals of each matrix, zero elsewhere. A negative count keeps the whole triangle. (macOS 13.0,
/// deprecated 15.0)
BNNS_API int BNNSBandPart(const int num_lower, const int num_upper, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                          BNNSNDArrayDescriptor* BNNS_NONNULL output,
                          const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Crops boxes and resizes each. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSCropResize(const BNNSLayerParametersCropResize* BNNS_NONNULL layer_params,
                            const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                            const BNNSNDArrayDescriptor* BNNS_NONNULL roi, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                            const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Without a filter: gradients ------------------------------------------------------------------------------------

/// Gradients of an LSTM, written through the descriptors of layer_delta_params. (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSDirectApplyLSTMBatchBackward(const BNNSLayerParametersLSTM* BNNS_NONNULL layer_params,
                                              const BNNSLayerParametersLSTM* BNNS_NONNULL layer_delta_params,
                                              const BNNSFilterParameters* BNNS_NULLABLE filter_params,
                                              const void* BNNS_NULLABLE training_cache_ptr,
                                              const size_t training_cache_capacity) BNNS_NOEXCEPT;

/// Gradient of BNNSTile. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSTileBackward(BNNSNDArrayDescriptor* BNNS_NONNULL in_delta,
                              const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                              const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Gradient of BNNSCropResize. (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSCropResizeBackward(const BNNSLayerParametersCropResize* BNNS_NONNULL layer_params,
                                    BNNSNDArrayDescriptor* BNNS_NONNULL in_delta,
                                    const BNNSNDArrayDescriptor* BNNS_NONNULL roi,
                                    const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Utilities ------------------------------------------------------------------------------------------------------

/// Returns a descriptor of a filter's own parameter, whose data may be read and written; data NULL on failure. (macOS
/// 11.0, deprecated 15.0)
BNNS_API BNNSNDArrayDescriptor BNNSGetPointer(BNNSFilter filter, BNNSPointerSpecifier target) BNNS_NOEXCEPT;

/// Bytes that the elements of an array span; 0 if unknown or data is NULL. (macOS 13.0)
BNNS_API size_t BNNSNDArrayGetDataSize(const BNNSNDArrayDescriptor* BNNS_NONNULL array) BNNS_NOEXCEPT;

/// Bytes that the elements of a tensor span; SIZE_MAX if unknown. (macOS 15.0)
BNNS_API size_t BNNSTensorGetAllocationSize(const BNNSTensor* BNNS_NONNULL tensor) BNNS_NOEXCEPT;

/// Rank of a layout; SIZE_MAX if it is none. (macOS 14.4)
BNNS_API size_t BNNSDataLayoutGetRank(BNNSDataLayout layout) BNNS_NOEXCEPT;

// ---- Sparse weights -------------------------------------------------------------------------------------------------

/// Packs weights given by coordinates. out->data is allocated by the library if it is NULL. (macOS 13.0, deprecated
/// 15.0)
BNNS_API int BNNSNDArrayFullyConnectedSparsifySparseCOO(
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_dense_shape, const BNNSNDArrayDescriptor* BNNS_NONNULL in_indices,
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_values, BNNSNDArrayDescriptor* BNNS_NONNULL out,
    const BNNSSparsityParameters* BNNS_NULLABLE sparse_params, const size_t batch_size, void* BNNS_NULLABLE workspace,
    const size_t workspace_size, const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Packs weights given by compressed rows. out->data is allocated by the library if it is NULL. (macOS 13.0, deprecated
/// 15.0)
BNNS_API int BNNSNDArrayFullyConnectedSparsifySparseCSR(
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_dense_shape,
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_column_indices,
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_row_starts, const BNNSNDArrayDescriptor* BNNS_NONNULL in_values,
    BNNSNDArrayDescriptor* BNNS_NONNULL out, const BNNSSparsityParameters* BNNS_NULLABLE sparse_params,
    const size_t batch_size, void* BNNS_NULLABLE workspace, const size_t workspace_size,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Random numbers -------------------------------------------------------------------------------------------------

/// Creates a generator with a seed of its own choice. (macOS 12.0)
BNNS_API BNNSRandomGenerator BNNSCreateRandomGenerator(
    BNNSRandomGeneratorMethod method, const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a generator with a given seed. (macOS 12.0)
BNNS_API BNNSRandomGenerator BNNSCreateRandomGeneratorWithSeed(
    BNNSRandomGeneratorMethod method, uint64_t seed,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Releases a generator. NULL is allowed. (macOS 12.0)
BNNS_API void BNNSDestroyRandomGenerator(BNNSRandomGenerator generator) BNNS_NOEXCEPT;

/// Bytes of the state of a generator; 0 on failure. (macOS 12.0)
BNNS_API size_t BNNSRandomGeneratorStateSize(BNNSRandomGenerator generator) BNNS_NOEXCEPT;

/// Saves the state of a generator. (macOS 12.0)
BNNS_API int BNNSRandomGeneratorGetState(BNNSRandomGenerator generator, size_t state_size,
                                         void* BNNS_NONNULL state) BNNS_NOEXCEPT;

/// Restores a state that was saved. (macOS 12.0)
BNNS_API int BNNSRandomGeneratorSetState(BNNSRandomGenerator generator, size_t state_size,
                                         void* BNNS_NONNULL state) BNNS_NOEXCEPT;

/// Fills with uniform numbers of [a, b). (macOS 12.0)
BNNS_API int BNNSRandomFillUniformFloat(BNNSRandomGenerator generator, BNNSNDArrayDescriptor* BNNS_NONNULL desc,
                                        float a, float b) BNNS_NOEXCEPT;

/// Fills with uniform integers of [a, b); b is excluded. (macOS 12.0)
BNNS_API int BNNSRandomFillUniformInt(BNNSRandomGenerator generator, BNNSNDArrayDescriptor* BNNS_NONNULL desc,
                                      int64_t a, int64_t b) BNNS_NOEXCEPT;

/// Fills with normally distributed numbers. (macOS 13.0)
BNNS_API int BNNSRandomFillNormalFloat(BNNSRandomGenerator generator, BNNSNDArrayDescriptor* BNNS_NONNULL desc,
                                       float mean, float stddev) BNNS_NOEXCEPT;

/// Fills with samples of categorical distributions, given by probabilities or their logarithms. desc is const; its data
/// are written. (macOS 14.0)
BNNS_API int BNNSRandomFillCategoricalFloat(BNNSRandomGenerator generator,
                                            const BNNSNDArrayDescriptor* BNNS_NONNULL desc,
                                            const BNNSNDArrayDescriptor* BNNS_NONNULL probabilities,
                                            bool log_probabilities) BNNS_NOEXCEPT;

// ---- Nearest neighbours ---------------------------------------------------------------------------------------------

/// Creates a store of up to max_n_samples samples, Float32 or Float16, under the Euclidean distance. (macOS 14.0)
BNNS_API BNNSNearestNeighbors BNNSCreateNearestNeighbors(
    const unsigned int max_n_samples, const unsigned int n_features, const unsigned int n_neighbors,
    const BNNSDataType data_type, const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Releases a store. NULL is allowed. (macOS 14.0)
BNNS_API void BNNSDestroyNearestNeighbors(BNNSNearestNeighbors knn) BNNS_NOEXCEPT;

/// Appends samples. (macOS 14.0)
BNNS_API int BNNSNearestNeighborsLoad(BNNSNearestNeighbors knn, const unsigned int n_new_samples,
                                      const void* BNNS_NONNULL data_ptr) BNNS_NOEXCEPT;

/// Nearest neighbours of one sample, nearest first, or of all if sample_number is negative. Missing ones are -1 and
/// INFINITY. (macOS 14.0)
BNNS_API int BNNSNearestNeighborsGetInfo(const BNNSNearestNeighbors knn, const int sample_number,
                                         int* BNNS_NULLABLE indices, void* BNNS_NULLABLE distances) BNNS_NOEXCEPT;

// ---- The API of macOS 10.12 -----------------------------------------------------------------------------------------

/// Creates a convolution. (macOS 10.12, deprecated 11.0)
BNNS_API BNNSFilter BNNSFilterCreateConvolutionLayer(
    const BNNSImageStackDescriptor* BNNS_NONNULL in_desc, const BNNSImageStackDescriptor* BNNS_NONNULL out_desc,
    const BNNSConvolutionLayerParameters* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a fully connected layer. (macOS 10.12, deprecated 11.0)
BNNS_API BNNSFilter BNNSFilterCreateFullyConnectedLayer(
    const BNNSVectorDescriptor* BNNS_NONNULL in_desc, const BNNSVectorDescriptor* BNNS_NONNULL out_desc,
    const BNNSFullyConnectedLayerParameters* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a pooling. (macOS 10.12, deprecated 11.0)
BNNS_API BNNSFilter BNNSFilterCreatePoolingLayer(const BNNSImageStackDescriptor* BNNS_NONNULL in_desc,
                                                 const BNNSImageStackDescriptor* BNNS_NONNULL out_desc,
                                                 const BNNSPoolingLayerParameters* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates an activation of a vector, or a conversion of data types. (macOS 10.13, deprecated 11.0)
BNNS_API BNNSFilter BNNSFilterCreateVectorActivationLayer(
    const BNNSVectorDescriptor* BNNS_NONNULL in_desc, const BNNSVectorDescriptor* BNNS_NONNULL out_desc,
    const BNNSActivation* BNNS_NONNULL activation,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#undef BNNS_API
#undef BNNS_NOEXCEPT
#undef BNNS_NONNULL
#undef BNNS_NULLABLE
#undef BNNS_NULL_UNSPECIFIED
#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif  // __BNNS_HEADER__
