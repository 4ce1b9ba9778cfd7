// Texels between images (f32 or f16) and AVX-512 registers: 4 texels of f32 to a register in arithmetic, whole cache
// lines (4 texels of f32, 8 of f16) on their way out.

#if defined(BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

using Float4x4 = __m512;  // 4 texels

// The first n of 4 texels.
HWY_INLINE __mmask16 FirstTexels(int64_t n) {
  return static_cast<__mmask16>(n >= 4 ? 0xffff : n <= 0 ? 0 : (1 << (4 * n)) - 1);
}

// Of 8 texels the 4 from texel s on.
template <int s>
HWY_INLINE Float4x4 ShiftIn(Float4x4 before, Float4x4 after) {
  return _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(after), _mm512_castps_si512(before), 4 * s));
}

HWY_INLINE Float4x4 LoadTexels4(const float* from) {
  return _mm512_loadu_ps(from);
}
HWY_INLINE Float4x4 LoadTexels4(const hwy::float16_t* from) {
  __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
#ifdef __clang__
  asm("" : "+v"(v));  // clang 14 otherwise makes half of the load eight of one element: a third of the speed
#endif
  return _mm512_cvtph_ps(v);
}
// Lanes outside the mask are not read: 0 or -inf.
HWY_INLINE Float4x4 LoadTexels4(const float* from, __mmask16 mask, bool lowest) {
  return _mm512_mask_loadu_ps(_mm512_set1_ps(lowest ? -HUGE_VALF : 0.0f), mask, from);
}
HWY_INLINE Float4x4 LoadTexels4(const hwy::float16_t* from, __mmask16 mask, bool lowest) {
  const __m256i fill = _mm256_set1_epi16(static_cast<int16_t>(lowest ? 0xfc00 : 0));
  return _mm512_cvtph_ps(_mm256_mask_loadu_epi16(fill, mask, from));
}
// One texel, in the first lanes.
HWY_INLINE Float4x4 LoadTexel(const float* from) {
  return _mm512_castps128_ps512(_mm_loadu_ps(from));
}
HWY_INLINE Float4x4 LoadTexel(const hwy::float16_t* from) {
  return _mm512_castps128_ps512(_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}

HWY_INLINE void StoreTexels4(float* to, Float4x4 v) {
  _mm512_storeu_ps(to, v);
}
HWY_INLINE void StoreTexels4(hwy::float16_t* to, Float4x4 v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(v, _MM_FROUND_NO_EXC));
}

// A cache line of an image.
template <typename T>
struct Packed;
template <>
struct Packed<float> {
  using Vec = __m512;
  static constexpr int kTexels = 4, kGroups = 1;  // kGroups registers of 4 texels in arithmetic
  // Of two lines that follow each other as many texels from texel s on.
  static HWY_INLINE __m512i ShiftIndex(int s) {
    alignas(64) static constexpr int32_t kIota[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    return _mm512_loadu_si512(kIota + 4 * s);
  }
  static HWY_INLINE Vec Shift(Vec before, Vec after, __m512i index) {
    return _mm512_permutex2var_ps(before, index, after);
  }
  static HWY_INLINE Vec Zero() { return _mm512_setzero_ps(); }
  static HWY_INLINE Vec From(const Float4x4* v) { return v[0]; }
  // Texels in turn from `even` and `odd`: two lines.
  static HWY_INLINE void Pairs(const Float4x4* even, const Float4x4* odd, Vec* to) {
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    to[0] = _mm512_permutex2var_ps(even[0], low, odd[0]), to[1] = _mm512_permutex2var_ps(even[0], high, odd[0]);
  }
  static HWY_INLINE Vec Load(const float* from) { return _mm512_loadu_ps(from); }
  static HWY_INLINE void StoreUnaligned(float* to, Vec v) { _mm512_storeu_ps(to, v); }
  static HWY_INLINE void Store(float* to, Vec v) { _mm512_store_ps(to, v); }
  static HWY_INLINE void Stream(float* to, Vec v) { _mm512_stream_ps(to, v); }
  static HWY_INLINE void StoreSome(float* to, Vec v, int begin, int end) {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>(FirstTexels(end) & ~FirstTexels(begin)), v);
  }
};
template <>
struct Packed<hwy::float16_t> {
  using Vec = __m512i;
  static constexpr int kTexels = 8, kGroups = 2;
  static HWY_INLINE __m512i ShiftIndex(int s) {
    alignas(64) static constexpr int64_t kIota[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return _mm512_loadu_si512(kIota + s);
  }
  static HWY_INLINE Vec Shift(Vec before, Vec after, __m512i index) {
    return _mm512_permutex2var_epi64(before, index, after);
  }
  static HWY_INLINE Vec Zero() { return _mm512_setzero_si512(); }
  static HWY_INLINE __m512i Half(Float4x4 v) { return _mm512_castsi256_si512(_mm512_cvtps_ph(v, _MM_FROUND_NO_EXC)); }
  static HWY_INLINE Vec From(const Float4x4* v) {
    return _mm512_inserti64x4(Half(v[0]), _mm512_cvtps_ph(v[1], _MM_FROUND_NO_EXC), 1);
  }
  static HWY_INLINE void Pairs(const Float4x4* even, const Float4x4* odd, Vec* to) {
    const __m512i turns = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    for (int i = 0; i < 2; ++i) to[i] = _mm512_permutex2var_epi64(Half(even[i]), turns, Half(odd[i]));
  }
  static HWY_INLINE Vec Load(const hwy::float16_t* from) { return _mm512_loadu_si512(from); }
  static HWY_INLINE void StoreUnaligned(hwy::float16_t* to, Vec v) { _mm512_storeu_si512(to, v); }
  static HWY_INLINE void Store(hwy::float16_t* to, Vec v) { _mm512_store_si512(to, v); }
  static HWY_INLINE void Stream(hwy::float16_t* to, Vec v) { _mm512_stream_si512(reinterpret_cast<__m512i*>(to), v); }
  static HWY_INLINE void StoreSome(hwy::float16_t* to, Vec v, int begin, int end) {
    _mm512_mask_storeu_epi64(to, static_cast<__mmask8>((1 << end) - (1 << begin)), v);
  }
};

// Whole lines of texels one after the other, from wherever in a line the texels before end.
template <typename T>
struct LineStream {
  using P = Packed<T>;
  typename P::Vec last;
  __m512i shift;
  T* line;
  bool around;

  HWY_INLINE void Put(typename P::Vec now) {
    const auto full = P::Shift(last, now, shift);
    around ? P::Stream(line, full) : P::Store(line, full);
    line += 4 * P::kTexels, last = now;
  }
};

// Writes texels one after the other as whole cache lines, with non-temporal stores if told to. What does not fill one
// waits for the texels to come, in a register.
template <typename T>
class TexelStream {
  using P = Packed<T>;
  using Vec = typename P::Vec;
  static constexpr int kTexels = P::kTexels;

 public:
  HWY_INLINE explicit TexelStream(bool around) : last_(P::Zero()), around_(around) {}

  // `to` must be a multiple of a texel's size.
  HWY_INLINE void Seek(T* to) {
    if (line_ != nullptr && to == line_ + 4 * fill_) return;
    Finish();
    begin_ = fill_ = static_cast<int>(reinterpret_cast<uintptr_t>(to) / (4 * sizeof(T)) % kTexels);
    line_ = to - 4 * fill_;
  }
  // The first n texels, 1 to kTexels.
  HWY_INLINE void Put(Vec now, int n) {
    if (fill_ + n >= kTexels) {
      Send(Shifted(last_, now, kTexels - fill_));
      fill_ -= kTexels;
    }
    fill_ += n;
    last_ = Shifted(last_, now, n);
  }
  // For a run of whole vectors: what was put before is in whole lines, or this stream's only.
  HWY_INLINE bool CanRun() const { return begin_ == 0; }
  HWY_INLINE LineStream<T> Run() const { return {last_, P::ShiftIndex(kTexels - fill_), line_, around_}; }
  HWY_INLINE void EndRun(const LineStream<T>& run) { last_ = run.last, line_ = run.line; }

  HWY_INLINE void Finish() {
    if (line_ != nullptr && fill_ > begin_) P::StoreSome(line_, Shifted(last_, last_, kTexels - fill_), begin_, fill_);
    line_ = nullptr;
  }

 private:
  static HWY_INLINE Vec Shifted(Vec before, Vec after, int s) { return P::Shift(before, after, P::ShiftIndex(s)); }
  HWY_INLINE void Send(Vec full) {
    if (HWY_UNLIKELY(begin_ != 0)) {  // texels before are not ours
      P::StoreSome(line_, full, begin_, kTexels);
      begin_ = 0;
    } else if (around_) {
      P::Stream(line_, full);
    } else {
      P::Store(line_, full);
    }
    line_ += 4 * kTexels;
  }

  Vec last_;  // the last kTexels texels
  T* line_ = nullptr;
  int begin_ = 0, fill_ = 0;  // texels [begin, fill) of the line wait
  bool around_;
};

// A row of texels in scratch.
template <typename T>
struct ScratchRow {
  using P = Packed<T>;
  T* at = nullptr;

  HWY_INLINE void Put(typename P::Vec v) { P::StoreUnaligned(at, v), at += 4 * P::kTexels; }
  HWY_INLINE void Put(typename P::Vec v, int n) { P::StoreSome(at, v, 0, n), at += 4 * n; }
};

// n elements from scratch, where whatever follows may be read too.
template <typename T>
HWY_INLINE void PutTexels(const T* from, int64_t n, T* to, TexelStream<T>& out) {
  using P = Packed<T>;
  constexpr int64_t kLine = 4 * P::kTexels;
  out.Seek(to);
  int64_t i = 0;
  for (; i + kLine <= n && !out.CanRun(); i += kLine) out.Put(P::Load(from + i), P::kTexels);
  if (i + kLine <= n) {
    LineStream<T> run = out.Run();
    for (; i + kLine <= n; i += kLine) run.Put(P::Load(from + i));
    out.EndRun(run);
  }
  if (i < n) out.Put(P::Load(from + i), static_cast<int>((n - i) / 4));
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_STREAM_INL_H_
