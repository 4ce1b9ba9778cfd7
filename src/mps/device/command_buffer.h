// Command buffers: a list of operations, what they keep alive, and the first thing that went wrong.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/mps/device/command_queue.h"

namespace bnns::mps {

class CommandBufferImpl final : public NS::Referencing<CommandBufferImpl, MTL::CommandBuffer> {
 public:
  explicit CommandBufferImpl(CommandQueueImpl& queue);
  ~CommandBufferImpl() override;

  MTL::Device* device() const override { return queue_->device(); }
  MTL::CommandQueue* commandQueue() const override { return queue_.get(); }
  NS::String* label() const override { return label_.get(); }
  void setLabel(NS::String* label) override { label_ = NS::RetainPtr(label); }
  void enqueue() override;
  void commit() override;
  void waitUntilScheduled() override;
  void waitUntilCompleted() override;
  void addScheduledHandler(const MTL::HandlerFunction& handler) override;
  void addCompletedHandler(const MTL::HandlerFunction& handler) override;
  MTL::CommandBufferStatus status() const override;
  NS::Error* error() const override;
  CFTimeInterval GPUStartTime() const override;
  CFTimeInterval GPUEndTime() const override;

  // For encodes. All of it before commit, by one thread at a time.
  bool committed() const { return status() >= MTL::CommandBufferStatusCommitted; }
  void reserve(size_t operations, size_t kept);  // throws bad_alloc; then the two below do not
  void add(const Operation& operation) { operations_.push_back(operation); }
  void keep(NS::Object* object) { kept_.push_back(NS::RetainPtr(object)); }
  void fail(MTL::CommandBufferError code, const char* text) noexcept;  // the first one stays
  const std::shared_ptr<Arena>& arena() const { return arena_; }

  // For the queue.
  void count_in(std::shared_ptr<QueueCore> core) noexcept { core_ = std::move(core); }
  void start(QueueBackend& backend) noexcept;
  void finish(QueueBackend& backend) noexcept;

 private:
  class Lock;  // of mutex_
  void adopt() noexcept;
  void leave_queue() noexcept;
  void fail_device(const char* text) noexcept;  // what the device says is wrong
  void set_status(MTL::CommandBufferStatus status);
  void call(std::vector<MTL::HandlerFunction>& handlers) noexcept;

  NS::SharedPtr<CommandQueueImpl> queue_;
  NS::SharedPtr<NS::String> label_;
  std::shared_ptr<Arena> arena_;
  std::vector<Operation> operations_;
  std::vector<NS::SharedPtr<NS::Object>> kept_;
  std::vector<MTL::HandlerFunction> scheduled_handlers_, completed_handlers_;
  QueueBackend::Token token_ = nullptr;
  std::shared_ptr<QueueCore> core_;  // that counts this one of its uncompleted buffers; null: none does

  mutable ForkMutex mutex_;  // of what follows
  mutable ForkCondition changed_;
  uint32_t generation_ = fork_generation();
  MTL::CommandBufferStatus status_ = MTL::CommandBufferStatusNotEnqueued;
  bool done_ = false;  // handlers included
  WorkTime span_;      // when the device worked on it
  NS::SharedPtr<NS::Error> error_;
};

// The buffer as ours, ready to record; throws if it is null, of another library, or committed.
CommandBufferImpl& open_buffer(MTL::CommandBuffer* buffer);

}  // namespace bnns::mps
