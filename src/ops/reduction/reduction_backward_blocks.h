// The second half of ReductionFilter::backward (reduction_backward.cc): from one number, or place, per result to the
// gradients of the elements, in blocks that follow the memory of the gradient. A lens on the results repeats each one
// along the axes that were reduced, so that no layout is worse than another.
#pragma once

#include <algorithm>

#include "src/core/checked.h"
#include "src/ops/reduction/reduction_plan.h"
#include "src/simd/sums.h"
#include "src/tensor/elements.h"

namespace bnns::reduction_backward {

inline bool is_choice(BNNSReduceFunction f) {
  return f == BNNSReduceFunctionMax || f == BNNSReduceFunctionMin;
}

inline bool is_linear(BNNSReduceFunction f) {
  return f == BNNSReduceFunctionSum || f == BNNSReduceFunctionMean || f == BNNSReduceFunctionMeanNonZero;
}

inline ReductionSlope slope_of(BNNSReduceFunction f, bool weighted) {
  switch (f) {
    case BNNSReduceFunctionSumSquare:
    case BNNSReduceFunctionL2Norm:
      return ReductionSlope::square;
    case BNNSReduceFunctionSumLog:
      return ReductionSlope::logarithm;
    case BNNSReduceFunctionL1Norm:
      return ReductionSlope::magnitude;
    case BNNSReduceFunctionLogSumExp:
      return ReductionSlope::exponential;
    case BNNSReduceFunctionMeanNonZero:
      return weighted ? ReductionSlope::masked : ReductionSlope::linear;
    default:
      return ReductionSlope::linear;
  }
}

// What is known of each result of the batch; results of a sample are numbered by the axes of x, fastest first.
struct Coefficients {
  size_t results = 0;  // of a sample
  float *c = nullptr, *a = nullptr;
  double *value = nullptr, *shift = nullptr;
  size_t* place = nullptr;  // Max and Min: the chosen element; Product: how many factors are 0
  static size_t bytes(size_t n) {
    return checked_mul(n, 2 * sizeof(float) + 2 * sizeof(double) + sizeof(size_t), "the gradients of the results");
  }
  Coefficients(void* memory, size_t n, size_t batch) : results(n) {
    value = static_cast<double*>(memory);
    shift = value + n * batch;
    place = reinterpret_cast<size_t*>(shift + n * batch);
    c = reinterpret_cast<float*>(place + n * batch);
    a = c + n * batch;
  }
};

struct Call {
  const ReductionProblem& p;
  size_t batch = 0;
  Tensor x, dx, dy, dw, numbers;  // numbers: a dense tensor of the results, in the order of the coefficients
  size_t x_stride = 0, dx_stride = 0, dy_stride = 0;
  bool want_x = false, want_w = false;
};

// Blocks of at most kBlock elements of a sample, in the memory order of dx, or of dw where dx is not wanted.
class Blocks {
 public:
  explicit Blocks(const Call& call) : call_(call), order_(call.want_x ? call.dx : call.dw) {
    const Tensor& x = call.p.x;
    x_ = in_order(call.x);
    if (call.p.weighted()) w_ = in_order(call.p.w);
    if (call.want_x) dx_ = in_order(call.dx);
    if (call.want_w) dw_ = in_order(call.dw);
    results_ = in_order(call.numbers);
    for (size_t k = 0, next = 1; k < x.rank; ++k) {
      if (is_reduced(k)) place_[k] = next, next *= x.size[k];
    }
  }

  size_t count() const { return order_.count; }  // elements of a sample

  // dx of elements [first, first + n) of sample b; not for Max and Min.
  void slope_x(const Coefficients& coefficients, size_t b, size_t first, size_t n) const {
    float buffer[kBlock], w_buffer[kBlock], c_buffer[kBlock], a_buffer[kBlock], dx_buffer[kBlock];
    const BNNSReduceFunction function = call_.p.function;
    void* base = element_at(call_.dx.data, call_.dx.type, b * call_.dx_stride);
    const float* x = read_x(b, first, n, buffer);
    const float* w = read_w(first, n, w_buffer);
    float* dx = call_.dx.accumulate ? dx_buffer : dx_.target(base, first, dx_buffer);
    if (function == BNNSReduceFunctionProduct) {
      Numbers numbers(*this, first);
      for (size_t k = 0; k < n; ++k, numbers.next()) {
        const double s = element_slope(coefficients, b, numbers, x[k], w ? w[k] : 1);
        dx[k] = static_cast<float>(s == 0 ? 0 : s * static_cast<double>(w ? w[k] : 1));
      }
    } else {
      const float *c, *a;
      spread(coefficients, b, first, n, c_buffer, a_buffer, &c, &a);
      reduction_slope_x(slope_of(function, call_.p.weighted()), x, w, c, a, call_.p.epsilon, dx, n);
    }
    call_.dx.accumulate ? dx_.accumulate(base, first, n, dx) : dx_.write(base, first, n, dx);
  }

  // Max and Min: dx of every element of the block is 0, but for the chosen ones, which choose_x writes.
  void clear_x(size_t b, size_t first, size_t n) const {
    float buffer[kBlock];
    void* base = element_at(call_.dx.data, call_.dx.type, b * call_.dx_stride);
    float* dx = dx_.target(base, first, buffer);
    std::fill_n(dx, n, 0.0f);
    dx_.write(base, first, n, dx);
  }
  // Results [begin, end) of sample b, in the memory order of x.
  void choose_x(const Coefficients& coefficients, size_t b, size_t begin, size_t end) const {
    const Elements one = row_elements(call_.dx, 1, 1);
    const Tensor &x = call_.p.x, &w = call_.p.w;
    for (size_t r = begin; r < end; ++r) {
      const size_t number = b * coefficients.results + r;
      size_t to = 0, weight = 0;
      for (size_t j = 0, rest = r; j < x.rank; ++j) {
        const size_t k = x.axis[j];
        const size_t at = is_reduced(k) ? coefficients.place[number] / place_[k] % x.size[k] : rest % x.size[k];
        if (!is_reduced(k)) rest /= x.size[k];
        to += at * call_.dx.stride[k];
        if (call_.p.weighted()) weight += at * w.stride[k];
      }
      float value = coefficients.c[number];
      if (value == 0) value = 0;  // not -0, and no weight makes it NaN
      if (call_.p.weighted() && value != 0) value *= load_element(w, w.data, weight);
      void* base = element_at(call_.dx.data, call_.dx.type, b * call_.dx_stride + to);
      call_.dx.accumulate ? one.accumulate(base, 0, 1, &value) : store_one(one, base, value);
    }
  }

  // dw of elements [first, first + n), summed over the batch in order: kSumRows samples in f32, beyond in double.
  void slope_w(const Coefficients& coefficients, size_t first, size_t n) const {
    float buffer[kBlock], w_buffer[kBlock], c_buffer[kBlock], a_buffer[kBlock], sum[kBlock];
    double total[kBlock];
    const bool is_long = call_.batch > kSumRows;
    const bool one_by_one = is_choice(call_.p.function) || call_.p.function == BNNSReduceFunctionProduct;
    const ReductionSlope slope = slope_of(call_.p.function, true);
    const float* w = read_w(first, n, w_buffer);
    std::fill_n(sum, n, 0.0f);
    if (is_long) std::fill_n(total, n, 0.0);
    for (size_t b = 0; b < call_.batch; ++b) {
      const float* x = read_x(b, first, n, buffer);
      if (one_by_one) {
        Numbers numbers(*this, first);
        for (size_t k = 0; k < n; ++k, numbers.next()) {
          const double s = element_slope(coefficients, b, numbers, x[k], w[k]);
          if (s != 0) sum[k] += static_cast<float>(s * static_cast<double>(x[k]));
        }
      } else {
        const float *c, *a;
        spread(coefficients, b, first, n, c_buffer, a_buffer, &c, &a);
        reduction_slope_w(slope, x, w, c, a, call_.p.epsilon, sum, n);
      }
      if (is_long && (b % kSumRows == kSumRows - 1 || b + 1 == call_.batch)) move_sums(sum, n, total);
    }
    if (is_long) round_sums(total, n, sum);
    if (call_.dw.accumulate) return dw_.accumulate(call_.dw.data, first, n, sum);
    float* to = dw_.target(call_.dw.data, first, sum);
    if (to != sum) std::copy_n(sum, n, to);
    dw_.write(call_.dw.data, first, n, to);
  }

  // Product: the factors that are not 0, and how many are, for each result of sample b.
  void multiply(const Coefficients& coefficients, size_t b) const {
    double* value = coefficients.value + b * coefficients.results;
    size_t* zeros = coefficients.place + b * coefficients.results;
    std::fill_n(value, coefficients.results, 1.0);
    std::fill_n(zeros, coefficients.results, size_t{0});
    float buffer[kBlock], w_buffer[kBlock];
    Numbers numbers(*this, 0);
    for (size_t i = 0; i < count(); i += kBlock) {
      const size_t n = std::min(kBlock, count() - i);
      const float* x = read_x(b, i, n, buffer);
      const float* w = read_w(i, n, w_buffer);
      for (size_t k = 0; k < n; ++k, numbers.next()) {
        const double t = static_cast<double>(x[k]) * static_cast<double>(w ? w[k] : 1);
        t == 0 ? zeros[numbers.result] += 1 : value[numbers.result] *= t;
      }
    }
  }

 private:
  // The result of an element and its place among the elements of that result, counted upwards.
  struct Numbers {
    const Blocks& of;
    size_t at[kMaxRank] = {}, result = 0, place = 0;
    Numbers(const Blocks& blocks, size_t first) : of(blocks) {
      for (size_t j = 0; j < of.order_.rank; ++j) {
        const size_t k = of.order_.axis[j];
        at[j] = first % of.order_.size[k];
        first /= of.order_.size[k];
        result += at[j] * of.step(k), place += at[j] * of.place_[k];
      }
    }
    void next() {
      for (size_t j = 0; j < of.order_.rank; ++j) {
        const size_t k = of.order_.axis[j];
        result += of.step(k), place += of.place_[k];
        if (++at[j] < of.order_.size[k]) return;
        result -= at[j] * of.step(k), place -= at[j] * of.place_[k];
        at[j] = 0;
      }
    }
  };

  bool is_reduced(size_t k) const { return call_.p.y.size[k] == 1; }
  size_t step(size_t k) const { return is_reduced(k) ? 0 : call_.numbers.stride[k]; }
  Elements in_order(const Tensor& t) const {
    Tensor view = t;
    std::copy_n(order_.axis, order_.rank, view.axis);
    return Elements(view, order_);
  }
  static void store_one(const Elements& one, void* base, float value) {
    float* to = one.target(base, 0, &value);
    *to = value;
    one.write(base, 0, 1, to);
  }
  const float* read_x(size_t b, size_t first, size_t n, float* buffer) const {
    if (!call_.x.data) return nullptr;
    const void* base = element_at(static_cast<const void*>(call_.x.data), call_.x.type, b * call_.x_stride);
    return x_.read(base, first, n, buffer);
  }
  const float* read_w(size_t first, size_t n, float* buffer) const {
    return call_.p.weighted() ? w_.read(call_.p.w.data, first, n, buffer) : nullptr;
  }
  // c and a of elements [first, first + n).
  void spread(const Coefficients& from, size_t b, size_t first, size_t n, float* c_buffer, float* a_buffer,
              const float** c, const float** a) const {
    *c = results_.read(from.c + b * from.results, first, n, c_buffer);
    const bool shifted = call_.p.function == BNNSReduceFunctionLogSumExp;  // nothing else reads a
    *a = shifted ? results_.read(from.a + b * from.results, first, n, a_buffer) : a_buffer;
  }
  // The derivative by w x of one element.
  double element_slope(const Coefficients& from, size_t b, const Numbers& numbers, float x, float w) const {
    const size_t r = b * from.results + numbers.result;
    const double dy = static_cast<double>(from.c[r]);
    if (is_choice(call_.p.function)) return from.place[r] == numbers.place ? dy : 0;
    const double t = static_cast<double>(x) * static_cast<double>(w);
    if (from.place[r] == 0) return dy * (from.value[r] / t);
    return from.place[r] == 1 && t == 0 ? dy * from.value[r] : 0;
  }

  const Call& call_;
  const Tensor& order_;
  Elements x_, w_, dx_, dw_, results_;
  size_t place_[kMaxRank] = {};  // stride of the index that ArgMax counts
};

}  // namespace bnns::reduction_backward
