// Clipping and norms: reference by hand, kernels against the reference, gradient, properties, refusals.

#include "src/ops/norm/norm.h"

#include <cmath>
#include <functional>

#include "src/ops/norm/norm_ref.h"
#include "tests/support/layouts.h"

namespace bnns::testing {
namespace {

constexpr BNNSDataType kTypes[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};

// Rounding of one result to its type: relative, plus half the smallest subnormal; the sums behind it are in double.
double unit_of(BNNSDataType type) {
  return type == BNNSDataTypeFloat32 ? 0x1p-24 : type == BNNSDataTypeFloat16 ? 0x1p-11 : 0x1p-8;
}
double bound_for(BNNSDataType type, double value) {
  return 1.01 * unit_of(type) * std::fabs(value) + (type == BNNSDataTypeFloat16 ? 0x1p-25 : 0x1p-134);
}

struct Shape {
  BNNSDataLayout layout;
  std::vector<size_t> size;
};
const Shape kShapes[] = {
    {BNNSDataLayoutVector, {1}},
    {BNNSDataLayoutVector, {67}},
    {BNNSDataLayoutRowMajorMatrix, {5, 3}},
    {BNNSDataLayoutColumnMajorMatrix, {4, 130}},
    {BNNSDataLayout2DFirstMajor, {9, 33}},
    {BNNSDataLayout2DLastMajor, {33, 9}},
    {BNNSDataLayoutImageCHW, {7, 5, 3}},
    {BNNSDataLayout3DFirstMajor, {2, 3, 17}},
    {BNNSDataLayoutMHA_DHK, {3, 4, 5}},
    {BNNSDataLayoutSNE, {6, 2, 3}},
    {BNNSDataLayout4DFirstMajor, {2, 3, 4, 5}},
    {BNNSDataLayout5DLastMajor, {2, 1, 3, 2, 2}},
    {BNNSDataLayout8DFirstMajor, {2, 1, 2, 1, 2, 1, 2, 3}},
    {BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 2, 4}},
};

BNNSDataLayout first_major(size_t rank) {
  return BNNSDataLayout(rank << 16 | 0x8001);
}

std::vector<size_t> kept_sizes(const std::vector<size_t>& size, uint32_t axes) {
  std::vector<size_t> kept;
  for (size_t k = 0; k < size.size(); ++k) {
    if (!(axes >> k & 1)) kept.push_back(size[k]);
  }
  if (kept.empty()) kept.push_back(1);
  return kept;
}

// Random values in the tensor, and the same (as the type holds them) in the order of the reference.
std::vector<double> fill(LayoutTensor* t, Random* random) {
  std::vector<double> values;
  for_each_coordinate(t->size(), [&](const Coordinates& at) { values.push_back(t->set(at, random->normal())); });
  return values;
}
std::vector<double> read(const LayoutTensor& t) {
  std::vector<double> values;
  for_each_coordinate(t.size(), [&](const Coordinates& at) { values.push_back(t.get(at)); });
  return values;
}
::testing::AssertionResult close(const LayoutTensor& got, const std::vector<double>& want) {
  if (!got.gaps_untouched()) return ::testing::AssertionFailure() << "bytes between the elements were written";
  const std::vector<double> values = read(got);
  return within(values, want, want.size(), [&](size_t i) { return bound_for(got.type(), want[i]); });
}

// ---- 1. reference and hand-worked numbers -----------------------------------------------------------------------

TEST(Norm, HandWorked) {
  EXPECT_EQ(ref::norms({2}, 1, {3, 4}), std::vector<double>{5});
  EXPECT_EQ(ref::clip_by_norm({2}, 1, {3, 4}, 2.5), (std::vector<double>{1.5, 2}));
  EXPECT_EQ(ref::norms_backward({2}, 1, {3, 4}, {5}, {2}), (std::vector<double>{1.2, 1.6}));

  float x[2] = {3, 4}, y[2], norm, dx[2], dy = 2;
  BNNSNDArrayDescriptor src = vector_descriptor(2, x), dest = vector_descriptor(2, y),
                        one = vector_descriptor(1, &norm);
  ASSERT_EQ(BNNSComputeNorm(&one, &src, BNNSL2Norm, 0), 0) << BNNSExtLastError();
  EXPECT_EQ(norm, 5);
  ASSERT_EQ(BNNSClipByNorm(&dest, &src, 2.5f, 0), 0) << BNNSExtLastError();
  EXPECT_EQ(y[0], 1.5f);
  EXPECT_EQ(y[1], 2.0f);
  BNNSNDArrayDescriptor in_delta = vector_descriptor(2, dx), out_delta = vector_descriptor(1, &dy);
  ASSERT_EQ(BNNSComputeNormBackward(x, &in_delta, &norm, &out_delta, BNNSL2Norm, 0), 0) << BNNSExtLastError();
  EXPECT_FLOAT_EQ(dx[0], 1.2f);
  EXPECT_FLOAT_EQ(dx[1], 1.6f);

  // {3, 4} and {12}: norm 13, limit 6.5 halves; a given norm of 26 quarters.
  float other[1] = {12}, other_y[1];
  BNNSNDArrayDescriptor src2 = vector_descriptor(1, other), dest2 = vector_descriptor(1, other_y);
  const BNNSNDArrayDescriptor* sources[] = {&src, &src2};
  BNNSNDArrayDescriptor* dests[] = {&dest, &dest2};
  ASSERT_EQ(BNNSClipByGlobalNorm(dests, sources, 2, 6.5f, 0), 0) << BNNSExtLastError();
  EXPECT_EQ(y[0], 1.5f);
  EXPECT_EQ(y[1], 2.0f);
  EXPECT_EQ(other_y[0], 6.0f);
  ASSERT_EQ(BNNSClipByGlobalNorm(dests, sources, 2, 6.5f, 26), 0) << BNNSExtLastError();
  EXPECT_EQ(y[0], 0.75f);
  EXPECT_EQ(other_y[0], 3.0f);

  // 2DFirstMajor {2, 2}: bit 0 is size[0], the rows, so the norms are those of the columns.
  float matrix[4] = {3, 5, 4, 12}, columns[2];
  BNNSNDArrayDescriptor m = descriptor(BNNSDataLayout2DFirstMajor, {2, 2}, matrix), c = vector_descriptor(2, columns);
  ASSERT_EQ(BNNSComputeNorm(&c, &m, BNNSL2Norm, 1), 0) << BNNSExtLastError();
  EXPECT_EQ(columns[0], 5);
  EXPECT_EQ(columns[1], 13);

  float values[5] = {-5, -1, 0.5f, 2, 7}, clipped[5];
  BNNSNDArrayDescriptor v = vector_descriptor(5, values), w = vector_descriptor(5, clipped);
  ASSERT_EQ(BNNSClipByValue(&w, &v, -1, 2), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(clipped, clipped + 5), (std::vector<float>{-1, -1, 0.5f, 2, 2}));
}

// ---- 2. kernels against the reference ---------------------------------------------------------------------------

// Every layout, every choice of axes, dense and with gaps, every float type.
TEST(Norm, BC33_LayoutsAxesTypes) {
  for_each_isa([&] {
    Random random(11);
    for (const Shape& shape : kShapes) {
      for (uint32_t flags = 0; flags < (1u << shape.size.size()); ++flags) {
        if (shape.size.size() > 5 && flags % 19) continue;
        for (size_t variant = 0; variant < 6; ++variant) {
          const BNNSDataType type = kTypes[variant % 3];
          const size_t unit = variant >= 3 ? 2 : 1, pad = variant >= 3 ? 3 : 0;
          SCOPED_TRACE("layout " + std::to_string(shape.layout) + " flags " + std::to_string(flags) + " variant " +
                       std::to_string(variant));
          const uint32_t axes = flags ? flags : (1u << shape.size.size()) - 1;
          LayoutTensor x(shape.layout, shape.size, type, unit, pad), y(shape.layout, shape.size, type, unit, pad + 1);
          const std::vector<double> values = fill(&x, &random);
          const std::vector<double> norms = ref::norms(shape.size, axes, values);
          BNNSNDArrayDescriptor src = x.descriptor(), dest = y.descriptor();

          const std::vector<size_t> kept = kept_sizes(shape.size, axes);
          LayoutTensor norm(first_major(kept.size()), kept, type, 1, variant >= 3);
          BNNSNDArrayDescriptor norm_desc = norm.descriptor();
          ASSERT_EQ(BNNSComputeNorm(&norm_desc, &src, BNNSL2Norm, flags), 0) << BNNSExtLastError();
          ASSERT_TRUE(close(norm, norms)) << "norm";

          const double limit = float(norms[0] * 0.7);
          ASSERT_EQ(BNNSClipByNorm(&dest, &src, float(limit), flags), 0) << BNNSExtLastError();
          ASSERT_TRUE(close(y, ref::clip_by_norm(shape.size, axes, values, limit))) << "clip";

          LayoutTensor dy(first_major(kept.size()), kept, type, 1, variant >= 3);
          const std::vector<double> gradients = fill(&dy, &random);
          BNNSNDArrayDescriptor dy_desc = dy.descriptor();
          LayoutTensor dx(shape.layout, shape.size, type, unit, pad);
          BNNSNDArrayDescriptor dx_desc = dx.descriptor();
          const std::vector<double> stored = read(norm);  // backward gets y as the type holds it
          const std::vector<double> want = ref::norms_backward(shape.size, axes, values, stored, gradients);
          ASSERT_EQ(BNNSComputeNormBackward(x.data(), &dx_desc, norm.data(), &dy_desc, BNNSL2Norm, flags), 0)
              << BNNSExtLastError();
          ASSERT_TRUE(close(dx, want)) << "backward";
          dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
          ASSERT_EQ(BNNSComputeNormBackward(x.data(), &dx_desc, norm.data(), &dy_desc, BNNSL2Norm, flags), 0)
              << BNNSExtLastError();
          const std::vector<double> sum = read(dx);
          for (size_t i = 0; i < sum.size(); ++i) {  // twice the gradient, rounded
            ASSERT_NEAR(sum[i], 2 * want[i], 4 * bound_for(type, 2 * want[i])) << "accumulate, element " << i;
          }
        }
      }
    }
  });
}

// Shapes that are split over threads, along rows, columns and within one slice.
TEST(Norm, BC53_SameBitsForAnyThreadCount) {
  const Shape shapes[] = {{BNNSDataLayoutVector, {1'000'003}},
                          {BNNSDataLayout2DFirstMajor, {3, 200'001}},
                          {BNNSDataLayout2DFirstMajor, {20'001, 13}},
                          {BNNSDataLayout2DFirstMajor, {301, 1'999}},
                          {BNNSDataLayout3DFirstMajor, {40, 130, 70}}};
  for (const Shape& shape : shapes) {
    Random random(5);
    LayoutTensor x(shape.layout, shape.size), y(shape.layout, shape.size);
    const std::vector<double> values = fill(&x, &random);
    for (uint32_t axes = 1; axes < (1u << shape.size.size()); ++axes) {
      const std::vector<size_t> kept = kept_sizes(shape.size, axes);
      const std::vector<double> norms = ref::norms(shape.size, axes, values);
      std::vector<unsigned char> first_norms, first_clip;
      for (size_t threads : kThreadCounts) {
        SCOPED_TRACE("axes " + std::to_string(axes) + " threads " + std::to_string(threads));
        set_default_threads(threads);
        LayoutTensor norm(first_major(kept.size()), kept);
        BNNSNDArrayDescriptor src = x.descriptor(), dest = y.descriptor(), norm_desc = norm.descriptor();
        ASSERT_EQ(BNNSComputeNorm(&norm_desc, &src, BNNSL2Norm, axes), 0) << BNNSExtLastError();
        ASSERT_EQ(BNNSClipByNorm(&dest, &src, float(norms[0]), axes), 0) << BNNSExtLastError();
        ASSERT_TRUE(close(norm, norms));
        if (first_norms.empty()) {
          first_norms = norm.snapshot(), first_clip = y.snapshot();
          ASSERT_TRUE(close(y, ref::clip_by_norm(shape.size, axes, values, float(norms[0]))));
        }
        ASSERT_EQ(norm.snapshot(), first_norms);
        ASSERT_EQ(y.snapshot(), first_clip);
      }
    }
  }
  set_default_threads(0);
}

// ---- 3. gradient ------------------------------------------------------------------------------------------------

TEST(Norm, BackwardMatchesCentralDifferences) {
  Random random(3);
  const std::vector<size_t> size = {3, 4, 2};
  for (uint32_t axes = 1; axes < 8; ++axes) {
    std::vector<double> x(24), dy(ref::slice_count(size, axes));
    for (double& v : x) v = random.normal();
    for (double& v : dy) v = random.normal();
    const auto loss = [&](const std::vector<double>& at) {
      const std::vector<double> y = ref::norms(size, axes, at);
      double sum = 0;
      for (size_t s = 0; s < y.size(); ++s) sum += dy[s] * y[s];
      return sum;
    };
    const auto analytic = ref::norms_backward(size, axes, x, ref::norms(size, axes, x), dy);
    EXPECT_LE(gradient_error(analytic, central_differences(x, loss)), 1e-7) << "axes " << axes;
  }
}

// ---- 4. properties ----------------------------------------------------------------------------------------------

// In place gives the bits of out of place, for every length around the vector width and every type.
TEST(Norm, BC41_InPlace) {
  for_each_isa([&] {
    for (BNNSDataType type : kTypes) {
      for (size_t n = 1; n <= 67; ++n) {
        Random random(n);
        LayoutTensor x(BNNSDataLayoutVector, {n}, type), y(BNNSDataLayoutVector, {n}, type);
        fill(&x, &random);
        const std::vector<unsigned char> original = x.snapshot();
        BNNSNDArrayDescriptor src = x.descriptor(), dest = y.descriptor();
        const BNNSNDArrayDescriptor* sources[] = {&src};
        BNNSNDArrayDescriptor *dests[] = {&dest}, *in_place[] = {&src};
        const std::function<int(bool)> calls[] = {
            [&](bool same) { return BNNSClipByValue(same ? &src : &dest, &src, -0.5f, 0.25f); },
            [&](bool same) { return BNNSClipByNorm(same ? &src : &dest, &src, 0.125f, 0); },
            [&](bool same) { return BNNSClipByGlobalNorm(same ? in_place : dests, sources, 1, 0.125f, 0); }};
        for (const auto& call : calls) {
          ASSERT_EQ(call(false), 0) << BNNSExtLastError();
          ASSERT_EQ(x.snapshot(), original) << "the source changed";
          ASSERT_EQ(call(true), 0) << BNNSExtLastError();
          ASSERT_EQ(x.snapshot(), y.snapshot()) << n << " elements";
          std::memcpy(x.data(), original.data(), original.size());
        }
      }
    }
  });
}

// After a clip no slice is longer than the limit, up to rounding; a second clip changes little; short slices keep bits.
TEST(Norm, ClipLimitsEverySlice) {
  Random random(8);
  LayoutTensor x(BNNSDataLayout2DFirstMajor, {40, 25}), y(BNNSDataLayout2DFirstMajor, {40, 25});
  const std::vector<double> values = fill(&x, &random);
  BNNSNDArrayDescriptor src = x.descriptor(), dest = y.descriptor();
  const double limit = 5;
  ASSERT_EQ(BNNSClipByNorm(&dest, &src, float(limit), 2), 0) << BNNSExtLastError();
  const std::vector<double> before = ref::norms(x.size(), 2, values), after = ref::norms(x.size(), 2, read(y));
  size_t shortened = 0;
  for (size_t s = 0; s < after.size(); ++s) {
    EXPECT_LE(after[s], limit * (1 + 0x1p-23));
    shortened += before[s] > limit;
  }
  EXPECT_GT(shortened, 0u);
  EXPECT_LT(shortened, 40u);
  for_each_coordinate(x.size(), [&](const Coordinates& at) {
    if (before[at[0]] <= limit) {
      EXPECT_EQ(x.raw_at<uint32_t>(at), y.raw_at<uint32_t>(at));
    }
  });
}

// Squares that overflow or vanish in f32 do neither here.
TEST(Norm, BC30_HugeAndTinyValues) {
  for_each_isa([&] {
    for (float value : {1e30f, 3e37f, 1e-30f, 1e-37f}) {
      std::vector<float> x(16, value), y(16);  // norm 4 |value|
      float norm = 0;
      BNNSNDArrayDescriptor src = vector_descriptor(16, x.data()), dest = vector_descriptor(16, y.data());
      BNNSNDArrayDescriptor one = vector_descriptor(1, &norm);
      ASSERT_EQ(BNNSComputeNorm(&one, &src, BNNSL2Norm, 0), 0) << BNNSExtLastError();
      EXPECT_NEAR(norm, 4.0 * value, 4.0 * value * 0x1p-23);
      ASSERT_EQ(BNNSClipByNorm(&dest, &src, value, 0), 0) << BNNSExtLastError();
      for (float v : y) EXPECT_NEAR(v, 0.25 * value, 0.25 * value * 0x1p-23 + 0x1p-149);
      const BNNSNDArrayDescriptor* sources[] = {&src};
      BNNSNDArrayDescriptor* dests[] = {&dest};
      ASSERT_EQ(BNNSClipByGlobalNorm(dests, sources, 1, value, 0), 0) << BNNSExtLastError();
      for (float v : y) EXPECT_NEAR(v, 0.25 * value, 0.25 * value * 0x1p-23 + 0x1p-149);
    }
  });
}

TEST(Norm, BC30_ZeroNormAndNan) {
  for_each_isa([&] {
    float x[3] = {0, -0.0f, 0}, y[3], dx[3], norm = 1, dy = 7;
    BNNSNDArrayDescriptor src = vector_descriptor(3, x), dest = vector_descriptor(3, y),
                          one = vector_descriptor(1, &norm);
    ASSERT_EQ(BNNSClipByNorm(&dest, &src, 0, 0), 0) << BNNSExtLastError();
    EXPECT_TRUE(same_bits(y, x, 3));
    ASSERT_EQ(BNNSComputeNorm(&one, &src, BNNSL2Norm, 0), 0) << BNNSExtLastError();
    EXPECT_EQ(norm, 0);
    BNNSNDArrayDescriptor in_delta = vector_descriptor(3, dx), out_delta = vector_descriptor(1, &dy);
    ASSERT_EQ(BNNSComputeNormBackward(x, &in_delta, &norm, &out_delta, BNNSL2Norm, 0), 0) << BNNSExtLastError();
    for (float v : dx) EXPECT_EQ(v, 0);
    for (size_t n = 1; n <= 40; ++n) {  // NaN survives the clamp at every position
      for (size_t at = 0; at < n; ++at) {
        std::vector<float> values(n, 3), clipped(n);
        values[at] = NAN;
        BNNSNDArrayDescriptor v = vector_descriptor(n, values.data()), c = vector_descriptor(n, clipped.data());
        ASSERT_EQ(BNNSClipByValue(&c, &v, -1, 1), 0) << BNNSExtLastError();
        for (size_t i = 0; i < n; ++i) ASSERT_TRUE(i == at ? std::isnan(clipped[i]) : clipped[i] == 1);
      }
    }
  });
}

// The result may begin where the source does: norms are all known before the first is written.
TEST(Norm, ComputeNormOverItsSource) {
  float x[6] = {3, 4, 5, 12, 8, 15};
  BNNSNDArrayDescriptor src = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, x), dest = vector_descriptor(3, x);
  ASSERT_EQ(BNNSComputeNorm(&dest, &src, BNNSL2Norm, 2), 0) << BNNSExtLastError();
  EXPECT_EQ(x[0], 5);
  EXPECT_EQ(x[1], 13);
  EXPECT_EQ(x[2], 17);
}

}  // namespace
}  // namespace bnns::testing
