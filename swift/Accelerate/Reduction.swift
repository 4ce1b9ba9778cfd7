// Reductions over axes, and the largest elements along one.

extension BNNS {
  /// What a reduction computes over the axes of which the output has size 1.
  public enum ReductionFunction: Sendable {
    /// Whether all are non-zero.
    case all
    /// Whether any is non-zero.
    case any
    /// The index of the maximum.
    case argMax
    /// The index of the minimum.
    case argMin
    /// The square root of the sum of squares.
    case l2Norm
    /// The same as `all`.
    case logicalAnd
    /// The same as `any`.
    case logicalOr
    /// The logarithm of the sum of exponentials.
    case logSumExp
    /// The maximum.
    case max
    /// The old name of `argMax`.
    case maxIndex
    /// The mean.
    case mean
    /// The mean of the elements with non-zero weights.
    case meanNonZero
    /// The minimum.
    case min
    /// The old name of `argMin`.
    case minIndex
    /// The product.
    case product
    /// The sum.
    case sum
    /// The sum of |x|.
    case sumOfAbsolutes
    /// The sum of log(x + epsilon).
    case sumOfLogs(epsilon: Float)
    /// The sum of squares.
    case sumOfSquares

    /// The constant of the C interface.
    public var bnnsReduceFunction: BNNSReduceFunction {
      switch self {
      case .all: return BNNSReduceFunctionAll
      case .any: return BNNSReduceFunctionAny
      case .argMax, .maxIndex: return BNNSReduceFunctionArgMax
      case .argMin, .minIndex: return BNNSReduceFunctionArgMin
      case .l2Norm: return BNNSReduceFunctionL2Norm
      case .logicalAnd: return BNNSReduceFunctionLogicalAnd
      case .logicalOr: return BNNSReduceFunctionLogicalOr
      case .logSumExp: return BNNSReduceFunctionLogSumExp
      case .max: return BNNSReduceFunctionMax
      case .mean: return BNNSReduceFunctionMean
      case .meanNonZero: return BNNSReduceFunctionMeanNonZero
      case .min: return BNNSReduceFunctionMin
      case .product: return BNNSReduceFunctionProduct
      case .sum: return BNNSReduceFunctionSum
      case .sumOfAbsolutes: return BNNSReduceFunctionL1Norm
      case .sumOfLogs: return BNNSReduceFunctionSumLog
      case .sumOfSquares: return BNNSReduceFunctionSumSquare
      }
    }

    fileprivate func layer(
      _ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor, _ weights: BNNSNDArrayDescriptor?
    ) -> BNNSLayerParametersReduction {
      var epsilon: Float = 0
      if case .sumOfLogs(let given) = self { epsilon = given }
      return BNNSLayerParametersReduction(
        i_desc: input, o_desc: output, w_desc: orAbsent(weights), reduce_func: bnnsReduceFunction, epsilon: epsilon)
    }
  }

  /// A reduction over the axes of which the output has size 1.
  public class ReductionLayer: UnaryLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - reductionFunction: What is computed.
    ///   - input: One sample.
    ///   - output: As many axes, with size 1 where they are reduced.
    ///   - weights: Factors of the elements, of the sizes of the input; nil: none.
    ///   - filterParameters: `.useClientPointer` to train the weights; nil: the defaults.
    public convenience init?(
      function reductionFunction: BNNS.ReductionFunction, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      weights: BNNSNDArrayDescriptor?, filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = reductionFunction.layer(input, output, weights)
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerReduction(&layer, $0) })
      else { return nil }
      self.init(filter: filter, input: input, output: output, weights: weights)
    }

    /// Computes the gradients of input and weights, given that of the output.
    public func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor,
      generatingWeightsGradient weightsGradient: BNNSNDArrayDescriptor? = nil
    ) throws {
      try backward(batchSize, input, output, outputGradient, inputGradient, weightsGradient, nil)
    }
  }

  /// Reduces once, without a layer.
  public static func applyReduction(
    _ reductionFunction: BNNS.ReductionFunction, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    weights: BNNSNDArrayDescriptor?, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    var layer = reductionFunction.layer(input, output, weights)
    try withPointer(to: filterParameters) {
      try Call("applyReduction").check(BNNSDirectApplyReduction(&layer, $0))
    }
  }

  /// The k largest elements along an axis, largest first, and where they are (Int32).
  public static func applyTopK(
    k: Int, input: BNNSNDArrayDescriptor, bestValues: BNNSNDArrayDescriptor, bestIndices: BNNSNDArrayDescriptor,
    axis: Int, batchSize: Int, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    var (x, y, at) = (input, bestValues, bestIndices)
    let call = Call("applyTopK")
    try withPointer(to: filterParameters) {
      try call.check(
        BNNSDirectApplyTopK(
          k, axis, batchSize, &x, input.sampleSize.stride, &y, bestValues.sampleSize.stride, &at,
          bestIndices.sampleSize.stride, $0))
    }
  }

  /// Whether the elements that `testIndices` (Int32) name are among the k largest along the axis; `output` is Bool.
  public static func applyInTopK(
    k: Int, input: BNNSNDArrayDescriptor, testIndices: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    axis: Int, batchSize: Int, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    var (x, at, y) = (input, testIndices, output)
    let call = Call("applyInTopK")
    try withPointer(to: filterParameters) {
      try call.check(
        BNNSDirectApplyInTopK(
          k, axis, batchSize, &x, input.sampleSize.stride, &at, testIndices.sampleSize.stride, &y,
          output.sampleSize.stride, $0))
    }
  }
}
