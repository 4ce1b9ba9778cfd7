// What a device does below the object model: memory, copies, and running the operations of a command buffer.
// The CPU's is in cpu_backend.cc; the CUDA one in cuda_backend.cc, built where CMake finds CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

struct Fill {  // zeros
  void* data = nullptr;
  size_t bytes = 0;
};

// One recorded step. Plain data: whoever records it keeps the memory alive until the command buffer is done.
using Operation = std::variant<PoolForward, PoolBackward, Fill>;

// Where the command buffers of one queue run, in the order of start(). start() is called by one thread at a time and
// does not wait; finish() is called once for each start(), in the same order, on the queue's own thread.
class QueueBackend {
 public:
  using Token = void*;
  virtual ~QueueBackend() = default;
  // Both return "" or what the device says is wrong.
  virtual std::string start(const std::vector<Operation>& operations, Token* token) noexcept = 0;
  virtual std::string finish(const std::vector<Operation>& operations, Token token) noexcept = 0;
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual std::string name() const = 0;
  virtual bool is_host() const = 0;  // its memory is ordinary memory
  // Throws Error(out_of_memory). 64-byte aligned.
  virtual void* allocate(size_t bytes, bool zero) = 0;
  virtual void free(void* data, size_t bytes) noexcept = 0;
  // Complete when they return. Throw Error.
  virtual void copy_to_device(void* target, const void* source, size_t bytes) = 0;
  virtual void copy_to_host(void* target, const void* source, size_t bytes) = 0;
  virtual std::unique_ptr<QueueBackend> make_queue() = 0;  // throws Error
};

std::unique_ptr<DeviceBackend> make_cpu_backend();

}  // namespace bnns::mps
