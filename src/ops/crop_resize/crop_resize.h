// Crops boxes out of images and resizes each by bilinear interpolation.
//
//   y[i, j, c, n, box] = x at (column start_w + grid_w(i), row start_h + grid_h(j)) of channel c of image n
//   backward           dx = the transpose: every dy goes to the four pixels that made it, with the same weights
//
// Dimensions by rising stride: x is (W, H, C, N), roi (4, boxes), y (w, h, C, N, boxes). With five numbers for a box
// the first is the image, and y is (w, h, C, boxes). Points outside [0, W - 1] x [0, H - 1] take the extrapolation
// value and pass no gradient.
#pragma once

#include <cstddef>
#include <string>

#include "src/core/memory.h"
#include "src/tensor/tensor.h"

namespace bnns {

// Where one output row or column is sampled.
struct CropTap {
  size_t low = 0, high = 0;
  float fraction = 0;  // of high
  bool inside = false;
};

struct CropResizeProblem {
  const char* op = "crop_resize";
  BNNSLayerParametersCropResize layer = {};
  Tensor x, roi, y;                                 // backward: x is in_delta, y is out_delta
  size_t width = 1, height = 1, planes = 1;         // of x; a plane is one channel of one image
  size_t out_width = 1, out_height = 1, boxes = 1;  // of y
  size_t box_values = 4;                            // 5: an image index comes first
  size_t channels = 1;                              // of one image, with five values

  std::string text() const;  // "crop_resize f32 6x5x3x1 boxes 2 to f32 3x3x3x1x2"
};

// Every check; image indices too.
CropResizeProblem make_crop_resize_problem(const BNNSLayerParametersCropResize* layer, const BNNSNDArrayDescriptor* x,
                                           const BNNSNDArrayDescriptor* roi, const BNNSNDArrayDescriptor* y,
                                           bool backward);

// Tap i of `out` along an axis of `extent` pixels, for the stretch [start, end].
CropTap crop_tap(BNNSLinearSamplingMode mode, double start, double end, size_t extent, size_t out, size_t i);

void crop_resize_forward(const CropResizeProblem& problem, const Options& options);
void crop_resize_backward(const CropResizeProblem& problem, const Options& options);

}  // namespace bnns
