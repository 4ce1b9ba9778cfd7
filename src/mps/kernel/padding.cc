#include "src/mps/kernel/padding.h"

#include "MetalPerformanceShaders/MetalPerformanceShaders.hpp"
#include "src/mps/foundation/archive.h"
#include "src/mps/foundation/guard.h"

namespace bnns::mps {
namespace {

constexpr char kName[] = "MPSNNDefaultPadding";

MPS::NNPadding* decode_default(NS::Coder* coder) {
  const auto method = static_cast<MPS::NNPaddingMethod>(coder->decodeInteger("paddingMethod", 16));
  if (coder->decodeInteger("clamps") == 0) return MPS::NNDefaultPadding::paddingWithMethod(method)->retain();
  const bool same = (method & MPS::NNPaddingMethodSizeMask) == MPS::NNPaddingMethodSizeSame;
  return (same ? MPS::NNDefaultPadding::paddingForTensorflowAveragePooling()
               : MPS::NNDefaultPadding::paddingForTensorflowAveragePoolingValidOnly())
      ->retain();
}

}  // namespace

ArchiveTable<MPS::NNPadding>& padding_table() {
  static auto* table = [] {
    auto* made = new ArchiveTable<MPS::NNPadding>;
    made->add(kName, decode_default);
    return made;
  }();
  return *table;
}

PaddedAxis pad_axis(MPS::NNPaddingMethod method, bool vertical, int64_t source, int64_t extent, int64_t stride) {
  const auto bits = static_cast<NS::UInteger>(method);
  int64_t style = 0;
  switch (bits & MPS::NNPaddingMethodSizeMask) {
    case MPS::NNPaddingMethodSizeValidOnly:
      style = -1;
      break;
    case MPS::NNPaddingMethodSizeSame:
      break;
    case MPS::NNPaddingMethodSizeFull:
      style = 1;
      break;
    default:
      fail_invalid("padding method %#zx has no known size", static_cast<size_t>(bits));
  }
  PaddedAxis axis;
  // C's truncating division throughout, as Apple's published sample has it.
  axis.size = (source + style * (extent - 1) + stride - 1) / stride;
  const int64_t extra = (axis.size - 1) * stride + extent - source;
  // Remainder bits: 0 top left, 1 top right, 2 bottom left, 3 bottom right.
  const NS::UInteger remainder = (bits & MPS::NNPaddingMethodAddRemainderToMask) >> 2;
  const bool to_first_side = vertical ? remainder < 2 : remainder % 2 == 0;
  int64_t left = 0;
  switch (bits & MPS::NNPaddingMethodAlignMask) {
    case MPS::NNPaddingMethodAlignCentered:
      left = (extra + (to_first_side ? 1 : 0)) / 2;
      break;
    case MPS::NNPaddingMethodAlignTopLeft:
      left = extra;
      break;
    case MPS::NNPaddingMethodAlignBottomRight:
      break;
    default:
      fail_invalid("padding method %#zx has no known alignment", static_cast<size_t>(bits));
  }
  axis.offset = extent / 2 - left;
  return axis;
}

}  // namespace bnns::mps

namespace MPS {

NNPadding::~NNPadding() = default;

NS::String* NNPadding::label() const {
  return NS::String::string(className());
}

ImageDescriptor* NNPadding::destinationImageDescriptor(NS::Array*, NS::Array*, Kernel*, ImageDescriptor* suggested) {
  return suggested;
}

NNPadding* NNPadding::inverse() const {
  return nullptr;
}

void NNPadding::encode(NS::Coder*) const {}

void NNPadding::registerArchiveName(const char* name, NNPadding* (*make)(NS::Coder*)) {
  bnns::mps::protect("MPSNNPadding registerArchiveName", 0, [&] {
    bnns::mps::padding_table().add(name, make);
    return 0;
  });
}

NNDefaultPadding* NNDefaultPadding::make(NNPaddingMethod method, bool clamps, const char* label) {
  auto* made = new NNDefaultPadding;
  made->method_ = method;
  made->clamps_ = clamps;
  made->label_ = label;
  return made->autorelease();
}

NNDefaultPadding* NNDefaultPadding::paddingWithMethod(NNPaddingMethod method) {
  return make(method, false, "MPSNNDefaultPadding");
}

NNDefaultPadding* NNDefaultPadding::paddingForTensorflowAveragePooling() {
  return make(NNPaddingMethodCustom | NNPaddingMethodAddRemainderToBottomRight | NNPaddingMethodSizeSame, true,
              "TensorFlow average pooling, same");
}

NNDefaultPadding* NNDefaultPadding::paddingForTensorflowAveragePoolingValidOnly() {
  return make(NNPaddingMethodCustom | NNPaddingMethodAddRemainderToBottomRight | NNPaddingMethodSizeValidOnly, true,
              "TensorFlow average pooling, valid only");
}

NS::String* NNDefaultPadding::label() const {
  return NS::String::string(label_);
}

ImageDescriptor* NNDefaultPadding::destinationImageDescriptor(NS::Array*, NS::Array*, Kernel* kernel,
                                                              ImageDescriptor* suggested) {
  if (clamps_) {
    if (auto* forward = dynamic_cast<CNNKernel*>(kernel)) forward->setEdgeMode(ImageEdgeModeClamp);
    if (auto* gradient = dynamic_cast<CNNBinaryKernel*>(kernel)) gradient->setSecondaryEdgeMode(ImageEdgeModeClamp);
  }
  return suggested;
}

const char* NNDefaultPadding::archiveName() const {
  return bnns::mps::kName;
}

void NNDefaultPadding::encode(NS::Coder* coder) const {
  coder->encodeInteger(static_cast<NS::Integer>(method_), "paddingMethod");
  coder->encodeInteger(clamps_ ? 1 : 0, "clamps");
}

const char* NNDefaultPadding::className() const noexcept {
  return "MPSNNDefaultPadding";
}

}  // namespace MPS
