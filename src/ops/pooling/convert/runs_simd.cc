// Runs of 16-bit floats between memory and buffers of f32 in L1.
//
// Reading prefetches a page ahead, as the kernels of f32 do. Writing goes in whole cache lines, by non-temporal stores
// if asked; the elements before the first line and after the last one are ordinary stores. Exactly n elements are read
// and written, bit-identical to src/core/half.h.

#include "src/ops/pooling/convert/pieces.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/convert/runs_simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "src/ops/pooling/common/lanes-inl.h"
#include "src/simd/convert-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D16 = hn::ScalableTag<uint16_t>;

// Two vectors of f32, one of 16-bit floats.
template <typename T>
HWY_INLINE hn::Vec<D16> Rounded(VLane low, VLane high) {
  const DLane d;
#if HWY_TARGET == HWY_AVX3
  if constexpr (hwy::IsSame<T, hwy::bfloat16_t>()) {
    // The upper words of both after rounding, by one permutation: half the instructions of two conversions.
    const auto round = [](VLane v) HWY_ATTR {
      const __m512i bits = _mm512_castps_si512(v.raw), up = _mm512_set1_epi32(0x8000);
      const __m512i down = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF));
      const __m512i even =
          _mm512_mask_add_epi32(down, _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000)), bits, up);
      const __mmask16 nan = _mm512_cmp_ps_mask(v.raw, v.raw, _CMP_UNORD_Q);
      return _mm512_mask_or_epi32(even, nan, bits, _mm512_set1_epi32(0x400000));
    };
    return hn::ConcatOdd(D16(), hn::Vec<D16>{round(high)}, hn::Vec<D16>{round(low)});
  }
#endif
  return hn::Combine(D16(), ConvertFromFloat<T>(d, high), ConvertFromFloat<T>(d, low));
}

template <typename T>
void Load(const T* from, int64_t n, float* to) {
  const DLane d;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    if (i % 32 == 0) FetchAhead(reinterpret_cast<const float*>(from + i));
    hn::StoreU(LoadFloat(d, from + i), d, to + i);
    hn::StoreU(LoadFloat(d, from + i + kLanes), d, to + i + kLanes);
  }
  if (i < n) ToFloat(from + i, static_cast<size_t>(n - i), to + i);
}

template <typename T, bool kStream>
HWY_INLINE int64_t StoreLines(const float* from, int64_t i, int64_t n, uint16_t* to) {
  const DLane d;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const auto pixels = Rounded<T>(hn::LoadU(d, from + i), hn::LoadU(d, from + i + kLanes));
    if constexpr (kStream)
      hn::Stream(pixels, D16(), to + i);
    else
      hn::StoreU(pixels, D16(), to + i);
  }
  return i;
}
template <typename T>
void Store(const float* from, int64_t n, T* to, bool stream) {
  uint16_t* words = reinterpret_cast<uint16_t*>(to);
  int64_t i = 0;
  if (stream) {
    const int64_t before = static_cast<int64_t>((64 - reinterpret_cast<uintptr_t>(to) % 64) % 64 / sizeof(uint16_t));
    i = std::min(before, n);
    FromFloat(from, static_cast<size_t>(i), to);
    i = StoreLines<T, true>(from, i, i + (n - i) / 32 * 32, words);  // whole lines
  } else {
    i = StoreLines<T, false>(from, 0, n, words);
  }
  FromFloat(from + i, static_cast<size_t>(n - i), to + i);
}

}  // namespace

void LoadRun(bool half, const uint16_t* from, int64_t n, float* to) {
  half ? Load(AsHalf(from), n, to) : Load(AsBfloat16(from), n, to);
}
void StoreRun(bool half, const float* from, int64_t n, uint16_t* to, bool stream) {
  half ? Store(from, n, AsHalf(to), stream) : Store(from, n, AsBfloat16(to), stream);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void pooling_load_run(const Planes& planes, const void* plane, int64_t y, int64_t n, float* to) noexcept {
  const uint16_t* from = static_cast<const uint16_t*>(plane) + y * planes.row;
  BNNS_DISPATCH(LoadRun)(planes.type == BNNSDataTypeFloat16, from, n, to);
}
void pooling_store_run(const Planes& planes, void* plane, int64_t y, int64_t n, const float* from,
                       bool stream) noexcept {
  uint16_t* to = static_cast<uint16_t*>(plane) + y * planes.row;
  BNNS_DISPATCH(StoreRun)(planes.type == BNNSDataTypeFloat16, from, n, to, stream);
}
void pooling_finish_runs() noexcept {
  hwy::FlushStream();
}

}  // namespace bnns
#endif  // HWY_ONCE
