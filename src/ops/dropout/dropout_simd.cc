// Threefry-2x32 with 13 rounds (the fewest that its authors found to pass BigCrush) on vectors of counters, and the
// selection y = kept ? scale x : 0.

#include "src/ops/dropout/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/dropout/dropout_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x0 += x1; x1 = (x1 rotated left by kLeft) ^ x0
template <int kLeft, class V>
HWY_INLINE void ThreefryRound(V& x0, V& x1) {
  x0 = hn::Add(x0, x1);
  x1 = hn::Xor(hn::Or(hn::ShiftLeft<kLeft>(x1), hn::ShiftRight<32 - kLeft>(x1)), x0);
}

template <class D, class V>
HWY_INLINE void Threefry13(D d, uint32_t key0, uint32_t key1, V& x0, V& x1) {
  const uint32_t key2 = 0x1BD11BDAu ^ key0 ^ key1;
  x0 = hn::Add(x0, hn::Set(d, key0));
  x1 = hn::Add(x1, hn::Set(d, key1));
  ThreefryRound<13>(x0, x1), ThreefryRound<15>(x0, x1), ThreefryRound<26>(x0, x1), ThreefryRound<6>(x0, x1);
  x0 = hn::Add(x0, hn::Set(d, key1));
  x1 = hn::Add(x1, hn::Set(d, key2 + 1));
  ThreefryRound<17>(x0, x1), ThreefryRound<29>(x0, x1), ThreefryRound<16>(x0, x1), ThreefryRound<24>(x0, x1);
  x0 = hn::Add(x0, hn::Set(d, key2));
  x1 = hn::Add(x1, hn::Set(d, key0 + 2));
  ThreefryRound<13>(x0, x1), ThreefryRound<15>(x0, x1), ThreefryRound<26>(x0, x1), ThreefryRound<6>(x0, x1);
  x0 = hn::Add(x0, hn::Set(d, key0));
  x1 = hn::Add(x1, hn::Set(d, key1 + 3));
  ThreefryRound<17>(x0, x1);
}

// Groups [first, first + groups), kDropoutGroup words each.
void DropoutGroups(uint32_t key0, uint32_t key1, uint32_t high, uint64_t first, size_t groups, uint32_t* out) {
  const hn::CappedTag<uint32_t, kDropoutGroup / 2> d;
  const size_t N = hn::Lanes(d);
  for (size_t g = 0; g < groups; ++g, out += kDropoutGroup) {
    const uint64_t counter = (first + g) * (kDropoutGroup / 2);  // a multiple of 16: adding lanes does not carry
    for (size_t k = 0; k < kDropoutGroup / 2; k += N) {
      auto x0 = hn::Iota(d, static_cast<uint32_t>(counter + k));
      auto x1 = hn::Set(d, static_cast<uint32_t>(counter >> 32) ^ high);
      Threefry13(d, key0, key1, x0, x1);
      hn::StoreU(x0, d, out + k);
      hn::StoreU(x1, d, out + kDropoutGroup / 2 + k);
    }
  }
}

void DropoutSelect(const uint32_t* words, uint32_t threshold, float scale, const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t N = hn::Lanes(d);
  const auto flip = hn::Set(du, 0x80000000u);  // unsigned order by a signed compare, which SSE4 has
  const auto limit = hn::Set(di, static_cast<int32_t>(threshold ^ 0x80000000u));
  const auto factor = hn::Set(d, scale);
  const auto select = [&](auto w, auto v) HWY_ATTR {
    const auto dropped = hn::Lt(hn::BitCast(di, hn::Xor(w, flip)), limit);
    return hn::IfThenZeroElse(hn::RebindMask(d, dropped), hn::Mul(factor, v));
  };
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(select(hn::LoadU(du, words + i), hn::LoadU(d, x + i)), d, y + i);
  if (i < n) {
    const size_t left = n - i;
    StorePartial(d, select(LoadPartial(du, words + i, left), LoadPartial(d, x + i, left)), y + i, left);
  }
}

void DropoutScale(float scale, const float* x, float* y, size_t n) {
  Transform(x, y, n, [scale](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Set(d, scale), v); });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

const uint32_t* dropout_words(uint32_t seed, uint64_t pass, uint64_t first, size_t n, uint32_t* buffer) noexcept {
  const uint64_t group = first / kDropoutGroup, end = (first + n + kDropoutGroup - 1) / kDropoutGroup;
  // The upper half of the pass number meets the upper half of the counter in bits that no real tensor reaches.
  const uint32_t high = static_cast<uint32_t>(pass >> 32) << 16;
  BNNS_DISPATCH(DropoutGroups)(seed, static_cast<uint32_t>(pass), high, group, end - group, buffer);
  return buffer + first % kDropoutGroup;
}

void dropout_select(const uint32_t* words, uint32_t threshold, float scale, const float* x, float* y,
                    size_t n) noexcept {
  BNNS_DISPATCH(DropoutSelect)(words, threshold, scale, x, y, n);
}

void dropout_scale(float scale, const float* x, float* y, size_t n) noexcept {
  BNNS_DISPATCH(DropoutScale)(scale, x, y, n);
}

}  // namespace bnns
#endif
