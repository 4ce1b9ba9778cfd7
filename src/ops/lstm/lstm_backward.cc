// The backward call: its checks, and the cache it starts from. lstm_backward_pass.cc does the work.
#include <algorithm>
#include <cstring>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/lstm/lstm_run.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

bool share_memory(const LstmView& a, const LstmView& b) {
  const auto begin = [](const LstmView& v) { return reinterpret_cast<uintptr_t>(v.data); };
  return a.present() && b.present() && begin(a) < begin(b) + b.span_bytes && begin(b) < begin(a) + a.span_bytes;
}

// Gradients share no memory with the layer's tensors or with the cache; those of the first states and of x may lie over
// the ones that come in. Nor do they share memory with each other, but for those of hw, cw and b, of which programs
// point the unwanted ones at one place: of two that share memory only the later one is written, in the order of the
// struct. The others become absent.
void settle_overlap(const LstmProblem& p, LstmTensors* deltas, const void* cache, size_t cache_bytes) {
  Extent extents[64];
  size_t n = 0;
  const auto add = [&](const LstmView& view, const char* name, size_t index, bool written) {
    if (view.present()) extents[n++] = {view.data, view.span_bytes, name, index, written};
  };
  for (size_t k = 0; k < kGates; ++k) {
    add(p.at.first[k], "iw_desc[0] of gate", k, false);
    add(p.at.rest[k], "iw_desc[1] of gate", k, false);
    add(p.at.hw[k], "hw_desc of gate", k, false);
    add(p.at.cw[k], "cw_desc of gate", k, false);
    add(p.at.b[k], "b_desc of gate", k, false);
    add(deltas->first[k], "gradient of iw_desc[0] of gate", k, true);
    add(deltas->rest[k], "gradient of iw_desc[1] of gate", k, true);
  }
  add(p.at.x, "input_descriptor.data_desc", 0, false);
  add(deltas->x, "gradient of input_descriptor.data_desc", 0, true);
  add(deltas->h0, "gradient of input_descriptor.hidden_desc", 0, true);
  add(deltas->c0, "gradient of input_descriptor.cell_state_desc", 0, true);
  if (cache) extents[n++] = {cache, cache_bytes, "training_cache_ptr", 0, false};

  const size_t others = n;
  const LstmView* written[3 * kGates];
  size_t n_written = 0;
  for (size_t k = kGates; k-- > 0;) {
    const struct {
      LstmView* view;
      const char* name;
    } of_gate[] = {{&deltas->b[k], "gradient of b_desc of gate"},
                   {&deltas->cw[k], "gradient of cw_desc of gate"},
                   {&deltas->hw[k], "gradient of hw_desc of gate"}};
    for (const auto& [view, name] : of_gate) {
      const auto shares = [view = view](const LstmView* later) { return share_memory(*view, *later); };
      if (std::any_of(written, written + n_written, shares)) {
        Extent with[64];
        std::copy_n(extents, others, with);
        with[others] = {view->data, view->span_bytes, name, k, true};
        check_extents(with, others + 1, kLstm);
        *view = {};
      } else {
        add(*view, name, k, true);
        written[n_written++] = view;
      }
    }
  }
  check_extents(extents, n, kLstm);
}

}  // namespace

void lstm_backward(const LstmProblem& p, LstmTensors deltas, const Options& options, const void* cache,
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
  settle_overlap(p, &deltas, cache, bytes);
  if (recording()) count_work(0, 2 * p.operations());
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
