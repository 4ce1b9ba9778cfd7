// Softmax and LogSoftmax: the reference by hand and by differences, rows and columns of any axes, layout, stride and
// type against it, and rows that hold infinities or NaN.

#include <map>

#include "src/engine/activation/activation_ref.h"
#include "src/engine/activation/softmax.h"
#include "src/ops/activation/tests/activation_layouts_testing.h"

namespace bnns::testing {
namespace {

constexpr double kUlp = 0x1p-23;
constexpr BNNSActivationFunction kFunctions[] = {BNNSActivationFunctionSoftmax, BNNSActivationFunctionLogSoftmax};

bool is_log(BNNSActivationFunction function) {
  return function == BNNSActivationFunctionLogSoftmax;
}

// ---- 1. reference -----------------------------------------------------------------------------------------------

// e^0 : e^log 2 : e^log 5 = 1 : 2 : 5, so 1/8, 1/4, 5/8. dy = (8, 0, 0): sum dy y = 1, dx = y (dy - 1).
TEST(SoftmaxReference, HandWorked) {
  const std::vector<double> y = ref::softmax_forward(false, {0, std::log(2.0), std::log(5.0)});
  EXPECT_DOUBLE_EQ(y[0], 0.125);
  EXPECT_DOUBLE_EQ(y[1], 0.25);
  EXPECT_DOUBLE_EQ(y[2], 0.625);
  const std::vector<double> dx = ref::softmax_backward(false, {0.125, 0.25, 0.625}, {8, 0, 0});
  EXPECT_DOUBLE_EQ(dx[0], 0.875);
  EXPECT_DOUBLE_EQ(dx[1], -0.25);
  EXPECT_DOUBLE_EQ(dx[2], -0.625);
  EXPECT_DOUBLE_EQ(ref::softmax_forward(true, {0, std::log(3.0)})[1], std::log(0.75));
}

TEST(SoftmaxReference, GradientMatchesDifferences) {
  Random random(11);
  for (bool log : {false, true}) {
    const std::vector<double> x = random.spread(9, 0.37), dy = random.spread(9, 0.61);
    const auto loss = [&](const std::vector<double>& v) {
      const std::vector<double> y = ref::softmax_forward(log, v);
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    EXPECT_LE(
        gradient_error(ref::softmax_backward(log, ref::softmax_forward(log, x), dy), central_differences(x, loss)),
        1e-7);
  }
}

// ---- 2. and 3. the layer against the reference ------------------------------------------------------------------

// The elements of the batch, as (sample, m), that share a row; m counts in memory order of the input's shape.
std::vector<std::vector<size_t>> rows_of(const Shape& shape, uint32_t flags, size_t batch) {
  std::map<std::vector<size_t>, std::vector<size_t>> rows;
  for (size_t n = 0; n < batch; ++n) {
    for (size_t m = 0; m < shape.count(); ++m) {
      std::vector<size_t> key = shape.coordinates(m);
      key.push_back(n);
      for (size_t j = 0; j < shape.rank(); ++j) {
        if (flags >> shape.axis(j) & 1) key[j] = 0;
      }
      if (flags >> shape.rank() & 1) key.back() = 0;
      rows[key].push_back(n * shape.count() + m);
    }
  }
  std::vector<std::vector<size_t>> result;
  for (auto& entry : rows) result.push_back(entry.second);
  return result;
}

// How far a sum of n positive terms may be off, in ulp: the longest chain of f32 additions is n for columns.
double sum_error(size_t n) {
  return double(std::min<size_t>(n, 1024)) / 2 + double(n) / 2048;
}

struct Want {
  std::vector<double> y, y_bound, dx, dx_bound;
};

// From the point `s`, which is x, or the layer's own y.
Want reference(bool log, bool from_output, const std::vector<std::vector<size_t>>& rows, const std::vector<float>& s,
               const std::vector<float>& dy) {
  Want want;
  want.y.resize(s.size());
  want.dx = want.y_bound = want.dx_bound = want.y;
  for (const std::vector<size_t>& row : rows) {
    std::vector<double> points, gradients, y;
    double max = -INFINITY, total = 0;
    for (size_t m : row) {
      points.push_back(s[m]);
      gradients.push_back(dy[m]);
      max = std::max<double>(max, s[m]);
    }
    y = from_output ? points : ref::softmax_forward(log, points);
    const std::vector<double> dx = ref::softmax_backward(log, y, gradients);
    for (size_t i = 0; i < row.size(); ++i) total += std::fabs(gradients[i]) * (log ? 1 : y[i]);
    for (size_t i = 0; i < row.size(); ++i) {
      // x - max is rounded once; e^ is within 2 ulp; the sum as above; log(sum) is x - max - y.
      const double shift = from_output ? 0 : std::fabs(points[i] - max), terms = shift + 8 + sum_error(row.size());
      const double p = log ? std::exp(y[i]) : y[i];
      want.y[row[i]] = y[i];
      want.y_bound[row[i]] =
          kUlp * (log ? shift + 3 * std::fabs(y[i]) + 3 + sum_error(row.size()) : terms * p) + 0x1p-147;
      want.dx[row[i]] = dx[i];
      want.dx_bound[row[i]] =
          kUlp * (log ? std::fabs(gradients[i]) + p * total * terms : p * (std::fabs(gradients[i]) + total) * terms) +
          0x1p-147 * (1 + total);
    }
  }
  return want;
}

// One layer, forward and backward from y and from x, against the reference; gaps must stay poison.
void check_layer(const Shape& in, const Shape& out, uint32_t flags, size_t batch, size_t gap, size_t n_threads = 0) {
  Random random(in.count() + 7 * flags + 31 * batch);
  const std::vector<float> x = random.normals(batch * in.count(), 3), dy = random.normals(batch * in.count());
  const uint32_t axes = flags ? flags : 1;
  const std::vector<std::vector<size_t>> rows = rows_of(in, axes, batch);
  for (BNNSActivationFunction function : kFunctions) {
    SCOPED_TRACE(std::string(activation_name(function)) + " flags " + std::to_string(flags) + " batch " +
                 std::to_string(batch) + " count " + std::to_string(in.count()));
    PoisonedBatch px(in, batch, gap), py(out, batch, 2 * gap), pdy(out, batch, gap), pdx(in, batch, 3 * gap);
    px.fill(x);
    pdy.fill(dy);
    TestFilter filter(layer_of(in.descriptor(nullptr), out.descriptor(nullptr), function, 0, 0, flags), n_threads);
    ASSERT_NE(filter, nullptr) << BNNSExtLastError();
    ASSERT_EQ(BNNSFilterApplyBatch(filter, batch, px.data(), px.stride(), py.data(), py.stride()), 0);
    const Want from_x = reference(is_log(function), false, rows, x, dy);
    const std::vector<float> y = py.values();
    ASSERT_TRUE(within(y, from_x.y, y.size(), [&](size_t i) { return from_x.y_bound[i]; }));
    ASSERT_TRUE(py.gaps_are_poison());
    const Want from_y = reference(is_log(function), true, rows, y, dy);
    const BNNSNDArrayDescriptor ddy = pdy.descriptor();
    for (bool from_output : {true, false}) {
      BNNSNDArrayDescriptor ddx = pdx.descriptor();
      ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, batch, px.data(), px.stride(), &ddx, pdx.stride(),
                                             from_output ? py.data() : nullptr, py.stride(), &ddy, pdy.stride(),
                                             nullptr, nullptr),
                0)
          << BNNSExtLastError();
      const Want& want = from_output ? from_y : from_x;
      const std::vector<float> dx = pdx.values();
      ASSERT_TRUE(within(dx, want.dx, dx.size(), [&](size_t i) { return want.dx_bound[i]; })) << from_output;
      ASSERT_TRUE(pdx.gaps_are_poison());
      // Accumulate adds to what is there, with one more rounding.
      ddx.flags = BNNSNDArrayFlagBackpropAccumulate;
      pdx.fill(x);
      ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, batch, px.data(), px.stride(), &ddx, pdx.stride(),
                                             from_output ? py.data() : nullptr, py.stride(), &ddy, pdy.stride(),
                                             nullptr, nullptr),
                0);
      const std::vector<float> sum = pdx.values();
      for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], x[i] + dx[i]) << i;
      ASSERT_TRUE(pdx.gaps_are_poison());
    }
  }
}

Shape vector_shape(size_t n) {
  return {BNNSDataLayoutVector, {n}, {}};
}

TEST(Softmax, RowsOfEveryLength) {
  for_each_isa([] {
    for (size_t n = 1; n <= 67; ++n) check_layer(vector_shape(n), vector_shape(n), 0, 1 + n % 3, n % 2);
    for (size_t n : {1000u, 5000u}) check_layer(vector_shape(n), vector_shape(n), 0, 2, 1);
  });
}

TEST(Softmax, EveryAxisOfEveryLayout) {
  const Shape shapes[] = {
      {BNNSDataLayoutImageCHW, {5, 4, 3}, {}},
      {BNNSDataLayoutImageCHW, {5, 4, 3}, {1, 7, 31}},
      {BNNSDataLayoutImageCHW, {5, 1, 3}, {2, 13, 29}},
      {BNNSDataLayout3DFirstMajor, {2, 3, 4}, {}},
      {BNNSDataLayout3DFirstMajor, {2, 3, 11}, {1, 13, 40}},
      {BNNSDataLayout2DFirstMajor, {3, 9}, {}},
      {BNNSDataLayout2DLastMajor, {9, 3}, {1, 10}},
      {BNNSDataLayoutRowMajorMatrix, {4, 3}, {}},
      {BNNSDataLayoutColumnMajorMatrix, {3, 4}, {}},
      {BNNSDataLayout4DFirstMajor, {2, 2, 3, 2}, {}},
      {BNNSDataLayout8DLastMajor, {2, 1, 2, 2, 1, 2, 2, 2}, {}},
      {BNNSDataLayout8DLastMajor, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 3, 7, 15, 31, 63, 127, 255}},
  };
  for_each_isa([&] {
    for (const Shape& shape : shapes) {
      const uint32_t all = (2u << shape.rank()) - 1;
      const uint32_t step = shape.rank() == 8 ? 73 : 1;  // 511 sets of axes are more than needed
      for (uint32_t flags = 0; flags <= all; flags += step) {
        for (size_t batch : {1u, 3u}) check_layer(shape, shape, flags, batch, 5);
      }
      check_layer(shape, shape, all, 2, 1);
    }
  });
}

// Channels of an image: tiles of 64 columns and what is left of a line (111 = 64 + 47, 19 = one partial vector).
TEST(Softmax, Columns) {
  for_each_isa([] {
    for (size_t width : {8u, 16u, 19u, 37u, 64u, 65u}) {
      const Shape image = {BNNSDataLayoutImageCHW, {width, 3, 21}, {}};
      for (uint32_t flags : {4u, 8u, 12u, 2u, 6u}) check_layer(image, image, flags, 4, 3);
    }
  });
}

// Input and output are paired in memory order, whatever their shapes.
TEST(Softmax, ShapesMayDiffer) {
  const Shape in[] = {{BNNSDataLayoutVector, {24}, {}},
                      {BNNSDataLayoutImageCHW, {6, 2, 2}, {1, 7, 15}},
                      {BNNSDataLayout2DFirstMajor, {2, 12}, {}}};
  const Shape out[] = {{BNNSDataLayoutRowMajorMatrix, {4, 6}, {1, 5}},
                       {BNNSDataLayoutVector, {24}, {}},
                       {BNNSDataLayoutVector, {24}, {3}},
                       {BNNSDataLayout3DFirstMajor, {2, 2, 6}, {1, 8, 20}}};
  for_each_isa([&] {
    for (const Shape& i : in) {
      for (const Shape& o : out) {
        for (uint32_t flags = 0; flags < 2u << i.rank(); ++flags) check_layer(i, o, flags, 2, 1);
      }
    }
  });
}

// ---- 4. properties ----------------------------------------------------------------------------------------------

TEST(Softmax, RowsSumToOneAndIgnoreAShift) {
  for_each_isa([] {
    Random random(12);
    for (size_t n : {3u, 10u, 100u, 3000u, 100000u}) {
      // Multiples of 1/64 below 2^10: adding the shift is exact, so the results must be equal to the bit.
      std::vector<float> x(n), y(n), shifted(n);
      for (float& v : x) v = float(random.integer(-500, 500)) / 64;
      activation_forward({BNNSActivationFunctionSoftmax, 0, 0}, x.data(), y.data(), n);
      double sum = 0;
      for (float v : y) sum += v;
      EXPECT_NEAR(sum, 1, kUlp * (8 + sum_error(n)));
      for (float& v : x) v += 512;
      activation_forward({BNNSActivationFunctionSoftmax, 0, 0}, x.data(), shifted.data(), n);
      EXPECT_TRUE(same_bits(y, shifted));
    }
  });
}

TEST(Softmax, SameBitsForAnyThreadCount) {
  Random random(13);
  const Shape image = {BNNSDataLayoutImageCHW, {65, 9, 33}, {}};
  const size_t batch = 11, n = batch * image.count();
  const std::vector<float> x = random.normals(n, 3), dy = random.normals(n);
  for (uint32_t flags : {1u, 4u, 8u, 7u}) {
    std::vector<float> first_y, first_dx;
    for (size_t threads : kThreadCounts) {
      std::vector<float> y(n), dx(n), g = dy;
      TestFilter filter(
          layer_of(image.descriptor(nullptr), image.descriptor(nullptr), BNNSActivationFunctionSoftmax, 0, 0, flags),
          threads);
      ASSERT_EQ(BNNSFilterApplyBatch(filter, batch, x.data(), 0, y.data(), 0), 0);
      BNNSNDArrayDescriptor ddx = image.descriptor(dx.data()), ddy = image.descriptor(g.data());
      ASSERT_EQ(
          BNNSFilterApplyBackwardBatch(filter, batch, nullptr, 0, &ddx, 0, y.data(), 0, &ddy, 0, nullptr, nullptr), 0);
      if (first_y.empty()) first_y = y, first_dx = dx;
      EXPECT_TRUE(same_bits(y, first_y));
      EXPECT_TRUE(same_bits(dx, first_dx));
    }
  }
}

// In place: the same bits as out of place, for rows and columns.
TEST(Softmax, BC41_InPlace) {
  for_each_isa([] {
    Random random(14);
    for (size_t n = 1; n <= 67; ++n) {
      for (uint32_t flags : {1u, 2u}) {
        const Shape shape = {BNNSDataLayout2DLastMajor, {n, 5}, {}};
        for (BNNSActivationFunction function : kFunctions) {
          std::vector<float> x = random.normals(5 * n), y(5 * n);
          TestFilter filter(layer_of(shape.descriptor(nullptr), shape.descriptor(nullptr), function, 0, 0, flags));
          ASSERT_EQ(BNNSFilterApply(filter, x.data(), y.data()), 0);
          ASSERT_EQ(BNNSFilterApply(filter, x.data(), x.data()), 0);
          ASSERT_TRUE(same_bits(x, y));
        }
      }
    }
  });
}

// NaN, +inf, or -inf alone make their own row NaN and leave every other row, and its gradient, as it was; a row of huge
// values does not overflow. The same in rows, short rows and columns.
TEST(Softmax, BC26_SpecialRows) {
  const float inf = INFINITY;
  for_each_isa([&] {
    Random random(15);
    for (size_t n : {5u, 40u}) {
      for (uint32_t flags : {1u, 2u}) {  // 1: 12 rows of n; 2: n rows of 12, as columns
        const Shape shape = {BNNSDataLayout2DLastMajor, {n, 12}, {}};
        const size_t length = flags == 1 ? n : 12, step = flags == 1 ? 1 : n, row_step = flags == 1 ? n : 1;
        for (BNNSActivationFunction function : kFunctions) {
          TestFilter filter(layer_of(shape.descriptor(nullptr), shape.descriptor(nullptr), function, 0, 0, flags));
          const std::vector<float> x = random.normals(12 * n), dy = random.normals(12 * n);
          for (int special = 0; special < 6; ++special) {
            std::vector<float> changed = x, y(12 * n), want(12 * n), dx(12 * n), want_dx(12 * n), g = dy;
            const size_t row = 3 * row_step;
            for (size_t i = 0; i < length; ++i) {
              float& v = changed[row + i * step];
              switch (special) {
                case 0:
                  v = -inf;
                  break;
                case 1:
                  if (i == 1) v = inf;
                  break;
                case 2:
                  if (i == 1 || i == 3) v = inf;
                  break;
                case 3:
                  if (i == length - 1) v = NAN;
                  break;
                case 4:
                  v = i % 2 ? 1e4f : -1e4f;
                  break;
                case 5:
                  if (i == 2) v = -inf;
                  break;
              }
            }
            BNNSNDArrayDescriptor ddx = shape.descriptor(dx.data()), ddy = shape.descriptor(g.data());
            ASSERT_EQ(BNNSFilterApply(filter, x.data(), want.data()), 0);
            BNNSNDArrayDescriptor dwant = shape.descriptor(want_dx.data());
            ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, nullptr, 0, &dwant, 0, want.data(), 0, &ddy, 0, nullptr,
                                                   nullptr),
                      0);
            ASSERT_EQ(BNNSFilterApply(filter, changed.data(), y.data()), 0);
            ASSERT_EQ(
                BNNSFilterApplyBackwardBatch(filter, 1, nullptr, 0, &ddx, 0, y.data(), 0, &ddy, 0, nullptr, nullptr),
                0);
            std::vector<bool> in_row(12 * n);
            for (size_t i = 0; i < length; ++i) in_row[row + i * step] = true;
            for (size_t i = 0; i < 12 * n; ++i) {
              SCOPED_TRACE("special " + std::to_string(special) + " element " + std::to_string(i));
              if (!in_row[i]) {
                ASSERT_EQ(bits(y[i]), bits(want[i]));
                ASSERT_EQ(bits(dx[i]), bits(want_dx[i]));
              } else if (special < 4) {
                ASSERT_TRUE(std::isnan(y[i]));
                ASSERT_TRUE(std::isnan(dx[i]));
              } else {
                ASSERT_FALSE(std::isnan(y[i]));
                ASSERT_TRUE(std::isfinite(dx[i]));
                if (!is_log(function)) {
                  ASSERT_TRUE(y[i] >= 0 && y[i] <= 1);
                }
              }
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace bnns::testing
