// Queues: command buffers start in the order of their places, on the threads that commit or enqueue, and are finished
// by one thread per queue.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <thread>

#include "src/core/process/fork.h"
#include "src/mps/device/device.h"

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
  using Places = std::list<Place>;
  Places waiting, started, spare;  // spare: nodes to use again
  size_t uncompleted = 0;          // command buffers, where their number is limited
  bool stop = false;

  // All of these under the lock.
  Places::iterator find_place(const CommandBufferImpl& buffer);  // of those that wait
  Places::iterator add_place(CommandBufferImpl& buffer);
  // Starts what is committed at the front, so that the order of starting is the order of finishing.
  void start_front() noexcept;

  void complete_one() noexcept;  // one buffer less
  bool on_thread() const { return std::this_thread::get_id() == thread_id; }
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
  const std::shared_ptr<QueueCore>& core();  // this process's; throws Error
  void count(CommandBufferImpl& buffer);     // waits until the queue may have one more
  // Throw where there is no thread or no memory.
  void enqueue(CommandBufferImpl& buffer);
  void submit(CommandBufferImpl& buffer);
  void withdraw(CommandBufferImpl& buffer) noexcept;  // an enqueued buffer that is never committed
  bool on_queue_thread() const noexcept { return is_ours() && core_->on_thread(); }

 private:
  // core_ is this process's, and stays.
  bool is_ours() const noexcept { return generation_.load(std::memory_order_acquire) == fork_generation(); }

  DeviceImpl& device_;
  const size_t most_buffers_;
  ForkMutex mutex_;  // of changing core_
  std::shared_ptr<QueueCore> core_;
  std::atomic<uint32_t> generation_;  // core_'s
  NS::SharedPtr<NS::String> label_;
};

}  // namespace bnns::mps
