#include "src/ops/tile/tile.h"

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/engine/copy/copy.h"
#include "src/ops/reduction/reduction.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "tile";

Tensor read_operand(const BNNSNDArrayDescriptor* d, const char* field) {
  const Tensor t = resolve_with_data(d, kOp, field);
  check_plain(t, kOp, field);
  return t;
}

void check_multiples(const Tensor& x, const char* x_name, const Tensor& y, const char* y_name) {
  if (y.rank != x.rank) fail_invalid("%s: %s has rank %zu, expected %zu as %s", kOp, y_name, y.rank, x.rank, x_name);
  for (size_t k = 0; k < x.rank; ++k) {
    if (y.size[k] % x.size[k] != 0) {
      fail_invalid("%s: %s.size[%zu] is %zu, expected a multiple of %s.size[%zu] = %zu", kOp, y_name, k, y.size[k],
                   x_name, k, x.size[k]);
    }
  }
  check_disjoint(y.data, y.span_bytes(), y_name, x.data, x.span_bytes(), x_name, kOp);
}

}  // namespace

BatchPair make_tile_problem(const BNNSNDArrayDescriptor* x, const BNNSNDArrayDescriptor* y) {
  BatchPair p{1, read_operand(x, "input"), read_operand(y, "output"), 0, 0};
  if (p.from.type != p.to.type || p.from.scale != p.to.scale || p.from.bias != p.to.bias) {
    fail_unsupported("%s: output is %s, expected the type, scale and bias of input, which is %s", kOp,
                     type_name(p.to.type), type_name(p.from.type));
  }
  check_multiples(p.from, "input", p.to, "output");
  check_distinct(p.to, kOp, "output");
  return p;
}

void tile_forward(const BatchPair& p, size_t n_threads) {
  if (recording()) count_work(product_of(p.from.span_bytes() + p.to.span_bytes()));
  CopyProblem copy;
  copy.from = p.from;
  copy.to = p.to;
  // Every axis is two: the input's, and the copies, which do not move in the input.
  CopyAxis axes[2 * kMaxRank];
  for (size_t k = 0; k < p.from.rank; ++k) {
    const size_t n = p.from.size[k];
    const ptrdiff_t from = static_cast<ptrdiff_t>(p.from.stride[k]), to = static_cast<ptrdiff_t>(p.to.stride[k]);
    axes[2 * k] = CopyAxis{n, from, to};
    axes[2 * k + 1] = CopyAxis{p.to.size[k] / n, 0, to * static_cast<ptrdiff_t>(n)};
  }
  set_copy_axes(&copy, axes, 2 * p.from.rank);
  copy_tensor(copy, n_threads);
}

BatchPair make_tile_backward_problem(const BNNSNDArrayDescriptor* dx, const BNNSNDArrayDescriptor* dy) {
  BatchPair p{1, read_operand(dy, "out_delta"), read_operand(dx, "in_delta"), 0, 0};
  for (const auto& [t, name] : {std::pair{&p.from, "out_delta"}, {&p.to, "in_delta"}}) {
    if (!is_float(t->type)) {
      fail_unsupported("%s: %s has type %s; gradients are f32, f16 or bf16", kOp, name, type_name(t->type));
    }
  }
  check_multiples(p.to, "in_delta", p.from, "out_delta");
  check_distinct(p.to, kOp, "in_delta");
  return p;
}

void tile_backward(const BatchPair& p, const Options& options) {
  SumAxis axes[2 * kMaxRank];  // as forward: every axis is two, and the copies are summed
  for (size_t k = 0; k < p.to.rank; ++k) {
    const size_t n = p.to.size[k], from = p.from.stride[k];
    axes[2 * k] = {n, from, p.to.stride[k], false};
    axes[2 * k + 1] = {p.from.size[k] / n, from * n, 0, true};
  }
  ScratchShelf shelf(options);
  sum_axes(p.from, p.to, axes, 2 * p.to.rank, options.n_threads, shelf);
}

}  // namespace bnns
