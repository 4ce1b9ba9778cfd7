// Products with one or very few vectors (batch 1), and rank-one updates: bound by memory, so nothing large is packed.
#include <algorithm>

#include "src/gemm/plan.h"

namespace bnns::detail {
namespace {

// Above this many vectors the tile kernel wins although it packs (gemm_bench, 2 threads, 1024 x 1024).
constexpr size_t kMaxVectors = 4;

enum class Way { none, dot, axpy, rank_one };

struct Skinny {
  Way way = Way::none;
  bool vectors_are_columns = false;   // the few vectors are B's, the matrix is A
};

bool is_plain_vector(const Lens& lens) {
  return lens.strided() && lens.type == FloatType::f32 && lens.depth_stride == 1;
}

Skinny choose(const GemmCall& call) {
  // k = 1: the outer product writes rows of C from end to end.
  if (call.k == 1 && call.m > 1 && call.n > 1 && call.a.strided() && call.b.strided()) return {Way::rank_one, false};
  for (const bool columns : {false, true}) {
    const size_t vectors = columns ? call.n : call.m;
    const Lens& matrix = columns ? call.a : call.b;
    if (vectors > kMaxVectors || !matrix.strided()) continue;
    if (matrix.depth_contiguous()) return {Way::dot, columns};
    // y must be contiguous along the matrix's rows.
    if (matrix.rows_contiguous() && (!columns || call.c_stride == 1)) return {Way::axpy, columns};
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
  parallel_for(tasks, threads_for(call.threads, tasks, call.m * call.n), [&](size_t task, size_t) {
    const Range part{task * rows, std::min(call.m, (task + 1) * rows)};
    const bool accumulate = call.prepare(part, {0, call.n});
    rank_one(part, call.n, factors[0], factors[1], call.c, call.c_stride, accumulate, stream);
    call.finish(part, {0, call.n});
  });
}

}  // namespace

bool skinny_accepts(const GemmCall& call) noexcept {
  return choose(call).way != Way::none;
}

size_t skinny_workspace_bytes(const GemmCall& call) noexcept {
  const Skinny s = choose(call);
  size_t floats = 0;
  if (s.way == Way::rank_one) {
    const auto needs = [](const Lens& lens) {
      return lens.type != FloatType::f32 || lens.row_stride != 1;
    };
    if (needs(call.a) || needs(call.b)) floats = packed_stride(call.m) + packed_stride(call.n);
  } else {
    const Lens& vectors = s.vectors_are_columns ? call.b : call.a;
    if (!is_plain_vector(vectors)) floats = (s.vectors_are_columns ? call.n : call.m) * packed_stride(call.k);
  }
  return floats * sizeof(float);
}

void skinny_run(const GemmCall& call, void* workspace) noexcept {
  const Skinny s = choose(call);
  if (s.way == Way::rank_one) return run_rank_one(call, static_cast<float*>(workspace));

  const Lens& vectors = s.vectors_are_columns ? call.b : call.a;
  const size_t rows = s.vectors_are_columns ? call.m : call.n;
  SkinnyBlock block;
  block.vectors = s.vectors_are_columns ? call.n : call.m;
  block.depth = call.k;
  block.w = s.vectors_are_columns ? call.a : call.b;
  block.y = call.c;
  block.y_vector_stride = s.vectors_are_columns ? 1 : call.c_stride;
  block.y_row_stride = s.vectors_are_columns ? call.c_stride : 1;
  if (is_plain_vector(vectors)) {
    block.x = static_cast<const float*>(vectors.data);
    block.x_stride = vectors.row_stride;
  } else {
    block.x = pack_vectors(vectors, block.vectors, call.k, static_cast<float*>(workspace));
    block.x_stride = static_cast<ptrdiff_t>(packed_stride(call.k));
  }

  // dot: some 256 KB of the matrix per task. axpy: whole cache lines of y, at most a page of each row of the matrix.
  const size_t step = s.way == Way::dot ? round_up(std::max<size_t>(1, 65536 / call.k), 8)
                                        : std::clamp<size_t>(round_up(divide_up(rows, 8), 16), 64, 1024);
  const size_t tasks = divide_up(rows, step);
  parallel_for(tasks, threads_for(call.threads, tasks, call.m * call.n * call.k), [&](size_t task, size_t) {
    SkinnyBlock part = block;
    part.rows = {task * step, std::min(rows, (task + 1) * step)};
    const Range all{0, part.vectors};
    const Range c_rows = s.vectors_are_columns ? part.rows : all, c_columns = s.vectors_are_columns ? all : part.rows;
    part.accumulate = call.prepare(c_rows, c_columns);
    s.way == Way::dot ? skinny_dot(part) : skinny_axpy(part);
    call.finish(c_rows, c_columns);
  });
}

}  // namespace bnns::detail
