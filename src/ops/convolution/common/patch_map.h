// The one geometry of convolution, for both directions and for the transposed layer.
//
// Two images hang together by   large = stride * small + dilation * k - pad   on each axis, k < kernel:
//                     convolution                              transposed convolution
//   small image S     output, O channels                       input, I channels
//   large image L     input, I channels                        output, O channels
// and three maps between them carry every pass:
//   down      S(s) = sum over l, k of W L        convolution forward;        transposed input gradient
//   up        L(l) = sum over s, k of W S        convolution input gradient; transposed forward
//   weights   dW(s, l, k) = sum over n, S-pixels of S L        the weight gradient of both
//
// down and up are both "patch" maps: a target pixel p gathers source pixels p * step + j * tap + offset over taps j.
// For up with stride s, the target pixels of one residue modulo s (a phase) share a subset of the taps, so up is s
// patch maps per axis with step 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>

namespace bnns {

// One axis of the geometry.
struct ConvolutionAxis {
  size_t small = 0, large = 0;  // extents of the two images
  size_t kernel = 1, stride = 1, dilation = 1, pad = 0;
};

// One axis of a patch map: tap j of target pixel p reads source coordinate p * step + j * tap + offset, if that is in
// [0, extent), else zero.
struct PatchAxis {
  size_t pixels = 0, taps = 0, extent = 0;
  ptrdiff_t step = 1, tap = 1, offset = 0;
  // Where target pixel p lies in the target image, and which kernel position tap j is.
  size_t target_first = 0, target_step = 1;
  size_t kernel_first = 0, kernel_step = 1;
};

// Taps at either end that no pixel sees inside the source only ever read zeros: without them the reach of an axis is
// bounded by the two images, however large padding and dilation are. All taps may go.
inline void drop_idle_taps(PatchAxis* p) {
  const ptrdiff_t across = static_cast<ptrdiff_t>(p->pixels - 1) * p->step;
  const auto idle = [&](size_t j) {
    const ptrdiff_t low = static_cast<ptrdiff_t>(j) * p->tap + p->offset;
    return low >= static_cast<ptrdiff_t>(p->extent) || low + across < 0;
  };
  while (p->taps > 0 && idle(p->taps - 1)) --p->taps;
  size_t first = 0;
  while (first < p->taps && idle(first)) ++first;
  p->taps -= first;
  p->offset += static_cast<ptrdiff_t>(first) * p->tap;
  p->kernel_first += first * p->kernel_step;
}

inline PatchAxis down_axis(const ConvolutionAxis& a) {
  PatchAxis p;
  p.pixels = a.small, p.taps = a.kernel, p.extent = a.large;
  p.step = static_cast<ptrdiff_t>(a.stride), p.tap = static_cast<ptrdiff_t>(a.dilation);
  p.offset = -static_cast<ptrdiff_t>(a.pad);
  drop_idle_taps(&p);
  return p;
}

// The pixels phase, phase + stride, ... of the large image. A kernel position k reaches them iff
// (phase + pad - dilation * k) is a multiple of the stride; such k are stride / gcd(stride, dilation) apart.
inline PatchAxis up_axis(const ConvolutionAxis& a, size_t phase) {
  const auto s = static_cast<ptrdiff_t>(a.stride), d = static_cast<ptrdiff_t>(a.dilation);
  const ptrdiff_t common = std::gcd(s, d), start = static_cast<ptrdiff_t>(phase + a.pad);
  PatchAxis p;
  p.pixels = phase < a.large ? (a.large - phase - 1) / a.stride + 1 : 0;
  p.extent = a.small;
  p.target_first = phase, p.target_step = a.stride;
  p.step = 1, p.tap = -(d / common);
  p.kernel_step = a.stride / static_cast<size_t>(common);
  while (p.kernel_first < a.kernel && (start - d * static_cast<ptrdiff_t>(p.kernel_first)) % s != 0) ++p.kernel_first;
  if (p.kernel_first < a.kernel) {
    p.taps = (a.kernel - 1 - p.kernel_first) / p.kernel_step + 1;
    p.offset = (start - d * static_cast<ptrdiff_t>(p.kernel_first)) / s;
    drop_idle_taps(&p);
  }
  return p;
}

// Both axes and the channels: W(s, l, ky, kx) per group.
struct ConvolutionMap {
  ConvolutionAxis y, x;
  size_t groups = 1;
  size_t small_channels = 0, large_channels = 0;  // per group
};

// Weights of group 0 in any order, to read or to write; group g is g * group further.
struct WeightStrides {
  ptrdiff_t group = 0, small = 0, large = 0, y = 0, x = 0;
};
struct WeightView : WeightStrides {
  const float* data = nullptr;
};
struct Bf16Weights : WeightStrides {
  const uint16_t* data = nullptr;
};
struct WeightTarget : WeightStrides {
  float* data = nullptr;
  bool accumulate = false;
};

}  // namespace bnns
