// Products with one or very few vectors (batch 1), and rank-one updates: bound by memory, so nothing large is packed.
#include <algorithm>

#include "src/gemm/plan.h"

namespace bnns::detail {
namespace {

constexpr size_t kMaxVectors = 9;       // of dot: above, the tile kernel wins although it packs
constexpr size_t kShortDepth = 32;      // below it, dot with four vectors and more spends its time joining lanes
constexpr size_t kFarSize = 1 << 19;    // elements of the matrix: not expected in cache
constexpr size_t kSliceSize = 1 << 17;  // elements of the matrix: from here on several threads are worth a second pass

enum class Way { none, dot, axpy, rank_one };

struct Skinny {
  Way way = Way::none;
  bool vectors_are_columns = false;  // the few vectors are B's, the matrix is A
  size_t slices = 1;                 // axpy: of the depth
};

bool is_plain_vector(const Lens& lens) {
  return lens.strided() && lens.type == FloatType::f32 && lens.depth_stride == 1;
}

Skinny choose(const GemmCall& call) {
  // k = 1: the outer product writes rows of C from end to end.
  if (call.k == 1 && call.m > 1 && call.n > 1 && call.a.strided() && call.b.strided()) return {Way::rank_one, false};
  for (const bool columns : {false, true}) {
    const size_t vectors = columns ? call.n : call.m, rows = columns ? call.m : call.n;
    const Lens& matrix = columns ? call.a : call.b;
    if (vectors > kMaxVectors || !matrix.strided()) continue;
    if (matrix.depth_contiguous() && (vectors < 4 || call.k >= kShortDepth)) return {Way::dot, columns};
    // y must be contiguous along the matrix's rows.
    if (vectors == 1 && matrix.rows_contiguous() && (!columns || call.c_stride == 1)) {
      const bool large = rows * call.k >= kSliceSize;
      return {Way::axpy, columns, large ? std::clamp<size_t>(call.k / 64, 1, 8) : 1};
    }
  }
  return {};
}

// Packed vectors: row i at i * stride floats.
size_t packed_stride(size_t depth) {
  return round_up(depth, 16) + 16;
}

float* pack_vectors(const Lens& lens, size_t vectors, size_t depth, float* workspace) {
  pack(lens, {0, vectors}, {0, depth}, {workspace, 1, packed_stride(depth)});
  return workspace;
}

// Rank one wants x (m) and y (n) as plain vectors along their rows: the same, with rows and depth exchanged.
Lens along_rows(const Lens& lens) {
  Lens turned = lens;
  std::swap(turned.row_stride, turned.depth_stride);
  return turned;
}

void run_rank_one(const GemmCall& call, float* workspace) {
  const float* factors[2];
  const Lens* lenses[2] = {&call.a, &call.b};
  const size_t sizes[2] = {call.m, call.n};
  for (int i = 0; i < 2; ++i) {
    const Lens& lens = *lenses[i];
    if (lens.type == FloatType::f32 && lens.row_stride == 1) {
      factors[i] = static_cast<const float*>(lens.data);
    } else {
      factors[i] = pack_vectors(along_rows(lens), 1, sizes[i], workspace);
    }
    workspace += packed_stride(sizes[i]);
  }
  const bool stream = can_stream(call);
  const size_t rows = std::max<size_t>(1, divide_up(65536, call.n));
  const size_t tasks = divide_up(call.m, rows);
  parallel_for(tasks, threads_of(call, tasks, call.m * call.n), [&](size_t task, size_t) {
    const Range part{task * rows, std::min(call.m, (task + 1) * rows)};
    const bool accumulate = call.prepare(part, {0, call.n});
    rank_one(part, call.n, factors[0], factors[1], call.c, call.c_stride, accumulate, stream);
    call.finish(part, {0, call.n});
  });
}

// A few vectors against a matrix with contiguous depth.
void run_dot(const GemmCall& call, const Skinny& s, const SkinnyBlock& block, size_t rows) {
  // Some 256 KB of the matrix per task.
  const bool small = rows * call.k <= 65536;
  const size_t step = small ? rows : round_up(std::max<size_t>(1, 65536 / call.k), 8);
  const size_t tasks = small ? 1 : divide_up(rows, step);
  parallel_for(tasks, threads_of(call, tasks, call.m * call.n * call.k), [&](size_t task, size_t) {
    SkinnyBlock part = block;
    part.rows = {task * step, std::min(rows, (task + 1) * step)};
    const Range all{0, part.vectors};
    const Range c_rows = s.vectors_are_columns ? part.rows : all, c_columns = s.vectors_are_columns ? all : part.rows;
    part.accumulate = call.prepare(c_rows, c_columns);
    skinny_dot(part);
    call.finish(c_rows, c_columns);
  });
}

// One vector against a matrix with contiguous rows. A slice of the depth reads long pieces of rows, as memory likes it,
// into a sum of its own; the slices are then added in order.
void run_axpy(const GemmCall& call, const Skinny& s, const SkinnyBlock& block, size_t rows, float* sums) {
  constexpr size_t kStep = kAxpyColumns;
  const size_t stride = round_up(rows, 16), parts = divide_up(rows, kStep);
  const size_t tasks = s.slices * parts;
  const auto c_rows = [&](Range part) { return s.vectors_are_columns ? part : Range{0, 1}; };
  const auto c_columns = [&](Range part) { return s.vectors_are_columns ? Range{0, 1} : part; };
  parallel_for(tasks, threads_of(call, tasks, rows * call.k), [&](size_t task, size_t) {
    const size_t slice = task / parts, begin = slice * call.k / s.slices;
    SkinnyBlock part = block;
    part.rows = {task % parts * kStep, std::min(rows, (task % parts + 1) * kStep)};
    if (s.slices == 1) {
      part.accumulate = call.prepare(c_rows(part.rows), c_columns(part.rows));
      skinny_axpy(part);
      return call.finish(c_rows(part.rows), c_columns(part.rows));
    }
    part.depth = (slice + 1) * call.k / s.slices - begin;
    part.x += begin;
    part.w = static_cast<const char*>(part.w) + static_cast<ptrdiff_t>(begin * bytes_of(part.type)) * part.w_stride;
    part.y = sums + slice * stride;
    skinny_axpy(part);
  });
  if (s.slices == 1) return;
  const Range all{0, rows};
  const bool accumulate = call.prepare(c_rows(all), c_columns(all));
  add_rows(sums, stride, s.slices, rows, accumulate, call.c);
  call.finish(c_rows(all), c_columns(all));
}

}  // namespace

bool skinny_workspace_bytes(const GemmCall& call, size_t* bytes) noexcept {
  const Skinny s = choose(call);
  if (s.way == Way::none) return false;
  size_t floats = 0;
  if (s.way == Way::rank_one) {
    const auto needs = [](const Lens& lens) { return lens.type != FloatType::f32 || lens.row_stride != 1; };
    if (needs(call.a) || needs(call.b)) floats = packed_stride(call.m) + packed_stride(call.n);
  } else {
    const Lens& vectors = s.vectors_are_columns ? call.b : call.a;
    if (!is_plain_vector(vectors)) floats = (s.vectors_are_columns ? call.n : call.m) * packed_stride(call.k);
    if (s.slices > 1) floats += s.slices * round_up(s.vectors_are_columns ? call.m : call.n, 16);
  }
  *bytes = floats * sizeof(float);
  return true;
}

bool skinny_run(const GemmCall& call, void* workspace) noexcept {
  const Skinny s = choose(call);
  float* memory = static_cast<float*>(workspace);
  if (s.way == Way::none) return false;
  if (s.way == Way::rank_one) {
    run_rank_one(call, memory);
    return true;
  }

  const Lens& vectors = s.vectors_are_columns ? call.b : call.a;
  const size_t rows = s.vectors_are_columns ? call.m : call.n;
  SkinnyBlock block;
  block.vectors = s.vectors_are_columns ? call.n : call.m;
  block.depth = call.k;
  const Lens& matrix = s.vectors_are_columns ? call.a : call.b;
  block.w = matrix.data;
  block.type = matrix.type;
  block.w_stride = s.way == Way::dot ? matrix.row_stride : matrix.depth_stride;
  block.w_far = rows * call.k >= kFarSize;
  block.y = call.c;
  block.y_vector_stride = s.vectors_are_columns ? 1 : call.c_stride;
  block.y_row_stride = s.vectors_are_columns ? call.c_stride : 1;
  if (is_plain_vector(vectors)) {
    block.x = static_cast<const float*>(vectors.data);
    block.x_stride = vectors.row_stride;
  } else {
    block.x = pack_vectors(vectors, block.vectors, call.k, memory);
    block.x_stride = static_cast<ptrdiff_t>(packed_stride(call.k));
    memory += block.vectors * packed_stride(call.k);
  }
  if (s.way == Way::axpy) {
    run_axpy(call, s, block, rows, memory);
  } else {
    run_dot(call, s, block, rows);
  }
  return true;
}

}  // namespace bnns::detail
