// Objects of libbnns_mps for Python: each holds one reference.
#pragma once

#include <MetalPerformanceShaders/MetalPerformanceShaders.hpp>
#include <string>

#include "python/src/error.h"

namespace openbnns {

struct Device {
  NS::SharedPtr<MTL::Device> object;
};
struct Queue {
  NS::SharedPtr<MTL::CommandQueue> object;
};
struct Buffer {
  NS::SharedPtr<MTL::CommandBuffer> object;
};
struct Image {
  NS::SharedPtr<MPS::Image> object;
};
struct State {
  NS::SharedPtr<MPS::State> object;
};

// openbnns.Error with the library's last reason, where there is one.
[[noreturn]] inline void refused(const char* where) {
  const char* reason = MTLX::lastError();
  refuse(where, reason && *reason ? reason : "refused without a reason");
}

// What a call returns autoreleased dies with the pool, at the end of the scope: retain what is kept.
class Pool {
 public:
  Pool() : pool_(NS::TransferPtr(NS::AutoreleasePool::alloc()->init())) { MTLX::clearLastError(); }

 private:
  NS::SharedPtr<NS::AutoreleasePool> pool_;
};

inline std::string text_of(const NS::String* text) {
  return text ? text->utf8String() : "";
}

void bind_images(nb::module_& m);
void bind_pooling(nb::module_& m);

}  // namespace openbnns
