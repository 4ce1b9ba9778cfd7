#include "src/ops/embedding/embedding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/filter/batch_pair.h"
#include "src/simd/sums.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "embedding";
constexpr size_t kTaskElements = 16 * 1024;

// The item dimensions of t, or those of the positions, as a tensor of their own.
Tensor axes_of(const Tensor& t, size_t first, size_t rank, const Tensor& like_order, size_t order_first) {
  Tensor part = t;
  part.rank = rank;
  part.count = 1;
  size_t n = 0;
  for (size_t j = 0; j < like_order.rank; ++j) {
    const size_t k = like_order.axis[j];
    if (k >= order_first && k < order_first + rank) part.axis[n++] = static_cast<uint8_t>(k - order_first);
  }
  for (size_t k = 0; k < rank; ++k) {
    part.size[k] = t.size[first + k];
    part.stride[k] = t.stride[first + k];
    part.count *= part.size[k];
  }
  return part;
}

// An item is one stretch of memory in both, in the same order.
bool is_one_stretch(const Tensor& a, const Tensor& b) {
  size_t dense = 1;
  for (size_t j = 0; j < b.rank; ++j) {
    const size_t k = b.axis[j];
    if (b.size[k] == 1) continue;
    if (a.stride[k] != dense || b.stride[k] != dense) return false;
    dense *= b.size[k];
  }
  return true;
}

// Where items and positions lie. Items are read in the order of `out` (y or dy), positions numbered by that of x.
struct Places {
  Elements from, to, x, positions;
  Tensor item_from, item_to;
  Places(const EmbeddingProblem& p, const Tensor& dictionary, const Tensor& out)
      : x(p.x), item_from(axes_of(dictionary, 0, p.item_rank, out, 0)), item_to(axes_of(out, 0, p.item_rank, out, 0)) {
    from = Elements(item_from, item_to);
    to = Elements(item_to);
    Tensor at = p.x;
    for (size_t k = 0; k < p.x.rank; ++k) at.stride[k] = out.stride[p.item_rank + k];
    positions = Elements(at, p.x);
  }
};

void check_shapes(const EmbeddingProblem& p) {
  if (p.dictionary.rank < 2) {
    fail_invalid("%s: dictionary has rank %zu, expected item dimensions and the number of items last", kOp,
                 p.dictionary.rank);
  }
  if (p.y.rank != p.item_rank + p.x.rank) {
    fail_invalid("%s: o_desc has rank %zu, expected %zu = %zu of an item + %zu of i_desc", kOp, p.y.rank,
                 p.item_rank + p.x.rank, p.item_rank, p.x.rank);
  }
  for (size_t k = 0; k < p.y.rank; ++k) {
    const size_t want = k < p.item_rank ? p.dictionary.size[k] : p.x.size[k - p.item_rank];
    if (p.y.size[k] != want) {
      fail_invalid("%s: o_desc.size[%zu] is %zu, expected %zu as %s", kOp, k, p.y.size[k], want,
                   k < p.item_rank ? "in dictionary" : "in i_desc");
    }
  }
}

}  // namespace

EmbeddingProblem make_embedding_problem(const BNNSLayerParametersEmbedding* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersEmbedding", kOp);
  EmbeddingProblem p;
  p.x = resolve(layer->i_desc, kOp, "i_desc");
  p.y = resolve(layer->o_desc, kOp, "o_desc");
  p.dictionary = resolve_with_data(layer->dictionary, kOp, "dictionary");
  check_plain(p.x, kOp, "i_desc");
  check_plain(p.y, kOp, "o_desc");
  check_plain(p.dictionary, kOp, "dictionary");
  if (!is_integer(p.x.type)) {
    fail_invalid("%s: i_desc has type %s, expected an integer of 8 bits or more", kOp, type_name(p.x.type));
  }
  const bool same = p.y.type == p.dictionary.type && p.y.scale == p.dictionary.scale && p.y.bias == p.dictionary.bias;
  const bool floats = is_float(p.y.type) && is_float(p.dictionary.type);
  if (!floats && (!same || layer->max_norm != 0)) {
    fail_unsupported("%s: dictionary is %s and o_desc %s; expected f32, f16 or bf16%s", kOp,
                     type_name(p.dictionary.type), type_name(p.y.type),
                     layer->max_norm != 0 ? " with max_norm" : ", or the same type");
  }
  p.item_rank = p.dictionary.rank - 1;
  check_shapes(p);
  p.items = p.dictionary.size[p.item_rank];
  p.item_count = p.dictionary.count / p.items;
  p.padding = layer->padding_idx;
  p.max_norm = static_cast<double>(layer->max_norm);
  p.norm_type = layer->norm_type == 0 ? 2 : static_cast<double>(layer->norm_type);
  if (!(p.max_norm >= 0)) fail_invalid("%s: max_norm is %g, expected 0 (none) or more", kOp, p.max_norm);
  if (!(p.norm_type > 0)) fail_invalid("%s: norm_type is %g, expected 0 (means 2) or more", kOp, p.norm_type);
  const unsigned flags = static_cast<unsigned>(layer->flags);
  if (flags > BNNSEmbeddingFlagScaleGradientByFrequency) {
    fail_invalid("%s: flags is 0x%x, expected 0 or BNNSEmbeddingFlagScaleGradientByFrequency (0x1)", kOp, flags);
  }
  p.by_frequency = flags != 0;
  return p;
}

std::string EmbeddingProblem::text() const {
  return std::string(kOp) + " " + x.text() + " of " + dictionary.text();
}

double embedding_factor(const EmbeddingProblem& p, const void* item) noexcept {
  const Tensor shape = axes_of(p.dictionary, 0, p.item_rank, p.dictionary, 0);
  const Elements lens(shape);
  float buffer[kBlock];
  double sum = 0;
  for (size_t i = 0; i < p.item_count; i += kBlock) {
    const size_t n = std::min(kBlock, p.item_count - i);
    const float* v = lens.read(item, i, n, buffer);
    for (size_t k = 0; k < n; ++k) {
      const double size = std::fabs(static_cast<double>(v[k]));
      if (std::isinf(p.norm_type)) {
        sum = std::max(sum, size);
      } else {
        sum += p.norm_type == 2 ? size * size : p.norm_type == 1 ? size : std::pow(size, p.norm_type);
      }
    }
  }
  const double norm = std::isinf(p.norm_type) || p.norm_type == 1 ? sum
                      : p.norm_type == 2                          ? std::sqrt(sum)
                                                                  : std::pow(sum, 1 / p.norm_type);
  return norm > p.max_norm ? p.max_norm / norm : 1;
}

EmbeddingFilter::EmbeddingFilter(const Options& options, const EmbeddingProblem& problem)
    : Filter(kKind, options),
      problem_(problem),
      dictionary_(problem.dictionary, options, "the dictionary"),
      scratch_(options) {}

void EmbeddingFilter::check_indices(const void* in, size_t batch, size_t in_stride) const {
  const EmbeddingProblem& p = problem_;
  const Elements x(p.x);
  for (size_t b = 0; b < batch; ++b) {
    for (size_t i = 0; i < p.x.count; ++i) {
      const int64_t index = load_integer(p.x, in, b * in_stride + x.offset(i));
      if (index < 0 || static_cast<uint64_t>(index) >= p.items) {
        fail_invalid("%s: index %zu of sample %zu is %lld, expected 0 to %zu", kOp, i, b, static_cast<long long>(index),
                     p.items - 1);
      }
    }
  }
}

void EmbeddingFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const EmbeddingProblem& p = problem_;
  const BatchPair pair = forward_pair(batch, p.x, in, in_stride, p.y, out, out_stride, kOp);
  if (batch == 0) return;
  const Tensor& dictionary = dictionary_.tensor();
  check_disjoint(out, batch_bytes(batch, pair.to_stride, p.y, kOp, "out_stride"), "out", dictionary.data,
                 dictionary.span_bytes(), "dictionary", kOp);
  check_indices(in, batch, pair.from_stride);

  const Places places(p, dictionary, p.y);
  const bool same = p.y.type == dictionary.type && p.max_norm == 0;
  const bool stretch = same && is_one_stretch(places.item_from, places.item_to);
  const size_t element = type_bytes(p.y.type), item_stride = dictionary.stride[p.item_rank];
  const size_t total = checked_mul(p.x.count, batch, kOp);
  const size_t group = std::max<size_t>(1, kTaskElements / p.item_count), tasks = div_up(total, group);
  parallel_for(tasks, threads_for(options_.n_threads, tasks, total * p.item_count), [&](size_t task, size_t) {
    float buffer[kBlock], y_buffer[kBlock];
    for (size_t at = task * group; at < std::min(total, (task + 1) * group); ++at) {
      const size_t b = at / p.x.count, i = at % p.x.count;
      const auto index = static_cast<size_t>(load_integer(p.x, in, b * pair.from_stride + places.x.offset(i)));
      void* to = element_at(out, p.y.type, b * pair.to_stride + places.positions.offset(i));
      const void* from = element_at(static_cast<const void*>(dictionary.data), dictionary.type, index * item_stride);
      const bool zero = index == p.padding;
      if (stretch) {
        zero ? std::memset(to, 0, p.item_count * element) : std::memcpy(to, from, p.item_count * element);
        continue;
      }
      if (same && !is_float(p.y.type)) {  // bits as they are, element by element
        for (size_t k = 0; k < p.item_count; ++k) {
          void* y = element_at(to, p.y.type, places.to.offset(k));
          zero ? std::memset(y, 0, element)
               : std::memcpy(y, element_at(from, dictionary.type, places.from.offset(k)), element);
        }
        continue;
      }
      const float factor = p.max_norm == 0 || zero ? 1.0f : static_cast<float>(embedding_factor(p, from));
      for (size_t k = 0; k < p.item_count; k += kBlock) {
        const size_t n = std::min(kBlock, p.item_count - k);
        const float* v = places.from.read(from, k, n, buffer);
        float* y = places.to.target(to, k, y_buffer);
        for (size_t j = 0; j < n; ++j) y[j] = zero ? 0 : factor * v[j];
        places.to.write(to, k, n, y);
      }
    }
  });
}

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
    check_indices(call.in, call.batch, in_stride);
  }

  // Positions sorted by index (a counting sort keeps their order), so that every row of the gradient is one sum.
  const Places places(p, to, dy);
  const size_t total = checked_mul(p.x.count, call.batch, kOp);
  const size_t entries = checked_add(checked_add(p.items, 1, kOp), total, kOp);
  const ScratchShelf::Lease lease(scratch_, checked_mul(entries, sizeof(size_t), kOp));
  size_t* first = lease.as<size_t>();
  size_t* sorted = first + p.items + 1;
  const auto index_of = [&](size_t at) {
    const size_t sample = at / p.x.count * in_stride;
    return static_cast<size_t>(load_integer(p.x, call.in, sample + places.x.offset(at % p.x.count)));
  };
  std::fill_n(first, p.items + 1, size_t{0});
  for (size_t at = 0; at < total; ++at) ++first[index_of(at) + 1];
  for (size_t k = 0; k < p.items; ++k) first[k + 1] += first[k];
  for (size_t at = 0; at < total; ++at) sorted[first[index_of(at)]++] = at;
  for (size_t k = p.items; k > 0; --k) first[k] = first[k - 1];
  first[0] = 0;

  const size_t group = std::max<size_t>(1, kTaskElements / p.item_count), tasks = div_up(p.items, group);
  const size_t work = (to.accumulate ? 0 : p.dictionary.count) + total * p.item_count;
  parallel_for(tasks, threads_for(options_.n_threads, tasks, work), [&](size_t task, size_t) {
    float buffer[kBlock], sum[kBlock];
    double total[kBlock];  // of an index that stands at more than kSumRows positions
    for (size_t k = task * group; k < std::min(p.items, (task + 1) * group); ++k) {
      const bool none = first[k] == first[k + 1] || k == p.padding;
      if (none && to.accumulate) continue;
      void* row = element_at(to.data, to.type, k * to.stride[p.item_rank]);
      const float share = p.by_frequency && !none ? 1.0f / static_cast<float>(first[k + 1] - first[k]) : 1.0f;
      for (size_t e = 0; e < p.item_count; e += kBlock) {
        const size_t n = std::min(kBlock, p.item_count - e);
        const bool is_long = first[k + 1] - first[k] > kSumRows && !none;
        std::fill_n(sum, n, 0.0f);
        if (is_long) std::fill_n(total, n, 0.0);
        for (size_t s = first[k]; s < first[k + 1] && !none; ++s) {
          const size_t at = sorted[s];
          const size_t offset = at / p.x.count * dy_stride + places.positions.offset(at % p.x.count);
          const float* g = places.to.read(element_at(static_cast<const void*>(dy.data), dy.type, offset), e, n, buffer);
          add_row(g, n, sum);
          if (is_long && ((s - first[k]) % kSumRows == kSumRows - 1 || s + 1 == first[k + 1])) {
            move_sums(sum, n, total);
          }
        }
        if (is_long) round_sums(total, n, sum);
        for (size_t j = 0; j < n && p.by_frequency; ++j) sum[j] *= share;
        if (to.accumulate) {
          places.from.accumulate(row, e, n, sum);
        } else {
          float* target = places.from.target(row, e, sum);
          if (target != sum) std::copy(sum, sum + n, target);
          places.from.write(row, e, n, target);
        }
      }
    }
  });
}

}  // namespace bnns
