// Optional: Apple's full names, as Objective-C spells them.
#pragma once

#include "MetalPerformanceShaders.hpp"

using MTLOrigin = MTL::Origin;
using MTLSize = MTL::Size;
using MTLRegion = MTL::Region;
using MPSOffset = MPS::Offset;
using MPSKernelOptions = MPS::KernelOptions;
using MPSImageEdgeMode = MPS::ImageEdgeMode;
using MPSImageFeatureChannelFormat = MPS::ImageFeatureChannelFormat;
using MPSDataLayout = MPS::DataLayout;
using MPSNNPaddingMethod = MPS::NNPaddingMethod;
using MPSImageReadWriteParams = MPS::ImageReadWriteParams;
using MPSImageDescriptor = MPS::ImageDescriptor;
using MPSImage = MPS::Image;
using MPSTemporaryImage = MPS::TemporaryImage;
using MPSImageBatch = MPS::ImageBatch;
using MPSImageAllocator = MPS::ImageAllocator;
using MPSState = MPS::State;
using MPSNNGradientState = MPS::NNGradientState;
using MPSStateBatch = MPS::StateBatch;
using MPSNNPadding = MPS::NNPadding;
using MPSNNDefaultPadding = MPS::NNDefaultPadding;
using MPSKernel = MPS::Kernel;
using MPSCNNKernel = MPS::CNNKernel;
using MPSCNNBinaryKernel = MPS::CNNBinaryKernel;
using MPSCNNGradientKernel = MPS::CNNGradientKernel;
using MPSCNNPooling = MPS::CNNPooling;
using MPSCNNPoolingMax = MPS::CNNPoolingMax;
using MPSCNNPoolingAverage = MPS::CNNPoolingAverage;
using MPSCNNPoolingL2Norm = MPS::CNNPoolingL2Norm;
using MPSCNNDilatedPoolingMax = MPS::CNNDilatedPoolingMax;
using MPSCNNPoolingGradient = MPS::CNNPoolingGradient;
using MPSCNNPoolingMaxGradient = MPS::CNNPoolingMaxGradient;
using MPSCNNPoolingAverageGradient = MPS::CNNPoolingAverageGradient;
using MPSCNNPoolingL2NormGradient = MPS::CNNPoolingL2NormGradient;
using MPSCNNDilatedPoolingMaxGradient = MPS::CNNDilatedPoolingMaxGradient;

inline constexpr MTL::Region MPSRectNoClip = MPS::RectNoClip;
inline NS::UInteger MPSImageBatchIncrementReadCount(MPS::ImageBatch* batch, NS::Integer amount) {
  return MPS::ImageBatchIncrementReadCount(batch, amount);
}
inline bool MPSSupportsMTLDevice(const MTL::Device* device) {
  return MPS::SupportsMTLDevice(device);
}
