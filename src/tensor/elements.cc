#include "src/tensor/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/simd/convert.h"
#include "src/simd/sums.h"
#include "src/tensor/number_rows.h"
#include "src/tensor/stored_number.h"
#include "src/tensor/with_integer.h"

namespace bnns {
Elements::Elements(const Tensor& t) : Elements(t, t) {}

Elements::Elements(const Tensor& t, const Tensor& as)
    : type_(t.type),
      table_type_(t.table_type),
      scale_(t.scale),
      bias_(t.bias),
      table_(t.table),
      rank_(as.rank),
      count_(as.count) {
  for (size_t j = 0; j < rank_; ++j) {
    const size_t k = as.axis[j];
    extent_[j] = as.size[k];
    stride_[j] = t.size[k] == 1 ? 0 : t.stride[k];
  }
  merge_axes();
  direct_ = type_ == BNNSDataTypeFloat32 && rank_ == 1 && (stride_[0] == 1 || count_ == 1);
}

void Elements::merge_axes() {
  size_t kept = 0;
  for (size_t j = 0; j < rank_; ++j) {
    if (extent_[j] == 1) continue;
    if (kept > 0 && stride_[j] == stride_[kept - 1] * extent_[kept - 1]) {
      extent_[kept - 1] *= extent_[j];
      continue;
    }
    extent_[kept] = extent_[j];
    stride_[kept++] = stride_[j];
  }
  if (kept == 0) {  // a single element
    extent_[0] = 1;
    stride_[0] = 1;
    kept = 1;
  }
  rank_ = kept;
}

size_t Elements::offset(size_t index) const {
  size_t result = 0;
  for (size_t j = 0; j < rank_; ++j) {
    result += index % extent_[j] * stride_[j];
    index /= extent_[j];
  }
  return result;
}

namespace {

// Some rows along the fastest axis of a block: row r begins at `at + r * row_stride`, its elements are `stride` apart.
struct Rows {
  size_t at, stride, row_stride, length, count;
};

constexpr size_t kShortRun = 16;  // elements that a loop copies sooner than a call

bool is_half(BNNSDataType type) {
  return type == BNNSDataTypeFloat16 || type == BNNSDataTypeBFloat16;
}

// to[0, n) is there: it again and again until there are `total`. What is copied stays in L1.
template <class T>
void repeat(T* to, size_t n, size_t total) {
  for (size_t done = n; done < total; done *= 2) std::memcpy(to + done, to, std::min(done, total - done) * sizeof(T));
}

// The elements of rows, one row after the other.
template <class T>
void gather_rows(const T* base, const Rows& rows, T* to) {
  const size_t length = rows.length;
  const bool is_one_row = rows.row_stride == 0 && length * rows.count > kShortRun;  // that stands there several times
  for (size_t r = 0; r < (is_one_row ? 1 : rows.count); ++r, to += length) {
    const T* from = base + rows.at + r * rows.row_stride;
    if (rows.stride == 1 && length > kShortRun) {
      std::memcpy(to, from, length * sizeof(T));
    } else if (rows.stride == 0 && length > kShortRun) {
      std::fill_n(to, kShortRun, *from);
      repeat(to, kShortRun, length);
    } else {
      for (size_t i = 0; i < length; ++i) to[i] = from[i * rows.stride];
    }
  }
  if (is_one_row) repeat(to - length, length, length * rows.count);
}

template <class T>
void scatter_rows(const T* from, const Rows& rows, T* base) {
  const size_t length = rows.length;
  for (size_t r = 0; r < rows.count; ++r, from += length) {
    T* to = base + rows.at + r * rows.row_stride;
    if (rows.stride == 1 && length > kShortRun) {
      std::memcpy(to, from, length * sizeof(T));
    } else {
      for (size_t i = 0; i < length; ++i) to[i * rows.stride] = from[i];
    }
  }
}

// Integers of 8 and 16 bits, by vectors; false: another type.
bool widen_integers(BNNSDataType type, const void* base, size_t at, size_t n, float scale, float bias, float* to) {
  bool known = false;
  with_integer(type, [&](auto value) {
    using T = decltype(value);
    if constexpr (sizeof(T) <= 2) {
      integers_to_float(static_cast<const T*>(base) + at, to, n, scale, bias);
      known = true;
    }
  });
  return known;
}

}  // namespace

// Calls run(rows, position) for elements [first, first + n): as many whole rows of the fastest axis at once as
// follow each other along the next one, so that short rows do not pay for the walk.
template <class Run>
void Elements::for_each_run(size_t first, size_t n, Run&& run) const {
  size_t coordinate[kMaxRank], at = 0, rest = first;
  for (size_t j = 0; j < rank_; ++j) {
    coordinate[j] = rest % extent_[j];
    rest /= extent_[j];
    at += coordinate[j] * stride_[j];
  }
  for (size_t position = 0; position < n;) {
    Rows rows{at, stride_[0], 0, std::min(n - position, extent_[0] - coordinate[0]), 1};
    if (rank_ > 1 && rows.length == extent_[0]) {
      rows.count = std::min((n - position) / extent_[0], extent_[1] - coordinate[1]);
      rows.row_stride = stride_[1];
    }
    run(rows, position);
    position += rows.length * rows.count;
    if (rank_ == 1 || rows.length + coordinate[0] < extent_[0]) {
      coordinate[0] += rows.length;
      at += rows.length * stride_[0];
      continue;
    }
    at += rows.count * stride_[1] - coordinate[0] * stride_[0];
    coordinate[0] = 0;
    coordinate[1] += rows.count;
    for (size_t j = 1; j + 1 < rank_ && coordinate[j] == extent_[j]; ++j) {
      at += stride_[j + 1] - extent_[j] * stride_[j];
      coordinate[j] = 0;
      ++coordinate[j + 1];
    }
  }
}

void Elements::gather(const void* base, size_t first, size_t n, float* buffer) const {
  if (is_half(type_)) {  // the bits of a block are brought together first, and converted by vectors
    const auto* from = static_cast<const uint16_t*>(base);
    const auto convert = [&](const uint16_t* bits, float* to, size_t m) {
      type_ == BNNSDataTypeFloat16 ? half_to_float(bits, to, m) : bfloat16_to_float(bits, to, m);
    };
    if (rank_ == 1 && stride_[0] == 1) return convert(from + first, buffer, n);
    uint16_t bits[kBlock];
    for (size_t done = 0; done < n; done += kBlock) {
      const size_t m = std::min(kBlock, n - done);
      for_each_run(first + done, m, [&](const Rows& rows, size_t at) { gather_rows(from, rows, bits + at); });
      convert(bits, buffer + done, m);
    }
    return;
  }
  for_each_run(first, n, [&](const Rows& rows, size_t position) {
    float* to = buffer + position;
    if (type_ == BNNSDataTypeFloat32) return gather_rows(static_cast<const float*>(base), rows, to);
    for (size_t r = 0; r < rows.count; ++r, to += rows.length) {
      const size_t at = rows.at + r * rows.row_stride;
      if (type_bytes(type_) != 0) {
        load_numbers(type_, element_at(base, type_, at), rows.stride, rows.length, scale_, bias_, to);
      } else if (is_indexed(type_)) {
        for (size_t i = 0; i < rows.length; ++i) {
          const unsigned index = load_bits(base, at + i * rows.stride, type_bits(type_));
          to[i] = static_cast<float>(load_number(table_type_, table_, index));
        }
      } else if (rows.stride != 1 || !widen_integers(type_, base, at, rows.length, scale_, bias_, to)) {
        for (size_t i = 0; i < rows.length; ++i) {
          to[i] = scale_ * static_cast<float>(load_number(type_, base, at + i * rows.stride)) + bias_;
        }
      }
    }
  });
}

void Elements::scatter(void* base, size_t first, size_t n, const float* values) const {
  if (is_half(type_)) {
    auto* to = static_cast<uint16_t*>(base);
    const auto convert = [&](const float* from, uint16_t* bits, size_t m) {
      type_ == BNNSDataTypeFloat16 ? float_to_half(from, bits, m) : float_to_bfloat16(from, bits, m);
    };
    if (rank_ == 1 && stride_[0] == 1) return convert(values, to + first, n);
    uint16_t bits[kBlock];
    for (size_t done = 0; done < n; done += kBlock) {
      const size_t m = std::min(kBlock, n - done);
      convert(values + done, bits, m);
      for_each_run(first + done, m, [&](const Rows& rows, size_t at) { scatter_rows(bits + at, rows, to); });
    }
    return;
  }
  for_each_run(first, n, [&](const Rows& rows, size_t position) {
    const float* from = values + position;
    if (type_ == BNNSDataTypeFloat32) return scatter_rows(from, rows, static_cast<float*>(base));
    for (size_t r = 0; r < rows.count; ++r, from += rows.length) {
      const size_t at = rows.at + r * rows.row_stride;
      if (type_bytes(type_) != 0) {
        store_numbers(type_, from, rows.length, scale_, bias_, element_at(base, type_, at), rows.stride);
      } else {
        for (size_t i = 0; i < rows.length; ++i) {
          const double scaled = static_cast<double>(from[i]) / scale_ - bias_;
          store_integer_as(type_, base, at + i * rows.stride, std::nearbyint(scaled));
        }
      }
    }
  });
}

void Elements::accumulate(void* base, size_t first, size_t n, const float* values) const {
  if (direct_) {
    float* to = static_cast<float*>(base) + first;
    return add_row(values, n, to);
  }
  float buffer[kBlock];
  for (size_t done = 0; done < n; done += kBlock) {
    const size_t m = std::min(kBlock, n - done);
    gather(base, first + done, m, buffer);
    add_row(values + done, m, buffer);
    scatter(base, first + done, m, buffer);
  }
}

Elements row_elements(const Tensor& t, size_t n, size_t stride) {
  Tensor row = t;
  row.rank = 1;
  row.axis[0] = 0;
  row.size[0] = row.count = n;
  row.stride[0] = stride;
  return Elements(row);
}

}  // namespace bnns
