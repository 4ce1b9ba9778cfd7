// Sparse weights: documented numbers, the reference for shapes, batches and types, refusals.

#include "src/ops/sparse/sparse.h"

#include <functional>

#include "src/ops/sparse/sparse_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

int coo(BNNSNDArrayDescriptor* shape, BNNSNDArrayDescriptor* indices, BNNSNDArrayDescriptor* values,
        BNNSNDArrayDescriptor* out, const BNNSFilterParameters* options = nullptr) {
  return BNNSNDArrayFullyConnectedSparsifySparseCOO(shape, indices, values, out, nullptr, 0, nullptr, 0, options);
}
int csr(BNNSNDArrayDescriptor* shape, BNNSNDArrayDescriptor* columns, BNNSNDArrayDescriptor* starts,
        BNNSNDArrayDescriptor* values, BNNSNDArrayDescriptor* out, const BNNSFilterParameters* options = nullptr) {
  return BNNSNDArrayFullyConnectedSparsifySparseCSR(shape, columns, starts, values, out, nullptr, 0, nullptr, 0,
                                                    options);
}

BNNSLayerParametersFullyConnected layer_of(size_t inputs, size_t outputs, const BNNSNDArrayDescriptor& w) {
  BNNSLayerParametersFullyConnected layer;
  std::memset(&layer, 0, sizeof layer);
  layer.i_desc = vector_descriptor(inputs, nullptr);
  layer.o_desc = vector_descriptor(outputs, nullptr);
  layer.w_desc = w;
  return layer;
}

// 2 I with 7 added at row 3, column 0.
TEST(Sparse, DocumentedCooAndCsr) {
  std::vector<uint32_t> pairs;  // (column, row)
  std::vector<float> values;
  for (uint32_t i = 0; i < 8; ++i) {
    if (i == 3) pairs.insert(pairs.end(), {0, 3}), values.push_back(7);
    pairs.insert(pairs.end(), {i, i});
    values.push_back(2);
  }
  uint32_t columns[9] = {0, 1, 2, 0, 3, 4, 5, 6, 7}, starts[9] = {0, 1, 2, 3, 5, 6, 7, 8, 9};
  for (bool rows : {false, true}) {
    std::vector<float> packed(64), x = {1, 2, 3, 4, 5, 6, 7, 8}, y(8);
    auto shape = descriptor(BNNSDataLayoutRowMajorMatrix, {8, 8}, nullptr), out = shape;
    out.data = packed.data();
    auto pair_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 9}, pairs.data(), BNNSDataTypeUInt32);
    auto value_desc = vector_descriptor(9, values.data());
    auto column_desc = vector_descriptor(9, columns, BNNSDataTypeUInt32),
         start_desc = vector_descriptor(9, starts, BNNSDataTypeUInt32);
    ASSERT_EQ(
        rows ? csr(&shape, &column_desc, &start_desc, &value_desc, &out) : coo(&shape, &pair_desc, &value_desc, &out),
        0)
        << BNNSExtLastError();
    EXPECT_EQ(out.layout, BNNSDataLayoutFullyConnectedSparse);
    const size_t bytes = BNNSNDArrayGetDataSize(&out);
    EXPECT_GT(bytes, 0u);
    EXPECT_LT(bytes, 256u);
    const auto layer = layer_of(8, 8, out);
    const FilterHandle filter = own(BNNSFilterCreateLayerFullyConnected(&layer, nullptr));
    ASSERT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0) << BNNSExtLastError();
    EXPECT_EQ(y, (std::vector<float>{2, 4, 6, 15, 10, 12, 14, 16}));
  }
}

struct Matrix {
  size_t outputs, inputs;
  std::vector<ref::SparseEntry> entries;  // by rows
};
Matrix random_matrix(Random* random, size_t outputs, size_t inputs, double density) {
  Matrix m{outputs, inputs, {}};
  for (size_t o = 0; o < outputs; ++o) {
    for (size_t i = 0; i < inputs; ++i) {
      if (random->uniform() < density) m.entries.push_back({o, i, double(random->integer(-4, 4))});
    }
  }
  if (m.entries.empty()) m.entries.push_back({0, 0, 1});
  return m;
}

TEST(Sparse, BC18_BC33_BC53_ShapesBatchesTypesThreads) {
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  const BNNSDataType index_types[] = {BNNSDataTypeUInt32, BNNSDataTypeInt32, BNNSDataTypeUInt64};
  for_each_isa([&] {
    Random random(1);
    int round = 0;
    for (size_t outputs : {1, 7, 65, 130}) {
      for (size_t inputs : {1, 9, 600}) {
        for (size_t batch : {1, 2, 4, 15, 16, 17, 21, 33}) {
          SCOPED_TRACE(std::to_string(outputs) + " x " + std::to_string(inputs) + " batch " + std::to_string(batch));
          ++round;
          Matrix m = random_matrix(&random, outputs, inputs, round % 2 ? 0.1 : 0.6);
          if (round % 3 == 0) m.entries.push_back(m.entries[0]);  // the same place twice: both count
          const BNNSDataType type = types[round % 3], index_type = index_types[round / 3 % 3];
          const size_t n = m.entries.size();
          const bool rows = round % 2 && round % 3, column_major = round % 5 == 0;
          auto shape = column_major ? descriptor(BNNSDataLayoutColumnMajorMatrix, {outputs, inputs}, nullptr, type)
                                    : descriptor(BNNSDataLayoutRowMajorMatrix, {inputs, outputs}, nullptr, type);
          LayoutTensor values(BNNSDataLayoutVector, {n}, type), pairs(BNNSDataLayoutVector, {2 * n}, index_type);
          LayoutTensor columns(BNNSDataLayoutVector, {n}, index_type),
              starts(BNNSDataLayoutVector, {outputs + 1}, index_type);
          std::vector<double> ends(outputs + 1, 0);
          for (size_t k = 0; k < n; ++k) {
            const auto& e = m.entries[k];
            values.set({k}, e.value);
            pairs.set({2 * k}, double(column_major ? e.output : e.input));
            pairs.set({2 * k + 1}, double(column_major ? e.input : e.output));
            columns.set({k}, double(e.input));
            for (size_t o = e.output + 1; o <= outputs; ++o) ends[o] += 1;
          }
          fill(&starts, ends);
          auto value_desc = values.descriptor(), pair_desc = pairs.descriptor();
          auto column_desc = columns.descriptor(), start_desc = starts.descriptor();
          auto out = vector_descriptor(0, nullptr);  // allocated
          ASSERT_EQ(rows ? csr(&shape, &column_desc, &start_desc, &value_desc, &out)
                         : coo(&shape, &pair_desc, &value_desc, &out),
                    0)
              << BNNSExtLastError();
          // Exact bounds: a copy that ends at a page.
          Guarded<uint32_t> exact((BNNSNDArrayGetDataSize(&out) + 3) / 4);
          std::memcpy(exact.data(), out.data, BNNSNDArrayGetDataSize(&out));
          std::free(out.data);
          out.data = exact.data();

          Guarded<float> x(random.integers(batch * inputs));
          auto bias = random.integers(outputs);
          auto layer = layer_of(inputs, outputs, out);
          if (round % 4) layer.bias = vector_descriptor(outputs, bias.data());
          std::vector<float> want;
          for (size_t threads : kThreadCounts) {
            BNNSFilterParameters options = {};
            options.n_threads = threads;
            const FilterHandle filter = own(BNNSFilterCreateLayerFullyConnected(&layer, &options));
            Guarded<float> y(batch * outputs);
            ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
            std::vector<float> got(y.data(), y.data() + y.size());
            if (want.empty()) {
              want = got;
              for (size_t b = 0; b < batch; ++b) {
                const auto sums =
                    ref::sparse_fully_connected(m.entries, outputs, round % 4 ? to_double(bias) : std::vector<double>{},
                                                {x.data() + b * inputs, x.data() + (b + 1) * inputs});
                for (size_t o = 0; o < outputs; ++o) ASSERT_EQ(double(got[b * outputs + o]), sums[o]);  // integers
              }
            }
            ASSERT_TRUE(same_bits(got, want));
          }
        }
      }
    }
  });
}

// Half types, gaps, fused activations and softmax; a batch equals its samples one by one, bit for bit.
TEST(Sparse, TypesStridesAndActivations) {
  Random random(2);
  const Matrix m = random_matrix(&random, 24, 40, 0.2);
  const size_t n = m.entries.size();
  std::vector<float> values;
  std::vector<uint32_t> pairs;
  for (const auto& e : m.entries) {
    values.push_back(float(e.value) * 0.37f);
    pairs.insert(pairs.end(), {uint32_t(e.input), uint32_t(e.output)});
  }
  auto shape = descriptor(BNNSDataLayoutRowMajorMatrix, {40, 24}, nullptr), out = vector_descriptor(0, nullptr);
  auto pair_desc = vector_descriptor(2 * n, pairs.data(), BNNSDataTypeUInt32),
       value_desc = vector_descriptor(n, values.data());
  ASSERT_EQ(coo(&shape, &pair_desc, &value_desc, &out), 0) << BNNSExtLastError();
  for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
    for (auto function :
         {BNNSActivationFunctionIdentity, BNNSActivationFunctionRectifiedLinear, BNNSActivationFunctionSoftmax}) {
      for (bool first_major : {false, true}) {
        const size_t batch = 21;
        std::vector<std::unique_ptr<LayoutTensor>> xs, ys;
        auto layer = layer_of(40, 24, out);
        LayoutTensor x(BNNSDataLayoutVector, {40}, type, 2), y(generic_layout(2, first_major), {6, 4}, type);
        layer.i_desc = x.descriptor(), layer.o_desc = y.descriptor();
        layer.activation.function = function;
        const FilterHandle filter = own(BNNSFilterCreateLayerFullyConnected(&layer, nullptr));
        const size_t element = x.bytes() / 79;
        std::vector<unsigned char> in(batch * 80 * element), all(batch * 24 * element), one(24 * element);
        for (size_t b = 0; b < batch; ++b) {
          fill(&x, random_normals(&random, 40));
          std::memcpy(in.data() + b * 80 * element, x.data(), x.bytes());
        }
        ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), batch, in.data(), 80, all.data(), 24), 0) << BNNSExtLastError();
        for (size_t b = 0; b < batch; ++b) {
          ASSERT_EQ(BNNSFilterApply(filter.get(), in.data() + b * 80 * element, one.data()), 0) << BNNSExtLastError();
          ASSERT_EQ(std::memcmp(one.data(), all.data() + b * 24 * element, one.size()), 0) << "sample " << b;
        }
        // The last sample against the reference.
        std::vector<ref::SparseEntry> entries = m.entries;
        for (size_t k = 0; k < n; ++k) entries[k].value = double(values[k]);
        auto want = ref::sparse_fully_connected(entries, 24, {}, read(x));  // in memory order
        std::memcpy(y.data(), one.data(), one.size());
        std::vector<double> got(24);
        for_each_coordinate({6, 4}, [&](const Coordinates& at) { got[y.offset(at)] = y.get(at); });
        if (function == BNNSActivationFunctionRectifiedLinear) {
          for (double& v : want) v = v > 0 ? v : 0;
        }
        if (function == BNNSActivationFunctionSoftmax) {  // along size[0]
          for (size_t c = 0; c < 4; ++c) {
            double sum = 0;
            for (size_t r = 0; r < 6; ++r) sum += std::exp(want[y.offset({r, c})]);
            for (size_t r = 0; r < 6; ++r) {
              double& v = want[y.offset({r, c})];
              v = std::exp(v) / sum;
            }
          }
        }
        // sums of at most 40 terms of at most 1.5 * 5, then the type
        const double unit = type == BNNSDataTypeFloat32 ? 0 : type == BNNSDataTypeFloat16 ? 0x1p-11 : 0x1p-8;
        ASSERT_TRUE(within(got, want, 24, [&](size_t i) { return 300 * 0x1p-22 + unit * std::fabs(want[i]); }));
      }
    }
  }
  std::free(out.data);
}

TEST(SparseMisuse, BC32_BC34_BC37_RefusalsWriteNothing) {
  struct Fixture {
    std::vector<uint32_t> pairs = {0, 0, 1, 1}, columns = {0, 1}, starts = {0, 1, 2, 2, 2, 2, 2, 2, 2};
    std::vector<float> values = {1, 2}, packed = std::vector<float>(64, 9);
    BNNSNDArrayDescriptor shape = descriptor(BNNSDataLayoutRowMajorMatrix, {8, 8}, nullptr);
    BNNSNDArrayDescriptor pair_desc = vector_descriptor(4, pairs.data(), BNNSDataTypeUInt32);
    BNNSNDArrayDescriptor column_desc = vector_descriptor(2, columns.data(), BNNSDataTypeUInt32);
    BNNSNDArrayDescriptor start_desc = vector_descriptor(9, starts.data(), BNNSDataTypeUInt32);
    BNNSNDArrayDescriptor value_desc = vector_descriptor(2, values.data());
    BNNSNDArrayDescriptor out = descriptor(BNNSDataLayoutRowMajorMatrix, {8, 8}, packed.data());
    BNNSNDArrayDescriptor* shape_pointer = &shape;
  };
  struct Refusal {
    const char *of_coo, *of_csr;  // NULL: not there
    std::function<void(Fixture&)> spoil;
  };
  const Refusal refusals[] = {
      {"in_dense_shape is NULL", "in_dense_shape is NULL", [](Fixture& f) { f.shape_pointer = nullptr; }},
      {"in_dense_shape.layout", "in_dense_shape.layout", [](Fixture& f) { f.shape.layout = BNNSDataLayoutVector; }},
      {"in_values has type i8", "in_values has type i8", [](Fixture& f) { f.value_desc.data_type = BNNSDataTypeInt8; }},
      {"in_values.data is NULL", "in_values.data is NULL", [](Fixture& f) { f.value_desc.data = nullptr; }},
      {"in_indices has 3 entries", nullptr, [](Fixture& f) { f.pair_desc.size[0] = 3; }},
      {"in_indices has type f32", nullptr, [](Fixture& f) { f.pair_desc.data_type = BNNSDataTypeFloat32; }},
      {"entry 2 of in_indices is 8", nullptr, [](Fixture& f) { f.pairs[2] = 8; }},
      {"entry 3 of in_indices is -1", nullptr,
       [](Fixture& f) { f.pairs[3] = UINT32_MAX, f.pair_desc.data_type = BNNSDataTypeInt32; }},
      {nullptr, "in_column_indices has 1 entries", [](Fixture& f) { f.column_desc.size[0] = 1; }},
      {nullptr, "entry 1 of in_column_indices is 8", [](Fixture& f) { f.columns[1] = 8; }},
      {nullptr, "in_row_starts has 8 entries", [](Fixture& f) { f.start_desc.size[0] = 8; }},
      {nullptr, "in_row_starts[0] is 1", [](Fixture& f) { f.starts[0] = 1; }},
      {nullptr, "in_row_starts[2] is 0", [](Fixture& f) { f.starts[2] = 0; }},
      {nullptr, "in_row_starts[3] is 5", [](Fixture& f) { f.starts[3] = 5; }},
      {nullptr, "in_row_starts[8] is 1",
       [](Fixture& f) {
         for (size_t i = 1; i < 9; ++i) f.starts[i] = 1;
       }},
      {"overlap", "overlap", [](Fixture& f) { f.value_desc.data = f.packed.data(); }},
      {"packed", nullptr, [](Fixture& f) { f.shape.size[0] = f.shape.size[1] = 2; }},  // larger than dense
  };
  for (const Refusal& refusal : refusals) {
    for (bool rows : {false, true}) {
      const char* reason = rows ? refusal.of_csr : refusal.of_coo;
      if (!reason) continue;
      SCOPED_TRACE(reason);
      Fixture f;
      refusal.spoil(f);
      const BNNSNDArrayDescriptor before = f.out;
      EXPECT_EQ(rows ? csr(f.shape_pointer, &f.column_desc, &f.start_desc, &f.value_desc, &f.out)
                     : coo(f.shape_pointer, &f.pair_desc, &f.value_desc, &f.out),
                -1);
      EXPECT_TRUE(refused_because({reason}));
      EXPECT_EQ(f.packed, std::vector<float>(64, 9));
      EXPECT_EQ(std::memcmp(&before, &f.out, sizeof before), 0);
    }
  }
  Fixture f;
  EXPECT_EQ(coo(&f.shape, &f.pair_desc, &f.value_desc, nullptr), -1);
  EXPECT_TRUE(refused_because({"out is NULL"}));
  const BNNSFilterParameters options = Accountant::options();
  Accountant::fail_at = 0;
  f.out.data = nullptr;
  EXPECT_EQ(coo(&f.shape, &f.pair_desc, &f.value_desc, &f.out, &options), -1);
  EXPECT_TRUE(refused_because({"out of memory"}));
  EXPECT_EQ(f.out.data, nullptr);
  Accountant::fail_at = -1;
  ASSERT_EQ(coo(&f.shape, &f.pair_desc, &f.value_desc, &f.out, &options), 0) << BNNSExtLastError();
  EXPECT_EQ(Accountant::live, 1);
  Accountant::free(f.out.data);
}

TEST(SparseMisuse, BC36_LayersCheckPackedWeights) {
  std::vector<uint32_t> pairs = {0, 0, 1, 1};
  std::vector<float> values = {1, 2}, packed(64), x(8, 1), y(8, 9);
  auto shape = descriptor(BNNSDataLayoutRowMajorMatrix, {8, 8}, nullptr), out = shape;
  out.data = packed.data();
  auto pair_desc = vector_descriptor(4, pairs.data(), BNNSDataTypeUInt32),
       value_desc = vector_descriptor(2, values.data());
  ASSERT_EQ(coo(&shape, &pair_desc, &value_desc, &out), 0) << BNNSExtLastError();
  const auto refused = [&](const char* reason, const BNNSLayerParametersFullyConnected& layer) {
    EXPECT_EQ(BNNSFilterCreateLayerFullyConnected(&layer, nullptr), nullptr) << reason;
    EXPECT_TRUE(refused_because({reason}));
  };
  refused("elements of i_desc", layer_of(7, 8, out));
  refused("elements of o_desc", layer_of(8, 9, out));
  auto none = out;
  none.data = nullptr;
  refused("w_desc.data is NULL", layer_of(8, 8, none));
  // Any byte of the packed form that is changed is refused, or harmless: never an access outside.
  const auto sound = packed;
  const size_t bytes = BNNSNDArrayGetDataSize(&out);
  for (size_t i = 0; i < bytes; ++i) {
    for (unsigned char flip : {0x01, 0x80, 0xff}) {
      packed = sound;
      reinterpret_cast<unsigned char*>(packed.data())[i] ^= flip;
      const auto layer = layer_of(8, 8, out);
      if (BNNSFilter filter = BNNSFilterCreateLayerFullyConnected(&layer, nullptr)) {
        EXPECT_EQ(BNNSFilterApply(filter, x.data(), y.data()), 0);
        BNNSFilterDestroy(filter);
      }
    }
  }
  packed = sound;
  const auto layer = layer_of(8, 8, out);
  const FilterHandle filter = own(BNNSFilterCreateLayerFullyConnected(&layer, nullptr));
  auto dx = vector_descriptor(8, y.data()), dy = vector_descriptor(8, x.data());
  EXPECT_EQ(apply_backward(filter, 1, &dx, 0, &dy, 0), -1);
  EXPECT_TRUE(refused_because({"inference"}));
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), x.data()), -1);
  EXPECT_TRUE(refused_because({"overlap"}));
  packed[0] = 0;  // no magic
  EXPECT_EQ(BNNSNDArrayGetDataSize(&out), 0u);
  refused("Sparsify", layer_of(8, 8, out));
}

}  // namespace
}  // namespace bnns::testing
