// The scratch and the products of one call. The body of a call runs twice: first measuring, when nothing is computed
// and every pointer is null, then with one block of the measured size. So a lack of memory is found before anything is
// written, and the code that asks for scratch is the code that uses it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/core/checked.h"
#include "src/core/memory.h"
#include "src/core/parallel.h"
#include "src/gemm/gemm.h"
#include "src/ops/attention/attention_view.h"

namespace bnns {

class AttentionPass {
 public:
  explicit AttentionPass(size_t n_threads)
      : threads_(std::min(n_threads ? n_threads : default_threads(), kMaxThreads)) {}

  bool measuring() const { return memory_ == nullptr; }
  // Resolved once, so that what was measured holds when another thread changes the default.
  size_t threads() const { return threads_; }
  size_t bytes() const { return gemm_bytes_ + used_; }
  // The second run. memory has bytes(), 64-byte aligned, and is not null.
  void begin(void* memory) {
    memory_ = static_cast<char*>(memory);
    used_ = 0;
  }

  void* take(size_t bytes) {
    char* at = measuring() ? nullptr : memory_ + gemm_bytes_ + used_;
    used_ = checked_add(used_, round_up(bytes, kAlignment), "attention: scratch");
    return at;
  }
  float* floats(size_t n) { return static_cast<float*>(take(checked_mul(n, sizeof(float), "attention: scratch"))); }

  void multiply(const GemmProblem& product, const Lens& a, const Lens& b, const GemmOutput& c,
                const float* bias = nullptr, const GemmEpilogue& epilogue = {}) {
    if (measuring()) {
      gemm_bytes_ = std::max(gemm_bytes_, round_up(gemm_workspace_bytes(product, a, b, c, threads_), kAlignment));
    } else {
      gemm(product, a, b, c, bias, epilogue, memory_, threads_);
    }
  }

  // The view's rows as an operand: in place, or a copy.
  Lens operand(const MatrixView& view) {
    if (view.is_operand()) return lens_of(view);
    float* buffer = floats(view.count());
    if (!measuring()) gather(view, buffer, threads_);
    return strided_lens(buffer, FloatType::f32, static_cast<ptrdiff_t>(view.columns), 1);
  }
  // All elements as dense f32.
  const float* values(const MatrixView& view) {
    float* buffer = floats(view.count());
    if (!measuring()) gather(view, buffer, threads_);
    return buffer;
  }

 private:
  size_t threads_;
  char* memory_ = nullptr;
  size_t used_ = 0, gemm_bytes_ = 0;
};

// Where products write a tensor: in place, or into a dense f32 copy that store() brings there.
class AttentionResult {
 public:
  AttentionResult() = default;
  AttentionResult(AttentionPass& pass, const MatrixView& view)
      : view_(view), buffer_(view.is_result() ? nullptr : pass.floats(view.count())) {}

  bool staged() const { return !view_.is_result(); }
  GemmOutput output() const { return staged() ? GemmOutput{buffer_, view_.columns, 1} : output_of(view_); }
  // Of the next product: only the first may overwrite.
  GemmInit next() {
    const bool add = used_ || (view_.accumulate && !staged());
    used_ = true;
    return add ? GemmInit::accumulate : GemmInit::overwrite;
  }
  void store(const AttentionPass& pass) const {
    if (staged() && !pass.measuring()) scatter(buffer_, view_, pass.threads());
  }

 private:
  MatrixView view_;
  float* buffer_ = nullptr;
  bool used_ = false;
};

// The same lens from row `first` on.
inline Lens rows_from(const Lens& lens, size_t first) {
  Lens moved = lens;
  if (lens.data && first) {
    moved.data = static_cast<const char*>(lens.data) +
                 static_cast<ptrdiff_t>(first) * lens.row_stride * static_cast<ptrdiff_t>(bytes_of(lens.type));
  }
  return moved;
}
inline GemmOutput rows_from(const GemmOutput& c, size_t first) {
  return {c.data ? c.data + first * c.row_stride : nullptr, c.row_stride, c.column_stride};
}

// f(first, rows) over the blocks of `outer` times `rows` rows that are a constant stride apart.
template <class F>
void for_row_blocks(const AttentionPass& pass, bool together, size_t outer, size_t rows, F&& f) {
  if (together || outer == 0) return f(size_t{0}, outer * rows);
  for (size_t o = 0; o < outer && (o == 0 || !pass.measuring()); ++o) f(o, rows);  // all blocks measure the same
}

}  // namespace bnns
