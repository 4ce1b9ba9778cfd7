#include "src/ops/mps_pooling/classes/resolve.h"

#include <algorithm>

#include "src/core/error.h"
#include "src/mps/foundation/names.h"
#include "src/mps/kernel/window.h"

namespace bnns::mps {
namespace {

void check_plane(const char* what, const MPS::Image& image) {
  if (static_cast<int64_t>(image.width() * image.height()) > kLargestPlane) {
    fail_unsupported("%s: %zu x %zu pixels are more than %td", what, image.width(), image.height(),
                     static_cast<std::ptrdiff_t>(kLargestPlane));
  }
}

PoolEdge edge_of(MPS::ImageEdgeMode mode) {
  if (mode == MPS::ImageEdgeModeZero) return PoolEdge::zero;
  if (mode == MPS::ImageEdgeModeClamp) return PoolEdge::clamp;
  fail_invalid("edge mode is %s (%zu), expected Zero or Clamp", name_of(mode), static_cast<size_t>(mode));
}

void check_near(const char* what, int64_t coordinate) {
  if (coordinate < -kFarthest || coordinate > kFarthest) {
    fail_unsupported("%s is %td, farther than %td from the image", what, static_cast<std::ptrdiff_t>(coordinate),
                     static_cast<std::ptrdiff_t>(kFarthest));
  }
}

// count windows, the first one centred on `centre`.
PoolAxis axis_of(const WindowProperties& w, int64_t centre, int64_t count) {
  PoolAxis axis;
  window_extent(w.kernel, w.dilation);
  check_stride(w.stride);
  axis.kernel = static_cast<int64_t>(w.kernel);
  axis.stride = static_cast<int64_t>(w.stride);
  axis.dilation = static_cast<int64_t>(w.dilation);
  axis.first_centre = centre;
  // More padding than coordinates reach changes nothing.
  axis.zero_pad = static_cast<int64_t>(std::min<uint64_t>(w.zero_pad, uint64_t{1} << 30));
  check_near("the first window", centre);
  int64_t span;
  if (__builtin_mul_overflow(axis.stride, std::max<int64_t>(0, count - 1), &span)) span = kFarthest + 1;
  check_near("the last window", span > kFarthest ? span : centre + span);
  return axis;
}

// Channels of an image that take part.
uint64_t channels_of(const char* what, const SourceProperties& p, const MPS::Image& image) {
  if (p.channel_offset % 4 != 0) {
    fail_invalid("%s channel offset is %zu, expected a multiple of 4", what, p.channel_offset);
  }
  if (p.channel_offset >= image.featureChannels()) {
    fail_invalid("%s channel offset is %zu, but the image has %zu channels", what, p.channel_offset,
                 image.featureChannels());
  }
  return std::min(p.channel_max_count, image.featureChannels() - p.channel_offset);
}

void check_destination_channels(NS::UInteger offset, uint64_t count, const MPS::Image& image) {
  if (offset % 4 != 0) {
    fail_invalid("destinationFeatureChannelOffset is %zu, expected a multiple of 4", offset);
  }
  if (offset > image.featureChannels() || count > image.featureChannels() - offset) {
    fail_invalid("destination has %zu channels, expected at least %zu + %zu", image.featureChannels(), offset,
                 static_cast<size_t>(count));
  }
}

// Images of a source that are left from offset.z on.
uint64_t images_from(const char* what, const SourceProperties& p, const MPS::Image& image) {
  if (p.offset.z < 0) {
    fail_invalid("%s.z is %td, expected at least 0", what, static_cast<std::ptrdiff_t>(p.offset.z));
  }
  return overlap(static_cast<uint64_t>(p.offset.z), UINT64_MAX, image.numberOfImages());
}

// The destination's side, the same in both directions. False: nothing to write.
bool resolve_target(const MTL::Region& clip, const MPS::Image& destination, uint64_t images, uint64_t channels,
                    NS::UInteger channel, PoolEncode* e) {
  check_plane("destination", destination);
  check_destination_channels(channel, channels, destination);
  e->images =
      static_cast<int64_t>(std::min(images, overlap(clip.origin.z, clip.size.depth, destination.numberOfImages())));
  e->channels = static_cast<int64_t>(channels);
  e->width = static_cast<int64_t>(overlap(clip.origin.x, clip.size.width, destination.width()));
  e->height = static_cast<int64_t>(overlap(clip.origin.y, clip.size.height, destination.height()));
  if (e->images == 0 || e->channels == 0 || e->width == 0 || e->height == 0) return false;
  e->target_image = static_cast<int64_t>(clip.origin.z);
  e->target_channel = static_cast<int64_t>(channel);
  e->target_x = static_cast<int64_t>(clip.origin.x);
  e->target_y = static_cast<int64_t>(clip.origin.y);
  return true;
}

// Gradient pixels [first, first + count) of an axis, and the centre of the first one's window.
struct GradientRange {
  int64_t first = 0, count = 0, centre = 0;
};

GradientRange gradient_range(int64_t primary, uint64_t size, uint64_t extent, int64_t secondary, int64_t kernel_offset,
                             const WindowProperties& w) {
  check_near("primaryOffset", primary);
  check_near("secondaryOffset", secondary);
  check_near("kernelOffset", kernel_offset);
  check_stride(w.stride);
  GradientRange range;
  range.first = std::max<int64_t>(0, primary);
  const auto all = static_cast<int64_t>(extent);
  const int64_t end =
      size > static_cast<uint64_t>(2 * kFarthest) + extent ? all : std::min(all, primary + static_cast<int64_t>(size));
  range.count = std::max<int64_t>(0, end - range.first);
  range.centre = secondary + static_cast<int64_t>(w.stride) * (range.first - primary) - kernel_offset;
  return range;
}

}  // namespace

bool resolve_forward(const ForwardProperties& p, const MPS::Image& source, const MPS::Image& destination,
                     PoolEncode* e) {
  e->kind = p.kind;
  e->edge = edge_of(p.edge);
  check_plane("source", source);
  const bool some = resolve_target(p.clip, destination, images_from("offset", p.source, source),
                                   channels_of("source", p.source, source), p.destination_channel, e);
  e->x = axis_of(p.x, p.source.offset.x, e->width);
  e->y = axis_of(p.y, p.source.offset.y, e->height);
  check_taps(p.x.kernel, p.y.kernel, source.width(), source.height());
  e->source_image = p.source.offset.z;
  e->source_channel = static_cast<int64_t>(p.source.channel_offset);
  return some;
}

bool resolve_backward(const GradientProperties& p, const MPS::Image& gradient, const MPS::Image& source,
                      const MPS::Image& destination, PoolEncode* e) {
  e->backward = true;
  e->kind = p.kind;
  e->edge = edge_of(p.edge);
  check_plane("secondary image", source);
  check_plane("primary image", gradient);
  const uint64_t images =
      std::min({images_from("primaryOffset", p.gradient, gradient), images_from("secondaryOffset", p.source, source),
                static_cast<uint64_t>(p.size.depth)});
  const uint64_t channels =
      std::min(channels_of("primary", p.gradient, gradient), channels_of("secondary", p.source, source));
  const bool some = resolve_target(p.clip, destination, images, channels, p.destination_channel, e);

  const GradientRange x =
      gradient_range(p.gradient.offset.x, p.size.width, gradient.width(), p.source.offset.x, p.kernel_offset_x, p.x);
  const GradientRange y =
      gradient_range(p.gradient.offset.y, p.size.height, gradient.height(), p.source.offset.y, p.kernel_offset_y, p.y);
  e->gradient_x = x.first;
  e->gradient_y = y.first;
  e->gradient_width = x.count;
  e->gradient_height = y.count;
  e->x = axis_of(p.x, x.centre, x.count);
  e->y = axis_of(p.y, y.centre, y.count);
  check_taps(p.x.kernel, p.y.kernel, source.width(), source.height());
  e->source_x = first_source_pixel(p.source.offset.x, p.x);
  e->source_y = first_source_pixel(p.source.offset.y, p.y);
  e->source_image = p.source.offset.z;
  e->gradient_image = p.gradient.offset.z;
  e->source_channel = static_cast<int64_t>(p.source.channel_offset);
  e->gradient_channel = static_cast<int64_t>(p.gradient.channel_offset);
  return some;
}

int64_t first_source_pixel(NS::Integer offset, const WindowProperties& window) {
  return std::max<int64_t>(0, offset - window_extent(window.kernel, window.dilation) / 2);
}

bool covers(const PoolEncode& e, const MPS::Image& destination) {
  // A last slice that is used in part has lanes that no kernel writes.
  const NS::UInteger channels = destination.featureChannels();
  return e.images == static_cast<int64_t>(destination.numberOfImages()) &&
         e.channels == static_cast<int64_t>(channels) && (channels <= 2 || channels % 4 == 0) &&
         e.width == static_cast<int64_t>(destination.width()) && e.height == static_cast<int64_t>(destination.height());
}

}  // namespace bnns::mps
