// CUDA devices by the runtime API (linked statically, so that the library loads without a driver).
//
// A queue is a stream. start() launches everything and records an event, on the committing thread; finish() waits for
// that event on the queue's thread. Nothing else waits: command buffers follow each other on the stream.
#include "src/mps/cuda_backend.h"

#include <cuda_runtime_api.h>

#include "src/core/error.h"

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

class CudaQueue final : public QueueBackend {
 public:
  explicit CudaQueue(int ordinal) : ordinal_(ordinal) {
    OnDevice on(ordinal_);
    check("cudaSetDevice", on.result());
    check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~CudaQueue() override {
    OnDevice on(ordinal_);
    cudaStreamDestroy(stream_);
  }

  std::string start(const std::vector<Operation>& operations, Token* token) noexcept override {
    *token = nullptr;
    OnDevice on(ordinal_);
    if (on.result() != cudaSuccess) return text_of("cudaSetDevice", on.result());
    cudaEvent_t event = nullptr;
    cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync);
    if (code != cudaSuccess) return text_of("cudaEventCreateWithFlags", code);
    *token = event;
    std::string error;
    for (const Operation& operation : operations) {
      code = launch(operation);
      if (code == cudaSuccess) continue;
      error = text_of("kernel launch", code);
      cudaGetLastError();
      break;
    }
    // Recorded even after a failure: what was launched before it still uses the images.
    code = cudaEventRecord(event, stream_);
    if (code != cudaSuccess && error.empty()) error = text_of("cudaEventRecord", code);
    return error;
  }

  std::string finish(const std::vector<Operation>&, Token token) noexcept override {
    if (!token) return {};
    OnDevice on(ordinal_);
    cudaEvent_t event = static_cast<cudaEvent_t>(token);
    const cudaError_t code = cudaEventSynchronize(event);
    cudaEventDestroy(event);
    return code == cudaSuccess ? std::string() : text_of("cudaEventSynchronize", code);
  }

 private:
  cudaError_t launch(const Operation& operation) noexcept {
    if (const auto* forward = std::get_if<PoolForward>(&operation)) {
      return static_cast<cudaError_t>(pool_forward_cuda(*forward, stream_));
    }
    if (const auto* backward = std::get_if<PoolBackward>(&operation)) {
      return static_cast<cudaError_t>(pool_backward_cuda(*backward, stream_));
    }
    const Fill& fill = std::get<Fill>(operation);
    return cudaMemsetAsync(fill.data, 0, fill.bytes, stream_);
  }

  int ordinal_;
  cudaStream_t stream_ = nullptr;
};

class CudaBackend final : public DeviceBackend {
 public:
  explicit CudaBackend(int ordinal) : ordinal_(ordinal) {
    cudaDeviceProp properties;
    check("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, ordinal));
    name_ = properties.name;
    OnDevice on(ordinal_);
    check("cudaSetDevice", on.result());
    // Copies and fills of single calls have a stream of their own: the default stream would wait for other queues.
    check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  std::string name() const override { return name_; }
  bool is_host() const override { return false; }

  void* allocate(size_t bytes, bool zero) override {
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
  void free(void* data, size_t) noexcept override {
    OnDevice on(ordinal_);
    cudaFree(data);
  }
  void copy_to_device(void* target, const void* source, size_t bytes) override {
    copy(target, source, bytes, cudaMemcpyHostToDevice);
  }
  void copy_to_host(void* target, const void* source, size_t bytes) override {
    copy(target, source, bytes, cudaMemcpyDeviceToHost);
  }
  std::unique_ptr<QueueBackend> make_queue() override { return std::make_unique<CudaQueue>(ordinal_); }

 private:
  void copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
    OnDevice on(ordinal_);
    check("cudaSetDevice", on.result());
    check("cudaMemcpyAsync", cudaMemcpyAsync(target, source, bytes, kind, stream_));
    check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
  }

  int ordinal_;
  std::string name_;
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
