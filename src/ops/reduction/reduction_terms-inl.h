// The terms of reductions, as functors on vectors: what is folded (Op) and what of (x), or of (x, w).
//
// Shared by the kernels along rows and along columns, so that both compute the same thing.

#if defined(BNNS_REDUCTION_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_REDUCTION_TERMS_INL_H_
#undef BNNS_REDUCTION_TERMS_INL_H_
#else
#define BNNS_REDUCTION_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "src/ops/reduction/reduction.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

// The largest number: NaN, which also stands for "none yet", yields to any.
struct LargestOp {
  static constexpr float kIdentity = std::numeric_limits<float>::quiet_NaN();
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(a)), b, a);
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE float Lanes(D d, V v) const {
    const auto nan = hn::IsNaN(v);
    if (hn::AllTrue(d, nan)) return kIdentity;
    return hn::GetLane(hn::MaxOfLanes(d, hn::IfThenElse(nan, hn::Set(d, -std::numeric_limits<float>::infinity()), v)));
  }
};

// The smallest number.
struct SmallestOp {
  static constexpr float kIdentity = LargestOp::kIdentity;
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(a)), b, a);
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE float Lanes(D d, V v) const {
    const auto nan = hn::IsNaN(v);
    if (hn::AllTrue(d, nan)) return kIdentity;
    return hn::GetLane(hn::MinOfLanes(d, hn::IfThenElse(nan, hn::Set(d, std::numeric_limits<float>::infinity()), v)));
  }
};

// A sum of w f(x).
template <class F>
struct SumTerm {
  using Op = SumOp;
  F f;
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D d, V x) const {
    return f(d, x);
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D d, V x, V w) const {
    return hn::Mul(w, f(d, x));
  }
};

// An extreme of f(w x).
template <class TheOp, class F>
struct ElementTerm {
  using Op = TheOp;
  F f;
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D d, V x) const {
    return f(d, x);
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D d, V x, V w) const {
    return f(d, hn::Mul(w, x));
  }
};

struct ValueOf {
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V x) const {
    return x;
  }
};
struct SquareOf {
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V x) const {
    return hn::Mul(x, x);
  }
};
struct LogOf {
  float epsilon;
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D d, V x) const {
    return Log(d, hn::Add(x, hn::Set(d, epsilon)));
  }
};
struct AbsOf {
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V x) const {
    return hn::Abs(x);
  }
};
// 1 where x is not 0; NaN is not 0.
struct NonZeroOf {
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), hn::Set(d, 1.0f));
  }
};
// w x where w is not 0, whatever x is there.
struct MaskedTerm {
  using Op = SumOp;
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V x) const {
    return x;
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D d, V x, V w) const {
    return hn::IfThenElse(hn::Eq(w, hn::Zero(d)), hn::Zero(d), hn::Mul(w, x));
  }
};

// The largest x whose weight is not 0.
struct PresentTerm {
  using Op = MaxOp;
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D /*d*/, V x) const {
    return x;
  }
  template <class D, class V>
  HWY_ATTR HWY_INLINE V operator()(D d, V x, V w) const {
    return hn::IfThenElse(hn::Eq(w, hn::Zero(d)), hn::Set(d, MaxOp::kIdentity), x);
  }
};

// Calls run(term) with the functor of a term.
template <class Run>
HWY_INLINE void WithTerm(ReductionTerm term, float epsilon, Run run) {
  switch (term) {
    case ReductionTerm::value:
      return run(SumTerm<ValueOf>{});
    case ReductionTerm::square:
      return run(SumTerm<SquareOf>{});
    case ReductionTerm::logarithm:
      return run(SumTerm<LogOf>{{epsilon}});
    case ReductionTerm::magnitude:
      return run(SumTerm<AbsOf>{});
    case ReductionTerm::masked:
      return run(MaskedTerm{});
    case ReductionTerm::nonzero:
      return run(SumTerm<NonZeroOf>{});
    case ReductionTerm::any:
      return run(ElementTerm<LargestOp, NonZeroOf>{});
    case ReductionTerm::all:
      return run(ElementTerm<SmallestOp, NonZeroOf>{});
    case ReductionTerm::maximum:
      return run(ElementTerm<LargestOp, ValueOf>{});
    case ReductionTerm::present:
      return run(PresentTerm{});
    case ReductionTerm::minimum:
      return run(ElementTerm<SmallestOp, ValueOf>{});
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_REDUCTION_TERMS_INL_H_
