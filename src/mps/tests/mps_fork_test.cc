// A forked child uses the queue, images and command buffers of its parent.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "src/mps/tests/mps_testing.h"

namespace {

// ASan's allocator may be locked by another thread at the fork, and the child's first allocation waits for ever; TSan
// ends programs that start threads after such a fork.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

constexpr auto kLayout = MPS::DataLayoutHeightxWidthxFeatureChannels;
constexpr NS::UInteger kSize = 33;

class Forks : public bnns::testing::DeviceTest {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers do not survive fork with threads";
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    kernel_ = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 3, 3));
    x_ = image();
    const std::vector<float> ones(kSize * kSize * 4, 1.0f);
    x_->writeBytes(ones.data(), kLayout, 0);
  }
  NS::SharedPtr<MPS::Image> image() const {
    return NS::TransferPtr(MPS::Image::alloc()->init(
        device_.get(), MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, kSize, kSize, 4)));
  }

  // The child's exit status: 0 where body() returns 0; -1 where it crashed, -2 where it did not end.
  static int in_child(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int status = 0;;) {
      if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      if (std::chrono::steady_clock::now() > limit) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return -2;
  }
  // Pools by a buffer of the queue: 0 where the result is right.
  int pool(MTL::CommandQueue* queue) {
    auto inner = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    MTL::CommandBuffer* buffer = queue->commandBuffer();
    if (!buffer) return 10;
    auto y = image();
    auto mine = NS::TransferPtr(kernel_->copy());
    mine->setEdgeMode(MPS::ImageEdgeModeClamp);
    // Through a temporary image, which uses the device's cache.
    MPS::Image* temporary = mine->encodeToCommandBuffer(buffer, x_.get());
    if (!temporary) return 11;
    mine->encodeToCommandBuffer(buffer, temporary, y.get());
    buffer->commit();
    buffer->waitUntilCompleted();
    if (buffer->status() != MTL::CommandBufferStatusCompleted) return 12;
    std::vector<float> values(kSize * kSize * 4);
    y->readBytes(values.data(), kLayout, 0);
    for (const float value : values) {
      if (value != 1.0f) return 13;
    }
    return 0;
  }
  bool cuda() const { return MTLX::deviceKind(device_.get()) == MTLX::DeviceKind::cuda; }

  NS::SharedPtr<MPS::CNNPoolingMax> kernel_;
  NS::SharedPtr<MPS::Image> x_;
};

TEST_P(Forks, WhileOtherThreadsCommit) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) ASSERT_EQ(pool(queue_.get()), 0);
    });
  }
  for (int round = 0; round < 40; ++round) {
    const int status = in_child([&] {
      if (cuda()) return queue_->commandBuffer() == nullptr && std::strstr(MTLX::lastError(), "CUDA") ? 0 : 20;
      for (int i = 0; i < 3; ++i) {
        if (const int status = pool(queue_.get())) return status;
      }
      queue_.reset();
      return 0;
    });
    EXPECT_EQ(status, 0) << "round " << round;
    if (status != 0) break;
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool(queue_.get()), 0);
}

TEST_P(Forks, BuffersOfTheParent) {
  auto done = NS::RetainPtr(queue_->commandBuffer()), running = NS::RetainPtr(queue_->commandBuffer());
  auto open = NS::RetainPtr(queue_->commandBuffer()), enqueued = NS::RetainPtr(queue_->commandBuffer());
  done->commit();
  done->waitUntilCompleted();
  std::atomic<bool> hold{true};
  running->addScheduledHandler([&](MTL::CommandBuffer*) {
    while (hold) std::this_thread::yield();
  });
  running->commit();
  auto y = image();
  kernel_->setEdgeMode(MPS::ImageEdgeModeClamp);
  kernel_->encodeToCommandBuffer(open.get(), x_.get(), y.get());
  enqueued->enqueue();
  const int status = in_child([&] {
    if (done->status() != MTL::CommandBufferStatusCompleted) return 1;
    running->waitUntilCompleted();  // the parent's: not here, not ever
    if (running->status() != MTL::CommandBufferStatusError) return 2;
    if (!std::strstr(running->error()->localizedDescription()->utf8String(), "fork")) return 3;
    running.reset();
    if (cuda()) {
      open->commit();
      return open->status() == MTL::CommandBufferStatusError ? 0 : 4;
    }
    open->commit();
    open->waitUntilCompleted();
    if (open->status() != MTL::CommandBufferStatusCompleted) return 5;
    std::vector<float> values(kSize * kSize * 4);
    y->readBytes(values.data(), kLayout, 0);
    for (const float value : values) {
      if (value != 1.0f) return 6;
    }
    enqueued->commit();
    enqueued->waitUntilCompleted();
    if (enqueued->status() != MTL::CommandBufferStatusCompleted) return 7;
    enqueued.reset();
    open.reset();
    return in_child([&] { return pool(queue_.get()); });  // and a child of the child
  });
  EXPECT_EQ(status, 0);
  hold = false;
  enqueued->commit();
  open->commit();
  open->waitUntilCompleted();
  EXPECT_EQ(running->status(), MTL::CommandBufferStatusCompleted);
  EXPECT_EQ(open->status(), MTL::CommandBufferStatusCompleted);
}

TEST_P(Forks, CudaIsRefusedWithAReason) {
  if (!cuda()) return;
  const int status = in_child([&] {
    const auto refused = [] {
      const bool said = std::strstr(MTLX::lastError(), "fork") != nullptr;
      MTLX::clearLastError();
      return said;
    };
    if (device_->newCommandQueue() || !refused()) return 1;
    float value = 5;
    x_->readBytes(&value, kLayout, 4, MTL::Region(0, 0, 1, 1), {0, 1}, 0);
    if (value != 5 || !refused()) return 2;
    auto host = NS::TransferPtr(MTLX::CreateCPUDevice());
    auto queue = NS::TransferPtr(host->newCommandQueue());
    auto buffer = queue ? queue->commandBuffer() : nullptr;
    if (!buffer) return 3;
    buffer->commit();
    buffer->waitUntilCompleted();
    queue_.reset();  // neither of these calls CUDA
    x_.reset();
    return 0;
  });
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, Forks, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
