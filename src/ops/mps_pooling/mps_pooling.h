// One encode of the MPS pooling family as a plain struct: the seam below which the CPU and CUDA devices differ.
//
// Everything Apple's classes leave to properties (clip rectangles, offsets, channel ranges, states, padding policies)
// has been resolved above; what is left is a loop nest that both devices run:
//   forward    for image, channel, destination pixel i of the clip:  out(i) = reduce over taps of read(c(i) - E/2 + j
//   d) backward   for image, channel, destination pixel y of the clip:  sum over windows j that hold y of G(j) d out(j)
//   / d in(y)
// with c(i) = first_centre + stride * i and E = (kernel - 1) dilation + 1 on each axis (specification 2.1 to 2.6).
// The arithmetic of a window is in mps_pooling/window.h, compiled for host and device alike.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define BNNS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define BNNS_HOST_DEVICE inline
#endif

namespace bnns::mps {

enum class PoolKind : uint8_t { max, average, l2_norm };  // dilated max is max
enum class PoolEdge : uint8_t { zero, clamp };            // what a read outside the source gives
enum class PixelType : uint8_t { f32, f16, unorm8, unorm16 };

BNNS_HOST_DEVICE constexpr size_t bytes_of(PixelType type) {
  return type == PixelType::f32 ? 4 : type == PixelType::unorm8 ? 1 : 2;
}

// Images in the layout of MPSImage: 4 channels per texel (1 and 2 channels: 1 and 2), one slice of texels per 4
// channels, images one after the other. Element (n, c, y, x) is
//   data[(((n * slices + c / 4) * height + y) * width + x) * lanes + c % 4]
struct ImageView {
  void* data = nullptr;
  PixelType type = PixelType::f32;
  int64_t width = 0, height = 0, slices = 0;
  int32_t lanes = 4;
};

// One axis of the windows. 64-bit, signed: offsets may be negative and far outside.
struct PoolAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t first_centre =
      0;                 // forward: centre of the window of clip pixel 0; backward: of the first gradient pixel used
  int64_t zero_pad = 0;  // average with clamp: the image counts as this much larger on both sides

  BNNS_HOST_DEVICE int64_t extent() const { return (kernel - 1) * dilation + 1; }
  BNNS_HOST_DEVICE int64_t before() const { return extent() / 2; }  // taps begin this far before the centre
};

// What both directions share. Images and channels are walked together: image i is image source_image + i of the
// source and target_image + i of the target; channel offsets are multiples of 4 (their sum with channels may end inside
// a slice: lanes beyond are left alone).
struct PoolEncode {
  PoolKind kind = PoolKind::max;
  PoolEdge edge = PoolEdge::zero;
  PoolAxis x, y;
  ImageView source, target;
  int64_t images = 0, channels = 0;
  int64_t source_image = 0, target_image = 0, source_channel = 0, target_channel = 0;
  // The rectangle of the target that is written: not empty, inside the target.
  int64_t target_x = 0, target_y = 0, width = 0, height = 0;
};

struct PoolForward : PoolEncode {};

// source is the forward pass's source image (read for max and L2 only; its size always counts).
struct PoolBackward : PoolEncode {
  ImageView gradient;
  int64_t gradient_image = 0, gradient_channel = 0;
  // Gradient pixels used: [gradient_x, gradient_x + gradient_width); the first owns the window at x.first_centre.
  int64_t gradient_x = 0, gradient_y = 0, gradient_width = 0, gradient_height = 0;
  // Target pixel target_x + t is the derivative with respect to source pixel source_x + t; 0 where that is outside.
  int64_t source_x = 0, source_y = 0;
};

// Number of threads as in bnns::parallel_for; 0: the default.
void pool_forward_cpu(const PoolForward& encode, size_t threads) noexcept;
void pool_backward_cpu(const PoolBackward& encode, size_t threads) noexcept;

// On a CUDA stream (a cudaStream_t as void*); returns a cudaError_t, 0 for success. Never synchronises or allocates.
int pool_forward_cuda(const PoolForward& encode, void* stream) noexcept;
int pool_backward_cuda(const PoolBackward& encode, void* stream) noexcept;

}  // namespace bnns::mps
