// One encode of the MPS pooling family as a plain struct: below it the CPU and CUDA devices differ.
//
// Everything Apple's classes leave to properties (clip rectangles, offsets, channel ranges, states, padding policies)
// has been resolved above; what is left is a loop nest that both devices run:
// clang-format off
//   forward    for image, channel, pixel i of the clip:  out(i) = reduce over taps j of read(c(i) - E/2 + j d)
//   backward   for image, channel, pixel y of the clip:  sum over windows j that hold y of G(j) d out(j) / d in(y)
// clang-format on
// with c(i) = first_centre + stride * i and E = (kernel - 1) dilation + 1 on each axis (specification 2.1 to 2.6).
// The arithmetic of a window is in mps_pooling/window.h, compiled for host and device alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/mps/operation.h"

namespace bnns::mps {

enum class PoolKind : uint8_t { max, average, l2_norm };  // dilated max is max
enum class PoolEdge : uint8_t { zero, clamp };            // what a read outside the source gives

// One axis of the windows. 64-bit, signed: offsets may be negative and far outside.
struct PoolAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t first_centre = 0;  // of the window of clip pixel 0; backward: of the first gradient pixel used
  int64_t zero_pad = 0;      // average with clamp: the image counts as this much larger on both sides

  BNNS_HOST_DEVICE int64_t extent() const { return (kernel - 1) * dilation + 1; }
  BNNS_HOST_DEVICE int64_t before() const { return extent() / 2; }  // taps begin this far before the centre
};

struct PoolEncode {
  PoolKind kind = PoolKind::max;
  PoolEdge edge = PoolEdge::zero;
  bool backward = false;
  PoolAxis x, y;
  // Images and channels are walked together: image i is image source_image + i of the source and target_image + i of
  // the target; channel offsets are multiples of 4 (their sum with channels may end inside a slice: lanes beyond are
  // left alone). Backward the source is the forward pass's (read for max and L2 only; its size always counts).
  ImageView source, target;
  int64_t images = 0, channels = 0;
  int64_t source_image = 0, target_image = 0, source_channel = 0, target_channel = 0;
  // The rectangle of the target that is written: not empty, inside the target.
  int64_t target_x = 0, target_y = 0, width = 0, height = 0;

  // Backward only.
  ImageView gradient;
  int64_t gradient_image = 0, gradient_channel = 0;
  // Gradient pixels used: [gradient_x, gradient_x + gradient_width); the first owns the window at x.first_centre.
  int64_t gradient_x = 0, gradient_y = 0, gradient_width = 0, gradient_height = 0;
  // Target pixel target_x + t is the derivative with respect to source pixel source_x + t; 0 where that is outside.
  int64_t source_x = 0, source_y = 0;

  bool reads_source() const { return !backward || kind != PoolKind::average; }
};

// "max_pool gradient f16 n8 c480 w14x14 h14x14 k3x3 s1x1 clamp", for verbose lines and failing tests.
std::string text_of(const PoolEncode& encode);

// How a command buffer runs an encode; with a verbose line where that is asked for.
extern const Encode::Devices kPoolDevices;

// Number of threads as in bnns::parallel_for; 0: the default.
void pool_cpu(const PoolEncode& encode, size_t threads) noexcept;
// Only in a build with CUDA. As Encode::Devices::cuda.
int pool_cuda(const PoolEncode& encode, void* stream) noexcept;

}  // namespace bnns::mps
