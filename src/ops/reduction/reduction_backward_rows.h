// The second half of ReductionFilter::backward (reduction_backward.cc): from one number, or place, per result to the
// gradients of the elements, row by row along the fastest axis.
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

struct Axis {
  size_t extent = 1, x = 0, w = 0, dx = 0, dw = 0, result = 0, place = 0;
  bool continues(const Axis& a) const {
    const auto next = [&](size_t of, size_t ours) { return of == ours * extent; };
    return (result == 0) == (a.result == 0) && next(a.x, x) && next(a.w, w) && next(a.dx, dx) && next(a.dw, dw) &&
           next(a.result, result) && next(a.place, place);
  }
};

// Rows of elements along the fastest axis.
class Rows {
 public:
  explicit Rows(const Call& call) : call_(call) {
    const Tensor& x = call.p.x;
    Axis all[kMaxRank];
    size_t n = 0, place = 1;
    const Tensor& order = call.want_x ? call.dx : call.dw;
    for (size_t j = 0; j < x.rank; ++j) {
      const size_t k = order.axis[j];
      if (x.size[k] == 1) continue;
      Axis& a = all[n++];
      a.extent = x.size[k];
      a.x = x.stride[k];
      a.w = call.p.weighted() ? call.p.w.stride[k] : 0;
      a.dx = call.want_x ? call.dx.stride[k] : 0;
      a.dw = call.want_w ? call.dw.stride[k] : 0;
      a.result = call.p.y.size[k] == 1 ? 0 : call.numbers.stride[k];
      for (size_t i = place = 1; i <= k && a.result == 0; ++i) {
        if (call.p.y.size[i - 1] == 1 && i - 1 < k) place *= x.size[i - 1];
      }
      a.place = a.result == 0 ? place : 0;
    }
    for (size_t k = 0; k < n; ++k) {
      if (rank_ && axes_[rank_ - 1].continues(all[k])) {
        axes_[rank_ - 1].extent *= all[k].extent;
      } else {
        axes_[rank_++] = all[k];
      }
    }
    if (rank_ == 0) axes_[rank_++] = {};
    inner_ = axes_[0];
    x_lens_ = row_elements(call.x, inner_.extent, inner_.x);
    if (call.p.weighted()) w_lens_ = row_elements(call.p.w, inner_.extent, inner_.w);
    if (call.want_x) dx_lens_ = row_elements(call.dx, inner_.extent, inner_.dx);
    if (call.want_w) dw_lens_ = row_elements(call.dw, inner_.extent, inner_.dw);
  }

  size_t count() const { return call_.p.x.count / inner_.extent; }
  size_t length() const { return inner_.extent; }

  // Offsets of a row.
  Axis at(size_t row) const {
    Axis sum;
    for (size_t k = 1; k < rank_; row /= axes_[k++].extent) {
      const Axis& a = axes_[k];
      const size_t i = row % a.extent;
      sum.x += i * a.x, sum.w += i * a.w, sum.dx += i * a.dx, sum.dw += i * a.dw;
      sum.result += i * a.result, sum.place += i * a.place;
    }
    return sum;
  }

  // dx of one row of sample b.
  void slope_x(const Coefficients& coefficients, size_t b, size_t row) const {
    const Axis o = at(row);
    float buffer[kBlock], w_buffer[kBlock], c_buffer[kBlock], a_buffer[kBlock], dx_buffer[kBlock];
    void* base = element_at(call_.dx.data, call_.dx.type, b * call_.dx_stride + o.dx);
    for (size_t i = 0; i < inner_.extent; i += kBlock) {
      const size_t n = std::min(kBlock, inner_.extent - i);
      const float* x = read_x(b, o, i, n, buffer);
      const float* w = read_w(o, i, n, w_buffer);
      const float *c, *a;
      spread(coefficients, b, o, i, n, c_buffer, a_buffer, &c, &a);
      float* dx = call_.dx.accumulate ? dx_buffer : dx_lens_.target(base, i, dx_buffer);
      if (is_choice(call_.p.function) || call_.p.function == BNNSReduceFunctionProduct) {
        for (size_t k = 0; k < n; ++k) {
          const double s = element_slope(coefficients, b, o, i + k, x ? x[k] : 0, w ? w[k] : 1);
          dx[k] = static_cast<float>(s == 0 ? 0 : s * static_cast<double>(w ? w[k] : 1));
        }
      } else {
        reduction_slope_x(slope_of(call_.p.function, call_.p.weighted()), x, w, c, a, call_.p.epsilon, dx, n);
      }
      call_.dx.accumulate ? dx_lens_.accumulate(base, i, n, dx) : dx_lens_.write(base, i, n, dx);
    }
  }

  // dw of one row, summed over the batch in order: kSumRows samples in f32, beyond in double.
  void slope_w(const Coefficients& coefficients, size_t row) const {
    const Axis o = at(row);
    float buffer[kBlock], w_buffer[kBlock], c_buffer[kBlock], a_buffer[kBlock], sum[kBlock];
    double total[kBlock];
    const bool is_long = call_.batch > kSumRows;
    const bool one_by_one = is_choice(call_.p.function) || call_.p.function == BNNSReduceFunctionProduct;
    const ReductionSlope slope = slope_of(call_.p.function, true);
    void* base = element_at(call_.dw.data, call_.dw.type, o.dw);
    for (size_t i = 0; i < inner_.extent; i += kBlock) {
      const size_t n = std::min(kBlock, inner_.extent - i);
      const float* w = read_w(o, i, n, w_buffer);
      std::fill_n(sum, n, 0.0f);
      if (is_long) std::fill_n(total, n, 0.0);
      for (size_t b = 0; b < call_.batch; ++b) {
        const float* x = read_x(b, o, i, n, buffer);
        const float *c, *a;
        spread(coefficients, b, o, i, n, c_buffer, a_buffer, &c, &a);
        if (one_by_one) {
          for (size_t k = 0; k < n; ++k) {
            const double s = element_slope(coefficients, b, o, i + k, x[k], w[k]);
            if (s != 0) sum[k] += static_cast<float>(s * static_cast<double>(x[k]));
          }
        } else {
          reduction_slope_w(slope, x, w, c, a, call_.p.epsilon, sum, n);
        }
        if (is_long && (b % kSumRows == kSumRows - 1 || b + 1 == call_.batch)) {
          move_sums(sum, n, total);
        }
      }
      if (is_long) round_sums(total, n, sum);
      if (call_.dw.accumulate) {
        dw_lens_.accumulate(base, i, n, sum);
      } else {
        float* to = dw_lens_.target(base, i, sum);
        if (to != sum) std::copy(sum, sum + n, to);
        dw_lens_.write(base, i, n, to);
      }
    }
  }

  // Product: the factors that are not 0, and how many are, for each result of sample b.
  void multiply(const Coefficients& coefficients, size_t b) const {
    double* value = coefficients.value + b * coefficients.results;
    size_t* zeros = coefficients.place + b * coefficients.results;
    std::fill_n(value, coefficients.results, 1.0);
    std::fill_n(zeros, coefficients.results, size_t{0});
    float buffer[kBlock], w_buffer[kBlock];
    for (size_t row = 0; row < count(); ++row) {
      const Axis o = at(row);
      for (size_t i = 0; i < inner_.extent; i += kBlock) {
        const size_t n = std::min(kBlock, inner_.extent - i);
        const float* x = read_x(b, o, i, n, buffer);
        const float* w = read_w(o, i, n, w_buffer);
        for (size_t k = 0; k < n; ++k) {
          const double t = static_cast<double>(x[k]) * static_cast<double>(w ? w[k] : 1);
          const size_t r = o.result + (i + k) * inner_.result;
          t == 0 ? zeros[r] += 1 : value[r] *= t;
        }
      }
    }
  }

 private:
  const float* read_x(size_t b, const Axis& o, size_t i, size_t n, float* buffer) const {
    if (!call_.x.data) return nullptr;
    const void* base = element_at(static_cast<const void*>(call_.x.data), call_.x.type, b * call_.x_stride + o.x);
    return x_lens_.read(base, i, n, buffer);
  }
  const float* read_w(const Axis& o, size_t i, size_t n, float* buffer) const {
    if (!call_.p.weighted()) return nullptr;
    const Tensor& w = call_.p.w;
    return w_lens_.read(element_at(static_cast<const void*>(w.data), w.type, o.w), i, n, buffer);
  }
  // c and a of elements [i, i + n) of a row.
  void spread(const Coefficients& from, size_t b, const Axis& o, size_t i, size_t n, float* c_buffer, float* a_buffer,
              const float** c, const float** a) const {
    const size_t first = b * from.results + o.result + i * inner_.result;
    *c = from.c + first;
    *a = from.a + first;
    if (inner_.result == 1) return;
    for (size_t k = 0; k < n; ++k) c_buffer[k] = (*c)[k * inner_.result];
    if (call_.p.function == BNNSReduceFunctionLogSumExp) {  // nothing else reads a
      for (size_t k = 0; k < n; ++k) a_buffer[k] = (*a)[k * inner_.result];
    }
    *c = c_buffer;
    *a = a_buffer;
  }
  // The derivative by w x of one element.
  double element_slope(const Coefficients& from, size_t b, const Axis& o, size_t i, float x, float w) const {
    const size_t r = b * from.results + o.result + i * inner_.result;
    const double dy = static_cast<double>(from.c[r]);
    if (is_choice(call_.p.function)) return from.place[r] == o.place + i * inner_.place ? dy : 0;
    const double t = static_cast<double>(x) * static_cast<double>(w);
    if (from.place[r] == 0) return dy * (from.value[r] / t);
    return from.place[r] == 1 && t == 0 ? dy * from.value[r] : 0;
  }

  const Call& call_;
  Axis axes_[kMaxRank], inner_;
  size_t rank_ = 0;
  Elements x_lens_, w_lens_, dx_lens_, dw_lens_;
};

}  // namespace bnns::reduction_backward
