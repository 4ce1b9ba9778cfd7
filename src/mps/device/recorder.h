// One encode: checks its images, collects operations, and hands all of them to the command buffer at the end, or none.
#pragma once

#include <string>
#include <vector>

#include "MetalPerformanceShaders/MPSKernel.hpp"
#include "src/core/error.h"
#include "src/mps/foundation/guard.h"
#include "src/mps/image/image.h"

namespace bnns::mps {

class Recorder {
 public:
  // Throws unless the buffer can record and is on the kernel's device.
  Recorder(MTL::CommandBuffer* buffer, const MPS::Kernel& kernel);

  bool validates() const { return (kernel_.options() & MPS::KernelOptionsSkipAPIValidation) == 0; }

  // Throw unless the image is there, on this device, and, if temporary, of this buffer and not used up.
  void source(MPS::Image* image, const char* what);
  void destination(MPS::Image* image, const char* what);
  // Throws if the two share memory.
  static void check_apart(const MPS::Image& source, const MPS::Image& destination);
  // The same for every source with every destination; n log n, batches may be long.
  static void check_apart(const MPS::ImageBatch& sources, const MPS::ImageBatch& destinations);

  // Images as kernels see them; allocates. overwritten: every element of the image is about to be written.
  ImageView view(MPS::Image& image, bool overwritten = false);
  // The same for an image of which only the size counts.
  ImageView size_view(MPS::Image& image);
  // Zeros all of the image, unless its memory is not even allocated: that comes with zeros.
  void clear(MPS::Image& image);
  void add(const Operation& operation) { operations_.push_back(operation); }

  // Hands over. Each temporary image that was a source is read once, however often it occurs.
  void finish();

 private:
  void use(MPS::Image* image, const char* what);  // what source() and destination() check

  const MPS::Kernel& kernel_;
  CommandBufferImpl& buffer_;
  std::vector<Operation> operations_;
  std::vector<MPS::Image*> sources_, images_;
};

// null: no memory.
void fail_encode(const MPS::Kernel& kernel, MTL::CommandBuffer* buffer, const Error* error) noexcept;

// Runs an encode: whatever it throws fails the buffer, is kept for MTLX::lastError(), and gives `fallback`.
template <class Result, class Body>
Result encode_guarded(const MPS::Kernel& kernel, MTL::CommandBuffer* buffer, Result fallback, Body&& body) noexcept {
  try {
    return body();
  } catch (const Error& error) {
    fail_encode(kernel, buffer, &error);
  } catch (const std::bad_alloc&) {
    fail_encode(kernel, buffer, nullptr);
  } catch (...) {
    const Error error = foreign_exception();
    fail_encode(kernel, buffer, &error);
  }
  return fallback;
}

}  // namespace bnns::mps
