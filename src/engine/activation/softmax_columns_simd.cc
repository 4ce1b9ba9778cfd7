// Softmax and LogSoftmax of many neighbouring columns, forward and backward; the formulas are in softmax.h.
//
// K vectors of neighbouring columns go down the rows together: with K = 4 a visit to a row (often a page of its own)
// brings 64 columns under AVX-512. A partial vector has K = 1 and `count` lanes.
// Sums run over kBlockSize rows and then over the blocks, both in f32.

#include "src/engine/activation/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/engine/activation/softmax_columns_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <type_traits>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr size_t kBlockSize = 1024;

using ColumnTag = hn::ScalableTag<float>;
using ColumnVector = hn::Vec<ColumnTag>;

HWY_INLINE ColumnVector LoadColumns(const float* p, size_t count) {
  const ColumnTag d;
  return count == hn::Lanes(d) ? hn::LoadU(d, p) : LoadPartial(d, p, count);
}

HWY_INLINE void StoreColumns(ColumnVector v, float* p, size_t count) {
  const ColumnTag d;
  if (count == hn::Lanes(d))
    hn::StoreU(v, d, p);
  else
    StorePartial(d, v, p, count);
}

// sum[k] = sum over rows of term(r, k), in blocks.
template <size_t K, class Term>
HWY_INLINE void SumRows(size_t rows, ColumnVector* sum, Term term) {
  const ColumnTag d;
  for (size_t k = 0; k < K; ++k) sum[k] = hn::Zero(d);
  for (size_t first = 0; first < rows; first += kBlockSize) {
    const size_t end = rows - first < kBlockSize ? rows : first + kBlockSize;
    ColumnVector part[K];
    for (size_t k = 0; k < K; ++k) part[k] = hn::Zero(d);
    for (size_t r = first; r < end; ++r) {
      for (size_t k = 0; k < K; ++k) part[k] = hn::Add(part[k], term(r, k));
    }
    for (size_t k = 0; k < K; ++k) sum[k] = hn::Add(sum[k], part[k]);
  }
}

template <size_t K>
HWY_INLINE void MaxRows(const float* x, size_t x_step, size_t rows, size_t count, ColumnVector* max) {
  const ColumnTag d;
  const size_t N = hn::Lanes(d);
  for (size_t k = 0; k < K; ++k) max[k] = hn::Set(d, MaxOp::kIdentity);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < K; ++k) max[k] = hn::Max(max[k], LoadColumns(x + r * x_step + k * N, count));
  }
}

template <size_t K>
HWY_INLINE void ColumnsForward(bool log, const float* x, size_t x_step, float* y, size_t y_step, size_t rows,
                               size_t count) {
  const ColumnTag d;
  const size_t N = hn::Lanes(d);
  ColumnVector max[K], sum[K];
  MaxRows<K>(x, x_step, rows, count, max);
  SumRows<K>(rows, sum, [&](size_t r, size_t k) HWY_ATTR {
    const auto e = Exp(d, hn::Sub(LoadColumns(x + r * x_step + k * N, count), max[k]));
    if (!log) StoreColumns(e, y + r * y_step + k * N, count);
    return e;
  });
  for (size_t k = 0; k < K; ++k) sum[k] = log ? Log(d, sum[k]) : hn::Div(hn::Set(d, 1.0f), sum[k]);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < K; ++k) {
      float* to = y + r * y_step + k * N;
      const auto v = LoadColumns(log ? x + r * x_step + k * N : to, count);
      StoreColumns(log ? hn::Sub(hn::Sub(v, max[k]), sum[k]) : hn::Mul(v, sum[k]), to, count);
    }
  }
}

template <size_t K>
HWY_INLINE void ColumnsBackwardFromOutput(bool log, const float* y, size_t y_step, const float* dy, size_t dy_step,
                                          float* g, size_t g_step, size_t rows, size_t count) {
  const ColumnTag d;
  const size_t N = hn::Lanes(d);
  ColumnVector sum[K];
  SumRows<K>(rows, sum, [&](size_t r, size_t k) HWY_ATTR {
    const auto vdy = LoadColumns(dy + r * dy_step + k * N, count);
    return log ? vdy : hn::Mul(LoadColumns(y + r * y_step + k * N, count), vdy);
  });
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < K; ++k) {
      const auto v = LoadColumns(y + r * y_step + k * N, count), vdy = LoadColumns(dy + r * dy_step + k * N, count);
      const auto result = log ? hn::NegMulAdd(Exp(d, v), sum[k], vdy) : hn::Mul(v, hn::Sub(vdy, sum[k]));
      StoreColumns(result, g + r * g_step + k * N, count);
    }
  }
}

template <size_t K>
HWY_INLINE void ColumnsBackwardFromInput(bool log, const float* x, size_t x_step, const float* dy, size_t dy_step,
                                         float* g, size_t g_step, size_t rows, size_t count) {
  const ColumnTag d;
  const size_t N = hn::Lanes(d);
  ColumnVector max[K], sum[K], weighted[K];
  const auto shifted_exp = [&](size_t r, size_t k)
                               HWY_ATTR { return Exp(d, hn::Sub(LoadColumns(x + r * x_step + k * N, count), max[k])); };
  MaxRows<K>(x, x_step, rows, count, max);
  SumRows<K>(rows, sum, shifted_exp);
  SumRows<K>(rows, weighted, [&](size_t r, size_t k) HWY_ATTR {
    const auto vdy = LoadColumns(dy + r * dy_step + k * N, count);
    return log ? vdy : hn::Mul(shifted_exp(r, k), vdy);
  });
  for (size_t k = 0; k < K; ++k) {
    sum[k] = hn::Div(hn::Set(d, 1.0f), sum[k]);
    weighted[k] = hn::Mul(weighted[k], sum[k]);
  }
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < K; ++k) {
      const auto vdy = LoadColumns(dy + r * dy_step + k * N, count), e = shifted_exp(r, k);
      const auto result =
          log ? hn::NegMulAdd(e, weighted[k], vdy) : hn::Mul(hn::Mul(e, sum[k]), hn::Sub(vdy, weighted[k]));
      StoreColumns(result, g + r * g_step + k * N, count);
    }
  }
}

void SoftmaxColumnsForward(bool log, const float* x, size_t x_step, float* y, size_t y_step, size_t rows,
                           size_t columns) {
  const size_t N = hn::Lanes(ColumnTag());
  size_t c = 0;
  for (; c + 4 * N <= columns; c += 4 * N) ColumnsForward<4>(log, x + c, x_step, y + c, y_step, rows, N);
  for (; c < columns; c += N) {
    ColumnsForward<1>(log, x + c, x_step, y + c, y_step, rows, columns - c < N ? columns - c : N);
  }
}

void SoftmaxColumnsBackward(bool log, From from, const float* s, size_t s_step, const float* dy, size_t dy_step,
                            float* g, size_t g_step, size_t rows, size_t columns) {
  const size_t N = hn::Lanes(ColumnTag());
  size_t c = 0;
  const auto group = [&](auto vectors, size_t count) HWY_ATTR {
    constexpr size_t K = decltype(vectors)::value;
    if (from == From::output) {
      ColumnsBackwardFromOutput<K>(log, s + c, s_step, dy + c, dy_step, g + c, g_step, rows, count);
    } else {
      ColumnsBackwardFromInput<K>(log, s + c, s_step, dy + c, dy_step, g + c, g_step, rows, count);
    }
  };
  for (; c + 4 * N <= columns; c += 4 * N) group(std::integral_constant<size_t, 4>(), N);
  for (; c < columns; c += N) group(std::integral_constant<size_t, 1>(), columns - c < N ? columns - c : N);
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

void softmax_columns_forward(const Activation& activation, const float* x, size_t x_step, float* y, size_t y_step,
                             size_t rows, size_t columns) noexcept {
  BNNS_DISPATCH(SoftmaxColumnsForward)(is_log(activation), x, x_step, y, y_step, rows, columns);
}

void softmax_columns_backward(const Activation& activation, From from, const float* s, size_t s_step, const float* dy,
                              size_t dy_step, float* g, size_t g_step, size_t rows, size_t columns) noexcept {
  BNNS_DISPATCH(SoftmaxColumnsBackward)(is_log(activation), from, s, s_step, dy, dy_step, g, g_step, rows, columns);
}

}  // namespace bnns
#endif
