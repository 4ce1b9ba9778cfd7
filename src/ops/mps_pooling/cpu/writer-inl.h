// Gradients of small whole planes (mps_pooling/cpu/global_simd.cc) on their way into the image.

#if defined(BNNS_OPS_MPS_POOLING_CPU_WRITER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_WRITER_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_WRITER_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_WRITER_INL_H_
#endif

#include "src/ops/mps_pooling/cpu/band_rows-inl.h"
#include "src/ops/mps_pooling/cpu/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kMostPlaneFloats = 4 * 16 * 16;

// Write takes the vectors of a plane of n floats from vector(i, m), floats [i, i + m), m <= kLanes, in order. Planes
// that follow each other in memory leave as whole lines, with non-temporal stores if told to.
#if HWY_TARGET == HWY_AVX3
template <typename T>
class PlaneWriter {
  using P = Packed<T>;

 public:
  explicit PlaneWriter(bool stream) : out_(stream) {}
  template <class F>
  HWY_INLINE void Write(T* to, size_t n, F&& vector) {
    constexpr size_t kLine = 4 * P::kTexels;
    const auto line = [&](size_t i) HWY_ATTR {
      Float4x4 v[2];
      for (size_t k = 0; k < P::kGroups; ++k) {
        v[k] = i + 16 * k < n ? vector(i + 16 * k, HWY_MIN(size_t{16}, n - i - 16 * k)).raw : _mm512_setzero_ps();
      }
      return P::From(v);
    };
    const auto whole_line = [&](size_t i) HWY_ATTR {
      Float4x4 v[2];
      for (size_t k = 0; k < P::kGroups; ++k) v[k] = vector(i + 16 * k, size_t{16}).raw;
      return P::From(v);
    };
    out_.Seek(to);
    size_t i = 0;
    for (; i + kLine <= n && !out_.CanRun(); i += kLine) out_.Put(line(i), P::kTexels);
    if (i + kLine <= n) {
      LineStream<T> run = out_.Run();
      for (; i + kLine <= n; i += kLine) run.Put(whole_line(i));
      out_.EndRun(run);
    }
    if (i < n) out_.Put(line(i), static_cast<int>((n - i) / 4));
  }
  void Finish() { out_.Finish(); }

 private:
  TexelStream<T> out_;
};
#else
template <typename T>
class PlaneWriter {
 public:
  explicit PlaneWriter(bool stream) : stream_(stream) { carry_.line = nullptr, carry_.begin = carry_.fill = 0; }
  template <class F>
  HWY_INLINE void Write(T* to, size_t n, F&& vector) {
    for (size_t i = 0; i < n; i += kLanes) hn::Store(vector(i, HWY_MIN(kLanes, n - i)), DF(), row_ + i);
    StoreRow(row_, n, to, stream_, carry_);
  }
  void Finish() { carry_.Spill(); }

 private:
  HWY_ALIGN float row_[kMostPlaneFloats + 16];
  RowCarry<T> carry_;
  bool stream_;
};
#endif

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_MPS_POOLING_CPU_WRITER_INL_H_
