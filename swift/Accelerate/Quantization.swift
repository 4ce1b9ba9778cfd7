// Quantization, and comparisons.

extension BNNS {
  /// output = scale * input + bias, in the type of the output.
  /// - Parameters:
  ///   - batchSize: The number of samples of each array.
  ///   - input: One sample.
  ///   - output: The same sizes.
  ///   - axis: The axis that has a scale and a bias for each index; nil: one for the whole array.
  ///   - scale: The scale; nil: 1.
  ///   - bias: The bias; nil: 0.
  ///   - filterParameters: Threads and memory; nil: the defaults.
  public static func quantize(
    batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axis: Int? = nil,
    scale: BNNSNDArrayDescriptor?, bias: BNNSNDArrayDescriptor?, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    var layer = BNNSLayerParametersQuantization(
      BNNSQuantizerFunctionQuantize, input: input, output: output, axis: axis, scale: scale, bias: bias)
    try apply(&layer, batchSize, Call("quantize"), filterParameters)
  }

  /// output = (input - bias) / scale.
  public static func dequantize(
    batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axis: Int? = nil,
    scale: BNNSNDArrayDescriptor?, bias: BNNSNDArrayDescriptor?, filterParameters: BNNSFilterParameters? = nil
  ) throws {
    var layer = BNNSLayerParametersQuantization(
      BNNSQuantizerFunctionDequantize, input: input, output: output, axis: axis, scale: scale, bias: bias)
    try apply(&layer, batchSize, Call("dequantize"), filterParameters)
  }

  private static func apply(
    _ layer: inout BNNSLayerParametersQuantization, _ batchSize: Int, _ call: Call,
    _ filterParameters: BNNSFilterParameters?
  ) throws {
    let x = layer.i_desc.sampleSize.stride
    let y = layer.o_desc.sampleSize.stride
    try withPointer(to: filterParameters) { try call.check(BNNSDirectApplyQuantizer(&layer, $0, batchSize, x, y)) }
  }

  /// A comparison, or a function of truth values.
  @frozen public struct RelationalOperator: Equatable, Sendable {
    let bnnsRelationalOperator: UInt32
    init(_ value: BNNSRelationalOperator) { bnnsRelationalOperator = value.rawValue }

    /// Both.
    public static var and: BNNS.RelationalOperator { .init(BNNSRelationalOperatorLogicalAND) }
    /// a = b.
    public static var equal: BNNS.RelationalOperator { .init(BNNSRelationalOperatorEqual) }
    /// a > b.
    public static var greater: BNNS.RelationalOperator { .init(BNNSRelationalOperatorGreater) }
    /// a ≥ b.
    public static var greaterEqual: BNNS.RelationalOperator { .init(BNNSRelationalOperatorGreaterEqual) }
    /// a < b.
    public static var less: BNNS.RelationalOperator { .init(BNNSRelationalOperatorLess) }
    /// a ≤ b.
    public static var lessEqual: BNNS.RelationalOperator { .init(BNNSRelationalOperatorLessEqual) }
    /// Not both.
    public static var nand: BNNS.RelationalOperator { .init(BNNSRelationalOperatorLogicalNAND) }
    /// None of them.
    public static var nor: BNNS.RelationalOperator { .init(BNNSRelationalOperatorLogicalNOR) }
    /// Not a; b is not read.
    public static var not: BNNS.RelationalOperator { .init(BNNSRelationalOperatorLogicalNOT) }
    /// a ≠ b.
    public static var notEqual: BNNS.RelationalOperator { .init(BNNSRelationalOperatorNotEqual) }
    /// Any of them.
    public static var or: BNNS.RelationalOperator { .init(BNNSRelationalOperatorLogicalOR) }
    /// Exactly one.
    public static var xor: BNNS.RelationalOperator { .init(BNNSRelationalOperatorLogicalXOR) }
  }

  /// Compares the elements of two arrays; `output` is Bool.
  public static func compare(
    _ inputA: BNNSNDArrayDescriptor, _ inputB: BNNSNDArrayDescriptor,
    using relationalOperator: BNNS.RelationalOperator, output: BNNSNDArrayDescriptor
  ) throws {
    var (a, b, y) = (inputA, inputB, output)
    let function = BNNSRelationalOperator(relationalOperator.bnnsRelationalOperator)
    try Call("compare").check(BNNSCompareTensor(&a, &b, function, &y))
  }
}

extension BNNSLayerParametersQuantization {
  init(
    _ function: BNNSQuantizerFunction, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, axis: Int?,
    scale: BNNSNDArrayDescriptor?, bias: BNNSNDArrayDescriptor?
  ) {
    self.init()
    self.function = function
    // A number that is no axis of any array becomes a bit that the C call refuses.
    axis_mask = axis.map { 1 << ((0..<62).contains($0) ? $0 : 62) } ?? 0
    i_desc = input
    o_desc = output
    self.scale = orAbsent(scale)
    self.bias = orAbsent(bias)
  }
}
