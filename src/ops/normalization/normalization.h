// Batch, instance, layer and group normalization.
//
//   x^ = (x - mean) / sqrt(variance + epsilon)        y = act(gamma x^ + beta)
//   with g = dy act', h = gamma g, M the number of values that share a mean:
//   dx = (h - mean(h) - x^ mean(h x^)) / sqrt(variance + epsilon)      dbeta = sum g      dgamma = sum g x^
//
// What shares a mean (a set): batch: a channel of the whole batch; instance: a channel of a sample; group: the channels
// of a group of a sample; layer: the axes from `axis` on of a sample (0: C,H,W; 1: H,W; 2: W).
//
// The first part is the stand-alone layer. The second part is what a fused layer calls: statistics that its first stage
// gathers, the state of a training pass, and both passes as free functions. The third part are the kernels.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "src/core/filter.h"
#include "src/core/memory.h"
#include "src/core/tensor.h"
#include "src/ops/activation/activation.h"

namespace bnns {

enum class NormalizationKind { batch, instance, layer, group };

// Everything a layer needs, checked.
struct NormalizationProblem {
  NormalizationKind kind = NormalizationKind::batch;
  Tensor x, y;                                       // one sample, equally many elements, paired in memory order
  size_t channels = 0, height = 1, width = 1;        // C, H, W; a Vector of L is L channels of 1 x 1
  size_t groups = 1, axis = 0;                       // group and layer
  Tensor beta, gamma, moving_mean, moving_variance;  // count 0: absent
  float momentum = 0, epsilon = 0;
  Activation activation;

  size_t plane() const { return height * width; }
  size_t count() const { return channels * plane(); }  // elements of a sample
  size_t affine_count() const;                         // elements of beta, and of gamma
  size_t sets(size_t batch) const;                     // how many means and variances
  bool has_moving_mean() const { return moving_mean.count != 0; }
  bool has_moving_variance() const { return moving_variance.count != 0; }
  std::string text() const;  // "batch_norm f32 c64 h56 w56 relu"
};

// Every check of BNNSLayerParametersNormalization.
NormalizationProblem make_normalization_problem(BNNSFilterType type, const BNNSLayerParametersNormalization* layer);

// ---- for fused layers -------------------------------------------------------------------------------------------

// What is left of the values of a set: their number, and sums about a shift near their mean. Sums about different
// shifts merge exactly enough: all in double, so that a mean of 1e7 with a deviation of 1e-2 keeps its digits.
struct MomentSums {
  double count = 0, shift = 0, sum = 0, squares = 0;  // sum of (x - shift), sum of (x - shift)^2

  // Merging in another order gives other bits: merge in index order.
  void merge(const MomentSums& other) noexcept;
  double mean() const noexcept { return shift + sum / count; }
  double variance() const noexcept;  // of the population; not below 0
};

// The moments of a block of `rows` rows of n values, `stride` apart. f32 sums inside: blocks of at most kMomentBlock
// values keep the error of the variance below 40 eps; merge the blocks of a set.
inline constexpr size_t kMomentBlock = 1024;
MomentSums moments_of_block(const float* x, size_t rows, size_t stride, size_t n) noexcept;

// Merges the moments of each column of a block into sums[column]: at most kColumnRows rows, at most kColumns columns.
// For values whose channels are neighbours (a fully connected first stage).
inline constexpr size_t kColumnRows = 64, kColumns = 64;
void merge_column_moments(const float* x, size_t rows, size_t stride, size_t columns, MomentSums* sums) noexcept;

// gamma, beta and the moving statistics of a filter. Moving statistics are written by one training pass at a time (its
// caller holds a lock) and read by any number of inference passes without one.
class NormalizationParameters {
 public:
  NormalizationParameters(const NormalizationProblem& problem, const Options& options);

  const Tensor& gamma() const { return gamma_.tensor(); }
  const Tensor& beta() const { return beta_.tensor(); }
  // C values each, all from before or all from after any update. A pointer may be NULL, or must be where absent.
  void read_moving(float* mean, float* variance) const noexcept;
  // moving = momentum moving + (1 - momentum) current, for those that are present.
  void update_moving(float momentum, const double* mean, const double* variance) noexcept;

 private:
  Parameter beta_, gamma_, moving_mean_, moving_variance_;
  std::atomic<uint32_t> sequence_{0};  // odd while an update writes
};

// What a training pass keeps for backward: x^ of every value, 1 / sqrt(variance + epsilon) of every set.
class NormalizationState {
 public:
  explicit NormalizationState(const Options& options) : options_(options) {}

  // Makes room for a batch. When memory runs out it throws and keeps what it had; otherwise what it kept is lost.
  // Allocates only when the batch is larger than any before.
  void begin(const NormalizationProblem& problem, size_t batch);
  void complete() { ready_ = true; }
  // -1 (K21) unless a training pass on `batch` samples is the last one.
  void check_ready(size_t batch) const;

  float* values() const { return values_.as<float>(); }  // batch * count, dense, in memory order of the samples
  float* rstd() const { return rstd_.as<float>(); }      // sets(batch)

 private:
  Options options_;
  Buffer values_, rstd_;
  size_t batch_ = 0;
  bool ready_ = false;
};

// One forward pass. Strides are resolved (not 0) and everything is checked. y may be x.
struct NormalizationForward {
  size_t batch = 0;
  const void* x = nullptr;  // NULL: a first stage has put f32 values into state->values()
  size_t x_stride = 0;
  void* y = nullptr;
  size_t y_stride = 0;
  NormalizationState* state = nullptr;  // training: begun for this batch; inference: NULL
  const MomentSums* moments = nullptr;  // one per set, from a first stage: x is then read once
};

// Training uses the statistics of the batch, fills *call.state and updates the moving statistics; the caller holds the
// lock that guards both. Inference uses the moving statistics that are there, else those of the batch.
void normalization_forward(const NormalizationProblem& problem, NormalizationParameters& parameters,
                           const NormalizationForward& call, ScratchShelf& scratch, size_t n_threads);

// One backward pass. dx, dbeta and dgamma are NULL when not wanted; each sets or adds as its Tensor says. dx may be dy.
struct NormalizationBackward {
  size_t batch = 0;
  const void* y = nullptr;  // the forward result, where needs_output
  size_t y_stride = 0;
  const Tensor* dy = nullptr;
  size_t dy_stride = 0;
  const Tensor* dx = nullptr;
  size_t dx_stride = 0;
  const Tensor* dbeta = nullptr;
  const Tensor* dgamma = nullptr;
};
void normalization_backward(const NormalizationProblem& problem, const NormalizationParameters& parameters,
                            const NormalizationState& state, const NormalizationBackward& call, ScratchShelf& scratch,
                            size_t n_threads);

// Whether backward takes act' from y. Functions without that form recompute gamma x^ + beta instead (K8).
bool normalization_needs_output(const NormalizationProblem& problem) noexcept;

// A descriptor for dbeta or dgamma: affine_count() elements.
Tensor resolve_affine_delta(const BNNSNDArrayDescriptor* d, const NormalizationProblem& problem, const char* field);

// ---- the stand-alone layer --------------------------------------------------------------------------------------

// The arguments of BNNSNormalizationFilterApplyBackwardBatch, as they came.
struct NormalizationBackwardCall {
  size_t batch;
  const BNNSNDArrayDescriptor* in_delta;
  size_t in_delta_stride;
  const void* out;
  size_t out_stride;
  const BNNSNDArrayDescriptor* out_delta;
  size_t out_delta_stride;
  const BNNSNDArrayDescriptor* beta_delta;
  const BNNSNDArrayDescriptor* gamma_delta;
};

// Training passes and gradients of one filter wait for each other; inference takes no lock.
class NormalizationFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::normalization;
  NormalizationFilter(const Options& options, const NormalizationProblem& problem);

  void apply(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride, bool training);
  void apply_backward(const NormalizationBackwardCall& call);
  std::string text() const override { return problem_.text(); }

 private:
  NormalizationProblem problem_;
  NormalizationParameters parameters_;
  ScratchShelf scratch_;
  std::mutex mutex_;  // guards state_ and the moving statistics
  NormalizationState state_;
};

// ---- kernels ----------------------------------------------------------------------------------------------------
// All work on f32 blocks of `rows` rows of n values; row r of an operand begins r * stride after its pointer.

// x^ = ((x - mean_high) - mean_low) rstd: the mean in two floats, since one would cost digits where mean >> deviation.
struct SetCoefficients {
  float mean_high = 0, mean_low = 0, rstd = 1;
};
// rstd is 0 where variance + epsilon is 0 (K20).
SetCoefficients make_set_coefficients(double mean, double variance, float epsilon) noexcept;

struct NormalizeBlock {
  const float* x;
  size_t x_stride;
  float* values;  // receives x^; NULL: not wanted. May be x.
  size_t values_stride;
  float* y;  // may be x
  size_t y_stride;
  size_t rows, n;
  float floor;  // y = max(floor, ...): 0 is ReLU, -infinity nothing
  bool stream;  // values and y bypass the cache where their alignment allows
};
// One gamma and beta for the block.
void normalize_block(const NormalizeBlock& block, const SetCoefficients& set, float gamma, float beta) noexcept;
// gamma and beta have n values.
void normalize_row_block(const NormalizeBlock& block, const SetCoefficients& set, const float* gamma,
                         const float* beta) noexcept;
// Column j has its own numbers; n <= kColumns.
struct ColumnCoefficients {
  float mean_high[kColumns], mean_low[kColumns], rstd[kColumns], gamma[kColumns], beta[kColumns];
};
void normalize_column_block(const NormalizeBlock& block, const ColumnCoefficients& columns) noexcept;

struct GradientBlock {
  const float* dy;
  size_t dy_stride;
  const float* y;  // not NULL: g = dy (y > 0), the gradient of ReLU; NULL: g = dy
  size_t y_stride;
  const float* values;
  size_t values_stride;
  size_t rows, n;
};
struct GradientSums {
  double g = 0, gx = 0;  // sum of g, sum of g x^
};
// f32 sums inside a block (at most kMomentBlock values), added to *sums.
void add_gradient_sums(const GradientBlock& block, GradientSums* sums) noexcept;
// The same with gamma[j] g for g.
void add_scaled_gradient_sums(const GradientBlock& block, const float* gamma, GradientSums* sums) noexcept;
// One row: the same, gamma may be NULL (1), and g and g x^ themselves are added to sums over rows, n values each.
void add_row_gradient_sums(const GradientBlock& block, const float* gamma, float* sum_g, float* sum_gx,
                           GradientSums* sums) noexcept;
// The sums of each column; at most kColumnRows rows and kGradientColumns columns.
inline constexpr size_t kGradientColumns = 256;
void add_column_gradient_sums(const GradientBlock& block, GradientSums* sums) noexcept;

// dx = scale g + slope x^ + offset.
struct GradientCoefficients {
  float scale, slope, offset;
};
struct GradientTarget {
  float* dx;
  size_t dx_stride;
  bool add, stream;
};
void gradient_block(const GradientBlock& block, const GradientCoefficients& set, const GradientTarget& to) noexcept;
// scale gamma[j] instead of scale.
void gradient_row_block(const GradientBlock& block, const GradientCoefficients& set, const float* gamma,
                        const GradientTarget& to) noexcept;
struct ColumnGradientCoefficients {
  float scale[kColumns], slope[kColumns], offset[kColumns];
};
void gradient_column_block(const GradientBlock& block, const ColumnGradientCoefficients& columns,
                           const GradientTarget& to) noexcept;

}  // namespace bnns
