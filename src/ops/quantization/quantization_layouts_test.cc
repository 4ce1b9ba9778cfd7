// Quantization through any layout, stride, alignment and mixture of types: exact bounds, gaps untouched, in place.

#include <gtest/gtest.h>

#include "src/ops/quantization/quantization_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;
constexpr size_t kNone = QuantizationCase::kNone;

struct Shape {
  BNNSDataLayout layout;
  std::vector<size_t> size;
};

// Every layout family, axis, batch axis; types of data and parameters, strides and absence at random.
TEST(QuantizationLayouts, BC15_BC33_AnyLayoutAxisAndType) {
  const Shape shapes[] = {{BNNSDataLayoutVector, {1}},
                          {BNNSDataLayoutVector, {70}},
                          {BNNSDataLayout1DFirstMajor, {9}},
                          {BNNSDataLayoutRowMajorMatrix, {5, 7}},
                          {BNNSDataLayoutRowMajorMatrix, {3, 90}},
                          {BNNSDataLayoutRowMajorMatrix, {90, 3}},
                          {BNNSDataLayoutColumnMajorMatrix, {33, 4}},
                          {BNNSDataLayout2DFirstMajor, {5, 40}},
                          {BNNSDataLayout2DLastMajor, {40, 5}},
                          {BNNSDataLayoutImageCHW, {9, 5, 3}},
                          {BNNSDataLayoutImageCHW, {35, 2, 4}},
                          {BNNSDataLayoutImageCHW, {1, 1, 37}},
                          {BNNSDataLayoutSNE, {6, 5, 4}},
                          {BNNSDataLayout3DFirstMajor, {3, 5, 35}},
                          {BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 4, 5}},
                          {BNNSDataLayout4DLastMajor, {2, 3, 4, 5}},
                          {BNNSDataLayout5DFirstMajor, {2, 3, 2, 3, 2}},
                          {BNNSDataLayout7DLastMajor, {2, 1, 3, 2, 1, 2, 2}}};
  for_each_isa([&] {
    Random random(7);
    const auto any_type = [&] { return kNumberTypes[random.below(std::size(kNumberTypes))]; };
    for (const Shape& s : shapes) {
      for (size_t axis = 0; axis <= s.size.size() + 1; ++axis) {
        for (int round = 0; round < 24; ++round) {
          const BNNSDataType from = random.below(3) ? BNNSDataTypeFloat32 : any_type();
          QuantizationCase c(s.layout, s.size, 1 + random.below(4), axis > s.size.size() ? kNone : axis,
                             random.below(2), from, any_type(), 1 + random.below(3) / 2, random.below(3));
          if (random.below(5)) c.scale.make(c.entries(), any_type(), 1 + random.below(2));
          if (random.below(5)) c.bias.make(c.entries(), any_type(), 1 + random.below(2));
          c.fill(random);
          ASSERT_EQ(c.apply(), 0) << BNNSExtLastError();
          ASSERT_TRUE(c.check());
        }
      }
    }
  });
}

// Rank 8, MHA_DHK and rotated weights, which have no batch axis to spare in the helper: one sample.
TEST(QuantizationLayouts, OneSampleOfTheOthers) {
  const Shape shapes[] = {{BNNSDataLayoutMHA_DHK, {5, 4, 3}},
                          {BNNSDataLayoutConvolutionWeightsOIHrWr, {3, 2, 4, 5}},
                          {BNNSDataLayoutConvolutionWeightsIOHrWr, {3, 2, 4, 5}},
                          {BNNSDataLayout8DFirstMajor, {2, 1, 2, 3, 2, 1, 2, 2}},
                          {BNNSDataLayout8DLastMajor, {2, 1, 2, 3, 2, 1, 2, 2}}};
  Random random(8);
  for (const Shape& s : shapes) {
    for (size_t axis = 0; axis < s.size.size(); ++axis) {
      LayoutTensor x(s.layout, s.size, BNNSDataTypeFloat32, 1, 2), y(s.layout, s.size, BNNSDataTypeInt8, 1, 1);
      LayoutTensor scale(BNNSDataLayoutVector, {s.size[axis]});
      for_each_coordinate(s.size, [&](const Coordinates& at) { x.set(at, 0.5 * random.integer(-20, 20)); });
      for (size_t i = 0; i < s.size[axis]; ++i) scale.set({i}, double(i + 1));
      BNNSLayerParametersQuantization p;
      std::memset(&p, 0, sizeof p);
      p.axis_mask = size_t{1} << axis;
      p.i_desc = x.descriptor(), p.o_desc = y.descriptor(), p.scale = scale.descriptor();
      const bool rotated = s.size.size() == 4 && axis < 2;
      ASSERT_EQ(BNNSDirectApplyQuantizer(&p, nullptr, 1, 0, 0), rotated ? -1 : 0) << BNNSExtLastError();
      if (rotated) {
        EXPECT_TRUE(refused_because({"which i_desc.layout rotates"}));
        continue;
      }
      for_each_coordinate(s.size, [&](const Coordinates& at) {
        EXPECT_EQ(y.get(at), ref::stored(BNNSDataTypeInt8, ref::quantize(x.get(at), double(at[axis] + 1), 0)));
      });
      EXPECT_TRUE(y.gaps_untouched());
    }
  }
}

// A Vector where the other side is CHW with as many elements: paired in memory order, the axis is i_desc's.
TEST(QuantizationLayouts, AnotherLayoutWithAsManyElements) {
  QuantizationCase c(BNNSDataLayoutImageCHW, {4, 3, 5}, 1, 2, false, BNNSDataTypeFloat32, BNNSDataTypeInt16);
  c.scale.make(5, BNNSDataTypeFloat32, 1);
  Random random(9);
  c.fill(random);
  BNNSLayerParametersQuantization p = c.layer();
  p.o_desc = vector_descriptor(60, c.y.all().data(), BNNSDataTypeInt16);
  ASSERT_EQ(BNNSDirectApplyQuantizer(&p, nullptr, 1, 0, 0), 0) << BNNSExtLastError();
  EXPECT_TRUE(c.check());
}

// An input batch stride below the sample's size is legal: the samples overlap and are only read.
TEST(QuantizationLayouts, OverlappingInputSamples) {
  Guarded<float> x(std::vector<float>{1, 2, 3, 4, 5, 6});
  Guarded<int8_t> y(12);
  BNNSLayerParametersQuantization p;
  std::memset(&p, 0, sizeof p);
  p.i_desc = vector_descriptor(4, x.data()), p.o_desc = vector_descriptor(4, y.data(), BNNSDataTypeInt8);
  ASSERT_EQ(BNNSDirectApplyQuantizer(&p, nullptr, 3, 1, 0), 0) << BNNSExtLastError();
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], int(i / 4 + i % 4 + 1));
}

// BC40, BC41: pointers at any element; in place where elements are equally wide.
TEST(QuantizationLayouts, BC33_BC40_BC41_UnalignedAndInPlace) {
  for_each_isa([] {
    for (size_t n = 1; n <= 67; ++n) {
      for (size_t off : {0, 1, 2, 3}) {
        Guarded<float> x(n + off), scale(n + off), bias(n + off);
        Guarded<uint8_t> y(n + off);
        for (size_t i = 0; i < n; ++i)
          x[off + i] = 0.5f * float(i), scale[off + i] = float(1 + i % 3), bias[off + i] = float(i % 5);
        if (off) y[0] = 77;
        BNNSLayerParametersQuantization p;
        std::memset(&p, 0, sizeof p);
        p.axis_mask = 1;
        p.i_desc = vector_descriptor(n, x.data() + off),
        p.o_desc = vector_descriptor(n, y.data() + off, BNNSDataTypeUInt8);
        p.scale = vector_descriptor(n, scale.data() + off), p.bias = vector_descriptor(n, bias.data() + off);
        ASSERT_EQ(BNNSDirectApplyQuantizer(&p, nullptr, 1, 0, 0), 0) << BNNSExtLastError();
        const auto want = [&](size_t i) { return ref::quantize(0.5 * double(i), double(1 + i % 3), double(i % 5)); };
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(double(y[off + i]), ref::stored(BNNSDataTypeUInt8, want(i)));
        ASSERT_TRUE(off == 0 || y[0] == 77);
        p.o_desc = vector_descriptor(n, x.data() + off, BNNSDataTypeInt32);  // f32 becomes i32 where it stands
        ASSERT_EQ(BNNSDirectApplyQuantizer(&p, nullptr, 1, 0, 0), 0) << BNNSExtLastError();
        for (size_t i = 0; i < n; ++i) {
          ASSERT_EQ(double(std::bit_cast<int32_t>(x[off + i])), ref::stored(BNNSDataTypeInt32, want(i)));
        }
      }
    }
  });
}

}  // namespace
}  // namespace bnns
