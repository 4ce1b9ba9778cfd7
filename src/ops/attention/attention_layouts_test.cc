// Every layout, stride and type; packed Q, K, V; random problems.
#include "src/ops/attention/attention_testing.h"

namespace bnns::testing {
namespace {

void check_once(const AttentionOptions& o, uint64_t seed) {
  SCOPED_TRACE(o.text() + " seed " + std::to_string(seed));
  AttentionSetup s(o, seed);
  AttentionOutputs d(s);
  const AttentionExpected expected(s);
  FilterHandle filter = s.make();
  ASSERT_TRUE(filter);
  std::vector<char> cache(s.cache_bytes(filter.get()));
  size_t bytes = cache.size();
  const bool cached = o.dropout > 0 || seed % 2;
  ASSERT_EQ(cached ? s.forward(filter.get(), &bytes, cache.data()) : s.forward(filter.get()), 0) << BNNSExtLastError();
  expected.check_forward(s);
  EXPECT_TRUE(s.y.gaps_untouched());
  ASSERT_EQ(d.backward(s, filter.get(), cached ? bytes : 0, cached ? cache.data() : nullptr), 0) << BNNSExtLastError();
  expected.check_backward(s, d);
}

TEST(AttentionLayouts, BC15_EveryLayoutStrideAndType) {
  for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
    for (unsigned order = 0; order < 4; ++order) {
      for (const auto& [unit, pad] : {std::pair<size_t, size_t>{1, 0}, {1, 3}, {2, 1}}) {
        AttentionOptions o;
        o.memory = {order, type, unit, pad};
        o.rows = o.key_mask = true, o.add = 2 + int(order) % 3;
        check_once(o, 100 + order);
      }
    }
  }
}

// Padded rows and batches have the bits of dense ones.
TEST(AttentionLayouts, BC15_PaddingDoesNotChangeBits) {
  AttentionOptions o;
  o.queries = 21, o.keys = 35, o.heads = 3, o.key_size = 8, o.value_size = 5, o.model = 24;
  std::vector<Values> first;
  for (size_t pad : {0, 1, 5, 16}) {
    o.memory.pad = pad;
    AttentionSetup s(o, 7);
    FilterHandle filter = s.make();
    ASSERT_EQ(s.forward(filter.get()), 0);
    AttentionOutputs d(s);
    ASSERT_EQ(d.backward(s, filter.get()), 0);
    std::vector<Values> results = {s.y.get()};
    for (AttentionTensor* t : d.all()) {
      if (t != &d.key_row && t != &d.value_row) results.push_back(t->get());
    }
    if (first.empty()) first = results;
    EXPECT_EQ(results, first) << "pad " << pad;
  }
}

// Q, K and V side by side in the rows of one buffer, and their gradients likewise.
TEST(AttentionLayouts, PackedQueryKeyValue) {
  const size_t B = 2, L = 5, D = 4;
  AttentionOptions o;
  o.batch = B, o.queries = o.keys = L, o.model = o.key_model = o.value_model = D;
  AttentionSetup s(o, 9);
  AttentionOutputs d(s);
  FilterHandle plain = s.make();
  ASSERT_EQ(s.forward(plain.get()), 0);
  ASSERT_EQ(d.backward(s, plain.get()), 0);

  std::vector<float> packed(B * L * 3 * D), deltas(B * L * 3 * D, NAN), y(B * L * D);
  for (size_t r = 0; r < B * L; ++r)
    for (size_t j = 0; j < D; ++j) {
      packed[r * 3 * D + j] = float(s.a.q[r * D + j]);
      packed[r * 3 * D + D + j] = float(s.a.k[r * D + j]);
      packed[r * 3 * D + 2 * D + j] = float(s.a.v[r * D + j]);
    }
  BNNSLayerParametersMultiheadAttention layer = s.layer();
  BNNSNDArrayDescriptor row = descriptor(BNNSDataLayout2DFirstMajor, {L, D}, nullptr);
  row.stride[0] = 1, row.stride[1] = 3 * D;
  layer.query.target_desc = layer.key.target_desc = layer.value.target_desc = row;
  layer.output.target_desc = descriptor(BNNSDataLayout2DFirstMajor, {L, D}, nullptr);
  FilterHandle filter(BNNSFilterCreateLayerMultiheadAttention(&layer, nullptr), &BNNSFilterDestroy);
  ASSERT_TRUE(filter) << BNNSExtLastError();
  const size_t step = L * 3 * D;
  ASSERT_EQ(BNNSApplyMultiheadAttention(filter.get(), B, packed.data(), step, packed.data() + D, step, nullptr, 0,
                                        packed.data() + 2 * D, step, y.data(), 0, nullptr, nullptr, nullptr, nullptr,
                                        nullptr),
            0)
      << BNNSExtLastError();
  EXPECT_EQ(Values(y.begin(), y.end()), s.y.get());
  AttentionOutputs e(s);
  BNNSMHAProjectionParameters* targets[] = {&e.query, &e.key, &e.value};
  for (size_t i = 0; i < 3; ++i) {
    targets[i]->target_desc = row;
    targets[i]->target_desc.data = deltas.data() + i * D;
    targets[i]->target_desc.stride[2] = step;
  }
  ASSERT_EQ(BNNSApplyMultiheadAttentionBackward(filter.get(), B, packed.data(), step, &e.query, packed.data() + D, step,
                                                nullptr, 0, &e.key, packed.data() + 2 * D, step, &e.value, nullptr,
                                                nullptr, nullptr, nullptr, 0, &e.output, 0, nullptr, nullptr, nullptr),
            0)
      << BNNSExtLastError();
  const Values want[] = {d.q.get(), d.k.get(), d.v.get()};
  for (size_t r = 0; r < B * L; ++r)
    for (size_t j = 0; j < 3 * D; ++j) EXPECT_EQ(deltas[r * 3 * D + j], float(want[j / D][r * D + j % D]));
  EXPECT_EQ(e.wq.get(), d.wq.get());
}

// A bias may be a vector: head after head.
TEST(AttentionLayouts, VectorBiasIsHeadAfterHead) {
  AttentionOptions o;
  AttentionSetup s(o, 10);
  FilterHandle plain = s.make();
  ASSERT_EQ(s.forward(plain.get()), 0);
  const auto y = s.y.snapshot();
  std::vector<float> bias;
  for (size_t h = 0; h < o.heads; ++h)
    for (size_t k = 0; k < o.key_size; ++k) bias.push_back(float(s.a.bq[k * o.heads + h]));
  BNNSLayerParametersMultiheadAttention layer = s.layer();
  layer.query.bias = vector_descriptor(bias.size(), bias.data());
  FilterHandle filter(BNNSFilterCreateLayerMultiheadAttention(&layer, nullptr), &BNNSFilterDestroy);
  ASSERT_TRUE(filter) << BNNSExtLastError();
  ASSERT_EQ(s.forward(filter.get()), 0);
  EXPECT_EQ(s.y.snapshot(), y);
}

// The optimizer writes the client's weights: the next call reads them, or not, as the flag says.
TEST(AttentionLayouts, BC57_ClientPointers) {
  AttentionOptions o;
  for (const bool client : {false, true}) {
    AttentionSetup s(o, 12);
    const BNNSLayerParametersMultiheadAttention layer = s.layer();
    BNNSFilterParameters options;
    std::memset(&options, 0, sizeof options);
    options.flags = client ? uint32_t(BNNSFlagsUseClientPtr) : 0;
    FilterHandle filter(BNNSFilterCreateLayerMultiheadAttention(&layer, &options), &BNNSFilterDestroy);
    ASSERT_EQ(s.forward(filter.get()), 0);
    const auto before = s.y.snapshot();
    s.wv.set(Values(s.wv.count(), 0.5));
    ASSERT_EQ(s.forward(filter.get()), 0);
    EXPECT_EQ(s.y.snapshot() != before, client);
  }
}

TEST(AttentionLayouts, RandomProblems) {
  Random random(2024);
  for (uint64_t seed = 0; seed < 120; ++seed) {
    AttentionOptions o;
    const auto size = [&](size_t most) { return 1 + random.below(random.below(2) ? 4 : most); };
    o.batch = size(5), o.queries = size(40), o.keys = size(40), o.heads = size(5), o.key_size = size(20);
    o.value_size = size(20), o.model = size(30), o.key_model = size(30), o.value_model = size(30);
    o.bias = random.below(2), o.rows = random.below(2), o.zero_row = random.below(2), o.key_mask = random.below(2);
    o.add = random.below(2) ? 2 + int(random.below(3)) : 0, o.add_bool = random.below(2);
    const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
    o.memory = {unsigned(random.below(4)), types[random.below(4)], 1 + random.below(2), random.below(4)};
    o.threads = kThreadCounts[random.below(4)];
    check_once(o, 1000 + seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace bnns::testing
