// Enumerators as text, for messages and descriptions; "?" for a number that is none.
#pragma once

#include "MetalPerformanceShaders/MPSTypes.hpp"

namespace bnns::mps {

inline const char* name_of(MPS::ImageEdgeMode mode) {
  switch (mode) {
    case MPS::ImageEdgeModeZero:
      return "Zero";
    case MPS::ImageEdgeModeClamp:
      return "Clamp";
    case MPS::ImageEdgeModeMirror:
      return "Mirror";
    case MPS::ImageEdgeModeMirrorWithEdge:
      return "MirrorWithEdge";
    case MPS::ImageEdgeModeConstant:
      return "Constant";
  }
  return "?";
}

inline const char* name_of(MPS::ImageFeatureChannelFormat format) {
  switch (format) {
    case MPS::ImageFeatureChannelFormatNone:
      return "None";
    case MPS::ImageFeatureChannelFormatUnorm8:
      return "Unorm8";
    case MPS::ImageFeatureChannelFormatUnorm16:
      return "Unorm16";
    case MPS::ImageFeatureChannelFormatFloat16:
      return "Float16";
    case MPS::ImageFeatureChannelFormatFloat32:
      return "Float32";
    case MPS::ImageFeatureChannelFormat_reserved0:
      return "_reserved0";
    case MPS::ImageFeatureChannelFormatCount:
      return "Count";
  }
  return "?";
}

}  // namespace bnns::mps
