// Images and windows of a wrong size: refused at once, with the sizes in the message.
#include <chrono>

#include "src/ops/mps_pooling/tests/mps_pooling_testing.h"

namespace bnns::testing {
namespace {

// Makes what it is told, whatever is asked for.
class Stubborn : public MPS::ImageAllocator {
 public:
  Stubborn(NS::UInteger w, NS::UInteger h, NS::UInteger c, NS::UInteger n) : w_(w), h_(h), c_(c), n_(n) {}
  MPS::Image* imageForCommandBuffer(MTL::CommandBuffer* buffer, MPS::ImageDescriptor*, MPS::Kernel*) override {
    return MPS::Image::alloc()
        ->init(buffer->device(),
               MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, w_, h_, c_, n_,
                                                     MTL::TextureUsageShaderRead | MTL::TextureUsageShaderWrite))
        ->autorelease();
  }

 private:
  NS::UInteger w_, h_, c_, n_;
};

class PoolingSizes : public PoolingTest {
 protected:
  void SetUp() override {
    PoolingTest::SetUp();
    if (IsSkipped()) return;
    max_ = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 2, 2, 2, 2));
    gradient_ = NS::TransferPtr(MPS::CNNPoolingMaxGradient::alloc()->init(device(), 2, 2, 2, 2));
    x_ = image(2, 8, 4, 6);  // 6 x 4 pixels
    y_ = image(2, 8, 2, 3);
  }
  void expect_refused(const char* text) {
    const std::string reason = run_refused();
    EXPECT_NE(reason.find(text), std::string::npos) << reason;
  }
  bool allocated(MPS::ImageAllocator* allocator) {
    auto owned = NS::TransferPtr(allocator);
    max_->setDestinationImageAllocator(allocator);
    const bool made = max_->encodeToCommandBuffer(buffer(), x_) != nullptr;
    max_->setDestinationImageAllocator(nullptr);
    return made;
  }

  NS::SharedPtr<MPS::CNNPoolingMax> max_;
  NS::SharedPtr<MPS::CNNPoolingMaxGradient> gradient_;
  MPS::Image *x_ = nullptr, *y_ = nullptr;
};

TEST_P(PoolingSizes, GradientsSmallerThanTheForwardResult) {
  MPS::State* state = max_->resultState(x_, nullptr, y_);
  struct Case {
    int64_t n, c, h, w;
    const char* text;
  };
  for (const Case& bad :
       {Case{2, 8, 2, 2, "is 2 x 2 x 8, 2 images, expected at least 3 x 2 x 8, 2"},
        Case{2, 8, 1, 3, "is 3 x 1 x 8, 2 images, expected"}, Case{2, 4, 2, 3, "is 3 x 2 x 4, 2 images, expected"},
        Case{1, 8, 2, 3, "is 3 x 2 x 8, 1 images, expected"}}) {
    EXPECT_EQ(gradient_->encodeToCommandBuffer(buffer(), image(bad.n, bad.c, bad.h, bad.w), x_, state), nullptr);
    expect_refused(bad.text);
    gradient_->encodeToCommandBuffer(buffer(), image(bad.n, bad.c, bad.h, bad.w), x_, state, image(2, 8, 4, 6));
    expect_refused(bad.text);
  }
  // One of a batch.
  MPS::Image *sources[] = {image(1, 8, 4, 6), image(1, 8, 4, 6)}, *results[] = {image(1, 8, 2, 3), image(1, 8, 2, 3)};
  MPS::Image *gradients[] = {image(1, 8, 2, 3), image(1, 8, 2, 2)}, *targets[] = {image(1, 8, 4, 6), image(1, 8, 4, 6)};
  MPS::ImageBatch* x = MPS::ImageBatch::batch(sources, 2);
  MPS::StateBatch* states = max_->resultStateBatch(x, nullptr, MPS::ImageBatch::batch(results, 2));
  EXPECT_EQ(gradient_->encodeBatchToCommandBuffer(buffer(), MPS::ImageBatch::batch(gradients, 2), x, states), nullptr);
  expect_refused("is 2 x 2 x 8");
  gradient_->encodeBatchToCommandBuffer(buffer(), MPS::ImageBatch::batch(gradients, 2), x, states,
                                        MPS::ImageBatch::batch(targets, 2));
  expect_refused("is 2 x 2 x 8");
  // Larger ones hold more than is needed.
  EXPECT_NE(gradient_->encodeToCommandBuffer(buffer(), image(2, 12, 3, 3), x_, state), nullptr);
  run();
}

TEST_P(PoolingSizes, GradientsOfAPartlyWrittenResult) {
  max_->setClipRect(MTL::Region(1, 0, 0, 1, 1, 1));
  max_->setDestinationFeatureChannelOffset(4);
  MPS::State* state = max_->resultState(image(1, 4, 4, 6), nullptr, image(1, 16, 2, 3));
  // What was written ends at column 2, row 1, channel 8.
  EXPECT_NE(gradient_->encodeToCommandBuffer(buffer(), image(1, 8, 1, 2), image(1, 4, 4, 6), state), nullptr);
  run();
  EXPECT_EQ(gradient_->encodeToCommandBuffer(buffer(), image(1, 4, 1, 2), image(1, 4, 4, 6), state), nullptr);
  expect_refused("is 2 x 1 x 4, 1 images, expected at least 2 x 1 x 8, 1");
  // A forward encode that wrote nothing needs nothing.
  max_->setClipRect(MTL::Region(9, 9, 0, 1, 1, 1));
  state = max_->resultState(image(1, 4, 4, 6), nullptr, image(1, 16, 2, 3));
  EXPECT_NE(gradient_->encodeToCommandBuffer(buffer(), image(1, 16, 2, 3), image(1, 4, 4, 6), state), nullptr);
  run();
}

TEST_P(PoolingSizes, AllocatorsThatMakeAnotherSize) {
  EXPECT_TRUE(allocated(new Stubborn(3, 2, 8, 2)));
  run();
  EXPECT_FALSE(allocated(new Stubborn(2, 2, 8, 2)));
  expect_refused("made 2 x 2 x 8, 2 images, expected 3 x 2 x 8, 2 as described");
  EXPECT_FALSE(allocated(new Stubborn(3, 5, 8, 2)));
  expect_refused("made 3 x 5 x 8");
  EXPECT_FALSE(allocated(new Stubborn(3, 2, 12, 2)));
  expect_refused("made 3 x 2 x 12");
  EXPECT_FALSE(allocated(new Stubborn(3, 2, 8, 1)));
  expect_refused("1 images, expected");
  // With an offset the result goes into a part of a wider image.
  max_->setDestinationFeatureChannelOffset(4);
  EXPECT_TRUE(allocated(new Stubborn(3, 2, 12, 2)));
  run();
  auto small = NS::TransferPtr<MPS::ImageAllocator>(new Stubborn(3, 2, 8, 2));
  gradient_->setDestinationImageAllocator(small.get());
  max_->setDestinationFeatureChannelOffset(0);
  MPS::State* state = max_->resultState(x_, nullptr, y_);
  EXPECT_EQ(gradient_->encodeToCommandBuffer(buffer(), y_, x_, state), nullptr);
  expect_refused("made 3 x 2 x 8, 2 images, expected 6 x 4 x 8, 2");
}

TEST_P(PoolingSizes, WindowsThatWouldTakeForEver) {
  const auto began = std::chrono::steady_clock::now();
  const NS::UInteger huge = NS::UInteger{1} << 28;
  EXPECT_EQ(MPS::CNNPoolingMax::alloc()->init(device(), huge, 3), nullptr);
  EXPECT_STREQ(MTLX::lastError(), "MPSCNNPoolingMax: kernel size is 268435456 x 3, expected at most 2^28 taps");
  EXPECT_EQ(MPS::CNNPoolingL2NormGradient::alloc()->init(device(), 3, huge, 1, 1), nullptr);
  EXPECT_EQ(MPS::CNNDilatedPoolingMax::alloc()->init(device(), 1 << 15, 1 << 15, 1, 1, 1, 1), nullptr);
  auto pool = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), huge, 1));
  ASSERT_TRUE(pool);
  for (const auto edge : {MPS::ImageEdgeModeZero, MPS::ImageEdgeModeClamp}) {
    pool->setEdgeMode(edge);
    pool->encodeToCommandBuffer(buffer(), x_, y_);
    expect_refused("is 268435456 x 1, expected at most 1048576 taps: 2^20, or 4 times the source's 6 x 4 pixels");
  }
  auto l2 = NS::TransferPtr(MPS::CNNPoolingL2NormGradient::alloc()->init(device(), 1, huge, 1, 1));
  ASSERT_TRUE(l2);
  l2->encodeToCommandBuffer(buffer(), y_, x_, image(2, 8, 4, 6));
  expect_refused("is 1 x 268435456, expected at most 1048576 taps");
  EXPECT_EQ(max_->resultState(x_, nullptr, y_) == nullptr, false);
  EXPECT_EQ(pool->resultState(x_, nullptr, y_), nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
}

TEST_P(PoolingSizes, LargeWindowsThatAreFine) {
  // More than the image, fewer than 2^20 taps; and as many as a large image has pixels.
  auto wide = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 1000, 1000, 1, 1));
  wide->setEdgeMode(MPS::ImageEdgeModeClamp);
  wide->encodeToCommandBuffer(buffer(), image(1, 4, 2, 2), image(1, 4, 1, 1));
  auto whole = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(device(), 2048, 1024, 1, 1));
  whole->setOffset({1024, 512, 0});
  MPS::Image *x = image(1, 1, 1024, 2048, MPS::ImageFeatureChannelFormatUnorm8), *y = image(1, 1, 1, 1);
  const std::vector<uint8_t> ones(1024 * 2048, 255);
  x->writeBytes(ones.data(), MPS::DataLayoutFeatureChannelsxHeightxWidth, 0);
  whole->encodeToCommandBuffer(buffer(), x, y);
  run();
  EXPECT_EQ(read(y).v[0], 1.0);
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolingSizes, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bnns::testing
