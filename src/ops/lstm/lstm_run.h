// What the two passes share: the rows of ragged sequences, the training cache, packed weights, one block of scratch.
//
// Inside the passes a sequence batch is a matrix of R rows: step t has rows [first[t], first[t + 1]), one for each
// sequence that is active at t. Without a sequence descriptor row t B + b is step t of sequence b.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/gemm/gemm.h"
#include "src/ops/lstm/lstm.h"

namespace bnns {

// Cuts a block of memory into aligned pieces. With base NULL it only counts, so one function both sizes and lays out.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}
  template <class T>
  T* take(size_t n) {
    T* piece = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
    used_ = round_up(checked_add(used_, checked_mul(n, sizeof(T), "scratch"), "scratch"), kAlignment);
    return piece;
  }
  size_t used() const { return used_; }

 private:
  char* base_;
  size_t used_ = 0;
};

// ---- the training cache
// ----------------------------------------------------------------------------------------------

// What one layer and direction keeps: gates [R][4H], pre-activations [R][4H] where a derivative needs them, cell states
// [R][H] and act_h of them [R][H].
struct LstmRecord {
  float *a = nullptr, *z = nullptr, *c = nullptr, *ch = nullptr;

  LstmRow row(size_t r, size_t H) const { return {(z ? z : a) + r * 4 * H, a + r * 4 * H, c + r * H, ch + r * H}; }
};

struct LstmCacheHeader {
  uint64_t magic = 0;
  uint64_t sizes[6] = {};  // I, H, B, L, T, D
  uint64_t rows = 0;       // a mark of the active sequences at each step
  float dropout = 0;
  uint32_t seed = 0;
  uint32_t kept = 0;  // whether pre-activations are there
  uint32_t unused = 0;
};

// The memory behind a header: first states, layer outputs, records. For inference (keep false) layers share records,
// and outputs take turns in two blocks.
class LstmMemory {
 public:
  LstmMemory(const LstmProblem& p, void* base, bool keep);

  size_t bytes() const { return bytes_; }
  LstmCacheHeader* header = nullptr;
  float *h0 = nullptr, *c0 = nullptr;                                        // [L][D][B][H]
  float* y(size_t l) const { return y_ + (keep_ ? l : l % 2) * y_floats_; }  // [R][D H]
  LstmRecord record(size_t l, size_t d) const;

 private:
  bool keep_;
  size_t directions_, bytes_ = 0, y_floats_, record_floats_;
  float* y_ = nullptr;
  LstmRecord first_;
};

// The header that a forward pass of this problem leaves.
LstmCacheHeader make_lstm_header(const LstmProblem& p, uint32_t seed);

// ---- rows
// ------------------------------------------------------------------------------------------------------------

struct LstmRows {
  size_t* first = nullptr;  // [T + 1]
  size_t total = 0;         // R

  void fill(const LstmProblem& p);
  size_t active(size_t t) const { return first[t + 1] - first[t]; }
  // How many of the sequences of a block are active.
  size_t active(size_t t, Range block) const {
    return std::min(std::max(active(t), block.begin), block.end) - block.begin;
  }
};

// x as an operand with R rows: the caller's memory where it is a plain matrix, else a copy.
struct LstmInput {
  Lens lens;  // rows x I
  bool staged = false;
  void look(const LstmProblem& p);
  void load(const LstmProblem& p, const LstmRows& rows, float* buffer, size_t n_threads);
};

// y[r] = x[r] with the decisions of dropout between layer l and l + 1, forward and backward alike; width D H. y may
// be x.
void lstm_drop(const LstmCacheHeader& header, size_t l, size_t rows, size_t width, const float* x, float* y,
               size_t n_threads);

// ---- products
// --------------------------------------------------------------------------------------------------------

// The recurrence of a layer as independent tasks: a direction, and a block of sequences. The blocks follow from the
// batch alone, so products and bits are the same however many threads there are; a task meets the others once per
// layer, not at every step.
struct LstmTasks {
  size_t blocks = 1, block_rows = 0, count = 1;
  size_t workers = 1;  // tasks at a time
  size_t inside = 1;   // threads of a task's products

  LstmTasks() = default;
  LstmTasks(const LstmProblem& p, size_t threads);
  // Runs recurrence(direction, sequences, worker).
  template <class Recurrence>
  void run(const LstmProblem& p, Recurrence&& recurrence) const {
    parallel_for(count, workers, [&](size_t task, size_t worker) {
      const size_t first = task / p.D * block_rows;
      recurrence(task % p.D, Range{first, std::min(p.B, first + block_rows)}, worker);
    });
  }
};

// Threads of a call, resolved, and scratch for the GEMM core: one block for products over all rows, one for each worker
// of the recurrence.
struct LstmEngine {
  size_t threads = 1;
  LstmTasks tasks;
  size_t whole_bytes = 0, step_bytes = 0;
  char *whole = nullptr, *steps = nullptr;

  // Notes that a product over all rows will be run, and runs it.
  void plan(const GemmProblem& product, const Lens& a, const Lens& b, const GemmOutput& c) {
    whole_bytes = std::max(whole_bytes, gemm_workspace_bytes(product, a, b, c, threads));
  }
  void run(const GemmProblem& product, const Lens& a, const Lens& b, const GemmOutput& c, const float* bias) const {
    gemm(product, a, b, c, bias, {}, whole, threads);
  }
  void carve(Carver& carver) {
    step_bytes = round_up(step_bytes, kAlignment);
    whole = carver.take<char>(whole_bytes);
    steps = carver.take<char>(step_bytes * tasks.workers);
  }
};

// The right-hand operand of a step's product, [depth][columns], cut into column pieces that are small enough for the
// GEMM core to read in place: nothing is packed again at a step. Rows of a piece are 16 floats longer than the piece,
// so that they do not fall on few sets of the cache.
struct LstmPanels {
  size_t depth = 0, columns = 0, width = 0;
  float* data = nullptr;

  LstmPanels() = default;
  LstmPanels(size_t depth, size_t columns);
  size_t pieces() const { return width ? div_up(columns, width) : 0; }
  size_t piece_floats() const { return depth * (width + 16) + 16; }
  size_t floats() const { return pieces() * piece_floats(); }
  Lens lens(size_t piece) const {
    return strided_lens(data + piece * piece_floats(), FloatType::f32, 1, static_cast<ptrdiff_t>(width + 16));
  }
  // Fills the panels; rows of the source are columns here (forward, W is [columns][depth]) or depth (backward).
  void pack_transposed(const float* w, size_t stride) const { pack_from(w, stride, 1); }
  void pack_plain(const float* w, size_t stride) const { pack_from(w, 1, stride); }

  // c[m][columns] (+)= a[m][depth] panels
  void plan(LstmEngine* engine, const LstmRows& rows, const LstmProblem& p, size_t a_stride, size_t c_stride) const;
  void multiply(const LstmEngine& engine, size_t worker, size_t m, const float* a, size_t a_stride, float* c,
                size_t c_stride, bool accumulate) const;

 private:
  void pack_from(const float* w, size_t row_stride, size_t depth_stride) const;
};

// Gate weights as one row-major matrix [4H][width]: rows of absent gates are 0.
void lstm_join_input_weights(const LstmProblem& p, size_t l, size_t d, float* w, size_t n_threads);
void lstm_join_state_weights(const LstmProblem& p, const LstmView (&gates)[kGates], size_t l, size_t d, float* w,
                             size_t n_threads);

// Runs body(b) for n rows of element-wise work, b from 0.
template <class Body>
void lstm_for_rows(const LstmProblem& p, const LstmEngine& engine, size_t n, Body&& body) {
  const size_t inside = engine.tasks.inside;
  parallel_for(n, inside == 1 ? 1 : threads_for(inside, n, n * p.H * 64), [&](size_t b, size_t) { body(b); });
}

// Forward into `memory`; writes the caller's outputs if asked to.
void lstm_run_forward(const LstmProblem& p, const LstmMemory& memory, const Options& options, bool write_outputs);

// Backward from a `memory` that a forward pass filled; allocates before it writes.
void lstm_run_backward(const LstmProblem& p, const LstmTensors& deltas, const LstmMemory& memory,
                       const Options& options);

// Whether any gate has such a tensor.
inline bool lstm_any(const LstmView (&views)[kGates]) {
  for (const LstmView& view : views) {
    if (view.present()) return true;
  }
  return false;
}

}  // namespace bnns
