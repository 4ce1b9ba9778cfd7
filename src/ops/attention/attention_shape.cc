// How heads are cut into tiles and tasks: by the shape alone, so results do not depend on the number of threads.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/ops/attention/attention_head.h"

namespace bnns {
namespace {

constexpr size_t kTileFloats = 64 * 1024;  // 256 KiB: backward has two such tiles in L2
constexpr size_t kLeastRows = 16, kMostRows = 128;
constexpr size_t kForwardTasks = 64;   // beyond these a task takes several tiles, which share a transposed K'
constexpr size_t kBackwardTasks = 16;  // each task of one head beyond the first has sums of dK' and dV' of its own

// Groups per head so that all heads make about `wanted` tasks.
size_t groups_for(const AttentionShape& s, size_t wanted) {
  const size_t heads = std::max<size_t>(1, s.batch * s.heads);
  const size_t groups = std::clamp<size_t>(div_up(wanted, heads), 1, s.tiles());
  return div_up(s.tiles(), div_up(s.tiles(), groups));  // none empty
}

}  // namespace

size_t AttentionShape::tile_rows() const {
  const size_t most = std::clamp(kTileFloats / tile_stride(), kLeastRows, kMostRows);
  return div_up(queries, div_up(queries, most));  // even tiles
}

size_t AttentionShape::tiles() const {
  return div_up(queries, tile_rows());
}

size_t AttentionShape::forward_groups() const {
  return groups_for(*this, kForwardTasks);
}

size_t AttentionShape::backward_groups() const {
  return groups_for(*this, kBackwardTasks);
}

size_t AttentionShape::group_rows(size_t groups) const {
  return div_up(tiles(), groups) * tile_rows();
}

void AttentionShape::check_size(const char* op) const {
  // Every array is at most 64 of the first, all that a call has are less than the second. long double holds 64 bits.
  const long double head = static_cast<long double>(heads) * std::max(key_size, value_size) + 32;
  const long double row = static_cast<long double>(std::max(queries, rows())) + 32;
  const long double most = 0x1p64L / sizeof(float);
  if (64 * head * row * std::max<size_t>(batch, 1) >= most || 8 * row * (row + head) >= most) {
    fail_invalid(
        "%s: batch_size is %zu, with %zu heads of %zu and %zu values, %zu queries and %zu keys, too large for 64 "
        "bits",
        op, batch, heads, key_size, value_size, queries, rows());
  }
}

size_t attention_threads(const AttentionShape& s, size_t n_threads, bool backward) noexcept {
  const size_t tasks = s.batch * s.heads * (backward ? s.backward_groups() : s.forward_groups());
  const double work = static_cast<double>(s.batch * s.heads) * static_cast<double>(s.queries) *
                      static_cast<double>(s.rows()) * static_cast<double>(s.key_size + s.value_size);
  return threads_for(n_threads, tasks, static_cast<size_t>(std::min(work, 1e15)));
}

}  // namespace bnns
