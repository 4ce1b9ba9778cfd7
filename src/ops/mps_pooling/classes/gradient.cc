// The five gradient classes.
#include "MetalPerformanceShaders/MPSCNNPoolingGradient.hpp"
#include "src/core/error.h"
#include "src/mps/device/recorder.h"
#include "src/mps/foundation/describe.h"
#include "src/ops/mps_pooling/classes/resolve.h"

namespace MPS {

using bnns::mps::GradientProperties;
using bnns::mps::PoolEncode;
using bnns::mps::PoolKind;
using bnns::mps::Recorder;

CNNPoolingGradient::~CNNPoolingGradient() = default;

CNNPoolingGradient* CNNPoolingGradient::init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight) {
  return init(device, kernelWidth, kernelHeight, 1, 1);
}

CNNPoolingGradient* CNNPoolingGradient::init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                                             NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY) {
  if (startWindow(device, kernelWidth, kernelHeight, 1, 1, strideInPixelsX, strideInPixelsY)) return this;
  release();
  return nullptr;
}

CNNDilatedPoolingMaxGradient* CNNDilatedPoolingMaxGradient::init(MTL::Device* device, NS::UInteger kernelWidth,
                                                                 NS::UInteger kernelHeight, NS::UInteger dilationRateX,
                                                                 NS::UInteger dilationRateY,
                                                                 NS::UInteger strideInPixelsX,
                                                                 NS::UInteger strideInPixelsY) {
  if (startWindow(device, kernelWidth, kernelHeight, dilationRateX, dilationRateY, strideInPixelsX, strideInPixelsY)) {
    return this;
  }
  release();
  return nullptr;
}

void CNNPoolingGradient::record(Recorder& recorder, Image* primary, Image* secondary, Image* destination,
                                bool clear) const {
  if (kind() < 0) bnns::fail_invalid("is the base of the gradient classes and cannot be encoded");
  GradientProperties p;
  p.kind = static_cast<PoolKind>(kind());
  p.edge = p_.secondary.edgeMode;
  // D3: the secondary kernel and dilation, the primary stride.
  p.x = {p_.secondary.kernelWidth, p_.primary.strideX, p_.secondary.dilationX, zeroPad().width};
  p.y = {p_.secondary.kernelHeight, p_.primary.strideY, p_.secondary.dilationY, zeroPad().height};
  p.gradient = {p_.primary.offset, p_.primary.channelOffset, p_.primary.channelMaxCount};
  p.source = {p_.secondary.offset, p_.secondary.channelOffset, p_.secondary.channelMaxCount};
  p.kernel_offset_x = kernelOffsetX_;
  p.kernel_offset_y = kernelOffsetY_;
  p.size = sourceSize_;
  p.clip = p_.clipRect;
  p.destination_channel = p_.destinationChannelOffset;

  recorder.source(primary, "primary image");
  recorder.source(secondary, "secondary image");
  recorder.destination(destination, "destination image");
  if (recorder.validates()) {
    Recorder::check_apart(*primary, *destination);
    Recorder::check_apart(*secondary, *destination);
  }
  PoolEncode encode;
  const bool some = bnns::mps::resolve_backward(p, *primary, *secondary, *destination, &encode);
  // From a state the result is aligned to the source, whatever y0 would be: windows that lie wholly beyond the right or
  // lower edge have a y0 outside the image, but with Clamp they still reach its last pixel.
  if (clear) encode.source_x = encode.target_x, encode.source_y = encode.target_y;
  const bool all = some && bnns::mps::covers(encode, *destination);
  if (clear && !all) recorder.clear(*destination);
  if (!some) return;
  encode.gradient = recorder.view(*primary);
  // The average's derivative does not depend on the source: an image that was never written gets no memory for it.
  encode.source = p.kind == PoolKind::average ? recorder.size_view(*secondary) : recorder.view(*secondary);
  encode.target = recorder.view(*destination, all);
  recorder.add(bnns::mps::Encode(encode, bnns::mps::kPoolDevices));
}

void CNNPoolingGradient::visitNumbers(const NumberVisitor& visit) const {
  CNNGradientKernel::visitNumbers(visit);
  visit("sourceSize.width", static_cast<NS::Integer>(sourceSize_.width));
  visit("sourceSize.height", static_cast<NS::Integer>(sourceSize_.height));
  visit("sourceSize.depth", static_cast<NS::Integer>(sourceSize_.depth));
}

void CNNPoolingGradient::describe(std::string& text) const {
  CNNGradientKernel::describe(text);
  text += ", sourceSize " + bnns::mps::text_of(sourceSize_);
}

void CNNPoolingGradient::decode(NS::Coder* coder) {
  CNNGradientKernel::decode(coder);
  // -1 is all bits set: the default, everything.
  sourceSize_.width = static_cast<NS::UInteger>(coder->decodeInteger("sourceSize.width", -1));
  sourceSize_.height = static_cast<NS::UInteger>(coder->decodeInteger("sourceSize.height", -1));
  sourceSize_.depth = static_cast<NS::UInteger>(coder->decodeInteger("sourceSize.depth", -1));
}

void CNNPoolingGradient::assign(const Kernel& other) {
  CNNGradientKernel::assign(other);
  sourceSize_ = static_cast<const CNNPoolingGradient&>(other).sourceSize_;
}

void CNNPoolingAverageGradient::visitNumbers(const NumberVisitor& visit) const {
  CNNPoolingGradient::visitNumbers(visit);
  visit("zeroPadSizeX", static_cast<NS::Integer>(zeroPadSizeX_));
  visit("zeroPadSizeY", static_cast<NS::Integer>(zeroPadSizeY_));
}

void CNNPoolingAverageGradient::describe(std::string& text) const {
  CNNPoolingGradient::describe(text);
  text += ", zeroPadSize " + bnns::mps::text_of(zeroPadSizeX_, zeroPadSizeY_);
}

void CNNPoolingAverageGradient::decode(NS::Coder* coder) {
  CNNPoolingGradient::decode(coder);
  zeroPadSizeX_ = static_cast<NS::UInteger>(coder->decodeInteger("zeroPadSizeX"));
  zeroPadSizeY_ = static_cast<NS::UInteger>(coder->decodeInteger("zeroPadSizeY"));
}

void CNNPoolingAverageGradient::assign(const Kernel& other) {
  CNNPoolingGradient::assign(other);
  setZeroPad(static_cast<const CNNPoolingAverageGradient&>(other).zeroPad());
}

void CNNPoolingAverageGradient::setZeroPad(MTL::Size size) {
  zeroPadSizeX_ = size.width;
  zeroPadSizeY_ = size.height;
}

int CNNPoolingMaxGradient::kind() const {
  return static_cast<int>(PoolKind::max);
}

int CNNPoolingAverageGradient::kind() const {
  return static_cast<int>(PoolKind::average);
}

int CNNPoolingL2NormGradient::kind() const {
  return static_cast<int>(PoolKind::l2_norm);
}

int CNNDilatedPoolingMaxGradient::kind() const {
  return static_cast<int>(PoolKind::max);
}

}  // namespace MPS
