// The arithmetic of the band kernels on slot arrays (mps_pooling/cpu/band.h): K by K windows, stride S.

#if defined(BNNS_OPS_MPS_POOLING_CPU_BAND_WINDOWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_BAND_WINDOWS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_BAND_WINDOWS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_BAND_WINDOWS_INL_H_
#endif

#include "src/ops/mps_pooling/cpu/band_rows-inl.h"
#include "src/ops/mps_pooling/mps_pooling.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using mps::PoolKind;

// The rows of a window row's taps. Stride 2: a second array, `odd` floats on, holds the columns between.
template <int K, int S>
struct BandTaps {
  const float* row[K];
  size_t odd;

  HWY_INLINE VF At(int r, int c, size_t i) const {
    const DF d;
    if (S == 2 && c == 1) return hn::Load(d, row[r] + odd + i);
    return c == 0 ? hn::Load(d, row[r] + i) : hn::LoadU(d, row[r] + i + 4 * static_cast<size_t>(c / S));
  }
};

// Each window's maximum, and where it is (tap 0 to K K - 1, row by row, the first of equals; -1: below `least`).
// Writes the one or the other. False if a maximum is -inf.
template <int K, int S, bool kCode>
HWY_INLINE bool MaxWindows(const BandTaps<K, S>& taps, const float* least, size_t n, float* to) {
  const DF d;
  const VF lowest = hn::Set(d, -HUGE_VALF);
  auto bad = hn::Lt(lowest, lowest);
  for (size_t i = 0; i < n; i += kLanes) {
    VF best = hn::Zero(d), code = hn::Zero(d);
    for (int r = 0; r < K; ++r) {  // rows first: shorter chains
      VF row = taps.At(r, 0, i), at = hn::Set(d, static_cast<float>(r * K));
      for (int c = 1; c < K; ++c) {
        const VF v = taps.At(r, c, i);
        if (kCode) at = hn::IfThenElse(hn::Gt(v, row), hn::Set(d, static_cast<float>(r * K + c)), at);
        row = Greater(d, v, row);
      }
      if (kCode) code = r == 0 ? at : hn::IfThenElse(hn::Gt(row, best), at, code);
      best = r == 0 ? row : Greater(d, row, best);
    }
    const VF floor = hn::Load(d, least + i);
    if (kCode) code = hn::IfThenElse(hn::Lt(best, floor), hn::Set(d, -1.0f), code);
    best = Greater(d, floor, best);
    bad = hn::Or(bad, hn::Eq(best, lowest));
    hn::Store(kCode ? code : best, d, to + i);
  }
  return hn::AllFalse(d, bad);
}

// Sums in row-major order, one tap at a time, as the plain loops: the same bits.
template <int K, int S, bool kSquares>
HWY_INLINE VF SumTaps(const BandTaps<K, S>& taps, size_t i) {
  VF sum = hn::Zero(DF());
  for (int t = 0; t < K * K; ++t) {
    const VF v = taps.At(t / K, t % K, i);
    sum = hn::Add(sum, kSquares ? hn::Mul(v, v) : v);
  }
  return sum;
}

template <int K, int S>
HWY_INLINE void AverageWindows(const BandTaps<K, S>& taps, const float* divisor, size_t n, float* to) {
  const DF d;
  for (size_t i = 0; i < n; i += kLanes) {
    hn::Store(hn::Div(SumTaps<K, S, false>(taps, i), hn::Load(d, divisor + i)), d, to + i);
  }
}

template <int K, int S>
HWY_INLINE void NormWindows(const BandTaps<K, S>& taps, size_t n, float* to) {
  const DF d;
  for (size_t i = 0; i < n; i += kLanes) hn::Store(hn::Sqrt(SumTaps<K, S, true>(taps, i)), d, to + i);
}

// What windows send, in place of their gradients: G / N, and G / norm (0 for norm 0 and where there is no window).
HWY_INLINE void AverageSent(const float* share, size_t n, float* sent) {
  const DF d;
  for (size_t i = 0; i < n; i += kLanes) {
    hn::Store(hn::Add(hn::Mul(hn::Load(d, sent + i), hn::Load(d, share + i)), hn::Zero(d)), d, sent + i);
  }
}

template <int K, int S>
HWY_INLINE void NormSent(const BandTaps<K, S>& taps, const float* real, size_t n, float* sent) {
  const DF d;
  const VF zero = hn::Zero(d);
  for (size_t i = 0; i < n; i += kLanes) {
    const VF sum = SumTaps<K, S, true>(taps, i);
    const auto none = hn::Or(hn::Eq(sum, zero), hn::Eq(hn::Load(d, real + i), zero));
    const VF quotient = hn::Div(hn::Load(d, sent + i), hn::Sqrt(sum));
    hn::Store(hn::IfThenZeroElse(none, hn::Add(quotient, zero)), d, sent + i);
  }
}

// What one row of windows sends to the texels under its taps.
template <typename T>
struct BandScatter {
  const float* sent;
  const float* code;    // max
  float* later[2];      // what texels of rows to come have got so far
  float* out[2];        // the finished rows: S of them
  const float* own[2];  // L2: their texels (stride 2: the second half `odd` floats on)
  size_t odd;
  // Floats [begin, end) of the arrays are whole lines of the target: they go to `to` (null: not wanted), not to `out`.
  T* to[2];
  size_t begin, end;
};

// What the windows that can reach a slot's texels send: windows 0, 1, ... slots back.
template <PoolKind kKind, int K, int S>
struct BandSenders {
  static constexpr int kReach = (K - 1) / S;
  VF sent[kReach + 1], code[kReach + 1];

  template <typename T>
  HWY_INLINE BandSenders(const BandScatter<T>& s, size_t i) {
    const DF d;
    for (int back = 0; back <= kReach; ++back) {
      const size_t at = i - 4 * static_cast<size_t>(back);
      sent[back] = back == 0 ? hn::Load(d, s.sent + at) : hn::LoadU(d, s.sent + at);
      if (kKind == PoolKind::max) code[back] = back == 0 ? hn::Load(d, s.code + at) : hn::LoadU(d, s.code + at);
    }
  }

  // What texels on column phase c get from the windows that have them under tap row r.
  HWY_INLINE VF Part(int r, int c) const {
    const DF d;
    VF sum = hn::Zero(d);
    bool first = true;
    for (int back = (K - 1 - c) / S; back >= 0; --back) {  // windows in order
      VF v = sent[back];
      if (kKind == PoolKind::max) {
        const auto hit = hn::Eq(code[back], hn::Set(d, static_cast<float>(r * K + c + S * back)));
        v = first ? hn::IfThenElseZero(hit, v) : hn::IfThenElse(hit, hn::Add(sum, v), sum);
      } else if (!first) {
        v = hn::Add(sum, v);
      }
      sum = v, first = false;
    }
    return sum;
  }

  // Stride 2: what the odd texels of the slot before get, from their own window alone.
  HWY_INLINE VF OddBefore(int r) const {
    const DF d;
    if (kReach == 0) return hn::Zero(d);
    if (kKind != PoolKind::max) return sent[kReach];
    return hn::IfThenElseZero(hn::Eq(code[kReach], hn::Set(d, static_cast<float>(r * K + 1))), sent[kReach]);
  }
};

// P: the phase of the plan. 1: an odd texel goes with the slot after its own, that is, with its window one slot back.
template <PoolKind kKind, int K, int S, int P, typename T>
HWY_INLINE void Scatter(const BandScatter<T>& s, size_t n) {
  const DF d;
  const auto finish = [&](VF sum, int row, int c, size_t i) HWY_ATTR {
    if (kKind != PoolKind::l2_norm) return sum;
    const VF own = c == 0   ? hn::Load(d, s.own[row] + i)
                   : P == 0 ? hn::Load(d, s.own[row] + s.odd + i)
                            : hn::LoadU(d, s.own[row] + s.odd + i - 4);
    return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Mul(sum, own));
  };
  const auto put = [&](VF even, VF odd, int row, size_t i) HWY_ATTR {
    even = finish(even, row, 0, i), odd = finish(odd, row, 1, i);
    if (i < s.begin || i >= s.end)
      return StoreInterleaved(P == 0 ? even : odd, P == 0 ? odd : even, s.out[row] + 2 * i);
    if (s.to[row]) StreamInterleaved(P == 0 ? even : odd, P == 0 ? odd : even, s.to[row] + 2 * i);
  };
  for (size_t i = 0; i < n; i += kLanes) {
    const BandSenders<kKind, K, S> from(s, i);
    if constexpr (S == 1) {
      static_assert(K == 3);
      const VF sum = hn::Add(hn::Load(d, s.later[0] + i), from.Part(0, 0));
      hn::Store(finish(sum, 0, 0, i), d, s.out[0] + i);
      hn::Store(hn::Add(hn::Load(d, s.later[1] + i), from.Part(1, 0)), d, s.later[0] + i);
      hn::Store(from.Part(2, 0), d, s.later[1] + i);
    } else {
      const auto odd_part = [&](int r) HWY_ATTR { return P == 0 ? from.Part(r, 1) : from.OddBefore(r); };
      VF even = from.Part(0, 0), odd = odd_part(0);
      if (K == 3) {
        even = hn::Add(hn::Load(d, s.later[0] + i), even), odd = hn::Add(hn::Load(d, s.later[1] + i), odd);
        hn::Store(from.Part(2, 0), d, s.later[0] + i);
        hn::Store(odd_part(2), d, s.later[1] + i);
      }
      put(even, odd, 0, i);
      put(from.Part(1, 0), odd_part(1), 1, i);
    }
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_MPS_POOLING_CPU_BAND_WINDOWS_INL_H_
