// The fold: blocks in f32 by the kernels, joined in double, results handed to a sink.
//
// Work is cut by the shape: a unit is a block of results, a step a block of what is folded into them. Where there are
// few units, their steps are cut into segments whose states are kept and joined in order.

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/engine/copy/copy.h"
#include "src/ops/reduction/reduction_plan.h"

namespace bnns {
namespace {

using Kind = ReductionFold::Kind;

constexpr size_t kMaxColumns = kMaxReductionColumns;
constexpr size_t kBufferFloats = 8192;   // elements of a block that is converted or transposed: 32 KiB
constexpr size_t kWide = 64;             // narrow columns are put side by side up to this width
constexpr size_t kTaskElements = 32768;  // elements of a task
constexpr size_t kFewUnits = 32, kMaxSegments = 64;

// The larger (smaller), NaN, which also stands for "none yet", after any number; on equals the lower place.
bool is_better(bool largest, double a, size_t a_place, double b, size_t b_place) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(b) && (!std::isnan(a) || a_place < b_place);
  return a == b ? a_place < b_place : largest ? a > b : a < b;
}

struct Fold : ReductionFold {
  explicit Fold(ReductionFold fold) : ReductionFold(fold) {}
  bool largest() const { return term == ReductionTerm::maximum || term == ReductionTerm::any; }
  double identity() const {
    if (kind == Kind::product) return 1;
    if (kind == Kind::sum || kind == Kind::exponential) return 0;
    return std::numeric_limits<double>::quiet_NaN();
  }
  void clear(const ReductionCells& cells, size_t n) const {
    std::fill_n(cells.value, n, identity());
    if (kind == Kind::exponential) std::fill_n(cells.shift, n, -std::numeric_limits<double>::infinity());
    if (kind == Kind::choose) std::fill_n(cells.place, n, std::numeric_limits<size_t>::max());
  }
  // Joins one more state to cell i.
  void join(const ReductionCells& cells, size_t i, double value, double shift, size_t place) const {
    switch (kind) {
      case Kind::sum:
        cells.value[i] += value;
        break;
      case Kind::product:
        cells.value[i] *= value;
        break;
      case Kind::extreme:
        if (is_better(largest(), value, 0, cells.value[i], 1)) cells.value[i] = value;
        break;
      case Kind::choose:
        if (is_better(largest(), value, place, cells.value[i], cells.place[i])) {
          cells.value[i] = value;
          cells.place[i] = place;
        }
        break;
      case Kind::exponential: {
        // sum e^(x - shift), where an infinite shift stands for 0.
        const double old = cells.shift[i];
        const double top = std::isnan(shift) || shift > old ? shift : old;
        const double ours = old == top ? 1 : std::exp(old - top), theirs = shift == top ? 1 : std::exp(shift - top);
        cells.value[i] = cells.value[i] * ours + value * theirs;
        cells.shift[i] = top;
        break;
      }
    }
  }
};

struct Buffers {
  alignas(64) float x[kBufferFloats], w[kBufferFloats], x_turned[kBufferFloats], w_turned[kBufferFloats];
  alignas(64) float result[kBufferFloats], shift[kMaxColumns];
  alignas(64) double product[kMaxColumns];
  int32_t row[kMaxColumns];
};

// x or w: blocks of it as f32.
class Operand {
 public:
  Operand() = default;
  // A block has rows `major` apart, whose elements are `minor` apart.
  Operand(const Tensor& t, size_t major, size_t minor, size_t extent)
      : tensor_(&t), major_(major), lens_(row_elements(t, extent, minor)) {}
  bool present() const { return tensor_ != nullptr; }
  bool direct() const { return lens_.direct(); }
  ReductionMatrix load(size_t offset, size_t first, size_t rows, size_t n, float* buffer) const {
    if (!tensor_) return {};
    const void* base = element_at(static_cast<const void*>(tensor_->data), tensor_->type, offset);
    if (lens_.direct()) return {static_cast<const float*>(base) + first, major_};
    for (size_t r = 0; r < rows; ++r) {
      const float* row = lens_.read(element_at(base, tensor_->type, r * major_), first, n, buffer + r * n);
      if (row != buffer + r * n) std::copy(row, row + n, buffer + r * n);  // a row of one element is read in place
    }
    return {buffer, n};
  }

 private:
  const Tensor* tensor_ = nullptr;
  size_t major_ = 0;
  Elements lens_;
};

ReductionMatrix turn(ReductionMatrix m, size_t rows, size_t n, float* buffer) {
  if (!m.data) return m;
  transpose_tile(reinterpret_cast<const uint32_t*>(m.data), static_cast<ptrdiff_t>(m.step),
                 reinterpret_cast<uint32_t*>(buffer), static_cast<ptrdiff_t>(rows), rows, n);
  return {buffer, rows};
}

class Walk {
 public:
  Walk(const ReductionPlan& plan, ReductionFold fold, float epsilon, const Tensor& x, const Tensor* w)
      : p_(plan), fold_(fold), epsilon_(epsilon), by_rows_(plan.form != ReductionForm::columns) {
    const ReductionAxis &major = by_rows_ ? p_.columns : p_.run, &minor = by_rows_ ? p_.run : p_.columns;
    x_ = Operand(x, major.x, minor.x, minor.extent);
    if (w) w_ = Operand(*w, major.w, minor.w, minor.extent);
    const bool direct = x_.direct() && (!w || w_.direct());
    const size_t run = std::max<size_t>(1, std::min(p_.run.extent, fold.run));
    if (by_rows_) {
      run_block_ = run;
      column_block_ = std::clamp<size_t>(kBufferFloats / run, 1, std::min<size_t>(p_.columns.extent, 256));
    } else {
      column_block_ = std::min(p_.columns.extent, kMaxColumns);
      run_block_ = direct ? fold.rows : std::min(fold.rows, kBufferFloats / column_block_);
      const bool dense = direct && p_.columns.extent == column_block_ && p_.run.x == column_block_ &&
                         (!w || p_.run.w == column_block_);
      if (dense && column_block_ * 2 <= kWide && p_.run.extent >= kWide) {
        side_by_side_ = kWide / column_block_;
        run_block_ *= side_by_side_;
      }
    }
    column_blocks_ = div_up(p_.columns.extent, column_block_);
    run_blocks_ = div_up(p_.run.extent, run_block_);
  }

  size_t column_block() const { return column_block_; }
  size_t units() const { return p_.outer_kept_count * column_blocks_; }
  size_t steps() const { return p_.outer_reduced_count * run_blocks_; }
  size_t columns(size_t unit) const {
    const size_t first = unit % column_blocks_ * column_block_;
    return std::min(column_block_, p_.columns.extent - first);
  }
  size_t y_offset(size_t unit) const {
    size_t offset = unit % column_blocks_ * column_block_ * p_.columns.y, rest = unit / column_blocks_;
    for (size_t k = 0; k < p_.outer_kept_rank; rest /= p_.outer_kept[k++].extent) {
      offset += rest % p_.outer_kept[k].extent * p_.outer_kept[k].y;
    }
    return offset;
  }

  // Folds steps [begin, end) of a unit into cells.
  void run(size_t unit, size_t begin, size_t end, const ReductionCells& cells, Buffers& buffers) const {
    const size_t first = unit % column_blocks_ * column_block_, n = columns(unit);
    size_t x = 0, w = 0, rest = unit / column_blocks_;
    for (size_t k = 0; k < p_.outer_kept_rank; rest /= p_.outer_kept[k++].extent) {
      const size_t at = rest % p_.outer_kept[k].extent;
      x += at * p_.outer_kept[k].x, w += at * p_.outer_kept[k].w;
    }
    fold_.clear(cells, n);
    for (size_t step = begin; step < end; ++step) {
      Block b{first, n, step % run_blocks_ * run_block_, 0, x, w, 0};
      b.length = std::min(run_block_, p_.run.extent - b.start);
      b.place = b.start * p_.run.place;
      size_t outer = step / run_blocks_;
      for (size_t k = 0; k < p_.outer_reduced_rank; outer /= p_.outer_reduced[k++].extent) {
        const ReductionAxis& a = p_.outer_reduced[k];
        const size_t at = outer % a.extent;
        b.x += at * a.x, b.w += at * a.w, b.place += at * a.place;
      }
      by_rows_ ? fold_rows(b, cells, buffers) : fold_columns(b, cells, buffers);
    }
  }

 private:
  struct Block {
    size_t first, n;       // columns
    size_t start, length;  // of the run
    size_t x, w;           // offsets of the first element of the run and the columns
    size_t place;          // of the first element of the block
  };

  void fold_rows(const Block& b, const ReductionCells& cells, Buffers& buffers) const {
    const ReductionMatrix x = x_.load(b.x + b.first * p_.columns.x, b.start, b.n, b.length, buffers.x);
    const ReductionMatrix w = w_.load(b.w + b.first * p_.columns.w, b.start, b.n, b.length, buffers.w);
    if (p_.form == ReductionForm::short_rows) {
      fold_matrix(turn(x, b.n, b.length, buffers.x_turned), turn(w, b.n, b.length, buffers.w_turned), b.length, b.n, 1,
                  b.place, cells, buffers);
      return;
    }
    float* y = buffers.result;
    switch (fold_.kind) {
      case Kind::product:
        product_rows(x, w, b.n, b.length, buffers.product);
        for (size_t c = 0; c < b.n; ++c) fold_.join(cells, c, buffers.product[c], 0, 0);
        return;
      case Kind::exponential:
        reduce_rows(ReductionTerm::present, x, w, b.n, b.length, 0, buffers.shift);
        exp_rows(x, w, b.n, b.length, finite_shift(buffers, b.n), y);
        break;
      default:
        reduce_rows(fold_.term, x, w, b.n, b.length, epsilon_, y);
    }
    for (size_t c = 0; c < b.n; ++c) {
      size_t place = b.place;
      if (fold_.kind == Kind::choose) {
        // Where it is, only if it may win: rarely after the first blocks.
        if (!is_better(fold_.largest(), y[c], b.place, cells.value[c], cells.place[c])) continue;
        const float* weights = w.data ? w.data + c * w.step : nullptr;
        place += find_first(x.data + c * x.step, weights, b.length, y[c]) * p_.run.place;
      }
      fold_.join(cells, c, y[c], buffers.shift[c], place);
    }
  }

  void fold_columns(const Block& b, const ReductionCells& cells, Buffers& buffers) const {
    const size_t glue = b.length >= 2 * side_by_side_ ? side_by_side_ : 1, rows = b.length / glue;
    const size_t x = b.x + b.start * p_.run.x, w = b.w + b.start * p_.run.w;
    ReductionMatrix xs = x_.load(x, b.first, b.length, b.n, buffers.x),
                    ws = w_.load(w, b.first, b.length, b.n, buffers.w);
    const ReductionMatrix x_left = xs, w_left = ws;
    xs.step *= glue, ws.step *= glue;
    fold_matrix(xs, ws, rows, b.n, glue, b.place, cells, buffers);
    if (const size_t done = rows * glue; done < b.length) {
      fold_matrix({x_left.data + done * x_left.step, x_left.step},
                  {w_left.data ? w_left.data + done * w_left.step : nullptr, w_left.step}, b.length - done, b.n, 1,
                  b.place + done * p_.run.place, cells, buffers);
    }
  }

  // Columns of a matrix that holds `glue` rows of n columns side by side.
  void fold_matrix(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, size_t glue, size_t place,
                   const ReductionCells& cells, Buffers& buffers) const {
    float* y = buffers.result;
    const size_t wide = n * glue;
    switch (fold_.kind) {
      case Kind::product:
        product_columns(x, w, rows, wide, buffers.product);
        for (size_t i = 0; i < wide; ++i) cells.value[i % n] *= buffers.product[i];
        return;
      case Kind::exponential:
        reduce_columns(ReductionTerm::present, x, w, rows, wide, 0, buffers.shift);
        exp_columns(x, w, rows, wide, finite_shift(buffers, wide), y);
        break;
      case Kind::choose:
        arg_columns(fold_.largest(), x, w, rows, wide, y, buffers.row);
        break;
      default:
        reduce_columns(fold_.term, x, w, rows, wide, epsilon_, y);
    }
    for (size_t g = 0; g < glue; ++g, y += n) {
      if (fold_.kind == Kind::sum) {
        for (size_t c = 0; c < n; ++c) cells.value[c] += static_cast<double>(y[c]);
        continue;
      }
      if (fold_.kind == Kind::extreme) {
        const bool largest = fold_.largest();
        for (size_t c = 0; c < n; ++c) {  // as is_better, without branches
          const double v = static_cast<double>(y[c]), old = cells.value[c];
          cells.value[c] = (largest ? v > old : v < old) || old != old ? v : old;
        }
        continue;
      }
      for (size_t c = 0; c < n; ++c) {
        size_t at = place;
        if (fold_.kind == Kind::choose) {
          at += (static_cast<size_t>(buffers.row[g * n + c]) * glue + g) * p_.run.place;
        }
        fold_.join(cells, c, y[c], buffers.shift[g * n + c], at);
      }
    }
  }

  // What is subtracted before exp: the maximum of what has a weight, or 0 where that is infinite.
  float* finite_shift(Buffers& buffers, size_t n) const {
    float* shift = buffers.result + kBufferFloats - n;  // results are no more than n
    for (size_t i = 0; i < n; ++i) shift[i] = std::isinf(buffers.shift[i]) ? 0 : buffers.shift[i];
    return shift;
  }

  const ReductionPlan& p_;
  Fold fold_;
  float epsilon_;
  bool by_rows_;
  Operand x_, w_;
  size_t run_block_ = 1, column_block_ = 1, side_by_side_ = 1;
  size_t run_blocks_ = 1, column_blocks_ = 1;
};

}  // namespace

void run_reduction(const ReductionPlan& plan, ReductionFold fold, float epsilon, const Tensor& x, const Tensor* w,
                   const ReductionSink& sink, size_t n_threads, ScratchShelf& shelf) {
  const Walk walk(plan, fold, epsilon, x, w);
  const Fold state(fold);
  const size_t units = walk.units(), steps = walk.steps(), block = walk.column_block();
  const size_t per_unit = plan.run.extent * plan.outer_reduced_count * block, total = per_unit * units;
  const size_t segments =
      units >= kFewUnits ? 1 : std::clamp<size_t>(total / kTaskElements / units, 1, std::min(steps, kMaxSegments));
  const size_t group = std::max<size_t>(1, kTaskElements / (per_unit / segments));
  const size_t groups = div_up(units, group), tasks = groups * segments;
  const size_t threads = threads_for(n_threads, tasks, total);

  const char* what = "the partial results of a reduction";
  const size_t cells = segments > 1 ? checked_mul(checked_mul(units, segments, what), block, what) : 0;
  const size_t buffers_bytes = checked_mul(threads, sizeof(Buffers), what);
  const ScratchShelf::Lease lease(
      shelf, checked_add(buffers_bytes, checked_mul(cells, 2 * sizeof(double) + sizeof(size_t), what), what));
  Buffers* buffers = lease.as<Buffers>();
  double* values = reinterpret_cast<double*>(buffers + threads);
  const auto kept = [&](size_t unit, size_t segment) {
    const size_t at = (unit * segments + segment) * block;
    return ReductionCells{values + at, values + cells + at, reinterpret_cast<size_t*>(values + 2 * cells) + at};
  };

  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    double value[kMaxColumns], shift[kMaxColumns];
    size_t place[kMaxColumns];
    const ReductionCells local{value, shift, place};
    const size_t segment = task % segments, first = task / segments * group;
    for (size_t unit = first; unit < std::min(units, first + group); ++unit) {
      const ReductionCells to = segments > 1 ? kept(unit, segment) : local;
      walk.run(unit, segment * steps / segments, (segment + 1) * steps / segments, to, buffers[worker]);
      if (segments == 1) sink.take(walk.y_offset(unit), walk.columns(unit), to);
    }
  });
  for (size_t unit = 0; unit < units && segments > 1; ++unit) {
    const ReductionCells to = kept(unit, 0);
    const size_t n = walk.columns(unit);
    for (size_t s = 1; s < segments; ++s) {
      const ReductionCells from = kept(unit, s);
      for (size_t c = 0; c < n; ++c) state.join(to, c, from.value[c], from.shift[c], from.place[c]);
    }
    sink.take(walk.y_offset(unit), n, to);
  }
}

}  // namespace bnns
