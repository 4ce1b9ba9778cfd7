// Random properties of all kinds through the public classes against the reference: forward and gradient with
// destinations, and gradients from states against central differences of the whole forward encode in double.
#include <algorithm>

#include "src/ops/mps_pooling/tests/mps_pooling_testing.h"

namespace bnns::testing {
namespace {

using mps::PoolKind;

// A forward kernel and its gradient; family 3 is dilated max.
struct Pair {
  NS::SharedPtr<MPS::CNNPooling> forward;
  NS::SharedPtr<MPS::CNNPoolingGradient> gradient;
  PoolKind kind = PoolKind::max;
  MTL::Size pad;
};

class PoolingProperties : public PoolingTest {
 protected:
  Pair make(Random& r, int family) {
    const auto kx = NS::UInteger(r.integer(1, 5)), ky = NS::UInteger(r.integer(1, 5));
    const auto sx = NS::UInteger(r.integer(1, 4)), sy = NS::UInteger(r.integer(1, 4));
    const auto dx = NS::UInteger(r.integer(1, 3)), dy = NS::UInteger(r.integer(1, 3));
    Pair p;
    switch (family) {
      case 0:
        p.forward = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), kx, ky, sx, sy));
        p.gradient = NS::TransferPtr(MPS::CNNPoolingMaxGradient::alloc()->init(device(), kx, ky, sx, sy));
        break;
      case 1: {
        p.kind = PoolKind::average;
        p.pad = MTL::Size(NS::UInteger(r.integer(0, 2)), NS::UInteger(r.integer(0, 2)), 0);
        auto average = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(device(), kx, ky, sx, sy));
        average->setZeroPadSizeX(p.pad.width);
        average->setZeroPadSizeY(p.pad.height);
        auto gradient = NS::TransferPtr(MPS::CNNPoolingAverageGradient::alloc()->init(device(), kx, ky, sx, sy));
        gradient->setZeroPadSizeX(p.pad.width);
        gradient->setZeroPadSizeY(p.pad.height);
        p.forward = average;
        p.gradient = gradient;
        break;
      }
      case 2:
        p.kind = PoolKind::l2_norm;
        p.forward = NS::TransferPtr(MPS::CNNPoolingL2Norm::alloc()->init(device(), kx, ky, sx, sy));
        p.gradient = NS::TransferPtr(MPS::CNNPoolingL2NormGradient::alloc()->init(device(), kx, ky, sx, sy));
        break;
      default:
        p.forward = NS::TransferPtr(MPS::CNNDilatedPoolingMax::alloc()->init(device(), kx, ky, dx, dy, sx, sy));
        p.gradient =
            NS::TransferPtr(MPS::CNNDilatedPoolingMaxGradient::alloc()->init(device(), kx, ky, dx, dy, sx, sy));
    }
    return p;
  }

  static MTL::Region random_clip(Random& r) {
    if (r.integer(0, 2) == 0) return MPS::RectNoClip;
    const auto size = [&](int low) { return r.integer(0, 2) == 0 ? NS::UIntegerMax : NS::UInteger(r.integer(low, 4)); };
    return MTL::Region(
        MTL::Origin(NS::UInteger(r.integer(0, 3)), NS::UInteger(r.integer(0, 3)), NS::UInteger(r.integer(0, 1))),
        MTL::Size(size(0), size(0), size(1)));
  }
  static void randomise(Random& r, MPS::CNNPooling* f, int64_t source_channels) {
    f->setOffset({r.integer(-4, 5), r.integer(-4, 5), r.integer(0, 1)});
    f->setClipRect(random_clip(r));
    f->setEdgeMode(MPS::ImageEdgeMode(r.integer(0, 1)));
    f->setSourceFeatureChannelOffset(source_channels > 4 ? 4 * NS::UInteger(r.integer(0, 1)) : 0);
    f->setDestinationFeatureChannelOffset(4 * NS::UInteger(r.integer(0, 1)));
    if (r.integer(0, 3) == 0) f->setSourceFeatureChannelMaxCount(NS::UInteger(r.integer(1, 3)));
  }

  // A window of K taps, M windows over a pixel: the terms' roundings, each at most eps / 2 of the partial result.
  static double forward_bound(const MPS::CNNKernel& f, PoolKind kind, double largest) {
    const auto taps = double(f.kernelWidth() * f.kernelHeight());
    return kind == PoolKind::max ? 0
                                 : (taps + 2) * 0x1p-23 * largest * (kind == PoolKind::average ? 1 : std::sqrt(taps));
  }
  static double backward_bound(const MPS::CNNBinaryKernel& g, PoolKind kind, const PoolImage& gradient) {
    const auto taps = double(g.secondaryKernelWidth() * g.secondaryKernelHeight());
    double sum = 0;  // of all windows: an upper limit of what meets in one pixel
    for (double x : gradient.v) sum += std::abs(x);
    const auto windows = double(gradient.H * gradient.W);
    // Max adds integers: exact.
    return kind == PoolKind::max ? 0 : (windows + taps + 5) * 0x1p-23 * sum * std::sqrt(taps);
  }
};

TEST_P(PoolingProperties, ForwardEqualsReference) {
  Random r(11);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    Pair p = make(r, round % 4);
    const PoolImage source = random_image(r, r.integer(1, 3), r.integer(1, 9), r.integer(1, 9), r.integer(1, 9), true);
    randomise(r, p.forward.get(), source.C);
    const bool half = r.integer(0, 1) != 0;
    const auto format = half ? MPS::ImageFeatureChannelFormatFloat16 : MPS::ImageFeatureChannelFormatFloat32;
    const PoolImage before = random_image(r, r.integer(1, 3), 13, r.integer(1, 6), r.integer(1, 6), true);
    MPS::Image* target = image(before, format);
    p.forward->encodeToCommandBuffer(buffer(), image(source, format), target);
    const PoolImage expected = expected_forward(*p.forward, p.kind, p.pad, source, before);
    p.forward->setOffset({99, 99, 0});  // the encode has its own copy of the properties
    run();
    const double rounding = half && p.kind != PoolKind::max ? 8 * 5 * 0x1p-11 : 0;  // results are at most 8 x 5
    EXPECT_LE(distance(read(target), expected), forward_bound(*p.forward, p.kind, 8) + rounding);
  }
}

TEST_P(PoolingProperties, GradientEqualsReference) {
  Random r(12);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    Pair p = make(r, round % 4);
    MPS::CNNPoolingGradient& g = *p.gradient;
    const PoolImage source = random_image(r, r.integer(1, 3), r.integer(1, 9), r.integer(1, 9), r.integer(1, 9), true);
    const PoolImage gradient =
        random_image(r, r.integer(1, 3), r.integer(1, 9), r.integer(1, 5), r.integer(1, 5), true);
    const PoolImage before = random_image(r, r.integer(1, 3), 13, r.integer(1, 9), r.integer(1, 9), true);
    g.setPrimaryOffset({r.integer(-2, 3), r.integer(-2, 3), r.integer(0, 1)});
    g.setSecondaryOffset({r.integer(-4, 6), r.integer(-4, 6), r.integer(0, 1)});
    g.setSecondaryEdgeMode(MPS::ImageEdgeMode(r.integer(0, 1)));
    g.setClipRect(random_clip(r));
    g.setPrimarySourceFeatureChannelOffset(gradient.C > 4 ? 4 * NS::UInteger(r.integer(0, 1)) : 0);
    g.setSecondarySourceFeatureChannelOffset(source.C > 4 ? 4 * NS::UInteger(r.integer(0, 1)) : 0);
    g.setDestinationFeatureChannelOffset(4 * NS::UInteger(r.integer(0, 1)));
    if (r.integer(0, 3) == 0) g.setSecondarySourceFeatureChannelMaxCount(NS::UInteger(r.integer(1, 3)));
    if (r.integer(0, 2) == 0) g.setSourceSize({NS::UInteger(r.integer(0, 4)), NS::UInteger(r.integer(0, 4)), 1});
    if (r.integer(0, 2) == 0) {
      g.setKernelOffsetX(r.integer(-2, 2));
      g.setKernelOffsetY(r.integer(-2, 2));
    }
    MPS::Image* target = image(before);
    g.encodeToCommandBuffer(buffer(), image(gradient), image(source), target);
    run();
    const PoolImage expected = expected_backward(g, p.kind, p.pad, gradient, source, before);
    EXPECT_LE(distance(read(target), expected), backward_bound(g, p.kind, gradient));
  }
}

// Whatever the forward properties, the state makes the gradient that of the whole encode, aligned to the source.
TEST_P(PoolingProperties, StateGradientEqualsCentralDifferences) {
  Random r(13);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    Pair p = make(r, round % 4);
    PoolImage source = shuffled_grid(r, r.integer(1, 2), r.integer(1, 6), r.integer(1, 6), r.integer(1, 6));
    randomise(r, p.forward.get(), source.C);
    p.gradient->setClipRect(random_clip(r));  // all of this is overwritten by the state
    p.gradient->setPrimaryOffset({5, 5, 0});
    p.gradient->setSecondaryEdgeMode(MPS::ImageEdgeModeMirror);
    const PoolImage blank(r.integer(1, 3), 10, r.integer(1, 5), r.integer(1, 5));
    const PoolImage g = random_image(r, blank.N, blank.C, blank.H, blank.W, true);

    MPS::Image *x = image(source), *y = image(blank);
    MPS::State* state = p.forward->resultState(x, nullptr, y);
    ASSERT_NE(state, nullptr) << MTLX::lastError();
    p.forward->encodeToCommandBuffer(buffer(), x, state, y);
    p.gradient->setDestinationImageAllocator(MPS::Image::defaultAllocator());
    MPS::Image* dx = p.gradient->encodeToCommandBuffer(buffer(), image(g), x, state);
    ASSERT_NE(dx, nullptr) << MTLX::lastError();
    run();
    const PoolImage result = read(dx);
    ASSERT_EQ(result.v.size(), source.v.size());

    const auto loss = [&] {
      const PoolImage out = expected_forward(*p.forward, p.kind, p.pad, source, blank);
      double sum = 0;
      for (size_t i = 0; i < out.v.size(); ++i) sum += out.v[i] * g.v[i];
      return sum;
    };
    const double bound = backward_bound(*p.gradient, p.kind, g) + 1e-4;  // of the step: 144 values, |x| >= 1 / 300
    for (size_t i = 0; i < source.v.size(); ++i) {
      const double step = 1e-5, before = source.v[i];
      source.v[i] = before + step;
      const double up = loss();
      source.v[i] = before - step;
      const double down = loss();
      source.v[i] = before;
      EXPECT_NEAR(result.v[i], (up - down) / (2 * step), bound) << "element " << i;
    }
  }
}

// Integer data: every device gives the bits of the CPU device, forward and gradient; and the same bits on each run.
TEST_P(PoolingProperties, SameBitsAsTheCpuDevice) {
  auto cpu = NS::TransferPtr(MTLX::CreateCPUDevice());
  auto cpu_queue = NS::TransferPtr(cpu->newCommandQueue());
  Random r(14);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    Pair p = make(r, round % 4);
    const PoolImage source =
        random_image(r, r.integer(1, 2), r.integer(1, 9), r.integer(1, 40), r.integer(1, 70), true);
    const PoolImage blank(source.N, source.C, r.integer(1, 30), r.integer(1, 40));
    const PoolImage g = random_image(r, blank.N, blank.C, blank.H, blank.W, true);
    const MPS::Offset offset = {r.integer(-4, 5), r.integer(-4, 5), 0};
    const auto edge = MPS::ImageEdgeMode(r.integer(0, 1));
    p.forward->setOffset(offset);
    p.forward->setEdgeMode(edge);
    p.gradient->setSecondaryOffset(offset);
    p.gradient->setSecondaryEdgeMode(edge);
    PoolImage results[2][2];
    for (int side = 0; side < 2; ++side) {
      MTL::Device* where = side == 0 ? device() : cpu.get();
      auto forward = NS::TransferPtr(p.forward->copy(where));
      auto gradient = NS::TransferPtr(p.gradient->copy(where));
      const auto on = [&](const PoolImage& values) {
        auto* d = MPS::ImageDescriptor::imageDescriptor(MPS::ImageFeatureChannelFormatFloat32, NS::UInteger(values.W),
                                                        NS::UInteger(values.H), NS::UInteger(values.C),
                                                        NS::UInteger(values.N), MTL::TextureUsageShaderRead);
        MPS::Image* made = MPS::Image::alloc()->init(where, d)->autorelease();
        write(made, values);
        return made;
      };
      MTL::CommandBuffer* b = side == 0 ? buffer() : cpu_queue->commandBuffer();
      MPS::Image *x = on(source), *y = on(blank), *dx = on(PoolImage(source.N, source.C, source.H, source.W));
      forward->encodeToCommandBuffer(b, x, y);
      gradient->encodeToCommandBuffer(b, on(g), x, dx);
      b->commit();
      b->waitUntilCompleted();
      ASSERT_EQ(b->status(), MTL::CommandBufferStatusCompleted);
      results[side][0] = read(y);
      results[side][1] = read(dx);
    }
    renew();
    EXPECT_EQ(results[0][0].v, results[1][0].v);
    EXPECT_EQ(results[0][1].v, results[1][1].v);
  }
}

// More images, and more slices of channels, than a CUDA grid has rows (65,535).
TEST_P(PoolingProperties, BC65_MoreImagesThanAGridHasRows) {
  for (const auto& [images, channels] : {std::pair{int64_t{65'537}, int64_t{4}}, {int64_t{1}, int64_t{4 * 65'537}}}) {
    for (const int64_t size : {2, 4}) {  // a window that is the plane, and windows that tile it
      for (const auto format : {MPS::ImageFeatureChannelFormatFloat32, MPS::ImageFeatureChannelFormatFloat16}) {
        SCOPED_TRACE(std::to_string(images) + " images, " + std::to_string(channels) + " channels");
        PoolImage source(images, channels, size, size), want(images, channels, size / 2, size / 2);
        Random r(15);
        for (double& v : source.v) v = r.integer(-8, 8);
        for (size_t i = 0; i < want.v.size(); ++i) {
          const size_t half = size_t(size) / 2, x = i % half, y = i / half % half, plane = i / half / half;
          const double* from = &source.v[plane * size_t(size * size) + 2 * y * size_t(size) + 2 * x];
          want.v[i] = std::max({from[0], from[1], from[size], from[size + 1]});
        }
        auto max = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 2, 2, 2, 2));
        max->setOffset({1, 1, 0});
        MPS::Image *x = image(source, format), *y = image(images, channels, size / 2, size / 2, format);
        max->encodeToCommandBuffer(buffer(), x, y);
        run();
        EXPECT_TRUE(read(y).v == want.v);
      }
    }
  }
}

TEST_P(PoolingProperties, NaN) {
  const double nan = std::nan("");
  PoolImage source(1, 1, 2, 4);
  source.v = {nan, 3, nan, nan, 1, 2, nan, nan};
  auto max = NS::TransferPtr(MPS::CNNPoolingMax::alloc()->init(device(), 2, 2, 2, 2));
  auto average = NS::TransferPtr(MPS::CNNPoolingAverage::alloc()->init(device(), 2, 2, 2, 2));
  auto l2 = NS::TransferPtr(MPS::CNNPoolingL2Norm::alloc()->init(device(), 2, 2, 2, 2));
  MPS::Image *x = image(source), *y[3];
  MPS::CNNPooling* kernels[] = {max.get(), average.get(), l2.get()};
  for (int i = 0; i < 3; ++i) {
    kernels[i]->setOffset({1, 1, 0});
    y[i] = image(1, 1, 1, 2);
    kernels[i]->encodeToCommandBuffer(buffer(), x, y[i]);
  }
  run();
  EXPECT_EQ(read(y[0]).v[0], 3);  // ignored unless all are NaN
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(read(y[i]).v[1])) << i;
  EXPECT_TRUE(std::isnan(read(y[1]).v[0]));
  EXPECT_TRUE(std::isnan(read(y[2]).v[0]));
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolingProperties, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bnns::testing
