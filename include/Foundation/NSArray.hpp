// An immutable list of retained objects.
#pragma once

#include <vector>

#include "NSObject.hpp"

namespace NS {

class BNNS_MPS_API Array : public Copying<Array> {
 public:
  static Array* array();
  static Array* array(const Object* object);
  // Null if one of the objects is null.
  static Array* array(const Object* const* objects, UInteger count);
  static Array* alloc();
  Array* init();
  Array* init(const Object* const* objects, UInteger count);

  UInteger count() const noexcept { return objects_.size(); }
  // Null outside [0, count).
  template <class Class = Object>
  Class* object(UInteger index) const noexcept {
    return index < objects_.size() ? static_cast<Class*>(objects_[index]) : nullptr;
  }

  bool isEqual(const Object* other) const override;
  const char* className() const noexcept override;

 protected:
  Array() = default;
  ~Array() override;
  Object* copyObject() const override;
  // Retains the objects; false, and an empty list, if one is null.
  bool assign(const Object* const* objects, UInteger count);

 private:
  std::vector<Object*> objects_;
};

}  // namespace NS
