// The table of the GEMM core: see implementations.h.

#include "src/gemm/implementations.h"

#include "src/gemm/skinny/skinny.h"
#include "src/gemm/tile_plan.h"

namespace bnns::detail {

constexpr Vectors kRows = Vectors::rows, kColumns = Vectors::columns;

const GemmImplementation kGemmImplementations[kGemmEntries] = {
    {"gemm/skinny/rank_one", "k = 1, more than one row and column: the outer product", accepts_rank_one, run_rank_one,
     rank_one_workspace_floats, false},
    {"gemm/skinny/dot/rows", "at most 9 rows of A (3 where k < 32), B contiguous along k: dot products",
     accepts_dot<kRows>, run_dot<kRows>, dot_workspace_floats<kRows>, false},
    {"gemm/skinny/axpy/rows", "1 row of A, B contiguous along n: axpy; from 128 K elements on in up to 8 slices of k",
     accepts_axpy<kRows>, run_axpy<kRows>, axpy_workspace_floats<kRows>, false},
    {"gemm/skinny/dot/columns", "at most 9 columns of B (3 where k < 32), A contiguous along k: dot products",
     accepts_dot<kColumns>, run_dot<kColumns>, dot_workspace_floats<kColumns>, false},
    {"gemm/skinny/axpy/columns", "1 column of B, A contiguous along m, C too: axpy, sliced likewise",
     accepts_axpy<kColumns>, run_axpy<kColumns>, axpy_workspace_floats<kColumns>, false},
    {"gemm/amx", "two bf16 operands, AMX: pairs, 32 x 32 in tile registers", accepts_amx, run_amx, amx_workspace_floats,
     true},
    {"gemm/bf16", "two bf16 operands, AVX-512 BF16: pairs, 14 x 32 in registers", accepts_bf16, run_bf16,
     bf16_workspace_floats, true},
    {"gemm/tiles", "everything else: packed panels, register tile", accepts_any<GemmCall>, run_tiles,
     tiles_workspace_floats, true},
};

}  // namespace bnns::detail
