// Kernels from two source images, primary and secondary, to one destination image; and gradient kernels, whose primary
// image is the gradient that comes from the next layer and whose secondary image is what the forward kernel read.
#pragma once

#include "MPSKernel.hpp"

namespace MPS {

class BNNS_MPS_API CNNBinaryKernel : public NS::Referencing<CNNBinaryKernel, Kernel> {
 public:
  Offset primaryOffset() const { return p_.primary.offset; }
  void setPrimaryOffset(Offset offset) { p_.primary.offset = offset; }
  Offset secondaryOffset() const { return p_.secondary.offset; }
  void setSecondaryOffset(Offset offset) { p_.secondary.offset = offset; }
  MTL::Region clipRect() const { return p_.clipRect; }
  void setClipRect(MTL::Region rect) { p_.clipRect = rect; }
  NS::UInteger destinationFeatureChannelOffset() const { return p_.destinationChannelOffset; }
  void setDestinationFeatureChannelOffset(NS::UInteger offset) { p_.destinationChannelOffset = offset; }
  NS::UInteger primarySourceFeatureChannelOffset() const { return p_.primary.channelOffset; }
  void setPrimarySourceFeatureChannelOffset(NS::UInteger offset) { p_.primary.channelOffset = offset; }
  NS::UInteger secondarySourceFeatureChannelOffset() const { return p_.secondary.channelOffset; }
  void setSecondarySourceFeatureChannelOffset(NS::UInteger offset) { p_.secondary.channelOffset = offset; }
  NS::UInteger primarySourceFeatureChannelMaxCount() const { return p_.primary.channelMaxCount; }
  void setPrimarySourceFeatureChannelMaxCount(NS::UInteger count) { p_.primary.channelMaxCount = count; }
  NS::UInteger secondarySourceFeatureChannelMaxCount() const { return p_.secondary.channelMaxCount; }
  void setSecondarySourceFeatureChannelMaxCount(NS::UInteger count) { p_.secondary.channelMaxCount = count; }
  ImageEdgeMode primaryEdgeMode() const { return p_.primary.edgeMode; }
  void setPrimaryEdgeMode(ImageEdgeMode mode) { p_.primary.edgeMode = mode; }
  ImageEdgeMode secondaryEdgeMode() const { return p_.secondary.edgeMode; }
  void setSecondaryEdgeMode(ImageEdgeMode mode) { p_.secondary.edgeMode = mode; }
  NS::UInteger primaryKernelWidth() const { return p_.primary.kernelWidth; }
  NS::UInteger primaryKernelHeight() const { return p_.primary.kernelHeight; }
  NS::UInteger secondaryKernelWidth() const { return p_.secondary.kernelWidth; }
  NS::UInteger secondaryKernelHeight() const { return p_.secondary.kernelHeight; }
  NS::UInteger primaryStrideInPixelsX() const { return p_.primary.strideX; }
  NS::UInteger primaryStrideInPixelsY() const { return p_.primary.strideY; }
  NS::UInteger secondaryStrideInPixelsX() const { return p_.secondary.strideX; }
  NS::UInteger secondaryStrideInPixelsY() const { return p_.secondary.strideY; }
  void setPrimaryStrideInPixelsX(NS::UInteger stride) { p_.primary.strideX = stride; }
  void setPrimaryStrideInPixelsY(NS::UInteger stride) { p_.primary.strideY = stride; }
  void setSecondaryStrideInPixelsX(NS::UInteger stride) { p_.secondary.strideX = stride; }
  void setSecondaryStrideInPixelsY(NS::UInteger stride) { p_.secondary.strideY = stride; }
  NS::UInteger primaryDilationRateX() const { return p_.primary.dilationX; }
  NS::UInteger primaryDilationRateY() const { return p_.primary.dilationY; }
  NS::UInteger secondaryDilationRateX() const { return p_.secondary.dilationX; }
  NS::UInteger secondaryDilationRateY() const { return p_.secondary.dilationY; }
  bool isBackwards() const { return true; }
  bool isStateModified() const { return false; }
  NNPadding* padding() const { return padding_.get(); }
  void setPadding(NNPadding* padding);
  ImageAllocator* destinationImageAllocator() const { return allocator_.get(); }
  void setDestinationImageAllocator(ImageAllocator* allocator);

  void encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* primary, Image* secondary, Image* destination);
  Image* encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* primary, Image* secondary);
  Image* encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* primary, Image* secondary, State** outState,
                               bool isTemporary);
  void encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* primaries, ImageBatch* secondaries,
                                  ImageBatch* destinations);
  ImageBatch* encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* primaries, ImageBatch* secondaries);
  ImageBatch* encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* primaries, ImageBatch* secondaries,
                                         StateBatch** outStates, bool isTemporary);

  // Gradient kernels leave no state: null.
  State* resultState(Image*, Image*, NS::Array*, Image*) { return nullptr; }
  StateBatch* resultStateBatch(ImageBatch*, ImageBatch*, NS::Array*, ImageBatch*) { return nullptr; }
  State* temporaryResultState(MTL::CommandBuffer*, Image*, Image*, NS::Array*, Image*) { return nullptr; }
  StateBatch* temporaryResultStateBatch(MTL::CommandBuffer*, ImageBatch*, ImageBatch*, NS::Array*, ImageBatch*) {
    return nullptr;
  }
  bool isResultStateReusedAcrossBatch() const { return false; }
  bool appendBatchBarrier() const { return false; }
  // sourceImages: primary, secondary. Source states set the kernel's properties. Autoreleased; null with a reason.
  ImageDescriptor* destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates);
  NS::UInteger encodingStorageSize(Image*, Image*, NS::Array*, Image*) const { return 0; }
  NS::UInteger batchEncodingStorageSize(ImageBatch*, ImageBatch*, NS::Array*, ImageBatch*) const { return 0; }

  void encode(NS::Coder* coder) const override;

 protected:
  CNNBinaryKernel();
  ~CNNBinaryKernel() override;

  void visitNumbers(const NumberVisitor& visit) const override;
  void describe(std::string& text) const override;
  void describeObjects(std::string& text) const override;

  // Adds the work of one triple of images; throws before anything is added. clear: the destination's pixels that are
  // not written are to be 0.
  virtual void record(bnns::mps::Recorder& recorder, Image* primary, Image* secondary, Image* destination,
                      bool clear) const = 0;
  void assign(const Kernel& other) override;
  void decode(NS::Coder* coder) override;
  bool startWindow(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight, NS::UInteger dilationX,
                   NS::UInteger dilationY, NS::UInteger strideX, NS::UInteger strideY) noexcept;

  // What all encode forms come down to.
  void encodeAll(MTL::CommandBuffer* buffer, ImageBatch* primaries, ImageBatch* secondaries, ImageBatch* destinations,
                 bool single);
  ImageBatch* encodeAllReturning(MTL::CommandBuffer* buffer, ImageBatch* primaries, ImageBatch* secondaries,
                                 StateBatch* states, bool needsStates, bool single);

  struct Source {
    Offset offset;
    NS::UInteger channelOffset = 0, channelMaxCount = NS::UIntegerMax;
    ImageEdgeMode edgeMode = ImageEdgeModeZero;
    NS::UInteger kernelWidth = 1, kernelHeight = 1, strideX = 1, strideY = 1, dilationX = 1, dilationY = 1;
  };
  struct Properties {
    Source primary, secondary;
    MTL::Region clipRect = RectNoClip;
    NS::UInteger destinationChannelOffset = 0;
  };
  Properties p_;

 private:
  template <class P, class Visit>
  static void visit(P& properties, Visit&& visit);
  ImageDescriptor* makeDescriptor(NS::Array* images, NS::Array* states);

  NS::SharedPtr<NNPadding> padding_;
  NS::SharedPtr<ImageAllocator> allocator_;
};

class BNNS_MPS_API CNNGradientKernel : public NS::Referencing<CNNGradientKernel, CNNBinaryKernel> {
 public:
  using CNNBinaryKernel::encodeBatchToCommandBuffer;
  using CNNBinaryKernel::encodeToCommandBuffer;

  // Subtracted from the position of every window, in pixels of the secondary image.
  NS::Integer kernelOffsetX() const { return kernelOffsetX_; }
  void setKernelOffsetX(NS::Integer offset) { kernelOffsetX_ = offset; }
  NS::Integer kernelOffsetY() const { return kernelOffsetY_; }
  void setKernelOffsetY(NS::Integer offset) { kernelOffsetY_ = offset; }

  // The forms that return an image set the kernel's properties from the state first; the result has the size of the
  // forward source and is aligned to it. The forms with a destination leave the properties to the caller.
  Image* encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* sourceGradient, Image* sourceImage,
                               State* gradientState);
  void encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* sourceGradient, Image* sourceImage,
                             State* gradientState, Image* destinationGradient);
  ImageBatch* encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sourceGradients,
                                         ImageBatch* sourceImages, StateBatch* gradientStates);
  void encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sourceGradients, ImageBatch* sourceImages,
                                  StateBatch* gradientStates, ImageBatch* destinationGradients);

 protected:
  CNNGradientKernel() = default;
  ~CNNGradientKernel() override;
  void visitNumbers(const NumberVisitor& visit) const override;
  void describe(std::string& text) const override;
  void assign(const Kernel& other) override;
  void decode(NS::Coder* coder) override;

  NS::Integer kernelOffsetX_ = 0, kernelOffsetY_ = 0;
};

}  // namespace MPS
