// Resize: hand-worked numbers, the reference on every instruction set, thread count, layout and type, properties,
// refusals.

#include "src/ops/resize/resize.h"

#include <numeric>

#include "src/ops/resize/resize_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;
using ref::Resize;

struct Layer {
  BNNSLayerParametersResize parameters;
  BNNSFilterParameters options = {};
  Layer(const BNNSNDArrayDescriptor& in, const BNNSNDArrayDescriptor& out, const Resize& r) {
    std::memset(&parameters, 0, sizeof parameters);
    parameters.i_desc = in;
    parameters.o_desc = out;
    parameters.method = r.linear ? BNNSInterpolationMethodLinear : BNNSInterpolationMethodNearest;
    parameters.align_corners = r.align_corners;
  }
  Layer(BNNSDataLayout layout, const Resize& r)
      : Layer(descriptor(layout, r.in, nullptr), descriptor(layout, r.out, nullptr), r) {}
  FilterHandle make() const { return own(BNNSFilterCreateLayerResize(&parameters, &options)); }
};

std::vector<double> absolute(std::vector<double> v) {
  for (double& x : v) x = std::fabs(x);
  return v;
}

// Largest number of inputs that feed one output, or of outputs that one input feeds: roundings of a sum.
double terms(const Resize& r, bool transposed) {
  double result = 1;
  for (size_t k = 0; k < r.in.size(); ++k) {
    const double factor = std::ceil(double(r.out[k]) / double(r.in[k]));
    result *= transposed ? 2 * factor + 2 : 2;
  }
  return result;
}

// ---- 1. hand-worked ---------------------------------------------------------------------------------------------

TEST(Resize, HandWorked) {
  // 2 x 2 to 4 x 4 nearest: blocks.
  float x[4] = {1, 2, 3, 4}, y[16];
  ASSERT_EQ(BNNSFilterApply(Layer(BNNSDataLayoutImageCHW, {{2, 2, 1}, {4, 4, 1}}).make().get(), x, y), 0);
  EXPECT_EQ(std::vector<float>(y, y + 16), (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
  // 3 to 24 nearest: eight of each.
  float v[3] = {10, 20, 30}, w[24];
  ASSERT_EQ(BNNSFilterApply(Layer(BNNSDataLayoutVector, {{3}, {24}}).make().get(), v, w), 0);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(w[i], v[i / 8]);
  // Half-pixel, 2 to 4: at -1/4 (clamped to 0), 1/4, 3/4, 5/4 (clamped to 1). Corners, 2 to 5: at 0, 1/4, 1/2, 3/4, 1.
  float two[2] = {0, 8}, four[4], five[5];
  ASSERT_EQ(BNNSFilterApply(Layer(BNNSDataLayoutVector, {{2}, {4}, true}).make().get(), two, four), 0);
  EXPECT_EQ(std::vector<float>(four, four + 4), (std::vector<float>{0, 2, 6, 8}));
  ASSERT_EQ(BNNSFilterApply(Layer(BNNSDataLayoutVector, {{2}, {5}, true, true}).make().get(), two, five), 0);
  EXPECT_EQ(std::vector<float>(five, five + 5), (std::vector<float>{0, 2, 4, 6, 8}));
  // Corners with one output: the first input.
  float one;
  ASSERT_EQ(BNNSFilterApply(Layer(BNNSDataLayoutVector, {{3}, {1}, true, true}).make().get(), v, &one), 0);
  EXPECT_EQ(one, 10);
  // Backward of 2 to 4 half-pixel: rows (1, 0), (3/4, 1/4), (1/4, 3/4), (0, 1) transposed.
  float dy[4] = {1, 4, 8, 16}, dx[2];
  auto dx_desc = vector_descriptor(2, dx), dy_desc = vector_descriptor(4, dy);
  ASSERT_EQ(apply_backward(Layer(BNNSDataLayoutVector, {{2}, {4}, true}).make(), 1, &dx_desc, 0, &dy_desc, 0), 0);
  EXPECT_EQ(dx[0], 1 + 3 + 2);
  EXPECT_EQ(dx[1], 1 + 6 + 16);
}

TEST(Resize, ReferenceGradient) {
  for (bool linear : {false, true}) {
    for (bool corners : {false, true}) {
      for (const auto& [in, out] : {std::pair<Sizes, Sizes>{{3, 4}, {7, 8}}, {{6, 5}, {2, 3}}}) {
        const Resize r{in, out, linear, corners};
        Random random(1);
        const auto x = random_normals(&random, count_of(in)), g = random_normals(&random, count_of(out));
        const auto loss = [&](const std::vector<double>& at) {
          const auto y = ref::resize(r, at);
          return std::inner_product(y.begin(), y.end(), g.begin(), 0.0);
        };
        EXPECT_LE(gradient_error(ref::resize_backward(r, g), central_differences(x, loss)), 1e-7);
      }
    }
  }
}

// ---- 2. against the reference -----------------------------------------------------------------------------------

struct Case {
  BNNSDataLayout from, to;
  Sizes in, out;
};
const Case kCases[] = {
    {BNNSDataLayoutVector, BNNSDataLayoutVector, {17}, {34}},
    {BNNSDataLayoutVector, BNNSDataLayoutVector, {9}, {31}},
    {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {5, 3, 2}, {10, 6, 2}},
    {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {9, 8, 2}, {3, 4, 2}},
    {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {6, 3, 4}, {6, 9, 4}},
    {BNNSDataLayout3DFirstMajor, BNNSDataLayout3DFirstMajor, {3, 4, 3}, {6, 12, 3}},  // pixels of 3 channels
    {BNNSDataLayout3DFirstMajor, BNNSDataLayoutImageCHW, {4, 3, 5}, {7, 3, 6}},
    {BNNSDataLayout4DLastMajor, BNNSDataLayout4DFirstMajor, {2, 3, 1, 4}, {2, 5, 1, 8}},
};

TEST(Resize, BC15_BC33_LayoutsStridesTypes) {
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16, BNNSDataTypeInt8,
                                BNNSDataTypeInt64};
  for_each_isa([&] {
    for (const Case& c : kCases) {
      for (int method = 0; method < 3; ++method) {
        const Resize r{c.in, c.out, method > 0, method > 1};
        for (BNNSDataType from : types) {
          for (BNNSDataType to : types) {
            if ((r.linear || from != to) && !(is_float(from) && is_float(to))) continue;
            const unsigned gaps = unsigned(from + to) / 8 % 4;
            SCOPED_TRACE("layout " + std::to_string(c.from) + " method " + std::to_string(method) + " types " +
                         std::to_string(from) + " " + std::to_string(to));
            LayoutTensor x(c.from, c.in, from, gaps & 1 ? 2 : 1, gaps & 1 ? 3 : 0);
            LayoutTensor y(c.to, c.out, to, gaps & 2 ? 3 : 1, gaps & 2 ? 1 : 0);
            Random random(gaps);
            const auto values = fill(
                &x, is_float(from) ? random_normals(&random, x.count()) : random_integers(&random, x.count(), 100));
            const auto filter = Layer(x.descriptor(), y.descriptor(), r).make();
            ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
            ASSERT_TRUE(y.gaps_untouched());
            const auto want = ref::resize(r, values), size = ref::resize(r, absolute(values));
            // each term: fraction, product, sum rounded in f32; then one rounding to the type (half of its epsilon)
            const double last = to == BNNSDataTypeFloat16 ? 0x1p-11 : to == BNNSDataTypeBFloat16 ? 0x1p-8 : 0;
            const auto bound = [&](const std::vector<double>& w, const std::vector<double>& s, double n) {
              return [&, n](size_t i) { return n * 3 * 0x1p-24 * s[i] + last * std::fabs(w[i]) + last * 0x1p-14; };
            };
            ASSERT_TRUE(within(read(y), want, want.size(),
                               r.linear || from != to ? bound(want, size, terms(r, false)) : bound(want, size, 0)));
            if (!is_float(from)) continue;
            const auto g = fill(&y, random_normals(&random, y.count()));
            LayoutTensor dx(c.from, c.in, to, gaps & 2 ? 2 : 1, gaps & 1);
            auto dx_desc = dx.descriptor(), dy_desc = y.descriptor();
            ASSERT_EQ(apply_backward(filter, 1, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
            ASSERT_TRUE(dx.gaps_untouched());
            const auto gradient = ref::resize_backward(r, g), sum = ref::resize_backward(r, absolute(g));
            ASSERT_TRUE(within(read(dx), gradient, gradient.size(), bound(gradient, sum, terms(r, true))));
          }
        }
      }
    }
  });
}

TEST(Resize, BC53_SameBitsForAnyThreadCount) {
  for (int method = 0; method < 3; ++method) {
    const Resize r{{45, 37, 9}, {90, 111, 9}, method > 0, method > 1};
    const size_t in = count_of(r.in), out = count_of(r.out), batch = 2;
    Random random(3);
    const auto x = random.normals(batch * in);
    auto dy = random.normals(batch * out);
    std::vector<float> want, want_dx;
    for (size_t threads : kThreadCounts) {
      Layer layer(BNNSDataLayoutImageCHW, r);
      layer.options.n_threads = threads;
      const auto filter = layer.make();
      std::vector<float> y(batch * out, poison()), dx(batch * in, poison());
      ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
      auto dx_desc = layer.parameters.i_desc, dy_desc = layer.parameters.o_desc;
      dx_desc.data = dx.data(), dy_desc.data = dy.data();
      ASSERT_EQ(apply_backward(filter, batch, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
      if (want.empty()) want = y, want_dx = dx;
      ASSERT_TRUE(same_bits(y, want) && same_bits(dx, want_dx)) << threads << " threads";
    }
  }
}

// ---- 3. properties ----------------------------------------------------------------------------------------------

// <R x, g> = <x, R' g>, within rounding; random shapes, both directions, also mixed. Constants stay constants.
TEST(Resize, AdjointIdentityOnRandomShapes) {
  Random random(5);
  for (int round = 0; round < 500; ++round) {
    const size_t rank = 1 + random.below(4);
    Resize r{Sizes(rank), Sizes(rank), random.below(2) == 1, random.below(2) == 1};
    size_t changed = 0;
    for (size_t k = 0; k < rank; ++k) {
      const size_t small = 1 + random.below(6);
      const bool change = random.below(2) && (!r.linear || changed < 2);
      changed += change;
      const bool up = random.below(2);  // one axis may grow while another shrinks
      const size_t large = change ? small + random.below(20) : small;
      r.in[k] = up ? small : large, r.out[k] = up ? large : small;
    }
    const auto layout = generic_layout(rank, random.below(2));
    const size_t batch = 1 + random.below(3), in = count_of(r.in), out = count_of(r.out);
    const Layer layer(layout, r);
    const auto filter = layer.make();
    const auto x = random.normals(batch * in);
    auto g = random.normals(batch * out);
    std::vector<float> y(batch * out), dx(batch * in);
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0);
    auto dx_desc = layer.parameters.i_desc, dy_desc = layer.parameters.o_desc;
    dx_desc.data = dx.data(), dy_desc.data = g.data();
    ASSERT_EQ(apply_backward(filter, batch, &dx_desc, 0, &dy_desc, 0), 0) << BNNSExtLastError();
    double left = 0, right = 0, size = 0;
    for (size_t i = 0; i < y.size(); ++i) left += double(y[i]) * g[i];
    for (size_t i = 0; i < x.size(); ++i) right += double(x[i]) * dx[i];
    for (size_t i = 0; i < x.size(); ++i) size += std::fabs(double(x[i]));
    // every element of dx sums at most terms() products, each |g| below 6
    ASSERT_NEAR(left, right, 6 * size * terms(r, true) * 4 * 0x1p-24 * double(out)) << "round " << round;
    if (rank < 3 && batch == 1 && layout % 2 == 0) {
      const auto want = ref::resize(r, to_double(x));
      const auto bound = ref::resize(r, absolute(to_double(x)));
      ASSERT_TRUE(within(y, want, out, [&](size_t i) { return 12 * 0x1p-24 * bound[i]; }));
    }
    const std::vector<float> ones(batch * in, 3);
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, ones.data(), 0, y.data(), 0), 0);
    for (float v : y) ASSERT_NEAR(v, 3, 4 * 3 * 0x1p-23);
  }
}

// ---- 4. refusals ------------------------------------------------------------------------------------------------

TEST(ResizeMisuse, BC34_BC35_CreationSaysWhy) {
  const auto refused = [](auto change, std::initializer_list<const char*> words) {
    Layer layer(BNNSDataLayoutImageCHW, {{4, 3, 2}, {8, 6, 2}, true});
    change(layer.parameters);
    EXPECT_EQ(BNNSFilterCreateLayerResize(&layer.parameters, &layer.options), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  using P = BNNSLayerParametersResize;
  refused([](P& p) { p.method = BNNSInterpolationMethod(2); }, {"resize: method is 2"});
  refused([](P& p) { p.o_desc.size[2] = 4; }, {"3 sizes of o_desc differ", "at most 2"});
  refused([](P& p) { p.i_desc.data_type = BNNSDataTypeInt8; }, {"i_desc is i8", "linear"});
  refused([](P& p) { p.method = BNNSInterpolationMethodNearest, p.o_desc.data_type = BNNSDataTypeInt8; },
          {"o_desc i8", "the same type"});
  refused([](P& p) { p.o_desc.layout = BNNSDataLayoutVector; }, {"o_desc has rank 1, expected 3"});
  refused([](P& p) { p.o_desc.size[0] = 0; }, {"o_desc.size[0] is 0"});
  refused([](P& p) { p.o_desc.size[0] = SIZE_MAX / 2; }, {"o_desc"});
  EXPECT_EQ(BNNSFilterCreateLayerResize(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

TEST(ResizeMisuse, BC37_CallsSayWhyAndWriteNothing) {
  const auto filter = Layer(BNNSDataLayoutVector, {{4}, {8}, true}).make();
  std::vector<float> x(24, 1), y(24, poison());
  const auto refused = [](int status, std::initializer_list<const char*> words) {
    EXPECT_EQ(status, -1);
    EXPECT_TRUE(refused_because(words));
  };
  refused(BNNSFilterApply(filter.get(), nullptr, y.data()), {"in is NULL"});
  refused(BNNSFilterApply(filter.get(), x.data(), nullptr), {"out is NULL"});
  refused(BNNSFilterApply(filter.get(), y.data() + 7, y.data()), {"out and in overlap"});
  refused(BNNSFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 7), {"out_stride is 7"});
  auto dx = vector_descriptor(4, y.data()), dy = vector_descriptor(8, x.data()), bad = vector_descriptor(5, x.data());
  refused(apply_backward(filter, 1, &dx, 0, nullptr, 0), {"out_delta is NULL"});
  refused(apply_backward(filter, 1, &dx, 0, &bad, 0), {"out_delta has 5 elements, expected 8"});
  refused(apply_backward(filter, 1, &bad, 0, &dy, 0), {"in_delta has 5 elements, expected 4"});
  refused(apply_backward(filter, 2, &dx, 3, &dy, 0), {"in_delta_stride is 3"});
  for (float v : y) EXPECT_TRUE(is_poison(v));
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 0, nullptr, 0, nullptr, 0), 0);  // BC38
}

TEST(ResizeMisuse, BC42_BC45_FailingAllocations) {
  Layer layer(BNNSDataLayoutRowMajorMatrix, {{40, 30}, {80, 60}, true});
  layer.options = Accountant::options();
  std::vector<float> x(1200, 1), y(4800);
  int failures = 0;
  for (int fail_at = 0;; ++fail_at) {
    Accountant::requests = 0;
    Accountant::fail_at = fail_at;
    std::fill(y.begin(), y.end(), poison());
    BNNSFilter filter = BNNSFilterCreateLayerResize(&layer.parameters, &layer.options);
    const FilterHandle owner(filter, &BNNSFilterDestroy);
    if (filter && BNNSFilterApply(filter, x.data(), y.data()) == 0) break;
    ++failures;
    EXPECT_TRUE(refused_because({"out of memory"}));
    EXPECT_TRUE(is_poison(y[0]) && is_poison(y[4799]));
  }
  EXPECT_EQ(failures, 4);  // the filter, the tables of two axes, the scratch
  EXPECT_EQ(Accountant::live, 0);
}

}  // namespace
}  // namespace bnns::testing
