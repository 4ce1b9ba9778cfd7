// How large a destination is and where the first window sits, for encodes that return an image. Per axis, with the
// window's extent w, stride s, and style -1 (valid only), 0 (same), 1 (full), in C integer division:
//   size = (source + style (w - 1) + s - 1) / s      offset = w / 2 - left
//   extra = (size - 1) s + w - source                left = (extra + r) / 2 centred, extra top left, 0 bottom right
// r is 1 where the remainder goes to the left or the top.
#pragma once

#include "MPSState.hpp"

namespace MPS {

class BNNS_MPS_API NNPadding : public NS::Referencing<NNPadding> {
 public:
  virtual NNPaddingMethod paddingMethod() const = 0;
  virtual NS::String* label() const;
  // With NNPaddingMethodCustom: called last, may change the kernel's properties; returns the descriptor to use, null to
  // fail the encode.
  virtual ImageDescriptor* destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates, Kernel* kernel,
                                                      ImageDescriptor* suggested);
  virtual NNPadding* inverse() const;  // null: none
  // The coding hook, as in ImageAllocator.
  virtual const char* archiveName() const { return nullptr; }
  virtual void encode(NS::Coder* coder) const;
  static void registerArchiveName(const char* name, NNPadding* (*make)(NS::Coder*));

 protected:
  NNPadding() = default;
  ~NNPadding() override;
};

class BNNS_MPS_API NNDefaultPadding : public NS::Referencing<NNDefaultPadding, NNPadding> {
 public:
  static NNDefaultPadding* paddingWithMethod(NNPaddingMethod method);
  // Same and valid-only as TensorFlow has them for average pooling: remainder to the bottom right, edge mode Clamp.
  static NNDefaultPadding* paddingForTensorflowAveragePooling();
  static NNDefaultPadding* paddingForTensorflowAveragePoolingValidOnly();

  NNPaddingMethod paddingMethod() const override { return method_; }
  NS::String* label() const override;
  ImageDescriptor* destinationImageDescriptor(NS::Array* sourceImages, NS::Array* sourceStates, Kernel* kernel,
                                              ImageDescriptor* suggested) override;
  const char* archiveName() const override;
  void encode(NS::Coder* coder) const override;
  const char* className() const noexcept override;

 protected:
  NNDefaultPadding() = default;
  ~NNDefaultPadding() override = default;

 private:
  static NNDefaultPadding* make(NNPaddingMethod method, bool clamps, const char* label);

  NNPaddingMethod method_ = NNPaddingMethodSizeSame;
  bool clamps_ = false;  // sets the kernel's edge mode
  const char* label_ = "";
};

}  // namespace MPS
