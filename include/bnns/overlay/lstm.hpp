// OpenBNNS C++ overlay: LSTM (not in Swift).
#pragma once

#include "activation.hpp"

namespace bnns {

/// The arrays of a stack of LSTM layers, or, with the same members, their gradients.
struct LSTMArrays {
  struct Gate {
    OptDesc inputWeights{};         ///< of the first layer
    OptDesc inputWeightsFurther{};  ///< of the further layers, where their input has another width
    OptDesc hiddenWeights{}, cellWeights{}, bias{};
    ActivationFunction activation{};  ///< read without defaultActivations
  };
  struct Data {
    OptDesc data{}, hidden{}, cell{};  ///< the sequence, and the first (or last) states
  };
  Data input{}, output{};
  Gate inputGate{}, forgetGate{}, candidateGate{}, outputGate{};
};

/// Runs forward and backward without a filter: the arrays are part of the layer, which keeps their descriptors.
class LSTMLayer {
 public:
  struct Parameters {
    std::size_t inputSize, hiddenSize, batchSize, layerCount = 1, sequenceLength;
    float dropout = 0;  ///< between layers, in training
    bool isBidirectional = false, usesDefaultActivations = true;
    OptDesc sequence{};  ///< sequences still active at each step
    LSTMArrays arrays;
    ActivationFunction hiddenActivation{};
    OptFilterParams filterParameters{};
  };
  explicit LSTMLayer(const Parameters& p) : options_(p.filterParameters) {
    layer_.input_size = p.inputSize, layer_.hidden_size = p.hiddenSize, layer_.batch_size = p.batchSize;
    layer_.num_layers = p.layerCount, layer_.seq_len = p.sequenceLength, layer_.dropout = p.dropout;
    layer_.lstm_flags = (p.isBidirectional ? std::uint32_t{BNNSLayerFlagsLSTMBidirectional} : 0u) |
                        (p.usesDefaultActivations ? std::uint32_t{BNNSLayerFlagsLSTMDefaultActivations} : 0u);
    layer_.sequence_descriptor = detail::orAbsent(p.sequence);
    layer_.hidden_activation = p.hiddenActivation.bnnsActivation();
    set(layer_, p.arrays);
    trainingCacheCapacity();  // refuses sizes that do not fit
  }

  /// Bytes of the cache that training needs.
  std::size_t trainingCacheCapacity() const {
    const std::size_t bytes = ::BNNSComputeLSTMTrainingCacheCapacity(&layer_);
    if (bytes == static_cast<std::size_t>(-1)) {
      detail::refused(-1, "LSTMLayer", "BNNSComputeLSTMTrainingCacheCapacity", Error::Code::unableToCreateLayer);
    }
    return bytes;
  }
  /// Inference without a cache; training with one.
  void apply(std::span<std::byte> trainingCache = {}) const {
    detail::check(::BNNSDirectApplyLSTMBatchTrainingCaching(&layer_, detail::pointer(options_),
                                                            trainingCache.empty() ? nullptr : trainingCache.data(),
                                                            trainingCache.size()),
                  "LSTMLayer::apply", "BNNSDirectApplyLSTMBatchTrainingCaching");
  }
  /// `gradients.output` is what comes in; the other members receive gradients, and absent ones are skipped. Without
  /// the cache of apply the forward pass is run again.
  void applyBackward(const LSTMArrays& gradients, std::span<const std::byte> trainingCache = {}) const {
    BNNSLayerParametersLSTM delta = layer_;
    set(delta, gradients);
    detail::check(::BNNSDirectApplyLSTMBatchBackward(&layer_, &delta, detail::pointer(options_),
                                                     trainingCache.empty() ? nullptr : trainingCache.data(),
                                                     trainingCache.size()),
                  "LSTMLayer::applyBackward", "BNNSDirectApplyLSTMBatchBackward");
  }

  const BNNSLayerParametersLSTM& bnnsLayerParameters() const noexcept { return layer_; }

 private:
  static void set(BNNSLSTMGateDescriptor& gate, const LSTMArrays::Gate& from) {
    gate.iw_desc[0] = detail::orAbsent(from.inputWeights), gate.iw_desc[1] = detail::orAbsent(from.inputWeightsFurther);
    gate.hw_desc = detail::orAbsent(from.hiddenWeights), gate.cw_desc = detail::orAbsent(from.cellWeights);
    gate.b_desc = detail::orAbsent(from.bias), gate.activation = from.activation.bnnsActivation();
  }
  static void set(BNNSLSTMDataDescriptor& data, const LSTMArrays::Data& from) {
    data.data_desc = detail::orAbsent(from.data), data.hidden_desc = detail::orAbsent(from.hidden);
    data.cell_state_desc = detail::orAbsent(from.cell);
  }
  static void set(BNNSLayerParametersLSTM& layer, const LSTMArrays& from) {
    set(layer.input_descriptor, from.input), set(layer.output_descriptor, from.output);
    set(layer.input_gate, from.inputGate), set(layer.forget_gate, from.forgetGate);
    set(layer.candidate_gate, from.candidateGate), set(layer.output_gate, from.outputGate);
  }

  BNNSLayerParametersLSTM layer_{};
  OptFilterParams options_;
};

}  // namespace bnns
