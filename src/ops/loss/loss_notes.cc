// Losses whose gradient, by its documented formula, is not the derivative of what is written for every input. Each says
// so once per filter, where the input is one of those.

#include <algorithm>
#include <cmath>

#include "src/core/notes.h"
#include "src/ops/loss/loss.h"

namespace bnns {
namespace {

// The first sample whose length is not 1 within 1/1000, or batch.
size_t first_without_unit_length(const LossProblem& p, const LossCall& call, double* length) {
  const Elements elements(p.x);
  const size_t stride = call.in_stride ? call.in_stride : p.x.sample_stride();
  float buffer[kBlock];
  for (size_t sample = 0; sample < call.batch; ++sample) {
    const void* base = element_at(call.in, p.x.type, sample * stride);
    double squares = 0;
    for (size_t first = 0; first < p.x.count; first += kBlock) {
      const size_t n = std::min(kBlock, p.x.count - first);
      const float* x = elements.read(base, first, n, buffer);
      for (size_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    *length = std::sqrt(squares);
    if (!(std::fabs(*length - 1) <= 1e-3)) return sample;
  }
  return call.batch;
}

bool all_weights_are_one(const LossProblem& p, const LossCall& call) {
  Tensor t = vector_tensor(call.weights_size, nullptr);
  t.type = p.x.type;
  const Elements elements(t);
  float buffer[kBlock];
  for (size_t first = 0; first < call.weights_size; first += kBlock) {
    const size_t n = std::min(kBlock, call.weights_size - first);
    const float* weights = elements.read(call.weights, first, n, buffer);
    if (!std::all_of(weights, weights + n, [](float w) { return w == 1; })) return false;
  }
  return true;
}

}  // namespace

void note_loss(const LossFilter& filter, const LossCall& call) noexcept {
  const LossProblem& p = filter.problem();
  const bool weighted = call.weights && call.weights_size != 0;
  switch (p.function) {
    case BNNSLossFunctionYolo:
      if (weighted && filter.first_time(Note::gradient)) {
        note(
            "loss yolo: weights are not used: expected NULL; scale_xy, scale_wh, scale_object, scale_no_object and "
            "scale_classification weigh its parts");
      }
      return;
    case BNNSLossFunctionCosineDistance: {
      double length = 0;
      if (!call.in_delta) return;
      const size_t sample = first_without_unit_length(p, call, &length);
      if (sample < call.batch && filter.first_time(Note::gradient)) {
        note(
            "loss cosine: sample %zu of in has length %.6g, expected 1: in_delta is the gradient for vectors of unit "
            "length, not the derivative of the loss of this one",
            sample, length);
      }
      return;
    }
    case BNNSLossFunctionCategoricalCrossEntropy:
      if (call.in_delta && weighted && !all_weights_are_one(p, call) && filter.first_time(Note::gradient)) {
        note(
            "loss categorical_ce: weights are other than 1: in_delta follows the documented formula, which is the "
            "derivative of the loss for weights of 1 alone");
      }
      return;
    default:
      return;
  }
}

}  // namespace bnns
