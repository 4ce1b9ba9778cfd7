// OpenBNNS C++ overlay: arrays that own their memory, and views of memory that somebody else owns.
//
// A descriptor describes one sample; an array made with a batch size has memory for that many, one after the other, and
// calls see how many.
#pragma once

#include <cstring>
#include <iterator>
#include <new>

#include "random.hpp"

namespace bnns {

/// Swift's BNNSNDArrayDescriptor(dataType:shape:): a descriptor without data, for the shapes of a layer.
inline Desc descriptor(BNNSDataType dataType, const Shape& shape) noexcept {
  return shape.describe(dataType);
}
template <Scalar T = float>
Desc descriptor(const Shape& shape) noexcept {
  return shape.describe(DataTypeOf<T>::value);
}

/// The shape of a descriptor.
inline Shape shapeOf(const Desc& d) {
  const std::size_t n = detail::rankOf(d.layout);
  return Shape(Shape::Sizes(d.size, n < 8 ? n : 8), static_cast<DataLayout>(d.layout),
               Shape::Sizes(d.stride, n < 8 ? n : 8));
}

/// The same memory, as a gradient that is added to instead of overwritten.
inline Desc accumulating(Desc gradient) noexcept {
  gradient.flags = BNNSNDArrayFlagBackpropAccumulate;
  return gradient;
}
inline View accumulating(View gradient) noexcept {
  gradient.flags = BNNSNDArrayFlagBackpropAccumulate;
  return gradient;
}

/// The elements of `batchSize` samples in memory order. Throws where T is not the type of the elements.
template <Scalar T>
std::vector<T> makeArray(const Input& array, std::size_t batchSize = 1) {
  const Desc& d = array.descriptor();
  if (d.data_type != DataTypeOf<T>::value) detail::badArray("makeArray", "the elements are of another type");
  const T* first = static_cast<const T*>(detail::requireData("makeArray", "array", array));
  detail::requireCapacity("makeArray", "array", array, batchSize);
  return std::vector<T>(first, first + shapeOf(d).elementCount(batchSize));
}

namespace detail {

// Memory aligned to 64 bytes. (std::unique_ptr would do; <memory> costs a fifth of the whole header's compile time.)
class Block {
 public:
  explicit Block(std::size_t bytes) : memory_(::operator new (bytes > 0 ? bytes : 1, std::align_val_t{64})) {}
  ~Block() { release(memory_); }
  Block(Block&& o) noexcept : memory_(std::exchange(o.memory_, nullptr)) {}
  Block& operator=(Block&& o) noexcept {
    release(std::exchange(memory_, std::exchange(o.memory_, nullptr)));
    return *this;
  }
  void* get() const noexcept { return memory_; }

 private:
  static void release(void* memory) noexcept { ::operator delete (memory, std::align_val_t{64}); }
  void* memory_;
};

}  // namespace detail

/// An array that owns its memory, aligned to 64 bytes. It converts to Desc, Input and Output wherever a call takes one,
/// and must outlive what keeps that descriptor. A const array is no output. Move-only; using one that was moved from
/// throws.
class NDArray {
 public:
  // Swift's allocate(...). Each throws Error where the numbers do not fit the shape.
  template <Scalar T>
  static NDArray uninitialized(const Shape& shape, std::size_t batchSize = 1) {
    return NDArray(DataTypeOf<T>::value, shape, batchSize);
  }
  static NDArray uninitialized(BNNSDataType dataType, const Shape& shape, std::size_t batchSize = 1) {
    return NDArray(dataType, shape, batchSize);
  }
  template <Scalar T>
  static NDArray repeating(T value, const Shape& shape, std::size_t batchSize = 1) {
    NDArray a(DataTypeOf<T>::value, shape, batchSize);
    for (T& element : a.span<T>()) element = value;
    return a;
  }
  /// Exactly as many numbers as the shape holds, in memory order.
  template <Scalar T>
  static NDArray from(std::span<const T> source, const Shape& shape, std::size_t batchSize = 1) {
    NDArray a(DataTypeOf<T>::value, shape, batchSize);
    a.requireCount(source.size());
    if (!source.empty()) std::memcpy(a.desc_.data, source.data(), source.size_bytes());
    return a;
  }
  template <Scalar T>
  static NDArray from(std::initializer_list<T> source, const Shape& shape, std::size_t batchSize = 1) {
    return from<T>(std::span<const T>(source.begin(), source.size()), shape, batchSize);
  }
  /// The same from anything with begin() and end().
  template <class Range>
  requires Scalar<std::iter_value_t<decltype(std::begin(std::declval<const Range&>()))>>
  static NDArray from(const Range& source, const Shape& shape, std::size_t batchSize = 1) {
    using T = std::iter_value_t<decltype(std::begin(source))>;
    NDArray a(DataTypeOf<T>::value, shape, batchSize);
    a.requireCount(static_cast<std::size_t>(std::distance(std::begin(source), std::end(source))));
    T* element = static_cast<T*>(a.desc_.data);
    for (const auto& value : source) *element++ = value;
    return a;
  }
  /// Random numbers of [lower, upper), integers of [lower, upper].
  template <Scalar T>
  static NDArray uniform(RandomGenerator& generator, T lower, T upper, const Shape& shape, std::size_t batchSize = 1) {
    NDArray a(DataTypeOf<T>::value, shape, batchSize);
    if constexpr (std::integral<T>) {
      if (upper > T{} && static_cast<std::uint64_t>(upper) >> 63 != 0) {
        detail::badArray("NDArray::uniform", "the upper end exceeds 64 bits");
      }
      generator.fillUniform(a.flat(), static_cast<std::int64_t>(lower), static_cast<std::int64_t>(upper));
    } else {
      generator.fillUniform(a.flat(), static_cast<float>(lower), static_cast<float>(upper));
    }
    return a;
  }
  /// The same from a generator with a seed of the library's choice.
  template <Scalar T>
  static NDArray random(T lower, T upper, const Shape& shape, std::size_t batchSize = 1) {
    RandomGenerator generator(RandomGeneratorMethod::aesCtr);
    return uniform(generator, lower, upper, shape, batchSize);
  }
  /// The same from a generator of the standard library, such as std::mt19937.
  template <Scalar T, class Generator>
  requires std::unsigned_integral<decltype(std::declval<Generator&>()())>
  static NDArray random(T lower, T upper, Generator& generator, const Shape& shape, std::size_t batchSize = 1) {
    NDArray a(DataTypeOf<T>::value, shape, batchSize);
    requireRange(lower, upper);
    const double range = static_cast<double>(Generator::max() - Generator::min()) + 1.0;
    for (T& element : a.span<T>()) {
      const double u = static_cast<double>(generator() - Generator::min()) / range;  // 1 only where 2^64-1 rounds up
      if constexpr (std::integral<T>) {
        const std::uint64_t last = static_cast<std::uint64_t>(upper) - static_cast<std::uint64_t>(lower);
        const double step = u * (static_cast<double>(last) + 1.0);
        const std::uint64_t offset = step < static_cast<double>(last) ? static_cast<std::uint64_t>(step) : last;
        element = static_cast<T>(static_cast<std::uint64_t>(lower) + offset);
      } else {
        const double low = static_cast<double>(static_cast<float>(lower));
        element = T(static_cast<float>(low + u * (static_cast<double>(static_cast<float>(upper)) - low)));
      }
    }
    return a;
  }
  template <Scalar T>
  static NDArray normal(RandomGenerator& generator, T mean, T standardDeviation, const Shape& shape,
                        std::size_t batchSize = 1) {
    NDArray a(DataTypeOf<T>::value, shape, batchSize);
    generator.fillNormal(a.flat(), static_cast<float>(mean), static_cast<float>(standardDeviation));
    return a;
  }

  // Views: descriptors of memory that the caller keeps. Throw where the memory is too small for the shape.
  template <Scalar T>
  static View view(std::span<T> data, const Shape& shape, std::size_t batchSize = 1) {
    return view(std::as_writable_bytes(data), DataTypeOf<T>::value, shape, batchSize);
  }
  static View view(std::span<std::byte> data, BNNSDataType dataType, const Shape& shape, std::size_t batchSize = 1) {
    const std::size_t element = detail::bytesPerElement(dataType, "NDArray::view"),
                      bytes = detail::times(shape.elementCount(batchSize), element, "NDArray::view");
    if (data.size() < bytes) {
      detail::badArray("NDArray::view", "the shape takes " + std::to_string(bytes) + " bytes, the memory has " +
                                            std::to_string(data.size()));
    }
    if (!data.data()) detail::badArray("NDArray::view", "the memory is null");
    if (batchSize == 0 && data.size() < detail::times(shape.elementCount(), element, "NDArray::view")) {
      detail::badArray("NDArray::view", "the memory is smaller than one sample");
    }
    Desc d = shape.describe(dataType);
    d.data = data.data();
    const detail::SampleSize s = detail::sampleSize(d);
    const std::size_t elements = data.size() / element,
                      samples = s.stride == 0 || elements < s.span ? batchSize : (elements - s.span) / s.stride + 1;
    return {d, batchSize, samples};
  }
  /// Memory that calls only read: inputs and labels.
  template <Scalar T>
  static InputView inputView(std::span<const T> data, const Shape& shape, std::size_t batchSize = 1) {
    return {view(std::span<T>(const_cast<T*>(data.data()), data.size()), shape, batchSize)};
  }

  NDArray(NDArray&& o) noexcept
      : batchSize_(std::exchange(o.batchSize_, 0)),
        count_(std::exchange(o.count_, 0)),
        size_(o.size_),
        memory_(std::move(o.memory_)),
        desc_(std::exchange(o.desc_, Desc{})) {}
  NDArray& operator=(NDArray&& o) noexcept {
    memory_ = std::move(o.memory_);
    batchSize_ = std::exchange(o.batchSize_, 0);
    count_ = std::exchange(o.count_, 0);
    size_ = o.size_;
    desc_ = std::exchange(o.desc_, Desc{});
    return *this;
  }

  /// The descriptor of one sample, valid while the array lives.
  operator const Desc&() const& { return live("NDArray"); }
  operator const Desc&() const&& = delete;
  /// The same memory, as a gradient that is added to.
  View accumulating() & { return bnns::accumulating(View{live("NDArray::accumulating"), batchSize_, batchSize_}); }
  View accumulating() const& = delete;  // a const NDArray cannot be an output
  View accumulating() && = delete;
  /// All samples as one vector.
  View flat() & { return flattened(); }
  InputView flat() const& { return {flattened()}; }
  View flat() && = delete;
  /// Samples that the memory holds.
  std::size_t batchSize() const noexcept { return batchSize_; }

  /// The elements of all samples. Throws where T is not their type.
  template <Scalar T>
  std::span<T> span() & {
    return {elements<T>(), count_};
  }
  template <Scalar T>
  std::span<const T> span() const& {
    return {elements<T>(), count_};
  }
  /// A copy of them.
  template <Scalar T>
  std::vector<T> makeArray() const {
    return std::vector<T>(elements<T>(), elements<T>() + count_);  // parentheses: braces would list two bools
  }
  Shape shape() const { return shapeOf(live("NDArray::shape")); }
  /// Bytes of one sample (Swift's dataSize).
  std::size_t dataSize() const { return ::BNNSNDArrayGetDataSize(&live("NDArray::dataSize")); }

 private:
  NDArray(BNNSDataType type, const Shape& shape, std::size_t batchSize)
      : batchSize_(batchSize),
        count_(capacity(shape, batchSize)),
        memory_(detail::times(batchSize > 0 ? count_ : capacity(shape, 1), detail::bytesPerElement(type, "NDArray"),
                              "NDArray")),
        desc_(shape.describe(type)) {
    desc_.data = memory_.get();
    size_ = detail::sampleSize(desc_);
    // A layer may be made with the descriptor of an array without samples: it finds the memory of one, all 0.
    if (batchSize == 0) std::memset(memory_.get(), 0, capacity(shape, 1) * detail::bytesPerElement(type, "NDArray"));
  }
  // Packed layouts, and strides that leave gaps, may end past the last whole stride.
  static std::size_t capacity(const Shape& shape, std::size_t batchSize) {
    const std::size_t strides = detail::times(shape.batchStride(), batchSize, "NDArray");
    const std::size_t needed = shape.elementCount(batchSize);
    return strides < needed ? needed : strides;
  }
  View flattened() const {
    Desc d = Shape::vector(live("NDArray::flat").data ? count_ : 0).describe(desc_.data_type);
    d.data = desc_.data;
    return {d, 1, 1};
  }
  const Desc& live(const char* where) const {
    if (!memory_.get()) detail::badArray(where, "the array was moved from");
    return desc_;
  }
  template <Scalar T>
  T* elements() const {
    if (live("NDArray::span").data_type != DataTypeOf<T>::value) {
      detail::badArray("NDArray::span", "the elements are of another type");
    }
    return static_cast<T*>(desc_.data);
  }
  template <Scalar T>
  static void requireRange(T lower, T upper) {
    bool fits = false;
    if constexpr (std::integral<T>) {
      fits = lower <= upper;
    } else {
      fits = static_cast<float>(lower) <= static_cast<float>(upper);
    }
    if (!fits) detail::badArray("NDArray::random", "the lower end is above the upper end");
  }
  void requireCount(std::size_t count) const {
    if (count != count_) {
      detail::badArray("NDArray::from",
                       "the shape holds " + std::to_string(count_) + " elements, got " + std::to_string(count));
    }
  }

  friend class detail::Argument;

  std::size_t batchSize_, count_;
  detail::SampleSize size_{};
  detail::Block memory_;
  Desc desc_{};
};

namespace detail {
inline Argument::Argument(const NDArray& a)
    : at_(&static_cast<const Desc&>(a)), size_(a.size_), batchSize_(a.batchSize_), capacity_(a.batchSize_) {}
inline ListItem listItem(const NDArray& a) {
  return {&static_cast<const Desc&>(a), a.batchSize()};
}
}  // namespace detail

}  // namespace bnns
