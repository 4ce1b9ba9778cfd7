// The current weights as f32 or bf16.

#include "src/ops/convolution/common/weights.h"

#include "src/core/checked.h"
#include "src/ops/convolution/convolution.h"
#include "src/tensor/elements.h"

namespace bnns {

// f32 in a layout with constant strides is read in place; anything else becomes dense (O, I / groups, kh, kw).
size_t MapWeights::f32_floats(const Tensor& w) {
  return is_f32_in_place(w) ? 0 : round_up(w.count, 16);
}

bool MapWeights::is_strided_bf16(const Tensor& w) {
  return w.type == BNNSDataTypeBFloat16 && is_strided(w);
}

const WeightView& MapWeights::f32() const {
  if (view_.data) return view_;
  const size_t first = weight_strides(problem_, w_, &view_);
  if (is_f32_in_place(w_)) {
    view_.data = static_cast<const float*>(w_.data) + first;
    return view_;
  }
  float* to = buffer_;
  view_.data = to;
  if (is_ordered(w_)) {
    const Elements elements(w_);
    for_weight_pieces(w_.count, threads_,
                      [&](size_t begin, size_t count) { elements.read(w_.data, begin, count, to + begin); });
    return view_;
  }
  for_each_weight(problem_, [&](size_t o, size_t i, size_t ky, size_t kx) {
    *to++ = load_element(w_, w_.data, weight_offset(w_, o, i, ky, kx));
  });
  return view_;
}

Bf16Weights MapWeights::bf16() const {
  Bf16Weights w;
  w.data = static_cast<const uint16_t*>(w_.data) + strided_offset(problem_, w_, &w);
  return w;
}

}  // namespace bnns
