// Few vectors against a matrix, at memory speed: batch 1 and other tiny batches.
//   dot    y_i[j] = sum_k x_i[k] w(j, k), rows of w contiguous: vectors along k, horizontal sums at the end
//   axpy   y[:] = sum_k x[k] w(:, k), columns of w contiguous: y in registers, or several k at a time
// Each element of w is read once. The order of every sum depends on the depth alone: blocks of the depth are summed by
// themselves and added in order, as the tiles do (kDepthTerms), since one chain over a long batch loses digits.

#include "src/gemm/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/gemm/skinny/gemv_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/gemm/load-inl.h"
#include "src/simd/dispatch.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
inline constexpr bool kManyRegisters = false;
#else
inline constexpr bool kManyRegisters = true;
#endif

#define BNNS_EACH16(X) BNNS_EACH(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define BNNS_EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

using D4 = hn::CappedTag<float, 4>;

inline constexpr size_t kDepthTerms = 512;  // of one chain of additions

#if !HWY_HAVE_SCALABLE
// The sum of the 128-bit blocks of v.
template <class DF>
HWY_INLINE hn::Vec<D4> SumOfBlocks(DF, hn::Vec<DF> v) {
  if constexpr (hn::MaxLanes(DF()) <= 4) {
    return v;
  } else {
    const hn::Half<DF> half;
    return SumOfBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

// The sums of the lanes of four vectors.
HWY_INLINE void SumsOfLanes(D d, V v0, V v1, V v2, V v3, float* HWY_RESTRICT sums) {
#if HWY_HAVE_SCALABLE
  sums[0] = hn::GetLane(hn::SumOfLanes(d, v0));
  sums[1] = hn::GetLane(hn::SumOfLanes(d, v1));
  sums[2] = hn::GetLane(hn::SumOfLanes(d, v2));
  sums[3] = hn::GetLane(hn::SumOfLanes(d, v3));
#else
  // A transpose that adds: 6 shuffles for four sums, then the 128-bit blocks are added.
  const hn::Repartition<double, D> d64;
  const auto p0 = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, v0, v1), hn::InterleaveUpper(d, v0, v1)));
  const auto p1 = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, v2, v3), hn::InterleaveUpper(d, v2, v3)));
  const V s =
      hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, p0, p1)), hn::BitCast(d, hn::InterleaveUpper(d64, p0, p1)));
  hn::StoreU(SumOfBlocks(d, s), D4(), sums);
#endif
}

// kRows rows of w (4 or 8) against kVectors x.
template <size_t kRows, size_t kVectors, class T>
HWY_NOINLINE void DotRows(const SkinnyBlock& s, size_t first, size_t valid, const float* HWY_RESTRICT x, float* y) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const T* w = static_cast<const T*>(s.w) + static_cast<ptrdiff_t>(first) * s.w_stride;
  // Rows beyond the last are the last again; their sums are dropped.
#define BNNS_ROW(r) \
  [[maybe_unused]] const T* HWY_RESTRICT w##r = w + static_cast<ptrdiff_t>(HWY_MIN(size_t{r}, valid - 1)) * s.w_stride;
  BNNS_EACH(BNNS_ROW)
#undef BNNS_ROW
#define BNNS_ZERO(r) [[maybe_unused]] V s##r##_0 = hn::Zero(d), s##r##_1 = hn::Zero(d), s##r##_2 = hn::Zero(d);
  BNNS_EACH(BNNS_ZERO)
#undef BNNS_ZERO
  const float* x1 = kVectors > 1 ? x + s.x_stride : x;
  const float* x2 = kVectors > 2 ? x + 2 * s.x_stride : x;
#define BNNS_STEP(r)                                                    \
  if constexpr (r < kRows) {                                            \
    const V v = BNNS_LOAD(d, w##r + k);                                 \
    s##r##_0 = hn::MulAdd(v, u0, s##r##_0);                             \
    if constexpr (kVectors > 1) s##r##_1 = hn::MulAdd(v, u1, s##r##_1); \
    if constexpr (kVectors > 2) s##r##_2 = hn::MulAdd(v, u2, s##r##_2); \
  }
  size_t k = 0;
  for (; k + lanes <= s.depth; k += lanes) {
    const V u0 = hn::LoadU(d, x + k);
    [[maybe_unused]] V u1 = u0, u2 = u0;
    if constexpr (kVectors > 1) u1 = hn::LoadU(d, x1 + k);
    if constexpr (kVectors > 2) u2 = hn::LoadU(d, x2 + k);
#define BNNS_LOAD(d, p) LoadFloats(d, p)
    BNNS_EACH(BNNS_STEP)
#undef BNNS_LOAD
  }
  if (k < s.depth) {
    const size_t left = s.depth - k;
    const V u0 = LoadFirst(d, x + k, left);
    [[maybe_unused]] V u1 = u0, u2 = u0;
    if constexpr (kVectors > 1) u1 = LoadFirst(d, x1 + k, left);
    if constexpr (kVectors > 2) u2 = LoadFirst(d, x2 + k, left);
#define BNNS_LOAD(d, p) LoadFirst(d, p, left)
    BNNS_EACH(BNNS_STEP)
#undef BNNS_LOAD
  }
#undef BNNS_STEP
  float sums[3][kRows];
#define BNNS_SUMS(i)                                                                       \
  if constexpr (i < kVectors) {                                                            \
    SumsOfLanes(d, s0_##i, s1_##i, s2_##i, s3_##i, sums[i]);                               \
    if constexpr (kRows == 8) SumsOfLanes(d, s4_##i, s5_##i, s6_##i, s7_##i, sums[i] + 4); \
  }
  BNNS_SUMS(0)
  BNNS_SUMS(1)
  BNNS_SUMS(2)
#undef BNNS_SUMS
  for (size_t i = 0; i < kVectors; ++i) {
    float* to = y + i * s.y_vector_stride + first * s.y_row_stride;
    if (s.y_row_stride == 1 && valid == kRows) {
      for (size_t r = 0; r < kRows; r += hn::Lanes(D4())) {
        const auto v = hn::LoadU(D4(), sums[i] + r);
        hn::StoreU(s.accumulate ? hn::Add(hn::LoadU(D4(), to + r), v) : v, D4(), to + r);
      }
    } else {
      for (size_t r = 0; r < valid; ++r, to += s.y_row_stride) *to = s.accumulate ? *to + sums[i][r] : sums[i][r];
    }
  }
}

template <class T>
void DotBlock(const SkinnyBlock& s) {
  // Rows of w outermost: for the second and third group of x they come from cache.
  constexpr size_t kRows = kManyRegisters ? 8 : 4;
  const size_t step = s.vectors == 1 ? 8 : kRows;
  for (size_t j = s.rows.begin; j < s.rows.end; j += step) {
    const size_t valid = HWY_MIN(step, s.rows.end - j);
    if (s.vectors == 1) {
      valid > 4 ? DotRows<8, 1, T>(s, j, valid, s.x, s.y) : DotRows<4, 1, T>(s, j, valid, s.x, s.y);
      continue;
    }
    for (size_t i = 0; i < s.vectors;) {
      const size_t left = s.vectors - i;
      const float* x = s.x + static_cast<ptrdiff_t>(i) * s.x_stride;
      float* y = s.y + i * s.y_vector_stride;
      if (left == 1) {
        DotRows<kRows, 1, T>(s, j, valid, x, y);
        i += 1;
      } else if (left == 2 || left == 4) {
        DotRows<kRows, 2, T>(s, j, valid, x, y);
        i += 2;
      } else {
        DotRows<kRows, 3, T>(s, j, valid, x, y);
        i += 3;
      }
    }
  }
}

// Lanes sum apart, so a block of the depth has kDepthTerms for each.
template <class T>
void DotTyped(const SkinnyBlock& s) {
  const size_t most = kDepthTerms * hn::Lanes(D());
  if (s.depth <= most) return DotBlock<T>(s);
  SkinnyBlock part = s;
  for (size_t k = 0; k < s.depth; k += most) {
    part.depth = HWY_MIN(most, s.depth - k);
    part.x = s.x + k;
    part.w = static_cast<const T*>(s.w) + k;
    part.accumulate = s.accumulate || k != 0;
    DotBlock<T>(part);
  }
}

// y[j] (+)= sum over kDepth k of x[k] w(j, k), for all columns. A chain of kDepth FMA per vector of y.
template <size_t kDepth, class T>
HWY_NOINLINE void AxpyStep(size_t count, const float* HWY_RESTRICT x, const T* HWY_RESTRICT w, ptrdiff_t w_stride,
                           float* HWY_RESTRICT y, bool accumulate) {
  const D d;
  const size_t lanes = hn::Lanes(d);
#define BNNS_ROW(r)                                               \
  [[maybe_unused]] const T* HWY_RESTRICT w##r = w + r * w_stride; \
  [[maybe_unused]] const V x##r = hn::Set(d, r < kDepth ? x[r] : 0.0f);
  BNNS_EACH16(BNNS_ROW)
#undef BNNS_ROW
#define BNNS_STEP(r) \
  if constexpr (r < kDepth) sum = hn::MulAdd(BNNS_LOAD(d, w##r + j), x##r, sum);
  size_t j = 0;
#define BNNS_LOAD(d, p) LoadFloats(d, p)
  for (; j + lanes <= count; j += lanes) {
    V sum = accumulate ? hn::LoadU(d, y + j) : hn::Zero(d);
    BNNS_EACH16(BNNS_STEP)
    hn::StoreU(sum, d, y + j);
  }
#undef BNNS_LOAD
  if (j < count) {
    const size_t left = count - j;
#define BNNS_LOAD(d, p) LoadFirst(d, p, left)
    V sum = accumulate ? LoadFirst(d, y + j, left) : hn::Zero(d);
    BNNS_EACH16(BNNS_STEP)
    StoreFirst(sum, d, y + j, left);
#undef BNNS_LOAD
  }
#undef BNNS_STEP
}

// kCount vectors of y in registers over all of the depth; the last one holds `last` columns.
template <size_t kCount, class T>
HWY_NOINLINE void AxpyColumns(size_t depth, const float* HWY_RESTRICT x, const T* HWY_RESTRICT w, ptrdiff_t w_stride,
                              float* HWY_RESTRICT y, size_t last, bool accumulate) {
  const D d;
  const size_t lanes = hn::Lanes(d);
#define BNNS_ZERO(i) [[maybe_unused]] V s##i = hn::Zero(d);
  BNNS_EACH(BNNS_ZERO)
#undef BNNS_ZERO
  if (last == lanes) {
    for (size_t k = 0; k < depth; ++k, w += w_stride) {
      const V v = hn::Set(d, x[k]);
#define BNNS_STEP(i) \
  if constexpr (i < kCount) s##i = hn::MulAdd(LoadFloats(d, w + i * lanes), v, s##i);
      BNNS_EACH(BNNS_STEP)
#undef BNNS_STEP
    }
  } else {
    for (size_t k = 0; k < depth; ++k, w += w_stride) {
      const V v = hn::Set(d, x[k]);
#define BNNS_STEP(i)                                                                      \
  if constexpr (i + 1 < kCount) s##i = hn::MulAdd(LoadFloats(d, w + i * lanes), v, s##i); \
  if constexpr (i + 1 == kCount) s##i = hn::MulAdd(LoadFirst(d, w + i * lanes, last), v, s##i);
      BNNS_EACH(BNNS_STEP)
#undef BNNS_STEP
    }
  }
#define BNNS_END(i)                                                                                 \
  if constexpr (i < kCount) {                                                                       \
    if (i + 1 < kCount || last == lanes) {                                                          \
      hn::StoreU(accumulate ? hn::Add(hn::LoadU(d, y + i * lanes), s##i) : s##i, d, y + i * lanes); \
    } else {                                                                                        \
      const V sum = accumulate ? hn::Add(LoadFirst(d, y + i * lanes, last), s##i) : s##i;           \
      StoreFirst(sum, d, y + i * lanes, last);                                                      \
    }                                                                                               \
  }
  BNNS_EACH(BNNS_END)
#undef BNNS_END
}

// Up to this many elements of w, y is better kept in registers than w read in long rows. A larger w is read several
// rows at a time: 16 if it comes from memory, which keeps more of it on its way than 4 (25 against 19 GB/s on one Zen 4
// core).
inline constexpr size_t kShortRows = 65536;

template <class T>
void AxpyBlock(const SkinnyBlock& s) {
  const size_t count = s.rows.size(), lanes = hn::Lanes(D());
  const T* w = static_cast<const T*>(s.w) + s.rows.begin;
  float* y = s.y + s.rows.begin;
  if (count * s.depth <= kShortRows) {
    for (size_t j = 0; j < count; j += 8 * lanes) {
      const size_t left = HWY_MIN(count - j, 8 * lanes), vectors = (left + lanes - 1) / lanes;
      const size_t last = left - (vectors - 1) * lanes;
#define BNNS_CASE(i)                                                                   \
  case i + 1:                                                                          \
    AxpyColumns<i + 1, T>(s.depth, s.x, w + j, s.w_stride, y + j, last, s.accumulate); \
    break;
      switch (vectors) { BNNS_EACH(BNNS_CASE) }
#undef BNNS_CASE
    }
    return;
  }
  for (size_t k = 0; k < s.depth;) {
    const size_t left = s.depth - k;
    const size_t step = left >= 16 && s.w_far ? 16 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    const auto run = step == 16  ? &AxpyStep<16, T>
                     : step == 4 ? &AxpyStep<4, T>
                     : step == 2 ? &AxpyStep<2, T>
                                 : &AxpyStep<1, T>;
    run(count, s.x + k, w + static_cast<ptrdiff_t>(k) * s.w_stride, s.w_stride, y, s.accumulate || k != 0);
    k += step;
  }
}

// At most kAxpyColumns at a time (axpy.cc), whose sums over a block of the depth wait in L1.
template <class T>
void AxpyTyped(const SkinnyBlock& s) {
  if (s.depth <= kDepthTerms) return AxpyBlock<T>(s);
  const D d;
  const size_t lanes = hn::Lanes(d), count = s.rows.size();
  float sums[kAxpyColumns];
  SkinnyBlock part = s;
  part.w = static_cast<const T*>(s.w) + s.rows.begin;
  part.rows = {0, count};
  part.y = sums;
  part.accumulate = false;
  float* y = s.y + s.rows.begin;
  for (size_t k = 0; k < s.depth; k += kDepthTerms) {
    part.depth = HWY_MIN(kDepthTerms, s.depth - k);
    AxpyBlock<T>(part);
    part.x += part.depth;
    part.w = static_cast<const T*>(part.w) + static_cast<ptrdiff_t>(part.depth) * s.w_stride;
    const bool add = s.accumulate || k != 0;
    size_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      const V v = hn::LoadU(d, sums + j);
      hn::StoreU(add ? hn::Add(hn::LoadU(d, y + j), v) : v, d, y + j);
    }
    for (; j < count; ++j) y[j] = add ? y[j] + sums[j] : sums[j];
  }
}

void Dot(const SkinnyBlock& s) {
  WithElement(s.type, [&](auto element) { DotTyped<decltype(element)>(s); });
}

void Axpy(const SkinnyBlock& s) {
  WithElement(s.type, [&](auto element) { AxpyTyped<decltype(element)>(s); });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void skinny_dot(const SkinnyBlock& block) noexcept {
  BNNS_DISPATCH(Dot)(block);
}
void skinny_axpy(const SkinnyBlock& block) noexcept {
  BNNS_DISPATCH(Axpy)(block);
}
}  // namespace bnns
#endif
