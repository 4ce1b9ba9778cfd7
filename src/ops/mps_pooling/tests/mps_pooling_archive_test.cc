// Properties and defaults, copies and archives of the ten classes.
#include <cstring>
#include <memory>

#include "src/ops/mps_pooling/tests/mps_pooling_testing.h"

namespace bnns::testing {
namespace {

class PoolingArchive : public PoolingTest {
 protected:
  NS::SharedPtr<MPS::CNNPoolingAverage> average() {
    auto k = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(device(), 5, 3, 2, 4));
    k->setOptions(MPS::KernelOptionsAllowReducedPrecision);
    k->setLabel(MTLSTR("pool1"));
    k->setOffset({-3, 4, 1});
    k->setClipRect(MTL::Region(1, 2, 3, 4, 5, NS::UIntegerMax));
    k->setDestinationFeatureChannelOffset(8);
    k->setSourceFeatureChannelOffset(4);
    k->setSourceFeatureChannelMaxCount(12);
    k->setEdgeMode(MPS::ImageEdgeModeClamp);
    k->setZeroPadSizeX(2);
    k->setZeroPadSizeY(1);
    k->setPadding(MPS::NNDefaultPadding::paddingForTensorflowAveragePooling());
    k->setDestinationImageAllocator(MPS::Image::defaultAllocator());
    return k;
  }
  static void expect_equal(const MPS::CNNPoolingAverage& a, const MPS::CNNPoolingAverage& b) {
    EXPECT_EQ(a.options(), b.options());
    EXPECT_STREQ(a.label()->utf8String(), b.label()->utf8String());
    EXPECT_TRUE(a.offset() == b.offset());
    EXPECT_TRUE(a.clipRect() == b.clipRect());
    EXPECT_EQ(a.destinationFeatureChannelOffset(), b.destinationFeatureChannelOffset());
    EXPECT_EQ(a.sourceFeatureChannelOffset(), b.sourceFeatureChannelOffset());
    EXPECT_EQ(a.sourceFeatureChannelMaxCount(), b.sourceFeatureChannelMaxCount());
    EXPECT_EQ(a.edgeMode(), b.edgeMode());
    EXPECT_EQ(a.kernelWidth(), b.kernelWidth());
    EXPECT_EQ(a.kernelHeight(), b.kernelHeight());
    EXPECT_EQ(a.strideInPixelsX(), b.strideInPixelsX());
    EXPECT_EQ(a.strideInPixelsY(), b.strideInPixelsY());
    EXPECT_EQ(a.zeroPadSizeX(), b.zeroPadSizeX());
    EXPECT_EQ(a.zeroPadSizeY(), b.zeroPadSizeY());
    EXPECT_EQ(a.padding()->paddingMethod(), b.padding()->paddingMethod());
    EXPECT_STREQ(a.padding()->label()->utf8String(), b.padding()->label()->utf8String());
    EXPECT_EQ(a.destinationImageAllocator(), b.destinationImageAllocator());
  }
};

TEST_P(PoolingArchive, Defaults) {
  auto f = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 3, 2, 4, 5));
  EXPECT_TRUE(f->offset() == MPS::Offset());
  EXPECT_TRUE(f->clipRect() == MPS::RectNoClip);
  EXPECT_EQ(f->sourceFeatureChannelMaxCount(), NS::UIntegerMax);
  EXPECT_EQ(f->edgeMode(), MPS::ImageEdgeModeZero);
  EXPECT_EQ(f->kernelWidth(), 3u);
  EXPECT_EQ(f->kernelHeight(), 2u);
  EXPECT_EQ(f->strideInPixelsX(), 4u);
  EXPECT_EQ(f->strideInPixelsY(), 5u);
  EXPECT_EQ(f->dilationRateX(), 1u);
  EXPECT_EQ(f->padding()->paddingMethod(), MPS::NNPaddingMethodSizeSame);
  EXPECT_EQ(f->destinationImageAllocator(), MPS::TemporaryImage::defaultAllocator());
  EXPECT_FALSE(f->isBackwards());
  EXPECT_EQ(f->label(), nullptr);
  EXPECT_EQ(f->device(), device());
  auto d = NS::TransferPtr(MPS::CNNDilatedPoolingMaxGradient::alloc()->init(device(), 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(d->secondaryDilationRateX(), 4u);
  EXPECT_EQ(d->secondaryDilationRateY(), 5u);
  EXPECT_EQ(d->primaryStrideInPixelsX(), 6u);
  EXPECT_EQ(d->secondaryStrideInPixelsY(), 7u);
  EXPECT_EQ(d->primaryKernelHeight(), 3u);
  EXPECT_EQ(d->sourceSize().depth, NS::UIntegerMax);
  EXPECT_TRUE(d->isBackwards());
}

TEST_P(PoolingArchive, CopyAndSerialize) {
  auto k = average();
  auto copy = NS::TransferPtr(k->copy());
  expect_equal(*k, *copy);
  EXPECT_EQ(copy->padding(), k->padding());  // shared
  NS::Data* data = k->serialize();
  ASSERT_NE(data, nullptr);
  auto back = NS::TransferPtr(MPS::Kernel::deserialize(data, device()));
  auto* typed = dynamic_cast<MPS::CNNPoolingAverage*>(back.get());
  ASSERT_NE(typed, nullptr) << MTLX::lastError();
  EXPECT_EQ(typed->device(), device());
  expect_equal(*k, *typed);
  EXPECT_TRUE(typed->serialize()->isEqual(data));
  copy->setOffset({9, 9, 9});
  EXPECT_EQ(k->offset().x, -3);
  auto decoded = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(NS::Coder::coder(data), device()));
  ASSERT_TRUE(bool(decoded));
  expect_equal(*k, *decoded);
  EXPECT_EQ(MPS::CNNPoolingMax::alloc()->init(NS::Coder::coder(data), device()), nullptr);  // another class
}

TEST_P(PoolingArchive, GradientRoundTrip) {
  auto g = NS::TransferPtr(MPS::CNNPoolingAverageGradient::alloc()->init(device(), 5, 3, 2, 4));
  g->setPrimaryOffset({1, -2, 3});
  g->setSecondaryOffset({4, 5, 6});
  g->setSourceSize({7, 8, 9});
  g->setKernelOffsetX(-5);
  g->setKernelOffsetY(6);
  g->setZeroPadSizeX(3);
  g->setZeroPadSizeY(4);
  g->setPrimaryStrideInPixelsX(7);
  g->setSecondarySourceFeatureChannelMaxCount(5);
  g->setSecondaryEdgeMode(MPS::ImageEdgeModeClamp);
  auto kernel = NS::TransferPtr(MPS::Kernel::deserialize(g->serialize(), device()));
  for (MPS::Kernel* k : {kernel.get(), static_cast<MPS::Kernel*>(g->copy()->autorelease())}) {
    auto* b = dynamic_cast<MPS::CNNPoolingAverageGradient*>(k);
    ASSERT_NE(b, nullptr);
    EXPECT_TRUE(b->primaryOffset() == g->primaryOffset());
    EXPECT_TRUE(b->secondaryOffset() == g->secondaryOffset());
    EXPECT_TRUE(b->sourceSize() == g->sourceSize());
    EXPECT_EQ(b->kernelOffsetX(), -5);
    EXPECT_EQ(b->kernelOffsetY(), 6);
    EXPECT_EQ(b->zeroPadSizeX(), 3u);
    EXPECT_EQ(b->zeroPadSizeY(), 4u);
    EXPECT_EQ(b->primaryStrideInPixelsX(), 7u);
    EXPECT_EQ(b->secondaryStrideInPixelsX(), 2u);
    EXPECT_EQ(b->secondarySourceFeatureChannelMaxCount(), 5u);
    EXPECT_EQ(b->secondaryEdgeMode(), MPS::ImageEdgeModeClamp);
    EXPECT_TRUE(b->serialize()->isEqual(g->serialize()));
  }
}

TEST_P(PoolingArchive, EveryClassByName) {
  const auto check = [&](auto* kernel) {
    ASSERT_NE(kernel, nullptr);
    auto owned = NS::TransferPtr(kernel);
    auto back = NS::TransferPtr(MPS::Kernel::deserialize(owned->serialize(), device()));
    ASSERT_TRUE(bool(back)) << MTLX::lastError();
    EXPECT_EQ(typeid(*back), typeid(*owned));
    EXPECT_EQ(typeid(*NS::TransferPtr(owned->copy())), typeid(*owned));
  };
  check(MPS::CNNPooling::alloc()->init(device(), 2, 2));
  check(MPS::CNNPoolingMax::alloc()->init(device(), 2, 2));
  check(MPS::CNNPoolingAverage::alloc()->init(device(), 2, 2));
  check(MPS::CNNPoolingL2Norm::alloc()->init(device(), 2, 2));
  check(MPS::CNNDilatedPoolingMax::alloc()->init(device(), 2, 2, 3, 3, 1, 1));
  check(MPS::CNNPoolingGradient::alloc()->init(device(), 2, 2));
  check(MPS::CNNPoolingMaxGradient::alloc()->init(device(), 2, 2));
  check(MPS::CNNPoolingAverageGradient::alloc()->init(device(), 2, 2));
  check(MPS::CNNPoolingL2NormGradient::alloc()->init(device(), 2, 2));
  check(MPS::CNNDilatedPoolingMaxGradient::alloc()->init(device(), 2, 2, 3, 3, 1, 1));
}

TEST_P(PoolingArchive, DamagedArchives) {
  NS::Data* data = average()->serialize();
  const auto* bytes = static_cast<const unsigned char*>(data->bytes());
  for (NS::UInteger length = 0; length < data->length(); length += 3) {
    EXPECT_EQ(MPS::Kernel::deserialize(NS::Data::data(bytes, length), device()), nullptr) << length;
  }
  // Any byte changed: another kernel or null, never a crash.
  for (NS::UInteger i = 0; i < data->length(); ++i) {
    auto changed = NS::TransferPtr(data->copy());
    static_cast<unsigned char*>(changed->mutableBytes())[i] ^= 0x81;
    NS::TransferPtr(MPS::Kernel::deserialize(changed.get(), device()));
  }
  EXPECT_EQ(MPS::Kernel::deserialize(nullptr, device()), nullptr);
  // Unknown keys are ignored, missing ones are defaults, but kernel sizes must be there.
  NS::Coder* coder = NS::Coder::coder();
  coder->encodeString(MTLSTR("MPSCNNPoolingMax"), "class");
  coder->encodeInteger(1, "version");
  EXPECT_EQ(MPS::CNNPoolingMax::alloc()->init(coder, device()), nullptr);
  coder->encodeInteger(3, "kernelWidth");
  coder->encodeInteger(2, "kernelHeight");
  coder->encodeInteger(5, "fromTheFuture");
  auto sparse = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(coder, device()));
  ASSERT_TRUE(bool(sparse)) << MTLX::lastError();
  EXPECT_EQ(sparse->kernelWidth(), 3u);
  EXPECT_EQ(sparse->strideInPixelsX(), 1u);
  coder->encodeInteger(2, "version");
  EXPECT_EQ(MPS::CNNPoolingMax::alloc()->init(coder, device()), nullptr);
}

class OwnPadding : public MPS::NNPadding {
 public:
  explicit OwnPadding(NS::Integer value, bool archives) : value_(value), archives_(archives) {}
  MPS::NNPaddingMethod paddingMethod() const override { return MPS::NNPaddingMethodSizeFull; }
  const char* archiveName() const override { return archives_ ? "OwnPadding" : nullptr; }
  void encode(NS::Coder* coder) const override { coder->encodeInteger(value_, "value"); }
  static MPS::NNPadding* decode(NS::Coder* coder) { return new OwnPadding(coder->decodeInteger("value"), true); }
  NS::Integer value() const { return value_; }

 private:
  NS::Integer value_;
  bool archives_;
};

TEST_P(PoolingArchive, CustomPadding) {
  auto k = average();
  auto closed = NS::TransferPtr(new OwnPadding(1, false));
  k->setPadding(closed.get());
  EXPECT_EQ(k->serialize(), nullptr);  // rather than dropping it
  EXPECT_NE(std::string(MTLX::lastError()).find("padding cannot be archived"), std::string::npos);
  MPS::NNPadding::registerArchiveName("OwnPadding", OwnPadding::decode);
  auto open = NS::TransferPtr(new OwnPadding(42, true));
  k->setPadding(open.get());
  auto back = NS::TransferPtr(MPS::Kernel::deserialize(k->serialize(), device()));
  auto* typed = dynamic_cast<MPS::CNNPoolingAverage*>(back.get());
  ASSERT_NE(typed, nullptr);
  EXPECT_EQ(dynamic_cast<OwnPadding*>(typed->padding())->value(), 42);
}

class ProvidingCoder : public NS::Coder, public MPS::DeviceProvider {
 public:
  explicit ProvidingCoder(MTL::Device* device) : device_(device) {}
  MTL::Device* mpsMTLDevice() override { return device_; }

 private:
  MTL::Device* device_;
};

TEST_P(PoolingArchive, DeviceFromTheCoder) {
  auto k = average();
  auto coder = NS::TransferPtr(new ProvidingCoder(device()));
  k->encode(coder.get());
  auto back = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(coder.get()));
  ASSERT_TRUE(bool(back)) << MTLX::lastError();
  EXPECT_EQ(back->device(), device());
  auto plain = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(NS::Coder::coder(k->serialize())));
  EXPECT_EQ(plain->device(), NS::TransferPtr(MTL::CreateSystemDefaultDevice()).get());
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolingArchive, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bnns::testing
