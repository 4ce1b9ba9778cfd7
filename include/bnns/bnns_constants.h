// OpenBNNS: the constants of the BNNS C API.
//
// The text is ours; names, values and layouts are those of the classic BNNS C API, so that BNNS code written for
// Apple's Accelerate framework compiles unmodified and structures can be passed between independently built modules.

// clang-format off

#ifndef __BNNS_CONSTANTS_HEADER__
#define __BNNS_CONSTANTS_HEADER__

#include <stdint.h>

/// The largest rank of a tensor: the length of size[] and stride[] (macOS 11.0).
#define BNNS_MAX_TENSOR_DIMENSION 8

// Every enumeration is 32 bits wide and unsigned. C++, clang's Objective-C and Swift see a distinct type; plain C and
// gcc's Objective-C, which have no enumerations of fixed width, see an anonymous enumeration for the values and an integer
// type of the same name.
#if defined(__cplusplus) || (defined(__clang__) && (defined(__OBJC__) || defined(__swift__)))
#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wfixed-enum-extension"
#pragma clang diagnostic ignored "-Wc23-extensions"
#endif
#define BNNS_ENUM(name) typedef enum : uint32_t
#define BNNS_ENUM_END(name) name
#else
#define BNNS_ENUM(name) typedef uint32_t name; enum
#define BNNS_ENUM_END(name)
#endif

/// Type of one element: a class bit (float, signed, unsigned, indexed, other) and the width in bits; the width is the
/// low bits under the mask 0x7fff. In parentheses, here and below: the first macOS release.
BNNS_ENUM(BNNSDataType) {
  BNNSDataTypeFloatBit = 0x10000,           ///< Class bit: floating point (10.12)
  BNNSDataTypeFloat16 = 0x10010,            ///< IEEE binary16 (10.12)
  BNNSDataTypeFloat32 = 0x10020,            ///< IEEE binary32 (10.12)
  BNNSDataTypeBFloat16 = 0x18010,           ///< bfloat16: 8-bit exponent; 0x8000 tells it from Float16 (12.0)
  BNNSDataTypeIntBit = 0x20000,             ///< Class bit: signed integer (10.12)
  BNNSDataTypeInt1 = 0x20001,               ///< Signed, 1 bit (11.0)
  BNNSDataTypeInt2 = 0x20002,               ///< Signed, 2 bits (11.0)
  BNNSDataTypeInt4 = 0x20004,               ///< Signed, 4 bits (11.0)
  BNNSDataTypeInt8 = 0x20008,               ///< Signed, 8 bits (10.12)
  BNNSDataTypeInt16 = 0x20010,              ///< Signed, 16 bits (10.12)
  BNNSDataTypeInt32 = 0x20020,              ///< Signed, 32 bits (10.12)
  BNNSDataTypeInt64 = 0x20040,              ///< Signed, 64 bits (12.0)
  BNNSDataTypeUIntBit = 0x40000,            ///< Class bit: unsigned integer (10.13)
  BNNSDataTypeUInt1 = 0x40001,              ///< Unsigned, 1 bit (11.0)
  BNNSDataTypeUInt2 = 0x40002,              ///< Unsigned, 2 bits (11.0)
  BNNSDataTypeUInt3 = 0x40003,              ///< Unsigned, 3 bits (15.0)
  BNNSDataTypeUInt4 = 0x40004,              ///< Unsigned, 4 bits (11.0)
  BNNSDataTypeUInt6 = 0x40006,              ///< Unsigned, 6 bits (15.0)
  BNNSDataTypeUInt8 = 0x40008,              ///< Unsigned, 8 bits (10.13)
  BNNSDataTypeUInt16 = 0x40010,             ///< Unsigned, 16 bits (10.13)
  BNNSDataTypeUInt32 = 0x40020,             ///< Unsigned, 32 bits (10.13)
  BNNSDataTypeUInt64 = 0x40040,             ///< Unsigned, 64 bits (12.0)
  BNNSDataTypeIndexedBit = 0x80000,         ///< Class bit: index into a table (10.12)
  BNNSDataTypeIndexed1 = 0x80001,           ///< 1-bit index into table_data, 2 values (11.0)
  BNNSDataTypeIndexed2 = 0x80002,           ///< 2-bit index into table_data, 4 values (11.0)
  BNNSDataTypeIndexed4 = 0x80004,           ///< 4-bit index into table_data, 16 values (11.0)
  BNNSDataTypeIndexed8 = 0x80008,           ///< 8-bit index into table_data, 256 values (10.12)
  BNNSDataTypeMiscellaneousBit = 0x100000,  ///< Class bit: other (11.0)
  BNNSDataTypeBoolean = 0x100008            ///< One byte, 0 or 1 (11.0)
} BNNS_ENUM_END(BNNSDataType);

/// What a pooling layer computes over a window.
BNNS_ENUM(BNNSPoolingFunction) {
  BNNSPoolingFunctionMax = 0,                         ///< Maximum of the window (10.12)
  BNNSPoolingFunctionAverageCountIncludePadding = 1,  ///< Mean, padding counted as zeros (11.0)
  BNNSPoolingFunctionAverageCountExcludePadding = 2,  ///< Mean of the elements that are not padding (11.0)
  BNNSPoolingFunctionUnMax = 3,                       ///< Max undone: values at the stored indices, else zero (11.0)
  BNNSPoolingFunctionL2Norm = 4,                      ///< Square root of the sum of squares (11.0)
  BNNSPoolingFunctionAverage = 1                      ///< The 10.12 name of AverageCountIncludePadding (10.12)
} BNNS_ENUM_END(BNNSPoolingFunction);

/// Activation functions of x; alpha, beta and the integer fields are those of BNNSActivation.
BNNS_ENUM(BNNSActivationFunction) {
  BNNSActivationFunctionIdentity = 0,                          ///< x (10.12)
  BNNSActivationFunctionRectifiedLinear = 1,                   ///< max(x,0) (10.12)
  BNNSActivationFunctionLeakyRectifiedLinear = 2,              ///< x<0 ? alpha*x : x (10.12)
  BNNSActivationFunctionSigmoid = 3,                           ///< 1/(1+exp(-x)) (10.12)
  BNNSActivationFunctionTanh = 4,                              ///< tanh(x) (10.12)
  BNNSActivationFunctionScaledTanh = 5,                        ///< alpha*tanh(beta*x) (10.12)
  BNNSActivationFunctionAbs = 6,                               ///< |x| (10.12)
  BNNSActivationFunctionLinear = 7,                            ///< alpha*x (10.13)
  BNNSActivationFunctionClamp = 8,                             ///< min(max(x,alpha),beta) (10.13)
  BNNSActivationFunctionIntegerLinearSaturate = 9,             ///< saturate((iscale*x+ioffset) >> ishift) (10.13)
  BNNSActivationFunctionIntegerLinearSaturatePerChannel = 10,  ///< As above, with the *_per_channel arrays (10.13)
  BNNSActivationFunctionSoftmax = 11,                          ///< exp(x)/sum(exp(x)) along axis_flags (10.13)
  BNNSActivationFunctionGELUApproximation = 12,                ///< 0.5*x*(1+tanh(alpha*(x+beta*x^3))) (11.0)
  BNNSActivationFunctionGumbel = 13,                           ///< -log(-log(alpha*U+beta)+beta), U~Uniform(0,1) (11.0)
  BNNSActivationFunctionGumbelMax = 14,                        ///< Gumbel noise added to x, then max (11.0)
  BNNSActivationFunctionHardSigmoid = 15,                      ///< max(0,min(1,alpha*x+beta)) (11.0)
  BNNSActivationFunctionSoftplus = 16,                         ///< alpha*log(1+exp(beta*x)) (11.0)
  BNNSActivationFunctionSoftsign = 17,                         ///< x/(1+|x|) (11.0)
  BNNSActivationFunctionELU = 18,                              ///< x<0 ? alpha*(exp(x)-1) : x (11.0)
  BNNSActivationFunctionClampedLeakyRectifiedLinear = 19,      ///< min(x<0 ? alpha*x : x, beta) (11.0)
  BNNSActivationFunctionLinearWithBias = 20,                   ///< alpha*x+beta (11.0)
  BNNSActivationFunctionLogSoftmax = 21,                       ///< log(softmax(x)) (11.0)
  BNNSActivationFunctionLogSigmoid = 22,                       ///< log(sigmoid(x)) (11.0)
  BNNSActivationFunctionSELU = 23,  ///< 1.05070098735548*ELU(x) with alpha 1.67326324235438 (11.0)
  BNNSActivationFunctionCELU = 24,                             ///< x<0 ? alpha*(exp(x/alpha)-1) : x (11.0)
  BNNSActivationFunctionHardShrink = 25,                       ///< |x|<|alpha| ? 0 : x (11.0)
  BNNSActivationFunctionSoftShrink = 26,                       ///< |x|<|alpha| ? 0 : x-copysign(alpha,x) (11.0)
  BNNSActivationFunctionTanhShrink = 27,                       ///< x-tanh(x) (11.0)
  BNNSActivationFunctionThreshold = 28,                        ///< x<=alpha ? beta : x (11.0)
  BNNSActivationFunctionPReLUPerChannel = 29,                  ///< As LeakyRectifiedLinear, an alpha per channel (11.0)
  BNNSActivationFunctionGELUApproximation2 = 30,               ///< x*min(max(x+3,0),6)/6 (11.0)
  BNNSActivationFunctionHardSwish = 30,                        ///< Same as GELUApproximation2 (12.0)
  BNNSActivationFunctionSiLU = 31,                             ///< x*sigmoid(x) (12.0)
  BNNSActivationFunctionReLU6 = 32,                            ///< min(max(x,0),6) (13.3)
  BNNSActivationFunctionErf = 33,                              ///< erf(x) (13.3)
  BNNSActivationFunctionGELU = 34,                             ///< 0.5*x*(1+erf(x/sqrt(2))) (13.3)
  BNNSActivationFunctionGELUApproximationSigmoid = 35          ///< x*sigmoid(1.702*x) (13.3)
} BNNS_ENUM_END(BNNSActivationFunction);

/// Bits of BNNSFilterParameters.flags (macOS 10.12).
BNNS_ENUM(BNNSFlags) {
  /// Read the caller's weights and biases at every call instead of a copy made at creation
  BNNSFlagsUseClientPtr = 0x1
} BNNS_ENUM_END(BNNSFlags);

/// Loss functions of the prediction x and the label t. layer_params is BNNSLayerParametersLoss and the word before the
/// colon (macOS 11.0).
BNNS_ENUM(BNNSLossFunction) {
  BNNSLossFunctionSoftmaxCrossEntropy = 1,       ///< SoftmaxCrossEntropy: -sum(t*log(softmax(x)))
  BNNSLossFunctionSigmoidCrossEntropy = 2,       ///< SigmoidCrossEntropy: -t*log(s)-(1-t)*log(1-s), s=sigmoid(x)
  BNNSLossFunctionMeanSquareError = 3,           ///< Base: (x-t)^2
  BNNSLossFunctionHuber = 4,                     ///< Huber: quadratic within huber_delta, linear outside
  BNNSLossFunctionYolo = 5,                      ///< Yolo: position, size, confidence and class of boxes
  BNNSLossFunctionLog = 6,                       ///< Base: -t*log(x+eps)-(1-t)*log(1-x+eps)
  BNNSLossFunctionCosineDistance = 7,            ///< Base: 1-sum(t*x)
  BNNSLossFunctionHinge = 8,                     ///< Base: max(0,1-(2t-1)*x)
  BNNSLossFunctionMeanAbsoluteError = 9,         ///< Base: |x-t|
  BNNSLossFunctionCategoricalCrossEntropy = 10   ///< Base: softmax, then cross entropy over multi-hot labels
} BNNS_ENUM_END(BNNSLossFunction);

/// How the losses of a batch become one output (macOS 11.0).
BNNS_ENUM(BNNSLossReductionFunction) {
  BNNSLossReductionNone = 0,               ///< Every loss by itself
  BNNSLossReductionSum = 1,                ///< Sum over the batch
  BNNSLossReductionWeightedMean = 2,       ///< Sum / sum of weights (0 if that is 0)
  BNNSLossReductionMean = 3,               ///< Sum / number of losses
  BNNSLossReductionNonZeroWeightMean = 4   ///< Sum / number of non-zero weights (0 if none)
} BNNS_ENUM_END(BNNSLossReductionFunction);

/// Element-wise functions; the number of operands says which structure arithmetic_function_fields points to. At the
/// end, what may be in place: f, the output over an input; b, an input gradient over the output gradient; b*, the same
/// if the activation is Identity.
BNNS_ENUM(BNNSArithmeticFunction) {
  BNNSArithmeticAdd = 0,                    ///< Binary: in1+in2; f b (11.0)
  BNNSArithmeticSubtract = 1,               ///< Binary: in1-in2; f b (11.0)
  BNNSArithmeticMultiply = 2,               ///< Binary: in1*in2; f (11.0)
  BNNSArithmeticDivide = 3,                 ///< Binary: in1/in2; f (11.0)
  BNNSArithmeticSquareRoot = 4,             ///< Unary: sqrt(in); f b* (11.0)
  BNNSArithmeticReciprocalSquareRoot = 5,   ///< Unary: 1/sqrt(in); f b* (11.0)
  BNNSArithmeticCeil = 6,                   ///< Unary: ceil(in); f b (11.0)
  BNNSArithmeticFloor = 7,                  ///< Unary: floor(in); f b (11.0)
  BNNSArithmeticRound = 8,                  ///< Unary: in to the nearest integer; f b (11.0)
  BNNSArithmeticSin = 9,                    ///< Unary: sin(in); f (11.0)
  BNNSArithmeticCos = 10,                   ///< Unary: cos(in); f (11.0)
  BNNSArithmeticTan = 11,                   ///< Unary: tan(in); f (11.0)
  BNNSArithmeticAsin = 12,                  ///< Unary: asin(in); f (11.0)
  BNNSArithmeticAcos = 13,                  ///< Unary: acos(in); f (11.0)
  BNNSArithmeticAtan = 14,                  ///< Unary: atan(in); f (11.0)
  BNNSArithmeticSinh = 15,                  ///< Unary: sinh(in); f (11.0)
  BNNSArithmeticCosh = 16,                  ///< Unary: cosh(in); f (11.0)
  BNNSArithmeticTanh = 17,                  ///< Unary: tanh(in); f b* (11.0)
  BNNSArithmeticAsinh = 18,                 ///< Unary: asinh(in); f (11.0)
  BNNSArithmeticAcosh = 19,                 ///< Unary: acosh(in); f (11.0)
  BNNSArithmeticAtanh = 20,                 ///< Unary: atanh(in); f (11.0)
  BNNSArithmeticPow = 21,                   ///< Binary: in1^in2; f (11.0)
  BNNSArithmeticExp = 22,                   ///< Unary: exp(in); f b* (11.0)
  BNNSArithmeticExp2 = 23,                  ///< Unary: 2^in; f b* (11.0)
  BNNSArithmeticLog = 24,                   ///< Unary: log(in); f (11.0)
  BNNSArithmeticLog2 = 25,                  ///< Unary: log2(in); f (11.0)
  BNNSArithmeticMultiplyNoNaN = 26,         ///< Binary: in1*in2, 0 where in2 is 0; f (11.0)
  BNNSArithmeticDivideNoNaN = 27,           ///< Binary: in1/in2, 0 where in2 is 0; f (11.0)
  BNNSArithmeticMultiplyAdd = 28,           ///< Ternary: in1*in2+in3; f (12.0)
  BNNSArithmeticMinimum = 29,               ///< Binary: min(in1,in2); f (12.0)
  BNNSArithmeticMaximum = 30,               ///< Binary: max(in1,in2); f (12.0)
  BNNSArithmeticSelect = 31,                ///< Ternary: in1 ? in2 : in3; f (12.0)
  BNNSArithmeticAbs = 32,                   ///< Unary: |in|; f (13.0)
  BNNSArithmeticSign = 33,                  ///< Unary: -1, 0 or 1; f b (13.0)
  BNNSArithmeticNegate = 34,                ///< Unary: -in; f b (13.0)
  BNNSArithmeticReciprocal = 35,            ///< Unary: 1/in; f b* (13.0)
  BNNSArithmeticSquare = 36,                ///< Unary: in*in; f (13.0)
  BNNSArithmeticFloorDivide = 37,           ///< Binary: floor(in1/in2); f (13.0)
  BNNSArithmeticTruncDivide = 38,           ///< Binary: trunc(in1/in2); f (13.0)
  BNNSArithmeticTruncRemainder = 39,        ///< Binary: in1-in2*trunc(in1/in2); f (13.0)
  BNNSArithmeticErf = 40                    ///< Unary: erf(in); f (13.0)
} BNNS_ENUM_END(BNNSArithmeticFunction);

/// How an operand of an arithmetic layer takes part in batches and gradients (macOS 11.0).
BNNS_ENUM(BNNSDescriptorType) {
  BNNSConstant = 0,   ///< No gradient; the same for every sample
  BNNSSample = 1,     ///< One per sample, with a gradient per sample
  BNNSParameter = 2   ///< Trainable: the same for every sample, gradient summed over the batch
} BNNS_ENUM_END(BNNSDescriptorType);

/// Optimizers. OptimizerAlgFields is BNNSOptimizer, the word before the semicolon, and Fields; after it, the
/// accumulators per parameter tensor.
BNNS_ENUM(BNNSOptimizerFunction) {
  BNNSOptimizerFunctionSGDMomentum = 1,                ///< SGDMomentum; 1, or 0 if momentum is 0 (11.0)
  BNNSOptimizerFunctionAdam = 2,                       ///< Adam; 2 (11.0)
  BNNSOptimizerFunctionRMSProp = 3,                    ///< RMSProp; 1, +1 if centered, +1 if momentum is not 0 (11.0)
  BNNSOptimizerFunctionAdamW = 4,                      ///< Adam; 2 (12.0)
  BNNSOptimizerFunctionAdamAMSGrad = 5,                ///< Adam; 3 (12.0)
  BNNSOptimizerFunctionAdamWAMSGrad = 6,               ///< Adam; 3 (12.0)
  BNNSOptimizerFunctionSGDMomentumWithClipping = 7,    ///< SGDMomentumWithClipping; as SGDMomentum (12.0)
  BNNSOptimizerFunctionAdamWithClipping = 8,           ///< AdamWithClipping; 2 (12.0)
  BNNSOptimizerFunctionRMSPropWithClipping = 9,        ///< RMSPropWithClipping; as RMSProp (12.0)
  BNNSOptimizerFunctionAdamWWithClipping = 10,         ///< AdamWithClipping; 2 (12.0)
  BNNSOptimizerFunctionAdamAMSGradWithClipping = 11,   ///< AdamWithClipping; 3 (12.0)
  BNNSOptimizerFunctionAdamWAMSGradWithClipping = 12   ///< AdamWithClipping; 3 (12.0)
} BNNS_ENUM_END(BNNSOptimizerFunction);

/// Penalty added to the gradient (macOS 11.0).
BNNS_ENUM(BNNSOptimizerRegularizationFunction) {
  BNNSOptimizerRegularizationNone = 0,  ///< None
  BNNSOptimizerRegularizationL1 = 1,    ///< scale*sign(w)
  BNNSOptimizerRegularizationL2 = 2     ///< scale*w
} BNNS_ENUM_END(BNNSOptimizerRegularizationFunction);

/// The order of steps in SGD with momentum m: velocity V, weights W, gradient g, learning rate lr (macOS 11.0).
BNNS_ENUM(BNNSOptimizerSGDMomentumVariant) {
  BNNSSGDMomentumVariant0 = 0,  ///< V'=m*V-lr*g; W+=V' (Nesterov: W+=V'+m*(V'-V))
  BNNSSGDMomentumVariant1 = 1,  ///< V'=m*V+g; W-=lr*V' (Nesterov: W-=lr*(m*V'+g))
  BNNSSGDMomentumVariant2 = 2   ///< V'=m*V+lr*g; W-=V' (Nesterov: V'=m*V+g; W-=lr*(g+m*V'))
} BNNS_ENUM_END(BNNSOptimizerSGDMomentumVariant);

/// How an optimizer limits gradients (macOS 12.0).
BNNS_ENUM(BNNSOptimizerClippingFunction) {
  BNNSOptimizerClippingNone = 0,          ///< None
  BNNSOptimizerClippingByValue = 1,       ///< Clamp each value to [min,max]
  BNNSOptimizerClippingByNorm = 2,        ///< Limit the L2 norm of each tensor
  BNNSOptimizerClippingByGlobalNorm = 3   ///< Scale all tensors by their joint L2 norm
} BNNS_ENUM_END(BNNSOptimizerClippingFunction);

/// Norms (macOS 12.0).
BNNS_ENUM(BNNSNormType) {
  BNNSL2Norm = 1   ///< Square root of the sum of squares
} BNNS_ENUM_END(BNNSNormType);

/// Kinds of layers: the stages of a fused filter, and the kind of normalization.
BNNS_ENUM(BNNSFilterType) {
  BNNSConvolution = 0,            ///< First stage (11.0)
  BNNSFullyConnected = 1,         ///< First stage (11.0)
  BNNSBatchNorm = 2,              ///< Second stage, and a normType (11.0)
  BNNSInstanceNorm = 3,           ///< Second stage, and a normType (11.0)
  BNNSLayerNorm = 4,              ///< Second stage, and a normType (11.0)
  BNNSGroupNorm = 5,              ///< Second stage, and a normType (11.0)
  BNNSTransposedConvolution = 6,  ///< First stage (11.0)
  BNNSQuantization = 7,           ///< Second stage after convolution or fully connected (12.0)
  BNNSArithmetic = 8              ///< First stage before a normalization (12.0)
} BNNS_ENUM_END(BNNSFilterType);

/// What a reduction computes over the reduced axes.
BNNS_ENUM(BNNSReduceFunction) {
  BNNSReduceFunctionMax = 0,           ///< Maximum (11.0)
  BNNSReduceFunctionMin = 1,           ///< Minimum (11.0)
  BNNSReduceFunctionArgMax = 2,        ///< Index of the maximum (11.0)
  BNNSReduceFunctionArgMin = 3,        ///< Index of the minimum (11.0)
  BNNSReduceFunctionMean = 4,          ///< Mean (11.0)
  BNNSReduceFunctionMeanNonZero = 5,   ///< Mean of the entries with non-zero weight (11.0)
  BNNSReduceFunctionSum = 6,           ///< Sum (11.0)
  BNNSReduceFunctionSumSquare = 7,     ///< sum(x^2) (11.0)
  BNNSReduceFunctionSumLog = 8,        ///< sum(log(x+epsilon)) (11.0)
  BNNSReduceFunctionL1Norm = 9,        ///< sum(|x|) (11.0)
  BNNSReduceFunctionLogicalOr = 10,    ///< Any is non-zero (11.0)
  BNNSReduceFunctionLogicalAnd = 11,   ///< All are non-zero (11.0)
  BNNSReduceFunctionL2Norm = 12,       ///< sqrt(sum(x^2)) (13.0)
  BNNSReduceFunctionLogSumExp = 13,    ///< log(sum(exp(x))) (13.0)
  BNNSReduceFunctionProduct = 14,      ///< Product (13.0)
  BNNSReduceFunctionNone = 15,         ///< Plain overwrite (scatter) (13.0)
  BNNSReduceFunctionLogSum = 16,       ///< log(sum(x)) (13.3)
  BNNSReduceFunctionAny = 10,          ///< Same as LogicalOr (11.0)
  BNNSReduceFunctionAll = 11           ///< Same as LogicalAnd (11.0)
} BNNS_ENUM_END(BNNSReduceFunction);

/// Bits of BNNSLayerParametersLSTM.lstm_flags (macOS 11.0).
BNNS_ENUM(BNNSLayerFlags) {
  BNNSLayerFlagsLSTMBidirectional = 0x1,       ///< Run both directions
  /// Sigmoid gates, tanh candidate and output; the activation fields are ignored
  BNNSLayerFlagsLSTMDefaultActivations = 0x2
} BNNS_ENUM_END(BNNSLayerFlags);

/// How indices map to memory: the rank in the high half, a variant in the low half. s is stride[]; stride[0] belongs to
/// the fastest axis. nDLastMajor: element (i0, i1, ...) at i0*s[0] + i1*s[1] + ..., and size[k] and stride[k] are the
/// same axis. nDFirstMajor: the last index is the fastest, so size[k] goes with stride[n-1-k].
BNNS_ENUM(BNNSDataLayout) {
  BNNSDataLayoutVector = 0x10000,                         ///< Size = n; i*s[0] (11.0)
  BNNSDataLayout1DLastMajor = 0x18000,                    ///< Rank 1, first index fastest (11.0)
  BNNSDataLayout1DFirstMajor = 0x18001,                   ///< Rank 1, last index fastest (11.0)
  BNNSDataLayoutRowMajorMatrix = 0x20000,  ///< Size = columns, rows; (row,col) at col*s[0]+row*s[1] (11.0)
  BNNSDataLayoutColumnMajorMatrix = 0x20001,  ///< Size = rows, columns; (row,col) at row*s[0]+col*s[1] (11.0)
  BNNSDataLayout2DLastMajor = 0x28000,                    ///< Rank 2, first index fastest (11.0)
  BNNSDataLayout2DFirstMajor = 0x28001,                   ///< Rank 2, last index fastest (11.0)
  BNNSDataLayoutFullyConnectedSparse = 0x21001,           ///< Packed sparse weights, opaque (13.0)
  BNNSDataLayoutImageCHW = 0x30000,  ///< Size = width, height, channels; x*s[0]+y*s[1]+c*s[2] (10.15)
  BNNSDataLayoutSNE = 0x30001,                            ///< Size = E, N, S (sequence outermost) (12.0)
  BNNSDataLayoutNSE = 0x30002,                            ///< Size = E, S, N (batch outermost) (12.0)
  BNNSDataLayoutMHA_DHK = 0x30003,  ///< Size = d, k, heads; attention weights, (d,k,h) at d*s[0]+h*s[1]+k*s[2] (13.0)
  BNNSDataLayout3DLastMajor = 0x38000,                    ///< Rank 3, first index fastest (11.0)
  BNNSDataLayout3DFirstMajor = 0x38001,                   ///< Rank 3, last index fastest (11.0)
  BNNSDataLayoutConvolutionWeightsOIHW = 0x40000,         ///< Size = kernel width, height, in, out (11.0)
  BNNSDataLayoutConvolutionWeightsOIHrWr = 0x40001,       ///< As OIHW, kernel rotated by 180 degrees (11.0)
  BNNSDataLayoutConvolutionWeightsIOHrWr = 0x40002,       ///< Size = kernel width, height, out, in; rotated (11.0)
  /// As OIHW, 32 output channels innermost, 128-byte aligned (11.0)
  BNNSDataLayoutConvolutionWeightsOIHW_Pack32 = 0x40010,
  BNNSDataLayout4DLastMajor = 0x48000,                    ///< Rank 4, first index fastest (11.0)
  BNNSDataLayout4DFirstMajor = 0x48001,                   ///< Rank 4, last index fastest (11.0)
  BNNSDataLayout5DLastMajor = 0x58000,                    ///< Rank 5, first index fastest (11.0)
  BNNSDataLayout5DFirstMajor = 0x58001,                   ///< Rank 5, last index fastest (11.0)
  BNNSDataLayout6DLastMajor = 0x68000,                    ///< Rank 6, first index fastest (11.0)
  BNNSDataLayout6DFirstMajor = 0x68001,                   ///< Rank 6, last index fastest (11.0)
  BNNSDataLayout7DLastMajor = 0x78000,                    ///< Rank 7, first index fastest (11.0)
  BNNSDataLayout7DFirstMajor = 0x78001,                   ///< Rank 7, last index fastest (11.0)
  BNNSDataLayout8DLastMajor = 0x88000,                    ///< Rank 8, first index fastest (11.0)
  BNNSDataLayout8DFirstMajor = 0x88001                    ///< Rank 8, last index fastest (11.0)
} BNNS_ENUM_END(BNNSDataLayout);

/// Interpolation of a resize (macOS 11.0).
BNNS_ENUM(BNNSInterpolationMethod) {
  BNNSInterpolationMethodNearest = 0,  ///< Nearest neighbour
  BNNSInterpolationMethodLinear = 1    ///< Linear, along at most two axes
} BNNS_ENUM_END(BNNSInterpolationMethod);

/// Where a crop-and-resize samples Xin input points for Xout output points (macOS 13.0).
BNNS_ENUM(BNNSLinearSamplingMode) {
  BNNSLinearSamplingDefault = 0,             ///< Step (Xin-Xin/Xout)/(Xout-1)
  BNNSLinearSamplingAlignCorners = 1,        ///< As StrictAlignCorners, but one point samples (Xin-1)/2
  BNNSLinearSamplingUnalignCorners = 2,      ///< Step Xin/Xout, half-sample offset
  BNNSLinearSamplingStrictAlignCorners = 3,  ///< Step (Xin-1)/(Xout-1)
  BNNSLinearSamplingOffsetCorners = 4        ///< Step max(1,Xin-1)/Xout, half-step offset
} BNNS_ENUM_END(BNNSLinearSamplingMode);

/// The four numbers of a box (macOS 13.0).
BNNS_ENUM(BNNSBoxCoordinateMode) {
  BNNSCornersHeightFirst = 0,     ///< y0,x0,y1,x1
  BNNSCornersWidthFirst = 1,      ///< x0,y0,x1,y1
  BNNSCenterSizeHeightFirst = 2,  ///< yc,xc,h,w
  BNNSCenterSizeWidthFirst = 3    ///< xc,yc,w,h
} BNNS_ENUM_END(BNNSBoxCoordinateMode);

/// What fills the padding (macOS 11.0).
BNNS_ENUM(BNNSPaddingMode) {
  BNNSPaddingModeConstant = 0,   ///< padding_value
  BNNSPaddingModeReflect = 1,    ///< Mirror, the edge not repeated
  BNNSPaddingModeSymmetric = 2   ///< Mirror, the edge repeated
} BNNS_ENUM_END(BNNSPaddingMode);

/// Comparisons and logic of BNNSCompareTensor (macOS 11.0).
BNNS_ENUM(BNNSRelationalOperator) {
  BNNSRelationalOperatorEqual = 0,          ///< in0 == in1
  BNNSRelationalOperatorLess = 1,           ///< in0 < in1
  BNNSRelationalOperatorLessEqual = 2,      ///< in0 <= in1
  BNNSRelationalOperatorGreater = 3,        ///< in0 > in1
  BNNSRelationalOperatorGreaterEqual = 4,   ///< in0 >= in1
  BNNSRelationalOperatorNotEqual = 5,       ///< in0 != in1
  BNNSRelationalOperatorLogicalAND = 6,     ///< in0 && in1
  BNNSRelationalOperatorLogicalOR = 7,      ///< in0 || in1
  BNNSRelationalOperatorLogicalNOT = 8,     ///< !in0
  BNNSRelationalOperatorLogicalNAND = 9,    ///< !(in0 && in1)
  BNNSRelationalOperatorLogicalNOR = 10,    ///< !(in0 || in1)
  BNNSRelationalOperatorLogicalXOR = 11     ///< !in0 != !in1
} BNNS_ENUM_END(BNNSRelationalOperator);

/// Which parameter BNNSGetPointer returns (macOS 11.0).
BNNS_ENUM(BNNSPointerSpecifier) {
  BNNSPointerSpecifierAlpha = 0,  ///< Alpha of the activation
  BNNSPointerSpecifierBeta = 1    ///< Beta of the activation
} BNNS_ENUM_END(BNNSPointerSpecifier);

/// What a gradient computation does with the previous content of its output (macOS 11.0).
BNNS_ENUM(BNNSNDArrayFlags) {
  BNNSNDArrayFlagBackpropSet = 0,         ///< Overwrite it
  BNNSNDArrayFlagBackpropAccumulate = 1   ///< Add to it
} BNNS_ENUM_END(BNNSNDArrayFlags);

/// Bits of BNNSLayerParametersEmbedding.flags (macOS 12.0).
BNNS_ENUM(BNNSEmbeddingFlags) {
  /// Backward divides the gradient of a row by how often its index occurs
  BNNSEmbeddingFlagScaleGradientByFrequency = 1
} BNNS_ENUM_END(BNNSEmbeddingFlags);

/// Direction of a quantization layer (macOS 12.0).
BNNS_ENUM(BNNSQuantizerFunction) {
  BNNSQuantizerFunctionQuantize = 0,    ///< y=scale*x+bias
  BNNSQuantizerFunctionDequantize = 1   ///< y=(x-bias)/scale
} BNNS_ENUM_END(BNNSQuantizerFunction);

/// Random generators (macOS 12.0).
BNNS_ENUM(BNNSRandomGeneratorMethod) {
  BNNSRandomGeneratorMethodAES_CTR = 0   ///< AES in counter mode (not for cryptography)
} BNNS_ENUM_END(BNNSRandomGeneratorMethod);

/// Structure of sparse weights (macOS 13.0).
BNNS_ENUM(BNNSSparsityType) {
  BNNSSparsityTypeUnstructured = 0   ///< Zeros anywhere
} BNNS_ENUM_END(BNNSSparsityType);

/// Machine that sparse weights are packed for (macOS 13.0).
BNNS_ENUM(BNNSTargetSystem) {
  BNNSTargetSystemGeneric = 0   ///< Any machine
} BNNS_ENUM_END(BNNSTargetSystem);

/// Rearrangements of BNNSShuffle; r is the block size.
BNNS_ENUM(BNNSShuffleType) {
  BNNSShuffleTypePixelShuffleNCHW = 0,    ///< (N,C*r*r,H,W) -> (N,C,H*r,W*r), channel outermost (13.0)
  BNNSShuffleTypePixelUnshuffleNCHW = 1,  ///< Inverse of PixelShuffle (13.0)
  BNNSShuffleTypeDepthToSpaceNCHW = 2,    ///< As PixelShuffle, with the block position outermost in the channels (13.3)
  BNNSShuffleTypeSpaceToDepthNCHW = 3     ///< Inverse of DepthToSpace (13.3)
} BNNS_ENUM_END(BNNSShuffleType);

#undef BNNS_ENUM
#undef BNNS_ENUM_END
#if defined(__clang__) && !defined(__cplusplus) && (defined(__OBJC__) || defined(__swift__))
#pragma clang diagnostic pop
#endif

#endif  // __BNNS_CONSTANTS_HEADER__
