// The backward pass. For each layer from the top: the recurrence backwards in time, one product per step (three with
// peephole weights), then the weights' gradients and the gradient of the layer's input as one product each over all
// rows.
//
//   dh = dy_t + Wh' dz_{t+1}               dz_o = dh act_h(c) o'
//   dc = dc' + dh o act_h'(c) + Wc_o' dz_o   dz_i = dc g i'   dz_f = dc c_{t-1} f'   dz_g = dc i g'
//   dc' = dc f + sum over i, f, g of Wc' dz (what the step before receives)
//   dx = Wx' dz   dWx = dz x'   dWh = dz h_{t-1}'   dWc = dz c'   db = dz, summed over steps and sequences
#include <cstring>

#include "src/ops/lstm/lstm_run.h"
#include "src/simd/sums.h"

namespace bnns {
namespace {

struct Scratch {
  LstmRows rows;
  LstmInput input;
  LstmEngine engine;
  float* x = nullptr;                             // a copy of the input where one is needed
  float* dropped = nullptr;                       // [R][D H]: a layer's input behind dropout
  float *dy = nullptr, *dx = nullptr;             // [R][D H], [R][K]: gradients of a layer's output and input
  float *dh_last = nullptr, *dc_last = nullptr;   // [L][D][B][H]
  float *w = nullptr, *dw = nullptr;              // [4H][widest], joined weights and their gradient
  float* turned = nullptr;                        // [widest][4H]
  float* db = nullptr;                            // [4H]
  LstmPanels hidden[2], cell[2], cell_output[2];  // [4H][H], [3H][H], [H][H] of each direction
  struct {
    float *dz = nullptr, *h = nullptr, *c = nullptr;  // [R][4H]; previous states of each row [R][H]
    float *dh = nullptr, *dc = nullptr;               // running gradients of the states [B][H]
    float* du = nullptr;                              // [B][H], custom activations
  } direction[2];

  void carve(const LstmProblem& p, bool drop, bool need_x, Carver& carver) {
    const size_t H = p.H, R = p.T * p.B, widest = std::max(p.I, p.D * H), states = p.L * p.D * p.B * H;
    rows.first = carver.take<size_t>(p.T + 1);
    x = carver.take<float>(need_x && input.staged ? R * p.I : 0);
    dropped = carver.take<float>(drop ? R * p.D * H : 0);
    dy = carver.take<float>(R * widest);  // they take turns
    dx = carver.take<float>(R * widest);
    dh_last = carver.take<float>(states);
    dc_last = carver.take<float>(states);
    w = carver.take<float>(4 * H * widest);
    dw = carver.take<float>(4 * H * widest + 16);
    turned = carver.take<float>(4 * H * widest);
    db = carver.take<float>(4 * H);
    for (size_t d = 0; d < p.D; ++d) {
      for (LstmPanels* panels : {&hidden[d], &cell[d], &cell_output[d]}) {
        panels->data = carver.take<float>(panels->floats());
      }
      direction[d].dz = carver.take<float>(R * 4 * H);
      direction[d].h = carver.take<float>(R * H);
      direction[d].c = carver.take<float>(R * H);
      direction[d].dh = carver.take<float>(p.B * H);
      direction[d].dc = carver.take<float>(p.B * H);
      direction[d].du = carver.take<float>(p.plain ? 0 : p.B * H);
    }
    engine.carve(carver);
  }
};

class BackwardPass {
 public:
  BackwardPass(const LstmProblem& p, const LstmTensors& deltas, const LstmMemory& memory, const Options& options)
      : p_(p), deltas_(deltas), memory_(memory), n_threads_(options.n_threads) {
    s_.engine.threads = std::min(options.n_threads ? options.n_threads : default_threads(), kMaxThreads);
    s_.engine.tasks = LstmTasks(p, s_.engine.threads);
    if (p.at.x.present()) s_.input.look(p);
    drop_ = memory.header->dropout > 0 && p.L > 1;
    for (size_t d = 0; d < p.D; ++d) {
      s_.hidden[d] = LstmPanels(4 * p.H, p.H);
      if (p.peephole) s_.cell[d] = LstmPanels(3 * p.H, p.H);
      if (p.peephole_output) s_.cell_output[d] = LstmPanels(p.H, p.H);
    }
    plan();
    const bool need_x = lstm_any(deltas.first);
    Carver sizes(nullptr);
    s_.carve(p, drop_, need_x, sizes);
    scratch_ = Buffer(options, sizes.used(), "the working memory of an LSTM");
    Carver carver(scratch_.data());
    s_.carve(p, drop_, need_x, carver);
  }

  void run() {
    s_.rows.fill(p_);
    if (lstm_any(deltas_.first)) s_.input.load(p_, s_.rows, s_.x, n_threads_);
    load_upstream();
    for (size_t l = p_.L; l-- > 0;) {
      for (size_t d = 0; d < p_.D; ++d) prepare(l, d);
      s_.engine.tasks.run(p_, [&](size_t d, Range block, size_t worker) { recur(l, d, block, worker); });
      if (l > 0 && drop_) {
        lstm_drop(*memory_.header, l - 1, s_.rows.total, p_.D * p_.H, memory_.y(l - 1), s_.dropped, n_threads_);
      }
      for (size_t d = 0; d < p_.D; ++d) finish(l, d);
      if (l == 0) break;
      if (drop_) lstm_drop(*memory_.header, l - 1, s_.rows.total, p_.D * p_.H, s_.dx, s_.dx, n_threads_);
      std::swap(s_.dx, s_.dy);
    }
    if (deltas_.x.present()) store_input_gradient();
  }

 private:
  Lens layer_input(size_t l) const {
    if (l == 0) return s_.input.lens;
    return strided_lens(drop_ ? s_.dropped : memory_.y(l - 1), FloatType::f32, static_cast<ptrdiff_t>(p_.D * p_.H), 1);
  }
  // A matrix with R rows as the operand whose depth they are.
  static Lens along_rows(const Lens& lens) {
    return strided_lens(lens.data, lens.type, lens.depth_stride, lens.row_stride);
  }
  static Lens matrix(const float* data, size_t columns) {
    return strided_lens(data, FloatType::f32, static_cast<ptrdiff_t>(columns), 1);
  }

  // Every product that run() makes, for the size of its workspace.
  void plan() {
    const size_t H = p_.H;
    LstmRows rows;
    Buffer buffer({}, (p_.T + 1) * sizeof(size_t), "the steps of an LSTM");
    rows.first = buffer.as<size_t>();
    rows.fill(p_);
    const Lens dz = matrix(nullptr, 4 * H);
    for (size_t l = 0; l < std::min<size_t>(p_.L, 2); ++l) {
      const size_t K = p_.input_width(l);
      s_.engine.plan({K, 4 * H, rows.total, GemmInit::overwrite}, along_rows(layer_input(l)), along_rows(dz),
                     {nullptr, 4 * H, 1});
      s_.engine.plan({rows.total, K, 4 * H, GemmInit::accumulate}, dz, along_rows(matrix(nullptr, K)), {nullptr, K, 1});
    }
    for (const size_t gates : {size_t{4}, size_t{3}, size_t{1}}) {
      s_.engine.plan({H, gates * H, rows.total, GemmInit::overwrite}, along_rows(matrix(nullptr, H)), along_rows(dz),
                     {nullptr, gates * H, 1});
    }
    for (const LstmPanels* panels : {&s_.hidden[0], &s_.cell[0], &s_.cell_output[0]}) {
      panels->plan(&s_.engine, rows, p_, 4 * H, H);
    }
  }

  // Everything that comes in is read first, so that gradients may be written over it.
  void load_upstream() {
    const size_t H = p_.H, width = p_.D * H;
    parallel_for(p_.T, threads_for(n_threads_, p_.T, s_.rows.total * width * sizeof(float)), [&](size_t t, size_t) {
      for (size_t b = 0; b < s_.rows.active(t); ++b) {
        float* to = s_.dy + (s_.rows.first[t] + b) * width;
        deltas_.y.present() ? deltas_.y.load(0, t, b, to) : void(std::fill_n(to, width, 0.0f));
      }
    });
    for (size_t i = 0; i < p_.L * p_.D * p_.B; ++i) {
      const size_t b = i % p_.B, d = i / p_.B % p_.D, l = i / p_.B / p_.D;
      float *dh = s_.dh_last + i * H, *dc = s_.dc_last + i * H;
      deltas_.h.present() ? deltas_.h.load(l, d, b, dh) : void(std::fill_n(dh, H, 0.0f));
      deltas_.c.present() ? deltas_.c.load(l, d, b, dc) : void(std::fill_n(dc, H, 0.0f));
    }
  }

  // Packs the weights of the recurrence and gathers the states that each row started from.
  void prepare(size_t l, size_t d) {
    const size_t H = p_.H, states = (l * p_.D + d) * p_.B * H;
    lstm_join_state_weights(p_, p_.at.hw, l, d, s_.w, n_threads_);
    s_.hidden[d].pack_plain(s_.w, H);
    if (p_.peephole || p_.peephole_output) {
      lstm_join_state_weights(p_, p_.at.cw, l, d, s_.w, n_threads_);
      if (p_.peephole) s_.cell[d].pack_plain(s_.w, H);
      if (p_.peephole_output) s_.cell_output[d].pack_plain(s_.w + kOutput * H * H, H);
    }
    const LstmRecord record = memory_.record(l, d);
    const float* y = memory_.y(l) + d * H;
    parallel_for(p_.T, threads_for(n_threads_, p_.T, 4 * s_.rows.total * H * sizeof(float)), [&](size_t t, size_t) {
      // Direction 0 comes from step t - 1, direction 1 from t + 1; a sequence that starts here, from its first state.
      const bool inside = d == 0 ? t > 0 : t + 1 < p_.T;
      const size_t from = d == 0 ? t - 1 : t + 1, others = inside ? s_.rows.active(from) : 0;
      for (size_t b = 0; b < s_.rows.active(t); ++b) {
        const size_t r = s_.rows.first[t] + b;
        const float *h = memory_.h0 + states + b * H, *c = memory_.c0 + states + b * H;
        if (b < others) {
          const size_t previous = s_.rows.first[from] + b;
          h = y + previous * p_.D * H, c = record.c + previous * H;
        }
        std::memcpy(s_.direction[d].h + r * H, h, H * sizeof(float));
        std::memcpy(s_.direction[d].c + r * H, c, H * sizeof(float));
      }
    });
  }

  // g = dy act', from the value or the pre-activation.
  static void undo(const Activation& activation, const float* value, const float* argument, float* g, size_t n) {
    has_derivative_from_output(activation) ? activation_backward_from_output(activation, value, g, g, n)
                                           : activation_backward_from_input(activation, argument, g, g, n);
  }

  void hidden(const LstmRow& row, const float* dy, const float* dh, float* dc, float* dz, float* du) const {
    const size_t H = p_.H;
    lstm_hidden_backward(p_.plain, H, row, dy, dh, dc, dz, du);
    if (p_.plain) return;
    undo(p_.gate[kOutput], row.a + kOutput * H, row.z + kOutput * H, dz + kOutput * H, H);
    undo(p_.hidden, row.ch, row.c, du, H);
    lstm_add(H, du, dc);
  }
  void cell(const LstmRow& row, const float* previous, float* dc, float* dz) const {
    const size_t H = p_.H;
    lstm_cell_backward(p_.plain, H, row, previous, dc, dz);
    for (size_t k = 0; k < kOutput && !p_.plain; ++k) {
      undo(p_.gate[k], row.a + k * H, row.z + k * H, dz + k * H, H);
    }
  }

  void recur(size_t l, size_t d, Range block, size_t worker) {
    const size_t H = p_.H, states = ((l * p_.D + d) * p_.B + block.begin) * H;
    const auto& own = s_.direction[d];
    float *dh = own.dh + block.begin * H, *dc = own.dc + block.begin * H;
    float* du = p_.plain ? nullptr : own.du + block.begin * H;
    std::memcpy(dh, s_.dh_last + states, block.size() * H * sizeof(float));
    std::memcpy(dc, s_.dc_last + states, block.size() * H * sizeof(float));
    const LstmRecord record = memory_.record(l, d);
    const float* dy = s_.dy + d * H;
    for (size_t step = 0; step < p_.T; ++step) {
      const size_t t = d == 0 ? p_.T - 1 - step : step, n = s_.rows.active(t, block);
      if (n == 0) continue;
      const size_t r = s_.rows.first[t] + block.begin;
      float* dz = own.dz + r * 4 * H;
      const auto hidden_of = [&](size_t b) {
        hidden(record.row(r + b, H), dy + (r + b) * p_.D * H, dh + b * H, dc + b * H, dz + b * 4 * H,
               p_.plain ? nullptr : du + b * H);
      };
      if (p_.peephole_output) {
        lstm_for_rows(p_, s_.engine, n, hidden_of);
        s_.cell_output[d].multiply(s_.engine, worker, n, dz + kOutput * H, 4 * H, dc, H, true);
      }
      lstm_for_rows(p_, s_.engine, n, [&](size_t b) {
        if (!p_.peephole_output) hidden_of(b);
        cell(record.row(r + b, H), own.c + (r + b) * H, dc + b * H, dz + b * 4 * H);
      });
      s_.hidden[d].multiply(s_.engine, worker, n, dz, 4 * H, dh, H, false);
      if (p_.peephole) s_.cell[d].multiply(s_.engine, worker, n, dz, 4 * H, dc, H, true);
    }
    for (size_t b = 0; b < block.size(); ++b) {
      if (deltas_.h0.present()) deltas_.h0.store(l, d, block.begin + b, dh + b * H);
      if (deltas_.c0.present()) deltas_.c0.store(l, d, block.begin + b, dc + b * H);
    }
  }

  // dw[gates H][columns] = dz' operand, from gate `first` on; then each wanted gate to its place.
  void weights_gradient(const LstmView (&to)[kGates], size_t layer, size_t d, size_t first, size_t gates, Lens operand,
                        size_t columns) {
    const size_t H = p_.H;
    bool wanted = false;
    for (size_t k = first; k < first + gates; ++k) wanted = wanted || to[k].present();
    if (!wanted) return;
    // Columns of dz outnumber those of the operand, and the GEMM core likes the longer side as columns: the product is
    // made the other way round and turned (1024 x 256 over 2048 rows: 87 -> 100 GFLOP/s, Zen 4).
    const size_t rows = gates * H;
    const Lens dz = along_rows(matrix(s_.direction[d].dz + first * H, 4 * H));
    s_.engine.run({columns, rows, s_.rows.total, GemmInit::overwrite}, along_rows(operand), dz, {s_.turned, rows, 1},
                  nullptr);
    pack_strided(matrix(s_.turned, rows), {0, columns}, {0, rows}, {s_.dw, columns, rows * columns + 16});
    parallel_for(rows, threads_for(n_threads_, rows, rows * columns * sizeof(float)), [&](size_t r, size_t) {
      const LstmView& gate = to[first + r / H];
      if (gate.present()) gate.store(layer, d, r % H, s_.dw + r * columns);
    });
  }

  void finish(size_t l, size_t d) {
    const size_t H = p_.H, K = p_.input_width(l), R = s_.rows.total;
    const auto& own = s_.direction[d];
    weights_gradient(l == 0 || p_.shared_input ? deltas_.first : deltas_.rest, p_.input_weights_layer(l), d, 0, kGates,
                     layer_input(l), K);
    weights_gradient(deltas_.hw, l, d, 0, kGates, matrix(own.h, H), H);
    weights_gradient(deltas_.cw, l, d, 0, kOutput, matrix(own.c, H), H);
    weights_gradient(deltas_.cw, l, d, kOutput, 1, matrix(memory_.record(l, d).c, H), H);
    if (lstm_any(deltas_.b)) {
      column_sums(own.dz, R, 4 * H, 4 * H, false, s_.db);
      for (size_t k = 0; k < kGates; ++k) {
        if (deltas_.b[k].present()) deltas_.b[k].store(l, d, 0, s_.db + k * H);
      }
    }
    if (l == 0 && !deltas_.x.present()) return;
    lstm_join_input_weights(p_, l, d, s_.w, n_threads_);
    s_.engine.run({R, K, 4 * H, d == 0 ? GemmInit::overwrite : GemmInit::accumulate}, matrix(own.dz, 4 * H),
                  along_rows(matrix(s_.w, K)), {s_.dx, K, 1}, nullptr);
  }

  // 0 where a sequence is over; nothing to add there.
  void store_input_gradient() {
    const size_t I = p_.I;
    std::fill_n(s_.dw, I, 0.0f);
    parallel_for(p_.T, threads_for(n_threads_, p_.T, p_.T * p_.B * I * sizeof(float)), [&](size_t t, size_t) {
      for (size_t b = 0; b < p_.B; ++b) {
        const bool active = b < s_.rows.active(t);
        if (active || !deltas_.x.accumulate) {
          deltas_.x.store(0, t, b, active ? s_.dx + (s_.rows.first[t] + b) * I : s_.dw);
        }
      }
    });
  }

  const LstmProblem& p_;
  const LstmTensors& deltas_;
  const LstmMemory& memory_;
  size_t n_threads_;
  bool drop_;
  Scratch s_;
  Buffer scratch_;
};

}  // namespace

void lstm_run_backward(const LstmProblem& p, const LstmTensors& deltas, const LstmMemory& memory,
                       const Options& options) {
  BackwardPass(p, deltas, memory, options).run();
}

}  // namespace bnns
