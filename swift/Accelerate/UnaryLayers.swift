// Dropout, padding, permutation of axes, and resizing.

extension BNNS {
  /// Drops elements and scales those that stay by 1 / (1 - rate), differently at every call. There is no inference mode.
  public class DropoutLayer: UnaryLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - input: One sample.
    ///   - output: The same sizes.
    ///   - rate: The probability of dropping, 0 or more and below 1.
    ///   - seed: Equal seeds drop equally; 0: a seed of the operating system's.
    ///   - control: Bit k: one decision for all elements along axis k.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, rate: Float, seed: UInt32, control: UInt8,
      filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersDropout(i_desc: input, o_desc: output, rate: rate, seed: seed, control: control)
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerDropout(&layer, $0) })
      else { return nil }
      self.init(filter: filter, input: input, output: output)
    }
  }

  /// What fills the padding.
  public enum PaddingMode: Sendable {
    /// The leading bytes of a pattern.
    case constantBitPattern(UInt32)
    /// A number, in whatever type the layer has.
    case constantScalar(Float)
    /// The array mirrored, the edge not repeated.
    case reflect
    /// The array mirrored, the edge repeated.
    case symmetric

    /// The constant of the C interface.
    public var bnnsPaddingMode: BNNSPaddingMode {
      switch self {
      case .constantBitPattern, .constantScalar: return BNNSPaddingModeConstant
      case .reflect: return BNNSPaddingModeReflect
      case .symmetric: return BNNSPaddingModeSymmetric
      }
    }

    /// The bits of the constant, of a layer of Float; 0 of the mirrors.
    public var paddingBitPattern: UInt32 {
      switch self {
      case .constantBitPattern(let bits): return bits
      case .constantScalar(let number): return number.bitPattern
      case .reflect, .symmetric: return 0
      }
    }

    /// The bits of the constant in the type of a layer; nil where that type does not hold it.
    func bitPattern(of type: BNNSDataType) -> UInt32? {
      guard case .constantScalar(let number) = self else { return paddingBitPattern }
      switch type {
      case BNNSDataTypeFloat16: return UInt32(Float16(number).bitPattern)
      case BNNSDataTypeBFloat16: return number.bfloat16BitPattern
      case BNNSDataTypeBoolean: return number != 0 ? 1 : 0
      case BNNSDataTypeInt8: return Int8(exactly: number).map { UInt32(UInt8(bitPattern: $0)) }
      case BNNSDataTypeInt16: return Int16(exactly: number).map { UInt32(UInt16(bitPattern: $0)) }
      case BNNSDataTypeInt32: return Int32(exactly: number).map { UInt32(bitPattern: $0) }
      case BNNSDataTypeUInt8: return UInt8(exactly: number).map(UInt32.init)
      case BNNSDataTypeUInt16: return UInt16(exactly: number).map(UInt32.init)
      // Of 64 bits the pattern has the lower half: not enough for a negative number.
      case BNNSDataTypeUInt32, BNNSDataTypeInt64, BNNSDataTypeUInt64: return UInt32(exactly: number)
      default: return number.bitPattern
      }
    }
  }

  /// A copy with elements around it.
  public class PaddingLayer: UnaryLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - input: One sample.
    ///   - output: Larger by the sizes of the padding.
    ///   - mode: What fills the padding.
    ///   - size: How many elements before (x) and after (y), for each axis.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, mode: BNNS.PaddingMode, size: [(x: Int, y: Int)],
      filterParameters: BNNSFilterParameters? = nil
    ) {
      let call = Call("PaddingLayer")
      guard let bits = mode.bitPattern(of: input.data_type) else {
        let reason = "the constant is no value of \(input.data_type.text): constantBitPattern takes the bytes of any element"
        _ = call.refusal(.unableToCreateLayer, reason)
        return nil
      }
      guard size.count <= 8 else {
        _ = call.refusal(.unableToCreateLayer, "size has \(size.count) entries, an array at most 8 axes")
        return nil
      }
      var layer = BNNSLayerParametersPadding()
      layer.i_desc = input
      layer.o_desc = output
      layer.padding_mode = mode.bnnsPaddingMode
      layer.padding_value = bits
      withUnsafeMutableBytes(of: &layer.padding_size) { bytes in
        let pairs = bytes.bindMemory(to: (Int, Int).self)
        for (k, padding) in size.enumerated() { pairs[k] = padding }
      }
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerPadding(&layer, $0) })
      else { return nil }
      self.init(filter: filter, input: input, output: output)
    }
  }

  /// A copy with its axes in another order.
  public class PermuteLayer: UnaryLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - input: One sample.
    ///   - output: Its axes in the new order.
    ///   - permutation: Axis k of the output is axis `permutation[k]` of the input.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, permutation: [Int],
      filterParameters: BNNSFilterParameters? = nil
    ) {
      let rank = input.layout.axisCount
      guard permutation.count == rank, rank <= 8 else {
        _ = Call("PermuteLayer").refusal(
          .unableToCreateLayer, "permutation has \(permutation.count) entries, the rank of input is \(rank)")
        return nil
      }
      var layer = BNNSLayerParametersPermute()
      layer.i_desc = input
      layer.o_desc = output
      withUnsafeMutableBytes(of: &layer.permutation) { bytes in
        let axes = bytes.bindMemory(to: Int.self)
        for (k, axis) in permutation.enumerated() { axes[k] = axis }
      }
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerPermute(&layer, $0) })
      else { return nil }
      self.init(filter: filter, input: input, output: output)
    }

    /// Computes the gradient of the input, given that of the output; `input` and `output` are not read.
    public override func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor
    ) throws {
      let call = call("applyBackward")
      let dxStride = try self.input.described(call, "generatingInputGradient", inputGradient)
      let dyStride = try self.output.described(call, "outputGradient", outputGradient)
      var dx = inputGradient
      var dy = outputGradient
      try call.check(BNNSPermuteFilterApplyBackwardBatch(bnnsFilter, batchSize, &dx, dxStride, &dy, dyStride))
    }
  }

  /// How a resize finds values between elements.
  public enum InterpolationMethod: Sendable {
    /// Linearly.
    case linear
    /// It takes the nearest one.
    case nearestNeighbor

    var bnnsInterpolationMethod: BNNSInterpolationMethod {
      self == .linear ? BNNSInterpolationMethodLinear : BNNSInterpolationMethodNearest
    }
  }

  /// A resize along the axes whose sizes differ, all larger or all smaller.
  public class ResizeLayer: UnaryLayer {
    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - interpolationMethod: How values between elements are found.
    ///   - input: One sample.
    ///   - output: One sample of other sizes.
    ///   - alignsCorners: Whether the corner elements of both coincide.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public convenience init?(
      interpolationMethod: BNNS.InterpolationMethod, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      alignsCorners: Bool, filterParameters: BNNSFilterParameters? = nil
    ) {
      var layer = BNNSLayerParametersResize(
        method: interpolationMethod.bnnsInterpolationMethod, i_desc: input, o_desc: output, align_corners: alignsCorners)
      guard let filter = withPointer(to: filterParameters, { BNNSFilterCreateLayerResize(&layer, $0) })
      else { return nil }
      self.init(filter: filter, input: input, output: output)
    }
  }
}

extension Float {
  /// The nearest bfloat16, ties to even; NaN stays.
  fileprivate var bfloat16BitPattern: UInt32 {
    let bits = bitPattern
    return isNaN ? (bits >> 16) | 0x40 : (bits &+ 0x7fff &+ ((bits >> 16) & 1)) >> 16
  }
}
