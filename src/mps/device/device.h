// The one implementation of MTL::Device, over a DeviceBackend.
#pragma once

#include <memory>

#include "Metal/Metal.hpp"
#include "src/mps/device/device_backend.h"
#include "src/mps/image/storage.h"

namespace bnns::mps {

class DeviceImpl final : public MTL::Device {
 public:
  DeviceImpl(std::unique_ptr<DeviceBackend> backend, MTLX::DeviceKind kind, uint64_t id);

  NS::String* name() const override { return name_.get(); }
  uint64_t registryID() const override { return id_; }
  bool hasUnifiedMemory() const override { return backend_->has_unified_memory(); }
  uint64_t recommendedMaxWorkingSetSize() const override { return backend_->memory_bytes(); }
  NS::UInteger currentAllocatedSize() const override { return backend_->allocated_bytes(); }
  MTL::CommandQueue* newCommandQueue() override { return newCommandQueue(NS::UIntegerMax); }
  MTL::CommandQueue* newCommandQueue(NS::UInteger maxCommandBufferCount) override;
  MTL::Texture* newTexture(const MTL::TextureDescriptor* descriptor) override;

  DeviceBackend& backend() { return *backend_; }
  BlockCache& cache() { return cache_; }
  MTLX::DeviceKind kind() const { return kind_; }

 private:
  std::unique_ptr<DeviceBackend> backend_;
  BlockCache cache_;
  MTLX::DeviceKind kind_;
  uint64_t id_;
  NS::SharedPtr<NS::String> name_;
};

// The device as ours; throws if it is null or of another library.
DeviceImpl& device_impl(MTL::Device* device);

}  // namespace bnns::mps
