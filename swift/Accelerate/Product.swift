// Layers that are products: matrices, and the Gram matrix.

extension BNNS {
  /// output = alpha A B, or added to the output; matrices are the last two indices, those before them repeat.
  public class BroadcastMatrixMultiplyLayer: Layer {
    /// Which inputs a call reads: an operand that is weights is taken from its descriptor when the layer is made, and a
    /// quadratic layer has A only.
    private enum Read { case both, a, b }
    private final let arrays: TwoInputs
    private final let read: Read

    private init(_ filter: BNNSFilter, _ arrays: TwoInputs, _ read: Read) {
      self.arrays = arrays
      self.read = read
      super.init(filter: filter)
    }

    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - inputA: The left matrix, or matrices.
    ///   - transposeA: Whether it is transposed.
    ///   - aIsWeights: Whether it is trained: it has data then, and calls do not read it.
    ///   - inputB: The right one.
    ///   - transposeB: Whether it is transposed.
    ///   - bIsWeights: Whether it is trained.
    ///   - output: The product.
    ///   - alpha: A factor.
    ///   - accumulatesToOutput: Whether the product is added to what the output holds.
    ///   - isQuadratic: Whether A is multiplied by itself.
    ///   - filterParameters: `.useClientPointer` to train it; nil: the defaults.
    public convenience init?(
      inputA: BNNSNDArrayDescriptor, transposed transposeA: Bool, isWeights aIsWeights: Bool,
      inputB: BNNSNDArrayDescriptor, transposed transposeB: Bool, isWeights bIsWeights: Bool,
      output: BNNSNDArrayDescriptor, alpha: Float, accumulatesToOutput: Bool, isQuadratic: Bool,
      filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersBroadcastMatMul(
        alpha: alpha, beta: accumulatesToOutput ? 1 : 0, transA: transposeA, transB: transposeB,
        quadratic: isQuadratic, a_is_weights: aIsWeights, b_is_weights: bIsWeights, iA_desc: inputA, iB_desc: inputB,
        o_desc: output)
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerBroadcastMatMul(&layer, $0) })
      else { return nil }
      let read: Read = aIsWeights ? .b : bIsWeights || isQuadratic ? .a : .both
      self.init(filter, TwoInputs(inputA, inputB, output), read)
    }

    /// Computes the product for each sample of a batch. An operand that is weights is not read.
    public func apply(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor
    ) throws {
      let call = call("apply")
      if read == .both { return try arrays.apply(bnnsFilter, call, batchSize, inputA, inputB, output) }
      let x = try read == .a ? arrays.a.fitting(call, "inputA", inputA) : arrays.b.fitting(call, "inputB", inputB)
      let y = try arrays.output.fitting(call, "output", output)
      try call.check(BNNSFilterApplyBatch(bnnsFilter, batchSize, x.data!, x.stride, y.data!, y.stride))
    }

    /// Computes the gradients of both operands, given that of the output. That of weights is summed over the batch; a
    /// quadratic layer has that of A only.
    public func applyBackward(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputAGradient inputAGradient: BNNSNDArrayDescriptor,
      generatingInputBGradient inputBGradient: BNNSNDArrayDescriptor
    ) throws {
      let call = call("applyBackward")
      if read == .both {
        return try arrays.backward(
          bnnsFilter, call, batchSize, inputA, inputB, output, outputGradient, inputAGradient, inputBGradient)
      }
      let a = (expected: arrays.a, array: inputA, gradient: inputAGradient, label: "inputA" as StaticString)
      let b = (expected: arrays.b, array: inputB, gradient: inputBGradient, label: "inputB" as StaticString)
      let (input, weights) = read == .a ? (a, b) : (b, a)
      let x = try input.expected.fittingIfGiven(call, input.label, input.array)
      let y = try arrays.output.fittingIfGiven(call, "output", output)
      let dxStride = try input.expected.described(
        call, read == .a ? "generatingInputAGradient" : "generatingInputBGradient", input.gradient)
      let dyStride = try arrays.output.described(call, "outputGradient", outputGradient)
      // A quadratic layer has no second gradient: what is given without data is left out.
      let weightsGradient = weights.gradient.data == nil ? nil : weights.gradient
      try weights.expected.describedIfGiven(
        call, read == .a ? "generatingInputBGradient" : "generatingInputAGradient", weightsGradient)
      var dx = input.gradient
      var dy = outputGradient
      try withMutablePointer(ifGiven: weightsGradient) { dw in
        try call.check(
          BNNSFilterApplyBackwardBatch(
            bnnsFilter, batchSize, x.data, x.stride, &dx, dxStride, y.data, y.stride, &dy, dyStride, dw, nil))
      }
    }
  }

  /// The Gram matrix of channels: alpha times the sum over pixels of the products of two channels.
  public class GramLayer: UnaryLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - input: `.imageCHW(width, height, channels)` of one sample.
    ///   - output: A matrix of channels by channels.
    ///   - alpha: A factor.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, alpha: Float,
      filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersGram(alpha: alpha, i_desc: input, o_desc: output)
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerGram(&layer, $0) })
      else { return nil }
      self.init(filter: filter, input: input, output: output)
    }
  }

  /// output = alpha op(A) op(B), without a layer, with broadcasting. Without a workspace the library allocates one.
  public static func applyMatrixMultiplication(
    inputA: BNNSNDArrayDescriptor, transposed transposeA: Bool, inputB: BNNSNDArrayDescriptor,
    transposed transposeB: Bool, output: BNNSNDArrayDescriptor, alpha: Float,
    workspace: UnsafeMutableRawBufferPointer?, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    let call = Call("applyMatrixMultiplication")
    if let workspace, !workspace.isEmpty,  // the C call takes no size
      let needed = matrixMultiplicationWorkspaceSize(
        inputA: inputA, transposed: transposeA, inputB: inputB, transposed: transposeB, output: output, alpha: alpha,
        filterParameters: filterParameters), workspace.count < needed
    {
      throw call.refusal(.layerApplyFail, "the workspace has \(workspace.count) bytes, expected \(needed)")
    }
    let scratch = workspace.flatMap { $0.isEmpty ? nil : $0.baseAddress }
    var (a, b, y) = (inputA, inputB, output)
    try withPointer(to: filterParameters) {
      try call.check(BNNSMatMul(transposeA, transposeB, alpha, &a, &b, &y, scratch, $0))
    }
  }

  /// Bytes of that workspace; nil where the product is refused.
  public static func matrixMultiplicationWorkspaceSize(
    inputA: BNNSNDArrayDescriptor, transposed transposeA: Bool, inputB: BNNSNDArrayDescriptor,
    transposed transposeB: Bool, output: BNNSNDArrayDescriptor, alpha: Float,
    filterParameters: BNNSFilterParameters? = nil
  ) -> Int? {
    var (a, b, y) = (inputA, inputB, output)
    let bytes = withPointer(to: filterParameters) {
      BNNSMatMulWorkspaceSize(transposeA, transposeB, alpha, &a, &b, &y, $0)
    }
    return bytes < 0 ? nil : bytes
  }
}
