// A few vectors against a matrix with contiguous depth: dot products, nothing packed but the vectors.
#include <algorithm>

#include "src/gemm/skinny/skinny.h"

namespace bnns::detail {
namespace {

constexpr size_t kMaxVectors = 9;   // above, the tile kernel wins although it packs
constexpr size_t kShortDepth = 32;  // below it, dot with four vectors and more spends its time joining lanes

bool is_plain_vector(const Lens& lens) {
  return lens.strided() && lens.type == FloatType::f32 && lens.depth_stride == 1;
}

}  // namespace

size_t SkinnyCall::packed_floats(const GemmCall& call) const {
  return is_plain_vector(vectors) ? 0 : count * packed_stride(call.k);
}

SkinnyBlock SkinnyCall::block(const GemmCall& call, float** memory) const {
  SkinnyBlock block;
  block.vectors = count;
  block.depth = call.k;
  block.w = matrix.data;
  block.type = matrix.type;
  block.y = call.c;
  block.y_vector_stride = are_columns ? 1 : call.c_stride;
  block.y_row_stride = are_columns ? call.c_stride : 1;
  if (is_plain_vector(vectors)) {
    block.x = static_cast<const float*>(vectors.data);
    block.x_stride = vectors.row_stride;
  } else {
    pack(vectors, {0, count}, {0, call.k}, {*memory, 1, packed_stride(call.k)});
    block.x = *memory;
    block.x_stride = static_cast<ptrdiff_t>(packed_stride(call.k));
    *memory += packed_floats(call);
  }
  return block;
}

template <Vectors side>
bool accepts_dot(const GemmCall& call) {
  const SkinnyCall s(call, side);
  return s.count <= kMaxVectors && s.matrix.depth_contiguous() && (s.count < 4 || call.k >= kShortDepth);
}

template <Vectors side>
size_t dot_workspace_floats(const GemmCall& call) {
  return SkinnyCall(call, side).packed_floats(call);
}

template <Vectors side>
void run_dot(const GemmCall& call, float* workspace) {
  const SkinnyCall s(call, side);
  SkinnyBlock block = s.block(call, &workspace);
  block.w_stride = s.matrix.row_stride;
  // Some 256 KB of the matrix per task.
  const bool small = s.rows * call.k <= 65536;
  const size_t step = small ? s.rows : round_up(std::max<size_t>(1, 65536 / call.k), 8);
  const size_t tasks = small ? 1 : div_up(s.rows, step);
  parallel_for(tasks, threads_of(call, tasks, call.m * call.n * call.k), [&](size_t task, size_t) {
    SkinnyBlock part = block;
    part.rows = {task * step, std::min(s.rows, (task + 1) * step)};
    const Range c_rows = s.c_rows(part.rows), c_columns = s.c_columns(part.rows);
    part.accumulate = call.prepare(c_rows, c_columns);
    skinny_dot(part);
    call.finish(c_rows, c_columns);
  });
}

template bool accepts_dot<Vectors::rows>(const GemmCall&);
template bool accepts_dot<Vectors::columns>(const GemmCall&);
template void run_dot<Vectors::rows>(const GemmCall&, float*);
template void run_dot<Vectors::columns>(const GemmCall&, float*);
template size_t dot_workspace_floats<Vectors::rows>(const GemmCall&);
template size_t dot_workspace_floats<Vectors::columns>(const GemmCall&);

}  // namespace bnns::detail
