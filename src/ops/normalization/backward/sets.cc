// Backward: what all algorithms share, and sets one after the other; see pass.h.

#include <cmath>

#include "src/ops/normalization/backward/pass.h"

namespace bnns {

BackwardPass::Views::Views(const NormalizationPlan& plan, const NormalizationProblem& problem,
                           const NormalizationBackward& call)
    : dy(plan, *call.dy, call.dy->data, call.dy_stride) {
  if (call.y) y = MatrixView(plan, problem.y, call.y, call.y_stride);
  if (call.dx) dx = MatrixView(plan, *call.dx, call.dx->data, call.dx_stride);
}

bool BackwardPass::Views::direct(const NormalizationPlan& plan, Source source) const {
  const Rectangle r{0, 0, plan.block_rows, 1};
  const bool without_y = source == Source::none || source == Source::relu_values;
  return dy.direct(r) && dx.direct(r) && (without_y || (source == Source::relu && y.direct(r)));
}

bool BackwardPass::Views::joined(const NormalizationPlan& plan, Source source) const {
  return direct(plan, source) && dy.joined() && dx.joined() && (source != Source::relu || y.joined());
}

BackwardPass::Source BackwardPass::source_of(const NormalizationProblem& problem, const NormalizationPlan& plan) {
  if (problem.activation.is_identity()) return Source::none;
  if (is_relu(problem.activation)) {
    // The sign of y without reading it; half floats may have been rounded to 0.
    const bool told = plan.batch_sets && !plan.by_columns && problem.y.is(BNNSDataTypeFloat32);
    return told ? Source::relu_values : Source::relu;
  }
  return normalization_needs_output(problem) ? Source::output : Source::values;
}

BackwardPass::BackwardPass(const NormalizationProblem& problem, const NormalizationParameters& parameters,
                           const NormalizationState& state, const NormalizationBackward& call, ScratchShelf& scratch,
                           size_t n_threads)
    : problem_(problem),
      call_(call),
      plan_(problem, call.batch, true),
      row_plan_(plan_),
      n_threads_(n_threads),
      values_(state.values()),
      rstd_(state.rstd()),
      relu_gamma_(state.gamma()),
      schedule_(plan_, n_threads, bytes(), 2),
      parameters_wanted_(call.dbeta || call.dgamma),
      stream_(bytes() / 4 >= kStreamGradientBytes && !plan_.by_columns),
      source_(source_of(problem, plan_)),
      scratch_(scratch),
      lease_(scratch, layout(parameters)),
      affine_(plan_, parameters, at<float>(affine_at_)),
      views_(plan_, problem, call),
      shape_{plan_, schedule_.split, affine_.gamma != nullptr} {
  if (plan_.per_element && plan_.groups > 1) {  // short groups: gamma and beta run along the whole sample
    row_plan_.rows_per_sample = 1;
    row_plan_.row_length = problem.count();
  }
  block_columns_ = views_.direct(plan_, source_) ? plan_.rows() * plan_.row_length : kMomentBlock;
  joined_ = views_.joined(plan_, source_);
  shape_.joined = joined_;
  shape_.wants_parameters = parameters_wanted_;
  bundle_ = joined_ ? schedule_.bundle : 1;
  may_shift_ = source_ == Source::none && !plan_.per_element && !plan_.grouped() && !plan_.by_columns &&
               plan_.set_count() >= kLeastShifted && plan_.set_columns >= kNeighbours;
}

size_t BackwardPass::layout(const NormalizationParameters& parameters) {
  ScratchLayout layout;
  affine_at_ = layout.add<float>(Affine::buffer_floats(plan_, parameters));
  if (parameters_wanted_ && !plan_.per_element) totals_at_ = layout.add<GradientSums>(plan_.channels);
  if (keeps_table()) table_at_ = layout.add<GradientSums>(checked_mul(plan_.sets, plan_.segments, "scratch"));
  if (schedule_.split) coefficients_at_ = layout.add<GradientCoefficients>(plan_.sets);
  return layout.bytes();
}

void BackwardPass::run() const {
  (this->*choose(kNormalizationBackward, shape_).run)();
  if (parameters_wanted_ && !plan_.per_element) write_channel_sums();
}

bool BackwardPass::begin_sets() const {
  if (plan_.per_element && parameters_wanted_) run_parameters();  // before dx, which may overwrite dy
  return call_.dx || !plan_.per_element;
}

// ---- g ------------------------------------------------------------------------------------------------------------

BlockAffine BackwardPass::affine(size_t set, const Rectangle& r) const {
  BlockAffine result;
  if (!plan_.per_element) {
    const size_t channel = plan_.channel(set, r.row);
    result.gamma = affine_.gamma[channel];
    result.beta = affine_.beta[channel];
    if (source_ == Source::relu_values) {
      result.relu_gamma = relu_gamma_ + channel;
      result.relu_beta = result.relu_gamma + plan_.channels;
    }
  } else if (affine_.gamma) {
    const size_t first = plan_.affine_offset(set) + r.column;
    result.gammas = affine_.gamma + first;
    result.betas = affine_.beta + first;
  }
  return result;
}

namespace {

// gamma x^ + beta bit-identical to the forward pass: its kernel, with mean 0 and deviation 1.
void recompute(const GradientBlock& g, const BlockAffine& affine, float* z) {
  const NormalizeBlock block = {
      g.values, g.values_stride, nullptr, 0, z, g.n, g.rows, g.n, -std::numeric_limits<float>::infinity(), false,
      false};
  if (affine.gammas) {
    normalize_row_block(block, {}, affine.gammas, affine.betas);
  } else {
    const ChannelCoefficients numbers{{}, affine.gamma, affine.beta};
    normalize_channel_block(block, g.n, &numbers);
  }
}

}  // namespace

GradientBlock BackwardPass::gradients(const NormalizationPlan& plan, const Views& views, const Rectangle& r,
                                      const BlockAffine& affine, BlockBuffers* buffers) const {
  const ConstMatrix dy = views.dy.read(r, buffers->dy);
  const float* values = values_ + r.row * plan.row_length + r.column;
  GradientBlock block = {dy.data, dy.stride, nullptr, 0, values, plan.row_length, r.rows, r.columns};
  block.gamma = affine.relu_gamma;
  block.beta = affine.relu_beta;
  if (source_ == Source::none || source_ == Source::relu_values) return block;
  if (source_ == Source::values) {
    recompute(block, affine, buffers->y);
    for (size_t i = 0; i < r.rows; ++i) {
      activation_backward_from_input(problem_.activation, buffers->y + i * r.columns, dy.data + i * dy.stride,
                                     buffers->y + i * r.columns, r.columns);
    }
    block.dy = buffers->y;
  } else {
    const ConstMatrix y = views.y.read(r, buffers->y);
    if (source_ == Source::relu) {  // the kernels do it
      block.y = y.data;
      block.y_stride = y.stride;
      return block;
    }
    const Activation activation = as_stored(problem_.activation, problem_.y.type);
    for (size_t i = 0; i < r.rows; ++i) {
      activation_backward_from_output(activation, y.data + i * y.stride, dy.data + i * dy.stride,
                                      buffers->dy + i * r.columns, r.columns);
    }
    block.dy = buffers->dy;
  }
  block.dy_stride = r.columns;
  return block;
}

// The mean of some values spread over the set, if all lie within half of it.
float BackwardPass::shift(size_t set) const {
  constexpr size_t kSamples = 8;
  const Rectangle first{plan_.batch_sets ? 0 : set * plan_.set_rows, plan_.batch_sets ? set * plan_.set_columns : 0, 1,
                        kNeighbours};
  float buffer[kNeighbours], sum = 0;
  if (!may_shift_) return 0;
  const float* begin = views_.dy.read(first, buffer).data;
  if (!hardly_varies(begin)) return 0;
  const float one = *begin;
  for (size_t i = 0; i < kSamples; ++i) {
    const size_t at = i * plan_.set_count() / kSamples;
    const Rectangle r{first.row + at / plan_.set_columns, first.column + at % plan_.set_columns, 1, 1};
    const float g = *views_.dy.read(r, buffer).data;
    if (!(std::fabs(g - one) <= 0.5f * std::fabs(one))) return 0;  // NaN and infinities end here too
    sum += g;
  }
  return sum / kSamples;
}

GradientTarget BackwardPass::target(const Rectangle& r, float* buffer) const {
  const Matrix dx = views_.dx.target(r, buffer);
  const bool direct = views_.dx.direct(r);
  return {dx.data, dx.stride, direct && call_.dx->accumulate, direct && stream_};
}

void BackwardPass::finish_block(const Rectangle& r, const GradientTarget& to) const {
  if (!views_.dx.direct(r)) views_.dx.bring(r, to.dx, call_.dx->accumulate);
}

// ---- sets ---------------------------------------------------------------------------------------------------------

void BackwardPass::add_sums(size_t set, const Rectangle& r, float shift, BlockBuffers* buffers,
                            GradientSums* sums) const {
  const BlockAffine numbers = affine(set, r);
  GradientBlock block = gradients(plan_, views_, r, numbers, buffers);
  block.next_rows = next_rows(r);
  numbers.gammas ? add_scaled_gradient_sums(block, numbers.gammas, sums) : add_gradient_sums(block, shift, sums);
}

GradientSums BackwardPass::segment_sums(size_t set, size_t segment) const {
  GradientSums sums;
  BlockBuffers buffers;
  const float common = shift(set);
  for_each_block(plan_, plan_.segment(set, segment), kMomentBlock,
                 [&](const Rectangle& r) { add_sums(set, r, common, &buffers, &sums); });
  return sums;
}

// scale lacks gamma, which the rows of a set need not share.
GradientCoefficients BackwardPass::coefficients(size_t set, double h, double hx) const {
  return make_gradient_coefficients(rstd_[set], plan_.set_count(), h, hx);
}

void BackwardPass::write_block(const Rectangle& r, const GradientBlock& block, const BlockAffine& affine,
                               GradientCoefficients numbers, float* buffer) const {
  const GradientTarget to = target(r, buffer);
  if (affine.gammas) {
    gradient_row_block(block, numbers, affine.gammas, to);
  } else {
    numbers.scale *= affine.gamma;
    gradient_channel_block(block, r.columns, &numbers, to);
  }
  finish_block(r, to);
}

void BackwardPass::write_segment(size_t set, size_t segment, GradientCoefficients numbers) const {
  BlockBuffers buffers;
  for_each_block_from_end(plan_, plan_.segment(set, segment), block_columns_, [&](const Rectangle& r) {
    const BlockAffine gamma = affine(set, r);
    GradientBlock block = gradients(plan_, views_, r, gamma, &buffers);
    if (joined_ && plan_.batch_sets && schedule_.goes_on(plan_, set + 1)) block.ahead = plan_.set_columns;
    block.ahead_rows = plan_.ahead_rows(r);
    write_block(r, block, gamma, numbers, buffers.dx());
  });
}

void BackwardPass::run_set(size_t set) const {
  SetSums sums(*this, set);
  for (size_t s = 0; s < plan_.segments; ++s) {
    const GradientSums part = segment_sums(set, s);
    if (keeps_table()) at<GradientSums>(table_at_)[set * plan_.segments + s] = part;
    sums.add(s, part);
  }
  const GradientCoefficients numbers = sums.finish();
  for (size_t s = call_.dx ? plan_.segments : 0; s-- > 0;) write_segment(set, s, numbers);
}

void BackwardPass::run_sets() const {
  for_each_task([&](Range sets) {
    for (size_t set = sets.begin; set < sets.end; ++set) run_set(set);
  });
}

const char* normalization_backward_name(const NormalizationProblem& problem, const NormalizationParameters& parameters,
                                        size_t batch, size_t n_threads) {
  const NormalizationPlan plan(problem, batch, true);
  NormalizationBackward call;
  call.dy = &problem.y, call.dy_stride = problem.y.sample_stride();
  call.dx = &problem.x, call.dx_stride = problem.x.sample_stride();
  NormalizationShape shape{plan, Schedule(plan, n_threads, pass_bytes(problem, batch), 2).split,
                           parameters.has_affine()};
  BackwardPass::Views views(plan, problem, call);
  views.y = views.dy;
  shape.joined = views.joined(plan, BackwardPass::source_of(problem, plan));
  shape.wants_parameters = true;
  return find(kNormalizationBackward, shape).name;
}

}  // namespace bnns
