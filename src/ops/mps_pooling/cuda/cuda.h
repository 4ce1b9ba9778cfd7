// The CUDA device's algorithms: the entries of its table (mps_pooling/implementations.cc). Predicates are host code and
// always there; launches are in .cu files, of builds with CUDA. A launch is asynchronous, on a cudaStream_t, and
// returns a cudaError_t.
#pragma once

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps::cuda {

// One window that covers a small plane.
bool accepts_global(const PoolEncode& e) noexcept;
int launch_global(const PoolEncode& e, void* stream) noexcept;
// 2x2 windows of stride 2 that tile the image, forward.
bool accepts_halving(const PoolEncode& e) noexcept;
int launch_halving(const PoolEncode& e, void* stream) noexcept;
// The common windows, each source texel fetched once and each target texel written once.
bool accepts_band(const PoolEncode& e) noexcept;
int launch_band(const PoolEncode& e, void* stream) noexcept;
// Any window of at most 254 taps on a side: columns first, then rows.
bool accepts_separable(const PoolEncode& e) noexcept;
int launch_separable(const PoolEncode& e, void* stream) noexcept;
// Anything.
int launch_plain(const PoolEncode& e, void* stream) noexcept;

// Waits for all that was launched. For verbose lines and tests.
int synchronize(void* stream) noexcept;

inline constexpr int64_t kMostGlobalTexels = 128;  // of a plane
inline constexpr int64_t kMostGlobalPlanes = 32;   // of a block

}  // namespace bnns::mps::cuda
