// The taps of the axis along a row: y[o] = sum of weight t[index], on positions of `unit` elements.
#pragma once

#include "src/engine/axis_map/axis_map_plan.h"
#include "src/engine/copy/copy_row.h"

namespace bnns::axis_map {

inline constexpr size_t kLongSum = 16;  // more terms are added in double; from here on vectors sum consecutive ones

// Any row of any table; elements [c, c + 1) of each unit.
inline float sum_of_taps(const AxisTable& table, MapDirection d, size_t row, size_t unit, const float* t) {
  const AxisTable::Taps taps = table.taps(d, row);
  const size_t begin = taps.begin, end = taps.end;
  if (end - begin == 1) {
    const float weight = table.weight(d, row, begin), value = t[table.index(d, begin) * unit];
    return weight == 1 ? value : weight == 0 ? 0 : weight * value;
  }
  const auto sum_in = [&](auto sum) {
    for (size_t k = begin; k < end; ++k) {
      const float weight = table.weight(d, row, k);
      if (weight != 0) sum += static_cast<decltype(sum)>(weight * t[table.index(d, k) * unit]);
    }
    return static_cast<float>(sum);
  };
  return end - begin > kLongSum ? sum_in(0.0) : sum_in(0.0f);
}

// Weights of 1: rows [begin, end) of the table.
inline void add_taps(const MapPlan& plan, const float* t, float* y, size_t begin, size_t end) {
  const AxisTable& table = *plan.inner.table;
  for (size_t o = begin; o < end; ++o) {
    const auto [first, last] = table.taps(plan.direction, o);
    if (plan.unit == 1 && last - first >= kLongSum &&
        table.index(plan.direction, last - 1) - table.index(plan.direction, first) == last - first - 1) {
      y[o] = static_cast<float>(row_sum(t + table.index(plan.direction, first), last - first));
      continue;
    }
    for (size_t c = 0; c < plan.unit; ++c) {
      y[o * plan.unit + c] = sum_of_taps(table, plan.direction, o, plan.unit, t + c);
    }
  }
}

// The gradient of an interpolation: both shares of every element first, by vectors, then the sums of their stretches.
inline void gather_shares(const MapPlan& plan, const float* t, float* y, float* shares) {
  const AxisTable& table = *plan.inner.table;
  const size_t n = plan.inner.from_extent;
  float *first = shares, *second = shares + n;
  row_split(t, table.fractions(), first, second, n);
  const uint32_t* begins = table.firsts();
  const bool is_long = table.most(MapDirection::backward) > kLongSum;
  for (size_t i = 0, before = 0; i < plan.inner.to_extent; ++i) {
    const size_t begin = begins[i], end = begins[i + 1];
    if (is_long) {
      y[i] = static_cast<float>(row_sum(second + before, begin - before) + row_sum(first + begin, end - begin));
    } else {
      float sum = 0;
      for (size_t o = before; o < begin; ++o) sum += second[o];
      for (size_t o = begin; o < end; ++o) sum += first[o];
      y[i] = sum;
    }
    before = begin;
  }
}

// shares: 2 t rows of scratch.
inline void apply_inner(const MapPlan& plan, const float* t, float* y, float* shares) {
  const AxisTable& table = *plan.inner.table;
  if (table.fractions() && plan.unit == 1) {
    if (plan.direction == MapDirection::backward) return gather_shares(plan, t, y, shares);
    return row_interpolate(t, table.indices(), table.fractions(), y, plan.inner.to_extent);
  }
  const auto [begin, end] = table.run(plan.direction);
  if (end > begin) {
    add_taps(plan, t, y, 0, begin);
    const size_t from = table.source(plan.direction, begin);
    copy_row(t + from * plan.unit, y + begin * plan.unit, (end - begin) * plan.unit);
  }
  add_taps(plan, t, y, end, plan.inner.to_extent);
}

}  // namespace bnns::axis_map
