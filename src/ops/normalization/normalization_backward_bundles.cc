// Backward over sets side by side, channels of a group, and columns; see normalization_gradient.h.

#include "src/ops/normalization/normalization_gradient.h"

namespace bnns {

// Sets side by side, more than one only where everything is in place.
void BackwardPass::run_bundle(Range sets, bool more) const {
  Rooms rooms;
  GradientSums sums[kMostSets];
  GradientCoefficients numbers[kMostSets];
  float shifts[kMostSets];
  const size_t plane = plan_.plane, columns = sets.size() * plane, step = std::min(block_columns_, columns);
  const float* first = joined_ ? views_.dy.read(plan_.beside(sets.begin, 0, 0, columns), nullptr).data : nullptr;
  bool shifted = false;
  for (size_t i = 0; i < sets.size() && may_shift_; ++i) {
    shifts[i] = first && !hardly_varies(first + i * plane) ? 0 : shift(sets.begin + i);
    shifted = shifted || shifts[i] != 0;
  }
  for (size_t row = 0; row < plan_.set_rows; row += plan_.block_rows) {
    for (size_t c = 0; c < columns; c += step) {
      const Rectangle r = plan_.beside(sets.begin, row, c, std::min(step, columns - c));
      GradientBlock block = gradients(plan_, views_, r, affine(sets.begin, r), &rooms);
      block.next_rows = next_rows(r);
      add_channel_gradient_sums(block, std::min(plane, r.columns), shifted ? shifts : nullptr, sums);
    }
  }
  for (size_t set = sets.begin; set < sets.end; ++set) {
    const size_t i = set - sets.begin;
    if (keeps_table()) at<GradientSums>(table_at_)[set] = sums[i];
    SetSums one(*this, set);
    one.add(0, sums[i]);
    numbers[i] = one.finish();
    numbers[i].scale *= affine_.gamma[set % plan_.channels];
  }
  for (size_t k = call_.dx ? div_up(plan_.set_rows, plan_.block_rows) : 0; k-- > 0;) {
    const size_t row = k * plan_.block_rows;
    for (size_t c = 0; c < columns; c += step) {
      const Rectangle r = plan_.beside(sets.begin, row, c, std::min(step, columns - c));
      GradientBlock block = gradients(plan_, views_, r, affine(sets.begin, r), &rooms);
      block.ahead = more ? columns : 0;
      block.ahead_rows = plan_.ahead_rows(r);
      const GradientTarget to = target(r, rooms.dx());
      gradient_channel_block(block, std::min(plane, r.columns), numbers, to);
      finish_block(r, to);
    }
  }
}

// A group whose channels lie side by side, kMostSets of them at a time.
void BackwardPass::run_group(size_t set) const {
  Rooms rooms;
  SetSums total(*this, set);
  const auto for_each_run = [&](auto&& body) {
    for (size_t row = 0; row < plan_.set_rows; row += kMostSets) {
      const size_t rows = std::min(kMostSets, plan_.set_rows - row);
      const Rectangle r{set * plan_.set_rows + row, 0, 1, rows * plan_.plane};
      body(r, rows, row, gradients(plan_, views_, r, affine(set, r), &rooms));
    }
  };
  for_each_run([&](const Rectangle&, size_t rows, size_t row, const GradientBlock& block) {
    GradientSums sums[kMostSets];
    add_channel_gradient_sums(block, plan_.plane, nullptr, sums);
    for (size_t i = 0; i < rows; ++i) {
      if (keeps_table()) at<GradientSums>(table_at_)[set * plan_.segments + row + i] = sums[i];
      total.add(row + i, sums[i]);
    }
  });
  const GradientCoefficients one = total.finish();
  if (!call_.dx) return;
  for_each_run([&](const Rectangle& r, size_t rows, size_t, const GradientBlock& block) {
    GradientCoefficients numbers[kMostSets];
    for (size_t i = 0; i < rows; ++i) {
      numbers[i] = one;
      numbers[i].scale *= affine_.gamma[plan_.channel(set, r.row + i)];
    }
    gradient_channel_block(block, plan_.plane, numbers, target(r, rooms.dx()));
  });
}

// ---- columns ------------------------------------------------------------------------------------------------------

void BackwardPass::run_columns() const {
  for_each_column_run(plan_, values_, n_threads_, bytes(),
                      [&](size_t first, size_t channels) { run_channels(first, channels); });
}

void BackwardPass::run_channels(size_t first_channel, size_t channels) const {
  const size_t plane = plan_.plane, columns = channels * plane;
  Rooms rooms;
  float gammas[kColumns], betas[kColumns];
  for (size_t j = 0; j < columns; ++j) {
    gammas[j] = affine_.gamma[first_channel + j / plane];
    betas[j] = affine_.beta[first_channel + j / plane];
  }
  BlockAffine numbers;
  numbers.gammas = gammas;
  numbers.betas = betas;
  const auto rows_at = [&](size_t row) {
    return Rectangle{row, first_channel * plane, std::min(kColumnRows, plan_.batch - row), columns};
  };
  GradientSums sums[kColumns];
  for (size_t row = 0; row < plan_.batch; row += kColumnRows) {
    add_column_gradient_sums(gradients(plan_, views_, rows_at(row), numbers, &rooms), sums);
  }
  ColumnGradientCoefficients set;
  for (size_t c = 0; c < channels; ++c) {
    GradientSums total;
    for (size_t j = c * plane; j < (c + 1) * plane; ++j) total.g += sums[j].g, total.gx += sums[j].gx;
    const size_t channel = first_channel + c;
    if (parameters_wanted_) at<GradientSums>(totals_at_)[channel] = total;
    const double gamma = static_cast<double>(affine_.gamma[channel]);
    const GradientCoefficients one = coefficients(channel, gamma * total.g, gamma * total.gx);
    for (size_t j = c * plane; j < (c + 1) * plane; ++j) {
      set.scale[j] = one.scale * gammas[j];
      set.slope[j] = one.slope;
      set.offset[j] = one.offset;
    }
  }
  for (size_t row = 0; call_.dx && row < plan_.batch; row += kColumnRows) {
    const Rectangle r = rows_at(row);
    const GradientBlock block = gradients(plan_, views_, r, numbers, &rooms);
    const GradientTarget to = target(r, rooms.dx());
    gradient_column_block(block, set, to);
    finish_block(r, to);
  }
}

}  // namespace bnns
