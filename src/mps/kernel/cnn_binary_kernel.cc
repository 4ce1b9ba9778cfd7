// MPS::CNNBinaryKernel: properties, and the encode forms without a state.
#include <string>

#include "MetalPerformanceShaders/MPSCNNBinaryKernel.hpp"
#include "src/mps/device/recorder.h"
#include "src/mps/foundation/archive.h"
#include "src/mps/foundation/guard.h"
#include "src/mps/kernel/kernel.h"
#include "src/mps/kernel/window.h"

namespace MPS {

using bnns::fail_invalid;
using bnns::mps::encode_guarded;
using bnns::mps::Recorder;

CNNBinaryKernel::CNNBinaryKernel()
    : padding_(bnns::mps::default_padding()), allocator_(NS::RetainPtr(TemporaryImage::defaultAllocator())) {}

CNNBinaryKernel::~CNNBinaryKernel() = default;

template <class P, class Visit>
void CNNBinaryKernel::visit(P& p, Visit&& visit) {
  const auto source = [&](const std::string& prefix, auto& s) {
    visit((prefix + "Offset.x").c_str(), s.offset.x);
    visit((prefix + "Offset.y").c_str(), s.offset.y);
    visit((prefix + "Offset.z").c_str(), s.offset.z);
    visit((prefix + "SourceFeatureChannelOffset").c_str(), s.channelOffset);
    visit((prefix + "SourceFeatureChannelMaxCount").c_str(), s.channelMaxCount);
    visit((prefix + "EdgeMode").c_str(), s.edgeMode);
    visit((prefix + "KernelWidth").c_str(), s.kernelWidth);
    visit((prefix + "KernelHeight").c_str(), s.kernelHeight);
    visit((prefix + "StrideInPixelsX").c_str(), s.strideX);
    visit((prefix + "StrideInPixelsY").c_str(), s.strideY);
    visit((prefix + "DilationRateX").c_str(), s.dilationX);
    visit((prefix + "DilationRateY").c_str(), s.dilationY);
  };
  source("primary", p.primary);
  source("secondary", p.secondary);
  bnns::mps::visit_destination(p, visit);
}

void CNNBinaryKernel::visitNumbers(const NumberVisitor& visitor) const {
  Kernel::visitNumbers(visitor);
  visit(p_, [&](const char* key, const auto& value) { visitor(key, static_cast<NS::Integer>(value)); });
}

void CNNBinaryKernel::encode(NS::Coder* coder) const {
  Kernel::encode(coder);
  bnns::mps::padding_table().encode(padding_.get(), coder, "padding");
  bnns::mps::allocator_table().encode(allocator_.get(), coder, "destinationImageAllocator");
}

void CNNBinaryKernel::decode(NS::Coder* coder) {
  Kernel::decode(coder);
  bnns::mps::require_keys(
      coder, {"primaryKernelWidth", "primaryKernelHeight", "secondaryKernelWidth", "secondaryKernelHeight"});
  visit(p_, [&](const char* key, auto& value) {
    value = static_cast<std::decay_t<decltype(value)>>(coder->decodeInteger(key, static_cast<NS::Integer>(value)));
  });
  bnns::mps::check_window(p_.primary);
  bnns::mps::check_window(p_.secondary);
  if (auto padding = bnns::mps::padding_table().decode(coder, "padding")) padding_ = padding;
  if (auto allocator = bnns::mps::allocator_table().decode(coder, "destinationImageAllocator")) allocator_ = allocator;
}

void CNNBinaryKernel::assign(const Kernel& other) {
  Kernel::assign(other);
  const auto& same = static_cast<const CNNBinaryKernel&>(other);
  p_ = same.p_;
  padding_ = same.padding_;
  allocator_ = same.allocator_;
}

bool CNNBinaryKernel::startWindow(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                                  NS::UInteger dilationX, NS::UInteger dilationY, NS::UInteger strideX,
                                  NS::UInteger strideY) noexcept {
  Source& s = p_.secondary;
  bnns::mps::set_window(s, kernelWidth, kernelHeight, dilationX, dilationY, strideX, strideY);
  p_.primary = s;
  return start(device) && bnns::mps::protect(bnns::mps::Reporter(*this), false, [&] {
           bnns::mps::check_window(s);
           return true;
         });
}

void CNNBinaryKernel::setPadding(NNPadding* padding) {
  padding_ = padding ? NS::RetainPtr(padding) : bnns::mps::default_padding();
}

void CNNBinaryKernel::setDestinationImageAllocator(ImageAllocator* allocator) {
  allocator_ = NS::RetainPtr(allocator ? allocator : TemporaryImage::defaultAllocator());
}

ImageDescriptor* CNNBinaryKernel::makeDescriptor(NS::Array* images, NS::Array* states) {
  Image* primary = bnns::mps::image_at(images, 0, 2);
  Image* secondary = bnns::mps::image_at(images, 1, 2);
  // The derivative with respect to the secondary image has its size, whatever the padding says.
  ImageDescriptor* suggested =
      ImageDescriptor::imageDescriptor(bnns::mps::result_format(primary->featureChannelFormat()), secondary->width(),
                                       secondary->height(), secondary->featureChannels(), secondary->numberOfImages(),
                                       MTL::TextureUsageShaderRead | MTL::TextureUsageShaderWrite);
  return bnns::mps::finish_description(images, states, padding_.get(), this, suggested);
}

ImageDescriptor* CNNBinaryKernel::destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates) {
  return bnns::mps::protect(bnns::mps::Reporter(*this), static_cast<ImageDescriptor*>(nullptr),
                            [&] { return makeDescriptor(sourceImages, sourceStates); });
}

void CNNBinaryKernel::encodeAll(MTL::CommandBuffer* buffer, ImageBatch* primaries, ImageBatch* secondaries,
                                ImageBatch* destinations, bool single) {
  encode_guarded(*this, buffer, 0, [&] {
    Recorder recorder(buffer, *this);
    if (!primaries) fail_invalid("primary is null, or one of its images is");
    const NS::UInteger count = primaries->count();
    bnns::mps::check_batch_length("secondary", secondaries, count);
    bnns::mps::check_batch_length("destination", destinations, count);
    if (!single && recorder.validates()) {
      bnns::mps::check_single_images("primaryImages", primaries);
      bnns::mps::check_single_images("secondaryImages", secondaries);
      bnns::mps::check_single_images("destinationImages", destinations);
      Recorder::check_apart(*primaries, *destinations);
      Recorder::check_apart(*secondaries, *destinations);
    }
    for (NS::UInteger i = 0; i < count; ++i) {
      record(recorder, primaries->image(i), secondaries->image(i), destinations->image(i), false);
    }
    recorder.finish();
    return 0;
  });
}

ImageBatch* CNNBinaryKernel::encodeAllReturning(MTL::CommandBuffer* buffer, ImageBatch* primaries,
                                                ImageBatch* secondaries, StateBatch* states, bool needsStates,
                                                bool single) {
  const auto made = encode_guarded(*this, buffer, NS::SharedPtr<ImageBatch>(), [&] {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    Recorder recorder(buffer, *this);
    if (!primaries || primaries->count() == 0) fail_invalid("primary is null or empty, or one of its images is null");
    const NS::UInteger count = primaries->count();
    bnns::mps::check_batch_length("secondary", secondaries, count);
    if (needsStates) bnns::mps::check_batch_length("gradientStates", states, count);
    if (!single && recorder.validates()) {
      bnns::mps::check_single_images("primaryImages", primaries);
      bnns::mps::check_single_images("secondaryImages", secondaries);
    }
    NS::SharedPtr<ImageBatch> images;
    Image* first = secondaries->image(0);
    for (NS::UInteger i = 0; i < count; ++i) {
      Image* secondary = secondaries->image(i);
      if (secondary->width() != first->width() || secondary->height() != first->height() ||
          secondary->featureChannels() != first->featureChannels()) {
        fail_invalid("secondaryImages[%zu] has another size than secondaryImages[0]", i);
      }
      const NS::Object* pair[] = {primaries->image(i), secondary};
      NS::Array* state = states ? NS::Array::array(states->state(i)) : nullptr;
      ImageDescriptor* descriptor = makeDescriptor(NS::Array::array(pair, 2), state);
      if (i == 0) {
        images = bnns::mps::allocate_images(allocator_.get(), buffer, descriptor, this, p_.destinationChannelOffset,
                                            count, single);
      }
      record(recorder, primaries->image(i), secondary, images->image(i), states != nullptr);
    }
    recorder.finish();
    return images;
  });
  return made ? made->retain()->autorelease() : nullptr;
}

void CNNBinaryKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* primary, Image* secondary,
                                            Image* destination) {
  auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  encodeAll(buffer, ImageBatch::batch(&primary, 1), ImageBatch::batch(&secondary, 1),
            ImageBatch::batch(&destination, 1), true);
}

Image* CNNBinaryKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* primary, Image* secondary) {
  ImageBatch* images = encodeAllReturning(buffer, ImageBatch::batch(&primary, 1), ImageBatch::batch(&secondary, 1),
                                          nullptr, false, true);
  return images ? images->image(0) : nullptr;
}

Image* CNNBinaryKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* primary, Image* secondary,
                                              State** outState, bool) {
  if (outState) *outState = nullptr;
  return encodeToCommandBuffer(buffer, primary, secondary);
}

void CNNBinaryKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* primaries,
                                                 ImageBatch* secondaries, ImageBatch* destinations) {
  encodeAll(buffer, primaries, secondaries, destinations, false);
}

ImageBatch* CNNBinaryKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* primaries,
                                                        ImageBatch* secondaries) {
  return encodeAllReturning(buffer, primaries, secondaries, nullptr, false, false);
}

ImageBatch* CNNBinaryKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* primaries,
                                                        ImageBatch* secondaries, StateBatch** outStates, bool) {
  if (outStates) *outStates = nullptr;
  return encodeBatchToCommandBuffer(buffer, primaries, secondaries);
}

}  // namespace MPS
