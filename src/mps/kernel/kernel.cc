#include "src/mps/kernel/kernel.h"

#include <cstdio>
#include <cstring>

#include "src/mps/device/device.h"
#include "src/mps/foundation/guard.h"

namespace bnns::mps {

NS::SharedPtr<MPS::NNPadding> default_padding() {
  static MPS::NNPadding* padding = MPS::NNDefaultPadding::paddingWithMethod(MPS::NNPaddingMethodSizeSame)->retain();
  return NS::RetainPtr(padding);
}

MPS::Image* image_at(NS::Array* images, NS::UInteger index, NS::UInteger count) {
  if (!images || images->count() < count) {
    fail_invalid("sourceImages has %zu images, expected %zu", images ? images->count() : 0, count);
  }
  auto* image = dynamic_cast<MPS::Image*>(images->object(index));
  if (!image) fail_invalid("sourceImages[%zu] is not an image", index);
  return image;
}

MPS::ImageDescriptor* finish_description(NS::Array* images, NS::Array* states, MPS::NNPadding* padding,
                                         MPS::Kernel* kernel, MPS::ImageDescriptor* suggested) {
  for (NS::UInteger i = 0; states && i < states->count(); ++i) {
    auto* state = dynamic_cast<MPS::State*>(states->object(i));
    if (!state) fail_invalid("sourceStates[%zu] is not a state", i);
    suggested = state->destinationImageDescriptor(images, states, kernel, suggested);
    if (!suggested) fail_invalid("sourceStates[%zu] does not fit this kernel", i);
  }
  if (padding->paddingMethod() & MPS::NNPaddingMethodCustom) {
    suggested = padding->destinationImageDescriptor(images, states, kernel, suggested);
    if (!suggested) fail_invalid("the padding returned no descriptor");
  }
  return suggested;
}

NS::SharedPtr<MPS::ImageBatch> allocate_images(MPS::ImageAllocator* allocator, MTL::CommandBuffer* buffer,
                                               MPS::ImageDescriptor* descriptor, MPS::Kernel* kernel,
                                               NS::UInteger channel_offset, NS::UInteger count, bool single) {
  clear_last_error();
  MPS::ImageBatch* batch = nullptr;
  if (single) {
    MPS::Image* image = allocator->imageForCommandBuffer(buffer, descriptor, kernel);
    batch = image ? MPS::ImageBatch::batch(&image, 1) : nullptr;
  } else {
    batch = allocator->imageBatchForCommandBuffer(buffer, descriptor, kernel, count);
  }
  if (!batch || batch->count() != count) {
    char reason[Error::kTextSize];  // an allocator of the caller's may have left none
    std::snprintf(reason, sizeof reason, "%s%.200s", *last_error() ? ": " : "", last_error());
    fail_invalid("the image allocator made %zu of %zu images%.202s", batch ? batch->count() : 0, count, reason);
  }
  for (NS::UInteger i = 0; i < count; ++i) {
    const MPS::Image& image = *batch->image(i);
    const NS::UInteger channels = image.featureChannels(), wanted = descriptor->featureChannels();
    if (image.width() != descriptor->width() || image.height() != descriptor->height() ||
        image.numberOfImages() != descriptor->numberOfImages() ||
        (channels != wanted && !(channel_offset != 0 && channels > wanted))) {
      fail_invalid("the image allocator made %zu x %zu x %zu, %zu images, expected %zu x %zu x %zu, %zu as described",
                   image.width(), image.height(), channels, image.numberOfImages(), descriptor->width(),
                   descriptor->height(), wanted, descriptor->numberOfImages());
    }
  }
  return NS::RetainPtr(batch);
}

MPS::ImageFeatureChannelFormat result_format(MPS::ImageFeatureChannelFormat source) {
  return source == MPS::ImageFeatureChannelFormatFloat32 ? source : MPS::ImageFeatureChannelFormatFloat16;
}

void check_batch_length(const char* what, const NS::Array* batch, NS::UInteger expected) {
  if (!batch) fail_invalid("%s is null, or one of its members is", what);
  if (batch->count() != expected) fail_invalid("%s has length %zu, expected %zu", what, batch->count(), expected);
}

void check_single_images(const char* what, const MPS::ImageBatch* batch) {
  for (NS::UInteger i = 0; i < batch->count(); ++i) {
    if (batch->image(i)->numberOfImages() != 1) {
      fail_invalid("%s[%zu] has numberOfImages %zu, expected 1 in a batch", what, i, batch->image(i)->numberOfImages());
    }
  }
}

}  // namespace bnns::mps

namespace MPS {

namespace {
constexpr NS::Integer kFormatVersion = 1;
}

Kernel::~Kernel() = default;

void Kernel::setLabel(NS::String* label) {
  label_ = NS::RetainPtr(label);
}

bool Kernel::start(MTL::Device* device) noexcept {
  return bnns::mps::protect(bnns::mps::Reporter(*this), false, [&] {
    device_ = &bnns::mps::device_impl(device);
    return true;
  });
}

Kernel* Kernel::copy(MTL::Device* device) const {
  return bnns::mps::protect(bnns::mps::Reporter(*this), static_cast<Kernel*>(nullptr), [&] {
    auto made = NS::TransferPtr(allocSame());
    made->assign(*this);
    made->device_ = device ? &bnns::mps::device_impl(device) : device_;
    return made.detach();
  });
}

void Kernel::assign(const Kernel& other) {
  options_ = other.options_;
  label_ = other.label_;
}

void Kernel::encode(NS::Coder* coder) const {
  coder->encodeString(NS::String::string(className()), "class");
  coder->encodeInteger(kFormatVersion, "version");
  coder->encodeString(label_.get(), "label");
  visitNumbers([&](const char* key, NS::Integer value) { coder->encodeInteger(value, key); });
}

void Kernel::visitNumbers(const NumberVisitor& visit) const {
  visit("options", static_cast<NS::Integer>(options_));
}

void Kernel::decode(NS::Coder* coder) {
  options_ = static_cast<KernelOptions>(coder->decodeInteger("options"));
  label_ = NS::RetainPtr(coder->decodeString("label"));
}

Kernel* Kernel::startFrom(NS::Coder* coder, MTL::Device* device, bool provided) noexcept {
  const bool ok = bnns::mps::protect(bnns::mps::Reporter(*this), false, [&] {
    auto pool = NS::TransferPtr(NS::AutoreleasePool::alloc()->init());
    if (!coder) bnns::fail_invalid("coder is null");
    NS::SharedPtr<MTL::Device> chosen = NS::RetainPtr(device);
    if (!provided) {
      auto* provider = dynamic_cast<DeviceProvider*>(coder);
      chosen = provider ? NS::RetainPtr(provider->mpsMTLDevice()) : NS::TransferPtr(MTL::CreateSystemDefaultDevice());
    }
    device_ = &bnns::mps::device_impl(chosen.get());
    NS::String* name = coder->decodeString("class");
    if (!name || std::strcmp(name->utf8String(), className()) != 0) {
      bnns::fail_invalid("the archive holds a %s", name ? name->utf8String() : "(nothing)");
    }
    const NS::Integer version = coder->decodeInteger("version");
    if (version != kFormatVersion) {
      bnns::fail_unsupported("the archive has format version %td, expected %td", static_cast<std::ptrdiff_t>(version),
                             static_cast<std::ptrdiff_t>(kFormatVersion));
    }
    decode(coder);
    return true;
  });
  if (ok) return this;
  release();
  return nullptr;
}

NS::Data* Kernel::serialize() const {
  return bnns::mps::protect(bnns::mps::Reporter(*this), static_cast<NS::Data*>(nullptr), [&] {
    NS::Coder* coder = NS::Coder::coder();
    encode(coder);
    return coder->data();
  });
}

Kernel* Kernel::deserialize(const NS::Data* data, MTL::Device* device) {
  return bnns::mps::protect("MPSKernel deserialize", static_cast<Kernel*>(nullptr), [&]() -> Kernel* {
    NS::Coder* coder = NS::Coder::coder(data);
    if (!coder) bnns::fail_invalid("the data is no archive of a kernel");
    NS::String* name = coder->decodeString("class");
    Kernel* made = name ? bnns::mps::alloc_kernel(name->utf8String()) : nullptr;
    if (!made) bnns::fail_unsupported("class %s", name ? name->utf8String() : "(none)");
    return made->startFrom(coder, device, device != nullptr);
  });
}

}  // namespace MPS
