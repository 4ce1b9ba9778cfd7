// Quantization layers for the tests: batches of any layout, stride and type with guard pages, and what the reference
// expects of them.
#pragma once

#include <optional>

#include "src/ops/quantization/quantization_ref.h"
#include "tests/support/layouts.h"
#include "tests/support/testing.h"

namespace bnns::testing {

// A batch of samples as one LayoutTensor with the batch as its slowest axis.
class BatchTensor {
 public:
  BatchTensor(BNNSDataLayout layout, std::vector<size_t> size, size_t batch, BNNSDataType type, size_t unit = 1,
              size_t pad = 0)
      : layout_(layout), size_(size), first_major_((unsigned(layout) & 0x8001) == 0x8001), dense_(unit + pad == 1) {
    const unsigned rank = unsigned(size.size()) + 1;
    size.insert(first_major_ ? size.begin() : size.end(), batch);
    tensor_.emplace(BNNSDataLayout(rank << 16 | 0x8000u | unsigned(first_major_)), size, type, unit, pad);
  }
  BNNSNDArrayDescriptor sample() {
    const BNNSNDArrayDescriptor all = tensor_->descriptor();
    BNNSNDArrayDescriptor d = descriptor(layout_, size_, tensor_->data(), tensor_->type());
    std::copy_n(all.stride, size_.size(), d.stride);
    return d;
  }
  size_t stride() { return dense_ ? 0 : tensor_->descriptor().stride[size_.size()]; }
  // Coordinates of the whole: sample coordinates, then the sample's number.
  Coordinates at(const Coordinates& sample, size_t n) const {
    Coordinates all = sample;
    all.insert(first_major_ ? all.begin() : all.end(), n);
    return all;
  }
  LayoutTensor& all() { return *tensor_; }

 private:
  BNNSDataLayout layout_;
  std::vector<size_t> size_;
  bool first_major_, dense_;
  std::optional<LayoutTensor> tensor_;
};

inline constexpr BNNSDataType kNumberTypes[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16,
                                                BNNSDataTypeInt8,    BNNSDataTypeInt16,   BNNSDataTypeInt32,
                                                BNNSDataTypeInt64,   BNNSDataTypeUInt8,   BNNSDataTypeUInt16,
                                                BNNSDataTypeUInt32,  BNNSDataTypeUInt64};

inline bool is_float_type(BNNSDataType type) {
  return (unsigned(type) & 0x10000) != 0;
}

// Quarters, so that products and sums often are ties; now and then something extreme. In the range of the type.
inline double draw(Random& random, BNNSDataType type) {
  const unsigned bits = unsigned(type) & 0x7fff;
  if (is_float_type(type)) {
    static constexpr double kSpecial[] = {0,    -0.0,  INFINITY,     -INFINITY,    NAN,          3e38,  -3e38,
                                          1e10, -1e10, 2147483520.0, 4294967040.0, 2147483648.0, 127.5, -128.5};
    const size_t pick = random.below(60);
    return pick < std::size(kSpecial) ? kSpecial[pick] : 0.25 * random.integer(-1100, 1100);
  }
  const bool is_signed = (unsigned(type) & 0x20000) != 0;
  const double high = std::ldexp(1, int(bits) - int(is_signed) - 1), low = is_signed ? -high : 0;
  if (random.below(8) == 0) return random.below(2) ? std::floor(high * 1.9) : low * 2;
  return std::max(low, std::min(high, double(random.integer(-1100, 1100))));
}

// A vector of parameters with a stride, or absent.
struct ParameterVector {
  std::optional<LayoutTensor> tensor;
  double missing;

  ParameterVector(double absent) : missing(absent) {}
  void make(size_t n, BNNSDataType type, size_t unit) {
    tensor.emplace(BNNSDataLayoutVector, Coordinates{n}, type, unit);
  }
  double get(size_t i) const { return tensor ? tensor->get({i}) : missing; }
  BNNSNDArrayDescriptor descriptor() {
    if (tensor) return tensor->descriptor();
    BNNSNDArrayDescriptor none;
    std::memset(&none, 0, sizeof none);
    return none;
  }
};

// One call with all its memory.
struct QuantizationCase {
  static constexpr size_t kNone = SIZE_MAX;
  BNNSDataLayout layout;
  std::vector<size_t> size;
  size_t batch, axis;  // axis: kNone, a size axis, or the rank for the batch
  bool dequantize;
  BatchTensor x, y;
  ParameterVector scale{1}, bias{0};

  QuantizationCase(BNNSDataLayout l, std::vector<size_t> s, size_t n, size_t a, bool back, BNNSDataType from,
                   BNNSDataType to, size_t unit = 1, size_t pad = 0)
      : layout(l),
        size(s),
        batch(n),
        axis(a),
        dequantize(back),
        x(l, s, n, from, unit, pad),
        y(l, s, n, to, unit, pad) {}

  size_t entries() const { return axis == kNone ? 1 : axis == size.size() ? batch : size[axis]; }
  void fill(Random& random) {
    for_each_coordinate(x.all().size(), [&](const Coordinates& at) { x.all().set(at, draw(random, x.all().type())); });
    static constexpr double kScales[] = {1, 2, 0.5, 3, 10, 1000, -1, 7, 0.125, 100};
    for (size_t i = 0; i < entries() && scale.tensor; ++i) {
      const double s = kScales[random.below(std::size(kScales))];
      scale.tensor->set({i}, is_float_type(scale.tensor->type()) ? s : std::max(1.0, std::min(100.0, s)));
    }
    for (size_t i = 0; i < entries() && bias.tensor; ++i) {
      const double b = random.integer(-40, 40);
      bias.tensor->set({i}, is_float_type(bias.tensor->type()) ? b / 4 : std::fabs(b));
    }
  }
  BNNSLayerParametersQuantization layer() {
    BNNSLayerParametersQuantization p;
    std::memset(&p, 0, sizeof p);
    p.axis_mask = axis == kNone ? 0 : size_t{1} << axis;
    p.function = dequantize ? BNNSQuantizerFunctionDequantize : BNNSQuantizerFunctionQuantize;
    p.i_desc = x.sample(), p.o_desc = y.sample();
    p.scale = scale.descriptor(), p.bias = bias.descriptor();
    for (auto* d : {&p.i_desc, &p.o_desc, &p.scale, &p.bias}) d->data_scale = 3, d->data_bias = 5;  // ignored
    return p;
  }
  int apply(size_t threads = 1) {
    BNNSFilterParameters options;
    std::memset(&options, 0, sizeof options);
    options.n_threads = threads;
    const BNNSLayerParametersQuantization p = layer();
    return BNNSDirectApplyQuantizer(&p, &options, batch, x.stride(), y.stride());
  }
  double want(const Coordinates& at, size_t n) {
    const size_t entry = axis == kNone ? 0 : axis == size.size() ? n : at[axis];
    const double v = x.all().get(x.at(at, n)), s = scale.get(entry), b = bias.get(entry);
    return ref::stored(y.all().type(), dequantize ? ref::dequantize(v, s, b) : ref::quantize(v, s, b));
  }
  // Equal to the reference, signs of zeros and NaN included, gaps untouched.
  ::testing::AssertionResult check() {
    for (size_t n = 0; n < batch; ++n) {
      ::testing::AssertionResult result = ::testing::AssertionSuccess();
      for_each_coordinate(size, [&](const Coordinates& at) {
        const double w = want(at, n), g = y.all().get(y.at(at, n));
        const bool same =
            std::isnan(w) ? std::isnan(g)
                          : w == g && (w != 0 || std::signbit(w) == std::signbit(g) || !is_float_type(y.all().type()));
        if (!same && result) {
          result = ::testing::AssertionFailure()
                   << "sample " << n << ", element " << ::testing::PrintToString(at) << ": got " << g << ", want " << w
                   << " from x = " << x.all().get(x.at(at, n));
        }
      });
      if (!result) return result << ", " << text();
    }
    if (!y.all().gaps_untouched()) return ::testing::AssertionFailure() << "wrote between elements: " << text();
    return ::testing::AssertionSuccess();
  }
  std::string text() {
    std::string s = dequantize ? "dequantize" : "quantize";
    s += " types " + std::to_string(unsigned(x.all().type())) + " to " + std::to_string(unsigned(y.all().type()));
    s += " size " + ::testing::PrintToString(size) + " batch " + std::to_string(batch) + " axis ";
    return s + (axis == kNone ? "none" : std::to_string(axis));
  }
};

}  // namespace bnns::testing
