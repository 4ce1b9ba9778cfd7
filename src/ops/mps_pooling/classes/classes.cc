// Names and makers of the ten classes: the whole registration for archives.
#include <cstring>

#include "MetalPerformanceShaders/MetalPerformanceShaders.hpp"
#include "src/mps/kernel/kernel.h"

namespace MPS {

CNNPooling* CNNPooling::alloc() {
  return new CNNPooling;
}

Kernel* CNNPooling::allocSame() const {
  return alloc();
}

const char* CNNPooling::className() const noexcept {
  return "MPSCNNPooling";
}

CNNPoolingMax* CNNPoolingMax::alloc() {
  return new CNNPoolingMax;
}

Kernel* CNNPoolingMax::allocSame() const {
  return alloc();
}

const char* CNNPoolingMax::className() const noexcept {
  return "MPSCNNPoolingMax";
}

CNNPoolingAverage* CNNPoolingAverage::alloc() {
  return new CNNPoolingAverage;
}

Kernel* CNNPoolingAverage::allocSame() const {
  return alloc();
}

const char* CNNPoolingAverage::className() const noexcept {
  return "MPSCNNPoolingAverage";
}

CNNPoolingL2Norm* CNNPoolingL2Norm::alloc() {
  return new CNNPoolingL2Norm;
}

Kernel* CNNPoolingL2Norm::allocSame() const {
  return alloc();
}

const char* CNNPoolingL2Norm::className() const noexcept {
  return "MPSCNNPoolingL2Norm";
}

CNNDilatedPoolingMax* CNNDilatedPoolingMax::alloc() {
  return new CNNDilatedPoolingMax;
}

Kernel* CNNDilatedPoolingMax::allocSame() const {
  return alloc();
}

const char* CNNDilatedPoolingMax::className() const noexcept {
  return "MPSCNNDilatedPoolingMax";
}

CNNPoolingGradient* CNNPoolingGradient::alloc() {
  return new CNNPoolingGradient;
}

Kernel* CNNPoolingGradient::allocSame() const {
  return alloc();
}

const char* CNNPoolingGradient::className() const noexcept {
  return "MPSCNNPoolingGradient";
}

CNNPoolingMaxGradient* CNNPoolingMaxGradient::alloc() {
  return new CNNPoolingMaxGradient;
}

Kernel* CNNPoolingMaxGradient::allocSame() const {
  return alloc();
}

const char* CNNPoolingMaxGradient::className() const noexcept {
  return "MPSCNNPoolingMaxGradient";
}

CNNPoolingAverageGradient* CNNPoolingAverageGradient::alloc() {
  return new CNNPoolingAverageGradient;
}

Kernel* CNNPoolingAverageGradient::allocSame() const {
  return alloc();
}

const char* CNNPoolingAverageGradient::className() const noexcept {
  return "MPSCNNPoolingAverageGradient";
}

CNNPoolingL2NormGradient* CNNPoolingL2NormGradient::alloc() {
  return new CNNPoolingL2NormGradient;
}

Kernel* CNNPoolingL2NormGradient::allocSame() const {
  return alloc();
}

const char* CNNPoolingL2NormGradient::className() const noexcept {
  return "MPSCNNPoolingL2NormGradient";
}

CNNDilatedPoolingMaxGradient* CNNDilatedPoolingMaxGradient::alloc() {
  return new CNNDilatedPoolingMaxGradient;
}

Kernel* CNNDilatedPoolingMaxGradient::allocSame() const {
  return alloc();
}

const char* CNNDilatedPoolingMaxGradient::className() const noexcept {
  return "MPSCNNDilatedPoolingMaxGradient";
}

}  // namespace MPS

namespace bnns::mps {

MPS::Kernel* alloc_kernel(const char* class_name) {
  using Maker = MPS::Kernel* (*)();
  static constexpr struct {
    const char* name;
    Maker make;
  } kClasses[] = {
      {"MPSCNNPooling", []() -> MPS::Kernel* { return MPS::CNNPooling::alloc(); }},
      {"MPSCNNPoolingMax", []() -> MPS::Kernel* { return MPS::CNNPoolingMax::alloc(); }},
      {"MPSCNNPoolingAverage", []() -> MPS::Kernel* { return MPS::CNNPoolingAverage::alloc(); }},
      {"MPSCNNPoolingL2Norm", []() -> MPS::Kernel* { return MPS::CNNPoolingL2Norm::alloc(); }},
      {"MPSCNNDilatedPoolingMax", []() -> MPS::Kernel* { return MPS::CNNDilatedPoolingMax::alloc(); }},
      {"MPSCNNPoolingGradient", []() -> MPS::Kernel* { return MPS::CNNPoolingGradient::alloc(); }},
      {"MPSCNNPoolingMaxGradient", []() -> MPS::Kernel* { return MPS::CNNPoolingMaxGradient::alloc(); }},
      {"MPSCNNPoolingAverageGradient", []() -> MPS::Kernel* { return MPS::CNNPoolingAverageGradient::alloc(); }},
      {"MPSCNNPoolingL2NormGradient", []() -> MPS::Kernel* { return MPS::CNNPoolingL2NormGradient::alloc(); }},
      {"MPSCNNDilatedPoolingMaxGradient", []() -> MPS::Kernel* { return MPS::CNNDilatedPoolingMaxGradient::alloc(); }},
  };
  for (const auto& entry : kClasses) {
    if (std::strcmp(entry.name, class_name) == 0) return entry.make();
  }
  return nullptr;
}

}  // namespace bnns::mps
