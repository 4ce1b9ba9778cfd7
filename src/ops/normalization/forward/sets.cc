// Forward: what all algorithms share, and sets one after the other; see pass.h.

#include "src/ops/normalization/forward/pass.h"

namespace bnns {

ForwardPass::ForwardPass(const NormalizationProblem& problem, NormalizationParameters& parameters,
                         const NormalizationForward& call, ScratchShelf& scratch, size_t n_threads)
    : problem_(problem),
      parameters_(parameters),
      call_(call),
      plan_(problem, call.batch),
      n_threads_(n_threads),
      values_(call.state ? call.state->values() : nullptr),
      moving_mean_wanted_(!call.state && problem.has_moving_mean()),
      moving_variance_wanted_(!call.state && problem.has_moving_variance()),
      update_(call.state && (problem.has_moving_mean() || problem.has_moving_variance())),
      schedule_(plan_, n_threads, bytes(), 1),
      lease_(scratch, layout()),
      x_(plan_, call.x_is_dense ? vector_tensor(problem.count(), nullptr) : problem.x, call.x, call.x_stride),
      y_(plan_, problem.y, call.y, call.y_stride),
      affine_(plan_, parameters, at<float>(affine_at_)),
      shape_{plan_, schedule_.split, affine_.gamma != nullptr} {
  x_direct_ = x_.direct({0, 0, 1, 1});
  const size_t tensor_bytes = plan_.batch * problem.count() * sizeof(float);
  // x is of floats: dense, it is converted by whole runs. What stays in cache is rather copied, once.
  x_twice_ = x_direct_ || (!call.x_is_dense && problem.x.dense && tensor_bytes >= kStreamStateBytes);
  x_uniform_ = x_.direct({0, 0, 2, 1});
  gather_moments_ = !call.moments && !(moving_mean_wanted_ && moving_variance_wanted_);
  separate_activation_ = needs_activation_pass(problem.activation);
  const bool direct =
      (x_direct_ || (values_ && !x_twice_)) && y_.direct({0, 0, plan_.block_rows, 1}) && !separate_activation_;
  block_columns_ = direct ? plan_.rows() * plan_.row_length : kMomentBlock;
  joined_ = direct && x_.joined() && y_.joined();
  bundle_ = joined_ ? schedule_.bundle : 1;
  shape_.joined = joined_;
  shape_.gathers = gather_moments_;
  const bool each_row = accepts_forward_rows(shape_);
  stream_values_ = values_ && tensor_bytes >= kStreamStateBytes && !plan_.by_columns;
  const size_t stream_from = !values_                       ? kStreamOutputBytes
                             : plan_.batch_sets || each_row ? kStreamTrainingBytes
                                                            : kStreamRunBytes;
  stream_y_ = tensor_bytes >= stream_from && !separate_activation_ && !plan_.by_columns;
  if (moving_mean_wanted_ || moving_variance_wanted_) {
    parameters.read_moving(moving_mean_wanted_ ? at<float>(moving_at_) : nullptr,
                           moving_variance_wanted_ ? at<float>(moving_at_) + problem.channels : nullptr);
  }
}

size_t ForwardPass::layout() {
  ScratchLayout layout;
  affine_at_ = layout.add<float>(Affine::buffer_floats(plan_, parameters_));
  if (moving_mean_wanted_ || moving_variance_wanted_) moving_at_ = layout.add<float>(2 * problem_.channels);
  if (update_) statistics_at_ = layout.add<double>(checked_mul(2, plan_.sets, "scratch"));
  if (schedule_.split) {
    moments_at_ = layout.add<MomentSums>(plan_.sets * plan_.segments);
    coefficients_at_ = layout.add<SetCoefficients>(plan_.sets);
  }
  return layout.bytes();
}

void ForwardPass::run() {
  (this->*choose(kNormalizationForward, shape_).run)();
  if (update_) update_moving();
  if (call_.state && plan_.batch_sets) {
    std::copy_n(affine_.gamma, plan_.channels, call_.state->gamma());
    std::copy_n(affine_.beta, plan_.channels, call_.state->gamma() + plan_.channels);
  }
}

// ---- statistics ---------------------------------------------------------------------------------------------------

MomentSums ForwardPass::segment_moments(size_t set, size_t segment) const {
  MomentSums sums;
  float buffer[kMomentBlock];
  for_each_block(plan_, plan_.segment(set, segment), kMomentBlock, [&](const Rectangle& r) {
    const ConstMatrix x = first_read(r, buffer);
    sums.merge(moments_of_block(x.data, r.rows, x.stride, r.columns, next_rows(r)));
  });
  return sums;
}

// Keeps what backward and the moving statistics need of a set.
SetCoefficients ForwardPass::finish_set(size_t set, const MomentSums& sums) const {
  const size_t channel = set % problem_.channels;  // moving statistics: a set is a channel, or a channel of a sample
  const float* moving = at<float>(moving_at_);
  const double mean = moving_mean_wanted_ ? static_cast<double>(moving[channel]) : sums.mean();
  const double variance =
      moving_variance_wanted_ ? static_cast<double>(moving[problem_.channels + channel]) : sums.variance();
  const SetCoefficients set_coefficients = make_set_coefficients(mean, variance, problem_.epsilon);
  if (call_.state) call_.state->rstd()[set] = set_coefficients.rstd;
  if (update_) {
    at<double>(statistics_at_)[set] = mean;
    at<double>(statistics_at_)[plan_.sets + set] = variance;
  }
  return set_coefficients;
}

// Instance normalization averages the statistics of its samples first (K20).
void ForwardPass::update_moving() const {
  double* mean = at<double>(statistics_at_);
  double* variance = mean + plan_.sets;
  if (problem_.kind == NormalizationKind::instance) {
    for (double* statistic : {mean, variance}) {
      for (size_t c = 0; c < problem_.channels; ++c) {
        double sum = 0;
        for (size_t n = 0; n < plan_.batch; ++n) sum += statistic[n * problem_.channels + c];
        statistic[c] = sum / static_cast<double>(plan_.batch);
      }
    }
  }
  parameters_.update_moving(problem_.momentum, mean, variance);
}

// ---- x^ and y -----------------------------------------------------------------------------------------------------

NormalizeBlock ForwardPass::block(const Rectangle& r, const ConstMatrix& x, const Matrix& y) const {
  NormalizeBlock block;
  block.x = x.data;
  block.x_stride = x.stride;
  block.values = values_ ? const_cast<float*>(values(r).data) : nullptr;
  block.values_stride = plan_.row_length;
  block.y = y.data;
  block.y_stride = y.stride;
  block.rows = r.rows;
  block.n = r.columns;
  block.floor = activation_floor(problem_.activation);
  block.stream_values = stream_values_;
  block.stream_y = stream_y_ && y_.direct(r);  // a buffer is read again at once
  return block;
}

void ForwardPass::normalize(size_t set, const Rectangle& r, const SetCoefficients& set_coefficients, float* x_buffer,
                            float* y_buffer) const {
  const ConstMatrix x = second_read(r, x_buffer);
  const Matrix y = y_.target(r, y_buffer);
  if (!plan_.per_element) {
    const size_t channel = plan_.channel(set, r.row);
    const ChannelCoefficients numbers{set_coefficients, affine_.gamma[channel], affine_.beta[channel]};
    NormalizeBlock one = block(r, x, y);
    if (joined_ && plan_.batch_sets && schedule_.goes_on(plan_, set + 1)) one.ahead = plan_.set_columns;
    one.ahead_rows = plan_.ahead_rows(r);
    normalize_channel_block(one, r.columns, &numbers);
  } else if (!affine_.gamma) {
    const ChannelCoefficients numbers{set_coefficients, 1, 0};
    normalize_channel_block(block(r, x, y), r.columns, &numbers);
  } else {
    const size_t first = plan_.affine_offset(set) + r.column;
    normalize_row_block(block(r, x, y), set_coefficients, affine_.gamma + first, affine_.beta + first);
  }
  finish_block(r, y);
}

void ForwardPass::normalize_segment(size_t set, size_t segment, const SetCoefficients& set_coefficients) const {
  float x_buffer[kMomentBlock], y_buffer[kMomentBlock];
  if (plan_.grouped()) {
    return normalize_group(set, plan_.segment(set, segment), set_coefficients, x_buffer, y_buffer);
  }
  for_each_block_from_end(plan_, plan_.segment(set, segment), block_columns_,
                          [&](const Rectangle& r) { normalize(set, r, set_coefficients, x_buffer, y_buffer); });
}

void ForwardPass::run_set(size_t set) const {
  MomentSums sums;
  if (call_.moments) sums = call_.moments[set];
  for (size_t s = 0; gather_moments_ && s < plan_.segments; ++s) sums.merge(segment_moments(set, s));
  const SetCoefficients set_coefficients = finish_set(set, sums);
  for (size_t s = plan_.segments; s-- > 0;) normalize_segment(set, s, set_coefficients);
}

void ForwardPass::run_sets() const {
  for_each_task([&](Range sets) {
    for (size_t set = sets.begin; set < sets.end; ++set) run_set(set);
  });
}

const char* normalization_forward_name(const NormalizationProblem& problem, const NormalizationParameters& parameters,
                                       size_t batch, size_t n_threads) {
  const NormalizationPlan plan(problem, batch);
  const MatrixView x(plan, problem.x, nullptr, problem.x.sample_stride()),
      y(plan, problem.y, nullptr, problem.y.sample_stride());
  NormalizationShape shape{plan, Schedule(plan, n_threads, pass_bytes(problem, batch), 1).split,
                           parameters.has_affine()};
  shape.joined = x.direct({0, 0, 1, 1}) && y.direct({0, 0, plan.block_rows, 1}) &&
                 !needs_activation_pass(problem.activation) && x.joined() && y.joined();
  return find(kNormalizationForward, shape).name;
}

void normalization_forward(const NormalizationProblem& problem, NormalizationParameters& parameters,
                           const NormalizationForward& call, ScratchShelf& scratch, size_t n_threads) {
  ForwardPass(problem, parameters, call, scratch, n_threads).run();
}

}  // namespace bnns
