// The walk of a map: which axis makes the rows, and which axes number them.
#pragma once

#include "src/engine/axis_map/axis_map.h"

namespace bnns {

struct MapAxis {
  size_t from_extent = 1, to_extent = 1;
  size_t from = 0, to = 0;           // strides in elements
  const AxisTable* table = nullptr;  // NULL: left alone
};

struct MapPlan {
  MapDirection direction = MapDirection::forward;
  // A row is `inner` times `unit` consecutive elements that move together (the few channels of NHWC pixels).
  size_t unit = 1;
  MapAxis inner;
  MapAxis outer[kMaxRank + 1];  // fastest of the destination first
  size_t outer_rank = 0, rows = 1;
  size_t from_row = 1, to_row = 1;  // elements
};

MapPlan make_map_plan(const AxisTables& tables, MapDirection direction, const BatchPair& pair);

// Coordinates of rows of the destination, counted upwards.
class RowCounter {
 public:
  RowCounter(const MapPlan& plan, size_t row) : plan_(plan) {
    for (size_t k = 0; k < plan.outer_rank; ++k) {
      at_[k] = row % plan.outer[k].to_extent;
      row /= plan.outer[k].to_extent;
      offset_ += at_[k] * plan.outer[k].to;
    }
  }
  void next() {
    for (size_t k = 0; k < plan_.outer_rank; ++k) {
      const MapAxis& a = plan_.outer[k];
      offset_ += a.to;
      if (++at_[k] < a.to_extent) return;
      offset_ -= a.to * a.to_extent;
      at_[k] = 0;
    }
  }
  size_t at(size_t k) const { return at_[k]; }
  size_t to_offset() const { return offset_; }

 private:
  const MapPlan& plan_;
  size_t at_[kMaxRank + 1] = {};
  size_t offset_ = 0;
};

}  // namespace bnns
