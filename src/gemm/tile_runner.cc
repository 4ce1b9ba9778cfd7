// The driver of the blocked product (README.md). A task is a block of C. Whatever several tasks read is packed ahead,
// by all threads; whatever a single task reads, it packs itself, close to its use (Source in tile_plan.h). When B is
// inside, its panels meet all row tiles of A at once, while the next panel is fetched from memory: a large matrix of
// weights passes through once, at the speed of memory or of the multipliers, whichever is slower.
//
// Few tasks with a long depth are cut along the depth: each slice sums into a buffer of its own and a last pass adds
// the slices in order.
#include <algorithm>

#include "src/gemm/bf16.h"
#include "src/gemm/tile_plan.h"

namespace bnns::detail {
namespace {

constexpr size_t kFarSize = 131072;  // elements of C: half a megabyte

// Some blocks of C over some depth blocks: what one phase covers.
struct Phase {
  Range row_blocks, column_blocks, depth_blocks;
};

class Runner {
 public:
  Runner(const GemmCall& call, const GemmCall& original, const TilePlan& p, float* memory)
      : call_(call),
        original_(original),
        p_(p),
        a_ahead_(memory),
        b_ahead_(a_ahead_ + p.a_ahead),
        slices_(b_ahead_ + p.b_ahead),
        scratch_(slices_ + p.slice_floats * p.slices),
        rounds_(p.pairs && call.bf16 && p.slices == 1 && (p.depth_blocks == 1 || p.turned) &&
                original.init == GemmInit::overwrite),
        copies_(p.pair_copies && reinterpret_cast<uintptr_t>(call.b.data) % 64 == 0 && call.b.depth_stride % 32 == 0),
        group_(copies_ ? 1 : p.panel_group) {}

  void run() {
    const size_t depths = p_.phased ? 1 : p_.depth_blocks;
    for (size_t j = 0; j < p_.column_blocks; j += p_.column_chunk) {
      for (size_t d = 0; d < p_.depth_blocks; d += depths) {
        for (size_t i = 0; i < p_.row_blocks; i += p_.row_chunk) {
          phase_ = {{i, std::min(p_.row_blocks, i + p_.row_chunk)},
                    {j, std::min(p_.column_blocks, j + p_.column_chunk)},
                    {d, d + depths}};
          pack_ahead(i == 0);
          const size_t tasks = phase_.row_blocks.size() * phase_.column_blocks.size() * p_.slices;
          parallel_for(tasks, p_.threads, [&](size_t task, size_t worker) { run_task(task, worker); });
        }
      }
    }
    if (p_.slices > 1) add_slices();
  }

 private:
  Range rows_of(Range blocks) const {
    return {blocks.begin * p_.row_block, std::min(call_.m, blocks.end * p_.row_block)};
  }
  Range columns_of(Range blocks) const {
    return {blocks.begin * p_.column_block, std::min(call_.n, blocks.end * p_.column_block)};
  }
  Range depth_of(size_t block) const {
    return {block * p_.depth_block, std::min(p_.depth, (block + 1) * p_.depth_block)};
  }

  void pack_a(Range rows, Range depth, float* to) const {
    const PackedBlock out{to, p_.tile_rows, p_.a_panel};
    if (!p_.pairs) return pack(call_.a, rows, depth, out);
    pack_pair_rows({call_.a, rows, depth, call_.k, p_.depth_unit}, out, p_.a_row_stride);
  }
  void pack_b(Range columns, Range depth, float* to) const {
    const PackedBlock out{to, p_.kernels.columns, p_.b_panel};
    if (!p_.pairs) return pack(call_.b, columns, depth, out);
    pack_pair_panels({call_.b, columns, depth, call_.k, p_.depth_unit}, out);
  }

  // Packed panels of a depth block lie together, those of the next depth block follow.
  float* a_ahead(size_t row, size_t block) const {
    const Range rows = rows_of(phase_.row_blocks);
    return a_ahead_ +
           ((block - phase_.depth_blocks.begin) * p_.tiles(rows.size()) + (row - rows.begin) / p_.tile_rows) *
               p_.a_panel;
  }
  float* b_ahead(size_t column, size_t block) const {
    const Range columns = columns_of(phase_.column_blocks);
    return b_ahead_ + ((block - phase_.depth_blocks.begin) * p_.panels(columns.size()) +
                       (column - columns.begin) / p_.kernels.columns) *
                          p_.b_panel;
  }

  void pack_ahead(bool with_b) {
    // A task packs a few tiles of A, or 512 columns of B: rows of B are then read in long pieces. Fewer for many
    // threads.
    const Range rows = rows_of(phase_.row_blocks), columns = columns_of(phase_.column_blocks);
    size_t a_step = 8 * p_.tile_rows, b_step = 512;
    if (p_.threads > 2) {
      a_step = std::min(a_step, round_up(div_up(rows.size(), p_.threads), p_.tile_rows));
      const size_t least = call_.b.depth_contiguous() ? p_.kernels.columns : 128;
      b_step = std::clamp(round_up(div_up(columns.size(), p_.threads), p_.kernels.columns), least, b_step);
    }
    const size_t a_tasks = p_.a == Source::ahead ? div_up(rows.size(), a_step) : 0;
    const size_t b_tasks = p_.b == Source::ahead && with_b ? div_up(columns.size(), b_step) : 0;
    const size_t tasks = (a_tasks + b_tasks) * phase_.depth_blocks.size();
    if (tasks == 0) return;
    const size_t work = ((a_tasks ? rows.size() : 0) + (b_tasks ? columns.size() : 0)) * p_.depth * sizeof(float);
    parallel_for(tasks, p_.threads == 1 ? 1 : threads_for(p_.threads, tasks, work), [&](size_t task, size_t) {
      const size_t block = phase_.depth_blocks.begin + task / (a_tasks + b_tasks);
      const size_t i = task % (a_tasks + b_tasks);
      if (i < a_tasks) {
        const size_t begin = rows.begin + i * a_step;
        pack_a({begin, std::min(rows.end, begin + a_step)}, depth_of(block), a_ahead(begin, block));
      } else {
        const size_t begin = columns.begin + (i - a_tasks) * b_step;
        pack_b({begin, std::min(columns.end, begin + b_step)}, depth_of(block), b_ahead(begin, block));
      }
    });
  }

  void run_task(size_t task, size_t worker) const {
    const size_t row = phase_.row_blocks.begin + task % phase_.row_blocks.size();
    const size_t column = phase_.column_blocks.begin + task / phase_.row_blocks.size() % phase_.column_blocks.size();
    const size_t slice = task / (phase_.row_blocks.size() * phase_.column_blocks.size());
    const Range rows = rows_of({row, row + 1}), columns = columns_of({column, column + 1});
    const size_t depths = phase_.depth_blocks.size();
    const Range blocks{phase_.depth_blocks.begin + slice * depths / p_.slices,
                       phase_.depth_blocks.begin + (slice + 1) * depths / p_.slices};

    GemmBlock g;
    g.tile_rows = p_.tile_rows;
    g.columns = columns.size();
    g.c_far = call_.m * call_.n >= kFarSize;
    if (p_.slices > 1) {
      g.set_c(slices_ + slice * p_.slice_floats + rows.begin * p_.slice_stride + columns.begin, p_.slice_stride);
    } else if (p_.turned) {
      g.set_c(scratch_ + worker * p_.thread_floats + p_.thread_floats - p_.c_floats, p_.column_block + 16);
      g.c_far = false;
    } else if (rounds_) {
      g.c_bf16 = call_.bf16 + rows.begin * call_.bf16_stride + columns.begin;
      g.c_stride = call_.bf16_stride;
      g.stream = can_stream_bf16();
    } else {
      g.set_c(call_.c + rows.begin * call_.c_stride + columns.begin, call_.c_stride);
      g.accumulate = blocks.begin != 0 || call_.prepare(rows, columns);
      g.stream = p_.depth_blocks == 1 && can_stream(call_);
    }
    float* const scratch = scratch_ + worker * p_.thread_floats;
    for (size_t block = blocks.begin; block < blocks.end; ++block) {
      const Range depth = depth_of(block);
      g.depth = depth.size();
      if (p_.b == Source::inside) {
        const bool more = block + 1 < blocks.end;
        by_panels(g, rows, columns, depth, block, more ? first_group(columns, block + 1) : next_task(task), scratch);
      } else {
        by_tiles(g, rows, columns, depth, block, scratch);
      }
      g.accumulate = true;
    }
    if (p_.turned) return store_turned(g, rows, columns);
    if (p_.slices == 1 && blocks.end == p_.depth_blocks && !rounds_) call_.finish(rows, columns);
  }

  void store_turned(const GemmBlock& g, Range rows, Range columns) const {
    const TransposedSums sums{g.c, g.c_stride, rows.size(), columns.size()};
    if (rounds_) {
      uint16_t* to = original_.bf16 + columns.begin * original_.bf16_stride + rows.begin;
      return store_transposed(sums, false, to, original_.bf16_stride);
    }
    const bool accumulate = original_.prepare(columns, rows);
    float* to = original_.c + columns.begin * original_.c_stride + rows.begin;
    store_transposed(sums, accumulate, to, original_.c_stride);
    original_.finish(columns, rows);
  }

  bool can_stream_bf16() const {
    return call_.m * call_.n >= kStreamSize && reinterpret_cast<uintptr_t>(call_.bf16) % 64 == 0 &&
           call_.bf16_stride % 32 == 0;
  }

  void set_c(GemmBlock& g, const GemmBlock& whole, size_t offset) const {
    if (whole.c_bf16) {
      g.c_bf16 = whole.c_bf16 + offset;
    } else {
      g.c = whole.c + offset;
    }
  }

  const float* b_at(size_t column, size_t k) const {
    return static_cast<const float*>(call_.b.data) + static_cast<ptrdiff_t>(column) * call_.b.row_stride +
           static_cast<ptrdiff_t>(k) * call_.b.depth_stride;
  }

  // Points g at the rows of A: direct, packed ahead, or at `inside`, where the caller packs them.
  void set_a(GemmBlock& g, Range rows, Range depth, size_t block, const float* inside) const {
    g.rows = rows.size();
    const ptrdiff_t row_stride = call_.a.row_stride / (p_.pairs ? 2 : 1);
    if (p_.a == Source::direct) {
      const ptrdiff_t depth_stride = p_.pairs ? 1 : call_.a.depth_stride;
      const float* const a = static_cast<const float*>(call_.a.data) + static_cast<ptrdiff_t>(rows.begin) * row_stride +
                             static_cast<ptrdiff_t>(depth.begin) * depth_stride;
      if (p_.pairs || row_stride != 1) return g.set_a_rows(a, row_stride);
      g.set_a_tiles(a, p_.tile_rows);
      g.a_stride = depth_stride;
      return;
    }
    const float* const a = p_.a == Source::ahead ? a_ahead(rows.begin, block) : inside;
    p_.pairs ? g.set_a_row_tiles(a, p_.a_row_stride, p_.a_panel) : g.set_a_tiles(a, p_.a_panel);
  }

  // B inside: a panel (of pairs: a few) at a time meets all of A's rows.
  void by_panels(GemmBlock& g, Range rows, Range columns, Range depth, size_t block, const Ahead& next,
                 float* scratch) const {
    const size_t width = p_.kernels.columns * group_;
    float* const a_inside = scratch + p_.b_panel * p_.panel_group;
    set_a(g, rows, depth, block, a_inside);
    if (p_.a == Source::inside) pack_a(rows, depth, a_inside);
    g.ahead_by_rows = p_.rows_ahead;
    const GemmBlock whole = g;
    const bool in_place = is_plain(call_.b) && call_.b.row_stride == 1;
    for (size_t j = columns.begin; j < columns.end; j += width) {
      const Range panel{j, std::min(columns.end, j + width)};
      g.columns = panel.size();
      set_c(g, whole, (j - columns.begin));
      if (p_.rows_ahead) {
        g.ahead = next.part((j - columns.begin) / width, div_up(columns.size(), width));
      } else {
        g.ahead = panel.end < columns.end
                      ? ahead_of(call_.b, {panel.end, std::min(columns.end, panel.end + width)}, depth)
                      : next;
      }
      g.b_rows = nullptr;
      if (copies_ && g.columns == width) {
        g.b_rows = static_cast<const uint16_t*>(call_.b.data) + j +
                   static_cast<ptrdiff_t>(2 * depth.begin) * call_.b.depth_stride;
        g.b_row_stride = call_.b.depth_stride;
        g.odd_depth = 2 * depth.end > call_.k;
        g.b_copy = scratch;
      } else if (in_place && g.columns == width) {
        g.b = b_at(j, depth.begin);
        g.b_stride = call_.b.depth_stride;
        g.b_copy = scratch;
      } else {
        pack_b(panel, depth, scratch);
        g.set_b(scratch, static_cast<ptrdiff_t>(p_.b_panel), static_cast<ptrdiff_t>(p_.kernels.columns));
        g.b_copy = nullptr;
      }
      p_.kernels.block(g);
    }
    set_c(g, whole, 0);
  }

  // What a worker will read first of B in the next depth block, or in the task that it will probably take next.
  Ahead first_group(Range columns, size_t block) const {
    const size_t width = p_.rows_ahead ? columns.size() : p_.kernels.columns * group_;
    return ahead_of(call_.b, {columns.begin, std::min(columns.end, columns.begin + width)}, depth_of(block));
  }
  Ahead next_task(size_t task) const {
    const size_t rows = phase_.row_blocks.size(), next = task + 1, blocks = phase_.column_blocks.size();
    if (p_.slices > 1 || next >= rows * blocks) return {};
    const size_t column = phase_.column_blocks.begin + next / rows;
    return first_group(columns_of({column, column + 1}), phase_.depth_blocks.begin);
  }

  // The memory behind rows of an operand, in the pieces in which it is contiguous.
  Ahead ahead_of(const Lens& b, Range columns, Range depth) const {
    if (!b.strided() || (b.row_stride != 1 && b.depth_stride != 1)) return {};
    if (p_.pairs) depth = {2 * depth.begin, std::min(call_.k, 2 * depth.end)};
    const auto size = static_cast<ptrdiff_t>(bytes_of(b.type));
    const char* data = static_cast<const char*>(b.data) + (static_cast<ptrdiff_t>(columns.begin) * b.row_stride +
                                                           static_cast<ptrdiff_t>(depth.begin) * b.depth_stride) *
                                                              size;
    if (b.row_stride == 1) return {data, b.depth_stride * size, depth.size(), columns.size() * bytes_of(b.type)};
    return {data, b.row_stride * size, columns.size(), depth.size() * bytes_of(b.type)};
  }

  // B direct or packed ahead: a tile of A at a time meets all of B's panels.
  void by_tiles(GemmBlock& g, Range rows, Range columns, Range depth, size_t block, float* scratch) const {
    const size_t width = p_.kernels.columns;
    if (p_.b == Source::ahead) {
      g.set_b(b_ahead(columns.begin, block), static_cast<ptrdiff_t>(p_.b_panel), static_cast<ptrdiff_t>(width));
    } else {
      g.set_b(b_at(columns.begin, depth.begin), static_cast<ptrdiff_t>(width), call_.b.depth_stride);
      if (const size_t tail = columns.size() % width; tail != 0 && !p_.kernels.masks) {
        pack_b({columns.end - tail, columns.end}, depth, scratch);
        g.b_tail = scratch;
        scratch += p_.b_panel;
      }
    }
    set_a(g, rows, depth, block, scratch);
    if (p_.a != Source::inside) return p_.kernels.block(g);
    const GemmBlock whole = g;
    for (size_t i = rows.begin; i < rows.end; i += p_.tile_rows) {
      const Range tile{i, std::min(rows.end, i + p_.tile_rows)};
      pack_a(tile, depth, scratch);
      if (p_.turned) g.ahead = next_tile(rows, tile.end, block);
      g.rows = tile.size();
      set_c(g, whole, (i - rows.begin) * g.c_stride);
      p_.kernels.block(g);
    }
    set_c(g, whole, 0);
  }

  // Turned: the rows of A that are packed after this tile, or where its last rows end, in the next depth block.
  Ahead next_tile(Range rows, size_t end, size_t block) const {
    if (end < rows.end) return ahead_of(call_.a, {end, std::min(rows.end, end + p_.tile_rows)}, depth_of(block));
    if (block + 1 == p_.depth_blocks) return {};
    return ahead_of(call_.a, {rows.begin, rows.begin + std::min(rows.size(), p_.tile_rows)}, depth_of(block + 1));
  }

  // C = init + slice 0 + slice 1 + ...
  void add_slices() const {
    const size_t rows = std::max<size_t>(1, 4096 / call_.n), tasks = div_up(call_.m, rows);
    const size_t work = p_.slice_floats * (p_.slices + 1) * sizeof(float);
    parallel_for(tasks, p_.threads == 1 ? 1 : threads_for(p_.threads, tasks, work), [&](size_t task, size_t) {
      const Range part{task * rows, std::min(call_.m, (task + 1) * rows)};
      const bool accumulate = call_.prepare(part, {0, call_.n});
      for (size_t i = part.begin; i < part.end; ++i) {
        add_rows(slices_ + i * p_.slice_stride, p_.slice_floats, p_.slices, call_.n, accumulate,
                 call_.c + i * call_.c_stride);
      }
      call_.finish(part, {0, call_.n});
    });
  }

  const GemmCall &call_, &original_;  // the same, unless the plan is turned
  const TilePlan& p_;
  float *a_ahead_, *b_ahead_, *slices_, *scratch_;
  const bool rounds_;  // the kernel stores bf16
  // The kernel interleaves rows of B itself: where a panel is one cache line of each row. Else a few panels are packed
  // together, so that a line that two of them share is read once.
  const bool copies_;
  const size_t group_;  // panels
  Phase phase_;
};

}  // namespace

void run_tile_plan(const GemmCall& call, const TilePlan& p, float* memory) {
  if (p.turned) return Runner(turn(call), call, p, memory).run();
  Runner(call, call, p, memory).run();
}

}  // namespace bnns::detail
