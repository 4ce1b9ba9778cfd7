// CUDA devices. Only included where BNNS_MPS_CUDA is 1.
#pragma once

#include <memory>

#include "src/mps/device/device_backend.h"

namespace bnns::mps {

// 0 where there is no driver or no GPU.
int cuda_device_count() noexcept;
// Throws Error.
std::unique_ptr<DeviceBackend> make_cuda_backend(int ordinal);

}  // namespace bnns::mps
