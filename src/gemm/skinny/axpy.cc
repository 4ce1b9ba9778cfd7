// One vector against a matrix with contiguous rows. A slice of the depth reads long pieces of rows, as memory likes it,
// into a sum of its own; the slices are then added in order.
#include <algorithm>

#include "src/gemm/skinny/skinny.h"

namespace bnns::detail {
namespace {

constexpr size_t kFarSize = 1 << 19;    // elements of the matrix: not expected in cache
constexpr size_t kLeastColumns = 512;   // of a task
constexpr size_t kSliceSize = 1 << 17;  // elements of the matrix: from here on several threads are worth a second pass

size_t slices_of(const GemmCall& call, const SkinnyCall& s) {
  return s.rows * call.k >= kSliceSize ? std::clamp<size_t>(call.k / 64, 1, 8) : 1;
}

}  // namespace

template <Vectors side>
bool accepts_axpy(const GemmCall& call) {
  const SkinnyCall s(call, side);
  // y must be contiguous along the matrix's rows.
  return s.count == 1 && s.matrix.rows_contiguous() && (!s.are_columns || call.c_stride == 1);
}

template <Vectors side>
size_t axpy_workspace_floats(const GemmCall& call) {
  const SkinnyCall s(call, side);
  const size_t slices = slices_of(call, s);
  return s.packed_floats(call) + (slices > 1 ? slices * round_up(s.rows, 16) : 0);
}

template <Vectors side>
void run_axpy(const GemmCall& call, float* workspace) {
  const SkinnyCall s(call, side);
  SkinnyBlock block = s.block(call, &workspace);
  block.w_stride = s.matrix.depth_stride;
  block.w_far = s.rows * call.k >= kFarSize;
  float* const sums = workspace;
  const size_t slices = slices_of(call, s), stride = round_up(s.rows, 16);
  // Rows of the matrix are cut for the threads too: pieces of 2 KB and more.
  const size_t threads = threads_of(call, slices * div_up(s.rows, kLeastColumns), s.rows * call.k);
  const size_t wanted = round_up(div_up(s.rows * slices, 2 * threads), 64);
  const size_t step = threads <= 4 ? kAxpyColumns : std::clamp(wanted, kLeastColumns, kAxpyColumns);
  const size_t parts = div_up(s.rows, step), tasks = slices * parts;
  parallel_for(tasks, threads, [&](size_t task, size_t) {
    const size_t slice = task / parts, begin = slice * call.k / slices;
    SkinnyBlock part = block;
    part.rows = {task % parts * step, std::min(s.rows, (task % parts + 1) * step)};
    if (slices == 1) {
      part.accumulate = call.prepare(s.c_rows(part.rows), s.c_columns(part.rows));
      skinny_axpy(part);
      return call.finish(s.c_rows(part.rows), s.c_columns(part.rows));
    }
    part.depth = (slice + 1) * call.k / slices - begin;
    part.x += begin;
    part.w = static_cast<const char*>(part.w) + static_cast<ptrdiff_t>(begin * bytes_of(part.type)) * part.w_stride;
    part.y = sums + slice * stride;
    skinny_axpy(part);
  });
  if (slices == 1) return;
  const Range all{0, s.rows};
  const bool accumulate = call.prepare(s.c_rows(all), s.c_columns(all));
  add_rows(sums, stride, slices, s.rows, accumulate, call.c);
  call.finish(s.c_rows(all), s.c_columns(all));
}

template bool accepts_axpy<Vectors::rows>(const GemmCall&);
template bool accepts_axpy<Vectors::columns>(const GemmCall&);
template void run_axpy<Vectors::rows>(const GemmCall&, float*);
template void run_axpy<Vectors::columns>(const GemmCall&, float*);
template size_t axpy_workspace_floats<Vectors::rows>(const GemmCall&);
template size_t axpy_workspace_floats<Vectors::columns>(const GemmCall&);

}  // namespace bnns::detail
