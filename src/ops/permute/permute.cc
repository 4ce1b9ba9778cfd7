#include "src/ops/permute/permute.h"

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/engine/copy/copy.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "permute";

// Pairs axis k of y with axis permutation[k] of x, and the samples, and copies.
void copy_permuted(const PermuteProblem& p, const BatchPair& pair, bool backward, size_t n_threads) {
  if (pair.batch == 0) return;
  if (recording()) count_work(product_of(pair.batch, pair.from.span_bytes() + pair.to.span_bytes()));
  CopyProblem copy;
  copy.from = pair.from;
  copy.to = pair.to;
  copy.accumulate = backward && pair.to.accumulate;
  copy.kind = pair.from.type == pair.to.type && !copy.accumulate ? CopyKind::bytes : CopyKind::values;
  const auto step = [](size_t stride) { return static_cast<ptrdiff_t>(stride); };
  CopyAxis axes[kMaxRank + 1];
  for (size_t k = 0; k < p.y.rank; ++k) {
    const size_t from = backward ? k : p.permutation[k], to = backward ? p.permutation[k] : k;
    axes[k] = CopyAxis{p.y.size[k], step(pair.from.stride[from]), step(pair.to.stride[to])};
  }
  axes[p.y.rank] = CopyAxis{pair.batch, step(pair.from_stride), step(pair.to_stride)};
  set_copy_axes(&copy, axes, p.y.rank + 1);
  copy_tensor(copy, n_threads);
}

}  // namespace

PermuteProblem make_permute_problem(const BNNSLayerParametersPermute* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersPermute", kOp);
  PermuteProblem p;
  p.x = resolve(layer->i_desc, kOp, "i_desc");
  p.y = resolve(layer->o_desc, kOp, "o_desc");
  check_distinct(p.y, kOp, "o_desc");
  check_plain(p.x, kOp, "i_desc");
  check_plain(p.y, kOp, "o_desc");
  if (p.y.rank != p.x.rank) {
    fail_invalid("%s: o_desc has rank %zu, expected %zu as i_desc", kOp, p.y.rank, p.x.rank);
  }
  if (p.y.type != p.x.type || p.y.scale != p.x.scale || p.y.bias != p.x.bias) {
    fail_unsupported("%s: o_desc is %s, expected the type, scale and bias of i_desc, which is %s", kOp,
                     type_name(p.y.type), type_name(p.x.type));
  }
  unsigned seen = 0;
  for (size_t k = 0; k < p.x.rank; ++k) {
    const size_t axis = layer->permutation[k];
    if (axis >= p.x.rank) {
      fail_invalid("%s: permutation[%zu] is %zu, expected less than the rank %zu", kOp, k, axis, p.x.rank);
    }
    if (seen >> axis & 1) fail_invalid("%s: permutation[%zu] is %zu, which is there twice", kOp, k, axis);
    seen |= 1u << axis;
    p.permutation[k] = static_cast<uint8_t>(axis);
    if (p.y.size[k] != p.x.size[axis]) {
      fail_invalid("%s: o_desc.size[%zu] is %zu, expected %zu = i_desc.size[%zu]", kOp, k, p.y.size[k], p.x.size[axis],
                   axis);
    }
  }
  return p;
}

std::string PermuteProblem::text() const {
  std::string result = std::string(kOp) + " " + x.text() + " axes ";
  for (size_t k = 0; k < x.rank; ++k) result.append(k ? "," : "").append(std::to_string(permutation[k]));
  return result;
}

void PermuteFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const BatchPair pair = forward_pair(batch, problem_.x, in, in_stride, problem_.y, out, out_stride, kOp);
  copy_permuted(problem_, pair, false, options_.n_threads);
}

void PermuteFilter::backward(const BackwardCall& call) {
  copy_permuted(problem_, backward_pair(call, problem_.x, problem_.y, kOp), true, options_.n_threads);
}

}  // namespace bnns
