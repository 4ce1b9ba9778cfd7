// The worked vectors of the specification through the public classes: A = rows 1..4, 5..8, 9..12, 13..16, B = -A,
// gradient [[1, 10], [100, 1000]], one channel, 2 x 2 results.
#include "src/ops/mps_pooling/tests/mps_pooling_testing.h"

namespace bnns::testing {
namespace {

class PoolingVectors : public PoolingTest {
 protected:
  static PoolImage plane(int64_t h, int64_t w, std::vector<double> values) {
    PoolImage image(1, 1, h, w);
    image.v = std::move(values);
    return image;
  }
  static PoolImage a(double sign = 1) {
    PoolImage image(1, 1, 4, 4);
    for (size_t i = 0; i < 16; ++i) image.v[i] = sign * double(i + 1);
    return image;
  }
  static PoolImage g() { return plane(2, 2, {1, 10, 100, 1000}); }

  template <class Class>
  NS::SharedPtr<Class> make(NS::UInteger k, NS::UInteger s) {
    return NS::TransferPtr(Class::alloc()->init(device(), k, k, s, s));
  }

  void forward(MPS::CNNKernel* kernel, const PoolImage& source, NS::Integer offset, MPS::ImageEdgeMode edge,
               std::vector<double> expected, int64_t size = 2) {
    kernel->setOffset({offset, offset, 0});
    kernel->setEdgeMode(edge);
    MPS::Image* target = image(1, 1, size, size);
    kernel->encodeToCommandBuffer(buffer(), image(source), target);
    run();
    const PoolImage result = read(target);
    ASSERT_EQ(result.v.size(), expected.size());
    // The table has six digits.
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result.v[i], expected[i], 5e-6 * std::max(1.0, std::abs(expected[i]))) << i;
    }
  }

  PoolImage backward(MPS::CNNPoolingGradient* kernel, const PoolImage& gradient, const PoolImage& source,
                     NS::Integer offset, MPS::ImageEdgeMode edge, int64_t size = 4) {
    kernel->setSecondaryOffset({offset, offset, 0});
    kernel->setSecondaryEdgeMode(edge);
    MPS::Image* target = image(1, 1, size, size);
    write(target, plane(size, size, std::vector<double>(size_t(size * size), 77)));  // results overwrite
    kernel->encodeToCommandBuffer(buffer(), image(gradient), image(source), target);
    run();
    return read(target);
  }
  // Zeros with some pixels (x, y) set.
  static std::vector<double> at(std::vector<std::array<int, 3>> pixels, int size = 4) {
    std::vector<double> v(size_t(size * size));
    for (const auto& [x, y, value] : pixels) v[size_t(y * size + x)] = value;
    return v;
  }
  static void expect_near(const PoolImage& result, const std::vector<double>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result.v[i], expected[i], 5e-6 * std::max(1.0, std::abs(expected[i]))) << i;
    }
  }
};

constexpr auto kZero = MPS::ImageEdgeModeZero;
constexpr auto kClamp = MPS::ImageEdgeModeClamp;

TEST_P(PoolingVectors, Max) {
  forward(make<MPS::CNNPoolingMax>(2, 2).get(), a(), 1, kZero, {6, 8, 14, 16});       // V1
  forward(make<MPS::CNNPoolingMax>(3, 2).get(), a(-1), 0, kZero, {0, 0, 0, -6});      // V2
  forward(make<MPS::CNNPoolingMax>(3, 2).get(), a(-1), 0, kClamp, {-1, -2, -5, -6});  // V3
}

TEST_P(PoolingVectors, Average) {
  auto kernel = make<MPS::CNNPoolingAverage>(3, 2);
  const std::vector<double> v4 = {1.555556, 3.333333, 6.333333, 11};
  forward(kernel.get(), a(), 0, kZero, v4);                  // V4
  forward(kernel.get(), a(), 0, kClamp, {3.5, 5, 9.5, 11});  // V5
  kernel->setZeroPadSizeX(1);
  forward(kernel.get(), a(), 0, kClamp, {2.333333, 5, 6.333333, 11});  // V6
  kernel->setZeroPadSizeY(1);
  forward(kernel.get(), a(), 0, kClamp, v4);  // V7
  auto wide = make<MPS::CNNPoolingAverage>(4, 4);
  wide->setZeroPadSizeX(1);
  wide->setZeroPadSizeY(1);
  forward(wide.get(), a(), 0, kClamp, {1.555556}, 1);  // V8
}

TEST_P(PoolingVectors, L2Norm) {
  forward(make<MPS::CNNPoolingL2Norm>(3, 2).get(), a(), 0, kZero, {8.12404, 13.3417, 24.6374, 34.5109});   // V9
  forward(make<MPS::CNNPoolingL2Norm>(3, 2).get(), a(), 0, kClamp, {9.89949, 14.3875, 29.6985, 34.5109});  // V10
}

TEST_P(PoolingVectors, DilatedMax) {
  auto kernel = NS::TransferPtr(MPS::CNNDilatedPoolingMax::alloc()->init(device(), 2, 2, 3, 3, 2, 2));
  forward(kernel.get(), a(-1), 0, kZero, {0, 0, 0, -1});      // V11
  forward(kernel.get(), a(-1), 0, kClamp, {-1, -1, -1, -1});  // V12
}

TEST_P(PoolingVectors, MaxGradient) {
  auto k2 = make<MPS::CNNPoolingMaxGradient>(2, 2);
  auto k3 = make<MPS::CNNPoolingMaxGradient>(3, 2);
  EXPECT_EQ(backward(k2.get(), g(), a(), 1, kZero).v, at({{1, 1, 1}, {3, 1, 10}, {1, 3, 100}, {3, 3, 1000}}));  // G1
  EXPECT_EQ(backward(k3.get(), g(), a(-1), 0, kZero).v, at({{1, 1, 1000}}));                                    // G4
  const auto g5 = at({{0, 0, 1}, {1, 0, 10}, {0, 1, 100}, {1, 1, 1000}});
  EXPECT_EQ(backward(k3.get(), g(), a(-1), 0, kClamp).v, g5);                 // G5
  EXPECT_EQ(backward(k3.get(), g(), PoolImage(1, 1, 4, 4), 0, kZero).v, g5);  // G6
}

TEST_P(PoolingVectors, MaxGradientOffsets) {
  auto k2 = make<MPS::CNNPoolingMaxGradient>(2, 2);
  k2->setPrimaryOffset({1, 1, 0});
  EXPECT_EQ(backward(k2.get(), g(), a(), 1, kZero).v, at({{1, 1, 1000}}));  // G7
  k2->setPrimaryOffset({0, 0, 0});
  k2->setSourceSize({1, 2, NS::UIntegerMax});
  EXPECT_EQ(backward(k2.get(), g(), a(), 1, kZero).v, at({{1, 1, 1}, {1, 3, 100}}));  // G8
  k2->setSourceSize({NS::UIntegerMax, NS::UIntegerMax, NS::UIntegerMax});
  EXPECT_EQ(backward(k2.get(), plane(1, 1, {1}), a(), 2, kZero, 3).v, at({{1, 1, 1}}, 3));  // G9
}

TEST_P(PoolingVectors, AverageGradient) {
  auto kernel = make<MPS::CNNPoolingAverageGradient>(3, 2);
  expect_near(backward(kernel.get(), g(), a(), 0, kZero),  // G2
              {.111111, 1.222222, 1.111111, 1.111111, 11.22222, 123.4444, 112.2222, 112.2222, 11.11111, 122.2222,
               111.1111, 111.1111, 11.11111, 122.2222, 111.1111, 111.1111});
  expect_near(backward(kernel.get(), g(), a(), 0, kClamp),  // G3
              {.25, 1.916667, 1.666667, 1.666667, 16.916667, 129.69444, 112.77778, 112.77778, 16.666667, 127.77778,
               111.1111, 111.1111, 16.666667, 127.77778, 111.1111, 111.1111});
}

TEST_P(PoolingVectors, L2NormGradient) {
  auto kernel = make<MPS::CNNPoolingL2NormGradient>(2, 2);
  expect_near(backward(kernel.get(), g(), a(), 1, kZero), {.123091, .246183, 2.55377, 3.40503});  // G10
}

INSTANTIATE_TEST_SUITE_P(Devices, PoolingVectors, ::testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace bnns::testing
