// The element-wise work of an LSTM step, one row of H units at a time: forward, then backward.
//
// kPlain is the layer with sigmoid gates and tanh; otherwise the activations run before (forward) or after (backward)
// these kernels, in the activation operator's own code.

#include "src/ops/lstm/lstm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/lstm/lstm_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Runs body(load, store, i) over H units: whole vectors, then a partial one through the same body.
template <class Body>
HWY_INLINE void ForUnits(size_t H, Body body) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= H; i += N) {
    body([d, i](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); },
         [d, i](hn::Vec<decltype(d)> v, float* p) HWY_ATTR { hn::StoreU(v, d, p + i); });
  }
  if (i < H) {
    const size_t left = H - i;
    body([d, i, left](const float* p) HWY_ATTR { return LoadPartial(d, p + i, left); },
         [d, i, left](hn::Vec<decltype(d)> v, float* p) HWY_ATTR { StorePartial(d, v, p + i, left); });
  }
}

// s (1 - s) and 1 - t^2: derivatives from the value.
template <class V>
HWY_INLINE V SigmoidSlope(V s) {
  return hn::NegMulAdd(s, s, s);
}
template <class D, class V>
HWY_INLINE V TanhSlope(D d, V t) {
  return hn::NegMulAdd(t, t, hn::Set(d, 1.0f));
}

template <bool kPlain>
void CellForward(size_t H, const LstmRow& row, float* state) {
  const hn::ScalableTag<float> d;
  const float* z = kPlain ? row.z : row.a;
  ForUnits(H, [=](auto load, auto store) HWY_ATTR {
    auto i = load(z + kInput * H), f = load(z + kForget * H), g = load(z + kCandidate * H);
    if constexpr (kPlain) {
      i = Sigmoid(d, i), f = Sigmoid(d, f), g = Tanh(d, g);
      store(i, row.a + kInput * H), store(f, row.a + kForget * H), store(g, row.a + kCandidate * H);
    }
    const auto c = hn::MulAdd(f, load(state), hn::Mul(i, g));
    store(c, state), store(c, row.c);
    if constexpr (kPlain) store(Tanh(d, c), row.ch);
  });
}

template <bool kPlain>
void HiddenForward(size_t H, const LstmRow& row, float* state, float* y) {
  const hn::ScalableTag<float> d;
  const float* z = kPlain ? row.z : row.a;
  ForUnits(H, [=](auto load, auto store) HWY_ATTR {
    auto o = load(z + kOutput * H);
    if constexpr (kPlain) {
      o = Sigmoid(d, o);
      store(o, row.a + kOutput * H);
    }
    const auto h = hn::Mul(o, load(row.ch));
    store(h, state), store(h, y);
  });
}

template <bool kPlain>
void HiddenBackward(size_t H, const LstmRow& row, const float* dy, const float* state_h, float* state_c, float* dz,
                    float* du) {
  const hn::ScalableTag<float> d;
  ForUnits(H, [=](auto load, auto store) HWY_ATTR {
    const auto dh = hn::Add(load(dy), load(state_h)), o = load(row.a + kOutput * H), ch = load(row.ch);
    if constexpr (kPlain) {
      store(hn::Mul(hn::Mul(dh, ch), SigmoidSlope(o)), dz + kOutput * H);
      store(hn::MulAdd(hn::Mul(dh, o), TanhSlope(d, ch), load(state_c)), state_c);
    } else {
      store(hn::Mul(dh, ch), dz + kOutput * H);
      store(hn::Mul(dh, o), du);
    }
  });
}

template <bool kPlain>
void CellBackward(size_t H, const LstmRow& row, const float* previous, float* state, float* dz) {
  const hn::ScalableTag<float> d;
  ForUnits(H, [=](auto load, auto store) HWY_ATTR {
    const auto i = load(row.a + kInput * H), f = load(row.a + kForget * H), g = load(row.a + kCandidate * H);
    const auto dc = load(state);
    auto di = hn::Mul(dc, g), df = hn::Mul(dc, load(previous)), dg = hn::Mul(dc, i);
    if constexpr (kPlain) {
      di = hn::Mul(di, SigmoidSlope(i)), df = hn::Mul(df, SigmoidSlope(f)), dg = hn::Mul(dg, TanhSlope(d, g));
    }
    store(di, dz + kInput * H), store(df, dz + kForget * H), store(dg, dz + kCandidate * H);
    store(hn::Mul(dc, f), state);
  });
}

}  // namespace

void LstmCellForward(bool plain, size_t H, const LstmRow& row, float* state) {
  plain ? CellForward<true>(H, row, state) : CellForward<false>(H, row, state);
}
void LstmHiddenForward(bool plain, size_t H, const LstmRow& row, float* state, float* y) {
  plain ? HiddenForward<true>(H, row, state, y) : HiddenForward<false>(H, row, state, y);
}
void LstmHiddenBackward(bool plain, size_t H, const LstmRow& row, const float* dy, const float* state_h, float* state_c,
                        float* dz, float* du) {
  plain ? HiddenBackward<true>(H, row, dy, state_h, state_c, dz, du)
        : HiddenBackward<false>(H, row, dy, state_h, state_c, dz, du);
}
void LstmCellBackward(bool plain, size_t H, const LstmRow& row, const float* previous, float* state, float* dz) {
  plain ? CellBackward<true>(H, row, previous, state, dz) : CellBackward<false>(H, row, previous, state, dz);
}
void LstmAdd(size_t n, const float* x, float* y) {
  Transform2(x, y, y, n, [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void lstm_cell_forward(bool plain, size_t H, const LstmRow& row, float* state) noexcept {
  BNNS_DISPATCH(LstmCellForward)(plain, H, row, state);
}
void lstm_hidden_forward(bool plain, size_t H, const LstmRow& row, float* state, float* y) noexcept {
  BNNS_DISPATCH(LstmHiddenForward)(plain, H, row, state, y);
}
void lstm_hidden_backward(bool plain, size_t H, const LstmRow& row, const float* dy, const float* state_h,
                          float* state_c, float* dz, float* du) noexcept {
  BNNS_DISPATCH(LstmHiddenBackward)(plain, H, row, dy, state_h, state_c, dz, du);
}
void lstm_cell_backward(bool plain, size_t H, const LstmRow& row, const float* previous, float* state,
                        float* dz) noexcept {
  BNNS_DISPATCH(LstmCellBackward)(plain, H, row, previous, state, dz);
}
void lstm_add(size_t n, const float* x, float* y) noexcept {
  BNNS_DISPATCH(LstmAdd)(n, x, y);
}

}  // namespace bnns
#endif
