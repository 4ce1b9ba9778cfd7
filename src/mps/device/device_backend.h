// What a device does below the object model: memory, copies, and running the operations of a command buffer.
// The CPU's is in cpu_backend.cc; the CUDA one in cuda_backend.cc, built where CMake finds CUDA.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "src/mps/operation.h"

namespace bnns::mps {

// When the device worked on a command buffer, in host_seconds().
struct WorkTime {
  double begin = 0, end = 0;
};
double host_seconds() noexcept;  // of a clock that never goes back

// Where the command buffers of one queue run. start() is called at commit, by one thread at a time, and does not wait:
// a device that works on its own begins there. complete() is called once for each start(), in the same order, on the
// queue's own thread, and returns when the work is done: the CPU, which has no other thread for it, does all of it
// there.
class QueueBackend {
 public:
  using Token = void*;
  virtual ~QueueBackend() = default;
  // Both return "" or what the device says is wrong.
  virtual std::string start(const std::vector<Operation>&, Token*) noexcept { return {}; }
  virtual std::string complete(const std::vector<Operation>& operations, Token token, WorkTime* span) noexcept = 0;
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual std::string name() const = 0;
  virtual bool is_host() const = 0;  // its memory is ordinary memory
  virtual bool has_unified_memory() const = 0;
  virtual uint64_t memory_bytes() const = 0;  // how much of it images can use
  // Throws Error(out_of_memory). 64-byte aligned.
  void* allocate(size_t bytes, bool zero) {
    void* data = allocate_block(bytes, zero);
    allocated_.fetch_add(bytes, std::memory_order_relaxed);
    return data;
  }
  void free(void* data, size_t bytes) noexcept {
    free_block(data, bytes);
    allocated_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  size_t allocated_bytes() const { return allocated_.load(std::memory_order_relaxed); }
  // Complete when they return. Throw Error.
  virtual void copy_to_device(void* target, const void* source, size_t bytes) = 0;
  virtual void copy_to_host(void* target, const void* source, size_t bytes) = 0;
  virtual std::unique_ptr<QueueBackend> make_queue() = 0;  // throws Error

 protected:
  virtual void* allocate_block(size_t bytes, bool zero) = 0;
  virtual void free_block(void* data, size_t bytes) noexcept = 0;

 private:
  std::atomic<size_t> allocated_{0};
};

std::unique_ptr<DeviceBackend> make_cpu_backend();

}  // namespace bnns::mps
