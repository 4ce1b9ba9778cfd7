// The stages of a fused layer, and how they become the structures of the C call.
//
// Parameter gradients are listed stage by stage:
//   convolution, transposed convolution, fully connected: weights, bias     normalization: beta, gamma
//   arithmetic, quantization: none (the gradients of arithmetic are the input gradients)

/// A stage of a fused layer: one of the `BNNS.Fused…Parameters` structures.
public protocol FusableLayerParameters {}

extension BNNS {
  /// A convolution without activation, the first of two stages. `groupSize` is the number of groups.
  public struct FusedConvolutionParameters: FusableLayerParameters {
    /// A convolution or its transpose.
    public var type: BNNS.ConvolutionType
    /// `.convolutionWeightsOIHW(kernelWidth, kernelHeight, inputs / groups, outputs)`, with data.
    public var weights: BNNSNDArrayDescriptor
    /// `.vector(channels)`; nil: none.
    public var bias: BNNSNDArrayDescriptor?
    /// Steps of the window.
    public var stride: (x: Int, y: Int)
    /// Distances of the elements in a window.
    public var dilationStride: (x: Int, y: Int)
    /// Groups of channels that do not see each other.
    public var groupSize: Int
    /// Zeros around the input.
    public var padding: BNNS.ConvolutionPadding

    /// A convolution without activation.
    public init(
      type: BNNS.ConvolutionType, weights: BNNSNDArrayDescriptor, bias: BNNSNDArrayDescriptor?,
      stride: (x: Int, y: Int), dilationStride: (x: Int, y: Int), groupSize: Int, padding: BNNS.ConvolutionPadding
    ) {
      self.type = type
      self.weights = weights
      self.bias = bias
      self.stride = stride
      self.dilationStride = dilationStride
      self.groupSize = groupSize
      self.padding = padding
    }
  }

  /// A fully connected layer without activation, the first of two stages.
  public struct FusedFullyConnectedParameters: FusableLayerParameters {
    /// `.matrixRowMajor(inputs, outputs)` or `.matrixColumnMajor(outputs, inputs)`, with data.
    public var weights: BNNSNDArrayDescriptor
    /// `.vector(outputs)`; nil: none.
    public var bias: BNNSNDArrayDescriptor?

    /// A fully connected layer without activation.
    public init(weights: BNNSNDArrayDescriptor, bias: BNNSNDArrayDescriptor?) {
      self.weights = weights
      self.bias = bias
    }
  }

  /// A normalization, the second of two stages.
  public struct FusedNormalizationParameters: FusableLayerParameters {
    /// What is normalized together.
    public var type: BNNS.NormalizationType
    /// The shift, one for each channel; nil: 0.
    public var beta: BNNSNDArrayDescriptor?
    /// The scale, one for each channel; nil: 1.
    public var gamma: BNNSNDArrayDescriptor?
    /// The share of the old moving statistics, 0 to 1.
    public var momentum: Float
    /// Added to the variance.
    public var epsilon: Float
    /// The function applied last.
    public var activation: BNNS.ActivationFunction

    /// A normalization.
    public init(
      type: BNNS.NormalizationType, beta: BNNSNDArrayDescriptor? = nil, gamma: BNNSNDArrayDescriptor? = nil,
      momentum: Float = 0, epsilon: Float, activation: BNNS.ActivationFunction
    ) {
      self.type = type
      self.beta = beta
      self.gamma = gamma
      self.momentum = momentum
      self.epsilon = epsilon
      self.activation = activation
    }
  }

  /// scale * x + bias as integers, the second of two stages.
  public struct FusedQuantizationParameters: FusableLayerParameters {
    /// The axis that has a scale and a bias for each index; nil: one for the whole array.
    public var axis: Int?
    /// The scale; nil: 1.
    public var scale: BNNSNDArrayDescriptor?
    /// The bias; nil: 0.
    public var bias: BNNSNDArrayDescriptor?

    /// A quantization; `axis` is set afterwards.
    public init(scale: BNNSNDArrayDescriptor?, bias: BNNSNDArrayDescriptor?) {
      self.scale = scale
      self.bias = bias
    }
  }

  /// (x - bias) / scale, the second of two stages.
  public struct FusedDequantizationParameters: FusableLayerParameters {
    /// The axis that has a scale and a bias for each index; nil: one for the whole array.
    public var axis: Int?
    /// The scale; nil: 1.
    public var scale: BNNSNDArrayDescriptor?
    /// The bias; nil: 0.
    public var bias: BNNSNDArrayDescriptor?

    /// A dequantization; `axis` is set afterwards.
    public init(scale: BNNSNDArrayDescriptor?, bias: BNNSNDArrayDescriptor?) {
      self.scale = scale
      self.bias = bias
    }
  }

  /// A function of one array, the first of two stages.
  public struct FusedUnaryArithmeticParameters: FusableLayerParameters {
    /// How the input takes part.
    public var inputDescriptorType: BNNS.DescriptorType
    /// How the output takes part.
    public var outputDescriptorType: BNNS.DescriptorType
    /// The function.
    public var function: BNNS.ArithmeticUnaryFunction

    /// A function of one array.
    public init(
      inputDescriptorType: BNNS.DescriptorType, outputDescriptorType: BNNS.DescriptorType,
      function: BNNS.ArithmeticUnaryFunction
    ) {
      self.inputDescriptorType = inputDescriptorType
      self.outputDescriptorType = outputDescriptorType
      self.function = function
    }
  }

  /// A function of two arrays, the first of two stages.
  public struct FusedBinaryArithmeticParameters: FusableLayerParameters {
    /// How the first input takes part.
    public var inputADescriptorType: BNNS.DescriptorType
    /// How the second input takes part.
    public var inputBDescriptorType: BNNS.DescriptorType
    /// How the output takes part.
    public var outputDescriptorType: BNNS.DescriptorType
    /// The function.
    public var function: BNNS.ArithmeticBinaryFunction

    /// A function of two arrays.
    public init(
      inputADescriptorType: BNNS.DescriptorType, inputBDescriptorType: BNNS.DescriptorType,
      outputDescriptorType: BNNS.DescriptorType, function: BNNS.ArithmeticBinaryFunction
    ) {
      self.inputADescriptorType = inputADescriptorType
      self.inputBDescriptorType = inputBDescriptorType
      self.outputDescriptorType = outputDescriptorType
      self.function = function
    }
  }

  /// A function of three arrays, the first of two stages.
  public struct FusedTernaryArithmeticParameters: FusableLayerParameters {
    /// How the first input takes part.
    public var inputADescriptorType: BNNS.DescriptorType
    /// How the second input takes part.
    public var inputBDescriptorType: BNNS.DescriptorType
    /// How the third input takes part.
    public var inputCDescriptorType: BNNS.DescriptorType
    /// How the output takes part.
    public var outputDescriptorType: BNNS.DescriptorType
    /// The function.
    public var function: BNNS.ArithmeticTernaryFunction

    /// A function of three arrays.
    public init(
      inputADescriptorType: BNNS.DescriptorType, inputBDescriptorType: BNNS.DescriptorType,
      inputCDescriptorType: BNNS.DescriptorType, outputDescriptorType: BNNS.DescriptorType,
      function: BNNS.ArithmeticTernaryFunction
    ) {
      self.inputADescriptorType = inputADescriptorType
      self.inputBDescriptorType = inputBDescriptorType
      self.inputCDescriptorType = inputCDescriptorType
      self.outputDescriptorType = outputDescriptorType
      self.function = function
    }
  }
}
