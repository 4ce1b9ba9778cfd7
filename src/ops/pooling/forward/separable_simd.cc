// Windows of any kernel, stride and dilation: the rows under a row of windows are folded down as they lie in memory,
// then the row of folded pixels along x, one window per lane.
//
//   down      column c: fold of the window's taps in the column, from top to bottom
//   phases    with x_stride s the folded row is taken apart: phase r has the columns r, r + s, r + 2 s, ...
//   along     tap t of all windows is one load: phase (t dilation) mod s, (t dilation) / s further on
//
// So a window costs k_height + k_width operations on a vector instead of their product, at any stride. Columns of the
// padding are neutral (-inf, or 0 for sums). Sums are over columns first. Of equal maxima the first in raster order has
// the smallest offset. Comparisons would drop a NaN: each row of windows also sums its pixels, which keeps it. Such a
// row, maxima of -inf (or of no pixel) and norms out of the safe range are done again by pooling_window.

#include <algorithm>

#include "src/ops/pooling/common/kernels.h"
#include "src/ops/pooling/forward/separable.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/forward/separable_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/lanes-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using V = VLane;
using M = MLane;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

template <PoolingFold kFold>
class Separable {
 public:
  explicit Separable(const WindowBlock& block) : block_(block), g_(*block.geometry), x_(g_.x) {}

  // The last columns come first: their vectors may go past the end of a row, into columns that are written later.
  void Run() {
    const int64_t chunk = separable_chunk(x_);
    int64_t first = block_.columns.begin + (block_.columns.size() - 1) / chunk * chunk, end = block_.columns.end;
    for (; first >= block_.columns.begin; end = first, first -= chunk) Columns({first, end});
  }

 private:
  static constexpr bool kMax = kFold == PoolingFold::max || kFold == PoolingFold::arg_max;
  static constexpr bool kKeys = kFold == PoolingFold::arg_max;
  static constexpr int64_t kSlack = 4 * kVectorFloats;  // read past the end of a row

  static V Neutral() { return kMax ? LowestLanes() : hn::Zero(D()); }

  void Columns(Span columns);
  void Prepare();
  void Down(const float* from, Span taps);
  void TakeApart(const float* row, float* phases) const;
  template <bool kCountX>
  void Along(int64_t wy);
  HWY_INLINE void Again(int64_t wy, int64_t i, V folded);
  void Fill(int64_t wy);

  const WindowBlock& block_;
  const PoolingGeometry& g_;
  const PoolingAxis& x_;
  Span columns_;             // windows of the chunk
  int64_t span_, left_ = 0;  // pixels under them; those before the image
  int64_t real_ = 0;         // pixels of the image
  int64_t pitch_, phases_ = 0;
  bool counts_differ_ = false;
  V check_;
  const float* from_;               // of a row of windows: the first real pixel of its first tap
  int16_t slot_[kMostStride];       // which phase has the columns of a remainder, or -1
  int16_t remainder_[kMostStride];  // of a phase
  int32_t tap_[kSpanFloats];        // where a tap's columns begin
  alignas(64) float down_[kSpanFloats + kSlack];
  alignas(64) float apart_[kPhaseFloats + kSlack];
  alignas(64) int32_t keys_[kKeys ? kSpanFloats + kSlack : 1];
  alignas(64) int32_t keys_apart_[kKeys ? kPhaseFloats + kSlack : 1];
  alignas(64) float counts_[kFold == PoolingFold::average ? kChunk + kWindowSlack : 1];
};

// What all rows of a chunk share.
template <PoolingFold kFold>
void Separable<kFold>::Prepare() {
  const int64_t n = columns_.size(), stride = x_.stride;
  const int64_t first = x_.start(columns_.begin);
  span_ = (n - 1) * stride + x_.reach() + 1;
  left_ = std::clamp<int64_t>(-first, 0, span_);
  real_ = std::max<int64_t>(0, std::min(span_ - left_, x_.in - (first + left_)));
  if (left_ > 0 || left_ + real_ < span_) {  // lanes past the span may have anything
    for (int64_t i = 0; i < span_; i += kLanes) {
      hn::StoreU(Neutral(), D(), down_ + i);
      if constexpr (kKeys) hn::StoreU(hn::Zero(DI()), DI(), keys_ + i);
    }
  }
  phases_ = 0;
  pitch_ = n + x_.reach() / stride + 2 * kVectorFloats;
  const bool few = stride > 1 && stride <= 4;  // all phases at once
  std::fill(slot_, slot_ + stride, int16_t{-1});
  for (int64_t t = 0, r = 0, q = 0; t < x_.kernel; ++t, r += x_.dilation) {
    for (; r >= stride; r -= stride) ++q;
    if (slot_[r] < 0) {
      slot_[r] = static_cast<int16_t>(few ? r : phases_);
      remainder_[phases_++] = static_cast<int16_t>(r);
    }
    tap_[t] = static_cast<int32_t>(slot_[r] * pitch_ + q);
  }
  if constexpr (kFold == PoolingFold::average) {
    counts_differ_ = x_.counted.begin > first || x_.counted.end <= x_.start(columns_.end - 1) + x_.reach();
    for (int64_t i = 0; counts_differ_ && i < n + kWindowSlack; ++i) {
      counts_[i] = i < n ? static_cast<float>(x_.count(columns_.begin + i)) : 1;
    }
  }
}

// Folds the taps of the columns: `from` is the first real pixel of the first tap's row.
template <PoolingFold kFold>
void Separable<kFold>::Down(const float* from, Span taps) {
  const D d;
  from_ = from;
  const V neutral = Neutral();
  const int64_t step = g_.y.dilation * block_.source.row;
  const int32_t key_step = static_cast<int32_t>(g_.tap_offset(0, 1));
  const auto column = [&](int64_t c, auto load) HWY_ATTR {
    const float* row = from + c;
    V value = load(row), sum = value;
    if constexpr (kFold == PoolingFold::norm) value = hn::Mul(value, value);
    const VI key_down = hn::Set(DI(), key_step);
    VI key = hn::Set(DI(), key_step * static_cast<int32_t>(taps.begin)), at = key;
    for (int64_t t = taps.begin + 1; t < taps.end; ++t) {
      row += step;
      const V v = load(row);
      if constexpr (kMax) sum = hn::Add(sum, v);
      if constexpr (kKeys) {
        const M larger = hn::Gt(v, value);
        at = hn::Add(at, key_down);
        key = hn::IfThenElse(hn::RebindMask(DI(), larger), at, key);
      }
      if constexpr (kMax)
        value = Larger(v, value);
      else if constexpr (kFold == PoolingFold::norm)
        value = hn::Add(value, hn::Mul(v, v));
      else
        value = hn::Add(value, v);
    }
    FetchAhead(row, kLanes);
    hn::StoreU(value, d, down_ + left_ + c);
    if constexpr (kKeys) hn::StoreU(key, DI(), keys_ + left_ + c);
    return sum;
  };
  int64_t c = 0;
  for (; c + kLanes <= real_; c += kLanes) {
    const V sum = column(c, [&](const float* p) HWY_ATTR { return hn::LoadU(d, p); });
    if constexpr (kMax) check_ = hn::Add(check_, sum);
  }
  if (c == real_) return;
  const int64_t left = real_ - c;
  const V sum = column(c, [&](const float* p) HWY_ATTR { return LoadLanes(p, left, neutral); });
  if constexpr (kMax) {
    check_ = hn::Add(check_, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), sum));
  }
}

template <PoolingFold kFold>
void Separable<kFold>::TakeApart(const float* row, float* phases) const {
  const D d;
  const int64_t stride = x_.stride, n = (span_ - 1) / stride + 1;
  V a, b, c, e;
  if (stride == 2) {
    for (int64_t i = 0; i < n; i += kLanes) {
      const V low = hn::LoadU(d, row + 2 * i), high = hn::LoadU(d, row + 2 * i + kLanes);
      hn::StoreU(EvenLanes(low, high), d, phases + i);
      hn::StoreU(OddLanes(low, high), d, phases + pitch_ + i);
    }
  } else if (stride == 3) {
    for (int64_t i = 0; i < n; i += kLanes) {
      hn::LoadInterleaved3(d, row + 3 * i, a, b, c);
      hn::StoreU(a, d, phases + i);
      hn::StoreU(b, d, phases + pitch_ + i);
      hn::StoreU(c, d, phases + 2 * pitch_ + i);
    }
  } else if (stride == 4) {
    for (int64_t i = 0; i < n; i += kLanes) {
      hn::LoadInterleaved4(d, row + 4 * i, a, b, c, e);
      hn::StoreU(a, d, phases + i);
      hn::StoreU(b, d, phases + pitch_ + i);
      hn::StoreU(c, d, phases + 2 * pitch_ + i);
      hn::StoreU(e, d, phases + 3 * pitch_ + i);
    }
  } else {
    for (int64_t k = 0; k < phases_; ++k) {
      const float* from = row + remainder_[k];
      for (int64_t i = 0; i * stride + remainder_[k] < span_; ++i) phases[k * pitch_ + i] = from[i * stride];
    }
  }
}

// Windows [i, i + lanes) whose fold is not yet the answer.
template <PoolingFold kFold>
HWY_INLINE void Separable<kFold>::Again(int64_t wy, int64_t i, V folded) {
  const D d;
  const M needed = hn::FirstN(d, static_cast<size_t>(std::min(kLanes, columns_.size() - i)));
  const M good = kMax ? hn::Gt(folded, LowestLanes())
                      : hn::And(hn::Ge(folded, hn::Set(d, kNormLow)), hn::Le(folded, hn::Set(d, kNormHigh)));
  const M again = hn::AndNot(good, needed);
  if (HWY_LIKELY(hn::AllFalse(d, again))) return;
  if constexpr (kFold == PoolingFold::norm) {
    const int64_t begin = std::clamp<int64_t>(i * x_.stride - left_, 0, real_);
    const int64_t end = std::clamp<int64_t>((i + kLanes - 1) * x_.stride + x_.reach() + 1 - left_, begin, real_);
    if (AllZero(from_ + begin, g_.y.dilation * block_.source.row, g_.y.taps(wy).size(), end - begin)) return;
  }
  uint8_t lanes[8];
  hn::StoreMaskBits(d, again, lanes);
  const int64_t at = (wy - block_.rows.begin) * block_.pitch + columns_.begin - block_.columns.begin + i;
  for (int64_t k = 0; k < std::min(kLanes, columns_.size() - i); ++k) {
    if (!(lanes[k / 8] >> (k % 8) & 1)) continue;
    pooling_window(kFold, g_, block_.source, columns_.begin + i + k, wy, block_.values + at + k,
                   kKeys ? block_.offsets + at + k : nullptr);
  }
}

// Folds the taps of the windows and puts their values away.
template <PoolingFold kFold>
template <bool kCountX>
void Separable<kFold>::Along(int64_t wy) {
  const D d;
  const DI di;
  const int64_t n = columns_.size(), kernel = x_.kernel;
  const float* row = x_.stride == 1 ? down_ : apart_;
  const int32_t* keys = x_.stride == 1 ? keys_ : keys_apart_;
  const int64_t at = (wy - block_.rows.begin) * block_.pitch + columns_.begin - block_.columns.begin;
  const float rows = kFold == PoolingFold::average ? static_cast<float>(g_.y.count(wy)) : 0;
  const V count = hn::Set(d, static_cast<float>(x_.kernel) * rows);
  const int32_t dilation = static_cast<int32_t>(x_.dilation);
  for (int64_t i = 0; i < n; i += kLanes) {
    V value = hn::LoadU(d, row + tap_[0] + i);
    VI key = hn::Zero(di);
    if constexpr (kKeys) key = hn::LoadU(di, keys + tap_[0] + i);
    for (int64_t t = 1; t < kernel; ++t) {
      const V v = hn::LoadU(d, row + tap_[t] + i);
      if constexpr (kKeys) {
        const VI with = hn::Add(hn::LoadU(di, keys + tap_[t] + i), hn::Set(di, dilation * static_cast<int32_t>(t)));
        const M sooner = hn::And(hn::Eq(v, value), hn::RebindMask(d, hn::Lt(with, key)));
        const M takes = hn::Or(hn::Gt(v, value), sooner);
        key = hn::IfThenElse(hn::RebindMask(di, takes), with, key);
        value = hn::IfThenElse(takes, v, value);  // a 0 keeps the sign of its pixel
      } else {
        value = kMax ? Larger(v, value) : hn::Add(value, v);
      }
    }
    const V folded = value;
    if constexpr (kFold == PoolingFold::average) {
      const V by = kCountX ? hn::Mul(hn::LoadU(d, counts_ + i), hn::Set(d, rows)) : count;
      value = hn::Div(hn::Add(value, hn::Zero(d)), by);  // + 0: never -0
      if constexpr (kCountX) value = hn::IfThenZeroElse(hn::Eq(by, hn::Zero(d)), value);
    } else if constexpr (kFold == PoolingFold::norm) {
      value = hn::Sqrt(value);
    }
    hn::StoreU(value, d, block_.values + at + i);
    if constexpr (kKeys) hn::StoreU(key, di, block_.offsets + at + i);
    if constexpr (kFold != PoolingFold::average) Again(wy, i, folded);
  }
  if constexpr (kMax) {
    if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(check_)))) return;
    check_ = hn::Zero(d);
    for (int64_t i = 0; i < n; ++i) {
      pooling_window(kFold, g_, block_.source, columns_.begin + i, wy, block_.values + at + i,
                     kKeys ? block_.offsets + at + i : nullptr);
    }
  }
}

// A row of windows above or below the image, or columns beside it.
template <PoolingFold kFold>
void Separable<kFold>::Fill(int64_t wy) {
  const int64_t at = (wy - block_.rows.begin) * block_.pitch + columns_.begin - block_.columns.begin;
  for (int64_t i = 0; i < columns_.size(); ++i) {
    block_.values[at + i] = 0;
    if constexpr (kKeys) block_.offsets[at + i] = kNoPixel;
  }
}

template <PoolingFold kFold>
void Separable<kFold>::Columns(Span columns) {
  columns_ = columns;
  Prepare();
  const PixelSource& source = block_.source;
  check_ = hn::Zero(D());
  const float* data = static_cast<const float*>(source.data) + x_.start(columns.begin) + left_ - source.x.begin;
  for (int64_t wy = block_.rows.begin; wy < block_.rows.end; ++wy) {
    const Span taps = g_.y.taps(wy);
    if (taps.empty() || real_ == 0) {
      Fill(wy);
      continue;
    }
    Down(data + (g_.y.start(wy) + taps.begin * g_.y.dilation - source.y.begin) * source.row, taps);
    if (x_.stride > 1) {
      TakeApart(down_, apart_);
      if constexpr (kKeys) TakeApart(reinterpret_cast<const float*>(keys_), reinterpret_cast<float*>(keys_apart_));
    }
    counts_differ_ ? Along<true>(wy) : Along<false>(wy);
  }
}

template <PoolingFold kFold>
void SeparableBlock(const WindowBlock& block) {
  Separable<kFold>(block).Run();
}

}  // namespace

WindowsFunction ChooseSeparable(PoolingFold fold) {
  if (fold == PoolingFold::max) return SeparableBlock<PoolingFold::max>;
  if (fold == PoolingFold::arg_max) return SeparableBlock<PoolingFold::arg_max>;
  return fold == PoolingFold::average ? SeparableBlock<PoolingFold::average> : SeparableBlock<PoolingFold::norm>;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_separable(const WindowsProblem& problem) noexcept {
  return separable_chunk(problem.geometry.x) > 0;
}
WindowsFunction pooling_separable(const WindowsProblem& problem) noexcept {
  return BNNS_DISPATCH(ChooseSeparable)(problem.fold);
}

}  // namespace bnns
#endif  // HWY_ONCE
