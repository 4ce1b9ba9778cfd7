// Moves elements as they are: each comes from one place, or is filled.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/engine/axis_map/axis_map_plan.h"

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
  const ptrdiff_t* source = plan.inner.table->source();
  const size_t unit = plan.unit;
  for (size_t o = begin; o < end; ++o) {
    const ptrdiff_t i = source[o];
    if (unit == 1) {
      to[o * plan.inner.to] = i < 0 ? fill : from[static_cast<size_t>(i) * plan.inner.from];
    } else if (i < 0) {
      for (size_t k = 0; k < unit; ++k) to[o * unit + k] = fill;  // gcc 14 warns of std::fill_n over half the memory
    } else {
      std::copy_n(from + static_cast<size_t>(i) * unit, unit, to + o * unit);
    }
  }
}

template <class T>
void move_row(const MapPlan& plan, const T* from, T* to, T fill) {
  const bool dense = plan.inner.from == 1 && plan.inner.to == 1;
  if (!plan.inner.table) {
    if (dense) {
      std::memcpy(to, from, plan.to_row * sizeof(T));
    } else {
      for (size_t i = 0; i < plan.to_row; ++i) to[i * plan.inner.to] = from[i * plan.inner.from];
    }
    return;
  }
  const AxisTable& table = *plan.inner.table;
  if (!dense || table.run_end() - table.run_begin() < 4) {
    return move_by_table(plan, from, to, fill, 0, plan.inner.to_extent);
  }
  const size_t begin = table.run_begin(), end = table.run_end();
  move_by_table(plan, from, to, fill, 0, begin);
  std::memcpy(to + begin * plan.unit, from + static_cast<size_t>(table.source()[begin]) * plan.unit,
              (end - begin) * plan.unit * sizeof(T));
  move_by_table(plan, from, to, fill, end, plan.inner.to_extent);
}

template <class T>
void move_rows(const MapPlan& plan, const T* from, T* to, T fill, size_t n_threads) {
  const size_t row_bytes = plan.to_row * sizeof(T), group = std::max<size_t>(1, kTaskBytes / row_bytes);
  const size_t tasks = div_up(plan.rows, group);
  parallel_for(tasks, threads_for(n_threads, tasks, plan.rows * row_bytes / 4), [&](size_t task, size_t) {
    const T* last_from = nullptr;
    const T* last_to = nullptr;
    RowCounter counter(plan, task * group);
    for (size_t row = task * group, end = std::min(plan.rows, row + group); row < end; ++row, counter.next()) {
      T* const row_to = to + counter.to_offset();
      size_t offset = 0;
      bool any = true;
      for (size_t k = 0; k < plan.outer_rank; ++k) {
        const MapAxis& a = plan.outer[k];
        const ptrdiff_t i = a.table ? a.table->source()[counter.at(k)] : static_cast<ptrdiff_t>(counter.at(k));
        any &= i >= 0;
        offset += static_cast<size_t>(i) * a.from;
      }
      if (!any) {
        fill_row(plan, row_to, fill);
      } else if (from + offset == last_from && plan.inner.to == 1) {
        std::memcpy(row_to, last_to, row_bytes);  // enlarged images repeat whole rows: take the one in L1
      } else {
        move_row(plan, from + offset, row_to, fill);
        last_from = from + offset;
        last_to = row_to;
      }
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

void move_elements(const AxisTables& tables, const BatchPair& pair, const unsigned char (&fill)[8], size_t n_threads) {
  const MapPlan plan = make_map_plan(tables, pair);
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
