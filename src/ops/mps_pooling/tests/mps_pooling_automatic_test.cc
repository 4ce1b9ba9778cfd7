// Encodes that return images: the padding table, states, batches, temporary images and their read counts.
#include "src/ops/mps_pooling/tests/mps_pooling_testing.h"

namespace bnns::testing {
namespace {

using mps::PoolKind;

class PoolingAutomatic : public PoolingTest {
 protected:
  template <class Class>
  NS::SharedPtr<Class> make(NS::UInteger k, NS::UInteger s) {
    auto kernel = NS::TransferPtr(Class::alloc()->init(device(), k, k, s, s));
    kernel->setDestinationImageAllocator(MPS::Image::defaultAllocator());
    return kernel;
  }
  MPS::TemporaryImage* temporary(int64_t h, int64_t w) {
    return MPS::TemporaryImage::temporaryImage(
        buffer(), MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, NS::UInteger(w),
                                                        NS::UInteger(h), 4));
  }
};

// The specification's table: size @ offset for Same, Valid, Full, each with the remainder top left and bottom right.
TEST_P(PoolingAutomatic, PaddingTable) {
  struct Row {
    NS::UInteger source, stride, kernel;
    NS::Integer expected[6][2];
  };
  const Row rows[] = {
      {8, 3, 2, {{3, 1}, {3, 1}, {3, 1}, {3, 1}, {3, 1}, {3, 1}}},
      {8, 3, 3, {{3, 0}, {3, 1}, {2, 1}, {2, 2}, {4, -1}, {4, -1}}},
      {10, 3, 2, {{4, 0}, {4, 1}, {3, 1}, {3, 2}, {4, 0}, {4, 1}}},
      {7, 2, 2, {{4, 0}, {4, 1}, {3, 1}, {3, 1}, {4, 0}, {4, 1}}},
      {7, 2, 3, {{4, 0}, {4, 0}, {3, 1}, {3, 1}, {5, -1}, {5, -1}}},
      {6, 2, 3, {{3, 0}, {3, 1}, {2, 1}, {2, 1}, {4, -1}, {4, 0}}},
      {5, 1, 3, {{5, 0}, {5, 0}, {3, 1}, {3, 1}, {7, -1}, {7, -1}}},
  };
  const MPS::NNPaddingMethod sizes[] = {MPS::NNPaddingMethodSizeSame, MPS::NNPaddingMethodSizeValidOnly,
                                        MPS::NNPaddingMethodSizeFull};
  for (const Row& row : rows) {
    auto kernel = make<MPS::CNNPoolingMax>(row.kernel, row.stride);
    MPS::Image* source = image(2, 5, int64_t(row.source), int64_t(row.source));
    for (int i = 0; i < 6; ++i) {
      const auto remainder =
          i % 2 ? MPS::NNPaddingMethodAddRemainderToBottomRight : MPS::NNPaddingMethodAddRemainderToTopLeft;
      kernel->setPadding(MPS::NNDefaultPadding::paddingWithMethod(sizes[i / 2] | remainder));
      MPS::ImageDescriptor* d = kernel->destinationImageDescriptor(NS::Array::array(source), nullptr);
      ASSERT_NE(d, nullptr);
      EXPECT_EQ(NS::Integer(d->width()), row.expected[i][0]) << row.source << " column " << i;
      EXPECT_EQ(NS::Integer(d->height()), row.expected[i][0]);
      EXPECT_EQ(kernel->offset().x, row.expected[i][1]) << row.source << " column " << i;
      EXPECT_EQ(kernel->offset().y, row.expected[i][1]);
      EXPECT_EQ(d->featureChannels(), 5u);
      EXPECT_EQ(d->numberOfImages(), 2u);
      EXPECT_EQ(d->channelFormat(), MPS::ImageFeatureChannelFormatFloat32);
    }
  }
}

TEST_P(PoolingAutomatic, PaddingAlignmentAndMixedRemainders) {
  auto kernel = make<MPS::CNNPoolingMax>(3, 2);  // 6 pixels, Same: 3 windows, one pixel beyond
  MPS::Image* source = image(1, 1, 6, 6);
  const auto offset = [&](MPS::NNPaddingMethod method) {
    kernel->setPadding(MPS::NNDefaultPadding::paddingWithMethod(method | MPS::NNPaddingMethodSizeSame));
    EXPECT_NE(kernel->destinationImageDescriptor(NS::Array::array(source), nullptr), nullptr);
    return std::pair(kernel->offset().x, kernel->offset().y);
  };
  EXPECT_EQ(offset(MPS::NNPaddingMethodAddRemainderToTopRight), std::pair(NS::Integer(1), NS::Integer(0)));
  EXPECT_EQ(offset(MPS::NNPaddingMethodAddRemainderToBottomLeft), std::pair(NS::Integer(0), NS::Integer(1)));
  EXPECT_EQ(offset(MPS::NNPaddingMethodAlignTopLeft), std::pair(NS::Integer(0), NS::Integer(0)));
  EXPECT_EQ(offset(MPS::NNPaddingMethodAlignBottomRight), std::pair(NS::Integer(1), NS::Integer(1)));
  kernel->setPadding(MPS::NNDefaultPadding::paddingWithMethod(MPS::NNPaddingMethodSizeValidOnly));
  EXPECT_EQ(kernel->destinationImageDescriptor(NS::Array::array(image(1, 1, 2, 2)), nullptr), nullptr);  // no window
  EXPECT_NE(std::string(MTLX::lastError()), "");
}

TEST_P(PoolingAutomatic, TensorflowAverage) {
  // TensorFlow SAME 2x2 stride 2 on 3 pixels: windows 0..1 and 2, averages over what is there.
  PoolImage source(1, 1, 3, 3);
  for (size_t i = 0; i < 9; ++i) source.v[i] = double(i + 1);
  auto kernel = make<MPS::CNNPoolingAverage>(2, 2);
  kernel->setPadding(MPS::NNDefaultPadding::paddingForTensorflowAveragePooling());
  MPS::Image* same = kernel->encodeToCommandBuffer(buffer(), image(source));
  EXPECT_EQ(kernel->edgeMode(), MPS::ImageEdgeModeClamp);
  kernel->setPadding(MPS::NNDefaultPadding::paddingForTensorflowAveragePoolingValidOnly());
  MPS::Image* valid = kernel->encodeToCommandBuffer(buffer(), image(source));
  run();
  EXPECT_EQ(read(same).v, (std::vector<double>{3, 4.5, 7.5, 9}));
  EXPECT_EQ(read(valid).v, (std::vector<double>{3}));
}

TEST_P(PoolingAutomatic, ExcludeEdges) {
  PoolImage source(1, 1, 3, 3);
  for (size_t i = 0; i < 9; ++i) source.v[i] = double(i + 1);
  auto average = make<MPS::CNNPoolingAverage>(2, 2);
  const auto method = MPS::NNPaddingMethodSizeSame | MPS::NNPaddingMethodAddRemainderToBottomRight;
  average->setPadding(MPS::NNDefaultPadding::paddingWithMethod(method | MPS::NNPaddingMethodExcludeEdges));
  MPS::State* state = nullptr;
  MPS::Image* y = average->encodeToCommandBuffer(buffer(), image(source), &state, false);
  EXPECT_EQ(average->edgeMode(), MPS::ImageEdgeModeZero);  // for that encode only
  auto gradient = make<MPS::CNNPoolingAverageGradient>(2, 2);
  PoolImage g(1, 1, 2, 2);
  g.v = {4, 2, 2, 1};
  MPS::Image* dx = gradient->encodeToCommandBuffer(buffer(), image(g), image(source), state);
  run();
  EXPECT_EQ(read(y).v, (std::vector<double>{3, 4.5, 7.5, 9}));
  EXPECT_EQ(read(dx).v, std::vector<double>(9, 1));
}

TEST_P(PoolingAutomatic, CustomPaddingMayChangeKernelAndDescriptor) {
  class Padding : public MPS::NNPadding {
   public:
    MPS::NNPaddingMethod paddingMethod() const override {
      return MPS::NNPaddingMethodCustom | MPS::NNPaddingMethodSizeSame;
    }
    MPS::ImageDescriptor* destinationImageDescriptor(NS::Array*, NS::Array*, MPS::Kernel* kernel,
                                                     MPS::ImageDescriptor* suggested) override {
      dynamic_cast<MPS::CNNKernel*>(kernel)->setOffset({1, 1, 0});
      suggested->setWidth(1);
      return suggested;
    }
  };
  auto padding = NS::TransferPtr<Padding>(new Padding);
  auto kernel = make<MPS::CNNPoolingMax>(2, 2);
  kernel->setPadding(padding.get());
  PoolImage source(1, 1, 4, 4);
  for (size_t i = 0; i < 16; ++i) source.v[i] = double(i + 1);
  MPS::Image* y = kernel->encodeToCommandBuffer(buffer(), image(source));
  run();
  EXPECT_EQ(y->width(), 1u);
  EXPECT_EQ(read(y).v, (std::vector<double>{6, 14}));
}

TEST_P(PoolingAutomatic, TrainingStepInOneBufferWithTemporaries) {
  Random r(3);
  const PoolImage source = random_image(r, 2, 6, 7, 5, true);
  for (int family = 0; family < 3; ++family) {
    NS::SharedPtr<MPS::CNNPooling> forward;
    NS::SharedPtr<MPS::CNNPoolingGradient> gradient;
    if (family == 0) forward = make<MPS::CNNPoolingMax>(3, 2), gradient = make<MPS::CNNPoolingMaxGradient>(3, 2);
    if (family == 1) {
      forward = make<MPS::CNNPoolingAverage>(3, 2), gradient = make<MPS::CNNPoolingAverageGradient>(3, 2);
    }
    if (family == 2) forward = make<MPS::CNNPoolingL2Norm>(3, 2), gradient = make<MPS::CNNPoolingL2NormGradient>(3, 2);
    forward->setDestinationImageAllocator(nullptr);  // back to temporary images
    MPS::State* state = nullptr;
    MPS::Image* y = forward->encodeToCommandBuffer(buffer(), image(source), &state, true);
    ASSERT_NE(y, nullptr) << MTLX::lastError();
    ASSERT_NE(state, nullptr);
    EXPECT_TRUE(y->isTemporary());
    EXPECT_FALSE(state->isTemporary());
    EXPECT_EQ(state->readCount(), 0u);
    // The loss is half the sum of squares, so y itself is its gradient.
    MPS::Image* dx = gradient->encodeToCommandBuffer(buffer(), y, image(source), state);
    ASSERT_NE(dx, nullptr) << MTLX::lastError();
    EXPECT_EQ(static_cast<MPS::TemporaryImage*>(y)->readCount(), 0u);
    run();
    const PoolImage out = expected_forward(*forward, PoolKind(family), {}, source, PoolImage(2, 6, 4, 3));
    const PoolImage expected = expected_backward(*gradient, PoolKind(family), {}, out, source, PoolImage(2, 6, 7, 5));
    EXPECT_LE(distance(read(dx), expected), family == 0 ? 0 : 30 * 12 * 24 * 0x1p-23);
  }
}

TEST_P(PoolingAutomatic, FirstWindowInsideTheImage) {
  // Valid windows that begin at pixel 1: the gradient of the skipped border is 0 and the rest is not shifted (D7).
  auto forward = make<MPS::CNNPoolingMax>(2, 3);
  auto gradient = make<MPS::CNNPoolingMaxGradient>(2, 3);
  forward->setPadding(MPS::NNDefaultPadding::paddingWithMethod(MPS::NNPaddingMethodSizeValidOnly |
                                                               MPS::NNPaddingMethodAddRemainderToBottomRight));
  PoolImage source(1, 1, 10, 10);
  for (size_t i = 0; i < 100; ++i) source.v[i] = double(i);
  MPS::State* state = nullptr;
  MPS::Image *x = image(source), *y = forward->encodeToCommandBuffer(buffer(), x, &state, false);
  EXPECT_EQ(forward->offset().x, 2);
  // An allocator that hands out used images: what the encode does not reach must become 0.
  class Used : public MPS::ImageAllocator {
   public:
    MPS::Image* imageForCommandBuffer(MTL::CommandBuffer* b, MPS::ImageDescriptor* d, MPS::Kernel*) override {
      MPS::Image* made = MPS::Image::alloc()->init(b->device(), d)->autorelease();
      const std::vector<float> sevens(d->width() * d->height(), 7.0f);
      made->writeBytes(sevens.data(), MPS::DataLayoutFeatureChannelsxHeightxWidth, 0);
      return made;
    }
  };
  auto used = NS::TransferPtr<MPS::ImageAllocator>(new Used);
  gradient->setDestinationImageAllocator(used.get());
  MPS::Image* dx = gradient->encodeToCommandBuffer(buffer(), y, x, state);
  ASSERT_NE(dx, nullptr) << MTLX::lastError();
  EXPECT_EQ(gradient->clipRect().origin.x, 1u);
  run();
  PoolImage expected(1, 1, 10, 10);
  for (int64_t i : {2, 5, 8}) {
    for (int64_t j : {2, 5, 8}) expected.at(0, 0, i, j) = double(10 * i + j);
  }
  EXPECT_EQ(read(dx).v, expected.v);
}

TEST_P(PoolingAutomatic, Batches) {
  Random r(4);
  std::vector<MPS::Image*> sources, targets;
  std::vector<PoolImage> values;
  for (int i = 0; i < 3; ++i) {
    values.push_back(random_image(r, 1, 5, 6, 6, true));
    sources.push_back(image(values.back()));
    targets.push_back(image(1, 5, 3, 3));
  }
  auto* x = MPS::ImageBatch::batch(sources.data(), 3);
  auto forward = make<MPS::CNNPoolingMax>(2, 2);
  MPS::StateBatch* states = nullptr;
  MPS::ImageBatch* y = forward->encodeBatchToCommandBuffer(buffer(), x, &states, false);
  ASSERT_NE(y, nullptr) << MTLX::lastError();
  ASSERT_EQ(y->count(), 3u);
  ASSERT_EQ(states->count(), 3u);
  auto* explicit_states = forward->resultStateBatch(x, nullptr, y);
  ASSERT_NE(explicit_states, nullptr);
  forward->encodeBatchToCommandBuffer(buffer(), x, explicit_states, MPS::ImageBatch::batch(targets.data(), 3));
  auto gradient = make<MPS::CNNPoolingMaxGradient>(2, 2);
  MPS::ImageBatch* dx = gradient->encodeBatchToCommandBuffer(buffer(), y, x, states);
  ASSERT_NE(dx, nullptr) << MTLX::lastError();
  std::vector<MPS::Image*> direct = {image(1, 5, 6, 6), image(1, 5, 6, 6), image(1, 5, 6, 6)};
  gradient->encodeBatchToCommandBuffer(buffer(), y, x, states, MPS::ImageBatch::batch(direct.data(), 3));
  run();
  for (NS::UInteger i = 0; i < 3; ++i) {
    const PoolImage out = expected_forward(*forward, PoolKind::max, {}, values[i], PoolImage(1, 5, 3, 3));
    EXPECT_EQ(read(y->image(i)).v, out.v);
    EXPECT_EQ(read(targets[i]).v, out.v);
    const PoolImage back = expected_backward(*gradient, PoolKind::max, {}, out, values[i], PoolImage(1, 5, 6, 6));
    EXPECT_EQ(read(dx->image(i)).v, back.v);
    EXPECT_EQ(read(direct[i]).v, back.v);
  }
}

TEST_P(PoolingAutomatic, ReadCounts) {
  auto forward = make<MPS::CNNPoolingMax>(2, 2);
  MPS::TemporaryImage* x = temporary(4, 4);
  x->setReadCount(3);
  MPS::Image* y = image(1, 4, 2, 2);
  forward->encodeToCommandBuffer(buffer(), x, y);
  EXPECT_EQ(x->readCount(), 2u);
  MPS::Image* pair[] = {x, x};
  MPS::Image* targets[] = {image(1, 4, 2, 2), image(1, 4, 2, 2)};
  forward->encodeBatchToCommandBuffer(buffer(), MPS::ImageBatch::batch(pair, 2), MPS::ImageBatch::batch(targets, 2));
  EXPECT_EQ(x->readCount(), 1u);  // once per distinct image
  EXPECT_EQ(MPS::ImageBatchIncrementReadCount(MPS::ImageBatch::batch(pair, 2), 1), 1u);
  EXPECT_EQ(x->readCount(), 2u);
  // The average gradient does not look at the secondary image, but that is a read all the same.
  auto gradient = make<MPS::CNNPoolingAverageGradient>(2, 2);
  MPS::TemporaryImage* never_written = temporary(4, 4);
  MPS::Image* dx = gradient->encodeToCommandBuffer(buffer(), y, never_written);
  EXPECT_NE(dx, nullptr) << MTLX::lastError();
  EXPECT_EQ(never_written->readCount(), 0u);
  MPS::TemporaryImage* written = temporary(2, 2);
  forward->encodeToCommandBuffer(buffer(), x, written);  // writing takes nothing off
  EXPECT_EQ(written->readCount(), 1u);
  EXPECT_EQ(x->readCount(), 1u);
  run();
}

TEST_P(PoolingAutomatic, TemporaryMemoryIsUsedAgain) {
  // A chain of temporaries: each is freed by the encode that reads it and its memory serves the next but one. New
  // temporaries hold zeros although the memory was used.
  Random r(5);
  PoolImage values = random_image(r, 1, 3, 16, 16, true);
  auto same = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 2, 2));
  MPS::Image* x = image(values);
  for (int round = 0; round < 3; ++round) {
    MPS::Image* step = x;
    for (int i = 0; i < 6; ++i) step = same->encodeToCommandBuffer(buffer(), step);
    MPS::Image* last = image(1, 3, 16, 16);
    auto copy = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 1, 1));
    copy->encodeToCommandBuffer(buffer(), step, last);
    MPS::TemporaryImage* fresh = temporary(16, 16);
    MPS::Image* zeros = image(PoolImage(1, 4, 16, 16));
    copy->encodeToCommandBuffer(buffer(), fresh, zeros);
    run();
    PoolImage expected = values;
    for (int i = 0; i < 6; ++i) expected = expected_forward(*same, PoolKind::max, {}, expected, expected);
    EXPECT_EQ(read(last).v, expected.v) << round;
    EXPECT_EQ(read(zeros).v, std::vector<double>(1024, 0)) << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolingAutomatic, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bnns::testing
