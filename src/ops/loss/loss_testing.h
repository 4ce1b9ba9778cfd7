// What the loss tests share: random cases, error bounds from formulas, and a caller of the C API with tensors of any
// type and stride, surrounded by poison and guard pages.
#pragma once

#include <memory>
#include <string>

#include "src/core/half.h"
#include "src/ops/loss/loss_ref.h"
#include "src/tensor/data_type.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using ref::LossCase;
using ref::Numbers;

inline constexpr BNNSLossFunction kElementFunctions[] = {BNNSLossFunctionSigmoidCrossEntropy,
                                                         BNNSLossFunctionMeanSquareError,
                                                         BNNSLossFunctionHuber,
                                                         BNNSLossFunctionLog,
                                                         BNNSLossFunctionHinge,
                                                         BNNSLossFunctionMeanAbsoluteError};
inline constexpr BNNSLossFunction kFunctions[] = {BNNSLossFunctionSoftmaxCrossEntropy,
                                                  BNNSLossFunctionSigmoidCrossEntropy,
                                                  BNNSLossFunctionMeanSquareError,
                                                  BNNSLossFunctionHuber,
                                                  BNNSLossFunctionLog,
                                                  BNNSLossFunctionCosineDistance,
                                                  BNNSLossFunctionHinge,
                                                  BNNSLossFunctionMeanAbsoluteError,
                                                  BNNSLossFunctionCategoricalCrossEntropy};
inline constexpr BNNSLossReductionFunction kReductions[] = {BNNSLossReductionNone, BNNSLossReductionSum,
                                                            BNNSLossReductionWeightedMean, BNNSLossReductionMean,
                                                            BNNSLossReductionNonZeroWeightMean};

inline std::string case_text(const LossCase& c) {
  return "function " + std::to_string(c.function) + " reduction " + std::to_string(c.reduction) + " batch " +
         std::to_string(c.batch) + " n " + std::to_string(c.n) + " weights " + std::to_string(c.weights.size()) +
         " smooth " + std::to_string(c.label_smooth);
}

// Values exact in bf16, so that all types see the same numbers, and away from kinks.
inline double coarse(double v) {
  return bfloat16_to_float(float_to_bfloat16(float(v)));
}

// weight_form: 0 none, 1 one, 2 per sample, 3 per element. About one weight in four is 0.
inline Numbers random_weights(Random& random, int weight_form, size_t batch, size_t n) {
  Numbers weights(weight_form == 0 ? 0 : weight_form == 1 ? 1 : weight_form == 2 ? batch : batch * n);
  for (double& w : weights) w = weight_form != 1 && random.below(4) == 0 ? 0 : coarse(random.uniform(0.25, 2));
  return weights;
}

inline LossCase random_case(Random& random, BNNSLossFunction function, BNNSLossReductionFunction reduction,
                            size_t batch, size_t n, int weight_form) {
  LossCase c;
  c.function = function;
  c.reduction = reduction;
  c.batch = batch;
  c.n = n;
  if (function == 1 || function == 2) c.label_smooth = random.below(2) ? 0.25 : 0;
  if (function == 4) c.huber_delta = 0.75;
  c.weights = random_weights(random, weight_form, batch, n);
  for (size_t b = 0; b < batch; ++b) {
    const size_t one = random.below(n);
    for (size_t i = 0; i < n; ++i) {
      const bool hot = function == 10 ? i == one || random.below(4) == 0 : i == one;
      double x = random.normal() * 2, l = hot;
      if (function == 3 || function == 4 || function == 9) l = coarse(random.normal());
      if (function == 6) x = random.uniform(0.02, 0.98);
      if (function == 7) x = random.normal() / std::sqrt(double(n)), l = coarse(random.normal() / std::sqrt(double(n)));
      if (function == 2 || function == 8) l = double(random.below(2));
      x = coarse(x);
      // Kinks: x = l, |x - l| = delta, 1 - (2l - 1)x = 0.
      if (function == 9 && std::fabs(x - l) < 0.05) x = coarse(l + 0.5);
      if (function == 4 && std::fabs(std::fabs(x - l) - c.huber_delta) < 0.05) x = coarse(l + 0.25);
      if (function == 8 && std::fabs(1 - (2 * l - 1) * x) < 0.05) x = 0.5;
      c.x.push_back(x);
      c.labels.push_back(l);
    }
  }
  return c;
}

// Without weights and smoothing.
inline LossCase simple_case(BNNSLossFunction function, BNNSLossReductionFunction reduction, size_t batch, size_t n,
                            uint64_t seed = 1) {
  Random random(seed);
  LossCase c = random_case(random, function, reduction, batch, n, 0);
  c.label_smooth = 0;
  return c;
}

// ---- error bounds ------------------------------------------------------------------------------------------------

// u = 2^-24 is half an ulp of 1; library functions are within 2 ulp = 4u. A sum of k terms in at least 8 lanes' worth
// of accumulators and blocks of 512 makes at most min(k, 512) / 8 + 8 roundings on the way of one term.
inline constexpr double kU = 0x1p-24;
inline double sum_depth(size_t n) {
  return double(std::min<size_t>(n, 512)) / 8 + 8;
}

struct Bounds {
  Numbers terms, slopes;  // before reduction and dy
};

inline Bounds loss_bounds(const LossCase& c) {
  Bounds bounds;
  const double depth = sum_depth(c.n), delta = c.huber_delta;
  for (size_t b = 0; b < c.batch; ++b) {
    // Sums over the sample, for the per-sample functions.
    double maximum = -INFINITY, sum = 0, distance = 0, labels = 0, dot = 0, product = 0;
    for (size_t i = 0; i < c.n; ++i) maximum = std::max(maximum, c.x[b * c.n + i]);
    for (size_t i = 0; i < c.n; ++i) {
      const double x = c.x[b * c.n + i], e = std::exp(x - maximum);
      const double wl = std::fabs(ref::loss_weight(c, b, i) * ref::loss_label(c, b, i));
      sum += e;
      distance += e * (maximum - x);
      labels += wl;
      dot += wl * (maximum - x);
      product += std::fabs(wl * x);
    }
    distance /= sum;  // relative error of sum e from the rounding of x - M
    if (c.function == 7) bounds.terms.push_back(kU * ((depth + 3) * product + 4));
    if (c.function == 1 || c.function == 10) {
      bounds.terms.push_back(kU *
                             (labels * (distance + depth + 8 + (depth + 8) * std::log(sum)) + (depth + 5) * dot + 4));
    }
    for (size_t i = 0; i < c.n; ++i) {
      const double x = c.x[b * c.n + i], l = std::fabs(ref::loss_label(c, b, i)),
                   e = std::fabs(x - ref::loss_label(c, b, i));
      const double w = std::fabs(ref::loss_weight(c, b, i)), p = std::exp(x - maximum) / sum;
      const double P = x + ref::kLogLossEpsilon, Q = 1 - x + ref::kLogLossEpsilon;
      double term = 0, slope = 0;
      switch (c.function) {
        case 1:
          slope = p * labels * (maximum - x + distance + 2 * depth + 12) + 6 * w * l;
          break;
        case 10:
          slope = std::max(w, 1.0) * (p * (maximum - x + distance + depth + 12) + 4);
          break;
        case 7:
          slope = std::fabs(x) * (depth + 8) * product + 6 * w * l;
          break;
        case 2:
          term = 10 * w * (std::fabs(x) * (1 + l) + 1), slope = 14 * w * (1 + l);
          break;
        case 3:
          term = 5 * w * e * e, slope = 12 * w * e;
          break;
        case 4:
          term = 7 * w * e * std::min(e, delta), slope = 7 * w * std::min(e, delta);
          break;
        case 6:
          term = 10 * w * (l * (1 + std::fabs(std::log(P))) + (1 - l) * (1 + std::fabs(std::log(Q))));
          slope = 14 * w * (e + ref::kLogLossEpsilon) / (P * Q);
          break;
        case 8:
          term = 6 * w * (1 + (2 * l + 1) * std::fabs(x)), slope = 6 * w * (2 * l + 1);
          break;
        case 9:
          term = 5 * w * e, slope = 5 * w;
          break;
        default:
          break;
      }
      if (!c.per_sample()) bounds.terms.push_back(kU * term);
      bounds.slopes.push_back(kU * slope);
    }
  }
  return bounds;
}

// Half an ulp of a stored value of this type.
inline double storage_error(BNNSDataType type, double value) {
  if (type == BNNSDataTypeFloat16) return std::max(0x1p-11 * std::fabs(value), 0x1p-25);
  return (type == BNNSDataTypeBFloat16 ? 0x1p-8 : kU) * std::fabs(value);
}

inline Numbers forward_bounds(const LossCase& c, const Bounds& bounds, const Numbers& values, BNNSDataType type) {
  Numbers result = bounds.terms;
  if (c.reduction != BNNSLossReductionNone) {
    double sum = 0;
    for (double bound : bounds.terms) sum += bound;
    const double divisor = ref::loss_divisor(c);
    result = {divisor == 0 ? 0 : sum / std::fabs(divisor)};
  }
  for (size_t i = 0; i < result.size(); ++i) result[i] += storage_error(type, std::fabs(values[i]) + result[i]);
  return result;
}

inline Numbers backward_bounds(const LossCase& c, const Bounds& bounds, const Numbers& dy, const Numbers& dx,
                               BNNSDataType type) {
  Numbers result(dx.size());
  const double divisor = ref::loss_divisor(c);
  for (size_t k = 0; k < dx.size(); ++k) {
    const double up = c.reduction != BNNSLossReductionNone ? dy[0] : c.per_sample() ? dy[k / c.n] : dy[k];
    // Three more roundings: the factor 1 / divisor, its product with dy, and the product with the slope.
    result[k] = divisor == 0 ? 0 : std::fabs(up / divisor) * bounds.slopes[k] + 3 * kU * std::fabs(dx[k]);
    result[k] += storage_error(type, std::fabs(dx[k]) + result[k]);
  }
  return result;
}

// ---- calling the C API -------------------------------------------------------------------------------------------

// `samples` samples of n values, element_stride apart, in a buffer that ends or begins at a guard page. Poison fills
// it.
class TestTensor {
 public:
  TestTensor(BNNSDataType type, size_t samples, size_t n, size_t element_stride = 1, size_t gap = 0, bool at_end = true)
      : type_(type), n_(n), step_(element_stride), stride_((n ? (n - 1) * element_stride + 1 : 0) + gap) {
    const size_t length = samples == 0 ? 0 : (samples - 1) * stride_ + stride_ - gap;
    if (type == BNNSDataTypeFloat32) {
      wide_ =
          std::make_unique<Guarded<float>>(length, at_end ? Guarded<float>::Side::end : Guarded<float>::Side::begin);
    } else {
      narrow_ = std::make_unique<Guarded<uint16_t>>(
          length, at_end ? Guarded<uint16_t>::Side::end : Guarded<uint16_t>::Side::begin);
    }
    for (size_t i = 0; i < length; ++i) poison_at(i);
    length_ = length;
    samples_ = samples;
  }
  TestTensor(BNNSDataType type, const Numbers& values, size_t samples, size_t n, size_t element_stride = 1,
             size_t gap = 0, bool at_end = true)
      : TestTensor(type, samples, n, element_stride, gap, at_end) {
    for (size_t k = 0; k < samples * n; ++k) set(k / n, k % n, values[k]);
  }

  void* data() { return wide_ ? static_cast<void*>(wide_->data()) : narrow_->data(); }
  size_t stride() const { return stride_; }
  void set(size_t sample, size_t i, double v) {
    const size_t at = sample * stride_ + i * step_;
    if (wide_)
      (*wide_)[at] = float(v);
    else
      (*narrow_)[at] = type_ == BNNSDataTypeFloat16 ? float_to_half(float(v)) : float_to_bfloat16(float(v));
  }
  double get(size_t sample, size_t i) const { return value_at(sample * stride_ + i * step_); }
  Numbers values() const {
    Numbers result;
    for (size_t k = 0; k < samples_ * n_; ++k) result.push_back(get(k / n_, k % n_));
    return result;
  }
  // True when nothing but the elements themselves was written; with_elements: not even these.
  bool untouched(bool with_elements = false) const {
    for (size_t at = 0; at < length_; ++at) {
      const size_t within = at % stride_;
      const bool element = within % step_ == 0 && within / step_ < n_;
      if ((with_elements || !element) && !poisoned_at(at)) return false;
    }
    return true;
  }
  BNNSNDArrayDescriptor descriptor() {
    BNNSNDArrayDescriptor d = vector_descriptor(n_, data(), type_);
    d.stride[0] = step_ == 1 ? 0 : step_;
    return d;
  }

 private:
  void poison_at(size_t at) {
    if (wide_)
      (*wide_)[at] = poison();
    else
      (*narrow_)[at] = 0x7fad;
  }
  bool poisoned_at(size_t at) const { return wide_ ? is_poison((*wide_)[at]) : (*narrow_)[at] == 0x7fad; }
  double value_at(size_t at) const {
    if (wide_) return (*wide_)[at];
    return type_ == BNNSDataTypeFloat16 ? half_to_float((*narrow_)[at]) : bfloat16_to_float((*narrow_)[at]);
  }

  BNNSDataType type_;
  size_t n_, step_, stride_, length_ = 0, samples_ = 0;
  std::unique_ptr<Guarded<float>> wide_;
  std::unique_ptr<Guarded<uint16_t>> narrow_;
};

// The parameters of a case; the same bytes serve as any of the structures but Yolo's.
inline BNNSLayerParametersLossHuber loss_parameters(const LossCase& c, BNNSDataType type = BNNSDataTypeFloat32,
                                                    BNNSDataType out_type = BNNSDataTypeFloat32) {
  BNNSLayerParametersLossHuber p;
  std::memset(&p, 0, sizeof p);
  p.function = c.function;
  p.reduction = c.reduction;
  p.i_desc = vector_descriptor(c.n, nullptr, type);
  const bool scalar = c.reduction != BNNSLossReductionNone || c.per_sample();
  p.o_desc = vector_descriptor(scalar ? 1 : c.n, nullptr, out_type);
  p.huber_delta = float(c.function == 4 ? c.huber_delta : c.label_smooth);
  return p;
}

class TestFilter {
 public:
  TestFilter(const void* parameters, size_t threads = 1) {
    BNNSFilterParameters options;
    std::memset(&options, 0, sizeof options);
    options.n_threads = threads;
    handle_ = BNNSFilterCreateLayerLoss(parameters, &options);
    EXPECT_NE(handle_, nullptr) << BNNSExtLastError();
  }
  TestFilter(const TestFilter&) = delete;
  ~TestFilter() { BNNSFilterDestroy(handle_); }
  operator BNNSFilter() const { return handle_; }

 private:
  BNNSFilter handle_;
};

// How a case is run.
struct Setting {
  BNNSDataType type = BNNSDataTypeFloat32, out_type = BNNSDataTypeFloat32, delta_type = BNNSDataTypeFloat32;
  size_t element_stride = 1, gap = 0, threads = 1;
  bool at_end = true, accumulate = false;
  double before = 0;  // what in_delta holds, when accumulate
};

struct Result {
  Numbers out, dx;
};

// BNNSLossFilterApplyBatch, or BNNSLossFilterApplyBackwardBatch when dy is given.
inline Result run_case(const LossCase& c, const Setting& s, const Numbers* dy = nullptr, bool with_delta = true) {
  auto parameters = loss_parameters(c, s.type, s.out_type);
  if (s.element_stride != 1) parameters.i_desc.stride[0] = s.element_stride;
  TestFilter filter(&parameters, s.threads);
  TestTensor x(s.type, c.x, c.batch, c.n, s.element_stride, s.gap, s.at_end);
  TestTensor labels(s.type, c.labels, c.batch, c.n, s.element_stride, 2 * s.gap, s.at_end);
  TestTensor weights(s.type, c.weights, 1, c.weights.size(), 1, 0, s.at_end);
  TestTensor dx(s.delta_type, c.batch, c.n, s.element_stride, 3 * s.gap, s.at_end);
  if (s.accumulate) {
    for (size_t k = 0; k < c.batch * c.n; ++k) dx.set(k / c.n, k % c.n, s.before);
  }
  BNNSNDArrayDescriptor in_delta = dx.descriptor();
  if (s.accumulate) in_delta.flags = BNNSNDArrayFlagBackpropAccumulate;
  const void* w = c.weights.empty() ? nullptr : weights.data();
  const bool reduced = c.reduction != BNNSLossReductionNone;
  const bool given = s.gap != 0 || s.element_stride != 1;  // else 0: dense
  const size_t x_stride = given ? x.stride() : 0, l_stride = given ? labels.stride() : 0;
  const size_t dx_stride = given ? dx.stride() : 0;
  Result result;
  int status;
  if (dy) {
    const size_t per_sample = reduced || c.per_sample() ? 1 : c.n;
    TestTensor up(s.delta_type, *dy, reduced ? 1 : c.batch, per_sample, 1, reduced ? 0 : s.gap, s.at_end);
    const BNNSNDArrayDescriptor out_delta = up.descriptor();
    status = BNNSLossFilterApplyBackwardBatch(filter, c.batch, x.data(), x_stride, &in_delta, dx_stride, labels.data(),
                                              l_stride, w, c.weights.size(), &out_delta,
                                              reduced ? 12345
                                              : s.gap ? up.stride()
                                                      : 0);
  } else {
    TestTensor out(s.out_type, 1, reduced ? 1 : c.terms(), 1, 0, s.at_end);
    status = BNNSLossFilterApplyBatch(filter, c.batch, x.data(), x_stride, labels.data(), l_stride, w, c.weights.size(),
                                      out.data(), with_delta ? &in_delta : nullptr, dx_stride);
    result.out = out.values();
  }
  EXPECT_EQ(status, 0) << BNNSExtLastError() << " " << case_text(c);
  EXPECT_TRUE(dx.untouched(!with_delta && !dy)) << "gaps of in_delta were written: " << case_text(c);
  result.dx = dx.values();
  return result;
}

inline ::testing::AssertionResult near(const Numbers& got, const Numbers& want, const Numbers& bounds) {
  if (got.size() != want.size() || want.size() != bounds.size()) {
    return ::testing::AssertionFailure() << got.size() << ", " << want.size() << ", " << bounds.size() << " numbers";
  }
  return within(got, want, got.size(), [&](size_t i) { return bounds[i]; });
}

}  // namespace bnns::testing
