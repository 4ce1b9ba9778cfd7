// Activation functions, the activation layer, and the same without a layer.

extension BNNS {
  /// A function of each element x, or of all elements along axes (softmax and its kind).
  public enum ActivationFunction {
    /// |x|.
    case abs
    /// x, below 0 alpha (exp(x / alpha) - 1).
    case celu(alpha: Float)
    /// x limited to bounds.
    case clamp(bounds: ClosedRange<Float>)
    /// x, below 0 alpha x, at most beta.
    case clampedLeakyRectifiedLinear(alpha: Float, beta: Float)
    /// x, below 0 alpha (exp(x) - 1).
    case elu(alpha: Float)
    /// x (1 + tanh(alpha (x + beta x³))) / 2.
    case geluApproximation(alpha: Float, beta: Float)
    /// x min(max(x + 3, 0), 6) / 6.
    case geluApproximation2(alpha: Float, beta: Float)
    /// Gumbel noise.
    case gumbel(alpha: Float, beta: Float)
    /// x plus Gumbel noise, then the maximum.
    case gumbelMax(alpha: Float, beta: Float)
    /// x, 0 where |x| < |alpha|.
    case hardShrink(alpha: Float)
    /// alpha x + beta limited to [0, 1].
    case hardSigmoid(alpha: Float, beta: Float)
    /// x min(max(x + 3, 0), 6) / 6.
    case hardSwish(alpha: Float, beta: Float)
    /// x; between different types of elements a conversion.
    case identity
    /// x, below 0 alpha x.
    case leakyRectifiedLinear(alpha: Float)
    /// alpha x.
    case linear(alpha: Float)
    /// alpha x + beta.
    case linearWithBias(alpha: Float, beta: Float)
    /// The logarithm of the sigmoid.
    case logSigmoid
    /// The logarithm of the softmax.
    case logSoftmax
    /// x, below 0 0.
    case rectifiedLinear
    /// alpha tanh(beta x).
    case scaledTanh(alpha: Float, beta: Float)
    /// The scaled ELU.
    case selu
    /// 1 / (1 + exp(-x)).
    case sigmoid
    /// x times its sigmoid.
    case silu
    /// exp(x) over the sum of all exp(x) along the axes.
    case softmax
    /// alpha log(1 + exp(beta x)).
    case softplus(alpha: Float, beta: Float)
    /// x moved towards 0 by alpha, 0 where |x| < |alpha|.
    case softShrink(alpha: Float)
    /// x / (1 + |x|).
    case softsign
    /// tanh(x).
    case tanh
    /// x - tanh(x).
    case tanhShrink
    /// x, up to alpha beta.
    case threshold(alpha: Float, beta: Float)

    /// The structure of the C interface.
    public var bnnsActivation: BNNSActivation {
      switch self {
      case .abs: return of(BNNSActivationFunctionAbs)
      case .celu(let alpha): return of(BNNSActivationFunctionCELU, alpha)
      case .clamp(let bounds): return of(BNNSActivationFunctionClamp, bounds.lowerBound, bounds.upperBound)
      case .clampedLeakyRectifiedLinear(let alpha, let beta):
        return of(BNNSActivationFunctionClampedLeakyRectifiedLinear, alpha, beta)
      case .elu(let alpha): return of(BNNSActivationFunctionELU, alpha)
      case .geluApproximation(let alpha, let beta): return of(BNNSActivationFunctionGELUApproximation, alpha, beta)
      case .geluApproximation2(let alpha, let beta): return of(BNNSActivationFunctionGELUApproximation2, alpha, beta)
      case .gumbel(let alpha, let beta): return of(BNNSActivationFunctionGumbel, alpha, beta)
      case .gumbelMax(let alpha, let beta): return of(BNNSActivationFunctionGumbelMax, alpha, beta)
      case .hardShrink(let alpha): return of(BNNSActivationFunctionHardShrink, alpha)
      case .hardSigmoid(let alpha, let beta): return of(BNNSActivationFunctionHardSigmoid, alpha, beta)
      case .hardSwish(let alpha, let beta): return of(BNNSActivationFunctionHardSwish, alpha, beta)
      case .identity: return of(BNNSActivationFunctionIdentity)
      case .leakyRectifiedLinear(let alpha): return of(BNNSActivationFunctionLeakyRectifiedLinear, alpha)
      case .linear(let alpha): return of(BNNSActivationFunctionLinear, alpha)
      case .linearWithBias(let alpha, let beta): return of(BNNSActivationFunctionLinearWithBias, alpha, beta)
      case .logSigmoid: return of(BNNSActivationFunctionLogSigmoid)
      case .logSoftmax: return of(BNNSActivationFunctionLogSoftmax)
      case .rectifiedLinear: return of(BNNSActivationFunctionRectifiedLinear)
      case .scaledTanh(let alpha, let beta): return of(BNNSActivationFunctionScaledTanh, alpha, beta)
      case .selu: return of(BNNSActivationFunctionSELU)
      case .sigmoid: return of(BNNSActivationFunctionSigmoid)
      case .silu: return of(BNNSActivationFunctionSiLU)
      case .softmax: return of(BNNSActivationFunctionSoftmax)
      case .softplus(let alpha, let beta): return of(BNNSActivationFunctionSoftplus, alpha, beta)
      case .softShrink(let alpha): return of(BNNSActivationFunctionSoftShrink, alpha)
      case .softsign: return of(BNNSActivationFunctionSoftsign)
      case .tanh: return of(BNNSActivationFunctionTanh)
      case .tanhShrink: return of(BNNSActivationFunctionTanhShrink)
      case .threshold(let alpha, let beta): return of(BNNSActivationFunctionThreshold, alpha, beta)
      }
    }

    private func of(_ function: BNNSActivationFunction, _ alpha: Float = 0, _ beta: Float = 0) -> BNNSActivation {
      var activation = BNNSActivation()
      activation.function = function
      activation.alpha = alpha
      activation.beta = beta
      return activation
    }
  }

  /// A function of each element, or softmax and its kind along axes. `.identity` between types of elements converts.
  public class ActivationLayer: UnaryLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - activationFunction: The function.
    ///   - axes: The axes of softmax and its kind, which have one result along them together.
    ///   - input: One sample, with or without data.
    ///   - output: One sample of as many elements.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public convenience init?(
      function activationFunction: BNNS.ActivationFunction, axes: [Int], input: BNNSNDArrayDescriptor,
      output: BNNSNDArrayDescriptor, filterParameters: BNNSFilterParameters? = nil
    ) {
      guard let mask = try? axisMask(axes, Call("ActivationLayer"), .unableToCreateLayer) else { return nil }
      var layer = activationFunction.layer(input, output, axes: mask)
      guard
        let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerActivation(&layer, $0) })
      else { return nil }
      self.init(filter: filter, input: input, output: output)
    }

    /// The same without axes: softmax and its kind are along axis 0.
    public convenience init?(
      function activationFunction: BNNS.ActivationFunction, input: BNNSNDArrayDescriptor,
      output: BNNSNDArrayDescriptor, filterParameters: BNNSFilterParameters? = nil
    ) {
      self.init(
        function: activationFunction, axes: [], input: input, output: output, filterParameters: filterParameters)
    }
  }

  /// Applies an activation once, without a layer, along axes.
  public static func applyActivation(
    activation: BNNS.ActivationFunction, axes: [Int], input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    batchSize: Int, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    let call = Call("applyActivation")
    var layer = activation.layer(input, output, axes: try axisMask(axes, call))
    try withPointer(to: filterParameters) {
      try call.check(
        BNNSDirectApplyActivationBatch(&layer, $0, batchSize, input.sampleSize.stride, output.sampleSize.stride))
    }
  }

  /// Applies an activation once, without a layer.
  public static func applyActivation(
    activation: BNNS.ActivationFunction, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, batchSize: Int,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try applyActivation(
      activation: activation, axes: [], input: input, output: output, batchSize: batchSize,
      filterParameters: filterParameters)
  }
}

extension BNNS.ActivationFunction {
  fileprivate func layer(_ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor, axes: UInt32)
    -> BNNSLayerParametersActivation
  {
    var layer = BNNSLayerParametersActivation()
    layer.i_desc = input
    layer.o_desc = output
    layer.activation = bnnsActivation
    layer.axis_flags = axes
    return layer
  }
}
