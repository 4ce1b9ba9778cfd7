// Padding: documented numbers, the reference on every instruction set, thread count, layout and type, properties,
// refusals.

#include "src/ops/padding/padding.h"

#include <numeric>

#include "src/ops/padding/padding_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;
using ref::Padding;

constexpr BNNSPaddingMode kModes[] = {BNNSPaddingModeConstant, BNNSPaddingModeReflect, BNNSPaddingModeSymmetric};

Sizes padded(const Padding& p) {
  Sizes out;
  for (size_t k = 0; k < p.size.size(); ++k) out.push_back(p.size[k] + p.before[k] + p.after[k]);
  return out;
}

struct Layer {
  BNNSLayerParametersPadding parameters;
  BNNSFilterParameters options = {};
  Layer(const BNNSNDArrayDescriptor& in, const BNNSNDArrayDescriptor& out, const Padding& p, uint32_t value = 0) {
    std::memset(&parameters, 0, sizeof parameters);
    parameters.i_desc = in;
    parameters.o_desc = out;
    parameters.padding_mode = p.mode;
    parameters.padding_value = value;
    for (size_t k = 0; k < p.size.size(); ++k) {
      parameters.padding_size[k][0] = p.before[k];
      parameters.padding_size[k][1] = p.after[k];
    }
  }
  FilterHandle make() const { return own(BNNSFilterCreateLayerPadding(&parameters, &options)); }
};

// The bits of a value of a type, in the leading bytes.
uint32_t value_bits(BNNSDataType type, double value) {
  LayoutTensor one(BNNSDataLayoutVector, {1}, type);
  one.set({0}, value);
  uint32_t result = 0;
  std::memcpy(&result, one.data(), std::min(one.bytes(), sizeof result));
  return result;
}

// ---- 1. documented ----------------------------------------------------------------------------------------------

TEST(Padding, Documented) {
  // Constant: {1, 2, 3} with 1 before, 2 after, value 7. Reflect: xxABC becomes CBABC. Symmetric: xxAB becomes BAAB.
  struct Case {
    Padding p;
    std::vector<float> want;
  };
  const Case cases[] = {
      {{{3}, {1}, {2}, BNNSPaddingModeConstant, 7}, {7, 1, 2, 3, 7, 7}},
      {{{3}, {2}, {1}, BNNSPaddingModeReflect}, {3, 2, 1, 2, 3, 2}},
      {{{2}, {2}, {1}, BNNSPaddingModeSymmetric}, {2, 1, 1, 2, 2}},
  };
  for (const Case& c : cases) {
    const float x[3] = {1, 2, 3};
    std::vector<float> y(c.want.size(), poison());
    const Layer layer(vector_descriptor(c.p.size[0], nullptr), vector_descriptor(y.size(), nullptr), c.p, bits(7.0f));
    ASSERT_EQ(BNNSFilterApply(layer.make().get(), x, y.data()), 0) << BNNSExtLastError();
    EXPECT_EQ(y, c.want);
    EXPECT_EQ(ref::padding(c.p, {1, 2, 3}), to_double(c.want));
  }
  // Backward of the reflection: 3 2 1 2 3 2 came from the places 2 1 0 1 2 1.
  const Layer layer(vector_descriptor(3, nullptr), vector_descriptor(6, nullptr), cases[1].p);
  float dy[6] = {1, 10, 100, 1000, 10000, 100000}, dx[3];
  auto dx_desc = vector_descriptor(3, dx), dy_desc = vector_descriptor(6, dy);
  ASSERT_EQ(apply_backward(layer.make(), 1, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(dx, dx + 3), (std::vector<float>{100, 101010, 10001}));
}

TEST(Padding, ReferenceGradient) {
  for (BNNSPaddingMode mode : kModes) {
    const Padding p{{4, 3}, {2, 1}, {3, 2}, mode, 0.5};
    Random random(1);
    const auto x = random_normals(&random, 12), g = random_normals(&random, 9 * 6);
    const auto loss = [&](const std::vector<double>& at) {
      const auto y = ref::padding(p, at);
      return std::inner_product(y.begin(), y.end(), g.begin(), 0.0);
    };
    EXPECT_LE(gradient_error(ref::padding_backward(p, g), central_differences(x, loss)), 1e-7);
  }
}

// ---- 2. against the reference -----------------------------------------------------------------------------------

// Modes, layouts, strides, types: exact forward; exact backward on small integers; guard pages and gaps.
TEST(Padding, BC15_BC33_LayoutsStridesTypes) {
  struct Case {
    BNNSDataLayout from, to;
    Sizes size, before, after;
  };
  const Case cases[] = {
      {BNNSDataLayoutVector, BNNSDataLayoutVector, {37}, {5}, {0}},
      {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix, {16, 5}, {0, 1}, {3, 0}},
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {9, 7, 3}, {1, 1, 0}, {1, 1, 0}},
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {19, 4, 3}, {2, 3, 1}, {0, 2, 2}},
      {BNNSDataLayout3DFirstMajor, BNNSDataLayout3DFirstMajor, {6, 8, 3}, {2, 1, 0}, {1, 2, 0}},  // pixels of 3
      {BNNSDataLayout3DFirstMajor, BNNSDataLayoutImageCHW, {4, 5, 6}, {1, 0, 2}, {0, 2, 3}},
      {BNNSDataLayoutMHA_DHK, BNNSDataLayout3DLastMajor, {4, 3, 2}, {1, 0, 1}, {0, 2, 0}},
      {BNNSDataLayout5DLastMajor, BNNSDataLayout5DFirstMajor, {3, 2, 2, 3, 2}, {1, 0, 1, 2, 0}, {0, 1, 0, 1, 1}},
  };
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16,
                                BNNSDataTypeInt8,    BNNSDataTypeInt64,   BNNSDataTypeUInt16};
  for_each_isa([&] {
    for (const Case& c : cases) {
      for (BNNSPaddingMode mode : kModes) {
        Padding p{c.size, c.before, c.after, mode, 7};
        for (size_t k = 0; k < c.size.size() && mode == BNNSPaddingModeReflect; ++k) {
          p.before[k] = std::min(p.before[k], c.size[k] - 1), p.after[k] = std::min(p.after[k], c.size[k] - 1);
        }
        for (BNNSDataType type : types) {
          for (unsigned gaps = 0; gaps < 4; ++gaps) {
            SCOPED_TRACE("layout " + std::to_string(c.from) + " mode " + std::to_string(mode) + " type " +
                         std::to_string(type) + " gaps " + std::to_string(gaps));
            LayoutTensor x(c.from, c.size, type, gaps & 1 ? 2 : 1, gaps & 1 ? 3 : 0);
            LayoutTensor y(c.to, padded(p), type, gaps & 2 ? 3 : 1, gaps & 2 ? 1 : 0);
            std::vector<double> numbers(x.count());
            for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = double(i % 120);
            fill(&x, numbers);
            const Layer layer(x.descriptor(), y.descriptor(), p, value_bits(type, 7));
            const auto filter = layer.make();
            ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
            ASSERT_TRUE(y.gaps_untouched());
            ASSERT_EQ(read(y), ref::padding(p, numbers));
            if (!is_float(type)) continue;
            Random random(gaps);
            const auto g = random_integers(&random, y.count(), 2);
            fill(&y, g);
            LayoutTensor dx(c.from, c.size, type, gaps & 2 ? 2 : 1, gaps & 1);
            auto dx_desc = dx.descriptor(), dy_desc = y.descriptor();
            ASSERT_EQ(apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
            ASSERT_TRUE(dx.gaps_untouched());
            auto want = ref::padding_backward(p, g);
            ASSERT_EQ(read(dx), want);
            dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;  // BC14: added once more
            ASSERT_EQ(apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0), 0);
            for (double& v : want) v *= 2;
            ASSERT_EQ(read(dx), want);
          }
        }
      }
    }
  });
}

TEST(Padding, BC53_SameBitsForAnyThreadCount) {
  for (BNNSPaddingMode mode : kModes) {
    const Padding p{{67, 43, 11}, {9, 5, 0}, {20, 3, 4}, mode, 0};
    const size_t in = count_of(p.size), out = count_of(padded(p)), batch = 3;
    Random random(3);
    const auto x = random.normals(batch * in);
    auto dy = random.normals(batch * out);
    std::vector<float> want, want_dx;
    for_each_isa([&] {
      want.clear();
      for (size_t threads : kThreadCounts) {
        Layer layer(descriptor(BNNSDataLayoutImageCHW, p.size, nullptr),
                    descriptor(BNNSDataLayoutImageCHW, padded(p), nullptr), p);
        layer.options.n_threads = threads;
        const auto filter = layer.make();
        std::vector<float> y(batch * out, poison()), dx(batch * in, poison());
        ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
        auto dx_desc = vector_descriptor(in, dx.data()), dy_desc = layer.parameters.o_desc;
        dy_desc.data = dy.data();
        ASSERT_EQ(apply_backward(filter, batch, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
        if (want.empty()) {
          want = y, want_dx = dx;
          for (size_t b = 0; b < batch; ++b) {
            const std::vector<double> sample(x.begin() + long(b * in), x.begin() + long((b + 1) * in));
            ASSERT_EQ(to_double({y.begin() + long(b * out), y.begin() + long((b + 1) * out)}), ref::padding(p, sample));
            const std::vector<double> g(dy.begin() + long(b * out), dy.begin() + long((b + 1) * out));
            const auto gradient = ref::padding_backward(p, g);
            std::vector<double> size(g.size());
            for (size_t i = 0; i < g.size(); ++i) size[i] = std::fabs(g[i]);
            const auto sum = ref::padding_backward(p, size);
            // at most 3 copies on each of three axes: 27 terms, one rounding each
            ASSERT_TRUE(within(std::vector<float>(dx.begin() + long(b * in), dx.begin() + long((b + 1) * in)), gradient,
                               in, [&](size_t i) { return 27 * 0x1p-24 * sum[i]; }));
          }
        }
        ASSERT_TRUE(same_bits(y, want) && same_bits(dx, want_dx)) << threads << " threads";
      }
    });
  }
}

// ---- 3. properties ----------------------------------------------------------------------------------------------

// <P x, g> = <x, P' g> exactly, with the constant 0; random ranks, shapes, pads, layouts.
TEST(Padding, AdjointIdentityOnRandomShapes) {
  Random random(5);
  for (int round = 0; round < 1000; ++round) {
    const size_t rank = 1 + random.below(5);
    Padding p{Sizes(rank), Sizes(rank), Sizes(rank), kModes[random.below(3)], 0};
    for (size_t k = 0; k < rank; ++k) {
      p.size[k] = 1 + random.below(rank < 3 ? 40 : 7);
      const size_t most = p.mode == BNNSPaddingModeConstant  ? 9
                          : p.mode == BNNSPaddingModeReflect ? p.size[k] - 1
                                                             : p.size[k];
      p.before[k] = random.below(2) * random.below(std::min<size_t>(most, 6) + 1);
      p.after[k] = random.below(2) * random.below(std::min<size_t>(most, 6) + 1);
    }
    const auto layout = generic_layout(rank, random.below(2));
    const size_t batch = 1 + random.below(3), in = count_of(p.size), out = count_of(padded(p));
    const Layer layer(descriptor(layout, p.size, nullptr), descriptor(layout, padded(p), nullptr), p);
    const auto filter = layer.make();
    const auto x = random.integers(batch * in);
    auto g = random.integers(batch * out);
    std::vector<float> y(batch * out), dx(batch * in);
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0);
    auto dx_desc = layer.parameters.i_desc, dy_desc = layer.parameters.o_desc;
    dx_desc.data = dx.data(), dy_desc.data = g.data();
    ASSERT_EQ(apply_backward(filter, batch, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
    double left = 0, right = 0;
    for (size_t i = 0; i < y.size(); ++i) left += double(y[i]) * g[i];
    for (size_t i = 0; i < x.size(); ++i) right += double(x[i]) * dx[i];
    ASSERT_EQ(left, right) << "round " << round;
    if (batch == 1 && !(layout & 1)) {
      ASSERT_EQ(to_double(y), ref::padding(p, to_double(x)));
      ASSERT_EQ(to_double(dx), ref::padding_backward(p, to_double(g)));
    }
  }
}

// ---- 4. refusals ------------------------------------------------------------------------------------------------

TEST(PaddingMisuse, BC34_BC35_CreationSaysWhy) {
  const auto refused = [](auto change, std::initializer_list<const char*> words) {
    const Padding p{{4, 3}, {1, 0}, {2, 0}, BNNSPaddingModeReflect};
    Layer layer(descriptor(BNNSDataLayoutRowMajorMatrix, {4, 3}, nullptr),
                descriptor(BNNSDataLayoutRowMajorMatrix, {7, 3}, nullptr), p);
    change(layer.parameters);
    EXPECT_EQ(BNNSFilterCreateLayerPadding(&layer.parameters, &layer.options), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  using P = BNNSLayerParametersPadding;
  refused([](P& p) { p.o_desc.size[0] = 8; }, {"padding: o_desc.size[0] is 8, expected 7 = 1 + 4 + 2"});
  refused([](P& p) { p.padding_size[1][0] = SIZE_MAX; }, {"padding_size"});
  refused([](P& p) { p.padding_size[0][0] = 4, p.o_desc.size[0] = 10; },
          {"padding_size[0][0] is 4, expected at most 3", "reflect"});
  refused([](P& p) { p.padding_mode = BNNSPaddingModeSymmetric, p.padding_size[1][1] = 4, p.o_desc.size[1] = 7; },
          {"padding_size[1][1] is 4, expected at most 3", "symmetric"});
  refused([](P& p) { p.padding_mode = BNNSPaddingMode(3); }, {"padding_mode is 3"});
  refused([](P& p) { p.i_desc.size[0] = size_t{1} << 31, p.o_desc.size[0] = (size_t{1} << 31) + 3; },
          {"padding: an axis that changes has 2147483648 elements, expected at most 2147483647"});
  refused([](P& p) { p.o_desc.data_type = BNNSDataTypeFloat16; }, {"o_desc is f16", "f32"});
  refused([](P& p) { p.o_desc.layout = BNNSDataLayoutVector; }, {"o_desc has rank 1, expected 2"});
  refused([](P& p) { p.i_desc.data_type = BNNSDataTypeInt1; }, {"i_desc has type i1"});
  refused([](P& p) { p.i_desc.size[0] = 0; }, {"i_desc.size[0] is 0"});
  refused(
      [](P& p) {
        p.i_desc.layout = BNNSDataLayoutConvolutionWeightsOIHW_Pack32, p.i_desc.size[2] = p.i_desc.size[3] = 1;
      },
      {"i_desc.layout"});
  EXPECT_EQ(BNNSFilterCreateLayerPadding(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

TEST(PaddingMisuse, BC37_CallsSayWhyAndWriteNothing) {
  const Padding p{{4}, {1}, {1}, BNNSPaddingModeConstant};
  const Layer layer(vector_descriptor(4, nullptr), vector_descriptor(6, nullptr), p);
  const auto filter = layer.make();
  std::vector<float> x(24, 1), y(24, poison());
  const auto refused = [](int status, std::initializer_list<const char*> words) {
    EXPECT_EQ(status, -1);
    EXPECT_TRUE(refused_because(words));
  };
  refused(BNNSFilterApply(filter.get(), nullptr, y.data()), {"in is NULL"});
  refused(BNNSFilterApply(filter.get(), x.data(), nullptr), {"out is NULL"});
  refused(BNNSFilterApply(filter.get(), y.data() + 4, y.data()), {"out and in overlap"});
  refused(BNNSFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 5), {"out_stride is 5"});
  auto dx = vector_descriptor(4, y.data()), dy = vector_descriptor(6, x.data()), bad = vector_descriptor(5, x.data());
  refused(apply_backward(filter, 1, &dx, 0, nullptr, 0), {"out_delta is NULL"});
  refused(apply_backward(filter, 1, &dx, 0, &bad, 0), {"out_delta has 5 elements, expected 6"});
  refused(apply_backward(filter, 1, &bad, 0, &dy, 0), {"in_delta has 5 elements, expected 4"});
  refused(apply_backward(filter, 2, &dx, 3, &dy, 0), {"in_delta_stride is 3"});
  dy.data = y.data() + 3;
  refused(apply_backward(filter, 1, &dx, 0, &dy, 0), {"in_delta and out_delta overlap"});
  for (float v : y) EXPECT_TRUE(is_poison(v));
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 0, nullptr, 0, nullptr, 0), 0);  // BC38
}

// BC42, BC45: every allocation fails once; nothing leaks; a steady state allocates nothing.
TEST(PaddingMisuse, BC42_BC45_FailingAllocations) {
  const Padding p{{40, 30}, {3, 2}, {1, 4}, BNNSPaddingModeReflect};
  Layer layer(descriptor(BNNSDataLayoutRowMajorMatrix, p.size, nullptr),
              descriptor(BNNSDataLayoutRowMajorMatrix, padded(p), nullptr), p);
  layer.options = Accountant::options();
  std::vector<float> x(1200, 1), dy(44 * 36, 1);
  auto dx_desc = layer.parameters.i_desc, dy_desc = layer.parameters.o_desc;
  dx_desc.data = x.data(), dy_desc.data = dy.data();
  int failures = 0;
  for (int fail_at = 0;; ++fail_at) {
    Accountant::requests = 0;
    Accountant::fail_at = fail_at;
    BNNSFilter filter = BNNSFilterCreateLayerPadding(&layer.parameters, &layer.options);
    if (filter && apply_backward(FilterHandle(filter, &BNNSFilterDestroy), 1, &dx_desc, 0, &dy_desc, 0) == 0) break;
    ++failures;
    EXPECT_TRUE(refused_because({"out of memory"}));
    EXPECT_EQ(Accountant::live, 0);
  }
  EXPECT_EQ(failures, 4);  // the filter, the tables of two axes, the scratch of backward
  layer.options = Accountant::options();
  const auto filter = layer.make();
  ASSERT_EQ(apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0), 0);
  const int before = Accountant::requests;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0), 0);
  EXPECT_EQ(Accountant::requests, before);
}

}  // namespace
}  // namespace bnns::testing
