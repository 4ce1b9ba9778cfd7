// Batch, instance, layer and group normalization.
//
//   x^ = (x - mean) / sqrt(variance + epsilon)        y = act(gamma x^ + beta)
//   with g = dy act', h = gamma g, M the number of values that share a mean:
//   dx = (h - mean(h) - x^ mean(h x^)) / sqrt(variance + epsilon)      dbeta = sum g      dgamma = sum g x^
//
// What shares a mean (a set): batch: a channel of the whole batch; instance: a channel of a sample; group: the channels
// of a group of a sample; layer: the axes from `axis` on of a sample (0: C,H,W; 1: H,W; 2: W).
//
// The first part is what a fused layer calls: parameters, the state of a training pass, both passes, and a forward pass
// that a first stage feeds block by block. The second part is the stand-alone layer. Kernels: common/kernels.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/core/memory.h"
#include "src/core/parallel.h"
#include "src/core/process/fork.h"
#include "src/engine/activation/activation.h"
#include "src/filter/filter.h"
#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct MomentSums;
struct ColumnCoefficients;

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

// gamma, beta and the moving statistics of a filter. Moving statistics are written by one training pass at a time (its
// caller holds a lock) and read by any number of inference passes without one. A child that was forked during an update
// has some of the values from before it and some from after it, and never waits for its end.
class NormalizationParameters {
 public:
  NormalizationParameters(const NormalizationProblem& problem, const Options& options);

  const Tensor& gamma() const { return gamma_.tensor(); }
  const Tensor& beta() const { return beta_.tensor(); }
  bool has_affine() const { return gamma_.present() || beta_.present(); }
  // C values each, all from before or all from after any update. A pointer may be NULL, or must be where absent.
  void read_moving(float* mean, float* variance) const noexcept;
  // moving = momentum moving + (1 - momentum) current, for those that are present.
  void update_moving(float momentum, const double* mean, const double* variance) noexcept;

 private:
  Parameter beta_, gamma_, moving_mean_, moving_variance_;
  std::atomic<uint32_t> sequence_{0};    // odd while an update writes
  std::atomic<uint32_t> generation_{0};  // the process (fork_generation) of the last update
};

// What a training pass keeps for backward: x^ of every value, 1 / sqrt(variance + epsilon) of every set, and, of batch
// normalization, gamma and beta: with them x^ tells where ReLU was 0, without y.
class NormalizationState {
 public:
  explicit NormalizationState(const Options& options) : options_(options) {}

  // Makes the buffers of a batch. When memory runs out it throws and keeps what it had; otherwise what it kept is lost.
  // Allocates only when the batch is larger than any before. values() gets the place in a cache line that y has: one
  // loop then writes whole lines of both.
  void begin(const NormalizationProblem& problem, size_t batch, const void* y);
  void complete() { ready_ = true; }
  // In a child that was forked while a thread of the parent was writing here: begins anew. The buffers leak, since one
  // may be half exchanged.
  void forget() noexcept;
  // -1 (K21) unless a training pass on `batch` samples is the last one.
  void check_ready(size_t batch) const;

  float* values() const {
    return values_.as<float>() + shift_;
  }                                                     // batch * count, dense, in memory order of the samples
  float* rstd() const { return rstd_.as<float>(); }     // sets(batch)
  float* gamma() const { return affine_.as<float>(); }  // batch normalization: channels; beta behind them

 private:
  Options options_;
  Buffer values_, rstd_, affine_;
  size_t batch_ = 0, shift_ = 0;
  bool ready_ = false;
};

// One forward pass. Strides are resolved (not 0) and everything is checked. y may be x.
struct NormalizationForward {
  size_t batch = 0;
  const void* x = nullptr;
  size_t x_stride = 0;
  bool x_is_dense = false;  // x is dense f32, whatever problem.x says; it may be state->values() or y
  void* y = nullptr;
  size_t y_stride = 0;
  NormalizationState* state = nullptr;  // training: begun for this batch; inference: NULL
  const MomentSums* moments = nullptr;  // one per set, where a first stage has gathered them: x is then read once
};

// Training uses the statistics of the batch, fills *call.state and updates the moving statistics; the caller holds the
// lock that guards both. Inference uses the moving statistics that are there, else those of the batch.
void normalization_forward(const NormalizationProblem& problem, NormalizationParameters& parameters,
                           const NormalizationForward& call, ScratchShelf& scratch, size_t n_threads);

// The forward pass of a fused layer: a first stage hands over blocks of its f32 output while they are in cache.
//
//   NormalizationPass pass(problem, parameters, {batch, y, y_stride, training ? &state : nullptr, part}, scratch, n);
//   for each block, on any thread, in any order:
//     if (pass.immediate()) pass.normalize(block);                              // inference with moving statistics
//     else { write the block to its place in pass.values(); pass.gather(block); }
//   pass.finish();
//
// The moments of a part of a plane have a slot of their own, and slots are merged in index order: no two threads write
// the same memory, and neither threads nor the order of the calls change a bit. Parts are the first stage's choice, by
// the shape alone. Training: the caller holds the lock that guards state and moving statistics.
class NormalizationPass {
 public:
  // How many samples and values of a plane share a slot (32 bytes): {1, 256} for blocks of one sample, {64, 1} for
  // planes of one value. samples <= 64, samples * pixels <= 1024: the f32 sums of a slot.
  struct Part {
    size_t samples = 1, pixels = 256;
  };
  struct Call {
    size_t batch = 0;  // not 0
    void* y = nullptr;
    size_t y_stride = 0;                  // resolved
    NormalizationState* state = nullptr;  // training; inference: NULL
    Part part;
  };
  // Values x[i sample_stride + j channel_stride + k] of the i-th of the samples, j-th channel, k-th pixel (index in the
  // plane). For gather and normalize it may lie anywhere; it is made of whole parts (or ends where they end).
  struct Block {
    Range samples, channels, pixels;
    const float* x = nullptr;
    size_t sample_stride = 0, channel_stride = 0;
  };

  // Throws when memory runs out; training: what state kept is lost only when it did not throw.
  NormalizationPass(const NormalizationProblem& problem, NormalizationParameters& parameters, const Call& call,
                    ScratchShelf& scratch, size_t n_threads);

  bool immediate() const { return immediate_; }
  // Where the first stage puts sample n, dense: channel c, pixel p at c plane + p. Not when immediate.
  float* values(size_t sample) const { return values_ + sample * values_stride_; }
  // Takes the moments of a block. Does nothing where they are not wanted: sets that are not made of planes (layer
  // normalization of rows) and planes below 16 values of all kinds but batch; finish() then reads the values twice.
  void gather(const Block& block) const noexcept;
  // Only when immediate: y of a block, activation included. Bit-identical to the stand-alone layer.
  void normalize(const Block& block) const noexcept;
  // After all blocks: y of the whole batch, x^ and moving statistics; nothing is left to do when immediate.
  void finish();

 private:
  size_t layout();
  void merge_set(size_t set) const noexcept;
  void normalize_columns(const Block& block) const noexcept;
  void write_run(size_t sample, size_t first, size_t n, const float* x, size_t channel,
                 const ColumnCoefficients* columns) const noexcept;
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(lease_.as<char>() + offset);
  }

  const NormalizationProblem& problem_;
  NormalizationParameters& parameters_;
  Call call_;
  ScratchShelf& scratch_;
  size_t n_threads_, pixel_parts_;
  bool immediate_, gathers_;
  Elements y_elements_;
  size_t slots_at_ = 0, moments_at_ = 0, values_at_ = 0, coefficients_at_ = 0, affine_at_ = 0, moving_at_ = 0;
  ScratchShelf::Lease lease_;
  float* values_ = nullptr;
  size_t values_stride_ = 0;
  const float* gamma_ = nullptr;  // immediate: C values each
  const float* beta_ = nullptr;
};

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

// A descriptor for dbeta or dgamma: affine_count() elements, or fewer that repeat.
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
  const char* implementation(BNNSExtPass pass, size_t batch) const override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  NormalizationProblem problem_;
  NormalizationParameters parameters_;
  ScratchShelf scratch_;
  ForkMutex mutex_;  // guards state_ and the moving statistics
  NormalizationState state_;
};

}  // namespace bnns
