// MPS::CNNKernel: properties, the encode forms, and the padding policy. What is computed is the subclass's record().
#include <algorithm>
#include <vector>

#include "MetalPerformanceShaders/MPSCNNKernel.hpp"
#include "src/mps/device/recorder.h"
#include "src/mps/foundation/archive.h"
#include "src/mps/foundation/guard.h"
#include "src/mps/kernel/kernel.h"
#include "src/mps/kernel/padding.h"
#include "src/mps/kernel/window.h"

namespace MPS {

using bnns::fail_invalid;
using bnns::mps::encode_guarded;
using bnns::mps::Recorder;

CNNKernel::CNNKernel()
    : padding_(bnns::mps::default_padding()), allocator_(NS::RetainPtr(TemporaryImage::defaultAllocator())) {}

CNNKernel::~CNNKernel() = default;

template <class P, class Visit>
void CNNKernel::visit(P& p, Visit&& visit) {
  visit("offset.x", p.offset.x);
  visit("offset.y", p.offset.y);
  visit("offset.z", p.offset.z);
  bnns::mps::visit_destination(p, visit);
  visit("sourceFeatureChannelOffset", p.sourceChannelOffset);
  visit("sourceFeatureChannelMaxCount", p.sourceChannelMaxCount);
  visit("edgeMode", p.edgeMode);
  visit("kernelWidth", p.kernelWidth);
  visit("kernelHeight", p.kernelHeight);
  visit("strideInPixelsX", p.strideX);
  visit("strideInPixelsY", p.strideY);
  visit("dilationRateX", p.dilationX);
  visit("dilationRateY", p.dilationY);
}

void CNNKernel::visitNumbers(const NumberVisitor& visitor) const {
  Kernel::visitNumbers(visitor);
  visit(p_, [&](const char* key, const auto& value) { visitor(key, static_cast<NS::Integer>(value)); });
}

void CNNKernel::encode(NS::Coder* coder) const {
  Kernel::encode(coder);
  bnns::mps::padding_table().encode(padding_.get(), coder, "padding");
  bnns::mps::allocator_table().encode(allocator_.get(), coder, "destinationImageAllocator");
}

void CNNKernel::decode(NS::Coder* coder) {
  Kernel::decode(coder);
  bnns::mps::require_keys(coder, {"kernelWidth", "kernelHeight"});
  visit(p_, [&](const char* key, auto& value) {
    value = static_cast<std::decay_t<decltype(value)>>(coder->decodeInteger(key, static_cast<NS::Integer>(value)));
  });
  bnns::mps::check_window(p_);
  if (auto padding = bnns::mps::padding_table().decode(coder, "padding")) padding_ = padding;
  if (auto allocator = bnns::mps::allocator_table().decode(coder, "destinationImageAllocator")) allocator_ = allocator;
}

void CNNKernel::assign(const Kernel& other) {
  Kernel::assign(other);
  const auto& same = static_cast<const CNNKernel&>(other);
  p_ = same.p_;
  padding_ = same.padding_;
  allocator_ = same.allocator_;
}

bool CNNKernel::startWindow(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                            NS::UInteger dilationX, NS::UInteger dilationY, NS::UInteger strideX,
                            NS::UInteger strideY) noexcept {
  bnns::mps::set_window(p_, kernelWidth, kernelHeight, dilationX, dilationY, strideX, strideY);
  return start(device) && bnns::mps::protect(bnns::mps::Reporter(*this), false, [&] {
           bnns::mps::check_window(p_);
           return true;
         });
}

void CNNKernel::setPadding(NNPadding* padding) {
  padding_ = padding ? NS::RetainPtr(padding) : bnns::mps::default_padding();
}

void CNNKernel::setDestinationImageAllocator(ImageAllocator* allocator) {
  allocator_ = NS::RetainPtr(allocator ? allocator : TemporaryImage::defaultAllocator());
}

ImageDescriptor* CNNKernel::makeDescriptor(NS::Array* images, NS::Array* states) {
  Image* source = bnns::mps::image_at(images, 0, 1);
  const NNPaddingMethod method = padding_->paddingMethod();
  const auto axis = [&](bool vertical, NS::UInteger size, NS::UInteger kernel, NS::UInteger dilation, NS::UInteger s) {
    const int64_t extent = bnns::mps::window_extent(kernel, dilation);
    const auto padded =
        bnns::mps::pad_axis(method, vertical, static_cast<int64_t>(size), extent, static_cast<int64_t>(s));
    if (padded.size < 1) {
      fail_invalid("no window of %s %td fits %zu source pixels", vertical ? "height" : "width",
                   static_cast<std::ptrdiff_t>(extent), size);
    }
    return padded;
  };
  const auto x = axis(false, source->width(), p_.kernelWidth, p_.dilationX, p_.strideX);
  const auto y = axis(true, source->height(), p_.kernelHeight, p_.dilationY, p_.strideY);
  if (p_.sourceChannelOffset >= source->featureChannels()) {
    fail_invalid("sourceFeatureChannelOffset is %zu, but the source has %zu channels", p_.sourceChannelOffset,
                 source->featureChannels());
  }
  p_.offset.x = static_cast<NS::Integer>(x.offset);
  p_.offset.y = static_cast<NS::Integer>(y.offset);
  ImageDescriptor* suggested = ImageDescriptor::imageDescriptor(
      bnns::mps::result_format(source->featureChannelFormat()), static_cast<NS::UInteger>(x.size),
      static_cast<NS::UInteger>(y.size),
      std::min(p_.sourceChannelMaxCount, source->featureChannels() - p_.sourceChannelOffset), source->numberOfImages(),
      MTL::TextureUsageShaderRead | MTL::TextureUsageShaderWrite);
  return bnns::mps::finish_description(images, states, padding_.get(), this, suggested);
}

ImageDescriptor* CNNKernel::destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates) {
  return bnns::mps::protect(bnns::mps::Reporter(*this), static_cast<ImageDescriptor*>(nullptr),
                            [&] { return makeDescriptor(sourceImages, sourceStates); });
}

void CNNKernel::encodeAll(MTL::CommandBuffer* buffer, ImageBatch* sources, StateBatch* states, ImageBatch* destinations,
                          bool single) {
  encode_guarded(*this, buffer, 0, [&] {
    Recorder recorder(buffer, *this);
    if (!sources) fail_invalid("source is null, or one of its images is");
    bnns::mps::check_batch_length("destination", destinations, sources->count());
    if (states) bnns::mps::check_batch_length("destinationStates", states, sources->count());
    if (!single && recorder.validates()) {
      bnns::mps::check_single_images("sourceImages", sources);
      bnns::mps::check_single_images("destinationImages", destinations);
      Recorder::check_apart(*sources, *destinations);
    }
    for (NS::UInteger i = 0; i < sources->count(); ++i) {
      record(recorder, sources->image(i), destinations->image(i), false);
    }
    recorder.finish();
    return 0;
  });
}

ImageBatch* CNNKernel::encodeAllReturning(MTL::CommandBuffer* buffer, ImageBatch* sources, StateBatch** outStates,
                                          bool single) {
  if (outStates) *outStates = nullptr;
  NS::SharedPtr<StateBatch> states;
  const auto made = encode_guarded(*this, buffer, NS::SharedPtr<ImageBatch>(), [&] {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    Recorder recorder(buffer, *this);
    if (!sources || sources->count() == 0) fail_invalid("source is null or empty, or one of its images is null");
    const NS::UInteger count = sources->count();
    if (!single && recorder.validates()) bnns::mps::check_single_images("sourceImages", sources);
    Image* first = sources->image(0);
    for (NS::UInteger i = 1; i < count; ++i) {
      Image* image = sources->image(i);
      // One descriptor and one offset serve all of the batch.
      if (image->width() != first->width() || image->height() != first->height() ||
          image->featureChannels() != first->featureChannels()) {
        fail_invalid("sourceImages[%zu] has another size than sourceImages[0]", i);
      }
    }
    ImageDescriptor* descriptor = makeDescriptor(NS::Array::array(first), nullptr);
    const bool exclude = (padding_->paddingMethod() & NNPaddingMethodExcludeEdges) != 0;
    auto images = bnns::mps::allocate_images(allocator_.get(), buffer, descriptor, this, p_.destinationChannelOffset,
                                             count, single);
    std::vector<NS::SharedPtr<State>> owned;
    std::vector<State*> pointers;
    for (NS::UInteger i = 0; i < count; ++i) {
      record(recorder, sources->image(i), images->image(i), exclude);
      if (!outStates) continue;
      owned.push_back(NS::TransferPtr(makeState(sources->image(i), images->image(i), exclude)));
      pointers.push_back(owned.back().get());
    }
    if (outStates && pointers[0]) states = NS::RetainPtr(StateBatch::batch(pointers.data(), count));
    recorder.finish();
    return images;
  });
  if (made && outStates && states) *outStates = states.detach()->autorelease();
  return made ? made->retain()->autorelease() : nullptr;
}

void CNNKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* source, Image* destination) {
  auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
  encodeAll(buffer, ImageBatch::batch(&source, 1), nullptr, ImageBatch::batch(&destination, 1), true);
}

void CNNKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* source, State*, Image* destination) {
  encodeToCommandBuffer(buffer, source, destination);  // a pooling state is complete when it is made
}

Image* CNNKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* source) {
  return encodeToCommandBuffer(buffer, source, static_cast<State**>(nullptr), false);
}

Image* CNNKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* source, State** outState, bool) {
  StateBatch* states = nullptr;
  ImageBatch* images = encodeAllReturning(buffer, ImageBatch::batch(&source, 1), outState ? &states : nullptr, true);
  if (outState) *outState = states ? states->state(0) : nullptr;
  return images ? images->image(0) : nullptr;
}

void CNNKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sources, ImageBatch* destinations) {
  encodeAll(buffer, sources, nullptr, destinations, false);
}

void CNNKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sources,
                                           StateBatch* destinationStates, ImageBatch* destinations) {
  encodeAll(buffer, sources, destinationStates, destinations, false);
}

ImageBatch* CNNKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sources) {
  return encodeAllReturning(buffer, sources, nullptr, false);
}

ImageBatch* CNNKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sources,
                                                  StateBatch** outStates, bool) {
  return encodeAllReturning(buffer, sources, outStates, false);
}

}  // namespace MPS
