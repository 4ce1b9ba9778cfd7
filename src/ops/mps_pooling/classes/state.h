// What a pooling gradient needs to know of the forward encode: numbers only.
#pragma once

#include "MetalPerformanceShaders/MetalPerformanceShaders.hpp"
#include "src/ops/mps_pooling/classes/resolve.h"

namespace MPS {

class PoolingState final : public NS::Referencing<PoolingState, NNGradientState> {
 public:
  // The forward encode as it was resolved: clip sizes, counts and all.
  PoolingState(const bnns::mps::ForwardProperties& forward, const bnns::mps::PoolEncode& resolved, const Image& source);

  // Sets a pooling gradient's properties to those that belong to the forward encode; null for kernels of another kind.
  ImageDescriptor* destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates, Kernel* kernel,
                                              ImageDescriptor* suggested) override;

 protected:
  void checkGradient(const Image& gradient) const override;

 private:
  bnns::mps::ForwardProperties forward_;
  NS::UInteger width_, height_, channels_, images_;  // of the forward source
};

}  // namespace MPS
