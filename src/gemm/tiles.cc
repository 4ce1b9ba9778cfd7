// The blocked product with each of its kernels: floats of any operand, and pairs of bf16 on AVX-512 BF16 and AMX.
#include "src/gemm/tile_plan.h"

namespace bnns::detail {
namespace {

bool is_bf16(const Lens& lens) {
  return lens.strided() && lens.type == FloatType::bf16;
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
  run_tile_plan(call, make_tile_plan(call, false, call.isa), workspace);
}
size_t tiles_workspace_floats(const GemmCall& call) {
  return make_tile_plan(call, false, call.isa).floats();
}

}  // namespace bnns::detail
