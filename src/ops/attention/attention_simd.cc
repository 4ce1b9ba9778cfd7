// Masks of one row of logits: r = masked ? -inf : r + x.

#include "src/ops/attention/attention_head.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/attention/attention_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The body is written once for whole vectors and for the partial one; `open` gathers what is not masked.
template <bool kAdd, bool kKeys>
HWY_INLINE bool MaskRow(const float* x, const float* keys, float* r, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto open = hn::Zero(d);  // all bits set in lanes that met an element which is not masked
  const auto ones = hn::VecFromMask(d, hn::Eq(open, open));
  const auto body = [&](auto vr, auto vx, auto vk, auto lanes) HWY_ATTR {
    auto masked = hn::Eq(kAdd ? vx : vk, lowest);
    if (kAdd && kKeys) masked = hn::Or(masked, hn::Eq(vk, lowest));
    open = hn::Or(open, hn::AndNot(hn::VecFromMask(d, masked), lanes));
    return hn::IfThenElse(masked, lowest, kAdd ? hn::Add(vr, vx) : vr);
  };
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const auto vx = kAdd ? hn::LoadU(d, x + i) : lowest, vk = kKeys ? hn::LoadU(d, keys + i) : lowest;
    hn::StoreU(body(hn::LoadU(d, r + i), vx, vk, ones), d, r + i);
  }
  if (i < n) {
    const size_t left = n - i;
    const auto vx = kAdd ? LoadPartial(d, x + i, left) : lowest, vk = kKeys ? LoadPartial(d, keys + i, left) : lowest;
    const auto lanes = hn::VecFromMask(d, hn::FirstN(d, left));
    StorePartial(d, body(LoadPartial(d, r + i, left), vx, vk, lanes), r + i, left);
  }
  const hn::RebindToSigned<decltype(d)> di;
  const auto bits = hn::BitCast(di, open);
  return hn::AllTrue(di, hn::Eq(bits, hn::Zero(di)));
}

}  // namespace

bool AttentionMaskRow(const float* x, const float* keys, float* r, size_t n) {
  if (x && keys) return MaskRow<true, true>(x, keys, r, n);
  if (x) return MaskRow<true, false>(x, keys, r, n);
  if (keys) return MaskRow<false, true>(x, keys, r, n);
  return n == 0;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool attention_mask_row(const float* x, const float* keys, float* r, size_t n) noexcept {
  return BNNS_DISPATCH(AttentionMaskRow)(x, keys, r, n);
}

}  // namespace bnns
#endif
