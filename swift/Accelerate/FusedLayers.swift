// Fused layers, of one, two and three inputs.

extension BNNS {
  /// Two stages in one layer, and its calls with one input.
  public class FusedLayer: Layer {
    fileprivate final let made: FusedFilter

    fileprivate init(_ made: FusedFilter) {
      self.made = made
      super.init(filter: made.filter)
    }

    /// Computes the output of each sample of a batch.
    public func apply(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, for learningPhase: BNNS.LearningPhase
    ) throws {
      let call = call("apply")
      try made.inputs.requireCount(call, 1)
      let x = try made.inputs[0].expected.fitting(call, "input", input)
      let y = try made.output.fitting(call, "output", output)
      try call.check(
        BNNSFusedFilterApplyBatch(
          bnnsFilter, batchSize, x.data!, x.stride, y.data!, y.stride, learningPhase == .training))
    }

    /// Computes the gradients of input and parameters after a training `apply`, given that of the output.
    /// - Parameters:
    ///   - batchSize: The number of samples of each array.
    ///   - input: What `apply` read.
    ///   - output: What `apply` wrote.
    ///   - outputGradient: The gradient of the output.
    ///   - inputGradient: Receives the gradient of the input, or has it added (its `flags`).
    ///   - parameterGradients: The same of the parameters, stage by stage: weights and bias of a convolution or a
    ///     fully connected stage, beta and gamma of a normalization, none of arithmetic and quantization. An entry
    ///     without data is skipped; an empty list: none is wanted.
    public func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor,
      generatingParameterGradients parameterGradients: [BNNSNDArrayDescriptor]
    ) throws {
      let call = call("applyBackward")
      try made.inputs.requireCount(call, 1)
      let x = try made.inputs[0].expected.fittingIfGiven(call, "input", input)
      let y = try made.output.fittingIfGiven(call, "output", output)
      let dxStride = try made.inputs[0].expected.described(call, "generatingInputGradient", inputGradient)
      let dyStride = try made.output.described(call, "outputGradient", outputGradient)
      var dx = inputGradient
      var dy = outputGradient
      try made.withSlots(call, parameterGradients) { slots in
        try call.check(
          BNNSFusedFilterApplyBackwardBatch(
            bnnsFilter, batchSize, x.data, x.stride, &dx, dxStride, y.data, y.stride, &dy, dyStride, slots))
      }
    }
  }

  /// A convolution without activation, then a normalization. Four parameter gradients: weights, bias, beta, gamma.
  public class FusedConvolutionNormalizationLayer: FusedLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`). Input and output are
    /// `.imageCHW(width, height, channels)` of one sample; to train it, give `.useClientPointer`.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, convolutionWeights: BNNSNDArrayDescriptor,
      convolutionBias: BNNSNDArrayDescriptor?, convolutionStride: (x: Int, y: Int),
      convolutionDilationStride: (x: Int, y: Int), convolutionPadding: BNNS.ConvolutionPadding,
      normalization: BNNS.NormalizationType, normalizationBeta: BNNSNDArrayDescriptor,
      normalizationGamma: BNNSNDArrayDescriptor, normalizationMomentum: Float, normalizationEpsilon: Float,
      normalizationActivation: BNNS.ActivationFunction, filterParameters: BNNSFilterParameters? = nil
    ) {
      let stages: [any FusableLayerParameters] = [
        FusedConvolutionParameters(
          type: .standard, weights: convolutionWeights, bias: convolutionBias, stride: convolutionStride,
          dilationStride: convolutionDilationStride, groupSize: 1, padding: convolutionPadding),
        FusedNormalizationParameters(
          type: normalization, beta: normalizationBeta, gamma: normalizationGamma, momentum: normalizationMomentum,
          epsilon: normalizationEpsilon, activation: normalizationActivation),
      ]
      guard
        let made = FusedFilter("FusedConvolutionNormalizationLayer", [input], output, stages, filterParameters)
      else { return nil }
      self.init(made)
    }
  }

  /// A fully connected layer without activation, then a normalization. Four parameter gradients: weights, bias, beta,
  /// gamma.
  public class FusedFullyConnectedNormalizationLayer: FusedLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`). To train it, give `.useClientPointer`.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, fullyConnectedWeights: BNNSNDArrayDescriptor,
      fullyConnectedBias: BNNSNDArrayDescriptor?, normalization: BNNS.NormalizationType,
      normalizationBeta: BNNSNDArrayDescriptor, normalizationGamma: BNNSNDArrayDescriptor,
      normalizationMomentum: Float, normalizationEpsilon: Float, normalizationActivation: BNNS.ActivationFunction,
      filterParameters: BNNSFilterParameters? = nil
    ) {
      let stages: [any FusableLayerParameters] = [
        FusedFullyConnectedParameters(weights: fullyConnectedWeights, bias: fullyConnectedBias),
        FusedNormalizationParameters(
          type: normalization, beta: normalizationBeta, gamma: normalizationGamma, momentum: normalizationMomentum,
          epsilon: normalizationEpsilon, activation: normalizationActivation),
      ]
      guard
        let made = FusedFilter("FusedFullyConnectedNormalizationLayer", [input], output, stages, filterParameters)
      else { return nil }
      self.init(made)
    }
  }

  /// Two stages given as structures: convolution, its transpose or fully connected, then normalization or quantization;
  /// or arithmetic of one, two or three inputs, then normalization.
  public class FusedParametersLayer: FusedLayer {
    /// A layer with one input; nil where the library refuses (`BNNS.lastErrorReason`).
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      fusedLayerParameters: [any FusableLayerParameters], filterParameters: BNNSFilterParameters? = nil
    ) {
      guard let made = FusedFilter("FusedParametersLayer", [input], output, fusedLayerParameters, filterParameters)
      else { return nil }
      self.init(made)
    }

    /// A layer with three inputs, whose first stage is arithmetic.
    public convenience init?(
      inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, inputC: BNNSNDArrayDescriptor,
      output: BNNSNDArrayDescriptor, fusedLayerParameters: [any FusableLayerParameters],
      filterParameters: BNNSFilterParameters? = nil
    ) {
      let inputs = [inputA, inputB, inputC]
      guard let made = FusedFilter("FusedParametersLayer", inputs, output, fusedLayerParameters, filterParameters)
      else { return nil }
      self.init(made)
    }

    /// A layer with two inputs, whose first stage is arithmetic.
    public convenience init?(
      inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      fusedLayerParameters: [any FusableLayerParameters], filterParameters: BNNSFilterParameters? = nil
    ) {
      let inputs = [inputA, inputB]
      guard let made = FusedFilter("FusedParametersLayer", inputs, output, fusedLayerParameters, filterParameters)
      else { return nil }
      self.init(made)
    }

    /// Computes the output of each sample of a batch from those of three arrays.
    public func apply(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, inputC: BNNSNDArrayDescriptor,
      output: BNNSNDArrayDescriptor, for learningPhase: BNNS.LearningPhase
    ) throws {
      try withInputs(inputA, inputB, inputC) { try apply(batchSize, $0, output, learningPhase) }
    }

    /// Computes the output of each sample of a batch from those of two arrays.
    public func apply(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      for learningPhase: BNNS.LearningPhase
    ) throws {
      try withInputs(inputA, inputB) { try apply(batchSize, $0, output, learningPhase) }
    }

    /// Computes the gradients of three inputs and of the parameters after a training `apply`.
    public func applyBackward(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, inputC: BNNSNDArrayDescriptor,
      output: BNNSNDArrayDescriptor, outputGradient: BNNSNDArrayDescriptor,
      generatingInputAGradient inputAGradient: BNNSNDArrayDescriptor,
      generatingInputBGradient inputBGradient: BNNSNDArrayDescriptor,
      generatingInputCGradient inputCGradient: BNNSNDArrayDescriptor,
      generatingParameterGradients parameterGradients: [BNNSNDArrayDescriptor]
    ) throws {
      try withInputs(inputA, inputB, inputC) { x in
        try withInputs(inputAGradient, inputBGradient, inputCGradient) { dx in
          try applyBackward(batchSize, x, dx, output, outputGradient, parameterGradients)
        }
      }
    }

    /// Computes the gradients of two inputs and of the parameters after a training `apply`.
    public func applyBackward(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputAGradient inputAGradient: BNNSNDArrayDescriptor,
      generatingInputBGradient inputBGradient: BNNSNDArrayDescriptor,
      generatingParameterGradients parameterGradients: [BNNSNDArrayDescriptor]
    ) throws {
      try withInputs(inputA, inputB) { x in
        try withInputs(inputAGradient, inputBGradient) { dx in
          try applyBackward(batchSize, x, dx, output, outputGradient, parameterGradients)
        }
      }
    }

    private func apply(
      _ batchSize: Int, _ inputs: Inputs, _ output: BNNSNDArrayDescriptor, _ phase: LearningPhase
    ) throws {
      let call = call("apply")
      try made.inputs.requireCount(call, inputs.count)
      let y = try made.output.fitting(call, "output", output)
      try made.inputs.withInputs(call, inputs) { x, strides in
        try call.check(
          BNNSFusedFilterApplyMultiInputBatch(
            bnnsFilter, batchSize, inputs.count, x, strides, y.data!, y.stride, phase == .training))
      }
    }

    private func applyBackward(
      _ batchSize: Int, _ inputs: Inputs, _ gradients: Inputs, _ output: BNNSNDArrayDescriptor,
      _ outputGradient: BNNSNDArrayDescriptor, _ parameterGradients: [BNNSNDArrayDescriptor]
    ) throws {
      let call = call("applyBackward")
      try made.inputs.requireCount(call, inputs.count)
      let y = try made.output.fittingIfGiven(call, "output", output)
      let dyStride = try made.output.described(call, "outputGradient", outputGradient)
      try made.inputs.withGradients(call, inputs, gradients) { x, strides, dx, dxStrides in
        try made.withSlots(call, parameterGradients) { slots in
          try withMutablePointer(to: outputGradient) { dy in
            try call.check(
              BNNSFusedFilterApplyBackwardMultiInputBatch(
                bnnsFilter, batchSize, inputs.count, x, strides, dx, dxStrides, y.data, y.stride, dy, dyStride, slots))
          }
        }
      }
    }
  }
}

extension FusedFilter {
  /// Parameter gradients as an array of pointers. The C call would read past one that is too short.
  fileprivate func withSlots(
    _ call: Call, _ gradients: [BNNSNDArrayDescriptor],
    _ body: (UnsafeMutablePointer<UnsafeMutablePointer<BNNSNDArrayDescriptor>?>?) throws -> Void
  ) throws {
    if gradients.isEmpty { return try body(nil) }
    if gradients.count != parameters.count {
      throw call.refusal(
        .layerApplyFail,
        "expected \(parameters.count) parameter gradients in the order of the stages, got \(gradients.count)")
    }
    try gradients.withUnsafeBufferPointer { descriptors in
      for i in descriptors.indices where descriptors[i].data != nil && !parameters[i].isOwnShape(descriptors[i]) {
        let count = descriptors[i].sampleSize.count
        if parameters[i].count != 0 && count != parameters[i].count {
          throw call.refusal(
            .arrayDescriptorInvalidData,
            "generatingParameterGradients[\(i)] has \(count) elements, the parameter \(parameters[i].count)")
        }
      }
      try withUnsafeTemporaryAllocation(of: DescriptorPointer?.self, capacity: descriptors.count) { slots in
        for i in descriptors.indices {  // the C call writes through their data only
          slots[i] = descriptors[i].data == nil ? nil : DescriptorPointer(mutating: descriptors.baseAddress! + i)
        }
        try body(slots.baseAddress)
      }
    }
  }
}
