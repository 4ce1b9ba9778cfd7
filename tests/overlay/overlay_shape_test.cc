// Shapes, layouts and arrays: what the descriptors hold, and what is refused before any call.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>
#include <random>

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

using Sizes = std::array<std::size_t, 8>;

void expect_shape(const Shape& s, BNNSDataLayout layout, const Sizes& size, const Sizes& stride,
                  std::size_t batch_stride) {
  const Desc d = s.describe(BNNSDataTypeFloat32);
  EXPECT_EQ(d.layout, layout);
  EXPECT_EQ(s.rank(), BNNSDataLayoutGetRank(layout));
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(d.size[k], size[k]) << k;
    EXPECT_EQ(d.stride[k], stride[k]) << k;
    EXPECT_EQ(s.size()[k], size[k]) << k;
    EXPECT_EQ(s.stride()[k], stride[k]) << k;
  }
  EXPECT_EQ(s.batchStride(), batch_stride);
  EXPECT_EQ(static_cast<BNNSDataLayout>(shapeOf(d).layout()), layout);
}

TEST(OverlayShape, EveryCaseFillsTheDescriptor) {
  expect_shape(Shape::vector(5), BNNSDataLayoutVector, {5}, {}, 5);
  expect_shape(Shape::vector(5, 2), BNNSDataLayoutVector, {5}, {2}, 10);
  expect_shape(Shape::matrixRowMajor(3, 2), BNNSDataLayoutRowMajorMatrix, {3, 2}, {}, 6);
  expect_shape(Shape::matrixRowMajor(3, 2, {1, 4}), BNNSDataLayoutRowMajorMatrix, {3, 2}, {1, 4}, 8);
  expect_shape(Shape::matrixColumnMajor(3, 2), BNNSDataLayoutColumnMajorMatrix, {3, 2}, {}, 6);
  expect_shape(Shape::matrixFirstMajor(3, 2, {1, 4}), BNNSDataLayout2DFirstMajor, {3, 2}, {1, 4}, 12);
  expect_shape(Shape::matrixLastMajor(3, 2, {1, 4}), BNNSDataLayout2DLastMajor, {3, 2}, {1, 4}, 8);
  expect_shape(Shape::imageCHW(4, 3, 2), BNNSDataLayoutImageCHW, {4, 3, 2}, {}, 24);
  expect_shape(Shape::tensor3DFirstMajor(4, 3, 2, {1, 2, 7}), BNNSDataLayout3DFirstMajor, {4, 3, 2}, {1, 2, 7}, 28);
  expect_shape(Shape::tensor3DLastMajor(4, 3, 2), BNNSDataLayout3DLastMajor, {4, 3, 2}, {}, 24);
  expect_shape(Shape::tensor3DNSE(4, 3, 2), BNNSDataLayoutNSE, {4, 3, 2}, {}, 24);
  expect_shape(Shape::tensor3DSNE(4, 3, 2), BNNSDataLayoutSNE, {4, 3, 2}, {}, 24);
  expect_shape(Shape::convolutionWeightsOIHW(3, 3, 2, 4), BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 2, 4}, {}, 72);
  expect_shape(Shape::tensor4DFirstMajor({2, 3, 4, 5}), BNNSDataLayout4DFirstMajor, {2, 3, 4, 5}, {}, 120);
  expect_shape(Shape::tensor4DLastMajor({2, 3, 4, 5}), BNNSDataLayout4DLastMajor, {2, 3, 4, 5}, {}, 120);
  expect_shape(Shape::tensor5DFirstMajor({2, 1, 1, 1, 3}), BNNSDataLayout5DFirstMajor, {2, 1, 1, 1, 3}, {}, 6);
  expect_shape(Shape::tensor5DLastMajor({2, 1, 1, 1, 3}), BNNSDataLayout5DLastMajor, {2, 1, 1, 1, 3}, {}, 6);
  expect_shape(Shape::tensor6DFirstMajor({2, 1, 1, 1, 1, 3}), BNNSDataLayout6DFirstMajor, {2, 1, 1, 1, 1, 3}, {}, 6);
  expect_shape(Shape::tensor6DLastMajor({2, 1, 1, 1, 1, 3}), BNNSDataLayout6DLastMajor, {2, 1, 1, 1, 1, 3}, {}, 6);
  expect_shape(Shape::tensor7DFirstMajor({2, 1, 1, 1, 1, 1, 3}), BNNSDataLayout7DFirstMajor, {2, 1, 1, 1, 1, 1, 3}, {},
               6);
  expect_shape(Shape::tensor7DLastMajor({2, 1, 1, 1, 1, 1, 3}), BNNSDataLayout7DLastMajor, {2, 1, 1, 1, 1, 1, 3}, {},
               6);
  expect_shape(Shape::tensor8DFirstMajor({2, 1, 1, 1, 1, 1, 1, 3}), BNNSDataLayout8DFirstMajor,
               {2, 1, 1, 1, 1, 1, 1, 3}, {}, 6);
  expect_shape(Shape::tensor8DLastMajor({2, 1, 1, 1, 1, 1, 1, 3}), BNNSDataLayout8DLastMajor, {2, 1, 1, 1, 1, 1, 1, 3},
               {}, 6);
  expect_shape({7}, BNNSDataLayoutVector, {7}, {}, 7);
  expect_shape({7, 2}, BNNSDataLayout2DFirstMajor, {7, 2}, {}, 14);
  expect_shape({1, 2, 3, 4, 5, 6, 7, 8}, BNNSDataLayout8DFirstMajor, {1, 2, 3, 4, 5, 6, 7, 8}, {}, 40320);
}

// The library counts bytes by itself; ours must agree for gaps and for every layout.
TEST(OverlayShape, MemoryIsWhatTheLibraryCounts) {
  const Shape shapes[] = {Shape::vector(5, 3),
                          Shape::matrixRowMajor(3, 2, {2, 9}),
                          Shape::matrixFirstMajor(3, 2, {2, 9}),
                          Shape::imageCHW(4, 3, 2, {1, 5, 20}),
                          Shape::tensor3DFirstMajor(4, 3, 2, {1, 5, 20}),
                          Shape(DataLayout::tensor3DMultiheadDHK, std::array<std::size_t, 3>{4, 3, 2}),
                          Shape(DataLayout::convolutionWeightsIOHrWr, std::array<std::size_t, 4>{3, 2, 4, 5}),
                          Shape(DataLayout::convolutionWeightsOIHWPack32, std::array<std::size_t, 4>{3, 2, 4, 33})};
  for (const Shape& s : shapes) {
    float one = 0;
    Desc d = s.describe(BNNSDataTypeFloat32);
    d.data = &one;
    EXPECT_EQ(s.elementCount() * sizeof(float), BNNSNDArrayGetDataSize(&d)) << d.layout;
  }
}

TEST(OverlayShape, RefusesWhatIsNoShape) {
  EXPECT_TRUE(refuses(kData, {"Shape", "got 0"}, [] { Shape({}); }));
  EXPECT_TRUE(refuses(kData, {"got 9"}, [] { Shape({1, 2, 3, 4, 5, 6, 7, 8, 9}); }));
  const std::size_t two[] = {2, 3}, one[] = {1};
  EXPECT_TRUE(refuses(kData, {"layout has 3 sizes, got 2"}, [&] { Shape(two, DataLayout::imageCHW); }));
  EXPECT_TRUE(refuses(kData, {"expected 2 strides, got 1"}, [&] { Shape(two, {}, one); }));
  const std::size_t huge = static_cast<std::size_t>(-1) / 2;
  EXPECT_TRUE(refuses(kData, {"size_t"}, [&] { Shape::matrixRowMajor(huge, 3); }));
  EXPECT_TRUE(refuses(kData, {"size_t"}, [&] { NDArray::uninitialized<float>(Shape::vector(huge)); }));
}

TEST(OverlayArray, HoldsWhatItIsMadeFrom) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  NDArray a = NDArray::from(values, Shape::vector(3), 2);
  EXPECT_EQ(a.makeArray<float>(), values);
  EXPECT_EQ(static_cast<const Desc&>(a).size[0], 3u);
  EXPECT_EQ(a.dataSize(), 12u);
  EXPECT_EQ(a.shape().batchStride(), 3u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(static_cast<const Desc&>(a).data) % 64, 0u);
  EXPECT_EQ(makeArray<float>(a, 2), values);
  EXPECT_EQ(makeArray<float>(a), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(NDArray::from(std::list<int>{7, 8}, {2}).makeArray<int>(), (std::vector<int>{7, 8}));
  EXPECT_EQ(NDArray::from({true, false}, {2}).span<bool>()[0], true);
  EXPECT_EQ(NDArray::repeating<std::uint8_t>(9, {2, 2}).makeArray<std::uint8_t>(), (std::vector<std::uint8_t>(4, 9)));
  EXPECT_EQ(a.accumulating().flags, BNNSNDArrayFlagBackpropAccumulate);
  EXPECT_EQ(static_cast<const Desc&>(a).flags, BNNSNDArrayFlagBackpropSet);
  EXPECT_EQ(a.flat().size[0], 6u);
  EXPECT_EQ(descriptor<float>({4}).data, nullptr);
  EXPECT_EQ(descriptor(BNNSDataTypeInt8, {4}).data_type, BNNSDataTypeInt8);
}

TEST(OverlayArray, DataTypes) {
  EXPECT_EQ(DataTypeOf<float>::value, BNNSDataTypeFloat32);
  EXPECT_EQ(DataTypeOf<Float16>::value, BNNSDataTypeFloat16);
  EXPECT_EQ(DataTypeOf<BFloat16>::value, BNNSDataTypeBFloat16);
  EXPECT_EQ(DataTypeOf<std::int8_t>::value, BNNSDataTypeInt8);
  EXPECT_EQ(DataTypeOf<std::int16_t>::value, BNNSDataTypeInt16);
  EXPECT_EQ(DataTypeOf<std::int32_t>::value, BNNSDataTypeInt32);
  EXPECT_EQ(DataTypeOf<std::int64_t>::value, BNNSDataTypeInt64);
  EXPECT_EQ(DataTypeOf<std::uint8_t>::value, BNNSDataTypeUInt8);
  EXPECT_EQ(DataTypeOf<std::uint16_t>::value, BNNSDataTypeUInt16);
  EXPECT_EQ(DataTypeOf<std::uint32_t>::value, BNNSDataTypeUInt32);
  EXPECT_EQ(DataTypeOf<std::uint64_t>::value, BNNSDataTypeUInt64);
  EXPECT_EQ(DataTypeOf<bool>::value, BNNSDataTypeBoolean);
  static_assert(!Scalar<double> && !Scalar<const float> && !Scalar<void*>);
}

// The half types convert as the library does, for every 16-bit pattern and around every rounding boundary.
template <class Half>
void expect_conversions() {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half h;
    h.bits = static_cast<std::uint16_t>(bits);
    const float f = static_cast<float>(h);
    if (f != f) continue;  // NaN payloads are not promised
    const float up = std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) + 1);
    for (float v : {f, up, f * 1.0004883f, f * 1.0004884f, f * 1.00390625f}) {
      if (v == v) values.push_back(v);
    }
  }
  const NDArray wide = NDArray::from(values, {values.size()});
  NDArray narrow = NDArray::uninitialized<Half>({values.size()}), back = output({values.size()}, 1);
  copy(wide, narrow);
  copy(narrow, back);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(Half(values[i]).bits, narrow.template span<Half>()[i].bits) << values[i];
    ASSERT_EQ(static_cast<float>(narrow.template span<Half>()[i]), back.span<float>()[i]) << values[i];
  }
  EXPECT_NE(static_cast<float>(Half(NAN)), static_cast<float>(Half(NAN)));
}
TEST(OverlayArray, Float16ConvertsAsTheLibrary) {
  expect_conversions<Float16>();
}
TEST(OverlayArray, BFloat16ConvertsAsTheLibrary) {
  expect_conversions<BFloat16>();
}

TEST(OverlayArray, RefusesMemoryThatIsTooSmall) {
  std::vector<float> v(11);
  EXPECT_TRUE(refuses(kData, {"48 bytes", "44"}, [&] { NDArray::view<float>(v, Shape::imageCHW(2, 2, 3)); }));
  EXPECT_TRUE(refuses(kData, {"bytes"}, [&] { NDArray::view<float>(v, Shape::vector(4), 3); }));
  EXPECT_TRUE(refuses(kData, {"bytes"}, [&] { NDArray::inputView<float>(v, Shape::vector(2, 11)); }));
  EXPECT_NO_THROW(NDArray::view<float>(v, Shape::vector(2, 10)));  // the last element is the last of the memory
  EXPECT_TRUE(refuses(kData, {"12 elements, got 11"}, [&] { NDArray::from(v, {12}); }));
  EXPECT_TRUE(refuses(kData, {"10 elements, got 11"}, [&] { NDArray::from(v, {10}); }));
  EXPECT_TRUE(refuses(kData, {"whole number of bytes"}, [] { NDArray::uninitialized(BNNSDataTypeInt4, {12}); }));
  std::array<std::byte, 8> raw{};
  EXPECT_TRUE(refuses(kData, {"16 bytes", "8"}, [&] { NDArray::view(raw, BNNSDataTypeFloat32, {4}); }));
  EXPECT_EQ(NDArray::view(raw, BNNSDataTypeFloat16, {4}).data, raw.data());
}

TEST(OverlayArray, RefusesTheWrongTypeAndUseAfterMove) {
  NDArray a = NDArray::from({1.0f, 2.0f}, {2});
  EXPECT_TRUE(refuses(kData, {"another type"}, [&] { a.span<int>(); }));
  EXPECT_TRUE(refuses(kData, {"another type"}, [&] { makeArray<int>(a); }));
  NDArray b = std::move(a);
  EXPECT_EQ(b.span<float>()[1], 2.0f);
  EXPECT_TRUE(refuses(kData, {"moved from"}, [&] { a.span<float>(); }));                    // NOLINT: on purpose
  EXPECT_TRUE(refuses(kData, {"moved from"}, [&] { a.makeArray<float>(); }));               // NOLINT
  EXPECT_TRUE(refuses(kData, {"moved from"}, [&] { (void)static_cast<const Desc&>(a); }));  // NOLINT
  EXPECT_TRUE(refuses(kData, {"moved from"}, [&] { (void)a.accumulating(); }));             // NOLINT
  EXPECT_TRUE(refuses(kData, {"moved from"}, [&] { (void)a.flat(); }));                     // NOLINT
  EXPECT_TRUE(refuses(kData, {"moved from"}, [&] { (void)OptDesc(a); }));                   // NOLINT: not "no bias"
  a = std::move(b);
  EXPECT_EQ(a.span<float>()[0], 1.0f);
  static_assert(!std::is_copy_constructible_v<NDArray> && std::is_nothrow_move_constructible_v<NDArray>);
  static_assert(!std::is_convertible_v<NDArray, Desc>);  // a temporary would leave a dangling descriptor
}

TEST(OverlayRandom, DrawsWhatTheLibraryDraws) {
  RandomGenerator g(RandomGeneratorMethod::aesCtr, 7);
  const NDArray u = NDArray::uniform(g, -2.0f, 3.0f, {50}, 2), n = NDArray::normal(g, 1.0f, 2.0f, {50}, 2),
                i = NDArray::uniform(g, -3, 3, {400});
  BNNSRandomGenerator c = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 7, nullptr);
  NDArray cu = output({100}, 1), cn = output({100}, 1), ci = NDArray::repeating(0, {400});
  Desc du = cu, dn = cn, di = ci;
  ASSERT_EQ(BNNSRandomFillUniformFloat(c, &du, -2, 3), 0);
  ASSERT_EQ(BNNSRandomFillNormalFloat(c, &dn, 1, 2), 0);
  ASSERT_EQ(BNNSRandomFillUniformInt(c, &di, -3, 4), 0);
  BNNSDestroyRandomGenerator(c);
  EXPECT_TRUE(same(u, cu));
  EXPECT_TRUE(same(n, cn));
  EXPECT_EQ(i.makeArray<int>(), ci.makeArray<int>());
  const auto v = i.makeArray<int>();
  EXPECT_EQ(*std::min_element(v.begin(), v.end()), -3);
  EXPECT_EQ(*std::max_element(v.begin(), v.end()), 3);  // Swift's range is closed
}

TEST(OverlayRandom, StateAndMove) {
  RandomGenerator g({.seed = 3});
  const RandomGeneratorState state = g.state();
  const auto first = NDArray::uniform(g, 0.0f, 1.0f, {8}).makeArray<float>();
  RandomGenerator h = std::move(g);
  h.setState(state);
  EXPECT_EQ(NDArray::uniform(h, 0.0f, 1.0f, {8}).makeArray<float>(), first);
  EXPECT_TRUE(refuses(kApply, {"moved from"}, [&] { g.state(); }));  // NOLINT: on purpose
  EXPECT_TRUE(refuses(kApply, {"BNNSRandomGeneratorSetState"},
                      [&] { h.setState(RandomGeneratorState(std::vector<std::byte>(3))); }));
  EXPECT_TRUE(refuses(kApply, {"largest"}, [&] { NDArray::uniform(h, std::int64_t{0}, INT64_MAX, {2}); }));
  EXPECT_TRUE(refuses(kCreate, {"BNNSCreateRandomGenerator"},
                      [] { RandomGenerator bad(static_cast<RandomGeneratorMethod>(9)); }));
  EXPECT_FALSE(make<RandomGenerator>({.method = static_cast<RandomGeneratorMethod>(9)}));
  const NDArray p = NDArray::from({0.0f, 1.0f, 0.0f}, {1, 3});
  NDArray drawn = output({1}, 1);
  h.fillCategorical(drawn, p);
  EXPECT_EQ(drawn.span<float>()[0], 1.0f);
}

TEST(OverlayRandom, StandardGenerators) {
  std::mt19937 narrow(1);
  std::mt19937_64 wide(1);
  const auto ints = NDArray::random(-2, 2, narrow, {500}).makeArray<int>();
  EXPECT_EQ(*std::min_element(ints.begin(), ints.end()), -2);
  EXPECT_EQ(*std::max_element(ints.begin(), ints.end()), 2);
  const auto all = NDArray::random(INT64_MIN, INT64_MAX, wide, {100}).makeArray<std::int64_t>();
  EXPECT_LT(*std::min_element(all.begin(), all.end()), 0);
  const auto floats = NDArray::random(2.0f, 3.0f, wide, {500}).makeArray<float>();
  for (float f : floats) ASSERT_TRUE(f >= 2 && f <= 3) << f;
  EXPECT_TRUE(refuses(kData, {"NDArray::random", "above"}, [&] { NDArray::random(5, 2, narrow, {4}); }));
  EXPECT_TRUE(refuses(kData, {"NDArray::random", "above"}, [&] { NDArray::random(1.0f, -1.0f, narrow, {4}); }));
  EXPECT_NO_THROW(NDArray::random(Float16(1.0f), Float16(1.0f), narrow, {4}));
  const auto own = NDArray::random(0.0f, 1.0f, {16});
  EXPECT_NE(own.makeArray<float>(), NDArray::random(0.0f, 1.0f, {16}).makeArray<float>());
}

}  // namespace
}  // namespace overlay
