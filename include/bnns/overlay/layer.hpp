// OpenBNNS C++ overlay: what every layer has, and the calls of layers with one input and with two.
//
// A layer owns its filter: made by the constructor, released by the destructor, movable, not copyable. A call compares
// its arrays with the layer (checks.hpp), passes data pointers and strides between samples on, and throws Error where
// the C library refuses; it allocates nothing. An argument may have another layout than the layer, if the counts agree.
#pragma once

#include "array.hpp"

namespace bnns {

class Layer {
 public:
  virtual ~Layer() {
    if (filter_) ::BNNSFilterDestroy(filter_);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// The C filter, still owned by the layer; null after a move.
  BNNSFilter bnnsFilter() const noexcept { return filter_; }

 protected:
  /// Takes the filter over. Null: throws the reason of the C function `creator`. `name` is the class, for messages.
  Layer(BNNSFilter filter, const char* name, const char* creator) : filter_(filter), name_(name) {
    if (!filter_) detail::refused(-1, name, creator, Error::Code::unableToCreateLayer);
  }
  Layer(Layer&& o) noexcept : filter_(std::exchange(o.filter_, nullptr)), name_(o.name_) {}
  Layer& operator=(Layer&& o) noexcept {  // no swap: what was moved from must be empty, so that its use is refused
    if (BNNSFilter old = std::exchange(filter_, std::exchange(o.filter_, nullptr))) ::BNNSFilterDestroy(old);
    name_ = o.name_;
    return *this;
  }
  detail::Where call(const char* member) const noexcept { return {name_, member}; }
  BNNSFilter live(const detail::Where& where) const {
    if (!filter_) detail::mistake(Error::Code::layerApplyFail, where, "the layer was moved from");
    return filter_;
  }

 private:
  BNNSFilter filter_ = nullptr;
  const char* name_;
};

/// Swift's init?: the layer, or nothing where it was refused.
///   auto layer = bnns::make<bnns::GramLayer>({.input = x, .output = y, .alpha = 1});
template <class L>
std::optional<L> make(const typename L::Parameters& parameters) {
  try {
    return std::optional<L>(std::in_place, parameters);
  } catch (const Error&) {
    return std::nullopt;
  }
}

namespace detail {

// BNNSFilterApplyBatch and its gradient, and the same for two inputs: what several classes share.

inline void applyOne(BNNSFilter filter, const Where& where, std::size_t batchSize, const Data& x, const Data& y) {
  check(::BNNSFilterApplyBatch(filter, batchSize, x.data, x.stride, y.data, y.stride), where, "BNNSFilterApplyBatch");
}
inline void applyOneBackward(BNNSFilter filter, const Where& where, std::size_t batchSize, const Data& x,
                             const Described& dx, const Data& y, const Described& dy, const Described& dw,
                             const Described& db) {
  check(::BNNSFilterApplyBackwardBatch(filter, batchSize, x.data, x.stride, dx.descriptor, dx.stride, y.data, y.stride,
                                       dy.descriptor, dy.stride, dw.descriptor, db.descriptor),
        where, "BNNSFilterApplyBackwardBatch");
}

// The descriptors of a layer with two inputs, and its calls.
struct TwoInputs {
  Expected a, b, output;

  void apply(BNNSFilter filter, const Where& where, std::size_t batchSize, const Input& inputA, const Input& inputB,
             const Output& y) const {
    const Data xa = fitting(where, "inputA", inputA, a, batchSize), xb = fitting(where, "inputB", inputB, b, batchSize),
               out = fitting(where, "output", y, output, batchSize);
    check(
        ::BNNSFilterApplyTwoInputBatch(filter, batchSize, xa.data, xa.stride, xb.data, xb.stride, out.data, out.stride),
        where, "BNNSFilterApplyTwoInputBatch");
  }
  void backward(BNNSFilter filter, const Where& where, std::size_t batchSize, const Input& inputA, const Input& inputB,
                const Input& y, const Input& outputGradient, const OptOutput& aGradient,
                const OptOutput& bGradient) const {
    const Data xa = fittingIfGiven(where, "inputA", inputA, a, batchSize),
               xb = fittingIfGiven(where, "inputB", inputB, b, batchSize),
               out = fittingIfGiven(where, "output", y, output, batchSize);
    const Described da = describedIfGiven(where, "generatingInputAGradient", aGradient, a, batchSize),
                    db = describedIfGiven(where, "generatingInputBGradient", bGradient, b, batchSize),
                    dy = described(where, "outputGradient", outputGradient, output, batchSize);
    check(::BNNSFilterApplyBackwardTwoInputBatch(filter, batchSize, xa.data, xa.stride, da.descriptor, da.stride,
                                                 xb.data, xb.stride, db.descriptor, db.stride, out.data, out.stride,
                                                 dy.descriptor, dy.stride, nullptr, nullptr),
          where, "BNNSFilterApplyBackwardTwoInputBatch");
  }
};

}  // namespace detail

class UnaryLayer : public Layer {
 public:
  void apply(std::size_t batchSize, const Input& input, const Output& output) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fitting(where, "input", input, input_, batchSize),
                       y = detail::fitting(where, "output", output, output_, batchSize);
    detail::applyOne(filter, where, batchSize, x, y);
  }
  /// input and output may be without data where the layer's gradient does not read them.
  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const OptOutput& generatingInputGradient) {
    backward(batchSize, input, output, outputGradient, generatingInputGradient, {}, {});
  }

  // The same calls with Swift's labels: layer.apply({.batchSize = n, .input = x, .output = y}).
  struct Forward {
    std::size_t batchSize;
    Input input;
    Output output;
  };
  struct Backward {
    std::size_t batchSize;
    Input input, output, outputGradient;
    OptOutput generatingInputGradient{};
  };
  void apply(const Forward& a) { apply(a.batchSize, a.input, a.output); }
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient);
  }

 protected:
  /// What input, output and parameters must be in every call.
  struct Arrays {
    detail::Expected input, output, weights{}, bias{};
  };
  UnaryLayer(BNNSFilter filter, const char* name, const char* creator, const Arrays& arrays)
      : Layer(filter, name, creator),
        input_(arrays.input),
        output_(arrays.output),
        weights_(arrays.weights),
        bias_(arrays.bias) {}
  UnaryLayer(UnaryLayer&&) noexcept = default;
  UnaryLayer& operator=(UnaryLayer&&) noexcept = default;

  const detail::Expected& expectedInput() const noexcept { return input_; }
  const detail::Expected& expectedOutput() const noexcept { return output_; }

  void backward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                const OptOutput& inputGradient, const OptOutput& weightsGradient, const OptOutput& biasGradient,
                const char* weightsLabel = "generatingWeightsGradient") {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fittingIfGiven(where, "input", input, input_, batchSize),
                       y = detail::fittingIfGiven(where, "output", output, output_, batchSize);
    const auto dy = detail::described(where, "outputGradient", outputGradient, output_, batchSize),
               dx = detail::describedIfGiven(where, "generatingInputGradient", inputGradient, input_, batchSize),
               dw = detail::describedIfGiven(where, weightsLabel, weightsGradient, weights_),
               db = detail::describedIfGiven(where, "generatingBiasGradient", biasGradient, bias_);
    detail::applyOneBackward(filter, where, batchSize, x, dx, y, dy, dw, db);
  }

 private:
  detail::Expected input_, output_, weights_, bias_;
};

class BinaryLayer : public Layer {
 public:
  void apply(std::size_t batchSize, const Input& inputA, const Input& inputB, const Output& output) {
    const detail::Where where = call("apply");
    arrays_.apply(live(where), where, batchSize, inputA, inputB, output);
  }
  void applyBackward(std::size_t batchSize, const Input& inputA, const Input& inputB, const Input& output,
                     const Input& outputGradient, const OptOutput& generatingInputAGradient,
                     const OptOutput& generatingInputBGradient) {
    const detail::Where where = call("applyBackward");
    arrays_.backward(live(where), where, batchSize, inputA, inputB, output, outputGradient, generatingInputAGradient,
                     generatingInputBGradient);
  }

  // The same calls with Swift's labels.
  struct Forward {
    std::size_t batchSize;
    Input inputA, inputB;
    Output output;
  };
  struct Backward {
    std::size_t batchSize;
    Input inputA, inputB, output, outputGradient;
    OptOutput generatingInputAGradient{}, generatingInputBGradient{};
  };
  void apply(const Forward& a) { apply(a.batchSize, a.inputA, a.inputB, a.output); }
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.inputA, a.inputB, a.output, a.outputGradient, a.generatingInputAGradient,
                  a.generatingInputBGradient);
  }

 protected:
  BinaryLayer(BNNSFilter filter, const char* name, const char* creator, const detail::TwoInputs& arrays)
      : Layer(filter, name, creator), arrays_(arrays) {}
  BinaryLayer(BinaryLayer&&) noexcept = default;
  BinaryLayer& operator=(BinaryLayer&&) noexcept = default;

  const detail::TwoInputs& expected() const noexcept { return arrays_; }

 private:
  detail::TwoInputs arrays_;
};

}  // namespace bnns
