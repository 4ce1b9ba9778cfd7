// How a blocked product is cut up (tile_runner.cc runs it). How the depth is cut, and so the order of every sum,
// follows from the shape, the layouts and the tile of the instruction set; how C is cut into tasks may follow the
// threads.
#pragma once

#include <cstddef>

#include "src/gemm/plan.h"

namespace bnns::detail {

// Where the tasks get an operand from. A task is a block of C.
enum class Source {
  direct,  // read in place
  ahead,   // packed into shared memory before the tasks that read it start
  inside,  // packed by the task itself: B a panel at a time, A a row tile at a time (all tiles when B is inside too)
};

struct TilePlan {
  TileKernels kernels;
  // Two bf16 operands (bf16.h): depths, panels and floats below are pairs, packed panels are padded with zeros to whole
  // depth units, and a tile of A is rows of a_row_stride.
  bool pairs = false, pair_copies = false;
  size_t depth_unit = 1, a_row_stride = 0;
  size_t depth = 0;  // k, or its pairs
  // Pairs, the rows of both operands contiguous in depth, B the larger one: the product is run with A and B exchanged,
  // so that the large operand is copied rather than transposed; a task transposes its finished block of C.
  bool turned = false;
  size_t c_floats = 0;   // turned: of a thread, its block of C
  size_t tile_rows = 0;  // all tiles but the last: m split evenly
  size_t depth_block = 0, depth_blocks = 0;
  size_t row_block = 0, row_blocks = 0, column_block = 0, column_blocks = 0;
  size_t slices = 1;  // of the depth, summed separately
  Source a = Source::inside, b = Source::inside;
  bool phased = false;                     // all tasks do one depth block, then the next; else a task does all of them
  size_t row_chunk = 0, column_chunk = 0;  // phased: row and column blocks per phase
  size_t a_panel = 0, b_panel = 0;         // floats per packed panel
  size_t panel_group = 1;                  // panels of B that are packed together when B is inside
  bool rows_ahead = false;                 // B is fetched a row of the task's columns at a time, a depth block ahead
  size_t a_ahead = 0, b_ahead = 0, slice_floats = 0, slice_stride = 0, thread_floats = 0;
  size_t threads = 1;

  size_t tiles(size_t rows) const { return div_up(rows, tile_rows); }
  size_t panels(size_t columns) const { return div_up(columns, kernels.columns); }
  size_t floats() const { return a_ahead + b_ahead + slice_floats * slices + thread_floats * threads; }
};

bool is_plain(const Lens& lens);  // f32 with strides

// The same product with A and B exchanged; its C is the original's, seen transposed.
GemmCall turn(const GemmCall& call);

// Of the call, or of turn(call) when the plan says so. pairs: two bf16 operands on the pair kernels of `isa`.
TilePlan make_tile_plan(const GemmCall& call, bool pairs, Isa isa);

// `memory` has p.floats() floats.
void run_tile_plan(const GemmCall& call, const TilePlan& p, float* memory);

// The driver with each of its kernels (tiles.cc).
bool accepts_amx(const GemmCall& call);
void run_amx(const GemmCall& call, float* workspace);
size_t amx_workspace_floats(const GemmCall& call);
bool accepts_bf16(const GemmCall& call);
void run_bf16(const GemmCall& call, float* workspace);
size_t bf16_workspace_floats(const GemmCall& call);
void run_tiles(const GemmCall& call, float* workspace);
size_t tiles_workspace_floats(const GemmCall& call);

}  // namespace bnns::detail
