#include "src/ops/resize/resize.h"

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "resize";
constexpr size_t kLinearAxes = 2;

bool same_meaning(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.scale == b.scale && a.bias == b.bias;
}

void check_sizes(const ResizeProblem& p) {
  size_t changed = 0;
  for (size_t k = 0; k < p.x.rank; ++k) changed += p.y.size[k] != p.x.size[k];
  if (p.method == BNNSInterpolationMethodLinear && changed > kLinearAxes) {
    fail_unsupported("%s: %zu sizes of o_desc differ from i_desc, expected at most %zu for linear interpolation", kOp,
                     changed, kLinearAxes);
  }
}

}  // namespace

ResizeProblem make_resize_problem(const BNNSLayerParametersResize* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersResize", kOp);
  ResizeProblem p;
  p.method = layer->method;
  p.align_corners = layer->align_corners;
  if (p.method != BNNSInterpolationMethodNearest && p.method != BNNSInterpolationMethodLinear) {
    fail_invalid("%s: method is %s, expected BNNSInterpolationMethodNearest or BNNSInterpolationMethodLinear", kOp,
                 enum_text(p.method).text);
  }
  p.x = resolve(layer->i_desc, kOp, "i_desc");
  p.y = resolve(layer->o_desc, kOp, "o_desc");
  check_distinct(p.y, kOp, "o_desc");
  check_plain(p.x, kOp, "i_desc");
  check_plain(p.y, kOp, "o_desc");
  if (p.y.rank != p.x.rank) {
    fail_invalid("%s: o_desc has rank %zu, expected %zu as i_desc", kOp, p.y.rank, p.x.rank);
  }
  check_sizes(p);
  for (size_t k = 0; k < p.x.rank; ++k) {
    size_t product;  // o * in below cannot wrap
    if (__builtin_mul_overflow(p.x.size[k], p.y.size[k], &product)) {
      fail_invalid(
          "%s: i_desc.size[%zu] is %zu and o_desc.size[%zu] is %zu, too large: their product does not fit in 64 bits",
          kOp, k, p.x.size[k], k, p.y.size[k]);
    }
  }
  const bool floats = is_float(p.x.type) && is_float(p.y.type);
  if (!floats && (p.method == BNNSInterpolationMethodLinear || !same_meaning(p.x, p.y))) {
    fail_unsupported("%s: i_desc is %s and o_desc %s; expected f32, f16 or bf16%s", kOp, type_name(p.x.type),
                     type_name(p.y.type),
                     p.method == BNNSInterpolationMethodLinear ? " for linear interpolation" : ", or the same type");
  }
  return p;
}

std::string ResizeProblem::text() const {
  const char* how = method == BNNSInterpolationMethodNearest ? " nearest" : " linear";
  const char* where = method == BNNSInterpolationMethodNearest ? "" : align_corners ? " corners" : " half-pixel";
  return std::string(kOp) + " " + x.text() + " to " + y.text() + how + where;
}

Tap resize_tap(BNNSInterpolationMethod method, bool align_corners, size_t in, size_t out, size_t o) {
  const double i = static_cast<double>(o), n = static_cast<double>(in), m = static_cast<double>(out);
  if (method == BNNSInterpolationMethodNearest) {
    return {static_cast<ptrdiff_t>(o * in / out), 0};  // in integers: no rounding moves a boundary
  }
  const double corners = out == 1 ? 0 : i * (n - 1) / (m - 1), centres = (i + 0.5) * n / m - 0.5;
  const double at = align_corners ? corners : std::clamp(centres, 0.0, n - 1);
  const size_t index = std::min(static_cast<size_t>(at), in - 1);
  const float fraction = static_cast<float>(at - static_cast<double>(index));
  return {static_cast<ptrdiff_t>(index), index + 1 < in ? fraction : 0};
}

ResizeFilter::ResizeFilter(const Options& options, const ResizeProblem& problem)
    : Filter(kKind, options), problem_(problem), scratch_(options) {
  for (size_t k = 0; k < problem.x.rank; ++k) {
    const size_t in = problem.x.size[k], out = problem.y.size[k];
    if (in == out) continue;
    const bool linear = problem.method == BNNSInterpolationMethodLinear;
    tables_.axis[k] = AxisTable(options, in, out, linear, kOp, [&](size_t o) {
      return resize_tap(problem.method, problem.align_corners, in, out, o);
    });
  }
}

void ResizeFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const BatchPair pair = forward_pair(batch, problem_.x, in, in_stride, problem_.y, out, out_stride, kOp);
  if (pair.batch == 0) return;
  if (problem_.method == BNNSInterpolationMethodNearest && same_meaning(problem_.x, problem_.y)) {
    constexpr unsigned char kNoFill[8] = {};
    move_elements(tables_, MapDirection::forward, pair, kNoFill, options_.n_threads);
  } else {
    sum_elements(tables_, MapDirection::forward, pair, options_.n_threads, scratch_);
  }
}

void ResizeFilter::backward(const BackwardCall& call) {
  const BatchPair pair = backward_pair(call, problem_.x, problem_.y, kOp);
  if (pair.batch == 0) return;
  if (tables_.moves(MapDirection::backward) && pair.from.type == pair.to.type && !pair.to.accumulate) {
    constexpr unsigned char kZero[8] =
        {};  // nearest, and no element was read twice: those that were not have no gradient
    return move_elements(tables_, MapDirection::backward, pair, kZero, options_.n_threads);
  }
  sum_elements(tables_, MapDirection::backward, pair, options_.n_threads, scratch_);
}

}  // namespace bnns
