// Reference-counted objects in the manner of metal-cpp.
//
// Objects live on the heap and are never deleted by name: alloc, new..., copy and Create... give one reference to the
// caller, who releases it; every other function returns an object that the current autorelease pool will release.
#pragma once

#include <atomic>

#include "NSDefines.hpp"

namespace NS {

class String;

class BNNS_MPS_API Object {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Object* retain() noexcept;
  void release() noexcept;  // the last one ends the object
  Object* autorelease();    // released when the thread's innermost pool is drained, or when the thread ends
  UInteger retainCount() const noexcept;

  virtual UInteger hash() const;
  virtual bool isEqual(const Object* other) const;
  virtual String* description() const;       // for debugging
  virtual String* debugDescription() const;  // more of it, where there is more
  virtual const char* className() const noexcept;

 protected:
  Object() noexcept;
  virtual ~Object();

 private:
  std::atomic<UInteger> references_{1};
};

// retain and autorelease that keep the type.
template <class Class, class Base = Object>
class BNNS_MPS_API Referencing : public Base {
 public:
  Class* retain() noexcept { return static_cast<Class*>(Base::retain()); }
  void release() noexcept { Base::release(); }
  Class* autorelease() { return static_cast<Class*>(Base::autorelease()); }
  UInteger retainCount() const noexcept { return Base::retainCount(); }
};

// Objects that can be copied; copy() gives one reference to the caller.
template <class Class, class Base = Object>
class BNNS_MPS_API Copying : public Referencing<Class, Base> {
 public:
  Class* copy() const { return static_cast<Class*>(this->copyObject()); }

 protected:
  virtual Object* copyObject() const = 0;
};

}  // namespace NS
