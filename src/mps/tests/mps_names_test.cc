// What a user of metal-cpp or of Apple's C names finds: initialisers, states, memory, descriptions, reasons,
// MPSNames.hpp.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "MetalPerformanceShaders/MPSNames.hpp"
#include "src/core/error.h"
#include "src/mps/device/device.h"
#include "src/mps/tests/mps_testing.h"

namespace {

using bnns::testing::DeviceTest;

static_assert(MPSImageEdgeModeClamp == 1 && MPSImageFeatureChannelFormatFloat16 == 3 &&
              MTLPixelFormatRGBA16Float == 115);
static_assert((MPSNNPaddingMethodSizeSame | MPSNNPaddingMethodAddRemainderToBottomRight) == 28);
static_assert(MTLSizeMake(1, 2, 3) == MTL::Size(1, 2, 3) && MTLOriginMake(4, 5, 6) == MTL::Origin(4, 5, 6));
static_assert(MTLRegionMake2D(1, 2, 3, 4) == MTL::Region(1, 2, 3, 4));
static_assert(MTLRegionMake3D(0, 0, 0, MPSRectNoClip.size.width, 1, 1) == MTL::Region(0, 0, 0, NS::UIntegerMax, 1, 1));

bool has(const NS::String* text, const char* part) {
  return text && std::string(text->utf8String()).find(part) != std::string::npos;
}

class Names : public DeviceTest {
 protected:
  NS::SharedPtr<MPS::Image> image(NS::UInteger size) {
    return NS::TransferPtr(MPS::Image::alloc()->init(
        device_.get(), MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, size, size, 4)));
  }
};

// A program with Apple's names from end to end.
TEST_P(Names, AppleSpelling) {
  auto device = NS::TransferPtr(MTLCreateSystemDefaultDevice());
  EXPECT_TRUE(MPSSupportsMTLDevice(device.get()));
  EXPECT_GE(NS::TransferPtr(MTLCopyAllDevices())->count(), 1u);
  MTLCommandBuffer* buffer = queue_->commandBuffer();
  MPSImageDescriptor* descriptor = MPSImageDescriptor::imageDescriptor(MPSImageFeatureChannelFormatFloat32, 4, 4, 4);
  MPSImage* images[] = {MPSTemporaryImage::temporaryImage(buffer, descriptor),
                        MPSTemporaryImage::temporaryImage(buffer, descriptor)};
  MPSImageBatch* batch = MPSImageBatch::batch(images, 2);
  EXPECT_EQ(MPSImageBatchIncrementReadCount(batch, 2), 2u);
  EXPECT_EQ(static_cast<MPSTemporaryImage*>(images[0])->readCount(), 3u);
  EXPECT_EQ(MPSImageBatchResourceSize(batch), 2u * 4 * 4 * 16);
  MPSImageBatchSynchronize(batch, buffer);
  EXPECT_EQ(MPSImageBatchIterate(batch, [](MPSImage*, NSUInteger i) { return NSInteger(i); }), 1);
  MPSState* states[] = {MPSState::temporaryState(buffer), MPSState::temporaryState(buffer)};
  MPSStateBatch* both = MPSStateBatch::batch(states, 2);
  EXPECT_EQ(MPSStateBatchIncrementReadCount(both, 1), 2u);
  EXPECT_EQ(MPSStateBatchResourceSize(both), 0u);
  MPSStateBatchSynchronize(both, buffer);
  EXPECT_EQ(buffer->status(), MTLCommandBufferStatusNotEnqueued);
}

TEST_P(Names, States) {
  auto buffer = NS::RetainPtr(queue_->commandBuffer());
  MPS::State* state = MPS::State::temporaryState(buffer.get());
  ASSERT_NE(state, nullptr);
  EXPECT_FALSE(state->isTemporary());  // it has nothing that could expire
  EXPECT_EQ(state->resourceCount(), 0u);
  const MPS::StateTextureInfo info = state->textureInfo(0);
  EXPECT_EQ(info.width, 0u);
  EXPECT_EQ(info.pixelFormat, MTL::PixelFormatInvalid);
  EXPECT_EQ(MPS::State::temporaryState(nullptr), nullptr);
  buffer->commit();
  EXPECT_EQ(MPS::State::temporaryState(buffer.get()), nullptr);
  EXPECT_NE(std::string(MTLX::lastError()).find("committed"), std::string::npos);
}

TEST_P(Names, InitialisersOfTheBases) {
  auto pooling = NS::TransferPtr(MPS::CNNPooling::alloc()->initWithDevice(device_.get(), 3, 2, 5, 4));
  ASSERT_TRUE(pooling);
  EXPECT_EQ(pooling->strideInPixelsX(), 5u);
  EXPECT_EQ(NS::TransferPtr(MPS::CNNPooling::alloc()->initWithDevice(device_.get(), 3, 2))->kernelHeight(), 2u);
  auto gradient = NS::TransferPtr(MPS::CNNPoolingGradient::alloc()->initWithDevice(device_.get(), 3, 2, 5, 4));
  ASSERT_TRUE(gradient);
  EXPECT_EQ(gradient->primaryStrideInPixelsY(), 4u);
  EXPECT_EQ(
      NS::TransferPtr(MPS::CNNPoolingGradient::alloc()->initWithDevice(device_.get(), 3, 2))->secondaryKernelWidth(),
      3u);
}

TEST_P(Names, Descriptions) {
  auto average = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(device_.get(), 3, 2, 4, 5));
  average->setOffset({-1, 7, 0});
  average->setEdgeMode(MPS::ImageEdgeModeClamp);
  average->setZeroPadSizeY(2);
  EXPECT_STREQ(
      average->description()->utf8String(),
      "MPSCNNPoolingAverage: kernel 3 x 2, stride 4 x 5, offset (-1, 7, 0), edge mode Clamp, zeroPadSize 0 x 2");
  average->setLabel(MTLSTR("head"));
  EXPECT_TRUE(has(average->description(), "MPSCNNPoolingAverage \"head\": kernel 3 x 2"));
  const NS::String* debug = average->debugDescription();
  EXPECT_TRUE(has(debug, average->description()->utf8String()));
  EXPECT_TRUE(has(debug, "\n  device = "));
  EXPECT_TRUE(has(debug, "\n  padding = MPSNNDefaultPadding"));
  EXPECT_TRUE(has(debug, "\n  destinationImageAllocator = MPSTemporaryImage.defaultAllocator"));
  EXPECT_TRUE(has(debug, "\n  offset.x = -1"));
  EXPECT_TRUE(has(debug, "\n  clipRect.size.width = all"));
  EXPECT_TRUE(has(debug, "\n  zeroPadSizeY = 2"));
  auto dilated = NS::TransferPtr(MPS::CNNDilatedPoolingMax::alloc()->init(device_.get(), 3, 2, 2, 1, 4, 5));
  EXPECT_TRUE(has(dilated->description(), "dilation 2 x 1"));

  auto gradient = NS::TransferPtr(MPS::CNNPoolingMaxGradient::alloc()->init(device_.get(), 3, 2, 4, 5));
  EXPECT_STREQ(
      gradient->description()->utf8String(),
      "MPSCNNPoolingMaxGradient: kernel 3 x 2, stride 4 x 5, primary offset (0, 0, 0), secondary offset (0, 0, "
      "0), edge mode Zero, sourceSize all x all x all");
  gradient->setSourceSize(MTL::Size(9, 8, 7));
  EXPECT_TRUE(has(gradient->description(), "sourceSize 9 x 8 x 7"));
  EXPECT_TRUE(has(gradient->debugDescription(), "\n  sourceSize.height = 8"));
  EXPECT_TRUE(has(gradient->debugDescription(), "\n  kernelOffsetX = 0"));
  // Everything else says what it is.
  EXPECT_TRUE(has(queue_->debugDescription(), "MTLCommandQueue"));
  auto bare = NS::TransferPtr(MPS::CNNPoolingMax::alloc());
  EXPECT_TRUE(has(bare->debugDescription(), "not initialised"));
}

// Three mistakes, three reasons.
TEST_P(Names, ReasonsOfWrongDescriptors) {
  const auto reason = [&](MPS::ImageFeatureChannelFormat format, NS::UInteger w, NS::UInteger c, NS::UInteger n) {
    MTLX::clearLastError();
    EXPECT_EQ(MPS::Image::alloc()->init(device_.get(), MPS::ImageDescriptor::imageDescriptor(
                                                           format, w, 2, c, n, MTL::TextureUsageShaderRead)),
              nullptr);
    return std::string(MTLX::lastError());
  };
  const auto f32 = MPS::ImageFeatureChannelFormatFloat32;
  EXPECT_EQ(reason(MPS::ImageFeatureChannelFormatNone, 2, 4, 1),
            "MPSImage init: channelFormat is None (0), expected Unorm8, Unorm16, Float16 or Float32: it was not set");
  EXPECT_EQ(reason(MPS::ImageFeatureChannelFormat_reserved0, 2, 4, 1),
            "MPSImage init: channelFormat is _reserved0 (5), expected Unorm8, Unorm16, Float16 or Float32");
  EXPECT_EQ(reason(f32, 2, 0, 1), "MPSImage init: featureChannels is 0, expected at least 1");
  EXPECT_EQ(reason(f32, 0, 4, 1), "MPSImage init: width is 0, expected at least 1");
  EXPECT_EQ(reason(f32, 2, 4, 0), "MPSImage init: numberOfImages is 0, expected at least 1");
  auto* descriptor = MTL::TextureDescriptor::texture2DDescriptor(MTL::PixelFormatInvalid, 2, 2, false);
  EXPECT_EQ(device_->newTexture(descriptor), nullptr);
  EXPECT_NE(std::string(MTLX::lastError()).find("pixelFormat is 0 (Invalid), expected"), std::string::npos);
}

TEST_P(Names, ReasonsOfObjectsWithoutInit) {
  auto buffer = NS::RetainPtr(queue_->commandBuffer());
  auto raw = NS::TransferPtr(MPS::Image::alloc());
  auto kernel = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 2, 2));
  kernel->encodeToCommandBuffer(buffer.get(), raw.get(), raw.get());
  EXPECT_NE(std::string(MTLX::lastError()).find("source image was allocated but not initialised"), std::string::npos);
  auto bare = NS::TransferPtr(MPS::CNNPoolingMax::alloc());
  bare->encodeToCommandBuffer(buffer.get(), raw.get(), raw.get());
  EXPECT_NE(std::string(MTLX::lastError()).find("the kernel was allocated but not"), std::string::npos);
}

TEST_P(Names, DeviceMemory) {
  const bool cpu = std::string(GetParam()) == "cpu";
  if (cpu) {
    EXPECT_TRUE(device_->hasUnifiedMemory());
  }
  EXPECT_GT(device_->recommendedMaxWorkingSetSize(), std::uint64_t{1} << 20);
  const NS::UInteger before = device_->currentAllocatedSize();
  auto x = image(100);
  EXPECT_EQ(device_->currentAllocatedSize(), before);  // allocated at first use
  ASSERT_NE(x->texture(), nullptr);
  EXPECT_EQ(device_->currentAllocatedSize(), before + 100 * 100 * 16);
  x->texture()->setLabel(MTLSTR("activations"));
  EXPECT_STREQ(x->texture()->label()->utf8String(), "activations");
  x.reset();
  EXPECT_EQ(device_->currentAllocatedSize(), before);
}

TEST_P(Names, LabelsInMessages) {
  auto kernel = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device_.get(), 2, 2));
  auto buffer = NS::RetainPtr(queue_->commandBuffer());
  kernel->setLabel(MTLSTR("pool 1"));
  kernel->encodeToCommandBuffer(nullptr, static_cast<MPS::Image*>(nullptr), nullptr);
  EXPECT_EQ(std::string(MTLX::lastError()).rfind("MPSCNNPoolingMax \"pool 1\": ", 0), 0u) << MTLX::lastError();
  buffer->setLabel(MTLSTR("step 3"));
  auto x = image(2);
  kernel->encodeToCommandBuffer(buffer.get(), x.get(), x.get());
  const std::string expected = "MPSCNNPoolingMax \"pool 1\" in command buffer \"step 3\": destination is also a source";
  EXPECT_EQ(MTLX::lastError(), expected);
  EXPECT_EQ(buffer->error()->localizedDescription()->utf8String(), expected);
  buffer->waitUntilCompleted();
  EXPECT_STREQ(MTLX::lastError(), "waitUntilCompleted \"step 3\": the command buffer was not committed");
  // However long the labels, the reason is there.
  kernel->setLabel(NS::String::string(std::string(5000, 'k').c_str()));
  buffer->setLabel(NS::String::string(std::string(5000, 'b').c_str()));
  kernel->encodeToCommandBuffer(buffer.get(), x.get(), x.get());
  EXPECT_NE(std::string(MTLX::lastError()).find(": destination is also a source"), std::string::npos);
}

// A device whose work always fails.
class BrokenQueue final : public bnns::mps::QueueBackend {
 public:
  std::string start(const std::vector<bnns::mps::Operation>&, Token*) noexcept override { return {}; }
  std::string complete(const std::vector<bnns::mps::Operation>&, Token, bnns::mps::WorkTime*) noexcept override {
    return "the device fell off the bus";
  }
};

class BrokenBackend final : public bnns::mps::DeviceBackend {
 public:
  std::string name() const override { return "broken"; }
  bool is_host() const override { return false; }
  bool has_unified_memory() const override { return false; }
  uint64_t memory_bytes() const override { return 0; }
  void copy_to_device(void*, const void*, size_t) override {}
  void copy_to_host(void*, const void*, size_t) override {}
  std::unique_ptr<bnns::mps::QueueBackend> make_queue() override { return std::make_unique<BrokenQueue>(); }

 protected:
  void* allocate_block(size_t bytes, bool) override { bnns::fail_out_of_memory("nothing", bytes); }
  void free_block(void*, size_t) noexcept override {}
};

TEST(BrokenDevices, AreNamedWithTheBuffer) {
  // Devices stay for the life of the process.
  static auto* device = new bnns::mps::DeviceImpl(std::make_unique<BrokenBackend>(), MTLX::DeviceKind::cpu, 17);
  auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  auto queue = NS::TransferPtr(device->newCommandQueue());
  MTL::CommandBuffer* buffer = queue->commandBuffer();
  buffer->setLabel(MTLSTR("step 3"));
  buffer->commit();
  buffer->waitUntilCompleted();
  EXPECT_EQ(buffer->status(), MTL::CommandBufferStatusError);
  EXPECT_STREQ(buffer->error()->localizedDescription()->utf8String(),
               "command buffer \"step 3\": the device fell off the bus");
}

INSTANTIATE_TEST_SUITE_P(Devices, Names, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
