// Rows of f32: weighted sums of a few, interpolation along one, the sum of one.

#include "src/engine/axis_map/axis_map.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/engine/axis_map/axis_map_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

void RowWeightedSum(const float* const* x, const float* weights, size_t count, float* y, size_t n) {
  const auto weight = [&](auto d, size_t k) HWY_ATTR { return hn::Set(d, weights[k]); };
  if (count == 1) {
    Transform(x[0], y, n, [&](auto d, auto v) HWY_ATTR { return hn::Mul(weight(d, 0), v); });
  } else if (count == 2) {
    Transform2(x[0], x[1], y, n,
               [&](auto d, auto a, auto b) HWY_ATTR { return hn::MulAdd(weight(d, 1), b, hn::Mul(weight(d, 0), a)); });
  } else {
    const hn::ScalableTag<float> d;
    const size_t N = hn::Lanes(d);
    for (size_t i = 0; i < n; i += N) {
      const size_t left = n - i;
      const auto load = [&](size_t k)
                            HWY_ATTR { return left < N ? LoadPartial(d, x[k] + i, left) : hn::LoadU(d, x[k] + i); };
      auto sum = hn::MulAdd(weight(d, 1), load(1), hn::Mul(weight(d, 0), load(0)));
      for (size_t k = 2; k < count; ++k) sum = hn::MulAdd(weight(d, k), load(k), sum);
      left < N ? StorePartial(d, sum, y + i, left) : hn::StoreU(sum, d, y + i);
    }
  }
}

void RowScaleAdd(const float* x, float weight, float* y, size_t n) {
  Transform2(x, y, y, n,
             [weight](auto d, auto v, auto sum) HWY_ATTR { return hn::MulAdd(hn::Set(d, weight), v, sum); });
}

void RowInterpolate(const float* x, const uint32_t* index, const float* fraction, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t N = hn::Lanes(d);
  const int32_t* indices = reinterpret_cast<const int32_t*>(index);
  for (size_t o = 0; o < n; o += N) {
    const size_t left = n - o;
    const auto at = left < N ? LoadPartial(di, indices + o, left) : hn::LoadU(di, indices + o);
    const auto f = left < N ? LoadPartial(d, fraction + o, left) : hn::LoadU(d, fraction + o);
    const auto alone = hn::Eq(f, hn::Zero(d));
    const auto next = hn::IfThenElse(hn::RebindMask(di, alone), at, hn::Add(at, hn::Set(di, 1)));
    const auto a = hn::GatherIndex(d, x, at), b = hn::GatherIndex(d, x, next);
    const auto both = hn::MulAdd(f, b, hn::Mul(hn::Sub(hn::Set(d, 1.0f), f), a));
    const auto v = hn::IfThenElse(alone, a, both);
    left < N ? StorePartial(d, v, y + o, left) : hn::StoreU(v, d, y + o);
  }
}

void RowSplit(const float* x, const float* fraction, float* first, float* second, size_t n) {
  Transform2(x, fraction, first, n,
             [](auto d, auto v, auto f) HWY_ATTR { return hn::Mul(hn::Sub(hn::Set(d, 1.0f), f), v); });
  Transform2(x, fraction, second, n,
             [](auto d, auto v, auto f) HWY_ATTR { return hn::IfThenZeroElse(hn::Eq(f, hn::Zero(d)), hn::Mul(f, v)); });
}

// Four accumulators in a block; the order depends on n alone.
double RowSum(const float* x, size_t n) {
  const auto block = [](const float* p, size_t m)
                         HWY_ATTR { return Reduce(p, m, SumOp(), [](auto /*d*/, auto v) HWY_ATTR { return v; }); };
  if (n <= kRowBlock) return static_cast<double>(block(x, n));
  double sum = 0;
  for (size_t i = 0; i < n; i += kRowBlock) sum += static_cast<double>(block(x + i, HWY_MIN(kRowBlock, n - i)));
  return sum;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void row_weighted_sum(const float* const* x, const float* weights, size_t count, float* y, size_t n) noexcept {
  BNNS_DISPATCH(RowWeightedSum)(x, weights, count, y, n);
}
void row_scale_add(const float* x, float weight, float* y, size_t n) noexcept {
  BNNS_DISPATCH(RowScaleAdd)(x, weight, y, n);
}
void row_interpolate(const float* x, const uint32_t* index, const float* fraction, float* y, size_t n) noexcept {
  BNNS_DISPATCH(RowInterpolate)(x, index, fraction, y, n);
}
void row_split(const float* x, const float* fraction, float* first, float* second, size_t n) noexcept {
  BNNS_DISPATCH(RowSplit)(x, fraction, first, second, n);
}
double row_sum(const float* x, size_t n) noexcept {
  return BNNS_DISPATCH(RowSum)(x, n);
}

}  // namespace bnns
#endif
