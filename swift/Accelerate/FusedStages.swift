// A fused filter made from its stages, with the numbers that the calls of its layer compare.

/// What a stage is to the C call. `withParameters` gives its structure for the length of a call.
protocol FusedStage: FusableLayerParameters {
  var bnnsFilterType: BNNSFilterType { get }
  /// What the entries of `generatingParameterGradients` are gradients of.
  var trained: [BNNSNDArrayDescriptor?] { get }
  /// How the inputs take part.
  var roles: [BNNS.DescriptorType] { get }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result
}

extension FusedStage {
  var trained: [BNNSNDArrayDescriptor?] { [] }
  var roles: [BNNS.DescriptorType] { [.sample] }
}

extension BNNS.FusedConvolutionParameters: FusedStage {
  var bnnsFilterType: BNNSFilterType { type == .standard ? BNNSConvolution : BNNSTransposedConvolution }
  var trained: [BNNSNDArrayDescriptor?] { [weights, bias] }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var layer = BNNSLayerParametersConvolution(
      input: inputs[0], weights: weights, output: output, bias: bias, padding: padding, groupCount: groupSize,
      stride: stride, dilationStride: dilationStride)
    return body(&layer)
  }
}

extension BNNS.FusedFullyConnectedParameters: FusedStage {
  var bnnsFilterType: BNNSFilterType { BNNSFullyConnected }
  var trained: [BNNSNDArrayDescriptor?] { [weights, bias] }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var layer = BNNSLayerParametersFullyConnected(input: inputs[0], output: output, weights: weights, bias: bias)
    return body(&layer)
  }
}

extension BNNS.FusedNormalizationParameters: FusedStage {
  var bnnsFilterType: BNNSFilterType { type.bnnsFilterType }
  var trained: [BNNSNDArrayDescriptor?] { [beta, gamma] }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var layer = BNNSLayerParametersNormalization(
      type: type, input: inputs[0], output: output, beta: beta, gamma: gamma, momentum: momentum, epsilon: epsilon,
      activation: activation)
    return body(&layer)
  }
}

extension BNNS.FusedQuantizationParameters: FusedStage {
  var bnnsFilterType: BNNSFilterType { BNNSQuantization }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var layer = BNNSLayerParametersQuantization(
      BNNSQuantizerFunctionQuantize, input: inputs[0], output: output, axis: axis, scale: scale, bias: bias)
    return body(&layer)
  }
}

extension BNNS.FusedDequantizationParameters: FusedStage {
  var bnnsFilterType: BNNSFilterType { BNNSQuantization }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var layer = BNNSLayerParametersQuantization(
      BNNSQuantizerFunctionDequantize, input: inputs[0], output: output, axis: axis, scale: scale, bias: bias)
    return body(&layer)
  }
}

extension BNNS.FusedUnaryArithmeticParameters: FusedStage {
  var bnnsFilterType: BNNSFilterType { BNNSArithmetic }
  var roles: [BNNS.DescriptorType] { [inputDescriptorType] }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var operands = BNNSArithmeticUnary(inputs[0], inputDescriptorType, output, outputDescriptorType)
    return withArithmetic(function.bnnsArithmeticFunction, &operands, .identity) { body($0) }
  }
}

extension BNNS.FusedBinaryArithmeticParameters: FusedStage {
  var bnnsFilterType: BNNSFilterType { BNNSArithmetic }
  var roles: [BNNS.DescriptorType] { [inputADescriptorType, inputBDescriptorType] }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var operands = BNNSArithmeticBinary(
      inputs[0], inputADescriptorType, inputs[1], inputBDescriptorType, output, outputDescriptorType)
    return withArithmetic(function.bnnsArithmeticFunction, &operands, .identity) { body($0) }
  }
}

extension BNNS.FusedTernaryArithmeticParameters: FusedStage {
  var bnnsFilterType: BNNSFilterType { BNNSArithmetic }
  var roles: [BNNS.DescriptorType] { [inputADescriptorType, inputBDescriptorType, inputCDescriptorType] }
  func withParameters<Result>(
    _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor, _ body: (UnsafeRawPointer) -> Result
  ) -> Result {
    var operands = BNNSArithmeticTernary(
      inputs[0], inputADescriptorType, inputs[1], inputBDescriptorType, inputs[2], inputCDescriptorType, output,
      outputDescriptorType)
    return withArithmetic(function.bnnsArithmeticFunction, &operands, .identity) { body($0) }
  }
}

/// A fused filter, and what its calls take.
struct FusedFilter {
  let filter: BNNSFilter
  let inputs: [Operand]
  let output: Expected
  let parameters: [Expected]

  /// Both stages, with a middle array of the output's shape between them: the caller gives none. nil where they do not
  /// fit each other or the library refuses.
  init?(
    _ layer: StaticString, _ inputs: [BNNSNDArrayDescriptor], _ output: BNNSNDArrayDescriptor,
    _ stages: [any FusableLayerParameters], _ filterParameters: BNNSFilterParameters?
  ) {
    let call = Call(layer)
    func refuse(_ reason: String) { _ = call.refusal(.unableToCreateLayer, reason) }
    guard stages.count == 2 else {
      refuse("a fused layer has 2 stages, got \(stages.count)")
      return nil
    }
    guard let first = stages[0] as? any FusedStage, let second = stages[1] as? any FusedStage else {
      refuse("a stage is none of the structures BNNS.Fused…Parameters")
      return nil
    }
    guard first.roles.count == inputs.count else {
      refuse("the first stage takes \(counted(first.roles.count, "input")), got \(inputs.count)")
      return nil
    }
    guard second.roles.count == 1 else {
      refuse("the second stage takes \(second.roles.count) inputs, got 1")
      return nil
    }
    var middle = output
    middle.data = nil
    if second is BNNS.FusedQuantizationParameters { middle.data_type = BNNSDataTypeFloat32 }
    let made = first.withParameters(inputs, middle) { one in
      second.withParameters([middle], output) { two in
        var parameters = [one, two]
        return withPointer(to: filterParameters) {
          BNNSFilterCreateFusedLayer(2, [first.bnnsFilterType, second.bnnsFilterType], &parameters, $0)
        }
      }
    }
    guard let made else { return nil }
    filter = made
    self.inputs = zip(inputs, first.roles).map { Operand($0, $1) }
    self.output = Expected(output)
    parameters = (first.trained + second.trained).map { Expected($0) }
  }
}
