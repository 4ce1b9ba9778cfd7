#include "src/ops/mps_pooling/classes/state.h"

#include <algorithm>

#include "src/core/error.h"
#include "src/mps/kernel/kernel.h"

namespace MPS {

PoolingState::PoolingState(const bnns::mps::ForwardProperties& forward, const bnns::mps::PoolEncode& resolved,
                           const Image& source)
    : forward_(forward),
      width_(source.width()),
      height_(source.height()),
      channels_(source.featureChannels()),
      images_(source.numberOfImages()) {
  forward_.clip.size = MTL::Size(static_cast<NS::UInteger>(resolved.width), static_cast<NS::UInteger>(resolved.height),
                                 static_cast<NS::UInteger>(resolved.images));
  forward_.source.channel_max_count = static_cast<NS::UInteger>(resolved.channels);
}

// The forward encode wrote a part of its destination, normally all of it: the gradient image has at least that part.
void PoolingState::checkGradient(const Image& gradient) const {
  const MTL::Size& size = forward_.clip.size;
  const NS::UInteger channels = forward_.source.channel_max_count;
  if (size.width == 0 || size.height == 0 || size.depth == 0 || channels == 0) return;  // wrote nothing
  const MTL::Origin& origin = forward_.clip.origin;
  const NS::UInteger width = origin.x + size.width, height = origin.y + size.height, images = origin.z + size.depth;
  const NS::UInteger last = forward_.destination_channel + channels;
  if (gradient.width() < width || gradient.height() < height || gradient.featureChannels() < last ||
      gradient.numberOfImages() < images) {
    bnns::fail_invalid(
        "the gradient image is %zu x %zu x %zu, %zu images, expected at least %zu x %zu x %zu, %zu: the result of the "
        "state's forward encode",
        gradient.width(), gradient.height(), gradient.featureChannels(), gradient.numberOfImages(), width, height, last,
        images);
  }
}

ImageDescriptor* PoolingState::destinationImageDescriptor(NS::Array* sourceImages, NS::Array*, Kernel* kernel,
                                                          ImageDescriptor* suggested) {
  auto* g = dynamic_cast<CNNPoolingGradient*>(kernel);
  if (!g) return dynamic_cast<CNNKernel*>(kernel) ? suggested : nullptr;  // forward kernels need nothing of it
  if (g->kind() >= 0 && g->kind() != static_cast<int>(forward_.kind)) {
    bnns::fail_invalid("the state is of another kind of pooling than the gradient");
  }
  checkGradient(*bnns::mps::image_at(sourceImages, 0, 2));
  Image* secondary = bnns::mps::image_at(sourceImages, 1, 2);
  if (secondary->width() != width_ || secondary->height() != height_ || secondary->featureChannels() != channels_ ||
      secondary->numberOfImages() != images_) {
    bnns::fail_invalid(
        "the secondary image is %zu x %zu x %zu, %zu images; the state was made for %zu x %zu x %zu, %zu",
        secondary->width(), secondary->height(), secondary->featureChannels(), secondary->numberOfImages(), width_,
        height_, channels_, images_);
  }
  auto& p = g->p_;
  p.secondary.offset = forward_.source.offset;
  p.secondary.edgeMode = forward_.edge;
  p.secondary.kernelWidth = forward_.x.kernel;
  p.secondary.kernelHeight = forward_.y.kernel;
  p.secondary.strideX = forward_.x.stride;
  p.secondary.strideY = forward_.y.stride;
  p.secondary.dilationX = forward_.x.dilation;
  p.secondary.dilationY = forward_.y.dilation;
  p.secondary.channelOffset = forward_.source.channel_offset;
  p.secondary.channelMaxCount = forward_.source.channel_max_count;
  // The gradient image is the forward destination: its clip and channels are what the forward encode wrote.
  const ImageEdgeMode edge = p.primary.edgeMode;  // without effect, so left alone
  p.primary = p.secondary;
  p.primary.edgeMode = edge;
  p.primary.channelOffset = forward_.destination_channel;
  const MTL::Origin& origin = forward_.clip.origin;
  p.primary.offset = {static_cast<NS::Integer>(origin.x), static_cast<NS::Integer>(origin.y),
                      static_cast<NS::Integer>(origin.z)};
  g->setSourceSize(forward_.clip.size);
  g->setZeroPad({forward_.x.zero_pad, forward_.y.zero_pad, 0});
  // The result is aligned to the source: pixels (D7), images and channels.
  const auto first = [](NS::Integer offset, const bnns::mps::WindowProperties& window, NS::UInteger size) {
    return std::min(static_cast<NS::UInteger>(bnns::mps::first_source_pixel(offset, window)), size - 1);
  };
  p.destinationChannelOffset = forward_.source.channel_offset;
  p.clipRect = RectNoClip;
  p.clipRect.origin = MTL::Origin(first(forward_.source.offset.x, forward_.x, width_),
                                  first(forward_.source.offset.y, forward_.y, height_),
                                  static_cast<NS::UInteger>(forward_.source.offset.z));
  return suggested;
}

}  // namespace MPS
