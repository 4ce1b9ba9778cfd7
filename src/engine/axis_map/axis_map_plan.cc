#include "src/engine/axis_map/axis_map_plan.h"

namespace bnns {
namespace {

constexpr size_t kRowElements = 32 * 1024;  // merged rows stay below: there must be rows enough for the threads
constexpr size_t kUnitElements = 64;        // longer stretches are rows of their own

}  // namespace

MapPlan make_map_plan(const AxisTables& tables, MapDirection direction, const BatchPair& pair) {
  const Tensor &from = pair.from, &to = pair.to;
  MapAxis axes[kMaxRank + 1];
  size_t rank = 0;
  const auto append = [&](const MapAxis& a) {
    if (a.from_extent == 1 && a.to_extent == 1 && !a.table) return;
    MapAxis* last = rank ? &axes[rank - 1] : nullptr;
    if (last && !last->table && !a.table && a.from == last->from * last->from_extent &&
        a.to == last->to * last->to_extent && last->to_extent * a.to_extent <= kRowElements) {
      last->from_extent *= a.from_extent;
      last->to_extent *= a.to_extent;
    } else {
      axes[rank++] = a;
    }
  };
  for (size_t j = 0; j < to.rank; ++j) {
    const size_t k = to.axis[j];
    const AxisTable& table = tables.axis[k];
    append({from.size[k], to.size[k], from.stride[k], to.stride[k], table.identity() ? nullptr : &table});
  }
  append({pair.batch, pair.batch, pair.from_stride, pair.to_stride, nullptr});

  MapPlan plan;
  plan.direction = direction;
  size_t next = 0;
  if (rank > 1 && !axes[0].table && axes[0].from == 1 && axes[0].to == 1 && axes[0].to_extent <= kUnitElements &&
      axes[1].from == axes[0].from_extent && axes[1].to == axes[0].to_extent) {
    plan.unit = axes[next++].to_extent;
  }
  if (next < rank) {
    plan.inner = axes[next++];
    if (plan.unit > 1) plan.inner.from = plan.inner.to = 1;
  } else {
    plan.inner = {1, 1, 1, 1, nullptr};
  }
  for (; next < rank; ++next) {
    plan.outer[plan.outer_rank++] = axes[next];
    plan.rows *= axes[next].to_extent;
  }
  plan.from_row = plan.unit * plan.inner.from_extent;
  plan.to_row = plan.unit * plan.inner.to_extent;
  return plan;
}

}  // namespace bnns
