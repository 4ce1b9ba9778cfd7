// Texels between images (f32 or f16) and AVX-512 registers: 4 texels, a cache line of f32, at a time.

#if defined(BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

using Float4x4 = __m512;  // 4 texels
using Code4x4 = __m512i;

// The first n of 4 texels.
HWY_INLINE __mmask16 FirstTexels(int64_t n) {
  return static_cast<__mmask16>(n >= 4 ? 0xffff : n <= 0 ? 0 : (1 << (4 * n)) - 1);
}

HWY_INLINE Float4x4 LoadTexels4(const float* from) {
  return _mm512_loadu_ps(from);
}
HWY_INLINE Float4x4 LoadTexels4(const hwy::float16_t* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
// Lanes outside the mask are not read and 0.
HWY_INLINE Float4x4 LoadTexels4(const float* from, __mmask16 mask) {
  return _mm512_maskz_loadu_ps(mask, from);
}
HWY_INLINE Float4x4 LoadTexels4(const hwy::float16_t* from, __mmask16 mask) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
}

// The last 4 - s texels of `before`, then the first s of `after`.
HWY_INLINE __m512 ShiftIn(__m512 before, __m512 after, int s) {
  alignas(64) static constexpr int32_t kIndex[5][16] = {
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
      {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19},
      {8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23},
      {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27},
      {16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};
  return _mm512_permutex2var_ps(before, _mm512_load_si512(kIndex[s]), after);
}
HWY_INLINE __m256i ShiftIn(__m256i before, __m256i after, int s) {
  alignas(32) static constexpr int64_t kIndex[5][4] = {
      {0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}, {4, 5, 6, 7}};
  return _mm256_permutex2var_epi64(before, _mm256_load_si256(reinterpret_cast<const __m256i*>(kIndex[s])), after);
}

// How 4 texels lie in an image.
template <typename T>
struct Packed;
template <>
struct Packed<float> {
  using Vec = __m512;
  static HWY_INLINE Vec From(Float4x4 v) { return v; }
  static HWY_INLINE void Store(float* to, Vec v) { _mm512_store_ps(to, v); }
  static HWY_INLINE void Stream(float* to, Vec v) { _mm512_stream_ps(to, v); }
  static HWY_INLINE void StoreSome(float* to, Vec v, int begin, int end) {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>(FirstTexels(end) & ~FirstTexels(begin)), v);
  }
};
template <>
struct Packed<hwy::float16_t> {
  using Vec = __m256i;
  static HWY_INLINE Vec From(Float4x4 v) { return _mm512_cvtps_ph(v, _MM_FROUND_NO_EXC); }
  static HWY_INLINE void Store(hwy::float16_t* to, Vec v) { _mm256_store_si256(reinterpret_cast<__m256i*>(to), v); }
  static HWY_INLINE void Stream(hwy::float16_t* to, Vec v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(to), v); }
  static HWY_INLINE void StoreSome(hwy::float16_t* to, Vec v, int begin, int end) {
    _mm256_mask_storeu_epi64(to, static_cast<__mmask8>((1 << end) - (1 << begin)), v);
  }
};

// Writes texels one after the other as aligned vectors, around the caches if asked. What does not fill one waits for
// the texels to come, in a register.
template <typename T>
class TexelStream {
  using P = Packed<T>;
  using Vec = typename P::Vec;

 public:
  HWY_INLINE explicit TexelStream(bool around) : last_(P::From(_mm512_setzero_ps())), around_(around) {}

  // `to` must be a multiple of a texel's size.
  HWY_INLINE void Seek(T* to) {
    if (line_ != nullptr && to == line_ + 4 * fill_) return;
    Finish();
    begin_ = fill_ = static_cast<int>(reinterpret_cast<uintptr_t>(to) / (4 * sizeof(T)) % 4);
    line_ = to - 4 * fill_;
  }
  // The first n texels of v, 1 to 4.
  HWY_INLINE void Put(Float4x4 v, int n) {
    const Vec now = P::From(v);
    if (fill_ + n >= 4) {
      const Vec full = fill_ == 0 ? now : ShiftIn(last_, now, 4 - fill_);
      if (HWY_UNLIKELY(begin_ != 0)) {
        P::StoreSome(line_, full, begin_, 4);
      } else if (around_) {
        P::Stream(line_, full);
      } else {
        P::Store(line_, full);
      }
      begin_ = 0, fill_ -= 4, line_ += 16;
    }
    fill_ += n;
    last_ = n == 4 ? now : ShiftIn(last_, now, n);
  }
  HWY_INLINE void Finish() {
    if (line_ != nullptr && fill_ > begin_) P::StoreSome(line_, ShiftIn(last_, last_, 4 - fill_), begin_, fill_);
    line_ = nullptr;
  }

 private:
  Vec last_;  // the last 4 texels
  T* line_ = nullptr;
  int begin_ = 0, fill_ = 0;  // texels [begin, fill) of the line wait
  bool around_;
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_
