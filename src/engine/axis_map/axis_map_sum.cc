// Sums of taps. A row of the destination first adds up the rows of the source that the outer axes name, then applies
// the taps of the inner axis. All sums run in the order of the tables, whatever the number of threads; few terms are
// added in f32, many in double beyond kSumRows rows or kLongSum taps (the gradient of a tensor that is repeated often).

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/engine/axis_map/axis_map_plan.h"
#include "src/simd/sums.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr size_t kTaskElements = 16 * 1024;
constexpr size_t kLongSum = 16;  // from here on consecutive taps of weight 1 are summed by vectors

[[gnu::noinline]] float long_sum(const TapRows& taps, size_t begin, size_t end, size_t unit, const float* t) {
  double sum = 0;
  for (size_t k = begin; k < end; ++k) {
    const float value = t[taps.index[k] * unit];
    sum += static_cast<double>(taps.weight ? taps.weight[k] * value : value);
  }
  return static_cast<float>(sum);
}

// y[o] = sum of weight t[index], on positions of `unit` elements.
void apply_inner(const TapRows& taps, size_t unit, const float* t, float* y, size_t n) {
  for (size_t o = 0; o < n; ++o) {
    const size_t begin = taps.first[o], end = taps.first[o + 1];
    if (unit == 1 && !taps.weight && end - begin >= kLongSum &&
        taps.index[end - 1] - taps.index[begin] == end - begin - 1) {
      y[o] = static_cast<float>(row_sum(t + taps.index[begin], end - begin));
      continue;
    }
    if (end - begin > kLongSum) {
      for (size_t c = 0; c < unit; ++c) y[o * unit + c] = long_sum(taps, begin, end, unit, t + c);
      continue;
    }
    for (size_t c = 0; c < unit; ++c) {
      float sum = 0;
      for (size_t k = begin; k < end; ++k) {
        const float term = taps.weight ? taps.weight[k] * t[taps.index[k] * unit + c] : t[taps.index[k] * unit + c];
        sum = k == begin ? term : sum + term;
      }
      y[o * unit + c] = sum;
    }
  }
}

class RowSum {
 public:
  RowSum(const MapPlan& plan, MapDirection direction, const BatchPair& pair)
      : plan_(plan),
        direction_(direction),
        from_(pair.from),
        to_(pair.to),
        from_lens_(row_elements(pair.from, plan.from_row, plan.inner.from)),
        to_lens_(row_elements(pair.to, plan.to_row, plan.inner.to)) {}

  // Whether a row can be the sum of more than kSumRows rows.
  bool is_long() const {
    size_t most = 1;
    for (size_t k = 0; k < plan_.outer_rank && most <= kSumRows; ++k) {
      if (plan_.outer[k].table) most *= std::max<size_t>(1, rows_of(*plan_.outer[k].table).most);
    }
    return most > kSumRows;
  }
  size_t scratch_floats() const {
    const char* what = "the rows of a map";
    const size_t floats = checked_add(checked_mul(2, plan_.from_row, what), plan_.to_row, what);
    return round_up(checked_add(floats, is_long() ? checked_mul(2, plan_.from_row, what) : 0, what), 16);
  }

  // scratch has scratch_floats(), aligned for double.
  void run(const RowCounter& counter, float* scratch) const {
    double* totals = is_long() ? reinterpret_cast<double*>(scratch) : nullptr;
    float* buffer = totals ? scratch + 2 * plan_.from_row : scratch;
    float* sum_buffer = buffer + plan_.from_row;
    float* out_buffer = sum_buffer + plan_.from_row;
    void* base = element_at(to_.data, to_.type, counter.to_offset());
    const bool add = to_.accumulate;
    float* target = add ? out_buffer : to_lens_.target(base, 0, out_buffer);
    const bool inner = plan_.inner.table != nullptr;
    const float* sum = sum_rows(counter, buffer, inner ? sum_buffer : target, totals);
    if (inner) {
      apply_inner(rows_of(*plan_.inner.table), plan_.unit, sum, target, plan_.inner.to_extent);
    } else if (sum != target) {
      if (add || !to_lens_.direct()) {
        target = const_cast<float*>(sum);  // only read from here on
      } else {
        std::memcpy(target, sum, plan_.to_row * sizeof(float));
      }
    }
    add ? to_lens_.accumulate(base, 0, plan_.to_row, target) : to_lens_.write(base, 0, plan_.to_row, target);
  }

 private:
  const TapRows& rows_of(const AxisTable& table) const {
    return direction_ == MapDirection::forward ? table.forward() : table.backward();
  }

  // Rows of weight 1 a constant stride apart, as those of a repeated tensor are; stride 0: they are not.
  struct EvenRows {
    size_t first = 0, stride = 0;
  };
  EvenRows even_rows(const size_t* begin, const size_t* end) const {
    EvenRows rows;
    for (size_t k = 0; k < plan_.outer_rank; ++k) {
      const MapAxis& a = plan_.outer[k];
      if (!a.table) {
        rows.first += begin[k] * a.from;
        continue;
      }
      const TapRows& taps = rows_of(*a.table);
      const size_t* index = taps.index + begin[k];
      const size_t n = end[k] - begin[k], step = n > 1 ? index[1] - index[0] : 0;
      if (taps.weight || (n > 1 && rows.stride)) return {};
      for (size_t i = 1; i < n; ++i) {
        if (index[i] - index[i - 1] != step) return {};
      }
      rows.first += index[0] * a.from;
      if (n > 1) rows.stride = step * a.from;
    }
    return rows;
  }

  // The weighted sum of the source rows that the outer axes name: in `sum`, or the one row itself.
  const float* sum_rows(const RowCounter& counter, float* buffer, float* sum, double* totals) const {
    size_t begin[kMaxRank + 1], end[kMaxRank + 1], at[kMaxRank + 1], count = 1;
    for (size_t k = 0; k < plan_.outer_rank; ++k) {
      const AxisTable* table = plan_.outer[k].table;
      begin[k] = table ? rows_of(*table).first[counter.at(k)] : counter.at(k);
      end[k] = table ? rows_of(*table).first[counter.at(k) + 1] : begin[k] + 1;
      at[k] = begin[k];
      count *= end[k] - begin[k];
      if (begin[k] == end[k]) {
        std::fill_n(sum, plan_.from_row, 0.0f);
        return sum;
      }
    }
    if (count <= kSumRows) totals = nullptr;
    if (totals) {
      std::fill_n(totals, plan_.from_row, 0.0);
      if (const EvenRows rows = even_rows(begin, end); rows.stride && from_lens_.direct()) {
        const void* base = element_at(static_cast<const void*>(from_.data), from_.type, rows.first);
        add_column_sums(static_cast<const float*>(base), count, rows.stride, plan_.from_row, totals);
        round_sums(totals, plan_.from_row, sum);
        return sum;
      }
    }
    for (size_t n = 0;;) {
      size_t offset = 0;
      float weight = 1;
      for (size_t k = 0; k < plan_.outer_rank; ++k) {
        const MapAxis& a = plan_.outer[k];
        offset += (a.table ? rows_of(*a.table).index[at[k]] : at[k]) * a.from;
        if (a.table && rows_of(*a.table).weight) weight *= rows_of(*a.table).weight[at[k]];
      }
      const void* base = element_at(static_cast<const void*>(from_.data), from_.type, offset);
      const float* row = from_lens_.read(base, 0, plan_.from_row, buffer);
      size_t k = 0;
      while (k < plan_.outer_rank && ++at[k] == end[k]) {
        at[k] = begin[k];
        ++k;
      }
      const bool last = k == plan_.outer_rank;
      if (n == 0 && last && weight == 1 && !totals) return row;
      n == 0 ? row_scale(row, weight, sum, plan_.from_row) : row_scale_add(row, weight, sum, plan_.from_row);
      if (++n == kSumRows || last) n = 0;
      if (totals && n == 0) move_sums(sum, plan_.from_row, totals);
      if (!last) continue;
      if (totals) round_sums(totals, plan_.from_row, sum);
      return sum;
    }
  }

  const MapPlan& plan_;
  MapDirection direction_;
  const Tensor& from_;
  const Tensor& to_;
  Elements from_lens_, to_lens_;
};

}  // namespace

void sum_elements(const AxisTables& tables, MapDirection direction, const BatchPair& pair, size_t n_threads,
                  ScratchShelf& shelf) {
  const MapPlan plan = make_map_plan(tables, pair);
  const RowSum rows(plan, direction, pair);
  const size_t work = std::max(plan.from_row, plan.to_row), group = std::max<size_t>(1, kTaskElements / work);
  const size_t tasks = div_up(plan.rows, group), threads = threads_for(n_threads, tasks, 2 * plan.rows * work);
  const char* what = "the rows of a map";
  const size_t each = rows.scratch_floats();
  const ScratchShelf::Lease lease(shelf, checked_mul(checked_mul(each, threads, what), sizeof(float), what));
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    RowCounter counter(plan, task * group);
    for (size_t row = task * group, end = std::min(plan.rows, row + group); row < end; ++row, counter.next()) {
      rows.run(counter, lease.as<float>() + worker * each);
    }
  });
}

}  // namespace bnns
