#include "src/ops/padding/padding.h"

#include <cstring>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "padding";

const char* mode_name(BNNSPaddingMode mode) {
  return mode == BNNSPaddingModeConstant ? "constant" : mode == BNNSPaddingModeReflect ? "reflect" : "symmetric";
}

}  // namespace

PaddingProblem make_padding_problem(const BNNSLayerParametersPadding* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersPadding", kOp);
  PaddingProblem p;
  p.x = resolve(layer->i_desc, kOp, "i_desc");
  p.y = resolve(layer->o_desc, kOp, "o_desc");
  check_distinct(p.y, kOp, "o_desc");
  check_plain(p.x, kOp, "i_desc");
  check_plain(p.y, kOp, "o_desc");
  p.mode = layer->padding_mode;
  if (p.mode != BNNSPaddingModeConstant && p.mode != BNNSPaddingModeReflect && p.mode != BNNSPaddingModeSymmetric) {
    fail_invalid("%s: padding_mode is %s", kOp, enum_text(p.mode).text);
  }
  if (p.y.rank != p.x.rank) {
    fail_invalid("%s: o_desc has rank %zu, expected %zu as i_desc", kOp, p.y.rank, p.x.rank);
  }
  if (p.y.type != p.x.type || p.y.scale != p.x.scale || p.y.bias != p.x.bias) {
    fail_unsupported("%s: o_desc is %s, expected the type, scale and bias of i_desc, which is %s", kOp,
                     type_name(p.y.type), type_name(p.x.type));
  }
  for (size_t k = 0; k < p.x.rank; ++k) {
    p.before[k] = layer->padding_size[k][0];
    p.after[k] = layer->padding_size[k][1];
    const size_t extent = p.x.size[k];
    for (size_t side : {0, 1}) {
      if (layer->padding_size[k][side] > p.y.size[k]) {  // so that no sum below wraps
        fail_invalid("%s: padding_size[%zu][%zu] is %zu, expected at most %zu = o_desc.size[%zu]", kOp, k, side,
                     layer->padding_size[k][side], p.y.size[k], k);
      }
    }
    const size_t want = p.before[k] + extent + p.after[k];
    if (p.y.size[k] != want) {
      fail_invalid("%s: o_desc.size[%zu] is %zu, expected %zu = %zu + %zu + %zu", kOp, k, p.y.size[k], want,
                   p.before[k], extent, p.after[k]);
    }
    if (p.mode == BNNSPaddingModeConstant) continue;
    const size_t most = p.mode == BNNSPaddingModeReflect ? extent - 1 : extent;
    for (size_t side : {0, 1}) {
      if (layer->padding_size[k][side] > most) {
        fail_invalid("%s: padding_size[%zu][%zu] is %zu, expected at most %zu: i_desc.size[%zu] is %zu and the mode %s",
                     kOp, k, side, layer->padding_size[k][side], most, k, extent, mode_name(p.mode));
      }
    }
  }
  // Four bytes are given; an 8-byte element gets zeros above them.
  std::memcpy(p.fill, &layer->padding_value, sizeof layer->padding_value);
  return p;
}

std::string PaddingProblem::text() const {
  std::string result = std::string(kOp) + " " + x.text() + " " + mode_name(mode);
  for (size_t k = 0; k < x.rank; ++k) {
    result.append(" ").append(std::to_string(before[k])).append(",").append(std::to_string(after[k]));
  }
  return result;
}

ptrdiff_t padding_source(BNNSPaddingMode mode, size_t extent, size_t before, size_t o) {
  const ptrdiff_t n = static_cast<ptrdiff_t>(extent), i = static_cast<ptrdiff_t>(o) - static_cast<ptrdiff_t>(before);
  if (i >= 0 && i < n) return i;
  if (mode == BNNSPaddingModeConstant) return -1;
  const ptrdiff_t edge = mode == BNNSPaddingModeSymmetric ? 1 : 0;  // how often the mirror repeats the edge
  return i < 0 ? -i - edge : 2 * (n - 1) - i + edge;
}

PaddingFilter::PaddingFilter(const Options& options, const PaddingProblem& problem)
    : Filter(kKind, options), problem_(problem), scratch_(options) {
  for (size_t k = 0; k < problem.x.rank; ++k) {
    if (problem.before[k] == 0 && problem.after[k] == 0) continue;
    const size_t in = problem.x.size[k], out = problem.y.size[k];
    tables_.axis[k] = AxisTable(options, in, out, false, kOp, [&](size_t o) {
      return Tap{padding_source(problem.mode, in, problem.before[k], o), 0};
    });
  }
}

void PaddingFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const BatchPair pair = forward_pair(batch, problem_.x, in, in_stride, problem_.y, out, out_stride, kOp);
  if (pair.batch) move_elements(tables_, MapDirection::forward, pair, problem_.fill, options_.n_threads);
}

void PaddingFilter::backward(const BackwardCall& call) {
  const BatchPair pair = backward_pair(call, problem_.x, problem_.y, kOp);
  if (pair.batch == 0) return;
  if (tables_.moves(MapDirection::backward) && pair.from.type == pair.to.type && !pair.to.accumulate) {
    constexpr unsigned char kNoFill[8] = {};  // constants: every element went to one place
    return move_elements(tables_, MapDirection::backward, pair, kNoFill, options_.n_threads);
  }
  sum_elements(tables_, MapDirection::backward, pair, options_.n_threads, scratch_);
}

}  // namespace bnns
