// Convolution, transposed convolution and fully connected layers.

extension BNNS {
  /// A convolution or its transpose.
  public enum ConvolutionType: Sendable {
    /// Each output is a sum of products over a window of the input.
    case standard
    /// Each input adds its multiple of the kernel to a window of the output.
    case transposed
  }

  /// Zeros around an image.
  public enum ConvolutionPadding: Sendable {
    /// A number for each side.
    case asymmetric(left: Int, right: Int, up: Int, down: Int)
    /// As many columns on the left and on the right, and rows above and below.
    case symmetric(x: Int, y: Int)

    /// None.
    public static var zero: BNNS.ConvolutionPadding { .symmetric(x: 0, y: 0) }

    var values: (x: Int, y: Int, pad: (Int, Int, Int, Int)) {
      switch self {
      case .symmetric(let x, let y): return (x, y, (0, 0, 0, 0))
      case .asymmetric(let left, let right, let up, let down): return (0, 0, (left, right, up, down))
      }
    }
  }

  /// A 2-D convolution, or its transpose: images in and out, kernels, bias, activation.
  public class ConvolutionLayer: UnaryLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - convolutionType: A convolution or its transpose.
    ///   - input: `.imageCHW(width, height, channels)` of one sample.
    ///   - weights: `.convolutionWeightsOIHW(kernelWidth, kernelHeight, inputs / groups, outputs)`, with data.
    ///   - output: `.imageCHW(width, height, channels)` of one sample.
    ///   - bias: `.vector(channels)`; nil: none.
    ///   - padding: Zeros around the input.
    ///   - activation: The function applied last.
    ///   - groupCount: Groups of channels that do not see each other; 1: all do.
    ///   - stride: Steps of the window.
    ///   - dilationStride: Distances of the elements in a window.
    ///   - filterParameters: `.useClientPointer` to train it; nil: the defaults.
    public convenience init?(
      type convolutionType: BNNS.ConvolutionType, input: BNNSNDArrayDescriptor, weights: BNNSNDArrayDescriptor,
      output: BNNSNDArrayDescriptor, bias: BNNSNDArrayDescriptor?, padding: BNNS.ConvolutionPadding,
      activation: BNNS.ActivationFunction, groupCount: Int, stride: (x: Int, y: Int),
      dilationStride: (x: Int, y: Int), filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersConvolution(
        input: input, weights: weights, output: output, bias: bias, padding: padding, groupCount: groupCount,
        stride: stride, dilationStride: dilationStride)
      layer.activation = activation.bnnsActivation
      let made = withPointer(to: filterParameters) { options in
        convolutionType == .standard
          ? BNNSFilterCreateLayerConvolution(&layer, options)
          : BNNSFilterCreateLayerTransposedConvolution(&layer, options)
      }
      guard let made else { return nil }
      self.init(filter: made, input: input, output: output, weights: weights, bias: bias)
    }

    /// Computes the gradients of input, weights and bias, given that of the output.
    /// - Parameters:
    ///   - batchSize: The number of samples of each array.
    ///   - input: What `apply` read.
    ///   - output: What `apply` wrote; may be without data where the layer has no activation.
    ///   - outputGradient: The gradient of the output.
    ///   - inputGradient: Receives the gradient of the input, or has it added (its `flags`).
    ///   - weightsGradient: The same of the weights, summed over the batch; nil: not wanted.
    ///   - biasGradient: The same of the bias; nil: not wanted.
    public func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor,
      generatingWeightsGradient weightsGradient: BNNSNDArrayDescriptor? = nil,
      generatingBiasGradient biasGradient: BNNSNDArrayDescriptor? = nil
    ) throws {
      try backward(batchSize, input, output, outputGradient, inputGradient, weightsGradient, biasGradient)
    }
  }

  /// output = activation(weights * input + bias).
  public class FullyConnectedLayer: ConvolutionLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - input: One sample, in any layout.
    ///   - output: One sample, in any layout.
    ///   - weights: `.matrixRowMajor(inputs, outputs)` or `.matrixColumnMajor(outputs, inputs)`, with data, or what
    ///     `sparsify` made.
    ///   - bias: `.vector(outputs)`; nil: none.
    ///   - activation: The function applied last.
    ///   - filterParameters: `.useClientPointer` to train it; nil: the defaults.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, weights: BNNSNDArrayDescriptor,
      bias: BNNSNDArrayDescriptor?, activation: BNNS.ActivationFunction,
      filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersFullyConnected(input: input, output: output, weights: weights, bias: bias)
      layer.activation = activation.bnnsActivation
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerFullyConnected(&layer, $0) })
      else { return nil }
      self.init(fullyConnected: filter, input, output, weights, bias)
    }

    // An initializer of its own, so that those of a convolution are not inherited.
    init(
      fullyConnected filter: BNNSFilter, _ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor,
      _ weights: BNNSNDArrayDescriptor, _ bias: BNNSNDArrayDescriptor?
    ) {
      super.init(filter: filter, input: input, output: output, weights: weights, bias: bias)
    }

    /// Packs sparse weights for a fully connected layer.
    /// - Parameters:
    ///   - batchSize: The batch that the layer will be used with, a hint.
    ///   - layout: Where the values are.
    ///   - inputDenseShape: Layout and sizes of the dense matrix.
    ///   - inputValues: The values.
    ///   - output: Receives what becomes `weights` of the layer. Without data the library allocates it, and
    ///     `deallocate()` releases it.
    ///   - sparseParameters: Hints; nil: none.
    ///   - workspace: Not needed.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public static func sparsify(
      batchSize: Int = 1, inputLayout layout: BNNS.SparseLayout, inputDenseShape: BNNSNDArrayDescriptor,
      inputValues: BNNSNDArrayDescriptor, output: inout BNNSNDArrayDescriptor,
      sparseParameters: BNNS.SparseParameters? = nil, workspace: UnsafeMutableRawBufferPointer? = nil,
      filterParameters: BNNSFilterParameters? = nil
    ) throws {
      let call = Call(FullyConnectedLayer.self, "sparsify")
      var shape = inputDenseShape
      var values = inputValues
      try withPointer(to: filterParameters) { options in
        try withPointer(to: sparseParameters?.bnnsSparsityParameters) { hints in
          switch layout {
          case .coo(var indices):
            try call.check(
              BNNSNDArrayFullyConnectedSparsifySparseCOO(
                &shape, &indices, &values, &output, hints, batchSize, workspace?.baseAddress, workspace?.count ?? 0,
                options))
          case .csr(var columnIndices, var rowStarts):
            try call.check(
              BNNSNDArrayFullyConnectedSparsifySparseCSR(
                &shape, &columnIndices, &rowStarts, &values, &output, hints, batchSize, workspace?.baseAddress,
                workspace?.count ?? 0, options))
          }
        }
      }
    }
  }

  /// Where the values of a sparse matrix are.
  public enum SparseLayout {
    /// A pair of indices for each value.
    case coo(indices: BNNSNDArrayDescriptor)
    /// A column for each value, and where each row begins among the values.
    case csr(columnIndices: BNNSNDArrayDescriptor, rowStarts: BNNSNDArrayDescriptor)
  }

  /// The structure of sparse weights.
  public enum SparsityType: Sendable {
    /// Zeros anywhere.
    case unstructured
  }

  /// Hints for packing sparse weights.
  public struct SparseParameters {
    /// Structure.
    public let type: BNNS.SparsityType
    /// The share of zeros.
    public let ratio: (numerator: UInt32, denominator: UInt32)
    /// The machine the weights are packed for.
    public let targetSystem: BNNSTargetSystem

    /// Hints for packing sparse weights.
    public init(
      type: BNNS.SparsityType = .unstructured, ratio: (numerator: UInt32, denominator: UInt32),
      targetSystem: BNNSTargetSystem
    ) {
      self.type = type
      self.ratio = ratio
      self.targetSystem = targetSystem
    }

    var bnnsSparsityParameters: BNNSSparsityParameters {
      var hints = BNNSSparsityParameters()
      hints.sparsity_ratio = (ratio.numerator, ratio.denominator)
      hints.sparsity_type = BNNSSparsityTypeUnstructured
      hints.target_system = targetSystem
      return hints
    }
  }
}

/// An absent operand is a descriptor of zeros.
func orAbsent(_ d: BNNSNDArrayDescriptor?) -> BNNSNDArrayDescriptor { d ?? BNNSNDArrayDescriptor() }

extension BNNSLayerParametersConvolution {
  init(
    input: BNNSNDArrayDescriptor, weights: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    bias: BNNSNDArrayDescriptor?, padding: BNNS.ConvolutionPadding, groupCount: Int, stride: (x: Int, y: Int),
    dilationStride: (x: Int, y: Int)
  ) {
    self.init()
    i_desc = input
    w_desc = weights
    o_desc = output
    self.bias = orAbsent(bias)
    (x_stride, y_stride) = stride
    (x_dilation_stride, y_dilation_stride) = dilationStride
    (x_padding, y_padding, pad) = padding.values
    groups = groupCount
  }
}

extension BNNSLayerParametersFullyConnected {
  init(
    input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, weights: BNNSNDArrayDescriptor,
    bias: BNNSNDArrayDescriptor?
  ) {
    self.init()
    i_desc = input
    w_desc = weights
    o_desc = output
    self.bias = orAbsent(bias)
  }
}
