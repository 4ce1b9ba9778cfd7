// The numbers of a kernel: limits, so that coordinates never overflow, and what all kernels do with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "Foundation/NSCoder.hpp"
#include "src/core/error.h"

namespace bnns::mps {

// A window reaches over at most this many pixels and moves by at most this many, and no coordinate is farther from the
// image than kFarthest: GPU kernels hold coordinates in 32 bits.
inline constexpr uint64_t kLargestWindow = uint64_t{1} << 28;
inline constexpr int64_t kFarthest = int64_t{1} << 29;
inline constexpr int64_t kLargestPlane = (int64_t{1} << 31) - 1;  // pixels of one channel
// A window has at most as many taps as the largest texture of Metal has pixels, 16384 x 16384. In an encode it has at
// most kTapsPerPixel times the source's pixels, or kSmallWindow: with Clamp every tap is read, wherever it lies, and a
// window far larger than the image reads its edge over and over for hours.
inline constexpr uint64_t kMostTaps = uint64_t{1} << 28;
inline constexpr uint64_t kSmallWindow = uint64_t{1} << 20;
inline constexpr uint64_t kTapsPerPixel = 4;

inline int64_t window_extent(uint64_t kernel, uint64_t dilation) {
  if (kernel == 0 || dilation == 0) fail_invalid("kernel size or dilation is 0");
  if (kernel > kLargestWindow || dilation > kLargestWindow || (kernel - 1) * dilation >= kLargestWindow) {
    fail_invalid("kernel size is %zu with dilation %zu, expected (size - 1) x dilation below 2^28",
                 static_cast<size_t>(kernel), static_cast<size_t>(dilation));
  }
  return static_cast<int64_t>((kernel - 1) * dilation + 1);
}

inline void check_stride(uint64_t stride) {
  if (stride == 0 || stride > kLargestWindow) {
    fail_invalid("stride is %zu, expected 1 to 2^28", static_cast<size_t>(stride));
  }
}

// For each size at most kLargestWindow.
inline void check_taps(uint64_t width, uint64_t height) {
  if (width * height > kMostTaps) {
    fail_unsupported("kernel size is %zu x %zu, expected at most 2^28 taps", static_cast<size_t>(width),
                     static_cast<size_t>(height));
  }
}

// The same for a window over an image.
inline void check_taps(uint64_t width, uint64_t height, uint64_t image_width, uint64_t image_height) {
  const uint64_t most = std::max(kSmallWindow, kTapsPerPixel * image_width * image_height);
  if (width * height > most) {
    fail_unsupported(
        "kernel size is %zu x %zu, expected at most %zu taps: 2^20, or 4 times the source's %zu x %zu pixels",
        static_cast<size_t>(width), static_cast<size_t>(height), static_cast<size_t>(most),
        static_cast<size_t>(image_width), static_cast<size_t>(image_height));
  }
}

// Throws unless kernel sizes, dilations and strides make windows.
template <class Properties>
void check_window(const Properties& p) {
  window_extent(p.kernelWidth, p.dilationX);
  window_extent(p.kernelHeight, p.dilationY);
  check_taps(p.kernelWidth, p.kernelHeight);
  check_stride(p.strideX);
  check_stride(p.strideY);
}

template <class Properties>
void set_window(Properties& p, uint64_t width, uint64_t height, uint64_t dilation_x, uint64_t dilation_y,
                uint64_t stride_x, uint64_t stride_y) {
  p.kernelWidth = width, p.kernelHeight = height;
  p.dilationX = dilation_x, p.dilationY = dilation_y;
  p.strideX = stride_x, p.strideY = stride_y;
}

// What kernels with one and with two sources archive alike: visit(key, member) for each number.
template <class Properties, class Visit>
void visit_destination(Properties& p, Visit&& visit) {
  visit("clipRect.origin.x", p.clipRect.origin.x);
  visit("clipRect.origin.y", p.clipRect.origin.y);
  visit("clipRect.origin.z", p.clipRect.origin.z);
  visit("clipRect.size.width", p.clipRect.size.width);
  visit("clipRect.size.height", p.clipRect.size.height);
  visit("clipRect.size.depth", p.clipRect.size.depth);
  visit("destinationFeatureChannelOffset", p.destinationChannelOffset);
}

inline void require_keys(const NS::Coder* coder, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!coder->containsValue(key)) fail_invalid("the archive has no %s", key);
  }
}

// min(count, extent - origin), 0 where origin lies at or beyond the end.
inline uint64_t overlap(uint64_t origin, uint64_t count, uint64_t extent) {
  return origin >= extent ? 0 : std::min(count, extent - origin);
}

}  // namespace bnns::mps
