// Table lookup.

extension BNNS {
  /// The p of a p-norm.
  @frozen public struct Norm: Sendable {
    /// p.
    public var rawValue: Float

    /// A p-norm.
    public init(rawValue: Float) { self.rawValue = rawValue }

    /// The sum of |x|.
    public static var l1: BNNS.Norm { Norm(rawValue: 1) }
    /// The same.
    public static var taxicab: BNNS.Norm { l1 }
    /// The square root of the sum of squares.
    public static var l2: BNNS.Norm { Norm(rawValue: 2) }
    /// The same.
    public static var euclidean: BNNS.Norm { l2 }
    /// The largest |x|.
    public static var lInfinity: BNNS.Norm { Norm(rawValue: .infinity) }
    /// The same.
    public static var maximum: BNNS.Norm { lInfinity }
  }

  /// A table lookup: the input holds integers, the output the items of the dictionary they name.
  public class EmbeddingLayer: Layer {
    private final let input, output, dictionary: Expected

    private init(
      _ filter: BNNSFilter, _ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor,
      _ dictionary: BNNSNDArrayDescriptor
    ) {
      self.input = Expected(input)
      self.output = Expected(output)
      self.dictionary = Expected(dictionary)
      super.init(filter: filter)
    }

    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - input: Indices of one sample, integers.
    ///   - output: The sizes of an item, then those of the input.
    ///   - dictionary: The sizes of an item, then the number of items.
    ///   - paddingIndex: The index that reads as zeros and is not trained; a negative one: none.
    ///   - maximumNorm: Longer items are scaled to it; 0: not.
    ///   - normType: The norm of that.
    ///   - scalesGradientByFrequency: Whether the gradient of an item is divided by how often it was read.
    ///   - filterParameters: `.useClientPointer` to train it; nil: the defaults.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, dictionary: BNNSNDArrayDescriptor,
      paddingIndex: Int, maximumNorm: Float, normType: BNNS.Norm, scalesGradientByFrequency: Bool,
      filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersEmbedding()
      if scalesGradientByFrequency { layer.flags = BNNSEmbeddingFlagScaleGradientByFrequency }
      layer.i_desc = input
      layer.o_desc = output
      layer.dictionary = dictionary
      layer.padding_idx = paddingIndex < 0 ? -1 : paddingIndex  // SIZE_MAX is none
      layer.max_norm = maximumNorm
      layer.norm_type = normType.rawValue
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerEmbedding(&layer, $0) })
      else { return nil }
      self.init(filter, input, output, dictionary)
    }

    /// Looks up the items of each sample of a batch.
    public func apply(batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor) throws {
      let call = call("apply")
      let x = try self.input.fitting(call, "input", input)
      let y = try self.output.fitting(call, "output", output)
      try call.check(BNNSFilterApplyBatch(bnnsFilter, batchSize, x.data!, x.stride, y.data!, y.stride))
    }

    /// Computes the gradient of the dictionary, given that of the output.
    public func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingWeightsGradient weightsGradient: BNNSNDArrayDescriptor
    ) throws {
      let call = call("applyBackward")
      let x = try self.input.fittingIfGiven(call, "input", input)
      let y = try self.output.fittingIfGiven(call, "output", output)
      let dyStride = try self.output.described(call, "outputGradient", outputGradient)
      try dictionary.describedIfGiven(call, "generatingWeightsGradient", weightsGradient)
      var dy = outputGradient
      var dw = weightsGradient
      try call.check(
        BNNSFilterApplyBackwardBatch(
          bnnsFilter, batchSize, x.data, x.stride, nil, 0, y.data, y.stride, &dy, dyStride, &dw, nil))
    }
  }
}
