// The tables of convolution's algorithms.

#include "src/ops/convolution/implementations.h"

#include "src/ops/convolution/bf16/bf16.h"
#include "src/ops/convolution/common/fill.h"
#include "src/ops/convolution/depthwise/rows.h"
#include "src/ops/convolution/depthwise/tile.h"
#include "src/ops/convolution/few/few.h"
#include "src/ops/convolution/few/lanes.h"
#include "src/ops/convolution/gemm/dw.h"
#include "src/ops/convolution/gemm/patches.h"
#include "src/ops/convolution/integer.h"
#include "src/ops/convolution/strided.h"
#include "src/ops/convolution/winograd/dw.h"
#include "src/ops/convolution/winograd/gather.h"
#include "src/ops/convolution/winograd/transposed.h"

namespace bnns {

const MapImplementation kMaps[] = {
    {"convolution/common/fill", "no tap reaches the source", accepts_fill, run_fill, nullptr},
    {"convolution/depthwise/tile", "groups = I = O, 3x3, stride 1 or 2, dilation 1", accepts_depthwise_tile,
     run_depthwise_tile, depthwise_parts},
    {"convolution/depthwise/rows", "groups = I = O", accepts_depthwise_rows, run_depthwise_rows, depthwise_parts},
    {"convolution/bf16/amx",
     "AMX; bf16 source without act', bf16 weights (not Pack32), no sink; 2 to 64 taps or a stride; pairs of channels "
     "fill steps of 16 by half",
     accepts_bf16_amx, run_bf16_amx, nullptr},
    {"convolution/bf16/patches",
     "AVX-512 BF16 or AMX; the same types; with AVX-512 BF16 not 3x3 that winograd/gather takes", accepts_bf16_patches,
     run_bf16_patches, nullptr},
    {"convolution/winograd/transposed",
     "up; the kernels of winograd/gather, where that does not accept; 25 (3x3: 32) to 512 target channels, or 12 to 24 "
     "and 8 samples (more than 3x3), 32 to 512 source channels; a whole tile along both axes, every target pixel "
     "reached",
     accepts_winograd_transposed, run_winograd_transposed, nullptr},
    {"convolution/winograd/gather",
     "one group, dilation 1. 3x3, stride 1: 32 channels on both sides, 36 pixels. With FMA: 4x4 and 5x5, stride 1, "
     "and, "
     "down, 7x7 to 10x10, stride 2: 16 target and 12 source channels (stride 2: 3), 256 pairs of them, 16 tiles",
     accepts_winograd_gather, run_winograd_gather, winograd_gather_parts},
    {"convolution/few/lanes",
     "down, along x stride 2, or 1 with rows of at most 16 pixels, dilation 1, no sink; up to 64 target channels a "
     "group, at most an eighth less than a multiple of 16; 64 products a sum; 16K weights a group at most",
     accepts_few_lanes, run_few_lanes, nullptr},
    {"convolution/few/transposed",
     "up, where few/tile accepts; source planes of at most 1024 pixels; 8 source channels and a target larger by a "
     "quarter, or one or two target channels",
     accepts_few_transposed, run_few_transposed, nullptr},
    {"convolution/few/fold", "where few/tile accepts; one or two target channels, 3 to 8 columns of taps",
     accepts_few_fold, run_few_fold, nullptr},
    {"convolution/few/tile",
     "at most 24 target channels a group (56 with 16 taps and 8 samples), step 1, 2 taps or more, at most a third of a "
     "padded row is padding",
     accepts_few_tile, run_few_tile, few_tile_parts},
    {"convolution/gemm/patches", "everything else", accepts_any, run_gemm_patches, gemm_patches_parts},
};

const MapImplementation kIntegerMaps[] = {
    {"convolution/integer", "IntegerLinearSaturate, forward", accepts_any, run_integer, nullptr},
};

const MapImplementation kStridedMaps[] = {
    {"convolution/depthwise/tile", "groups = I = O, 3x3, stride 2, dilation 1", accepts_depthwise_tile,
     run_depthwise_tile, nullptr},
    {"convolution/depthwise/rows", "groups = I = O", accepts_depthwise_rows, run_depthwise_rows, nullptr},
    {"convolution/winograd/transposed",
     "7x7 to 10x10, stride 2, dilation 1, not two bf16 factors; 3 to 128 target channels (up to 6: 8 samples), "
     "32 to 512 source channels; odd kernels: two pixels of padding at the far sides",
     accepts_winograd_transposed, run_winograd_transposed, nullptr},
    {"convolution/few/phases",
     "stride 2, dilation 1, even width, not two bf16 factors; at most 8 target channels a group, the rest as few/tile",
     accepts_few_phases, run_few_phases, nullptr},
    {"convolution/strided", "everything else: each phase by the table of maps", accepts_any, run_strided, nullptr},
};

const WeightImplementation kWeightGradients[] = {
    {"convolution/depthwise/tile_dw", "groups = I = O, 3x3, stride 1 or 2, dilation 1", accepts_depthwise_tile_dw,
     run_depthwise_tile_dw, false},
    {"convolution/depthwise/rows_dw", "groups = I = O", accepts_depthwise_rows_dw, run_depthwise_rows_dw, false},
    {"convolution/bf16/amx_dw",
     "AMX; both images bf16 without act', dW bf16 or f32 (not Pack32); stride 1, 2 to 16 taps, 16 channels on both "
     "sides",
     accepts_bf16_amx_dw, run_bf16_amx_dw, true},
    {"convolution/bf16/dw", "AVX-512 BF16 or AMX; the same types; with AVX-512 BF16 not 3x3 that winograd/dw takes",
     accepts_bf16_dw, run_bf16_dw, true},
    {"convolution/winograd/dw",
     "FMA; one group, dilation 1; 3x3 to 5x5, stride 1, and 7x7 to 10x10, stride 2; 12 large channels (stride 2: 3) "
     "and "
     "16 small ones, 32 tiles; every tap meets half of the pixels",
     accepts_winograd_dw, run_winograd_dw, false},
    {"convolution/few/lanes_dw",
     "along x stride 1 or 2, dilation 1, 3, 5 or 7 columns of taps; up to 64 small channels a group, less than a "
     "quarter "
     "less than a multiple of 16; at most 32K weights a group",
     accepts_few_lanes_dw, run_few_lanes_dw, false},
    {"convolution/few/dw", "stride 1; at most 24 small channels and 4096 weights a group", accepts_few_dw, run_few_dw,
     false},
    {"convolution/gemm/dw", "everything else", accepts_any, run_gemm_dw, false},
};

const MapImplementation& find_map(const PatchMap& p) {
  return p.integer ? find(kIntegerMaps, p) : p.is_strided() ? find(kStridedMaps, p) : find(kMaps, p);
}

void run_map(const PatchMap& p, CallScratch& scratch) {
  const MapImplementation& entry = p.integer        ? choose(kIntegerMaps, p)
                                   : p.is_strided() ? choose(kStridedMaps, p)
                                                    : choose(kMaps, p);
  entry.run(p, scratch);
}

}  // namespace bnns
