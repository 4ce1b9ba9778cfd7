#include "src/ops/nearest_neighbors/nearest_neighbors.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/simd/convert.h"
#include "src/tensor/tensor.h"

namespace bnns {
namespace {

constexpr const char* kOp = "nearest_neighbors";
constexpr size_t kRows = 256;  // distances of a block

}  // namespace

NearestNeighbors::NearestNeighbors(const Options& options, size_t capacity, size_t features, size_t neighbors,
                                   BNNSDataType type)
    : options_(options), capacity_(capacity), features_(features), neighbors_(neighbors), type_(type) {
  if (type != BNNSDataTypeFloat32 && type != BNNSDataTypeFloat16) {
    fail_unsupported("%s: data_type is %s, expected BNNSDataTypeFloat32 or BNNSDataTypeFloat16", kOp,
                     enum_text(type).text);
  }
  if (capacity == 0 || capacity > INT_MAX) {
    fail_invalid("%s: max_n_samples is %zu, expected 1 to %d", kOp, capacity, INT_MAX);
  }
  if (features == 0) fail_invalid("%s: n_features is 0, expected at least 1", kOp);
  if (neighbors == 0) fail_invalid("%s: n_neighbors is 0, expected at least 1", kOp);
  size_t bytes;
  if (__builtin_mul_overflow(capacity * sizeof(float), features, &bytes)) {
    fail_invalid("%s: n_features is %zu, too large: its product with %zu samples does not fit in 64 bits", kOp,
                 features, capacity);
  }
  samples_ = Buffer(options, bytes, "the samples");
}

std::string NearestNeighbors::text() const {
  return std::string(kOp) + " " + type_name(type_) + " features" + std::to_string(features_) + " neighbors" +
         std::to_string(neighbors_);
}

void NearestNeighbors::load(size_t n, const void* samples) {
  const ForkLock guard(loading_);
  const size_t loaded = loaded_.load(std::memory_order_relaxed);
  if (n > capacity_ - loaded) {
    fail_invalid("%s: %zu samples after %zu, expected at most %zu in all", kOp, n, loaded, capacity_);
  }
  if (n == 0) return;
  check_data(samples, type_, kOp, "data_ptr");
  float* to = samples_.as<float>() + loaded * features_;
  if (type_ == BNNSDataTypeFloat16) {
    half_to_float(static_cast<const uint16_t*>(samples), to, n * features_);
  } else {
    std::memcpy(to, samples, n * features_ * sizeof(float));
  }
  loaded_.store(loaded + n, std::memory_order_release);
}

bool NearestNeighbors::before(const Candidate& a, const Candidate& b) {
  if (std::isnan(a.square) || std::isnan(b.square)) {
    if (std::isnan(a.square) != std::isnan(b.square)) return std::isnan(b.square);  // what has no distance is last
    return a.index < b.index;
  }
  return a.square == b.square ? a.index < b.index : a.square < b.square;
}

// A heap whose root is the last of those kept.
void NearestNeighbors::keep(Candidate* heap, size_t* used, Candidate c) const {
  if (*used < neighbors_) {
    heap[(*used)++] = c;
    std::push_heap(heap, heap + *used, before);
  } else if (before(c, heap[0])) {
    std::pop_heap(heap, heap + *used, before);
    heap[*used - 1] = c;
    std::push_heap(heap, heap + *used, before);
  }
}

// Sorts and writes the results of query number `at`.
void NearestNeighbors::finish(Candidate* heap, size_t used, size_t at, int* indices, void* distances) const {
  std::sort(heap, heap + used, before);
  for (size_t k = 0; k < neighbors_; ++k) {
    const size_t to = at * neighbors_ + k;
    const bool there = k < used;
    if (indices) indices[to] = there ? heap[k].index : -1;
    if (!distances) continue;
    // The sample itself was marked by a square of -1.
    const float distance = !there ? INFINITY : heap[k].square < 0 ? 0 : std::sqrt(heap[k].square);
    if (type_ == BNNSDataTypeFloat16) {
      static_cast<uint16_t*>(distances)[to] = float_to_half(distance);
    } else {
      static_cast<float*>(distances)[to] = distance;
    }
  }
}

void NearestNeighbors::info(int sample, int* indices, void* distances) const {
  const size_t loaded = loaded_.load(std::memory_order_acquire);
  if (sample >= 0 && static_cast<size_t>(sample) >= loaded) {
    fail_invalid("%s: sample_number is %d, expected less than %zu, the samples loaded", kOp, sample, loaded);
  }
  if (indices) check_data(indices, BNNSDataTypeInt32, kOp, "indices");
  if (distances) check_data(distances, type_, kOp, "distances");
  const size_t first = sample < 0 ? 0 : static_cast<size_t>(sample), queries = sample < 0 ? loaded : 1;
  if (queries == 0 || (!indices && !distances)) return;
  const float* rows = samples_.as<float>();
  const size_t most = std::min(neighbors_, loaded), work = checked_mul(loaded, features_, kOp);
  const size_t blocks = div_up(loaded, kRows);

  if (queries == 1) {  // distances by blocks on all threads, then one selection
    const size_t square_bytes = round_up(checked_mul(loaded, sizeof(float), kOp), kAlignment);
    const Buffer buffer(options_, checked_add(square_bytes, checked_mul(most, sizeof(Candidate), kOp), kOp),
                        "distances");
    float* squares = buffer.as<float>();
    Candidate* heap = reinterpret_cast<Candidate*>(buffer.as<char>() + square_bytes);
    parallel_for(blocks, threads_for(options_.n_threads, blocks, work), [&](size_t block, size_t) {
      const size_t at = block * kRows;
      squared_distances(rows + first * features_, rows + at * features_, std::min(kRows, loaded - at), features_,
                        squares + at);
    });
    size_t used = 0;
    squares[first] = -1;  // before all others
    for (size_t i = 0; i < loaded; ++i) keep(heap, &used, {squares[i], static_cast<int>(i)});
    finish(heap, used, 0, indices, distances);
    return;
  }
  const size_t threads = threads_for(options_.n_threads, queries, checked_mul(work, queries, kOp));
  const size_t each = round_up(checked_mul(most, sizeof(Candidate), kOp), kAlignment);
  const Buffer buffer(options_, checked_mul(each, threads, kOp), "neighbours");
  parallel_for(queries, threads, [&](size_t query, size_t worker) {
    Candidate* heap = reinterpret_cast<Candidate*>(buffer.as<char>() + worker * each);
    float squares[kRows];
    size_t used = 0;
    for (size_t at = 0; at < loaded; at += kRows) {
      const size_t n = std::min(kRows, loaded - at);
      squared_distances(rows + query * features_, rows + at * features_, n, features_, squares);
      if (query >= at && query < at + n) squares[query - at] = -1;
      for (size_t i = 0; i < n; ++i) keep(heap, &used, {squares[i], static_cast<int>(at + i)});
    }
    finish(heap, used, query, indices, distances);
  });
}

}  // namespace bnns
