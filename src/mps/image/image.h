// What the rest of the library sees of an image.
#pragma once

#include "MetalPerformanceShaders/MPSImage.hpp"
#include "src/mps/device/command_buffer.h"
#include "src/mps/image/texture.h"

namespace bnns::mps {

struct ImageAccess {
  // Texels of four channels; throws Error for formats that make no image.
  static TextureShape shape(const MPS::Image& image);
  static int lanes(size_t channels) { return channels >= 3 ? 4 : static_cast<int>(channels); }
  static size_t slices(size_t channels) { return (channels + 3) / 4; }

  // The memory, allocated at first use; throws Error. For temporary images: buffer is the one that records, and a new
  // block that holds anything else than zeros is cleared by a step of it unless all of the image is about to be
  // written.
  static TextureImpl& texture(MPS::Image& image, CommandBufferImpl* buffer = nullptr, bool overwritten = false);
  static bool has_memory(const MPS::Image& image) { return image.texture_.load(std::memory_order_acquire) != nullptr; }
  static ImageView view(MPS::Image& image, TextureImpl& texture);
  static size_t bytes(const MPS::Image& image);
  // The bytes of this image (of a view: not those of its neighbours).
  static Fill fill(MPS::Image& image, TextureImpl& texture);

  // Throws if the image cannot be used by an encode on this buffer.
  static void check_usable(const MPS::Image& image, const char* what, const CommandBufferImpl& buffer);
  // One encode has read it.
  static void count_read(MPS::Image& image) noexcept;
  static bool is_temporary(const MPS::Image& image) { return image.isTemporary(); }
  static MPS::Image* view_of(MPS::Image& image, size_t index);  // +1 reference
  static size_t first_slice(const MPS::Image& image) { return image.first_ * slices(image.channels_); }
};

// The format's pixel type; false for formats that make no image.
bool pixel_type(MPS::ImageFeatureChannelFormat format, PixelType* type);

}  // namespace bnns::mps
