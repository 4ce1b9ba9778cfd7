// Backward over sets that lie side by side; see pass.h.

#include "src/ops/normalization/backward/pass.h"

namespace bnns {

bool accepts_backward_bundles(const NormalizationShape& shape) {
  return shape.plan.side_by_side();
}

void BackwardPass::run_bundles() const {
  for_each_task([&](Range sets) {
    for (size_t set = sets.begin; set < sets.end; set += bundle_) {
      run_bundle({set, std::min(sets.end, set + bundle_)}, schedule_.goes_on(plan_, set + bundle_));
    }
  });
}

// Sets side by side, more than one only where everything is in place.
void BackwardPass::run_bundle(Range sets, bool more) const {
  BlockBuffers buffers;
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
      GradientBlock block = gradients(plan_, views_, r, affine(sets.begin, r), &buffers);
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
      GradientBlock block = gradients(plan_, views_, r, affine(sets.begin, r), &buffers);
      block.ahead = more ? columns : 0;
      block.ahead_rows = plan_.ahead_rows(r);
      const GradientTarget to = target(r, buffers.dx());
      gradient_channel_block(block, std::min(plane, r.columns), numbers, to);
      finish_block(r, to);
    }
  }
}

}  // namespace bnns
