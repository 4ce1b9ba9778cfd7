// Layers that apply arithmetic functions, and what they share with fused layers.

extension BNNS {
  /// A function of each element of one array. Each size of the input is the output's, or 1 and repeats.
  public class UnaryArithmeticLayer: Layer {
    private final let arrays: ArithmeticArrays

    private init(_ filter: BNNSFilter, _ arrays: ArithmeticArrays) {
      self.arrays = arrays
      super.init(filter: filter)
    }

    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    public convenience init?(
      input: BNNSNDArrayDescriptor, inputDescriptorType: BNNS.DescriptorType, output: BNNSNDArrayDescriptor,
      outputDescriptorType: BNNS.DescriptorType, function: BNNS.ArithmeticUnaryFunction,
      activation: BNNS.ActivationFunction = .identity, filterParameters: BNNSFilterParameters? = nil
    ) {
      var operands = BNNSArithmeticUnary(input, inputDescriptorType, output, outputDescriptorType)
      let made = withArithmetic(function.bnnsArithmeticFunction, &operands, activation) { layer in
        withPointer(to: filterParameters) { BNNSFilterCreateLayerArithmetic(layer, $0) }
      }
      guard let made else { return nil }
      self.init(made, ArithmeticArrays([Operand(input, inputDescriptorType)], Expected(output)))
    }

    /// Computes the output of each sample of a batch.
    public func apply(batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor) throws {
      try withMutablePointer(to: input) { x in
        try arrays.apply(bnnsFilter, call("apply"), batchSize, Inputs(x), output)
      }
    }

    /// Computes the gradient of the input, given that of the output.
    public func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor
    ) throws {
      try withMutablePointer(to: input) { x in
        try withMutablePointer(to: inputGradient) { dx in
          try arrays.backward(
            bnnsFilter, call("applyBackward"), batchSize, Inputs(x), Inputs(dx), output, outputGradient)
        }
      }
    }
  }

  /// A function of the elements of two arrays. Each size of an input is the output's, or 1 and repeats.
  public class BinaryArithmeticLayer: Layer {
    private final let arrays: ArithmeticArrays

    private init(_ filter: BNNSFilter, _ arrays: ArithmeticArrays) {
      self.arrays = arrays
      super.init(filter: filter)
    }

    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    public convenience init?(
      inputA: BNNSNDArrayDescriptor, inputADescriptorType: BNNS.DescriptorType, inputB: BNNSNDArrayDescriptor,
      inputBDescriptorType: BNNS.DescriptorType, output: BNNSNDArrayDescriptor,
      outputDescriptorType: BNNS.DescriptorType, function: BNNS.ArithmeticBinaryFunction,
      activation: BNNS.ActivationFunction = .identity, filterParameters: BNNSFilterParameters? = nil
    ) {
      var operands = BNNSArithmeticBinary(
        inputA, inputADescriptorType, inputB, inputBDescriptorType, output, outputDescriptorType)
      let made = withArithmetic(function.bnnsArithmeticFunction, &operands, activation) { layer in
        withPointer(to: filterParameters) { BNNSFilterCreateLayerArithmetic(layer, $0) }
      }
      guard let made else { return nil }
      let inputs = [Operand(inputA, inputADescriptorType), Operand(inputB, inputBDescriptorType)]
      self.init(made, ArithmeticArrays(inputs, Expected(output)))
    }

    /// Computes the output of each sample of a batch.
    public func apply(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor
    ) throws {
      try withInputs(inputA, inputB) { try arrays.apply(bnnsFilter, call("apply"), batchSize, $0, output) }
    }

    /// Computes the gradients of both inputs, given that of the output.
    public func applyBackward(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputAGradient inputAGradient: BNNSNDArrayDescriptor,
      generatingInputBGradient inputBGradient: BNNSNDArrayDescriptor
    ) throws {
      try withInputs(inputA, inputB) { x in
        try withInputs(inputAGradient, inputBGradient) { dx in
          try arrays.backward(bnnsFilter, call("applyBackward"), batchSize, x, dx, output, outputGradient)
        }
      }
    }
  }

  /// A function of the elements of three arrays. Each size of an input is the output's, or 1 and repeats.
  public class TernaryArithmeticLayer: Layer {
    private final let arrays: ArithmeticArrays

    private init(_ filter: BNNSFilter, _ arrays: ArithmeticArrays) {
      self.arrays = arrays
      super.init(filter: filter)
    }

    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    public convenience init?(
      inputA: BNNSNDArrayDescriptor, inputADescriptorType: BNNS.DescriptorType, inputB: BNNSNDArrayDescriptor,
      inputBDescriptorType: BNNS.DescriptorType, inputC: BNNSNDArrayDescriptor,
      inputCDescriptorType: BNNS.DescriptorType, output: BNNSNDArrayDescriptor,
      outputDescriptorType: BNNS.DescriptorType, function: BNNS.ArithmeticTernaryFunction,
      activation: BNNS.ActivationFunction = .identity, filterParameters: BNNSFilterParameters? = nil
    ) {
      var operands = BNNSArithmeticTernary(
        inputA, inputADescriptorType, inputB, inputBDescriptorType, inputC, inputCDescriptorType, output,
        outputDescriptorType)
      let made = withArithmetic(function.bnnsArithmeticFunction, &operands, activation) { layer in
        withPointer(to: filterParameters) { BNNSFilterCreateLayerArithmetic(layer, $0) }
      }
      guard let made else { return nil }
      let inputs = [
        Operand(inputA, inputADescriptorType), Operand(inputB, inputBDescriptorType),
        Operand(inputC, inputCDescriptorType),
      ]
      self.init(made, ArithmeticArrays(inputs, Expected(output)))
    }

    /// Computes the output of each sample of a batch.
    public func apply(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, inputC: BNNSNDArrayDescriptor,
      output: BNNSNDArrayDescriptor
    ) throws {
      try withInputs(inputA, inputB, inputC) { try arrays.apply(bnnsFilter, call("apply"), batchSize, $0, output) }
    }

    /// Computes the gradients of the three inputs, given that of the output.
    public func applyBackward(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, inputC: BNNSNDArrayDescriptor,
      output: BNNSNDArrayDescriptor, outputGradient: BNNSNDArrayDescriptor,
      generatingInputAGradient inputAGradient: BNNSNDArrayDescriptor,
      generatingInputBGradient inputBGradient: BNNSNDArrayDescriptor,
      generatingInputCGradient inputCGradient: BNNSNDArrayDescriptor
    ) throws {
      try withInputs(inputA, inputB, inputC) { x in
        try withInputs(inputAGradient, inputBGradient, inputCGradient) { dx in
          try arrays.backward(bnnsFilter, call("applyBackward"), batchSize, x, dx, output, outputGradient)
        }
      }
    }
  }
}
