// The caller's cache and workspace: their sizes, what they hold, and the checks.
//
// The cache is a header and Q' / sqrt(d_key), K', V', heads in f32, without padding, so it may be moved. The workspace
// holds what a call needs by its shape: those four arrays where there is no cache, and in backward their gradients.
// Scratch per thread is never in it, so a size that was asked for stays right when the number of threads changes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/ops/attention/attention.h"

namespace bnns {

struct AttentionCacheHeader {
  static constexpr uint64_t kMagic = 0x31616863416e7474;
  uint64_t magic, batch, heads, queries, keys, rows, key_size, value_size;
  uint64_t pass;  // of the dropout's decisions
  uint32_t seed, threshold;
  uint64_t reserved[6];
};
static_assert(sizeof(AttentionCacheHeader) == 128);

inline size_t attention_array_floats(const AttentionShape& s) {
  return s.query_floats() + s.key_floats() + s.value_floats() + s.head_floats();
}
inline size_t attention_cache_bytes(const AttentionShape& s) {
  return sizeof(AttentionCacheHeader) + attention_array_floats(s) * sizeof(float);
}
// Floats of dHead, dQ', dK', dV' and of the groups' sums.
inline size_t attention_gradient_floats(const AttentionShape& s) {
  return s.head_floats() + s.query_floats() + s.backward_groups() * (s.key_floats() + s.value_floats());
}

// At least 1 (K28); space to align is in it.
inline size_t attention_workspace_bytes(const AttentionShape& s, bool cached, bool backward) {
  const size_t floats = (cached ? 0 : attention_array_floats(s)) + (backward ? attention_gradient_floats(s) : 0);
  return floats ? floats * sizeof(float) + kAlignment : 1;
}

// Points q, k, v and heads into attention_array_floats.
inline void set_attention_arrays(AttentionHeads* h, float* memory) {
  h->q = memory;
  h->k = h->q + h->shape.query_floats();
  h->v = h->k + h->shape.key_floats();
  h->heads = h->v + h->shape.value_floats();
}

// Answers a question for sizes; true: there was one, and the call is over.
bool answer_attention_sizes(const AttentionBuffer& cache, size_t cache_bytes, const AttentionBuffer& workspace,
                            size_t workspace_bytes);
// Refuses a buffer without its size, too small or badly aligned.
void check_attention_buffer(const AttentionBuffer& buffer, size_t bytes, const char* name);

void write_cache_header(void* cache, const AttentionShape& s, const DropoutPass& dropout);
// Refuses a cache that no forward call of this shape filled; returns the decisions of that call.
DropoutPass read_cache_header(const void* cache, const AttentionShape& s, const DropoutPass& dropout);

inline void* aligned_up(void* p) {
  return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(p) + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace bnns
