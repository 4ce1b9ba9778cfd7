// Functions of tensors, without a layer. Each array is one sample.

extension BNNS {
  // MARK: Clipping and norms. No axes: all of them.

  /// Limits each element to bounds.
  public static func clip(
    to bounds: ClosedRange<Float>, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor
  ) throws {
    var (x, y) = (input, output)
    try Call("clip").check(BNNSClipByValue(&y, &x, bounds.lowerBound, bounds.upperBound))
  }

  /// Scales arrays together, so that their joint L2 norm is at most a threshold; `globalNorm` 0: it is computed.
  public static func clipByGlobalNorm(
    threshold: Float, inputs: [BNNSNDArrayDescriptor], outputs: [BNNSNDArrayDescriptor], globalNorm: Float = 0
  ) throws {
    let call = Call("clipByGlobalNorm")
    if inputs.count != outputs.count {
      throw call.refusal(.layerApplyFail, "\(inputs.count) inputs, but \(outputs.count) outputs")
    }
    try inputs.withMutablePointers { (x: UnsafeMutableBufferPointer<UnsafePointer<BNNSNDArrayDescriptor>>) in
      try outputs.withMutablePointers { (y: UnsafeMutableBufferPointer<UnsafeMutablePointer<BNNSNDArrayDescriptor>>) in
        try call.check(BNNSClipByGlobalNorm(y.baseAddress!, x.baseAddress!, inputs.count, threshold, globalNorm))
      }
    }
  }

  /// Scales an array, along axes, so that its L2 norm is at most a threshold.
  public static func clipByNorm(
    threshold: Float, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axes: [Int]? = nil
  ) throws {
    let call = Call("clipByNorm")
    var (x, y) = (input, output)
    try call.check(BNNSClipByNorm(&y, &x, threshold, try axisMask(axes, call)))
  }

  /// Computes the L2 norm over axes.
  public static func computeNorm(
    input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axes: [Int]? = nil
  ) throws {
    let call = Call("computeNorm")
    var (x, y) = (input, output)
    try call.check(BNNSComputeNorm(&y, &x, BNNSL2Norm, try axisMask(axes, call)))
  }

  /// Computes the gradient of the L2 norm over axes; the arrays are of the shapes of their gradients.
  public static func computeNormBackward(
    input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axes: [Int]? = nil,
    outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor
  ) throws {
    let call = Call("computeNormBackward")
    let x = try Expected(inputGradient).fitting(call, "input", input)
    let y = try Expected(outputGradient).fitting(call, "output", output)
    var (dx, dy) = (inputGradient, outputGradient)
    try call.check(BNNSComputeNormBackward(x.data!, &dx, y.data!, &dy, BNNSL2Norm, try axisMask(axes, call)))
  }

  // MARK: Copying and moving

  /// Copies; layouts, strides and types may differ.
  public static func copy(
    _ source: BNNSNDArrayDescriptor, to destination: BNNSNDArrayDescriptor,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try pair("copy", source, destination, filterParameters) { BNNSCopy($1, $0, $2) }
  }

  /// Copies a band around the diagonal of a matrix, and zeros; a count of nil: the whole triangle.
  public static func copyBandPart(
    _ source: BNNSNDArrayDescriptor, to destination: BNNSNDArrayDescriptor, lowerBandCount: Int?,
    upperBandCount: Int?, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    let lower = Int32(clamping: lowerBandCount ?? -1)
    let upper = Int32(clamping: upperBandCount ?? -1)
    try pair("copyBandPart", source, destination, filterParameters) { BNNSBandPart(lower, upper, $0, $1, $2) }
  }

  /// Swaps two axes.
  public static func transpose(
    input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, firstTransposeAxis: Int, secondTransposeAxis: Int,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try pair("transpose", input, output, filterParameters) {
      BNNSTranspose($1, $0, firstTransposeAxis, secondTransposeAxis, $2)
    }
  }

  /// Repeats an array until it fills the output.
  public static func tile(
    input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try pair("tile", input, output, filterParameters) { BNNSTile($0, $1, $2) }
  }

  /// Computes the gradient of that.
  public static func tileBackward(
    outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try pair("tileBackward", outputGradient, inputGradient, filterParameters) { BNNSTileBackward($1, $0, $2) }
  }

  /// Rearrangements of blocks of pixels and channels.
  public enum ShuffleType: Sendable {
    /// Channels to blocks of pixels.
    case depthToSpaceNCHW
    /// Blocks of pixels to channels.
    case spaceToDepthNCHW
  }

  /// Rearranges blocks of pixels and channels.
  public static func shuffle(
    _ shuffleType: BNNS.ShuffleType, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    let type = shuffleType == .depthToSpaceNCHW ? BNNSShuffleTypeDepthToSpaceNCHW : BNNSShuffleTypeSpaceToDepthNCHW
    try pair("shuffle", input, output, filterParameters) { BNNSShuffle(type, $0, $1, $2) }
  }

  // MARK: Gathering and scattering

  /// Takes the slices along an axis that indices name.
  public static func gather(
    input: BNNSNDArrayDescriptor, indices: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axis: Int,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try triple("gather", input, indices, output, filterParameters) { BNNSGather(axis, $0, $1, $2, $3) }
  }

  /// Takes the slices that tuples of indices name.
  public static func gatherND(
    input: BNNSNDArrayDescriptor, indices: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try triple("gatherND", input, indices, output, filterParameters) { BNNSGatherND($0, $1, $2, $3) }
  }

  /// Writes slices to where indices along an axis name.
  public static func scatter(
    input: BNNSNDArrayDescriptor, indices: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axis: Int,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try triple("scatter", input, indices, output, filterParameters) {
      BNNSScatter(axis, BNNSReduceFunctionNone, $0, $1, $2, $3)
    }
  }

  /// The same, combined with what is there.
  public static func scatter(
    input: BNNSNDArrayDescriptor, indices: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axis: Int,
    reductionFunction: BNNS.ReductionFunction, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try triple("scatter", input, indices, output, filterParameters) {
      BNNSScatter(axis, reductionFunction.bnnsReduceFunction, $0, $1, $2, $3)
    }
  }

  /// Writes slices to where tuples of indices name.
  public static func scatterND(
    input: BNNSNDArrayDescriptor, indices: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try triple("scatterND", input, indices, output, filterParameters) {
      BNNSScatterND(BNNSReduceFunctionNone, $0, $1, $2, $3)
    }
  }

  /// The same, combined with what is there.
  public static func scatterND(
    input: BNNSNDArrayDescriptor, indices: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
    reductionFunction: BNNS.ReductionFunction, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    try triple("scatterND", input, indices, output, filterParameters) {
      BNNSScatterND(reductionFunction.bnnsReduceFunction, $0, $1, $2, $3)
    }
  }

  // MARK: What they share

  typealias Input = UnsafePointer<BNNSNDArrayDescriptor>
  typealias Output = UnsafeMutablePointer<BNNSNDArrayDescriptor>
  typealias Options = UnsafePointer<BNNSFilterParameters>?

  private static func pair(
    _ name: StaticString, _ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor,
    _ filterParameters: BNNSFilterParameters?, _ function: (Input, Output, Options) -> Int32
  ) throws {
    var y = output
    try withUnsafePointer(to: input) { x in
      try withPointer(to: filterParameters) { try Call(name).check(function(x, &y, $0)) }
    }
  }

  private static func triple(
    _ name: StaticString, _ first: BNNSNDArrayDescriptor, _ second: BNNSNDArrayDescriptor,
    _ output: BNNSNDArrayDescriptor, _ filterParameters: BNNSFilterParameters?,
    _ function: (Input, Input, Output, Options) -> Int32
  ) throws {
    try withUnsafePointer(to: second) { b in
      try pair(name, first, output, filterParameters) { a, y, options in function(a, b, y, options) }
    }
  }
}
