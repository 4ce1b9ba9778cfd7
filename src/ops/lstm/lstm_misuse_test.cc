// Wrong calls: refused with a reason, nothing written.
#include <functional>

#include "src/ops/lstm/lstm_testing.h"

namespace bnns::testing {
namespace {

const LstmCase kCase = {.I = 3, .H = 4, .B = 2, .L = 2, .T = 3, .D = 2, .peephole = 0x1, .ragged = true};

struct Call {
  LstmLayer layer{kCase}, deltas{kCase};
  std::vector<double> cache;
  size_t capacity = 0;

  Call() {
    Random random(1);
    layer.fill_arguments(random);
    capacity = BNNSComputeLSTMTrainingCacheCapacity(&layer.parameters);
    cache.assign(capacity / 8 + 1, 0);
  }
  std::vector<std::vector<unsigned char>> snapshot() {
    std::vector<std::vector<unsigned char>> all;
    for (LstmLayer* l : {&layer, &deltas}) {
      for (size_t i = 0; i < l->slots(); ++i) {
        if (l->has(i)) all.push_back(l->slot(i).snapshot());
      }
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(cache.data());
    all.emplace_back(bytes, bytes + cache.size() * sizeof(double));
    return all;
  }
  int forward() { return BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, cache.data(), capacity); }
  int backward() {
    return BNNSDirectApplyLSTMBatchBackward(&layer.parameters, &deltas.parameters, nullptr, cache.data(), capacity);
  }
};

struct Wrong {
  const char* name;
  std::function<void(Call&)> spoil;
  std::initializer_list<const char*> words;
};

TEST(LstmMisuse, ForwardRefusals) {
  static uint32_t rising[] = {1, 2, 2}, many[] = {3, 2, 1}, two[] = {2, 2};
  static float floats[] = {2, 2, 2};
  const Wrong table[] = {
      {"input size", [](Call& c) { c.layer.parameters.input_size = 0; }, {"input_size is 0"}},
      {"hidden size", [](Call& c) { c.layer.parameters.hidden_size = 0; }, {"hidden_size is 0"}},
      {"batch size", [](Call& c) { c.layer.parameters.batch_size = 0; }, {"batch_size is 0"}},
      {"layers", [](Call& c) { c.layer.parameters.num_layers = 0; }, {"num_layers is 0"}},
      {"steps", [](Call& c) { c.layer.parameters.seq_len = 0; }, {"seq_len is 0"}},
      {"huge", [](Call& c) { c.layer.parameters.seq_len = SIZE_MAX / 2; }, {"does not fit"}},
      {"flags", [](Call& c) { c.layer.parameters.lstm_flags = 4; }, {"lstm_flags is 0x4"}},
      {"dropout 1", [](Call& c) { c.layer.parameters.dropout = 1; }, {"dropout is 1", "below 1"}},
      {"dropout NaN", [](Call& c) { c.layer.parameters.dropout = NAN; }, {"dropout is nan"}},
      {"activation",
       [](Call& c) {
         c.layer.parameters.lstm_flags = 1;
         c.layer.gate(1).activation.function = BNNSActivationFunction(99);
       },
       {"lstm", "99"}},
      {"Gumbel",
       [](Call& c) {
         c.layer.parameters.lstm_flags = 1;
         c.layer.parameters.hidden_activation.function = BNNSActivationFunctionGumbel;
       },
       {"cannot be fused"}},
      {"no input",
       [](Call& c) { c.layer.parameters.input_descriptor.data_desc.data = nullptr; },
       {"data_desc.data is NULL"}},
      {"sizes of x",
       [](Call& c) { c.layer.parameters.input_descriptor.data_desc.size[0] = 5; },
       {"input_descriptor.data_desc", "5x2x3", "expected 3x2x3"}},
      {"sizes of y",
       [](Call& c) { c.layer.parameters.output_descriptor.data_desc.size[2] = 2; },
       {"output_descriptor.data_desc", "expected 8x2x3"}},
      {"sizes of h",
       [](Call& c) { c.layer.parameters.input_descriptor.hidden_desc.size[1] = 3; },
       {"hidden_desc", "expected 4x2x2x2"}},
      {"column major",
       [](Call& c) { c.layer.gate(0).hw_desc.layout = BNNSDataLayoutColumnMajorMatrix; },
       {"input_gate.hw_desc.layout", "RowMajorMatrix"}},
      {"integers",
       [](Call& c) { c.layer.gate(2).b_desc.data_type = BNNSDataTypeInt32; },
       {"candidate_gate.b_desc", "i32"}},
      {"no weights", [](Call& c) { c.layer.gate(3).hw_desc.data = nullptr; }, {"output_gate.hw_desc.data is NULL"}},
      {"no input weights", [](Call& c) { c.layer.gate(1).iw_desc[0].data = nullptr; }, {"forget_gate.iw_desc[0]"}},
      {"no weights above", [](Call& c) { c.layer.gate(1).iw_desc[1].data = nullptr; }, {"forget_gate.iw_desc[1]"}},
      {"rising",
       [](Call& c) { c.layer.parameters.sequence_descriptor.data = rising; },
       {"sequence_descriptor[1] is 2"}},
      {"too many",
       [](Call& c) { c.layer.parameters.sequence_descriptor.data = many; },
       {"sequence_descriptor[0] is 3"}},
      {"short",
       [](Call& c) {
         c.layer.parameters.sequence_descriptor.data = two;
         c.layer.parameters.sequence_descriptor.size[0] = 2;
       },
       {"sequence_descriptor", "seq_len = 3"}},
      {"float lengths",
       [](Call& c) {
         c.layer.parameters.sequence_descriptor.data = floats;
         c.layer.parameters.sequence_descriptor.data_type = BNNSDataTypeFloat32;
       },
       {"sequence_descriptor", "expected u32"}},
      {"cache too small", [](Call& c) { c.capacity -= 1; }, {"training_cache_capacity", "expected at least"}},
      {"cache of nothing", [](Call& c) { c.capacity = 0; }, {"training_cache_capacity is 0"}},
      {"in place",
       [](Call& c) { c.layer.parameters.output_descriptor.data_desc.data = c.layer.slot(LstmLayer::kX).data(); },
       {"share memory"}},
      {"outputs on each other",
       [](Call& c) { c.layer.parameters.output_descriptor.hidden_desc.data = c.layer.slot(LstmLayer::kC).data(); },
       {"share memory"}},
  };
  for (const Wrong& wrong : table) {
    SCOPED_TRACE(wrong.name);
    Call call;
    const auto before = call.snapshot();
    wrong.spoil(call);
    EXPECT_EQ(call.forward(), -1);
    EXPECT_TRUE(refused_because(wrong.words));
    EXPECT_EQ(call.snapshot(), before);
  }
}

TEST(LstmMisuse, BackwardRefusals) {
  const Wrong table[] = {
      {"cache too small", [](Call& c) { c.capacity -= 1; }, {"training_cache_capacity", "expected at least"}},
      {"an empty cache", [](Call& c) { c.cache.assign(c.cache.size(), 0); }, {"was not filled"}},
      {"another problem's cache", [](Call& c) { c.layer.parameters.dropout = 0.5f; }, {"was not filled"}},
      {"other lengths",
       [](Call& c) {
         static uint32_t all[] = {2, 2, 2};
         c.layer.parameters.sequence_descriptor.data = all;
       },
       {"was not filled"}},
      {"sizes", [](Call& c) { c.deltas.parameters.seq_len = 4; }, {"layer_delta_params.seq_len is 4", "expected 3"}},
      {"no input",
       [](Call& c) { c.layer.parameters.input_descriptor.data_desc.data = nullptr; },
       {"data_desc.data is NULL", "iw_desc"}},
      {"a peephole that is not there",
       [](Call& c) { c.deltas.gate(1).cw_desc = c.deltas.gate(0).cw_desc; },
       {"forget_gate.cw_desc", "no peephole"}},
      {"gradient over weights",
       [](Call& c) { c.deltas.gate(0).hw_desc.data = c.layer.gate(0).hw_desc.data; },
       {"share memory"}},
      {"two wanted gradients in one place",
       [](Call& c) { c.deltas.gate(0).iw_desc[0].data = c.deltas.gate(1).iw_desc[0].data; },
       {"share memory"}},
      {"an unwanted gradient over a wanted one",
       [](Call& c) { c.deltas.gate(0).b_desc.data = c.deltas.gate(1).iw_desc[0].data; },
       {"share memory"}},
      {"two unwanted gradients over the weights",
       [](Call& c) { c.deltas.gate(0).hw_desc.data = c.deltas.gate(1).hw_desc.data = c.layer.gate(1).hw_desc.data; },
       {"gradient of hw_desc of gate", "hw_desc of gate[1]", "share memory"}},
      {"gradient over the cache",
       [](Call& c) { c.deltas.gate(0).hw_desc.data = c.cache.data() + 8; },
       {"share memory"}},
  };
  for (const Wrong& wrong : table) {
    SCOPED_TRACE(wrong.name);
    Call call;
    Random random(2);
    call.deltas.for_results([&](LayoutTensor& t, const Coordinates& at, size_t) { t.set(at, random.normal()); });
    ASSERT_EQ(call.forward(), 0) << BNNSExtLastError();
    wrong.spoil(call);
    const auto before = call.snapshot();
    EXPECT_EQ(call.backward(), -1);
    EXPECT_TRUE(refused_because(wrong.words));
    EXPECT_EQ(call.snapshot(), before);
  }
}

// Programs point the gradients of hw, cw and b that they do not want at one place: the last of them is there, and the
// others are what they are without that.
TEST(LstmMisuse, GradientsNobodyWantsShareMemory) {
  for (size_t mode = 0; mode < 3; ++mode) {
    SCOPED_TRACE("mode " + std::to_string(mode));
    Call apart, shared;
    std::vector<float> scratch(4 * 4 * 2 * 2 + 9, 7);
    for (Call* call : {&apart, &shared}) {
      Random random(2);
      call->deltas.for_results([&](LayoutTensor& t, const Coordinates& at, size_t) { t.set(at, random.normal()); });
      ASSERT_EQ(call->forward(), 0) << BNNSExtLastError();
    }
    std::vector<std::pair<size_t, size_t>> moved;  // gate, slot in the gate
    for (size_t k = 0; k < 4; ++k) {
      auto& gate = shared.deltas.gate(k);
      if (mode != 1) gate.hw_desc.data = scratch.data(), moved.emplace_back(k, 2);
      if (mode != 1 && gate.cw_desc.data) gate.cw_desc.data = scratch.data() + 5, moved.emplace_back(k, 3);
      if (mode == 0 || (mode == 1 && k < 3)) gate.b_desc.data = scratch.data() + 3, moved.emplace_back(k, 4);
    }
    ASSERT_EQ(apart.backward(), 0) << BNNSExtLastError();
    ASSERT_EQ(shared.backward(), 0) << BNNSExtLastError();
    const auto of = [](size_t k, size_t slot) { return LstmLayer::kFirst + 5 * k + slot; };
    for (size_t i = 0; i < apart.deltas.slots(); ++i) {
      const bool is_moved = std::any_of(moved.begin(), moved.end(), [&](auto m) { return of(m.first, m.second) == i; });
      if (apart.deltas.has(i) && !is_moved) {
        EXPECT_EQ(apart.deltas.slot(i).snapshot(), shared.deltas.slot(i).snapshot()) << "slot " << i;
      }
    }
    // The last in the order of the struct, and nothing beside it.
    const size_t slot = of(mode == 1 ? 2 : 3, mode == 2 ? 2 : 4), first = mode == 2 ? 0 : 3;
    const auto last = apart.deltas.slot(slot).snapshot();
    std::vector<float> want(scratch.size(), 7);
    std::memcpy(want.data() + first, last.data(), last.size());
    EXPECT_EQ(scratch, want);
  }
}

TEST(LstmMisuse, NullArguments) {
  LstmLayer layer(kCase);
  const BNNSLayerParametersLSTM* nothing = nullptr;
  EXPECT_EQ(BNNSComputeLSTMTrainingCacheCapacity(nothing), SIZE_MAX);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
  EXPECT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(nothing, nullptr, nullptr, 0), -1);
  EXPECT_EQ(BNNSDirectApplyLSTMBatchBackward(nothing, &layer.parameters, nullptr, nullptr, 0), -1);
  EXPECT_EQ(BNNSDirectApplyLSTMBatchBackward(&layer.parameters, nothing, nullptr, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"layer_delta_params is NULL"}));
  layer.parameters.dropout = -1;
  EXPECT_EQ(BNNSComputeLSTMTrainingCacheCapacity(&layer.parameters), SIZE_MAX);
}

// Out of memory is a refusal, before anything is written.
int no_memory(void**, size_t, size_t) {
  return 12;
}
void no_free(void*) {}

TEST(LstmMisuse, OutOfMemory) {
  Call call;
  BNNSFilterParameters options;
  std::memset(&options, 0, sizeof options);
  options.alloc_memory = no_memory, options.free_memory = no_free;
  const auto before = call.snapshot();
  EXPECT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&call.layer.parameters, &options, call.cache.data(), call.capacity),
            -1);
  EXPECT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&call.layer.parameters, &options, nullptr, 0), -1);
  EXPECT_EQ(BNNSDirectApplyLSTMBatchBackward(&call.layer.parameters, &call.deltas.parameters, &options, nullptr, 0),
            -1);
  EXPECT_EQ(call.snapshot(), before);
  ASSERT_EQ(call.forward(), 0);
  const auto after = call.snapshot();
  EXPECT_EQ(BNNSDirectApplyLSTMBatchBackward(&call.layer.parameters, &call.deltas.parameters, &options,
                                             call.cache.data(), call.capacity),
            -1);
  EXPECT_EQ(call.snapshot(), after);
}

}  // namespace
}  // namespace bnns::testing
