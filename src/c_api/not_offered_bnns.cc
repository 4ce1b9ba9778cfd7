// Functions of the BNNS C API that the library does not offer yet: exported, so that programs link, and failing with a
// reason. Each leaves this file when its family of operators arrives; src/c_api/symbols.h is the list.

#include <bnns/bnns.h>

#include <cstdint>

#include "src/core/error.h"

namespace {

// Stores the reason under the function's name, and returns the function's failure value.
template <class Result>
Result refuse(const char* function, Result failure) noexcept {
  bnns::report_not_offered(function);
  return failure;
}

using Array = BNNSNDArrayDescriptor;
using Options = BNNSFilterParameters;
using Projection = BNNSMHAProjectionParameters;

}  // namespace

// Permute, padding, resize
BNNSFilter BNNSFilterCreateLayerPermute(const BNNSLayerParametersPermute*, const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}
BNNSFilter BNNSFilterCreateLayerPadding(const BNNSLayerParametersPadding*, const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}
BNNSFilter BNNSFilterCreateLayerResize(const BNNSLayerParametersResize*, const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}
int BNNSPermuteFilterApplyBackwardBatch(BNNSFilter, size_t, Array*, size_t, const Array*, size_t) noexcept {
  return refuse(__func__, -1);
}

// Matrix products
BNNSFilter BNNSFilterCreateLayerBroadcastMatMul(const BNNSLayerParametersBroadcastMatMul*, const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}
BNNSFilter BNNSFilterCreateLayerTensorContraction(const BNNSLayerParametersTensorContraction*,
                                                  const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}
BNNSFilter BNNSFilterCreateLayerGram(const BNNSLayerParametersGram*, const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}
ssize_t BNNSMatMulWorkspaceSize(bool, bool, float, const Array*, const Array*, const Array*, const Options*) noexcept {
  return refuse(__func__, ssize_t{-1});
}
int BNNSMatMul(bool, bool, float, const Array*, const Array*, const Array*, void*, const Options*) noexcept {
  return refuse(__func__, -1);
}
void BNNSDirectApplyBroadcastMatMul(bool, bool, float, const Array*, const Array*, const Array*,
                                    const Options*) noexcept {
  bnns::report_not_offered(__func__);
}

// Multi-head attention
BNNSFilter BNNSFilterCreateLayerMultiheadAttention(const BNNSLayerParametersMultiheadAttention*,
                                                   const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}
int BNNSApplyMultiheadAttention(BNNSFilter, size_t, const void*, size_t, const void*, size_t, const Array*, size_t,
                                const void*, size_t, void*, size_t, const Array*, size_t*, void*, size_t*,
                                void*) noexcept {
  return refuse(__func__, -1);
}
int BNNSApplyMultiheadAttentionBackward(BNNSFilter, size_t, const void*, size_t, Projection*, const void*, size_t,
                                        const Array*, size_t, Projection*, const void*, size_t, Projection*,
                                        const Array*, Array*, Array*, const void*, size_t, Projection*, size_t, void*,
                                        size_t*, void*) noexcept {
  return refuse(__func__, -1);
}

// Reductions
BNNSFilter BNNSFilterCreateLayerReduction(const BNNSLayerParametersReduction*, const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}
int BNNSDirectApplyReduction(const BNNSLayerParametersReduction*, const Options*) noexcept {
  return refuse(__func__, -1);
}

// Embedding
BNNSFilter BNNSFilterCreateLayerEmbedding(const BNNSLayerParametersEmbedding*, const Options*) noexcept {
  return refuse(__func__, BNNSFilter{});
}

// LSTM
size_t BNNSComputeLSTMTrainingCacheCapacity(const BNNSLayerParametersLSTM*) noexcept {
  return refuse(__func__, SIZE_MAX);
}
int BNNSDirectApplyLSTMBatchTrainingCaching(const BNNSLayerParametersLSTM*, const Options*, void*, size_t) noexcept {
  return refuse(__func__, -1);
}
int BNNSDirectApplyLSTMBatchBackward(const BNNSLayerParametersLSTM*, const BNNSLayerParametersLSTM*, const Options*,
                                     const void*, size_t) noexcept {
  return refuse(__func__, -1);
}

// Tensor operations
int BNNSCompareTensor(const Array*, const Array*, BNNSRelationalOperator, Array*) noexcept {
  return refuse(__func__, -1);
}
int BNNSTile(const Array*, Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSDirectApplyTopK(size_t, size_t, size_t, const Array*, size_t, Array*, size_t, Array*, size_t,
                        const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSDirectApplyInTopK(size_t, size_t, size_t, const Array*, size_t, const Array*, size_t, Array*, size_t,
                          const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSGather(size_t, const Array*, const Array*, Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSScatter(size_t, BNNSReduceFunction, const Array*, const Array*, Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSGatherND(const Array*, const Array*, Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSScatterND(BNNSReduceFunction, const Array*, const Array*, Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSShuffle(BNNSShuffleType, const Array*, Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSBandPart(int, int, const Array*, Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSTileBackward(Array*, const Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}

// Crop and resize
int BNNSCropResize(const BNNSLayerParametersCropResize*, const Array*, const Array*, Array*, const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSCropResizeBackward(const BNNSLayerParametersCropResize*, Array*, const Array*, const Array*,
                           const Options*) noexcept {
  return refuse(__func__, -1);
}

// Sparse weights
int BNNSNDArrayFullyConnectedSparsifySparseCOO(const Array*, const Array*, const Array*, Array*,
                                               const BNNSSparsityParameters*, size_t, void*, size_t,
                                               const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSNDArrayFullyConnectedSparsifySparseCSR(const Array*, const Array*, const Array*, const Array*, Array*,
                                               const BNNSSparsityParameters*, size_t, void*, size_t,
                                               const Options*) noexcept {
  return refuse(__func__, -1);
}

// Nearest neighbours
BNNSNearestNeighbors BNNSCreateNearestNeighbors(unsigned int, unsigned int, unsigned int, BNNSDataType,
                                                const Options*) noexcept {
  return refuse(__func__, BNNSNearestNeighbors{});
}
void BNNSDestroyNearestNeighbors(BNNSNearestNeighbors) noexcept {
  bnns::report_not_offered(__func__);
}
int BNNSNearestNeighborsLoad(BNNSNearestNeighbors, unsigned int, const void*) noexcept {
  return refuse(__func__, -1);
}
int BNNSNearestNeighborsGetInfo(BNNSNearestNeighbors, int, int*, void*) noexcept {
  return refuse(__func__, -1);
}
