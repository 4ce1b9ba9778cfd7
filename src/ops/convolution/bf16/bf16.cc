// Which passes of a convolution run on pairs of bf16: those whose two factors are both bf16 images or weights, read in
// place. Anything else keeps the f32 maps, where values are widened as they are read.

#include "src/ops/convolution/bf16/bf16.h"

#include <algorithm>

#include "src/ops/convolution/convolution.h"
#include "src/ops/convolution/depthwise/depthwise.h"
#include "src/ops/convolution/winograd/dw.h"

namespace bnns {
namespace {

// Pairs double the rate of a product; Winograd's algorithm saves three quarters of it for 3x3. AMX is faster than both.
bool may_prefer_winograd(const ConvolutionMap& m, Isa set) {
  return set != Isa::amx && m.y.kernel == 3 && m.y.stride == 1 && m.x.stride == 1;
}

bool prefers_winograd(const ConvolutionMap& m, bool up, size_t batch, Isa set) {
  if (!may_prefer_winograd(m, set)) return false;
  return is_winograd(up ? up_axis(m.y, 0) : down_axis(m.y), up ? up_axis(m.x, 0) : down_axis(m.x), m.groups,
                     up ? m.large_channels : m.small_channels, up ? m.small_channels : m.large_channels, batch);
}

// Strides of a bf16 tensor of weights, by the formula of f32.
size_t bf16_strides(const ConvolutionProblem& p, Tensor w, WeightStrides* strides) {
  w.type = BNNSDataTypeFloat32;
  return weight_strides(p, w, strides);
}

bool is_strided(const Tensor& w) {
  return w.layout != BNNSDataLayoutConvolutionWeightsOIHW_Pack32;
}

}  // namespace

bool ConvolutionFilter::run_bf16(size_t batch, const ImageSource& source, const ImageTarget& target, bool up,
                                 CallScratch& scratch) {
  const ConvolutionMap& m = problem_.map;
  const Tensor& tensor = weights_.tensor();
  const Isa set = isa();
  if (!has_pair_kernels(set) || !is_bf16_image(source) || tensor.type != BNNSDataTypeBFloat16 || !is_strided(tensor) ||
      target.sink || is_depthwise(m) || prefers_winograd(m, up, batch, set)) {
    return false;
  }
  Bf16Weights w;
  w.data = static_cast<const uint16_t*>(tensor.data);
  w.data += bf16_strides(problem_, tensor, &w);
  const size_t rows = up ? m.large_channels : m.small_channels, channels = up ? m.small_channels : m.large_channels;
  // One map down; up, one for each residue of the stride.
  for (size_t ry = 0; ry < (up ? std::min(m.y.stride, m.y.large) : 1); ++ry) {
    for (size_t rx = 0; rx < (up ? std::min(m.x.stride, m.x.large) : 1); ++rx) {
      const PatchAxis y = up ? up_axis(m.y, ry) : down_axis(m.y), x = up ? up_axis(m.x, rx) : down_axis(m.x);
      if (y.taps == 0 || x.taps == 0) {
        if (!scratch.measuring()) fill_without_taps(y, x, batch, m.groups * rows, target, options_.n_threads);
        continue;
      }
      const ptrdiff_t row_stride = up ? w.large : w.small, channel_stride = up ? w.small : w.large;
      const auto run = [&](const auto& product) {
        CallScratch::Lease workspace(scratch, product.workspace_bytes());
        if (!scratch.measuring()) product.run(source, workspace.data());
      };
      if (const PairStepsKernel kernel = pair_steps_kernel(set); kernel && PairStepProduct::accepts(y, x, channels)) {
        run(PairStepProduct(y, x, m.groups, rows, channels, w, row_stride, channel_stride, batch, target, kernel,
                            options_.n_threads));
      } else {
        run(PairPatchProduct(y, x, m.groups, rows, channels, w, row_stride, channel_stride, batch, target, set,
                             options_.n_threads));
      }
    }
  }
  return true;
}

bool ConvolutionFilter::weight_gradient_bf16(size_t batch, const ImageSource& g, const ImageSource& x, const Tensor& dw,
                                             CallScratch& scratch) {
  const ConvolutionMap& m = problem_.map;
  const Isa set = isa();
  const bool bf16 = dw.type == BNNSDataTypeBFloat16;
  if (!has_pair_kernels(set) || batch == 0 || !is_bf16_image(g) || !is_bf16_image(x) || !is_strided(dw) ||
      !(bf16 || dw.type == BNNSDataTypeFloat32) || is_depthwise(m) || down_axis(m.y).taps != m.y.kernel ||
      down_axis(m.x).taps != m.x.kernel || (may_prefer_winograd(m, set) && is_winograd_gradient(m, batch))) {
    return false;
  }
  Bf16WeightTarget target;
  const size_t first = bf16_strides(problem_, dw, &target);
  if (bf16) {
    target.bf16 = static_cast<uint16_t*>(dw.data) + first;
  } else {
    target.f32 = static_cast<float*>(dw.data) + first;
  }
  target.accumulate = dw.accumulate;
  const auto run = [&](const auto& product) {
    CallScratch::Lease workspace(scratch, product.workspace_bytes());
    if (scratch.measuring()) return;
    product.run(problem_.transposed ? x : g, problem_.transposed ? g : x, target, workspace.data());
  };
  if (const PairStepsKernel kernel = pair_steps_kernel(set); kernel && PairWeightSteps::accepts(m)) {
    run(PairWeightSteps(m, batch, kernel, options_.n_threads));
  } else {
    run(PairWeightProduct(m, batch, set, options_.n_threads));
  }
  return true;
}

}  // namespace bnns
