// Batch, instance, layer and group normalization.

extension BNNS {
  /// Whether a layer learns: whether a normalization takes the statistics of the batch, and moves its own.
  @frozen public enum LearningPhase: Sendable {
    /// Moving statistics are read.
    case inference
    /// Statistics of the batch are used, and gradients can follow.
    case training
  }

  /// What is normalized together, and the moving statistics, `.vector(channels)` of Float each; nil: none.
  public enum NormalizationType {
    /// Each channel over the batch.
    case batch(movingMean: BNNSNDArrayDescriptor?, movingVariance: BNNSNDArrayDescriptor?)
    /// Groups of channels of each sample.
    case group(groupCount: Int)
    /// Each channel of each sample.
    case instance(movingMean: BNNSNDArrayDescriptor?, movingVariance: BNNSNDArrayDescriptor?)
    /// Channels, height and width of each sample from an axis on: 0 all three, 1 height and width, 2 width.
    case layer(normalizationAxis: Int)

    var bnnsFilterType: BNNSFilterType {
      switch self {
      case .batch: return BNNSBatchNorm
      case .instance: return BNNSInstanceNorm
      case .group: return BNNSGroupNorm
      case .layer: return BNNSLayerNorm
      }
    }
  }

  /// A normalization with a scale gamma and a shift beta for each channel, and an activation.
  public class NormalizationLayer: Layer {
    private final let input, output, beta, gamma: Expected

    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - normalization: What is normalized together.
    ///   - input: `.imageCHW(width, height, channels)` or `.vector(channels)` of one sample.
    ///   - output: The same sizes.
    ///   - beta: The shift, one for each channel (layer normalization: for each normalized element).
    ///   - gamma: The scale, likewise.
    ///   - momentum: The share of the old moving statistics, 0 to 1.
    ///   - epsilon: Added to the variance.
    ///   - activation: The function applied last.
    ///   - filterParameters: `.useClientPointer` to train it; nil: the defaults.
    public convenience init?(
      type normalization: BNNS.NormalizationType, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      beta: BNNSNDArrayDescriptor, gamma: BNNSNDArrayDescriptor, momentum: Float = 0, epsilon: Float,
      activation: BNNS.ActivationFunction, filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersNormalization(
        type: normalization, input: input, output: output, beta: beta, gamma: gamma, momentum: momentum,
        epsilon: epsilon, activation: activation)
      let made = withPointer(to: filterParameters) {
        BNNSFilterCreateLayerNormalization(normalization.bnnsFilterType, &layer, $0)
      }
      guard let made else { return nil }
      self.init(made, input, output, beta, gamma)
    }

    private init(
      _ filter: BNNSFilter, _ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor,
      _ beta: BNNSNDArrayDescriptor, _ gamma: BNNSNDArrayDescriptor
    ) {
      self.input = Expected(input)
      self.output = Expected(output)
      self.beta = Expected(beta)
      self.gamma = Expected(gamma)
      super.init(filter: filter)
    }

    /// Normalizes each sample of a batch.
    public func apply(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, for learningPhase: BNNS.LearningPhase
    ) throws {
      let call = call("apply")
      let x = try self.input.fitting(call, "input", input)
      let y = try self.output.fitting(call, "output", output)
      try call.check(
        BNNSNormalizationFilterApplyBatch(
          bnnsFilter, batchSize, x.data!, x.stride, y.data!, y.stride, learningPhase == .training))
    }

    /// Computes the gradients of the last training `apply`, which the layer remembers.
    /// - Parameters:
    ///   - batchSize: The number of samples of each array.
    ///   - input: Not read.
    ///   - output: What `apply` wrote; read where the layer has an activation.
    ///   - outputGradient: The gradient of the output.
    ///   - inputGradient: Receives the gradient of the input, or has it added (its `flags`).
    ///   - betaGradient: The same of beta; nil: not wanted.
    ///   - gammaGradient: The same of gamma; nil: not wanted.
    public func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor,
      generatingBetaGradient betaGradient: BNNSNDArrayDescriptor? = nil,
      generatingGammaGradient gammaGradient: BNNSNDArrayDescriptor? = nil
    ) throws {
      let call = call("applyBackward")
      let y = try self.output.fittingIfGiven(call, "output", output)
      let dxStride = try self.input.described(call, "generatingInputGradient", inputGradient)
      let dyStride = try self.output.described(call, "outputGradient", outputGradient)
      try beta.describedIfGiven(call, "generatingBetaGradient", betaGradient)
      try gamma.describedIfGiven(call, "generatingGammaGradient", gammaGradient)
      var dx = inputGradient
      var dy = outputGradient
      try withMutablePointer(ifGiven: betaGradient) { dbeta in
        try withMutablePointer(ifGiven: gammaGradient) { dgamma in
          try call.check(
            BNNSNormalizationFilterApplyBackwardBatch(
              bnnsFilter, batchSize, &dx, dxStride, y.data, y.stride, &dy, dyStride, dbeta, dgamma))
        }
      }
    }
  }
}

extension BNNSLayerParametersNormalization {
  init(
    type: BNNS.NormalizationType, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    beta: BNNSNDArrayDescriptor?, gamma: BNNSNDArrayDescriptor?, momentum: Float, epsilon: Float,
    activation: BNNS.ActivationFunction
  ) {
    self.init()
    i_desc = input
    o_desc = output
    beta_desc = orAbsent(beta)
    gamma_desc = orAbsent(gamma)
    self.momentum = momentum
    self.epsilon = epsilon
    self.activation = activation.bnnsActivation
    switch type {
    case .batch(let mean, let variance), .instance(let mean, let variance):
      moving_mean_desc = orAbsent(mean)
      moving_variance_desc = orAbsent(variance)
    case .group(let count): num_groups = count
    case .layer(let axis): normalization_axis = axis
    }
  }
}
