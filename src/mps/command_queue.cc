#include "src/mps/command_queue.h"

#include <system_error>

#include "src/mps/command_buffer.h"
#include "src/mps/guard.h"

namespace bnns::mps {
namespace {

void run_queue(const std::shared_ptr<QueueCore>& core) {
  for (;;) {
    NS::SharedPtr<CommandBufferImpl> buffer;
    {
      std::unique_lock<std::mutex> lock(core->mutex);
      core->wake.wait(lock, [&] { return core->stop || !core->pending.empty(); });
      if (core->pending.empty()) return;
      buffer = std::move(core->pending.front());
      core->pending.pop_front();
    }
    // What handlers autorelease goes with their buffer.
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    buffer->finish(*core->backend);
    buffer.reset();
  }
}

}  // namespace

CommandQueueImpl::CommandQueueImpl(DeviceImpl& device) : device_(device), core_(std::make_shared<QueueCore>()) {
  core_->backend = device.backend().make_queue();
}

CommandQueueImpl::~CommandQueueImpl() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(core_->mutex);
    core_->stop = true;
  }
  core_->wake.notify_one();
  // Buffers retain their queue, so nothing is pending here.
  on_queue_thread() ? thread_.detach() : thread_.join();
}

MTL::CommandBuffer* CommandQueueImpl::commandBuffer() {
  return protect("commandBuffer", static_cast<MTL::CommandBuffer*>(nullptr),
                 [&]() -> MTL::CommandBuffer* { return (new CommandBufferImpl(*this))->autorelease(); });
}

void CommandQueueImpl::submit(CommandBufferImpl& buffer) {
  // The lock covers start(), so that the order of starting is the order of finishing.
  std::lock_guard<std::mutex> lock(core_->mutex);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([core = core_] { run_queue(core); });
    } catch (const std::system_error& error) {
      fail_unsupported("no thread for the command queue: %s", error.what());
    }
    thread_id_ = thread_.get_id();
  }
  core_->pending.push_back(NS::RetainPtr(&buffer));
  buffer.start(*core_->backend);
  core_->wake.notify_one();
}

}  // namespace bnns::mps

namespace MTL {

CommandQueue::~CommandQueue() = default;

const char* CommandQueue::className() const noexcept {
  return "MTLCommandQueue";
}

}  // namespace MTL
