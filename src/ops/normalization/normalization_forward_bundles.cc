// Forward over sets side by side, channels of a group, and columns; see normalization_forward_pass.h.

#include "src/ops/normalization/normalization_forward_pass.h"

namespace bnns {

// Sets side by side, more than one only where everything is in place.
void ForwardPass::run_bundle(Range sets, bool more) const {
  float x_room[kMomentBlock], y_room[kMomentBlock];
  MomentSums sums[kMostSets];
  ChannelCoefficients numbers[kMostSets];
  const size_t plane = plan_.plane, columns = sets.size() * plane, step = std::min(block_columns_, columns);
  for (size_t row = 0; gather_moments_ && row < plan_.set_rows; row += plan_.block_rows) {
    for (size_t c = 0; c < columns; c += step) {
      const Rectangle r = plan_.beside(sets.begin, row, c, std::min(step, columns - c));
      const ConstMatrix x = first_read(r, x_room);
      const size_t width = std::min(plane, r.columns);
      merge_channel_moments(x.data, r.rows, x.stride, next_rows(r), width, r.columns / width, sums);
    }
  }
  for (size_t i = 0; i < sets.size(); ++i) {
    const size_t set = sets.begin + i, channel = set % plan_.channels;
    numbers[i] = {finish_set(set, call_.moments ? call_.moments[set] : sums[i]), affine_.gamma[channel],
                  affine_.beta[channel]};
  }
  for (size_t k = div_up(plan_.set_rows, plan_.block_rows); k-- > 0;) {
    const size_t row = k * plan_.block_rows;
    for (size_t c = 0; c < columns; c += step) {
      const Rectangle r = plan_.beside(sets.begin, row, c, std::min(step, columns - c));
      const Matrix y = y_.target(r, y_room);
      NormalizeBlock all = block(r, second_read(r, x_room), y);
      all.ahead = more ? columns : 0;
      all.ahead_rows = plan_.ahead_rows(r);
      normalize_channel_block(all, std::min(plane, r.columns), numbers);
      finish_block(r, y);
    }
  }
}

// Channels of a group, all at once where they lie side by side.
void ForwardPass::normalize_group(size_t set, const Rectangle& segment, const SetCoefficients& set_coefficients,
                                  float* x_room, float* y_room) const {
  const bool at_once = joined_ && plan_.pieces == 1;
  const size_t step = at_once ? kMostSets : 1;
  ChannelCoefficients numbers[kMostSets];
  for (size_t row = 0; row < segment.rows; row += step) {
    const size_t rows = std::min(step, segment.rows - row), first = segment.row + row;
    if (!at_once) {
      for_each_block(plan_, {first, segment.column, 1, segment.columns}, block_columns_,
                     [&](const Rectangle& r) { normalize(set, r, set_coefficients, x_room, y_room); });
      continue;
    }
    for (size_t i = 0; i < rows; ++i) {
      const size_t channel = plan_.channel(set, first + i);
      numbers[i] = {set_coefficients, affine_.gamma[channel], affine_.beta[channel]};
    }
    const Rectangle r{first, 0, 1, rows * plan_.plane};
    normalize_channel_block(block(r, second_read(r, x_room), y_.target(r, y_room)), plan_.plane, numbers);
  }
}

// ---- columns ------------------------------------------------------------------------------------------------------

void ForwardPass::run_columns() const {
  for_each_column_run(plan_, static_cast<const float*>(call_.y), n_threads_, bytes(),
                      [&](size_t first, size_t channels) { run_channels(first, channels); });
}

void ForwardPass::run_channels(size_t first_channel, size_t channels) const {
  const size_t plane = plan_.plane, columns = channels * plane;
  float x_room[kColumnRows * kColumns], y_room[kColumnRows * kColumns];
  const auto rows_at = [&](size_t row) {
    return Rectangle{row, first_channel * plane, std::min(kColumnRows, plan_.batch - row), columns};
  };
  MomentSums sums[kColumns];
  for (size_t row = 0; gather_moments_ && row < plan_.batch; row += kColumnRows) {
    const Rectangle r = rows_at(row);
    const ConstMatrix x = first_read(r, x_room);
    merge_column_moments(x.data, r.rows, x.stride, columns, sums);
  }
  ColumnCoefficients numbers;
  for (size_t c = 0; c < channels; ++c) {
    const size_t channel = first_channel + c;
    MomentSums total;
    if (call_.moments) total = call_.moments[channel];
    for (size_t p = 0; gather_moments_ && p < plane; ++p) total.merge(sums[c * plane + p]);
    const SetCoefficients set = finish_set(channel, total);
    for (size_t j = c * plane; j < (c + 1) * plane; ++j) {
      numbers.mean_high[j] = set.mean_high;
      numbers.mean_low[j] = set.mean_low;
      numbers.rstd[j] = set.rstd;
      numbers.gamma[j] = affine_.gamma[channel];
      numbers.beta[j] = affine_.beta[channel];
    }
  }
  for (size_t row = 0; row < plan_.batch; row += kColumnRows) {
    const Rectangle r = rows_at(row);
    const ConstMatrix x = second_read(r, x_room);
    const Matrix y = y_.target(r, y_room);
    normalize_column_block(block(r, x, y), numbers);
    finish_block(r, y);
  }
}

}  // namespace bnns
