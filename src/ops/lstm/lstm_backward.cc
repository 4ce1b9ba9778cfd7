// The backward call: its checks, and the cache it starts from. lstm_backward_pass.cc does the work.
#include <cstring>

#include "src/core/error.h"
#include "src/ops/lstm/lstm_run.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

// Gradients share no memory with each other, with the layer's tensors or with the cache; those of the first
// states and of x may lie over the ones that come in.
void check_backward_overlap(const LstmProblem& p, const LstmTensors& deltas, const void* cache, size_t cache_bytes) {
  Extent extents[64];
  size_t n = 0;
  const auto add = [&](const LstmView& view, const char* name, size_t index, bool written) {
    if (view.present()) extents[n++] = {view.data, view.span_bytes, name, index, written};
  };
  const auto add_gates = [&](const LstmTensors& t, bool written) {
    for (size_t k = 0; k < kGates; ++k) {
      add(t.first[k], written ? "gradient of iw_desc[0] of gate" : "iw_desc[0] of gate", k, written);
      add(t.rest[k], written ? "gradient of iw_desc[1] of gate" : "iw_desc[1] of gate", k, written);
      add(t.hw[k], written ? "gradient of hw_desc of gate" : "hw_desc of gate", k, written);
      add(t.cw[k], written ? "gradient of cw_desc of gate" : "cw_desc of gate", k, written);
      add(t.b[k], written ? "gradient of b_desc of gate" : "b_desc of gate", k, written);
    }
  };
  add_gates(p.at, false);
  add_gates(deltas, true);
  add(p.at.x, "input_descriptor.data_desc", 0, false);
  add(deltas.x, "gradient of input_descriptor.data_desc", 0, true);
  add(deltas.h0, "gradient of input_descriptor.hidden_desc", 0, true);
  add(deltas.c0, "gradient of input_descriptor.cell_state_desc", 0, true);
  if (cache) extents[n++] = {cache, cache_bytes, "training_cache_ptr", 0, false};
  check_extents(extents, n, kLstm);
}

}  // namespace

void lstm_backward(const LstmProblem& p, const LstmTensors& deltas, const Options& options, const void* cache,
                   size_t capacity) {
  if (!p.at.x.present() && (!cache || lstm_any(deltas.first))) {
    fail_invalid("%s: input_descriptor.data_desc.data is NULL, expected the input: %s", kLstm,
                 cache ? "gradients of iw_desc need it" : "there is no cache, so the forward pass is run again");
  }
  const size_t bytes = lstm_cache_bytes(p);
  if (cache && capacity < bytes) {
    fail_invalid("%s: training_cache_capacity is %zu, expected at least %zu = BNNSComputeLSTMTrainingCacheCapacity",
                 kLstm, capacity, bytes);
  }
  if (cache && reinterpret_cast<uintptr_t>(cache) % alignof(LstmCacheHeader) != 0) {
    fail_invalid("%s: training_cache_ptr is %p, expected a multiple of %zu", kLstm, cache, alignof(LstmCacheHeader));
  }
  check_backward_overlap(p, deltas, cache, bytes);
  LstmCacheHeader expected = make_lstm_header(p, 0);
  if (cache) {
    LstmCacheHeader found;
    std::memcpy(&found, cache, sizeof found);
    expected.seed = found.seed;
    if (std::memcmp(&found, &expected, sizeof found) != 0) {
      fail_invalid("%s: training_cache_ptr was not filled by BNNSDirectApplyLSTMBatchTrainingCaching for %s", kLstm,
                   p.text().c_str());
    }
    LstmMemory memory(p, const_cast<void*>(cache), true);  // read only
    lstm_run_backward(p, deltas, memory, options);
    return;
  }
  Buffer own(options, bytes, "the training cache of an LSTM");
  LstmMemory memory(p, own.data(), true);
  expected.dropout = 0;
  *memory.header = expected;
  lstm_run_forward(p, memory, options, false);
  lstm_run_backward(p, deltas, memory, options);
}

}  // namespace bnns
