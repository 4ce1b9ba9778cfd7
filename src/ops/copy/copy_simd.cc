// Streaming copies and in-register transposes.
//
// A vector of the transpose is made of 16-byte blocks: block b of vector k comes from row k + K b of the source, K
// elements wide. Transposing every block in place then leaves, in vector c, column c of all rows, in order: one store.

#include <cstring>

#include "src/ops/copy/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/copy/copy_simd.cc"
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

HWY_INLINE void TransposePatch(const uint32_t* from, ptrdiff_t from_stride, uint32_t* to, ptrdiff_t to_stride) {
  const hn::ScalableTag<uint32_t> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto r0 = LoadBlocks(d, from, from_stride), r1 = LoadBlocks(d, from + from_stride, from_stride);
  const auto r2 = LoadBlocks(d, from + 2 * from_stride, from_stride);
  const auto r3 = LoadBlocks(d, from + 3 * from_stride, from_stride);
  const auto a = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1)),
             b = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
  const auto c = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1)),
             e = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, c, e)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, c, e)), d, to + 3 * to_stride);
}

HWY_INLINE void TransposePatch(const uint64_t* from, ptrdiff_t from_stride, uint64_t* to, ptrdiff_t to_stride) {
  const hn::ScalableTag<uint64_t> d;
  const auto r0 = LoadBlocks(d, from, from_stride), r1 = LoadBlocks(d, from + from_stride, from_stride);
  hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + to_stride);
}

template <class T>
HWY_INLINE void TransposeTile(const T* from, ptrdiff_t from_stride, T* to, ptrdiff_t to_stride, size_t rows,
                              size_t columns) {
  constexpr size_t kWide = 16 / sizeof(T);  // columns of a patch; it has as many rows as a vector has lanes
  const size_t N = hn::Lanes(hn::ScalableTag<T>());
  const size_t whole_rows = rows / N * N, whole_columns = columns / kWide * kWide;
  for (size_t i = 0; i < whole_rows; i += N) {
    const T* patch_from = from + static_cast<ptrdiff_t>(i) * from_stride;
    for (size_t j = 0; j < whole_columns; j += kWide) {
      TransposePatch(patch_from + j, from_stride, to + i + static_cast<ptrdiff_t>(j) * to_stride, to_stride);
    }
  }
  for (size_t j = 0; j < columns; ++j) {  // what is left below and to the right
    for (size_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      to[static_cast<ptrdiff_t>(i) + static_cast<ptrdiff_t>(j) * to_stride] =
          from[static_cast<ptrdiff_t>(i) * from_stride + static_cast<ptrdiff_t>(j)];
    }
  }
}

}  // namespace

void TransposeTile32(const uint32_t* from, ptrdiff_t from_stride, uint32_t* to, ptrdiff_t to_stride, size_t rows,
                     size_t columns) {
  TransposeTile(from, from_stride, to, to_stride, rows, columns);
}
void TransposeTile64(const uint64_t* from, ptrdiff_t from_stride, uint64_t* to, ptrdiff_t to_stride, size_t rows,
                     size_t columns) {
  TransposeTile(from, from_stride, to, to_stride, rows, columns);
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
void transpose_tile(const uint32_t* from, ptrdiff_t from_stride, uint32_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns) noexcept {
  BNNS_DISPATCH(TransposeTile32)(from, from_stride, to, to_stride, rows, columns);
}
void transpose_tile(const uint64_t* from, ptrdiff_t from_stride, uint64_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns) noexcept {
  BNNS_DISPATCH(TransposeTile64)(from, from_stride, to, to_stride, rows, columns);
}

}  // namespace bnns
#endif
