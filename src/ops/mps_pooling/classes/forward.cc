// The five forward classes.
#include "MetalPerformanceShaders/MPSCNNPooling.hpp"
#include "src/core/error.h"
#include "src/mps/device/recorder.h"
#include "src/mps/foundation/describe.h"
#include "src/mps/kernel/window.h"
#include "src/ops/mps_pooling/classes/resolve.h"
#include "src/ops/mps_pooling/classes/state.h"

namespace MPS {
namespace {

using bnns::mps::ForwardProperties;
using bnns::mps::PoolEncode;
using bnns::mps::PoolKind;

template <class P>
ForwardProperties forward_properties(const P& p, int kind, MTL::Size pad, bool exclude_edges) {
  if (kind < 0) bnns::fail_invalid("is the base of the pooling classes and cannot be encoded");
  ForwardProperties f;
  f.kind = static_cast<PoolKind>(kind);
  // NNPaddingMethodExcludeEdges: averages count the image's pixels alone (D13).
  f.edge = exclude_edges && f.kind == PoolKind::average ? ImageEdgeModeClamp : p.edgeMode;
  f.x = {p.kernelWidth, p.strideX, p.dilationX, pad.width};
  f.y = {p.kernelHeight, p.strideY, p.dilationY, pad.height};
  f.source = {p.offset, p.sourceChannelOffset, p.sourceChannelMaxCount};
  f.clip = p.clipRect;
  f.destination_channel = p.destinationChannelOffset;
  return f;
}

}  // namespace

CNNPooling::~CNNPooling() = default;

CNNPooling* CNNPooling::init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight) {
  return init(device, kernelWidth, kernelHeight, 1, 1);
}

CNNPooling* CNNPooling::init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                             NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY) {
  if (startWindow(device, kernelWidth, kernelHeight, 1, 1, strideInPixelsX, strideInPixelsY)) return this;
  release();
  return nullptr;
}

CNNDilatedPoolingMax* CNNDilatedPoolingMax::init(MTL::Device* device, NS::UInteger kernelWidth,
                                                 NS::UInteger kernelHeight, NS::UInteger dilationRateX,
                                                 NS::UInteger dilationRateY, NS::UInteger strideInPixelsX,
                                                 NS::UInteger strideInPixelsY) {
  if (startWindow(device, kernelWidth, kernelHeight, dilationRateX, dilationRateY, strideInPixelsX, strideInPixelsY)) {
    return this;
  }
  release();
  return nullptr;
}

void CNNPooling::record(bnns::mps::Recorder& recorder, Image* source, Image* destination, bool excludeEdges) const {
  const ForwardProperties properties = forward_properties(p_, kind(), zeroPad(), excludeEdges);
  recorder.source(source, "source image");
  recorder.destination(destination, "destination image");
  if (recorder.validates()) bnns::mps::Recorder::check_apart(*source, *destination);
  PoolEncode encode;
  if (!bnns::mps::resolve_forward(properties, *source, *destination, &encode)) return;
  encode.source = recorder.view(*source);
  encode.target = recorder.view(*destination, bnns::mps::covers(encode, *destination));
  recorder.add(bnns::mps::Encode(encode, bnns::mps::kPoolDevices));
}

State* CNNPooling::makeState(Image* source, Image* destination, bool excludeEdges) const {
  const ForwardProperties properties = forward_properties(p_, kind(), zeroPad(), excludeEdges);
  PoolEncode encode;
  bnns::mps::resolve_forward(properties, *source, *destination, &encode);
  return new PoolingState(properties, encode, *source);
}

void CNNPoolingAverage::visitNumbers(const NumberVisitor& visit) const {
  CNNKernel::visitNumbers(visit);
  visit("zeroPadSizeX", static_cast<NS::Integer>(zeroPadSizeX_));
  visit("zeroPadSizeY", static_cast<NS::Integer>(zeroPadSizeY_));
}

void CNNPoolingAverage::describe(std::string& text) const {
  CNNKernel::describe(text);
  text += ", zeroPadSize " + bnns::mps::text_of(zeroPadSizeX_, zeroPadSizeY_);
}

void CNNPoolingAverage::decode(NS::Coder* coder) {
  CNNKernel::decode(coder);
  zeroPadSizeX_ = static_cast<NS::UInteger>(coder->decodeInteger("zeroPadSizeX"));
  zeroPadSizeY_ = static_cast<NS::UInteger>(coder->decodeInteger("zeroPadSizeY"));
}

void CNNPoolingAverage::assign(const Kernel& other) {
  CNNKernel::assign(other);
  const auto& same = static_cast<const CNNPoolingAverage&>(other);
  zeroPadSizeX_ = same.zeroPadSizeX_;
  zeroPadSizeY_ = same.zeroPadSizeY_;
}

int CNNPoolingMax::kind() const {
  return static_cast<int>(PoolKind::max);
}

int CNNPoolingAverage::kind() const {
  return static_cast<int>(PoolKind::average);
}

int CNNPoolingL2Norm::kind() const {
  return static_cast<int>(PoolKind::l2_norm);
}

int CNNDilatedPoolingMax::kind() const {
  return static_cast<int>(PoolKind::max);
}

}  // namespace MPS
