#include "src/mps/command_queue.h"

#include <algorithm>
#include <system_error>

#include "src/core/blocked_signals.h"
#include "src/mps/command_buffer.h"
#include "src/mps/guard.h"

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
      core->started.pop_front();
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

auto place_of(std::list<QueueCore::Place>& places, const CommandBufferImpl& buffer) {
  return std::find_if(places.begin(), places.end(), [&](const auto& place) { return place.buffer == &buffer; });
}

}  // namespace

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
    : device_(device), most_buffers_(most_buffers), core_(std::make_shared<QueueCore>()) {
  core_->backend = device.backend().make_queue();
}

CommandQueueImpl::~CommandQueueImpl() {
  if (core_->generation != fork_generation()) {
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

std::shared_ptr<QueueCore> CommandQueueImpl::core() {
  ForkLock lock(mutex_);
  if (core_->generation != fork_generation()) {
    auto made = std::make_shared<QueueCore>();
    made->backend = device_.backend().make_queue();
    new std::shared_ptr<QueueCore>(std::move(core_));  // as in the destructor
    core_ = std::move(made);
  }
  return core_;
}

std::shared_ptr<QueueCore> CommandQueueImpl::known_core() noexcept {
  ForkLock lock(mutex_);
  return core_;
}

MTL::CommandBuffer* CommandQueueImpl::commandBuffer() {
  return protect(Reporter("commandBuffer", label_.get()), static_cast<MTL::CommandBuffer*>(nullptr),
                 [&]() -> MTL::CommandBuffer* {
                   const std::shared_ptr<QueueCore> core = this->core();
                   auto made = NS::TransferPtr(new CommandBufferImpl(*this));
                   {
                     ForkLock lock(core->mutex);
                     if (core->uncompleted >= most_buffers_ && core->on_thread()) {
                       fail_invalid("called by a handler of the queue, which has all of its %zu command buffers in use",
                                    most_buffers_);
                     }
                     core->space.wait(lock, [&] { return core->uncompleted < most_buffers_; });
                     ++core->uncompleted;
                   }
                   made->count_in(core);
                   return made.detach()->autorelease();
                 });
}

void CommandQueueImpl::enqueue(CommandBufferImpl& buffer) {
  const std::shared_ptr<QueueCore> core = this->core();
  ForkLock lock(core->mutex);
  core->waiting.push_back({&buffer, nullptr});
}

void CommandQueueImpl::submit(CommandBufferImpl& buffer) {
  const std::shared_ptr<QueueCore> core = this->core();
  ForkLock lock(core->mutex);
  if (!core->thread.joinable()) start_thread(core);
  auto place = place_of(core->waiting, buffer);
  if (place == core->waiting.end()) place = core->waiting.insert(place, {&buffer, nullptr});
  place->committed = NS::RetainPtr(&buffer);
  core->start_front();
}

void CommandQueueImpl::withdraw(CommandBufferImpl& buffer) noexcept {
  const std::shared_ptr<QueueCore> core = known_core();
  if (core->generation != fork_generation()) return;
  ForkLock lock(core->mutex);
  const auto place = place_of(core->waiting, buffer);
  if (place != core->waiting.end()) core->waiting.erase(place);
  core->start_front();
}

}  // namespace bnns::mps

namespace MTL {

CommandQueue::~CommandQueue() = default;

const char* CommandQueue::className() const noexcept {
  return "MTLCommandQueue";
}

}  // namespace MTL
