// OpenBNNS C++ overlay: what a call takes. Input and Output carry the descriptor and how many samples the memory holds.
//
// An NDArray and a View know their memory. A bare Desc does not: it stands for one sample, and its memory for as many
// as a call wants.
#pragma once

#include <iterator>

#include "types.hpp"

namespace bnns {

class NDArray;

/// A descriptor of memory of known size, from NDArray::view. It is a Desc wherever one is taken.
struct View : Desc {
  std::size_t batchSize = 1;  ///< samples it stands for
  std::size_t capacity = 1;   ///< samples the memory holds
};
/// The same of memory that is only read, from NDArray::inputView.
struct InputView : View {};

namespace detail {

inline constexpr std::size_t anyCapacity = static_cast<std::size_t>(-1);

// An array that the caller keeps is pointed to; a temporary descriptor is copied, so that the labelled forms of calls
// can be made before they are used.
class Argument {
 public:
  const Desc& descriptor() const noexcept { return *at_; }
  const SampleSize& sampleSize() const noexcept { return size_; }
  /// Samples that it stands for: what functions without a batch size act on.
  std::size_t batchSize() const noexcept { return batchSize_; }
  /// Samples that the memory holds, as far as known.
  std::size_t capacity() const noexcept { return capacity_; }

  Argument(const Argument& o) noexcept { *this = o; }
  Argument& operator=(const Argument& o) noexcept {
    at_ = o.at_, size_ = o.size_, batchSize_ = o.batchSize_, capacity_ = o.capacity_;
    if (o.at_ == &o.copy_) copy_ = o.copy_, at_ = &copy_;
    return *this;
  }

 protected:
  Argument() noexcept : at_(&absent), size_(), batchSize_(0), capacity_(0) {}
  Argument(const Desc& d) noexcept : at_(&d), size_(detail::sampleSize(d)), batchSize_(1), capacity_(anyCapacity) {}
  Argument(Desc&& d) noexcept
      : copy_(d), at_(&copy_), size_(detail::sampleSize(d)), batchSize_(1), capacity_(anyCapacity) {}
  Argument(const View& v) noexcept : Argument(static_cast<const Desc&>(v)) {
    batchSize_ = v.batchSize, capacity_ = v.capacity;
  }
  Argument(View&& v) noexcept : Argument(static_cast<Desc&&>(v)) { batchSize_ = v.batchSize, capacity_ = v.capacity; }
  Argument(const NDArray& a);

 private:
  static inline const Desc absent{};

  union {
    Desc copy_;  // set where at_ points to it
  };
  const Desc* at_;
  SampleSize size_;
  std::size_t batchSize_, capacity_;
};

}  // namespace detail

/// What a call reads: an NDArray, a view or a descriptor.
class Input : public detail::Argument {
 public:
  Input(const Desc& d) : Argument(d) {}
  Input(Desc&& d) : Argument(std::move(d)) {}
  Input(const View& v) : Argument(v) {}
  Input(View&& v) : Argument(std::move(v)) {}
  Input(const NDArray& a) : Argument(a) {}
  Input(const NDArray&&) = delete;  // a temporary array does not outlive what keeps its descriptor
};
using OptInput = std::optional<Input>;

/// What a call writes: the same, but no array or view of constant memory.
class Output : public detail::Argument {
 public:
  Output(const Desc& d) : Argument(d) {}
  Output(Desc&& d) : Argument(std::move(d)) {}
  Output(const View& v) : Argument(v) {}
  Output(View&& v) : Argument(std::move(v)) {}
  Output(NDArray& a) : Argument(static_cast<const NDArray&>(a)) {}
  Output(const NDArray&) = delete;    // a const NDArray, or a temporary, cannot be an output
  Output(const InputView&) = delete;  // NDArray::inputView is memory that is only read: it cannot be an output
};

/// An output that may be left out, as std::nullopt or {}.
class OptOutput : public detail::Argument {
 public:
  OptOutput() = default;
  OptOutput(std::nullopt_t) {}
  OptOutput(const Desc& d) : Argument(d), given_(true) {}
  OptOutput(Desc&& d) : Argument(std::move(d)), given_(true) {}
  OptOutput(const View& v) : Argument(v), given_(true) {}
  OptOutput(View&& v) : Argument(std::move(v)), given_(true) {}
  OptOutput(NDArray& a) : Argument(static_cast<const NDArray&>(a)), given_(true) {}
  OptOutput(const Output& o) : Argument(o), given_(true) {}
  OptOutput(const OptDesc& d) : OptOutput(d ? OptOutput(Desc(*d)) : OptOutput()) {}
  OptOutput(const NDArray&) = delete;    // a const NDArray, or a temporary, cannot be an output
  OptOutput(const InputView&) = delete;  // NDArray::inputView is memory that is only read: it cannot be an output

  explicit operator bool() const noexcept { return given_; }

 private:
  bool given_ = false;
};

namespace detail {

// An element of a list: itself, or what a pointer, a smart pointer or a reference wrapper leads to.
template <class T>
constexpr decltype(auto) unwrap(T& element) {
  if constexpr (std::is_pointer_v<T>) {
    return (*element);
  } else if constexpr (requires { *element.get(); }) {
    return (*element.get());
  } else if constexpr (requires { element.get(); }) {
    return (element.get());
  } else {
    return (element);
  }
}

// Contiguous elements of which each can be an A: an array, std::array, std::vector or std::span of NDArray, of pointers
// to NDArray, of views or of descriptors.
template <class R, class A>
concept ListOf = requires(R& list) {
  std::size(list);
  requires std::is_constructible_v<A, decltype(unwrap(*std::data(list)))>;
};

struct ListItem {
  const Desc* descriptor;
  std::size_t batchSize;
};
inline ListItem listItem(const Desc& d) {
  return {&d, 1};
}
inline ListItem listItem(const View& v) {
  return {&v, v.batchSize};
}
inline ListItem listItem(const Argument& a) {
  return {&a.descriptor(), a.batchSize()};
}
ListItem listItem(const NDArray& a);

}  // namespace detail

/// A list of inputs or outputs for the length of one call: {a, b}, or a container that the caller keeps.
template <class A>
class List {
 public:
  List() = default;
  List(std::initializer_list<A> list) { bind(std::data(list), list.size()); }
  template <class R>
  requires detail::ListOf<R, A> List(R&& list) { bind(std::data(list), std::size(list)); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  detail::ListItem operator[](std::size_t i) const { return item_(first_, i); }

 private:
  template <class T>
  void bind(T* first, std::size_t size) {
    first_ = first, size_ = size;
    item_ = [](const void* list, std::size_t i) {
      T& element = static_cast<T*>(const_cast<void*>(list))[i];
      if constexpr (requires { element == nullptr; }) {
        if (element == nullptr) detail::badArray("List", "entry " + std::to_string(i) + " is a null pointer");
      }
      return detail::listItem(detail::unwrap(element));
    };
  }

  const void* first_ = nullptr;
  std::size_t size_ = 0;
  detail::ListItem (*item_)(const void*, std::size_t) = nullptr;
};
using Inputs = List<Input>;
using Outputs = List<Output>;

}  // namespace bnns
