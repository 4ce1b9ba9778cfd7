// Backward over groups whose channels lie side by side; see pass.h.

#include "src/ops/normalization/backward/pass.h"

namespace bnns {

bool accepts_backward_groups(const NormalizationShape& shape) {
  return shape.plan.grouped() && shape.plan.pieces == 1 && shape.joined;
}

void BackwardPass::run_groups() const {
  for_each_task([&](Range sets) {
    for (size_t set = sets.begin; set < sets.end; ++set) run_group(set);
  });
}

// A group whose channels lie side by side, kMostSets of them at a time.
void BackwardPass::run_group(size_t set) const {
  BlockBuffers buffers;
  SetSums total(*this, set);
  const auto for_each_run = [&](auto&& body) {
    for (size_t row = 0; row < plan_.set_rows; row += kMostSets) {
      const size_t rows = std::min(kMostSets, plan_.set_rows - row);
      const Rectangle r{set * plan_.set_rows + row, 0, 1, rows * plan_.plane};
      body(r, rows, row, gradients(plan_, views_, r, affine(set, r), &buffers));
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
    gradient_channel_block(block, plan_.plane, numbers, target(r, buffers.dx()));
  });
}

}  // namespace bnns
