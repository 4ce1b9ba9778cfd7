// MPS::CNNGradientKernel: the forms with a state.
#include "MetalPerformanceShaders/MPSCNNBinaryKernel.hpp"
#include "src/mps/device/recorder.h"
#include "src/mps/kernel/kernel.h"

namespace MPS {

CNNGradientKernel::~CNNGradientKernel() = default;

Image* CNNGradientKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* sourceGradient, Image* sourceImage,
                                                State* gradientState) {
  ImageBatch* images =
      encodeAllReturning(buffer, ImageBatch::batch(&sourceGradient, 1), ImageBatch::batch(&sourceImage, 1),
                         StateBatch::batch(&gradientState, 1), true, true);
  return images ? images->image(0) : nullptr;
}

void CNNGradientKernel::encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* sourceGradient, Image* sourceImage,
                                              State* gradientState, Image* destinationGradient) {
  if (gradientState && sourceGradient && !bnns::mps::encode_guarded(*this, buffer, false, [&] {
        if (!(options_ & KernelOptionsSkipAPIValidation)) gradientState->checkGradient(*sourceGradient);
        return true;
      })) {
    return;
  }
  CNNBinaryKernel::encodeToCommandBuffer(buffer, sourceGradient, sourceImage, destinationGradient);
}

ImageBatch* CNNGradientKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sourceGradients,
                                                          ImageBatch* sourceImages, StateBatch* gradientStates) {
  return encodeAllReturning(buffer, sourceGradients, sourceImages, gradientStates, true, false);
}

void CNNGradientKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sourceGradients,
                                                   ImageBatch* sourceImages, StateBatch* gradientStates,
                                                   ImageBatch* destinationGradients) {
  if (gradientStates && sourceGradients && !bnns::mps::encode_guarded(*this, buffer, false, [&] {
        bnns::mps::check_batch_length("gradientStates", gradientStates, sourceGradients->count());
        const bool validates = !(options_ & KernelOptionsSkipAPIValidation);
        for (NS::UInteger i = 0; validates && i < gradientStates->count(); ++i) {
          gradientStates->state(i)->checkGradient(*sourceGradients->image(i));
        }
        return true;
      })) {
    return;
  }
  encodeAll(buffer, sourceGradients, sourceImages, destinationGradients, false);
}

void CNNGradientKernel::visitNumbers(const NumberVisitor& visit) const {
  CNNBinaryKernel::visitNumbers(visit);
  visit("kernelOffsetX", kernelOffsetX_);
  visit("kernelOffsetY", kernelOffsetY_);
}

void CNNGradientKernel::assign(const Kernel& other) {
  CNNBinaryKernel::assign(other);
  const auto& same = static_cast<const CNNGradientKernel&>(other);
  kernelOffsetX_ = same.kernelOffsetX_;
  kernelOffsetY_ = same.kernelOffsetY_;
}

void CNNGradientKernel::decode(NS::Coder* coder) {
  CNNBinaryKernel::decode(coder);
  kernelOffsetX_ = coder->decodeInteger("kernelOffsetX");
  kernelOffsetY_ = coder->decodeInteger("kernelOffsetY");
}

}  // namespace MPS
