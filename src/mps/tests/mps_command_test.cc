// Devices, queues, command buffers: order, handlers, waiting, errors, lifetimes.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "src/mps/tests/mps_testing.h"

namespace {

class Commands : public bnns::testing::DeviceTest {
 protected:
  NS::SharedPtr<MPS::Image> image(NS::UInteger size) {
    return NS::TransferPtr(MPS::Image::alloc()->init(
        device_.get(), MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, size, size, 4)));
  }
};

TEST(Devices, List) {
  auto all = NS::TransferPtr(MTL::CopyAllDevices());
  ASSERT_GE(all->count(), 1u);
  auto* last = all->object<MTL::Device>(all->count() - 1);
  EXPECT_EQ(last, NS::TransferPtr(MTLX::CreateCPUDevice()).get());
  EXPECT_EQ(MTLX::deviceKind(last), MTLX::DeviceKind::cpu);
  EXPECT_STREQ(last->name()->utf8String(), "CPU");
  EXPECT_EQ(all->object<MTL::Device>(0), NS::TransferPtr(MTL::CreateSystemDefaultDevice()).get());
  EXPECT_EQ(MTLX::CreateCUDADevice(-1), nullptr);
  EXPECT_NE(std::string(MTLX::lastError()), "");
  EXPECT_TRUE(MPS::SupportsMTLDevice(last));
}

TEST_P(Commands, RunInCommitOrder) {
  // Each buffer pools the image of the one before; any other order leaves zeros behind.
  auto shift = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 1, 1));
  std::vector<NS::SharedPtr<MPS::Image>> images;
  for (int i = 0; i <= 50; ++i) images.push_back(image(33));
  const std::vector<float> ones(33 * 33 * 4, 1.0f);
  images[0]->writeBytes(ones.data(), MPS::DataLayoutHeightxWidthxFeatureChannels, 0);
  std::vector<NS::SharedPtr<MTL::CommandBuffer>> buffers;
  std::vector<int> order;
  for (int i = 0; i < 50; ++i) buffers.push_back(NS::RetainPtr(queue_->commandBuffer()));
  for (size_t i = 50; i-- > 0;) {  // encoded last to first, committed first to last
    shift->encodeToCommandBuffer(buffers[i].get(), images[i].get(), images[i + 1].get());
    buffers[i]->addCompletedHandler([&order, i](MTL::CommandBuffer*) { order.push_back(int(i)); });
  }
  for (auto& buffer : buffers) buffer->commit();
  buffers.back()->waitUntilCompleted();
  std::vector<float> result(ones.size());
  images[50]->readBytes(result.data(), MPS::DataLayoutHeightxWidthxFeatureChannels, 0);
  EXPECT_EQ(result, ones);
  ASSERT_EQ(order.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[size_t(i)], i);
}

TEST_P(Commands, NothingRunsBeforeCommit) {
  auto kernel = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 1, 1));
  auto x = image(4), y = image(4);
  std::vector<float> values(64, 3.0f);
  auto buffer = NS::RetainPtr(queue_->commandBuffer());
  kernel->encodeToCommandBuffer(buffer.get(), x.get(), y.get());
  x->writeBytes(values.data(), MPS::DataLayoutHeightxWidthxFeatureChannels, 0);  // in time
  EXPECT_EQ(buffer->status(), MTL::CommandBufferStatusNotEnqueued);
  buffer->commit();
  buffer->waitUntilCompleted();
  std::vector<float> result(64);
  y->readBytes(result.data(), MPS::DataLayoutHeightxWidthxFeatureChannels, 0);
  EXPECT_EQ(result, values);
}

TEST_P(Commands, Handlers) {
  auto buffer = NS::RetainPtr(queue_->commandBuffer());
  std::vector<int> calls;
  const std::thread::id here = std::this_thread::get_id();
  buffer->addScheduledHandler([&](MTL::CommandBuffer*) { calls.push_back(0); });
  buffer->addCompletedHandler([&](MTL::CommandBuffer* b) {
    calls.push_back(1);
    EXPECT_EQ(b, buffer.get());
    EXPECT_EQ(b->status(), MTL::CommandBufferStatusCompleted);
    EXPECT_NE(std::this_thread::get_id(), here);
    b->waitUntilCompleted();  // does not wait for itself
  });
  buffer->addCompletedHandler([&](MTL::CommandBuffer*) -> void { throw 1; });  // stays inside
  buffer->addCompletedHandler([&](MTL::CommandBuffer*) { calls.push_back(2); });
  buffer->commit();
  buffer->waitUntilCompleted();
  EXPECT_EQ(calls, (std::vector<int>{0, 1, 2}));
  MTLX::clearLastError();
  buffer->addCompletedHandler([&](MTL::CommandBuffer*) { calls.push_back(9); });
  EXPECT_NE(std::string(MTLX::lastError()), "");
  buffer->commit();  // the second time
  EXPECT_NE(std::string(MTLX::lastError()).find("before"), std::string::npos);
  EXPECT_EQ(buffer->status(), MTL::CommandBufferStatusCompleted);
  EXPECT_EQ(calls.size(), 3u);
}

TEST_P(Commands, SignalsGoToOtherThreads) {
  auto queue = NS::TransferPtr(device_->newCommandQueue());
  auto buffer = NS::RetainPtr(queue->commandBuffer());
  sigset_t there, here;
  sigemptyset(&there);
  buffer->addCompletedHandler([&](MTL::CommandBuffer*) { pthread_sigmask(SIG_BLOCK, nullptr, &there); });
  buffer->commit();
  buffer->waitUntilCompleted();
  pthread_sigmask(SIG_BLOCK, nullptr, &here);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD}) {
    EXPECT_EQ(sigismember(&there, signal), 1) << signal;
    EXPECT_EQ(sigismember(&here, signal), 0) << signal;
  }
}

TEST_P(Commands, HandlersOfRefusedBuffers) {
  auto kernel = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 1, 1));
  auto buffer = NS::RetainPtr(queue_->commandBuffer());
  std::atomic<bool> called{false};
  buffer->addCompletedHandler(
      [&](MTL::CommandBuffer* b) { called = b->status() == MTL::CommandBufferStatusError && b->error() != nullptr; });
  auto x = image(2);
  kernel->encodeToCommandBuffer(buffer.get(), x.get(), x.get());
  ASSERT_NE(buffer->error(), nullptr);  // known before commit
  EXPECT_EQ(buffer->error()->code(), NS::Integer(MTL::CommandBufferErrorInvalidResource));
  EXPECT_STREQ(buffer->error()->domain()->utf8String(), "MTLCommandBufferErrorDomain");
  buffer->commit();
  buffer->waitUntilCompleted();
  EXPECT_TRUE(called);
}

TEST_P(Commands, WaitingForNothing) {
  auto buffer = NS::RetainPtr(queue_->commandBuffer());
  MTLX::clearLastError();
  buffer->waitUntilCompleted();  // would be forever
  EXPECT_NE(std::string(MTLX::lastError()).find("not committed"), std::string::npos);
  buffer->waitUntilScheduled();
  buffer->commit();
  buffer->waitUntilScheduled();
  EXPECT_GE(buffer->status(), MTL::CommandBufferStatusScheduled);
  buffer->waitUntilCompleted();
}

TEST_P(Commands, Times) {
  auto buffer = NS::RetainPtr(queue_->commandBuffer());
  auto kernel = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 9, 9));
  auto x = image(256), y = image(256);
  kernel->encodeToCommandBuffer(buffer.get(), x.get(), y.get());
  EXPECT_EQ(buffer->GPUStartTime(), 0);
  EXPECT_EQ(buffer->GPUEndTime(), 0);
  buffer->commit();
  buffer->waitUntilCompleted();
  const CFTimeInterval began = buffer->GPUStartTime(), ended = buffer->GPUEndTime();
  EXPECT_GT(began, 0);
  EXPECT_GT(ended, began);
  EXPECT_LT(ended - began, 60);
  auto next = NS::RetainPtr(queue_->commandBuffer());
  kernel->encodeToCommandBuffer(next.get(), x.get(), y.get());
  next->commit();
  next->waitUntilCompleted();
  EXPECT_GT(next->GPUEndTime(), ended);
}

TEST_P(Commands, EnqueueKeepsAPlace) {
  std::vector<NS::SharedPtr<MTL::CommandBuffer>> buffers;
  std::vector<int> order;
  for (int i = 0; i < 4; ++i) {
    buffers.push_back(NS::RetainPtr(queue_->commandBuffer()));
    buffers.back()->addCompletedHandler([&order, i](MTL::CommandBuffer*) { order.push_back(i); });
  }
  buffers[0]->enqueue();
  buffers[1]->enqueue();
  EXPECT_EQ(buffers[0]->status(), MTL::CommandBufferStatusEnqueued);
  MTLX::clearLastError();
  buffers[0]->enqueue();
  EXPECT_NE(std::string(MTLX::lastError()), "");
  MTLX::clearLastError();
  buffers[0]->waitUntilCompleted();  // not committed: returns
  EXPECT_NE(std::string(MTLX::lastError()).find("not committed"), std::string::npos);
  // Enqueued buffers still record.
  auto kernel = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 1, 1));
  auto x = image(2), y = image(2);
  kernel->encodeToCommandBuffer(buffers[0].get(), x.get(), y.get());
  EXPECT_EQ(buffers[0]->error(), nullptr);
  buffers[3]->commit();
  buffers[1]->commit();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(buffers[3]->status(), MTL::CommandBufferStatusCommitted);
  buffers[0]->commit();
  buffers[3]->waitUntilCompleted();
  buffers[2]->commit();
  buffers[2]->waitUntilCompleted();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 3, 2}));
}

TEST_P(Commands, EnqueuedBuffersThatAreDropped) {
  MTL::CommandBuffer* last = nullptr;
  {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    queue_->commandBuffer()->enqueue();
    last = queue_->commandBuffer()->retain();
    last->commit();
    EXPECT_EQ(last->status(), MTL::CommandBufferStatusCommitted);
  }
  last->waitUntilCompleted();
  EXPECT_EQ(last->status(), MTL::CommandBufferStatusCompleted);
  last->release();
}

TEST_P(Commands, QueuesOfFewBuffers) {
  EXPECT_EQ(device_->newCommandQueue(0), nullptr);
  EXPECT_NE(std::string(MTLX::lastError()).find("maxCommandBufferCount is 0"), std::string::npos);
  auto queue = NS::TransferPtr(device_->newCommandQueue(2));
  auto first = NS::RetainPtr(queue->commandBuffer()), second = NS::RetainPtr(queue->commandBuffer());
  std::atomic<bool> got{false};
  std::thread third([&] {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    MTL::CommandBuffer* buffer = queue->commandBuffer();  // waits
    got = true;
    buffer->commit();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(got);
  // A handler may take its own buffer's place, but cannot wait for another.
  std::atomic<bool> refused{false};
  first->addScheduledHandler([&](MTL::CommandBuffer*) { refused = queue->commandBuffer() == nullptr; });
  first->commit();
  third.join();
  EXPECT_TRUE(got);
  EXPECT_TRUE(refused);
  second.reset();  // dropped, never committed: its place is free too
  first.reset();
  for (int i = 0; i < 20; ++i) {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    queue->commandBuffer()->commit();
  }
}

TEST_P(Commands, HandlersMakeTheNextBuffer) {
  auto queue = NS::TransferPtr(device_->newCommandQueue(1));
  std::atomic<int> left{10};
  std::function<void(MTL::CommandBuffer*)> next = [&](MTL::CommandBuffer*) {
    if (--left == 0) return;
    MTL::CommandBuffer* buffer = queue->commandBuffer();
    if (!buffer) return;
    buffer->addCompletedHandler(next);
    buffer->commit();
  };
  {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    MTL::CommandBuffer* buffer = queue->commandBuffer();
    buffer->addCompletedHandler(next);
    buffer->commit();
  }
  for (int i = 0; i < 5000 && left != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(left, 0);
}

TEST_P(Commands, ImagesLiveUntilTheBufferIsDone) {
  auto kernel = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 3, 3));
  const NS::UInteger before = device_->currentAllocatedSize();
  std::atomic<int> completed{0};
  for (int round = 0; round < 20; ++round) {
    auto buffer = NS::RetainPtr(queue_->commandBuffer());
    auto x = image(64), y = image(64);
    kernel->encodeToCommandBuffer(buffer.get(), x.get(), y.get());
    x.reset();
    y.reset();
    EXPECT_GT(device_->currentAllocatedSize(), before) << "the images went before their buffer ran";
    buffer->addCompletedHandler(
        [&](MTL::CommandBuffer* done) { completed += done->status() == MTL::CommandBufferStatusCompleted ? 1 : 0; });
    buffer->commit();
    if (round % 2) buffer->waitUntilCompleted();  // else everything is dropped while it runs
  }
  auto last = NS::RetainPtr(queue_->commandBuffer());  // after all others
  last->commit();
  last->waitUntilCompleted();
  EXPECT_EQ(completed, 20);
  EXPECT_EQ(device_->currentAllocatedSize(), before) << "images outlive their buffers";
}

TEST_P(Commands, LastReferenceToTheQueueInAHandler) {
  for (int round = 0; round < 20; ++round) {
    auto queue = NS::TransferPtr(device_->newCommandQueue());
    std::atomic<bool> done{false}, completed{false};
    {
      auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
      MTL::CommandBuffer* buffer = queue->commandBuffer();
      buffer->addCompletedHandler([&](MTL::CommandBuffer* ended) {
        completed = ended->status() == MTL::CommandBufferStatusCompleted;
        done = true;
      });
      buffer->commit();
    }
    queue.reset();  // the buffer, on the queue's own thread, may now be the last one to hold it
    while (!done) std::this_thread::yield();
    EXPECT_TRUE(completed);
  }
}

TEST_P(Commands, ManyThreadsShareAQueue) {
  auto kernel = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(device_.get(), 2, 2));
  std::atomic<int> completed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto mine = NS::TransferPtr(kernel->copy());  // one kernel per thread
      auto x = image(16), y = image(16);
      for (int i = 0; i < 25; ++i) {
        auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
        MTL::CommandBuffer* buffer = queue_->commandBuffer();
        mine->encodeToCommandBuffer(buffer, x.get(), y.get());
        buffer->addCompletedHandler([&](MTL::CommandBuffer*) { ++completed; });
        buffer->commit();
        if (i % 5 == 0) buffer->waitUntilCompleted();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  auto last = NS::RetainPtr(queue_->commandBuffer());
  last->commit();
  last->waitUntilCompleted();
  EXPECT_EQ(completed, 100);
}

TEST_P(Commands, BuffersThatRanNothingHaveNoTimes) {
  MTL::CommandBuffer* buffer = queue_->commandBuffer();
  buffer->commit();
  buffer->waitUntilCompleted();
  EXPECT_EQ(buffer->GPUStartTime(), 0);
  EXPECT_EQ(buffer->GPUEndTime(), 0);
}

// The thread's own pool is gone when handlers of exit run: what they autorelease stays alive.
TEST(CommandsAtExitDeathTest, QueuesWork) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what is autoreleased that late is never released, which LeakSanitizer reports";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto program = [] {
    static MTL::CommandQueue* queue = MTLX::CreateCPUDevice()->newCommandQueue();
    queue->commandBuffer()->commit();  // makes the thread's pool
    std::atexit([] {
      MTL::CommandBuffer* buffer = queue->commandBuffer();
      buffer->commit();
      buffer->waitUntilCompleted();
      if (buffer->status() != MTL::CommandBufferStatusCompleted) std::_Exit(3);
    });
    std::exit(0);
  };
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Devices, Commands, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
