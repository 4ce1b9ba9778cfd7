#include "src/mps/device/device.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "src/core/log.h"
#include "src/mps/device/command_queue.h"
#include "src/mps/foundation/guard.h"
#include "src/mps/image/texture.h"
#if BNNS_MPS_CUDA
#include "src/mps/device/cuda_backend.h"
#endif

namespace bnns::mps {
namespace {

// CUDA devices, then the CPU. Made at the first question and kept: objects of the program's static variables may need
// them until the very end.
const std::vector<DeviceImpl*>& devices() {
  static const auto* list = [] {
    auto* made = new std::vector<DeviceImpl*>;
    const char* text = std::getenv("BNNS_MPS_DEVICE");
    const std::string_view forced = text ? text : "";
    if (!forced.empty() && forced != "cpu") log_ignored_setting("BNNS_MPS_DEVICE", text, "cpu");
#if BNNS_MPS_CUDA
    const int count = forced == "cpu" ? 0 : cuda_device_count();
    for (int i = 0; i < count; ++i) {
      guarded("MTLCopyAllDevices", 0, [&] {
        made->push_back(new DeviceImpl(make_cuda_backend(i), MTLX::DeviceKind::cuda, 1 + static_cast<uint64_t>(i)));
        return 0;
      });
    }
#endif
    made->push_back(new DeviceImpl(make_cpu_backend(), MTLX::DeviceKind::cpu, 0));
    return made;
  }();
  return *list;
}

}  // namespace

DeviceImpl::DeviceImpl(std::unique_ptr<DeviceBackend> backend, MTLX::DeviceKind kind, uint64_t id)
    : backend_(std::move(backend)), cache_(*backend_), kind_(kind), id_(id) {
  name_ = NS::TransferPtr(NS::String::alloc()->init(backend_->name().c_str()));
}

MTL::CommandQueue* DeviceImpl::newCommandQueue(NS::UInteger maxCommandBufferCount) {
  return protect("newCommandQueue", static_cast<MTL::CommandQueue*>(nullptr), [&]() -> MTL::CommandQueue* {
    if (maxCommandBufferCount == 0) fail_invalid("maxCommandBufferCount is 0, expected at least 1");
    return new CommandQueueImpl(*this, maxCommandBufferCount);
  });
}

MTL::Texture* DeviceImpl::newTexture(const MTL::TextureDescriptor* descriptor) {
  return protect("newTexture", static_cast<MTL::Texture*>(nullptr), [&]() -> MTL::Texture* {
    if (!descriptor) fail_invalid("descriptor is null");
    TextureShape shape = shape_of(*descriptor);
    return new TextureImpl(*this, shape, {backend_->allocate(shape.bytes(), true), shape.bytes(), true}, nullptr);
  });
}

DeviceImpl& device_impl(MTL::Device* device) {
  if (!device) fail_invalid("device is null");
  auto* ours = dynamic_cast<DeviceImpl*>(device);
  if (!ours) fail_invalid("device was not made by this library");
  return *ours;
}

}  // namespace bnns::mps

namespace MTL {

Device::~Device() = default;

const char* Device::className() const noexcept {
  return "MTLDevice";
}

Device* CreateSystemDefaultDevice() {
  return bnns::mps::devices().front()->retain();
}

NS::Array* CopyAllDevices() {
  const auto& all = bnns::mps::devices();
  const std::vector<const NS::Object*> objects(all.begin(), all.end());
  return NS::Array::alloc()->init(objects.data(), objects.size());
}

}  // namespace MTL

namespace MTLX {

MTL::Device* CreateCPUDevice() {
  return bnns::mps::devices().back()->retain();
}

MTL::Device* CreateCUDADevice(NS::Integer ordinal) {
  const auto& all = bnns::mps::devices();
  const auto count = static_cast<NS::Integer>(all.size()) - 1;
  if (ordinal >= 0 && ordinal < count) return all[static_cast<size_t>(ordinal)]->retain();
#if BNNS_MPS_CUDA
  if (count == 0) {
    bnns::mps::refuse("CreateCUDADevice", "no driver, no GPU, or BNNS_MPS_DEVICE=cpu: no CUDA device is offered");
    return nullptr;
  }
  bnns::mps::refuse("CreateCUDADevice", "ordinal is %td, expected 0 to %td: %td CUDA devices are offered",
                    static_cast<std::ptrdiff_t>(ordinal), static_cast<std::ptrdiff_t>(count - 1),
                    static_cast<std::ptrdiff_t>(count));
#else
  bnns::mps::refuse("CreateCUDADevice", "the library was built without CUDA");
#endif
  return nullptr;
}

DeviceKind deviceKind(const MTL::Device* device) {
  const auto* ours = dynamic_cast<const bnns::mps::DeviceImpl*>(device);
  return ours ? ours->kind() : DeviceKind::cpu;
}

const char* lastError() {
  return bnns::last_error();
}

void clearLastError() {
  bnns::clear_last_error();
}

}  // namespace MTLX
