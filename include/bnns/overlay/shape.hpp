// OpenBNNS C++ overlay: layouts and shapes.
//
// A shape is a layout, up to eight sizes and up to eight strides (0: packed). Sizes are written as BNNS writes them, so
// matrixRowMajor(columns, rows), matrixColumnMajor(rows, columns), imageCHW(width, height, channels). stride[0] always
// belongs to the fastest axis; a first-major layout lists its sizes the other way round, slowest first.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "error.hpp"

namespace bnns {

/// Swift's BNNS.DataLayout, and the layouts below the line that Swift reaches by a hand-made descriptor only.
enum class DataLayout : std::uint32_t {
  vector = BNNSDataLayoutVector,
  matrixRowMajor = BNNSDataLayoutRowMajorMatrix,
  matrixColumnMajor = BNNSDataLayoutColumnMajorMatrix,
  matrixFirstMajor = BNNSDataLayout2DFirstMajor,
  matrixLastMajor = BNNSDataLayout2DLastMajor,
  imageCHW = BNNSDataLayoutImageCHW,
  tensor3DFirstMajor = BNNSDataLayout3DFirstMajor,
  tensor3DLastMajor = BNNSDataLayout3DLastMajor,
  tensor3DNSE = BNNSDataLayoutNSE,
  tensor3DSNE = BNNSDataLayoutSNE,
  convolutionWeightsOIHW = BNNSDataLayoutConvolutionWeightsOIHW,
  tensor4DFirstMajor = BNNSDataLayout4DFirstMajor,
  tensor4DLastMajor = BNNSDataLayout4DLastMajor,
  tensor5DFirstMajor = BNNSDataLayout5DFirstMajor,
  tensor5DLastMajor = BNNSDataLayout5DLastMajor,
  tensor6DFirstMajor = BNNSDataLayout6DFirstMajor,
  tensor6DLastMajor = BNNSDataLayout6DLastMajor,
  tensor7DFirstMajor = BNNSDataLayout7DFirstMajor,
  tensor7DLastMajor = BNNSDataLayout7DLastMajor,
  tensor8DFirstMajor = BNNSDataLayout8DFirstMajor,
  tensor8DLastMajor = BNNSDataLayout8DLastMajor,
  // ---- not in Swift
  tensor3DMultiheadDHK = BNNSDataLayoutMHA_DHK,
  convolutionWeightsOIHrWr = BNNSDataLayoutConvolutionWeightsOIHrWr,
  convolutionWeightsIOHrWr = BNNSDataLayoutConvolutionWeightsIOHrWr,
  convolutionWeightsOIHWPack32 = BNNSDataLayoutConvolutionWeightsOIHW_Pack32,
};

/// The number of axes of a layout.
constexpr std::size_t rank(DataLayout layout) noexcept {
  return (static_cast<std::uint32_t>(layout) >> 16) & 0xf;
}

namespace detail {

// The axis that stride[k] belongs to.
constexpr std::size_t axisOfStride(BNNSDataLayout layout, std::size_t k, std::size_t rank) {
  if ((static_cast<std::uint32_t>(layout) & 0x8001u) == 0x8001u) return rank - 1 - k;  // first-major
  if (layout == BNNSDataLayoutMHA_DHK && k > 0 && k < 3) return 3 - k;
  return k;
}

constexpr std::size_t rankOf(BNNSDataLayout layout) {
  return rank(static_cast<DataLayout>(layout));
}

// One sample: the elements its sizes name, the memory from the first to the last of them, and the distance to the next
// sample, all in elements. A packed sample has the same number three times.
struct SampleSize {
  std::size_t count = 0, span = 0, stride = 0;
};

inline SampleSize sampleSize(const BNNSNDArrayDescriptor& d) noexcept {
  const std::size_t n = rankOf(d.layout);
  if (n == 0 || n > 8) return {};  // no layout: the C call says so
  SampleSize s{1, 0, 1};
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t extent = d.size[axisOfStride(d.layout, k, n)], step = d.stride[k] != 0 ? d.stride[k] : s.stride;
    s.count *= extent, s.span += step * (extent - 1), s.stride = step * extent;
  }
  s.span = s.count != 0 ? s.span + 1 : 0;
  return s;
}

// Which elements of its memory a sample with gaps covers: equal for shapes that name the same ones, in any order of
// axes. 0 for a sample without gaps.
inline std::size_t gapPattern(const BNNSNDArrayDescriptor& d, const SampleSize& s) noexcept {
  if (s.span == s.count) return 0;
  struct Axis {
    std::size_t step, extent;
  } axes[8];
  std::size_t used = 0, packed = 1;
  const std::size_t n = rankOf(d.layout);
  for (std::size_t k = 0; k < n; ++k) {
    const Axis a{d.stride[k] != 0 ? d.stride[k] : packed, d.size[axisOfStride(d.layout, k, n)]};
    packed = a.step * a.extent;
    if (a.extent == 1) continue;
    std::size_t at = used++;
    for (; at > 0 && axes[at - 1].step > a.step; --at) axes[at] = axes[at - 1];
    axes[at] = a;
  }
  std::size_t pattern = 1;
  for (std::size_t i = 0; i < used; ++i) {
    Axis a = axes[i];
    while (i + 1 < used && axes[i + 1].step == a.step * a.extent) a.extent *= axes[++i].extent;  // one run
    pattern = (pattern ^ a.step) * 0x9e3779b97f4a7c15u;
    pattern = (pattern ^ a.extent) * 0x9e3779b97f4a7c15u;
  }
  return pattern | 1;
}

// Elements from one sample to the next.
inline std::size_t batchStride(const BNNSNDArrayDescriptor& d) noexcept {
  return sampleSize(d).stride;
}

// The number of elements the sizes name.
inline std::size_t elementCount(const BNNSNDArrayDescriptor& d) noexcept {
  std::size_t count = 1;
  for (std::size_t k = 0; k < rankOf(d.layout) && k < 8; ++k) count *= d.size[k];
  return count;
}

}  // namespace detail

/// Swift's BNNS.Shape. Wrong ranks and sizes that overflow throw Error with arrayDescriptorInvalidData.
class Shape {
 public:
  using Sizes = std::span<const std::size_t>;

  /// {n} is a vector; two to eight sizes are the first-major layout of that rank.
  Shape(std::initializer_list<std::size_t> size) : Shape(Sizes(size.begin(), size.size())) {}

  /// Sizes and strides in any layout; without a layout as above. No strides: packed.
  explicit Shape(Sizes size, std::optional<DataLayout> layout = {}, Sizes stride = {}) {
    if (size.empty() || size.size() > 8) {
      detail::badArray("Shape", "an array has 1 to 8 sizes, got " + std::to_string(size.size()));
    }
    layout_ = layout.value_or(firstMajor(size.size()));
    if (bnns::rank(layout_) != size.size()) {
      detail::badArray("Shape", "the layout has " + std::to_string(bnns::rank(layout_)) + " sizes, got " +
                                    std::to_string(size.size()));
    }
    if (!stride.empty() && stride.size() != size.size()) {
      detail::badArray("Shape",
                       "expected " + std::to_string(size.size()) + " strides, got " + std::to_string(stride.size()));
    }
    for (std::size_t k = 0; k < size.size(); ++k) size_[k] = size[k];
    for (std::size_t k = 0; k < stride.size(); ++k) stride_[k] = stride[k];
    elementCount(1);  // throws where a size overflows
  }

  /// The same from lists: Shape({2, 3}, DataLayout::matrixRowMajor).
  Shape(std::initializer_list<std::size_t> size, std::optional<DataLayout> layout,
        std::initializer_list<std::size_t> stride = {})
      : Shape(Sizes(size.begin(), size.size()), layout, Sizes(stride.begin(), stride.size())) {}

  template <std::size_t N>
  Shape(DataLayout layout, const std::array<std::size_t, N>& size, const std::array<std::size_t, N>& stride = {})
      : Shape(Sizes(size), layout, Sizes(stride)) {}

  // One for each Swift case.
  static Shape vector(std::size_t n, std::size_t stride = 0) {
    return {DataLayout::vector, std::array{n}, std::array{stride}};
  }
  static Shape matrixRowMajor(std::size_t columns, std::size_t rows, std::array<std::size_t, 2> stride = {}) {
    return {DataLayout::matrixRowMajor, {columns, rows}, stride};
  }
  static Shape matrixColumnMajor(std::size_t rows, std::size_t columns, std::array<std::size_t, 2> stride = {}) {
    return {DataLayout::matrixColumnMajor, {rows, columns}, stride};
  }
  static Shape matrixFirstMajor(std::size_t a, std::size_t b, std::array<std::size_t, 2> stride = {}) {
    return {DataLayout::matrixFirstMajor, {a, b}, stride};
  }
  static Shape matrixLastMajor(std::size_t a, std::size_t b, std::array<std::size_t, 2> stride = {}) {
    return {DataLayout::matrixLastMajor, {a, b}, stride};
  }
  static Shape imageCHW(std::size_t width, std::size_t height, std::size_t channels,
                        std::array<std::size_t, 3> stride = {}) {
    return {DataLayout::imageCHW, {width, height, channels}, stride};
  }
  static Shape tensor3DFirstMajor(std::size_t a, std::size_t b, std::size_t c, std::array<std::size_t, 3> stride = {}) {
    return {DataLayout::tensor3DFirstMajor, {a, b, c}, stride};
  }
  static Shape tensor3DLastMajor(std::size_t a, std::size_t b, std::size_t c, std::array<std::size_t, 3> stride = {}) {
    return {DataLayout::tensor3DLastMajor, {a, b, c}, stride};
  }
  static Shape tensor3DNSE(std::size_t e, std::size_t s, std::size_t n, std::array<std::size_t, 3> stride = {}) {
    return {DataLayout::tensor3DNSE, {e, s, n}, stride};
  }
  static Shape tensor3DSNE(std::size_t e, std::size_t n, std::size_t s, std::array<std::size_t, 3> stride = {}) {
    return {DataLayout::tensor3DSNE, {e, n, s}, stride};
  }
  static Shape convolutionWeightsOIHW(std::size_t width, std::size_t height, std::size_t in, std::size_t out,
                                      std::array<std::size_t, 4> stride = {}) {
    return {DataLayout::convolutionWeightsOIHW, {width, height, in, out}, stride};
  }
  static Shape tensor4DFirstMajor(std::array<std::size_t, 4> size, std::array<std::size_t, 4> stride = {}) {
    return {DataLayout::tensor4DFirstMajor, size, stride};
  }
  static Shape tensor4DLastMajor(std::array<std::size_t, 4> size, std::array<std::size_t, 4> stride = {}) {
    return {DataLayout::tensor4DLastMajor, size, stride};
  }
  static Shape tensor5DFirstMajor(std::array<std::size_t, 5> size, std::array<std::size_t, 5> stride = {}) {
    return {DataLayout::tensor5DFirstMajor, size, stride};
  }
  static Shape tensor5DLastMajor(std::array<std::size_t, 5> size, std::array<std::size_t, 5> stride = {}) {
    return {DataLayout::tensor5DLastMajor, size, stride};
  }
  static Shape tensor6DFirstMajor(std::array<std::size_t, 6> size, std::array<std::size_t, 6> stride = {}) {
    return {DataLayout::tensor6DFirstMajor, size, stride};
  }
  static Shape tensor6DLastMajor(std::array<std::size_t, 6> size, std::array<std::size_t, 6> stride = {}) {
    return {DataLayout::tensor6DLastMajor, size, stride};
  }
  static Shape tensor7DFirstMajor(std::array<std::size_t, 7> size, std::array<std::size_t, 7> stride = {}) {
    return {DataLayout::tensor7DFirstMajor, size, stride};
  }
  static Shape tensor7DLastMajor(std::array<std::size_t, 7> size, std::array<std::size_t, 7> stride = {}) {
    return {DataLayout::tensor7DLastMajor, size, stride};
  }
  static Shape tensor8DFirstMajor(std::array<std::size_t, 8> size, std::array<std::size_t, 8> stride = {}) {
    return {DataLayout::tensor8DFirstMajor, size, stride};
  }
  static Shape tensor8DLastMajor(std::array<std::size_t, 8> size, std::array<std::size_t, 8> stride = {}) {
    return {DataLayout::tensor8DLastMajor, size, stride};
  }

  DataLayout layout() const noexcept { return layout_; }
  std::size_t rank() const noexcept { return bnns::rank(layout_); }
  /// All eight entries; those past the rank are 0.
  std::span<const std::size_t, 8> size() const noexcept { return size_; }
  std::span<const std::size_t, 8> stride() const noexcept { return stride_; }
  /// Elements from one sample to the next.
  std::size_t batchStride() const noexcept { return detail::batchStride(describe(BNNSDataTypeFloat32)); }

  /// Elements of memory that `batchSize` samples take: the last sample ends at its last element.
  std::size_t elementCount(std::size_t batchSize = 1) const {
    const BNNSNDArrayDescriptor d = describe(BNNSDataTypeFloat32);
    std::size_t packed = 1, last = 0;  // `packed` is what stride[k] would be; `last` the offset of the last element
    for (std::size_t k = 0; k < rank(); ++k) {
      std::size_t extent = size_[detail::axisOfStride(d.layout, k, rank())];
      if (layout_ == DataLayout::convolutionWeightsOIHWPack32 && k == 3) extent = (extent + 31) / 32 * 32;
      if (extent == 0) return 0;
      const std::size_t step = stride_[k] != 0 ? stride_[k] : packed;
      last = detail::plus(last, detail::times(step, extent - 1, "Shape"), "Shape");
      packed = detail::times(step, extent, "Shape");
    }
    if (batchSize == 0) return 0;
    return detail::plus(detail::plus(detail::times(packed, batchSize - 1, "Shape"), last, "Shape"), 1, "Shape");
  }

  /// A descriptor of one sample, without data.
  BNNSNDArrayDescriptor describe(BNNSDataType type) const noexcept {
    BNNSNDArrayDescriptor d{};
    d.layout = static_cast<BNNSDataLayout>(layout_);
    for (std::size_t k = 0; k < 8; ++k) d.size[k] = size_[k], d.stride[k] = stride_[k];
    d.data_type = type;
    return d;
  }

 private:
  static DataLayout firstMajor(std::size_t rank) {
    if (rank == 1) return DataLayout::vector;
    return static_cast<DataLayout>((static_cast<std::uint32_t>(rank) << 16) | 0x8001u);
  }

  DataLayout layout_ = DataLayout::vector;
  std::array<std::size_t, 8> size_{}, stride_{};
};

}  // namespace bnns
