// Scale and shift: each channel c of x has a factor a and a summand b of its own.
//
//   forward    y = a[c] x + b[c]
//   backward   dx = a[c] dy;  da[c] = sum of x dy,  db[c] = sum of dy, over the batch and all elements of the channel
//
// The axis of the channels is any axis of x. A plane is one channel of one sample. README.md has layouts, types and
// limits.
#pragma once

#include <cstddef>
#include <string>

#include "examples/operator_skeleton/scale_shift_ext.h"
#include "src/core/implementation.h"
#include "src/filter/filter.h"
#include "src/filter/parameter.h"
#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct ScaleShiftProblem {
  Tensor x, y;      // one sample; the same sizes
  Tensor a, b;      // one number for each channel; b.data is NULL where there is no shift
  size_t axis = 0;  // of the channels, in size order

  size_t channels() const { return x.size[axis]; }
  size_t plane() const { return x.count / channels(); }
  std::string text() const;  // "scale_shift f32 28x28x3 axis 2"
};

// Every check of the layer's parameters. Throws Error for anything that cannot be run.
ScaleShiftProblem make_scale_shift_problem(const BNNSExtLayerParametersScaleShift* layer);

// ---- what algorithms see -----------------------------------------------------------------------------------------

// A batched tensor of a call, by planes. base is NULL where the call does not have it.
struct PlaneOperand {
  Elements plane;  // the elements of one plane, in the memory order of x
  char* base = nullptr;
  size_t sample_bytes = 0, channel_bytes = 0;  // from one sample, and from one channel, to the next

  PlaneOperand() = default;
  PlaneOperand(const ScaleShiftProblem& problem, const Tensor& sample, const void* data, size_t batch_stride);
  char* at(size_t sample, size_t channel) const { return base + sample * sample_bytes + channel * channel_bytes; }
  bool is_dense_f32() const { return !base || plane.direct(); }  // or absent
};

// Where the gradient of a parameter goes: one number for each channel.
struct ParameterGradient {
  Elements elements;
  void* data = nullptr;  // NULL: not wanted
  bool accumulate = false;

  ParameterGradient() = default;
  explicit ParameterGradient(const Tensor& t) : elements(t), data(t.data), accumulate(t.accumulate) {}
  void put(size_t channel, double sum) const;
};

// One call, checked.
struct ScaleShiftRun {
  size_t batch = 0, channels = 0, plane = 0, n_threads = 0;
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
  PlaneOperand x, y, dy, dx;  // forward has x and y; backward dy, and x and dx where they are needed
  bool accumulate = false;    // dx is added to
  ParameterGradient da, db;

  float scale(size_t channel) const { return load_element(*a, a->data, channel * a->stride[0]); }
  float shift(size_t channel) const { return b->data ? load_element(*b, b->data, channel * b->stride[0]) : 0; }
};

// ---- the filter --------------------------------------------------------------------------------------------------

class ScaleShiftFilter final : public Filter {
 public:
  ScaleShiftFilter(const Options& options, const ScaleShiftProblem& problem);
  // Both are re-entrant: no state, no lock, no allocation.
  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  const char* implementation(BNNSExtPass pass, size_t batch) const override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  ScaleShiftRun begin(size_t batch) const;

  ScaleShiftProblem problem_;
  Parameter a_, b_;
};

}  // namespace bnns
