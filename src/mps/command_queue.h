// Queues: command buffers start in commit order on the committing threads and are finished by one thread per queue.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "src/mps/device.h"

namespace bnns::mps {

class CommandBufferImpl;

// Shared by the queue object and its thread, so that either may end first: the last reference to a queue may be dropped
// by a handler that runs on that thread.
struct QueueCore {
  std::unique_ptr<QueueBackend> backend;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<NS::SharedPtr<CommandBufferImpl>> pending;
  bool stop = false;
};

class CommandQueueImpl final : public MTL::CommandQueue {
 public:
  explicit CommandQueueImpl(DeviceImpl& device);
  ~CommandQueueImpl() override;

  MTL::Device* device() const override { return &device_; }
  NS::String* label() const override { return label_.get(); }
  void setLabel(NS::String* label) override { label_ = NS::RetainPtr(label); }
  MTL::CommandBuffer* commandBuffer() override;

  DeviceImpl& device_impl() { return device_; }
  void submit(CommandBufferImpl& buffer);  // throws Error where no thread can be started
  bool on_queue_thread() const { return std::this_thread::get_id() == thread_id_; }

 private:
  DeviceImpl& device_;
  std::shared_ptr<QueueCore> core_;
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
  NS::SharedPtr<NS::String> label_;
};

}  // namespace bnns::mps
