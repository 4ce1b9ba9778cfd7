// TopK and InTopK: documented numbers, sorting as the reference, properties, refusals.

#include "src/ops/topk/topk.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "src/ops/topk/topk_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;

TEST(TopK, DocumentedVector) {
  float x[5] = {3, 9, 1, 7, 5}, v[2];
  int32_t i[2];
  auto in = vector_descriptor(5, x), values = vector_descriptor(2, v),
       indices = vector_descriptor(2, i, BNNSDataTypeInt32);
  ASSERT_EQ(BNNSDirectApplyTopK(2, 0, 1, &in, 0, &values, 0, &indices, 0, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(v, v + 2), (std::vector<float>{9, 7}));
  EXPECT_EQ(std::vector<int32_t>(i, i + 2), (std::vector<int32_t>{1, 3}));
  v[0] = v[1] = 0;
  ASSERT_EQ(BNNSDirectApplyTopK(2, 0, 1, &in, 0, &values, 0, nullptr, 0, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(v, v + 2), (std::vector<float>{9, 7}));
}

// K45: axis 0 of a RowMajorMatrix runs over its rows.
TEST(TopK, DocumentedRowMajorMatrix) {
  float x[16] = {1, 2, 3, 9, 1, 6, 7, 1, 9, 0, 1, 3, 4, 5, 8, 1}, v[8];
  int32_t i[8];
  auto in = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 4}, x);
  auto values = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 2}, v);
  auto indices = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 2}, i, BNNSDataTypeInt32);
  ASSERT_EQ(BNNSDirectApplyTopK(2, 0, 1, &in, 0, &values, 0, &indices, 0, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(v, v + 8), (std::vector<float>{9, 6, 8, 9, 4, 5, 7, 3}));
  EXPECT_EQ(std::vector<int32_t>(i, i + 8), (std::vector<int32_t>{2, 1, 3, 0, 3, 3, 1, 2}));
}

TEST(TopK, ReferenceByHand) {
  EXPECT_EQ(ref::order({2, 5, NAN, 5, 1}), (std::vector<size_t>{2, 1, 3, 0, 4}));
  EXPECT_TRUE(ref::in_top_k({1, 3, 3, 2}, 1, 2));  // equals of the first are in
  EXPECT_FALSE(ref::in_top_k({1, 3, 3, 2}, 2, 3));
}

struct Case {
  BNNSDataLayout layout;
  Sizes size;
};
const Case kCases[] = {
    {BNNSDataLayoutVector, {1}},           {BNNSDataLayoutVector, {67}},
    {BNNSDataLayoutVector, {1500}},        {BNNSDataLayout2DLastMajor, {9, 33}},
    {BNNSDataLayout2DFirstMajor, {9, 33}}, {BNNSDataLayoutColumnMajorMatrix, {5, 6}},
    {BNNSDataLayoutImageCHW, {5, 6, 7}},   {BNNSDataLayout4DFirstMajor, {3, 4, 5, 6}},
};

TEST(TopK, BC15_BC33_AxesLayoutsStridesTypes) {
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16, BNNSDataTypeInt8};
  const BNNSDataType index_types[] = {BNNSDataTypeInt32, BNNSDataTypeUInt64, BNNSDataTypeInt16, BNNSDataTypeUInt32};
  Random random(1);
  for (const Case& c : kCases) {
    for (size_t axis = 0; axis < c.size.size(); ++axis) {
      for (unsigned mode = 0; mode < 16; ++mode) {
        const BNNSDataType type = types[mode % 4], index_type = index_types[mode / 4];
        const size_t n = c.size[axis], k = 1 + random.below(n);
        SCOPED_TRACE("layout " + std::to_string(c.layout) + " axis " + std::to_string(axis) + " mode " +
                     std::to_string(mode) + " K " + std::to_string(k));
        Sizes best = c.size, less = c.size;
        best[axis] = k;
        less.erase(less.begin() + long(axis));
        if (less.empty()) less = {1};
        LayoutTensor x(c.layout, c.size, type, mode & 4 ? 2 : 1, mode & 4);
        LayoutTensor values(c.layout, best, type, mode & 8 ? 2 : 1), indices(c.layout, best, index_type, 1, mode & 4);
        const auto numbers = fill(&x, random_integers(&random, x.count(), 30));  // ties too
        auto x_desc = x.descriptor(), v_desc = values.descriptor(), i_desc = indices.descriptor();
        ASSERT_EQ(BNNSDirectApplyTopK(k, axis, 1, &x_desc, 0, &v_desc, 0, &i_desc, 0, nullptr), 0)
            << BNNSExtLastError();
        ASSERT_TRUE(values.gaps_untouched() && indices.gaps_untouched());
        const auto less_layout = generic_layout(less.size(), mode & 1);
        LayoutTensor test(less_layout, less, index_type, mode & 8 ? 2 : 1),
            out(less_layout, less, BNNSDataTypeBoolean, 1, mode & 4);
        for_each_coordinate(less, [&](const Coordinates& at) { test.set(at, double(random.below(n))); });
        auto t_desc = test.descriptor(), o_desc = out.descriptor();
        ASSERT_EQ(BNNSDirectApplyInTopK(k, axis, 1, &x_desc, 0, &t_desc, 0, &o_desc, 0, nullptr), 0)
            << BNNSExtLastError();
        ASSERT_TRUE(out.gaps_untouched());
        for_each_coordinate(less, [&](const Coordinates& at) {
          Coordinates full = at;
          if (c.size.size() == 1) full.clear();
          full.insert(full.begin() + long(axis), 0);
          std::vector<double> row(n);
          for (size_t i = 0; i < n; ++i) full[axis] = i, row[i] = x.get(full);
          const auto order = ref::order(row);
          for (size_t i = 0; i < k; ++i) {
            full[axis] = i;
            ASSERT_EQ(values.get(full), row[order[i]]);
            ASSERT_EQ(indices.get(full), double(order[i]));
          }
          ASSERT_EQ(out.get(at) != 0, ref::in_top_k(row, k, size_t(test.get(at))));
        });
      }
    }
  }
}

TEST(TopK, NaNComesFirstAndZerosAreEqual) {
  float x[6] = {1, NAN, -0.0f, 0.0f, NAN, 2}, v[6];
  int32_t i[6];
  auto in = vector_descriptor(6, x), values = vector_descriptor(6, v),
       indices = vector_descriptor(6, i, BNNSDataTypeInt32);
  ASSERT_EQ(BNNSDirectApplyTopK(6, 0, 1, &in, 0, &values, 0, &indices, 0, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<int32_t>(i, i + 6), (std::vector<int32_t>{1, 4, 5, 0, 2, 3}));
}

// Long rows of both algorithms: few of many, and sorted. Equals, zeros of both signs, NaN.
TEST(TopK, LongRows) {
  Random random(3);
  for (size_t n : {257, 1000, 5003}) {
    std::vector<float> x(n);
    for (float& v : x) v = static_cast<float>(random.below(n / 3)) - static_cast<float>(n / 6);
    for (size_t i = 0; i < n; i += 50) x[i] = i % 100 ? -0.0f : 0.0f;
    x[n / 2] = x[n - 1] = NAN;
    const auto order = ref::order(std::vector<double>(x.begin(), x.end()));
    for (size_t k : {size_t{1}, size_t{2}, size_t{3}, size_t{31}, n / 8, n / 8 + 1, n - 1, n}) {
      std::vector<float> v(k + 1, poison());
      std::vector<int64_t> at(k + 1, -7);
      auto in = vector_descriptor(n, x.data()), values = vector_descriptor(k, v.data()),
           indices = vector_descriptor(k, at.data(), BNNSDataTypeInt64);
      ASSERT_EQ(BNNSDirectApplyTopK(k, 0, 1, &in, 0, &values, 0, &indices, 0, nullptr), 0) << BNNSExtLastError();
      for (size_t i = 0; i < k; ++i) {
        ASSERT_EQ(static_cast<size_t>(at[i]), order[i]) << n << " elements, " << k << " wanted, place " << i;
        ASSERT_EQ(std::memcmp(&v[i], &x[order[i]], sizeof(float)), 0);
      }
      EXPECT_TRUE(is_poison(v[k]));
      EXPECT_EQ(at[k], -7);
    }
  }
}

template <class T>
void check_integers(BNNSDataType type, size_t n, size_t rows) {
  Random random(4);
  std::vector<T> x(n * rows);
  for (T& v : x) v = static_cast<T>((random.below(n) << (sizeof(T) * 8 - 11)) + random.below(2));  // beyond 2^24, 2^53
  x[0] = std::numeric_limits<T>::max(), x[1] = std::numeric_limits<T>::min();
  for (size_t k : {size_t{1}, size_t{3}, n / 2, n}) {
    std::vector<T> v(k * rows);
    std::vector<uint16_t> at(k * rows);
    std::vector<int32_t> test(rows, 5);
    std::vector<uint8_t> in_top(rows);
    auto in = descriptor(BNNSDataLayout2DFirstMajor, {n, rows}, x.data(), type);  // the axis is the slow one
    auto values = descriptor(BNNSDataLayout2DFirstMajor, {k, rows}, v.data(), type);
    auto indices = descriptor(BNNSDataLayout2DFirstMajor, {k, rows}, at.data(), BNNSDataTypeUInt16);
    ASSERT_EQ(BNNSDirectApplyTopK(k, 0, 1, &in, 0, &values, 0, &indices, 0, nullptr), 0) << BNNSExtLastError();
    auto tested = vector_descriptor(rows, test.data(), BNNSDataTypeInt32),
         output = vector_descriptor(rows, in_top.data(), BNNSDataTypeBoolean);
    ASSERT_EQ(BNNSDirectApplyInTopK(k, 0, 1, &in, 0, &tested, 0, &output, 0, nullptr), 0) << BNNSExtLastError();
    for (size_t r = 0; r < rows; ++r) {
      std::vector<size_t> order(n);
      for (size_t i = 0; i < n; ++i) order[i] = i;
      const auto value = [&](size_t i) { return x[i * rows + r]; };
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return value(a) > value(b); });
      for (size_t i = 0; i < k; ++i) {
        ASSERT_EQ(at[i * rows + r], order[i]) << "row " << r << " place " << i;
        ASSERT_EQ(v[i * rows + r], value(order[i]));
      }
      ASSERT_EQ(in_top[r], value(5) >= value(order[k - 1]));
    }
  }
}

TEST(TopK, WideIntegersAreExact) {
  for (size_t n : {40, 700}) {
    check_integers<int32_t>(BNNSDataTypeInt32, n, 3);
    check_integers<uint32_t>(BNNSDataTypeUInt32, n, 3);
    check_integers<int64_t>(BNNSDataTypeInt64, n, 3);
    check_integers<uint64_t>(BNNSDataTypeUInt64, n, 3);
  }
}

TEST(TopK, BC53_BatchesAndThreads) {
  constexpr size_t kBatch = 37, kRows = 11, kN = 130, kK = 7;
  Random random(2);
  auto x = random.normals(kBatch * kRows * kN);
  std::vector<float> want;
  for (size_t threads : kThreadCounts) {
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    std::vector<float> v(kBatch * kRows * (kK + 1), poison());
    std::vector<uint32_t> i(kBatch * kRows * kK);
    auto in = descriptor(BNNSDataLayout2DLastMajor, {kN, kRows}, x.data());
    auto values = descriptor(BNNSDataLayout2DLastMajor, {kK, kRows}, v.data());
    auto indices = descriptor(BNNSDataLayout2DLastMajor, {kK, kRows}, i.data(), BNNSDataTypeUInt32);
    ASSERT_EQ(BNNSDirectApplyTopK(kK, 0, kBatch, &in, 0, &values, kRows * (kK + 1), &indices, 0, &options), 0)
        << BNNSExtLastError();
    if (want.empty()) {
      want = v;
      for (size_t r = 0; r < kBatch * kRows; ++r) {
        const auto order = ref::order({x.begin() + long(r * kN), x.begin() + long((r + 1) * kN)});
        for (size_t k = 0; k < kK; ++k) {
          ASSERT_EQ(i[r * kK + k], order[k]);
          ASSERT_EQ(v[r / kRows * kRows * (kK + 1) + r % kRows * kK + k], x[r * kN + order[k]]);
        }
      }
    }
    ASSERT_TRUE(same_bits(v, want));
  }
}

TEST(TopKMisuse, BC32_BC34_BC37_RefusalsWriteNothing) {
  struct Fixture {
    std::vector<float> x = std::vector<float>(12, 1), v = std::vector<float>(12, 9);
    std::vector<int32_t> i = std::vector<int32_t>(12, 0);
    std::vector<uint8_t> o = std::vector<uint8_t>(12, 9);
    BNNSNDArrayDescriptor in = descriptor(BNNSDataLayout2DLastMajor, {4, 3}, x.data());
    BNNSNDArrayDescriptor values = descriptor(BNNSDataLayout2DLastMajor, {2, 3}, v.data());
    BNNSNDArrayDescriptor indices = descriptor(BNNSDataLayout2DLastMajor, {2, 3}, i.data(), BNNSDataTypeInt32);
    BNNSNDArrayDescriptor test = vector_descriptor(3, i.data(), BNNSDataTypeInt32);
    BNNSNDArrayDescriptor output = vector_descriptor(3, o.data(), BNNSDataTypeBoolean);
    size_t k = 2, axis = 0, batch = 1;
  };
  struct Refusal {
    const char *top, *in_top;  // reason, NULL: not refused there
    std::function<void(Fixture&)> spoil;
  };
  const Refusal refusals[] = {
      {"K is 0", "K is 0", [](Fixture& f) { f.k = 0; }},
      {"K is 5", "K is 5", [](Fixture& f) { f.k = 5; }},
      {"axis is 2", "axis is 2", [](Fixture& f) { f.axis = 2; }},
      {"best_values is", nullptr, [](Fixture& f) { f.values.size[0] = 3; }},
      {"best_indices is", nullptr, [](Fixture& f) { f.indices.size[1] = 2; }},
      {"best_indices has type f32", nullptr, [](Fixture& f) { f.indices.data_type = BNNSDataTypeFloat32; }},
      {"best_values has type i8", nullptr, [](Fixture& f) { f.values.data_type = BNNSDataTypeInt8; }},
      {nullptr, "output has type f32", [](Fixture& f) { f.output.data_type = BNNSDataTypeFloat32; }},
      {nullptr, "output is", [](Fixture& f) { f.output.size[0] = 2; }},
      {nullptr, "test_indices is", [](Fixture& f) { f.test.size[0] = 4; }},
      {nullptr, "test index 1 is -1", [](Fixture& f) { f.i[1] = -1; }},
      {nullptr, "test index 2 is 4", [](Fixture& f) { f.i[2] = 4; }},
      {"and scale -1", "and scale -1",
       [](Fixture& f) { f.in.data_type = f.values.data_type = BNNSDataTypeInt32, f.in.data_scale = -1; }},
      {"input.data is NULL", "input.data is NULL", [](Fixture& f) { f.in.data = nullptr; }},
      {"overlap", nullptr, [](Fixture& f) { f.values.data = f.x.data(); }},
      {"overlap", nullptr, [](Fixture& f) { f.indices.data = f.v.data() + 4; }},
      {"batch_stride", "batch_stride", [](Fixture& f) { f.batch = SIZE_MAX / 2; }},
  };
  for (const Refusal& refusal : refusals) {
    for (bool in_top : {false, true}) {
      const char* reason = in_top ? refusal.in_top : refusal.top;
      if (!reason) continue;
      Fixture f;
      refusal.spoil(f);
      EXPECT_EQ(in_top ? BNNSDirectApplyInTopK(f.k, f.axis, f.batch, &f.in, 0, &f.test, 0, &f.output, 0, nullptr)
                       : BNNSDirectApplyTopK(f.k, f.axis, f.batch, &f.in, 0, &f.values, 0, &f.indices, 0, nullptr),
                -1)
          << reason;
      EXPECT_TRUE(refused_because({reason}));
      EXPECT_EQ(f.v, std::vector<float>(12, 9));
      EXPECT_EQ(f.o, std::vector<uint8_t>(12, 9));
    }
  }
  Fixture f;
  EXPECT_EQ(BNNSDirectApplyTopK(2, 0, 1, nullptr, 0, &f.values, 0, &f.indices, 0, nullptr), -1);
  EXPECT_TRUE(refused_because({"input is NULL"}));
  EXPECT_EQ(BNNSDirectApplyInTopK(2, 0, 1, &f.in, 0, nullptr, 0, &f.output, 0, nullptr), -1);
  EXPECT_TRUE(refused_because({"test_indices is NULL"}));
  EXPECT_EQ(BNNSDirectApplyTopK(2, 0, 0, &f.in, 0, &f.values, 0, &f.indices, 0, nullptr), 0);  // BC38
  EXPECT_EQ(f.v, std::vector<float>(12, 9));
  const BNNSFilterParameters options = Accountant::options();
  Accountant::fail_at = 0;
  EXPECT_EQ(BNNSDirectApplyTopK(2, 0, 1, &f.in, 0, &f.values, 0, &f.indices, 0, &options), -1);
  EXPECT_TRUE(refused_because({"out of memory"}));
  EXPECT_EQ(Accountant::live, 0);
}

}  // namespace
}  // namespace bnns::testing
