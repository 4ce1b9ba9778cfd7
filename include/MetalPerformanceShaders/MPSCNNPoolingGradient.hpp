// Pooling gradients: d loss / d source from the gradient of the destination (primary) and the source (secondary).
//
// Gradient pixels j of [primaryOffset, primaryOffset + sourceSize) count; pixel primaryOffset owns the window centred
// on secondaryOffset, the next ones follow at the stride. Destination pixel clipRect.origin + t is the derivative with
// respect to source pixel y0 + t, where y0 = max(0, secondaryOffset - E / 2), normally 0. Every pixel of the clip is
// written, 0 where no window reaches. Normally secondaryOffset is the forward offset, primaryOffset the forward clip's
// origin, sourceSize its size, secondaryEdgeMode the forward edge mode; a state sets all of this. With a state the
// gradient image must hold what the forward encode wrote: smaller ones and ones with fewer channels are refused.
#pragma once

#include "MPSCNNBinaryKernel.hpp"
#include "MPSCNNPooling.hpp"

namespace MPS {

// The common base. It can be made, copied and archived; encoding it is refused.
class BNNS_MPS_API CNNPoolingGradient : public KernelClass<CNNPoolingGradient, CNNGradientKernel> {
 public:
  static CNNPoolingGradient* alloc();
  using KernelClass<CNNPoolingGradient, CNNGradientKernel>::init;
  CNNPoolingGradient* init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight);
  CNNPoolingGradient* init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                           NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY);
  CNNPoolingGradient* initWithDevice(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight) {
    return init(device, kernelWidth, kernelHeight);
  }
  CNNPoolingGradient* initWithDevice(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                                     NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY) {
    return init(device, kernelWidth, kernelHeight, strideInPixelsX, strideInPixelsY);
  }
  // How much of the primary image counts; depth: images.
  MTL::Size sourceSize() const { return sourceSize_; }
  void setSourceSize(MTL::Size size) { sourceSize_ = size; }
  const char* className() const noexcept override;

 protected:
  CNNPoolingGradient() = default;
  ~CNNPoolingGradient() override;

  friend class PoolingState;
  void visitNumbers(const NumberVisitor& visit) const override;
  void describe(std::string& text) const override;
  void record(bnns::mps::Recorder& recorder, Image* primary, Image* secondary, Image* destination,
              bool clear) const override;
  Kernel* allocSame() const override;
  void assign(const Kernel& other) override;
  void decode(NS::Coder* coder) override;
  virtual int kind() const { return -1; }
  virtual MTL::Size zeroPad() const { return {}; }
  virtual void setZeroPad(MTL::Size) {}

 private:
  MTL::Size sourceSize_{NS::UIntegerMax, NS::UIntegerMax, NS::UIntegerMax};
};

// The whole gradient goes to the first maximum in row-major order; it is lost where a zero outside is larger.
class BNNS_MPS_API CNNPoolingMaxGradient : public PoolingClass<CNNPoolingMaxGradient, CNNPoolingGradient> {
 public:
  static CNNPoolingMaxGradient* alloc();
  const char* className() const noexcept override;

 protected:
  Kernel* allocSame() const override;
  int kind() const override;
};

// Only the secondary image's size counts; it need never have been written.
class BNNS_MPS_API CNNPoolingAverageGradient : public PoolingClass<CNNPoolingAverageGradient, CNNPoolingGradient> {
 public:
  static CNNPoolingAverageGradient* alloc();
  NS::UInteger zeroPadSizeX() const { return zeroPadSizeX_; }
  NS::UInteger zeroPadSizeY() const { return zeroPadSizeY_; }
  void setZeroPadSizeX(NS::UInteger size) { zeroPadSizeX_ = size; }
  void setZeroPadSizeY(NS::UInteger size) { zeroPadSizeY_ = size; }
  const char* className() const noexcept override;

 protected:
  void visitNumbers(const NumberVisitor& visit) const override;
  void describe(std::string& text) const override;
  Kernel* allocSame() const override;
  void assign(const Kernel& other) override;
  void decode(NS::Coder* coder) override;
  int kind() const override;
  MTL::Size zeroPad() const override { return {zeroPadSizeX_, zeroPadSizeY_, 0}; }
  void setZeroPad(MTL::Size size) override;

 private:
  NS::UInteger zeroPadSizeX_ = 0, zeroPadSizeY_ = 0;
};

// source / norm; 0 where the norm is 0.
class BNNS_MPS_API CNNPoolingL2NormGradient : public PoolingClass<CNNPoolingL2NormGradient, CNNPoolingGradient> {
 public:
  static CNNPoolingL2NormGradient* alloc();
  const char* className() const noexcept override;

 protected:
  Kernel* allocSame() const override;
  int kind() const override;
};

// Dilation comes before stride.
class BNNS_MPS_API CNNDilatedPoolingMaxGradient : public KernelClass<CNNDilatedPoolingMaxGradient, CNNPoolingGradient> {
 public:
  static CNNDilatedPoolingMaxGradient* alloc();
  using KernelClass<CNNDilatedPoolingMaxGradient, CNNPoolingGradient>::init;
  CNNDilatedPoolingMaxGradient* init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                                     NS::UInteger dilationRateX, NS::UInteger dilationRateY,
                                     NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY);
  CNNDilatedPoolingMaxGradient* init(MTL::Device*, NS::UInteger, NS::UInteger, NS::UInteger, NS::UInteger) = delete;
  CNNDilatedPoolingMaxGradient* initWithDevice(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                                               NS::UInteger dilationRateX, NS::UInteger dilationRateY,
                                               NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY) {
    return init(device, kernelWidth, kernelHeight, dilationRateX, dilationRateY, strideInPixelsX, strideInPixelsY);
  }
  const char* className() const noexcept override;

 protected:
  Kernel* allocSame() const override;
  int kind() const override;
};

}  // namespace MPS
