// The fixture of tests that run on every device: the parameter names it, "cpu" or "cuda".
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "MetalPerformanceShaders/MetalPerformanceShaders.hpp"

namespace bnns::testing {

class DeviceTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    pool_ = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    const bool cuda = std::string(GetParam()) == "cuda";
    device_ = NS::TransferPtr(cuda ? MTLX::CreateCUDADevice(0) : MTLX::CreateCPUDevice());
    if (!device_) GTEST_SKIP() << "no CUDA device: " << MTLX::lastError();
    queue_ = NS::TransferPtr(device_->newCommandQueue());
    MTLX::clearLastError();
  }

  NS::SharedPtr<NS::AutoreleasePool> pool_;
  NS::SharedPtr<MTL::Device> device_;
  NS::SharedPtr<MTL::CommandQueue> queue_;
};

}  // namespace bnns::testing
