// The forward pass. For each layer: x Wx' + b of all steps and rows as one product per direction, then the recurrence,
// one product per step (three with peephole weights).
#include <cstring>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/lstm/lstm_run.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

struct Scratch {
  LstmRows rows;
  LstmInput input;
  LstmEngine engine;
  float* x = nullptr;                             // a copy of the input where one is needed
  float* dropped = nullptr;                       // [R][D H]: a layer's input behind dropout
  float* wx = nullptr;                            // [4H][K]
  float* ws = nullptr;                            // [4H][H]
  float* bias = nullptr;                          // [4H]
  LstmPanels hidden[2], cell[2], cell_output[2];  // [H][4H], [H][3H], [H][H] of each direction
  float *h[2] = {}, *c[2] = {};                   // running states [B][H] of each direction

  void carve(const LstmProblem& p, bool drop, Carver& carver) {
    const size_t H = p.H, widest = p.L > 1 ? std::max(p.I, p.D * H) : p.I;
    rows.first = carver.take<size_t>(p.T + 1);
    x = carver.take<float>(input.staged ? p.T * p.B * p.I : 0);
    dropped = carver.take<float>(drop ? p.T * p.B * p.D * H : 0);
    wx = carver.take<float>(4 * H * widest);
    ws = carver.take<float>(4 * H * H);
    bias = carver.take<float>(4 * H);
    for (size_t d = 0; d < p.D; ++d) {
      for (LstmPanels* panels : {&hidden[d], &cell[d], &cell_output[d]}) {
        panels->data = carver.take<float>(panels->floats());
      }
      h[d] = carver.take<float>(p.B * H);
      c[d] = carver.take<float>(p.B * H);
    }
    engine.carve(carver);
  }
};

class ForwardPass {
 public:
  ForwardPass(const LstmProblem& p, const LstmMemory& memory, const Options& options, bool write_outputs)
      : p_(p), memory_(memory), n_threads_(options.n_threads), write_(write_outputs) {
    s_.engine.threads = std::min(options.n_threads ? options.n_threads : default_threads(), kMaxThreads);
    s_.engine.tasks = LstmTasks(p, s_.engine.threads);
    s_.input.look(p);
    drop_ = memory.header->dropout > 0 && p.L > 1;
    for (size_t d = 0; d < p.D; ++d) {
      s_.hidden[d] = LstmPanels(p.H, 4 * p.H);
      if (p.peephole) s_.cell[d] = LstmPanels(p.H, 3 * p.H);
      if (p.peephole_output) s_.cell_output[d] = LstmPanels(p.H, p.H);
    }
    plan();
    Carver sizes(nullptr);
    s_.carve(p, drop_, sizes);
    scratch_ = Buffer(options, sizes.used(), "the working memory of an LSTM");
    Carver carver(scratch_.data());
    s_.carve(p, drop_, carver);
  }

  void run() {
    s_.rows.fill(p_);
    s_.input.load(p_, s_.rows, s_.x, n_threads_);
    load_states();
    for (size_t l = 0; l < p_.L; ++l) {
      for (size_t d = 0; d < p_.D; ++d) project(l, d);
      s_.engine.tasks.run(p_, [&](size_t d, Range block, size_t worker) { recur(l, d, block, worker); });
      if (l + 1 < p_.L && drop_) {
        lstm_drop(*memory_.header, l, s_.rows.total, p_.D * p_.H, memory_.y(l), s_.dropped, n_threads_);
      }
    }
    if (write_ && p_.at.y.present()) store_output();
  }

 private:
  Lens layer_input(size_t l) const {
    if (l == 0) return s_.input.lens;
    return strided_lens(drop_ ? s_.dropped : memory_.y(l - 1), FloatType::f32, static_cast<ptrdiff_t>(p_.D * p_.H), 1);
  }
  Lens input_weights(size_t l) const {
    return strided_lens(s_.wx, FloatType::f32, static_cast<ptrdiff_t>(p_.input_width(l)), 1);
  }

  // Every product that run() makes, for the size of its workspace.
  void plan() {
    LstmRows rows;
    Buffer buffer({}, (p_.T + 1) * sizeof(size_t), "the steps of an LSTM");
    rows.first = buffer.as<size_t>();
    rows.fill(p_);
    for (size_t l = 0; l < std::min<size_t>(p_.L, 2); ++l) {
      s_.engine.plan({rows.total, 4 * p_.H, p_.input_width(l), GemmInit::bias_columns}, layer_input(l),
                     input_weights(l), {nullptr, 4 * p_.H, 1});
    }
    for (const LstmPanels* panels : {&s_.hidden[0], &s_.cell[0], &s_.cell_output[0]}) {
      panels->plan(&s_.engine, rows, p_, p_.H, 4 * p_.H);
    }
  }

  // First states go into the memory: backward needs them, and the caller may have the last states written over them.
  void load_states() {
    const size_t H = p_.H;
    for (size_t i = 0; i < p_.L * p_.D * p_.B; ++i) {
      const size_t b = i % p_.B, d = i / p_.B % p_.D, l = i / p_.B / p_.D;
      float *h = memory_.h0 + i * H, *c = memory_.c0 + i * H;
      p_.at.h0.present() ? p_.at.h0.load(l, d, b, h) : void(std::fill_n(h, H, 0.0f));
      p_.at.c0.present() ? p_.at.c0.load(l, d, b, c) : void(std::fill_n(c, H, 0.0f));
    }
  }

  // z = x Wx' + b for all steps; packs the weights of the recurrence.
  void project(size_t l, size_t d) {
    const size_t H = p_.H;
    lstm_join_input_weights(p_, l, d, s_.wx, n_threads_);
    for (size_t k = 0; k < kGates; ++k) {
      float* bias = s_.bias + k * H;
      p_.at.b[k].present() ? p_.at.b[k].load(l, d, 0, bias) : void(std::fill_n(bias, H, 0.0f));
    }
    const LstmRecord record = memory_.record(l, d);
    s_.engine.run({s_.rows.total, 4 * H, p_.input_width(l), GemmInit::bias_columns}, layer_input(l), input_weights(l),
                  {record.z ? record.z : record.a, 4 * H, 1}, s_.bias);
    lstm_join_state_weights(p_, p_.at.hw, l, d, s_.ws, n_threads_);
    s_.hidden[d].pack_transposed(s_.ws, H);
    if (!p_.peephole && !p_.peephole_output) return;
    lstm_join_state_weights(p_, p_.at.cw, l, d, s_.ws, n_threads_);
    if (p_.peephole) s_.cell[d].pack_transposed(s_.ws, H);
    if (p_.peephole_output) s_.cell_output[d].pack_transposed(s_.ws + kOutput * H * H, H);
  }

  void cell(const LstmRow& row, float* state) const {
    const size_t H = p_.H;
    for (size_t k = 0; k < kOutput && !p_.plain; ++k) activation_forward(p_.gate[k], row.z + k * H, row.a + k * H, H);
    lstm_cell_forward(p_.plain, H, row, state);
    if (!p_.plain) activation_forward(p_.hidden, row.c, row.ch, H);
  }
  void hidden(const LstmRow& row, float* state, float* y) const {
    const size_t H = p_.H;
    if (!p_.plain) activation_forward(p_.gate[kOutput], row.z + kOutput * H, row.a + kOutput * H, H);
    lstm_hidden_forward(p_.plain, H, row, state, y);
  }

  void recur(size_t l, size_t d, Range block, size_t worker) {
    const size_t H = p_.H, states = ((l * p_.D + d) * p_.B + block.begin) * H;
    float *h = s_.h[d] + block.begin * H, *c = s_.c[d] + block.begin * H, *y = memory_.y(l) + d * H;
    std::memcpy(h, memory_.h0 + states, block.size() * H * sizeof(float));
    std::memcpy(c, memory_.c0 + states, block.size() * H * sizeof(float));
    const LstmRecord record = memory_.record(l, d);
    for (size_t step = 0; step < p_.T; ++step) {
      const size_t t = d == 0 ? step : p_.T - 1 - step, n = s_.rows.active(t, block);
      if (n == 0) continue;
      const size_t r = s_.rows.first[t] + block.begin;
      float* z = (record.z ? record.z : record.a) + r * 4 * H;
      s_.hidden[d].multiply(s_.engine, worker, n, h, H, z, 4 * H, true);
      if (p_.peephole) s_.cell[d].multiply(s_.engine, worker, n, c, H, z, 4 * H, true);
      lstm_for_rows(p_, s_.engine, n, [&](size_t b) {
        const LstmRow row = record.row(r + b, H);
        cell(row, c + b * H);
        if (!p_.peephole_output) hidden(row, h + b * H, y + (r + b) * p_.D * H);
      });
      if (!p_.peephole_output) continue;
      s_.cell_output[d].multiply(s_.engine, worker, n, c, H, z + kOutput * H, 4 * H, true);
      lstm_for_rows(p_, s_.engine, n,
                    [&](size_t b) { hidden(record.row(r + b, H), h + b * H, y + (r + b) * p_.D * H); });
    }
    for (size_t b = 0; write_ && b < block.size(); ++b) {
      if (p_.at.h.present()) p_.at.h.store(l, d, block.begin + b, h + b * H);
      if (p_.at.c.present()) p_.at.c.store(l, d, block.begin + b, c + b * H);
    }
  }

  // The last layer's output; 0 where a sequence is over.
  void store_output() {
    const size_t width = p_.D * p_.H;
    const float* y = memory_.y(p_.L - 1);
    std::fill_n(s_.wx, width, 0.0f);  // [4H][I] has space for a row
    parallel_for(p_.T, threads_for(n_threads_, p_.T, p_.T * p_.B * width * sizeof(float)), [&](size_t t, size_t) {
      for (size_t b = 0; b < p_.B; ++b) {
        p_.at.y.store(0, t, b, b < s_.rows.active(t) ? y + (s_.rows.first[t] + b) * width : s_.wx);
      }
    });
  }

  const LstmProblem& p_;
  const LstmMemory& memory_;
  size_t n_threads_;
  bool write_, drop_;
  Scratch s_;
  Buffer scratch_;
};

// Outputs share memory with nothing but the states they continue. Lists hold the tensors of one gate or descriptor.
void check_forward_overlap(const LstmProblem& p, const void* cache, size_t cache_bytes) {
  Extent extents[40];
  size_t n = 0;
  const auto add = [&](const LstmView& view, const char* name, size_t index, bool written) {
    if (view.present()) extents[n++] = {view.data, view.span_bytes, name, index, written};
  };
  add(p.at.x, "input_descriptor.data_desc", 0, false);
  add(p.at.y, "output_descriptor.data_desc", 0, true);
  add(p.at.h, "output_descriptor.hidden_desc", 0, true);
  add(p.at.c, "output_descriptor.cell_state_desc", 0, true);
  for (size_t k = 0; k < kGates; ++k) {
    add(p.at.first[k], "iw_desc[0] of gate", k, false), add(p.at.rest[k], "iw_desc[1] of gate", k, false);
    add(p.at.hw[k], "hw_desc of gate", k, false), add(p.at.cw[k], "cw_desc of gate", k, false);
    add(p.at.b[k], "b_desc of gate", k, false);
  }
  if (cache) extents[n++] = {cache, cache_bytes, "training_cache_ptr", 0, true};
  check_extents(extents, n, kLstm);
}

}  // namespace

void lstm_run_forward(const LstmProblem& p, const LstmMemory& memory, const Options& options, bool write_outputs) {
  ForwardPass(p, memory, options, write_outputs).run();
}

void lstm_forward(const LstmProblem& p, const Options& options, void* cache, size_t capacity, uint32_t seed) {
  if (!p.at.x.present()) fail_invalid("%s: input_descriptor.data_desc.data is NULL, expected the input", kLstm);
  if (!cache && !p.at.y.present() && !p.at.h.present() && !p.at.c.present()) {
    fail_invalid("%s: output_descriptor has no data at all, expected a place for the sequence or the last states",
                 kLstm);
  }
  const size_t bytes = lstm_cache_bytes(p);
  if (cache && capacity < bytes) {
    fail_invalid("%s: training_cache_capacity is %zu, expected at least %zu = BNNSComputeLSTMTrainingCacheCapacity",
                 kLstm, capacity, bytes);
  }
  if (cache && reinterpret_cast<uintptr_t>(cache) % alignof(LstmCacheHeader) != 0) {
    fail_invalid("%s: training_cache_ptr is %p, expected a multiple of %zu", kLstm, cache, alignof(LstmCacheHeader));
  }
  check_forward_overlap(p, cache, bytes);
  if (recording()) count_work(0, p.operations());
  Buffer own(options, cache ? 0 : LstmMemory(p, nullptr, false).bytes(), "the states of an LSTM");
  LstmCacheHeader header = make_lstm_header(p, seed);
  if (!cache) header.dropout = 0;
  LstmMemory memory(p, cache ? cache : own.data(), cache != nullptr);
  LstmMemory planned = memory;
  planned.header = &header;  // the cache itself is written only after everything is allocated
  ForwardPass pass(p, planned, options, true);
  *memory.header = header;
  pass.run();
}

}  // namespace bnns
