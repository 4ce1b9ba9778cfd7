#include "src/mps/command_buffer.h"

#include "src/mps/guard.h"

namespace bnns::mps {

CommandBufferImpl::CommandBufferImpl(CommandQueueImpl& queue)
    : queue_(NS::RetainPtr(&queue)), arena_(std::make_shared<Arena>(queue.device_impl().cache())) {}

CommandBufferImpl::~CommandBufferImpl() {
  kept_.clear();
  arena_->close();
}

void CommandBufferImpl::commit() {
  protect("commit", 0, [&] {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (status_ != MTL::CommandBufferStatusNotEnqueued) fail_invalid("the command buffer was committed before");
      status_ = MTL::CommandBufferStatusCommitted;
    }
    try {
      queue_->submit(*this);
    } catch (const Error& error) {
      fail(MTL::CommandBufferErrorInternal, error.what());
      std::lock_guard<std::mutex> lock(mutex_);
      status_ = MTL::CommandBufferStatusError;
      done_ = true;
      throw;
    }
    return 0;
  });
}

void CommandBufferImpl::start(QueueBackend& backend) noexcept {
  if (!error()) {  // a buffer with a refused encode runs nothing
    const std::string error = backend.start(operations_, &token_);
    if (!error.empty()) fail(MTL::CommandBufferErrorInternal, error.c_str());
  }
  set_status(MTL::CommandBufferStatusScheduled);
}

void CommandBufferImpl::finish(QueueBackend& backend) noexcept {
  call(scheduled_handlers_);
  // A token is always given back; without one there is work only where start() had nothing to complain about.
  if (token_ || !error()) {
    const std::string error = backend.finish(operations_, token_);
    if (!error.empty()) fail(MTL::CommandBufferErrorInternal, error.c_str());
  }
  operations_.clear();
  set_status(error() ? MTL::CommandBufferStatusError : MTL::CommandBufferStatusCompleted);
  call(completed_handlers_);
  kept_.clear();
  arena_->close();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
}

void CommandBufferImpl::set_status(MTL::CommandBufferStatus status) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = status;
  }
  changed_.notify_all();
}

void CommandBufferImpl::call(std::vector<MTL::HandlerFunction>& handlers) noexcept {
  for (const MTL::HandlerFunction& handler : handlers) {
    protect("command buffer handler", 0, [&] {
      handler(this);
      return 0;
    });
  }
  handlers.clear();  // a handler may hold a reference to this buffer
}

void CommandBufferImpl::waitUntilScheduled() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (status_ == MTL::CommandBufferStatusNotEnqueued) {
    lock.unlock();
    refuse("waitUntilScheduled", "the command buffer was not committed");
    return;
  }
  changed_.wait(lock, [&] { return status_ >= MTL::CommandBufferStatusScheduled; });
}

void CommandBufferImpl::waitUntilCompleted() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (status_ == MTL::CommandBufferStatusNotEnqueued) {
    lock.unlock();
    refuse("waitUntilCompleted", "the command buffer was not committed");
    return;
  }
  if (!done_ && queue_->on_queue_thread()) {
    const bool finished = status_ >= MTL::CommandBufferStatusCompleted;
    lock.unlock();
    // This thread is the one that would have to do the work.
    if (!finished) refuse("waitUntilCompleted", "called by a handler of the same queue for work that is not done");
    return;
  }
  changed_.wait(lock, [&] { return done_; });
}

void CommandBufferImpl::addScheduledHandler(const MTL::HandlerFunction& handler) {
  protect("addScheduledHandler", 0, [&] {
    if (!handler) fail_invalid("handler is empty");
    if (committed()) fail_invalid("the command buffer is committed");
    scheduled_handlers_.push_back(handler);
    return 0;
  });
}

void CommandBufferImpl::addCompletedHandler(const MTL::HandlerFunction& handler) {
  protect("addCompletedHandler", 0, [&] {
    if (!handler) fail_invalid("handler is empty");
    if (committed()) fail_invalid("the command buffer is committed");
    completed_handlers_.push_back(handler);
    return 0;
  });
}

MTL::CommandBufferStatus CommandBufferImpl::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

NS::Error* CommandBufferImpl::error() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return error_.get();
}

void CommandBufferImpl::reserve(size_t operations, size_t kept) {
  // Doubling by hand: reserve() to the exact size would copy everything at each encode.
  const auto grow = [](auto* list, size_t more) {
    if (list->size() + more > list->capacity()) list->reserve(2 * (list->size() + more));
  };
  grow(&operations_, operations);
  grow(&kept_, kept);
}

void CommandBufferImpl::fail(MTL::CommandBufferError code, const char* text) noexcept {
  protect("command buffer", 0, [&] {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    auto error = NS::RetainPtr(NS::Error::error(NS::String::string("MTLCommandBufferErrorDomain"),
                                                static_cast<NS::Integer>(code), NS::String::string(text)));
    std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = std::move(error);
    return 0;
  });
}

CommandBufferImpl& open_buffer(MTL::CommandBuffer* buffer) {
  if (!buffer) fail_invalid("command buffer is null");
  auto* ours = dynamic_cast<CommandBufferImpl*>(buffer);
  if (!ours) fail_invalid("command buffer was not made by this library");
  if (ours->committed()) fail_invalid("the command buffer is committed");
  return *ours;
}

}  // namespace bnns::mps

namespace MTL {

CommandBuffer::~CommandBuffer() = default;

const char* CommandBuffer::className() const noexcept {
  return "MTLCommandBuffer";
}

}  // namespace MTL
