// OpenBNNS: the functions of the BNNS C API.
//
// The text is ours; names, values and layouts are those of the classic BNNS C API, so that BNNS code written for
// Apple's Accelerate framework compiles unmodified and structures can be passed between independently built modules.
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

#include <stdint.h>
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

/// Creates a 2-D convolution (correlation, no flip): strides, dilation, padding, groups, bias and activation.
/// - layer_params: i_desc and o_desc are ImageCHW {width, height, channels}, w_desc has one of the ConvolutionWeights
///   layouts and data, bias is a Vector of the output channels, or has no data. The padded input must hold all windows;
///   pixels left over on the right and below are not used.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerConvolution(
    const BNNSLayerParametersConvolution* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a transposed 2-D convolution: each input pixel adds its multiple of the kernel to the output.
/// - layer_params: as for a convolution, with the roles of input and output sizes exchanged in the size rule. With
///   groups > 1 there is no gradient.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerTransposedConvolution(
    const BNNSLayerParametersConvolution* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a fully connected layer: output = activation(weights * input + bias).
/// - layer_params: w_desc is a RowMajorMatrix {inputs, outputs}, a ColumnMajorMatrix or generic matrix {outputs,
///   inputs}, or what a Sparsify call packed (inference only); bias is a Vector of the outputs, or has no data. i_desc
///   and o_desc have any layout with as many elements.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerFullyConnected(
    const BNNSLayerParametersFullyConnected* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a pooling or unpooling layer.
/// - layer_params: i_desc and o_desc are ImageCHW {width, height, channels} with equal channels; bias is a Vector of
///   the channels, or has no data. UnMax has the geometry of the Max layer whose indices it gets, with i_desc and
///   o_desc exchanged. It is enough that every window begins in the padded image; padding never is a maximum.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerPooling(const BNNSLayerParametersPooling* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates an activation, or a conversion of data types (Identity between different ones).
/// - layer_params: i_desc and o_desc have equally many elements, which are paired in memory order; layouts and types
///   may differ.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerActivation(
    const BNNSLayerParametersActivation* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a loss. Run by BNNSLossFilterApplyBatch.
/// - layer_params: BNNSLayerParametersLossBase or, for SoftmaxCrossEntropy, SigmoidCrossEntropy, Huber and Yolo, the
///   structure of that name: `function` at its beginning says which. i_desc is the prediction of one sample; o_desc
///   gives the type of the losses (all zero: the input's).
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerLoss(const void* BNNS_NONNULL layer_params,
                                              const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a normalization. Run by BNNSNormalizationFilterApplyBatch.
/// - normType: BNNSBatchNorm, BNNSInstanceNorm, BNNSLayerNorm or BNNSGroupNorm.
/// - layer_params: i_desc and o_desc are ImageCHW or Vector (channels of one pixel) of the same sizes. beta_desc and
///   gamma_desc have one element for each channel (layer: for each normalized element), or no data; moving_mean_desc
///   and moving_variance_desc are Float32, one element for each channel, or have no data, and belong to batch and
///   instance normalization.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerNormalization(
    BNNSFilterType normType, const BNNSLayerParametersNormalization* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates an element-wise function of one, two or three inputs. Run by BNNSArithmeticFilterApplyBatch.
/// - layer_params: arithmetic_function_fields points to BNNSArithmeticUnary, Binary or Ternary, as the function has
///   operands. All descriptors have one layout; each extent of an input is the output's, or 1 and repeats.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerArithmetic(
    const BNNSLayerParametersArithmetic* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a copy that reorders axes.
/// - layer_params: o_desc.size[k] is i_desc.size[permutation[k]]; rank and type are equal.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerPermute(const BNNSLayerParametersPermute* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a dropout. Every apply drops, and draws anew; there is no inference mode.
/// - layer_params: i_desc and o_desc have the same sizes; rate is in [0, 1).
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerDropout(const BNNSLayerParametersDropout* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a copy with padding around it.
/// - layer_params: o_desc.size[k] is i_desc.size[k] + padding_size[k][0] + padding_size[k][1]; types are equal.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerPadding(const BNNSLayerParametersPadding* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a batched matrix product with broadcasting: output = beta * output + alpha * op(A) * op(B).
/// - layer_params: matrices are the last two logical indices of iA_desc, iB_desc and o_desc; the ones before them are
///   equal, 1 or missing, and repeat. An operand that is weights needs data; then, and with quadratic, the calls with
///   one input run it, else those with two.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerBroadcastMatMul(
    const BNNSLayerParametersBroadcastMatMul* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a contraction of two tensors, of one with itself, or a sum over one.
/// - layer_params: operation is a string such as "a_ij, b_jk -> out_ik", copied here; an operand whose name begins with
///   w is trained weights and needs data. Two inputs are run by the calls with two inputs.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerTensorContraction(
    const BNNSLayerParametersTensorContraction* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a Gram matrix of channels: G(f, c) = alpha * sum over pixels of x(f) x(c).
/// - layer_params: i_desc has rank 3 or more, features last in logical order (channels of an ImageCHW); o_desc has rank
///   one less and is features x features.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerGram(const BNNSLayerParametersGram* BNNS_NONNULL layer_params,
                                              const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a resize by nearest neighbour or linear interpolation.
/// - layer_params: axes whose sizes differ between i_desc and o_desc are resized, all larger or all smaller; linear: at
///   most two.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerResize(const BNNSLayerParametersResize* BNNS_NONNULL layer_params,
                                                const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a multi-head attention. Run by BNNSApplyMultiheadAttention.
/// - layer_params: logical shapes, with L queries, S keys and h heads: query and output target (L, d_model), key target
///   (S, k_dim), value target (S, v_dim); weights (d_model, d_key, h), (k_dim, d_key, h), (v_dim, d_value, h) and (h *
///   d_value, d_model) for the output; biases, or no data. key_attn_bias and value_attn_bias come both or neither.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerMultiheadAttention(
    const BNNSLayerParametersMultiheadAttention* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a reduction over the axes that are 1 in o_desc.
/// - layer_params: i_desc and o_desc have one rank; w_desc has the sizes of i_desc, or no data.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerReduction(
    const BNNSLayerParametersReduction* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates one filter from two layers: convolution, transposed convolution or fully connected, then normalization or
/// quantization; or arithmetic, then normalization. Run by BNNSFusedFilterApplyBatch.
/// - number_of_fused_filters: 2.
/// - filter_type: number_of_fused_filters entries: what layer_params[k] points to.
/// - layer_params: number_of_fused_filters pointers to the layers' structures, none NULL. The output of the first and
///   the input of the second agree in layout, size, stride and type. To be trained, the first has no activation.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateFusedLayer(const size_t number_of_fused_filters,
                                               const BNNSFilterType* BNNS_NONNULL filter_type,
                                               const void* BNNS_NONNULL* BNNS_NONNULL layer_params,
                                               const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a table lookup.
/// - layer_params: i_desc holds indices of any integer type of 8 bits or more; dictionary has the sizes of an item,
///   then the number of items; o_desc the sizes of an item, then those of i_desc.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 12.0, deprecated 15.0)
BNNS_API BNNSFilter BNNSFilterCreateLayerEmbedding(
    const BNNSLayerParametersEmbedding* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Running filters ------------------------------------------------------------------------------------------------

/// Runs a filter on one sample. Arithmetic, normalization, fused, loss and attention filters, and filters of two
/// inputs, have calls of their own and are refused.
/// - filter: the filter to run, made by the matching create call; NULL is refused.
/// - in: one sample, laid out as i_desc says; its type and strides are those of the descriptor.
/// - out: receives one sample, laid out as o_desc says. It may be `in` for activations and dropout, and shares no
///   memory with it for other layers.
/// Returns 0, or -1 with nothing written. (macOS 10.12, deprecated 15.0)
BNNS_API int BNNSFilterApply(BNNSFilter filter, const void* BNNS_NONNULL in, void* BNNS_NONNULL out) BNNS_NOEXCEPT;

/// Runs a filter on a batch; which filters, as for BNNSFilterApply.
/// - filter: the filter to run, made by the matching create call; NULL is refused.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: the first sample, laid out as i_desc says; batch_size samples are read.
/// - in_stride: elements (not bytes) from one sample of `in` to the next; 0: samples lie densely.
/// - out: receives batch_size samples, laid out as o_desc says.
/// - out_stride: elements from one sample of `out` to the next; 0: densely. Samples must not overlap.
/// Returns 0, or -1 with nothing written. (macOS 10.12, deprecated 15.0)
BNNS_API int BNNSFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in, size_t in_stride,
                                  void* BNNS_NONNULL out, size_t out_stride) BNNS_NOEXCEPT;

/// Runs a pooling on a batch.
/// - filter: a pooling filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: batch_size samples as i_desc says.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - out: receives batch_size samples as o_desc says.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - indices: an index is y * width + x, the place of the maximum in the input plane of its channel (of UnMax: in the
///   output plane). There is one for each element of the small image, Max's output or UnMax's input, with its strides.
///   Max: receives the indices; NULL: not wanted. UnMax: required, and read. Other functions ignore it.
/// - idx_stride: indices from one sample to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSPoolingFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                         size_t in_stride, void* BNNS_NONNULL out, size_t out_stride,
                                         size_t* BNNS_NULLABLE indices, size_t idx_stride) BNNS_NOEXCEPT;

/// As BNNSPoolingFilterApplyBatch, with indices of a type of one's own.
/// - filter: a pooling filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: batch_size samples as i_desc says.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - out: receives batch_size samples as o_desc says.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - indices_data_type: UInt32, UInt64, Int32 or Int64; a type that cannot number all pixels of a plane is refused. Not
///   looked at without indices.
/// - indices: as there, of that type: y * width + x in the plane of the channel. Max: may be NULL; UnMax: required.
/// - idx_stride: indices from one sample to the next; 0: densely.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSPoolingFilterApplyBatchEx(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                           size_t in_stride, void* BNNS_NONNULL out, size_t out_stride,
                                           const BNNSDataType indices_data_type, void* BNNS_NULLABLE indices,
                                           size_t idx_stride) BNNS_NOEXCEPT;

/// Runs a matrix product or contraction of two inputs on one sample.
/// - filter: a BroadcastMatMul or TensorContraction filter whose operands are both inputs.
/// - inA: one sample of operand A, laid out as iA_desc says.
/// - inB: one sample of operand B, laid out as iB_desc says.
/// - out: one sample, laid out as o_desc says; read too where beta is 1.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFilterApplyTwoInput(BNNSFilter filter, const void* BNNS_NONNULL inA, const void* BNNS_NONNULL inB,
                                     void* BNNS_NONNULL out) BNNS_NOEXCEPT;

/// Runs a matrix product or contraction of two inputs on a batch.
/// - filter: a BroadcastMatMul or TensorContraction filter whose operands are both inputs.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - inA: batch_size samples of operand A.
/// - inA_stride: elements from one sample of inA to the next; 0: densely.
/// - inB: batch_size samples of operand B.
/// - inB_stride: elements from one sample of inB to the next; 0: densely.
/// - out: batch_size samples as o_desc says; read too where beta is 1.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFilterApplyTwoInputBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL inA,
                                          size_t inA_stride, const void* BNNS_NONNULL inB, size_t inB_stride,
                                          void* BNNS_NONNULL out, size_t out_stride) BNNS_NOEXCEPT;

/// Runs a normalization on a batch.
/// - filter: a normalization filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: batch_size samples as i_desc says.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - out: receives batch_size samples as o_desc says; may be `in`.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - training: true: use the statistics of the batch, update the moving ones that are present, and keep what the
///   gradient needs. false: batch and instance normalization use the moving statistics that are present.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSNormalizationFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                               size_t in_stride, void* BNNS_NONNULL out, size_t out_stride,
                                               bool training) BNNS_NOEXCEPT;

/// Runs a fused filter whose first stage has one input on a batch.
/// - filter: a fused filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: batch_size samples of the first stage's input.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - out: receives batch_size samples of the second stage's output; must not overlap `in`.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - training: as for BNNSNormalizationFilterApplyBatch; false where the second stage quantizes.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFusedFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                       size_t in_stride, void* BNNS_NONNULL out, size_t out_stride,
                                       bool training) BNNS_NOEXCEPT;

/// Runs a fused filter whose first stage has any number of inputs.
/// - filter: a fused filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - number_of_inputs: inputs of the first stage: operands of its arithmetic function, else 1.
/// - in: number_of_inputs pointers, none NULL: batch_size samples each; Constant and Parameter operands have one for
///   the whole batch.
/// - in_stride: number_of_inputs strides in elements, 0: densely; NULL: all dense.
/// - out: receives batch_size samples of the second stage's output.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - training: as for BNNSNormalizationFilterApplyBatch.
/// (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSFusedFilterApplyMultiInputBatch(BNNSFilter filter, size_t batch_size, size_t number_of_inputs,
                                                 const void* BNNS_NONNULL* BNNS_NONNULL in,
                                                 const size_t* BNNS_NONNULL in_stride, void* BNNS_NONNULL out,
                                                 size_t out_stride, bool training) BNNS_NOEXCEPT;

/// Runs an arithmetic filter on a batch.
/// - filter: an arithmetic filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - number_of_inputs: 1, 2 or 3: the operands of the function.
/// - in: number_of_inputs pointers, none NULL: in[k] holds batch_size samples of operand k; a Constant or Parameter is
///   one tensor for the whole batch.
/// - in_stride: number_of_inputs strides: elements from one sample of in[k] to the next; 0: densely. Not NULL.
/// - out: receives batch_size samples; may be an input of the same shape, strides and type.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSArithmeticFilterApplyBatch(BNNSFilter filter, size_t batch_size, size_t number_of_inputs,
                                            const void* BNNS_NONNULL* BNNS_NONNULL in,
                                            const size_t* BNNS_NONNULL in_stride, void* BNNS_NONNULL out,
                                            size_t out_stride) BNNS_NOEXCEPT;

/// Runs multi-head attention on a batch.
/// - F: a multi-head attention filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - query: batch_size samples as query.target_desc says.
/// - query_stride: elements from one sample of query to the next; 0: densely.
/// - key: batch_size samples as key.target_desc says.
/// - key_stride: elements from one sample of key to the next; 0: densely.
/// - key_mask: Boolean, one element for each key: true hides it; NULL: none is hidden.
/// - key_mask_stride: elements from one sample of the mask to the next; 0: densely.
/// - value: batch_size samples as value.target_desc says.
/// - value_stride: elements from one sample of value to the next; 0: densely.
/// - output: receives batch_size samples as output.target_desc says; shares no memory with anything else.
/// - output_stride: elements from one sample of output to the next; 0: densely.
/// - add_to_attention: added to the logits before the softmax: (L, S), (h, L, S) or (batch, h, L, S), a float type, or
///   Boolean, where true is -infinity; NULL: nothing.
/// - backprop_cache_size: bytes of backprop_cache. Where that is NULL it receives the bytes that suffice, and nothing
///   is computed; NULL: no cache.
/// - backprop_cache: receives what the gradient can use, aligned to 8 bytes; NULL: none is kept. With dropout the
///   gradient needs it.
/// - workspace_size: bytes of workspace. Where workspace is NULL it receives the bytes that suffice, and nothing is
///   computed; NULL: no question, and the filter allocates.
/// - workspace: working memory, aligned to 8 bytes; NULL: the filter allocates.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSApplyMultiheadAttention(BNNSFilter F, size_t batch_size, const void* BNNS_NONNULL query,
                                         size_t query_stride, const void* BNNS_NONNULL key, size_t key_stride,
                                         const BNNSNDArrayDescriptor* BNNS_NULLABLE key_mask, size_t key_mask_stride,
                                         const void* BNNS_NONNULL value, size_t value_stride, void* BNNS_NONNULL output,
                                         size_t output_stride,
                                         const BNNSNDArrayDescriptor* BNNS_NULLABLE add_to_attention,
                                         size_t* BNNS_NULLABLE backprop_cache_size, void* BNNS_NULLABLE backprop_cache,
                                         size_t* BNNS_NULLABLE workspace_size,
                                         void* BNNS_NULLABLE workspace) BNNS_NOEXCEPT;

/// Quantizes or dequantizes a batch, without a filter.
/// - layer_params: i_desc.data is the first sample, o_desc.data receives the first result; scale and bias are Vectors,
///   or have no data (1 and 0).
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - input_stride: elements from one sample at i_desc.data to the next; 0: densely.
/// - output_stride: elements from one sample at o_desc.data to the next; 0: densely.
/// (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSDirectApplyQuantizer(const BNNSLayerParametersQuantization* BNNS_NONNULL layer_params,
                                      const BNNSFilterParameters* BNNS_NULLABLE filter_params, size_t batch_size,
                                      size_t input_stride, size_t output_stride) BNNS_NOEXCEPT;

// ---- Releasing filters ----------------------------------------------------------------------------------------------

/// Releases a filter.
/// - filter: what a BNNSFilterCreate call returned; NULL does nothing. No call may be running on it.
/// (macOS 10.12, deprecated 15.0)
BNNS_API void BNNSFilterDestroy(BNNSFilter filter) BNNS_NOEXCEPT;

// ---- Optimizers -----------------------------------------------------------------------------------------------------

/// Updates number_of_parameters tensors by one step.
/// - function: which optimizer; the ones WithClipping take the structures WithClipping.
/// - OptimizerAlgFields: the structure of `function`, such as BNNSOptimizerAdamFields; read at every call.
/// - number_of_parameters: tensors in each of the lists.
/// - parameters: number_of_parameters descriptors with data: contiguous Float32 tensors, updated in place.
/// - gradients: number_of_parameters descriptors with as many elements as their parameters; not written.
/// - accumulators: what the optimizer remembers, all zero before the first step, each with as many elements as its
///   parameter: number_of_parameters descriptors for each role, role after role. SGD: velocity (none without momentum).
///   Adam: first and second moment, AMSGrad also its maximum. RMSProp: mean square, mean if centered, velocity if there
///   is momentum. NULL where there is no role.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSOptimizerStep(BNNSOptimizerFunction function, const void* BNNS_NONNULL OptimizerAlgFields,
                               size_t number_of_parameters,
                               BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL parameters,
                               const BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL gradients,
                               BNNSNDArrayDescriptor* BNNS_NULLABLE* BNNS_NULLABLE accumulators,
                               const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Clipping and norms ---------------------------------------------------------------------------------------------

/// Clamps every element to [min_val, max_val]. NaN passes.
/// - dest: receives the result: shape of src; may be src itself.
/// - src: Float32, Float16 or BFloat16, any strides.
/// - min_val: lower bound.
/// - max_val: upper bound, at least min_val.
/// (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSClipByValue(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                             float min_val, float max_val) BNNS_NOEXCEPT;

/// Scales down so that the L2 norm of every slice is at most max_norm.
/// - dest: receives the result: shape of src; may be src itself.
/// - src: Float32, Float16 or BFloat16, any strides. A norm that is not finite is refused.
/// - max_norm: the largest norm, 0 or more.
/// - axis_flags: axes that a slice extends over: bit k is size[k]; 0: all.
/// (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSClipByNorm(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                            float max_norm, uint32_t axis_flags) BNNS_NOEXCEPT;

/// Scales down tensors by one factor, so that their joint L2 norm is at most max_norm.
/// - dest: count descriptors that receive the results; each may be its src.
/// - src: count descriptors.
/// - count: tensors in each list.
/// - max_norm: the largest norm, 0 or more.
/// - use_norm: the joint norm if it is known; 0: it is computed.
/// (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSClipByGlobalNorm(BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL dest,
                                  const BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL src, size_t count,
                                  float max_norm, float use_norm) BNNS_NOEXCEPT;

/// Computes a norm over axes.
/// - dest: receives the norms: the axes of src that axis_flags leaves, or one element.
/// - src: Float32, Float16 or BFloat16, any strides.
/// - norm_type: BNNSL2Norm.
/// - axis_flags: axes to sum over: bit k is size[k]; 0: all.
/// (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSComputeNorm(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                             BNNSNormType norm_type, uint32_t axis_flags) BNNS_NOEXCEPT;

/// Gradient of BNNSComputeNorm: in * out_delta / out, and 0 where out is 0.
/// - in: data of the source, laid out as in_delta says.
/// - in_delta: receives the gradient; its flags say whether it is added. May share memory with `in`.
/// - out: data of the norms, laid out as out_delta says.
/// - out_delta: gradient of the norms.
/// - norm_type: BNNSL2Norm.
/// - axis_flags: as in the forward call.
/// (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSComputeNormBackward(const void* BNNS_NONNULL in, BNNSNDArrayDescriptor* BNNS_NONNULL in_delta,
                                     const void* BNNS_NONNULL out, const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                     BNNSNormType norm_type, uint32_t axis_flags) BNNS_NOEXCEPT;

// ---- Backward: gradients of filters ---------------------------------------------------------------------------------

/// Gradients of a filter: of its input, weights and bias. All that are wanted come from one call.
/// - filter: any filter but arithmetic, normalization, fused, loss and attention, which have calls of their own.
/// - batch_size: samples in the batch; of dropout that of the last forward call. 0: parameter gradients are set to 0.
/// - in: input of the forward call. Needed for weights_delta, and for in_delta of what the input decides: Max and
///   L2Norm pooling, Gram, quadratic products, most reductions, activations whose derivative does not follow from the
///   output; embedding: the indices. Else it may be NULL: a gradient of the bias alone needs none.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - in_delta: descriptor of one sample of the input's gradient, in the input's sizes or as many elements densely;
///   receives batch_size samples. NULL: not wanted. Its flags say whether it is overwritten or added to. Embedding:
///   must be NULL.
/// - in_delta_stride: elements from one sample of that gradient to the next; 0: densely.
/// - out: output of the forward call. Needed where the layer has an activation whose derivative follows from it; else
///   it may be NULL.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL. It is not
///   modified.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// - weights_delta: receives the gradient of the weights, in their layout or as many elements densely, summed over the
///   batch; of LeakyRectifiedLinear and PReLUPerChannel that of alpha, of embedding that of the dictionary. NULL: not
///   wanted; must be NULL where there are no weights.
/// - bias_delta: receives the gradient of the bias, a Vector, summed over batch and pixels. NULL: not wanted; must be
///   NULL where a layer can have no bias.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE in,
                                          size_t in_stride, BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                          size_t in_delta_stride, const void* BNNS_NULLABLE out, size_t out_stride,
                                          const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta, size_t out_delta_stride,
                                          BNNSNDArrayDescriptor* BNNS_NULLABLE weights_delta,
                                          BNNSNDArrayDescriptor* BNNS_NULLABLE bias_delta) BNNS_NOEXCEPT;

/// Gradients of a pooling.
/// - filter: a pooling filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: input of the forward call. Needed for Max without indices, for L2Norm, and for activations whose derivative
///   does not follow from the output; else it may be NULL.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - in_delta: descriptor of one sample of the input's gradient, in the input's sizes or as many elements densely;
///   receives batch_size samples. NULL: not wanted. Its flags say whether it is overwritten or added to.
/// - in_delta_stride: elements from one sample of that gradient to the next; 0: densely.
/// - out: output of the forward call. Needed where the layer has an activation whose derivative follows from it; else
///   it may be NULL.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// - bias_delta: receives the gradient of the bias, a Vector of the channels, summed over batch and pixels. NULL: not
///   wanted.
/// - indices: the indices that Max's forward call wrote (of UnMax: those it was given): y * width + x in the plane of
///   the channel. NULL: Max finds the maxima again in `in`; UnMax refuses. All are checked before anything is written.
/// - idx_stride: indices from one sample to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSPoolingFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE in,
                                                 size_t in_stride, BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                                 size_t in_delta_stride, const void* BNNS_NULLABLE out,
                                                 size_t out_stride, BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                 size_t out_delta_stride,
                                                 BNNSNDArrayDescriptor* BNNS_NULLABLE bias_delta,
                                                 const size_t* BNNS_NULLABLE indices, size_t idx_stride) BNNS_NOEXCEPT;

/// As BNNSPoolingFilterApplyBackwardBatch, with indices of a type of one's own.
/// - filter: a pooling filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: input of the forward call. Needed for Max without indices, for L2Norm, and for activations whose derivative
///   does not follow from the output; else it may be NULL.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - in_delta: descriptor of one sample of the input's gradient, in the input's sizes or as many elements densely;
///   receives batch_size samples. NULL: not wanted. Its flags say whether it is overwritten or added to.
/// - in_delta_stride: elements from one sample of that gradient to the next; 0: densely.
/// - out: output of the forward call. Needed where the layer has an activation whose derivative follows from it; else
///   it may be NULL.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// - bias_delta: receives the gradient of the bias, a Vector of the channels, summed over batch and pixels. NULL: not
///   wanted.
/// - indices_data_type: UInt32, UInt64, Int32 or Int64. Not looked at without indices.
/// - indices: the indices that Max's forward call wrote (of UnMax: those it was given): y * width + x in the plane of
///   the channel. NULL: Max finds the maxima again in `in`; UnMax refuses. All are checked before anything is written.
/// - idx_stride: indices from one sample to the next; 0: densely.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSPoolingFilterApplyBackwardBatchEx(BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE in,
                                                   size_t in_stride, BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                                   size_t in_delta_stride, const void* BNNS_NULLABLE out,
                                                   size_t out_stride, BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                   size_t out_delta_stride,
                                                   BNNSNDArrayDescriptor* BNNS_NULLABLE bias_delta,
                                                   const BNNSDataType indices_data_type,
                                                   const void* BNNS_NULLABLE indices, size_t idx_stride) BNNS_NOEXCEPT;

/// Gradients of a filter of two inputs.
/// - filter: a BroadcastMatMul or TensorContraction filter whose operands are both inputs.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - inA: operand A of the forward call, needed for inB_delta; else it may be NULL.
/// - inA_stride: elements from one sample of inA to the next; 0: densely.
/// - inA_delta: receives the gradient of A, one sample described; NULL: not wanted.
/// - inA_delta_stride: elements from one sample of it to the next; 0: densely.
/// - inB: operand B of the forward call, needed for inA_delta; else it may be NULL.
/// - inB_stride: elements from one sample of inB to the next; 0: densely.
/// - inB_delta: receives the gradient of B, one sample described; NULL: not wanted.
/// - inB_delta_stride: elements from one sample of it to the next; 0: densely.
/// - out: not used; may be NULL.
/// - out_stride: not used.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// - weights_delta: must be NULL: no operand is trained.
/// - bias_delta: must be NULL: there is no bias.
/// (macOS 11.0, deprecated 15.0)
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

/// Gradients of a normalization, after a forward call on the same filter with training, which kept the input.
/// - filter: a normalization filter.
/// - batch_size: samples in the batch, as in that forward call; 0 succeeds.
/// - in_delta: descriptor of one sample of the input's gradient, in the input's sizes or as many elements densely;
///   receives batch_size samples. NULL: not wanted. Its flags say whether it is overwritten or added to. It may be
///   out_delta.
/// - in_delta_stride: elements from one sample of that gradient to the next; 0: densely.
/// - out: output of the forward call. Needed where the layer has an activation whose derivative follows from it; else
///   it may be NULL.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL. The original
///   may modify it; this library does not.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// - beta_delta: receives the gradient of beta, as many elements as beta has (one for each channel; layer: for each
///   normalized element), summed. NULL: not wanted.
/// - gamma_delta: receives the gradient of gamma, likewise. NULL: not wanted.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSNormalizationFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size,
                                                       BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                                       size_t in_delta_stride, const void* BNNS_NULLABLE out,
                                                       size_t out_stride, BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                       size_t out_delta_stride,
                                                       BNNSNDArrayDescriptor* BNNS_NULLABLE beta_delta,
                                                       BNNSNDArrayDescriptor* BNNS_NULLABLE gamma_delta) BNNS_NOEXCEPT;

/// Gradients of a fused filter with one input, after a forward call on the same filter with training.
/// - filter: a fused filter that ends in a normalization.
/// - batch_size: samples in the batch, as in that forward call.
/// - in: input of the forward call, needed for the gradient of weights and where arithmetic's gradient is made of it;
///   else it may be NULL.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - in_delta: descriptor of one sample of the input's gradient, in the input's sizes or as many elements densely;
///   receives batch_size samples. NULL: not wanted. Its flags say whether it is overwritten or added to.
/// - in_delta_stride: elements from one sample of that gradient to the next; 0: densely.
/// - out: output of the forward call, needed where the normalization has an activation whose derivative follows from
///   it; else it may be NULL.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL. The original
///   may modify it; this library does not.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// - delta_parameters: one entry for each parameter, first stage first: weights, bias, beta, gamma; after arithmetic
///   beta, gamma. An entry that is NULL is not wanted; NULL: none is.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSFusedFilterApplyBackwardBatch(
    BNNSFilter filter, size_t batch_size, const void* BNNS_NULLABLE in, size_t in_stride,
    BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta, size_t in_delta_stride, const void* BNNS_NULLABLE out,
    size_t out_stride, BNNSNDArrayDescriptor* BNNS_NONNULL out_delta, size_t out_delta_stride,
    BNNSNDArrayDescriptor* BNNS_NULLABLE* BNNS_NULLABLE delta_parameters) BNNS_NOEXCEPT;

/// Gradients of a fused filter whose first stage has any number of inputs, after a forward call with training.
/// - filter: a fused filter that ends in a normalization.
/// - batch_size: samples in the batch, as in that forward call.
/// - number_of_inputs: inputs of the first stage.
/// - in: number_of_inputs pointers: inputs of the forward call. NULL, or NULL entries, where no gradient is made of
///   them (Add, Subtract).
/// - in_stride: number_of_inputs strides in elements, 0: densely; NULL: all dense.
/// - in_delta: number_of_inputs descriptors that receive the inputs' gradients, one sample each; an entry that is NULL
///   is not wanted.
/// - in_delta_stride: number_of_inputs strides in elements; 0: densely.
/// - out: output of the forward call, needed where the normalization has an activation whose derivative follows from
///   it; else it may be NULL.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// - delta_parameters: one entry for each parameter, first stage first: weights, bias, beta, gamma; after arithmetic
///   beta, gamma. An entry that is NULL is not wanted; NULL: none is.
/// (macOS 12.0, deprecated 15.0)
BNNS_API int BNNSFusedFilterApplyBackwardMultiInputBatch(
    BNNSFilter filter, size_t batch_size, size_t number_of_inputs, const void* BNNS_NULLABLE* BNNS_NULLABLE in,
    const size_t* BNNS_NULLABLE in_stride, BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL in_delta,
    const size_t* BNNS_NONNULL in_delta_stride, const void* BNNS_NULLABLE out, const size_t out_stride,
    BNNSNDArrayDescriptor* BNNS_NONNULL out_delta, size_t out_delta_stride,
    BNNSNDArrayDescriptor* BNNS_NULLABLE* BNNS_NULLABLE delta_parameters) BNNS_NOEXCEPT;

/// Gradients of an arithmetic filter.
/// - filter: an arithmetic filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - number_of_inputs: 1, 2 or 3: the operands of the function.
/// - in: number_of_inputs pointers: inputs of the forward call. NULL, or NULL entries, where the formula of the
///   gradient does not read them (Add, Subtract, Negate; the functions whose gradient follows from `out`, where that is
///   given).
/// - in_stride: number_of_inputs strides in elements, 0: densely; NULL: all dense.
/// - in_delta: number_of_inputs descriptors that receive the gradients: of a sample for Sample operands, summed over
///   the batch for Parameters. An entry may be NULL only for a Constant, which has no gradient. One tensor given as two
///   operands has one descriptor's memory for both, which receives the sum.
/// - in_delta_stride: number_of_inputs strides in elements; 0: densely.
/// - out: output of the forward call. Needed to undo an activation, and for functions whose gradient follows from it
///   where `in` is not given; else it may be NULL.
/// - out_stride: elements from one sample of `out` to the next; 0: densely.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSArithmeticFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, size_t number_of_inputs,
                                                    const void* BNNS_NULLABLE* BNNS_NULLABLE in,
                                                    const size_t* BNNS_NULLABLE in_stride,
                                                    BNNSNDArrayDescriptor* BNNS_NONNULL* BNNS_NONNULL in_delta,
                                                    const size_t* BNNS_NONNULL in_delta_stride,
                                                    const void* BNNS_NULLABLE out, const size_t out_stride,
                                                    BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                    const size_t out_delta_stride) BNNS_NOEXCEPT;

/// Gradient of a permute filter: the inverse permutation.
/// - filter: a permute filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in_delta: receives the gradient of the input, one sample described. Not NULL.
/// - in_delta_stride: elements from one sample of it to the next; 0: densely.
/// - out_delta: descriptor of one sample of the output's gradient; batch_size samples are read. Not NULL.
/// - out_delta_stride: elements from one sample of it to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSPermuteFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size,
                                                 BNNSNDArrayDescriptor* BNNS_NONNULL in_delta, size_t in_delta_stride,
                                                 const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                                 size_t out_delta_stride) BNNS_NOEXCEPT;

/// Computes the loss of a batch and, if wanted, its gradient.
/// - filter: a loss filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: predictions: batch_size samples as i_desc says.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - labels: batch_size samples of the shape and type of the input; of classes one number for each, not an index.
/// - labels_stride: elements from one sample of labels to the next; 0: densely.
/// - weights: one weight of the input's type for everything (weights_size 1), for each sample (batch_size) or for each
///   element, contiguous (batch_size * elements of i_desc). NULL with weights_size 0. Yolo ignores it.
/// - weights_size: 0, 1, batch_size or batch_size * elements of i_desc; anything else is refused.
/// - out: receives the losses, contiguous, of o_desc's type: one value, or with BNNSLossReductionNone one for each
///   sample (softmax and categorical cross entropy, cosine distance) or for each element (the others).
/// - in_delta: receives the gradient of the value in `out`, one sample described; NULL: not wanted. Cosine distance,
///   categorical cross entropy and log loss have the documented gradient, which is not always the derivative:
///   docs/differences.md.
/// - in_delta_stride: elements from one sample of it to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSLossFilterApplyBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                      size_t in_stride, const void* BNNS_NONNULL labels, size_t labels_stride,
                                      const void* BNNS_NULLABLE weights, size_t weights_size, void* BNNS_NONNULL out,
                                      BNNSNDArrayDescriptor* BNNS_NULLABLE in_delta,
                                      size_t in_delta_stride) BNNS_NOEXCEPT;

/// Gradient of a loss, given the gradient of its output.
/// - filter: a loss filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in: predictions, as in the forward call.
/// - in_stride: elements from one sample of `in` to the next; 0: densely.
/// - in_delta: receives the gradient of the predictions, one sample described. Not NULL.
/// - in_delta_stride: elements from one sample of it to the next; 0: densely.
/// - labels: as in the forward call.
/// - labels_stride: elements from one sample of labels to the next; 0: densely.
/// - weights: as in the forward call; NULL with weights_size 0.
/// - weights_size: 0, 1, batch_size or batch_size * elements of i_desc; anything else is refused.
/// - out_delta: gradient of the losses: one value or, with BNNSLossReductionNone, the terms of one sample. Not NULL.
/// - out_delta_stride: BNNSLossReductionNone: elements from one sample of it to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSLossFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, const void* BNNS_NONNULL in,
                                              size_t in_stride, BNNSNDArrayDescriptor* BNNS_NONNULL in_delta,
                                              size_t in_delta_stride, const void* BNNS_NONNULL labels,
                                              size_t labels_stride, const void* BNNS_NULLABLE weights,
                                              size_t weights_size, const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                              size_t out_delta_stride) BNNS_NOEXCEPT;

/// Gradients of multi-head attention.
/// - F: a multi-head attention filter.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - query: as in the forward call. Needed for the gradient of its weights and, without a cache, for everything; else
///   it may be NULL.
/// - query_stride: elements from one sample of query to the next; 0: densely.
/// - query_param_delta: receives the gradients of target (batch stride: target_desc.stride[2]; 0: densely), weights and
///   bias; what has no data is not wanted. NULL: none is.
/// - key: likewise.
/// - key_stride: elements from one sample of key to the next; 0: densely.
/// - key_mask: as in the forward call; NULL: none.
/// - key_mask_stride: elements from one sample of the mask to the next; 0: densely.
/// - key_param_delta: likewise. Targets of query, key and value that have the same data receive the sum, once.
/// - value: likewise.
/// - value_stride: elements from one sample of value to the next; 0: densely.
/// - value_param_delta: likewise.
/// - add_to_attention: as in the forward call; NULL: nothing.
/// - key_attn_bias_delta: receives the gradient of key_attn_bias; NULL: not wanted.
/// - value_attn_bias_delta: receives the gradient of value_attn_bias; NULL: not wanted.
/// - output: not used; may be NULL.
/// - output_stride: not used.
/// - output_param_delta: target_desc is given: the gradient of the output (batch stride: target_desc.stride[2]).
///   weights and bias receive theirs, or have no data. Not NULL.
/// - backprop_cache_size: bytes of backprop_cache, a value here.
/// - backprop_cache: what the forward call filled; NULL: it is computed again, which dropout does not allow.
/// - workspace_size: bytes of workspace. Where workspace is NULL it receives the bytes that suffice, and no gradient
///   is; NULL: no question, and the filter allocates.
/// - workspace: working memory, aligned to 8 bytes; NULL: the filter allocates.
/// (macOS 11.0, deprecated 15.0)
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

/// Bytes of the cache that training an LSTM needs.
/// - layer_params: the layer; its data are not read.
/// Returns the bytes, or SIZE_MAX on failure. (macOS 11.0, deprecated 15.0)
BNNS_API size_t BNNSComputeLSTMTrainingCacheCapacity(
    const BNNSLayerParametersLSTM* BNNS_NONNULL layer_params) BNNS_NOEXCEPT;

/// Runs an LSTM over batch_size sequences; data come from the descriptors.
/// - layer_params: sizes that are 0 in a nested descriptor are taken from the layer. Input data are needed, and some
///   place for the output; first states without data are 0, last states without data are not wanted, bias and peephole
///   weights without data are absent.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// - training_cache_ptr: receives what the gradient can use, aligned to 8 bytes; dropout is active then. NULL:
///   inference, without dropout.
/// - training_cache_capacity: bytes at training_cache_ptr, at least BNNSComputeLSTMTrainingCacheCapacity.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSDirectApplyLSTMBatchTrainingCaching(const BNNSLayerParametersLSTM* BNNS_NONNULL layer_params,
                                                     const BNNSFilterParameters* BNNS_NULLABLE filter_params,
                                                     void* BNNS_NULLABLE training_cache_ptr,
                                                     const size_t training_cache_capacity) BNNS_NOEXCEPT;

/// Runs an activation on a batch, without a filter.
/// - layer_params: as for BNNSFilterCreateLayerActivation; i_desc.data is the first sample, o_desc.data receives the
///   first result and may be the same memory.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - in_stride: elements from one sample at i_desc.data to the next; 0: densely.
/// - out_stride: elements from one sample at o_desc.data to the next; 0: densely.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSDirectApplyActivationBatch(const BNNSLayerParametersActivation* BNNS_NONNULL layer_params,
                                            const BNNSFilterParameters* BNNS_NULLABLE filter_params, size_t batch_size,
                                            size_t in_stride, size_t out_stride) BNNS_NOEXCEPT;

/// Copies between tensors of the same logical shape; layouts, strides and types may differ.
/// - dest: receives the elements; must not overlap src.
/// - src: the elements.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 11.0)
BNNS_API int BNNSCopy(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                      const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Bytes of workspace for a BNNSMatMul with the same arguments; data are not looked at.
/// - transA: A is transposed.
/// - transB: B is transposed.
/// - alpha: factor of the product.
/// - inputA: operand A.
/// - inputB: operand B.
/// - output: the result.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// Returns the bytes, or a negative number on failure. (macOS 13.0, deprecated 15.0)
BNNS_API ssize_t BNNSMatMulWorkspaceSize(const bool transA, const bool transB, const float alpha,
                                         const BNNSNDArrayDescriptor* BNNS_NONNULL inputA,
                                         const BNNSNDArrayDescriptor* BNNS_NONNULL inputB,
                                         const BNNSNDArrayDescriptor* BNNS_NONNULL output,
                                         const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Batched matrix product with broadcasting: output = alpha * op(A) * op(B), over the last two logical indices; data
/// come from the descriptors.
/// - transA: A is transposed.
/// - transB: B is transposed.
/// - alpha: factor of the product.
/// - inputA: operand A.
/// - inputB: operand B; leading indices are equal to A's, 1 or missing.
/// - output: receives the product, with the leading extents of the operands; must not overlap them.
/// - workspace: BNNSMatMulWorkspaceSize bytes, of any alignment; NULL: allocated inside.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSMatMul(const bool transA, const bool transB, const float alpha,
                        const BNNSNDArrayDescriptor* BNNS_NONNULL inputA,
                        const BNNSNDArrayDescriptor* BNNS_NONNULL inputB,
                        const BNNSNDArrayDescriptor* BNNS_NONNULL output, void* BNNS_NULLABLE workspace,
                        const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// As BNNSMatMul without a workspace, and without a result code: BNNSExtLastError() tells of a failure.
/// - transA: A is transposed.
/// - transB: B is transposed.
/// - alpha: factor of the product.
/// - inputA: operand A.
/// - inputB: operand B.
/// - output: receives the product.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 11.0, deprecated 13.0)
BNNS_API void BNNSDirectApplyBroadcastMatMul(const bool transA, const bool transB, const float alpha,
                                             const BNNSNDArrayDescriptor* BNNS_NONNULL inputA,
                                             const BNNSNDArrayDescriptor* BNNS_NONNULL inputB,
                                             const BNNSNDArrayDescriptor* BNNS_NONNULL output,
                                             const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Copies with two axes exchanged.
/// - dest: receives the elements, with the sizes of src but size[axis0] and size[axis1] exchanged; must not overlap
///   src.
/// - src: the elements.
/// - axis0: index into src's size.
/// - axis1: the other one; may be equal.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 11.0)
BNNS_API int BNNSTranspose(BNNSNDArrayDescriptor* BNNS_NONNULL dest, const BNNSNDArrayDescriptor* BNNS_NONNULL src,
                           size_t axis0, size_t axis1,
                           const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Runs a reduction, without a filter.
/// - layer_params: as for BNNSFilterCreateLayerReduction; i_desc.data is read and o_desc.data written.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 11.0)
BNNS_API int BNNSDirectApplyReduction(const BNNSLayerParametersReduction* BNNS_NONNULL layer_params,
                                      const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Compares element by element; there is no broadcasting.
/// - in0: first operand.
/// - in1: second operand, of the same sizes; layout and type may differ. May be NULL for LogicalNOT.
/// - op: which comparison or logical function.
/// - out: receives 0 or 1: data type Boolean, the same sizes.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSCompareTensor(const BNNSNDArrayDescriptor* BNNS_NONNULL in0,
                               const BNNSNDArrayDescriptor* BNNS_NONNULL in1, BNNSRelationalOperator op,
                               BNNSNDArrayDescriptor* BNNS_NONNULL out) BNNS_NOEXCEPT;

/// Repeats a tensor; the sizes imply how often.
/// - input: the tensor.
/// - output: receives the copies: each size a multiple of the input's, the type equal; must not overlap.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSTile(const BNNSNDArrayDescriptor* BNNS_NONNULL input, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                      const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Finds the K largest values along an axis, largest first; of equal ones the lower index first.
/// - K: 1 to the extent of the axis.
/// - axis: index into size; of a RowMajorMatrix 0 is the rows, size[1].
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - input: the first sample.
/// - input_batch_stride: elements from one sample of input to the next; 0: densely.
/// - best_values: receives the values: the sizes of input with K on the axis, and its type (floats may be mixed).
/// - best_values_batch_stride: elements from one sample of it to the next; 0: densely.
/// - best_indices: receives where they are along the axis, in any integer type of 8 bits or more, with the same sizes;
///   NULL: not wanted.
/// - best_indices_batch_stride: elements from one sample of it to the next; 0: densely.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 11.0)
BNNS_API int BNNSDirectApplyTopK(size_t K, size_t axis, size_t batch_size,
                                 const BNNSNDArrayDescriptor* BNNS_NONNULL input, size_t input_batch_stride,
                                 BNNSNDArrayDescriptor* BNNS_NONNULL best_values, size_t best_values_batch_stride,
                                 BNNSNDArrayDescriptor* BNNS_NULLABLE best_indices, size_t best_indices_batch_stride,
                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Tells whether given elements are among the K largest along an axis; equals of the K-th count as in.
/// - K: 1 to the extent of the axis.
/// - axis: as for BNNSDirectApplyTopK.
/// - batch_size: samples in the batch; 0 does nothing and succeeds.
/// - input: the first sample.
/// - input_batch_stride: elements from one sample of input to the next; 0: densely.
/// - test_indices: indices along the axis, one for each row: the sizes of input without the axis, or with 1 there.
/// - test_indices_batch_stride: elements from one sample of it to the next; 0: densely.
/// - output: receives Boolean answers, in the sizes of test_indices.
/// - output_batch_stride: elements from one sample of it to the next; 0: densely.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 11.0)
BNNS_API int BNNSDirectApplyInTopK(size_t K, size_t axis, size_t batch_size,
                                   const BNNSNDArrayDescriptor* BNNS_NONNULL input, size_t input_batch_stride,
                                   const BNNSNDArrayDescriptor* BNNS_NONNULL test_indices,
                                   size_t test_indices_batch_stride, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                                   size_t output_batch_stride,
                                   const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Gathers along one axis: output[.., i, ..] = input[.., indices[i], ..].
/// - axis: index into input's size.
/// - input: the data.
/// - indices: integers of 8 bits or more: a vector, or the sizes of output, and then one index for each element.
/// - output: receives the elements, of the same type; must not overlap.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// Returns 0; -1005 for an index out of range, -1003 for shapes that do not fit, another negative number otherwise.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSGather(size_t axis, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                        const BNNSNDArrayDescriptor* BNNS_NONNULL indices, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                        const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Scatters along one axis: output[.., indices[i], ..] = or += input[.., i, ..]. Elements that no index names keep
/// their values.
/// - axis: index into output's size.
/// - op: BNNSReduceFunctionNone (overwrite; the last of equal indices stays) or BNNSReduceFunctionSum.
/// - input: the values.
/// - indices: integers of 8 bits or more: a vector, or the sizes of input.
/// - output: read and written, of the same type; must not overlap.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// Returns 0; -1005 for an index out of range, -1003 for shapes that do not fit, another negative number otherwise.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSScatter(size_t axis, BNNSReduceFunction op, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                         const BNNSNDArrayDescriptor* BNNS_NONNULL indices, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                         const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Gathers slices by index vectors: output[p, ..] = input[indices[p, 0], .., indices[p, L - 1], ..].
/// - input: the data.
/// - indices: integers of 8 bits or more; the last logical index numbers the L parts of an index vector.
/// - output: receives the slices: the other indices of `indices`, then what L leaves of input's.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// Returns 0; -1005 for an index out of range, -1003 for shapes that do not fit, another negative number otherwise.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSGatherND(const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                          const BNNSNDArrayDescriptor* BNNS_NONNULL indices, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                          const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Scatters slices by index vectors, the other way of BNNSGatherND.
/// - op: BNNSReduceFunctionNone (overwrite) or BNNSReduceFunctionSum.
/// - input: the slices.
/// - indices: as for BNNSGatherND.
/// - output: read and written; elements that no index names keep their values.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// Returns 0; -1005 for an index out of range, -1003 for shapes that do not fit, another negative number otherwise.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSScatterND(BNNSReduceFunction op, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                           const BNNSNDArrayDescriptor* BNNS_NONNULL indices,
                           BNNSNDArrayDescriptor* BNNS_NONNULL output,
                           const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Moves blocks between channels and space, by a factor that follows from the heights.
/// - type: PixelShuffle, PixelUnshuffle, DepthToSpace or SpaceToDepth.
/// - input: 4DFirstMajor {N, C, H, W}.
/// - output: receives the result, 4DFirstMajor, of the same type; must not overlap.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSShuffle(const BNNSShuffleType type, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                         BNNSNDArrayDescriptor* BNNS_NONNULL output,
                         const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Keeps a band of diagonals of each innermost matrix, zero elsewhere.
/// - num_lower: diagonals kept below the main one; negative: all.
/// - num_upper: diagonals kept above it; negative: all.
/// - input: rank 2 or more; columns are the axis of the smallest stride, rows the next.
/// - output: receives the result: layout, sizes and type of input; may be input.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSBandPart(const int num_lower, const int num_upper, const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                          BNNSNDArrayDescriptor* BNNS_NONNULL output,
                          const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Crops boxes out of images and resizes each bilinearly.
/// - layer_params: what box coordinates mean, and where points are sampled.
/// - input: by rising stride: width, height, channels, images (the last two may be missing).
/// - roi: boxes: 4 numbers each, or 5 with the index of the image first.
/// - output: receives width, height, channels, images, boxes by rising stride; with 5 numbers a box without images.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSCropResize(const BNNSLayerParametersCropResize* BNNS_NONNULL layer_params,
                            const BNNSNDArrayDescriptor* BNNS_NONNULL input,
                            const BNNSNDArrayDescriptor* BNNS_NONNULL roi, BNNSNDArrayDescriptor* BNNS_NONNULL output,
                            const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Without a filter: gradients ------------------------------------------------------------------------------------

/// Gradients of an LSTM.
/// - layer_params: as in the forward call. Input data are needed for the gradients of iw_desc, and for all without a
///   cache.
/// - layer_delta_params: output_descriptor holds the gradients of sequence and last states (no data: 0);
///   input_descriptor and the gates receive theirs (no data: not wanted). Sizes are the layer's, or 0.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// - training_cache_ptr: what the forward call filled; NULL: forward runs again.
/// - training_cache_capacity: bytes at training_cache_ptr.
/// (macOS 11.0, deprecated 15.0)
BNNS_API int BNNSDirectApplyLSTMBatchBackward(const BNNSLayerParametersLSTM* BNNS_NONNULL layer_params,
                                              const BNNSLayerParametersLSTM* BNNS_NONNULL layer_delta_params,
                                              const BNNSFilterParameters* BNNS_NULLABLE filter_params,
                                              const void* BNNS_NULLABLE training_cache_ptr,
                                              const size_t training_cache_capacity) BNNS_NOEXCEPT;

/// Gradient of BNNSTile: the sum of the copies.
/// - in_delta: receives the gradient of the input; its flags say whether it is added.
/// - out_delta: gradient of the output.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSTileBackward(BNNSNDArrayDescriptor* BNNS_NONNULL in_delta,
                              const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                              const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Gradient of BNNSCropResize with respect to the images.
/// - layer_params: as in the forward call.
/// - in_delta: receives the gradient, in the shape of the images; its flags say whether it is added.
/// - roi: as in the forward call.
/// - out_delta: gradient of the output, in its shape.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSCropResizeBackward(const BNNSLayerParametersCropResize* BNNS_NONNULL layer_params,
                                    BNNSNDArrayDescriptor* BNNS_NONNULL in_delta,
                                    const BNNSNDArrayDescriptor* BNNS_NONNULL roi,
                                    const BNNSNDArrayDescriptor* BNNS_NONNULL out_delta,
                                    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Utilities ------------------------------------------------------------------------------------------------------

/// Returns a descriptor of an activation filter's own parameter: Float32, a Vector of 1 or, of PReLUPerChannel, of the
/// channels. What is written there counts from the next apply on.
/// - filter: an activation filter.
/// - target: BNNSPointerSpecifierAlpha or BNNSPointerSpecifierBeta.
/// data is NULL on failure. (macOS 11.0, deprecated 15.0)
BNNS_API BNNSNDArrayDescriptor BNNSGetPointer(BNNSFilter filter, BNNSPointerSpecifier target) BNNS_NOEXCEPT;

/// Bytes that the elements of an array span, gaps included; of sparse weights the packed bytes.
/// - array: the array.
/// Returns 0 if data is NULL, if the size is unknown, and for types narrower than a byte. (macOS 13.0)
BNNS_API size_t BNNSNDArrayGetDataSize(const BNNSNDArrayDescriptor* BNNS_NONNULL array) BNNS_NOEXCEPT;

/// Bytes that the elements of a tensor span.
/// - tensor: shape and stride count as they stand; data are not looked at.
/// Returns SIZE_MAX if an extent or stride is unknown. (macOS 15.0)
BNNS_API size_t BNNSTensorGetAllocationSize(const BNNSTensor* BNNS_NONNULL tensor) BNNS_NOEXCEPT;

/// Rank of a layout.
/// - layout: the layout.
/// Returns SIZE_MAX if it is none. (macOS 14.4)
BNNS_API size_t BNNSDataLayoutGetRank(BNNSDataLayout layout) BNNS_NOEXCEPT;

// ---- Sparse weights -------------------------------------------------------------------------------------------------

/// Packs weights given by coordinates for BNNSFilterCreateLayerFullyConnected.
/// - in_dense_shape: layout and sizes of the dense matrix; data are not used.
/// - in_indices: a pair of integers for each value, in the order of size: (column, row) of a RowMajorMatrix, (row,
///   column) otherwise.
/// - in_values: the values: Float32, Float16 or BFloat16. A place that is named twice counts twice.
/// - out: receives layout, sizes, type and data. out->data is memory of the dense matrix's bytes, aligned to 4, or
///   NULL: then it is allocated, and the caller releases it with free, or with free_memory of filter_params.
/// - sparse_params: a hint; NULL is allowed.
/// - batch_size: a hint.
/// - workspace: not needed; may be NULL.
/// - workspace_size: bytes at workspace, not needed.
/// - filter_params: options; its allocator makes out->data. NULL for the defaults.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSNDArrayFullyConnectedSparsifySparseCOO(
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_dense_shape, const BNNSNDArrayDescriptor* BNNS_NONNULL in_indices,
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_values, BNNSNDArrayDescriptor* BNNS_NONNULL out,
    const BNNSSparsityParameters* BNNS_NULLABLE sparse_params, const size_t batch_size, void* BNNS_NULLABLE workspace,
    const size_t workspace_size, const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Packs weights given by compressed rows for BNNSFilterCreateLayerFullyConnected.
/// - in_dense_shape: layout and sizes of the dense matrix; data are not used.
/// - in_column_indices: the column of each value, integers.
/// - in_row_starts: where each row begins among the values: rows + 1 integers, rising from 0 to the number of values.
/// - in_values: the values: Float32, Float16 or BFloat16.
/// - out: receives layout, sizes, type and data. out->data is memory of the dense matrix's bytes, aligned to 4, or
///   NULL: then it is allocated, and the caller releases it with free, or with free_memory of filter_params.
/// - sparse_params: a hint; NULL is allowed.
/// - batch_size: a hint.
/// - workspace: not needed; may be NULL.
/// - workspace_size: bytes at workspace, not needed.
/// - filter_params: options; its allocator makes out->data. NULL for the defaults.
/// (macOS 13.0, deprecated 15.0)
BNNS_API int BNNSNDArrayFullyConnectedSparsifySparseCSR(
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_dense_shape,
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_column_indices,
    const BNNSNDArrayDescriptor* BNNS_NONNULL in_row_starts, const BNNSNDArrayDescriptor* BNNS_NONNULL in_values,
    BNNSNDArrayDescriptor* BNNS_NONNULL out, const BNNSSparsityParameters* BNNS_NULLABLE sparse_params,
    const size_t batch_size, void* BNNS_NULLABLE workspace, const size_t workspace_size,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

// ---- Random numbers -------------------------------------------------------------------------------------------------

/// Creates a generator with a seed of the operating system's.
/// - method: BNNSRandomGeneratorMethodAES_CTR.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// Returns the generator, or NULL. (macOS 12.0)
BNNS_API BNNSRandomGenerator BNNSCreateRandomGenerator(
    BNNSRandomGeneratorMethod method, const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a generator with a given seed: the same seed gives the same numbers.
/// - method: BNNSRandomGeneratorMethodAES_CTR.
/// - seed: any number, 0 too.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// Returns the generator, or NULL. (macOS 12.0)
BNNS_API BNNSRandomGenerator BNNSCreateRandomGeneratorWithSeed(
    BNNSRandomGeneratorMethod method, uint64_t seed,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Releases a generator.
/// - generator: what a create call returned; NULL does nothing.
/// (macOS 12.0)
BNNS_API void BNNSDestroyRandomGenerator(BNNSRandomGenerator generator) BNNS_NOEXCEPT;

/// Bytes of the state of a generator.
/// - generator: a generator; many threads may use it at once.
/// Returns 0 on failure. (macOS 12.0)
BNNS_API size_t BNNSRandomGeneratorStateSize(BNNSRandomGenerator generator) BNNS_NOEXCEPT;

/// Saves the state of a generator.
/// - generator: a generator; many threads may use it at once.
/// - state_size: BNNSRandomGeneratorStateSize.
/// - state: receives state_size bytes.
/// (macOS 12.0)
BNNS_API int BNNSRandomGeneratorGetState(BNNSRandomGenerator generator, size_t state_size,
                                         void* BNNS_NONNULL state) BNNS_NOEXCEPT;

/// Restores a state that was saved, of this or another generator.
/// - generator: a generator; many threads may use it at once.
/// - state_size: BNNSRandomGeneratorStateSize.
/// - state: state_size bytes that BNNSRandomGeneratorGetState wrote; others are refused.
/// (macOS 12.0)
BNNS_API int BNNSRandomGeneratorSetState(BNNSRandomGenerator generator, size_t state_size,
                                         void* BNNS_NONNULL state) BNNS_NOEXCEPT;

/// Fills with uniform numbers of [a, b).
/// - generator: a generator; many threads may use it at once.
/// - desc: receives the numbers: Float32, Float16 or BFloat16, with data.
/// - a: lower bound.
/// - b: upper bound, which is excluded; at least a.
/// (macOS 12.0)
BNNS_API int BNNSRandomFillUniformFloat(BNNSRandomGenerator generator, BNNSNDArrayDescriptor* BNNS_NONNULL desc,
                                        float a, float b) BNNS_NOEXCEPT;

/// Fills with uniform integers of [a, b).
/// - generator: a generator; many threads may use it at once.
/// - desc: receives the integers, of any integer type, with data.
/// - a: lower bound.
/// - b: upper bound, which is excluded; above a. Bounds that the type cannot hold are refused.
/// (macOS 12.0)
BNNS_API int BNNSRandomFillUniformInt(BNNSRandomGenerator generator, BNNSNDArrayDescriptor* BNNS_NONNULL desc,
                                      int64_t a, int64_t b) BNNS_NOEXCEPT;

/// Fills with normally distributed numbers.
/// - generator: a generator; many threads may use it at once.
/// - desc: receives the numbers: Float32, Float16 or BFloat16, with data.
/// - mean: mean, finite.
/// - stddev: standard deviation, finite, 0 or more.
/// (macOS 13.0)
BNNS_API int BNNSRandomFillNormalFloat(BNNSRandomGenerator generator, BNNSNDArrayDescriptor* BNNS_NONNULL desc,
                                       float mean, float stddev) BNNS_NOEXCEPT;

/// Fills with samples of categorical distributions: class indices as floats.
/// - generator: a generator; many threads may use it at once.
/// - desc: its data receive the samples, although it is const: the leading sizes of probabilities, and a last axis of
///   any number of samples, or none for one sample.
/// - probabilities: one row for each distribution, classes along the last logical axis; rows need not sum to 1.
/// - log_probabilities: rows are logarithms of probabilities, up to a constant.
/// (macOS 14.0)
BNNS_API int BNNSRandomFillCategoricalFloat(BNNSRandomGenerator generator,
                                            const BNNSNDArrayDescriptor* BNNS_NONNULL desc,
                                            const BNNSNDArrayDescriptor* BNNS_NONNULL probabilities,
                                            bool log_probabilities) BNNS_NOEXCEPT;

// ---- Nearest neighbours ---------------------------------------------------------------------------------------------

/// Creates a store of samples under the Euclidean distance.
/// - max_n_samples: samples that it can hold, 1 or more.
/// - n_features: numbers in a sample, 1 or more.
/// - n_neighbors: neighbours that a question asks for, 1 or more.
/// - data_type: Float32 or Float16.
/// - filter_params: options; NULL for the defaults. Flags have no meaning here, threads and allocator do.
/// Returns the store, or NULL. (macOS 14.0)
BNNS_API BNNSNearestNeighbors BNNSCreateNearestNeighbors(
    const unsigned int max_n_samples, const unsigned int n_features, const unsigned int n_neighbors,
    const BNNSDataType data_type, const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Releases a store.
/// - knn: what BNNSCreateNearestNeighbors returned; NULL does nothing.
/// (macOS 14.0)
BNNS_API void BNNSDestroyNearestNeighbors(BNNSNearestNeighbors knn) BNNS_NOEXCEPT;

/// Appends samples. More than fit are refused, and none of them kept.
/// - knn: a store.
/// - n_new_samples: samples to append.
/// - data_ptr: n_new_samples * n_features numbers of the store's type, sample after sample.
/// (macOS 14.0)
BNNS_API int BNNSNearestNeighborsLoad(BNNSNearestNeighbors knn, const unsigned int n_new_samples,
                                      const void* BNNS_NONNULL data_ptr) BNNS_NOEXCEPT;

/// Nearest neighbours of a loaded sample, nearest first: itself, at distance 0, then the others; of equal distances the
/// lower index first. Missing ones are -1 and INFINITY.
/// - knn: a store.
/// - sample_number: the sample, counted from 0 as they were loaded; negative: all samples, row after row.
/// - indices: receives n_neighbors integers for each sample asked for; NULL: not wanted.
/// - distances: receives n_neighbors numbers of the store's type for each; NULL: not wanted.
/// (macOS 14.0)
BNNS_API int BNNSNearestNeighborsGetInfo(const BNNSNearestNeighbors knn, const int sample_number,
                                         int* BNNS_NULLABLE indices, void* BNNS_NULLABLE distances) BNNS_NOEXCEPT;

// ---- The API of macOS 10.12 -----------------------------------------------------------------------------------------

/// Creates a convolution.
/// - in_desc: input images.
/// - out_desc: output images.
/// - layer_params: in_channels and out_channels as in the descriptors; weights are out_channels x in_channels x
///   k_height x k_width; bias has out_channels elements, or no data.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 10.12, deprecated 11.0)
BNNS_API BNNSFilter BNNSFilterCreateConvolutionLayer(
    const BNNSImageStackDescriptor* BNNS_NONNULL in_desc, const BNNSImageStackDescriptor* BNNS_NONNULL out_desc,
    const BNNSConvolutionLayerParameters* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a fully connected layer.
/// - in_desc: input vector.
/// - out_desc: output vector.
/// - layer_params: in_size and out_size as in the descriptors; weights are out_size rows of in_size; bias has out_size
///   elements, or no data.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 10.12, deprecated 11.0)
BNNS_API BNNSFilter BNNSFilterCreateFullyConnectedLayer(
    const BNNSVectorDescriptor* BNNS_NONNULL in_desc, const BNNSVectorDescriptor* BNNS_NONNULL out_desc,
    const BNNSFullyConnectedLayerParameters* BNNS_NONNULL layer_params,
    const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates a pooling.
/// - in_desc: input images.
/// - out_desc: output images.
/// - layer_params: in_channels and out_channels as in the descriptors, and equal; bias has one element for each
///   channel, or no data.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 10.12, deprecated 11.0)
BNNS_API BNNSFilter BNNSFilterCreatePoolingLayer(const BNNSImageStackDescriptor* BNNS_NONNULL in_desc,
                                                 const BNNSImageStackDescriptor* BNNS_NONNULL out_desc,
                                                 const BNNSPoolingLayerParameters* BNNS_NONNULL layer_params,
                                                 const BNNSFilterParameters* BNNS_NULLABLE filter_params) BNNS_NOEXCEPT;

/// Creates an activation of a vector, or a conversion of data types.
/// - in_desc: input vector.
/// - out_desc: output vector, of the same size; the type may differ.
/// - activation: the function.
/// - filter_params: options (BNNSFilterParameters): weights in the caller's memory, threads, allocator; NULL for the
///   defaults.
/// Returns the filter, or NULL. (macOS 10.13, deprecated 11.0)
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
