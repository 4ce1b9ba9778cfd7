#include "src/ops/attention/attention_buffers.h"

#include <cstring>

#include "src/core/error.h"

namespace bnns {
namespace {

constexpr const char* kOp = "attention";

AttentionCacheHeader header_of(const AttentionShape& s, const DropoutPass& dropout) {
  AttentionCacheHeader header = {};
  header.magic = AttentionCacheHeader::kMagic;
  header.batch = s.batch, header.heads = s.heads, header.queries = s.queries, header.keys = s.keys;
  header.rows = s.rows(), header.key_size = s.key_size, header.value_size = s.value_size;
  header.pass = dropout.number, header.seed = dropout.seed, header.threshold = dropout.threshold;
  return header;
}

}  // namespace

bool answer_attention_sizes(const AttentionBuffer& cache, size_t cache_bytes, const AttentionBuffer& workspace,
                            size_t workspace_bytes) {
  if (cache.is_question()) *cache.size = cache_bytes;
  if (workspace.is_question()) *workspace.size = workspace_bytes;
  return cache.is_question() || workspace.is_question();
}

void check_attention_buffer(const AttentionBuffer& buffer, size_t bytes, const char* name) {
  if (!buffer.data) return;
  if (!buffer.size) fail_invalid("%s: %s_size is NULL, expected the bytes that %s has", kOp, name, name);
  if (*buffer.size < bytes) {
    fail_invalid("%s: %s_size is %zu, expected at least %zu (ask with %s NULL)", kOp, name, *buffer.size, bytes, name);
  }
  if (reinterpret_cast<uintptr_t>(buffer.data) % alignof(uint64_t) != 0) {
    fail_invalid("%s: %s is %p, expected a multiple of %zu", kOp, name, buffer.data, alignof(uint64_t));
  }
}

void write_cache_header(void* cache, const AttentionShape& s, const DropoutPass& dropout) {
  const AttentionCacheHeader header = header_of(s, dropout);
  std::memcpy(cache, &header, sizeof header);
}

DropoutPass read_cache_header(const void* cache, const AttentionShape& s, const DropoutPass& dropout) {
  AttentionCacheHeader header;
  std::memcpy(&header, cache, sizeof header);
  DropoutPass pass = dropout;
  pass.number = header.pass;
  const AttentionCacheHeader expected = header_of(s, pass);
  if (std::memcmp(&header, &expected, sizeof header) == 0) return pass;
  if (header.magic == expected.magic && header.batch != expected.batch) {
    fail_invalid("%s: batch_size is %zu, expected %zu as in the forward call that filled backprop_cache", kOp, s.batch,
                 static_cast<size_t>(header.batch));
  }
  fail_invalid("%s: backprop_cache was not filled by a forward call of this filter", kOp);
}

}  // namespace bnns
