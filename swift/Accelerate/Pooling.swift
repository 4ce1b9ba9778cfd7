// Pooling and unpooling.

extension BNNS {
  /// What is computed over a window, and where max pooling keeps the positions of its maxima.
  ///
  /// Memory of indices is the caller's, and must outlive the layer. Without it, backward looks for the maxima again.
  public enum PoolingType {
    /// The mean of the window; padding counts as zeros, or does not count.
    case average(countIncludesPadding: Bool)
    /// The square root of the sum of squares.
    case l2Norm
    /// The maximum. `indices` has one entry for each element of the output of the batch, a position in the input image.
    case max(indices: UnsafeMutableBufferPointer<Int>? = nil, xDilationStride: Int = 0, yDilationStride: Int = 0)
    /// The maximum. `indicesDescriptor` describes the indices of one sample, integers of 32 or 64 bits.
    case maxEx(indicesDescriptor: BNNSNDArrayDescriptor? = nil, xDilationStride: Int = 0, yDilationStride: Int = 0)
    /// Max pooling undone: values go to their positions. `indices` has one entry for each element of the input.
    case unMax(indices: UnsafeMutableBufferPointer<Int>? = nil, xDilationStride: Int = 0, yDilationStride: Int = 0)
    /// The same with integers of 32 or 64 bits.
    case unMaxEx(indicesDescriptor: BNNSNDArrayDescriptor, xDilationStride: Int = 0, yDilationStride: Int = 0)

    /// The constant of the C interface.
    public var bnnsPoolingFunction: BNNSPoolingFunction {
      switch self {
      case .average(countIncludesPadding: true): return BNNSPoolingFunctionAverageCountIncludePadding
      case .average(countIncludesPadding: false): return BNNSPoolingFunctionAverageCountExcludePadding
      case .l2Norm: return BNNSPoolingFunctionL2Norm
      case .max, .maxEx: return BNNSPoolingFunctionMax
      case .unMax, .unMaxEx: return BNNSPoolingFunctionUnMax
      }
    }

    var dilation: (x: Int, y: Int) {
      switch self {
      case .average, .l2Norm: return (0, 0)
      case .max(_, let x, let y), .unMax(_, let x, let y): return (x, y)
      case .maxEx(_, let x, let y): return (x, y)
      case .unMaxEx(_, let x, let y): return (x, y)
      }
    }
  }

  /// Pooling over windows of an image, each channel by itself.
  public class PoolingLayer: Layer {
    private final let type: PoolingType
    private final let input, output, bias: Expected
    private final let indexSpan, indexStride: Int  // of a sample

    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - poolingType: What is computed over a window.
    ///   - input: `.imageCHW(width, height, channels)` of one sample.
    ///   - output: `.imageCHW(width, height, channels)` of one sample, with as many channels.
    ///   - bias: `.vector(channels)`; nil: none.
    ///   - activation: The function applied last.
    ///   - kernelSize: The window.
    ///   - stride: Its steps.
    ///   - padding: Around the input; never a maximum.
    ///   - filterParameters: `.useClientPointer` to train the bias; nil: the defaults.
    public convenience init?(
      type poolingType: BNNS.PoolingType, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      bias: BNNSNDArrayDescriptor?, activation: BNNS.ActivationFunction, kernelSize: (width: Int, height: Int),
      stride: (x: Int, y: Int), padding: BNNS.ConvolutionPadding, filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersPooling()
      layer.i_desc = input
      layer.o_desc = output
      layer.bias = orAbsent(bias)
      layer.activation = activation.bnnsActivation
      layer.pooling_function = poolingType.bnnsPoolingFunction
      (layer.k_width, layer.k_height) = kernelSize
      (layer.x_stride, layer.y_stride) = stride
      (layer.x_dilation_stride, layer.y_dilation_stride) = poolingType.dilation
      (layer.x_padding, layer.y_padding, layer.pad) = padding.values
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerPooling(&layer, $0) })
      else { return nil }
      self.init(filter, poolingType, input, output, bias)
    }

    private init(
      _ filter: BNNSFilter, _ type: PoolingType, _ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor,
      _ bias: BNNSNDArrayDescriptor?
    ) {
      self.type = type
      self.input = Expected(input)
      self.output = Expected(output)
      self.bias = Expected(bias)
      let indexed = type.bnnsPoolingFunction == BNNSPoolingFunctionUnMax ? input : output
      (indexSpan, indexStride) = (indexed.sampleSize.span, indexed.sampleSize.stride)
      super.init(filter: filter)
    }

    /// Computes the output of each sample of a batch, and the indices, where the layer has memory for them.
    public func apply(batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor) throws {
      let call = call("apply")
      let x = try self.input.fitting(call, "input", input)
      let y = try self.output.fitting(call, "output", output)
      switch try indices(call, batchSize) {
      case .words(let at, let stride):
        try call.check(
          BNNSPoolingFilterApplyBatch(bnnsFilter, batchSize, x.data!, x.stride, y.data!, y.stride, at, stride))
      case .typed(let type, let at, let stride):
        try call.check(
          BNNSPoolingFilterApplyBatchEx(bnnsFilter, batchSize, x.data!, x.stride, y.data!, y.stride, type, at, stride))
      }
    }

    /// Computes the gradients of input and bias, given that of the output.
    /// - Parameters:
    ///   - batchSize: The number of samples of each array.
    ///   - input: What `apply` read; may be without data where the layer has indices.
    ///   - output: What `apply` wrote; may be without data where the layer has no activation.
    ///   - outputGradient: The gradient of the output.
    ///   - inputGradient: Receives the gradient of the input, or has it added (its `flags`).
    ///   - biasGradient: The same of the bias; nil: not wanted.
    public func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor,
      generatingBiasGradient biasGradient: BNNSNDArrayDescriptor? = nil
    ) throws {
      let call = call("applyBackward")
      let x = try self.input.fittingIfGiven(call, "input", input)
      let y = try self.output.fittingIfGiven(call, "output", output)
      let dxStride = try self.input.described(call, "generatingInputGradient", inputGradient)
      let dyStride = try self.output.described(call, "outputGradient", outputGradient)
      try bias.describedIfGiven(call, "generatingBiasGradient", biasGradient)
      let at = try indices(call, batchSize)
      var dx = inputGradient
      var dy = outputGradient
      try withMutablePointer(ifGiven: biasGradient) { db in
        switch at {
        case .words(let at, let stride):
          try call.check(
            BNNSPoolingFilterApplyBackwardBatch(
              bnnsFilter, batchSize, x.data, x.stride, &dx, dxStride, y.data, y.stride, &dy, dyStride, db, at, stride))
        case .typed(let type, let at, let stride):
          try call.check(
            BNNSPoolingFilterApplyBackwardBatchEx(
              bnnsFilter, batchSize, x.data, x.stride, &dx, dxStride, y.data, y.stride, &dy, dyStride, db, type, at,
              stride))
        }
      }
    }

    /// As the calls without and with Ex take indices.
    private enum Indices {
      case words(UnsafeMutablePointer<Int>?, Int)
      case typed(BNNSDataType, UnsafeMutableRawPointer?, Int)
    }

    // The C calls cannot know how many entries there are; a buffer and a descriptor do.
    private func indices(_ call: Call, _ batchSize: Int) throws -> Indices {
      switch type {
      case .average, .l2Norm: return .words(nil, 0)
      case .max(let buffer, _, _), .unMax(let buffer, _, _):
        guard let buffer, let first = buffer.baseAddress, !buffer.isEmpty else { return .words(nil, 0) }
        let (needed, overflow) = indexStride.multipliedReportingOverflow(by: Swift.max(batchSize, 0))
        if overflow || buffer.count < needed {
          throw call.refusal(
            .arrayDescriptorInvalidData, "indices hold \(buffer.count) entries, the batch has \(indexStride) x \(batchSize)")
        }
        return .words(first, indexStride)
      case .maxEx(let descriptor, _, _):
        guard let descriptor else { return .typed(BNNSDataTypeUInt64, nil, 0) }
        return try typed(call, descriptor)
      case .unMaxEx(let descriptor, _, _):
        return try typed(call, descriptor)
      }
    }

    private func typed(_ call: Call, _ d: BNNSNDArrayDescriptor) throws -> Indices {
      let s = d.sampleSize
      if d.data != nil && (s.span < indexSpan || s.stride < indexStride) {
        throw call.refusal(
          .arrayDescriptorInvalidData,
          "indicesDescriptor has \(s.count) indices a sample over \(s.span), the layer takes \(indexSpan)")
      }
      return .typed(d.data_type, d.data, s.stride)
    }
  }
}
