// A process with both libraries, as programs link them: libbnns_mps uses libbnns's pool, settings and log.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "MetalPerformanceShaders/MetalPerformanceShaders.hpp"
#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"

namespace {

// Before the libraries read it.
[[maybe_unused]] const int verbose = setenv("BNNS_VERBOSE", "1", 1);

size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// What the libraries say, from any thread.
class Log {
 public:
  Log() {
    BNNSExtSetLogCallback(
        [](BNNSExtLogLevel, const char* message, void* user) {
          auto& log = *static_cast<Log*>(user);
          const std::lock_guard<std::mutex> lock(log.mutex_);
          log.lines_.emplace_back(message);
        },
        this);
  }
  ~Log() { BNNSExtSetLogCallback(nullptr, nullptr); }
  std::vector<std::string> lines() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

class MpsOnePool : public ::testing::Test {
 protected:
  void SetUp() override {
    pool_ = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    device_ = NS::TransferPtr(MTLX::CreateCPUDevice());
    queue_ = NS::TransferPtr(device_->newCommandQueue());
  }
  void TearDown() override {
    BNNSExtSetNumThreads(0);
    BNNSExtSetMaxISA("amx");
  }

  NS::SharedPtr<MPS::Image> image(NS::UInteger size) const {
    auto* descriptor = MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, size, size, 64);
    return NS::TransferPtr(MPS::Image::alloc()->init(device_.get(), descriptor));
  }
  // Enough work for many threads.
  void pool_an_image() const {
    const auto source = image(128), target = image(64);
    auto kernel = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 2, 2, 2, 2));
    MTL::CommandBuffer* buffer = queue_->commandBuffer();
    kernel->encodeToCommandBuffer(buffer, source.get(), target.get());
    buffer->commit();
    buffer->waitUntilCompleted();
    ASSERT_EQ(buffer->status(), MTL::CommandBufferStatusCompleted);
  }
  static void apply_a_filter() {
    constexpr size_t kSize = 1 << 21;
    BNNSLayerParametersActivation layer;
    std::memset(&layer, 0, sizeof layer);
    layer.i_desc.layout = BNNSDataLayoutVector, layer.i_desc.size[0] = kSize;
    layer.i_desc.data_type = BNNSDataTypeFloat32, layer.o_desc = layer.i_desc;
    layer.activation.function = BNNSActivationFunctionTanh;
    const BNNSFilter filter = BNNSFilterCreateLayerActivation(&layer, nullptr);
    std::vector<float> x(kSize, 0.5f), y(kSize);
    ASSERT_EQ(BNNSFilterApply(filter, x.data(), y.data()), 0);
    BNNSFilterDestroy(filter);
  }

  const std::string best_ = BNNSExtGetISA();
  NS::SharedPtr<NS::AutoreleasePool> pool_;
  NS::SharedPtr<MTL::Device> device_;
  NS::SharedPtr<MTL::CommandQueue> queue_;
};

TEST_F(MpsOnePool, BothLibrariesShareTheWorkers) {
  const size_t before = threads_of_this_process();
  BNNSExtSetNumThreads(3);
  pool_an_image();
  // The queue's own thread, and two workers: the queue's thread takes part.
  EXPECT_EQ(threads_of_this_process(), before + 3);
  apply_a_filter();
  EXPECT_EQ(threads_of_this_process(), before + 3) << "a filter has workers of its own";
  BNNSExtSetNumThreads(5);
  apply_a_filter();
  EXPECT_EQ(threads_of_this_process(), before + 5);
  pool_an_image();
  EXPECT_EQ(threads_of_this_process(), before + 5) << "an encode has workers of its own";
}

// Number of threads and instruction set of an encode, as its verbose line says.
TEST_F(MpsOnePool, SettingsOfLibbnnsReachEncodes) {
  Log log;
  BNNSExtSetNumThreads(2);
  pool_an_image();
  BNNSExtSetNumThreads(1);
  BNNSExtSetMaxISA("sse4");
  pool_an_image();
  const std::vector<std::string> lines = log.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].find("encode,max_pool f32 n1 c64 h128x64 w128x64 k2x2 s2x2 "), 0u) << lines[0];
  EXPECT_NE(lines[0].find(std::string(",") + best_ + ",2 threads,"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(",mps_pooling/cpu/band,sse4,1 thread,"), std::string::npos) << lines[1];
}

TEST_F(MpsOnePool, RefusalsOfBothGoToOneLog) {
  Log log;
  EXPECT_EQ(device_->newCommandQueue(0), nullptr);
  EXPECT_EQ(BNNSFilterCreateLayerActivation(nullptr, nullptr), nullptr);
  const std::vector<std::string> lines = log.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("maxCommandBufferCount is 0"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("BNNSFilterCreateLayerActivation"), std::string::npos) << lines[1];
  EXPECT_EQ(MTLX::lastError(), lines[1]);
}

}  // namespace
