// What the tests of the pooling classes share: a fixture per device, images filled from arrays, and the meaning of a
// kernel's properties spelled out once more on the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "src/core/half.h"
#include "src/mps/tests/mps_testing.h"
#include "src/ops/mps_pooling/mps_pooling_ref.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using ref::PoolImage;

inline PoolImage random_image(Random& random, int64_t n, int64_t c, int64_t h, int64_t w, bool integers) {
  PoolImage image(n, c, h, w);
  for (double& x : image.v) x = integers ? random.integer(-8, 8) : float(random.uniform(-1, 1));
  return image;
}

// All different and none 0, gaps of 2 / size: finite differences with smaller steps cross no tie and no sign.
inline PoolImage shuffled_grid(Random& random, int64_t n, int64_t c, int64_t h, int64_t w) {
  PoolImage image(n, c, h, w);
  for (size_t i = 0; i < image.v.size(); ++i) image.v[i] = (double(i) + 0.25) / double(image.v.size()) * 2 - 1;
  for (size_t i = image.v.size(); i > 1; --i) std::swap(image.v[i - 1], image.v[random.below(i)]);
  for (double& x : image.v) x = float(x);
  return image;
}

class PoolingTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) renew();
  }
  void TearDown() override {
    buffer_.reset();
    queue_.reset();
    pool_.reset();
  }

  MTL::Device* device() { return device_.get(); }
  MTL::CommandBuffer* buffer() { return buffer_.get(); }
  void renew() { buffer_ = NS::RetainPtr(queue_->commandBuffer()); }

  // Runs what was encoded; the next encodes go to a new buffer.
  void run() {
    buffer_->commit();
    buffer_->waitUntilCompleted();
    EXPECT_EQ(buffer_->status(), MTL::CommandBufferStatusCompleted);
    EXPECT_EQ(buffer_->error(), nullptr) << buffer_->error()->localizedDescription()->utf8String();
    renew();
  }
  // Runs a buffer with a refused encode; the reason.
  std::string run_refused() {
    buffer_->commit();
    buffer_->waitUntilCompleted();
    EXPECT_EQ(buffer_->status(), MTL::CommandBufferStatusError);
    EXPECT_NE(buffer_->error(), nullptr);
    const std::string text = buffer_->error() ? buffer_->error()->localizedDescription()->utf8String() : "";
    renew();
    return text;
  }

  MPS::Image* image(int64_t n, int64_t c, int64_t h, int64_t w,
                    MPS::ImageFeatureChannelFormat format = MPS::ImageFeatureChannelFormatFloat32) {
    auto* descriptor = MPS::ImageDescriptor::imageDescriptor(
        format, NS::UInteger(w), NS::UInteger(h), NS::UInteger(c), NS::UInteger(n),
        MTL::TextureUsageShaderRead | MTL::TextureUsageShaderWrite);
    return MPS::Image::alloc()->init(device(), descriptor)->autorelease();
  }
  MPS::Image* image(const PoolImage& values,
                    MPS::ImageFeatureChannelFormat format = MPS::ImageFeatureChannelFormatFloat32) {
    MPS::Image* made = image(values.N, values.C, values.H, values.W, format);
    write(made, values);
    return made;
  }
  static void write(MPS::Image* image, const PoolImage& values) {
    const size_t each = size_t(values.C * values.H * values.W);
    std::vector<float> f32(each);
    std::vector<uint16_t> f16(each);
    for (int64_t n = 0; n < values.N; ++n) {
      for (size_t i = 0; i < each; ++i) {
        f32[i] = float(values.v[size_t(n) * each + i]);
        f16[i] = float_to_half(f32[i]);
      }
      const bool half = image->featureChannelFormat() == MPS::ImageFeatureChannelFormatFloat16;
      image->writeBytes(half ? static_cast<const void*>(f16.data()) : f32.data(),
                        MPS::DataLayoutFeatureChannelsxHeightxWidth, NS::UInteger(n));
    }
  }
  static PoolImage read(const MPS::Image* image) {
    PoolImage values(int64_t(image->numberOfImages()), int64_t(image->featureChannels()), int64_t(image->height()),
                     int64_t(image->width()));
    const size_t each = size_t(values.C * values.H * values.W);
    std::vector<float> f32(each);
    std::vector<uint16_t> f16(each);
    for (int64_t n = 0; n < values.N; ++n) {
      const bool half = image->featureChannelFormat() == MPS::ImageFeatureChannelFormatFloat16;
      image->readBytes(half ? static_cast<void*>(f16.data()) : f32.data(), MPS::DataLayoutFeatureChannelsxHeightxWidth,
                       NS::UInteger(n));
      for (size_t i = 0; i < each; ++i) values.v[size_t(n) * each + i] = half ? half_to_float(f16[i]) : f32[i];
    }
    return values;
  }

 private:
  NS::SharedPtr<MTL::CommandBuffer> buffer_;
};

// What a forward encode means, from the kernel's properties: the destination's new contents.
template <class Kernel>
PoolImage expected_forward(const Kernel& k, mps::PoolKind kind, MTL::Size pad, const PoolImage& source,
                           PoolImage target) {
  const ref::PoolWindow w{kind,
                          k.edgeMode() == MPS::ImageEdgeModeClamp ? mps::PoolEdge::clamp : mps::PoolEdge::zero,
                          int64_t(k.kernelWidth()),
                          int64_t(k.kernelHeight()),
                          int64_t(k.dilationRateX()),
                          int64_t(k.dilationRateY()),
                          int64_t(pad.width),
                          int64_t(pad.height)};
  const MTL::Region clip = k.clipRect();
  const MPS::Offset o = k.offset();
  const auto from = int64_t(k.sourceFeatureChannelOffset()), to = int64_t(k.destinationFeatureChannelOffset());
  for (int64_t n = int64_t(clip.origin.z); n < target.N; ++n) {
    const int64_t sn = o.z + n - int64_t(clip.origin.z);
    if (sn >= source.N || NS::UInteger(n) - clip.origin.z >= clip.size.depth) break;
    for (int64_t c = 0; from + c < source.C && NS::UInteger(c) < k.sourceFeatureChannelMaxCount(); ++c) {
      for (auto y = int64_t(clip.origin.y); y < target.H && NS::UInteger(y) - clip.origin.y < clip.size.height; ++y) {
        for (auto x = int64_t(clip.origin.x); x < target.W && NS::UInteger(x) - clip.origin.x < clip.size.width; ++x) {
          target.at(n, to + c, y, x) =
              w.forward(source, sn, from + c, o.y + int64_t(k.strideInPixelsY()) * (y - int64_t(clip.origin.y)),
                        o.x + int64_t(k.strideInPixelsX()) * (x - int64_t(clip.origin.x)));
        }
      }
    }
  }
  return target;
}

// The same for a gradient encode with a destination (specification 2.5), window by window.
template <class Kernel>
PoolImage expected_backward(const Kernel& k, mps::PoolKind kind, MTL::Size pad, const PoolImage& gradient,
                            const PoolImage& source, PoolImage target) {
  const ref::PoolWindow w{kind,
                          k.secondaryEdgeMode() == MPS::ImageEdgeModeClamp ? mps::PoolEdge::clamp : mps::PoolEdge::zero,
                          int64_t(k.secondaryKernelWidth()),
                          int64_t(k.secondaryKernelHeight()),
                          int64_t(k.secondaryDilationRateX()),
                          int64_t(k.secondaryDilationRateY()),
                          int64_t(pad.width),
                          int64_t(pad.height)};
  const MPS::Offset po = k.primaryOffset(), so = k.secondaryOffset();
  const MTL::Region clip = k.clipRect();
  const MTL::Size size = k.sourceSize();
  const auto pc = int64_t(k.primarySourceFeatureChannelOffset()), sc = int64_t(k.secondarySourceFeatureChannelOffset());
  const auto channels =
      int64_t(std::min({NS::UInteger(gradient.C - pc), NS::UInteger(source.C - sc),
                        k.primarySourceFeatureChannelMaxCount(), k.secondarySourceFeatureChannelMaxCount()}));
  const auto used = [](int64_t j, NS::Integer first, NS::UInteger count) {
    return j >= first && NS::UInteger(j - first) < count;
  };
  PoolImage d(source.N, source.C, source.H, source.W);
  for (int64_t n = 0; po.z + n < gradient.N && so.z + n < source.N; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < gradient.H; ++i) {
        for (int64_t j = 0; j < gradient.W; ++j) {
          if (!used(i, po.y, size.height) || !used(j, po.x, size.width)) continue;
          w.backward(source, so.z + n, sc + c,
                     so.y + int64_t(k.primaryStrideInPixelsY()) * (i - po.y) - k.kernelOffsetY(),
                     so.x + int64_t(k.primaryStrideInPixelsX()) * (j - po.x) - k.kernelOffsetX(),
                     gradient.at(po.z + n, pc + c, i, j), &d);
        }
      }
    }
  }
  const int64_t y0 = std::max<int64_t>(0, so.y - ((w.ky - 1) * w.dy + 1) / 2);
  const int64_t x0 = std::max<int64_t>(0, so.x - ((w.kx - 1) * w.dx + 1) / 2);
  for (auto n = int64_t(clip.origin.z); n < target.N; ++n) {
    const int64_t i = n - int64_t(clip.origin.z);
    if (NS::UInteger(i) >= clip.size.depth || NS::UInteger(i) >= size.depth || po.z + i >= gradient.N ||
        so.z + i >= source.N) {
      break;
    }
    for (int64_t c = 0; c < channels; ++c) {
      for (auto y = int64_t(clip.origin.y); y < target.H && NS::UInteger(y) - clip.origin.y < clip.size.height; ++y) {
        for (auto x = int64_t(clip.origin.x); x < target.W && NS::UInteger(x) - clip.origin.x < clip.size.width; ++x) {
          const int64_t sy = y0 + y - int64_t(clip.origin.y), sx = x0 + x - int64_t(clip.origin.x);
          target.at(n, int64_t(k.destinationFeatureChannelOffset()) + c, y, x) =
              sy < source.H && sx < source.W ? d.at(so.z + i, sc + c, sy, sx) : 0.0;
        }
      }
    }
  }
  return target;
}

// Largest difference, or infinity where one of the two is NaN and the other is not.
inline double distance(const PoolImage& a, const PoolImage& b) {
  if (a.v.size() != b.v.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.v.size(); ++i) {
    if (std::isnan(a.v[i]) != std::isnan(b.v[i])) return INFINITY;
    if (!std::isnan(a.v[i])) largest = std::max(largest, std::abs(a.v[i] - b.v[i]));
  }
  return largest;
}

}  // namespace bnns::testing
