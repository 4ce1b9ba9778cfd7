// One head of one sample, tile by tile: what lies between the projections.
//
//   forward    R = Q' K'^T, masks, P = softmax, dropout, head = P V'
//   backward   dV' = P^T dHead, dP = dHead V'^T, dR = P (dP - rowsum(dP P)), dQ' = dR K' / sqrt(d_key), dK' = dR^T Q'
//
// Q' comes divided by sqrt(d_key), so R and dK' need no factor. A tile is some rows of L and all keys: at most 128 rows
// and 256 KiB, or 16 rows, so it stays in L2 for thousands of keys. Tasks are (sample, head, group of tiles), fixed by
// the shape; dK' and dV' of the groups of one head are added in order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/ops/dropout/dropout.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct AttentionShape {
  size_t batch = 0, heads = 0;
  size_t queries = 0, keys = 0, extra = 0;  // L, S, rows that follow the keys
  size_t key_size = 0, value_size = 0;      // d_key, d_value

  size_t rows() const { return keys + extra; }  // of K' and V'
  // Rows of Q' and K' hold all heads, key_stride floats apart; those of V' and of the heads' outputs value_stride.
  size_t key_stride() const { return padded(heads * key_size); }
  size_t value_stride() const { return padded(heads * value_size); }
  size_t tile_stride() const { return padded(rows()); }
  // Whole lines, and never a multiple of 1 KiB: rows that far apart would fall on few sets of the caches.
  static size_t padded(size_t n) {
    n = (n + 15) / 16 * 16;
    return n % 256 == 0 ? n + 16 : n;
  }

  size_t tile_rows() const;
  size_t tiles() const;           // of a head
  size_t forward_groups() const;  // of tiles, per head
  size_t backward_groups() const;
  size_t group_rows(size_t groups) const;  // of a group but the last

  // Floats of [batch][L][key_stride] and so on.
  size_t query_floats() const { return batch * queries * key_stride(); }
  size_t key_floats() const { return batch * rows() * key_stride(); }
  size_t value_floats() const { return batch * rows() * value_stride(); }
  size_t head_floats() const { return batch * queries * value_stride(); }
  void check_size(const char* op) const;  // refuses products that do not fit in size_t
};

// key_mask and add_to_attention of a call, checked.
struct AttentionMask {
  const uint8_t* keys = nullptr;  // Boolean, true: masked
  size_t key_stride = 0, key_batch_stride = 0;
  Tensor row;  // one row of X: S elements; count 0 where there is no X
  const void* add = nullptr;
  size_t add_batch_stride = 0, add_head_stride = 0, add_query_stride = 0;  // 0 where X has no such index

  bool any() const { return keys || add; }
};

// Everything that a task reads and writes.
struct AttentionHeads {
  AttentionShape shape;
  AttentionMask mask;
  DropoutPass dropout;  // threshold 0: none
  float *q = nullptr, *k = nullptr, *v = nullptr, *heads = nullptr;
  // backward; a null result is not computed
  const float* dheads = nullptr;
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
  float *dk_groups = nullptr, *dv_groups = nullptr;  // of groups 1, 2, ... where there are several
};

// Bytes of scratch that one worker needs.
size_t attention_worker_bytes(const AttentionHeads& heads, bool backward) noexcept;

// Runs all tasks. scratch has `threads` times attention_worker_bytes, 64-byte aligned. forward writes heads; backward
// writes dq, dk, dv.
void attention_heads_forward(const AttentionHeads& heads, void* scratch, size_t threads) noexcept;
void attention_heads_backward(const AttentionHeads& heads, void* scratch, size_t threads) noexcept;

// How many threads the tasks are worth.
size_t attention_threads(const AttentionShape& shape, size_t n_threads, bool backward) noexcept;

// r = masked ? -inf : r + x over n elements. Masked where keys or x is -inf; what r holds there (NaN, say) has no
// influence. x and keys may be null. Returns whether all n are masked. (attention_simd.cc)
bool attention_mask_row(const float* x, const float* keys, float* r, size_t n) noexcept;

}  // namespace bnns
