#include "src/ops/activation/row_tiles.h"

#include <algorithm>

namespace bnns {

RowPlan make_row_plan(const Tensor& sample, uint32_t row_axes, size_t batch) {
  RowPlan plan;
  const auto append = [&plan](size_t extent, bool in_row) {
    (in_row ? plan.row_length : plan.rows) *= extent;
    if (extent == 1) return;
    plan.extent[plan.axes] = extent;
    plan.in_row[plan.axes++] = in_row;
  };
  for (size_t j = 0; j < sample.rank; ++j) {
    const size_t k = sample.axis[j];
    append(sample.size[k], row_axes >> k & 1);
  }
  append(batch, row_axes >> sample.rank & 1);
  plan.has_batch_axis = batch > 1;
  return plan;
}

RowView::RowView(const BatchOperand& operand, const RowPlan& plan) : operand_(operand), plan_(&plan) {
  const Tensor& t = operand.sample;
  const size_t sample_axes = plan.axes - plan.has_batch_axis;
  size_t found = 0;
  bool same_extents = true;
  for (size_t j = 0; j < t.rank; ++j) {
    const size_t k = t.axis[j];
    if (t.size[k] == 1) continue;
    same_extents = same_extents && found < sample_axes && t.size[k] == plan.extent[found];
    if (same_extents) stride_[found] = t.stride[k];
    ++found;
  }
  if (!same_extents || found != sample_axes) {  // another shape of as many elements: simple while it is dense
    regular_ = t.dense;
    for (size_t j = 0, next = 1; j < sample_axes; next *= plan.extent[j++]) stride_[j] = next;
  }
  if (plan.has_batch_axis) stride_[sample_axes] = operand.stride;

  for (size_t j = 0; j < plan.axes; ++j) {
    if (!plan.in_row[j]) continue;
    if (row_rank_ > 0 && stride_[j] == row_stride_[row_rank_ - 1] * row_extent_[row_rank_ - 1]) {
      row_extent_[row_rank_ - 1] *= plan.extent[j];
      continue;
    }
    row_extent_[row_rank_] = plan.extent[j];
    row_stride_[row_rank_++] = stride_[j];
  }
  if (row_rank_ + 1 > kMaxRank) regular_ = false;  // one axis of a tile is its columns
}

size_t RowView::dense_axes(const RowPlan& plan) const {
  size_t axes = 0;
  if (!regular_) return 0;
  for (size_t next = 1; axes < plan.axes && !plan.in_row[axes] && stride_[axes] == next; ++axes) {
    next *= plan.extent[axes];
  }
  return axes;
}

void choose_tiles(RowPlan* plan, std::initializer_list<RowView*> views, size_t max_width) {
  size_t axes = kMaxRank + 1;
  for (const RowView* view : views) axes = std::min(axes, view->dense_axes(*plan));
  size_t columns = 1;
  for (size_t j = 0; j < axes; ++j) columns *= plan->extent[j];
  const bool tiled = columns >= kMinColumns && max_width > 1;
  plan->column_axes = tiled ? axes : 0;
  plan->columns = tiled ? columns : 1;
  plan->width = std::min(plan->columns, max_width);
  // A tile that passes through a buffer stays near 256 KiB, half of a small L2.
  const bool in_place =
      std::all_of(views.begin(), views.end(), [](const RowView* view) { return view->tiles_in_place(); });
  if (!in_place) plan->width = std::min(plan->width, std::max<size_t>(16, kTileBufferFloats / plan->row_length));
  plan->tiles = plan->rows / plan->columns * ((plan->columns + plan->width - 1) / plan->width);
  for (RowView* view : views) view->prepare(*plan);
}

void RowView::prepare(const RowPlan& plan) {
  const size_t step = row_rank_ ? row_stride_[0] : 1;
  direct_ = tiles_in_place() && (plan.width > 1 || step == 1);
  if (!regular_) {
    scattered_ = Elements(operand_.sample);
    return;
  }
  size_t reach = 0;
  for (size_t j = plan.column_axes; j < plan.axes; ++j) {
    if (plan.in_row[j]) continue;
    if (reach && stride_[j] != reach) {
      line_step_ = 0;
      break;
    }
    if (!reach) line_step_ = stride_[j];
    reach = stride_[j] * plan.extent[j];
  }
  if (direct_ && !operand_.sample.accumulate) return;
  full_ = tile_elements(plan.width);
  if (plan.columns % plan.width != 0) last_ = tile_elements(plan.columns % plan.width);
}

// The tile as a tensor: its columns, then the axes of the row.
Elements RowView::tile_elements(size_t width) const {
  Tensor tile = operand_.sample;
  tile.rank = 0;
  const auto append = [&tile](size_t extent, size_t stride) {
    tile.size[tile.rank] = extent;
    tile.stride[tile.rank] = stride;
    tile.axis[tile.rank] = static_cast<uint8_t>(tile.rank);
    ++tile.rank;
  };
  append(width, 1);
  for (size_t j = 0; j < row_rank_; ++j) append(row_extent_[j], row_stride_[j]);
  tile.count = width * plan_->row_length;
  return Elements(tile);
}

void* RowView::address(const Tile& tile) const {
  size_t offset = tile.column, line = tile.line;
  if (line_step_) {
    return element_at(const_cast<void*>(operand_.base), operand_.sample.type, offset + line * line_step_);
  }
  for (size_t j = plan_->column_axes; j < plan_->axes; ++j) {
    if (plan_->in_row[j]) continue;
    offset += line % plan_->extent[j] * stride_[j];
    line /= plan_->extent[j];
  }
  return element_at(const_cast<void*>(operand_.base), operand_.sample.type, offset);
}

// visit(r, sample, index): element r of the row is element `index`, in memory order, of a sample.
template <class Visit>
void RowView::for_each_scattered(const Tile& tile, Visit&& visit) const {
  const size_t sample_axes = plan_->axes - plan_->has_batch_axis;
  for (size_t r = 0; r < plan_->row_length; ++r) {
    size_t index = 0, batch = 0, weight = 1, line = tile.line, row = r;
    for (size_t j = 0; j < plan_->axes; ++j) {
      size_t& rest = plan_->in_row[j] ? row : line;
      const size_t at = rest % plan_->extent[j];
      rest /= plan_->extent[j];
      if (j < sample_axes)
        index += at * weight;
      else
        batch = at;
      weight *= plan_->extent[j];
    }
    visit(r, element_at(const_cast<void*>(operand_.base), operand_.sample.type, batch * operand_.stride), index);
  }
}

const float* RowView::read(const Tile& tile, float* buffer, size_t* step) const {
  *step = tile.width;
  if (direct_) return target(tile, buffer, step);
  if (regular_) {
    (tile.width == plan_->width ? full_ : last_).read(address(tile), 0, tile.width * plan_->row_length, buffer);
    return buffer;
  }
  for_each_scattered(tile, [&](size_t r, const void* sample, size_t index) {
    buffer[r] = *scattered_.read(sample, index, 1, buffer + r);
  });
  return buffer;
}

float* RowView::target(const Tile& tile, float* buffer, size_t* step) const {
  *step = direct_ ? (row_rank_ ? row_stride_[0] : 1) : tile.width;
  return direct_ ? static_cast<float*>(address(tile)) : buffer;
}

void RowView::write(const Tile& tile, const float* buffer) const {
  if (direct_) return;
  if (regular_) {
    return (tile.width == plan_->width ? full_ : last_).write(address(tile), 0, tile.width * plan_->row_length, buffer);
  }
  for_each_scattered(tile,
                     [&](size_t r, void* sample, size_t index) { scattered_.write(sample, index, 1, buffer + r); });
}

void RowView::accumulate(const Tile& tile, const float* buffer) const {
  if (regular_) {
    const Elements& elements = tile.width == plan_->width ? full_ : last_;
    return elements.accumulate(address(tile), 0, tile.width * plan_->row_length, buffer);
  }
  for_each_scattered(
      tile, [&](size_t r, void* sample, size_t index) { scattered_.accumulate(sample, index, 1, buffer + r); });
}

}  // namespace bnns
