// Gram matrices against the reference contraction "x_*ijf, x_*ijc -> g_*fc".

#include "src/ops/gram/gram.h"

#include <gtest/gtest.h>

#include "src/engine/product/product_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

TEST(Gram, VectorOfTheSpecification) {
  const float x[] = {1, 2, 3, 4};
  for (const float alpha : {1.0f, 2.0f}) {
    float g[4];
    BNNSLayerParametersGram layer = {};
    layer.alpha = alpha;
    layer.i_desc = descriptor(BNNSDataLayoutImageCHW, {2, 1, 2}, nullptr);
    layer.o_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 2}, nullptr);
    BNNSFilter filter = BNNSFilterCreateLayerGram(&layer, nullptr);
    ASSERT_NE(filter, nullptr) << BNNSExtLastError();
    ASSERT_EQ(BNNSFilterApply(filter, x, g), 0);
    const float want[] = {5 * alpha, 11 * alpha, 11 * alpha, 25 * alpha};
    EXPECT_TRUE(same_bits(g, want, 4));
    BNNSFilterDestroy(filter);
  }
}

// dx[i,j,f] = alpha sum_c (dG[f,c] + dG[c,f]) x[i,j,c], by differences of the formula in double.
TEST(Gram, GradientMatchesDifferences) {
  Random random(1);
  ref::Lettered x("ijf", {3, 2, 4}), y("ijc", {3, 2, 4}), g("fc", {4, 4}), dx = x, dy = y;
  for (double& v : x.value) v = random.normal();
  y.value = x.value;
  for (double& v : g.value) v = random.normal();
  ref::contract_backward(0.5, x, y, g, dx, dy);
  for (size_t i = 0; i < dx.value.size(); ++i) dx.value[i] += dy.value[i];
  const auto numeric = central_differences(x.value, [&](const std::vector<double>& v) {
    double loss = 0;
    for (size_t f = 0; f < 4; ++f) {
      for (size_t c = 0; c < 4; ++c) {
        for (size_t p = 0; p < 6; ++p) loss += 0.5 * g.value[f + 4 * c] * v[p + 6 * f] * v[p + 6 * c];
      }
    }
    return loss;
  });
  EXPECT_LE(gradient_error(dx.value, numeric), 1e-7);
}

TEST(Gram, LayoutsTypesAndLeadingIndices) {
  struct Row {
    BNNSDataLayout in, out;
    std::string letters[3];
    std::vector<size_t> size[2];
    BNNSDataType type;
  };
  const Row rows[] = {
      {BNNSDataLayoutImageCHW,
       BNNSDataLayout2DFirstMajor,
       {"ijf", "ijc", "fc"},
       {{9, 7, 33}, {33, 33}},
       BNNSDataTypeFloat32},
      {BNNSDataLayoutImageCHW,
       BNNSDataLayoutColumnMajorMatrix,
       {"ijf", "ijc", "fc"},
       {{5, 1, 3}, {3, 3}},
       BNNSDataTypeFloat16},
      {BNNSDataLayout3DFirstMajor,
       BNNSDataLayoutRowMajorMatrix,
       {"ijf", "ijc", "fc"},
       {{20, 7, 70}, {70, 70}},
       BNNSDataTypeBFloat16},
      {BNNSDataLayout3DLastMajor,
       BNNSDataLayout2DLastMajor,
       {"ijf", "ijc", "fc"},
       {{1, 1, 5}, {5, 5}},
       BNNSDataTypeFloat32},
      {BNNSDataLayout5DFirstMajor,
       BNNSDataLayout4DLastMajor,
       {"yzijf", "yzijc", "yzfc"},
       {{2, 3, 4, 5, 6}, {2, 3, 6, 6}},
       BNNSDataTypeFloat32},
      {BNNSDataLayout4DLastMajor,
       BNNSDataLayout3DFirstMajor,
       {"yijf", "yijc", "yfc"},
       {{4, 4, 5, 9}, {4, 9, 9}},
       BNNSDataTypeFloat16},
  };
  for_each_isa([&] {
    for (const Row& row : rows) {
      for (const size_t threads : kThreadCounts) {
        for (const bool accumulate : {false, true}) {
          Random random(2);
          Samples x(row.in, row.size[0], row.type, 1, 2, 3, 1),
              g(row.out, row.size[1], BNNSDataTypeFloat32, 1, 1, 3, 0);
          Samples dx(row.in, row.size[0], row.type, 1, 0, 3, 0),
              dg(row.out, row.size[1], BNNSDataTypeFloat32, 1, 0, 3, 2);
          for (Samples* s : {&x, &dg}) s->fill_integers(random, 2);
          BNNSLayerParametersGram layer = {};
          layer.alpha = 2;
          layer.i_desc = x.descriptor(), layer.o_desc = g.descriptor();
          BNNSFilterParameters parameters = {};
          parameters.n_threads = threads;
          BNNSFilter filter = BNNSFilterCreateLayerGram(&layer, &parameters);
          ASSERT_NE(filter, nullptr) << BNNSExtLastError();
          ProductCase p{{row.letters[0], row.letters[1], row.letters[2]}, &x, nullptr, &g};
          p.self = true, p.alpha = 2;
          EXPECT_TRUE(forward_equals(filter, p));
          EXPECT_TRUE(backward_equals(filter, p, dg, dx, nullptr, accumulate));
          BNNSFilterDestroy(filter);
        }
      }
    }
  });
}

// Property: symmetric, bit for bit, with rows that sum to the product of sums.
TEST(Gram, SymmetricOnRealData) {
  for_each_isa([] {
    Random random(3);
    const size_t w = 13, h = 9, c = 37;
    const std::vector<float> x = random.normals(w * h * c);
    std::vector<float> g(c * c);
    BNNSLayerParametersGram layer = {};
    layer.alpha = 0.01f;
    layer.i_desc = descriptor(BNNSDataLayoutImageCHW, {w, h, c}, nullptr);
    layer.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {c, c}, nullptr);
    BNNSFilter filter = BNNSFilterCreateLayerGram(&layer, nullptr);
    ASSERT_NE(filter, nullptr);
    ASSERT_EQ(BNNSFilterApply(filter, x.data(), g.data()), 0);
    for (size_t i = 0; i < c; ++i) {
      EXPECT_GE(g[i * c + i], 0);
      for (size_t j = 0; j < c; ++j) EXPECT_EQ(bits(g[i * c + j]), bits(g[j * c + i]));
    }
    BNNSFilterDestroy(filter);
  });
}

TEST(Gram, Refusals) {
  float x[8] = {}, g[16] = {};
  BNNSLayerParametersGram good = {};
  good.alpha = 1;
  good.i_desc = descriptor(BNNSDataLayoutImageCHW, {2, 1, 4}, nullptr);
  good.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 4}, nullptr);
  const auto refuses = [&](auto&& change, std::initializer_list<const char*> words) {
    BNNSLayerParametersGram layer = good;
    change(layer);
    EXPECT_EQ(BNNSFilterCreateLayerGram(&layer, nullptr), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  const BNNSLayerParametersGram* none = nullptr;  // not a constant: clang would see it
  EXPECT_EQ(BNNSFilterCreateLayerGram(none, nullptr), nullptr);
  refuses([](auto& l) { l.o_desc.size[0] = 3; }, {"index f is 3 in o_desc.size[0]", "expected 4"});
  refuses([](auto& l) { l.o_desc.size[1] = 1; }, {"index c is 1 in o_desc.size[1]", "expected 4"});
  refuses([](auto& l) { l.i_desc.layout = BNNSDataLayout2DFirstMajor; }, {"rank 2, expected at least 3"});
  refuses([](auto& l) { l.o_desc.layout = BNNSDataLayout3DFirstMajor, l.o_desc.size[2] = 4; }, {"rank 3, expected 2"});
  refuses([](auto& l) { l.i_desc.data_type = BNNSDataTypeIndexed8; }, {"i_desc has type"});
  BNNSFilter filter = BNNSFilterCreateLayerGram(&good, nullptr);
  ASSERT_NE(filter, nullptr);
  const void* no_data = nullptr;  // not a constant: clang would see it
  EXPECT_EQ(BNNSFilterApply(filter, no_data, g), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(BNNSFilterApply(filter, g, g), -1);
  EXPECT_EQ(BNNSFilterApplyTwoInput(filter, x, x, g), -1);
  EXPECT_TRUE(refused_because({"one input"}));
  BNNSNDArrayDescriptor dx = good.i_desc, dg = good.o_desc;
  dx.data = x, dg.data = g;
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, nullptr, 0, &dx, 0, nullptr, 0, &dg, 0, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter, 1, x, 0, nullptr, 0, nullptr, 0, &dg, 0, &dx, nullptr), -1);
  EXPECT_TRUE(refused_because({"weights_delta is given"}));
  BNNSFilterDestroy(filter);
}

}  // namespace
}  // namespace bnns
