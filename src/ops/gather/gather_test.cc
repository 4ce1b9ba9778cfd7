// Gather and scatter: hand-worked numbers, every layout, type and index type against the reference, threads, repeats.

#include "src/ops/gather/gather.h"

#include <algorithm>

#include "src/ops/gather/gather_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;

constexpr BNNSReduceFunction kNone = BNNSReduceFunctionNone, kSum = BNNSReduceFunctionSum;
const BNNSDataType kIndexTypes[] = {BNNSDataTypeInt8,  BNNSDataTypeInt16,  BNNSDataTypeInt32,  BNNSDataTypeInt64,
                                    BNNSDataTypeUInt8, BNNSDataTypeUInt16, BNNSDataTypeUInt32, BNNSDataTypeUInt64};
const BNNSDataType kTypes[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16, BNNSDataTypeInt8,
                               BNNSDataTypeInt32,   BNNSDataTypeInt64,   BNNSDataTypeUInt16};

// ---- 1. hand-worked ---------------------------------------------------------------------------------------------

TEST(Gather, HandWorked) {
  // 3 x 2, rows 2 and 0 and 2; then columns.
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
  int32_t rows[3] = {2, 0, 2}, column[1] = {1};
  auto in = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, x), out = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, y);
  auto index = vector_descriptor(3, rows, BNNSDataTypeInt32);
  ASSERT_EQ(BNNSGather(0, &in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{5, 6, 1, 2, 5, 6}));
  index = vector_descriptor(1, column, BNNSDataTypeInt32);
  out = descriptor(BNNSDataLayout2DFirstMajor, {3, 1}, y);
  ASSERT_EQ(BNNSGather(1, &in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 3), (std::vector<float>{2, 4, 6}));
  // Full indices: out[i][j] = x[i][indices[i][j]].
  int32_t each[6] = {1, 0, 0, 0, 1, 1};
  index = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, each, BNNSDataTypeInt32);
  out = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, y);
  ASSERT_EQ(BNNSGather(1, &in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{2, 1, 3, 3, 6, 6}));
}

TEST(Scatter, HandWorked) {
  float x[4] = {1, 2, 3, 4}, y[6] = {10, 20, 30, 40, 50, 60};
  int64_t rows[2] = {2, 2};
  auto in = descriptor(BNNSDataLayout2DFirstMajor, {2, 2}, x), out = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, y);
  auto index = vector_descriptor(2, rows, BNNSDataTypeInt64);
  ASSERT_EQ(BNNSScatter(0, kSum, &in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{10, 20, 30, 40, 54, 66}));
  ASSERT_EQ(BNNSScatter(0, kNone, &in, &index, &out, nullptr), 0) << BNNSExtLastError();  // the last one wins
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{10, 20, 30, 40, 3, 4}));
}

TEST(GatherND, HandWorked) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[4];
  int32_t pairs[4] = {2, 1, 0, 0}, rows[2] = {1, 2};
  auto in = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, x), out = vector_descriptor(2, y);
  auto index = descriptor(BNNSDataLayout2DFirstMajor, {2, 2}, pairs, BNNSDataTypeInt32);
  ASSERT_EQ(BNNSGatherND(&in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 2), (std::vector<float>{6, 1}));
  index = descriptor(BNNSDataLayout2DFirstMajor, {2, 1}, rows, BNNSDataTypeInt32);  // vectors of one: whole rows
  out = descriptor(BNNSDataLayout2DFirstMajor, {2, 2}, y);
  ASSERT_EQ(BNNSGatherND(&in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{3, 4, 5, 6}));
  ASSERT_EQ(BNNSScatterND(kSum, &out, &index, &in, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(x, x + 6), (std::vector<float>{1, 2, 6, 8, 10, 12}));
  // A single index vector, a single element.
  index = vector_descriptor(2, pairs, BNNSDataTypeInt32);
  out = vector_descriptor(1, y);
  ASSERT_EQ(BNNSGatherND(&in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(y[0], 12);
}

// ---- 2. against the reference -----------------------------------------------------------------------------------

struct Tensors {
  LayoutTensor data, values, indices;
};

// Runs gather, scatter and scatter-sum on one case; walk calls f(coordinates in data, coordinates in values).
template <class Gather, class Scatter, class Walk>
void check_case(Tensors& t, Random& random, Gather&& gather, Scatter&& scatter, Walk&& walk) {
  const auto before_indices = t.indices.snapshot();
  std::vector<double> numbers(t.data.count());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = double(i % 100);
  fill(&t.data, numbers);
  auto d = t.data.descriptor(), v = t.values.descriptor(), i = t.indices.descriptor();
  ASSERT_EQ(gather(&d, &i, &v), 0) << BNNSExtLastError();
  ASSERT_TRUE(t.values.gaps_untouched());
  walk([&](const Coordinates& at, const Coordinates& to) { ASSERT_EQ(t.values.get(to), t.data.get(at)); });
  for (BNNSReduceFunction op : {kNone, kSum}) {
    fill(&t.values, random_integers(&random, t.values.count(), 1));
    if (t.values.type() == BNNSDataTypeUInt16) fill(&t.values, std::vector<double>(t.values.count(), 1));
    fill(&t.data, std::vector<double>(t.data.count(), 5));
    std::vector<double> want(t.data.count(), 5);
    const auto place = [&](const Coordinates& at) {
      size_t result = 0, step = 1;
      for (size_t k = 0; k < at.size(); step *= t.data.size()[k++]) result += at[k] * step;
      return result;
    };
    walk([&](const Coordinates& at, const Coordinates& from) {
      double& to = want[place(at)];
      to = op == kSum ? to + t.values.get(from) : t.values.get(from);
    });
    ASSERT_EQ(scatter(op, &v, &i, &d), 0) << BNNSExtLastError();
    ASSERT_TRUE(t.data.gaps_untouched());
    ASSERT_EQ(read(t.data), want) << "op " << op;
  }
  ASSERT_EQ(t.indices.snapshot(), before_indices);
}

TEST(Gather, BC15_BC33_AxesLayoutsTypes) {
  struct Case {
    BNNSDataLayout data, values;
    Sizes size;
    size_t axis, n;
    bool full;
  };
  const Case cases[] = {
      {BNNSDataLayoutVector, BNNSDataLayoutVector, {9}, 0, 40, false},
      {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix, {17, 6}, 1, 5, false},
      {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix, {17, 6}, 0, 21, false},
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {5, 4, 3}, 1, 7, false},
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {5, 4, 3}, 2, 2, false},
      {BNNSDataLayout3DFirstMajor, BNNSDataLayoutImageCHW, {5, 4, 3}, 0, 6, false},
      {BNNSDataLayout3DFirstMajor, BNNSDataLayout3DFirstMajor, {5, 4, 3}, 2, 4, false},
      {BNNSDataLayout4DLastMajor, BNNSDataLayout4DFirstMajor, {2, 3, 4, 3}, 2, 3, false},
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {6, 4, 3}, 0, 5, true},
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {6, 4, 3}, 2, 2, true},
  };
  Random random(1);
  for (const Case& c : cases) {
    for (BNNSDataType type : kTypes) {
      for (BNNSDataType index_type : kIndexTypes) {
        const size_t gaps = random.below(4), x_gap = gaps % 2, y_gap = gaps / 2;
        Sizes values = c.size;
        values[c.axis] = c.n;
        Tensors t{{c.data, c.size, type, 1 + x_gap, 3 * x_gap},
                  {c.values, values, type, 1 + 2 * y_gap, y_gap},
                  {c.full ? c.values : BNNSDataLayoutVector, c.full ? values : Sizes{c.n}, index_type, 1 + y_gap, 0}};
        SCOPED_TRACE("layout " + std::to_string(c.data) + " axis " + std::to_string(c.axis) + " type " +
                     std::to_string(type) + " index type " + std::to_string(index_type));
        for_each_coordinate(t.indices.size(), [&](const Coordinates& at) {
          t.indices.set(at, double(random.below(c.size[c.axis])));  // with repeats: the last one wins
        });
        const auto index = [&](const Coordinates& at) { return size_t(t.indices.get(at)); };
        check_case(
            t, random, [&](auto* d, auto* i, auto* v) { return BNNSGather(c.axis, d, i, v, nullptr); },
            [&](auto op, auto* v, auto* i, auto* d) { return BNNSScatter(c.axis, op, v, i, d, nullptr); },
            [&](auto&& f) { ref::for_each_gathered(c.axis, c.full, values, index, f); });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(GatherND, BC15_BC33_LayoutsTypes) {
  struct Case {
    BNNSDataLayout data, indices, values;
    Sizes size, index_size, values_size;
  };
  const auto f = [](size_t rank) { return generic_layout(rank, true); };
  const auto l = [](size_t rank) { return generic_layout(rank, false); };
  const Case cases[] = {
      {f(2), f(2), BNNSDataLayoutVector, {5, 6}, {7, 2}, {7}},
      {f(2), f(2), f(2), {5, 6}, {4, 1}, {4, 6}},
      {f(3), f(3), f(3), {4, 3, 5}, {2, 3, 2}, {2, 3, 5}},
      {f(3), f(2), f(3), {4, 3, 5}, {3, 1}, {3, 3, 5}},
      {l(3), l(2), l(2), {4, 3, 5}, {6, 2}, {6, 5}},
      {f(3), BNNSDataLayoutVector, BNNSDataLayoutVector, {4, 3, 5}, {2}, {5}},
      {f(2), BNNSDataLayoutVector, BNNSDataLayoutVector, {4, 3}, {2}, {1}},
      {BNNSDataLayoutRowMajorMatrix,
       BNNSDataLayoutRowMajorMatrix,
       BNNSDataLayoutRowMajorMatrix,
       {6, 5},
       {1, 4},
       {6, 4}},
      {BNNSDataLayoutColumnMajorMatrix, f(2), BNNSDataLayoutRowMajorMatrix, {5, 6}, {4, 1}, {6, 4}},
      {l(4), f(3), f(4), {3, 4, 2, 5}, {2, 2, 2}, {2, 2, 2, 5}},
  };
  Random random(2);
  for (const Case& c : cases) {
    for (BNNSDataType type : kTypes) {
      for (BNNSDataType index_type : kIndexTypes) {
        const size_t gaps = random.below(4), x_gap = gaps % 2, y_gap = gaps / 2;
        Tensors t{{c.data, c.size, type, 1 + x_gap, 3 * x_gap},
                  {c.values, c.values_size, type, 1 + 2 * y_gap, y_gap},
                  {c.indices, c.index_size, index_type, 1 + y_gap, x_gap}};
        SCOPED_TRACE("layout " + std::to_string(c.data) + " type " + std::to_string(type));
        // Component k of a vector is below extent k; vectors are distinct, so that None has one answer in any order.
        const Coordinates extents = ref::logical(c.data, c.size);
        Coordinates lead = ref::logical(c.indices, c.index_size);
        const size_t L = lead.back();
        lead.pop_back();
        const bool single = lead.empty();
        if (single) lead = {1};
        std::vector<Coordinates> used;
        for_each_coordinate(lead, [&](const Coordinates& p) {
          Coordinates vector(L);
          do {
            for (size_t k = 0; k < L; ++k) vector[k] = random.below(extents[k]);
          } while (std::find(used.begin(), used.end(), vector) != used.end());
          used.push_back(vector);
          for (size_t k = 0; k < L; ++k) {
            Coordinates at = single ? Coordinates{} : p;
            at.push_back(k);
            t.indices.set(ref::logical(c.indices, at), double(vector[k]));
          }
        });
        const auto index = [&](const Coordinates& at) { return size_t(t.indices.get(at)); };
        check_case(
            t, random, [&](auto* d, auto* i, auto* v) { return BNNSGatherND(d, i, v, nullptr); },
            [&](auto op, auto* v, auto* i, auto* d) { return BNNSScatterND(op, v, i, d, nullptr); },
            [&](auto&& g) { ref::for_each_gathered_nd(c.data, c.size, c.indices, c.index_size, c.values, index, g); });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Gather, BC53_SameBitsForAnyThreadCount) {
  Random random(3);
  const Sizes size = {40, 300, 30};
  auto x = random.normals(count_of(size));
  for (size_t axis = 0; axis < 3; ++axis) {
    Sizes values = size;
    values[axis] = 90;
    auto v = random.normals(count_of(values));
    std::vector<int32_t> index(90);
    for (int32_t& i : index) i = int32_t(random.below(size[axis]));
    auto index_desc = vector_descriptor(90, index.data(), BNNSDataTypeInt32);
    std::vector<float> want, want_sum;
    for (size_t threads : kThreadCounts) {
      BNNSFilterParameters options = {};
      options.n_threads = threads;
      std::vector<float> y(count_of(values), poison()), sum = x;
      auto x_desc = descriptor(BNNSDataLayoutImageCHW, size, x.data()), sum_desc = x_desc;
      auto y_desc = descriptor(BNNSDataLayoutImageCHW, values, y.data()), v_desc = y_desc;
      sum_desc.data = sum.data(), v_desc.data = v.data();
      ASSERT_EQ(BNNSGather(axis, &x_desc, &index_desc, &y_desc, &options), 0) << BNNSExtLastError();
      ASSERT_EQ(BNNSScatter(axis, kSum, &v_desc, &index_desc, &sum_desc, &options), 0) << BNNSExtLastError();
      if (want.empty()) {
        want = y, want_sum = sum;
        ref::for_each_gathered(
            axis, false, values, [&](const Coordinates& at) { return size_t(index[at[0]]); },
            [&](const Coordinates& from, const Coordinates& to) {
              ASSERT_EQ(y[to[0] + values[0] * (to[1] + values[1] * to[2])],
                        x[from[0] + 40 * (from[1] + 300 * from[2])]);
            });
      }
      ASSERT_TRUE(same_bits(y, want) && same_bits(sum, want_sum)) << threads << " threads";
    }
  }
}

// BC32: all indices equal: the sum is exact for any number of threads. The adjoint of a gather is a scatter-sum.
TEST(Scatter, BC32_RepeatsAndAdjoint) {
  Random random(4);
  for (int round = 0; round < 300; ++round) {
    const size_t rank = 1 + random.below(4), axis = random.below(rank), n = 1 + random.below(30);
    Sizes size(rank);
    for (size_t& e : size) e = 1 + random.below(9);
    Sizes values = size;
    values[axis] = n;
    const auto layout = generic_layout(rank, random.below(2));
    auto x = random.integers(count_of(size)), g = random.integers(count_of(values));
    std::vector<float> y(g.size()), dx(x.size(), 0);
    std::vector<uint8_t> index(n);
    const bool equal = random.below(4) == 0;
    for (uint8_t& i : index) i = equal ? 0 : uint8_t(random.below(size[axis]));
    auto index_desc = vector_descriptor(n, index.data(), BNNSDataTypeUInt8);
    auto x_desc = descriptor(layout, size, x.data()), dx_desc = descriptor(layout, size, dx.data());
    auto y_desc = descriptor(layout, values, y.data()), g_desc = descriptor(layout, values, g.data());
    ASSERT_EQ(BNNSGather(axis, &x_desc, &index_desc, &y_desc, nullptr), 0) << BNNSExtLastError();
    ASSERT_EQ(BNNSScatter(axis, kSum, &g_desc, &index_desc, &dx_desc, nullptr), 0) << BNNSExtLastError();
    double left = 0, right = 0;
    for (size_t i = 0; i < y.size(); ++i) left += double(y[i]) * g[i];
    for (size_t i = 0; i < x.size(); ++i) right += double(x[i]) * dx[i];
    ASSERT_EQ(left, right) << "round " << round;
  }
}

// BC07, BC32: very many points meet on few rows: the sums are those of the points in order, for any number of threads.
TEST(Scatter, BC07_BC32_PointsThatMeetKeepTheirOrder) {
  const size_t points = 60'000, width = 3, rows = 7;
  Random random(6);
  auto x = random.normals(points * width);
  std::vector<int32_t> index(points);
  std::vector<float> want(rows * width, 0);
  for (size_t i = 0; i < points; ++i) {
    index[i] = int32_t(random.below(rows));
    for (size_t k = 0; k < width; ++k) want[size_t(index[i]) * width + k] += x[i * width + k];
  }
  auto in = descriptor(BNNSDataLayout2DFirstMajor, {points, width}, x.data());
  auto indices = vector_descriptor(points, index.data(), BNNSDataTypeInt32);
  for (size_t threads : kThreadCounts) {
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    std::vector<float> y(rows * width, 0);
    auto out = descriptor(BNNSDataLayout2DFirstMajor, {rows, width}, y.data());
    ASSERT_EQ(BNNSScatter(0, kSum, &in, &indices, &out, &options), 0) << BNNSExtLastError();
    ASSERT_TRUE(same_bits(y, want)) << threads << " threads";
  }
}

TEST(ScatterND, RepeatsAreTakenInOrder) {
  float x[4] = {1, 2, 3, 4}, y[3] = {10, 10, 10};
  int32_t points[4] = {1, 0, 1, 1};
  auto in = vector_descriptor(4, x), out = vector_descriptor(3, y);
  auto index = descriptor(BNNSDataLayout2DFirstMajor, {4, 1}, points, BNNSDataTypeInt32);
  ASSERT_EQ(BNNSScatterND(kSum, &in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 3), (std::vector<float>{12, 18, 10}));
  ASSERT_EQ(BNNSScatterND(kNone, &in, &index, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 3), (std::vector<float>{2, 4, 10}));
}

// What no index names keeps its bits, -0 and NaN too.
TEST(Scatter, UntouchedCellsKeepTheirBits) {
  float x[2] = {1, 2};
  uint32_t y[6] = {0x80000000, kPoisonBits, 0x7f800001, 0x80000000, 0, 0x80000001};
  int32_t rows[1] = {1};
  auto in = descriptor(BNNSDataLayout2DFirstMajor, {1, 2}, x), out = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, y);
  auto index = vector_descriptor(1, rows, BNNSDataTypeInt32);
  for (BNNSReduceFunction op : {kNone, kSum}) {
    ASSERT_EQ(BNNSScatter(0, op, &in, &index, &out, nullptr), 0) << BNNSExtLastError();
    EXPECT_EQ(y[0], 0x80000000u);
    EXPECT_EQ(y[1], kPoisonBits);
    EXPECT_EQ(y[4], 0u);
    EXPECT_EQ(y[5], 0x80000001u);
  }
}

}  // namespace
}  // namespace bnns::testing
