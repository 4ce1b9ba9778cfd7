// Contraction strings: what each means, what is refused and at which character. The arithmetic is tested in
// src/engine/product/product_test.cc.

#include "src/ops/contraction/contraction.h"

#include <gtest/gtest.h>

#include "src/engine/product/product_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

BNNSLayerParametersTensorContraction make_layer(const char* operation, Samples& a, Samples* b, Samples& c) {
  BNNSLayerParametersTensorContraction layer = {};
  layer.operation = operation;
  layer.alpha = 1;
  layer.iA_desc = a.descriptor();
  if (b) layer.iB_desc = b->descriptor();
  layer.o_desc = c.descriptor();
  return layer;
}

Samples tensor(const std::vector<size_t>& size, size_t batch = 1, BNNSDataType type = BNNSDataTypeFloat32) {
  return Samples(BNNSDataLayout((size.size() << 16) | 0x8001), size, type, 1, 0, batch, 0);
}

TEST(Contraction, VectorOfTheSpecification) {
  float a[] = {1, 2}, b[] = {3, 4}, c[4];
  BNNSLayerParametersTensorContraction layer = {};
  layer.operation = "a_ip, b_iq -> o_pq";
  layer.alpha = 10;
  layer.iA_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 1}, nullptr);  // {columns, rows}: one row
  layer.iB_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 1}, nullptr);
  layer.o_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 2}, nullptr);
  BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, nullptr);
  ASSERT_NE(filter, nullptr) << BNNSExtLastError();
  ASSERT_EQ(BNNSFilterApplyTwoInput(filter, a, b, c), 0);
  const float want[] = {30, 40, 60, 80};
  EXPECT_TRUE(same_bits(c, want, 4));
  BNNSFilterDestroy(filter);
}

// '*' stands for further indices, at either end; a bare '*' fits both. The reference has them as letters y and z.
TEST(Contraction, StarAtEitherEnd) {
  struct Row {
    const char* operation;
    std::string letters[3];
    std::vector<size_t> size[3];
  };
  const Row rows[] = {
      {"a_*ik, b_*kj -> c_*ij", {"yzik", "yzkj", "yzij"}, {{2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}}},
      {"a_ik*, b_kj* -> c_ij*", {"ikyz", "kjyz", "ijyz"}, {{4, 5, 2, 3}, {5, 6, 2, 3}, {4, 6, 2, 3}}},
      {"a_*ik, b_kj -> c_*ij", {"yzik", "kj", "yzij"}, {{2, 3, 4, 5}, {5, 6}, {2, 3, 4, 6}}},
      {"a_*ik, b_*kj -> c_*ij", {"yzik", "yzkj", "yzij"}, {{2, 1, 4, 5}, {1, 3, 5, 6}, {2, 3, 4, 6}}},
      {"a_*,b_i*->c_i*", {"yz", "iyz", "iyz"}, {{2, 3}, {4, 2, 3}, {4, 2, 3}}},
      {" scale_ , x_* -> y_* ", {"", "yz", "yz"}, {{1}, {2, 3}, {2, 3}}},
      {"Src_ i  j *, Other_j i* -> Dst _ *", {"ijy", "jiy", "y"}, {{4, 5, 3}, {5, 4, 3}, {3}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.operation);
    Random random(1);
    Samples a = tensor(row.size[0], 2), b = tensor(row.size[1], 2), c = tensor(row.size[2], 2);
    Samples da = tensor(row.size[0], 2), db = tensor(row.size[1], 2), dc = tensor(row.size[2], 2);
    for (Samples* s : {&a, &b, &dc}) s->fill_integers(random, 3);
    const BNNSLayerParametersTensorContraction layer = make_layer(row.operation, a, &b, c);
    BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, nullptr);
    ASSERT_NE(filter, nullptr) << BNNSExtLastError();
    const ProductCase p{{row.letters[0], row.letters[1], row.letters[2]}, &a, &b, &c};
    EXPECT_TRUE(forward_equals(filter, p));
    EXPECT_TRUE(backward_equals(filter, p, dc, da, &db, false));
    BNNSFilterDestroy(filter);
  }
}

// One operand: copies, permutations, sums, repetition; both ways, set and accumulate, with factors.
TEST(Contraction, OneOperand) {
  struct Row {
    const char* operation;
    std::string letters[2];
    std::vector<size_t> size[2];
  };
  const Row rows[] = {
      {"src_* -> dest_*", {"yz", "yz"}, {{40, 50}, {40, 50}}},
      {"a_ij -> b_ji", {"ij", "ji"}, {{40, 50}, {50, 40}}},
      {"a_ijk -> b_kij", {"ijk", "kij"}, {{7, 9, 11}, {11, 7, 9}}},
      {"a_ijk -> b_ik", {"ijk", "ik"}, {{7, 90, 33}, {7, 33}}},
      {"a_ijk -> b_j", {"ijk", "j"}, {{7, 90, 33}, {90}}},
      {"a_ij -> b_", {"ij", ""}, {{70, 90}, {1}}},
      {"a_ij -> b_ij", {"ij", "ij"}, {{1, 50}, {40, 50}}},
      {"a_ijk -> b_kj", {"ijk", "kj"}, {{9, 1, 6}, {6, 8}}},
  };
  for_each_isa([&] {
    for (const Row& row : rows) {
      SCOPED_TRACE(row.operation);
      for (const BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeInt8}) {
        for (const float alpha : {1.0f, -2.0f}) {
          for (const bool add : {false, true}) {
            Random random(1);
            Samples a = tensor(row.size[0], 2, type), c = tensor(row.size[1], 2);
            Samples da = tensor(row.size[0], 2), dc = tensor(row.size[1], 2, BNNSDataTypeBFloat16);
            for (Samples* s : {&a, &dc}) s->fill_integers(random, 3);
            BNNSLayerParametersTensorContraction layer = make_layer(row.operation, a, nullptr, c);
            layer.alpha = alpha;
            layer.beta = add;
            BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, nullptr);
            ASSERT_NE(filter, nullptr) << BNNSExtLastError();
            ProductCase p{{row.letters[0], "", row.letters[1]}, &a, nullptr, &c};
            p.alpha = alpha, p.beta = add;
            EXPECT_TRUE(forward_equals(filter, p));
            EXPECT_TRUE(backward_equals(filter, p, dc, da, nullptr, add));
            // The gradient of a sum does not need the input.
            BNNSNDArrayDescriptor g = dc.descriptor(), d = da.descriptor();
            EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter, 2, nullptr, 0, &d, 0, nullptr, 0, &g, 0, nullptr, nullptr),
                      0);
            BNNSFilterDestroy(filter);
          }
        }
      }
    }
  });
}

TEST(Contraction, MalformedStringsPointAtTheCharacter) {
  struct Row {
    const char *operation, *character, *reason;
  };
  const Row rows[] = {
      {"", "character 0 is the end", "name"},
      {"   ", "character 3 is the end", "name"},
      {"_ij -> c_ij", "character 0 is '_'", "name"},
      {"a -> c_ij", "character 2 is '-'", "'_'"},
      {"my name_ij -> c_ij", "character 3 is 'n'", "'_'"},
      {"a_ij", "character 4 is the end", "'->'"},
      {"a_ij b_jk -> c_ik", "character 6 is '_'", "index letter"},
      {"a_ij; b_jk -> c_ik", "character 4 is ';'", "index letter"},
      {"a_i1, b_jk -> c_ik", "character 3 is '1'", "index letter"},
      {"a_ij, b_jk - > c_ik", "character 12 is ' '", "'>'"},
      {"a_ij, b_jk = c_ik", "character 11 is '='", "index letter"},
      {"a_ij, b_jk, d_kl -> c_il", "character 10 is ','", "two operands"},
      {"a_ij, -> c_ij", "character 6 is '-'", "name"},
      {"a_ij, b_jk ->", "character 13 is the end", "name"},
      {"a_ij, b_jk -> c_ik, d_i", "character 18 is ','", "end of the string"},
      {"a_ij, b_jk -> c_ik -> d_i", "character 19 is '-'", "end of the string"},
      {"a_ii -> c_i", "character 3 is 'i'", "does not have yet"},
      {"a_i -> c_ii", "character 10 is 'i'", "does not have yet"},
      {"a_ij, b_jk -> c_iz", "character 17 is 'z'", "on the left"},
      {"a_*i*, b_i -> c_*", "character 4 is '*'", "one '*'"},
      {"a_i*j -> c_i*j", "character 4 is 'j'", "before or after"},
      {"a_**i -> c_*i", "character 3 is '*'", "one '*'"},
      {"a_*i, b_i* -> c_*", "character 6 is 'b'", "same end"},
      {"a_*i, b_i -> c_i*", "character 13 is 'c'", "same end"},
      {"a_*i, b_i -> c_", "character 13 is 'c'", "never summed"},
      {"a_i, b_i -> c_*", "character 12 is 'c'", "no '*'"},
      {"w_ij, weights_jk -> c_ik", "character 6 is 'w'", "one trained"},
      {"w_ij -> c_ij", "character 0 is 'w'", "needs another"},
      {"a_ij, b_jk \x01-> c_ik", "character 11 is byte 0x01", "index letter"},
      {"a_abcdefghi -> c_", "character 10 is 'i'", "eight"},
  };
  Samples t = tensor({2, 2});
  for (const Row& row : rows) {
    SCOPED_TRACE(row.operation);
    const BNNSLayerParametersTensorContraction layer = make_layer(row.operation, t, &t, t);
    EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&layer, nullptr), nullptr);
    EXPECT_TRUE(refused_because({"contraction", row.character, row.reason}));
  }
  // The reason is one line, whatever the string holds.
  const BNNSLayerParametersTensorContraction lines = make_layer("a_ij ->\n y_\r.j", t, &t, t);
  EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&lines, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"\"a_ij ->  y_ .j\"", "'.'"}));
  const std::string endless(5000, 'a');
  BNNSLayerParametersTensorContraction layer = make_layer(endless.c_str(), t, &t, t);
  EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&layer, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"more than 1024"}));
  layer.operation = nullptr;
  EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&layer, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"operation is NULL"}));
  const BNNSLayerParametersTensorContraction* none = nullptr;  // not a constant: clang would see it
  EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(none, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

// Random strings of the grammar's characters never crash, and every refusal has a reason.
TEST(Contraction, RandomStrings) {
  Random random(8);
  Samples t = tensor({2, 2});
  const std::string characters = "abw_*,-> ij\t1";
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string operation = random.below(2) ? "a_ij, b_ij -> c_ij" : "";
    for (size_t k = random.below(8); k > 0; --k) {
      const size_t at = operation.empty() ? 0 : random.below(operation.size());
      const char c = characters[random.below(characters.size())];
      random.below(2) && !operation.empty() ? void(operation[at] = c) : void(operation.insert(at, 1, c));
    }
    const BNNSLayerParametersTensorContraction layer = make_layer(operation.c_str(), t, &t, t);
    BNNSExtClearLastError();
    BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, nullptr);
    if (filter) {
      ++accepted;
      BNNSFilterDestroy(filter);
    } else {
      ASSERT_TRUE(refused_because({"contraction: "})) << operation;
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(Contraction, ShapesAndFactorsThatAreRefused) {
  Samples a = tensor({3, 4}), b = tensor({4, 5}), c = tensor({3, 5}), v = tensor({3}), cube = tensor({2, 3, 5});
  const auto refuses = [&](const char* operation, Samples& x, Samples* y, Samples& z,
                           std::initializer_list<const char*> words) {
    SCOPED_TRACE(operation);
    const BNNSLayerParametersTensorContraction layer = make_layer(operation, x, y, z);
    EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&layer, nullptr), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  refuses("a_ik, b_jk -> c_ij", a, &b, c, {"index k is 5 in iB_desc.size[1]", "expected 4"});
  refuses("a_ik, b_kj -> c_ji", a, &b, c, {"index j is 3 in o_desc.size[0]", "expected 5"});
  refuses("a_ikl, b_kj -> c_ij", a, &b, c, {"iA_desc has rank 2, expected 3"});
  refuses("a_ik, b_kj -> c_i", a, &b, c, {"o_desc has rank 2, expected 1"});
  refuses("a_, b_kj -> c_kj", a, &b, b, {"iA_desc has 12 elements, expected 1"});
  refuses("a_*ik, b_kj -> c_*ij", a, &b, cube, {"iA_desc has rank 2, expected 3", "'*'"});
  refuses("a_ij, b_kl -> c_ijkl*", a, &b, c, {"'*'"});
  // The output is as large as what it is made of: an index of extent 1 does not sum.
  Samples small = tensor({1, 5});
  refuses("a_ik, b_kj -> c_ij", a, &b, small, {"index i is 1 in o_desc", "expected 3"});
  BNNSLayerParametersTensorContraction layer = make_layer("a_ik, b_kj -> c_ij", a, &b, c);
  layer.beta = 0.5f;
  EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&layer, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"beta is 0.5", "0 or 1"}));
  layer = make_layer("a_ik, w_kj -> c_ij", a, &b, c);
  layer.iB_desc.data = nullptr;
  EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&layer, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"iB_desc.data is NULL"}));
  layer = make_layer("a_ik, b_kj -> c_ij", a, &b, c);
  layer.iA_desc.data_type = BNNSDataTypeInt4;
  EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&layer, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"iA_desc has type"}));
  // BC34: sizes whose product does not fit.
  layer = make_layer("a_i, b_j -> c_ij", v, &v, c);
  layer.iA_desc.size[0] = layer.o_desc.size[0] = size_t{1} << 40;
  layer.iB_desc.size[0] = layer.o_desc.size[1] = size_t{1} << 40;
  EXPECT_EQ(BNNSFilterCreateLayerTensorContraction(&layer, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"does not fit"}));
}

// One table of wrong calls for every entry point; nothing is written (BC37).
TEST(Contraction, BC37_WrongCallsAreRefusedWithNothingWritten) {
  Samples a = tensor({3, 4}, 2), b = tensor({4, 5}, 2), c = tensor({3, 5}, 2);
  Samples da = tensor({3, 4}, 2), db = tensor({4, 5}, 2), dc = tensor({3, 5}, 2), other = tensor({7}, 2);
  a.fill(1), b.fill(1), dc.fill(1);
  const BNNSLayerParametersTensorContraction two = make_layer("a_ik, b_kj -> c_ij", a, &b, c);
  const BNNSLayerParametersTensorContraction trained = make_layer("a_ik, w_kj -> c_ij", a, &b, c);
  BNNSFilter f2 = BNNSFilterCreateLayerTensorContraction(&two, nullptr);
  BNNSFilter f1 = BNNSFilterCreateLayerTensorContraction(&trained, nullptr);
  ASSERT_TRUE(f2 && f1);
  const auto c_before = c.snapshot(), da_before = da.snapshot(), db_before = db.snapshot();
  BNNSNDArrayDescriptor g = dc.descriptor(), ga = da.descriptor(), gb = db.descriptor(), bad = other.descriptor();
  BNNSNDArrayDescriptor in_a = a.descriptor(), no_data = g, integers = ga;
  no_data.data = nullptr;
  integers.data_type = BNNSDataTypeInt32;
  const void* no_input = nullptr;  // not a constant: clang would see it
  void* no_output = nullptr;       // not a constant: clang would see it
  const auto backward_two = [&](BNNSFilter f, const void* x, BNNSNDArrayDescriptor* dx, const void* y,
                                BNNSNDArrayDescriptor* dy, const BNNSNDArrayDescriptor* dz,
                                BNNSNDArrayDescriptor* w = nullptr, BNNSNDArrayDescriptor* bias = nullptr,
                                size_t delta_stride = 0) {
    return BNNSFilterApplyBackwardTwoInputBatch(f, 2, x, 0, dx, delta_stride, y, 0, dy, 0, nullptr, 0, dz, 0, w, bias);
  };
  const auto backward_one = [&](BNNSFilter f, const void* x, BNNSNDArrayDescriptor* dx, const BNNSNDArrayDescriptor* dz,
                                BNNSNDArrayDescriptor* w, BNNSNDArrayDescriptor* bias = nullptr) {
    return BNNSFilterApplyBackwardBatch(f, 2, x, 0, dx, 0, nullptr, 0, dz, 0, w, bias);
  };
  const auto refused = [&](int status, std::initializer_list<const char*> words) {
    EXPECT_EQ(status, -1);
    EXPECT_TRUE(refused_because(words));
    EXPECT_EQ(c.snapshot(), c_before);
    EXPECT_EQ(da.snapshot(), da_before);
    EXPECT_EQ(db.snapshot(), db_before);
    BNNSExtClearLastError();
  };
  refused(BNNSFilterApplyBatch(f2, 2, a.data(), 0, c.data(), 0), {"two inputs"});
  refused(BNNSFilterApply(f2, a.data(), c.data()), {"two inputs"});
  refused(BNNSFilterApplyTwoInputBatch(f1, 2, a.data(), 0, b.data(), 0, c.data(), 0), {"one input"});
  refused(BNNSFilterApplyTwoInput(f1, a.data(), b.data(), c.data()), {"one input"});
  refused(BNNSFilterApplyTwoInput(nullptr, a.data(), b.data(), c.data()), {"filter is NULL"});
  refused(BNNSFilterApplyTwoInputBatch(f2, 2, no_input, 0, b.data(), 0, c.data(), 0), {"inA is NULL"});
  refused(BNNSFilterApplyTwoInputBatch(f2, 2, a.data(), 0, no_input, 0, c.data(), 0), {"inB is NULL"});
  refused(BNNSFilterApplyTwoInputBatch(f2, 2, a.data(), 0, b.data(), 0, no_output, 0), {"out is NULL"});
  refused(BNNSFilterApplyTwoInputBatch(f2, 2, a.data(), 0, b.data(), 0, c.data(), 7), {"out_stride is 7"});
  refused(BNNSFilterApplyTwoInputBatch(f2, SIZE_MAX / 8, a.data(), 0, b.data(), 0, c.data(), 0), {"not fit"});
  refused(BNNSFilterApplyTwoInputBatch(f2, 2, a.data(), 0, c.data(), 0, c.data(), 0), {"out", "input B"});
  refused(BNNSFilterApplyBatch(f1, 2, no_input, 0, c.data(), 0), {"in is NULL"});
  refused(BNNSFilterApplyBatch(f1, 2, static_cast<char*>(a.data()) + 1, 0, c.data(), 0), {"multiple of 4"});
  refused(backward_two(f1, a.data(), &ga, b.data(), &gb, &g), {"one input"});
  refused(backward_two(f2, a.data(), &ga, nullptr, &gb, &g), {"inB is NULL"});
  refused(backward_two(f2, nullptr, &ga, b.data(), &gb, &g), {"inA is NULL"});
  refused(backward_two(f2, a.data(), &ga, b.data(), &gb, nullptr), {"out_delta is NULL"});
  refused(backward_two(f2, a.data(), &ga, b.data(), &gb, &no_data), {"out_delta.data is NULL"});
  refused(backward_two(f2, a.data(), &bad, b.data(), &gb, &g), {"inA_delta has 7 elements, expected 12"});
  refused(backward_two(f2, a.data(), &ga, b.data(), &bad, &g), {"inB_delta has 7 elements"});
  refused(backward_two(f2, a.data(), &integers, b.data(), &gb, &g), {"inA_delta has type"});
  refused(backward_two(f2, a.data(), &ga, b.data(), &gb, &g, &gb), {"weights_delta is given"});
  refused(backward_two(f2, a.data(), &ga, b.data(), &gb, &g, nullptr, &gb), {"bias_delta is given"});
  refused(backward_two(f2, a.data(), &ga, b.data(), &gb, &g, nullptr, nullptr, 5), {"inA_delta_stride is 5"});
  refused(backward_two(f2, a.data(), &in_a, b.data(), &gb, &g), {"overlap", "input A"});
  refused(backward_one(f2, a.data(), &ga, &g, nullptr), {"two inputs"});
  refused(backward_one(f1, nullptr, &ga, &g, &gb), {"in is NULL"});
  refused(backward_one(f1, a.data(), &ga, &g, &bad), {"weights_delta has 7 elements"});
  refused(backward_one(f1, a.data(), &ga, &g, nullptr, &gb), {"bias_delta is given"});
  refused(backward_one(f1, a.data(), &ga, nullptr, &gb), {"out_delta is NULL"});
  // The input's gradient needs the weights only.
  EXPECT_EQ(backward_one(f1, nullptr, &ga, &g, nullptr), 0) << BNNSExtLastError();
  BNNSFilterDestroy(f1);
  BNNSFilterDestroy(f2);
}

TEST(Contraction, BC38_EmptyBatch) {
  Samples a = tensor({3, 4}), w = tensor({4, 5}), c = tensor({3, 5}), dw = tensor({4, 5}), dc = tensor({3, 5});
  w.fill(1);
  const BNNSLayerParametersTensorContraction layer = make_layer("a_ik, w_kj -> c_ij", a, &w, c);
  BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, nullptr);
  ASSERT_NE(filter, nullptr);
  const auto before = c.snapshot();
  const void* no_input = nullptr;  // not a constant: clang would see it
  void* no_output = nullptr;       // not a constant: clang would see it
  EXPECT_EQ(BNNSFilterApplyBatch(filter, 0, no_input, 0, no_output, 0), 0);
  EXPECT_EQ(c.snapshot(), before);
  dw.fill(7);
  BNNSNDArrayDescriptor g = dc.descriptor(), add = dw.descriptor(true), set = dw.descriptor();
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter, 0, nullptr, 0, nullptr, 0, nullptr, 0, &g, 0, &add, nullptr), 0);
  dw.for_each([&](size_t n, const Coordinates& at) { EXPECT_EQ(dw.get(n, at), 7); });
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter, 0, nullptr, 0, nullptr, 0, nullptr, 0, &g, 0, &set, nullptr), 0);
  dw.for_each([&](size_t n, const Coordinates& at) { EXPECT_EQ(dw.get(n, at), 0); });
  BNNSFilterDestroy(filter);
}

// BC57: the filter's own copy stays as it was; the client's pointer shows every change.
TEST(Contraction, BC57_ChangedWeights) {
  for (const bool client : {false, true}) {
    float x[] = {1, 2}, w[] = {3, 4}, y = 0;
    BNNSLayerParametersTensorContraction layer = {};
    layer.operation = "x_i, w_i -> y_";
    layer.alpha = 1;
    layer.iA_desc = vector_descriptor(2, nullptr);
    layer.iB_desc = vector_descriptor(2, w);
    layer.o_desc = vector_descriptor(1, nullptr);
    BNNSFilterParameters parameters = {};
    if (client) parameters.flags = BNNSFlagsUseClientPtr;
    BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, &parameters);
    ASSERT_NE(filter, nullptr) << BNNSExtLastError();
    w[0] = 100;
    ASSERT_EQ(BNNSFilterApply(filter, x, &y), 0);
    EXPECT_EQ(y, client ? 108 : 11);
    BNNSFilterDestroy(filter);
  }
}

// A gradient may come as a vector of as many elements.
TEST(Contraction, GradientAsVector) {
  Samples a = tensor({3, 4}), b = tensor({4, 5}), c = tensor({3, 5}), dc = tensor({3, 5}), da = tensor({3, 4});
  Random random(1);
  for (Samples* s : {&a, &b, &dc}) s->fill_integers(random, 3);
  const BNNSLayerParametersTensorContraction layer = make_layer("a_ik, b_kj -> c_ij", a, &b, c);
  BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&layer, nullptr);
  BNNSNDArrayDescriptor g = dc.descriptor(), d = da.descriptor();
  ASSERT_EQ(BNNSFilterApplyBackwardTwoInputBatch(filter, 1, a.data(), 0, &d, 0, b.data(), 0, nullptr, 0, nullptr, 0, &g,
                                                 0, nullptr, nullptr),
            0);
  float flat[12];
  BNNSNDArrayDescriptor flat_g = vector_descriptor(15, dc.data()), flat_d = vector_descriptor(12, flat);
  ASSERT_EQ(BNNSFilterApplyBackwardTwoInputBatch(filter, 1, a.data(), 0, &flat_d, 0, b.data(), 0, nullptr, 0, nullptr,
                                                 0, &flat_g, 0, nullptr, nullptr),
            0)
      << BNNSExtLastError();
  EXPECT_TRUE(same_bits(flat, static_cast<float*>(da.data()), 12));
  BNNSFilterDestroy(filter);
}

}  // namespace
}  // namespace bnns
