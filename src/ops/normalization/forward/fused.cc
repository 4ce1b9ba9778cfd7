// NormalizationPass: slots for the moments of a first stage's blocks, and inference that needs none.

#include "src/core/checked.h"
#include "src/ops/normalization/common/plan.h"

namespace bnns {

NormalizationPass::NormalizationPass(const NormalizationProblem& problem, NormalizationParameters& parameters,
                                     const Call& call, ScratchShelf& scratch, size_t n_threads)
    : problem_(problem),
      parameters_(parameters),
      call_(call),
      scratch_(scratch),
      n_threads_(n_threads),
      pixel_parts_(div_up(problem.plane(), call.part.pixels)),
      immediate_(!call.state && problem.has_moving_mean() && problem.has_moving_variance()),
      gathers_(false),
      y_elements_(problem.y),
      lease_(scratch, layout()) {
  if (immediate_) {
    const Affine affine(NormalizationPlan(problem, call.batch), parameters, at<float>(affine_at_));
    gamma_ = affine.gamma;
    beta_ = affine.beta;
    SetCoefficients* sets = at<SetCoefficients>(coefficients_at_);
    float* moving = at<float>(moving_at_);
    parameters.read_moving(moving, moving + problem.channels);
    for (size_t c = 0; c < problem.channels; ++c) {
      sets[c] = make_set_coefficients(moving[c], moving[problem.channels + c], problem.epsilon);
    }
    return;
  }
  values_stride_ = problem.count();
  if (call.state) {
    call.state->begin(problem, call.batch, call.y);
    values_ = call.state->values();
  } else if (y_elements_.direct()) {  // normalised in place
    values_ = static_cast<float*>(call.y);
    values_stride_ = call.y_stride;
  } else {
    values_ = at<float>(values_at_);
  }
}

size_t NormalizationPass::layout() {
  ScratchLayout layout;
  const size_t channels = problem_.channels, batch = call_.batch;
  if (immediate_) {
    affine_at_ = layout.add<float>(Affine::buffer_floats(NormalizationPlan(problem_, batch), parameters_));
    coefficients_at_ = layout.add<SetCoefficients>(channels);
    moving_at_ = layout.add<float>(2 * channels);
    return layout.bytes();
  }
  // Sets of one sample are gathered where slots are of one sample too, a set is made of whole planes, and planes are
  // long enough that reading them again costs more than a slot.
  const size_t sets = problem_.sets(batch), plane = problem_.plane();
  gathers_ = problem_.kind == NormalizationKind::batch ||
             (call_.part.samples == 1 && plane >= kShortPlane && batch * problem_.count() / sets % plane == 0);
  if (gathers_) {
    const size_t parts = checked_mul(div_up(batch, call_.part.samples), pixel_parts_, "scratch");
    slots_at_ = layout.add<MomentSums>(checked_mul(parts, channels, "scratch"));
    moments_at_ = layout.add<MomentSums>(sets);
  }
  if (!call_.state && !y_elements_.direct()) {
    values_at_ = layout.add<float>(checked_mul(batch, problem_.count(), "scratch"));
  }
  return layout.bytes();
}

// ---- statistics -----------------------------------------------------------------------------------------------------

// Slots are ordered by part of the batch, channel, part of the plane.
void NormalizationPass::gather(const Block& block) const noexcept {
  if (!gathers_) return;
  const Part& part = call_.part;
  for (size_t n = block.samples.begin; n < block.samples.end; n += part.samples) {
    const size_t rows = std::min(part.samples, block.samples.end - n);
    const float* x = block.x + (n - block.samples.begin) * block.sample_stride;
    MomentSums* slots = at<MomentSums>(slots_at_) + n / part.samples * problem_.channels * pixel_parts_;
    if (problem_.plane() == 1 && block.channel_stride == 1) {  // channels are neighbours
      for (size_t c = 0; c < block.channels.size(); c += kColumns) {
        const size_t columns = std::min(kColumns, block.channels.size() - c);
        MomentSums* to = slots + block.channels.begin + c;
        std::fill_n(to, columns, MomentSums{});
        merge_column_moments(x + c, rows, block.sample_stride, columns, to);
      }
      continue;
    }
    for (size_t c = 0; c < block.channels.size(); ++c) {
      MomentSums* to = slots + (block.channels.begin + c) * pixel_parts_;
      const float* plane = x + c * block.channel_stride;
      for (size_t p = block.pixels.begin; p < block.pixels.end; p += part.pixels) {
        to[p / part.pixels] = moments_of_block(plane + (p - block.pixels.begin), rows, block.sample_stride,
                                               std::min(part.pixels, block.pixels.end - p));
      }
    }
  }
}

void NormalizationPass::merge_set(size_t set) const noexcept {
  const MomentSums* slots = at<MomentSums>(slots_at_);
  MomentSums sums;
  if (problem_.kind == NormalizationKind::batch) {
    const size_t step = problem_.channels * pixel_parts_, parts = div_up(call_.batch, call_.part.samples);
    for (size_t n = 0; n < parts; ++n) {
      for (size_t k = 0; k < pixel_parts_; ++k) sums.merge(slots[n * step + set * pixel_parts_ + k]);
    }
  } else {  // neighbouring planes of a sample
    const size_t slots_per_set = call_.batch * problem_.channels * pixel_parts_ / problem_.sets(call_.batch);
    for (size_t k = 0; k < slots_per_set; ++k) sums.merge(slots[set * slots_per_set + k]);
  }
  at<MomentSums>(moments_at_)[set] = sums;
}

void NormalizationPass::finish() {
  if (immediate_) return;
  NormalizationForward forward;
  forward.batch = call_.batch;
  forward.x = values_;
  forward.x_stride = values_stride_;
  forward.x_is_dense = true;
  forward.y = call_.y;
  forward.y_stride = call_.y_stride;
  forward.state = call_.state;
  if (gathers_) {
    const size_t sets = problem_.sets(call_.batch);
    const size_t slots = div_up(call_.batch, call_.part.samples) * problem_.channels * pixel_parts_;
    parallel_for(sets, threads_for(n_threads_, sets, slots * sizeof(MomentSums)),
                 [&](size_t set, size_t) { merge_set(set); });
    forward.moments = at<MomentSums>(moments_at_);
  }
  normalization_forward(problem_, parameters_, forward, scratch_, n_threads_);
  if (call_.state) call_.state->complete();
}

// ---- inference with moving statistics -------------------------------------------------------------------------------

void NormalizationPass::normalize(const Block& block) const noexcept {
  const size_t plane = problem_.plane();
  if (plane == 1 && block.channel_stride == 1) return normalize_columns(block);
  for (size_t n = 0; n < block.samples.size(); ++n) {
    for (size_t c = 0; c < block.channels.size(); ++c) {
      const float* x = block.x + n * block.sample_stride + c * block.channel_stride;
      const size_t channel = block.channels.begin + c, first = channel * plane + block.pixels.begin;
      for (size_t p = 0; p < block.pixels.size(); p += kMomentBlock) {
        const size_t values = std::min(kMomentBlock, block.pixels.size() - p);
        write_run(block.samples.begin + n, first + p, values, x + p, channel, nullptr);
      }
    }
  }
}

void NormalizationPass::normalize_columns(const Block& block) const noexcept {
  for (size_t c = 0; c < block.channels.size(); c += kColumns) {
    const size_t first = block.channels.begin + c, columns = std::min(kColumns, block.channels.size() - c);
    ColumnCoefficients numbers;
    for (size_t j = 0; j < columns; ++j) {
      const SetCoefficients& set = at<SetCoefficients>(coefficients_at_)[first + j];
      numbers.mean_high[j] = set.mean_high;
      numbers.mean_low[j] = set.mean_low;
      numbers.rstd[j] = set.rstd;
      numbers.gamma[j] = gamma_[first + j];
      numbers.beta[j] = beta_[first + j];
    }
    for (size_t n = 0; n < block.samples.size(); ++n) {
      write_run(block.samples.begin + n, first, columns, block.x + n * block.sample_stride + c, first, &numbers);
    }
  }
}

// y of elements [first, first + n) of a sample, n <= kMomentBlock: all of one channel, or each with its own numbers.
void NormalizationPass::write_run(size_t sample, size_t first, size_t n, const float* x, size_t channel,
                                  const ColumnCoefficients* columns) const noexcept {
  float buffer[kMomentBlock];
  void* base = element_at(call_.y, problem_.y.type, sample * call_.y_stride);
  float* y = y_elements_.target(base, first, buffer);
  const NormalizeBlock block = {x, 0, nullptr, 0, y, 0, 1, n, activation_floor(problem_.activation), false, false};
  if (columns) {
    normalize_column_block(block, *columns);
  } else {
    const ChannelCoefficients numbers{at<SetCoefficients>(coefficients_at_)[channel], gamma_[channel], beta_[channel]};
    normalize_channel_block(block, n, &numbers);
  }
  if (needs_activation_pass(problem_.activation)) activation_forward(problem_.activation, y, y, n);
  y_elements_.write(base, first, n, y);
}

}  // namespace bnns
