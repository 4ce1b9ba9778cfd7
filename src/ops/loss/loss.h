// Losses: how far a prediction x is from its labels l, and dx, the gradient of that number.
//
//   per sample    softmax_ce, categorical_ce, cosine: one term from the n values of a sample
//   per element   sigmoid_ce, mse, huber, log, hinge, mae: one term from each value
//   yolo          one number from a grid of boxes (yolo.cc)
//
// README.md has the formulas. A call becomes a LossRun: pointers, lenses and factors, all checked. Kernels take a
// LossRun and a range of its units, write the terms and gradients of these, and return the sum of the terms in double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bnns/bnns.h"
#include "src/core/memory.h"
#include "src/core/parallel.h"
#include "src/filter/filter.h"
#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct YoloGrid {
  size_t rows = 0, columns = 0, anchors = 0, box = 0;  // box = x, y, w, h, confidence, classes
  bool rescore = false;
  float scale_xy = 0, scale_wh = 0, scale_object = 0, scale_no_object = 0, scale_class = 0;
  float object_min_iou = 0, no_object_max_iou = 0;
  const float* anchor_sizes = nullptr;  // width, height of each anchor
};

struct LossProblem {
  BNNSLossFunction function = BNNSLossFunctionMeanSquareError;
  BNNSLossReductionFunction reduction = BNNSLossReductionSum;
  Tensor x;                                     // one sample; labels have the same shape and type
  BNNSDataType out_type = BNNSDataTypeFloat32;  // of the values that forward writes
  size_t out_count = 1;                         // elements of o_desc
  float label_smooth = 0, huber_delta = 1;
  YoloGrid yolo;

  bool is_yolo() const { return function == BNNSLossFunctionYolo; }
  bool per_sample() const {
    return function == BNNSLossFunctionSoftmaxCrossEntropy || function == BNNSLossFunctionCosineDistance ||
           function == BNNSLossFunctionCategoricalCrossEntropy;
  }
  bool reduced() const { return reduction != BNNSLossReductionNone; }
  size_t terms() const { return per_sample() ? 1 : x.count; }  // of one sample
  std::string text() const;                                    // "loss softmax_ce f32 10 mean ls0.1"
};

// Reads the structure that layer_params points to, by its function. Throws Error for anything that cannot be run.
LossProblem make_loss_problem(const void* layer_params);

// ---- what kernels see --------------------------------------------------------------------------------------------

// A batched tensor. base is NULL when the call does not have it.
struct Samples {
  const Elements* lens = nullptr;
  char* base = nullptr;
  size_t pitch = 0;  // bytes from one sample to the next

  char* at(size_t sample) const { return base + sample * pitch; }
  const float* read(size_t sample, size_t first, size_t m, float* buffer) const {
    return lens->read(at(sample), first, m, buffer);
  }
};

enum class WeightForm { uniform, per_sample, per_element };

struct LossRun {
  const LossProblem* problem = nullptr;
  size_t batch = 0, n = 0;  // element-wise losses over dense tensors run as one sample of batch * n values
  Samples x, labels;
  WeightForm form = WeightForm::uniform;
  float weight = 1;                       // of every term, when uniform
  const Elements* weight_lens = nullptr;  // else contiguous values of x's type
  const void* weights = nullptr;
  Samples dy;               // gradient of each term, if the caller gave one
  float scale = 1;          // factor of every gradient: the reduction's, times a reduced loss's gradient
  Samples dx;               // base NULL: no gradient wanted
  bool accumulate = false;  // dx is added to
  bool want_terms = false;  // forward: terms are summed, or written to out
  const Elements* out_lens = nullptr;
  void* out = nullptr;  // contiguous terms (reduction None), else NULL

  // The weight of a whole sample; 1 where every element has its own.
  float sample_weight(size_t sample) const {
    float buffer;
    if (form == WeightForm::uniform) return weight;
    return form == WeightForm::per_sample ? *weight_lens->read(weights, sample, 1, &buffer) : 1.0f;
  }
};

// Rows are cut into chunks so that one long sample still feeds several threads; a unit is one chunk of one sample.
inline constexpr size_t kLossChunk = 8192;

// Element-wise losses over units [units.begin, units.end) of ceil(n / kLossChunk) chunks per sample.
double element_loss(const LossRun& run, Range units) noexcept;
// Per-sample losses over a range of samples: softmax_ce and categorical_ce, and cosine.
double softmax_loss(const LossRun& run, Range samples) noexcept;
double cosine_loss(const LossRun& run, Range samples) noexcept;
// Yolo over grid rows: unit u is row u % rows of sample u / rows.
double yolo_loss(const LossRun& run, Range units) noexcept;

// Gradient 0 for one sample: written, or nothing to add.
void clear_gradient(const LossRun& run, size_t sample) noexcept;

struct WeightTotal {
  double sum = 0;
  size_t nonzero = 0;
};
WeightTotal weight_total(const float* weights, size_t n) noexcept;

// ---- the filter --------------------------------------------------------------------------------------------------

struct LossCall {
  size_t batch;
  const void* in;
  size_t in_stride;
  const void* labels;
  size_t labels_stride;
  const void* weights;
  size_t weights_size;
  const BNNSNDArrayDescriptor* in_delta;
  size_t in_delta_stride;
};

class LossFilter final : public Filter {
 public:
  LossFilter(const Options& options, const LossProblem& problem);
  using Filter::backward;
  using Filter::forward;
  // Writes out, and the gradient of what it wrote if the call has in_delta. Re-entrant; no lock, no allocation.
  void forward(const LossCall& call, void* out) const;
  // in_delta = out_delta * gradient. Re-entrant; no lock, no allocation.
  void backward(const LossCall& call, const BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride) const;
  std::string text() const override { return problem_.text(); }
  const LossProblem& problem() const { return problem_; }

 private:
  void prepare(const LossCall& call, LossRun* run) const;
  double execute(LossRun* run) const;
  void write_value(void* out, double value) const;

  LossProblem problem_;
  Buffer anchors_;
  Elements x_lens_, weight_lens_, out_lens_;
};

// The note about a call whose in_delta is not the derivative of what it writes, or whose weights are not used.
void note_loss(const LossFilter& filter, const LossCall& call) noexcept;

}  // namespace bnns
