// Loops that run a vector body over n floats, whole vectors first, then one partial vector.
//
// The partial vector goes through the same body with zeros in the unused lanes: it reads and writes exactly the
// named elements and gives the same bits as if the elements had stood anywhere else. The output may be one of the
// inputs (same pointer); other overlaps are not allowed.
//
// Bodies are called as f(d, v...) and return a vector. Lambdas need HWY_ATTR:
//   Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return hn::Max(v, hn::Zero(d)); });

#if defined(BNNS_SIMD_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_LOOPS_INL_H_
#undef BNNS_SIMD_LOOPS_INL_H_
#else
#define BNNS_SIMD_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether MaskedLoad and BlendedStore of T touch only the named lanes. Highway 1.0.3 loads the whole vector on SSE4,
// NEON, and for 8- and 16-bit lanes on AVX2, which can fault at the end of a page.
template <typename T>
constexpr bool MaskedAccessIsExact() {
  return !HWY_MEM_OPS_MIGHT_FAULT || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);
}

// The first `count` lanes (0 < count < Lanes(d)) from p, zeros above.
template <class D>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const hn::TFromD<D>* p, size_t count) {
  using T = hn::TFromD<D>;
  if constexpr (MaskedAccessIsExact<T>()) {
    return hn::MaskedLoad(hn::FirstN(d, count), d, p);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(D())] = {};
    std::memcpy(buffer, p, count * sizeof(T));
    return hn::Load(d, buffer);
  }
}

// Writes the first `count` lanes to p and nothing else.
template <class D>
HWY_INLINE void StorePartial(D d, hn::Vec<D> v, hn::TFromD<D>* p, size_t count) {
  using T = hn::TFromD<D>;
  if constexpr (MaskedAccessIsExact<T>()) {
    hn::BlendedStore(v, hn::FirstN(d, count), d, p);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(D())];
    hn::Store(v, d, buffer);
    std::memcpy(p, buffer, count * sizeof(T));
  }
}

// y[i] = f(x[i])
template <class F>
HWY_INLINE void Transform(const float* x, float* y, size_t n, F f) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < n) StorePartial(d, f(d, LoadPartial(d, x + i, n - i)), y + i, n - i);
}

// y[i] = f(a[i], b[i])
template <class F>
HWY_INLINE void Transform2(const float* a, const float* b, float* y, size_t n, F f) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i < n) {
    const size_t left = n - i;
    StorePartial(d, f(d, LoadPartial(d, a + i, left), LoadPartial(d, b + i, left)), y + i, left);
  }
}

// y[i] = f(a[i], b[i], c[i])
template <class F>
HWY_INLINE void Transform3(const float* a, const float* b, const float* c, float* y, size_t n, F f) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, c + i)), d, y + i);
  }
  if (i < n) {
    const size_t left = n - i;
    const auto va = LoadPartial(d, a + i, left);
    const auto vb = LoadPartial(d, b + i, left);
    StorePartial(d, f(d, va, vb, LoadPartial(d, c + i, left)), y + i, left);
  }
}

// What Reduce folds with: operator() joins two vectors, Lanes joins the lanes of one.
struct SumOp {
  static constexpr float kIdentity = 0.0f;
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V a, V b) const {
    return hn::Add(a, b);
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE float Lanes(D d, V v) const {
    return hn::GetLane(hn::SumOfLanes(d, v));
  }
};

// The largest, or NaN if there is one (hn::Max alone forgets NaN on x86). NaN is found by IsNaN: in Highway 1.0.3
// Ne(v, v) is an ordered comparison on AVX2 and AVX-512, false for NaN.
struct MaxOp {
  static constexpr float kIdentity = -std::numeric_limits<float>::infinity();
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE float Lanes(D d, V v) const {
    if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<float>::quiet_NaN();
    return hn::GetLane(hn::MaxOfLanes(d, v));
  }
};

// The smallest, or NaN if there is one.
struct MinOp {
  static constexpr float kIdentity = std::numeric_limits<float>::infinity();
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE float Lanes(D d, V v) const {
    if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<float>::quiet_NaN();
    return hn::GetLane(hn::MinOfLanes(d, v));
  }
};

namespace detail {

// Folds load(i, count) for i = 0, N, 2N, ... with four accumulators (vector k goes to accumulator k mod 4, so that
// the adds do not wait for each other), joined as (0 1)(2 3), then the lanes. The order depends on n alone.
template <class Op, class Load>
HWY_INLINE float Fold(size_t n, Op op, Load load) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t N = hn::Lanes(d);
  const V identity = hn::Set(d, Op::kIdentity);
  V a0 = identity, a1 = identity, a2 = identity, a3 = identity;
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    a0 = op(d, a0, load(d, i));
    a1 = op(d, a1, load(d, i + N));
    a2 = op(d, a2, load(d, i + 2 * N));
    a3 = op(d, a3, load(d, i + 3 * N));
  }
  // At most three whole vectors and a partial one are left, for accumulators 0, 1, 2, 3 in turn: rotate them.
  size_t turned = 0;
  for (; i < n; i += N, ++turned) {
    const V v = n - i >= N ? load(d, i) : hn::IfThenElse(hn::FirstN(d, n - i), load(d, i, n - i), identity);
    const V next = op(d, a0, v);
    a0 = a1;
    a1 = a2;
    a2 = a3;
    a3 = next;
  }
  for (; turned < 4; ++turned) {
    const V first = a0;
    a0 = a1;
    a1 = a2;
    a2 = a3;
    a3 = first;
  }
  return op.Lanes(d, op(d, op(d, a0, a1), op(d, a2, a3)));
}

template <class Map>
struct LoadMap1 {
  const float* x;
  Map map;
  template <class D>
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    return map(d, hn::LoadU(d, x + i));
  }
  template <class D>
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(D d, size_t i, size_t count) const {
    return map(d, LoadPartial(d, x + i, count));
  }
};

template <class Map>
struct LoadMap2 {
  const float* a;
  const float* b;
  Map map;
  template <class D>
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    return map(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i));
  }
  template <class D>
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(D d, size_t i, size_t count) const {
    return map(d, LoadPartial(d, a + i, count), LoadPartial(d, b + i, count));
  }
};

}  // namespace detail

// op over map(x[i]); op's identity when n = 0. The same n gives the same order of operations, whatever the alignment.
template <class Op, class Map>
HWY_INLINE float Reduce(const float* x, size_t n, Op op, Map map) {
  return detail::Fold(n, op, detail::LoadMap1<Map>{x, map});
}

// op over map(a[i], b[i]).
template <class Op, class Map>
HWY_INLINE float Reduce2(const float* a, const float* b, size_t n, Op op, Map map) {
  return detail::Fold(n, op, detail::LoadMap2<Map>{a, b, map});
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_LOOPS_INL_H_
