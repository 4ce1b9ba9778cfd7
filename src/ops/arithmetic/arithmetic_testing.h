// What the arithmetic tests share: tensors between guard pages with poisoned gaps, a filter with its operands, and the
// domain and error bound of every function.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "src/core/half.h"
#include "src/ops/arithmetic/arithmetic.h"
#include "src/ops/arithmetic/arithmetic_ref.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using Sizes = std::vector<size_t>;
using ref::ArithmeticShape;
using ref::Values;

inline constexpr double kUnit = 0x1p-24;  // half an ulp: the relative error of one rounding to f32

// v as the type stores it.
inline double stored(BNNSDataType type, double v) {
  const float f = static_cast<float>(v);
  if (type == BNNSDataTypeFloat16) return half_to_float(float_to_half(f));
  if (type == BNNSDataTypeBFloat16) return bfloat16_to_float(float_to_bfloat16(f));
  return f;
}
// The relative error of that.
inline double storage_unit(BNNSDataType type) {
  return type == BNNSDataTypeFloat16 ? 0x1p-11 : type == BNNSDataTypeBFloat16 ? 0x1p-8 : kUnit;
}

// A batch of tensors of any layout, flush against a page that faults; bytes that are no element keep a pattern.
// Elements are named by sample and position, size axis 0 fastest. Addresses are computed here, not by the library.
class Stored {
 public:
  // gap: elements left free after every run of the fastest axis, after every sample, and so on.
  Stored(BNNSDataLayout layout, const Sizes& size, BNNSDataType type = BNNSDataTypeFloat32, size_t batch = 1,
         size_t gap = 0, Guarded<char>::Side side = Guarded<char>::Side::end)
      : size_(size), batch_(batch) {
    d_ = testing::descriptor(layout, size, nullptr, type);
    const size_t rank = size.size();
    size_t stride = 1, span = 1;
    for (size_t j = 0; j < rank; ++j) {
      const size_t axis = first_major() ? rank - 1 - j : j;
      if (gap) d_.stride[j] = stride;
      strides_.resize(rank);
      strides_[axis] = stride;
      span += (size[axis] - 1) * stride;
      stride = stride * size[axis] + (size[axis] > 1 ? gap : 0);
    }
    batch_stride_ = gap ? span + gap : 0;
    step_ = gap ? batch_stride_ : span;
    bytes_ = type_bytes(type);
    memory_ = std::make_unique<Guarded<char>>(((batch - 1) * step_ + span) * bytes_, side);
    d_.data = memory_->data();
    poison_all();
  }

  const BNNSNDArrayDescriptor& descriptor() const { return d_; }
  BNNSNDArrayDescriptor* delta(bool accumulate = false) {
    d_.flags = accumulate ? BNNSNDArrayFlagBackpropAccumulate : BNNSNDArrayFlagBackpropSet;
    return &d_;
  }
  void* data() const { return d_.data; }
  float* floats() const { return static_cast<float*>(d_.data); }
  size_t batch_stride() const { return batch_stride_; }
  size_t count() const { return ArithmeticShape::product(size_); }

  double get(size_t i) const {
    const char* p = at(i);
    switch (d_.data_type) {
      case BNNSDataTypeFloat16:
        return half_to_float(load<uint16_t>(p));
      case BNNSDataTypeBFloat16:
        return bfloat16_to_float(load<uint16_t>(p));
      case BNNSDataTypeInt8:
        return load<int8_t>(p);
      case BNNSDataTypeInt32:
        return load<int32_t>(p);
      case BNNSDataTypeBoolean:
        return load<uint8_t>(p);
      default:
        return load<float>(p);
    }
  }
  void set(size_t i, double v) {
    char* p = at(i);
    const float f = static_cast<float>(v);
    switch (d_.data_type) {
      case BNNSDataTypeFloat16:
        return store<uint16_t>(p, float_to_half(f));
      case BNNSDataTypeBFloat16:
        return store<uint16_t>(p, float_to_bfloat16(f));
      case BNNSDataTypeInt8:
        return store<int8_t>(p, static_cast<int8_t>(v));
      case BNNSDataTypeInt32:
        return store<int32_t>(p, static_cast<int32_t>(v));
      case BNNSDataTypeBoolean:
        return store<uint8_t>(p, v != 0);
      default:
        return store<float>(p, f);
    }
  }
  void fill(const Values& v) {
    for (size_t i = 0; i < v.size(); ++i) set(i, v[i]);
  }
  Values values() const {
    Values v(batch_ * count());
    for (size_t i = 0; i < v.size(); ++i) v[i] = get(i);
    return v;
  }
  void poison_all() {
    for (size_t i = 0; i < memory_->size(); ++i) memory_->data()[i] = kPattern[i % 4];
  }
  // Every byte that is no element still has the pattern.
  bool gaps_untouched() const {
    std::vector<bool> named(memory_->size());
    for (size_t i = 0; i < batch_ * count(); ++i) {
      for (size_t b = 0; b < bytes_; ++b) named[static_cast<size_t>(at(i) - memory_->data()) + b] = true;
    }
    for (size_t i = 0; i < named.size(); ++i) {
      if (!named[i] && memory_->data()[i] != kPattern[i % 4]) return false;
    }
    return true;
  }
  bool all_poison() const {
    for (size_t i = 0; i < memory_->size(); ++i) {
      if (memory_->data()[i] != kPattern[i % 4]) return false;
    }
    return true;
  }

 private:
  static constexpr char kPattern[4] = {char(0xad), char(0x7f), char(0xc0), char(0x7f)};  // NaN in f32 and bf16

  bool first_major() const {
    const auto layout = static_cast<unsigned>(d_.layout);
    return (layout & 0x8000) && (layout & 1);
  }
  char* at(size_t i) const {
    size_t offset = i / count() * step_;
    for (size_t axis = 0; axis < size_.size(); ++axis) {
      offset += i % size_[axis] * strides_[axis];
      i /= size_[axis];
    }
    return memory_->data() + offset * bytes_;
  }
  template <class T>
  static T load(const char* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  template <class T>
  static void store(char* p, T v) {
    std::memcpy(p, &v, sizeof v);
  }

  Sizes size_, strides_;
  size_t batch_, batch_stride_ = 0, step_ = 0, bytes_ = 0;
  BNNSNDArrayDescriptor d_;
  std::unique_ptr<Guarded<char>> memory_;
};

inline BNNSActivation activation(BNNSActivationFunction function, float alpha = 0, float beta = 0) {
  BNNSActivation a;
  std::memset(&a, 0, sizeof a);
  a.function = function;
  a.alpha = alpha;
  a.beta = beta;
  return a;
}

// An arithmetic filter, made through the C interface.
class Arithmetic {
 public:
  Arithmetic(BNNSArithmeticFunction function, const std::vector<BNNSNDArrayDescriptor>& in,
             const std::vector<BNNSDescriptorType>& types, const BNNSNDArrayDescriptor& out,
             const BNNSActivation& act = activation(BNNSActivationFunctionIdentity),
             const BNNSFilterParameters* parameters = nullptr)
      : inputs_(in.size()) {
    BNNSArithmeticUnary u{in[0], types[0], out, BNNSSample};
    BNNSArithmeticBinary b{in[0], types[0], in.back(), types.back(), out, BNNSSample};
    BNNSArithmeticTernary t{in[0],        types[0], in[in.size() > 1], types[in.size() > 1], in.back(),
                            types.back(), out,      BNNSSample};
    BNNSLayerParametersArithmetic layer;
    std::memset(&layer, 0, sizeof layer);
    layer.arithmetic_function = function;
    layer.arithmetic_function_fields = inputs_ == 1   ? static_cast<void*>(&u)
                                       : inputs_ == 2 ? static_cast<void*>(&b)
                                                      : &t;
    layer.activation = act;
    handle_ = BNNSFilterCreateLayerArithmetic(&layer, parameters);
  }
  Arithmetic(const Arithmetic&) = delete;
  ~Arithmetic() { BNNSFilterDestroy(handle_); }

  BNNSFilter handle() const { return handle_; }
  int forward(size_t batch, std::vector<const void*> in, std::vector<size_t> strides, void* out, size_t out_stride) {
    return BNNSArithmeticFilterApplyBatch(handle_, batch, in.size(), in.data(), strides.data(), out, out_stride);
  }
  // in empty: NULL.
  int backward(size_t batch, std::vector<const void*> in, std::vector<size_t> strides,
               std::vector<BNNSNDArrayDescriptor*> delta, std::vector<size_t> delta_strides, const void* out,
               size_t out_stride, BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride) {
    return BNNSArithmeticFilterApplyBackwardBatch(handle_, batch, delta.size(), in.empty() ? nullptr : in.data(),
                                                  in.empty() ? nullptr : strides.data(), delta.data(),
                                                  delta_strides.data(), out, out_stride, out_delta, out_delta_stride);
  }

 private:
  size_t inputs_;
  BNNSFilter handle_ = nullptr;
};

// Where a function is tested, and the error of its kernels in units of 2^-24 |result|: the sum of the roundings of the
// formula in arithmetic_*_simd.cc, with 2 units per ulp that src/simd/math-inl.h states. 0: the result is exact.
struct FunctionCase {
  BNNSArithmeticFunction function;
  double low[3], high[3];
  double forward_units;
  double backward_units[3];
};

inline const std::vector<FunctionCase>& function_cases() {
  static const std::vector<FunctionCase> cases = {
      {BNNSArithmeticAdd, {-3, -3}, {3, 3}, 0, {0, 0}},
      {BNNSArithmeticSubtract, {-3, -3}, {3, 3}, 0, {0, 0}},
      {BNNSArithmeticMultiply, {-3, -3}, {3, 3}, 0, {0, 0}},
      {BNNSArithmeticDivide, {-3, 0.5}, {3, 3}, 0, {0, 3}},
      {BNNSArithmeticSquareRoot, {0.1}, {4}, 0, {2}},
      {BNNSArithmeticReciprocalSquareRoot, {0.1}, {4}, 2, {9}},
      {BNNSArithmeticCeil, {-3}, {3}, 0, {0}},
      {BNNSArithmeticFloor, {-3}, {3}, 0, {0}},
      {BNNSArithmeticRound, {-3}, {3}, 0, {0}},
      {BNNSArithmeticSin, {-6}, {6}, 4, {5}},
      {BNNSArithmeticCos, {-6}, {6}, 4, {5}},
      {BNNSArithmeticTan, {-1.4}, {1.4}, 8, {19}},
      {BNNSArithmeticAsin, {-0.95}, {0.95}, 4, {4}},
      {BNNSArithmeticAcos, {-0.95}, {0.95}, 4, {4}},
      {BNNSArithmeticAtan, {-5}, {5}, 4, {4}},
      {BNNSArithmeticSinh, {-4}, {4}, 4, {5}},
      {BNNSArithmeticCosh, {-4}, {4}, 4, {5}},
      {BNNSArithmeticTanh, {-3}, {3}, 4, {4}},  // and 10 units of |g|: y is rounded before 1 - y^2
      {BNNSArithmeticAsinh, {-5}, {5}, 8, {4}},
      {BNNSArithmeticAcosh, {1.2}, {5}, 8, {6}},
      {BNNSArithmeticAtanh, {-0.9}, {0.9}, 8, {4}},
      {BNNSArithmeticPow, {0.2, -3}, {3, 3}, 8, {16, 14}},  // 16: b - 1 is rounded, 4 ln 5 units more
      {BNNSArithmeticExp, {-4}, {4}, 4, {5}},
      {BNNSArithmeticExp2, {-4}, {4}, 4, {7}},
      {BNNSArithmeticLog, {0.1}, {5}, 4, {1}},
      {BNNSArithmeticLog2, {0.1}, {5}, 4, {3}},
      {BNNSArithmeticMultiplyNoNaN, {-3, -3}, {3, 3}, 0, {0, 0}},
      {BNNSArithmeticDivideNoNaN, {-3, 0.5}, {3, 3}, 0, {0, 3}},
      {BNNSArithmeticMultiplyAdd, {-3, -3, -3}, {3, 3, 3}, 2, {0, 0, 0}},  // of |ab| + |y|
      {BNNSArithmeticMinimum, {-3, -3}, {3, 3}, 0, {0, 0}},
      {BNNSArithmeticMaximum, {-3, -3}, {3, 3}, 0, {0, 0}},
      {BNNSArithmeticSelect, {-3, -3, -3}, {3, 3, 3}, 0, {0, 0, 0}},
      {BNNSArithmeticAbs, {-3}, {3}, 0, {0}},
      {BNNSArithmeticSign, {-3}, {3}, 0, {0}},
      {BNNSArithmeticNegate, {-3}, {3}, 0, {0}},
      {BNNSArithmeticReciprocal, {0.3}, {3}, 0, {4}},
      {BNNSArithmeticSquare, {-3}, {3}, 0, {0}},
      {BNNSArithmeticFloorDivide, {-30, 0.5}, {30, 3}, 0, {}},
      {BNNSArithmeticTruncDivide, {-30, 0.5}, {30, 3}, 0, {}},
      {BNNSArithmeticTruncRemainder, {-30, 0.5}, {30, 3}, 0, {}},
      {BNNSArithmeticErf, {-3}, {3}, 8, {16}},  // 7 + x^2: x^2 is rounded before exp
  };
  return cases;
}

// Absolute error that a kernel may make, given the exact result and what it is made of.
inline double forward_bound(const FunctionCase& c, double y, double a, double b) {
  const double extra = c.function == BNNSArithmeticMultiplyAdd ? std::fabs(a * b) : 0;
  return c.forward_units * kUnit * (std::fabs(y) + extra);
}
inline double backward_bound(const FunctionCase& c, size_t k, double dx, double g) {
  const double extra = c.function == BNNSArithmeticTanh ? 10 * kUnit * std::fabs(g) : 0;
  return c.backward_units[k] * kUnit * std::fabs(dx) + extra;
}

}  // namespace bnns::testing
