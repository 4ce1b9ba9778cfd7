// Devices: the CPU, and each CUDA GPU where the library was built with CUDA and a driver is there.
#pragma once

#include "../Foundation/Foundation.hpp"
#include "MTLTypes.hpp"

namespace MTL {

class CommandQueue;
class Texture;
class TextureDescriptor;

// There is one object per physical device; it stays for the life of the process.
class BNNS_MPS_API Device : public NS::Referencing<Device> {
 public:
  virtual NS::String* name() const = 0;
  virtual std::uint64_t registryID() const = 0;  // 0 for the CPU, 1 + ordinal for CUDA devices
  virtual bool hasUnifiedMemory() const = 0;     // the CPU reaches the device's memory: true for the CPU
  // Bytes: the GPU's memory; for the CPU the machine's, or the container's limit where that is lower.
  virtual std::uint64_t recommendedMaxWorkingSetSize() const = 0;
  // Bytes of textures and images now, and of memory kept for the next temporary images.
  virtual NS::UInteger currentAllocatedSize() const = 0;
  // These give one reference to the caller, or null with a reason in MTLX::lastError().
  virtual CommandQueue* newCommandQueue() = 0;  // any number of command buffers
  // At most this many command buffers (at least 1) that are not completed: CommandQueue::commandBuffer() waits.
  virtual CommandQueue* newCommandQueue(NS::UInteger maxCommandBufferCount) = 0;
  virtual Texture* newTexture(const TextureDescriptor* descriptor) = 0;
  const char* className() const noexcept override;

 protected:
  Device() = default;
  ~Device() override;
};

// The first CUDA device, else the CPU. BNNS_MPS_DEVICE=cpu in the environment hides the CUDA devices. +1 reference.
BNNS_MPS_API Device* CreateSystemDefaultDevice();
// CUDA devices, then the CPU. +1 reference.
BNNS_MPS_API NS::Array* CopyAllDevices();

}  // namespace MTL

// Ours, outside Apple's names.
namespace MTLX {

enum class DeviceKind { cpu, cuda };

BNNS_MPS_API MTL::Device* CreateCPUDevice();                      // +1 reference
BNNS_MPS_API MTL::Device* CreateCUDADevice(NS::Integer ordinal);  // +1 reference; null with a reason if there is none
BNNS_MPS_API DeviceKind deviceKind(const MTL::Device* device);
// Why the calling thread's last refused call was refused; "" if none was. Valid until the thread's next refusal.
BNNS_MPS_API const char* lastError();
BNNS_MPS_API void clearLastError();

}  // namespace MTLX
