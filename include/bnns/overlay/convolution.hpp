// OpenBNNS C++ overlay: convolution, transposed convolution and fully connected layers.
#pragma once

#include "activation.hpp"

namespace bnns {

namespace detail {
inline void setPadding(const ConvolutionPadding& padding, auto& layer) {
  layer.x_padding = padding.x, layer.y_padding = padding.y;
  for (std::size_t i = 0; i < 4; ++i) layer.pad[i] = padding.pad[i];
}
}  // namespace detail

/// With filterParameters left out it copies weights and bias at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
///
/// A 2-D convolution, or its transpose: images in and out, weights, bias, activation.
class ConvolutionLayer : public UnaryLayer {
 public:
  struct Parameters {
    ConvolutionType type = ConvolutionType::standard;
    Desc input, weights, output;
    OptDesc bias{};
    ConvolutionPadding padding{};
    ActivationFunction activation{};
    std::size_t groupCount = 1;
    XY stride{};
    XY dilationStride{};
    OptFilterParams filterParameters{};
  };
  explicit ConvolutionLayer(const Parameters& p) : ConvolutionLayer(p, "ConvolutionLayer") {}

  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const OptOutput& generatingInputGradient, const OptOutput& generatingWeightsGradient = {},
                     const OptOutput& generatingBiasGradient = {}) {
    backward(batchSize, input, output, outputGradient, generatingInputGradient, generatingWeightsGradient,
             generatingBiasGradient);
  }

  /// The same call with Swift's labels.
  struct Backward {
    std::size_t batchSize;
    Input input, output, outputGradient;
    OptOutput generatingInputGradient{}, generatingWeightsGradient{}, generatingBiasGradient{};
  };
  void applyBackward(const Backward& a) {
    backward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient, a.generatingWeightsGradient,
             a.generatingBiasGradient);
  }

 protected:
  using UnaryLayer::UnaryLayer;
  ConvolutionLayer(const Parameters& p, const char* name)
      : UnaryLayer(create(p), name, creator(p.type), {p.input, p.output, p.weights, p.bias}) {}

 private:
  static const char* creator(ConvolutionType type) {
    return type == ConvolutionType::standard ? "BNNSFilterCreateLayerConvolution"
                                             : "BNNSFilterCreateLayerTransposedConvolution";
  }
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersConvolution layer{};
    layer.i_desc = p.input, layer.w_desc = p.weights, layer.o_desc = p.output, layer.bias = detail::orAbsent(p.bias);
    layer.activation = p.activation.bnnsActivation();
    layer.x_stride = p.stride.x, layer.y_stride = p.stride.y;
    layer.x_dilation_stride = p.dilationStride.x, layer.y_dilation_stride = p.dilationStride.y;
    layer.groups = p.groupCount;
    detail::setPadding(p.padding, layer);
    const BNNSFilterParameters* options = detail::pointer(p.filterParameters);
    return p.type == ConvolutionType::standard ? ::BNNSFilterCreateLayerConvolution(&layer, options)
                                               : ::BNNSFilterCreateLayerTransposedConvolution(&layer, options);
  }
};

/// With filterParameters left out it copies weights and bias at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
///
/// ConvolutionLayer with type transposed (Swift has no class of this name).
class TransposedConvolutionLayer : public ConvolutionLayer {
 public:
  using Parameters = ConvolutionLayer::Parameters;
  explicit TransposedConvolutionLayer(Parameters p) : ConvolutionLayer(transposed(p), "TransposedConvolutionLayer") {}

 private:
  static const Parameters& transposed(Parameters& p) {
    p.type = ConvolutionType::transposed;
    return p;
  }
};

/// Positions of the entries of a sparse matrix.
struct SparseLayout {
  Desc first;           ///< coo: the pairs of indices; csr: the column indices
  OptDesc rowStarts{};  ///< csr only
  static SparseLayout coo(const Desc& indices) { return {indices, {}}; }
  static SparseLayout csr(const Desc& columnIndices, const Desc& rowStarts) { return {columnIndices, rowStarts}; }
};
enum class SparsityType : std::uint32_t { unstructured = BNNSSparsityTypeUnstructured };
struct SparseParameters {
  struct Ratio {
    std::uint32_t numerator = 0, denominator = 1;
  };
  SparsityType type = SparsityType::unstructured;
  Ratio ratio{};
  BNNSTargetSystem targetSystem = BNNSTargetSystemGeneric;
};

/// With filterParameters left out it copies weights and bias at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
///
/// output = activation(weights * input + bias). Derived from ConvolutionLayer as in Swift: the calls are the same.
class FullyConnectedLayer : public ConvolutionLayer {
 public:
  struct Parameters {
    Desc input, output, weights;
    OptDesc bias{};
    ActivationFunction activation{};
    OptFilterParams filterParameters{};
  };
  explicit FullyConnectedLayer(const Parameters& p)
      : ConvolutionLayer(create(p), "FullyConnectedLayer", "BNNSFilterCreateLayerFullyConnected",
                         {p.input, p.output, p.weights, p.bias}) {}

  /// Packs sparse weights into `output`, which then serves as `weights` of a layer. Without data in `output` the C
  /// library allocates it, and the caller frees it with the deallocator of filterParameters or std::free.
  static void sparsify(std::size_t batchSize, const SparseLayout& inputLayout, const Desc& inputDenseShape,
                       const Desc& inputValues, Desc& output, const std::optional<SparseParameters>& parameters = {},
                       std::span<std::byte> workspace = {}, const OptFilterParams& filterParameters = {}) {
    constexpr auto where = "FullyConnectedLayer::sparsify";
    BNNSSparsityParameters sparse{};
    if (parameters) {
      sparse.sparsity_ratio[0] = parameters->ratio.numerator, sparse.sparsity_ratio[1] = parameters->ratio.denominator;
      sparse.sparsity_type = static_cast<BNNSSparsityType>(parameters->type);
      sparse.target_system = parameters->targetSystem;
    }
    const BNNSSparsityParameters* hints = parameters ? &sparse : nullptr;
    void* scratch = workspace.empty() ? nullptr : workspace.data();
    if (inputLayout.rowStarts) {
      detail::check(::BNNSNDArrayFullyConnectedSparsifySparseCSR(
                        &inputDenseShape, &inputLayout.first, &*inputLayout.rowStarts, &inputValues, &output, hints,
                        batchSize, scratch, workspace.size(), detail::pointer(filterParameters)),
                    where, "BNNSNDArrayFullyConnectedSparsifySparseCSR");
    } else {
      detail::check(::BNNSNDArrayFullyConnectedSparsifySparseCOO(&inputDenseShape, &inputLayout.first, &inputValues,
                                                                 &output, hints, batchSize, scratch, workspace.size(),
                                                                 detail::pointer(filterParameters)),
                    where, "BNNSNDArrayFullyConnectedSparsifySparseCOO");
    }
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersFullyConnected layer{};
    layer.i_desc = p.input, layer.w_desc = p.weights, layer.o_desc = p.output, layer.bias = detail::orAbsent(p.bias);
    layer.activation = p.activation.bnnsActivation();
    return ::BNNSFilterCreateLayerFullyConnected(&layer, detail::pointer(p.filterParameters));
  }
};

}  // namespace bnns
