// Stochastic gradient descent with momentum, and RMSProp.

extension BNNS {
  /// Stochastic gradient descent with momentum.
  public struct SGDMomentumOptimizer: BNNSOptimizer {
    /// The size of a step.
    public var learningRate: Float
    /// The share of the last step that is kept; 0: none.
    public var momentum: Float
    /// A factor of the gradients, after clipping.
    public var gradientScale: Float
    /// The strength of the penalty.
    public var regularizationScale: Float
    /// How gradients are limited.
    public var gradientClipping: BNNS.GradientClipping
    /// Whether the gradient is that after the step of the momentum.
    public var usesNesterovMomentum: Bool
    /// The kind of penalty.
    public var regularizationFunction: BNNSOptimizerRegularizationFunction
    /// The order of the operations.
    public var sgdMomentumVariant: BNNSOptimizerSGDMomentumVariant

    /// The bounds of `gradientClipping`, where it is `.byValue`; nil: no clipping, or another kind.
    public var gradientBounds: ClosedRange<Float>? {
      get { gradientClipping.bounds }
      set { gradientClipping.bounds = newValue }
    }

    /// `usesNesterovMomentum` as it was first spelled.
    public var usesNestrovMomentum: Bool {
      get { usesNesterovMomentum }
      set { usesNesterovMomentum = newValue }
    }

    /// SGD with clipping by value.
    public init(
      learningRate: Float, momentum: Float, gradientScale: Float, regularizationScale: Float,
      clipsGradientsTo gradientBounds: ClosedRange<Float>? = nil, usesNesterovMomentum: Bool,
      regularizationFunction: BNNSOptimizerRegularizationFunction,
      sgdMomentumVariant: BNNSOptimizerSGDMomentumVariant
    ) {
      self.init(
        learningRate: learningRate, momentum: momentum, gradientScale: gradientScale,
        regularizationScale: regularizationScale, gradientClipping: GradientClipping(bounds: gradientBounds),
        usesNesterovMomentum: usesNesterovMomentum, regularizationFunction: regularizationFunction,
        sgdMomentumVariant: sgdMomentumVariant)
    }

    /// The same with the label as it was first spelled.
    public init(
      learningRate: Float, momentum: Float, gradientScale: Float, regularizationScale: Float,
      clipsGradientsTo gradientBounds: ClosedRange<Float>? = nil, usesNestrovMomentum: Bool,
      regularizationFunction: BNNSOptimizerRegularizationFunction,
      sgdMomentumVariant: BNNSOptimizerSGDMomentumVariant
    ) {
      self.init(
        learningRate: learningRate, momentum: momentum, gradientScale: gradientScale,
        regularizationScale: regularizationScale, gradientClipping: GradientClipping(bounds: gradientBounds),
        usesNesterovMomentum: usesNestrovMomentum, regularizationFunction: regularizationFunction,
        sgdMomentumVariant: sgdMomentumVariant)
    }

    /// SGD with a choice of clipping.
    public init(
      learningRate: Float, momentum: Float = 0, gradientScale: Float, regularizationScale: Float,
      gradientClipping: BNNS.GradientClipping, usesNesterovMomentum: Bool = false,
      regularizationFunction: BNNSOptimizerRegularizationFunction,
      sgdMomentumVariant: BNNSOptimizerSGDMomentumVariant
    ) {
      self.learningRate = learningRate
      self.momentum = momentum
      self.gradientScale = gradientScale
      self.regularizationScale = regularizationScale
      self.gradientClipping = gradientClipping
      self.usesNesterovMomentum = usesNesterovMomentum
      self.regularizationFunction = regularizationFunction
      self.sgdMomentumVariant = sgdMomentumVariant
    }

    /// The constant of the C interface: always the function with a choice of clipping.
    public var bnnsOptimizerFunction: BNNSOptimizerFunction {
      BNNSOptimizerFunctionSGDMomentumWithClipping
    }
    /// Accumulators for each parameter: 1, without momentum 0.
    public var accumulatorCountMultiplier: Int { momentum != 0 ? 1 : 0 }

    /// Changes the parameters by their gradients (`BNNSOptimizer.step`).
    public func step(
      parameters: [BNNSNDArrayDescriptor], gradients: [BNNSNDArrayDescriptor], accumulators: [BNNSNDArrayDescriptor],
      filterParameters: BNNSFilterParameters? = nil
    ) throws {
      var fields = BNNSOptimizerSGDMomentumWithClippingFields()
      fields.learning_rate = learningRate
      fields.momentum = momentum
      fields.gradient_scale = gradientScale
      fields.regularization_scale = regularizationScale
      fields.nesterov = usesNesterovMomentum
      fields.regularization_func = regularizationFunction
      fields.sgd_momentum_variant = sgdMomentumVariant
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
  /// RMSProp: steps by the gradient over the root of the mean of its squares.
  public struct RMSPropOptimizer: BNNSOptimizer {
    /// The size of a step.
    public var learningRate: Float
    /// The decay of the mean of squared gradients.
    public var alpha: Float
    /// Added to the denominator.
    public var epsilon: Float
    /// Whether the mean of the gradients is subtracted.
    public var centered: Bool
    /// The share of the last step that is kept; 0: none.
    public var momentum: Float
    /// A factor of the gradients, after clipping.
    public var gradientScale: Float
    /// The strength of the penalty.
    public var regularizationScale: Float
    /// How gradients are limited.
    public var gradientClipping: BNNS.GradientClipping
    /// The kind of penalty.
    public var regularizationFunction: BNNSOptimizerRegularizationFunction

    /// The bounds of `gradientClipping`, where it is `.byValue`; nil: no clipping, or another kind.
    public var gradientBounds: ClosedRange<Float>? {
      get { gradientClipping.bounds }
      set { gradientClipping.bounds = newValue }
    }

    /// RMSProp with clipping by value.
    public init(
      learningRate: Float, alpha: Float, epsilon: Float, centered: Bool, momentum: Float, gradientScale: Float,
      regularizationScale: Float, clipsGradientsTo gradientBounds: ClosedRange<Float>? = nil,
      regularizationFunction: BNNSOptimizerRegularizationFunction
    ) {
      self.init(
        learningRate: learningRate, alpha: alpha, epsilon: epsilon, centered: centered, momentum: momentum,
        gradientScale: gradientScale, regularizationScale: regularizationScale,
        gradientClipping: GradientClipping(bounds: gradientBounds), regularizationFunction: regularizationFunction)
    }

    /// RMSProp with a choice of clipping.
    public init(
      learningRate: Float = 1e-2, alpha: Float = 0.99, epsilon: Float = 1e-8, centered: Bool, momentum: Float = 0,
      gradientScale: Float, regularizationScale: Float, gradientClipping: BNNS.GradientClipping,
      regularizationFunction: BNNSOptimizerRegularizationFunction
    ) {
      self.learningRate = learningRate
      self.alpha = alpha
      self.epsilon = epsilon
      self.centered = centered
      self.momentum = momentum
      self.gradientScale = gradientScale
      self.regularizationScale = regularizationScale
      self.gradientClipping = gradientClipping
      self.regularizationFunction = regularizationFunction
    }

    /// The constant of the C interface: always the function with a choice of clipping.
    public var bnnsOptimizerFunction: BNNSOptimizerFunction {
      BNNSOptimizerFunctionRMSPropWithClipping
    }
    /// Accumulators for each parameter: 1, one more if centered, one more with momentum.
    public var accumulatorCountMultiplier: Int { 1 + (centered ? 1 : 0) + (momentum != 0 ? 1 : 0) }

    /// Changes the parameters by their gradients (`BNNSOptimizer.step`).
    public func step(
      parameters: [BNNSNDArrayDescriptor], gradients: [BNNSNDArrayDescriptor], accumulators: [BNNSNDArrayDescriptor],
      filterParameters: BNNSFilterParameters? = nil
    ) throws {
      var fields = BNNSOptimizerRMSPropWithClippingFields()
      fields.learning_rate = learningRate
      fields.alpha = alpha
      fields.epsilon = epsilon
      fields.centered = centered
      fields.momentum = momentum
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
