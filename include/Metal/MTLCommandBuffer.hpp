// Work for a device: recorded by encodes, started by commit, run in commit order within a queue.
#pragma once

#include <functional>

#include "../Foundation/Foundation.hpp"
#include "MTLTypes.hpp"

using CFTimeInterval = double;  // seconds

namespace MTL {

class CommandQueue;
class Device;

enum CommandBufferStatus : NS::UInteger {
  CommandBufferStatusNotEnqueued = 0,
  CommandBufferStatusEnqueued = 1,
  CommandBufferStatusCommitted = 2,
  CommandBufferStatusScheduled = 3,
  CommandBufferStatusCompleted = 4,
  CommandBufferStatusError = 5,
};

enum CommandBufferError : NS::UInteger {
  CommandBufferErrorNone = 0,
  CommandBufferErrorInternal = 1,  // the device failed
  CommandBufferErrorOutOfMemory = 8,
  CommandBufferErrorInvalidResource = 9,  // an encode was refused; the description says which and why
};

using HandlerFunction = std::function<void(class CommandBuffer*)>;

// A buffer is used by one thread at a time until commit. An encode that is refused is remembered: such a buffer runs
// nothing at all and ends with status Error.
class BNNS_MPS_API CommandBuffer : public NS::Referencing<CommandBuffer> {
 public:
  virtual Device* device() const = 0;
  virtual CommandQueue* commandQueue() const = 0;
  virtual NS::String* label() const = 0;
  virtual void setLabel(NS::String* label) = 0;

  // Takes the next place in the queue's order now; the work runs there after commit, and what takes a later place
  // waits for it. Without it commit takes the place. Once; a second call is refused.
  virtual void enqueue() = 0;
  virtual void commit() = 0;              // once; a second call is refused
  virtual void waitUntilScheduled() = 0;  // returns at once for a buffer that was not committed
  // Returns when the work is done and the completed handlers have run; at once for a buffer that was not committed.
  virtual void waitUntilCompleted() = 0;
  // Called on a thread of the queue, in the order added. Only before commit.
  virtual void addScheduledHandler(const HandlerFunction& handler) = 0;
  virtual void addCompletedHandler(const HandlerFunction& handler) = 0;
  virtual CommandBufferStatus status() const = 0;
  virtual NS::Error* error() const = 0;  // null unless an encode was refused or the device failed
  // When the device began and ended the work, in seconds of a clock of the host that never goes back; 0 before the
  // buffer is completed, and for one that ran nothing. CUDA: the GPU's duration, ending when the host learns of it.
  virtual CFTimeInterval GPUStartTime() const = 0;
  virtual CFTimeInterval GPUEndTime() const = 0;
  const char* className() const noexcept override;

 protected:
  CommandBuffer() = default;
  ~CommandBuffer() override;
};

// In a process forked off by fork, queues of the CPU device work, and so do buffers that were not committed; buffers
// that the parent committed run there alone and have status Error here. Queues of CUDA devices refuse everything.
class BNNS_MPS_API CommandQueue : public NS::Referencing<CommandQueue> {
 public:
  virtual Device* device() const = 0;
  virtual NS::String* label() const = 0;
  virtual void setLabel(NS::String* label) = 0;
  // Autoreleased. Waits where the queue has as many buffers that are not completed as newCommandQueue allowed; null
  // with a reason where a handler of the queue would wait for itself.
  virtual CommandBuffer* commandBuffer() = 0;
  const char* className() const noexcept override;

 protected:
  CommandQueue() = default;
  ~CommandQueue() override;
};

}  // namespace MTL
