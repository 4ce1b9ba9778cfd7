// One backward pass, as the files of this folder share it.
//
// g = dy act' block by block, the sums of a set, dx, and the gradients of beta and gamma. Algorithms, those of
// kNormalizationBackward:
//   columns   batch normalization of short planes: kColumns neighbouring values of every sample
//   rows      gamma and beta along the row (layer, short groups), up to kRowSums values: sums, dx, and dbeta and
//   dgamma,
//             which are sums over rows, from reading once. For longer rows, others make these sums in a pass of their
//             own
//   split     segment by segment, where sets are few and long
//   bundles   neighbouring sets that lie side by side, together
//   groups    the same for the channels of a group
//   sets      sums of g and g x^, then dx, set by set while dy and x^ are in cache; dbeta and dgamma come from the same
//             sums where a channel has one pair of gamma and beta (batch, instance, group)
#pragma once

#include <hwy/cache_control.h>

#include "src/ops/normalization/implementations.h"

namespace bnns {

inline constexpr size_t kRowSums = 4096;  // two rows of f32 sums beside the data of a row in L2

inline constexpr size_t kGradientBuffer = kColumnRows * kColumns;
static_assert(kGradientBuffer >= kMomentBlock && kGradientBuffer >= kGradientColumns);

// Of a block, where it is not read or written in place: 32 KiB of stack. g takes the buffer of what it is made from,
// and dx that of dy: all kernels take dx in place of dy.
struct BlockBuffers {
  float dy[kGradientBuffer], y[kGradientBuffer];
  float* dx() { return dy; }
};

// gamma and beta of a block: one pair, or arrays along its row.
struct BlockAffine {
  float gamma = 1, beta = 0;
  const float* gammas = nullptr;
  const float* betas = nullptr;
  const float* relu_gamma = nullptr;  // Source::relu_values: of the channel and those beside it, at the time of forward
  const float* relu_beta = nullptr;
};

class BackwardPass {
 public:
  BackwardPass(const NormalizationProblem& problem, const NormalizationParameters& parameters,
               const NormalizationState& state, const NormalizationBackward& call, ScratchShelf& scratch,
               size_t n_threads);
  void run() const;

  void run_columns() const;
  void run_rows() const;
  void run_split() const;
  void run_bundles() const;
  void run_groups() const;
  void run_sets() const;

 private:
  enum class Source { none, relu, relu_values, output, values };  // where act' comes from
  friend const char* normalization_backward_name(const NormalizationProblem&, const NormalizationParameters&, size_t,
                                                 size_t);
  static Source source_of(const NormalizationProblem& problem, const NormalizationPlan& plan);
  class SetSums;

  // For algorithms that sum nothing along rows: dbeta and dgamma of rows first. Whether anything is left to do.
  bool begin_sets() const;
  // Runs body(sets) on all threads, behind begin_sets().
  template <class Body>
  void for_each_task(Body&& body) const {
    if (!begin_sets()) return;
    parallel_for(schedule_.tasks, schedule_.threads, [&](size_t task, size_t) {
      body(schedule_.sets(plan_, task));
      if (stream_) hwy::FlushStream();
    });
  }

  struct Views {
    MatrixView dy, y, dx;
    Views(const NormalizationPlan& plan, const NormalizationProblem& problem, const NormalizationBackward& call);
    // Whether a block is read and written in place, and neighbouring sets with it.
    bool direct(const NormalizationPlan& plan, Source source) const;
    bool joined(const NormalizationPlan& plan, Source source) const;
  };

  size_t bytes() const { return pass_bytes(problem_, plan_.batch); }
  bool keeps_table() const {
    return schedule_.split || (parameters_wanted_ && !plan_.per_element && !plan_.batch_sets);
  }
  size_t layout(const NormalizationParameters& parameters);
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(lease_.as<char>() + offset);
  }

  // g and x^ of a rectangle of `plan`, seen through `views`.
  BlockAffine affine(size_t set, const Rectangle& r) const;
  GradientBlock gradients(const NormalizationPlan& plan, const Views& views, const Rectangle& r,
                          const BlockAffine& affine, BlockBuffers* buffers) const;
  // As in ForwardPass.
  size_t next_rows(const Rectangle& r) const { return joined_ ? plan_.next_rows(r) : 0; }
  // What is taken off g in the sum of g x^ of a set (add_gradient_sums): 0 unless g hardly varies.
  float shift(size_t set) const;
  // Tells most sets for which it is 0, from their first values.
  static constexpr size_t kNeighbours = 4;
  static constexpr size_t kLeastShifted = 1024;  // values of a set: below, the look at them is 3 % of a pass
  static bool hardly_varies(const float* g) {
    const float least = std::min(std::min(g[0], g[1]), std::min(g[2], g[3]));
    const float most = std::max(std::max(g[0], g[1]), std::max(g[2], g[3]));
    return most - least <= 0.5f * std::max(most, -least);
  }
  GradientTarget target(const Rectangle& r, float* buffer) const;
  void finish_block(const Rectangle& r, const GradientTarget& to) const;

  // sets.cc
  GradientCoefficients coefficients(size_t set, double h, double hx) const;
  void add_sums(size_t set, const Rectangle& r, float shift, BlockBuffers* buffers, GradientSums* sums) const;
  GradientSums segment_sums(size_t set, size_t segment) const;
  void write_segment(size_t set, size_t segment, GradientCoefficients numbers) const;
  void write_block(const Rectangle& r, const GradientBlock& block, const BlockAffine& affine,
                   GradientCoefficients numbers, float* buffer) const;
  void run_set(size_t set) const;

  // bundles.cc, groups.cc, columns.cc
  void run_bundle(Range sets, bool more) const;
  void run_group(size_t set) const;
  void run_channels(size_t first_channel, size_t channels) const;

  // rows.cc: dbeta and dgamma
  void write_deltas(size_t first, size_t n, const GradientSums* sums) const;
  void write_row_deltas(size_t first, size_t n, const double* partial, size_t parts, size_t length) const;
  void write_channel_sums() const;
  void run_row(size_t set, float* sum_g, float* sum_gx) const;
  void run_parameters() const;
  void sum_rows(const Views& views, size_t column, size_t columns, Range rows, GradientSums* sums) const;

  const NormalizationProblem& problem_;
  const NormalizationBackward& call_;
  NormalizationPlan plan_, row_plan_;  // row_plan_: gamma and beta run along a whole row
  size_t n_threads_;
  const float* values_;
  const float* rstd_;
  const float* relu_gamma_;
  Schedule schedule_;
  size_t bundle_, block_columns_;  // of the second pass: what goes through no buffer need not be cut
  bool parameters_wanted_, stream_, joined_, may_shift_;
  Source source_;
  size_t affine_at_ = 0, totals_at_ = 0, table_at_ = 0, coefficients_at_ = 0;
  ScratchShelf& scratch_;
  ScratchShelf::Lease lease_;
  Affine affine_;
  Views views_;
  NormalizationShape shape_;
};

// What the segments of a set sum up to: its coefficients, and its part of dbeta and dgamma.
class BackwardPass::SetSums {
 public:
  SetSums(const BackwardPass& pass, size_t set) : pass_(pass), set_(set) {}

  void add(size_t segment, const GradientSums& sums) {
    const NormalizationPlan& plan = pass_.plan_;
    double gamma = 1;
    if (!plan.per_element) {
      gamma = static_cast<double>(pass_.affine_.gamma[plan.channel(set_, plan.segment(set_, segment).row)]);
    }
    h_ += gamma * sums.g;
    hx_ += gamma * sums.gx;
    total_.g += sums.g;
    total_.gx += sums.gx;
  }
  GradientCoefficients finish() const {
    if (pass_.parameters_wanted_ && pass_.plan_.batch_sets) pass_.at<GradientSums>(pass_.totals_at_)[set_] = total_;
    return pass_.coefficients(set_, h_, hx_);
  }

 private:
  const BackwardPass& pass_;
  size_t set_;
  double h_ = 0, hx_ = 0;
  GradientSums total_;
};

}  // namespace bnns
