// What a forward encode leaves for its gradient. Pooling states hold numbers only: they have no resources, are never
// temporary and never expire.
#pragma once

#include "MPSImage.hpp"

namespace MPS {

class Kernel;

class BNNS_MPS_API State : public NS::Referencing<State> {
 public:
  NS::UInteger readCount() const { return 0; }
  void setReadCount(NS::UInteger) {}  // nothing expires
  bool isTemporary() const { return false; }
  NS::String* label() const { return label_.get(); }
  void setLabel(NS::String* label);
  NS::UInteger resourceCount() const { return 0; }
  NS::Object* resource(NS::UInteger, bool) { return nullptr; }
  NS::UInteger bufferSize(NS::UInteger) const { return 0; }
  StateResourceType resourceType(NS::UInteger) const { return StateResourceTypeNone; }
  NS::UInteger resourceSize() const { return 0; }
  void synchronize(MTL::CommandBuffer*) {}

  // Called for each source state while a kernel prepares its destination; may change the kernel's properties and the
  // descriptor. Returns the descriptor to use.
  virtual ImageDescriptor* destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates, Kernel* kernel,
                                                      ImageDescriptor* suggested);
  const char* className() const noexcept override;

 protected:
  State() = default;
  ~State() override;

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
