// From a kernel's properties and its images to the plain struct of one encode: which pixels, images and channels take
// part, and where windows sit. Everything that can be wrong with an encode is found here.
#pragma once

#include "MetalPerformanceShaders/MPSImage.hpp"
#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

// One axis of the windows as properties have it.
struct WindowProperties {
  NS::UInteger kernel = 1, stride = 1, dilation = 1, zero_pad = 0;
};

// A source image's part in an encode.
struct SourceProperties {
  MPS::Offset offset;
  NS::UInteger channel_offset = 0, channel_max_count = NS::UIntegerMax;
};

struct ForwardProperties {
  PoolKind kind = PoolKind::max;
  MPS::ImageEdgeMode edge = MPS::ImageEdgeModeZero;
  WindowProperties x, y;
  SourceProperties source;
  MTL::Region clip = MPS::RectNoClip;
  NS::UInteger destination_channel = 0;
};

struct GradientProperties {
  PoolKind kind = PoolKind::max;
  MPS::ImageEdgeMode edge = MPS::ImageEdgeModeZero;  // of the forward pass
  WindowProperties x, y;
  SourceProperties gradient, source;  // primary, secondary
  NS::Integer kernel_offset_x = 0, kernel_offset_y = 0;
  MTL::Size size{NS::UIntegerMax, NS::UIntegerMax, NS::UIntegerMax};  // of the primary image, how much counts
  MTL::Region clip = MPS::RectNoClip;
  NS::UInteger destination_channel = 0;
};

// Fill all of `encode` but the image views. False: nothing is to be written. Throw Error for what is wrong.
bool resolve_forward(const ForwardProperties& p, const MPS::Image& source, const MPS::Image& destination,
                     PoolEncode* encode);
bool resolve_backward(const GradientProperties& p, const MPS::Image& gradient, const MPS::Image& source,
                      const MPS::Image& destination, PoolEncode* encode);

// y0: the source pixel that the clip's first pixel belongs to, the first one inside the image of the first window.
int64_t first_source_pixel(NS::Integer offset, const WindowProperties& window);
// Every element of the destination is written.
bool covers(const PoolEncode& encode, const MPS::Image& destination);

}  // namespace bnns::mps
