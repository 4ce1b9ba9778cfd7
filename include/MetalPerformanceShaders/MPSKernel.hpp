// The base of all kernels.
//
// An encode copies the kernel's properties into the command buffer, so later changes do not affect it. A kernel is used
// by one thread at a time; copies are cheap. No exception leaves these classes: a refused encode writes nothing and
// fails its command buffer, other refused calls return null or do nothing; MTLX::lastError() has the reason.
#pragma once

#include <functional>
#include <string>

#include "MPSNNPadding.hpp"

namespace MPS {

class BNNS_MPS_API Kernel : public NS::Referencing<Kernel> {
 public:
  KernelOptions options() const { return options_; }
  void setOptions(KernelOptions options) { options_ = options; }
  MTL::Device* device() const { return device_; }
  NS::String* label() const { return label_.get(); }
  void setLabel(NS::String* label);

  // +1 reference. Null means the same device; padding and allocator are shared.
  Kernel* copy(MTL::Device* device = nullptr) const;
  // Every property but the device under its name. Fails the coder if padding or allocator cannot be archived.
  virtual void encode(NS::Coder* coder) const;
  NS::Data* serialize() const;  // autoreleased; null if the kernel cannot be archived
  // The kernel of the class named in the archive, +1 reference; null with a reason. Null device: the system's default.
  static Kernel* deserialize(const NS::Data* data, MTL::Device* device);
  static bool supportsSecureCoding() { return true; }

  // One line: class, label, window, where it sits, edge mode; gradients: sourceSize too.
  NS::String* description() const override;
  // The same and the device, padding, allocator and every number of the kernel under its name.
  NS::String* debugDescription() const override;

 protected:
  Kernel() = default;
  ~Kernel() override;

  // Every number that makes the kernel, under its property's name.
  using NumberVisitor = std::function<void(const char* key, NS::Integer value)>;
  virtual void visitNumbers(const NumberVisitor& visit) const;
  virtual void describe(std::string& text) const;         // adds to description()
  virtual void describeObjects(std::string& text) const;  // padding and allocator, for debugDescription()

  virtual Kernel* allocSame() const = 0;     // a new object of this class
  virtual void assign(const Kernel& other);  // properties but the device; other is of the same class
  virtual void decode(NS::Coder* coder);     // missing keys leave defaults; throws on wrong values
  bool start(MTL::Device* device) noexcept;  // false: no device
  Kernel* startFrom(NS::Coder* coder, MTL::Device* device, bool provided) noexcept;  // null and released on failure

  KernelOptions options_ = KernelOptionsNone;
  MTL::Device* device_ = nullptr;
  NS::SharedPtr<NS::String> label_;
};

// What every concrete class repeats: typed copy and decoding initialisers. init releases the object and returns null
// if the archive is of another class or malformed.
template <class Self, class Base>
class BNNS_MPS_API KernelClass : public NS::Referencing<Self, Base> {
 public:
  Self* copy(MTL::Device* device = nullptr) const { return static_cast<Self*>(Kernel::copy(device)); }
  Self* init(NS::Coder* coder, MTL::Device* device) { return static_cast<Self*>(this->startFrom(coder, device, true)); }
  // The device of a coder that is a DeviceProvider, else the system's default.
  Self* init(NS::Coder* coder) { return static_cast<Self*>(this->startFrom(coder, nullptr, false)); }
  Self* initWithCoder(NS::Coder* coder, MTL::Device* device) { return init(coder, device); }
  Self* initWithCoder(NS::Coder* coder) { return init(coder); }
};

}  // namespace MPS
