// Images and textures: layouts, readBytes and writeBytes, formats, views.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "src/mps/tests/mps_testing.h"

namespace {

constexpr auto kHWC = MPS::DataLayoutHeightxWidthxFeatureChannels;
constexpr auto kCHW = MPS::DataLayoutFeatureChannelsxHeightxWidth;
constexpr auto kF32 = MPS::ImageFeatureChannelFormatFloat32;

class Images : public bnns::testing::DeviceTest {
 protected:
  MPS::Image* make(MPS::ImageFeatureChannelFormat format, NS::UInteger w, NS::UInteger h, NS::UInteger c,
                   NS::UInteger n = 1) {
    MPS::Image* made = MPS::Image::alloc()->init(
        device_.get(), MPS::ImageDescriptor::imageDescriptor(format, w, h, c, n, MTL::TextureUsageShaderRead));
    return made ? made->autorelease() : nullptr;
  }
  static std::vector<float> numbers(size_t n) {
    std::vector<float> v(n);
    std::iota(v.begin(), v.end(), 1.0f);
    return v;
  }
};

TEST_P(Images, Properties) {
  MPS::Image* image = make(MPS::ImageFeatureChannelFormatFloat16, 7, 5, 9, 2);
  EXPECT_EQ(image->width(), 7u);
  EXPECT_EQ(image->height(), 5u);
  EXPECT_EQ(image->pixelFormat(), MTL::PixelFormatRGBA16Float);
  EXPECT_EQ(image->textureType(), MTL::TextureType2DArray);
  EXPECT_EQ(image->precision(), 11u);
  EXPECT_EQ(image->pixelSize(), 8u);
  EXPECT_EQ(image->resourceSize(), 2u * 3 * 5 * 7 * 8);
  EXPECT_EQ(image->texture()->arrayLength(), 6u);
  EXPECT_EQ(make(kF32, 2, 2, 1)->pixelFormat(), MTL::PixelFormatR32Float);
  EXPECT_EQ(make(kF32, 2, 2, 2)->pixelFormat(), MTL::PixelFormatRG32Float);
  EXPECT_EQ(make(kF32, 2, 2, 3)->textureType(), MTL::TextureType2D);
  EXPECT_EQ(make(MPS::ImageFeatureChannelFormatUnorm8, 2, 2, 4)->pixelFormat(), MTL::PixelFormatRGBA8Unorm);
  EXPECT_EQ(make(MPS::ImageFeatureChannelFormatUnorm16, 2, 2, 1)->pixelFormat(), MTL::PixelFormatR16Unorm);
}

TEST_P(Images, ContentsAreWhereTheTexelsLie) {
  MPS::Image* image = make(kF32, 3, 2, 6);
  const auto values = numbers(3 * 2 * 6);
  image->writeBytes(values.data(), kCHW, 0);
  void* memory = MTLX::contents(image->texture());
  ASSERT_NE(memory, nullptr);
  if (MTLX::deviceKind(device_.get()) == MTLX::DeviceKind::cpu) {
    const auto* texels = static_cast<const float*>(memory);
    EXPECT_EQ(texels[1], values[6]);        // pixel 0, channel 1
    EXPECT_EQ(texels[24 + 4], values[25]);  // slice 1: channel 4 of pixel 1
  }
  EXPECT_EQ(MTLX::contents(nullptr), nullptr);
}

TEST_P(Images, WrongDescriptors) {
  EXPECT_EQ(make(MPS::ImageFeatureChannelFormatNone, 2, 2, 1), nullptr);
  EXPECT_EQ(make(kF32, 0, 2, 1), nullptr);
  EXPECT_EQ(make(kF32, 2, 2, 0), nullptr);
  EXPECT_EQ(make(kF32, 2, 2, 1, 0), nullptr);
  EXPECT_EQ(make(kF32, NS::UIntegerMax, NS::UIntegerMax, 1), nullptr);
  EXPECT_EQ(make(kF32, 1, 1, NS::UIntegerMax), nullptr);
  EXPECT_EQ(make(kF32, 1, 1, 8, NS::UIntegerMax), nullptr);
  EXPECT_NE(std::string(MTLX::lastError()), "");
  EXPECT_EQ(MPS::Image::alloc()->init(device_.get(), static_cast<MPS::ImageDescriptor*>(nullptr)), nullptr);
}

TEST_P(Images, LayoutInMemory) {
  // 5 channels: the slice of channels 0..3, then the slice of channel 4 with three lanes of padding, all zero.
  MPS::Image* image = make(kF32, 2, 1, 5);
  const auto v = numbers(10);  // HWC: pixel 0 is 1..5, pixel 1 is 6..10
  image->writeBytes(v.data(), kHWC, 0);
  float texels[8];
  image->texture()->getBytes(texels, 32, 0, MTL::Region(0, 0, 2, 1), 0, 0);
  EXPECT_EQ(std::vector<float>(texels, texels + 8), (std::vector<float>{1, 2, 3, 4, 6, 7, 8, 9}));
  image->texture()->getBytes(texels, 32, 0, MTL::Region(0, 0, 2, 1), 0, 1);
  EXPECT_EQ(std::vector<float>(texels, texels + 8), (std::vector<float>{5, 0, 0, 0, 10, 0, 0, 0}));
  std::vector<float> chw(10);
  image->readBytes(chw.data(), kCHW, 0);
  EXPECT_EQ(chw, (std::vector<float>{1, 6, 2, 7, 3, 8, 4, 9, 5, 10}));
}

TEST_P(Images, RoundTrips) {
  for (NS::UInteger c : {1, 2, 3, 4, 5, 8, 11}) {
    for (auto layout : {kHWC, kCHW}) {
      MPS::Image* image = make(kF32, 5, 3, c, 2);
      const auto a = numbers(15 * c);
      image->writeBytes(a.data(), layout, 1);
      std::vector<float> back(a.size(), -1), first(a.size(), -1);
      image->readBytes(back.data(), layout, 1);
      image->readBytes(first.data(), layout, 0);
      EXPECT_EQ(back, a);
      EXPECT_EQ(first, std::vector<float>(a.size(), 0));  // new images hold zeros
    }
  }
  MPS::Image* bytes = make(MPS::ImageFeatureChannelFormatUnorm8, 3, 1, 2);
  const std::vector<unsigned char> b = {1, 2, 3, 4, 5, 6};
  std::vector<unsigned char> b_back(6);
  bytes->writeBytes(b.data(), kHWC, 0);
  bytes->readBytes(b_back.data(), kHWC, 0);
  EXPECT_EQ(b_back, b);
}

TEST_P(Images, RegionsChannelsAndGaps) {
  MPS::Image* image = make(kF32, 4, 3, 8, 2);
  const auto all = numbers(4 * 3 * 8);
  image->writeBytes(all.data(), kHWC, 0);
  // Channels 4..7 of a 2 x 2 region, HWC with rows 10 floats apart.
  std::vector<float> out(20, -1);
  image->readBytes(out.data(), kHWC, 40, MTL::Region(1, 1, 2, 2), {4, 4}, 0);
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 2; ++x) {
      for (int c = 0; c < 4; ++c) {
        EXPECT_EQ(out[size_t(y * 10 + x * 4 + c)], all[size_t(((y + 1) * 4 + x + 1) * 8 + 4 + c)]);
      }
    }
  }
  EXPECT_EQ(out[8], -1);
  EXPECT_EQ(out[18], -1);
  // Both images at once, CHW, planes of 2 rows; then the same written back elsewhere.
  std::vector<float> planes(2 * 3 * 4 * 2, -1);
  image->readBytes(planes.data(), kCHW, 16, 96, MTL::Region(0, 0, 0, 4, 2, 2), {0, 3}, 0);
  EXPECT_EQ(planes[0], all[0]);
  EXPECT_EQ(planes[8], all[1]);  // channel 1
  EXPECT_EQ(planes[24], 0);      // image 1
  MPS::Image* copy = make(kF32, 4, 3, 8, 2);
  copy->writeBytes(planes.data(), kCHW, 16, 96, MTL::Region(0, 0, 0, 4, 2, 2), {0, 3}, 0);
  std::vector<float> again(planes.size(), -1);
  copy->readBytes(again.data(), kCHW, 16, 96, MTL::Region(0, 0, 0, 4, 2, 2), {0, 3}, 0);
  EXPECT_EQ(again, planes);
  // Pixels 3 floats apart.
  const auto gaps = numbers(12);
  MPS::Image* one = make(kF32, 4, 1, 1);
  one->writeBytes(gaps.data(), kHWC, 12, 48, 0, MTL::Region(0, 0, 4, 1), {0, 1}, 0);
  std::vector<float> four(4);
  one->readBytes(four.data(), kHWC, 0);
  EXPECT_EQ(four, (std::vector<float>{1, 4, 7, 10}));
}

TEST_P(Images, WrongTransfers) {
  MPS::Image* image = make(kF32, 4, 3, 8, 2);
  std::vector<float> out(4 * 3 * 8 * 2, -1);
  const auto refused = [&](MTL::Region region, MPS::ImageReadWriteParams channels, NS::UInteger index,
                           NS::UInteger row = 0, NS::UInteger each = 0) {
    MTLX::clearLastError();
    image->readBytes(out.data(), kHWC, row, each, region, channels, index);
    const bool said = std::string(MTLX::lastError()) != "";
    MTLX::clearLastError();
    image->writeBytes(out.data(), kHWC, row, each, region, channels, index);
    return said && std::string(MTLX::lastError()) != "";
  };
  const MTL::Region whole(0, 0, 4, 3);
  EXPECT_TRUE(refused(MTL::Region(1, 0, 4, 3), {0, 8}, 0));
  EXPECT_TRUE(refused(MTL::Region(NS::UIntegerMax, 0, 2, 3), {0, 8}, 0));
  EXPECT_TRUE(refused(whole, {0, 8}, 2));
  EXPECT_TRUE(refused(MTL::Region(0, 0, 0, 4, 3, 2), {0, 8}, 1));
  EXPECT_TRUE(refused(whole, {2, 4}, 0));
  EXPECT_TRUE(refused(whole, {4, 3}, 0));
  EXPECT_TRUE(refused(whole, {4, 8}, 0));
  EXPECT_TRUE(refused(whole, {0, 0}, 0));
  EXPECT_TRUE(refused(whole, {0, 8}, 0, 127));
  EXPECT_TRUE(refused(MTL::Region(0, 0, 0, 4, 3, 2), {0, 8}, 0, 128, 300));
  EXPECT_TRUE(refused(whole, {0, 8}, 0, NS::UIntegerMax));  // steps that would wrap around the address space
  EXPECT_TRUE(refused(MTL::Region(0, 0, 0, 4, 3, 2), {0, 8}, 0, 128, NS::UIntegerMax - 15));
  image->readBytes(nullptr, kHWC, 0);
  for (float x : out) ASSERT_EQ(x, -1);
  image->readBytes(out.data(), kHWC, 0);
  for (size_t i = 0; i < 96; ++i) ASSERT_EQ(out[i], 0);  // nothing was written either
}

TEST_P(Images, FromTextures) {
  auto* d = MTL::TextureDescriptor::texture2DDescriptor(MTL::PixelFormatRGBA32Float, 3, 2, false);
  auto texture = NS::TransferPtr(device_->newTexture(d));
  ASSERT_TRUE(bool(texture));
  auto image = NS::TransferPtr(MPS::Image::alloc()->init(texture.get(), 3));
  ASSERT_TRUE(bool(image)) << MTLX::lastError();
  const auto v = numbers(24);
  texture->replaceRegion(MTL::Region(0, 0, 3, 2), 0, v.data(), 48);
  std::vector<float> out(18);
  image->readBytes(out.data(), kHWC, 0);
  EXPECT_EQ(out[3], 5);
  EXPECT_EQ(MPS::Image::alloc()->init(texture.get(), 5), nullptr);  // one slice only
  EXPECT_EQ(MPS::Image::alloc()->init(texture.get(), 1), nullptr);  // texels have four lanes
  EXPECT_EQ(MPS::Image::alloc()->init(static_cast<MTL::Texture*>(nullptr), 4), nullptr);
  d->setTextureType(MTL::TextureType2DArray);
  d->setArrayLength(6);
  auto array = NS::TransferPtr(device_->newTexture(d));
  auto images = NS::TransferPtr(MPS::Image::alloc()->init(array.get(), 7));
  ASSERT_TRUE(bool(images));
  EXPECT_EQ(images->numberOfImages(), 3u);
  MTLX::clearLastError();
  texture->getBytes(out.data(), 48, MTL::Region(1, 0, 3, 2), 0);
  EXPECT_NE(std::string(MTLX::lastError()), "");
  d->setPixelFormat(MTL::PixelFormatInvalid);
  EXPECT_EQ(device_->newTexture(d), nullptr);
}

TEST_P(Images, Batches) {
  MPS::Image* image = make(kF32, 2, 2, 5, 3);
  MPS::ImageBatch* views = image->batchRepresentation();
  ASSERT_EQ(views->count(), 3u);
  const auto v = numbers(20);
  views->image(2)->writeBytes(v.data(), kCHW, 0);
  std::vector<float> out(20);
  image->readBytes(out.data(), kCHW, 2);
  EXPECT_EQ(out, v);
  EXPECT_EQ(image->batchRepresentation(NS::Range::Make(1, 2))->count(), 2u);
  EXPECT_EQ(image->batchRepresentation(NS::Range::Make(2, 2)), nullptr);
  MPS::Image* twice[] = {image, image};
  EXPECT_EQ(MPS::ImageBatchResourceSize(MPS::ImageBatch::batch(twice, 2)), image->resourceSize());
  EXPECT_EQ(MPS::ImageBatchIncrementReadCount(MPS::ImageBatch::batch(twice, 2), 1), 1u);
  int calls = 0;
  EXPECT_EQ(MPS::ImageBatchIterate(views, [&](MPS::Image*, NS::UInteger i) { return ++calls, i == 1 ? 5 : 0; }), 5);
  EXPECT_EQ(calls, 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, Images, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
