// OpenBNNS: the structures of the BNNS C API.
//
// The text is ours; names, values and layouts are those of the classic BNNS C API, so that BNNS code written for
// Apple's Accelerate framework compiles unmodified and structures can be passed between independently built modules.

// clang-format off

#ifndef __BNNS_STRUCTURES_HEADER__
#define __BNNS_STRUCTURES_HEADER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bnns_constants.h"

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

#ifdef __cplusplus
extern "C" {
#endif

/// Allocates `size` bytes aligned to `alignment` into *memptr, as posix_memalign does; returns 0 on success.
/// (macOS 10.12)
typedef int (*BNNSAlloc)(void* BNNS_NULLABLE* BNNS_NULLABLE memptr, size_t alignment, size_t size);

/// Releases what the matching BNNSAlloc returned, as free does. (macOS 10.12)
typedef void (*BNNSFree)(void* BNNS_NULL_UNSPECIFIED ptr);

// ---- Descriptors ----------------------------------------------------------------------------------------------------

/// An activation function and its parameters. (macOS 10.12; 48 bytes)
typedef struct {
  BNNSActivationFunction function;                   ///< Which function
  float alpha;                                       ///< First parameter, where the function has one
  float beta;                                        ///< Second parameter, where the function has two
  int32_t iscale;                                    ///< IntegerLinearSaturate: (iscale * x + ioffset) >> ishift
  int32_t ioffset;                                   ///< See iscale
  int32_t ishift;                                    ///< See iscale; 0 to 63
  const int32_t* BNNS_NULLABLE iscale_per_channel;   ///< IntegerLinearSaturatePerChannel: one for each channel
  const int32_t* BNNS_NULLABLE ioffset_per_channel;  ///< One for each channel
  const int32_t* BNNS_NULLABLE ishift_per_channel;   ///< One for each channel
} BNNSActivation;

/// An n-dimensional array: layout, extents, strides, data and its type. All zero, or data NULL, in an optional place:
/// absent. (macOS 11.0; 176 bytes)
typedef struct {
  BNNSNDArrayFlags flags;                    ///< Gradients that a call writes: overwrite or accumulate; else not used
  BNNSDataLayout layout;                     ///< Order of axes; the rank is layout >> 16
  size_t size[BNNS_MAX_TENSOR_DIMENSION];    ///< Extent of each axis, as many as the rank
  size_t stride[BNNS_MAX_TENSOR_DIMENSION];  ///< In elements, the fastest axis first; 0: contiguous
  void* BNNS_NULLABLE data;                  ///< The elements; NULL: absent, where that is allowed
  BNNSDataType data_type;                    ///< Type of the elements
  void* BNNS_NULLABLE table_data;            ///< Indexed types: 2^bits values; else not used
  BNNSDataType table_data_type;              ///< Type of the table
  float data_scale;                          ///< Integer to float: value * scale + bias; 0 means 1
  float data_bias;                           ///< See data_scale
} BNNSNDArrayDescriptor;

/// The descriptor of the graph era; here for BNNSTensorGetAllocationSize. (macOS 15.0; 160 bytes)
typedef struct {
  BNNSDataType data_type;                     ///< Type of the elements
  uint8_t rank;                               ///< Number of axes
  ssize_t shape[BNNS_MAX_TENSOR_DIMENSION];   ///< Extent of each axis; negative: dynamic
  ssize_t stride[BNNS_MAX_TENSOR_DIMENSION];  ///< In elements; 0 is meant literally
  void* BNNS_NULLABLE data;                   ///< The elements
  size_t data_size_in_bytes;                  ///< Bytes at data
  const char* BNNS_NULLABLE name;             ///< Name, may be NULL
} BNNSTensor;

/// Weights, bias and activation of one LSTM gate. (macOS 11.0, deprecated 15.0; 928 bytes)
typedef struct {
  BNNSNDArrayDescriptor iw_desc[2];  ///< Input weights: [0] first layer, [1] the further layers
  BNNSNDArrayDescriptor hw_desc;     ///< Weights of the hidden state, [layers][directions][hidden][hidden]
  BNNSNDArrayDescriptor cw_desc;     ///< Peephole weights of the cell state, the same shape; data NULL: none
  BNNSNDArrayDescriptor b_desc;      ///< Bias, [layers][directions][hidden]; data NULL: none
  BNNSActivation activation;         ///< Activation of the gate
} BNNSLSTMGateDescriptor;

/// Input or output of an LSTM: the sequence and the first or last states. (macOS 11.0, deprecated 15.0; 528 bytes)
typedef struct {
  /// The sequence: SNE [steps][batch][features] or NSE [batch][steps][features]
  BNNSNDArrayDescriptor data_desc;
  /// Hidden states, [layers][directions][batch][hidden]; data NULL: 0, or not wanted
  BNNSNDArrayDescriptor hidden_desc;
  BNNSNDArrayDescriptor cell_state_desc;  ///< Cell states, likewise
} BNNSLSTMDataDescriptor;

/// Operands of a unary arithmetic function. (macOS 11.0, deprecated 15.0; 368 bytes)
typedef struct {
  BNNSNDArrayDescriptor in;     ///< Input
  BNNSDescriptorType in_type;   ///< Role of the input
  BNNSNDArrayDescriptor out;    ///< Output
  BNNSDescriptorType out_type;  ///< Role of the output
} BNNSArithmeticUnary;

/// Operands of a binary arithmetic function. (macOS 11.0, deprecated 15.0; 552 bytes)
typedef struct {
  BNNSNDArrayDescriptor in1;    ///< First input
  BNNSDescriptorType in1_type;  ///< Role of the first input
  BNNSNDArrayDescriptor in2;    ///< Second input
  BNNSDescriptorType in2_type;  ///< Role of the second input
  BNNSNDArrayDescriptor out;    ///< Output
  BNNSDescriptorType out_type;  ///< Role of the output
} BNNSArithmeticBinary;

/// Operands of a ternary arithmetic function. (macOS 12.0, deprecated 15.0; 736 bytes)
typedef struct {
  BNNSNDArrayDescriptor in1;    ///< First input
  BNNSDescriptorType in1_type;  ///< Role of the first input
  BNNSNDArrayDescriptor in2;    ///< Second input
  BNNSDescriptorType in2_type;  ///< Role of the second input
  BNNSNDArrayDescriptor in3;    ///< Third input
  BNNSDescriptorType in3_type;  ///< Role of the third input
  BNNSNDArrayDescriptor out;    ///< Output
  BNNSDescriptorType out_type;  ///< Role of the output
} BNNSArithmeticTernary;

/// One projection of multi-head attention. (macOS 11.0; 528 bytes)
typedef struct {
  BNNSNDArrayDescriptor target_desc;  ///< One sample of what is projected, or of the result
  BNNSNDArrayDescriptor weights;      ///< Projection weights
  BNNSNDArrayDescriptor bias;         ///< Bias; data NULL: none
} BNNSMHAProjectionParameters;

// ---- Layers ---------------------------------------------------------------------------------------------------------

/// Convolution and transposed convolution. (macOS 11.0, deprecated 15.0; 840 bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;  ///< Input, ImageCHW {width, height, channels}; its data are not used
  BNNSNDArrayDescriptor w_desc;  ///< Weights; OIHW: {k_width, k_height, inputs / groups, outputs}
  BNNSNDArrayDescriptor o_desc;  ///< Output, ImageCHW {width, height, channels}; its data are not used
  BNNSNDArrayDescriptor bias;    ///< Vector of the output channels; data NULL: none
  BNNSActivation activation;     ///< Activation applied last
  size_t x_stride;               ///< Horizontal step; 0 means 1
  size_t y_stride;               ///< Vertical step; 0 means 1
  size_t x_dilation_stride;      ///< Horizontal dilation; 0 and 1: none
  size_t y_dilation_stride;      ///< Vertical dilation; 0 and 1: none
  size_t x_padding;              ///< Columns of zeros on each side
  size_t y_padding;              ///< Rows of zeros on each side
  size_t groups;                 ///< Channel groups, a divisor of both channels; 0 and 1: one group
  size_t pad[4];                 ///< Left, right, up, down; used if x_padding and y_padding are 0
} BNNSLayerParametersConvolution;

/// Fully connected: output = activation(weights * input + bias). (macOS 11.0, deprecated 15.0; 752 bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;  ///< Input, any layout; its data are not used
  BNNSNDArrayDescriptor w_desc;  ///< RowMajorMatrix {inputs, outputs}, ColumnMajorMatrix {outputs, inputs}, or sparse
  BNNSNDArrayDescriptor o_desc;  ///< Output, any layout; its data are not used
  BNNSNDArrayDescriptor bias;    ///< Vector of the outputs; data NULL: none
  BNNSActivation activation;     ///< Activation applied last
} BNNSLayerParametersFullyConnected;

/// Pooling and unpooling. (macOS 11.0, deprecated 15.0; 680 bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;          ///< Input, ImageCHW {width, height, channels}; its data are not used
  /// Output, ImageCHW {width, height, channels}; as many channels; its data are not used
  BNNSNDArrayDescriptor o_desc;
  BNNSNDArrayDescriptor bias;            ///< Vector of the channels; data NULL: none
  BNNSActivation activation;             ///< Activation applied last
  BNNSPoolingFunction pooling_function;  ///< What is computed
  size_t k_width;                        ///< Width of the window
  size_t k_height;                       ///< Height of the window
  size_t x_stride;                       ///< Horizontal step; 0 means 1
  size_t y_stride;                       ///< Vertical step; 0 means 1
  size_t x_dilation_stride;              ///< Horizontal dilation; 0 and 1: none
  size_t y_dilation_stride;              ///< Vertical dilation; 0 and 1: none
  size_t x_padding;                      ///< Columns of padding on each side
  size_t y_padding;                      ///< Rows of padding on each side
  size_t pad[4];                         ///< Left, right, up, down; used if x_padding and y_padding are 0
} BNNSLayerParametersPooling;

/// A stand-alone activation; Identity between different data types is a conversion. (macOS 11.0, deprecated 15.0; 408
/// bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;  ///< Input
  BNNSNDArrayDescriptor o_desc;  ///< Output, with as many elements
  BNNSActivation activation;     ///< The function
  /// Softmax and its kind: bit k selects the axis of size[k], bit rank the batch; 0: axis 0
  uint32_t axis_flags;
} BNNSLayerParametersActivation;

// ---- Losses: every structure begins like BNNSLayerParametersLossBase ------------------------------------------------

/// Losses without parameters of their own, and the beginning of all the others. (macOS 11.0, deprecated 15.0; 368
/// bytes)
typedef struct {
  BNNSLossFunction function;            ///< Which function
  BNNSNDArrayDescriptor i_desc;         ///< Prediction of one sample; a softmax runs over all of its elements
  BNNSNDArrayDescriptor o_desc;         ///< Type of the losses; all zero: the input's type
  BNNSLossReductionFunction reduction;  ///< How the terms of a batch are combined; None: not
} BNNSLayerParametersLossBase;

/// Softmax followed by cross entropy. (macOS 11.0, deprecated 15.0; 368 bytes)
typedef struct {
  BNNSLossFunction function;            ///< Which function
  BNNSNDArrayDescriptor i_desc;         ///< Prediction of one sample; a softmax runs over all of its elements
  BNNSNDArrayDescriptor o_desc;         ///< Type of the losses; all zero: the input's type
  BNNSLossReductionFunction reduction;  ///< How the terms of a batch are combined; None: not
  float label_smooth;                   ///< Smoothing s: t' = t*(1-s) + s/n over n classes
} BNNSLayerParametersLossSoftmaxCrossEntropy;

/// Sigmoid followed by cross entropy. (macOS 11.0, deprecated 15.0; 368 bytes)
typedef struct {
  BNNSLossFunction function;            ///< Which function
  BNNSNDArrayDescriptor i_desc;         ///< Prediction of one sample; a softmax runs over all of its elements
  BNNSNDArrayDescriptor o_desc;         ///< Type of the losses; all zero: the input's type
  BNNSLossReductionFunction reduction;  ///< How the terms of a batch are combined; None: not
  float label_smooth;                   ///< Smoothing s: t' = t*(1-s) + s/2
} BNNSLayerParametersLossSigmoidCrossEntropy;

/// Huber loss. (macOS 11.0, deprecated 15.0; 368 bytes)
typedef struct {
  BNNSLossFunction function;            ///< Which function
  BNNSNDArrayDescriptor i_desc;         ///< Prediction of one sample; a softmax runs over all of its elements
  BNNSNDArrayDescriptor o_desc;         ///< Type of the losses; all zero: the input's type
  BNNSLossReductionFunction reduction;  ///< How the terms of a batch are combined; None: not
  float huber_delta;                    ///< Where the loss turns from quadratic to linear, above 0
} BNNSLayerParametersLossHuber;

/// Object detection on a grid of anchor boxes. (macOS 11.0, deprecated 15.0; 440 bytes)
typedef struct {
  BNNSLossFunction function;            ///< Which function
  /// [rows][columns][anchor boxes][anchor_box_size]: x, y, w, h, confidence, classes
  BNNSNDArrayDescriptor i_desc;
  BNNSNDArrayDescriptor o_desc;         ///< Type of the loss; all zero: the input's type
  BNNSLossReductionFunction reduction;  ///< BNNSLossReductionSum
  float huber_delta;                    ///< Of the width and height loss; 0 means 1
  size_t number_of_grid_columns;        ///< Columns of the grid
  size_t number_of_grid_rows;           ///< Rows of the grid
  size_t number_of_anchor_boxes;        ///< Anchor boxes per cell
  size_t anchor_box_size;               ///< Values per box: 5 + number of classes
  bool rescore;                         ///< Confidence target is the overlap instead of 1
  float scale_xy;                       ///< Weight of the position loss
  float scale_wh;                       ///< Weight of the size loss
  float scale_object;                   ///< Weight of the confidence loss with an object
  float scale_no_object;                ///< Weight of the confidence loss without
  float scale_classification;           ///< Weight of the class loss
  float object_minimum_iou;             ///< Overlap from which a box holds an object
  float no_object_maximum_iou;          ///< Overlap up to which it does not
  float* BNNS_NONNULL anchors_data;     ///< Width and height of each anchor box, 2 * number_of_anchor_boxes, copied
} BNNSLayerParametersLossYolo;

// ---- Optimizers -----------------------------------------------------------------------------------------------------

/// Stochastic gradient descent with momentum. (macOS 11.0, deprecated 15.0; 40 bytes)
typedef struct {
  float learning_rate;                                      ///< Step size
  float momentum;                                           ///< Momentum; 0: none
  float gradient_scale;                                     ///< Factor of gradients after clipping; 0: no learning
  float regularization_scale;                               ///< Strength of the penalty
  bool clip_gradients;                                      ///< Clamp gradients to the range below
  float clip_gradients_min;                                 ///< Lower bound of a gradient
  float clip_gradients_max;                                 ///< Upper bound of a gradient
  bool nesterov;                                            ///< Nesterov's form
  BNNSOptimizerRegularizationFunction regularization_func;  ///< Kind of penalty
  BNNSOptimizerSGDMomentumVariant sgd_momentum_variant;     ///< Order of the steps
} BNNSOptimizerSGDMomentumFields;

/// Stochastic gradient descent with momentum, and a choice of clipping. (macOS 12.0, deprecated 15.0; 48 bytes)
typedef struct {
  float learning_rate;                                      ///< Step size
  float momentum;                                           ///< Momentum; 0: none
  float gradient_scale;                                     ///< Factor of gradients after clipping; 0: no learning
  float regularization_scale;                               ///< Strength of the penalty
  bool nesterov;                                            ///< Nesterov's form
  BNNSOptimizerRegularizationFunction regularization_func;  ///< Kind of penalty
  BNNSOptimizerSGDMomentumVariant sgd_momentum_variant;     ///< Order of the steps
  BNNSOptimizerClippingFunction clipping_func;              ///< Kind of clipping
  float clip_gradients_min;                                 ///< Lower bound of a gradient
  float clip_gradients_max;                                 ///< Upper bound of a gradient
  float clip_gradients_max_norm;                            ///< Clipping by norm: the largest norm
  float clip_gradients_use_norm;                            ///< By global norm: the norm; 0: it is computed
} BNNSOptimizerSGDMomentumWithClippingFields;

/// Adam, AdamW and their AMSGrad variants. (macOS 11.0, deprecated 15.0; 44 bytes)
typedef struct {
  float learning_rate;                                      ///< Step size
  float beta1;                                              ///< Decay of the first moment
  float beta2;                                              ///< Decay of the second moment
  float time_step;                                          ///< Number of this step, kept by the caller; the first is 1
  float epsilon;                                            ///< Added to the denominator
  float gradient_scale;                                     ///< Factor of gradients after clipping; 0: no learning
  float regularization_scale;                               ///< Strength of the penalty; AdamW: of the weight decay
  bool clip_gradients;                                      ///< Clamp gradients to the range below
  float clip_gradients_min;                                 ///< Lower bound of a gradient
  float clip_gradients_max;                                 ///< Upper bound of a gradient
  BNNSOptimizerRegularizationFunction regularization_func;  ///< Kind of penalty
} BNNSOptimizerAdamFields;

/// Adam, AdamW and their AMSGrad variants, with a choice of clipping. (macOS 12.0, deprecated 15.0; 52 bytes)
typedef struct {
  float learning_rate;                                      ///< Step size
  float beta1;                                              ///< Decay of the first moment
  float beta2;                                              ///< Decay of the second moment
  float time_step;                                          ///< Number of this step, kept by the caller; the first is 1
  float epsilon;                                            ///< Added to the denominator
  float gradient_scale;                                     ///< Factor of gradients after clipping; 0: no learning
  float regularization_scale;                               ///< Strength of the penalty; AdamW: of the weight decay
  BNNSOptimizerRegularizationFunction regularization_func;  ///< Kind of penalty
  BNNSOptimizerClippingFunction clipping_func;              ///< Kind of clipping
  float clip_gradients_min;                                 ///< Lower bound of a gradient
  float clip_gradients_max;                                 ///< Upper bound of a gradient
  float clip_gradients_max_norm;                            ///< Clipping by norm: the largest norm
  float clip_gradients_use_norm;                            ///< By global norm: the norm; 0: it is computed
} BNNSOptimizerAdamWithClippingFields;

/// RMSProp. (macOS 11.0, deprecated 15.0; 44 bytes)
typedef struct {
  float learning_rate;                                      ///< Step size
  float alpha;                                              ///< Decay of the squared gradient
  float epsilon;                                            ///< Added to the denominator
  bool centered;                                            ///< Subtract the mean gradient
  float momentum;                                           ///< Momentum; 0: none
  float gradient_scale;                                     ///< Factor of gradients after clipping; 0: no learning
  float regularization_scale;                               ///< Strength of the penalty
  bool clip_gradients;                                      ///< Clamp gradients to the range below
  float clip_gradients_min;                                 ///< Lower bound of a gradient
  float clip_gradients_max;                                 ///< Upper bound of a gradient
  BNNSOptimizerRegularizationFunction regularization_func;  ///< Kind of penalty
} BNNSOptimizerRMSPropFields;

/// RMSProp, with a choice of clipping. (macOS 12.0, deprecated 15.0; 52 bytes)
typedef struct {
  float learning_rate;                                      ///< Step size
  float alpha;                                              ///< Decay of the squared gradient
  float epsilon;                                            ///< Added to the denominator
  bool centered;                                            ///< Subtract the mean gradient
  float momentum;                                           ///< Momentum; 0: none
  float gradient_scale;                                     ///< Factor of gradients after clipping; 0: no learning
  float regularization_scale;                               ///< Strength of the penalty
  BNNSOptimizerRegularizationFunction regularization_func;  ///< Kind of penalty
  BNNSOptimizerClippingFunction clipping_func;              ///< Kind of clipping
  float clip_gradients_min;                                 ///< Lower bound of a gradient
  float clip_gradients_max;                                 ///< Upper bound of a gradient
  float clip_gradients_max_norm;                            ///< Clipping by norm: the largest norm
  float clip_gradients_use_norm;                            ///< By global norm: the norm; 0: it is computed
} BNNSOptimizerRMSPropWithClippingFields;

// ---- More layers ----------------------------------------------------------------------------------------------------

/// Batch, instance, layer and group normalization; the normType argument says which. (macOS 11.0, deprecated 15.0; 1128
/// bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;                ///< Input, ImageCHW or Vector
  BNNSNDArrayDescriptor o_desc;                ///< Output, the same sizes
  /// Shift, one for each channel (layer: normalized element); data NULL: 0
  BNNSNDArrayDescriptor beta_desc;
  BNNSNDArrayDescriptor gamma_desc;            ///< Scale, likewise; data NULL: 1
  /// Batch and instance: running mean, Float32, one a channel; data NULL: none
  BNNSNDArrayDescriptor moving_mean_desc;
  BNNSNDArrayDescriptor moving_variance_desc;  ///< Batch and instance: running variance, likewise
  float momentum;                              ///< Share of the old running statistics, 0 to 1
  float epsilon;                               ///< Added to the variance, 0 or more
  BNNSActivation activation;                   ///< Activation applied last
  size_t num_groups;                           ///< Group: number of groups, a divisor of the channels
  size_t normalization_axis;                   ///< Layer: 0 = CHW, 1 = HW, 2 = W
} BNNSLayerParametersNormalization;

/// Dropout. (macOS 11.0, deprecated 15.0; 368 bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;  ///< Input
  BNNSNDArrayDescriptor o_desc;  ///< Output, the same sizes
  float rate;                    ///< Probability of dropping, in [0,1)
  uint32_t seed;                 ///< The same seed gives the same decisions; 0: one of the operating system's
  uint8_t control;               ///< Bit k: one decision for all elements along axis k
} BNNSLayerParametersDropout;

/// A stack of LSTM layers. (macOS 11.0, deprecated 15.0; 5040 bytes)
typedef struct {
  size_t input_size;                          ///< Features of the input
  size_t hidden_size;                         ///< Features of the hidden state
  size_t batch_size;                          ///< Number of sequences
  size_t num_layers;                          ///< Layers in the stack
  size_t seq_len;                             ///< Steps in a sequence
  float dropout;                              ///< Dropout between layers, in [0,1), while a cache is filled
  uint32_t lstm_flags;                        ///< BNNSLayerFlags: both directions, default activations
  /// UInt32 Vector of seq_len: sequences active at each step, not rising; data NULL: all
  BNNSNDArrayDescriptor sequence_descriptor;
  BNNSLSTMDataDescriptor input_descriptor;    ///< Input sequence, first states
  BNNSLSTMDataDescriptor output_descriptor;   ///< Output sequence, last states
  BNNSLSTMGateDescriptor input_gate;          ///< Input gate
  BNNSLSTMGateDescriptor forget_gate;         ///< Forget gate
  BNNSLSTMGateDescriptor candidate_gate;      ///< Candidate gate
  BNNSLSTMGateDescriptor output_gate;         ///< Output gate
  BNNSActivation hidden_activation;           ///< Activation of the cell state
} BNNSLayerParametersLSTM;

/// Element-wise arithmetic. (macOS 11.0, deprecated 15.0; 64 bytes)
typedef struct {
  BNNSArithmeticFunction arithmetic_function;     ///< Which function
  /// BNNSArithmeticUnary, Binary or Ternary, as the function has operands
  void* BNNS_NONNULL arithmetic_function_fields;
  BNNSActivation activation;                      ///< Activation applied last
} BNNSLayerParametersArithmetic;

/// Reordering of axes. (macOS 11.0, deprecated 15.0; 416 bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;                   ///< Input
  BNNSNDArrayDescriptor o_desc;                   ///< Output
  size_t permutation[BNNS_MAX_TENSOR_DIMENSION];  ///< Input axis that becomes output axis k
} BNNSLayerParametersPermute;

/// Contraction of two tensors over named indices. (macOS 11.0, deprecated 15.0; 544 bytes)
typedef struct {
  const char* BNNS_NONNULL operation;  ///< Contraction in index notation: "a_ij, b_jk -> out_ik"
  float alpha;                         ///< Factor of the product
  float beta;                          ///< Factor of the old output, 0 or 1
  BNNSNDArrayDescriptor iA_desc;       ///< First operand A
  BNNSNDArrayDescriptor iB_desc;       ///< Second operand B; not used with one operand
  BNNSNDArrayDescriptor o_desc;        ///< Output
} BNNSLayerParametersTensorContraction;

/// Gram matrix of the channels. (macOS 11.0, deprecated 15.0; 360 bytes)
typedef struct {
  float alpha;                   ///< Factor of the product
  BNNSNDArrayDescriptor i_desc;  ///< Input, ImageCHW {width, height, channels} or more axes
  BNNSNDArrayDescriptor o_desc;  ///< Output, channels x channels
} BNNSLayerParametersGram;

/// Resizing by interpolation. (macOS 11.0, deprecated 15.0; 368 bytes)
typedef struct {
  BNNSInterpolationMethod method;  ///< Interpolation
  BNNSNDArrayDescriptor i_desc;    ///< Input
  BNNSNDArrayDescriptor o_desc;    ///< Output
  bool align_corners;              ///< Corner points of input and output coincide
} BNNSLayerParametersResize;

/// Cropping of boxes and resizing of each; the tensors are arguments of BNNSCropResize. (macOS 13.0, deprecated 15.0;
/// 24 bytes)
typedef struct {
  bool normalized_coordinates;                ///< Boxes are in [0,1] instead of pixels
  float spatial_scale;                        ///< Box coordinates are multiplied by this
  float extrapolation_value;                  ///< Value outside the input
  BNNSLinearSamplingMode sampling_mode;       ///< Where points are sampled
  BNNSBoxCoordinateMode box_coordinate_mode;  ///< What the numbers of a box mean
  BNNSInterpolationMethod method;             ///< Interpolation
} BNNSLayerParametersCropResize;

/// Batched matrix product: output = alpha * A * B + beta * output. (macOS 11.0, deprecated 15.0; 544 bytes)
typedef struct {
  float alpha;                    ///< Factor of the product
  float beta;                     ///< Factor of the old output, 0 or 1
  bool transA;                    ///< Transpose A
  bool transB;                    ///< Transpose B
  bool quadratic;                 ///< B is A; iB_desc is not used
  bool a_is_weights;              ///< A is trained weights: iA_desc.data
  bool b_is_weights;              ///< B is trained weights: iB_desc.data
  BNNSNDArrayDescriptor iA_desc;  ///< First operand A
  BNNSNDArrayDescriptor iB_desc;  ///< Second operand B
  BNNSNDArrayDescriptor o_desc;   ///< Output
} BNNSLayerParametersBroadcastMatMul;

/// Multi-head attention. (macOS 11.0, deprecated 15.0; 2480 bytes)
typedef struct {
  BNNSMHAProjectionParameters query;      ///< Query: target (L, d_model), weights (d_model, d_key, heads)
  BNNSMHAProjectionParameters key;        ///< Key: target (S, k_dim), weights (k_dim, d_key, heads)
  BNNSMHAProjectionParameters value;      ///< Value: target (S, v_dim), weights (v_dim, d_value, heads)
  bool add_zero_attn;                     ///< Add a key and a value of zeros
  BNNSNDArrayDescriptor key_attn_bias;    ///< Row (d_key, heads) added to the keys; data NULL: none
  BNNSNDArrayDescriptor value_attn_bias;  ///< Row (d_value, heads) added to the values; both or none
  BNNSMHAProjectionParameters output;     ///< Output: target (L, d_model), weights (heads * d_value, d_model)
  float dropout;                          ///< Dropout of the attention weights; outside (0,1): none
  uint32_t seed;                          ///< 0: not seeded
} BNNSLayerParametersMultiheadAttention;

/// Reduction over axes. (macOS 11.0; 536 bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;    ///< Input
  BNNSNDArrayDescriptor o_desc;    ///< Output; reduced axes have extent 1
  BNNSNDArrayDescriptor w_desc;    ///< Weights in the sizes of the input; data NULL: none
  BNNSReduceFunction reduce_func;  ///< What is computed
  float epsilon;                   ///< SumLog: added to each element
} BNNSLayerParametersReduction;

/// Padding. (macOS 11.0, deprecated 15.0; 488 bytes)
typedef struct {
  BNNSNDArrayDescriptor i_desc;                       ///< Input
  BNNSNDArrayDescriptor o_desc;                       ///< Output
  size_t padding_size[BNNS_MAX_TENSOR_DIMENSION][2];  ///< Elements before and after, for each axis
  BNNSPaddingMode padding_mode;                       ///< What fills the padding
  uint32_t padding_value;                             ///< Constant: its bits; the leading bytes are used
} BNNSLayerParametersPadding;

/// Table lookup. (macOS 12.0, deprecated 15.0; 552 bytes)
typedef struct {
  BNNSEmbeddingFlags flags;          ///< BNNSEmbeddingFlags
  BNNSNDArrayDescriptor i_desc;      ///< Indices, integers of 8 bits or more
  BNNSNDArrayDescriptor o_desc;      ///< Output: sizes of an item, then those of i_desc
  BNNSNDArrayDescriptor dictionary;  ///< Table: sizes of an item, then the number of items
  size_t padding_idx;                ///< Index that reads as zero and gets no gradient; SIZE_MAX: none
  float max_norm;                    ///< Longer rows are scaled to this norm; 0: not
  float norm_type;                   ///< p of that norm; 0 means 2
} BNNSLayerParametersEmbedding;

/// Quantization and dequantization. (macOS 12.0, deprecated 15.0; 720 bytes)
typedef struct {
  /// 0: one scale and bias; bit k: one for each index of axis k, bit rank: for each sample
  size_t axis_mask;
  BNNSQuantizerFunction function;  ///< Direction
  BNNSNDArrayDescriptor i_desc;    ///< Input
  BNNSNDArrayDescriptor o_desc;    ///< Output
  BNNSNDArrayDescriptor scale;     ///< Vector; data NULL: 1
  BNNSNDArrayDescriptor bias;      ///< Vector; data NULL: 0
} BNNSLayerParametersQuantization;

/// Hints for packing sparse weights. (macOS 13.0; 24 bytes)
typedef struct {
  uint64_t flags;                  ///< 0
  uint32_t sparsity_ratio[2];      ///< Numerator and denominator
  BNNSSparsityType sparsity_type;  ///< Where zeros are
  BNNSTargetSystem target_system;  ///< Machine
} BNNSSparsityParameters;

// ---- The API of macOS 10.12 -----------------------------------------------------------------------------------------

/// A stack of images. (macOS 10.12, deprecated 11.0; 56 bytes)
typedef struct {
  size_t width;            ///< Columns
  size_t height;           ///< Rows
  size_t channels;         ///< Images in the stack
  size_t row_stride;       ///< Elements from row to row; 0: contiguous
  size_t image_stride;     ///< Elements from image to image; 0: contiguous
  BNNSDataType data_type;  ///< Type of the elements
  float data_scale;        ///< Integer to float: value * scale + bias; 0 means 1
  float data_bias;         ///< See data_scale
} BNNSImageStackDescriptor;

/// A vector. (macOS 10.12, deprecated 11.0; 24 bytes)
typedef struct {
  size_t size;             ///< Number of elements
  BNNSDataType data_type;  ///< Type of the elements
  float data_scale;        ///< Integer to float: value * scale + bias; 0 means 1
  float data_bias;         ///< See data_scale
} BNNSVectorDescriptor;

/// Weights or bias. (macOS 10.12, deprecated 11.0; 32 bytes)
typedef struct {
  const void* BNNS_NULLABLE data;         ///< The elements, contiguous; NULL: absent (bias)
  BNNSDataType data_type;                 ///< Type of the elements
  float data_scale;                       ///< Integer to float: value * scale + bias; 0 means 1
  float data_bias;                        ///< See data_scale
  const float* BNNS_NULLABLE data_table;  ///< Indexed8: 256 values
} BNNSLayerData;

/// Convolution. (macOS 10.12, deprecated 11.0; 176 bytes)
typedef struct {
  size_t x_stride;            ///< Horizontal step; 0 means 1
  size_t y_stride;            ///< Vertical step; 0 means 1
  size_t x_padding;           ///< Columns of padding on each side
  size_t y_padding;           ///< Rows of padding on each side
  size_t k_width;             ///< Width of the window
  size_t k_height;            ///< Height of the window
  size_t in_channels;         ///< Input channels
  size_t out_channels;        ///< Output channels
  BNNSLayerData weights;      ///< out_channels x in_channels x k_height x k_width
  BNNSLayerData bias;         ///< One for each output channel; data NULL: none
  BNNSActivation activation;  ///< Activation applied last
} BNNSConvolutionLayerParameters;

/// Fully connected. (macOS 10.12, deprecated 11.0; 128 bytes)
typedef struct {
  size_t in_size;             ///< Elements of the input
  size_t out_size;            ///< Elements of the output
  BNNSLayerData weights;      ///< out_size rows of in_size
  BNNSLayerData bias;         ///< One for each output; data NULL: none
  BNNSActivation activation;  ///< Activation applied last
} BNNSFullyConnectedLayerParameters;

/// Pooling. (macOS 10.12, deprecated 11.0; 152 bytes)
typedef struct {
  size_t x_stride;                       ///< Horizontal step; 0 means 1
  size_t y_stride;                       ///< Vertical step; 0 means 1
  size_t x_padding;                      ///< Columns of padding on each side
  size_t y_padding;                      ///< Rows of padding on each side
  size_t k_width;                        ///< Width of the window
  size_t k_height;                       ///< Height of the window
  size_t in_channels;                    ///< Input channels
  size_t out_channels;                   ///< Output channels, as many
  BNNSPoolingFunction pooling_function;  ///< What is computed
  BNNSLayerData bias;                    ///< One for each channel; data NULL: none
  BNNSActivation activation;             ///< Activation applied last
} BNNSPoolingLayerParameters;

// ---- Options of every filter ----------------------------------------------------------------------------------------

/// Options of a filter; NULL or all zero for the defaults. (macOS 10.12; 32 bytes)
typedef struct {
  /// BNNSFlags: BNNSFlagsUseClientPtr keeps the caller's weights, else they are copied
  uint32_t flags;
  size_t n_threads;                      ///< Threads to use; 0: the library chooses. Results do not depend on it
  BNNSAlloc BNNS_NULLABLE alloc_memory;  ///< Allocator, as posix_memalign; NULL: that. Both callbacks or none
  BNNSFree BNNS_NULLABLE free_memory;    ///< Its counterpart, as free; NULL: that
} BNNSFilterParameters;

#ifdef __cplusplus
}  // extern "C"
#endif
#undef BNNS_NONNULL
#undef BNNS_NULLABLE
#undef BNNS_NULL_UNSPECIFIED
#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif  // __BNNS_STRUCTURES_HEADER__
