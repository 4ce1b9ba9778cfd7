// MPS::CNNGradientKernel: the forms with a state.
#include "MetalPerformanceShaders/MPSCNNBinaryKernel.hpp"
#include "src/mps/kernel.h"
#include "src/mps/recorder.h"

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
                                              State*, Image* destinationGradient) {
  CNNBinaryKernel::encodeToCommandBuffer(buffer, sourceGradient, sourceImage, destinationGradient);
}

ImageBatch* CNNGradientKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sourceGradients,
                                                          ImageBatch* sourceImages, StateBatch* gradientStates) {
  return encodeAllReturning(buffer, sourceGradients, sourceImages, gradientStates, true, false);
}

void CNNGradientKernel::encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sourceGradients,
                                                   ImageBatch* sourceImages, StateBatch* gradientStates,
                                                   ImageBatch* destinationGradients) {
  if (gradientStates && sourceGradients && gradientStates->count() != sourceGradients->count()) {
    bnns::mps::encode_guarded(*this, buffer, 0, [&]() -> int {
      bnns::mps::check_batch_length("gradientStates", gradientStates, sourceGradients->count());
      return 0;
    });
    return;
  }
  encodeAll(buffer, sourceGradients, sourceImages, destinationGradients, false);
}

void CNNGradientKernel::encode(NS::Coder* coder) const {
  CNNBinaryKernel::encode(coder);
  coder->encodeInteger(kernelOffsetX_, "kernelOffsetX");
  coder->encodeInteger(kernelOffsetY_, "kernelOffsetY");
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
