// Streaming copies and in-register transposes.
//
// A vector of the transpose is made of 16-byte blocks: block b of vector k comes from row k + K b of the source, K
// elements wide. Transposing every block in place then leaves, in vector c, column c of all rows, in order: one store.
// The last patch of a tile overlaps the one before it: a copy may be made twice, and no element is left for a slow
// loop. Two, three or four rows (or columns) that lie back to back are interleaved instead.

#include <cstring>

#include "src/engine/copy/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/engine/copy/copy_simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Rows row, row + K, row + 2K, ... of the source, 16 bytes of each, in one vector of D.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const hn::TFromD<D>* from, ptrdiff_t stride) {
  constexpr size_t kPerBlock = 16 / sizeof(hn::TFromD<D>);
  if constexpr (hn::MaxLanes(D()) <= kPerBlock) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    const ptrdiff_t rows = static_cast<ptrdiff_t>(hn::MaxLanes(half));  // kPerBlock rows for each block of the half
    return hn::Combine(d, LoadBlocks(half, from + rows * stride, stride), LoadBlocks(half, from, stride));
  }
}

// K x K blocks by log2 K rounds of "interleave vector k with vector k + K / 2"; v[c] is column c at the end. Unrolled
// by hand through the template: at -O2 gcc 12 keeps the array in memory otherwise.
template <size_t kRound, class D, size_t K>
HWY_INLINE void TransposeBlocks(D d, hn::Vec<D> (&v)[K]) {
  if constexpr (kRound < K) {
    hn::Vec<D> next[K];
    HWY_UNROLL(8)
    for (size_t k = 0; k < K / 2; ++k) {
      next[2 * k] = hn::InterleaveLower(d, v[k], v[k + K / 2]);
      next[2 * k + 1] = hn::InterleaveUpper(d, v[k], v[k + K / 2]);
    }
    TransposeBlocks<2 * kRound>(d, next);
    HWY_UNROLL(16)
    for (size_t k = 0; k < K; ++k) v[k] = next[k];
  }
}

// As many rows as D has lanes, K columns. kStream: the destination's rows are whole lines that are not read again soon.
template <bool kStream, class D, class T>
HWY_INLINE void TransposePatch(D d, const T* from, ptrdiff_t from_stride, T* to, ptrdiff_t to_stride) {
  constexpr size_t K = 16 / sizeof(T);
  hn::Vec<D> v[K];
  HWY_UNROLL(16)
  for (size_t k = 0; k < K; ++k) v[k] = LoadBlocks(d, from + static_cast<ptrdiff_t>(k) * from_stride, from_stride);
  TransposeBlocks<1>(d, v);
  HWY_UNROLL(16)
  for (size_t k = 0; k < K; ++k) {
    T* const line = to + static_cast<ptrdiff_t>(k) * to_stride;
    if constexpr (kStream) {
      hn::Stream(v[k], d, line);
    } else {
      hn::StoreU(v[k], d, line);
    }
  }
}

template <bool kStream, class D, class T>
HWY_INLINE void TransposePatches(D d, const T* from, ptrdiff_t from_stride, T* to, ptrdiff_t to_stride, size_t rows,
                                 size_t columns) {
  constexpr size_t K = 16 / sizeof(T);
  const size_t N = hn::Lanes(d);
  const auto patch = [&](size_t i, size_t j) HWY_ATTR {
    TransposePatch<kStream>(d, from + static_cast<ptrdiff_t>(i) * from_stride + j, from_stride,
                            to + i + static_cast<ptrdiff_t>(j) * to_stride, to_stride);
  };
  if (columns < rows) {  // the longer axis inside: it is the one that prefetchers follow
    for (size_t j = 0; j < columns; j += K) {
      if (j + K > columns) j = columns - K;
      for (size_t i = 0; i < rows; i += N) patch(i + N > rows ? rows - N : i, j);
    }
  } else {
    for (size_t i = 0; i < rows; i += N) {
      if (i + N > rows) i = rows - N;
      for (size_t j = 0; j < columns; j += K) patch(i, j + K > columns ? columns - K : j);
    }
  }
}

// Few rows become neighbours: to[j rows + i] = from[i from_stride + j].
template <class T>
HWY_INLINE size_t InterleaveRows(const T* from, ptrdiff_t from_stride, T* to, size_t rows, size_t columns) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  const T *r1 = from + from_stride, *r2 = from + 2 * from_stride, *r3 = from + 3 * from_stride;
  size_t j = 0;
  for (; j + N <= columns; j += N) {
    const auto v0 = hn::LoadU(d, from + j), v1 = hn::LoadU(d, r1 + j);
    if (rows == 2) {
      hn::StoreInterleaved2(v0, v1, d, to + 2 * j);
    } else if (rows == 3) {
      hn::StoreInterleaved3(v0, v1, hn::LoadU(d, r2 + j), d, to + 3 * j);
    } else {
      hn::StoreInterleaved4(v0, v1, hn::LoadU(d, r2 + j), hn::LoadU(d, r3 + j), d, to + 4 * j);
    }
  }
  return j;
}

// Neighbours become few columns: to[i + j to_stride] = from[i columns + j].
template <class T>
HWY_INLINE size_t SeparateColumns(const T* from, T* to, ptrdiff_t to_stride, size_t rows, size_t columns) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  T *c1 = to + to_stride, *c2 = to + 2 * to_stride, *c3 = to + 3 * to_stride;
  size_t i = 0;
  for (; i + N <= rows; i += N) {
    hn::Vec<decltype(d)> v0, v1, v2, v3;
    if (columns == 2) {
      hn::LoadInterleaved2(d, from + 2 * i, v0, v1);
    } else if (columns == 3) {
      hn::LoadInterleaved3(d, from + 3 * i, v0, v1, v2);
      hn::StoreU(v2, d, c2 + i);
    } else {
      hn::LoadInterleaved4(d, from + 4 * i, v0, v1, v2, v3);
      hn::StoreU(v2, d, c2 + i);
      hn::StoreU(v3, d, c3 + i);
    }
    hn::StoreU(v0, d, to + i);
    hn::StoreU(v1, d, c1 + i);
  }
  return i;
}

template <class T>
HWY_INLINE void TransposeTile(const T* from, ptrdiff_t from_stride, T* to, ptrdiff_t to_stride, size_t rows,
                              size_t columns, bool stream) {
  constexpr size_t K = 16 / sizeof(T);
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, K> block;
  size_t first_row = 0, first_column = 0;  // what is left for single elements begins here
  if (rows >= 2 && rows <= 4 && to_stride == static_cast<ptrdiff_t>(rows)) {
    first_column = InterleaveRows(from, from_stride, to, rows, columns);
  } else if (columns >= 2 && columns <= 4 && from_stride == static_cast<ptrdiff_t>(columns)) {
    first_row = SeparateColumns(from, to, to_stride, rows, columns);
  } else if (rows >= hn::Lanes(d) && columns >= K) {
    const size_t bytes = hn::Lanes(d) * sizeof(T);
    const bool lines = bytes == 64 && reinterpret_cast<uintptr_t>(to) % bytes == 0 &&
                       static_cast<size_t>(to_stride) * sizeof(T) % bytes == 0;
    if (stream && lines) {
      const size_t whole = rows / hn::Lanes(d) * hn::Lanes(d);
      TransposePatches<true>(d, from, from_stride, to, to_stride, whole, columns);
      if (whole == rows) return;
      from += static_cast<ptrdiff_t>(whole) * from_stride, to += whole, rows -= whole;
      return TransposeTile(from, from_stride, to, to_stride, rows, columns, false);
    }
    return TransposePatches<false>(d, from, from_stride, to, to_stride, rows, columns);
  } else if (rows >= K && columns >= K) {
    return TransposePatches<false>(block, from, from_stride, to, to_stride, rows, columns);
  }
  for (size_t j = first_column; j < columns; ++j) {
    for (size_t i = first_row; i < rows; ++i) {
      to[static_cast<ptrdiff_t>(i) + static_cast<ptrdiff_t>(j) * to_stride] =
          from[static_cast<ptrdiff_t>(i) * from_stride + static_cast<ptrdiff_t>(j)];
    }
  }
}

}  // namespace

void TransposeTile8(const uint8_t* from, ptrdiff_t from_stride, uint8_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream) {
  TransposeTile(from, from_stride, to, to_stride, rows, columns, stream);
}
void TransposeTile16(const uint16_t* from, ptrdiff_t from_stride, uint16_t* to, ptrdiff_t to_stride, size_t rows,
                     size_t columns, bool stream) {
  TransposeTile(from, from_stride, to, to_stride, rows, columns, stream);
}
void TransposeTile32(const uint32_t* from, ptrdiff_t from_stride, uint32_t* to, ptrdiff_t to_stride, size_t rows,
                     size_t columns, bool stream) {
  TransposeTile(from, from_stride, to, to_stride, rows, columns, stream);
}
void TransposeTile64(const uint64_t* from, ptrdiff_t from_stride, uint64_t* to, ptrdiff_t to_stride, size_t rows,
                     size_t columns, bool stream) {
  TransposeTile(from, from_stride, to, to_stride, rows, columns, stream);
}

void CopyStreaming(const void* from, void* to, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t N = hn::Lanes(d);
  const uint8_t* HWY_RESTRICT source = static_cast<const uint8_t*>(from);
  uint8_t* HWY_RESTRICT target = static_cast<uint8_t*>(to);
  size_t head = (N - reinterpret_cast<uintptr_t>(target) % N) % N;
  if (head > bytes) head = bytes;
  std::memcpy(target, source, head);  // streaming stores need an aligned target
  size_t i = head;
  for (; i + 4 * N <= bytes; i += 4 * N) {
    const auto v0 = hn::LoadU(d, source + i), v1 = hn::LoadU(d, source + i + N);
    const auto v2 = hn::LoadU(d, source + i + 2 * N), v3 = hn::LoadU(d, source + i + 3 * N);
    hn::Stream(v0, d, target + i);
    hn::Stream(v1, d, target + i + N);
    hn::Stream(v2, d, target + i + 2 * N);
    hn::Stream(v3, d, target + i + 3 * N);
  }
  hwy::FlushStream();
  std::memcpy(target + i, source + i, bytes - i);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void copy_streaming(const void* from, void* to, size_t bytes) noexcept {
  BNNS_DISPATCH(CopyStreaming)(from, to, bytes);
}
void transpose_tile(const uint8_t* from, ptrdiff_t from_stride, uint8_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream) noexcept {
  BNNS_DISPATCH(TransposeTile8)(from, from_stride, to, to_stride, rows, columns, stream);
}
void transpose_tile(const uint16_t* from, ptrdiff_t from_stride, uint16_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream) noexcept {
  BNNS_DISPATCH(TransposeTile16)(from, from_stride, to, to_stride, rows, columns, stream);
}
void transpose_tile(const uint32_t* from, ptrdiff_t from_stride, uint32_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream) noexcept {
  BNNS_DISPATCH(TransposeTile32)(from, from_stride, to, to_stride, rows, columns, stream);
}
void transpose_tile(const uint64_t* from, ptrdiff_t from_stride, uint64_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream) noexcept {
  BNNS_DISPATCH(TransposeTile64)(from, from_stride, to, to_stride, rows, columns, stream);
}

}  // namespace bnns
#endif
