// Forward over sets that lie side by side, and over the channels of a group; see pass.h.

#include "src/ops/normalization/forward/pass.h"

namespace bnns {

bool accepts_forward_bundles(const NormalizationShape& shape) {
  return shape.plan.side_by_side();
}

void ForwardPass::run_bundles() const {
  for_each_task([&](Range sets) {
    for (size_t set = sets.begin; set < sets.end; set += bundle_) {
      run_bundle({set, std::min(sets.end, set + bundle_)}, schedule_.goes_on(plan_, set + bundle_));
    }
  });
}

// Sets side by side, more than one only where everything is in place.
void ForwardPass::run_bundle(Range sets, bool more) const {
  float x_buffer[kMomentBlock], y_buffer[kMomentBlock];
  MomentSums sums[kMostSets];
  ChannelCoefficients numbers[kMostSets];
  const size_t plane = plan_.plane, columns = sets.size() * plane, step = std::min(block_columns_, columns);
  for (size_t row = 0; gather_moments_ && row < plan_.set_rows; row += plan_.block_rows) {
    for (size_t c = 0; c < columns; c += step) {
      const Rectangle r = plan_.beside(sets.begin, row, c, std::min(step, columns - c));
      const ConstMatrix x = first_read(r, x_buffer);
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
      const Matrix y = y_.target(r, y_buffer);
      NormalizeBlock all = block(r, second_read(r, x_buffer), y);
      all.ahead = more ? columns : 0;
      all.ahead_rows = plan_.ahead_rows(r);
      normalize_channel_block(all, std::min(plane, r.columns), numbers);
      finish_block(r, y);
    }
  }
}

// Channels of a group, all at once where they lie side by side.
void ForwardPass::normalize_group(size_t set, const Rectangle& segment, const SetCoefficients& set_coefficients,
                                  float* x_buffer, float* y_buffer) const {
  const bool at_once = joined_ && plan_.pieces == 1;
  const size_t step = at_once ? kMostSets : 1;
  ChannelCoefficients numbers[kMostSets];
  for (size_t row = 0; row < segment.rows; row += step) {
    const size_t rows = std::min(step, segment.rows - row), first = segment.row + row;
    if (!at_once) {
      for_each_block(plan_, {first, segment.column, 1, segment.columns}, block_columns_,
                     [&](const Rectangle& r) { normalize(set, r, set_coefficients, x_buffer, y_buffer); });
      continue;
    }
    for (size_t i = 0; i < rows; ++i) {
      const size_t channel = plan_.channel(set, first + i);
      numbers[i] = {set_coefficients, affine_.gamma[channel], affine_.beta[channel]};
    }
    const Rectangle r{first, 0, 1, rows * plan_.plane};
    normalize_channel_block(block(r, second_read(r, x_buffer), y_.target(r, y_buffer)), plan_.plane, numbers);
  }
}

}  // namespace bnns
