// Kernels from one source image to one destination image.
#pragma once

#include "MPSKernel.hpp"

namespace MPS {

class BNNS_MPS_API CNNKernel : public NS::Referencing<CNNKernel, Kernel> {
 public:
  // Source position of the window of clipRect.origin's pixel; z is the first source image (not negative).
  Offset offset() const { return p_.offset; }
  void setOffset(Offset offset) { p_.offset = offset; }
  // Destination pixels (z: images) that are written, cut to the destination.
  MTL::Region clipRect() const { return p_.clipRect; }
  void setClipRect(MTL::Region rect) { p_.clipRect = rect; }
  // Channel offsets are multiples of 4.
  NS::UInteger destinationFeatureChannelOffset() const { return p_.destinationChannelOffset; }
  void setDestinationFeatureChannelOffset(NS::UInteger offset) { p_.destinationChannelOffset = offset; }
  NS::UInteger sourceFeatureChannelOffset() const { return p_.sourceChannelOffset; }
  void setSourceFeatureChannelOffset(NS::UInteger offset) { p_.sourceChannelOffset = offset; }
  NS::UInteger sourceFeatureChannelMaxCount() const { return p_.sourceChannelMaxCount; }
  void setSourceFeatureChannelMaxCount(NS::UInteger count) { p_.sourceChannelMaxCount = count; }
  ImageEdgeMode edgeMode() const { return p_.edgeMode; }
  void setEdgeMode(ImageEdgeMode mode) { p_.edgeMode = mode; }
  NS::UInteger kernelWidth() const { return p_.kernelWidth; }
  NS::UInteger kernelHeight() const { return p_.kernelHeight; }
  NS::UInteger strideInPixelsX() const { return p_.strideX; }
  NS::UInteger strideInPixelsY() const { return p_.strideY; }
  NS::UInteger dilationRateX() const { return p_.dilationX; }
  NS::UInteger dilationRateY() const { return p_.dilationY; }
  bool isBackwards() const { return false; }
  bool isStateModified() const { return false; }
  // Of encodes that return an image. Setting null goes back to the default.
  NNPadding* padding() const { return padding_.get(); }
  void setPadding(NNPadding* padding);
  ImageAllocator* destinationImageAllocator() const { return allocator_.get(); }
  void setDestinationImageAllocator(ImageAllocator* allocator);

  // The destination may not share memory with the source. A state comes from resultState, before the encode.
  void encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* source, Image* destination);
  void encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* source, State* destinationState, Image* destination);
  // These size and place the result by the padding policy, which sets offset. Null on failure.
  Image* encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* source);
  Image* encodeToCommandBuffer(MTL::CommandBuffer* buffer, Image* source, State** outState, bool isTemporary);
  // Batches of equal length, one image each.
  void encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sources, ImageBatch* destinations);
  void encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sources, StateBatch* destinationStates,
                                  ImageBatch* destinations);
  ImageBatch* encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sources);
  ImageBatch* encodeBatchToCommandBuffer(MTL::CommandBuffer* buffer, ImageBatch* sources, StateBatch** outStates,
                                         bool isTemporary);

  // Set the kernel's properties first: the state remembers them. Autoreleased; null with a reason.
  State* resultState(Image* source, NS::Array* sourceStates, Image* destination);
  StateBatch* resultStateBatch(ImageBatch* sources, NS::Array* sourceStates, ImageBatch* destinations);
  State* temporaryResultState(MTL::CommandBuffer* buffer, Image* source, NS::Array* sourceStates, Image* destination);
  StateBatch* temporaryResultStateBatch(MTL::CommandBuffer* buffer, ImageBatch* sources, NS::Array* sourceStates,
                                        ImageBatch* destinations);
  bool isResultStateReusedAcrossBatch() const { return false; }
  bool appendBatchBarrier() const { return false; }
  // Applies the padding policy: sets offset and describes the destination. Autoreleased; null with a reason.
  ImageDescriptor* destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates);
  NS::UInteger encodingStorageSize(Image*, NS::Array*, Image*) const { return 0; }
  NS::UInteger batchEncodingStorageSize(ImageBatch*, NS::Array*, ImageBatch*) const { return 0; }

  void encode(NS::Coder* coder) const override;

 protected:
  CNNKernel();
  ~CNNKernel() override;

  void visitNumbers(const NumberVisitor& visit) const override;
  void describe(std::string& text) const override;
  void describeObjects(std::string& text) const override;

  // Adds the work of one pair of images; throws before anything is added. excludeEdges: NNPaddingMethodExcludeEdges.
  virtual void record(bnns::mps::Recorder& recorder, Image* source, Image* destination, bool excludeEdges) const = 0;
  virtual State* makeState(Image* source, Image* destination, bool excludeEdges) const;  // +1, or null: none
  void assign(const Kernel& other) override;
  void decode(NS::Coder* coder) override;
  bool startWindow(MTL::Device* device, NS::UInteger kernelWidth, NS::UInteger kernelHeight, NS::UInteger dilationX,
                   NS::UInteger dilationY, NS::UInteger strideX, NS::UInteger strideY) noexcept;

  struct Properties {
    Offset offset;
    MTL::Region clipRect = RectNoClip;
    NS::UInteger destinationChannelOffset = 0, sourceChannelOffset = 0, sourceChannelMaxCount = NS::UIntegerMax;
    ImageEdgeMode edgeMode = ImageEdgeModeZero;
    NS::UInteger kernelWidth = 1, kernelHeight = 1, strideX = 1, strideY = 1, dilationX = 1, dilationY = 1;
  };
  Properties p_;

 private:
  template <class P, class Visit>
  static void visit(P& properties, Visit&& visit);
  ImageDescriptor* makeDescriptor(NS::Array* images, NS::Array* states);
  // What all encode forms come down to.
  void encodeAll(MTL::CommandBuffer* buffer, ImageBatch* sources, StateBatch* states, ImageBatch* destinations,
                 bool single);
  ImageBatch* encodeAllReturning(MTL::CommandBuffer* buffer, ImageBatch* sources, StateBatch** outStates, bool single);

  NS::SharedPtr<NNPadding> padding_;
  NS::SharedPtr<ImageAllocator> allocator_;
};

}  // namespace MPS
