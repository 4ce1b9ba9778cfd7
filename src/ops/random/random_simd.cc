// Words to floats.
//   uniform   y = clamp(scale * fma(u, width, a), low, high),  u = min(float(word) 2^-32, 1 - 2^-24)
//   normal    y = clamp(mean + stddev z, -limit, limit),       z = quantile of (word + 1/2) 2^-32
// words and y hold n elements each. A seed gives the same tensor on every instruction set: no operation here rounds
// differently between them. The fused multiply-add is emulated where the hardware has none.

#include "src/ops/random/random.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/random/random_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA
template <class D, class V>
HWY_INLINE V FusedMulAdd(D /*d*/, V x, V y, V z) {
  return hn::MulAdd(x, y, z);
}
#else
// The product of two floats is exact in double. Its sum with z is rounded to odd (Boldo and Melquiond, "Emulation of
// FMA and correctly rounded sums", 2008): the odd neighbour remembers that something was cut off, so the second
// rounding, to float, is the only one that counts.
struct MulAddRoundedToOdd {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x, V y, V z) const {
    const hn::RebindToSigned<DD> di;
    const V product = hn::Mul(x, y);
    const V sum = hn::Add(product, z);
    const V z_part = hn::Sub(sum, product);
    const V rest = hn::Add(hn::Sub(product, hn::Sub(sum, z_part)), hn::Sub(z, z_part));  // exact: Knuth's two-sum
    const auto bits = hn::BitCast(di, sum);
    const auto one = hn::Set(di, 1);
    // One step in the direction of rest: the magnitude grows when rest and sum have the same sign.
    const auto shrink = hn::Lt(hn::Xor(bits, hn::BitCast(di, rest)), hn::Zero(di));
    const auto odd = hn::Add(bits, hn::IfThenElse(shrink, hn::Set(di, -1), one));
    const auto is_even = hn::Eq(hn::And(bits, one), hn::Zero(di));
    const auto inexact = hn::RebindMask(di, hn::Ne(rest, hn::Zero(dd)));
    return hn::BitCast(dd, hn::IfThenElse(hn::And(is_even, inexact), odd, bits));
  }
};

template <class D, class V>
HWY_INLINE V FusedMulAdd(D d, V x, V y, V z) {
  const hn::Half<D> dh;
  const hn::Rebind<double, decltype(dh)> dd;
  const MulAddRoundedToOdd f;
  const auto low = f(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, x)), hn::PromoteTo(dd, hn::LowerHalf(dh, y)),
                     hn::PromoteTo(dd, hn::LowerHalf(dh, z)));
  const auto high = f(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, x)), hn::PromoteTo(dd, hn::UpperHalf(dh, y)),
                      hn::PromoteTo(dd, hn::UpperHalf(dh, z)));
  return hn::Combine(d, hn::DemoteTo(dh, high), hn::DemoteTo(dh, low));
}
#endif

void UniformFromWords(const UniformRule& rule, const uint32_t* HWY_RESTRICT words, size_t n, float* HWY_RESTRICT y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const size_t N = hn::Lanes(d);
  const auto a = hn::Set(d, rule.a), width = hn::Set(d, rule.width), scale = hn::Set(d, rule.scale);
  const auto low = hn::Set(d, rule.low), high = hn::Set(d, rule.high);
  const auto map = [&](auto word) HWY_ATTR {
    // ConvertTo rounds to nearest even; words above 2^32 - 129 become 2^32 and are brought back below 1.
    const auto u = hn::Min(hn::Mul(hn::ConvertTo(d, word), hn::Set(d, 0x1p-32f)), hn::Set(d, 1 - 0x1p-24f));
    // + 0: what rounds to -0 is 0.
    const auto v = hn::Add(hn::Mul(FusedMulAdd(d, u, width, a), scale), hn::Zero(d));
    return hn::Min(hn::Max(v, low), high);
  };
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(map(hn::LoadU(du, words + i)), d, y + i);
  if (i < n) StorePartial(d, map(LoadPartial(du, words + i, n - i)), y + i, n - i);
}

// -log(m) for 2^-32 <= m <= 1, relative error 2^-36 (near m = 1: absolute error 2^-53).
//   m = 2^-k r, r in (0.75, 1.5];  log r = 2 (s + s^3 / 3 + ... + s^13 / 13), s = (r - 1) / (r + 1)
template <class DD, class V>
HWY_INLINE V MinusLog(DD dd, V m) {
  const hn::RebindToUnsigned<DD> du;
  const auto bits = hn::BitCast(du, m);
  const auto k = hn::ShiftRight<52>(hn::Sub(hn::Set(du, uint64_t{0x3FF8000000000000}), bits));  // from 1.5 down
  const V r = hn::BitCast(dd, hn::Add(bits, hn::ShiftLeft<52>(k)));
  const V magic = hn::Set(dd, 0x1p52);
  const V halvings = hn::Sub(hn::BitCast(dd, hn::Or(k, hn::BitCast(du, magic))), magic);
  const V one = hn::Set(dd, 1.0);
  const V s = hn::Div(hn::Sub(r, one), hn::Add(r, one));
  const V t = hn::Mul(s, s);
  V q = hn::Set(dd, 2.0 / 13);
  q = hn::Add(hn::Mul(q, t), hn::Set(dd, 2.0 / 11));
  q = hn::Add(hn::Mul(q, t), hn::Set(dd, 2.0 / 9));
  q = hn::Add(hn::Mul(q, t), hn::Set(dd, 2.0 / 7));
  q = hn::Add(hn::Mul(q, t), hn::Set(dd, 2.0 / 5));
  q = hn::Add(hn::Mul(q, t), hn::Set(dd, 2.0 / 3));
  q = hn::Add(hn::Mul(q, t), hn::Set(dd, 2.0));
  return hn::Sub(hn::Mul(halvings, hn::Set(dd, 0.69314718055994531)), hn::Mul(q, s));
}

// The standard normal quantile of (1 + x) / 2: z = x P(w) / Q(w), w = -log(1 - x^2) (the variable is Giles',
// "Approximating the erfinv function", 2010; P and Q are our own fit on 0 <= w <= 21.5, relative error 2^-34.4).
// All coefficients are positive: nothing cancels. z(-x) = -z(x) to the bit.
template <class DD, class V>
HWY_INLINE V NormalQuantile(DD dd, V x) {
  const V one = hn::Set(dd, 1.0);
  const V w = MinusLog(dd, hn::Mul(hn::Sub(one, x), hn::Add(one, x)));  // both factors are exact
  V p = hn::Set(dd, 9.8654605316499092e-10);
  p = hn::Add(hn::Mul(p, w), hn::Set(dd, 3.0204802175159474e-07));
  p = hn::Add(hn::Mul(p, w), hn::Set(dd, 3.0045579576658231e-06));
  p = hn::Add(hn::Mul(p, w), hn::Set(dd, 4.947948704856286e-05));
  p = hn::Add(hn::Mul(p, w), hn::Set(dd, 0.00078539784563069117));
  p = hn::Add(hn::Mul(p, w), hn::Set(dd, 0.0087977906188535505));
  p = hn::Add(hn::Mul(p, w), hn::Set(dd, 0.067705221705426478));
  p = hn::Add(hn::Mul(p, w), hn::Set(dd, 0.36518953873583142));
  p = hn::Add(hn::Mul(p, w), hn::Set(dd, 1.2533141372742155));
  V q = hn::Set(dd, 1.9422080428407936e-08);
  q = hn::Add(hn::Mul(q, w), hn::Set(dd, 1.1255611863906865e-06));
  q = hn::Add(hn::Mul(q, w), hn::Set(dd, 1.1521321645072769e-06));
  q = hn::Add(hn::Mul(q, w), hn::Set(dd, 0.00026789183367381222));
  q = hn::Add(hn::Mul(q, w), hn::Set(dd, 0.00056544511587723654));
  q = hn::Add(hn::Mul(q, w), hn::Set(dd, 0.033244982069160773));
  q = hn::Add(hn::Mul(q, w), hn::Set(dd, 0.029579705062997509));
  q = hn::Add(hn::Mul(q, w), one);
  return hn::Mul(x, hn::Div(p, q));
}

void NormalFromWords(const NormalRule& rule, const uint32_t* HWY_RESTRICT words, size_t n, float* HWY_RESTRICT y) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t N = hn::Lanes(dd);
  const auto mean = hn::Set(dd, rule.mean), stddev = hn::Set(dd, rule.stddev), limit = hn::Set(dd, rule.limit);
  const auto map = [&](auto word) HWY_ATTR {
    // x = 2 (word + 1/2) 2^-32 - 1: word - 2^31 is the word with its top bit flipped, read as signed.
    const auto centred = hn::BitCast(di, hn::Xor(word, hn::Set(du, 0x80000000u)));
    const auto x = hn::Mul(hn::Add(hn::PromoteTo(dd, centred), hn::Set(dd, 0.5)), hn::Set(dd, 0x1p-31));
    const auto v = hn::Add(hn::Mul(stddev, NormalQuantile(dd, x)), mean);
    return hn::DemoteTo(d, hn::Min(hn::Max(v, hn::Neg(limit)), limit));
  };
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(map(hn::LoadU(du, words + i)), d, y + i);
  if (i < n) StorePartial(d, map(LoadPartial(du, words + i, n - i)), y + i, n - i);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void uniform_from_words(const UniformRule& rule, const uint32_t* words, size_t n, float* y) noexcept {
  BNNS_DISPATCH(UniformFromWords)(rule, words, n, y);
}

void normal_from_words(const NormalRule& rule, const uint32_t* words, size_t n, float* y) noexcept {
  BNNS_DISPATCH(NormalFromWords)(rule, words, n, y);
}

}  // namespace bnns
#endif
