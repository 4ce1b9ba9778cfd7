// Reductions: documented numbers, the reference on every instruction set, layout and type, gradients, properties.

#include "src/ops/reduction/reduction.h"

#include <numeric>

#include "src/ops/reduction/reduction_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;

const BNNSReduceFunction kFunctions[] = {
    BNNSReduceFunctionMax,    BNNSReduceFunctionMin,         BNNSReduceFunctionArgMax,    BNNSReduceFunctionArgMin,
    BNNSReduceFunctionMean,   BNNSReduceFunctionMeanNonZero, BNNSReduceFunctionSum,       BNNSReduceFunctionSumSquare,
    BNNSReduceFunctionSumLog, BNNSReduceFunctionL1Norm,      BNNSReduceFunctionLogicalOr, BNNSReduceFunctionLogicalAnd,
    BNNSReduceFunctionL2Norm, BNNSReduceFunctionLogSumExp,   BNNSReduceFunctionProduct,   BNNSReduceFunctionLogSum};
bool has_gradient(BNNSReduceFunction f) {
  return f != BNNSReduceFunctionArgMax && f != BNNSReduceFunctionArgMin && f != BNNSReduceFunctionLogicalOr &&
         f != BNNSReduceFunctionLogicalAnd;
}

BNNSLayerParametersReduction layer_of(BNNSReduceFunction f, const BNNSNDArrayDescriptor& x,
                                      const BNNSNDArrayDescriptor& y, float epsilon = 0) {
  BNNSLayerParametersReduction layer;
  std::memset(&layer, 0, sizeof layer);
  layer.i_desc = x;
  layer.o_desc = y;
  layer.reduce_func = f;
  layer.epsilon = epsilon;
  return layer;
}

// Values that every function takes: positive, no ties; about 1, so that products stay in range.
std::vector<double> positive(Random* random, size_t n) {
  std::vector<double> v(n);
  for (double& x : v) x = 0.75 + 0.5 * random->uniform();
  return v;
}

// Error of a result: a block is folded in f32 (at most 2048 / 64 + 10 roundings), the rest in double, one rounding at
// the end; the terms of a sum have an error of 4 ulp (log, exp, products of weights).
double bound(BNNSReduceFunction f, const std::vector<double>& x, const std::vector<double>& w, double y, double epsilon,
             double type_error) {
  double size = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = w.empty() ? 1 : std::fabs(w[i]);
    size += f == BNNSReduceFunctionSumSquare ? u * x[i] * x[i]
            : f == BNNSReduceFunctionSumLog  ? u * (std::fabs(std::log(x[i] + epsilon)) + 1)
                                             : u * std::fabs(x[i]);
  }
  const double unit = 0x1p-24;
  switch (f) {
    case BNNSReduceFunctionArgMax:
    case BNNSReduceFunctionArgMin:
    case BNNSReduceFunctionLogicalOr:
    case BNNSReduceFunctionLogicalAnd:
      return 0;
    case BNNSReduceFunctionMax:
    case BNNSReduceFunctionMin:
      return (w.empty() ? 0 : unit * std::fabs(y)) + type_error * std::fabs(y);
    case BNNSReduceFunctionL2Norm:
    case BNNSReduceFunctionProduct:
      return (48 * unit + type_error) * std::fabs(y);
    case BNNSReduceFunctionLogSumExp:
    case BNNSReduceFunctionLogSum:
      return 48 * unit + (unit + type_error) * std::fabs(y);
    case BNNSReduceFunctionMean:
    case BNNSReduceFunctionMeanNonZero:
      return 48 * unit * size / double(x.size()) * 4 + type_error * std::fabs(y);
    default:
      return 48 * unit * size + type_error * std::fabs(y);
  }
}

::testing::AssertionResult near(BNNSReduceFunction f, const Sizes& in, const Sizes& out, const std::vector<double>& x,
                                const std::vector<double>& w, const std::vector<double>& got, double epsilon,
                                double type_error) {
  const auto groups = ref::reduction_groups(in, out);
  const auto want = ref::reduction(f, in, out, x, w, epsilon);
  return within(got, want, want.size(), [&](size_t r) {
    std::vector<double> xs, ws;
    for (size_t i : groups[r]) {
      xs.push_back(x[i]);
      if (!w.empty()) ws.push_back(w[i]);
    }
    return bound(f, xs, ws, want[r], epsilon, type_error);
  });
}

// ---- 1. documented ----------------------------------------------------------------------------------------------

TEST(Reduction, DocumentedRowMajorMatrix) {
  float x[9] = {1, 4, 7, 2, 5, 8, 3, 6, 9}, y[3];
  const auto run = [&](size_t columns, size_t rows) {
    const auto layer = layer_of(BNNSReduceFunctionSum, descriptor(BNNSDataLayoutRowMajorMatrix, {3, 3}, x),
                                descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, y));
    EXPECT_EQ(BNNSDirectApplyReduction(&layer, nullptr), 0) << BNNSExtLastError();
    return std::vector<float>(y, y + columns * rows);
  };
  EXPECT_EQ(run(1, 3), (std::vector<float>{12, 15, 18}));
  EXPECT_EQ(run(3, 1), (std::vector<float>{6, 15, 24}));
  EXPECT_EQ(run(1, 1), (std::vector<float>{45}));
}

TEST(Reduction, SpecialValues) {
  const float inf = INFINITY, nan = NAN;
  struct Case {
    BNNSReduceFunction f;
    std::vector<float> x;
    float y;
  };
  const Case cases[] = {
      {BNNSReduceFunctionMax, {-inf, -inf}, -inf},
      {BNNSReduceFunctionMax, {1, nan, 3, 2}, 3},  // measured on macOS 26.5
      {BNNSReduceFunctionMax, {nan, -inf}, -inf},
      {BNNSReduceFunctionMax, {nan, nan}, nan},
      {BNNSReduceFunctionMin, {inf, inf}, inf},
      {BNNSReduceFunctionMin, {1, nan, -3}, -3},
      {BNNSReduceFunctionMin, {nan, inf}, inf},
      {BNNSReduceFunctionMin, {nan, nan}, nan},
      {BNNSReduceFunctionArgMax, {1, nan, 3, nan}, 2},
      {BNNSReduceFunctionArgMax, {nan, nan, -inf}, 2},
      {BNNSReduceFunctionArgMax, {nan, nan}, 0},
      {BNNSReduceFunctionArgMin, {1, nan, -3}, 2},
      {BNNSReduceFunctionArgMin, {nan, 2, 2}, 1},
      {BNNSReduceFunctionArgMin, {nan, nan}, 0},
      {BNNSReduceFunctionArgMax, {-inf, -inf}, 0},
      {BNNSReduceFunctionArgMax, {1, 5, 5, 2}, 1},
      {BNNSReduceFunctionArgMin, {2, 1, 1}, 1},
      {BNNSReduceFunctionLogSumExp, {-inf, -inf}, -inf},
      {BNNSReduceFunctionLogSumExp, {-inf, 2}, 2},
      {BNNSReduceFunctionLogSumExp, {inf, 2}, inf},
      {BNNSReduceFunctionLogSumExp, {1000, -1000}, 1000},
      {BNNSReduceFunctionLogSumExp, {nan, 1}, nan},
      {BNNSReduceFunctionLogicalOr, {0, nan, 0}, 1},
      {BNNSReduceFunctionLogicalOr, {0, -0.0f}, 0},
      {BNNSReduceFunctionLogicalAnd, {1, nan, 2}, 1},
      {BNNSReduceFunctionLogicalAnd, {1, 0, 2}, 0},
      {BNNSReduceFunctionProduct, {1e30f, 1e30f, 1e-30f, 1e-30f}, 1},
  };
  for_each_isa([&] {
    for (const Case& c : cases) {
      for (size_t repeat : {1, 5, 40, 700}) {  // along rows, and across columns of every width
        const size_t n = c.x.size();
        for (bool columns : {false, true}) {
          std::vector<float> x(n * repeat), y(repeat, poison());
          for (size_t r = 0; r < repeat; ++r) {
            for (size_t i = 0; i < n; ++i) x[columns ? i * repeat + r : r * n + i] = c.x[i];
          }
          const auto layout = BNNSDataLayout2DLastMajor;
          const auto layer =
              columns
                  ? layer_of(c.f, descriptor(layout, {repeat, n}, x.data()), descriptor(layout, {repeat, 1}, y.data()))
                  : layer_of(c.f, descriptor(layout, {n, repeat}, x.data()), descriptor(layout, {1, repeat}, y.data()));
          ASSERT_EQ(BNNSDirectApplyReduction(&layer, nullptr), 0) << BNNSExtLastError();
          for (float v : y) {
            ASSERT_TRUE(std::isnan(c.y) ? std::isnan(v) : std::fabs(v - c.y) <= 1e-6f * std::fabs(c.y) || v == c.y)
                << "function " << c.f << " repeat " << repeat << (columns ? " columns " : " rows ") << v;
          }
        }
      }
    }
  });
}

// Values at which y in f32 is much coarser than the gradient, and a weight of 0 on the largest.
TEST(Reduction, LogSumExpOfLargeAndOfMaskedValues) {
  struct Case {
    std::vector<float> x, w;
    double y;
    std::vector<double> dx;
  };
  const double e = std::exp(-1.0);
  const Case cases[] = {
      {{1e7f, 1e7f}, {}, 1e7 + std::log(2.0), {0.5, 0.5}},
      {{1e5f, 1e5f - 1, -1e5f}, {}, 1e5 + std::log1p(e), {1 / (1 + e), e / (1 + e), 0}},
      {{1000, 1, 0}, {0, 1, 1}, 1 + std::log1p(e), {0, 1 / (1 + e), e / (1 + e)}},
      {{100, 1, 0}, {0, 2, 2}, 1 + std::log(2 + 2 * e), {0, 1 / (1 + e), e / (1 + e)}},
      {{7, 1000}, {0, 0}, -INFINITY, {0, 0}},
  };
  for_each_isa([&] {
    for (const Case& c : cases) {
      for (size_t repeat : {1, 5, 40, 700}) {  // along rows, and across columns of every width
        const size_t n = c.x.size();
        for (bool columns : {false, true}) {
          std::vector<float> x(n * repeat), w(n * repeat, 1), y(repeat, poison()), dy(repeat, 1), dx(n * repeat);
          const auto at = [&](size_t r, size_t i) { return columns ? i * repeat + r : r * n + i; };
          for (size_t r = 0; r < repeat; ++r) {
            for (size_t i = 0; i < n; ++i) {
              x[at(r, i)] = c.x[i];
              if (!c.w.empty()) w[at(r, i)] = c.w[i];
            }
          }
          const std::vector<size_t> in = columns ? std::vector{repeat, n} : std::vector{n, repeat};
          const std::vector<size_t> out = columns ? std::vector{repeat, size_t{1}} : std::vector{size_t{1}, repeat};
          const auto layout = BNNSDataLayout2DLastMajor;
          auto layer = layer_of(BNNSReduceFunctionLogSumExp, descriptor(layout, in, x.data()),
                                descriptor(layout, out, y.data()));
          if (!c.w.empty()) layer.w_desc = descriptor(layout, in, w.data());
          const FilterHandle filter = own(BNNSFilterCreateLayerReduction(&layer, nullptr));
          ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
          auto dx_desc = descriptor(layout, in, dx.data()), dy_desc = descriptor(layout, out, dy.data());
          ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                 nullptr, nullptr),
                    0)
              << BNNSExtLastError();
          for (size_t r = 0; r < repeat; ++r) {
            ASSERT_TRUE(y[r] == static_cast<float>(c.y) || std::fabs(y[r] - c.y) <= 1e-6 * std::fabs(c.y)) << y[r];
            for (size_t i = 0; i < n; ++i) {
              ASSERT_NEAR(static_cast<double>(dx[at(r, i)]), c.dx[i], 1e-6) << "x " << c.x[i];
            }
          }
        }
      }
    }
  });
}

// BC20: a long sum keeps its digits.
TEST(Reduction, BC20_LongMean) {
  Random random(1);
  std::vector<float> x(10000000), y(1);
  double sum = 0;
  for (float& v : x) sum += double(v = float(random.uniform()));
  const auto layer =
      layer_of(BNNSReduceFunctionMean, vector_descriptor(x.size(), x.data()), vector_descriptor(1, y.data()));
  for_each_isa([&] {
    ASSERT_EQ(BNNSDirectApplyReduction(&layer, nullptr), 0) << BNNSExtLastError();
    EXPECT_LE(std::fabs(y[0] / (sum / 1e7) - 1), 1e-6);
  });
}

// ---- 2. against the reference -----------------------------------------------------------------------------------

struct Shape {
  BNNSDataLayout layout;
  Sizes in, out;
};
const Shape kShapes[] = {
    {BNNSDataLayoutVector, {1}, {1}},
    {BNNSDataLayoutVector, {5}, {5}},
    {BNNSDataLayoutVector, {4501}, {1}},
    {BNNSDataLayout2DLastMajor, {37, 70}, {1, 70}},    // rows
    {BNNSDataLayout2DLastMajor, {3, 700}, {1, 700}},   // short rows
    {BNNSDataLayout2DLastMajor, {700, 70}, {700, 1}},  // columns
    {BNNSDataLayout2DLastMajor, {3, 1100}, {3, 1}},    // narrow columns
    {BNNSDataLayout2DFirstMajor, {9, 33}, {1, 33}},
    {BNNSDataLayoutImageCHW, {7, 7, 40}, {1, 1, 40}},
    {BNNSDataLayoutImageCHW, {17, 9, 5}, {17, 1, 5}},  // the middle
    {BNNSDataLayoutImageCHW, {17, 9, 5}, {1, 9, 1}},
    {BNNSDataLayout3DFirstMajor, {5, 9, 17}, {1, 9, 1}},
    {BNNSDataLayout3DFirstMajor, {6, 7, 8}, {1, 1, 1}},
    {BNNSDataLayout5DLastMajor, {3, 4, 2, 5, 3}, {1, 4, 1, 5, 1}},
    {BNNSDataLayout8DFirstMajor, {2, 3, 1, 2, 2, 3, 2, 2}, {1, 3, 1, 1, 2, 1, 2, 1}},
};

TEST(Reduction, BC15_BC33_FunctionsLayoutsStridesTypes) {
  for_each_isa([&] {
    Random random(2);
    for (const Shape& s : kShapes) {
      for (BNNSReduceFunction f : kFunctions) {
        for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
          for (unsigned gaps = type == BNNSDataTypeFloat32 ? 0 : 2; gaps < 4; ++gaps) {
            SCOPED_TRACE("function " + std::to_string(f) + " layout " + std::to_string(s.layout) + " first size " +
                         std::to_string(s.in[0]) + " type " + std::to_string(type) + " gaps " + std::to_string(gaps));
            LayoutTensor x(s.layout, s.in, type, gaps & 1 ? 2 : 1, gaps & 1 ? 3 : 0);
            LayoutTensor y(s.layout, s.out, BNNSDataTypeFloat32, gaps & 2 ? 3 : 1, gaps & 2 ? 1 : 0);
            LayoutTensor w(s.layout, s.in, type, 1, gaps & 2 ? 2 : 0);
            const auto values = fill(&x, positive(&random, x.count()));
            std::vector<double> weights;
            auto layer = layer_of(f, x.descriptor(), y.descriptor(), 0.125f);
            if (gaps & 1) {
              weights = positive(&random, x.count());
              for (double& v : weights) v = random.below(8) ? v : 0;
              if (f == BNNSReduceFunctionLogSum || f == BNNSReduceFunctionLogSumExp) {
                for (double& v : weights) v = v == 0 ? 1 : v;
              }
              weights = fill(&w, weights);
              layer.w_desc = w.descriptor();
            }
            ASSERT_EQ(BNNSDirectApplyReduction(&layer, nullptr), 0) << BNNSExtLastError();
            ASSERT_TRUE(y.gaps_untouched());
            ASSERT_TRUE(near(f, s.in, s.out, values, weights, read(y), 0.125, 0x1p-24));
          }
        }
      }
    }
  });
}

TEST(Reduction, OutputTypes) {
  Random random(4);
  const auto x = random_integers(&random, 200, 1);
  for (BNNSDataType type : {BNNSDataTypeInt8, BNNSDataTypeInt16, BNNSDataTypeInt32, BNNSDataTypeInt64,
                            BNNSDataTypeUInt32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16, BNNSDataTypeFloat32}) {
    LayoutTensor from(BNNSDataLayout2DLastMajor, {20, 10}), to(BNNSDataLayout2DLastMajor, {1, 10}, type);
    fill(&from, x);
    for (auto f : {BNNSReduceFunctionArgMax, BNNSReduceFunctionLogicalOr, BNNSReduceFunctionLogicalAnd}) {
      const auto layer = layer_of(f, from.descriptor(), to.descriptor());
      ASSERT_EQ(BNNSDirectApplyReduction(&layer, nullptr), 0) << BNNSExtLastError();
      EXPECT_EQ(read(to), ref::reduction(f, {20, 10}, {1, 10}, x, {}, 0));
    }
  }
  // Integers and Booleans as input.
  for (BNNSDataType type : {BNNSDataTypeInt8, BNNSDataTypeInt16}) {
    LayoutTensor from(BNNSDataLayout2DLastMajor, {20, 10}, type), to(BNNSDataLayout2DLastMajor, {20, 1});
    fill(&from, x);
    const auto layer = layer_of(BNNSReduceFunctionSum, from.descriptor(), to.descriptor());
    ASSERT_EQ(BNNSDirectApplyReduction(&layer, nullptr), 0) << BNNSExtLastError();
    EXPECT_EQ(read(to), ref::reduction(BNNSReduceFunctionSum, {20, 10}, {20, 1}, x, {}, 0));
  }
}

// Numbers and NaN anywhere, groups without a number among them: value, index and gradient.
TEST(Reduction, NaNIsPassedOver) {
  for_each_isa([&] {
    Random random(12);
    for (const Shape& s : kShapes) {
      for (auto f :
           {BNNSReduceFunctionMax, BNNSReduceFunctionMin, BNNSReduceFunctionArgMax, BNNSReduceFunctionArgMin}) {
        for (size_t one_in : {2, 50}) {  // numbers
          SCOPED_TRACE("function " + std::to_string(f) + " layout " + std::to_string(s.layout) + " first size " +
                       std::to_string(s.in[0]) + " a number in " + std::to_string(one_in));
          LayoutTensor x(s.layout, s.in), y(s.layout, s.out), dy(s.layout, s.out), dx(s.layout, s.in);
          auto values = random_integers(&random, x.count(), 9);
          for (double& v : values) v = random.below(one_in) ? NAN : v;
          values = fill(&x, values);
          const auto layer = layer_of(f, x.descriptor(), y.descriptor());
          ASSERT_EQ(BNNSDirectApplyReduction(&layer, nullptr), 0) << BNNSExtLastError();
          const auto got = read(y), want = ref::reduction(f, s.in, s.out, values, {}, 0);
          for (size_t i = 0; i < want.size(); ++i) {
            ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
                << "result " << i << " is " << got[i] << ", expected " << want[i];
          }
          if (!has_gradient(f)) continue;
          const auto gradient = fill(&dy, random_integers(&random, dy.count(), 9));
          auto dx_desc = dx.descriptor(), dy_desc = dy.descriptor();
          const FilterHandle filter = own(BNNSFilterCreateLayerReduction(&layer, nullptr));
          ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                 nullptr, nullptr),
                    0)
              << BNNSExtLastError();
          std::vector<double> want_dx, want_dw;
          ref::reduction_backward(f, s.in, s.out, values, {}, 0, gradient, &want_dx, &want_dw);
          ASSERT_EQ(read(dx), want_dx);
        }
      }
    }
  });
}

// The flattened index counts size[0] fastest, whatever the memory order.
TEST(Reduction, ArgMaxOverSeveralAxesTies) {
  Random random(5);
  for (auto layout : {BNNSDataLayout3DLastMajor, BNNSDataLayout3DFirstMajor}) {
    for (const Sizes& out : {Sizes{1, 1, 6}, Sizes{1, 5, 1}, Sizes{4, 1, 1}, Sizes{1, 1, 1}}) {
      const Sizes in = {4, 5, 6};
      LayoutTensor x(layout, in), y(layout, out, BNNSDataTypeInt32);
      const auto values = fill(&x, random_integers(&random, 120, 1));  // many ties
      for (auto f : {BNNSReduceFunctionArgMax, BNNSReduceFunctionArgMin}) {
        const auto layer = layer_of(f, x.descriptor(), y.descriptor());
        ASSERT_EQ(BNNSDirectApplyReduction(&layer, nullptr), 0) << BNNSExtLastError();
        EXPECT_EQ(read(y), ref::reduction(f, in, out, values, {}, 0));
      }
    }
  }
}

// ---- 3. gradients -----------------------------------------------------------------------------------------------

TEST(Reduction, ReferenceGradient) {
  Random random(6);
  const Sizes in = {3, 4, 2}, out = {1, 4, 1};
  for (BNNSReduceFunction f : kFunctions) {
    if (!has_gradient(f)) continue;
    for (bool weighted : {false, true}) {
      auto x = random.spread(24, 0.05);
      for (double& v : x) v += 2;
      std::vector<double> w;
      if (weighted) w = positive(&random, 24);
      const auto dy = random_normals(&random, 4);
      const auto loss = [&](const std::vector<double>& xs, const std::vector<double>& ws) {
        const auto y = ref::reduction(f, in, out, xs, ws, 0.25);
        return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
      };
      std::vector<double> dx, dw;
      ref::reduction_backward(f, in, out, x, w, 0.25, dy, &dx, &dw);
      EXPECT_LE(gradient_error(dx, central_differences(x, [&](const auto& v) { return loss(v, w); })), 1e-7) << f;
      if (!weighted) continue;
      EXPECT_LE(gradient_error(dw, central_differences(w, [&](const auto& v) { return loss(x, v); })), 1e-7) << f;
    }
  }
}

TEST(Reduction, BC14_BackwardAgainstReference) {
  for_each_isa([&] {
    Random random(7);
    for (const Shape& s : kShapes) {
      for (BNNSReduceFunction f : kFunctions) {
        if (!has_gradient(f)) continue;
        for (unsigned mode = 0; mode < 4; ++mode) {
          SCOPED_TRACE("function " + std::to_string(f) + " layout " + std::to_string(s.layout) + " first size " +
                       std::to_string(s.in[0]) + " mode " + std::to_string(mode));
          const bool weighted = mode & 1, gaps = mode & 2;
          const size_t batch = 2, n = count_of(s.in), m = count_of(s.out);
          LayoutTensor x(s.layout, s.in, BNNSDataTypeFloat32, gaps ? 2 : 1, gaps), y(s.layout, s.out);
          LayoutTensor w(s.layout, s.in, gaps ? BNNSDataTypeFloat16 : BNNSDataTypeFloat32);
          std::vector<double> weights;
          auto layer = layer_of(f, x.descriptor(), y.descriptor(), 0.125f);
          if (weighted) {
            weights = positive(&random, n);
            if (f == BNNSReduceFunctionMeanNonZero) weights[0] = 0;
            weights = fill(&w, weights);
            layer.w_desc = w.descriptor();
          }
          const FilterHandle filter = own(BNNSFilterCreateLayerReduction(&layer, nullptr));
          // Samples in one block of memory, exact at its end.
          const size_t x_stride = x.bytes() / 4 + 3;
          Guarded<float> xs(x_stride + x.bytes() / 4);
          std::vector<std::vector<double>> values, gradients;
          std::vector<double> want_dw(n, 0), dw_size(n, 0);
          std::vector<float> dy(batch * m);
          std::vector<double> want_dx;
          for (size_t b = 0; b < batch; ++b) {
            auto v = positive(&random, n);
            if (f == BNNSReduceFunctionProduct && b == 0) v[n / 2] = 0;
            if (f == BNNSReduceFunctionProduct && b == 1) v[0] = v[n - 1] = 0;
            values.push_back(fill(&x, v));
            std::memcpy(xs.data() + b * x_stride, x.data(), x.bytes());
            gradients.push_back(random_normals(&random, m));
            LayoutTensor g(s.layout, s.out);
            gradients[b] = fill(&g, gradients[b]);
            std::memcpy(dy.data() + b * m, g.data(), g.bytes());
            std::vector<double> dx, dw;
            ref::reduction_backward(f, s.in, s.out, values[b], weights, 0.125, gradients[b], &dx, &dw);
            want_dx.insert(want_dx.end(), dx.begin(), dx.end());
            for (size_t i = 0; i < n; ++i) want_dw[i] += dw[i], dw_size[i] += std::fabs(dw[i]);
          }
          LayoutTensor dw(s.layout, s.in);
          auto dx_layout = generic_layout(s.in.size(), gaps);
          std::vector<float> dx(batch * n, poison());
          auto dx_desc = descriptor(dx_layout, s.in, dx.data()), dy_desc = descriptor(s.layout, s.out, dy.data());
          auto dw_desc = dw.descriptor();
          const auto call = [&] {
            return BNNSFilterApplyBackwardBatch(filter.get(), batch, xs.data(), x_stride, &dx_desc, 0, nullptr, 0,
                                                &dy_desc, 0, weighted ? &dw_desc : nullptr, nullptr);
          };
          for (int times = 1; times <= 2; ++times) {
            ASSERT_EQ(call(), 0) << BNNSExtLastError();
            for (size_t b = 0; b < batch; ++b) {
              LayoutTensor got(dx_layout, s.in);
              std::memcpy(got.data(), dx.data() + b * n, got.bytes());
              // factors of c and of the term, and a result of forward: 32 roundings; products may underflow
              ASSERT_TRUE(within(read(got), want_dx.data() + b * n, n,
                                 [&](size_t i) { return 32 * 0x1p-24 * std::fabs(want_dx[b * n + i]) + 0x1p-126; }))
                  << "sample " << b;
            }
            if (weighted) {
              // x + epsilon is rounded: 2^-24 of error in its logarithm, times |dy| < 6, for both samples
              ASSERT_TRUE(within(read(dw), want_dw, n,
                                 [&](size_t i) { return 32 * 0x1p-24 * dw_size[i] + 12 * times * 0x1p-24; }));
            }
            dx_desc.flags = dw_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
            for (double& v : want_dx) v *= 2;
            for (size_t i = 0; i < n; ++i) want_dw[i] *= 2, dw_size[i] *= 2;
          }
        }
      }
    }
  });
}

// ---- 4. properties ----------------------------------------------------------------------------------------------

TEST(Reduction, BC53_SameBitsForAnyThreadCount) {
  const Shape shapes[] = {{BNNSDataLayoutVector, {500000}, {1}},
                          {BNNSDataLayout2DLastMajor, {600, 700}, {600, 1}},
                          {BNNSDataLayout2DLastMajor, {600, 700}, {1, 700}},
                          {BNNSDataLayout2DLastMajor, {3, 100000}, {3, 1}},
                          {BNNSDataLayout3DLastMajor, {50, 60, 70}, {50, 1, 70}},
                          {BNNSDataLayout3DLastMajor, {60, 50, 70}, {1, 50, 1}}};
  Random random(8);
  for_each_isa([&] {
    for (const Shape& s : shapes) {
      auto x = random.normals(2 * count_of(s.in)), w = random.normals(count_of(s.in)),
           dy = random.normals(2 * count_of(s.out));
      for (auto f : {BNNSReduceFunctionSum, BNNSReduceFunctionLogSumExp, BNNSReduceFunctionArgMax,
                     BNNSReduceFunctionProduct, BNNSReduceFunctionMax, BNNSReduceFunctionSumSquare}) {
        std::vector<float> want, want_dx, want_dw;
        for (size_t threads : kThreadCounts) {
          BNNSFilterParameters options = {};
          options.n_threads = threads;
          auto layer = layer_of(f, descriptor(s.layout, s.in, nullptr), descriptor(s.layout, s.out, nullptr));
          layer.w_desc = descriptor(s.layout, s.in, w.data());
          const FilterHandle filter = own(BNNSFilterCreateLayerReduction(&layer, &options));
          std::vector<float> y(2 * count_of(s.out), poison()), dx(x.size(), poison()), dw(w.size(), poison());
          ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
          if (has_gradient(f)) {
            auto dx_desc = descriptor(s.layout, s.in, dx.data()), dw_desc = descriptor(s.layout, s.in, dw.data());
            auto dy_desc = descriptor(s.layout, s.out, dy.data());
            ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 2, x.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                   &dw_desc, nullptr),
                      0)
                << BNNSExtLastError();
          }
          if (want.empty()) want = y, want_dx = dx, want_dw = dw;
          ASSERT_TRUE(same_bits(y, want) && same_bits(dx, want_dx) && same_bits(dw, want_dw))
              << "function " << f << " threads " << threads;
        }
      }
    }
  });
}

TEST(Reduction, AdjointIdentityOnRandomShapes) {
  Random random(9);
  for (int round = 0; round < 600; ++round) {
    const size_t rank = 1 + random.below(5), batch = 1 + random.below(3);
    Sizes in(rank), out(rank);
    for (size_t k = 0; k < rank; ++k) {
      in[k] = 1 + random.below(rank < 3 ? 80 : 7);
      out[k] = random.below(2) ? 1 : in[k];
    }
    const auto from = generic_layout(rank, random.below(2)), to = generic_layout(rank, random.below(2));
    auto x = random.integers(batch * count_of(in)), w = random.integers(count_of(in), 2),
         g = random.integers(batch * count_of(out));
    std::vector<float> y(g.size()), dx(x.size()), dw(w.size());
    auto layer = layer_of(BNNSReduceFunctionSum, descriptor(from, in, nullptr), descriptor(to, out, nullptr));
    layer.w_desc = descriptor(generic_layout(rank, random.below(2)), in, w.data());
    const FilterHandle filter = own(BNNSFilterCreateLayerReduction(&layer, nullptr));
    auto dx_desc = descriptor(from, in, dx.data()), dy_desc = descriptor(to, out, g.data());
    auto dw_desc = descriptor(layer.w_desc.layout, in, dw.data());
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
    ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), batch, x.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                           &dw_desc, nullptr),
              0)
        << BNNSExtLastError();
    const auto dot = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    // Bilinear in x and w; small integers, so exactly.
    ASSERT_EQ(dot(y, g), dot(x, dx)) << "round " << round;
    ASSERT_EQ(dot(y, g), dot(w, dw)) << "round " << round;
  }
}

}  // namespace
}  // namespace bnns::testing
