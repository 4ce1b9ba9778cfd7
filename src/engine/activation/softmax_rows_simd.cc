// Softmax and LogSoftmax of one row, forward and backward; the formulas are in softmax.h.
//
// A row is read two or three times, from cache after the first. Exponentials are summed in f32 over kBlockSize elements
// and the blocks in double, so long rows keep their accuracy. The order depends on the length alone.

#include "src/engine/activation/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/engine/activation/softmax_rows_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr size_t kBlockSize = 1024;

// The largest value. It may miss a NaN (x86), which then makes the sum NaN, and with it the row.
struct PlainMax {
  static constexpr float kIdentity = MaxOp::kIdentity;
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V a, V b) const {
    return hn::Max(a, b);
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE float Lanes(D d, V v) const {
    return hn::GetLane(hn::MaxOfLanes(d, v));
  }
};

struct Itself {
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V v) const {
    return v;
  }
};

struct Product {
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V a, V b) const {
    return hn::Mul(a, b);
  }
};

// f(first, length) over the blocks of a row.
template <class F>
HWY_INLINE void ForBlocks(size_t n, F f) {
  for (size_t i = 0; i < n; i += kBlockSize) f(i, n - i < kBlockSize ? n - i : kBlockSize);
}

// y = e^(x - max)
HWY_INLINE void ShiftedExp(const float* x, float max, float* y, size_t n) {
  Transform(x, y, n, [max](auto d, auto v) HWY_ATTR { return Exp(d, hn::Sub(v, hn::Set(d, max))); });
}

// A row that fits in one vector stays in registers: ten classes are the usual case.
template <bool kLog>
HWY_INLINE void ShortRowForward(const float* x, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const bool whole = n == hn::Lanes(d);
  const auto lanes = hn::FirstN(d, n);
  const auto v = whole ? hn::LoadU(d, x) : LoadPartial(d, x, n);
  const auto max = hn::MaxOfLanes(d, hn::IfThenElse(lanes, v, hn::Set(d, PlainMax::kIdentity)));
  const auto shifted = hn::Sub(v, max);
  const auto e = hn::IfThenElseZero(lanes, Exp(d, shifted));
  const auto sum = hn::SumOfLanes(d, e);
  const auto result = kLog ? hn::Sub(shifted, Log(d, sum)) : hn::Div(e, sum);
  if (whole)
    hn::StoreU(result, d, y);
  else
    StorePartial(d, result, y, n);
}

template <bool kLog>
HWY_INLINE void RowForward(const float* x, float* y, size_t n) {
  if (n == 0) return;
  if (n <= hn::Lanes(hn::ScalableTag<float>())) return ShortRowForward<kLog>(x, y, n);
  const float max = Reduce(x, n, PlainMax(), Itself());
  HWY_ALIGN float buffer[kBlockSize];
  double sum = 0;
  ForBlocks(n, [&](size_t i, size_t m) HWY_ATTR {
    float* e = kLog ? buffer : y + i;  // the logarithm needs x again, and y may be x
    ShiftedExp(x + i, max, e, m);
    sum += Reduce(e, m, SumOp(), Itself());
  });
  if (kLog) {
    const float log_sum = static_cast<float>(std::log(sum));
    Transform(x, y, n, [max, log_sum](auto d, auto v) HWY_ATTR {
      return hn::Sub(hn::Sub(v, hn::Set(d, max)), hn::Set(d, log_sum));
    });
  } else {
    const float scale = static_cast<float>(1 / sum);
    Transform(y, y, n, [scale](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, scale)); });
  }
}

template <bool kLog>
HWY_INLINE void RowBackwardFromOutput(const float* y, const float* dy, float* g, size_t n) {
  double sum = 0;
  ForBlocks(n, [&](size_t i, size_t m) HWY_ATTR {
    sum += kLog ? Reduce(dy + i, m, SumOp(), Itself()) : Reduce2(y + i, dy + i, m, SumOp(), Product());
  });
  const float total = static_cast<float>(sum);
  Transform2(y, dy, g, n, [total](auto d, auto v, auto vdy) HWY_ATTR {
    const auto t = hn::Set(d, total);
    return kLog ? hn::NegMulAdd(Exp(d, v), t, vdy) : hn::Mul(v, hn::Sub(vdy, t));
  });
}

// The exponentials are computed twice rather than stored: a row of any length needs no memory.
template <bool kLog>
HWY_INLINE void RowBackwardFromInput(const float* x, const float* dy, float* g, size_t n) {
  const float max = Reduce(x, n, PlainMax(), Itself());
  HWY_ALIGN float e[kBlockSize];
  double sum = 0, weighted = 0;
  ForBlocks(n, [&](size_t i, size_t m) HWY_ATTR {
    ShiftedExp(x + i, max, e, m);
    sum += Reduce(e, m, SumOp(), Itself());
    weighted += kLog ? Reduce(dy + i, m, SumOp(), Itself()) : Reduce2(e, dy + i, m, SumOp(), Product());
  });
  const float scale = static_cast<float>(1 / sum), total = static_cast<float>(weighted / sum);
  Transform2(x, dy, g, n, [max, scale, total](auto d, auto v, auto vdy) HWY_ATTR {
    const auto ve = Exp(d, hn::Sub(v, hn::Set(d, max))), t = hn::Set(d, total);
    return kLog ? hn::NegMulAdd(ve, t, vdy) : hn::Mul(hn::Mul(ve, hn::Set(d, scale)), hn::Sub(vdy, t));
  });
}

void SoftmaxRowForward(bool log, const float* x, float* y, size_t n) {
  log ? RowForward<true>(x, y, n) : RowForward<false>(x, y, n);
}

void SoftmaxRowBackward(bool log, From from, const float* s, const float* dy, float* g, size_t n) {
  if (from == From::output) {
    log ? RowBackwardFromOutput<true>(s, dy, g, n) : RowBackwardFromOutput<false>(s, dy, g, n);
  } else {
    log ? RowBackwardFromInput<true>(s, dy, g, n) : RowBackwardFromInput<false>(s, dy, g, n);
  }
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {
namespace {

bool is_log(const Activation& activation) {
  return activation.function == BNNSActivationFunctionLogSoftmax;
}

}  // namespace

void softmax_row_forward(const Activation& activation, const float* x, float* y, size_t n) noexcept {
  BNNS_DISPATCH(SoftmaxRowForward)(is_log(activation), x, y, n);
}

void softmax_row_backward(const Activation& activation, From from, const float* s, const float* dy, float* g,
                          size_t n) noexcept {
  BNNS_DISPATCH(SoftmaxRowBackward)(is_log(activation), from, s, dy, g, n);
}

}  // namespace bnns
#endif
