// The blocked product with each of its kernels: floats of any operand, and pairs of bf16 on AVX-512 BF16 and AMX.
#include <algorithm>

#include "src/gemm/tile_plan.h"

namespace bnns::detail {
namespace {

bool is_bf16(const Lens& lens) {
  return lens.strided() && lens.type == FloatType::bf16;
}

// One block. A is read in place, and B where its rows are contiguous; else a panel at a time is packed.
void run_small_tiles(const GemmCall& call, float* panel) {
  const TileKernels kernels = tile_kernels(call.isa);
  const size_t width = kernels.columns;
  const Range rows{0, call.m}, columns{0, call.n}, depth{0, call.k};
  GemmBlock g;
  g.depth = call.k;
  g.set_rows(call.m, kernels.rows);
  const float* const a = static_cast<const float*>(call.a.data);
  if (call.a.depth_stride == 1) {
    g.set_a_rows(a, call.a.row_stride);
  } else {
    g.set_a_tiles(a, g.tile_rows);
    g.a_stride = call.a.depth_stride;
  }
  g.accumulate = call.prepare(rows, columns);
  const size_t in_place = !call.b.rows_contiguous() ? 0 : kernels.masks ? call.n : call.n - call.n % width;
  if (in_place != 0) {
    g.columns = in_place;
    g.set_b(static_cast<const float*>(call.b.data), static_cast<ptrdiff_t>(width), call.b.depth_stride);
    g.set_c(call.c, call.c_stride);
    kernels.block(g);
  }
  for (size_t j = in_place; j < call.n; j += width) {
    const Range part{j, std::min(call.n, j + width)};
    pack(call.b, part, depth, {panel, width, kSmallFloats});
    g.columns = part.size();
    g.set_b(panel, 0, static_cast<ptrdiff_t>(width));
    g.set_c(call.c + j, call.c_stride);
    kernels.block(g);
  }
  call.finish(rows, columns);
}

}  // namespace

bool accepts_amx(const GemmCall& call) {
  return call.isa >= Isa::amx && is_bf16(call.a) && is_bf16(call.b);
}
void run_amx(const GemmCall& call, float* workspace) {
  run_tile_plan(call, make_tile_plan(call, true, Isa::amx), workspace);
}
size_t amx_workspace_floats(const GemmCall& call) {
  return make_tile_plan(call, true, Isa::amx).floats();
}

bool accepts_bf16(const GemmCall& call) {
  return call.isa >= Isa::avx512_bf16 && is_bf16(call.a) && is_bf16(call.b);
}
void run_bf16(const GemmCall& call, float* workspace) {
  run_tile_plan(call, make_tile_plan(call, true, Isa::avx512_bf16), workspace);
}
size_t bf16_workspace_floats(const GemmCall& call) {
  return make_tile_plan(call, true, Isa::avx512_bf16).floats();
}

void run_tiles(const GemmCall& call, float* workspace) {
  if (is_small(call)) return run_small_tiles(call, workspace);
  run_tile_plan(call, make_tile_plan(call, false, call.isa), workspace);
}
size_t tiles_workspace_floats(const GemmCall& call) {
  return make_tile_plan(call, false, call.isa).floats();
}

}  // namespace bnns::detail
