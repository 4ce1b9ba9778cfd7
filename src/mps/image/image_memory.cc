// Memory of images: allocated at first use; temporary images borrow it from their command buffer.
#include "src/mps/foundation/guard.h"
#include "src/mps/image/image.h"

namespace bnns::mps {
namespace {

ForkMutex allocation_mutex;  // needs no destructor: images may outlive static variables

// A texture around a new block; the block is not lost if there is no memory for the object itself.
TextureImpl* make_texture(DeviceImpl& device, const TextureShape& shape, Block block, std::shared_ptr<Arena> arena) {
  try {
    return new TextureImpl(device, shape, block, arena);
  } catch (...) {
    arena ? arena->put(block) : device.backend().free(block.data, block.bytes);
    throw;
  }
}

}  // namespace

TextureShape ImageAccess::shape(const MPS::Image& image) {
  TextureShape shape;
  shape.type = image.textureType();
  shape.format = image.pixelFormat();
  shape.width = image.width_;
  shape.height = image.height_;
  if (__builtin_mul_overflow(image.images_, slices(image.channels_), &shape.length)) {
    fail_invalid("%zu images of %zu channels are too many", image.images_, image.channels_);
  }
  shape.storage = image.isTemporary() ? MTL::StorageModePrivate : MTL::StorageModeManaged;
  shape.usage = image.usage_;
  return shape;
}

size_t ImageAccess::bytes(const MPS::Image& image) {
  return shape(image).bytes();
}

TextureImpl& ImageAccess::texture(MPS::Image& image, CommandBufferImpl* buffer, bool overwritten) {
  if (MTL::Texture* known = image.texture_.load(std::memory_order_acquire)) return static_cast<TextureImpl&>(*known);
  DeviceImpl& device = device_impl(image.device_);
  const TextureShape shape = ImageAccess::shape(image);
  const size_t bytes = shape.bytes();
  TextureImpl* made = nullptr;
  if (image.isTemporary()) {  // belongs to one command buffer, so to one thread
    auto& temporary = static_cast<MPS::TemporaryImage&>(image);
    if (buffer) buffer->reserve(1, 0);
    const Block block = temporary.arena_->take(bytes);
    made = make_texture(device, shape, block, temporary.arena_);
    if (buffer && !block.zero && !overwritten) buffer->add(Fill{block.data, bytes});
    image.texture_.store(made, std::memory_order_release);
    return *made;
  }
  const ForkLock lock(allocation_mutex);
  if (MTL::Texture* known = image.texture_.load(std::memory_order_acquire)) return static_cast<TextureImpl&>(*known);
  made = make_texture(device, shape, {device.backend().allocate(bytes, true), bytes, true}, nullptr);
  image.texture_.store(made, std::memory_order_release);
  return *made;
}

ImageView ImageAccess::view(MPS::Image& image, TextureImpl& texture) {
  ImageView view;
  view.data = texture.row(first_slice(image), 0);
  pixel_type(image.format_, &view.type);
  view.width = static_cast<int64_t>(image.width_);
  view.height = static_cast<int64_t>(image.height_);
  view.slices = static_cast<int64_t>(slices(image.channels_));
  view.lanes = lanes(image.channels_);
  return view;
}

Fill ImageAccess::fill(MPS::Image& image, TextureImpl& texture) {
  return {texture.row(first_slice(image), 0), bytes(image)};
}

void ImageAccess::check_usable(const MPS::Image& image, const char* what, const CommandBufferImpl& buffer) {
  if (!image.device_) fail_invalid("%s was allocated but not initialised", what);
  if (image.device_ != buffer.device()) {
    fail_invalid("%s is on another device than the command buffer", what);
  }
  if (!image.isTemporary()) return;
  const auto& temporary = static_cast<const MPS::TemporaryImage&>(image);
  if (temporary.arena_ != buffer.arena()) fail_invalid("%s is a temporary image of another command buffer", what);
  if (temporary.reads_ == 0) {
    fail_invalid("%s is a temporary image that was read as often as its readCount said: its memory is gone", what);
  }
}

void ImageAccess::count_read(MPS::Image& image) noexcept {
  if (!image.isTemporary()) return;
  auto& temporary = static_cast<MPS::TemporaryImage&>(image);
  if (temporary.reads_ != 0) temporary.setReadCount(temporary.reads_ - 1);
}

MPS::Image* ImageAccess::view_of(MPS::Image& image, size_t index) {
  TextureImpl& memory = texture(image);
  MPS::Image* made = MPS::Image::alloc();
  made->device_ = image.device_;
  made->width_ = image.width_;
  made->height_ = image.height_;
  made->channels_ = image.channels_;
  made->images_ = 1;
  made->first_ = image.first_ + index;
  made->format_ = image.format_;
  made->usage_ = image.usage_;
  made->texture_.store(memory.retain(), std::memory_order_release);
  return made;
}

}  // namespace bnns::mps

namespace MPS {

using bnns::mps::ImageAccess;

TemporaryImage* TemporaryImage::temporaryImage(MTL::CommandBuffer* commandBuffer, const ImageDescriptor* descriptor) {
  return bnns::mps::protect("MPSTemporaryImage", static_cast<TemporaryImage*>(nullptr), [&] {
    auto& buffer = bnns::mps::open_buffer(commandBuffer);
    if (!descriptor) bnns::fail_invalid("descriptor is null");
    auto made = NS::TransferPtr(new TemporaryImage);
    made->describe(buffer.device(), *descriptor);
    made->arena_ = buffer.arena();
    return made.detach()->autorelease();
  });
}

TemporaryImage::~TemporaryImage() = default;

void TemporaryImage::setReadCount(NS::UInteger count) {
  if (reads_ == 0 && count != 0) {
    bnns::mps::refuse("MPSTemporaryImage setReadCount",
                      "readCount is 0 and cannot be raised to %zu: the memory is gone", count);
    return;
  }
  reads_ = count;
  if (count != 0) return;
  // The block goes back to the command buffer's arena; steps that are recorded already run before any new user's.
  if (MTL::Texture* texture = texture_.exchange(nullptr, std::memory_order_acq_rel)) texture->release();
}

const char* TemporaryImage::className() const noexcept {
  return "MPSTemporaryImage";
}

}  // namespace MPS
