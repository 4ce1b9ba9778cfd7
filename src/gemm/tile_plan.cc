// How a blocked product is cut up: blocks, slices, and where each operand is read from (tile_plan.h).

#include "src/gemm/tile_plan.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "src/gemm/bf16.h"

namespace bnns::detail {
namespace {

constexpr size_t kDepthBlock = 512;       // at most; 14 rows of A: 28 KB; a panel of B: 64 KB, streamed from L2
constexpr size_t kShortDepthBlock = 256;  // the same where B is copied inside the tasks
constexpr size_t kUpdateDepth = 128;      // up to here, a product with more rows than depth is mostly writing C
constexpr size_t kUpdateSize = 65536;     // and elements of B, which every tile of rows reads: 256 KB
constexpr size_t kColumnBlock = 512;      // B block 1 MB at most
constexpr size_t kRowBlock = 512;
constexpr size_t kTaskWork = 1 << 17;     // multiply-adds: some 1 us
constexpr size_t kMaxTasks = 16;          // beyond this, blocks are as large as the caches like
constexpr size_t kAheadBytes = 8 << 20;   // of one operand at a time
constexpr size_t kAtOnceBytes = 2 << 20;  // of both operands
constexpr size_t kDirectSize = 262144;    // elements of B, 1 MB: L2 holds them as they are
constexpr size_t kCachedSize = 131072;    // elements of B: they are in L2, nothing need be prefetched
constexpr size_t kLargeResult = 262144;   // elements of C, 1 MB: the time to pack operands is small beside it
constexpr size_t kDirectColumns = 256;    // beyond this, packing a tile of A costs less than it saves
constexpr size_t kWorkPerByte = 2;        // multiply-adds in cache that take as long as a unit of kMinThreadWork
constexpr size_t kTurnedRows = 512;       // of a product that is turned, at most
constexpr size_t kPassWork = 1 << 20;     // multiply-adds of a thread worth another loop over all threads
constexpr size_t kSlack = 16;             // floats behind a panel (pack.h)

// Whether `count` lines, a stride of floats apart, fall on so few sets of a cache that they push each other out. The
// caches have 8 ways or more; `span` is the size of a way: 4 KB in L1, 128 KB in L2.
constexpr size_t kL1Way = 4096, kL2Way = 131072;
bool stride_collides(ptrdiff_t stride, size_t count, size_t span) {
  const size_t bytes = static_cast<size_t>(stride < 0 ? -stride : stride) * sizeof(float);
  const size_t common = bytes == 0 ? span : std::min(span, bytes & (~bytes + 1));  // the powers of two in both
  return count > 7 * (span / common);
}

// Whether L2 holds two depth blocks of B where they lie, even with rows a power of two apart: 2 MB in 16 ways, as
// server CPUs of Intel have. There it pays to fetch B as it lies in memory, row by row and page by page, instead of a
// panel (two lines of each row) at a time: 32 x 4096 x 4096 takes 5.5 ms instead of 7, 128 x 1024 x 1024 1.2 instead
// of 1.5. With 1 MB in 8 ways (Zen 4) the next block pushes out the one in use. It decides about prefetches only, never
// about sums.
bool has_large_l2() {
  static std::atomic<long> bytes{-1};  // and no guard that a fork could leave taken
  long known = bytes.load(std::memory_order_relaxed);
  if (known < 0) {
    known = std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE));
    bytes.store(known, std::memory_order_relaxed);
  }
  return known >= long{2} << 20;
}

void set_depth_block(TilePlan& p, size_t most) {
  p.depth_block = p.depth, p.depth_blocks = 1;
  if (p.depth <= most) return;
  p.depth_blocks = div_up(p.depth, most);
  p.depth_block = round_up(div_up(p.depth, p.depth_blocks), 16);  // whole cache lines
  p.depth_blocks = div_up(p.depth, p.depth_block);
}

// Whether C is best written in whole rows, page after page: 32 deep, 1024 x 479 takes 0.8 of the time so, and 768 x 768
// 0.9, on Zen 4 and on Emerald Rapids. Rows whose lines push each other out are better left for narrow blocks.
bool writes_rows(const GemmCall& call, const TilePlan& p) {
  return !p.pairs && p.depth <= kUpdateDepth && call.m > p.depth && p.depth * call.n <= kUpdateSize &&
         !stride_collides(static_cast<ptrdiff_t>(call.c_stride), p.tile_rows, kL1Way);
}

// Panels per block of columns, or one more, whichever shares them out better between two threads.
size_t balance_panels(size_t panels, size_t per_block) {
  const auto larger_share = [&](size_t each) { return div_up(div_up(panels, each), 2) * each; };
  return larger_share(per_block + 1) < larger_share(per_block) ? per_block + 1 : per_block;
}

size_t count_blocks(const GemmCall& call, TilePlan& p) {
  p.row_blocks = div_up(call.m, p.row_block);
  p.column_blocks = div_up(call.n, p.column_block);
  return p.row_blocks * p.column_blocks;
}

void choose_blocks(const GemmCall& call, TilePlan& p, size_t depth_block) {
  const size_t columns = p.kernels.columns;
  const bool copies_b = call.m <= kRowBlock && call.b.rows_contiguous() && !p.pairs;
  set_depth_block(p, copies_b ? kShortDepthBlock : depth_block);
  // Blocks of C as large as L2 likes, then smaller until there are enough tasks: first those cuts that cost least.
  const size_t wanted = std::clamp<size_t>(call.m * call.n * p.depth / kTaskWork, 1, kMaxTasks);
  p.row_block = std::min(round_up(call.m, p.tile_rows), round_up(kRowBlock, p.tile_rows));
  p.column_block = std::min(round_up(call.n, columns), kColumnBlock);
  if (wanted == 1 && call.m <= kRowBlock && call.n <= kColumnBlock) {
    p.row_blocks = p.column_blocks = 1;  // tiny problems go straight on
    return;
  }
  if (writes_rows(call, p)) {
    p.column_block = round_up(call.n, columns);
    p.row_block = std::max<size_t>(1, div_up(call.m, p.tile_rows) / (2 * wanted)) * p.tile_rows;
    count_blocks(call, p);
    return;
  }
  const auto halve_columns = [&](size_t panels, size_t most) {
    while (count_blocks(call, p) < std::min(wanted, most) && p.column_block >= 2 * panels * columns) {
      p.column_block = round_up(p.column_block / 2, columns);
    }
  };
  const auto halve_rows = [&](size_t tiles, size_t most) {
    while (count_blocks(call, p) < std::min(wanted, most) && p.row_block >= 2 * tiles * p.tile_rows) {
      p.row_block = round_up(p.row_block / 2, p.tile_rows);
    }
  };
  halve_columns(4, kMaxTasks);
  const size_t count = count_blocks(call, p);
  if (2 * count <= wanted && p.depth_blocks >= 4) {
    p.slices = std::min(wanted / count, p.depth_blocks / 2);
  } else {
    halve_columns(2, 8);
    // A task that packs all of B it reads shares nothing with other cores.
    if (call.m <= kRowBlock && call.b.depth_contiguous() && !p.pairs) halve_columns(1, 4);
    halve_rows(4, 4);
    halve_columns(1, 4);
    halve_rows(1, 4);
  }
  // Even blocks.
  p.row_block = round_up(div_up(call.m, p.row_blocks), p.tile_rows);
  p.column_block = round_up(div_up(call.n, p.column_blocks), columns);
  if (p.row_blocks == 1) {
    p.column_block = columns * balance_panels(p.panels(call.n), p.column_block / columns);
  }
  count_blocks(call, p);
}

// In place, lines may come from L2; where C is large, there is time for a copy that L1 can hold.
size_t way_in_place(const GemmCall& call) {
  return call.m * call.n >= kLargeResult ? kL1Way : kL2Way;
}

Source source_of_b(const GemmCall& call, const TilePlan& p, size_t row_blocks) {
  if (is_plain(call.b) && call.b.row_stride == 1 && p.depth * call.n <= kDirectSize &&
      !stride_collides(call.b.depth_stride, p.depth_block, way_in_place(call))) {
    return Source::direct;
  }
  // Ahead also where C is larger than B: C is then written row by row.
  return row_blocks > 1 || call.m > p.depth ? Source::ahead : Source::inside;
}

// More than two threads: packed operands of this size are better made in one loop than in one for each depth block.
bool packs_at_once(const GemmCall& call, const TilePlan& p) {
  return call.threads > 2 && (call.m + call.n) * p.depth * sizeof(float) <= kAtOnceBytes;
}

// Cuts blocks of C further where some of more than two threads would wait for others: no sum depends on it. Costs are
// tenths of a tile times a panel over the whole depth; packing a panel or a tile takes longer beside faster kernels.
void share_out(const GemmCall& call, TilePlan& p) {
  const size_t all_tiles = p.tiles(call.m), all_panels = p.panels(call.n), columns = p.kernels.columns;
  const size_t threads = threads_of(call, all_tiles * all_panels * p.slices, call.m * call.n * p.depth / kWorkPerByte);
  if (threads <= 2 || writes_rows(call, p)) return;
  const size_t rate = p.depth_unit > 1 ? 5 : 1, pack_tile = 3 * rate;  // AMX: of its tiles
  const size_t pack_panel = (call.b.depth_contiguous() ? 15 : 4) * rate;
  const size_t pass = 10 * rate * kPassWork / (p.tile_rows * columns * p.depth);
  const auto cost = [&](size_t tiles, size_t panels) {
    const size_t row_blocks = div_up(all_tiles, tiles), column_blocks = div_up(all_panels, panels);
    const Source b = source_of_b(call, p, row_blocks);
    const size_t task = 10 * tiles * panels + (b == Source::inside ? pack_panel : 2) * panels + pack_tile * tiles;
    const size_t loops = p.slices > 1 || packs_at_once(call, p) ? 1 : 2 * p.depth_blocks - 1;
    const size_t ahead = b == Source::ahead ? div_up(all_panels, threads) * pack_panel + loops * pass : 0;
    return div_up(row_blocks * column_blocks * p.slices, threads) * task / p.slices + ahead;
  };
  const size_t tiles = p.row_block / p.tile_rows, panels = p.column_block / columns;
  size_t best = cost(tiles, panels) * 19 / 20, best_tiles = tiles, best_panels = panels;
  for (size_t parts = 1; parts <= std::min<size_t>(tiles, 4); ++parts) {
    for (size_t some = panels; some > 0; some -= std::min(some, div_up(panels, 16))) {
      const size_t time = cost(div_up(tiles, parts), some);
      if (time < best) best = time, best_tiles = div_up(tiles, parts), best_panels = some;
    }
  }
  p.row_block = best_tiles * p.tile_rows, p.column_block = best_panels * columns;
  count_blocks(call, p);
}

void choose_sources(const GemmCall& call, TilePlan& p) {
  const size_t way = way_in_place(call);
  p.b = source_of_b(call, p, p.row_blocks);
  // With contiguous rows a step reads one line of A, which may come from L2 too; with contiguous depth it reads a line
  // per row, the same for 16 steps, and they must stay in L1.
  const size_t panels = p.column_block / p.kernels.columns;
  const bool by_rows =
      call.a.row_stride == 1 && (panels <= 2 || !stride_collides(call.a.depth_stride, p.depth_block, way));
  const bool by_depth = call.a.depth_stride == 1 &&
                        (!p.pairs || p.b != Source::inside || p.depth * call.n <= kCachedSize) &&
                        !stride_collides(p.pairs ? call.a.row_stride / 2 : call.a.row_stride, p.tile_rows, kL1Way);
  // A pair per word of memory: an even depth, rows a whole number of words apart.
  const bool pairs_in_place = p.pairs && by_depth && call.k % (2 * p.depth_unit) == 0 && call.a.row_stride % 2 == 0;
  if (((is_plain(call.a) && (by_rows || by_depth)) || pairs_in_place) && p.column_block <= kDirectColumns) {
    p.a = Source::direct;
  } else if (p.column_blocks > 1) {
    p.a = Source::ahead;
  }
}

// Blocks of a turned product: all of the few columns, rows for enough tasks, at least two tiles each.
void choose_turned_blocks(const GemmCall& call, TilePlan& p) {
  set_depth_block(p, kDepthBlock);
  p.column_block = round_up(call.n, p.kernels.columns);
  const size_t tasks = call.threads <= kMaxTasks / 2 ? kMaxTasks : 2 * call.threads;
  p.row_block = round_up(std::max(div_up(call.m, tasks), 2 * p.tile_rows), p.tile_rows);
  p.row_block = std::min(p.row_block, round_up(kRowBlock, p.tile_rows));
  count_blocks(call, p);
  p.a = Source::inside, p.b = Source::ahead;
}

}  // namespace

bool is_plain(const Lens& lens) {
  return lens.strided() && lens.type == FloatType::f32;
}

GemmCall turn(const GemmCall& call) {
  return {call.n,   call.m,        call.k,          GemmInit::overwrite, call.b,         call.a,
          call.c,   call.c_stride, nullptr,         call.epilogue,       call.exchanged, call.threads,
          call.isa, call.bf16,     call.bf16_stride};
}

namespace {

bool should_turn(const GemmCall& call) {
  return call.a.depth_contiguous() && call.b.depth_contiguous() && call.m <= kTurnedRows && 2 * call.m <= call.n &&
         pairs_of(call.k) * round_up(call.m, 32) * sizeof(float) <= kAheadBytes;
}

TilePlan make_plan(const GemmCall& call, bool pairs, Isa isa, bool turned) {
  TilePlan p;
  p.turned = turned;
  p.pairs = pairs;
  p.depth = p.pairs ? pairs_of(call.k) : call.k;
  size_t depth_block = kDepthBlock, group = 1;
  if (p.pairs) {
    const PairKernels kernels = pair_kernels(isa);
    p.kernels = kernels.tile, p.depth_unit = kernels.depth_unit;
    depth_block = kernels.depth_block, group = kernels.group;
    p.pair_copies = kernels.copies && call.b.rows_contiguous();
  } else {
    p.kernels = tile_kernels(isa);
  }
  p.tile_rows = call.m <= p.kernels.rows ? call.m : div_up(call.m, div_up(call.m, p.kernels.rows));
  if (turned) {
    choose_turned_blocks(call, p);
  } else {
    choose_blocks(call, p, depth_block);
    share_out(call, p);
    choose_sources(call, p);
  }
  p.rows_ahead = p.b == Source::inside && is_plain(call.b) && call.b.row_stride == 1 && has_large_l2();
  p.a_row_stride = pair_row_stride(p.depth_block);
  p.a_panel = p.pairs ? p.tile_rows * p.a_row_stride : round_up(p.depth_block * p.tile_rows, 16) + kSlack;
  p.b_panel = round_up(p.depth_block, p.depth_unit) * p.kernels.columns + kSlack;

  const bool a_large = call.m * p.depth * sizeof(float) > kAheadBytes;
  p.phased = !turned && p.slices == 1 && p.depth_blocks > 1 && !packs_at_once(call, p) &&
             (p.b == Source::ahead || (p.a == Source::ahead && a_large));
  const size_t depths = p.phased ? 1 : p.depth_blocks;
  p.row_chunk = p.row_blocks, p.column_chunk = p.column_blocks;
  if (p.phased) {
    const size_t limit = kAheadBytes / sizeof(float) / p.depth_block;  // rows or columns
    if (p.a == Source::ahead) p.row_chunk = std::clamp<size_t>(limit / p.row_block, 1, p.row_blocks);
    if (p.b == Source::ahead) p.column_chunk = std::clamp<size_t>(limit / p.column_block, 1, p.column_blocks);
  }
  if (p.a == Source::ahead) p.a_ahead = p.a_panel * p.tiles(std::min(call.m, p.row_chunk * p.row_block)) * depths;
  if (p.b == Source::ahead)
    p.b_ahead = p.b_panel * p.panels(std::min(call.n, p.column_chunk * p.column_block)) * depths;
  p.a_ahead = round_up(p.a_ahead, 16), p.b_ahead = round_up(p.b_ahead, 16);

  if (p.slices > 1) {
    p.slice_stride = round_up(call.n, 16);
    p.slice_floats = p.slice_stride * call.m;
  }
  if (p.a == Source::inside) p.thread_floats += p.a_panel * (p.b == Source::inside ? p.tiles(p.row_block) : 1);
  const bool b_tail = p.b == Source::direct && call.n % p.kernels.columns != 0 && !p.kernels.masks;
  p.panel_group = std::min(group, p.panels(p.column_block));
  if (p.b == Source::inside || b_tail) p.thread_floats += p.b_panel * p.panel_group;
  if (turned) p.c_floats = p.row_block * (p.column_block + 16);
  p.thread_floats = round_up(p.thread_floats + p.c_floats, 16);
  p.threads = threads_of(call, p.row_chunk * p.column_chunk * p.slices, call.m * call.n * p.depth / kWorkPerByte);
  return p;
}

}  // namespace

TilePlan make_tile_plan(const GemmCall& call, bool pairs, Isa isa) {
  const bool turned = pairs && should_turn(call);
  return turned ? make_plan(turn(call), true, isa, true) : make_plan(call, pairs, isa, false);
}

}  // namespace bnns::detail
