// Backward of batch normalization with short planes: neighbouring values of every sample together; see pass.h.

#include "src/ops/normalization/backward/pass.h"

namespace bnns {

bool accepts_backward_columns(const NormalizationShape& shape) {
  return shape.plan.by_columns;
}

void BackwardPass::run_columns() const {
  for_each_column_run(plan_, values_, n_threads_, bytes(),
                      [&](size_t first, size_t channels) { run_channels(first, channels); });
}

void BackwardPass::run_channels(size_t first_channel, size_t channels) const {
  const size_t plane = plan_.plane, columns = channels * plane;
  BlockBuffers buffers;
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
    add_column_gradient_sums(gradients(plan_, views_, rows_at(row), numbers, &buffers), sums);
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
    const GradientBlock block = gradients(plan_, views_, r, numbers, &buffers);
    const GradientTarget to = target(r, buffers.dx());
    gradient_column_block(block, set, to);
    finish_block(r, to);
  }
}

}  // namespace bnns
