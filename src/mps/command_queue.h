// Queues: command buffers start in the order of their places, on the threads that commit or enqueue, and are finished
// by one thread per queue.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <thread>

#include "src/core/fork.h"
#include "src/mps/device.h"

namespace bnns::mps {

class CommandBufferImpl;

// Shared by the queue object, its buffers and its thread, so that either may end first: the last reference to a queue
// may be dropped by a handler that runs on that thread. Of one process: a forked child makes a new one and leaves the
// parent's, whose thread is not there, as it is.
struct QueueCore {
  struct Place {
    CommandBufferImpl* buffer = nullptr;
    NS::SharedPtr<CommandBufferImpl> committed;  // null until then: an enqueued buffer may still be dropped
  };

  const uint32_t generation = fork_generation();
  std::unique_ptr<QueueBackend> backend;
  std::thread thread;
  std::atomic<std::thread::id> thread_id{};

  ForkMutex mutex;  // of what follows
  ForkCondition work, space;
  std::list<Place> waiting, started;
  size_t uncompleted = 0;  // command buffers
  bool stop = false;

  // Starts what is committed at the front, so that the order of starting is the order of finishing. Under the lock.
  void start_front() noexcept;
  void complete_one() noexcept;  // one buffer less
  bool on_thread() const { return generation == fork_generation() && std::this_thread::get_id() == thread_id; }
};

class CommandQueueImpl final : public MTL::CommandQueue {
 public:
  CommandQueueImpl(DeviceImpl& device, size_t most_buffers);
  ~CommandQueueImpl() override;

  MTL::Device* device() const override { return &device_; }
  NS::String* label() const override { return label_.get(); }
  void setLabel(NS::String* label) override { label_ = NS::RetainPtr(label); }
  MTL::CommandBuffer* commandBuffer() override;

  DeviceImpl& device_impl() { return device_; }
  std::shared_ptr<QueueCore> core();  // this process's; throws Error
  // Throw where there is no thread or no memory.
  void enqueue(CommandBufferImpl& buffer);
  void submit(CommandBufferImpl& buffer);
  void withdraw(CommandBufferImpl& buffer) noexcept;  // an enqueued buffer that is never committed
  bool on_queue_thread() noexcept { return known_core()->on_thread(); }

 private:
  std::shared_ptr<QueueCore> known_core() noexcept;  // may be the parent process's

  DeviceImpl& device_;
  const size_t most_buffers_;
  ForkMutex mutex_;  // of core_
  std::shared_ptr<QueueCore> core_;
  NS::SharedPtr<NS::String> label_;
};

}  // namespace bnns::mps
