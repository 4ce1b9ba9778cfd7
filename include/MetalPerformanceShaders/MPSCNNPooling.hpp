// Forward pooling. The window of destination pixel i (from the clip's origin) is centred on source pixel
// offset + stride i: with extent E = (kernel - 1) dilation + 1 its taps begin E / 2 before the centre. Reads outside
// the source give 0 (edge mode Zero) or the nearest pixel (Clamp).
//
// init: kernel sizes, then strides (1 where not given); null with a reason in MTLX::lastError() if the device is null,
// a number is 0 or a window has more than 2^28 taps. Encodes refuse windows of more than 2^20 taps that have more than
// 4 times the pixels of the source.
#pragma once

#include "MPSCNNKernel.hpp"

namespace MPS {

// The common base. It can be made, copied and archived; encoding it is refused.
class BNNS_MPS_API CNNPooling : public KernelClass<CNNPooling, CNNKernel> {
 public:
  static CNNPooling* alloc();
  using KernelClass<CNNPooling, CNNKernel>::init;
  CNNPooling* init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight);
  CNNPooling* init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                   NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY);
  CNNPooling* initWithDevice(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight) {
    return init(device, kernelWidth, kernelHeight);
  }
  CNNPooling* initWithDevice(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                             NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY) {
    return init(device, kernelWidth, kernelHeight, strideInPixelsX, strideInPixelsY);
  }
  const char* className() const noexcept override;

 protected:
  CNNPooling() = default;
  ~CNNPooling() override;

  friend class PoolingState;
  void record(bnns::mps::Recorder& recorder, Image* source, Image* destination, bool excludeEdges) const override;
  State* makeState(Image* source, Image* destination, bool excludeEdges) const override;
  Kernel* allocSame() const override;
  virtual int kind() const { return -1; }           // of bnns::mps::PoolKind; -1: none
  virtual MTL::Size zeroPad() const { return {}; }  // width and height are used
};

// The initialisers of a concrete class, forward or gradient.
template <class Self, class Base>
class BNNS_MPS_API PoolingClass : public KernelClass<Self, Base> {
 public:
  using KernelClass<Self, Base>::init;
  Self* init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight) {
    return static_cast<Self*>(Base::init(device, kernelWidth, kernelHeight));
  }
  Self* init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight, NS::UInteger strideInPixelsX,
             NS::UInteger strideInPixelsY) {
    return static_cast<Self*>(Base::init(device, kernelWidth, kernelHeight, strideInPixelsX, strideInPixelsY));
  }
  Self* initWithDevice(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight) {
    return init(device, kernelWidth, kernelHeight);
  }
  Self* initWithDevice(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                       NS::UInteger strideInPixelsX, NS::UInteger strideInPixelsY) {
    return init(device, kernelWidth, kernelHeight, strideInPixelsX, strideInPixelsY);
  }
};

// The largest value. With Zero the zeros outside take part.
class BNNS_MPS_API CNNPoolingMax : public PoolingClass<CNNPoolingMax, CNNPooling> {
 public:
  static CNNPoolingMax* alloc();
  const char* className() const noexcept override;

 protected:
  Kernel* allocSame() const override;
  int kind() const override;
};

// Sum over kernel area (Zero), or over the pixels that the window shares with the image grown by zeroPadSize (Clamp).
class BNNS_MPS_API CNNPoolingAverage : public PoolingClass<CNNPoolingAverage, CNNPooling> {
 public:
  static CNNPoolingAverage* alloc();
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

 private:
  NS::UInteger zeroPadSizeX_ = 0, zeroPadSizeY_ = 0;
};

// Square root of the sum of squares, not divided by anything.
class BNNS_MPS_API CNNPoolingL2Norm : public PoolingClass<CNNPoolingL2Norm, CNNPooling> {
 public:
  static CNNPoolingL2Norm* alloc();
  const char* className() const noexcept override;

 protected:
  Kernel* allocSame() const override;
  int kind() const override;
};

// The largest value of taps that are dilationRate pixels apart. Dilation comes before stride.
class BNNS_MPS_API CNNDilatedPoolingMax : public KernelClass<CNNDilatedPoolingMax, CNNPooling> {
 public:
  static CNNDilatedPoolingMax* alloc();
  using KernelClass<CNNDilatedPoolingMax, CNNPooling>::init;
  CNNDilatedPoolingMax* init(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
                             NS::UInteger dilationRateX, NS::UInteger dilationRateY, NS::UInteger strideInPixelsX,
                             NS::UInteger strideInPixelsY);
  CNNDilatedPoolingMax* initWithDevice(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight,
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
