// A smart pointer over retain and release, with metal-cpp's names.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "NSObject.hpp"

namespace NS {

template <class Class>
class SharedPtr {
 public:
  SharedPtr() noexcept = default;
  SharedPtr(std::nullptr_t) noexcept {}
  SharedPtr(const SharedPtr& other) noexcept : object_(other.object_) { retainObject(); }
  SharedPtr(SharedPtr&& other) noexcept : object_(other.detach()) {}
  template <class Other, class = std::enable_if_t<std::is_convertible<Other*, Class*>::value>>
  SharedPtr(const SharedPtr<Other>& other) noexcept : object_(other.get()) {
    retainObject();
  }
  template <class Other, class = std::enable_if_t<std::is_convertible<Other*, Class*>::value>>
  SharedPtr(SharedPtr<Other>&& other) noexcept : object_(other.detach()) {}
  ~SharedPtr() { reset(); }

  SharedPtr& operator=(SharedPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  Class* get() const noexcept { return object_; }
  Class* operator->() const noexcept { return object_; }
  Class& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  void reset() noexcept {
    if (Class* object = detach()) object->release();
  }
  // Gives the reference up without releasing it.
  Class* detach() noexcept { return std::exchange(object_, nullptr); }

 private:
  void retainObject() noexcept {
    if (object_) object_->retain();
  }
  template <class Other>
  friend SharedPtr<Other> TransferPtr(Other* object) noexcept;

  Class* object_ = nullptr;
};

// Takes over the caller's reference (from alloc, new..., copy, Create...).
template <class Class>
SharedPtr<Class> TransferPtr(Class* object) noexcept {
  SharedPtr<Class> pointer;
  pointer.object_ = object;
  return pointer;
}

// Adds a reference of its own.
template <class Class>
SharedPtr<Class> RetainPtr(Class* object) noexcept {
  if (object) object->retain();
  return TransferPtr(object);
}

template <class A, class B>
bool operator==(const SharedPtr<A>& a, const SharedPtr<B>& b) noexcept {
  return a.get() == b.get();
}
template <class A, class B>
bool operator!=(const SharedPtr<A>& a, const SharedPtr<B>& b) noexcept {
  return a.get() != b.get();
}

}  // namespace NS
