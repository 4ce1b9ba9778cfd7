#include "src/mps/device/command_buffer.h"

#include "src/mps/foundation/guard.h"

namespace bnns::mps {

// A lock of the buffer's state. In a forked child the first one settles what became of the buffer.
class CommandBufferImpl::Lock : public ForkLock {
 public:
  explicit Lock(const CommandBufferImpl& buffer) noexcept : ForkLock(buffer.mutex_) {
    if (buffer.generation_ != fork_generation()) const_cast<CommandBufferImpl&>(buffer).adopt();
  }
};

CommandBufferImpl::CommandBufferImpl(CommandQueueImpl& queue)
    : queue_(NS::RetainPtr(&queue)), arena_(std::make_shared<Arena>(queue.device_impl().cache())) {}

CommandBufferImpl::~CommandBufferImpl() {
  if (status_ == MTL::CommandBufferStatusEnqueued) queue_->withdraw(*this);
  leave_queue();
  kept_.clear();
  arena_->close();
}

// This process is a child of the one that made the buffer. A buffer that was committed is the parent's to run. Its
// lists are left as they are: the parent's queue may have been changing them at the fork.
void CommandBufferImpl::adopt() noexcept {
  generation_ = fork_generation();
  if (status_ < MTL::CommandBufferStatusCommitted || done_) return;
  new (&operations_) std::vector<Operation>();
  new (&kept_) std::vector<NS::SharedPtr<NS::Object>>();
  new (&scheduled_handlers_) std::vector<MTL::HandlerFunction>();
  new (&completed_handlers_) std::vector<MTL::HandlerFunction>();
  done_ = true;
  if (status_ >= MTL::CommandBufferStatusCompleted) return;
  status_ = MTL::CommandBufferStatusError;
  protect("command buffer", 0, [&] {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    error_ = NS::RetainPtr(NS::Error::error(
        NS::String::string("MTLCommandBufferErrorDomain"), static_cast<NS::Integer>(MTL::CommandBufferErrorInternal),
        NS::String::string("committed before the fork: the command buffer runs in the parent process alone")));
    return 0;
  });
}

// One uncompleted buffer less: completed, or dropped without commit.
void CommandBufferImpl::leave_queue() noexcept {
  if (core_ && core_->generation == fork_generation()) core_->complete_one();
  core_.reset();
}

void CommandBufferImpl::enqueue() {
  protect(Reporter("enqueue", label_.get()), 0, [&] {
    if (status() != MTL::CommandBufferStatusNotEnqueued) fail_invalid("the command buffer has its place already");
    queue_->enqueue(*this);
    set_status(MTL::CommandBufferStatusEnqueued);
    return 0;
  });
}

void CommandBufferImpl::commit() {
  protect(Reporter("commit", label_.get()), 0, [&] {
    {
      Lock lock(*this);
      if (status_ >= MTL::CommandBufferStatusCommitted) fail_invalid("the command buffer was committed before");
      status_ = MTL::CommandBufferStatusCommitted;
    }
    const auto give_up = [&](MTL::CommandBufferError code, const char* text) {
      queue_->withdraw(*this);
      leave_queue();
      fail(code, text);
      {
        Lock lock(*this);
        status_ = MTL::CommandBufferStatusError;
        done_ = true;
      }
      changed_.notify_all();
    };
    try {
      queue_->submit(*this);
    } catch (const Error& error) {
      give_up(MTL::CommandBufferErrorInternal, error.what());
      throw;
    } catch (const std::bad_alloc&) {
      give_up(MTL::CommandBufferErrorOutOfMemory, "out of memory");
      throw;
    }
    return 0;
  });
}

void CommandBufferImpl::start(QueueBackend& backend) noexcept {
  if (!error()) {  // a buffer with a refused encode runs nothing
    const std::string error = backend.start(operations_, &token_);
    if (!error.empty()) fail_device(error.c_str());
  }
  set_status(MTL::CommandBufferStatusScheduled);
}

void CommandBufferImpl::finish(QueueBackend& backend) noexcept {
  call(scheduled_handlers_);
  WorkTime span;
  // A token is always given back; without one there is work only where start() had nothing to complain about.
  if (token_ || !error()) {
    const std::string error = backend.complete(operations_, token_, &span);
    if (!error.empty()) fail_device(error.c_str());
  }
  const bool ran_nothing = operations_.empty();
  operations_.clear();
  {
    Lock lock(*this);
    if (!ran_nothing) span_ = span;
    status_ = error_ ? MTL::CommandBufferStatusError : MTL::CommandBufferStatusCompleted;
  }
  changed_.notify_all();
  leave_queue();  // before the handlers: they may ask for the next buffer
  call(completed_handlers_);
  kept_.clear();
  arena_->close();
  {
    Lock lock(*this);
    done_ = true;
  }
  changed_.notify_all();
}

void CommandBufferImpl::set_status(MTL::CommandBufferStatus status) {
  {
    Lock lock(*this);
    status_ = status;
  }
  changed_.notify_all();
}

void CommandBufferImpl::call(std::vector<MTL::HandlerFunction>& handlers) noexcept {
  for (const MTL::HandlerFunction& handler : handlers) {
    protect(Reporter("command buffer handler", label_.get()), 0, [&] {
      handler(this);
      return 0;
    });
  }
  handlers.clear();  // a handler may hold a reference to this buffer
}

void CommandBufferImpl::waitUntilScheduled() {
  protect(Reporter("waitUntilScheduled", label_.get()), 0, [&] {
    Lock lock(*this);
    if (status_ < MTL::CommandBufferStatusCommitted) fail_invalid("the command buffer was not committed");
    changed_.wait(lock, [&] { return status_ >= MTL::CommandBufferStatusScheduled; });
    return 0;
  });
}

void CommandBufferImpl::waitUntilCompleted() {
  protect(Reporter("waitUntilCompleted", label_.get()), 0, [&] {
    Lock lock(*this);
    if (status_ < MTL::CommandBufferStatusCommitted) fail_invalid("the command buffer was not committed");
    if (!done_ && queue_->on_queue_thread()) {
      if (status_ >= MTL::CommandBufferStatusCompleted) return 0;
      // This thread is the one that would have to do the work.
      fail_invalid("called by a handler of the same queue for work that is not done");
    }
    changed_.wait(lock, [&] { return done_; });
    return 0;
  });
}

void CommandBufferImpl::addScheduledHandler(const MTL::HandlerFunction& handler) {
  protect(Reporter("addScheduledHandler", label_.get()), 0, [&] {
    if (!handler) fail_invalid("handler is empty");
    if (committed()) fail_invalid("the command buffer is committed");
    scheduled_handlers_.push_back(handler);
    return 0;
  });
}

void CommandBufferImpl::addCompletedHandler(const MTL::HandlerFunction& handler) {
  protect(Reporter("addCompletedHandler", label_.get()), 0, [&] {
    if (!handler) fail_invalid("handler is empty");
    if (committed()) fail_invalid("the command buffer is committed");
    completed_handlers_.push_back(handler);
    return 0;
  });
}

MTL::CommandBufferStatus CommandBufferImpl::status() const {
  Lock lock(*this);
  return status_;
}

NS::Error* CommandBufferImpl::error() const {
  Lock lock(*this);
  return error_.get();
}

CFTimeInterval CommandBufferImpl::GPUStartTime() const {
  Lock lock(*this);
  return span_.begin;
}

CFTimeInterval CommandBufferImpl::GPUEndTime() const {
  Lock lock(*this);
  return span_.end;
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
    Lock lock(*this);
    if (!error_) error_ = std::move(error);
    return 0;
  });
}

void CommandBufferImpl::fail_device(const char* text) noexcept {
  refuse(Reporter("command buffer", label_.get()), "%s", text);
  fail(MTL::CommandBufferErrorInternal, last_error());
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
