// Maxima of small planes of f16 in 3x3 stride 1 windows (mps_pooling_cpu_small-inl.h), as 16-bit integers: 8 windows
// side by side, from top to bottom.

#if defined(BNNS_OPS_MPS_POOLING_CPU_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_HALVES_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_HALVES_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_HALVES_INL_H_
#endif

#include "src/ops/mps_pooling/mps_pooling_cpu_keys-inl.h"
#include "src/ops/mps_pooling/mps_pooling_cpu_plane-inl.h"
#include "src/ops/mps_pooling/mps_pooling_cpu_small-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

class HalfMaxPlane : public SmallPlane<hwy::float16_t, PoolKind::max, false> {
  using T = hwy::float16_t;
  using Base = SmallPlane<T, PoolKind::max, false>;
  using Keys = HalfKeys<false>;

 public:
  HWY_NOINLINE HalfMaxPlane(const DirectPlan& p, float* scratch)
      : Base(p, scratch, (p.x.windows + 7) / 8), plan_(&p), scratch_(scratch) {
    Base::Fill(0, Keys::Border(p.edge == PoolEdge::zero));
    in_ = reinterpret_cast<T*>(Base::At(0, 0, 0));
  }

  // As DirectPlane::Run.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    Keys keys;
    Base::Begin(x, g);
    Copy(x, keys);
    Base::Finish(out);
    for (int64_t w = 0; w < p_.x.windows; w += 8) {
      Base::Ask();
      MaxColumn(HWY_MAX(0, HWY_MIN(w, p_.x.windows - 8)), keys);
    }
    if (!keys.Good()) return RunFloats(*plan_, scratch_, x, to, out);
    Base::End(to);
    return true;
  }

 private:
  HWY_INLINE void Copy(const T* x, Keys& keys) const {
    const int64_t width = p_.x.size;
    for (int64_t y = 0; y < p_.y.size; ++y, x += p_.source_row) {
      T* to = in_ + 4 * y * pitch_;
      for (int64_t i = 0; i < width && width >= 8; i += 8) {
        const int64_t at = 4 * HWY_MIN(i, width - 8);
        _mm512_storeu_si512(to + at, keys.Enter(_mm512_loadu_si512(x + at)));
      }
      for (int64_t i = 0; i < width && width < 8; i += 4) {
        const int64_t at = 4 * HWY_MIN(i, width - 4);
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + at));
        const __m512i key = keys.Enter(_mm512_zextsi256_si512(v));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), _mm512_castsi512_si256(key));
      }
    }
  }

  // 8 windows side by side from w on. Of fewer windows those that do not exist are overwritten by the next row's.
  HWY_INLINE void MaxColumn(int64_t w, Keys& keys) const {
    const __mmask32 real = Keys::First(p_.x.windows - w);
    const T* at = in_ + 4 * (p_.y.first * pitch_ + p_.x.first + w);
    const auto row = [&]() HWY_ATTR {
      const __m512i t0 = _mm512_loadu_si512(at), t1 = _mm512_loadu_si512(at + 4), t2 = _mm512_loadu_si512(at + 8);
      at += 4 * pitch_;
      return _mm512_max_epi16(_mm512_max_epi16(t0, t1), t2);
    };
    __m512i r0 = row(), r1 = row();
    T* to = results_ + 4 * w;
    for (int64_t v = 0; v < p_.y.windows; ++v, to += 4 * p_.x.windows) {
      const __m512i r2 = row(), best = _mm512_max_epi16(_mm512_max_epi16(r0, r1), r2);
      r0 = r1, r1 = r2;
      _mm512_storeu_si512(to, Keys::Turned(best));
      keys.See(best, real);
    }
  }

  // Where keys do not tell: f32 taps.
  static HWY_NOINLINE bool RunFloats(const DirectPlan& p, float* scratch, const T* x, T* to, TexelStream<T>* out) {
    DirectPlane<T, PoolKind::max, 3, 1, false> run(p, scratch);
    return run.Run(x, nullptr, to, out);
  }

  const DirectPlan* plan_;
  float* scratch_;
  T* in_;  // texel 0 of the plane
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_HALVES_INL_H_
