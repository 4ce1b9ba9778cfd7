#include "src/ops/attention/attention_head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/engine/activation/softmax.h"
#include "src/engine/copy/copy.h"
#include "src/gemm/gemm.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr Activation kSoftmax{BNNSActivationFunctionSoftmax, 0, 0};

// Below this many rows in a task the GEMM core's own packing of K' costs less than turning it.
constexpr size_t kTurnRows = 32;

Lens row_lens(const float* data, size_t stride) {  // rows of the operand are rows in memory
  return strided_lens(data, FloatType::f32, static_cast<ptrdiff_t>(stride), 1);
}
Lens column_lens(const float* data, size_t stride) {  // rows of the operand are columns in memory
  return strided_lens(data, FloatType::f32, 1, static_cast<ptrdiff_t>(stride));
}

// One worker's scratch.
struct Buffers {
  float *key_columns, *value_columns;  // K' and V' of a head, turned: [d][tile_stride]
  float *p, *dp;                       // a tile each
  float *keys, *add;                   // masks of one row
  void* gemm;
  size_t floats;  // before the GEMM's own

  Buffers(const AttentionHeads& h, bool backward, void* memory);
};

// The products of a tile: of all tiles but the last of a head, and of that one.
size_t gemm_bytes(const AttentionShape& s, bool backward) {
  const size_t n = s.rows(), t = s.tile_stride(), ks = s.key_stride(), vs = s.value_stride();
  const size_t last = s.queries - (s.tiles() - 1) * s.tile_rows();
  const Lens by_row = row_lens(nullptr, t), by_column = column_lens(nullptr, t);
  size_t bytes = 0;
  const auto product = [&](size_t m, size_t columns, size_t k, const Lens& a, const Lens& b, size_t stride) {
    bytes = std::max(bytes, gemm_workspace_bytes({m, columns, k, GemmInit::overwrite}, a, b, {nullptr, stride, 1}, 1));
  };
  for (const size_t m : {s.tile_rows(), last}) {
    for (const bool turned : {false, true}) {
      product(m, n, s.key_size, row_lens(nullptr, ks), turned ? by_column : row_lens(nullptr, ks), t);
      product(m, n, s.value_size, row_lens(nullptr, vs), turned ? by_column : row_lens(nullptr, vs), t);
    }
    product(m, s.value_size, n, by_row, column_lens(nullptr, vs), vs);
    if (!backward) continue;
    product(m, s.key_size, n, by_row, column_lens(nullptr, ks), ks);
    product(n, s.value_size, m, by_column, column_lens(nullptr, vs), vs);
    product(n, s.key_size, m, by_column, column_lens(nullptr, ks), ks);
  }
  return bytes;
}

Buffers::Buffers(const AttentionHeads& h, bool backward, void* memory) {
  const AttentionShape& s = h.shape;
  size_t used = 0;
  const auto take = [&](size_t floats) {
    float* at = memory ? static_cast<float*>(memory) + used : nullptr;
    used += round_up(floats, 16);
    return at;
  };
  const size_t t = s.tile_stride(), tile = s.tile_rows() * t;
  key_columns = take(s.key_size * t);
  value_columns = take(backward ? s.value_size * t : 0);
  p = take(tile);
  dp = take(backward ? tile : 0);
  keys = take(h.mask.keys ? s.keys : 0);
  add = take(h.mask.add ? s.keys : 0);
  gemm = memory ? static_cast<float*>(memory) + used : nullptr;
  floats = used;
}

// to[d][i] = from[i][d] for i < rows
void turn(const float* from, size_t stride, float* to, size_t to_stride, size_t rows, size_t d) {
  transpose_tile(reinterpret_cast<const uint32_t*>(from), static_cast<ptrdiff_t>(stride),
                 reinterpret_cast<uint32_t*>(to), static_cast<ptrdiff_t>(to_stride), rows, d);
}

class HeadTask {
 public:
  HeadTask(const AttentionHeads& h, size_t index, size_t groups, const Buffers& buffers)
      : h_(h),
        s_(h.shape),
        buffers_(buffers),
        group_(index % groups),
        head_(index / groups % s_.heads),
        sample_(index / groups / s_.heads) {
    const size_t group_rows = s_.group_rows(groups);
    rows_ = {group_ * group_rows, std::min(s_.queries, (group_ + 1) * group_rows)};
    for (size_t j = 0; j < s_.keys && h.mask.keys; ++j) {
      buffers.keys[j] = h.mask.keys[sample_ * h.mask.key_batch_stride + j * h.mask.key_stride] ? kMasked : 0;
    }
    if (h.mask.add && h.mask.row.type != BNNSDataTypeBoolean) add_elements_ = Elements(h.mask.row);
    keys_ = columns_of(keys(h.k), s_.key_stride(), s_.key_size, buffers.key_columns);
  }

  void forward() {
    for_each_tile([&](size_t first, size_t rows) {
      probabilities(first, rows);
      drop(buffers_.p, buffers_.p, first, rows);
      multiply({rows, s_.value_size, s_.rows()}, tile_lens(buffers_.p), column_lens(values(h_.v), s_.value_stride()),
               query_values(h_.heads, first), s_.value_stride());
    });
  }

  void backward() {
    const Lens values_lens = columns_of(values(h_.v), s_.value_stride(), s_.value_size, buffers_.value_columns);
    float* dk = group_ ? of_group(h_.dk_groups, s_.key_floats()) : h_.dk;
    float* dv = group_ ? of_group(h_.dv_groups, s_.value_floats()) : h_.dv;
    const float scale = 1 / std::sqrt(static_cast<float>(s_.key_size));
    for_each_tile([&](size_t first, size_t rows) {
      const GemmInit sum = first == rows_.begin ? GemmInit::overwrite : GemmInit::accumulate;
      const float* upstream = query_values(h_.dheads, first);
      probabilities(first, rows);
      if (h_.dv) {
        const float* dropped = buffers_.p;
        if (h_.dropout.threshold) drop(buffers_.p, buffers_.dp, first, rows), dropped = buffers_.dp;
        multiply({s_.rows(), s_.value_size, rows, sum}, column_lens(dropped, s_.tile_stride()),
                 column_lens(upstream, s_.value_stride()), values(dv), s_.value_stride());
      }
      if (!h_.dq && !h_.dk) return;
      multiply({rows, s_.rows(), s_.value_size}, row_lens(upstream, s_.value_stride()), values_lens, buffers_.dp,
               s_.tile_stride());
      drop(buffers_.dp, buffers_.dp, first, rows);
      for (size_t i = 0; i < rows; ++i) {
        float* dp = buffers_.dp + i * s_.tile_stride();
        softmax_row_backward(kSoftmax, From::output, buffers_.p + i * s_.tile_stride(), dp, dp, s_.rows());
      }
      if (h_.dq) {
        float* dq = query_keys(h_.dq, first);
        multiply({rows, s_.key_size, s_.rows()}, tile_lens(buffers_.dp), column_lens(keys(h_.k), s_.key_stride()), dq,
                 s_.key_stride());
        for (size_t i = 0; i < rows; ++i, dq += s_.key_stride()) dropout_scale(scale, dq, dq, s_.key_size);
      }
      if (h_.dk) {
        multiply({s_.rows(), s_.key_size, rows, sum}, column_lens(buffers_.dp, s_.tile_stride()),
                 column_lens(query_keys(h_.q, first), s_.key_stride()), keys(dk), s_.key_stride());
      }
    });
  }

 private:
  // Where this sample and head begin in [batch][rows][heads][d].
  template <class T>
  T* keys(T* base) const {
    return base + sample_ * s_.rows() * s_.key_stride() + head_ * s_.key_size;
  }
  template <class T>
  T* values(T* base) const {
    return base + sample_ * s_.rows() * s_.value_stride() + head_ * s_.value_size;
  }
  template <class T>
  T* query_keys(T* base, size_t row) const {
    return base + (sample_ * s_.queries + row) * s_.key_stride() + head_ * s_.key_size;
  }
  template <class T>
  T* query_values(T* base, size_t row) const {
    return base + (sample_ * s_.queries + row) * s_.value_stride() + head_ * s_.value_size;
  }
  float* of_group(float* groups, size_t floats) const { return groups ? groups + (group_ - 1) * floats : nullptr; }
  Lens tile_lens(const float* tile) const { return row_lens(tile, s_.tile_stride()); }

  template <class F>
  void for_each_tile(F&& f) const {
    for (size_t i = rows_.begin; i < rows_.end; i += s_.tile_rows()) f(i, std::min(s_.tile_rows(), rows_.end - i));
  }

  void multiply(const GemmProblem& product, const Lens& a, const Lens& b, float* c, size_t stride) const {
    gemm(product, a, b, {c, stride, 1}, nullptr, {}, buffers_.gemm, 1);
  }

  // K' or V' as the right operand of a product over d: turned, so that no tile has to pack it.
  Lens columns_of(const float* from, size_t stride, size_t d, float* buffer) const {
    if (rows_.size() < kTurnRows) return row_lens(from, stride);
    turn(from, stride, buffer, s_.tile_stride(), s_.rows(), d);
    return column_lens(buffer, s_.tile_stride());
  }

  // One row of X, or null.
  const float* add_row(size_t query) const {
    const AttentionMask& m = h_.mask;
    if (!m.add) return nullptr;
    const void* base = element_at(
        m.add, m.row.type, sample_ * m.add_batch_stride + head_ * m.add_head_stride + query * m.add_query_stride);
    if (m.row.type != BNNSDataTypeBoolean) return add_elements_.read(base, 0, s_.keys, buffers_.add);
    const uint8_t* flags = static_cast<const uint8_t*>(base);
    for (size_t j = 0; j < s_.keys; ++j) buffers_.add[j] = flags[j * m.row.stride[0]] ? kMasked : 0;
    return buffers_.add;
  }

  // P before dropout, into buffers.p.
  void probabilities(size_t first, size_t rows) const {
    multiply({rows, s_.rows(), s_.key_size}, row_lens(query_keys(h_.q, first), s_.key_stride()), keys_, buffers_.p,
             s_.tile_stride());
    for (size_t i = 0; i < rows; ++i) {
      float* r = buffers_.p + i * s_.tile_stride();
      if (h_.mask.any()) {
        const bool closed = attention_mask_row(add_row(first + i), h_.mask.keys ? buffers_.keys : nullptr, r, s_.keys);
        if (closed && s_.extra == 0) {  // nothing to attend to: no output, no gradient (K27)
          std::memset(r, 0, s_.rows() * sizeof(float));
          continue;
        }
      }
      softmax_row_forward(kSoftmax, r, r, s_.rows());
    }
  }

  // to = from with the decisions of the pass, which are numbered (sample, head, query, key).
  void drop(const float* from, float* to, size_t first, size_t rows) const {
    if (h_.dropout.threshold == 0) return;
    uint32_t buffer[kDropoutBlock + 2 * kDropoutGroup];
    const size_t n = s_.rows();
    for (size_t i = 0; i < rows; ++i) {
      const uint64_t decision = (uint64_t{sample_ * s_.heads + head_} * s_.queries + first + i) * n;
      for (size_t j = 0; j < n; j += kDropoutBlock) {
        const size_t m = std::min(kDropoutBlock, n - j), at = i * s_.tile_stride() + j;
        const uint32_t* words = dropout_words(h_.dropout.seed, h_.dropout.number, decision + j, m, buffer);
        dropout_select(words, h_.dropout.threshold, h_.dropout.scale, from + at, to + at, m);
      }
    }
  }

  const AttentionHeads& h_;
  const AttentionShape& s_;
  const Buffers& buffers_;
  size_t group_, head_, sample_;
  Range rows_;
  Lens keys_;
  Elements add_elements_;
};

// sum += the groups, in order; each has `floats` floats in rows of which the first `used` count.
void add_groups(float* sum, const float* groups, size_t count, size_t floats, size_t row, size_t used, size_t threads) {
  if (!sum || count == 0) return;
  parallel_for(floats / row, threads, [&](size_t r, size_t) {
    for (size_t g = 0; g < count; ++g) {
      const float* from = groups + g * floats + r * row;
      float* to = sum + r * row;
      for (size_t i = 0; i < used; ++i) to[i] += from[i];
    }
  });
}

}  // namespace

size_t attention_worker_bytes(const AttentionHeads& heads, bool backward) noexcept {
  const size_t floats = Buffers(heads, backward, nullptr).floats;
  return round_up(floats * sizeof(float) + gemm_bytes(heads.shape, backward), kAlignment);
}

void attention_heads_forward(const AttentionHeads& heads, void* scratch, size_t threads) noexcept {
  const AttentionShape& s = heads.shape;
  const size_t groups = s.forward_groups(), bytes = attention_worker_bytes(heads, false);
  parallel_for(s.batch * s.heads * groups, threads, [&](size_t task, size_t worker) {
    const Buffers buffers(heads, false, static_cast<char*>(scratch) + worker * bytes);
    HeadTask(heads, task, groups, buffers).forward();
  });
}

void attention_heads_backward(const AttentionHeads& heads, void* scratch, size_t threads) noexcept {
  const AttentionShape& s = heads.shape;
  const size_t groups = s.backward_groups(), bytes = attention_worker_bytes(heads, true);
  parallel_for(s.batch * s.heads * groups, threads, [&](size_t task, size_t worker) {
    const Buffers buffers(heads, true, static_cast<char*>(scratch) + worker * bytes);
    HeadTask(heads, task, groups, buffers).backward();
  });
  add_groups(heads.dk, heads.dk_groups, groups - 1, s.key_floats(), s.key_stride(), s.heads * s.key_size, threads);
  add_groups(heads.dv, heads.dv_groups, groups - 1, s.value_floats(), s.value_stride(), s.heads * s.value_size,
             threads);
}

}  // namespace bnns
