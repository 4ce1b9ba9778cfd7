// Adam and AdamW, with AMSGrad.

extension BNNS {
  /// Adam: steps by the first moment of the gradients over the root of the second.
  public struct AdamOptimizer: BNNSOptimizer {
    /// The size of a step.
    public var learningRate: Float
    /// The decay of the first moment.
    public var beta1: Float
    /// The decay of the second moment.
    public var beta2: Float
    /// The number of this step, 1 for the first. `step` leaves it alone: add 1 after each.
    public var timeStep: Float
    /// Added to the denominator.
    public var epsilon: Float
    /// A factor of the gradients, after clipping.
    public var gradientScale: Float
    /// The strength of the penalty.
    public var regularizationScale: Float
    /// How gradients are limited.
    public var gradientClipping: BNNS.GradientClipping
    /// The kind of penalty.
    public var regularizationFunction: BNNSOptimizerRegularizationFunction
    /// Whether the largest second moment so far is used.
    public var usesAMSGrad: Bool

    /// The bounds of `gradientClipping`, where it is `.byValue`; nil: no clipping, or another kind.
    public var gradientBounds: ClosedRange<Float>? {
      get { gradientClipping.bounds }
      set { gradientClipping.bounds = newValue }
    }

    /// Adam with clipping by value.
    public init(
      learningRate: Float, beta1: Float, beta2: Float, timeStep: Float, epsilon: Float, gradientScale: Float,
      regularizationScale: Float, clipsGradientsTo gradientBounds: ClosedRange<Float>? = nil,
      regularizationFunction: BNNSOptimizerRegularizationFunction
    ) {
      self.init(
        learningRate: learningRate, beta1: beta1, beta2: beta2, timeStep: timeStep, epsilon: epsilon,
        gradientScale: gradientScale, regularizationScale: regularizationScale,
        gradientClipping: GradientClipping(bounds: gradientBounds), regularizationFunction: regularizationFunction)
    }

    /// Adam with a choice of clipping.
    public init(
      learningRate: Float = 0.001, beta1: Float = 0.9, beta2: Float = 0.999, timeStep: Float, epsilon: Float = 1e-8,
      gradientScale: Float, regularizationScale: Float, gradientClipping: BNNS.GradientClipping,
      regularizationFunction: BNNSOptimizerRegularizationFunction, usesAMSGrad: Bool = false
    ) {
      self.learningRate = learningRate
      self.beta1 = beta1
      self.beta2 = beta2
      self.timeStep = timeStep
      self.epsilon = epsilon
      self.gradientScale = gradientScale
      self.regularizationScale = regularizationScale
      self.gradientClipping = gradientClipping
      self.regularizationFunction = regularizationFunction
      self.usesAMSGrad = usesAMSGrad
    }

    /// The constant of the C interface: always the function with a choice of clipping.
    public var bnnsOptimizerFunction: BNNSOptimizerFunction {
      usesAMSGrad ? BNNSOptimizerFunctionAdamAMSGradWithClipping : BNNSOptimizerFunctionAdamWithClipping
    }
    /// Accumulators for each parameter: 2, with AMSGrad 3.
    public var accumulatorCountMultiplier: Int { usesAMSGrad ? 3 : 2 }

    /// Changes the parameters by their gradients (`BNNSOptimizer.step`).
    public func step(
      parameters: [BNNSNDArrayDescriptor], gradients: [BNNSNDArrayDescriptor], accumulators: [BNNSNDArrayDescriptor],
      filterParameters: BNNSFilterParameters? = nil
    ) throws {
      var fields = BNNSOptimizerAdamWithClippingFields()
      fields.learning_rate = learningRate
      fields.beta1 = beta1
      fields.beta2 = beta2
      fields.time_step = timeStep
      fields.epsilon = epsilon
      fields.gradient_scale = gradientScale
      fields.regularization_scale = regularizationScale
      fields.regularization_func = regularizationFunction
      let clipping = gradientClipping.fields
      fields.clipping_func = clipping.function
      fields.clip_gradients_min = clipping.min
      fields.clip_gradients_max = clipping.max
      fields.clip_gradients_max_norm = clipping.maxNorm
      fields.clip_gradients_use_norm = clipping.useNorm
      try step(fields, parameters, gradients, accumulators, filterParameters)
    }
  }
}

extension BNNS {
  /// Adam with a decay of the parameters that is not part of the gradient.
  public struct AdamWOptimizer: BNNSOptimizer {
    /// The size of a step.
    public var learningRate: Float
    /// The decay of the first moment.
    public var beta1: Float
    /// The decay of the second moment.
    public var beta2: Float
    /// The number of this step, 1 for the first. `step` leaves it alone: add 1 after each.
    public var timeStep: Float
    /// Added to the denominator.
    public var epsilon: Float
    /// A factor of the gradients, after clipping.
    public var gradientScale: Float
    /// The share of itself that a parameter loses, times the learning rate.
    public var weightDecay: Float
    /// How gradients are limited.
    public var gradientClipping: BNNS.GradientClipping
    /// Whether the largest second moment so far is used.
    public var usesAMSGrad: Bool

    /// AdamW.
    public init(
      learningRate: Float = 0.001, beta1: Float = 0.9, beta2: Float = 0.999, timeStep: Float = 1,
      epsilon: Float = 1e-8, gradientScale: Float, weightDecay: Float = 1e-2,
      gradientClipping: BNNS.GradientClipping, usesAMSGrad: Bool = false
    ) {
      self.learningRate = learningRate
      self.beta1 = beta1
      self.beta2 = beta2
      self.timeStep = timeStep
      self.epsilon = epsilon
      self.gradientScale = gradientScale
      self.weightDecay = weightDecay
      self.gradientClipping = gradientClipping
      self.usesAMSGrad = usesAMSGrad
    }

    /// The constant of the C interface: always the function with a choice of clipping.
    public var bnnsOptimizerFunction: BNNSOptimizerFunction {
      usesAMSGrad ? BNNSOptimizerFunctionAdamWAMSGradWithClipping : BNNSOptimizerFunctionAdamWWithClipping
    }
    /// Accumulators for each parameter: 2, with AMSGrad 3.
    public var accumulatorCountMultiplier: Int { usesAMSGrad ? 3 : 2 }

    /// Changes the parameters by their gradients (`BNNSOptimizer.step`).
    public func step(
      parameters: [BNNSNDArrayDescriptor], gradients: [BNNSNDArrayDescriptor], accumulators: [BNNSNDArrayDescriptor],
      filterParameters: BNNSFilterParameters? = nil
    ) throws {
      var fields = BNNSOptimizerAdamWithClippingFields()
      fields.learning_rate = learningRate
      fields.beta1 = beta1
      fields.beta2 = beta2
      fields.time_step = timeStep
      fields.epsilon = epsilon
      fields.gradient_scale = gradientScale
      fields.regularization_scale = weightDecay
      let clipping = gradientClipping.fields
      fields.clipping_func = clipping.function
      fields.clip_gradients_min = clipping.min
      fields.clip_gradients_max = clipping.max
      fields.clip_gradients_max_norm = clipping.maxNorm
      fields.clip_gradients_use_norm = clipping.useNorm
      try step(fields, parameters, gradients, accumulators, filterParameters)
    }
  }
}
