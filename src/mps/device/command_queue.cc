#include "src/mps/device/command_queue.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <system_error>

#include "src/core/process/blocked_signals.h"
#include "src/mps/device/command_buffer.h"
#include "src/mps/foundation/guard.h"

namespace bnns::mps {
namespace {

void run_queue(const std::shared_ptr<QueueCore>& core) {
  for (;;) {
    NS::SharedPtr<CommandBufferImpl> buffer;
    {
      ForkLock lock(core->mutex);
      core->work.wait(lock, [&] { return core->stop || !core->started.empty(); });
      if (core->started.empty()) return;
      buffer = std::move(core->started.front().committed);
      core->spare.splice(core->spare.begin(), core->started, core->started.begin());
    }
    // What handlers autorelease goes with their buffer.
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    buffer->finish(*core->backend);
    buffer.reset();
  }
}

void start_thread(const std::shared_ptr<QueueCore>& core) {
  const BlockedSignals blocked;
  try {
    core->thread = std::thread([core] { run_queue(core); });
  } catch (const std::system_error& error) {
    fail_unsupported("no thread for the command queue: %s", error.what());
  }
  core->thread_id = core->thread.get_id();
}

}  // namespace

QueueCore::Places::iterator QueueCore::find_place(const CommandBufferImpl& buffer) {
  return std::find_if(waiting.begin(), waiting.end(), [&](const Place& place) { return place.buffer == &buffer; });
}

QueueCore::Places::iterator QueueCore::add_place(CommandBufferImpl& buffer) {
  if (spare.empty()) spare.emplace_back();
  waiting.splice(waiting.end(), spare, spare.begin());
  waiting.back().buffer = &buffer;
  return std::prev(waiting.end());
}

void QueueCore::start_front() noexcept {
  while (!waiting.empty() && waiting.front().committed) {
    started.splice(started.end(), waiting, waiting.begin());
    started.back().buffer->start(*backend);
    work.notify_all();
  }
}

void QueueCore::complete_one() noexcept {
  {
    ForkLock lock(mutex);
    --uncompleted;
  }
  space.notify_all();
}

CommandQueueImpl::CommandQueueImpl(DeviceImpl& device, size_t most_buffers)
    : device_(device),
      most_buffers_(most_buffers),
      core_(std::make_shared<QueueCore>()),
      generation_(core_->generation) {
  core_->backend = device.backend().make_queue();
}

CommandQueueImpl::~CommandQueueImpl() {
  if (!is_ours()) {
    new std::shared_ptr<QueueCore>(std::move(core_));  // the parent's: neither its thread nor its stream is ours
    return;
  }
  if (!core_->thread.joinable()) return;
  {
    ForkLock lock(core_->mutex);
    core_->stop = true;
  }
  core_->work.notify_all();
  // Buffers retain their queue, so nothing is left here.
  core_->on_thread() ? core_->thread.detach() : core_->thread.join();
}

const std::shared_ptr<QueueCore>& CommandQueueImpl::core() {
  if (is_ours()) return core_;
  ForkLock lock(mutex_);
  if (!is_ours()) {
    auto made = std::make_shared<QueueCore>();
    made->backend = device_.backend().make_queue();
    new std::shared_ptr<QueueCore>(std::move(core_));  // as in the destructor
    core_ = std::move(made);
    generation_.store(core_->generation, std::memory_order_release);
  }
  return core_;
}

void CommandQueueImpl::count(CommandBufferImpl& buffer) {
  const std::shared_ptr<QueueCore>& core = this->core();
  if (most_buffers_ == NS::UIntegerMax) return;
  ForkLock lock(core->mutex);
  if (core->uncompleted >= most_buffers_ && core->on_thread()) {
    fail_invalid("called by a handler of the queue, which has all of its %zu command buffers in use", most_buffers_);
  }
  core->space.wait(lock, [&] { return core->uncompleted < most_buffers_; });
  ++core->uncompleted;
  buffer.count_in(core);
}

MTL::CommandBuffer* CommandQueueImpl::commandBuffer() {
  const Reporter reporter("commandBuffer", label_.get());
  return protect(reporter, static_cast<MTL::CommandBuffer*>(nullptr), [&]() -> MTL::CommandBuffer* {
    auto made = NS::TransferPtr(new CommandBufferImpl(*this));
    count(*made);
    return made.detach()->autorelease();
  });
}

void CommandQueueImpl::enqueue(CommandBufferImpl& buffer) {
  QueueCore& core = *this->core();
  ForkLock lock(core.mutex);
  core.add_place(buffer);
}

void CommandQueueImpl::submit(CommandBufferImpl& buffer) {
  const std::shared_ptr<QueueCore>& core = this->core();
  ForkLock lock(core->mutex);
  if (!core->thread.joinable()) start_thread(core);
  auto place = core->find_place(buffer);
  if (place == core->waiting.end()) place = core->add_place(buffer);
  place->committed = NS::RetainPtr(&buffer);
  core->start_front();
}

void CommandQueueImpl::withdraw(CommandBufferImpl& buffer) noexcept {
  if (!is_ours()) return;
  ForkLock lock(core_->mutex);
  const auto place = core_->find_place(buffer);
  if (place != core_->waiting.end()) core_->waiting.erase(place);
  core_->start_front();
}

}  // namespace bnns::mps

namespace MTL {

CommandQueue::~CommandQueue() = default;

const char* CommandQueue::className() const noexcept {
  return "MTLCommandQueue";
}

}  // namespace MTL
