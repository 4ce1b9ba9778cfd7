// CUDA devices by the runtime API (linked statically, so that the library loads without a driver).
//
// A queue is a stream. start() launches everything and records an event, on the committing thread; complete() waits for
// that event on the queue's thread. Nothing else waits: command buffers follow each other on the stream.
//
// CUDA does not survive fork: a child that has the parent's devices gets a reason for every call, and frees nothing.
#include "src/mps/device/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <mutex>

#include "src/core/error.h"
#include "src/core/process/fork.h"

namespace bnns::mps {
namespace {

std::string text_of(const char* call, cudaError_t code) {
  return std::string(call) + ": " + cudaGetErrorString(code);
}

// A failed call leaves an error that the next kernel launch would report as its own; cudaGetLastError clears it.
void check(const char* call, cudaError_t code) {
  if (code == cudaSuccess) return;
  cudaGetLastError();
  fail_unsupported("%s", text_of(call, code).c_str());
}

constexpr char kForked[] =
    "CUDA does not work in a process forked from one that has used it; in the child use the CPU device, or fork before "
    "the first Metal call";

// The runtime's current device is per thread, and ours may be called on any.
class OnDevice {
 public:
  explicit OnDevice(int ordinal) : result_(cudaGetDevice(&before_)) {
    if (before_ != ordinal || result_ != cudaSuccess) result_ = cudaSetDevice(ordinal);
    changed_ = before_ != ordinal;
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  cudaError_t result() const { return result_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaError_t result_;
};

// The events around a command buffer's work. Used again: creating them costs more than the rest of a commit.
struct Events {
  cudaEvent_t begin = nullptr, end = nullptr;
  ~Events() {
    if (begin) cudaEventDestroy(begin);
    if (end) cudaEventDestroy(end);
  }
};

class CudaQueue final : public QueueBackend {
 public:
  explicit CudaQueue(int ordinal) : ordinal_(ordinal) {
    OnDevice on(ordinal_);
    check("cudaSetDevice", on.result());
    check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  // A forked child never ends its parent's queues: CommandQueueImpl leaves them alone.
  ~CudaQueue() override {
    OnDevice on(ordinal_);
    idle_.clear();
    cudaStreamDestroy(stream_);
  }

  std::string start(const std::vector<Operation>& operations, Token* token) noexcept override {
    *token = nullptr;
    OnDevice on(ordinal_);
    if (on.result() != cudaSuccess) return text_of("cudaSetDevice", on.result());
    std::string error;
    std::unique_ptr<Events> events = take_events(&error);
    if (!events) return error;
    cudaError_t code = cudaEventRecord(events->begin, stream_);
    if (code != cudaSuccess) error = text_of("cudaEventRecord", code);
    for (const Operation& operation : operations) {
      code = launch(operation);
      if (code == cudaSuccess) continue;
      error = text_of("kernel launch", code);
      cudaGetLastError();
      break;
    }
    // Recorded even after a failure: what was launched before it still uses the images.
    code = cudaEventRecord(events->end, stream_);
    if (code != cudaSuccess && error.empty()) error = text_of("cudaEventRecord", code);
    *token = events.release();
    return error;
  }

  // The GPU's clock is not the host's: the duration is the GPU's, its end the moment at which the host learns of it.
  std::string complete(const std::vector<Operation>&, Token token, WorkTime* span) noexcept override {
    if (!token) return {};
    OnDevice on(ordinal_);
    std::unique_ptr<Events> events(static_cast<Events*>(token));
    const cudaError_t code = cudaEventSynchronize(events->end);
    span->begin = span->end = host_seconds();
    float milliseconds = 0;
    if (code != cudaSuccess) return text_of("cudaEventSynchronize", code);
    if (cudaEventElapsedTime(&milliseconds, events->begin, events->end) == cudaSuccess) {
      span->begin -= 1e-3 * std::max(0.0, static_cast<double>(milliseconds));
    } else {
      cudaGetLastError();
    }
    give_back(std::move(events));
    return {};
  }

 private:
  std::unique_ptr<Events> take_events(std::string* error) noexcept {
    try {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!idle_.empty()) {
          std::unique_ptr<Events> events = std::move(idle_.back());
          idle_.pop_back();
          return events;
        }
      }
      auto events = std::make_unique<Events>();
      cudaError_t code = cudaEventCreate(&events->begin);
      if (code == cudaSuccess) code = cudaEventCreateWithFlags(&events->end, cudaEventBlockingSync);
      if (code == cudaSuccess) return events;
      *error = text_of("cudaEventCreate", code);
      cudaGetLastError();
    } catch (const std::bad_alloc&) {
      *error = "out of memory";
    }
    return nullptr;
  }
  void give_back(std::unique_ptr<Events> events) noexcept {
    try {
      std::lock_guard<std::mutex> lock(mutex_);
      idle_.push_back(std::move(events));
    } catch (const std::bad_alloc&) {  // destroyed instead
    }
  }

  cudaError_t launch(const Operation& operation) noexcept {
    if (const auto* encode = std::get_if<Encode>(&operation)) {
      return static_cast<cudaError_t>(encode->launch_cuda(stream_));
    }
    const Fill& fill = std::get<Fill>(operation);
    return cudaMemsetAsync(fill.data, 0, fill.bytes, stream_);
  }

  int ordinal_;
  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Events>> idle_;
};

class CudaBackend final : public DeviceBackend {
 public:
  explicit CudaBackend(int ordinal) : ordinal_(ordinal) {
    cudaDeviceProp properties;
    check("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, ordinal));
    name_ = properties.name;
    memory_ = properties.totalGlobalMem;
    integrated_ = properties.integrated != 0;
    OnDevice on(ordinal_);
    check("cudaSetDevice", on.result());
    // Copies and fills of single calls have a stream of their own: the default stream would wait for other queues.
    check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  std::string name() const override { return name_; }
  bool is_host() const override { return false; }
  bool has_unified_memory() const override { return integrated_; }
  uint64_t memory_bytes() const override { return memory_; }
  void copy_to_device(void* target, const void* source, size_t bytes) override {
    copy(target, source, bytes, cudaMemcpyHostToDevice);
  }
  void copy_to_host(void* target, const void* source, size_t bytes) override {
    copy(target, source, bytes, cudaMemcpyDeviceToHost);
  }
  std::unique_ptr<QueueBackend> make_queue() override {
    check_process();
    return std::make_unique<CudaQueue>(ordinal_);
  }

 protected:
  void* allocate_block(size_t bytes, bool zero) override {
    check_process();
    OnDevice on(ordinal_);
    check("cudaSetDevice", on.result());
    void* data = nullptr;
    if (cudaMalloc(&data, bytes) != cudaSuccess) {
      cudaGetLastError();
      fail_out_of_memory("an image on the GPU", bytes);
    }
    if (zero) {
      cudaError_t code = cudaMemsetAsync(data, 0, bytes, stream_);
      if (code == cudaSuccess) code = cudaStreamSynchronize(stream_);
      if (code != cudaSuccess) cudaFree(data);
      check("cudaMemsetAsync", code);
    }
    return data;
  }
  void free_block(void* data, size_t) noexcept override {
    if (forked()) return;
    OnDevice on(ordinal_);
    cudaFree(data);
  }

 private:
  bool forked() const noexcept { return fork_generation() != generation_; }
  void check_process() const {
    if (forked()) fail_unsupported("%s", kForked);
  }
  void copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
    check_process();
    OnDevice on(ordinal_);
    check("cudaSetDevice", on.result());
    check("cudaMemcpyAsync", cudaMemcpyAsync(target, source, bytes, kind, stream_));
    check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
  }

  int ordinal_;
  const uint32_t generation_ = fork_generation();
  std::string name_;
  uint64_t memory_ = 0;
  bool integrated_ = false;
  cudaStream_t stream_ = nullptr;  // lives as long as the process, like the device
};

}  // namespace

int cuda_device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

std::unique_ptr<DeviceBackend> make_cuda_backend(int ordinal) {
  return std::make_unique<CudaBackend>(ordinal);
}

}  // namespace bnns::mps
