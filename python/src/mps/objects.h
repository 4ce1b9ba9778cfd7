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
  std::size_t handlers = 0;  // that run once it is committed
};
struct Image {
  NS::SharedPtr<MPS::Image> object;
  std::size_t first = 0;  // a view's first image in the memory
};
struct TemporaryImage : Image {};
struct State {
  NS::SharedPtr<MPS::State> object;
};
struct Forward {
  NS::SharedPtr<MPS::CNNPooling> object;
};
struct Backward {
  NS::SharedPtr<MPS::CNNPoolingGradient> object;
};
// What Python tells apart by class.
template <class Kernel, class Base>
struct Of : Base {
  Kernel* kernel() const { return static_cast<Kernel*>(this->object.get()); }
};

// openbnns.Error with the library's last reason, where there is one.
[[noreturn]] inline void refused(const char* where) {
  const char* reason = MTLX::lastError();
  refuse(where, reason && *reason ? reason : "refused without a reason");
}

// What a call returns autoreleased dies with the pool, at the end of the scope:
// retain what is kept.
class Pool {
 public:
  Pool() : pool_(NS::TransferPtr(NS::AutoreleasePool::alloc()->init())) { MTLX::clearLastError(); }

 private:
  NS::SharedPtr<NS::AutoreleasePool> pool_;
};

inline std::string text_of(const NS::String* text) {
  return text ? text->utf8String() : "";
}

// An Image, or a TemporaryImage where it is one. Retains.
nb::object to_python(MPS::Image* image, std::size_t first = 0);
// A kernel's class as Python names it.
std::string name_of(const MPS::Kernel* kernel);

void bind_images(nb::module_& m);
void bind_pooling(nb::module_& m);
void bind_encodes(nb::class_<Forward>& forward, nb::class_<Backward>& backward);
void bind_archives(nb::module_& m, nb::class_<Forward>& forward, nb::class_<Backward>& backward);

}  // namespace openbnns
