#include "src/ops/embedding/embedding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/engine/copy/copy_row.h"
#include "src/filter/batch_pair.h"
#include "src/ops/embedding/embedding_places.h"
#include "src/tensor/distinct.h"
#include "src/tensor/with_integer.h"

namespace bnns {
namespace {

using namespace embedding;

constexpr const char* kOp = "embedding";
constexpr size_t kTaskElements = 16 * 1024;

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
  check_distinct(p.y, kOp, "o_desc");
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

// The indices of the batch, in the order of the positions; refuses the first that is out of range.
void EmbeddingFilter::read_indices(const void* in, size_t batch, size_t in_stride, size_t* to) const {
  const EmbeddingProblem& p = problem_;
  const Elements x(p.x);
  const bool dense = p.x.dense;
  with_integer(p.x.type, [&](auto t) {
    for (size_t b = 0; b < batch; ++b) {
      const auto* indices = static_cast<const decltype(t)*>(in) + b * in_stride;
      size_t* sample = to + b * p.x.count;
      bool bad = false;
      for (size_t i = 0; i < p.x.count; ++i) {
        sample[i] = static_cast<size_t>(indices[dense ? i : x.offset(i)]);  // a negative one becomes a large one
        bad |= sample[i] >= p.items;
      }
      if (!bad) continue;
      const size_t i = static_cast<size_t>(
          std::find_if(sample, sample + p.x.count, [&](size_t k) { return k >= p.items; }) - sample);
      fail_invalid("%s: index %zu of sample %zu is %lld, expected 0 to %zu", kOp, i, b,
                   static_cast<long long>(load_integer(p.x, in, b * in_stride + x.offset(i))), p.items - 1);
    }
  });
}

void EmbeddingFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const EmbeddingProblem& p = problem_;
  const BatchPair pair = forward_pair(batch, p.x, in, in_stride, p.y, out, out_stride, kOp);
  if (batch == 0) return;
  const Tensor& dictionary = dictionary_.tensor();
  check_disjoint(out, batch_bytes(batch, pair.to_stride, p.y, kOp, "out_stride"), "out", dictionary.data,
                 dictionary.span_bytes(), "dictionary", kOp);
  const size_t total = checked_mul(p.x.count, batch, kOp);
  const ScratchShelf::Lease lease(scratch_, checked_mul(total, sizeof(size_t), kOp));
  const size_t* indices = lease.as<size_t>();
  read_indices(in, batch, pair.from_stride, lease.as<size_t>());

  const Places places(p, dictionary, p.y);
  const bool same = p.y.type == dictionary.type && p.max_norm == 0;
  const bool stretch = same && is_one_stretch(places.item_from, places.item_to);
  const size_t element = type_bytes(p.y.type), bytes = p.item_count * element,
               item_stride = dictionary.stride[p.item_rank];
  const size_t group = std::max<size_t>(1, kTaskElements / p.item_count), tasks = div_up(total, group);
  parallel_for(tasks, threads_for(options_.n_threads, tasks, total * p.item_count), [&](size_t task, size_t) {
    float buffer[kBlock], y_buffer[kBlock];
    for (size_t at = task * group; at < std::min(total, (task + 1) * group); ++at) {
      const size_t index = indices[at];
      void* to = element_at(out, p.y.type, places.position(at, pair.to_stride));
      const void* from = element_at(static_cast<const void*>(dictionary.data), dictionary.type, index * item_stride);
      const bool zero = index == p.padding;
      if (stretch) {
        if (zero) {
          std::memset(to, 0, bytes);
        } else {
          copy_row(static_cast<const char*>(from), static_cast<char*>(to), bytes);
        }
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

}  // namespace bnns
