// The blocked product. A task is a block of C; it walks the depth in blocks of kc:
//
//   for each depth block                      (one; then C is added to)
//     pack B: kc x nb, panels of two vectors  (stays in L2; or B is read in place)
//     for each row tile of A                  (packed beforehand, packed now into L1, or read in place)
//       for each panel of B: micro-kernel     (tile of C in registers)
//   epilogue
//
// Tasks share nothing, so one parallel_for runs them and threads never wait for each other. Few tasks with a long depth
// are cut along the depth: each slice sums into a buffer of its own and a second pass adds the slices in order.
#include <algorithm>

#include "src/gemm/plan.h"

namespace bnns::detail {
namespace {

constexpr size_t kDepthBlock = 256;          // 14 rows of A: 14 KB of L1; a panel of B: 32 KB, streamed from L2
constexpr size_t kColumnBlock = 512;         // B block 512 KB: half of a 1 MB L2
constexpr size_t kRowBlock = 512;
constexpr size_t kTaskWork = 1 << 20;        // multiply-adds: some 10 us
constexpr size_t kMaxTasks = 32;             // beyond this, blocks are as large as the caches like
constexpr size_t kPrepackBytes = 8 << 20;    // of A
constexpr size_t kSlack = 16;                // floats behind a panel (pack.h)

struct Plan {
  TileKernels kernels;
  size_t tile_rows = 0;               // all tiles but the last: m split evenly
  size_t depth_block = 0, depth_blocks = 0;
  size_t row_block = 0, row_blocks = 0, column_block = 0, column_blocks = 0;
  size_t slices = 1;                  // of the depth
  bool a_direct = false, a_packed_ahead = false, b_direct = false;
  size_t a_panel = 0, b_panel = 0;    // floats per packed panel
  size_t ahead_floats = 0, slice_floats = 0, slice_stride = 0, thread_floats = 0;
  size_t threads = 1;

  size_t tasks() const { return row_blocks * column_blocks * slices; }
  size_t floats() const { return ahead_floats + slice_floats * slices + thread_floats * threads; }
};

bool is_direct(const Lens& lens) {
  return lens.strided() && lens.type == FloatType::f32;
}

// Rows this far apart fall on few sets of L1 and push each other out.
bool stride_collides(ptrdiff_t stride) {
  return stride % 256 == 0;
}

Plan make_plan(const GemmCall& call, Isa isa) {
  Plan p;
  p.kernels = tile_kernels(isa);
  const size_t columns = p.kernels.columns;
  p.tile_rows = divide_up(call.m, divide_up(call.m, p.kernels.rows));
  p.depth_blocks = divide_up(call.k, kDepthBlock + kDepthBlock / 2);
  p.depth_block = divide_up(call.k, p.depth_blocks);
  if (p.depth_blocks > 1) p.depth_block = round_up(p.depth_block, 8);
  p.depth_blocks = divide_up(call.k, p.depth_block);

  // Blocks of C as large as L2 likes, then smaller until there are enough tasks.
  const size_t wanted = std::clamp<size_t>(call.m * call.n * call.k / kTaskWork, 1, kMaxTasks);
  p.row_block = std::min(round_up(call.m, p.tile_rows), round_up(kRowBlock, p.tile_rows));
  p.column_block = std::min(round_up(call.n, columns), kColumnBlock);
  const auto count = [&] {
    p.row_blocks = divide_up(call.m, p.row_block);
    p.column_blocks = divide_up(call.n, p.column_block);
    return p.row_blocks * p.column_blocks;
  };
  while (count() < wanted) {
    if (p.column_block >= 4 * columns || (p.column_block >= 2 * columns && p.row_block < 2 * p.tile_rows)) {
      p.column_block = round_up(p.column_block / 2, columns);
    } else if (p.row_block >= 2 * p.tile_rows) {
      p.row_block = round_up(p.row_block / 2, p.tile_rows);
    } else {
      break;
    }
  }
  // Even blocks.
  p.row_block = round_up(divide_up(call.m, p.row_blocks), p.tile_rows);
  p.column_block = round_up(divide_up(call.n, p.column_blocks), columns);
  count();
  if (p.row_blocks * p.column_blocks <= 4 && p.depth_blocks >= 4) {
    p.slices = std::min(wanted / (p.row_blocks * p.column_blocks), p.depth_blocks / 2);
    p.slices = std::max<size_t>(1, p.slices);
  }

  p.a_panel = round_up(p.depth_block * p.tile_rows, 16) + kSlack;
  p.b_panel = p.depth_block * columns + kSlack;
  const size_t panels = p.column_block / columns;
  p.b_direct = is_direct(call.b) && call.b.row_stride == 1 &&
               (p.row_block <= p.tile_rows || (!stride_collides(call.b.depth_stride) && call.k * call.n <= 16384));
  p.a_direct = is_direct(call.a) && (call.a.row_stride == 1 || call.a.depth_stride == 1) && panels <= 8 &&
               !stride_collides(call.a.row_stride == 1 ? call.a.depth_stride : call.a.row_stride);
  p.a_packed_ahead = !p.a_direct && p.column_blocks > 1 && call.m * call.k * sizeof(float) <= kPrepackBytes;

  if (p.a_packed_ahead) p.ahead_floats = p.a_panel * divide_up(call.m, p.tile_rows) * p.depth_blocks;
  if (p.slices > 1) {
    p.slice_stride = round_up(call.n, 16);
    p.slice_floats = p.slice_stride * call.m;
  }
  const bool b_tail = call.n % columns != 0;
  p.thread_floats = (p.b_direct ? b_tail * p.b_panel : panels * p.b_panel) + (p.a_direct || p.a_packed_ahead ? 0 : p.a_panel);
  p.thread_floats = round_up(p.thread_floats, 16);
  p.threads = threads_for(call.threads, p.tasks(), call.m * call.n * call.k);
  return p;
}

struct Runner {
  const GemmCall& call;
  const Plan& p;
  float* ahead;
  float* slices;
  float* scratch;

  // All of A, panel after panel within each depth block.
  void pack_ahead() const {
    const size_t tiles = divide_up(call.m, p.tile_rows);
    parallel_for(tiles * p.depth_blocks, p.threads, [&](size_t task, size_t) {
      const size_t tile = task % tiles, block = task / tiles;
      pack(call.a, rows_of(tile * p.tile_rows, p.tile_rows), depth_of(block),
           {ahead + task * p.a_panel, p.tile_rows, p.a_panel});
    });
  }

  void run_task(size_t task, size_t worker) const {
    const size_t row = task % p.row_blocks, column = task / p.row_blocks % p.column_blocks;
    const size_t slice = task / (p.row_blocks * p.column_blocks);
    const Range rows = rows_of(row * p.row_block, p.row_block);
    const Range columns{column * p.column_block, std::min(call.n, (column + 1) * p.column_block)};
    const Range blocks{slice * p.depth_blocks / p.slices, (slice + 1) * p.depth_blocks / p.slices};

    GemmBlock g;
    g.tile_rows = p.tile_rows;
    g.columns = columns.size();
    if (p.slices > 1) {
      g.c = slices + slice * p.slice_floats + rows.begin * p.slice_stride + columns.begin;
      g.c_stride = p.slice_stride;
    } else {
      g.c = call.c + rows.begin * call.c_stride + columns.begin;
      g.c_stride = call.c_stride;
      g.accumulate = call.prepare(rows, columns);
      g.stream = p.depth_blocks == 1 && can_stream(call);
    }
    float* b_scratch = scratch + worker * p.thread_floats;
    for (size_t block = blocks.begin; block < blocks.end; ++block) {
      const Range depth = depth_of(block);
      g.depth = depth.size();
      float* a_scratch = set_b(g, columns, depth, b_scratch);
      multiply(g, rows, depth, block, a_scratch);
      g.accumulate = true;
    }
    if (p.slices == 1) call.finish(rows, columns);
  }

  // C = init + slice 0 + slice 1 + ...
  void add_slices() const {
    const size_t rows = std::max<size_t>(1, 16384 / call.n), tasks = divide_up(call.m, rows);
    parallel_for(tasks, threads_for(p.threads, tasks, p.slice_floats * p.slices), [&](size_t task, size_t) {
      const Range part = rows_of(task * rows, rows);
      const bool accumulate = call.prepare(part, {0, call.n});
      for (size_t i = part.begin; i < part.end; ++i) {
        add_rows(slices + i * p.slice_stride, p.slice_floats, p.slices, call.n, accumulate, call.c + i * call.c_stride);
      }
      call.finish(part, {0, call.n});
    });
  }

 private:
  Range rows_of(size_t begin, size_t count) const { return {begin, std::min(call.m, begin + count)}; }
  Range depth_of(size_t block) const {
    return {block * p.depth_block, std::min(call.k, (block + 1) * p.depth_block)};
  }

  // Points g at B, packed where needed; returns the scratch that is left.
  float* set_b(GemmBlock& g, Range columns, Range depth, float* buffer) const {
    const size_t width = p.kernels.columns;
    const PackedBlock packed{buffer, width, p.b_panel};
    if (!p.b_direct) {
      pack(call.b, columns, depth, packed);
      g.b = buffer;
      g.b_panel_stride = static_cast<ptrdiff_t>(p.b_panel);
      g.b_stride = static_cast<ptrdiff_t>(width);
      return buffer + p.column_block / width * p.b_panel;
    }
    g.b = static_cast<const float*>(call.b.data) + columns.begin + static_cast<ptrdiff_t>(depth.begin) * call.b.depth_stride;
    g.b_panel_stride = static_cast<ptrdiff_t>(width);
    g.b_stride = call.b.depth_stride;
    if (const size_t tail = columns.size() % width) {
      pack(call.b, {columns.end - tail, columns.end}, depth, packed);
      g.b_tail = buffer;
      return buffer + p.b_panel;
    }
    return buffer;
  }

  void multiply(GemmBlock& g, Range rows, Range depth, size_t block, float* buffer) const {
    g.rows = rows.size();
    if (p.a_direct) {
      g.a_depth_contiguous = call.a.depth_stride == 1;
      g.a_stride = g.a_depth_contiguous ? call.a.row_stride : call.a.depth_stride;
      g.a_tile_stride = static_cast<ptrdiff_t>(p.tile_rows) * call.a.row_stride;
      g.a = static_cast<const float*>(call.a.data) + static_cast<ptrdiff_t>(rows.begin) * call.a.row_stride +
            static_cast<ptrdiff_t>(depth.begin) * call.a.depth_stride;
      return p.kernels.block(g);
    }
    g.a_stride = static_cast<ptrdiff_t>(p.tile_rows);
    g.a_tile_stride = static_cast<ptrdiff_t>(p.a_panel);
    if (p.a_packed_ahead) {
      g.a = ahead + (block * divide_up(call.m, p.tile_rows) + rows.begin / p.tile_rows) * p.a_panel;
      return p.kernels.block(g);
    }
    float* const c = g.c;
    g.a = buffer;
    for (size_t i = rows.begin; i < rows.end; i += p.tile_rows) {
      const Range tile{i, std::min(rows.end, i + p.tile_rows)};
      pack(call.a, tile, depth, {buffer, p.tile_rows, p.a_panel});
      g.rows = tile.size();
      g.c = c + (i - rows.begin) * g.c_stride;
      p.kernels.block(g);
    }
    g.c = c;
  }
};

}  // namespace

size_t tiles_workspace_bytes(const GemmCall& call) noexcept {
  // Enough for every instruction set of the machine: the cap may change between this question and the call.
  size_t floats = 0;
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) {
    floats = std::max(floats, make_plan(call, static_cast<Isa>(i)).floats());
  }
  return floats * sizeof(float);
}

void tiles_run(const GemmCall& call, void* workspace) noexcept {
  const Plan p = make_plan(call, isa());
  float* const memory = static_cast<float*>(workspace);
  const Runner runner{call, p, memory, memory + p.ahead_floats, memory + p.ahead_floats + p.slice_floats * p.slices};
  if (p.a_packed_ahead) runner.pack_ahead();
  parallel_for(p.tasks(), p.threads, [&](size_t task, size_t worker) { runner.run_task(task, worker); });
  if (p.slices > 1) runner.add_slices();
}

}  // namespace bnns::detail
