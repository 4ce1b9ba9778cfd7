// Plain structs and enumerators of Metal Performance Shaders, with Apple's numbers.
#pragma once

#include "../Metal/Metal.hpp"

namespace bnns::mps {
class Recorder;      // what an encode adds to a command buffer; internal
class Arena;         // memory of a command buffer's temporary images; internal
struct ImageAccess;  // internal
}  // namespace bnns::mps

namespace MPS {

enum KernelOptions : NS::UInteger {
  KernelOptionsNone = 0,
  KernelOptionsSkipAPIValidation = 1,  // only checks that guard memory remain
  KernelOptionsAllowReducedPrecision = 2,
  KernelOptionsDisableInternalTiling = 4,
  KernelOptionsInsertDebugGroups = 8,
  KernelOptionsVerbose = 16,  // one line on stderr per encode
};

enum ImageEdgeMode : NS::UInteger {
  ImageEdgeModeZero = 0,
  ImageEdgeModeClamp = 1,
  ImageEdgeModeMirror = 2,  // this and the next two: refused by the pooling kernels
  ImageEdgeModeMirrorWithEdge = 3,
  ImageEdgeModeConstant = 4,
};

enum ImageFeatureChannelFormat : NS::UInteger {
  ImageFeatureChannelFormatNone = 0,
  ImageFeatureChannelFormatUnorm8 = 1,
  ImageFeatureChannelFormatUnorm16 = 2,
  ImageFeatureChannelFormatFloat16 = 3,
  ImageFeatureChannelFormatFloat32 = 4,
  ImageFeatureChannelFormat_reserved0 = 5,
  ImageFeatureChannelFormatCount = 6,
};

enum DataLayout : NS::UInteger {
  DataLayoutHeightxWidthxFeatureChannels = 0,
  DataLayoutFeatureChannelsxHeightxWidth = 1,
};

enum NNPaddingMethod : NS::UInteger {
  NNPaddingMethodAlignCentered = 0,
  NNPaddingMethodAlignTopLeft = 1,
  NNPaddingMethodAlignBottomRight = 2,
  NNPaddingMethodAlignMask = 3,
  NNPaddingMethodAddRemainderToTopLeft = 0,
  NNPaddingMethodAddRemainderToTopRight = 4,
  NNPaddingMethodAddRemainderToBottomLeft = 8,
  NNPaddingMethodAddRemainderToBottomRight = 12,
  NNPaddingMethodAddRemainderToMask = 12,
  NNPaddingMethodSizeValidOnly = 0,
  NNPaddingMethodSizeSame = 16,
  NNPaddingMethodSizeFull = 32,
  NNPaddingMethodSizeMask = 0x7f0,
  NNPaddingMethodCustomWhitelistForNodeFusion = 1 << 13,
  NNPaddingMethodCustomAllowForNodeFusion = 1 << 13,
  NNPaddingMethodCustom = 1 << 14,
  NNPaddingMethodExcludeEdges = 1 << 15,
};

inline constexpr NNPaddingMethod operator|(NNPaddingMethod a, NNPaddingMethod b) {
  return static_cast<NNPaddingMethod>(static_cast<NS::UInteger>(a) | static_cast<NS::UInteger>(b));
}
inline constexpr KernelOptions operator|(KernelOptions a, KernelOptions b) {
  return static_cast<KernelOptions>(static_cast<NS::UInteger>(a) | static_cast<NS::UInteger>(b));
}

enum StateResourceType : NS::UInteger {
  StateResourceTypeNone = 0,
  StateResourceTypeBuffer = 1,
  StateResourceTypeTexture = 2,
};

struct Offset {
  NS::Integer x = 0, y = 0, z = 0;
};
inline constexpr bool operator==(const Offset& a, const Offset& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

struct ImageReadWriteParams {
  NS::UInteger featureChannelOffset = 0, numberOfFeatureChannelsToReadWrite = 0;
};

inline constexpr MTL::Region RectNoClip{MTL::Origin{0, 0, 0},
                                        MTL::Size{NS::UIntegerMax, NS::UIntegerMax, NS::UIntegerMax}};

// Every device of this library is supported.
inline bool SupportsMTLDevice(const MTL::Device* device) {
  return device != nullptr;
}

// A coder that knows the device for what it decodes.
class BNNS_MPS_API DeviceProvider {
 public:
  virtual MTL::Device* mpsMTLDevice() = 0;

 protected:
  virtual ~DeviceProvider();
};

}  // namespace MPS
