// The two default allocators, and what a custom one inherits.
#include <vector>

#include "MetalPerformanceShaders/MPSKernel.hpp"
#include "src/mps/foundation/archive.h"
#include "src/mps/foundation/guard.h"
#include "src/mps/image/image.h"

namespace bnns::mps {
namespace {

class TemporaryAllocator final : public MPS::ImageAllocator {
 public:
  static constexpr char kName[] = "MPSTemporaryImage.defaultAllocator";
  MPS::Image* imageForCommandBuffer(MTL::CommandBuffer* buffer, MPS::ImageDescriptor* descriptor,
                                    MPS::Kernel*) override {
    return MPS::TemporaryImage::temporaryImage(buffer, descriptor);
  }
  const char* archiveName() const override { return kName; }
  const char* className() const noexcept override { return kName; }
};

class PlainAllocator final : public MPS::ImageAllocator {
 public:
  static constexpr char kName[] = "MPSImage.defaultAllocator";
  MPS::Image* imageForCommandBuffer(MTL::CommandBuffer* buffer, MPS::ImageDescriptor* descriptor,
                                    MPS::Kernel*) override {
    MPS::Image* made = buffer ? MPS::Image::alloc()->init(buffer->device(), descriptor) : nullptr;
    return made ? made->autorelease() : nullptr;
  }
  const char* archiveName() const override { return kName; }
  const char* className() const noexcept override { return kName; }
};

}  // namespace

ArchiveTable<MPS::ImageAllocator>& allocator_table() {
  static auto* table = [] {
    using MPS::ImageAllocator;
    auto* made = new ArchiveTable<ImageAllocator>;
    made->add(TemporaryAllocator::kName,
              [](NS::Coder*) -> ImageAllocator* { return MPS::TemporaryImage::defaultAllocator()->retain(); });
    made->add(PlainAllocator::kName,
              [](NS::Coder*) -> ImageAllocator* { return MPS::Image::defaultAllocator()->retain(); });
    return made;
  }();
  return *table;
}

}  // namespace bnns::mps

namespace MPS {

// Both live as long as the process.
ImageAllocator* Image::defaultAllocator() {
  static auto* allocator = new bnns::mps::PlainAllocator;
  return allocator;
}

ImageAllocator* TemporaryImage::defaultAllocator() {
  static auto* allocator = new bnns::mps::TemporaryAllocator;
  return allocator;
}

ImageAllocator::~ImageAllocator() = default;

ImageBatch* ImageAllocator::imageBatchForCommandBuffer(MTL::CommandBuffer* commandBuffer, ImageDescriptor* descriptor,
                                                       Kernel* kernel, NS::UInteger count) {
  std::vector<Image*> images;
  for (NS::UInteger i = 0; i < count; ++i) {
    Image* image = imageForCommandBuffer(commandBuffer, descriptor, kernel);
    if (!image) return nullptr;
    images.push_back(image);
  }
  return ImageBatch::batch(images.data(), count);
}

void ImageAllocator::encode(NS::Coder*) const {}

void ImageAllocator::registerArchiveName(const char* name, ImageAllocator* (*make)(NS::Coder*)) {
  bnns::mps::protect("MPSImageAllocator registerArchiveName", 0, [&] {
    bnns::mps::allocator_table().add(name, make);
    return 0;
  });
}

}  // namespace MPS
