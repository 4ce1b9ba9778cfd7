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

}  // namespace

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

// Tensor operations
int BNNSDirectApplyTopK(size_t, size_t, size_t, const Array*, size_t, Array*, size_t, Array*, size_t,
                        const Options*) noexcept {
  return refuse(__func__, -1);
}
int BNNSDirectApplyInTopK(size_t, size_t, size_t, const Array*, size_t, const Array*, size_t, Array*, size_t,
                          const Options*) noexcept {
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
