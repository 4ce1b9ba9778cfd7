// Wrong layers and calls: each is refused with a reason, and nothing is written. Sizes, allocators, threads.
#include <functional>
#include <thread>

#include "src/ops/attention/attention_testing.h"

namespace bnns::testing {
namespace {

using Layer = BNNSLayerParametersMultiheadAttention;
using Bytes = std::vector<unsigned char>;

TEST(AttentionMisuse, LayersAreRefusedWithAReason) {
  AttentionOptions o;
  o.rows = true;
  AttentionSetup s(o, 1);
  const struct {
    std::function<void(Layer&)> change;
    std::initializer_list<const char*> words;
  } cases[] = {
      {[](Layer& l) { l.query.target_desc.size[1] = 6; }, {"query.weights", "(d_model, d_key, h)"}},
      {[](Layer& l) { l.query.target_desc.size[0] = 9; }, {"output.target_desc", "(L, d_model)"}},
      {[](Layer& l) { l.key.target_desc.size[0] = 9; }, {"value.target_desc", "S as in key"}},
      {[](Layer& l) { l.key.target_desc.layout = BNNSDataLayoutVector; }, {"key.target_desc", "rank 1"}},
      {[](Layer& l) { l.key.target_desc.data_type = BNNSDataTypeInt8; }, {"key.target_desc", "i8"}},
      {[](Layer& l) { l.value.target_desc.size[1] = 0; }, {"value.target_desc.size[1]", "0"}},
      {[](Layer& l) { l.query.weights.data = nullptr; }, {"query.weights.data", "NULL"}},
      {[](Layer& l) { l.query.weights.size[2] = 3; }, {"key.weights", "expected (4, 3, 3)"}},  // h is the query's
      {[](Layer& l) { l.key.weights.size[1] = 4; }, {"weights", "d_key"}},
      {[](Layer& l) { l.key.weights.size[0] = 5; }, {"key.weights", "(k_dim, d_key, h)"}},
      {[](Layer& l) { l.value.weights.size[2] = 1; }, {"value.weights", "(v_dim, d_value, h)"}},
      {[](Layer& l) { l.value.weights.layout = BNNSDataLayoutSNE; }, {"value.weights.layout", "MHA_DHK"}},
      {[](Layer& l) { l.value.weights.data_type = BNNSDataTypeInt16; }, {"value.weights", "f32, f16 and bf16"}},
      {[](Layer& l) { l.output.weights.size[0] = 5; }, {"output.weights", "(h d_value, d_model)"}},
      {[](Layer& l) { l.query.bias.size[0] = 2; }, {"query.bias", "heads"}},
      {[](Layer& l) { l.output.bias.size[0] = 4; }, {"output.bias", "expected 5"}},
      {[](Layer& l) { l.key_attn_bias.data = nullptr; }, {"key_attn_bias", "both"}},
      {[](Layer& l) { l.value_attn_bias.data = nullptr; }, {"value_attn_bias", "both"}},
      {[](Layer& l) { l.output.target_desc.stride[0] = l.output.target_desc.stride[1] = 1; },
       {"output.target_desc", "share an address"}},
      {[](Layer& l) { l.query.target_desc.size[0] = l.output.target_desc.size[0] = SIZE_MAX / 64; },
       {"query.target_desc.size[0] is", "does not fit"}},
  };
  for (const auto& c : cases) {
    Layer layer = s.layer();
    c.change(layer);
    BNNSFilter filter = BNNSFilterCreateLayerMultiheadAttention(&layer, nullptr);
    EXPECT_EQ(filter, nullptr);
    EXPECT_TRUE(refused_because(c.words));
    EXPECT_TRUE(refused_because({"BNNSFilterCreateLayerMultiheadAttention: "}));
    BNNSFilterDestroy(filter);
  }
  EXPECT_EQ(BNNSFilterCreateLayerMultiheadAttention(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

// The arguments of a forward call, to be changed one at a time.
struct Forward {
  BNNSFilter filter;
  size_t batch;
  const void *q, *k, *v;
  size_t q_stride = 0, k_stride = 0, v_stride = 0, mask_stride = 0, y_stride = 0;
  BNNSNDArrayDescriptor mask = {}, add = {};
  void* y = nullptr;
  size_t cache_size = 0, workspace_size = 0;
  void *cache = nullptr, *workspace = nullptr;
  bool with_cache_size = true, with_workspace_size = true;

  int run() {
    return BNNSApplyMultiheadAttention(filter, batch, q, q_stride, k, k_stride, &mask, mask_stride, v, v_stride, y,
                                       y_stride, &add, with_cache_size ? &cache_size : nullptr, cache,
                                       with_workspace_size ? &workspace_size : nullptr, workspace);
  }
};

TEST(AttentionMisuse, ForwardCallsAreRefusedBeforeAnythingIsWritten) {
  AttentionOptions o;
  o.key_mask = true, o.add = 4;
  AttentionSetup s(o, 2);
  FilterHandle filter = s.make();
  std::vector<uint64_t> cache(s.cache_bytes(filter.get()) / 8 + 1, 77), workspace(4096, 78);
  Forward good{filter.get(), o.batch, s.q.data(), s.k.data(), s.v.data()};
  s.mask_descriptor(&good.mask), s.add_descriptor(&good.add);
  good.y = s.y.data();
  good.cache = cache.data(), good.cache_size = s.cache_bytes(filter.get());
  good.workspace = workspace.data(), good.workspace_size = workspace.size() * 8;
  const struct {
    std::function<void(Forward&)> change;
    std::initializer_list<const char*> words;
  } cases[] = {
      {[](Forward& f) { f.filter = nullptr; }, {"filter is NULL"}},
      {[](Forward& f) { f.q = nullptr; }, {"query is NULL"}},
      {[](Forward& f) { f.k = nullptr; }, {"key is NULL"}},
      {[](Forward& f) { f.v = nullptr; }, {"value is NULL"}},
      {[](Forward& f) { f.y = nullptr; }, {"output is NULL"}},
      {[](Forward& f) { f.q = static_cast<const char*>(f.q) + 2; }, {"query", "multiple of 4"}},
      {[](Forward& f) { f.y_stride = 3; }, {"output_stride", "overlap"}},
      {[](Forward& f) { f.q_stride = SIZE_MAX / 4; }, {"query_stride"}},
      {[](Forward& f) { f.y = const_cast<void*>(f.q); }, {"query and output share memory"}},
      {[](Forward& f) { f.y = f.cache; }, {"output and backprop_cache share memory"}},
      {[](Forward& f) { f.workspace = f.cache; }, {"backprop_cache and workspace share memory"}},
      {[](Forward& f) { f.mask.data_type = BNNSDataTypeFloat32; }, {"key_mask", "Boolean"}},
      {[](Forward& f) { f.mask.size[0] = 3; }, {"key_mask", "(4) = (S)"}},
      {[](Forward& f) { f.add.data_type = BNNSDataTypeInt8; }, {"add_to_attention", "Boolean"}},
      {[](Forward& f) { f.add.size[0] = 3; }, {"add_to_attention", "(batch, h, L, S)"}},
      {[](Forward& f) { f.add.layout = BNNSDataLayoutVector; }, {"add_to_attention", "rank 1"}},
      {[](Forward& f) { f.batch = 3; }, {"backprop_cache_size"}},
      {[](Forward& f) { f.cache_size -= 1; }, {"backprop_cache_size", "expected at least"}},
      {[](Forward& f) { f.with_cache_size = false; }, {"backprop_cache_size is NULL"}},
      {[](Forward& f) { f.cache = static_cast<char*>(f.cache) + 4; }, {"backprop_cache", "multiple of 8"}},
      {[](Forward& f) { f.workspace_size = 0; }, {"workspace_size is 0"}},
      {[](Forward& f) { f.with_workspace_size = false; }, {"workspace_size is NULL"}},
      {[](Forward& f) { f.batch = SIZE_MAX / 2; }, {"batch_size is", "too large"}},
  };
  const Bytes before = s.y.snapshot();
  for (const auto& c : cases) {
    Forward call = good;
    c.change(call);
    EXPECT_NE(call.run(), 0) << *c.words.begin();
    EXPECT_TRUE(refused_because(c.words));
    EXPECT_EQ(s.y.snapshot(), before);
    EXPECT_EQ(cache, std::vector<uint64_t>(cache.size(), 77));
    EXPECT_EQ(workspace, std::vector<uint64_t>(workspace.size(), 78));
  }
  EXPECT_EQ(good.run(), 0) << BNNSExtLastError();
  EXPECT_NE(s.y.snapshot(), before);
}

TEST(AttentionMisuse, BackwardCallsAreRefusedBeforeAnythingIsWritten) {
  AttentionOptions o;
  AttentionSetup s(o, 3);
  FilterHandle filter = s.make();
  std::vector<uint64_t> cache(s.cache_bytes(filter.get()) / 8 + 1);
  size_t bytes = s.cache_bytes(filter.get());
  ASSERT_EQ(s.forward(filter.get(), &bytes, cache.data()), 0);
  const auto refuse = [&](const std::function<void(AttentionOutputs&)>& change,
                          std::initializer_list<const char*> words, size_t cache_size, void* given) {
    AttentionOutputs d(s);
    change(d);
    std::vector<Bytes> before;
    for (AttentionTensor* t : d.all()) before.push_back(t->snapshot());
    EXPECT_NE(d.backward(s, filter.get(), cache_size, given), 0) << *words.begin();
    EXPECT_TRUE(refused_because(words));
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(d.all()[i]->snapshot(), before[i]);
  };
  const auto none = [](AttentionOutputs&) {};
  refuse(none, {"backprop_cache_size", "expected at least"}, bytes - 1, cache.data());
  std::vector<uint64_t> empty(cache.size());
  refuse(none, {"backprop_cache was not filled"}, bytes, empty.data());
  refuse([](AttentionOutputs& d) { d.output.target_desc.data = nullptr; }, {"output_param_delta.target_desc", "NULL"},
         bytes, cache.data());
  refuse([](AttentionOutputs& d) { d.output.target_desc.size[0] = 2; }, {"output_param_delta.target_desc", "(3, 5)"}, 0,
         nullptr);
  refuse([](AttentionOutputs& d) { d.query.target_desc.size[1] = 4; }, {"query_param_delta.target_desc"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.query.target_desc.stride[2] = 4; },
         {"query_param_delta.target_desc", "do not overlap"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.key.weights.size[0] = 3; }, {"key_param_delta.weights"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.value.bias.size[0] = 3; }, {"value_param_delta.bias"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.output.weights.size[1] = 3; }, {"output_param_delta.weights"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.output.bias.size[0] = 3; }, {"output_param_delta.bias"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.value.weights.data_type = BNNSDataTypeInt32; },
         {"value_param_delta.weights", "i32"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.key.target_desc.data = d.query.target_desc.data; },
         {"query_param_delta.target_desc and key_param_delta.target_desc", "same shape"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.query.target_desc.data = d.output.target_desc.data; },
         {"output_param_delta.target_desc and query_param_delta.target_desc share memory"}, 0, nullptr);
  refuse([](AttentionOutputs& d) { d.key.weights.data = d.query.weights.data; },
         {"query_param_delta.weights and key_param_delta.weights share memory"}, 0, nullptr);
  refuse([&](AttentionOutputs& d) { d.value.target_desc.data = s.v.data(); },
         {"value and value_param_delta.target_desc share memory"}, 0, nullptr);

  AttentionOutputs d(s);
  EXPECT_NE(BNNSApplyMultiheadAttentionBackward(filter.get(), o.batch, s.q.data(), 0, &d.query, s.k.data(), 0, nullptr,
                                                0, &d.key, s.v.data(), 0, &d.value, nullptr, &d.key_row_d, nullptr,
                                                nullptr, 0, &d.output, 0, nullptr, nullptr, nullptr),
            0);
  EXPECT_TRUE(refused_because({"key_attn_bias_delta", "no such row"}));
  EXPECT_NE(BNNSApplyMultiheadAttentionBackward(filter.get(), o.batch, s.q.data(), 0, &d.query, nullptr, 0, nullptr, 0,
                                                &d.key, s.v.data(), 0, &d.value, nullptr, nullptr, nullptr, nullptr, 0,
                                                &d.output, bytes, cache.data(), nullptr, nullptr),
            0);
  EXPECT_TRUE(refused_because({"key is NULL"}));
  EXPECT_NE(BNNSApplyMultiheadAttentionBackward(filter.get(), o.batch, s.q.data(), 0, &d.query, s.k.data(), 0, nullptr,
                                                0, &d.key, s.v.data(), 0, &d.value, nullptr, nullptr, nullptr, nullptr,
                                                0, nullptr, 0, nullptr, nullptr, nullptr),
            0);
  EXPECT_TRUE(refused_because({"output_param_delta is NULL"}));
  s.o.batch = 1;  // the cache is of two samples
  bytes = s.cache_bytes(filter.get());
  refuse(none, {"batch_size is 1, expected 2"}, bytes, cache.data());
}

TEST(AttentionMisuse, DropoutNeedsTheCache) {
  AttentionOptions o;
  o.dropout = 0.5f;
  AttentionSetup s(o, 4);
  FilterHandle filter = s.make();
  ASSERT_EQ(s.forward(filter.get()), 0);
  AttentionOutputs d(s);
  EXPECT_NE(d.backward(s, filter.get()), 0);
  EXPECT_TRUE(refused_because({"backprop_cache is NULL", "dropout 0.5"}));
  for (AttentionTensor* t : d.all()) {
    for (double x : t->get()) EXPECT_TRUE(std::isnan(x));
  }
}

// A size pointer with a NULL buffer is a question: the size comes, at least 1, nothing is computed, and it suffices.
TEST(AttentionMisuse, SizesCanBeAskedAndSuffice) {
  AttentionOptions o;
  AttentionSetup s(o, 5);
  FilterHandle filter = s.make();
  const Bytes before = s.y.snapshot();
  size_t cache_size = 0, workspace_size = 0;
  ASSERT_EQ(s.forward(filter.get(), &cache_size, nullptr, &workspace_size, nullptr), 0);
  EXPECT_GE(cache_size, 1u);
  EXPECT_GE(workspace_size, 1u);
  std::vector<char> cache(cache_size), workspace(workspace_size);
  size_t other = 0;
  ASSERT_EQ(s.forward(filter.get(), &cache_size, cache.data(), &other, nullptr), 0);  // half a question is one too
  EXPECT_LE(other, workspace_size);
  ASSERT_EQ(s.forward(filter.get(), &other, nullptr, &workspace_size, workspace.data()), 0);
  EXPECT_EQ(s.y.snapshot(), before);

  ASSERT_EQ(s.forward(filter.get()), 0);
  const Bytes y = s.y.snapshot();
  ASSERT_EQ(s.forward(filter.get(), nullptr, nullptr, &workspace_size, workspace.data()), 0) << BNNSExtLastError();
  EXPECT_EQ(s.y.snapshot(), y);
  ASSERT_EQ(s.forward(filter.get(), &cache_size, cache.data(), &workspace_size, workspace.data()), 0);
  EXPECT_EQ(s.y.snapshot(), y);

  AttentionOutputs d(s), e(s);
  size_t backward_size = 0;
  ASSERT_EQ(d.backward(s, filter.get(), cache_size, cache.data(), &backward_size), 0);
  EXPECT_GE(backward_size, 1u);
  for (AttentionTensor* t : d.all()) {
    for (double x : t->get()) ASSERT_TRUE(std::isnan(x)) << "a question writes nothing";
  }
  std::vector<char> room(backward_size);
  ASSERT_EQ(d.backward(s, filter.get(), cache_size, cache.data(), &backward_size, room.data()), 0);
  std::vector<char> moved(cache_size + 8);  // the cache may be moved
  std::memcpy(moved.data() + 8, cache.data(), cache_size);
  ASSERT_EQ(e.backward(s, filter.get(), cache_size, moved.data() + 8), 0);
  for (size_t i = 0; i < d.all().size() - 2; ++i) EXPECT_EQ(d.all()[i]->snapshot(), e.all()[i]->snapshot());
  EXPECT_NE(d.backward(s, filter.get(), 0, nullptr, &backward_size, room.data()), 0)
      << "more is needed without a cache";
  EXPECT_TRUE(refused_because({"workspace_size"}));
}

TEST(AttentionMisuse, GenericCallsNameTheRightOne) {
  AttentionSetup s(AttentionOptions(), 6);
  FilterHandle filter = s.make();
  EXPECT_EQ(BNNSFilterApply(filter.get(), s.q.data(), s.y.data()), -1);
  EXPECT_TRUE(refused_because({"BNNSApplyMultiheadAttention"}));
  EXPECT_EQ(BNNSFilterApplyTwoInput(filter.get(), s.q.data(), s.k.data(), s.y.data()), -1);
}

TEST(AttentionMisuse, BC38_EmptyBatch) {
  AttentionOptions o;
  o.rows = true;
  AttentionSetup s(o, 7);
  FilterHandle filter = s.make();
  for (const bool accumulate : {false, true}) {
    AttentionOutputs d(s, accumulate);
    const Bytes y = s.y.snapshot();
    s.o.batch = 0;
    EXPECT_EQ(s.forward(filter.get()), 0) << BNNSExtLastError();
    EXPECT_EQ(d.backward(s, filter.get()), 0) << BNNSExtLastError();
    s.o.batch = o.batch;
    EXPECT_EQ(s.y.snapshot(), y);
    for (AttentionTensor* t : d.all()) {
      const bool target = t == &d.q || t == &d.k || t == &d.v;
      for (double x : t->get()) {
        if (accumulate) {
          EXPECT_EQ(x, 0.25);
        } else if (target) {
          EXPECT_TRUE(std::isnan(x));
        } else {
          EXPECT_EQ(x, 0);
        }
      }
    }
  }
}

// ---- allocators and threads -----------------------------------------------------------------------------------------

int live_blocks = 0, requests = 0, failing_from = 0;

int counting_alloc(void** memory, size_t alignment, size_t size) {
  if (failing_from && ++requests >= failing_from) return 12;
  const int result = posix_memalign(memory, alignment, size);
  if (result == 0) std::memset(*memory, 0xfb, size), ++live_blocks;
  return result;
}
void counting_free(void* memory) {
  if (memory) --live_blocks;
  std::free(memory);
}

TEST(AttentionMisuse, BC42_LackOfMemoryIsARefusal) {
  AttentionOptions o;
  o.rows = true;
  AttentionSetup s(o, 8);
  ASSERT_EQ(s.forward(s.make().get()), 0);
  const Bytes want = s.y.snapshot();
  const BNNSLayerParametersMultiheadAttention layer = s.layer();
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.alloc_memory = counting_alloc, options.free_memory = counting_free, options.n_threads = 1;
  s.y.set(Values(s.y.count(), 7));
  bool done = false;
  for (int n = 1; n < 60 && !done; ++n) {
    failing_from = n, requests = 0;
    AttentionOutputs d(s);
    BNNSFilter filter = BNNSFilterCreateLayerMultiheadAttention(&layer, &options);
    const bool forward = filter && s.forward(filter) == 0;
    if (!forward) {
      for (double y : s.y.get()) ASSERT_EQ(y, 7);
    }
    done = forward && d.backward(s, filter) == 0;
    if (!done) {
      EXPECT_TRUE(refused_because({"memory"}));
      for (AttentionTensor* t : d.all()) {
        for (double x : t->get()) ASSERT_TRUE(std::isnan(x));
      }
    }
    failing_from = 0;
    if (filter) {  // still usable
      EXPECT_EQ(s.forward(filter), 0);
      EXPECT_EQ(s.y.snapshot(), want);
      s.y.set(Values(s.y.count(), 7));
    }
    BNNSFilterDestroy(filter);
    EXPECT_EQ(live_blocks, 0);
  }
  EXPECT_TRUE(done);
}

TEST(AttentionMisuse, BC46_OneFilterManyThreads) {
  AttentionOptions o;
  o.queries = 40, o.keys = 50, o.threads = 2;
  AttentionSetup s(o, 9);
  FilterHandle filter = s.make();
  ASSERT_EQ(s.forward(filter.get()), 0);
  AttentionOutputs d(s);
  ASSERT_EQ(d.backward(s, filter.get()), 0);
  const Values y = s.y.get(), dq = d.q.get(), dwk = d.wk.get();
  std::vector<int> wrong(4, 0);
  std::vector<std::unique_ptr<AttentionSetup>> setups;
  std::vector<std::unique_ptr<AttentionOutputs>> outputs;
  for (size_t t = 0; t < wrong.size(); ++t) {
    setups.push_back(std::make_unique<AttentionSetup>(o, 9));
    outputs.push_back(std::make_unique<AttentionOutputs>(*setups.back()));
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        wrong[t] += setups[t]->forward(filter.get()) != 0 || setups[t]->y.get() != y;
        wrong[t] += outputs[t]->backward(*setups[t], filter.get()) != 0 || outputs[t]->q.get() != dq;
        wrong[t] += outputs[t]->wk.get() != dwk;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(wrong.size(), 0));
}

}  // namespace
}  // namespace bnns::testing
