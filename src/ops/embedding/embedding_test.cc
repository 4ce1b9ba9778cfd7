// Embedding: documented numbers, the reference for layouts, strides and types, gradients, refusals.

#include "src/ops/embedding/embedding.h"

#include <functional>
#include <numeric>

#include "src/ops/embedding/embedding_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;

BNNSLayerParametersEmbedding layer_of(const BNNSNDArrayDescriptor& x, const BNNSNDArrayDescriptor& y,
                                      const BNNSNDArrayDescriptor& dictionary) {
  BNNSLayerParametersEmbedding layer;
  std::memset(&layer, 0, sizeof layer);
  layer.i_desc = x;
  layer.o_desc = y;
  layer.dictionary = dictionary;
  layer.padding_idx = SIZE_MAX;
  return layer;
}

// Seven items of five values; indices 1, 5, 2.
TEST(Embedding, DocumentedItems) {
  std::vector<float> dictionary(35), y(15);
  std::iota(dictionary.begin(), dictionary.end(), 0.0f);
  int32_t x[3] = {1, 5, 2};
  const auto layer =
      layer_of(vector_descriptor(3, nullptr, BNNSDataTypeInt32), descriptor(BNNSDataLayout2DLastMajor, {5, 3}, nullptr),
               descriptor(BNNSDataLayout2DLastMajor, {5, 7}, dictionary.data()));
  const FilterHandle filter = own(BNNSFilterCreateLayerEmbedding(&layer, nullptr));
  ASSERT_EQ(BNNSFilterApply(filter.get(), x, y.data()), 0) << BNNSExtLastError();
  EXPECT_EQ(y, (std::vector<float>{5, 6, 7, 8, 9, 25, 26, 27, 28, 29, 10, 11, 12, 13, 14}));
}

// max_norm 0.6 under the maximum norm: {1, 3, 5, 2, 4, 6} becomes a tenth, {60 .. 10} a hundredth.
TEST(Embedding, DocumentedMaxNorm) {
  float dictionary[12] = {1, 3, 5, 2, 4, 6, 60, 50, 40, 30, 20, 10}, y[12];
  const std::vector<float> before(dictionary, dictionary + 12);
  int32_t x[2] = {0, 1};
  auto layer =
      layer_of(vector_descriptor(2, nullptr, BNNSDataTypeInt32), descriptor(BNNSDataLayout2DLastMajor, {6, 2}, nullptr),
               descriptor(BNNSDataLayout2DLastMajor, {6, 2}, dictionary));
  layer.max_norm = 0.6f;
  layer.norm_type = INFINITY;
  BNNSFilterParameters options = {};
  options.flags = BNNSFlagsUseClientPtr;
  const FilterHandle filter = own(BNNSFilterCreateLayerEmbedding(&layer, &options));
  ASSERT_EQ(BNNSFilterApply(filter.get(), x, y), 0) << BNNSExtLastError();
  for (size_t i = 0; i < 12; ++i) EXPECT_FLOAT_EQ(y[i], dictionary[i] / (i < 6 ? 10 : 100));
  EXPECT_EQ(std::vector<float>(dictionary, dictionary + 12), before);  // K26
}

TEST(Embedding, ReferenceGradient) {
  Random random(1);
  const std::vector<size_t> indices = {2, 0, 2, 3, 2};
  const ref::EmbeddingOptions o{4, 3, 3, 0, 2, false};
  const auto dictionary = random_normals(&random, 12), g = random_normals(&random, 15);
  const auto loss = [&](const std::vector<double>& at) {
    const auto y = ref::embedding(o, at, indices);
    return std::inner_product(y.begin(), y.end(), g.begin(), 0.0);
  };
  EXPECT_LE(gradient_error(ref::embedding_backward(o, indices, g), central_differences(dictionary, loss)), 1e-7);
}

// Many positions of a large dictionary: three digits of the sort, sums that cross the tasks' borders, and items that
// nobody names. Whole numbers, so that every order of the sums gives the same.
TEST(Embedding, GradientOfManyPositions) {
  Random random(11);
  const size_t items = 70000, dim = 3, n = 20000;
  std::vector<float> dictionary(items * dim), dy(n * dim), dw(items * dim, poison()), want(items * dim);
  std::vector<int32_t> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<int32_t>(i % 4 == 0 ? 66000 : random.below(items));
  for (float& g : dy) g = static_cast<float>(random.below(9)) - 4;
  for (size_t i = 0; i < n; ++i) {
    for (size_t e = 0; e < dim; ++e) want[static_cast<size_t>(x[i]) * dim + e] += dy[i * dim + e];
  }
  const auto layer = layer_of(vector_descriptor(n, nullptr, BNNSDataTypeInt32),
                              descriptor(BNNSDataLayout2DLastMajor, {dim, n}, nullptr),
                              descriptor(BNNSDataLayout2DLastMajor, {dim, items}, dictionary.data()));
  const FilterHandle filter = own(BNNSFilterCreateLayerEmbedding(&layer, nullptr));
  const auto dy_desc = descriptor(BNNSDataLayout2DLastMajor, {dim, n}, dy.data());
  auto dw_desc = descriptor(BNNSDataLayout2DLastMajor, {dim, items}, dw.data());
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, nullptr, 0, nullptr, 0, &dy_desc, 0, &dw_desc,
                                         nullptr),
            0)
      << BNNSExtLastError();
  EXPECT_EQ(dw, want);
}

struct Case {
  BNNSDataLayout x, y, dictionary;
  Sizes positions, item;
  size_t items;
};
const Case kCases[] = {
    {BNNSDataLayoutVector, BNNSDataLayout2DLastMajor, BNNSDataLayout2DLastMajor, {9}, {67}, 11},
    {BNNSDataLayoutVector, BNNSDataLayout2DFirstMajor, BNNSDataLayout2DFirstMajor, {9}, {5}, 11},  // strided items
    {BNNSDataLayoutVector, BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix, {40}, {3}, 5},
    {BNNSDataLayout2DFirstMajor, BNNSDataLayout3DFirstMajor, BNNSDataLayout2DLastMajor, {3, 4}, {6}, 300},
    {BNNSDataLayout2DLastMajor, BNNSDataLayout4DLastMajor, BNNSDataLayout3DFirstMajor, {3, 4}, {2, 5}, 7},
    {BNNSDataLayoutVector, BNNSDataLayout2DLastMajor, BNNSDataLayout2DLastMajor, {1}, {1}, 1},
    {BNNSDataLayoutVector, BNNSDataLayout2DLastMajor, BNNSDataLayout2DLastMajor, {5}, {1300}, 3},
};

TEST(Embedding, BC15_BC32_BC33_LayoutsStridesTypesGradients) {
  const BNNSDataType index_types[] = {BNNSDataTypeInt32, BNNSDataTypeInt64, BNNSDataTypeInt8, BNNSDataTypeUInt16};
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16, BNNSDataTypeInt16};
  for_each_isa([&] {
    Random random(2);
    for (const Case& c : kCases) {
      for (unsigned mode = 0; mode < 16; ++mode) {
        SCOPED_TRACE("items " + std::to_string(c.items) + " of " + std::to_string(c.item[0]) + " mode " +
                     std::to_string(mode));
        const BNNSDataType type = types[mode % 4], index_type = index_types[c.items > 100 ? 0 : mode / 2 % 4];
        const bool gaps = mode & 1, frequency = mode & 2, norm = (mode & 4) && type != BNNSDataTypeInt16;
        Sizes dictionary_size = c.item, y_size = c.item;
        dictionary_size.push_back(c.items);
        y_size.insert(y_size.end(), c.positions.begin(), c.positions.end());
        LayoutTensor x(c.x, c.positions, index_type, gaps ? 2 : 1), y(c.y, y_size, type, 1, gaps ? 3 : 0);
        LayoutTensor dictionary(c.dictionary, dictionary_size, type, gaps ? 2 : 1, gaps);
        std::vector<double> numbers;
        std::vector<size_t> indices;
        for (size_t i = 0; i < x.count(); ++i) {
          indices.push_back(random.below(c.items));
          numbers.push_back(double(indices.back()));
        }
        fill(&x, numbers);
        const auto values = fill(&dictionary, random_integers(&random, dictionary.count()));
        auto layer = layer_of(x.descriptor(), y.descriptor(), dictionary.descriptor());
        ref::EmbeddingOptions o{c.items, count_of(c.item), SIZE_MAX, 0, 2, frequency};
        if (mode & 8) layer.padding_idx = o.padding = indices[0];
        if (norm) {
          layer.max_norm = 1.5f, o.max_norm = 1.5;
          layer.norm_type = mode & 8 ? 0.0f : 3.0f, o.norm_type = mode & 8 ? 2 : 3;
        }
        layer.flags = frequency ? BNNSEmbeddingFlagScaleGradientByFrequency : BNNSEmbeddingFlags(0);
        const FilterHandle filter = own(BNNSFilterCreateLayerEmbedding(&layer, nullptr));
        ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
        ASSERT_TRUE(y.gaps_untouched());
        const auto want = ref::embedding(o, values, indices);
        // the factor and the product are rounded, then the type
        const double unit = !norm                         ? 0
                            : type == BNNSDataTypeFloat32 ? 0x1p-22
                            : type == BNNSDataTypeFloat16 ? 0x1p-10
                                                          : 0x1p-7;
        ASSERT_TRUE(within(read(y), want, want.size(), [&](size_t i) { return unit * std::fabs(want[i]); }));
        if (type == BNNSDataTypeInt16) continue;

        // Small integers: exact sums (f16 and bf16 hold them too), exact shares up to a rounding.
        LayoutTensor dy(c.y, y_size, BNNSDataTypeFloat32, gaps ? 2 : 1);
        LayoutTensor gradient(c.dictionary, dictionary_size, type, 1, gaps ? 2 : 0);
        const auto g = fill(&dy, random_integers(&random, dy.count(), 2));
        auto dy_desc = dy.descriptor(), gradient_desc = gradient.descriptor();
        const double share = !frequency                    ? 0
                             : type == BNNSDataTypeFloat32 ? 0x1p-23
                             : type == BNNSDataTypeFloat16 ? 0x1p-10
                                                           : 0x1p-7;
        auto sums = ref::embedding_backward(o, indices, g);
        for (int times = 1; times <= 2; ++times) {
          ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, nullptr, 0, nullptr, 0, &dy_desc, 0,
                                                 &gradient_desc, nullptr),
                    0)
              << BNNSExtLastError();
          ASSERT_TRUE(gradient.gaps_untouched());
          ASSERT_TRUE(
              within(read(gradient), sums, sums.size(), [&](size_t i) { return 2 * share * std::fabs(sums[i]); }));
          gradient_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
          for (double& v : sums) v *= 2;
        }
      }
    }
  });
}

// BC32, BC53: repeated indices over a batch, the same bits for any number of threads; the adjoint of the lookup.
TEST(Embedding, BC32_BC53_RepeatedIndicesThreads) {
  constexpr size_t kBatch = 50, kPositions = 40, kDim = 70, kItems = 13;
  Random random(3);
  std::vector<int32_t> x(kBatch * kPositions);
  for (int32_t& v : x) v = random.integer(0, kItems - 1);
  auto dictionary = random.integers(kDim * kItems), exact = random.integers(x.size() * kDim);
  const auto rough = random.normals(x.size() * kDim);
  std::vector<float> want;
  for (size_t threads : kThreadCounts) {
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    const auto layer = layer_of(vector_descriptor(kPositions, nullptr, BNNSDataTypeInt32),
                                descriptor(BNNSDataLayout2DLastMajor, {kDim, kPositions}, nullptr),
                                descriptor(BNNSDataLayout2DLastMajor, {kDim, kItems}, dictionary.data()));
    const FilterHandle filter = own(BNNSFilterCreateLayerEmbedding(&layer, &options));
    std::vector<float> y(exact.size(), poison()), dw(dictionary.size(), poison());
    ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), kBatch, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
    auto dw_desc = descriptor(BNNSDataLayout2DLastMajor, {kDim, kItems}, dw.data());
    const auto backward = [&](const std::vector<float>& g) {
      auto dy = descriptor(BNNSDataLayout2DLastMajor, {kDim, kPositions}, const_cast<float*>(g.data()));
      ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), kBatch, x.data(), 0, nullptr, 0, nullptr, 0, &dy, 0,
                                             &dw_desc, nullptr),
                0)
          << BNNSExtLastError();
    };
    backward(exact);
    ASSERT_EQ(std::inner_product(y.begin(), y.end(), exact.begin(), 0.0),
              std::inner_product(dictionary.begin(), dictionary.end(), dw.begin(), 0.0));
    backward(rough);
    if (want.empty()) want = dw;
    ASSERT_TRUE(same_bits(dw, want)) << threads;
  }
}

struct Fixture {
  std::vector<float> dictionary = std::vector<float>(12, 1), y = std::vector<float>(8, 9);
  std::vector<int32_t> x = {0, 2};
  BNNSLayerParametersEmbedding layer =
      layer_of(vector_descriptor(2, nullptr, BNNSDataTypeInt32), descriptor(BNNSDataLayout2DLastMajor, {4, 2}, nullptr),
               descriptor(BNNSDataLayout2DLastMajor, {4, 3}, dictionary.data()));
};

TEST(EmbeddingMisuse, BC34_CreateRefuses) {
  struct Refusal {
    const char* reason;
    std::function<void(Fixture&)> spoil;
  };
  const Refusal refusals[] = {
      {"i_desc has type f32", [](Fixture& f) { f.layer.i_desc.data_type = BNNSDataTypeFloat32; }},
      {"o_desc.size[0] is 5", [](Fixture& f) { f.layer.o_desc.size[0] = 5; }},
      {"o_desc.size[1] is 3", [](Fixture& f) { f.layer.o_desc.size[1] = 3; }},
      {"o_desc has rank 1", [](Fixture& f) { f.layer.o_desc = vector_descriptor(8, nullptr); }},
      {"dictionary.data is NULL", [](Fixture& f) { f.layer.dictionary.data = nullptr; }},
      {"dictionary has rank 1", [](Fixture& f) { f.layer.dictionary = vector_descriptor(12, f.dictionary.data()); }},
      {"dictionary is f32 and o_desc i8", [](Fixture& f) { f.layer.o_desc.data_type = BNNSDataTypeInt8; }},
      {"max_norm is -1", [](Fixture& f) { f.layer.max_norm = -1; }},
      {"max_norm is nan", [](Fixture& f) { f.layer.max_norm = NAN; }},
      {"norm_type is -2", [](Fixture& f) { f.layer.norm_type = -2; }},
      {"flags is 0x2", [](Fixture& f) { f.layer.flags = BNNSEmbeddingFlags(2); }},
      {"i_desc", [](Fixture& f) { f.layer.i_desc.size[0] = SIZE_MAX; }},
  };
  for (const Refusal& refusal : refusals) {
    Fixture f;
    refusal.spoil(f);
    EXPECT_EQ(BNNSFilterCreateLayerEmbedding(&f.layer, nullptr), nullptr) << refusal.reason;
    EXPECT_TRUE(refused_because({refusal.reason}));
  }
  EXPECT_EQ(BNNSFilterCreateLayerEmbedding(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

TEST(EmbeddingMisuse, BC32_BC37_BadIndicesWriteNothing) {
  Fixture f;
  const FilterHandle filter = own(BNNSFilterCreateLayerEmbedding(&f.layer, nullptr));
  std::vector<float> dw(12, 7), dy(8, 1);
  auto dw_desc = descriptor(BNNSDataLayout2DLastMajor, {4, 3}, dw.data()), bias = dw_desc;
  auto dy_desc = descriptor(BNNSDataLayout2DLastMajor, {4, 2}, dy.data());
  const auto backward = [&](const void* in, BNNSNDArrayDescriptor* dx, BNNSNDArrayDescriptor* weights,
                            BNNSNDArrayDescriptor* b, size_t batch = 1) {
    return BNNSFilterApplyBackwardBatch(filter.get(), batch, in, 0, dx, 0, nullptr, 0, &dy_desc, 0, weights, b);
  };
  for (int32_t bad : {-1, 3, INT32_MAX, INT32_MIN}) {
    for (size_t at : {0, 1}) {
      f.x = {0, 2}, f.x[at] = bad;
      const std::string where = "index " + std::to_string(at) + " of sample 0";
      EXPECT_EQ(BNNSFilterApply(filter.get(), f.x.data(), f.y.data()), -1);
      EXPECT_TRUE(refused_because({where.c_str(), std::to_string(bad).c_str(), "0 to 2"}));
      EXPECT_EQ(backward(f.x.data(), nullptr, &dw_desc, nullptr), -1);
      EXPECT_TRUE(refused_because({where.c_str()}));
    }
  }
  f.x = {0, 1};
  EXPECT_EQ(BNNSFilterApply(filter.get(), nullptr, f.y.data()), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(backward(f.x.data(), &dw_desc, &dw_desc, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta"}));
  EXPECT_EQ(backward(f.x.data(), nullptr, nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"weights_delta is NULL"}));
  EXPECT_EQ(backward(f.x.data(), nullptr, &dw_desc, &bias), -1);
  EXPECT_TRUE(refused_because({"bias_delta"}));
  EXPECT_EQ(backward(nullptr, nullptr, &dw_desc, nullptr), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(f.y, std::vector<float>(8, 9));
  EXPECT_EQ(dw, std::vector<float>(12, 7));
  EXPECT_EQ(backward(f.x.data(), nullptr, &dw_desc, nullptr, 0), 0);  // BC38
  EXPECT_EQ(dw, std::vector<float>(12, 0));
}

TEST(EmbeddingMisuse, BC42_FailingAllocations) {
  Fixture f;
  const BNNSFilterParameters options = Accountant::options();
  int failures = 0;
  for (bool done = false; !done; ++failures) {
    Accountant::requests = 0;
    Accountant::fail_at = failures;
    if (BNNSFilter filter = BNNSFilterCreateLayerEmbedding(&f.layer, &options)) {
      std::vector<float> dw(12, 7), dy(8, 1);
      auto dw_desc = descriptor(BNNSDataLayout2DLastMajor, {4, 3}, dw.data());
      auto dy_desc = descriptor(BNNSDataLayout2DLastMajor, {4, 2}, dy.data());
      done = BNNSFilterApplyBackwardBatch(filter, 1, f.x.data(), 0, nullptr, 0, nullptr, 0, &dy_desc, 0, &dw_desc,
                                          nullptr) == 0;
      if (!done) {
        EXPECT_EQ(dw[0], 7);
      }
      BNNSFilterDestroy(filter);
    }
    EXPECT_EQ(Accountant::live, 0);
  }
  EXPECT_EQ(failures, 4);  // filter, dictionary, lists, and then none
}

}  // namespace
}  // namespace bnns::testing
