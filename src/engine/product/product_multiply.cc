// One product step on the GEMM core.
//
// Every index is one of four kinds: rows (A and C), columns (B and C), depth (A and B: summed), repetition (all three).
// Axes of a kind that lie one after the other in both tensors are one axis. What is left beyond one axis each of rows
// and columns becomes repetition, or, where that would leave slivers, is flattened: operands are then packed by a lens
// that walks several axes, and results go through a block of scratch. Depth is always flattened, so a sum is never
// cut into passes over C.
//
// Many small products run in parallel, each on one thread; few large ones run one after the other, each on all threads.
// The GEMM core gives the same bits either way.

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/core/checked.h"
#include "src/core/memory.h"
#include "src/engine/product/product_lens.h"
#include "src/engine/product/product_plan.h"
#include "src/gemm/gemm.h"
#include "src/tensor/elements.h"

namespace bnns::detail {
namespace {

constexpr size_t kSliver = 32;            // rows or columns: with fewer, the tile kernel runs half empty
constexpr size_t kLargeWork = 1 << 22;    // multiply-adds: gemm keeps all threads busy
constexpr size_t kGroupWork = 1 << 15;    // multiply-adds of a task
constexpr size_t kStageFloats = 1 << 18;  // of C in scratch: 1 MB, but at least kStageRows rows
constexpr size_t kStageRows = 256;

FloatType lens_type(const ProductView& v) {
  return v.type() == BNNSDataTypeFloat16    ? FloatType::f16
         : v.type() == BNNSDataTypeBFloat16 ? FloatType::bf16
                                            : FloatType::f32;
}

// A step brought into the form of one matrix product, repeated.
struct Multiply {
  const ProductStep& step;
  AxisList rows, columns, depth, loops;
  ProductSide a = kSideA, b = kSideB;  // exchanged where that makes C's rows contiguous
  size_t m = 1, n = 1, k = 1, count = 1;
  bool direct = false, elements = false;
  size_t stage_rows = 0;
  size_t outer_threads = 1, inner_threads = 1, group = 1;
  size_t stage_bytes = 0, gemm_bytes = 0, slot_bytes = 0;

  Multiply(const ProductStep& s, size_t threads) : step(s) {
    classify();
    choose();
    if (!elements) plan_threads(threads);
  }
  size_t bytes() const { return elements ? 0 : checked_mul(slot_bytes, outer_threads, "scratch of the product"); }

  bool grid(const AxisList& of_rows) const { return of_rows.n > 1 || depth.n > 1; }
  // A lens with the strides of one operand and no data.
  Lens lens(ProductSide side, const AxisList& of_rows, const GridLens* context) const {
    const ProductView& v = step.view[side];
    if (is_one(side)) return strided_lens(nullptr, FloatType::f32, 0, 0);
    if (grid(of_rows)) return {nullptr, lens_type(v), 0, 0, GridLens::pack_block, context};
    return strided_lens(nullptr, lens_type(v), of_rows.n ? static_cast<ptrdiff_t>(of_rows.axis[0].stride[side]) : 0,
                        depth.n ? static_cast<ptrdiff_t>(depth.axis[0].stride[side]) : 0);
  }
  bool is_one(ProductSide side) const { return side == kSideB && !step.has_b; }
  GemmOutput output() const {
    if (!direct) return {nullptr, n, 1};
    return {nullptr, rows.n ? rows.axis[0].stride[kSideC] : 0, columns.n ? columns.axis[0].stride[kSideC] : 1};
  }
  GemmProblem problem(size_t of_rows) const {
    return {of_rows, n, k, step.accumulate && direct ? GemmInit::accumulate : GemmInit::overwrite};
  }

 private:
  void classify() {
    for (size_t i = 0; i < step.axes.n; ++i) {
      const ProductAxis& x = step.axes.axis[i];
      const bool in_a = x.stride[kSideA], in_b = x.stride[kSideB], in_c = x.stride[kSideC];
      (!in_c ? depth : in_a && in_b ? loops : in_a ? rows : columns).add(x);
    }
    for (AxisList* list : {&rows, &columns, &loops}) {
      list->sort(kSideC);
      list->fuse();
    }
    depth.sort(kSideA);
    depth.fuse();
    const auto fastest = [](const AxisList& list) { return list.n ? list.axis[0].stride[kSideC] : SIZE_MAX; };
    if (step.has_b && fastest(rows) < fastest(columns)) {
      std::swap(rows, columns);
      std::swap(a, b);
    }
  }

  // Keeps axis `kept` and makes the others repetition.
  void split(AxisList* list, size_t kept) {
    for (size_t i = 0; i < list->n; ++i) {
      if (i != kept) loops.add(list->axis[i]);
    }
    list->axis[0] = list->axis[kept];
    list->n = 1;
  }

  void choose() {
    const auto longest = [](const AxisList& list) {
      size_t best = 0;
      for (size_t i = 1; i < list.n; ++i) {
        if (list.axis[i].extent > list.axis[best].extent) best = i;
      }
      return best;
    };
    // The fastest axis of C is kept among the columns: results are then written along memory.
    if (columns.n > 1 && columns.axis[0].extent >= kSliver) split(&columns, 0);
    if (const size_t best = longest(rows); rows.n > 1 && rows.axis[best].extent >= kSliver) split(&rows, best);
    while (columns.n > kMaxRank) loops.add(columns.axis[--columns.n]);  // what Elements can walk
    // A sum (no B) has one column; where its rows lie apart, each stretch of rows is a sum of its own.
    if (!step.has_b && rows.n > 1 && rows.axis[0].extent * depth.count() >= kElementWork) split(&rows, 0);
    if (depth.n > 1) std::swap(depth.axis[0], depth.axis[longest(depth)]);  // long stretches for the packers
    m = rows.count(), n = columns.count(), k = depth.count();
    loops.sort(kSideC);
    loops.fuse();
    count = loops.count();
    elements = by_elements(m * n * k, count);
    const bool plain_c = step.view[kSideC].type() == BNNSDataTypeFloat32 && rows.n <= 1 && columns.n <= 1;
    const bool unit = columns.n == 0 || rows.n == 0 || columns.axis[0].stride[kSideC] == 1;
    direct = plain_c && unit && !(step.accumulate && step.alpha != 1);
  }

  void plan_threads(size_t threads) {
    const size_t work = m * n * k;  // fits: bind_indices checked the product of all extents
    const bool outside = count > 1 && (count >= 4 * threads || work < kLargeWork);
    group = std::max<size_t>(1, kGroupWork / work);
    const size_t tasks = div_up(count, group);
    outer_threads = outside ? std::max<size_t>(1, threads_for(threads, tasks, count * (work / 2 + 1))) : 1;
    inner_threads = outside ? 1 : threads;
    stage_rows = direct ? m : std::min(m, std::max(kStageRows, kStageFloats / n));
    stage_bytes = direct ? 0 : round_up(checked_mul(stage_rows, n, "scratch of the product") * sizeof(float), 64);
    const GridLens none;
    const Lens la = lens(a, rows, &none), lb = lens(b, columns, &none);
    gemm_bytes = gemm_workspace_bytes(problem(stage_rows), la, lb, output(), inner_threads);
    if (m % stage_rows) {
      gemm_bytes = std::max(gemm_bytes, gemm_workspace_bytes(problem(m % stage_rows), la, lb, output(), inner_threads));
    }
    gemm_bytes = round_up(gemm_bytes, 64);
    slot_bytes = stage_bytes + gemm_bytes;
  }
};

// Where finished blocks go: scaled in place, or from scratch to C.
struct Store {
  const Multiply& p;
  const Elements* row = nullptr;  // one row of C
  const FlatAxis* rows_of_c = nullptr;
  float* block = nullptr;  // C itself when direct
  GemmOutput output = {};
  char* c = nullptr;
  size_t first_row = 0;

  static void run(void* context, Range rows, Range columns) {
    const Store& s = *static_cast<const Store*>(context);
    const ProductStep& step = s.p.step;
    if (step.alpha != 1) s.scale(rows, columns, step.alpha);
    if (s.p.direct) return;
    for (size_t r = rows.begin; r < rows.end; ++r) {
      const float* values = s.block + r * s.p.n + columns.begin;
      void* to = element_at(s.c, step.view[kSideC].type(), s.rows_of_c->offset(s.first_row + r));
      if (step.accumulate) {
        s.row->accumulate(to, columns.begin, columns.size(), values);
      } else if (s.row->direct()) {
        std::memcpy(static_cast<float*>(to) + columns.begin, values, columns.size() * sizeof(float));
      } else {
        s.row->write(to, columns.begin, columns.size(), values);
      }
    }
  }

 private:
  void scale(Range rows, Range columns, float alpha) const {
    const bool along_rows = output.column_stride != 1 && columns.size() > 1;
    const Range outer = along_rows ? columns : rows, inner = along_rows ? rows : columns;
    const size_t outer_stride = along_rows ? output.column_stride : output.row_stride;
    const size_t stride = along_rows ? output.row_stride : output.column_stride;
    for (size_t i = outer.begin; i < outer.end; ++i) {
      float* line = block + i * outer_stride;
      if (stride == 1) {
        for (size_t j = inner.begin; j < inner.end; ++j) line[j] *= alpha;
      } else {
        for (size_t j = inner.begin; j < inner.end; ++j) line[j * stride] *= alpha;
      }
    }
  }
};

// One row of C as a tensor.
Elements row_elements(const ProductView& c, const AxisList& columns) {
  Tensor t;
  if (c.tensor) t = *c.tensor;
  t.type = c.type();
  t.rank = columns.n;
  t.count = columns.count();
  for (size_t i = 0; i < columns.n; ++i) {
    t.axis[i] = static_cast<uint8_t>(i);
    t.size[i] = columns.axis[i].extent;
    t.stride[i] = columns.axis[i].stride[kSideC];
  }
  if (columns.n == 0) t.rank = 1, t.size[0] = t.stride[0] = 1, t.axis[0] = 0;
  return Elements(t);
}

}  // namespace

size_t multiply_scratch_bytes(const ProductStep& step, size_t threads) {
  return Multiply(step, threads).bytes();
}

void multiply_run(const ProductStep& step, void* scratch, size_t threads) {
  const Multiply p(step, threads);
  if (p.elements) {
    ElementProduct e{step, p.loops, p.depth};
    for (const AxisList* list : {&p.columns, &p.rows}) {
      for (size_t i = 0; i < list->n; ++i) e.loops.add(list->axis[i]);
    }
    return element_product_run(e, threads);
  }
  static const float kOne = 1;
  const FlatAxis a_rows(p.rows, p.a), a_depth(p.depth, p.a), b_rows(p.columns, p.b), b_depth(p.depth, p.b);
  const FlatAxis c_rows(p.rows, kSideC);
  const FlatAxis a_loops(p.loops, p.a), b_loops(p.loops, p.b), c_loops(p.loops, kSideC);
  const Elements row = p.direct ? Elements() : row_elements(step.view[kSideC], p.columns);
  const auto base = [&](ProductSide side, const FlatAxis& loops, size_t i) {
    if (p.is_one(side)) return const_cast<char*>(reinterpret_cast<const char*>(&kOne));
    return step.view[side].data + loops.offset(i) * type_bytes(step.view[side].type());
  };
  parallel_for(div_up(p.count, p.group), p.outer_threads, [&](size_t task, size_t worker) {
    char* slot = static_cast<char*>(scratch) + worker * p.slot_bytes;
    GridLens a_grid{nullptr, lens_type(step.view[p.a]), &a_rows, &a_depth};
    GridLens b_grid{nullptr, lens_type(step.view[p.b]), &b_rows, &b_depth};
    Lens a = p.lens(p.a, p.rows, &a_grid), b = p.lens(p.b, p.columns, &b_grid);
    Store store{p, &row, &c_rows};
    const GemmEpilogue epilogue = p.direct && step.alpha == 1 ? GemmEpilogue{} : GemmEpilogue{Store::run, &store};
    for (size_t i = task * p.group; i < std::min(p.count, (task + 1) * p.group); ++i) {
      a_grid.data = base(p.a, a_loops, i);
      b_grid.data = base(p.b, b_loops, i);
      b.data = b_grid.data;
      store.c = base(kSideC, c_loops, i);
      store.output = p.output();
      store.output.data = store.block =
          p.direct ? reinterpret_cast<float*>(store.c) : reinterpret_cast<float*>(slot + p.gemm_bytes);
      for (size_t first = 0; first < p.m; first += p.stage_rows) {
        a_grid.first_row = store.first_row = first;
        a.data = a_grid.data + static_cast<size_t>(a.row_stride) * first * bytes_of(a.type);
        gemm(p.problem(std::min(p.stage_rows, p.m - first)), a, b, store.output, nullptr, epilogue,
             p.gemm_bytes ? slot : nullptr, p.inner_threads);
      }
    }
  });
}

}  // namespace bnns::detail
