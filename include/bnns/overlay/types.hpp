// OpenBNNS C++ overlay: small value types that several layers take, and element types.
#pragma once

#include <bit>
#include <concepts>
#include <type_traits>

#include "shape.hpp"

namespace bnns {

/// The C descriptor itself: a view that owns nothing, passed by reference to const; only its memory is written.
using Desc = ::BNNSNDArrayDescriptor;
using OptDesc = std::optional<Desc>;
using OptFilterParams = std::optional<::BNNSFilterParameters>;

/// Swift's BNNSFilterParameters(options:threadCount:allocator:deallocator:).
struct FilterParameters {
  BNNSFlags options = {};       ///< BNNSFlagsUseClientPtr, or none
  std::size_t threadCount = 0;  ///< 0: the library chooses
  BNNSAlloc allocator = nullptr;
  BNNSFree deallocator = nullptr;
  operator ::BNNSFilterParameters() const noexcept {
    ::BNNSFilterParameters p{};
    p.flags = options, p.n_threads = threadCount, p.alloc_memory = allocator, p.free_memory = deallocator;
    return p;
  }
};

/// A layer made with this reads weights, bias, beta and gamma where the caller keeps them, and so sees an optimizer's
/// steps. The caller keeps that memory alive.
inline constexpr FilterParameters useClientPointer{.options = BNNSFlagsUseClientPtr};

struct XY {
  std::size_t x = 1, y = 1;
};
struct Extent {
  std::size_t width = 1, height = 1;
};
/// Swift's ClosedRange<Float>.
struct Bounds {
  float lower = 0, upper = 0;
};

enum class LearningPhase { inference, training };
enum class ConvolutionType { standard, transposed };

/// How an operand of an arithmetic layer takes part: constant (no gradient), sample (one for each element of the
/// batch), parameter (trainable, shared by the batch).
enum class DescriptorType : std::uint32_t { constant = BNNSConstant, sample = BNNSSample, parameter = BNNSParameter };

struct ConvolutionPadding {
  std::size_t x = 0, y = 0;
  std::array<std::size_t, 4> pad{};  ///< left, right, up, down; read if x and y are 0
  static ConvolutionPadding zero() { return {}; }
  static ConvolutionPadding symmetric(std::size_t x, std::size_t y) { return {x, y, {}}; }
  static ConvolutionPadding asymmetric(std::size_t left, std::size_t right, std::size_t up, std::size_t down) {
    return {0, 0, {left, right, up, down}};
  }
};

/// IEEE binary16 as it lies in memory; conversion rounds to nearest, ties to even.
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit constexpr Float16(float value) noexcept {
    const std::uint32_t f = std::bit_cast<std::uint32_t>(value), sign = (f >> 16) & 0x8000u,
                        magnitude = f & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {  // NaN stays NaN
      bits = static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
      bits = static_cast<std::uint16_t>(sign | 0x7c00u);
    } else if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 aligns the last place to 2^-24, and rounds
      const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
      bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u));
    } else {
      const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
      bits = static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
    }
  }
  explicit constexpr operator float() const noexcept {
    const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude < 0x400u) {  // magnitude * 2^-24, exactly
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return sign != 0 ? -value : value;
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  }
};

/// bfloat16 as it lies in memory; conversion rounds to nearest, ties to even.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit constexpr BFloat16(float value) noexcept {
    const std::uint32_t f = std::bit_cast<std::uint32_t>(value);
    const bool nan = (f & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(nan ? (f >> 16) | 0x40u : (f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
  }
  explicit constexpr operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

namespace detail {

template <class T>
constexpr std::uint32_t dataTypeBits() {
  if constexpr (std::same_as<T, float>) return BNNSDataTypeFloat32;
  if constexpr (std::same_as<T, Float16>) return BNNSDataTypeFloat16;
  if constexpr (std::same_as<T, BFloat16>) return BNNSDataTypeBFloat16;
  if constexpr (std::same_as<T, bool>) return BNNSDataTypeBoolean;
  if constexpr (std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8) {
    return (std::is_signed_v<T> ? BNNSDataTypeIntBit : BNNSDataTypeUIntBit) | static_cast<std::uint32_t>(8 * sizeof(T));
  }
  return 0;
}

inline std::size_t bytesPerElement(BNNSDataType type, const Where& where) {
  const std::size_t bits = static_cast<std::uint32_t>(type) & 0x7fffu;
  if (bits == 0 || bits % 8 != 0) badArray(where, "an element of this data type is not a whole number of bytes");
  return bits / 8;
}

template <class T>
const T* pointer(const std::optional<T>& o) noexcept {
  return o ? &*o : nullptr;
}

// An absent operand is a descriptor of zeros.
inline Desc orAbsent(const OptDesc& d) noexcept {
  return d ? *d : Desc{};
}

// Axis numbers as the C calls take them, bit k for axis k.
inline std::uint32_t axisMask(std::span<const std::size_t> axes, const Where& where,
                              Error::Code code = Error::Code::layerApplyFail) {
  std::uint32_t mask = 0;
  for (std::size_t axis : axes) {
    if (axis > 31) mistake(code, where, "no array has an axis " + std::to_string(axis));
    mask |= std::uint32_t{1} << axis;
  }
  return mask;
}

}  // namespace detail

/// The BNNS data type of T: float, Float16, BFloat16, bool and all integers (Swift's BNNSScalar).
template <class T>
struct DataTypeOf {
  static constexpr BNNSDataType value = static_cast<BNNSDataType>(detail::dataTypeBits<T>());
};
template <class T>
concept Scalar = detail::dataTypeBits<T>()
!= 0;

}  // namespace bnns
