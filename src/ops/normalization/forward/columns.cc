// Forward of batch normalization with short planes: neighbouring values of every sample together; see pass.h.

#include "src/ops/normalization/forward/pass.h"

namespace bnns {

bool accepts_forward_columns(const NormalizationShape& shape) {
  return shape.plan.by_columns;
}

void ForwardPass::run_columns() const {
  for_each_column_run(plan_, static_cast<const float*>(call_.y), n_threads_, bytes(),
                      [&](size_t first, size_t channels) { run_channels(first, channels); });
}

void ForwardPass::run_channels(size_t first_channel, size_t channels) const {
  const size_t plane = plan_.plane, columns = channels * plane;
  float x_buffer[kColumnRows * kColumns], y_buffer[kColumnRows * kColumns];
  const auto rows_at = [&](size_t row) {
    return Rectangle{row, first_channel * plane, std::min(kColumnRows, plan_.batch - row), columns};
  };
  MomentSums sums[kColumns];
  for (size_t row = 0; gather_moments_ && row < plan_.batch; row += kColumnRows) {
    const Rectangle r = rows_at(row);
    const ConstMatrix x = first_read(r, x_buffer);
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
    const ConstMatrix x = second_read(r, x_buffer);
    const Matrix y = y_.target(r, y_buffer);
    normalize_column_block(block(r, x, y), numbers);
    finish_block(r, y);
  }
}

}  // namespace bnns
