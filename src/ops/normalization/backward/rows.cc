// Backward over rows, and dbeta and dgamma: sums that many rows share; see pass.h.

#include "src/ops/normalization/backward/pass.h"

namespace bnns {

bool accepts_backward_rows(const NormalizationShape& shape) {
  return shape.plan.per_element && shape.wants_parameters && shape.plan.affine_length <= kRowSums;
}

// Elements [first, first + n) of both gradients, n <= kGradientColumns.
void BackwardPass::write_deltas(size_t first, size_t n, const GradientSums* sums) const {
  for (const Tensor* delta : {call_.dbeta, call_.dgamma}) {
    if (!delta) continue;
    float values[kGradientColumns];
    for (size_t j = 0; j < n; ++j) values[j] = static_cast<float>(delta == call_.dbeta ? sums[j].g : sums[j].gx);
    const Elements to(*delta);
    if (delta->accumulate) {
      to.accumulate(delta->data, first, n, values);
    } else if (to.direct()) {
      std::copy_n(values, n, static_cast<float*>(delta->data) + first);
    } else {
      to.write(delta->data, first, n, values);
    }
  }
}

// The same from columns [first, first + n) of `parts` rows of partial sums, each `length` of g and as many of g x^.
// Short groups: the columns of a channel are one element.
void BackwardPass::write_row_deltas(size_t first, size_t n, const double* partial, size_t parts, size_t length) const {
  const size_t fold = plan_.affine_length / problem_.affine_count();
  GradientSums sums[kGradientColumns];
  for (size_t part = 0; part < parts; ++part, partial += 2 * length) {
    const double* gx = partial + length;
    for (size_t k = 0, j = 0; j < n; ++k) {
      for (const size_t end = j + fold; j < end; ++j) {
        sums[k].g += partial[j];
        sums[k].gx += gx[j];
      }
    }
  }
  write_deltas(first / fold, n / fold, sums);
}

void BackwardPass::write_channel_sums() const {
  GradientSums* totals = at<GradientSums>(totals_at_);
  if (!plan_.batch_sets) {  // rows of the table are channels of samples, `pieces` each
    const GradientSums* table = at<GradientSums>(table_at_);
    for (size_t c = 0; c < plan_.channels; ++c) {
      totals[c] = {};
      for (size_t row = c; row < plan_.rows(); row += plan_.channels) {
        for (size_t k = 0; k < plan_.pieces; ++k) {
          totals[c].g += table[row * plan_.pieces + k].g;
          totals[c].gx += table[row * plan_.pieces + k].gx;
        }
      }
    }
  }
  for (size_t c = 0; c < plan_.channels; c += kGradientColumns) {
    write_deltas(c, std::min(kGradientColumns, plan_.channels - c), totals + c);
  }
}

// ---- rows up to kRowSums: one pass --------------------------------------------------------------------------------

// One row: its sums, its part of the sums over rows, dx.
void BackwardPass::run_row(size_t set, float* sum_g, float* sum_gx) const {
  BlockBuffers buffers;
  const Rectangle r{set, 0, 1, plan_.set_columns};  // at most kRowSums: g of the whole row fits a buffer
  const BlockAffine gamma = affine(set, r);
  const GradientBlock block = gradients(plan_, views_, r, gamma, &buffers);
  const size_t at = plan_.affine_offset(set);
  GradientSums sums;
  for (size_t first = 0; first < block.n; first += kMomentBlock) {
    GradientBlock part = block;
    part.dy += first, part.values += first, part.n = std::min(kMomentBlock, block.n - first);
    if (part.y) part.y += first;
    add_row_gradient_sums(part, gamma.gammas ? gamma.gammas + first : nullptr, sum_g + at + first, sum_gx + at + first,
                          &sums);
  }
  if (call_.dx) write_block(r, block, gamma, coefficients(set, sums.g, sums.gx), buffers.dx());
}

void BackwardPass::run_rows() const {
  // f32 sums take kColumnRows rows of each parameter, then go to double; tasks are cut by the shape alone.
  const size_t length = plan_.affine_length, rounds = kColumnRows * plan_.groups;
  const size_t stretch = std::max(rounds, div_up(plan_.sets, 64)), tasks = div_up(plan_.sets, stretch);
  const size_t threads = threads_for(n_threads_, tasks, bytes());
  const bool each_row = joined_ && source_ == Source::none && call_.dx && !call_.dx->accumulate && affine_.gamma &&
                        length == plan_.set_columns;
  ScratchLayout layout;
  const size_t partial_at = layout.add<double>(tasks * 2 * length);
  const size_t sums_at = layout.add<float>(threads * 2 * length);
  const ScratchShelf::Lease lease(scratch_, layout.bytes());
  double* partial = reinterpret_cast<double*>(lease.as<char>() + partial_at);
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    float* sum_g = reinterpret_cast<float*>(lease.as<char>() + sums_at) + worker * 2 * length;
    float* sum_gx = sum_g + length;
    double* total = partial + task * 2 * length;
    std::fill_n(total, 2 * length, 0.0);
    const size_t end = std::min(plan_.sets, (task + 1) * stretch);
    for (size_t first = task * stretch; first < end; first += rounds) {
      std::fill_n(sum_g, 2 * length, 0.0f);
      const size_t last = std::min(end, first + rounds);
      if (each_row) {
        const Rectangle r{first, 0, last - first, length};
        const ConstMatrix dy = views_.dy.read(r, nullptr);
        const GradientBlock block = {dy.data, dy.stride, nullptr, 0, values_ + first * length, length, r.rows, length};
        gradient_each_row(block, affine_.gamma, rstd_ + first, sum_g, sum_gx, target(r, nullptr));
      } else {
        for (size_t set = first; set < last; ++set) run_row(set, sum_g, sum_gx);
      }
      for (size_t j = 0; j < 2 * length; ++j) total[j] += static_cast<double>(sum_g[j]);
    }
    if (stream_) hwy::FlushStream();
  });
  const size_t fold = length / problem_.affine_count(), width = kGradientColumns / fold * fold;
  for (size_t first = 0; first < length; first += width) {
    write_row_deltas(first, std::min(width, length - first), partial + first, tasks, length);
  }
}

// ---- longer rows: column by column --------------------------------------------------------------------------------

// Sums over `rows`, for columns [column, column + columns).
void BackwardPass::sum_rows(const Views& views, size_t column, size_t columns, Range rows, GradientSums* sums) const {
  BlockBuffers buffers;
  BlockAffine numbers;
  if (affine_.gamma) numbers.gammas = affine_.gamma + column, numbers.betas = affine_.beta + column;
  const size_t step = std::min(kColumnRows, kGradientBuffer / columns);
  for (size_t row = rows.begin; row < rows.end; row += step) {
    const Rectangle r{row, column, std::min(step, rows.end - row), columns};
    add_column_gradient_sums(gradients(row_plan_, views, r, numbers, &buffers), sums);
  }
}

void BackwardPass::run_parameters() const {
  const Views views(row_plan_, problem_, call_);
  const size_t length = row_plan_.row_length, fold = length / problem_.affine_count();
  const size_t width = kGradientColumns / fold * fold, blocks = div_up(length, width), rows = row_plan_.rows();
  parallel_for(blocks, threads_for(n_threads_, blocks, bytes()), [&](size_t block, size_t) {
    const size_t first = block * width, n = std::min(width, length - first);
    GradientSums sums[kGradientColumns];
    sum_rows(views, first, n, {0, rows}, sums);
    for (size_t k = 0; k < n / fold; ++k) {
      GradientSums sum;
      for (size_t j = k * fold; j < (k + 1) * fold; ++j) sum.g += sums[j].g, sum.gx += sums[j].gx;
      sums[k] = sum;
    }
    write_deltas(first / fold, n / fold, sums);
  });
}

}  // namespace bnns
