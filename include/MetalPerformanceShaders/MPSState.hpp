// What a forward encode leaves for its gradient. Pooling states hold numbers only: they have no resources, are never
// temporary and never expire.
#pragma once

#include "MPSImage.hpp"

namespace MPS {

class CNNGradientKernel;
class Kernel;

// What a state's texture looks like. Pooling states have none: zeros.
struct StateTextureInfo {
  NS::UInteger width = 0, height = 0, depth = 0, arrayLength = 0;
  MTL::PixelFormat pixelFormat = MTL::PixelFormatInvalid;
  MTL::TextureType textureType = MTL::TextureType2D;
  MTL::TextureUsage usage = MTL::TextureUsageUnknown;
};

class BNNS_MPS_API State : public NS::Referencing<State> {
 public:
  // A state without resources for a command buffer that was not committed. Having nothing to expire it is not
  // temporary. Autoreleased; null with a reason. States with buffers or textures are not offered.
  static State* temporaryState(MTL::CommandBuffer* commandBuffer);

  NS::UInteger readCount() const { return 0; }
  void setReadCount(NS::UInteger) {}  // nothing expires
  bool isTemporary() const { return false; }
  NS::String* label() const { return label_.get(); }
  void setLabel(NS::String* label);
  NS::UInteger resourceCount() const { return 0; }
  NS::Object* resource(NS::UInteger, bool) { return nullptr; }
  NS::UInteger bufferSize(NS::UInteger) const { return 0; }
  StateTextureInfo textureInfo(NS::UInteger) const { return {}; }
  StateResourceType resourceType(NS::UInteger) const { return StateResourceTypeNone; }
  NS::UInteger resourceSize() const { return 0; }
  void synchronize(MTL::CommandBuffer*) {}
  void synchronizeOnCommandBuffer(MTL::CommandBuffer* commandBuffer) { synchronize(commandBuffer); }

  // Called for each source state while a kernel prepares its destination; may change the kernel's properties and the
  // descriptor. Returns the descriptor to use.
  virtual ImageDescriptor* destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates, Kernel* kernel,
                                                      ImageDescriptor* suggested);
  const char* className() const noexcept override;

 protected:
  State() = default;
  ~State() override;

  friend class CNNGradientKernel;
  // Throws if the image is too small to be the gradient of what the forward encode wrote.
  virtual void checkGradient(const Image& gradient) const;

 private:
  NS::SharedPtr<NS::String> label_;
};

// Made by a forward kernel's resultState or by its encodes, for the matching gradient kernel.
class BNNS_MPS_API NNGradientState : public NS::Referencing<NNGradientState, State> {
 public:
  const char* className() const noexcept override;

 protected:
  NNGradientState() = default;
  ~NNGradientState() override;
};

class BNNS_MPS_API StateBatch : public NS::Referencing<StateBatch, NS::Array> {
 public:
  static StateBatch* batch(State* const* states, NS::UInteger count);  // null if one is null
  State* state(NS::UInteger index) const { return static_cast<State*>(object<NS::Object>(index)); }
  const char* className() const noexcept override;

 protected:
  StateBatch() = default;
  ~StateBatch() override = default;
};

BNNS_MPS_API NS::UInteger StateBatchIncrementReadCount(StateBatch* batch, NS::Integer amount);  // distinct states
BNNS_MPS_API void StateBatchSynchronize(StateBatch* batch, MTL::CommandBuffer* commandBuffer);
BNNS_MPS_API NS::UInteger StateBatchResourceSize(StateBatch* batch);

}  // namespace MPS
