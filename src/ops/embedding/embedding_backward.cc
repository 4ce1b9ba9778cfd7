// EmbeddingFilter::backward. Only the items that occur are visited; the rest of the gradient is cleared as memory.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/engine/copy/copy_row.h"
#include "src/filter/batch_pair.h"
#include "src/ops/embedding/embedding_places.h"
#include "src/simd/sums.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

using namespace embedding;

constexpr const char* kOp = "embedding";
constexpr size_t kTaskElements = 16 * 1024, kClearBytes = 256 * 1024;
constexpr size_t kFewKeys = 256;  // that are sorted by comparing

struct Key {
  size_t index, position;
};

// Keys of all positions by rising index, and by rising position where it is the same. memory holds 2 total keys.
const Key* sort_keys(const size_t* indices, size_t total, size_t items, Key* memory) {
  Key *keys = memory, *other = memory + total;
  for (size_t at = 0; at < total; ++at) keys[at] = {indices[at], at};
  if (total <= kFewKeys) {
    std::sort(keys, keys + total, [](const Key& a, const Key& b) {
      return a.index != b.index ? a.index < b.index : a.position < b.position;
    });
    return keys;
  }
  for (size_t shift = 0; shift < 64 && (items - 1) >> shift != 0; shift += 8) {  // digit by digit, the lowest first
    size_t first[257] = {};
    for (size_t at = 0; at < total; ++at) ++first[(keys[at].index >> shift & 255) + 1];
    for (size_t d = 0; d < 256; ++d) first[d + 1] += first[d];
    for (size_t at = 0; at < total; ++at) other[first[keys[at].index >> shift & 255]++] = keys[at];
    std::swap(keys, other);
  }
  return keys;
}

void clear(const Tensor& t, size_t n_threads) {
  if (t.dense) {
    const size_t bytes = t.span_bytes(), tasks = div_up(bytes, kClearBytes);
    parallel_for(tasks, threads_for(n_threads, tasks, bytes / 8), [&](size_t task, size_t) {
      const size_t begin = task * kClearBytes;
      std::memset(static_cast<char*>(t.data) + begin, 0, std::min(kClearBytes, bytes - begin));
    });
    return;
  }
  const Elements lens(t);
  const size_t tasks = div_up(t.count, kTaskElements);
  parallel_for(tasks, threads_for(n_threads, tasks, t.count), [&](size_t task, size_t) {
    float zeros[kBlock] = {};
    const size_t end = std::min(t.count, (task + 1) * kTaskElements);
    for (size_t at = task * kTaskElements; at < end; at += kBlock) {
      const size_t n = std::min(kBlock, end - at);
      float* to = lens.target(t.data, at, zeros);
      if (to != zeros) std::fill_n(to, n, 0.0f);
      lens.write(t.data, at, n, to);
    }
  });
}

// One item of the gradient: the sum of dy over the positions of its keys, in order.
struct ItemSum {
  const EmbeddingProblem& p;
  const Places& places;
  const Tensor& dy;
  size_t dy_stride;
  bool accumulate;

  const void* at(const Key& key) const {
    return element_at(static_cast<const void*>(dy.data), dy.type, places.position(key.position, dy_stride));
  }
  // kSumRows positions or fewer, items that are stretches of f32; row is 0.
  void add_stretches(const Key* keys, size_t n, float* row) const {
    copy_row(static_cast<const float*>(at(keys[0])), row, p.item_count);
    for (size_t s = 1; s < n; ++s) add_row(static_cast<const float*>(at(keys[s])), p.item_count, row);
  }
  // Anything: kSumRows positions in f32, beyond in double.
  void run(const Key* keys, size_t n, void* row) const {
    float buffer[kBlock], sum[kBlock];
    double total[kBlock];
    const bool is_long = n > kSumRows;
    const float share = 1.0f / static_cast<float>(n);
    for (size_t e = 0; e < p.item_count; e += kBlock) {
      const size_t m = std::min(kBlock, p.item_count - e);
      std::fill_n(sum, m, 0.0f);
      if (is_long) std::fill_n(total, m, 0.0);
      for (size_t s = 0; s < n; ++s) {
        add_row(places.to.read(at(keys[s]), e, m, buffer), m, sum);
        if (is_long && (s % kSumRows == kSumRows - 1 || s + 1 == n)) move_sums(sum, m, total);
      }
      if (is_long) round_sums(total, m, sum);
      for (size_t j = 0; j < m && p.by_frequency; ++j) sum[j] *= share;
      if (accumulate) {
        places.from.accumulate(row, e, m, sum);
        continue;
      }
      float* target = places.from.target(row, e, sum);
      if (target != sum) std::copy_n(sum, m, target);
      places.from.write(row, e, m, target);
    }
  }
};

}  // namespace

void EmbeddingFilter::backward(const BackwardCall& call) {
  const EmbeddingProblem& p = problem_;
  if (call.in_delta) fail_invalid("%s: in_delta is given, expected NULL: indices have no gradient", kOp);
  if (call.bias_delta) fail_invalid("%s: bias_delta is given, expected NULL: there is no bias", kOp);
  if (!is_float(p.dictionary.type)) {
    fail_unsupported("%s: dictionary has type %s; only f32, f16 and bf16 have a gradient", kOp,
                     type_name(p.dictionary.type));
  }
  if (!call.weights_delta) fail_invalid("%s: weights_delta is NULL, expected a gradient for the dictionary", kOp);
  const Tensor to = resolve_delta_view(call.weights_delta, p.dictionary, kOp, "weights_delta");
  check_distinct(to, kOp, "weights_delta");
  check_plain(to, kOp, "weights_delta");
  const Tensor dy = resolve_delta_view(call.out_delta, p.y, kOp, "out_delta");
  check_plain(dy, kOp, "out_delta");
  const size_t dy_stride = input_batch_stride(call.out_delta_stride, call.batch, dy, kOp, "out_delta_stride");
  const size_t in_stride = input_batch_stride(call.in_stride, call.batch, p.x, kOp, "in_stride");
  check_disjoint(to.data, to.span_bytes(), "weights_delta", dy.data,
                 batch_bytes(call.batch, dy_stride, dy, kOp, "out_delta_stride"), "out_delta", kOp);
  if (call.batch) {
    check_data(call.in, p.x.type, kOp, "in");
    check_disjoint(to.data, to.span_bytes(), "weights_delta", call.in,
                   batch_bytes(call.batch, in_stride, p.x, kOp, "in_stride"), "in", kOp);
  }

  const Places places(p, to, dy);
  const size_t total = checked_mul(p.x.count, call.batch, kOp);
  const ScratchShelf::Lease lease(scratch_, checked_mul(total, sizeof(size_t) + 2 * sizeof(Key), kOp));
  size_t* indices = lease.as<size_t>();
  read_indices(call.in, call.batch, in_stride, indices);
  const Key* keys = sort_keys(indices, total, p.items, reinterpret_cast<Key*>(indices + total));

  if (!to.accumulate) clear(to, options_.n_threads);
  const ItemSum item{p, places, dy, dy_stride, to.accumulate};
  const bool stretches = to.is(BNNSDataTypeFloat32) && dy.is(BNNSDataTypeFloat32) && !to.accumulate &&
                         !p.by_frequency && is_one_stretch(places.item_from, places.item_to);
  const size_t group = std::max<size_t>(1, kTaskElements / p.item_count), tasks = div_up(total, group);
  parallel_for(tasks, threads_for(options_.n_threads, tasks, 2 * total * p.item_count), [&](size_t task, size_t) {
    // The items whose keys begin among those of this task; the last one may go on beyond them.
    for (size_t s = task * group, end = std::min(total, s + group); s < end;) {
      const size_t k = keys[s].index, begin = s;
      while (s < total && keys[s].index == k) ++s;
      if (k == p.padding || (begin > 0 && keys[begin - 1].index == k)) continue;
      void* row = element_at(to.data, to.type, k * to.stride[p.item_rank]);
      if (stretches && s - begin <= kSumRows) {
        item.add_stretches(keys + begin, s - begin, static_cast<float*>(row));
      } else {
        item.run(keys + begin, s - begin, row);
      }
    }
  });
}

}  // namespace bnns
