// Scale and shift: a hand-worked example, the gradient of the reference, layouts and types against the reference, a
// property, refusals. scale_shift_implementations_test.cc has the kernels.

#include "examples/operator_skeleton/scale_shift.h"

#include <numeric>

#include "examples/operator_skeleton/scale_shift_testing.h"

namespace bnns::testing {
namespace {

// ---- 1. the reference --------------------------------------------------------------------------------------------

// 2 samples, 2 channels of 2 elements; a = 2, -1 and b = 10, 0.
//   x = (1 2 | 3 4), (5 6 | 7 8)      y = (12 14 | -3 -4), (20 22 | -7 -8)
//   dy = (1 0 | 1 1), (0 2 | 1 -1)    dx = (2 0 | -1 -1), (0 4 | -1 1)
//   da = 1*1 + 6*2 = 13 and 3 + 4 + 7 - 8 = 6,  db = 1 + 2 = 3 and 1 + 1 + 1 - 1 = 2
TEST(ScaleShift, ReferenceByHand) {
  const std::vector<double> a = {2, -1}, b = {10, 0}, x = {1, 2, 3, 4, 5, 6, 7, 8}, dy = {1, 0, 1, 1, 0, 2, 1, -1};
  EXPECT_EQ(ref::scale_shift(2, 2, 2, a, b, x), (std::vector<double>{12, 14, -3, -4, 20, 22, -7, -8}));
  const auto g = ref::scale_shift_backward(2, 2, 2, a, x, dy);
  EXPECT_EQ(g.dx, (std::vector<double>{2, 0, -1, -1, 0, 4, -1, 1}));
  EXPECT_EQ(g.da, (std::vector<double>{13, 6}));
  EXPECT_EQ(g.db, (std::vector<double>{3, 2}));
}

// ---- 2. the gradient ---------------------------------------------------------------------------------------------

TEST(ScaleShift, ReferenceGradient) {
  const size_t batch = 3, channels = 4, plane = 5, count = batch * channels * plane;
  Random random(1);
  const auto x = random_normals(&random, count), a = random_normals(&random, channels),
             b = random_normals(&random, channels), dy = random_normals(&random, count);
  const auto loss = [&](const std::vector<double>& A, const std::vector<double>& B, const std::vector<double>& X) {
    const auto y = ref::scale_shift(batch, channels, plane, A, B, X);
    return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
  };
  const auto g = ref::scale_shift_backward(batch, channels, plane, a, x, dy);
  EXPECT_LE(gradient_error(g.dx, central_differences(x, [&](auto& at) { return loss(a, b, at); })), 1e-7);
  EXPECT_LE(gradient_error(g.da, central_differences(a, [&](auto& at) { return loss(at, b, x); })), 1e-7);
  EXPECT_LE(gradient_error(g.db, central_differences(b, [&](auto& at) { return loss(a, at, x); })), 1e-7);
}

// ---- 3. against the reference: layouts, strides, types, axes -------------------------------------------------------

// Where the reference has element `at`: channels outside, the other axes inside.
size_t position(const Coordinates& at, const std::vector<size_t>& size, size_t axis) {
  size_t result = at[axis];
  for (size_t k = 0; k < size.size(); ++k) result = k == axis ? result : result * size[k] + at[k];
  return result;
}
std::vector<double> by_channel(const LayoutTensor& t, size_t axis) {
  std::vector<double> values(t.count());
  for_each_coordinate(t.size(), [&](const Coordinates& at) { values[position(at, t.size(), axis)] = t.get(at); });
  return values;
}

struct Form {
  BNNSDataLayout in, out;
  BNNSDataType type, parameter_type;
  size_t axis, unit, pad;
  bool accumulate;
};

// Forward and backward of one sample. Small integers, which every type holds: no rounding, no tolerance.
void expect_reference(const Form& form, uint64_t seed) {
  const std::vector<size_t> size = {5, 3, 4};
  const size_t channels = size[form.axis], plane = 60 / channels;
  LayoutTensor x(form.in, size, form.type, form.unit, form.pad), y(form.out, size, BNNSDataTypeFloat32, 1, form.pad);
  LayoutTensor dy(form.out, size, form.type, 1, form.pad), dx(form.in, size, BNNSDataTypeFloat32, form.unit, 0);
  const auto parameter = [&](size_t unit) {
    return LayoutTensor(BNNSDataLayoutVector, {channels}, form.parameter_type, unit);
  };
  LayoutTensor a = parameter(form.unit), b = parameter(1), da = parameter(form.unit), db = parameter(1);
  Random random(seed);
  for (LayoutTensor* t : {&x, &y, &dy, &dx, &a, &b, &da, &db}) fill(t, random_integers(&random, t->count()));
  const auto A = read(a), B = read(b), X = by_channel(x, form.axis), DY = by_channel(dy, form.axis);
  const auto y_want = ref::scale_shift(1, channels, plane, A, B, X);
  auto g = ref::scale_shift_backward(1, channels, plane, A, X, DY);
  const auto add = [&](std::vector<double>& to, const std::vector<double>& before) {
    for (size_t i = 0; i < to.size() && form.accumulate; ++i) to[i] += before[i];
  };
  add(g.dx, by_channel(dx, form.axis)), add(g.da, read(da)), add(g.db, read(db));

  BNNSExtLayerParametersScaleShift layer = {};
  layer.i_desc = x.descriptor(), layer.o_desc = y.descriptor();
  layer.scale = a.descriptor(), layer.shift = b.descriptor(), layer.axis = form.axis;
  const auto filter = own(BNNSExtFilterCreateLayerScaleShift(&layer, nullptr));
  BNNSNDArrayDescriptor dx_desc = dx.descriptor(), dy_desc = dy.descriptor(), da_desc = da.descriptor(),
                        db_desc = db.descriptor();
  for (BNNSNDArrayDescriptor* d : {&dx_desc, &da_desc, &db_desc}) {
    d->flags = form.accumulate ? BNNSNDArrayFlagBackpropAccumulate : BNNSNDArrayFlagBackpropSet;
  }
  ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0, &da_desc,
                                         &db_desc),
            0)
      << BNNSExtLastError();
  EXPECT_EQ(by_channel(y, form.axis), y_want);
  EXPECT_EQ(by_channel(dx, form.axis), g.dx);
  EXPECT_EQ(read(da), g.da);
  EXPECT_EQ(read(db), g.db);
  for (LayoutTensor* t : {&x, &y, &dy, &dx, &a, &b, &da, &db}) EXPECT_TRUE(t->gaps_untouched());
}

TEST(ScaleShift, LayoutsStridesTypes) {
  const BNNSDataLayout layouts[] = {BNNSDataLayoutImageCHW, BNNSDataLayout3DFirstMajor};
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  uint64_t seed = 0;
  for_each_isa([&] {
    for (size_t i = 0; i < 2 * 2 * 3 * 3 * 2; ++i) {
      const size_t unit = 1 + i / 2 % 2;
      SCOPED_TRACE("form " + std::to_string(i));
      expect_reference({layouts[i % 2], layouts[i / 2 % 2], types[i / 4 % 3], types[i / 8 % 3], i / 12 % 3, unit, i % 3,
                        i / 36 == 1},
                       ++seed);
    }
  });
}

// A gradient as a vector where the layer has an image: existing programs pass it.
TEST(ScaleShift, VectorsAsGradients) {
  ScaleShiftCase one{2, 4, 2, 3, {}, {}, {}, {}};
  one.fill_integers(3);
  const auto want = one.run(1);
  const BNNSExtLayerParametersScaleShift layer = one.layer(one.a.data(), one.b.data());
  const auto filter = own(BNNSExtFilterCreateLayerScaleShift(&layer, nullptr));
  std::vector<float> dx(one.x.size());
  BNNSNDArrayDescriptor dx_desc = vector_descriptor(24, dx.data()), dy_desc = vector_descriptor(24, one.dy.data());
  ASSERT_EQ(apply_backward(filter, 2, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
  EXPECT_TRUE(same_bits(dx, want.dx));
  // In place: dx where dy was.
  ASSERT_EQ(apply_backward(filter, 2, &dy_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
  EXPECT_TRUE(same_bits(one.dy, want.dx));
}

// ---- 4. a property -----------------------------------------------------------------------------------------------

// y is linear in a and in x, so <y - b, dy> = <x, dx> = <a, da>, and <b, db> is what b adds to <y, dy>. Exact on
// integers.
TEST(ScaleShift, AdjointIdentity) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    ScaleShiftCase one{
        1 + random.below(4), 1 + random.below(20), 1 + random.below(5), 1 + random.below(6), {}, {}, {}, {}};
    one.fill_integers(random.next());
    const auto r = one.run(1 + random.below(3));
    const auto dot = [](const std::vector<float>& u, const std::vector<float>& v) {
      return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
    };
    const double with_shift = dot(r.y, one.dy), of_shift = dot(one.b, r.db);
    ASSERT_EQ(with_shift - of_shift, dot(one.x, r.dx)) << "round " << round << ", " << one.text();
    ASSERT_EQ(with_shift - of_shift, dot(one.a, r.da)) << "round " << round << ", " << one.text();
  }
}

// ---- wrong calls: the reason names operator, field, what came and what was expected
// -----------------------------------

TEST(ScaleShift, RefusedLayers) {
  float numbers[4] = {1, 1, 1, 1};
  const BNNSExtLayerParametersScaleShift good = ScaleShiftCase{1, 4, 4, 3, {}, {}, {}, {}}.layer(numbers, nullptr);
  ASSERT_NE(own(BNNSExtFilterCreateLayerScaleShift(&good, nullptr)), nullptr);
  const auto refuses = [&](auto change, std::initializer_list<const char*> words) {
    BNNSExtLayerParametersScaleShift layer = good;
    change(layer);
    EXPECT_EQ(BNNSExtFilterCreateLayerScaleShift(&layer, nullptr), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  EXPECT_EQ(BNNSExtFilterCreateLayerScaleShift(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"BNNSExtFilterCreateLayerScaleShift: scale_shift: layer_params is NULL"}));
  refuses([](auto& l) { l.axis = 3; }, {"axis is 3", "expected less than", "3"});
  refuses([](auto& l) { l.o_desc.size[1] = 5; }, {"o_desc is f32 4x5x3", "sizes of i_desc", "4x4x3"});
  refuses([](auto& l) { l.scale.size[0] = 4; }, {"scale is f32 4", "expected a vector of 3"});
  refuses([](auto& l) { l.scale.data = nullptr; }, {"scale", "NULL"});
  refuses([&](auto& l) { l.shift = l.scale, l.shift.size[0] = 2; }, {"shift is f32 2", "expected a vector of 3"});
  refuses([](auto& l) { l.i_desc.data_type = BNNSDataTypeInt8; }, {"i_desc has type i8", "f32, f16 or bf16"});
  refuses([](auto& l) { l.o_desc.layout = BNNSDataLayout(12345); }, {"o_desc.layout"});
}

TEST(ScaleShift, RefusedCalls) {
  ScaleShiftCase one{2, 4, 1, 3, {}, {}, {}, {}};
  one.fill_integers(1);
  const BNNSExtLayerParametersScaleShift layer = one.layer(one.a.data(), nullptr);
  const auto filter = own(BNNSExtFilterCreateLayerScaleShift(&layer, nullptr));
  std::vector<float> y(24, poison()), dx(24, poison()), da(3, poison());
  BNNSNDArrayDescriptor dx_desc = layer.i_desc, dy_desc = layer.o_desc, da_desc = vector_descriptor(3, da.data());
  dx_desc.data = dx.data(), dy_desc.data = one.dy.data();
  const auto forward = [&](const float* in, size_t in_stride, float* out, size_t out_stride) {
    EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 2, in, in_stride, out, out_stride), -1);
  };
  const auto backward = [&](const float* in, BNNSNDArrayDescriptor* in_delta, BNNSNDArrayDescriptor* out_delta,
                            BNNSNDArrayDescriptor* weights_delta, BNNSNDArrayDescriptor* bias_delta) {
    EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 2, in, 0, in_delta, 0, nullptr, 0, out_delta, 0, weights_delta,
                                           bias_delta),
              -1);
  };
  forward(nullptr, 0, y.data(), 0);
  EXPECT_TRUE(refused_because({"scale_shift: in is NULL"}));
  forward(one.x.data(), 0, y.data(), 5);
  EXPECT_TRUE(refused_because({"out_stride is 5"}));
  forward(one.x.data(), 0, one.x.data() + 1, 0);
  EXPECT_TRUE(refused_because({"out and in overlap"}));
  backward(nullptr, &dx_desc, &dy_desc, &da_desc, nullptr);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  backward(one.x.data(), &dx_desc, nullptr, nullptr, nullptr);
  EXPECT_TRUE(refused_because({"out_delta is NULL"}));
  backward(one.x.data(), &dx_desc, &dy_desc, nullptr, &da_desc);
  EXPECT_TRUE(refused_because({"bias_delta is given", "no shift"}));
  BNNSNDArrayDescriptor wrong = vector_descriptor(4, da.data());
  backward(one.x.data(), &dx_desc, &dy_desc, &wrong, nullptr);
  EXPECT_TRUE(refused_because({"weights_delta has 4 elements, expected 3"}));
  wrong = vector_descriptor(3, dx.data() + 2);
  backward(one.x.data(), &dx_desc, &dy_desc, &wrong, nullptr);
  EXPECT_TRUE(refused_because({"in_delta and weights_delta overlap"}));
  for (const std::vector<float>* v : {&y, &dx, &da}) {  // nothing was written
    EXPECT_TRUE(std::all_of(v->begin(), v->end(), is_poison));
  }
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 0, nullptr, 0, nullptr, 0), 0);  // batch 0: nothing is looked at
  EXPECT_EQ(apply_backward(filter, 0, nullptr, 0, nullptr, 0), 0);
}

}  // namespace
}  // namespace bnns::testing
