// Wrong calls: null or a refused command buffer with a reason, nothing written, never a crash.
#include "src/mps/device/device.h"
#include "src/ops/mps_pooling/tests/mps_pooling_testing.h"

namespace bnns::testing {
namespace {

class PoolingMisuse : public PoolingTest {
 protected:
  void SetUp() override {
    PoolingTest::SetUp();
    if (IsSkipped()) return;
    max_ = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 2, 2, 2, 2));
    gradient_ = NS::TransferPtr(MPS::CNNPoolingMaxGradient::alloc()->init(device(), 2, 2, 2, 2));
    PoolImage sevens(1, 8, 2, 2);
    for (double& x : sevens.v) x = 7;
    x_ = image(1, 8, 4, 4);
    y_ = image(sevens);
  }
  // After a refused encode: the reason holds `text`, the destination still its sevens, and a good encode recorded into
  // the same buffer did not run either.
  void expect_refused(const char* text) {
    MPS::Image* other = image(1, 8, 2, 2);
    auto good = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 2, 2, 2, 2));
    MPS::Image* ones = image(1, 8, 4, 4);
    PoolImage values(1, 8, 4, 4);
    for (double& v : values.v) v = 1;
    write(ones, values);
    good->encodeToCommandBuffer(buffer(), ones, other);
    const std::string reason = run_refused();
    EXPECT_NE(reason.find(text), std::string::npos) << reason;
    for (double v : read(y_).v) ASSERT_EQ(v, 7);
    for (double v : read(other).v) ASSERT_EQ(v, 0);
  }
  MPS::TemporaryImage* temporary(MTL::CommandBuffer* b) {
    return MPS::TemporaryImage::temporaryImage(
        b, MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, 4, 4, 8));
  }

  NS::SharedPtr<MPS::CNNPoolingMax> max_;
  NS::SharedPtr<MPS::CNNPoolingMaxGradient> gradient_;
  MPS::Image *x_ = nullptr, *y_ = nullptr;
};

TEST_P(PoolingMisuse, Initialisers) {
  EXPECT_EQ(MPS::CNNPoolingMax::alloc()->init(static_cast<MTL::Device*>(nullptr), 2, 2), nullptr);
  EXPECT_NE(std::string(MTLX::lastError()).find("device is null"), std::string::npos);
  EXPECT_EQ(MPS::CNNPoolingMax::alloc()->init(device(), 0, 2), nullptr);
  EXPECT_EQ(MPS::CNNPoolingAverage::alloc()->init(device(), 2, 2, 1, 0), nullptr);
  EXPECT_EQ(MPS::CNNPoolingMaxGradient::alloc()->init(device(), 2, 0, 1, 1), nullptr);
  EXPECT_EQ(MPS::CNNDilatedPoolingMax::alloc()->init(device(), 2, 2, 0, 1, 1, 1), nullptr);
  EXPECT_EQ(MPS::CNNDilatedPoolingMaxGradient::alloc()->init(device(), 2, 2, 1, 1, 0, 1), nullptr);
  EXPECT_EQ(MPS::CNNPoolingMax::alloc()->init(device(), NS::UIntegerMax, 2), nullptr);
  EXPECT_EQ(MPS::CNNDilatedPoolingMax::alloc()->init(device(), 3, 3, NS::UIntegerMax / 2, 1, 1, 1), nullptr);
  auto plain = NS::TransferPtr(MPS::CNNPooling::alloc()->init(device(), 3, 2));
  EXPECT_EQ(plain->strideInPixelsX(), 1u);
  EXPECT_EQ(plain->strideInPixelsY(), 1u);
}

TEST_P(PoolingMisuse, NullArguments) {
  max_->encodeToCommandBuffer(nullptr, x_, y_);
  EXPECT_NE(std::string(MTLX::lastError()).find("command buffer is null"), std::string::npos);
  max_->encodeToCommandBuffer(buffer(), static_cast<MPS::Image*>(nullptr), y_);
  expect_refused("null");
  max_->encodeToCommandBuffer(buffer(), x_, static_cast<MPS::Image*>(nullptr));
  expect_refused("null");
  EXPECT_EQ(max_->encodeToCommandBuffer(buffer(), static_cast<MPS::Image*>(nullptr)), nullptr);
  expect_refused("null");
  EXPECT_EQ(gradient_->encodeToCommandBuffer(buffer(), y_, x_, static_cast<MPS::State*>(nullptr)), nullptr);
  expect_refused("gradientStates");
  max_->encodeBatchToCommandBuffer(buffer(), static_cast<MPS::ImageBatch*>(nullptr),
                                   static_cast<MPS::ImageBatch*>(nullptr));
  expect_refused("null");
  EXPECT_EQ(max_->resultState(nullptr, nullptr, y_), nullptr);
  EXPECT_EQ(max_->destinationImageDescriptor(nullptr, nullptr), nullptr);
  EXPECT_EQ(MPS::ImageBatch::batch(nullptr, 2), nullptr);
}

TEST_P(PoolingMisuse, EdgeModes) {
  for (auto mode : {MPS::ImageEdgeModeMirror, MPS::ImageEdgeModeMirrorWithEdge, MPS::ImageEdgeModeConstant}) {
    max_->setEdgeMode(mode);
    max_->encodeToCommandBuffer(buffer(), x_, y_);
    expect_refused("edge mode");
    gradient_->setSecondaryEdgeMode(mode);
    gradient_->encodeToCommandBuffer(buffer(), image(1, 8, 2, 2), image(1, 8, 2, 2), y_);
    expect_refused("edge mode");
  }
}

TEST_P(PoolingMisuse, AbstractBases) {
  auto base = NS::TransferPtr(MPS::CNNPooling::alloc()->init(device(), 2, 2, 2, 2));
  base->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("base");
  auto gradient = NS::TransferPtr(MPS::CNNPoolingGradient::alloc()->init(device(), 2, 2, 2, 2));
  gradient->encodeToCommandBuffer(buffer(), y_, x_, image(1, 8, 4, 4));
  expect_refused("base");
  EXPECT_NE(NS::TransferPtr(base->copy()).get(), nullptr);
}

TEST_P(PoolingMisuse, Channels) {
  max_->setDestinationFeatureChannelOffset(4);  // 4 + 8 > 8
  max_->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("destination has 8 channels, expected at least 4 + 8");
  max_->setDestinationFeatureChannelOffset(2);
  max_->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("multiple of 4");
  max_->setDestinationFeatureChannelOffset(0);
  max_->setSourceFeatureChannelOffset(8);
  max_->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("source channel offset is 8");
  EXPECT_EQ(max_->encodeToCommandBuffer(buffer(), x_), nullptr);
  expect_refused("sourceFeatureChannelOffset is 8");
  max_->setSourceFeatureChannelOffset(NS::UIntegerMax - 3);
  max_->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("channel offset");
}

TEST_P(PoolingMisuse, AliasesAndSkippedValidation) {
  max_->encodeToCommandBuffer(buffer(), y_, y_);
  expect_refused("also a source");
  MPS::Image* twins = image(2, 8, 2, 2);
  MPS::ImageBatch* views = twins->batchRepresentation();
  MPS::ImageBatch* again = twins->batchRepresentation(NS::Range::Make(0, 1));
  max_->encodeToCommandBuffer(buffer(), views->image(0), again->image(0));
  expect_refused("shares memory");
  MPS::Image* crossed[] = {views->image(1), views->image(0)};
  max_->encodeBatchToCommandBuffer(buffer(), views, MPS::ImageBatch::batch(crossed, 2));
  expect_refused("source");
  max_->encodeToCommandBuffer(buffer(), views->image(0), views->image(1));  // apart: allowed
  run();
  max_->setOptions(MPS::KernelOptionsSkipAPIValidation);
  max_->encodeToCommandBuffer(buffer(), views->image(0), again->image(0));
  run();
  max_->encodeToCommandBuffer(buffer(), x_, image(1, 4, 2, 2));  // guards memory: still refused
  expect_refused("channels");
}

TEST_P(PoolingMisuse, Batches) {
  MPS::Image *two[] = {image(1, 8, 4, 4), image(1, 8, 4, 4)}, *out[] = {y_, image(1, 8, 2, 2)};
  auto* sources = MPS::ImageBatch::batch(two, 2);
  max_->encodeBatchToCommandBuffer(buffer(), sources, MPS::ImageBatch::batch(out, 1));
  expect_refused("length 1, expected 2");
  gradient_->encodeBatchToCommandBuffer(buffer(), MPS::ImageBatch::batch(out, 2), MPS::ImageBatch::batch(two, 1),
                                        sources);
  expect_refused("length 1, expected 2");
  MPS::State* state = max_->resultState(two[0], nullptr, out[1]);
  EXPECT_EQ(gradient_->encodeBatchToCommandBuffer(buffer(), MPS::ImageBatch::batch(out, 2), sources,
                                                  MPS::StateBatch::batch(&state, 1)),
            nullptr);
  expect_refused("gradientStates has length 1, expected 2");
  gradient_->encodeBatchToCommandBuffer(buffer(), MPS::ImageBatch::batch(out, 2), sources,
                                        MPS::StateBatch::batch(&state, 1), sources);
  expect_refused("gradientStates has length 1, expected 2");
  MPS::Image* many[] = {image(2, 8, 4, 4), image(1, 8, 4, 4)};
  max_->encodeBatchToCommandBuffer(buffer(), MPS::ImageBatch::batch(many, 2), MPS::ImageBatch::batch(out, 2));
  expect_refused("numberOfImages 2");
  MPS::Image* unequal[] = {image(1, 8, 4, 4), image(1, 8, 5, 4)};
  EXPECT_EQ(max_->encodeBatchToCommandBuffer(buffer(), MPS::ImageBatch::batch(unequal, 2)), nullptr);
  expect_refused("another size");
  // One bad pair refuses the whole batch, the good first one included.
  MPS::Image* narrow[] = {y_, image(1, 4, 2, 2)};
  max_->encodeBatchToCommandBuffer(buffer(), sources, MPS::ImageBatch::batch(narrow, 2));
  expect_refused("channels");
}

TEST_P(PoolingMisuse, ClipOutsideWritesNothing) {
  for (const MTL::Region clip : {MTL::Region(2, 0, 9, 9), MTL::Region(0, NS::UIntegerMax, 1, 1),
                                 MTL::Region(0, 0, 1, 2, 2, 1), MTL::Region(0, 0, 0, 2)}) {
    max_->setClipRect(clip);
    max_->encodeToCommandBuffer(buffer(), x_, y_);
    gradient_->setClipRect(clip);
    gradient_->encodeToCommandBuffer(buffer(), image(1, 8, 2, 2), image(1, 8, 2, 2), y_);
    run();
    for (double v : read(y_).v) ASSERT_EQ(v, 7);
  }
}

TEST_P(PoolingMisuse, Offsets) {
  max_->setOffset({0, 0, -1});
  max_->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("offset.z is -1");
  max_->setOffset({NS::IntegerMin, 0, 0});
  max_->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("farther");
  max_->setOffset({0, NS::IntegerMax, 0});
  max_->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("farther");
  gradient_->setKernelOffsetX(NS::IntegerMin);
  gradient_->encodeToCommandBuffer(buffer(), image(1, 8, 2, 2), image(1, 8, 2, 2), y_);
  expect_refused("kernelOffset");
  gradient_->setKernelOffsetX(0);
  gradient_->setPrimaryStrideInPixelsX(0);
  gradient_->encodeToCommandBuffer(buffer(), image(1, 8, 2, 2), image(1, 8, 2, 2), y_);
  expect_refused("stride is 0");
  max_->setOffset({-1000000, 1000000, 0});  // far outside, but fine: zeros
  max_->encodeToCommandBuffer(buffer(), x_, y_);
  run();
  for (double v : read(y_).v) ASSERT_EQ(v, 0);
}

TEST_P(PoolingMisuse, TemporaryImages) {
  MPS::TemporaryImage* once = temporary(buffer());
  MPS::Image* ok = image(1, 8, 2, 2);
  max_->encodeToCommandBuffer(buffer(), once, ok);
  EXPECT_EQ(once->readCount(), 0u);
  max_->encodeToCommandBuffer(buffer(), once, y_);
  expect_refused("readCount");
  once->setReadCount(2);
  EXPECT_EQ(once->readCount(), 0u);
  max_->encodeToCommandBuffer(buffer(), temporary(nullptr), y_);
  expect_refused("null");
  renew();
  MPS::TemporaryImage* elsewhere = temporary(buffer());
  elsewhere->retain();
  renew();
  max_->encodeToCommandBuffer(buffer(), elsewhere, y_);
  expect_refused("another command buffer");
  elsewhere->release();
  MPS::TemporaryImage* freed = temporary(buffer());
  freed->setReadCount(0);
  max_->encodeToCommandBuffer(buffer(), x_, freed);
  expect_refused("gone");

  MTLX::clearLastError();
  float byte = 5;
  MPS::TemporaryImage* closed = temporary(buffer());
  closed->readBytes(&byte, MPS::DataLayoutHeightxWidthxFeatureChannels, 0);
  EXPECT_EQ(byte, 5);
  EXPECT_NE(std::string(MTLX::lastError()).find("private"), std::string::npos);
  EXPECT_EQ(closed->texture(), nullptr);
}

TEST_P(PoolingMisuse, CommittedBuffer) {
  auto old = NS::RetainPtr(buffer());
  max_->encodeToCommandBuffer(buffer(), x_, image(1, 8, 2, 2));
  run();
  max_->encodeToCommandBuffer(old.get(), x_, y_);
  EXPECT_NE(std::string(MTLX::lastError()).find("committed"), std::string::npos);
  EXPECT_EQ(max_->encodeToCommandBuffer(old.get(), x_), nullptr);
  EXPECT_EQ(temporary(old.get()), nullptr);
  EXPECT_EQ(old->status(), MTL::CommandBufferStatusCompleted);
  for (double v : read(y_).v) ASSERT_EQ(v, 7);
}

TEST_P(PoolingMisuse, States) {
  auto average = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(device(), 2, 2, 2, 2));
  MPS::State* state = average->resultState(x_, nullptr, y_);
  EXPECT_EQ(gradient_->encodeToCommandBuffer(buffer(), y_, x_, state), nullptr);
  expect_refused("another kind");
  state = max_->resultState(x_, nullptr, y_);
  EXPECT_EQ(gradient_->encodeToCommandBuffer(buffer(), y_, image(1, 8, 5, 4), state), nullptr);
  expect_refused("the state was made for");
  max_->setEdgeMode(MPS::ImageEdgeModeMirror);
  EXPECT_EQ(max_->resultState(x_, nullptr, y_), nullptr);
}

TEST_P(PoolingMisuse, BadAllocators) {
  class Null : public MPS::ImageAllocator {
   public:
    MPS::Image* imageForCommandBuffer(MTL::CommandBuffer*, MPS::ImageDescriptor*, MPS::Kernel*) override {
      return nullptr;
    }
  };
  class Throws : public MPS::ImageAllocator {
   public:
    MPS::Image* imageForCommandBuffer(MTL::CommandBuffer*, MPS::ImageDescriptor*, MPS::Kernel*) override { throw 1; }
  };
  auto null = NS::TransferPtr<MPS::ImageAllocator>(new Null);
  auto throws = NS::TransferPtr<MPS::ImageAllocator>(new Throws);
  max_->setDestinationImageAllocator(null.get());
  EXPECT_EQ(max_->encodeToCommandBuffer(buffer(), x_), nullptr);
  EXPECT_STREQ(MTLX::lastError(), "MPSCNNPoolingMax: the image allocator made 0 of 1 images");
  expect_refused("allocator made 0 of 1");
  max_->setDestinationImageAllocator(throws.get());
  EXPECT_EQ(max_->encodeToCommandBuffer(buffer(), x_), nullptr);
  expect_refused("the caller's own code threw");
}

TEST_P(PoolingMisuse, OtherDevices) {
  // A second CPU device, as a machine with two GPUs has two.
  static auto* other = new mps::DeviceImpl(mps::make_cpu_backend(), MTLX::DeviceKind::cpu, 9);
  auto* foreign =
      MPS::Image::alloc()
          ->init(other, MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, 4, 4, 8))
          ->autorelease();
  max_->encodeToCommandBuffer(buffer(), foreign, y_);
  expect_refused("source image is on another device");
  gradient_->encodeToCommandBuffer(buffer(), image(1, 8, 2, 2), foreign, y_);
  expect_refused("secondary image is on another device");
  auto moved = NS::TransferPtr(max_->copy(other));
  EXPECT_EQ(moved->device(), other);
  moved->encodeToCommandBuffer(buffer(), x_, y_);
  expect_refused("the kernel is on another device");
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolingMisuse, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bnns::testing
