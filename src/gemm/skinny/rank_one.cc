// k = 1: the outer product, which writes rows of C from end to end.
#include <algorithm>
#include <utility>

#include "src/gemm/skinny/skinny.h"

namespace bnns::detail {
namespace {

bool is_plain_row(const Lens& lens) {
  return lens.type == FloatType::f32 && lens.row_stride == 1;
}

// The factors x (m) and y (n) as plain vectors along their rows.
const float* factor(const Lens& lens, size_t size, float* workspace) {
  if (is_plain_row(lens)) return static_cast<const float*>(lens.data);
  Lens turned = lens;
  std::swap(turned.row_stride, turned.depth_stride);
  pack(turned, {0, 1}, {0, size}, {workspace, 1, packed_stride(size)});
  return workspace;
}

}  // namespace

bool accepts_rank_one(const GemmCall& call) {
  return call.k == 1 && call.m > 1 && call.n > 1 && call.a.strided() && call.b.strided();
}

size_t rank_one_workspace_floats(const GemmCall& call) {
  return is_plain_row(call.a) && is_plain_row(call.b) ? 0 : packed_stride(call.m) + packed_stride(call.n);
}

void run_rank_one(const GemmCall& call, float* workspace) {
  const float* const x = factor(call.a, call.m, workspace);
  const float* const y = factor(call.b, call.n, workspace ? workspace + packed_stride(call.m) : nullptr);
  const bool stream = can_stream(call);
  const size_t rows = std::max<size_t>(1, div_up(65536, call.n));
  const size_t tasks = div_up(call.m, rows);
  parallel_for(tasks, threads_of(call, tasks, call.m * call.n), [&](size_t task, size_t) {
    const Range part{task * rows, std::min(call.m, (task + 1) * rows)};
    const bool accumulate = call.prepare(part, {0, call.n});
    rank_one(part, call.n, x, y, call.c, call.c_stride, accumulate, stream);
    call.finish(part, {0, call.n});
  });
}

}  // namespace bnns::detail
