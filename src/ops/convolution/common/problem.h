// What the implementations of a pass accept and run: one map (down, up, or one phase of up), and one weight gradient.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/ops/convolution/common/patch_map.h"
#include "src/ops/convolution/common/source.h"
#include "src/ops/convolution/common/target.h"
#include "src/tensor/tensor.h"

namespace bnns {

class MapWeights;
struct IntegerLayer;

// target[row, pixel] = sum over channels and taps of W(row, channel, tap) source[channel, patch of the pixel], per
// group. Those who only ask which implementation runs leave data and weights out.
struct PatchMap {
  ConvolutionMap map;
  bool up = false;
  PatchAxis y, x;                   // of the map, or of one phase of up over a stride
  size_t rows = 0, channels = 0;    // of the target, of the source; per group
  const PatchAxis* pair = nullptr;  // x of the first phase of a row whose phases a product writes together
  size_t batch = 0;
  ImageSource source;
  ImageTarget target;
  const MapWeights* weights = nullptr;
  bool bf16 = false;                      // source and weights are bf16 and multiplied as they lie, where the CPU can
  const IntegerLayer* integer = nullptr;  // exact integer sums
  size_t threads = 1;

  size_t groups() const { return map.groups; }
  size_t taps() const { return y.taps * x.taps; }
  bool has_taps() const { return y.taps != 0 && x.taps != 0; }
  // Up over a stride: a patch map for each residue of the target coordinates.
  bool is_strided() const { return up && (map.y.stride > 1 || map.x.stride > 1); }
  size_t phases_y() const { return std::min(map.y.stride, map.y.large); }
  size_t phases_x() const { return std::min(map.x.stride, map.x.large); }
  PatchMap phase(size_t phase_y, size_t phase_x) const {
    PatchMap p = *this;
    p.y = up_axis(map.y, phase_y), p.x = up_axis(map.x, phase_x);
    return p;
  }
  // Of W(row, channel) in any of its types.
  ptrdiff_t row_stride(const WeightStrides& w) const { return up ? w.large : w.small; }
  ptrdiff_t channel_stride(const WeightStrides& w) const { return up ? w.small : w.large; }
};

inline PatchMap make_patch_map(const ConvolutionMap& map, bool up, size_t batch) {
  PatchMap p;
  p.map = map, p.up = up, p.batch = batch;
  p.y = up ? up_axis(map.y, 0) : down_axis(map.y), p.x = up ? up_axis(map.x, 0) : down_axis(map.x);
  p.rows = up ? map.large_channels : map.small_channels;
  p.channels = up ? map.small_channels : map.large_channels;
  return p;
}

// dW(s, l, k) = sum over samples and pixels of small(s, p) large(l, patch of k at p). There are samples and taps.
struct WeightMap {
  ConvolutionMap map;
  PatchAxis y, x;  // down
  size_t batch = 0;
  ImageSource small, large;
  const Tensor* dw = nullptr;  // as the caller has it
  WeightStrides strides;       // of dw, where it is f32 or bf16 in a layout that has them
  size_t first = 0;            // offset of W(0, 0, 0, 0) in dw
  bool bf16 = false;           // both images are bf16 and multiplied as they lie, where the CPU can
  WeightTarget target;         // f32, of the first tap of y and x
  size_t threads = 1;

  bool has_all_taps() const { return y.taps == map.y.kernel && x.taps == map.x.kernel; }
};

inline WeightMap make_weight_map(const ConvolutionMap& map, size_t batch) {
  WeightMap p;
  p.map = map, p.batch = batch, p.y = down_axis(map.y), p.x = down_axis(map.x);
  return p;
}

inline bool is_depthwise(const ConvolutionMap& map) {
  return map.groups > 1 && map.small_channels == 1 && map.large_channels == 1;
}

}  // namespace bnns
