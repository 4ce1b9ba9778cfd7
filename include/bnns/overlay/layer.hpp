// OpenBNNS C++ overlay: what every layer has, and the calls of layers with one input and with two.
//
// A layer owns its filter: made by the constructor, released by the destructor, movable, not copyable. A call passes
// data pointers and strides between samples on, and throws Error where the C library refuses; it allocates nothing.
// Shapes are the C library's business: an argument may have another layout than the layer, if the counts agree.
#pragma once

#include "array.hpp"

namespace bnns {

namespace detail {

// A gradient that a call may generate: the C call takes a pointer to a mutable descriptor, or null to skip it.
struct Gradient {
  Gradient(const OptDesc& gradient, const char* label)
      : descriptor(orAbsent(gradient)), stride(gradient ? batchStride(*gradient) : 0), wanted(gradient.has_value()) {
    if (wanted) requireData(descriptor, label);
  }
  Desc* pointer() noexcept { return wanted ? &descriptor : nullptr; }

  Desc descriptor;
  std::size_t stride;
  bool wanted;
};

}  // namespace detail

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
  /// Takes the filter over. Null: throws the reason of the C function `creator`.
  Layer(BNNSFilter filter, const char* creator) : filter_(filter) {
    if (!filter_) detail::refused(-1, creator, Error::Code::unableToCreateLayer);
  }
  Layer(Layer&& o) noexcept : filter_(std::exchange(o.filter_, nullptr)) {}
  Layer& operator=(Layer&& o) noexcept {  // no swap: what was moved from must be empty, so that its use is refused
    if (BNNSFilter old = std::exchange(filter_, std::exchange(o.filter_, nullptr))) ::BNNSFilterDestroy(old);
    return *this;
  }
  BNNSFilter live(const char* function) const {
    if (!filter_) detail::mistake(Error::Code::layerApplyFail, function, "the layer was moved from");
    return filter_;
  }

 private:
  BNNSFilter filter_ = nullptr;
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

class UnaryLayer : public Layer {
 public:
  void apply(std::size_t batchSize, const Desc& input, const Desc& output) {
    constexpr auto function = "BNNSFilterApplyBatch";
    detail::check(::BNNSFilterApplyBatch(live(function), batchSize, detail::requireData(input, "input"),
                                         detail::batchStride(input), detail::requireData(output, "output"),
                                         detail::batchStride(output)),
                  function);
  }
  /// input and output may be without data where the layer's gradient does not read them.
  void applyBackward(std::size_t batchSize, const Desc& input, const Desc& output, const Desc& outputGradient,
                     const OptDesc& generatingInputGradient) {
    backward(batchSize, input, output, outputGradient, generatingInputGradient, {}, {});
  }

 protected:
  using Layer::Layer;
  UnaryLayer(UnaryLayer&&) noexcept = default;
  UnaryLayer& operator=(UnaryLayer&&) noexcept = default;

  void backward(std::size_t batchSize, const Desc& input, const Desc& output, const Desc& outputGradient,
                const OptDesc& inputGradient, const OptDesc& weightsGradient, const OptDesc& biasGradient) {
    constexpr auto function = "BNNSFilterApplyBackwardBatch";
    detail::Gradient dx(inputGradient, "generatingInputGradient"), dw(weightsGradient, "generatingWeightsGradient"),
        db(biasGradient, "generatingBiasGradient");
    detail::requireData(outputGradient, "outputGradient");
    detail::check(
        ::BNNSFilterApplyBackwardBatch(live(function), batchSize, input.data, detail::batchStride(input), dx.pointer(),
                                       dx.stride, output.data, detail::batchStride(output), &outputGradient,
                                       detail::batchStride(outputGradient), dw.pointer(), db.pointer()),
        function);
  }
};

class BinaryLayer : public Layer {
 public:
  void apply(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& output) {
    constexpr auto function = "BNNSFilterApplyTwoInputBatch";
    detail::check(::BNNSFilterApplyTwoInputBatch(live(function), batchSize, detail::requireData(inputA, "inputA"),
                                                 detail::batchStride(inputA), detail::requireData(inputB, "inputB"),
                                                 detail::batchStride(inputB), detail::requireData(output, "output"),
                                                 detail::batchStride(output)),
                  function);
  }
  void applyBackward(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& output,
                     const Desc& outputGradient, const OptDesc& generatingInputAGradient,
                     const OptDesc& generatingInputBGradient) {
    constexpr auto function = "BNNSFilterApplyBackwardTwoInputBatch";
    detail::Gradient da(generatingInputAGradient, "generatingInputAGradient"),
        db(generatingInputBGradient, "generatingInputBGradient");
    detail::requireData(outputGradient, "outputGradient");
    detail::check(
        ::BNNSFilterApplyBackwardTwoInputBatch(live(function), batchSize, inputA.data, detail::batchStride(inputA),
                                               da.pointer(), da.stride, inputB.data, detail::batchStride(inputB),
                                               db.pointer(), db.stride, output.data, detail::batchStride(output),
                                               &outputGradient, detail::batchStride(outputGradient), nullptr, nullptr),
        function);
  }

 protected:
  using Layer::Layer;
  BinaryLayer(BinaryLayer&&) noexcept = default;
  BinaryLayer& operator=(BinaryLayer&&) noexcept = default;
};

}  // namespace bnns
