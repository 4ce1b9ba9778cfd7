// One plane of the one-pass kernels (mps_pooling/cpu/direct.h), a row of windows at a time; what a gradient's windows
// send is handed to texels, windows in the plain loops' order: the same bits.

#if defined(BNNS_OPS_MPS_POOLING_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_ROWS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_ROWS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_ROWS_INL_H_
#endif

#include <cstring>

#include "src/ops/mps_pooling/cpu/taps-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
template <typename T, PoolKind kKind, int K, int S, bool kBackward>
class DirectPlane : DirectWindows<T, kKind, K, S, kBackward> {
  using Base = DirectWindows<T, kKind, K, S, kBackward>;
  using P = Packed<T>;
  using Base::codes_, Base::columns_, Base::kept_, Base::later_, Base::line_, Base::p_, Base::pair_;
  using Base::kBlock, Base::kGroups, Base::kKeys, Base::kMax;
  using typename Base::Line;
  // Gradients of f16 that need the source: what the windows of a row send is first found for all of them, then handed
  // on. In one loop the two are too long for a core to work on more than a block at a time. (f32 waits for memory
  // instead, and goes better if that is read and written at once.)
  static constexpr bool kTwoLoops = kBackward && kKind != PoolKind::average && S == 2 && sizeof(T) == 2;

 public:
  using Base::kReads;

  HWY_INLINE DirectPlane(const DirectPlan& p, float* scratch) : Base(p, scratch) {
    slots_ = (p.x.size - p.x.first + S - 1) / S;
    full_begin_ = p.x.first < 0 ? 1 : 0, full_end_ = HWY_MIN(p.x.windows, Base::Inside()) / kBlock;
  }

  // False: a maximum is -inf or of NaNs alone, where vectors do not tell which tap takes it.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    Base::Start(x);
    if (kBackward) std::memset(later_, 0, static_cast<size_t>(2 * line_) * sizeof(float));
    const int64_t end = kBackward ? (p_.y.size - 1 - p_.y.first) / S + 1 : p_.y.windows;
    for (int64_t v = 0; v < end; ++v) WindowRow(v, g, to, out);
    if (kBackward && S == 2 && !Paired()) out[0].Finish(), out[1].Finish();  // the next plane's lines may be theirs
    return Base::Good();
  }
  HWY_INLINE void Finish(TexelStream<T>*) {}

 private:
  HWY_INLINE bool Paired() const { return kBackward && S == 2 && p_.paired; }
  HWY_INLINE void WindowRow(int64_t v, const T* g, T* to, TexelStream<T>* out) {
    const int64_t y = p_.y.first + S * v;
    Line l;
    l.windows = v < p_.y.windows ? p_.x.windows : 0;
    for (int r = 0; r < K; ++r) l.row[r] = Base::Row(y + r);
    l.ahead = Base::Row(0) + (y + K - S) * p_.source_row + kAhead / sizeof(T);
    l.from = kBackward && l.windows > 0 ? g + v * p_.gradient_row : g;
    l.column = columns_;
    if (kKind == PoolKind::average && l.windows > 0) l.column += (Base::CountedRows(v) - 1) * line_;
    l.kept[0] = Base::Kept(v), l.kept[1] = Base::Kept(v + 1);
    l.inside = y >= 0 && y + K <= p_.y.size;
    for (int i = 0; kBackward && i < S; ++i) {
      l.wanted[i] = y + i >= 0 && y + i < p_.y.size;
      if (l.wanted[i] && !Paired()) out[i].Seek(to + (y + i) * p_.target_row);
    }
    if (!kBackward) out[0].Seek(to + v * p_.target_row);
    const bool zeros = kMax && p_.edge == PoolEdge::zero && !l.inside;
    bool full = l.windows != 0 && !zeros;
    for (int i = 0; kBackward && i < S; ++i) full = full && l.wanted[i];
    const int64_t full_end = full ? full_end_ : 0;
    for (int64_t b = 0; kTwoLoops && b < p_.blocks; ++b) {
      b >= full_begin_&& b < full_end ? SendBlock<true>(l, b) : SendBlock<false>(l, b);
    }
    DirectSenders<kKind, K, S> senders;
    int64_t b = 0;
    if (Paired()) {
      const int64_t n = 4 * p_.x.size, first = l.wanted[0] ? 0 : 1, rows = first == 0 && l.wanted[1] ? 2 : 1;
      ScratchRow<T> row[2] = {{pair_}, {first == 0 ? pair_ + n : pair_}};
      for (; b < p_.blocks; ++b) {
        b >= full_begin_&& b < full_end ? Block<true>(l, b, senders, row) : Block<false>(l, b, senders, row);
      }
      to += (y + first) * p_.target_row;
      if (n == p_.target_row) return PutTexels(pair_, rows * n, to, out[0]);
      for (int64_t i = 0; i < rows; ++i) PutTexels(pair_ + i * n, n, to + i * p_.target_row, out[0]);
      return;
    }
    for (; b < full_begin_ || (b < full_end && !(out[0].CanRun() && out[1].CanRun())); ++b) {
      Block<false>(l, b, senders, out);
    }
    if (b < full_end) {
      LineStream<T> run[2] = {out[0].Run(), out[1].Run()};
      for (; b < full_end; ++b) Block<true>(l, b, senders, run);
      out[0].EndRun(run[0]), out[1].EndRun(run[1]);
    }
    for (; b < p_.blocks; ++b) Block<false>(l, b, senders, out);
  }

  // The texels on row and column phase done[row][c] of group i of block b, from what the windows send.
  HWY_INLINE void Take(int64_t q, int i, const DirectSenders<kKind, K, S>& senders, const __m512 (&own)[S][S],
                       __m512 (&done)[S][S][kGroups]) const {
    const __m512 zero = _mm512_setzero_ps();
    float* later[2] = {later_ + 16 * q, later_ + line_ + 16 * q};
    for (int row = 0; row < S; ++row) {
      for (int c = 0; c < S; ++c) {
        __m512 sum = senders.Part(row, c, codes_);
        if (K == 3 && row == 0) sum = _mm512_add_ps(_mm512_load_ps(later[S == 1 ? 0 : c]), sum);
        if (kKind == PoolKind::l2_norm) {  // times the texel itself
          sum = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(sum, zero, _CMP_NEQ_UQ), sum, own[row][c]);
        }
        done[row][c][i] = sum;
      }
    }
    if (K == 3 && S == 1) {
      _mm512_store_ps(later[0], _mm512_add_ps(_mm512_load_ps(later[1]), senders.Part(1, 0, codes_)));
      _mm512_store_ps(later[1], senders.Part(2, 0, codes_));
    } else if (K == 3) {
      for (int c = 0; c < 2; ++c) _mm512_store_ps(later[c], senders.Part(2, c, codes_));
    }
  }

  // kTwoLoops: what the windows of a block send, and to which tap, into scratch.
  HWY_INLINE float* Sent(int64_t q) const { return kept_ + 2 * line_ + 16 * q; }
  template <bool kFull>
  HWY_INLINE void SendBlock(const Line& l, int64_t b) {
    __m512i codes[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    Prefetch(l, b);
    if constexpr (kKeys) Base::template BestOfBlock<kFull>(l, b, codes);
    SendGroup<kFull>(l, kGroups * b, codes[0]);
    if constexpr (kGroups == 2) SendGroup<kFull>(l, kGroups * b + 1, codes[1]);
  }
  template <bool kFull>
  HWY_INLINE void SendGroup(const Line& l, int64_t q, __m512i code) {
    if (!kFull && 4 * q >= slots_) return;
    __m512 own[S][S];
    const __m512 sent = Base::template Give<kFull>(l, q, code, own);
    _mm512_store_ps(Sent(q), sent);
    if (kMax) _mm512_store_si512(Sent(q) + line_, code);
  }
  // Memory of later blocks.
  static HWY_INLINE void Prefetch(const Line& l, int64_t b) {
    constexpr int64_t kLineElements = 64 / sizeof(T);
    for (int i = 0; kReads && i < S * S; ++i) hwy::Prefetch(l.ahead + (S * S * b + i) * kLineElements);
    if (kBackward) hwy::Prefetch(l.from + b * kLineElements + kAhead / 2 / sizeof(T));
  }

  // A function and no loop over groups, for arrays that must become registers.
  template <bool kFull>
  HWY_INLINE void Group(const Line& l, int64_t q, int i, __m512i code, DirectSenders<kKind, K, S>& senders,
                        __m512 (&done)[S][S][kGroups]) {
    __m512 own[S][S];
    if constexpr (!kBackward) {
      done[0][0][i] = Base::template Give<kFull>(l, q, code, own);
    } else if constexpr (!kTwoLoops) {
      const __m512 sent = Base::template Give<kFull>(l, q, code, own);
      senders.Next(sent, code);
      Take(q, i, senders, own, done);
    } else if (!kFull && 4 * q >= slots_) {
      for (int r = 0; r < S; ++r) done[r][0][i] = done[r][1][i] = _mm512_setzero_ps();
    } else {
      if (kMax) code = _mm512_load_si512(Sent(q) + line_);
      for (int r = 0; !kMax && r < S; ++r) {
        __m512 t[K];
        Base::template Taps<kFull>(l.row[r], q, t);
        own[r][0] = t[0], own[r][1] = t[1];
      }
      senders.Next(_mm512_load_ps(Sent(q)), code);
      Take(q, i, senders, own, done);
    }
  }

  template <bool kFull, class Out>
  HWY_INLINE void Block(const Line& l, int64_t b, DirectSenders<kKind, K, S>& senders, Out* out) {
    if (!kTwoLoops) Prefetch(l, b);
    __m512 done[S][S][kGroups];
    __m512i codes[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    if constexpr (kKeys && !kTwoLoops) Base::template BestOfBlock<kFull>(l, b, codes);
    Group<kFull>(l, kGroups * b, 0, codes[0], senders, done);
    if constexpr (kGroups == 2) Group<kFull>(l, kGroups * b + 1, 1, codes[1], senders, done);
    if constexpr (!kBackward) {
      Put<kFull>(P::From(done[0][0]), kBlock * b, l.windows, out[0]);
    } else if constexpr (S == 1) {
      if (kFull || l.wanted[0]) Put<kFull>(P::From(done[0][0]), p_.x.first + kBlock * b, p_.x.size, out[0]);
    } else {
      if (kFull || l.wanted[0]) PutPairs<kFull>(done[0], b, out[0]);
      if (kFull || l.wanted[1]) PutPairs<kFull>(done[1], b, out[1]);
    }
  }
  template <bool kFull, class Out>
  HWY_INLINE void PutPairs(const __m512 (&done)[S][kGroups], int64_t b, Out& out) const {
    typename P::Vec pairs[2];
    P::Pairs(done[0], done[1], pairs);
    Put<kFull>(pairs[0], p_.x.first + kBlock * 2 * b, p_.x.size, out);
    Put<kFull>(pairs[1], p_.x.first + kBlock * (2 * b + 1), p_.x.size, out);
  }
  // Texels from x on of a row of `size`, those that exist.
  template <bool kFull, class Out>
  static HWY_INLINE void Put(typename P::Vec v, int64_t x, int64_t size, Out& out) {
    if constexpr (kFull) {
      out.Put(v);
    } else if (x < 0) {
      out.Put(P::Shift(v, v, P::ShiftIndex(1)), static_cast<int>(HWY_MIN(kBlock - 1, size)));
    } else if (x < size) {
      out.Put(v, static_cast<int>(HWY_MIN(kBlock, size - x)));
    }
  }

  int64_t slots_;                  // of a gradient's row: S texels each
  int64_t full_begin_, full_end_;  // blocks of which all exists, in rows inside
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_ROWS_INL_H_
