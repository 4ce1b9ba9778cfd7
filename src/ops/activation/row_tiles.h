// How a batch splits into the rows that Softmax, LogSoftmax and GumbelMax work on, for any axes, strides and types.
//
// The axes of i_desc in memory order, fastest first, and the batch last, are each part of the row (selected by
// axis_flags) or not. Rows that lie contiguously are taken one by one. Where the fastest axes are not part of the row
// (channels of an image), neighbouring elements belong to different rows: a tile takes up to kTileColumns of these
// columns at once. What is not f32, or not regular enough to be worked on in place, passes through a buffer that holds
// the tile as dense rows of columns.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "src/ops/activation/batch_elements.h"
#include "src/tensor/elements.h"

namespace bnns {

struct RowPlan {
  size_t axes = 0;  // extents of 1 are left out
  size_t extent[kMaxRank + 1] = {};
  bool in_row[kMaxRank + 1] = {};
  bool has_batch_axis = false;  // the last axis is the batch (batch > 1)
  size_t row_length = 1, rows = 1;

  // Set by choose_tiles.
  size_t column_axes = 0;  // the fastest axes that make up the columns
  size_t columns = 1, width = 1, tiles = 0;
};

struct Tile {
  size_t line, column, width;  // columns [column, column + width) of a line
};

// i_desc is `sample`; bit k of row_axes selects the axis of size[k], bit rank the batch.
RowPlan make_row_plan(const Tensor& sample, uint32_t row_axes, size_t batch);

// One operand seen through the plan. Operands other than x have the same number of elements, paired in memory order.
class RowView {
 public:
  RowView(const BatchOperand& operand, const RowPlan& plan);

  // The number of leading axes outside the row that are one dense run here.
  size_t dense_axes(const RowPlan& plan) const;
  // After choose_tiles: whether a tile is worked on in place. step is then the distance between its rows.
  bool direct() const { return direct_; }

  // The tile's elements, element r of column c at result[r * *step + c]; buffer has row_length * width floats.
  const float* read(const Tile& tile, float* buffer, size_t* step) const;
  float* target(const Tile& tile, float* buffer, size_t* step) const;
  // Brings a buffer to the operand: overwrites, or adds.
  void write(const Tile& tile, const float* buffer) const;
  void accumulate(const Tile& tile, const float* buffer) const;

 private:
  friend void choose_tiles(RowPlan* plan, std::initializer_list<RowView*> views, size_t max_width);
  void prepare(const RowPlan& plan);
  // A tile of columns needs no buffer: f32, and one distance between its rows.
  bool tiles_in_place() const { return operand_.sample.type == BNNSDataTypeFloat32 && regular_ && row_rank_ <= 1; }
  Elements tile_elements(size_t width) const;
  void* address(const Tile& tile) const;
  template <class Visit>
  void for_each_scattered(const Tile& tile, Visit&& visit) const;

  BatchOperand operand_;
  const RowPlan* plan_;
  size_t stride_[kMaxRank + 1] = {};
  bool regular_ = true;  // each axis of the plan has one stride here
  bool direct_ = false;
  size_t line_step_ = 0;  // distance between lines where it is constant, else 0
  size_t row_rank_ = 0;   // the row's axes, neighbours merged
  size_t row_extent_[kMaxRank + 1] = {}, row_stride_[kMaxRank + 1] = {};
  Elements full_, last_, scattered_;  // tiles of plan.width columns, of the last columns of a line, one sample
};

inline constexpr size_t kTileColumns = 64;  // four AVX-512 vectors
inline constexpr size_t kTileBufferFloats = 64 * 1024;
inline constexpr size_t kMinColumns = 8;  // fewer neighbours are not worth a tile: rows are gathered one by one

// Fixes columns, width and tiles so that every view can follow; max_width 1 takes rows one by one. Views keep a pointer
// to the plan.
void choose_tiles(RowPlan* plan, std::initializer_list<RowView*> views, size_t max_width = kTileColumns);

inline Tile tile_at(const RowPlan& plan, size_t index) {
  if (plan.columns == plan.width) return {index, 0, plan.width};  // short rows: no time for divisions
  const size_t per_line = (plan.columns + plan.width - 1) / plan.width, column = index % per_line * plan.width;
  return {index / per_line, column, std::min(plan.width, plan.columns - column)};
}

}  // namespace bnns
