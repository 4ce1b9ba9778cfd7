// Broadcast matrix products: layouts, transposes, broadcasting, weights, the quadratic form and the direct calls,
// against the reference contraction. The engine itself is tested in src/engine/product/product_test.cc.

#include "src/ops/matmul/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/engine/product/product_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

TEST(Matmul, VectorOfTheSpecification) {
  float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, dc[] = {1, 2, 3, 4}, c[4], da[4], db[4];
  BNNSLayerParametersBroadcastMatMul layer = {};
  layer.alpha = 1;
  layer.iA_desc = layer.iB_desc = layer.o_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 2}, nullptr);
  BNNSFilter filter = BNNSFilterCreateLayerBroadcastMatMul(&layer, nullptr);
  ASSERT_NE(filter, nullptr) << BNNSExtLastError();
  ASSERT_EQ(BNNSFilterApplyTwoInput(filter, a, b, c), 0);
  const float want[] = {19, 22, 43, 50}, want_a[] = {17, 23, 39, 53}, want_b[] = {10, 14, 14, 20};
  EXPECT_TRUE(same_bits(c, want, 4));
  BNNSNDArrayDescriptor g = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 2}, dc);
  BNNSNDArrayDescriptor ga = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 2}, da);
  BNNSNDArrayDescriptor gb = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 2}, db);
  ASSERT_EQ(
      BNNSFilterApplyBackwardTwoInputBatch(filter, 1, a, 0, &ga, 0, b, 0, &gb, 0, nullptr, 0, &g, 0, nullptr, nullptr),
      0);
  EXPECT_TRUE(same_bits(da, want_a, 4));
  EXPECT_TRUE(same_bits(db, want_b, 4));
  BNNSFilterDestroy(filter);
}

// ---- every layout, transpose and kind of broadcasting -----------------------------------------------------------

struct Shape {
  const char* what;
  BNNSDataLayout layout[3];
  std::vector<size_t> leading[3];  // logical, before the matrix
};
const Shape kShapes[] = {
    {"row-major", {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix}, {}},
    {"column-major", {BNNSDataLayoutColumnMajorMatrix, BNNSDataLayout2DLastMajor, BNNSDataLayoutColumnMajorMatrix}, {}},
    {"mixed", {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutColumnMajorMatrix, BNNSDataLayout2DFirstMajor}, {}},
    {"one matrix B",
     {BNNSDataLayout3DFirstMajor, BNNSDataLayout2DFirstMajor, BNNSDataLayout3DFirstMajor},
     {{5}, {}, {5}}},
    {"one matrix A",
     {BNNSDataLayout2DFirstMajor, BNNSDataLayout4DFirstMajor, BNNSDataLayout4DFirstMajor},
     {{}, {2, 3}, {2, 3}}},
    {"extents of 1",
     {BNNSDataLayout4DFirstMajor, BNNSDataLayout4DLastMajor, BNNSDataLayout4DFirstMajor},
     {{1, 3}, {2, 1}, {2, 3}}},
    {"images", {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW}, {{6}, {6}, {6}}},
    {"rank 8",
     {BNNSDataLayout8DFirstMajor, BNNSDataLayout8DLastMajor, BNNSDataLayout8DFirstMajor},
     {{2, 1, 1, 2, 1, 2}, {1, 2, 1, 2, 1, 1}, {2, 2, 1, 2, 1, 2}}},
};
const std::string kLeadingLetters = "uvwxyz";

struct Case {
  size_t m, n, k;
  bool trans_a, trans_b;
  std::vector<size_t> size(const Shape& shape, int side) const {
    std::vector<size_t> result = shape.leading[side];
    const size_t rows[] = {trans_a ? k : m, trans_b ? n : k, m}, columns[] = {trans_a ? m : k, trans_b ? k : n, n};
    result.push_back(rows[side]);
    result.push_back(columns[side]);
    return result;
  }
  std::string letters(const Shape& shape, int side) const {
    const std::string matrix[] = {trans_a ? "km" : "mk", trans_b ? "nk" : "kn", "mn"};
    return kLeadingLetters.substr(6 - shape.leading[side].size()) + matrix[side];
  }
};

void run_case(const Shape& shape, const Case& dims, int weights, const BNNSDataType (&types)[3], float alpha, bool beta,
              size_t threads, size_t batch) {
  SCOPED_TRACE(std::string(shape.what) + " m" + std::to_string(dims.m) + " n" + std::to_string(dims.n) + " k" +
               std::to_string(dims.k) + (dims.trans_a ? " tA" : "") + (dims.trans_b ? " tB" : "") + " weights " +
               std::to_string(weights) + " threads " + std::to_string(threads));
  Random random(dims.m * 7 + dims.n);
  std::unique_ptr<Samples> x[3], d[3];
  for (int s = 0; s < 3; ++s) {
    const size_t samples = weights == s ? 1 : batch;
    x[s] = std::make_unique<Samples>(shape.layout[s], dims.size(shape, s), types[s], 1, s == 1 ? 3 : 0, samples, 2);
    d[s] = std::make_unique<Samples>(shape.layout[s], dims.size(shape, s), BNNSDataTypeFloat32, 1, s == 0 ? 1 : 0,
                                     samples, 0);
    x[s]->fill_integers(random, 2);
    d[s]->fill_integers(random, 2);
  }
  BNNSLayerParametersBroadcastMatMul layer = {};
  layer.alpha = alpha;
  layer.beta = beta;
  layer.transA = dims.trans_a, layer.transB = dims.trans_b;
  layer.a_is_weights = weights == 0, layer.b_is_weights = weights == 1;
  layer.iA_desc = x[0]->descriptor(), layer.iB_desc = x[1]->descriptor(), layer.o_desc = x[2]->descriptor();
  BNNSFilterParameters parameters = {};
  parameters.n_threads = threads;
  BNNSFilter filter = BNNSFilterCreateLayerBroadcastMatMul(&layer, &parameters);
  ASSERT_NE(filter, nullptr) << BNNSExtLastError();
  ProductCase p{
      {dims.letters(shape, 0), dims.letters(shape, 1), dims.letters(shape, 2)}, x[0].get(), x[1].get(), x[2].get()};
  p.weights = weights, p.alpha = alpha, p.beta = beta;
  EXPECT_TRUE(forward_equals(filter, p));
  EXPECT_TRUE(backward_equals(filter, p, *d[2], *d[0], d[1].get(), beta));
  BNNSFilterDestroy(filter);
}

constexpr BNNSDataType kF32[3] = {BNNSDataTypeFloat32, BNNSDataTypeFloat32, BNNSDataTypeFloat32};

TEST(Matmul, BC13_BC14_BC15_EveryLayoutTransposeAndBroadcast) {
  for_each_isa([] {
    for (const Shape& shape : kShapes) {
      for (int i = 0; i < 4; ++i) {
        for (const Case& dims : {Case{3, 5, 4, i % 2 == 1, i > 1}, Case{33, 17, 20, i % 2 == 1, i > 1}}) {
          for (const int weights : {-1, 0, 1}) {
            run_case(shape, dims, weights, kF32, weights == 0 ? 2.0f : 1.0f, weights == 1, i % 2 ? 3 : 1, 2);
          }
        }
      }
    }
  });
}

TEST(Matmul, BC18_EverySizeAroundTheTile) {
  for_each_isa([] {
    for (size_t m : {1, 2, 3, 7, 13, 14, 15, 31, 33}) {
      for (size_t n : {1, 2, 8, 15, 31, 32, 33, 65}) {
        const Case dims{m, n, 1 + (m * n) % 19, m % 2 == 0, n % 2 == 0};
        run_case(kShapes[0], dims, -1, kF32, 1, false, 2, 1);
      }
    }
  });
}

// Products of up to 8192 multiply-adds: all scratch is on the stack, so the workspace is only what aligns its pointer.
TEST(Matmul, SmallProductsNeedNoScratch) {
  const size_t sizes[][3] = {{2, 3, 4},    {4, 16, 8},   {4, 8, 16},  {16, 16, 16}, {20, 20, 20},
                             {64, 1, 128}, {1, 64, 128}, {7, 9, 128}, {256, 16, 2}, {3, 256, 10}};
  for_each_isa([&] {
    for (const auto& s : sizes) {
      for (int i = 0; i < 4; ++i) {
        const Case dims{s[0], s[1], s[2], i % 2 == 1, i > 1};
        for (const size_t batch : {1, 5}) {
          run_case(kShapes[0], dims, -1, kF32, i == 1 ? -2.0f : 1.0f, i == 2, 3, batch);
        }
        BNNSNDArrayDescriptor d[3];
        for (int side = 0; side < 3; ++side) {
          d[side] = Samples(kShapes[0].layout[side], dims.size(kShapes[0], side), kF32[side], 1, 0, 1, 0).descriptor();
        }
        EXPECT_EQ(BNNSMatMulWorkspaceSize(dims.trans_a, dims.trans_b, 1, &d[0], &d[1], &d[2], nullptr), 64)
            << s[0] << " " << s[1] << " " << s[2] << " " << i;
      }
    }
  });
}

TEST(Matmul, TypesAndThreads) {
  const BNNSDataType rows[][3] = {
      {BNNSDataTypeFloat16, BNNSDataTypeFloat16, BNNSDataTypeFloat16},
      {BNNSDataTypeBFloat16, BNNSDataTypeBFloat16, BNNSDataTypeBFloat16},
      {BNNSDataTypeFloat16, BNNSDataTypeFloat32, BNNSDataTypeBFloat16},
      {BNNSDataTypeInt8, BNNSDataTypeInt8, BNNSDataTypeFloat32},
  };
  for_each_isa([&] {
    for (const auto& types : rows) {
      for (const size_t threads : kThreadCounts) {
        for (const Shape& shape : {kShapes[0], kShapes[3], kShapes[6]}) {
          run_case(shape, {40, 50, 30, false, true}, -1, types, 1, false, threads, 2);
          run_case(shape, {5, 6, 7, true, false}, 1, types, -2, true, threads, 3);
        }
      }
    }
  });
}

// B = A: one input, and its gradient is the sum of both parts.
TEST(Matmul, Quadratic) {
  for_each_isa([] {
    for (const bool trans_a : {false, true}) {
      for (const BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeBFloat16}) {
        for (const size_t threads : kThreadCounts) {
          Random random(1);
          const size_t rows = 21, columns = 35, side = trans_a ? columns : rows;
          Samples a(BNNSDataLayout3DFirstMajor, {4, rows, columns}, type, 1, 0, 2, 0);
          Samples c(BNNSDataLayout3DFirstMajor, {4, side, side}, BNNSDataTypeFloat32, 1, 0, 2, 0);
          Samples da(BNNSDataLayout3DFirstMajor, {4, rows, columns}, type, 1, 0, 2, 0);
          Samples dc(BNNSDataLayout3DFirstMajor, {4, side, side}, BNNSDataTypeFloat32, 1, 0, 2, 0);
          a.fill_integers(random, 7), dc.fill_integers(random, 7);  // bf16 rounds: once, not twice
          BNNSLayerParametersBroadcastMatMul layer = {};
          layer.alpha = 1;
          layer.quadratic = true;
          layer.transA = trans_a, layer.transB = !trans_a;
          layer.iA_desc = a.descriptor(), layer.o_desc = c.descriptor();  // iB_desc is not looked at
          BNNSFilterParameters parameters = {};
          parameters.n_threads = threads;
          BNNSFilter filter = BNNSFilterCreateLayerBroadcastMatMul(&layer, &parameters);
          ASSERT_NE(filter, nullptr) << BNNSExtLastError();
          ProductCase p{{trans_a ? "zkm" : "zmk", trans_a ? "zkn" : "znk", "zmn"}, &a, nullptr, &c};
          p.self = true;
          EXPECT_TRUE(forward_equals(filter, p));
          EXPECT_TRUE(backward_equals(filter, p, dc, da, nullptr, threads % 2 == 0));
          BNNSFilterDestroy(filter);
        }
      }
    }
  });
}

// BC17: extreme int8 values; |sum| < 2^24, so the f32 sums are exact.
TEST(Matmul, BC17_Int8Extremes) {
  for_each_isa([] {
    Random random(3);
    const size_t m = 19, n = 35, k = 500;
    const int8_t values[] = {-128, -127, 0, 127};
    std::vector<int8_t> a(m * k), b(k * n);
    for (auto* v : {&a, &b}) {
      for (int8_t& x : *v) x = values[random.below(4)];
    }
    std::vector<float> c(m * n);
    BNNSNDArrayDescriptor da = descriptor(BNNSDataLayout2DFirstMajor, {m, k}, a.data(), BNNSDataTypeInt8);
    BNNSNDArrayDescriptor db = descriptor(BNNSDataLayout2DFirstMajor, {k, n}, b.data(), BNNSDataTypeInt8);
    BNNSNDArrayDescriptor dc = descriptor(BNNSDataLayout2DFirstMajor, {m, n}, c.data());
    ASSERT_EQ(BNNSMatMul(false, false, 1, &da, &db, &dc, nullptr, nullptr), 0) << BNNSExtLastError();
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j < n; ++j) {
        int sum = 0;
        for (size_t l = 0; l < k; ++l) sum += int(a[i * k + l]) * b[l * n + j];
        ASSERT_EQ(c[i * n + j], float(sum));
      }
    }
    // data_scale and data_bias: (a / 2 + 1) * b
    da.data_scale = 0.5f, da.data_bias = 1;
    ASSERT_EQ(BNNSMatMul(false, false, 1, &da, &db, &dc, nullptr, nullptr), 0);
    double sum = 0;
    for (size_t l = 0; l < k; ++l) sum += (0.5 * a[l] + 1) * b[l * n];
    EXPECT_EQ(c[0], sum);
  });
}

// ---- the direct calls -------------------------------------------------------------------------------------------

TEST(Matmul, DirectCallsWithAndWithoutWorkspace) {
  for_each_isa([] {
    Random random(1);
    for (const BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16}) {
      for (const size_t threads : {size_t{0}, size_t{1}, size_t{3}}) {
        Samples a(BNNSDataLayout3DFirstMajor, {9, 30, 40}, type, 1, 0, 1, 0);
        Samples b(BNNSDataLayout2DFirstMajor, {40, 50}, type, 1, 0, 1, 0);
        Samples c(BNNSDataLayout3DLastMajor, {9, 30, 50}, type, 1, 0, 1, 0);
        a.fill_integers(random, 1), b.fill_integers(random, 1);
        ref::Lettered ra = a.lettered("zmk", false), rb = b.lettered("kn", false), rc("zmn", {9, 30, 50});
        ref::contract(3, ra, rb, rc);
        BNNSNDArrayDescriptor da = a.descriptor(), db = b.descriptor(), dc = c.descriptor();
        BNNSFilterParameters parameters = {};
        parameters.n_threads = threads;
        BNNSNDArrayDescriptor no_a = da, no_b = db, no_c = dc;  // the size does not depend on data
        no_a.data = no_b.data = no_c.data = nullptr;
        const ssize_t bytes = BNNSMatMulWorkspaceSize(false, false, 3, &no_a, &no_b, &no_c, &parameters);
        ASSERT_GE(bytes, 0) << BNNSExtLastError();
        EXPECT_LE(bytes, ssize_t{64} << 20);
        Guarded<unsigned char> workspace{size_t(bytes)};  // ends at a page that faults; any alignment
        std::memset(workspace.data(), 0xff, size_t(bytes));
        c.fill(NAN);
        ASSERT_EQ(BNNSMatMul(false, false, 3, &da, &db, &dc, workspace.data(), &parameters), 0) << BNNSExtLastError();
        EXPECT_TRUE(equals(c, rc));
        c.fill(NAN);
        ASSERT_EQ(BNNSMatMul(false, false, 3, &da, &db, &dc, nullptr, &parameters), 0);
        EXPECT_TRUE(equals(c, rc));
        c.fill(NAN);
        BNNSDirectApplyBroadcastMatMul(false, false, 3, &da, &db, &dc, &parameters);
        EXPECT_TRUE(equals(c, rc));
      }
    }
  });
}

// BC48: the workspace was sized for another number of threads than the call runs on.
TEST(Matmul, BC48_ThreadsChangeAfterTheWorkspaceWasSized) {
  Random random(1);
  Samples a(BNNSDataLayout3DFirstMajor, {40, 64, 64}, BNNSDataTypeFloat16, 1, 0, 1, 0);
  Samples b(BNNSDataLayout3DFirstMajor, {40, 64, 64}, BNNSDataTypeFloat16, 1, 0, 1, 0);
  Samples c(BNNSDataLayout3DFirstMajor, {40, 64, 64}, BNNSDataTypeFloat16, 1, 0, 1, 0);
  a.fill_integers(random, 1), b.fill_integers(random, 1);
  ref::Lettered ra = a.lettered("zmk", false), rb = b.lettered("zkn", false), rc("zmn", {40, 64, 64});
  ref::contract(1, ra, rb, rc);
  BNNSNDArrayDescriptor da = a.descriptor(), db = b.descriptor(), dc = c.descriptor();
  for (const size_t before : {1, 2, 16}) {
    for (const size_t after : {1, 3, 16}) {
      set_default_threads(before);
      const ssize_t bytes = BNNSMatMulWorkspaceSize(false, false, 1, &da, &db, &dc, nullptr);
      ASSERT_GE(bytes, 0);
      Guarded<unsigned char> workspace{size_t(bytes)};
      set_default_threads(after);
      c.fill(NAN);
      ASSERT_EQ(BNNSMatMul(false, false, 1, &da, &db, &dc, workspace.data(), nullptr), 0);
      EXPECT_TRUE(equals(c, rc));
    }
  }
  set_default_threads(0);
  for (const size_t before : {0, 1, 2, 16}) {  // 0: no filter parameters
    for (const size_t after : {0, 1, 3, 16}) {
      BNNSFilterParameters sized = {}, run = {};
      sized.n_threads = before, run.n_threads = after;
      const ssize_t bytes = BNNSMatMulWorkspaceSize(false, false, 1, &da, &db, &dc, before ? &sized : nullptr);
      ASSERT_GE(bytes, 0);
      Guarded<unsigned char> workspace{size_t(bytes)};
      c.fill(NAN);
      ASSERT_EQ(BNNSMatMul(false, false, 1, &da, &db, &dc, workspace.data(), after ? &run : nullptr), 0);
      EXPECT_TRUE(equals(c, rc));
    }
  }
}

// ---- refusals ---------------------------------------------------------------------------------------------------

TEST(Matmul, LayersThatAreRefused) {
  float weights[12] = {};
  BNNSLayerParametersBroadcastMatMul good = {};
  good.alpha = 1;
  good.iA_desc = descriptor(BNNSDataLayout2DFirstMajor, {3, 4}, nullptr);
  good.iB_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 5}, nullptr);
  good.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {3, 5}, nullptr);
  BNNSFilter filter = BNNSFilterCreateLayerBroadcastMatMul(&good, nullptr);
  ASSERT_NE(filter, nullptr);
  BNNSFilterDestroy(filter);
  const auto refuses = [&](auto&& change, std::initializer_list<const char*> words) {
    BNNSLayerParametersBroadcastMatMul layer = good;
    change(layer);
    BNNSExtClearLastError();
    EXPECT_EQ(BNNSFilterCreateLayerBroadcastMatMul(&layer, nullptr), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  const BNNSLayerParametersBroadcastMatMul* none = nullptr;  // not a constant: clang would see it
  EXPECT_EQ(BNNSFilterCreateLayerBroadcastMatMul(none, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
  refuses([](auto& l) { l.iB_desc.size[0] = 3; }, {"index k is 3 in iB_desc.size[0]", "expected 4 as in iA_desc"});
  refuses([](auto& l) { l.iB_desc.size[0] = 1; }, {"index k is 1 in iB_desc"});  // matrices do not broadcast
  refuses([](auto& l) { l.o_desc.size[0] = 4; }, {"index m is 4 in o_desc.size[0]", "expected 3"});
  refuses([](auto& l) { l.o_desc.size[1] = 1; }, {"index n is 1 in o_desc.size[1]", "expected 5"});
  refuses([](auto& l) { l.transA = true; }, {"index k is 4", "expected 3"});
  refuses([](auto& l) { l.iA_desc = descriptor(BNNSDataLayoutVector, {12}, nullptr); },
          {"rank 1, expected at least 2"});
  refuses([](auto& l) { l.beta = 2; }, {"beta is 2"});
  refuses([](auto& l) { l.beta = NAN; }, {"beta is nan"});
  refuses([](auto& l) { l.a_is_weights = l.b_is_weights = true; }, {"a_is_weights and b_is_weights"});
  refuses([](auto& l) { l.a_is_weights = true; }, {"iA_desc.data is NULL"});
  refuses([&](auto& l) { l.a_is_weights = l.quadratic = true, l.iA_desc.data = weights; },
          {"quadratic", "a_is_weights"});
  refuses([](auto& l) { l.quadratic = true; }, {"index k is 3 in iA_desc (as B)"});
  refuses([](auto& l) { l.iA_desc.data_type = BNNSDataTypeIndexed8; }, {"iA_desc has type"});
  refuses(
      [](auto& l) {
        l.iA_desc.layout = BNNSDataLayoutConvolutionWeightsOIHrWr, l.iA_desc.size[2] = l.iA_desc.size[3] = 1;
      },
      {"iA_desc.layout"});
  // Leading indices: the output has exactly those of the inputs.
  refuses(
      [](auto& l) {
        l.iA_desc = descriptor(BNNSDataLayout3DFirstMajor, {2, 3, 4}, nullptr);
      },
      {"leading index 1", "extent 2 in the inputs"});
  refuses(
      [](auto& l) {
        l.o_desc = descriptor(BNNSDataLayout3DFirstMajor, {2, 3, 5}, nullptr);
      },
      {"leading index 1", "extent 2 in o_desc"});
  // BC35: one field at a time.
  for (const size_t value : {size_t{0}, SIZE_MAX, SIZE_MAX - 1, size_t{1} << 62}) {
    for (size_t k = 0; k < 2; ++k) {
      refuses([&](auto& l) { l.iA_desc.size[k] = value; }, {"iA_desc"});
      refuses([&](auto& l) { l.o_desc.size[k] = value; }, {"_desc"});
      refuses([&](auto& l) { l.iB_desc.stride[k] = value ? value : 0, l.iB_desc.size[k] = 0; }, {"iB_desc"});
    }
  }
}

TEST(Matmul, BC37_DirectCallsAreRefusedWithNothingWritten) {
  float a[12] = {}, b[20] = {}, c[15];
  std::fill(c, c + 15, 7.0f);
  const BNNSNDArrayDescriptor da = descriptor(BNNSDataLayout2DFirstMajor, {3, 4}, a);
  const BNNSNDArrayDescriptor db = descriptor(BNNSDataLayout2DFirstMajor, {4, 5}, b);
  const BNNSNDArrayDescriptor dc = descriptor(BNNSDataLayout2DFirstMajor, {3, 5}, c);
  BNNSNDArrayDescriptor no_data = dc, wrong = db, same = dc;
  no_data.data = nullptr, wrong.size[0] = 5;
  same.data = a;
  const auto refused = [&](const BNNSNDArrayDescriptor* x, const BNNSNDArrayDescriptor* y,
                           const BNNSNDArrayDescriptor* z, bool shapes, std::initializer_list<const char*> words) {
    EXPECT_EQ(BNNSMatMul(false, false, 1, x, y, z, nullptr, nullptr), -1);
    EXPECT_TRUE(refused_because(words));
    BNNSExtClearLastError();
    BNNSDirectApplyBroadcastMatMul(false, false, 1, x, y, z, nullptr);
    EXPECT_TRUE(refused_because(words));
    BNNSExtClearLastError();
    if (shapes) {
      EXPECT_LT(BNNSMatMulWorkspaceSize(false, false, 1, x, y, z, nullptr), 0);
      EXPECT_TRUE(refused_because(words));
    }
    for (float v : c) EXPECT_EQ(v, 7);
  };
  refused(nullptr, &db, &dc, true, {"inputA is NULL"});
  refused(&da, nullptr, &dc, true, {"inputB is NULL"});
  refused(&da, &db, nullptr, true, {"output is NULL"});
  refused(&da, &wrong, &dc, true, {"index k is 5 in inputB.size[0]"});
  refused(&da, &db, &no_data, false, {"output.data is NULL"});
  refused(&da, &db, &same, false, {"output and inputA overlap"});
  BNNSFilterParameters half = {};
  half.alloc_memory = [](void**, size_t, size_t) { return 12; };
  EXPECT_EQ(BNNSMatMul(false, false, 1, &da, &db, &dc, nullptr, &half), -1);  // alloc without free
}

}  // namespace
}  // namespace bnns
