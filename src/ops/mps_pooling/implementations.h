// Which algorithm runs an encode: one table for each device (src/core/implementation.h). The first entry that accepts
// the encode runs, the last one accepts everything, and nothing else decides.
#pragma once

#include "src/core/implementation.h"
#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

// The whole encode, on up to `threads` threads (0: the default).
using RunOnCpu = void (*)(const PoolEncode& encode, size_t threads) noexcept;
using CpuImplementation = Implementation<PoolEncode, RunOnCpu>;
inline constexpr size_t kCpuImplementations = 7;
extern const CpuImplementation kOnCpu[kCpuImplementations];

// Launches the whole encode on a stream (mps_pooling/implementations_cuda.cc). The table is there without CUDA too,
// with launches that are nullptr.
using LaunchOnCuda = int (*)(const PoolEncode& encode, void* stream) noexcept;
using CudaImplementation = Implementation<PoolEncode, LaunchOnCuda>;
inline constexpr size_t kCudaImplementations = 5;
extern const CudaImplementation kOnCuda[kCudaImplementations];

}  // namespace bnns::mps
