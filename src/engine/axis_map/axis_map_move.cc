// Moves elements as they are: each comes from one place, or is filled.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/engine/axis_map/axis_map_plan.h"
#include "src/engine/copy/copy_row.h"

namespace bnns {
namespace {

constexpr size_t kTaskBytes = 128 * 1024;

template <class T>
void fill_row(const MapPlan& plan, T* to, T fill) {
  if (plan.inner.to == 1) {
    std::fill_n(to, plan.to_row, fill);
  } else {
    for (size_t i = 0; i < plan.to_row; ++i) to[i * plan.inner.to] = fill;
  }
}

// Positions [begin, end) of a row by table.
template <class T>
void move_by_table(const MapPlan& plan, const T* from, T* to, T fill, size_t begin, size_t end) {
  const AxisTable& table = *plan.inner.table;
  const size_t unit = plan.unit;
  if (const uint32_t* sources = table.sources(plan.direction); sources && unit == 1) {
    const size_t from_step = plan.inner.from, to_step = plan.inner.to;
    for (size_t o = begin; o < end; ++o) {
      const size_t i = sources[o];
      to[o * to_step] = i == AxisTable::kNone ? fill : from[i * from_step];
    }
    return;
  }
  for (size_t o = begin; o < end; ++o) {
    const size_t i = table.source(plan.direction, o);
    const bool none = i == AxisTable::kNone;
    if (unit == 1) {
      to[o * plan.inner.to] = none ? fill : from[i * plan.inner.from];
    } else if (none) {
      for (size_t k = 0; k < unit; ++k) to[o * unit + k] = fill;  // gcc 14 warns of std::fill_n over half the memory
    } else {
      copy_row(from + i * unit, to + o * unit, unit);
    }
  }
}

template <class T>
void move_row(const MapPlan& plan, const T* from, T* to, T fill) {
  const bool dense = plan.inner.from == 1 && plan.inner.to == 1;
  if (!plan.inner.table) {
    if (dense) {
      copy_row(from, to, plan.to_row);
    } else {
      for (size_t i = 0; i < plan.to_row; ++i) to[i * plan.inner.to] = from[i * plan.inner.from];
    }
    return;
  }
  const AxisTable& table = *plan.inner.table;
  const auto [begin, end] = table.run(plan.direction);
  if (!dense || end - begin < 4) {
    return move_by_table(plan, from, to, fill, 0, plan.inner.to_extent);
  }
  move_by_table(plan, from, to, fill, 0, begin);
  copy_row(from + table.source(plan.direction, begin) * plan.unit, to + begin * plan.unit, (end - begin) * plan.unit);
  move_by_table(plan, from, to, fill, end, plan.inner.to_extent);
}

template <class T>
void move_rows(const MapPlan& plan, const T* from, T* to, T fill, size_t n_threads) {
  const size_t row_bytes = plan.to_row * sizeof(T), group = std::max<size_t>(1, kTaskBytes / row_bytes);
  const size_t tasks = div_up(plan.rows, group);
  parallel_for(tasks, threads_for(n_threads, tasks, plan.rows * row_bytes / 4), [&](size_t task, size_t) {
    const T* last_from = nullptr;
    const T* last_to = nullptr;
    const MapAxis next = plan.outer_rank ? plan.outer[0] : MapAxis{};
    const size_t end = std::min(plan.rows, (task + 1) * group);
    // Rows along the next axis, whose other coordinates are looked up once.
    for (size_t row = task * group; row < end;) {
      const RowCounter counter(plan, row);
      size_t offset = 0;
      bool any = true;
      for (size_t k = 1; k < plan.outer_rank; ++k) {
        const MapAxis& a = plan.outer[k];
        const size_t i = a.table ? a.table->source(plan.direction, counter.at(k)) : counter.at(k);
        any &= i != AxisTable::kNone || !a.table;
        offset += i * a.from;
      }
      const size_t first = counter.at(0), rows = std::min(end - row, next.to_extent - first);
      T* row_to = to + counter.to_offset();
      for (size_t r = first; r < first + rows; ++r, row_to += next.to) {
        const size_t i = next.table ? next.table->source(plan.direction, r) : r;
        const bool filled = !any || (next.table && i == AxisTable::kNone);
        const T* row_from = filled ? nullptr : from + offset + i * next.from;
        if (filled) {
          fill_row(plan, row_to, fill);
        } else if (row_from == last_from && plan.inner.to == 1) {
          copy_row(last_to, row_to, plan.to_row);  // enlarged images repeat whole rows: take the one in L1
        } else {
          move_row(plan, row_from, row_to, fill);
          last_from = row_from;
          last_to = row_to;
        }
      }
      row += rows;
    }
  });
}

template <class T>
void move_typed(const MapPlan& plan, const void* from, void* to, const unsigned char (&fill)[8], size_t n_threads) {
  T value;
  std::memcpy(&value, fill, sizeof value);
  move_rows(plan, static_cast<const T*>(from), static_cast<T*>(to), value, n_threads);
}

}  // namespace

void move_elements(const AxisTables& tables, MapDirection direction, const BatchPair& pair,
                   const unsigned char (&fill)[8], size_t n_threads) {
  const MapPlan plan = make_map_plan(tables, direction, pair);
  switch (type_bytes(pair.from.type)) {
    case 1:
      return move_typed<uint8_t>(plan, pair.from.data, pair.to.data, fill, n_threads);
    case 2:
      return move_typed<uint16_t>(plan, pair.from.data, pair.to.data, fill, n_threads);
    case 4:
      return move_typed<uint32_t>(plan, pair.from.data, pair.to.data, fill, n_threads);
    default:
      return move_typed<uint64_t>(plan, pair.from.data, pair.to.data, fill, n_threads);
  }
}

}  // namespace bnns
