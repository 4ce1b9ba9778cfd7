// What only a GPU can do wrong.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "MetalPerformanceShaders/MetalPerformanceShaders.hpp"
#include "src/mps/device/device.h"
#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {
namespace {

// An encode whose images are nowhere; the GPU finds out when nobody waits.
PoolEncode images_nowhere() {
  PoolEncode e;
  e.source = {reinterpret_cast<void*>(uintptr_t{1} << 20), PixelType::f32, 16, 16, 1, 4};
  e.target = {reinterpret_cast<void*>(uintptr_t{1} << 24), PixelType::f32, 16, 16, 1, 4};
  e.images = 1, e.channels = 4, e.width = e.height = 16;
  for (PoolAxis* a : {&e.x, &e.y}) a->kernel = 3, a->first_centre = 0;
  return e;
}

// Such a fault is the result of its command buffer, and of every later one; a program that looks knows that its results
// are none.
TEST(MpsPoolingCudaDeathTest, BC64_AFaultOnTheGpuIsReported) {
  {
    const auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    const auto device = NS::TransferPtr(MTLX::CreateCUDADevice(0));
    if (!device) GTEST_SKIP() << "no CUDA device: " << MTLX::lastError();
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // CUDA does not survive a fork
  const auto child = [] {
    const auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    const auto device = NS::TransferPtr(MTLX::CreateCUDADevice(0));
    const auto queue = device_impl(device.get()).backend().make_queue();
    bool reported = true;
    for (int round = 0; round < 2; ++round) {
      QueueBackend::Token token = nullptr;
      WorkTime span;
      const std::vector<Operation> operations = {Encode(images_nowhere(), kPoolDevices)};
      const std::string at_start = queue->start(operations, &token);
      const std::string at_end = queue->complete(operations, token, &span);
      std::fprintf(stderr, "start: %s; end: %s\n", at_start.c_str(), at_end.c_str());
      reported = reported && !(at_start + at_end).empty();
    }
    std::_Exit(reported ? 0 : 1);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace bnns::mps
