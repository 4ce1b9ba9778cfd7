// Element-wise functions of dense vectors: y[i] = f(a[i], b[i], c[i], s, t).
//
// One loop serves all of them: whole vectors, then one partial vector that touches the named elements only. Results of
// kStreamBytes or more that are not made in place are written with non-temporal stores, which save reading the lines of
// y first: 1.3 times as fast for y = a + b beyond the caches.

#include <hwy/cache_control.h>

#include <cstdint>

#include "src/veclib/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/veclib/map_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using veclib::Map;
using veclib::MapArguments;

constexpr size_t kStreamBytes = 8u << 20;  // beyond L2, and a good part of what one core has of L3

// f(d, i, load) is the vector of y that begins at element i; load(p) is the vector of p there.
template <class T, class F>
HWY_INLINE void Loop(const MapArguments<T>& x, size_t n, F f) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  T* y = x.y;
  size_t i = 0;
  const auto whole = [&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i); };
  size_t part = 0;
  const auto partial = [&](const T* p) HWY_ATTR { return LoadPartial(d, p + i, part); };
  if (n * sizeof(T) >= kStreamBytes && y != x.a && y != x.b && y != x.c) {
    part = reinterpret_cast<uintptr_t>(y) / sizeof(T) % N;
    part = part ? N - part : 0;
    if (part) StorePartial(d, f(d, partial), y, part);
    for (i = part; i + 4 * N <= n;) {  // whole lines on every instruction set
      for (int k = 0; k < 4; ++k, i += N) hn::Stream(f(d, whole), d, y + i);
    }
    hwy::FlushStream();
  }
  for (; i + N <= n; i += N) hn::StoreU(f(d, whole), d, y + i);
  if (i < n) {
    part = n - i;
    StorePartial(d, f(d, partial), y + i, part);
  }
}

template <class T>
void MapVectors(Map what, const MapArguments<T>& x, size_t n) {
  const T *a = x.a, *b = x.b, *c = x.c;
  const hn::ScalableTag<T> tag;
  const auto s = hn::Set(tag, x.s), t = hn::Set(tag, x.t);
  switch (what) {
    case Map::fill:
      return Loop(x, n, [&](auto, auto) HWY_ATTR { return s; });
    case Map::add:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Add(v(a), v(b)); });
    case Map::subtract:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Sub(v(a), v(b)); });
    case Map::multiply:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Mul(v(a), v(b)); });
    case Map::divide:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Div(v(a), v(b)); });
    case Map::multiply_add:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::MulAdd(v(a), v(b), v(c)); });
    case Map::add_number:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Add(v(a), s); });
    case Map::scale:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Mul(v(a), s); });
    case Map::divide_number:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Div(v(a), s); });
    case Map::scale_add:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::MulAdd(v(a), s, v(b)); });
    case Map::scale_shift:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::MulAdd(v(a), s, t); });
    case Map::square:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Mul(v(a), v(a)); });
    case Map::magnitude:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Abs(v(a)); });
    case Map::negate:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Neg(v(a)); });
    case Map::clip:  // x86 returns the second argument where one is NaN, arm64 NaN: a NaN of a stays on both
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Min(t, hn::Max(s, v(a))); });
    case Map::raise:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::IfThenElse(hn::Ge(v(a), s), v(a), s); });
    case Map::threshold:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::IfThenElseZero(hn::Ge(v(a), s), v(a)); });
    case Map::standardize:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Div(hn::Sub(v(a), s), t); });
    case Map::square_root:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Sqrt(v(a)); });
    case Map::inverse_root: {
      const auto one = hn::Set(tag, T(1));
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Div(one, hn::Sqrt(v(a))); });
    }
    case Map::inverse: {
      const auto one = hn::Set(tag, T(1));
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Div(one, v(a)); });
    }
    case Map::floor:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Floor(v(a)); });
    case Map::ceil:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Ceil(v(a)); });
    case Map::nearest:
      return Loop(x, n, [&](auto, auto v) HWY_ATTR { return hn::Round(v(a)); });
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::veclib {

void map(Map what, const MapArguments<float>& x, size_t n) noexcept {
  BNNS_DISPATCH(MapVectors<float>)(what, x, n);
}
void map(Map what, const MapArguments<double>& x, size_t n) noexcept {
  BNNS_DISPATCH(MapVectors<double>)(what, x, n);
}

}  // namespace bnns::veclib
#endif
