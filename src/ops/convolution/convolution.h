// Convolution and transposed convolution: Y = act(b + W * X), dX, dW, db.
//
//   convolution   Y(o,x,y) = act(b(o) + sum_{i,kx,ky} W(o,i,kx,ky) X(i, sx x + dx kx - pL, sy y + dy ky - pT))
//   transposed    Y(o, sx x + dx kx - pL, sy y + dy ky - pT) += W(o,i,kx,ky) X(i,x,y), then b and act
// X is (N, I, H, W), Y is (N, O, H', W'), W is (O, I / groups, kh, kw) in any of its layouts. Both layers are the same
// three maps between a small and a large image (convolution/common/patch_map.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "src/core/call_scratch.h"
#include "src/core/parallel.h"
#include "src/engine/activation/activation.h"
#include "src/filter/filter.h"
#include "src/ops/convolution/common/problem.h"
#include "src/ops/convolution/common/weights.h"
#include "src/tensor/saturation.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct ConvolutionProblem {
  bool transposed = false;
  Tensor x, w, y, b;               // one sample each; b.count is 0 without a bias
  ConvolutionMap map;              // the geometry, groups resolved
  size_t inputs = 0, outputs = 0;  // channels I, O
  Activation activation;
  bool integer = false;  // integer data, exact sums, IntegerLinearSaturate at the end
  IntegerSaturation saturation;

  bool has_bias() const { return b.count != 0; }
  // Of Y, dX or dW.
  double operations(size_t batch) const {
    return 2 * product_of(batch, outputs, inputs / map.groups, map.y.kernel, map.x.kernel, map.y.small, map.x.small);
  }
  const char* op() const { return transposed ? "transposed_convolution" : "convolution"; }
  std::string text() const;  // "convolution f32 3x224x224 > 64x112x112 k7x7 s2 p3 relu"
};

// An image of the same extents, dense.
Tensor dense_image(const Tensor& like, BNNSDataType type = BNNSDataTypeFloat32);

// Images one pixel wide are rows to the maps, so that vectors run along them: 1-D data as H x 1 is 1 x H. x and y
// change places in geometry, images and weights; no element moves.
inline bool is_column(const ConvolutionMap& map) {
  return map.x.small == 1 && map.x.large == 1 && map.y.large > 1;
}
inline ConvolutionMap laid_flat(ConvolutionMap map) {
  if (is_column(map)) std::swap(map.x, map.y);
  return map;
}
inline Tensor laid_flat(const ConvolutionMap& map, Tensor image) {
  if (!is_column(map)) return image;
  std::swap(image.size[0], image.size[1]);
  image.stride[0] = image.stride[1], image.stride[1] = image.size[0] * image.stride[0];  // of one row: any would do
  for (size_t j = 0; j < image.rank; ++j) image.axis[j] = image.axis[j] < 2 ? 1 - image.axis[j] : image.axis[j];
  return image;
}

// Every check of BNNSLayerParametersConvolution.
ConvolutionProblem make_convolution_problem(const BNNSLayerParametersConvolution* layer, bool transposed);

// Offset of W(o, i, ky, kx) in a weight tensor: the layout's own formula, rotation and Pack32 included.
size_t weight_offset(const Tensor& w, size_t o, size_t i, size_t ky, size_t kx);

// Whether the maps can use a weight tensor as it lies: f32 in a layout with constant strides.
bool is_f32_in_place(const Tensor& w);

// Whether a weight tensor's layout has constant strides.
bool is_strided(const Tensor& w);

// Strides (as the maps see them: laid_flat) of such a tensor, else of a dense (O, I / groups, kh, kw); returns the
// offset of W(0, 0, 0, 0).
size_t weight_strides(const ConvolutionProblem& p, const Tensor& w, WeightStrides* strides);

// The same for a tensor of any type where is_strided.
size_t strided_offset(const ConvolutionProblem& p, Tensor w, WeightStrides* strides);

// Whole-byte types whose elements, in the tensor's own order, are those of the dense (O, I / groups, kh, kw).
bool is_ordered(const Tensor& w);
// Calls run(first, count) for pieces of the `count` weights of such a tensor, on up to `threads` threads.
template <class Run>
void for_weight_pieces(size_t count, size_t threads, Run&& run) {
  constexpr size_t kPiece = 32 * 1024;
  const size_t pieces = div_up(count, kPiece);
  parallel_for(pieces, threads_for(threads, pieces, count * sizeof(float)),
               [&](size_t task, size_t) { run(task * kPiece, std::min(kPiece, count - task * kPiece)); });
}

// Calls f(o, i, ky, kx) for every weight, in the order of the dense (O, I / groups, kh, kw).
template <class F>
void for_each_weight(const ConvolutionProblem& p, F&& f) {
  for (size_t o = 0; o < p.outputs; ++o) {
    for (size_t i = 0; i < p.inputs / p.map.groups; ++i) {
      for (size_t ky = 0; ky < p.map.y.kernel; ++ky) {
        for (size_t kx = 0; kx < p.map.x.kernel; ++kx) f(o, i, ky, kx);
      }
    }
  }
}

// One element of a weight tensor = or += value, converted to its type.
void store_weight(const Tensor& dw, size_t offset, float value);

class ConvolutionFilter final : public Filter {
 public:
  ConvolutionFilter(const Options& options, const ConvolutionProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override {
    forward(batch, in, in_stride, out, out_stride, nullptr);
  }
  void backward(const BackwardCall& call) override;
  const char* implementation(BNNSExtPass pass, size_t batch) const override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

  // For a second stage: the same forward pass, whose finished blocks go to a sink too (or to it alone). Not where
  // sink_parts says so.
  SinkParts sink_parts(size_t batch) const;
  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride, const BlockSink* sink);

 private:
  struct Gradients;  // the checked arguments of backward
  Gradients check_backward(const BackwardCall& call) const;

  // The current weights and bias as f32: in place, or converted into a buffer of weight_floats.
  size_t weight_floats() const;  // both
  size_t bias_floats() const;
  MapWeights weights(float* buffer) const;
  const float* bias(float* buffer) const;
  // A map between the layer's images, without weights.
  PatchMap map(bool up, size_t batch, const ImageSource& source, const ImageTarget& target) const;
  // Whether both factors of a product are bf16, multiplied as they lie: an image and the weights, or, for a dw that
  // can be written from there, two images.
  bool multiplies_bf16(const ImageSource& source) const;
  static bool multiplies_bf16(const ImageSource& g, const ImageSource& x, const Tensor& dw);
  uint32_t forward_key(size_t batch, const BlockSink* sink) const;  // of what decides about scratch
  void weight_gradient(size_t batch, const ImageSource& g, const ImageSource& x, const Tensor& dw,
                       CallScratch& scratch);
  void bias_gradient(size_t batch, const ImageSource& g, const Tensor& db, CallScratch& scratch);
  void softmax_rows(size_t batch, const ImageSource& linear, const ImageTarget& y, CallScratch& scratch);

  ConvolutionProblem problem_;
  Tensor x_, y_;  // as the maps see them
  Parameter weights_, bias_;
  ScratchShelf scratch_;
  ScratchMemo forward_memo_, backward_memo_;
};

}  // namespace bnns
