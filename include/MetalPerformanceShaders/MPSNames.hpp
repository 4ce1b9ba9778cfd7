// Optional: Apple's full names, as Objective-C and C spell them: types, constants and functions.
#pragma once

#include "MetalPerformanceShaders.hpp"

using NSInteger = NS::Integer;
using NSUInteger = NS::UInteger;
using NSRange = NS::Range;
using MTLDevice = MTL::Device;
using MTLCommandQueue = MTL::CommandQueue;
using MTLCommandBuffer = MTL::CommandBuffer;
using MTLTexture = MTL::Texture;
using MTLTextureDescriptor = MTL::TextureDescriptor;
using MTLPixelFormat = MTL::PixelFormat;
using MTLTextureType = MTL::TextureType;
using MTLStorageMode = MTL::StorageMode;
using MTLCPUCacheMode = MTL::CPUCacheMode;
using MTLTextureUsage = MTL::TextureUsage;
using MTLCommandBufferStatus = MTL::CommandBufferStatus;
using MTLCommandBufferError = MTL::CommandBufferError;
using MTLOrigin = MTL::Origin;
using MTLSize = MTL::Size;
using MTLRegion = MTL::Region;
using MPSOffset = MPS::Offset;
using MPSKernelOptions = MPS::KernelOptions;
using MPSImageEdgeMode = MPS::ImageEdgeMode;
using MPSImageFeatureChannelFormat = MPS::ImageFeatureChannelFormat;
using MPSDataLayout = MPS::DataLayout;
using MPSNNPaddingMethod = MPS::NNPaddingMethod;
using MPSStateResourceType = MPS::StateResourceType;
using MPSImageReadWriteParams = MPS::ImageReadWriteParams;
using MPSDeviceProvider = MPS::DeviceProvider;
using MPSImageDescriptor = MPS::ImageDescriptor;
using MPSImage = MPS::Image;
using MPSTemporaryImage = MPS::TemporaryImage;
using MPSImageBatch = MPS::ImageBatch;
using MPSImageAllocator = MPS::ImageAllocator;
using MPSStateTextureInfo = MPS::StateTextureInfo;
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

inline constexpr MTL::PixelFormat MTLPixelFormatInvalid = MTL::PixelFormatInvalid;
inline constexpr MTL::PixelFormat MTLPixelFormatR8Unorm = MTL::PixelFormatR8Unorm;
inline constexpr MTL::PixelFormat MTLPixelFormatR16Unorm = MTL::PixelFormatR16Unorm;
inline constexpr MTL::PixelFormat MTLPixelFormatR16Float = MTL::PixelFormatR16Float;
inline constexpr MTL::PixelFormat MTLPixelFormatRG8Unorm = MTL::PixelFormatRG8Unorm;
inline constexpr MTL::PixelFormat MTLPixelFormatR32Float = MTL::PixelFormatR32Float;
inline constexpr MTL::PixelFormat MTLPixelFormatRG16Unorm = MTL::PixelFormatRG16Unorm;
inline constexpr MTL::PixelFormat MTLPixelFormatRG16Float = MTL::PixelFormatRG16Float;
inline constexpr MTL::PixelFormat MTLPixelFormatRGBA8Unorm = MTL::PixelFormatRGBA8Unorm;
inline constexpr MTL::PixelFormat MTLPixelFormatRG32Float = MTL::PixelFormatRG32Float;
inline constexpr MTL::PixelFormat MTLPixelFormatRGBA16Unorm = MTL::PixelFormatRGBA16Unorm;
inline constexpr MTL::PixelFormat MTLPixelFormatRGBA16Float = MTL::PixelFormatRGBA16Float;
inline constexpr MTL::PixelFormat MTLPixelFormatRGBA32Float = MTL::PixelFormatRGBA32Float;

inline constexpr MTL::TextureType MTLTextureType2D = MTL::TextureType2D;
inline constexpr MTL::TextureType MTLTextureType2DArray = MTL::TextureType2DArray;

inline constexpr MTL::StorageMode MTLStorageModeShared = MTL::StorageModeShared;
inline constexpr MTL::StorageMode MTLStorageModeManaged = MTL::StorageModeManaged;
inline constexpr MTL::StorageMode MTLStorageModePrivate = MTL::StorageModePrivate;

inline constexpr MTL::CPUCacheMode MTLCPUCacheModeDefaultCache = MTL::CPUCacheModeDefaultCache;
inline constexpr MTL::CPUCacheMode MTLCPUCacheModeWriteCombined = MTL::CPUCacheModeWriteCombined;

inline constexpr MTL::TextureUsage MTLTextureUsageUnknown = MTL::TextureUsageUnknown;
inline constexpr MTL::TextureUsage MTLTextureUsageShaderRead = MTL::TextureUsageShaderRead;
inline constexpr MTL::TextureUsage MTLTextureUsageShaderWrite = MTL::TextureUsageShaderWrite;

inline constexpr MTL::CommandBufferStatus MTLCommandBufferStatusNotEnqueued = MTL::CommandBufferStatusNotEnqueued;
inline constexpr MTL::CommandBufferStatus MTLCommandBufferStatusEnqueued = MTL::CommandBufferStatusEnqueued;
inline constexpr MTL::CommandBufferStatus MTLCommandBufferStatusCommitted = MTL::CommandBufferStatusCommitted;
inline constexpr MTL::CommandBufferStatus MTLCommandBufferStatusScheduled = MTL::CommandBufferStatusScheduled;
inline constexpr MTL::CommandBufferStatus MTLCommandBufferStatusCompleted = MTL::CommandBufferStatusCompleted;
inline constexpr MTL::CommandBufferStatus MTLCommandBufferStatusError = MTL::CommandBufferStatusError;

inline constexpr MTL::CommandBufferError MTLCommandBufferErrorNone = MTL::CommandBufferErrorNone;
inline constexpr MTL::CommandBufferError MTLCommandBufferErrorInternal = MTL::CommandBufferErrorInternal;
inline constexpr MTL::CommandBufferError MTLCommandBufferErrorOutOfMemory = MTL::CommandBufferErrorOutOfMemory;
inline constexpr MTL::CommandBufferError MTLCommandBufferErrorInvalidResource = MTL::CommandBufferErrorInvalidResource;

inline constexpr MPS::KernelOptions MPSKernelOptionsNone = MPS::KernelOptionsNone;
inline constexpr MPS::KernelOptions MPSKernelOptionsSkipAPIValidation = MPS::KernelOptionsSkipAPIValidation;
inline constexpr MPS::KernelOptions MPSKernelOptionsAllowReducedPrecision = MPS::KernelOptionsAllowReducedPrecision;
inline constexpr MPS::KernelOptions MPSKernelOptionsDisableInternalTiling = MPS::KernelOptionsDisableInternalTiling;
inline constexpr MPS::KernelOptions MPSKernelOptionsInsertDebugGroups = MPS::KernelOptionsInsertDebugGroups;
inline constexpr MPS::KernelOptions MPSKernelOptionsVerbose = MPS::KernelOptionsVerbose;

inline constexpr MPS::ImageEdgeMode MPSImageEdgeModeZero = MPS::ImageEdgeModeZero;
inline constexpr MPS::ImageEdgeMode MPSImageEdgeModeClamp = MPS::ImageEdgeModeClamp;
inline constexpr MPS::ImageEdgeMode MPSImageEdgeModeMirror = MPS::ImageEdgeModeMirror;
inline constexpr MPS::ImageEdgeMode MPSImageEdgeModeMirrorWithEdge = MPS::ImageEdgeModeMirrorWithEdge;
inline constexpr MPS::ImageEdgeMode MPSImageEdgeModeConstant = MPS::ImageEdgeModeConstant;

inline constexpr MPS::ImageFeatureChannelFormat MPSImageFeatureChannelFormatNone = MPS::ImageFeatureChannelFormatNone;
inline constexpr MPS::ImageFeatureChannelFormat MPSImageFeatureChannelFormatUnorm8 =
    MPS::ImageFeatureChannelFormatUnorm8;
inline constexpr MPS::ImageFeatureChannelFormat MPSImageFeatureChannelFormatUnorm16 =
    MPS::ImageFeatureChannelFormatUnorm16;
inline constexpr MPS::ImageFeatureChannelFormat MPSImageFeatureChannelFormatFloat16 =
    MPS::ImageFeatureChannelFormatFloat16;
inline constexpr MPS::ImageFeatureChannelFormat MPSImageFeatureChannelFormatFloat32 =
    MPS::ImageFeatureChannelFormatFloat32;
inline constexpr MPS::ImageFeatureChannelFormat MPSImageFeatureChannelFormat_reserved0 =
    MPS::ImageFeatureChannelFormat_reserved0;
inline constexpr MPS::ImageFeatureChannelFormat MPSImageFeatureChannelFormatCount = MPS::ImageFeatureChannelFormatCount;

inline constexpr MPS::DataLayout MPSDataLayoutHeightxWidthxFeatureChannels =
    MPS::DataLayoutHeightxWidthxFeatureChannels;
inline constexpr MPS::DataLayout MPSDataLayoutFeatureChannelsxHeightxWidth =
    MPS::DataLayoutFeatureChannelsxHeightxWidth;

inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAlignCentered = MPS::NNPaddingMethodAlignCentered;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAlignTopLeft = MPS::NNPaddingMethodAlignTopLeft;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAlignBottomRight = MPS::NNPaddingMethodAlignBottomRight;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAlignMask = MPS::NNPaddingMethodAlignMask;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAddRemainderToTopLeft =
    MPS::NNPaddingMethodAddRemainderToTopLeft;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAddRemainderToTopRight =
    MPS::NNPaddingMethodAddRemainderToTopRight;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAddRemainderToBottomLeft =
    MPS::NNPaddingMethodAddRemainderToBottomLeft;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAddRemainderToBottomRight =
    MPS::NNPaddingMethodAddRemainderToBottomRight;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodAddRemainderToMask = MPS::NNPaddingMethodAddRemainderToMask;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodSizeValidOnly = MPS::NNPaddingMethodSizeValidOnly;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodSizeSame = MPS::NNPaddingMethodSizeSame;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodSizeFull = MPS::NNPaddingMethodSizeFull;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodSizeMask = MPS::NNPaddingMethodSizeMask;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodCustomWhitelistForNodeFusion =
    MPS::NNPaddingMethodCustomWhitelistForNodeFusion;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodCustomAllowForNodeFusion =
    MPS::NNPaddingMethodCustomAllowForNodeFusion;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodCustom = MPS::NNPaddingMethodCustom;
inline constexpr MPS::NNPaddingMethod MPSNNPaddingMethodExcludeEdges = MPS::NNPaddingMethodExcludeEdges;

inline constexpr MPS::StateResourceType MPSStateResourceTypeNone = MPS::StateResourceTypeNone;
inline constexpr MPS::StateResourceType MPSStateResourceTypeBuffer = MPS::StateResourceTypeBuffer;
inline constexpr MPS::StateResourceType MPSStateResourceTypeTexture = MPS::StateResourceTypeTexture;

inline constexpr MTL::Region MPSRectNoClip = MPS::RectNoClip;

inline constexpr MTL::Origin MTLOriginMake(NS::UInteger x, NS::UInteger y, NS::UInteger z) {
  return MTL::Origin(x, y, z);
}
inline constexpr MTL::Size MTLSizeMake(NS::UInteger width, NS::UInteger height, NS::UInteger depth) {
  return MTL::Size(width, height, depth);
}
inline constexpr MTL::Region MTLRegionMake1D(NS::UInteger x, NS::UInteger width) {
  return MTL::Region(x, 0, width, 1);
}
inline constexpr MTL::Region MTLRegionMake2D(NS::UInteger x, NS::UInteger y, NS::UInteger width, NS::UInteger height) {
  return MTL::Region(x, y, width, height);
}
inline constexpr MTL::Region MTLRegionMake3D(NS::UInteger x, NS::UInteger y, NS::UInteger z, NS::UInteger width,
                                             NS::UInteger height, NS::UInteger depth) {
  return MTL::Region(x, y, z, width, height, depth);
}
inline NS::Range NSMakeRange(NS::UInteger location, NS::UInteger length) {
  return NS::Range::Make(location, length);
}

// Both give one reference to the caller.
inline MTL::Device* MTLCreateSystemDefaultDevice() {
  return MTL::CreateSystemDefaultDevice();
}
inline NS::Array* MTLCopyAllDevices() {
  return MTL::CopyAllDevices();
}
inline bool MPSSupportsMTLDevice(const MTL::Device* device) {
  return MPS::SupportsMTLDevice(device);
}

inline NS::UInteger MPSImageBatchIncrementReadCount(MPS::ImageBatch* batch, NS::Integer amount) {
  return MPS::ImageBatchIncrementReadCount(batch, amount);
}
inline void MPSImageBatchSynchronize(MPS::ImageBatch* batch, MTL::CommandBuffer* commandBuffer) {
  MPS::ImageBatchSynchronize(batch, commandBuffer);
}
inline NS::UInteger MPSImageBatchResourceSize(MPS::ImageBatch* batch) {
  return MPS::ImageBatchResourceSize(batch);
}
inline NS::Integer MPSImageBatchIterate(MPS::ImageBatch* batch,
                                        const std::function<NS::Integer(MPS::Image*, NS::UInteger)>& iterator) {
  return MPS::ImageBatchIterate(batch, iterator);
}
inline NS::UInteger MPSStateBatchIncrementReadCount(MPS::StateBatch* batch, NS::Integer amount) {
  return MPS::StateBatchIncrementReadCount(batch, amount);
}
inline void MPSStateBatchSynchronize(MPS::StateBatch* batch, MTL::CommandBuffer* commandBuffer) {
  MPS::StateBatchSynchronize(batch, commandBuffer);
}
inline NS::UInteger MPSStateBatchResourceSize(MPS::StateBatch* batch) {
  return MPS::StateBatchResourceSize(batch);
}
