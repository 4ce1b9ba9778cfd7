// Permute: documented numbers, the reference on every instruction set, thread count, layout and type, properties,
// refusals.

#include "src/ops/permute/permute.h"

#include <algorithm>
#include <numeric>

#include "src/ops/permute/permute_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;

struct Layer {
  BNNSLayerParametersPermute parameters;
  BNNSFilterParameters options = {};
  Layer(const BNNSNDArrayDescriptor& in, const BNNSNDArrayDescriptor& out, const Sizes& permutation) {
    std::memset(&parameters, 0, sizeof parameters);
    parameters.i_desc = in;
    parameters.o_desc = out;
    std::copy(permutation.begin(), permutation.end(), parameters.permutation);
  }
  FilterHandle make() const { return own(BNNSFilterCreateLayerPermute(&parameters, &options)); }
};

Sizes permuted(const Sizes& size, const Sizes& permutation) {
  Sizes out;
  for (size_t axis : permutation) out.push_back(size[axis]);
  return out;
}

// ---- 1. documented ----------------------------------------------------------------------------------------------

TEST(Permute, DocumentedBackward) {
  // 2DFirstMajor {2, 3}, axes swapped: x = a b c / d e f, y = a d / b e / c f. dy 1..6 belongs to a d b e c f.
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6], dy[6] = {1, 2, 3, 4, 5, 6}, dx[6];
  const Layer layer(descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, nullptr),
                    descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, nullptr), {1, 0});
  const auto filter = layer.make();
  ASSERT_EQ(BNNSFilterApply(filter.get(), x, y), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  auto dx_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, dx);
  auto dy_desc = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, dy);
  for (bool generic : {false, true}) {
    std::fill_n(dx, 6, poison());
    ASSERT_EQ(generic ? apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0)
                      : BNNSPermuteFilterApplyBackwardBatch(filter.get(), 1, &dx_desc, 0, &dy_desc, 0),
              0)
        << BNNSExtLastError();
    EXPECT_EQ(std::vector<float>(dx, dx + 6), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  }
}

TEST(Permute, ReferenceGradient) {
  const Sizes size = {2, 3, 4}, permutation = {2, 0, 1};
  Random random(1);
  const auto x = random_normals(&random, 24), g = random_normals(&random, 24);
  const auto loss = [&](const std::vector<double>& at) {
    const auto y = ref::permute(size, permutation, at);
    return std::inner_product(y.begin(), y.end(), g.begin(), 0.0);
  };
  EXPECT_LE(gradient_error(ref::permute_backward(size, permutation, g), central_differences(x, loss)), 1e-7);
}

// ---- 2. against the reference -----------------------------------------------------------------------------------

// Layouts of both sides, strides, types; guard pages, gaps, forward and backward.
TEST(Permute, BC15_BC33_LayoutsStridesTypes) {
  struct Case {
    BNNSDataLayout from, to;
    Sizes size, permutation;
  };
  const Case cases[] = {
      {BNNSDataLayoutVector, BNNSDataLayout1DFirstMajor, {37}, {0}},
      {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix, {33, 18}, {1, 0}},
      {BNNSDataLayoutRowMajorMatrix, BNNSDataLayout2DFirstMajor, {19, 35}, {1, 0}},
      {BNNSDataLayoutColumnMajorMatrix, BNNSDataLayout2DLastMajor, {5, 70}, {0, 1}},
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {17, 9, 3}, {2, 0, 1}},
      {BNNSDataLayoutImageCHW, BNNSDataLayout3DFirstMajor, {9, 20, 4}, {0, 2, 1}},
      {BNNSDataLayoutMHA_DHK, BNNSDataLayoutSNE, {6, 5, 7}, {1, 2, 0}},
      {BNNSDataLayout4DFirstMajor, BNNSDataLayout4DLastMajor, {3, 18, 2, 17}, {3, 1, 0, 2}},
      {BNNSDataLayoutConvolutionWeightsOIHW, BNNSDataLayout4DLastMajor, {3, 3, 16, 8}, {3, 2, 1, 0}},
      {BNNSDataLayout8DLastMajor, BNNSDataLayout8DFirstMajor, {2, 1, 2, 3, 1, 2, 2, 3}, {7, 2, 5, 0, 1, 6, 3, 4}},
  };
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16, BNNSDataTypeInt8,
                                BNNSDataTypeInt64,   BNNSDataTypeUInt16,  BNNSDataTypeBoolean};
  for_each_isa([&] {
    for (const Case& c : cases) {
      for (BNNSDataType type : types) {
        for (unsigned gaps = 0; gaps < 4; ++gaps) {
          SCOPED_TRACE("layouts " + std::to_string(c.from) + " " + std::to_string(c.to) + " type " +
                       std::to_string(type) + " gaps " + std::to_string(gaps));
          LayoutTensor x(c.from, c.size, type, gaps & 1 ? 2 : 1, gaps & 1 ? 3 : 0);
          LayoutTensor y(c.to, permuted(c.size, c.permutation), type, gaps & 2 ? 3 : 1, gaps & 2 ? 1 : 0);
          std::vector<double> numbers(x.count());
          for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = double(i % (type == BNNSDataTypeBoolean ? 2 : 120));
          fill(&x, numbers);
          const Layer layer(x.descriptor(), y.descriptor(), c.permutation);
          const auto filter = layer.make();
          const auto before = x.snapshot();
          ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
          ASSERT_EQ(x.snapshot(), before);
          ASSERT_TRUE(y.gaps_untouched());
          ASSERT_EQ(read(y), ref::permute(c.size, c.permutation, numbers));
          if (!is_float(type)) continue;
          LayoutTensor dx(c.from, c.size, type, gaps & 2 ? 2 : 1, gaps & 1);
          auto dx_desc = dx.descriptor(), dy_desc = y.descriptor();
          ASSERT_EQ(apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
          ASSERT_TRUE(dx.gaps_untouched());
          ASSERT_EQ(read(dx), numbers);  // the inverse brings x back
        }
      }
    }
  });
}

// All permutations of four axes, both orders, a batch with a gap between samples.
TEST(Permute, BC18_EveryPermutation) {
  const Sizes size = {3, 18, 5, 20};
  const size_t count = count_of(size), batch = 2, x_stride = count + 3, y_stride = count + 5;
  Random random(2);
  const auto x = random.normals(batch * x_stride);
  for_each_isa([&] {
    for (bool first_major : {false, true}) {
      Sizes permutation = {0, 1, 2, 3};
      do {
        const auto layout = generic_layout(4, first_major);
        const Layer layer(descriptor(layout, size, nullptr), descriptor(layout, permuted(size, permutation), nullptr),
                          permutation);
        Guarded<float> from(x), to((batch - 1) * y_stride + count);
        std::fill_n(to.data(), to.size(), poison());
        ASSERT_EQ(BNNSFilterApplyBatch(layer.make().get(), batch, from.data(), x_stride, to.data(), y_stride), 0);
        // FirstMajor memory is size[0]-fastest memory with the axes turned round.
        Sizes turned = size, turned_permutation = permutation;
        if (first_major) {
          std::reverse(turned.begin(), turned.end());
          for (size_t k = 0; k < 4; ++k) turned_permutation[k] = 3 - permutation[3 - k];
        }
        for (size_t b = 0; b < batch; ++b) {
          const std::vector<double> sample(x.begin() + long(b * x_stride), x.begin() + long(b * x_stride + count));
          const auto want = ref::permute(turned, turned_permutation, sample);
          for (size_t i = 0; i < count; ++i) ASSERT_EQ(to[b * y_stride + i], want[i]);
        }
        for (size_t i = count; i < y_stride; ++i) ASSERT_TRUE(is_poison(to[i]));
      } while (std::next_permutation(permutation.begin(), permutation.end()));
    }
  });
}

TEST(Permute, BC53_SameBitsForAnyThreadCount) {
  const Sizes size = {61, 67, 35}, permutation = {2, 0, 1};
  const size_t count = count_of(size), batch = 3;
  Random random(3);
  const auto x = random.normals(batch * count);
  std::vector<float> want, want_dx;
  for (size_t threads : kThreadCounts) {
    Layer layer(descriptor(BNNSDataLayoutImageCHW, size, nullptr),
                descriptor(BNNSDataLayoutImageCHW, permuted(size, permutation), nullptr), permutation);
    layer.options.n_threads = threads;
    const auto filter = layer.make();
    std::vector<float> y(x.size(), poison()), dx(x.size(), 1);
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0);
    auto dx_desc = layer.parameters.i_desc, dy_desc = layer.parameters.o_desc;
    dx_desc.data = dx.data(), dy_desc.data = y.data();
    dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
    ASSERT_EQ(apply_backward(filter, batch, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(dx[i], 1 + x[i]);
    if (want.empty()) want = y, want_dx = dx;
    ASSERT_TRUE(same_bits(y, want) && same_bits(dx, want_dx)) << threads << " threads";
  }
}

// Gradients of other types and shapes than the layer: f16 to f32, a Vector for CHW, added to what is there.
TEST(Permute, BC14_GradientTypesAndVectors) {
  const Sizes size = {4, 3, 2}, permutation = {1, 2, 0};
  const Layer layer(descriptor(BNNSDataLayoutImageCHW, size, nullptr),
                    descriptor(BNNSDataLayoutImageCHW, permuted(size, permutation), nullptr), permutation);
  const auto filter = layer.make();
  Random random(4);
  const auto g = random_integers(&random, 24);
  const auto want = ref::permute_backward(size, permutation, g);
  LayoutTensor dy(BNNSDataLayoutVector, {24}, BNNSDataTypeFloat16, 2), dx(BNNSDataLayoutVector, {24});
  fill(&dy, g);
  fill(&dx, std::vector<double>(24, 10));
  auto dx_desc = dx.descriptor(), dy_desc = dy.descriptor();
  dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
  ASSERT_EQ(apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
  for (size_t i = 0; i < 24; ++i) ASSERT_EQ(dx.get({i}), 10 + want[i]);
  dx_desc.flags = BNNSNDArrayFlagBackpropSet;
  ASSERT_EQ(apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0), 0);
  ASSERT_EQ(read(dx), want);
  // The sizes of the layer in another layout: by coordinates, not by memory.
  LayoutTensor turned(BNNSDataLayout3DFirstMajor, size, BNNSDataTypeBFloat16);
  auto turned_desc = turned.descriptor();
  ASSERT_EQ(apply_backward(filter, 1, &turned_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
  ASSERT_EQ(read(turned), want);
}

// ---- 3. properties ----------------------------------------------------------------------------------------------

// Random ranks, shapes and permutations: <P x, g> = <x, P' g> exactly, and P' P is the identity.
TEST(Permute, AdjointIdentityOnRandomShapes) {
  Random random(5);
  for (int round = 0; round < 600; ++round) {
    const size_t rank = 1 + random.below(6);
    Sizes size(rank), permutation(rank);
    for (size_t& n : size) n = 1 + random.below(rank < 4 ? 40 : 6);
    std::iota(permutation.begin(), permutation.end(), 0);
    for (size_t k = rank; k > 1; --k) std::swap(permutation[k - 1], permutation[random.below(k)]);
    const auto from = generic_layout(rank, random.below(2)), to = generic_layout(rank, random.below(2));
    const size_t count = count_of(size), batch = 1 + random.below(3);
    const Layer layer(descriptor(from, size, nullptr), descriptor(to, permuted(size, permutation), nullptr),
                      permutation);
    const auto filter = layer.make();
    const auto x = random.integers(batch * count);
    auto g = random.integers(batch * count);
    std::vector<float> y(x.size()), dx(x.size());
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0);
    auto dx_desc = layer.parameters.i_desc, dy_desc = layer.parameters.o_desc;
    dx_desc.data = dx.data(), dy_desc.data = g.data();
    ASSERT_EQ(apply_backward(filter, batch, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
    double left = 0, right = 0;
    for (size_t i = 0; i < x.size(); ++i) left += double(y[i]) * g[i], right += double(x[i]) * dx[i];
    ASSERT_EQ(left, right) << "round " << round;
    dy_desc.data = y.data();
    ASSERT_EQ(apply_backward(filter, batch, &dx_desc, 0, &dy_desc, 0), 0);
    ASSERT_EQ(dx, x) << "round " << round;
  }
}

// ---- 4. refusals ------------------------------------------------------------------------------------------------

TEST(PermuteMisuse, BC34_BC35_CreationSaysWhy) {
  const auto refused = [](auto change, std::initializer_list<const char*> words) {
    Layer layer(descriptor(BNNSDataLayoutImageCHW, {2, 3, 4}, nullptr),
                descriptor(BNNSDataLayoutImageCHW, {3, 4, 2}, nullptr), {1, 2, 0});
    change(layer.parameters);
    EXPECT_EQ(BNNSFilterCreateLayerPermute(&layer.parameters, &layer.options), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  using P = BNNSLayerParametersPermute;
  refused([](P& p) { p.permutation[1] = 3; }, {"permute", "permutation[1] is 3, expected less than the rank 3"});
  refused([](P& p) { p.permutation[1] = SIZE_MAX; }, {"permutation[1]"});
  refused([](P& p) { p.permutation[2] = 1; }, {"permutation[2] is 1, which is there twice"});
  refused([](P& p) { p.o_desc.size[1] = 5; }, {"o_desc.size[1] is 5, expected 4 = i_desc.size[2]"});
  refused([](P& p) { p.o_desc.layout = BNNSDataLayoutVector; }, {"o_desc has rank 1, expected 3"});
  refused([](P& p) { p.o_desc.data_type = BNNSDataTypeFloat16; }, {"o_desc is f16", "f32"});
  refused([](P& p) { p.i_desc.data_type = p.o_desc.data_type = BNNSDataTypeInt4; }, {"i_desc has type i4"});
  refused([](P& p) { p.i_desc.size[0] = 0; }, {"i_desc.size[0] is 0"});
  refused([](P& p) { p.i_desc.size[0] = SIZE_MAX; }, {"i_desc"});
  refused([](P& p) { p.i_desc.layout = BNNSDataLayout(7); }, {"i_desc.layout"});
  refused(
      [](P& p) {
        p.i_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHrWr, {2, 2, 2, 2}, nullptr);
      },
      {"i_desc.layout", "rotated"});
  EXPECT_EQ(BNNSFilterCreateLayerPermute(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

TEST(PermuteMisuse, BC37_CallsSayWhyAndWriteNothing) {
  const Layer layer(descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, nullptr),
                    descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, nullptr), {1, 0});
  const auto filter = layer.make();
  std::vector<float> x(24, 1), y(24, poison());
  const auto refused = [](int status, std::initializer_list<const char*> words) {
    EXPECT_EQ(status, -1);
    EXPECT_TRUE(refused_because(words));
  };
  refused(BNNSFilterApply(filter.get(), nullptr, y.data()), {"in is NULL"});
  refused(BNNSFilterApply(filter.get(), x.data(), nullptr), {"out is NULL"});
  refused(BNNSFilterApply(filter.get(), y.data(), y.data()), {"out and in overlap"});
  refused(BNNSFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 5),
          {"out_stride is 5, expected 0 or at least 6"});
  refused(BNNSFilterApplyBatch(filter.get(), SIZE_MAX, x.data(), 0, y.data(), 0), {"do not fit in memory"});
  auto dx = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, y.data());
  auto dy = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, x.data());
  refused(BNNSPermuteFilterApplyBackwardBatch(filter.get(), 1, nullptr, 0, &dy, 0), {"in_delta is NULL"});
  refused(BNNSPermuteFilterApplyBackwardBatch(filter.get(), 1, &dx, 0, nullptr, 0), {"out_delta is NULL"});
  refused(BNNSPermuteFilterApplyBackwardBatch(nullptr, 1, &dx, 0, &dy, 0), {"filter is NULL"});
  refused(BNNSPermuteFilterApplyBackwardBatch(filter.get(), 2, &dx, 5, &dy, 0), {"in_delta_stride is 5"});
  refused(apply_backward(filter, 1, &dy, 0, &dy, 0), {"in_delta is f32 3x2, expected f32 2x3"});
  refused(apply_backward(filter, 1, &dx, 0, &dx, 0), {"out_delta is f32 2x3"});
  auto wrong = vector_descriptor(5, x.data());
  refused(apply_backward(filter, 1, &dx, 0, &wrong, 0), {"out_delta has 5 elements, expected 6"});
  wrong = dy;
  wrong.data = y.data() + 3;
  refused(apply_backward(filter, 1, &dx, 0, &wrong, 0), {"in_delta and out_delta overlap"});
  wrong = dx;
  wrong.data_type = BNNSDataTypeInt32;
  refused(apply_backward(filter, 1, &wrong, 0, &dy, 0), {"in_delta has type i32"});
  refused(BNNSFilterApplyBackwardBatch(filter.get(), 1, nullptr, 0, &dx, 0, nullptr, 0, &dy, 0, &dx, nullptr),
          {"weights_delta is given"});
  refused(BNNSFilterApplyBackwardBatch(filter.get(), 1, nullptr, 0, &dx, 0, nullptr, 0, &dy, 0, nullptr, &dx),
          {"bias_delta is given"});
  for (float v : y) EXPECT_TRUE(is_poison(v));
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 0, nullptr, 0, nullptr, 0), 0);  // BC38
  EXPECT_EQ(apply_backward(filter, 0, &dx, 0, &dy, 0), 0);
  EXPECT_EQ(apply_backward(filter, 1, nullptr, 0, &dy, 0), 0);
  for (float v : y) EXPECT_TRUE(is_poison(v));

  // An integer filter has no gradient.
  Layer integers = layer;
  integers.parameters.i_desc.data_type = integers.parameters.o_desc.data_type = BNNSDataTypeInt32;
  refused(apply_backward(integers.make(), 1, &dx, 0, &dy, 0), {"i_desc has type i32"});
}

TEST(PermuteMisuse, BC42_OneAllocation) {
  Layer layer(descriptor(BNNSDataLayoutImageCHW, {40, 30, 20}, nullptr),
              descriptor(BNNSDataLayoutImageCHW, {20, 40, 30}, nullptr), {2, 0, 1});
  layer.options = Accountant::options();
  Accountant::fail_at = 0;
  EXPECT_EQ(BNNSFilterCreateLayerPermute(&layer.parameters, &layer.options), nullptr);
  EXPECT_TRUE(refused_because({"out of memory"}));
  EXPECT_EQ(Accountant::live, 0);
  {
    const auto filter = layer.make();
    const int before = Accountant::requests;
    std::vector<float> x(24000, 1), y(24000);
    ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
    EXPECT_EQ(Accountant::requests, before);
  }
  EXPECT_EQ(Accountant::live, 0);
}

}  // namespace
}  // namespace bnns::testing
