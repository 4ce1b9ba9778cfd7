// Sums of taps. A row of the destination adds up the rows of the source that the outer axes name, and applies the taps
// of the inner axis: to the sum, or where an image grows, to each row of the source first, once, since the rows of the
// destination then share them. All sums run in the order of the tables, whatever the number of threads; few terms are
// added in f32, many in double beyond kSumRows rows or kLongSum taps (the gradient of a tensor that was repeated
// often).

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/engine/axis_map/axis_map_inner.h"
#include "src/engine/axis_map/axis_map_plan.h"
#include "src/simd/sums.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

using namespace axis_map;

constexpr size_t kTaskElements = 16 * 1024;
constexpr size_t kMaxSources = 16;  // rows that are summed in f32
constexpr size_t kKeptRows = 2;     // of the source, interpolated
constexpr size_t kNothing = SIZE_MAX;

// Scratch of one thread.
struct Scratch {
  float *source, *sum, *shares, *out, *kept[kKeptRows];
  double* totals;
  size_t kept_offset[kKeptRows];
  size_t oldest;
};

class RowSum {
 public:
  RowSum(const MapPlan& plan, const BatchPair& pair)
      : plan_(plan),
        from_(pair.from),
        to_(pair.to),
        from_lens_(row_elements(pair.from, plan.from_row, plan.inner.from)),
        to_lens_(row_elements(pair.to, plan.to_row, plan.inner.to)) {
    size_t most = 1;
    bool grows = false;
    for (size_t k = 0; k < plan.outer_rank; ++k) {
      const MapAxis& a = plan.outer[k];
      if (!a.table) continue;
      if (most <= kMaxSources) most *= std::max<size_t>(1, a.table->most(plan.direction));
      grows |= a.to_extent > a.from_extent;
    }
    is_long_ = most > kMaxSources;
    inner_first_ = grows && most <= kKeptRows && plan.inner.table && plan.inner.table->fractions() &&
                   plan.direction == MapDirection::forward;
  }

  size_t scratch_floats() const {
    const char* what = "the rows of a map";
    const size_t from = checked_mul(is_long_ ? 6 : 4, plan_.from_row, what);
    return round_up(checked_add(from, checked_mul(1 + kKeptRows, plan_.to_row, what), what), 16);
  }
  // memory has scratch_floats(), aligned for double.
  Scratch make_scratch(float* memory) const {
    Scratch s;
    s.totals = is_long_ ? reinterpret_cast<double*>(memory) : nullptr;
    s.source = memory + (is_long_ ? 2 * plan_.from_row : 0);
    s.sum = s.source + plan_.from_row;
    s.shares = s.sum + plan_.from_row;
    s.out = s.shares + 2 * plan_.from_row;
    for (size_t k = 0; k < kKeptRows; ++k) {
      s.kept[k] = s.out + (k + 1) * plan_.to_row;
      s.kept_offset[k] = kNothing;
    }
    s.oldest = 0;
    return s;
  }

  void run(const RowCounter& counter, Scratch& s) const {
    void* base = element_at(to_.data, to_.type, counter.to_offset());
    const bool add = to_.accumulate, inner = plan_.inner.table != nullptr;
    float* target = add ? s.out : to_lens_.target(base, 0, s.out);
    const Sources sources = sources_of(counter);
    if (sources.count == 0) {
      std::fill_n(target, plan_.to_row, 0.0f);
    } else if (inner_first_) {
      const float* rows[kKeptRows];
      for (size_t k = 0; k < sources.count; ++k) rows[k] = interpolated(sources.offset[k], s);
      const float* sum = weighted_sum(rows, sources.weight, sources.count, target, plan_.to_row);
      if (sum != target) std::memcpy(target, sum, plan_.to_row * sizeof(float));
    } else {
      const float* sum = sources.count == kNothing ? long_sum(counter, s)
                                                   : sum_of(sources, s, inner || !to_lens_.direct() ? s.sum : target);
      if (inner) {
        apply_inner(plan_, sum, target, s.shares);
      } else if (sum != target) {
        if (!add && to_lens_.direct()) {
          std::memcpy(target, sum, plan_.to_row * sizeof(float));
        } else {
          target = const_cast<float*>(sum);  // only read from here on
        }
      }
    }
    add ? to_lens_.accumulate(base, 0, plan_.to_row, target) : to_lens_.write(base, 0, plan_.to_row, target);
  }

 private:
  // The rows of the source that make a row of the destination; count kNothing: more than kMaxSources.
  struct Sources {
    size_t count = 0, offset[kMaxSources];
    float weight[kMaxSources];
  };

  AxisTable::Taps taps_of(const RowCounter& counter, size_t k) const {
    const AxisTable* table = plan_.outer[k].table;
    return table ? table->taps(plan_.direction, counter.at(k)) : AxisTable::Taps{0, 1};
  }
  Sources sources_of(const RowCounter& counter) const {
    Sources s;
    s.count = 1, s.offset[0] = 0, s.weight[0] = 1;
    bool is_one = true;  // tap of weight 1 on every axis: most rows of a gradient of padding
    for (size_t k = 0; k < plan_.outer_rank && is_one; ++k) {
      const MapAxis& a = plan_.outer[k];
      const size_t row = counter.at(k);
      if (a.table) {
        const AxisTable::Taps taps = a.table->taps(plan_.direction, row);
        is_one = !a.table->fractions() && taps.end - taps.begin == 1;
        s.offset[0] += (is_one ? a.table->index(plan_.direction, taps.begin) : 0) * a.from;
      } else {
        s.offset[0] += row * a.from;
      }
    }
    if (is_one) return s;
    s.offset[0] = 0;
    for (size_t k = 0; k < plan_.outer_rank; ++k) {
      const MapAxis& a = plan_.outer[k];
      const size_t row = counter.at(k);
      if (!a.table) {
        for (size_t n = 0; n < s.count; ++n) s.offset[n] += row * a.from;
        continue;
      }
      const auto [begin, end] = a.table->taps(plan_.direction, row);
      if (begin == end) return s.count = 0, s;
      if (s.count * (end - begin) > kMaxSources) return s.count = kNothing, s;
      const size_t before = s.count;
      size_t kept = before;  // the first tap takes the places of those that are there, the others follow
      for (size_t t = end; t-- > begin;) {
        const float weight = a.table->weight(plan_.direction, row, t);
        const size_t offset = a.table->index(plan_.direction, t) * a.from, first = (t - begin) * before;
        for (size_t n = before; n-- > 0;) {
          s.offset[first + n] = s.offset[n] + offset;
          s.weight[first + n] = s.weight[n] * weight;
        }
        kept = std::max(kept, first + before);
      }
      s.count = 0;
      for (size_t n = 0; n < kept; ++n) {
        if (s.weight[n] == 0) continue;  // no tap at all
        s.offset[s.count] = s.offset[n];
        s.weight[s.count++] = s.weight[n];
      }
      if (s.count == 0) return s;
    }
    return s;
  }

  const float* read(size_t offset, float* buffer) const {
    return from_lens_.read(element_at(static_cast<const void*>(from_.data), from_.type, offset), 0, plan_.from_row,
                           buffer);
  }

  // The sum in `sum`, or the one row itself.
  static const float* weighted_sum(const float* const* rows, const float* weights, size_t count, float* sum, size_t n) {
    if (count == 1 && weights[0] == 1) return rows[0];
    row_weighted_sum(rows, weights, std::min(count, kFewRows), sum, n);
    for (size_t k = kFewRows; k < count; k += kFewRows - 1) {
      const float* more[kFewRows] = {sum};
      float more_weights[kFewRows] = {1};
      const size_t m = std::min(kFewRows - 1, count - k);
      std::copy_n(rows + k, m, more + 1);
      std::copy_n(weights + k, m, more_weights + 1);
      row_weighted_sum(more, more_weights, m + 1, sum, n);
    }
    return sum;
  }
  const float* sum_of(const Sources& sources, const Scratch& s, float* sum) const {
    if (from_lens_.direct() || sources.count == 1) {
      const float* rows[kMaxSources];
      for (size_t k = 0; k < sources.count; ++k) rows[k] = read(sources.offset[k], s.source);
      return weighted_sum(rows, sources.weight, sources.count, sum, plan_.from_row);
    }
    for (size_t k = 0; k < sources.count; ++k) {
      const float* row = read(sources.offset[k], s.source);
      k == 0 ? row_weighted_sum(&row, sources.weight, 1, sum, plan_.from_row)
             : row_scale_add(row, sources.weight[k], sum, plan_.from_row);
    }
    return sum;
  }

  // A row of the source along the inner axis of the destination, from the last that were made or new.
  const float* interpolated(size_t offset, Scratch& s) const {
    for (size_t k = 0; k < kKeptRows; ++k) {
      if (s.kept_offset[k] != offset) continue;
      s.oldest = (k + 1) % kKeptRows;
      return s.kept[k];
    }
    const size_t k = s.oldest;
    s.oldest = (k + 1) % kKeptRows;
    s.kept_offset[k] = offset;
    apply_inner(plan_, read(offset, s.source), s.kept[k], s.shares);
    return s.kept[k];
  }

  // Many rows: kSumRows in f32, beyond in double.
  const float* long_sum(const RowCounter& counter, const Scratch& s) const {
    const size_t n = plan_.from_row;
    std::fill_n(s.totals, n, 0.0);
    AxisTable::Taps taps[kMaxRank + 1];
    size_t at[kMaxRank + 1] = {};
    for (size_t k = 0; k < plan_.outer_rank; ++k) at[k] = (taps[k] = taps_of(counter, k)).begin;
    for (size_t rows = 0;;) {
      size_t offset = 0;
      float weight = 1;
      for (size_t k = 0; k < plan_.outer_rank; ++k) {
        const MapAxis& a = plan_.outer[k];
        offset += (a.table ? a.table->index(plan_.direction, at[k]) : counter.at(k)) * a.from;
        if (a.table) weight *= a.table->weight(plan_.direction, counter.at(k), at[k]);
      }
      if (weight != 0) {
        const float* row = read(offset, s.source);
        rows == 0 ? row_weighted_sum(&row, &weight, 1, s.sum, n) : row_scale_add(row, weight, s.sum, n);
        if (++rows == kSumRows) move_sums(s.sum, n, s.totals), rows = 0;
      }
      size_t k = 0;
      while (k < plan_.outer_rank && ++at[k] == taps[k].end) at[k] = taps[k].begin, ++k;
      if (k < plan_.outer_rank) continue;
      if (rows != 0) move_sums(s.sum, n, s.totals);
      round_sums(s.totals, n, s.sum);
      return s.sum;
    }
  }

  const MapPlan& plan_;
  const Tensor& from_;
  const Tensor& to_;
  Elements from_lens_, to_lens_;
  bool is_long_ = false;
  bool inner_first_ = false;  // interpolate the rows of the source, then sum them
};

}  // namespace

void sum_elements(const AxisTables& tables, MapDirection direction, const BatchPair& pair, size_t n_threads,
                  ScratchShelf& shelf) {
  const MapPlan plan = make_map_plan(tables, direction, pair);
  const RowSum rows(plan, pair);
  const size_t work = std::max(plan.from_row, plan.to_row), group = std::max<size_t>(1, kTaskElements / work);
  const size_t tasks = div_up(plan.rows, group), threads = threads_for(n_threads, tasks, 2 * plan.rows * work);
  const char* what = "the rows of a map";
  const size_t each = rows.scratch_floats();
  const ScratchShelf::Lease lease(shelf, checked_mul(checked_mul(each, threads, what), sizeof(float), what));
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    Scratch scratch = rows.make_scratch(lease.as<float>() + worker * each);
    RowCounter counter(plan, task * group);
    for (size_t row = task * group, end = std::min(plan.rows, row + group); row < end; ++row, counter.next()) {
      rows.run(counter, scratch);
    }
  });
}

}  // namespace bnns
