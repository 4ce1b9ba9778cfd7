// Functions without a layer on arrays of several samples: they act on all of them, or refuse.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

const Shape kMatrix = {2, 3};

bool untouched(float v) {
  return v == -77.25f;
}
std::vector<float> clipped(std::vector<float> v, float low, float high) {
  for (float& x : v) x = x < low ? low : x > high ? high : x;
  return v;
}

TEST(OverlayBatch, FunctionsOfElements) {
  const NDArray x = data(kMatrix, 1);
  NDArray y = output(kMatrix), half = NDArray::repeating(BFloat16(7), kMatrix, kBatch), back = output(kMatrix);
  copy(x, y);
  EXPECT_EQ(y.makeArray<float>(), x.makeArray<float>());
  copy(x, half), copy(half, back);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_NEAR(back.span<float>()[i], x.span<float>()[i], 0.01f) << i;
  clip({-0.5f, 0.25f}, x, y);
  EXPECT_EQ(y.makeArray<float>(), clipped(x.makeArray<float>(), -0.5f, 0.25f));
  // Layouts that differ, and gaps: sample by sample, as the C call orders one.
  NDArray turned = output(Shape::matrixLastMajor(2, 3)), wide = output(Shape::vector(6, 2)), again = output({6});
  copy(x, turned);
  for (std::size_t s = 0; s < kBatch; ++s) {
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        EXPECT_EQ(turned.span<float>()[6 * s + 2 * j + i], x.span<float>()[6 * s + 3 * i + j]);
      }
    }
  }
  const NDArray flat = data({6}, 2);
  copy(flat, wide), copy(wide, again);
  EXPECT_EQ(again.makeArray<float>(), flat.makeArray<float>());
  EXPECT_TRUE(untouched(wide.span<float>()[1])) << "a gap was written";
  const NDArray z = data(kMatrix, 3);
  NDArray less = NDArray::repeating(false, kMatrix, kBatch);
  compare(x, z, RelationalOperator::less, less);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(less.span<bool>()[i], x.span<float>()[i] < z.span<float>()[i]) << i;
}

TEST(OverlayBatch, RandomNumbers) {
  RandomGenerator a(RandomGeneratorMethod::aesCtr, 7), b(RandomGeneratorMethod::aesCtr, 7);
  NDArray x = output({5}, 4), wide = output(Shape::vector(5, 2), 4), normal = output({5}, 4);
  NDArray dice = NDArray::repeating(-1, {5}, 4);
  a.fillUniform(x, 2.0f, 3.0f);
  EXPECT_EQ(x.makeArray<float>(), NDArray::uniform(b, 2.0f, 3.0f, {5}, 4).makeArray<float>());  // one stream
  a.fillUniform(dice, std::int64_t{1}, std::int64_t{6});
  a.fillNormal(normal, 100, 1);
  a.fillUniform(wide, 2.0f, 3.0f);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(x.span<float>()[i] >= 2 && x.span<float>()[i] < 3) << i;
    EXPECT_TRUE(dice.span<int>()[i] >= 1 && dice.span<int>()[i] <= 6) << i;
    EXPECT_NEAR(normal.span<float>()[i], 100, 20) << i;
    EXPECT_TRUE(wide.span<float>()[2 * i] >= 2 && wide.span<float>()[2 * i] < 3) << i;
    if (i % 5 != 4) {
      EXPECT_TRUE(untouched(wide.span<float>()[2 * i + 1])) << i;
    }
  }
}

TEST(OverlayBatch, FunctionsOfArrays) {
  const NDArray x = data(kMatrix, 1);
  const auto xs = x.span<float>();
  NDArray sum = output(Shape({2, 1})), turned = output({3, 2}), tiled = output({4, 3}), untiled = output(kMatrix),
          band = output(kMatrix);
  applyReduction(ReductionFunction::sum(), x, sum);
  transpose(x, turned, 0, 1);
  tile(x, tiled);
  tileBackward(tiled, untiled);
  copyBandPart(x, band, 0, 0);
  for (std::size_t s = 0; s < kBatch; ++s) {
    for (std::size_t i = 0; i < 2; ++i) {
      const float* row = &xs[6 * s + 3 * i];
      EXPECT_NEAR(sum.span<float>()[2 * s + i], row[0] + row[1] + row[2], 1e-6f);
      for (std::size_t j = 0; j < 3; ++j) {
        EXPECT_EQ(turned.span<float>()[6 * s + 2 * j + i], row[j]);
        EXPECT_EQ(tiled.span<float>()[12 * s + 6 + 3 * i + j], row[j]);
        EXPECT_EQ(untiled.span<float>()[6 * s + 3 * i + j], 2 * row[j]);
        EXPECT_EQ(band.span<float>()[6 * s + 3 * i + j], i == j ? row[j] : 0);
      }
    }
  }
}

TEST(OverlayBatch, RefusedWithoutMeaning) {
  const NDArray x = data(kMatrix, 1), two = data(kMatrix, 2, 2), single = data(kMatrix, 3, 1),
                rows = NDArray::from({1, 0}, {2});
  NDArray y = output(kMatrix), one = output(kMatrix, 1), norm = output({1}), square = output({2, 2});
  EXPECT_TRUE(refuses(kData, {"copy: source holds 3 samples, to 1"}, [&] { copy(x, one); }));
  EXPECT_TRUE(refuses(kData, {"copy: source holds 2 samples, to 3"}, [&] { copy(two, y); }));
  EXPECT_TRUE(refuses(kData, {"clip: input holds 1 sample, output 3"}, [&] { clip({0, 1}, single, y); }));
  EXPECT_TRUE(refuses(kData, {"applyReduction: input holds 3 samples, output 1"},
                      [&] { applyReduction(ReductionFunction::sum(), x, one); }));
  const auto taking_one = [](const char* text, auto&& body) {
    EXPECT_TRUE(refuses(kData, {text, "holds 3 samples, the function takes one"}, body));
  };
  taking_one("clipByNorm: input", [&] { clipByNorm(1, x, y); });
  taking_one("computeNorm: input", [&] { computeNorm(x, norm); });
  taking_one("computeNormBackward: input", [&] { computeNormBackward(x, norm, norm, y); });
  taking_one("gather: input", [&] { gather(x, rows, y, 0); });
  taking_one("gatherND: input", [&] { gatherND(x, rows, norm); });
  taking_one("scatter: output", [&] { scatter(single, rows, y, 0); });
  taking_one("scatterND: output", [&] { scatterND(single, rows, y); });
  taking_one("applyMatrixMultiplication: inputA",
             [&] { applyMatrixMultiplication(x, false, single, true, square, 1); });
  const CropResizeLayer crop({.coordinatesAreNormalized = false,
                              .spatialScale = 1,
                              .boxCoordinateMode = CropResizeLayer::BoxCoordinateMode::cornersHeightFirst});
  taking_one("CropResizeLayer::apply: input", [&] { crop.apply(x, single, one); });
  for (float v : y.span<float>()) ASSERT_TRUE(untouched(v)) << "a refused call wrote";
}

// Functions with a batch size compare it with the arrays.
TEST(OverlayBatch, GivenBatchSize) {
  const NDArray x = data({4}, 1), scale = NDArray::repeating(1.0f, {1});
  NDArray y = output({4}), few = output({4}, 2), values = output({2}, 2), at = NDArray::repeating(0, {2}, kBatch);
  NDArray bytes = NDArray::repeating(std::int8_t{0}, {4}, 2);
  EXPECT_TRUE(refuses(kData, {"applyActivation: output holds 2 samples, the batch is 3"},
                      [&] { applyActivation(ActivationFunction::tanh(), x, few, kBatch); }));
  EXPECT_TRUE(refuses(kData, {"applyActivation: input holds 3 samples, the batch is 4"},
                      [&] { applyActivation(ActivationFunction::tanh(), x, y, 4); }));
  EXPECT_TRUE(refuses(kData, {"applyTopK: bestValues hold 2 samples, the batch is 3"},
                      [&] { applyTopK(2, x, values, at, 0, kBatch); }));
  EXPECT_TRUE(refuses(kData, {"quantize: output holds 2 samples, the batch is 3"},
                      [&] { quantize(kBatch, x, bytes, {}, scale, {}); }));
  EXPECT_TRUE(refuses(kData, {"makeArray: array holds 3 samples, the batch is 4"}, [&] { makeArray<float>(x, 4); }));
}

}  // namespace
}  // namespace overlay
