// What optimizers have in common.

/// An optimizer: a rule that changes parameters by their gradients.
///
/// A layer sees the steps only if it was made with `BNNSFlags.useClientPointer`.
public protocol BNNSOptimizer {
  /// The constant of the C interface.
  var bnnsOptimizerFunction: BNNSOptimizerFunction { get }
  /// How many accumulators there are for each parameter.
  var accumulatorCountMultiplier: Int { get }
  /// Changes the parameters by their gradients.
  /// - Parameters:
  ///   - parameters: What is trained.
  ///   - gradients: Their gradients, as many, of the same sizes.
  ///   - accumulators: Arrays of the sizes of the parameters, zeros before the first step: all first ones in the order of
  ///     the parameters, then all second ones, and so on.
  ///   - filterParameters: Threads and memory; nil: the defaults.
  func step(
    parameters: [BNNSNDArrayDescriptor], gradients: [BNNSNDArrayDescriptor], accumulators: [BNNSNDArrayDescriptor],
    filterParameters: BNNSFilterParameters?) throws
}

extension BNNS {
  /// How an optimizer limits gradients.
  public enum GradientClipping: Sendable {
    /// All of them together by their joint L2 norm; `globalNorm` 0: it is computed.
    case byGlobalNorm(threshold: Float, globalNorm: Float = 0)
    /// Each array by its L2 norm.
    case byNorm(threshold: Float)
    /// Each number to bounds.
    case byValue(bounds: ClosedRange<Float>)
    /// Not at all.
    case none
  }
}

extension BNNS.GradientClipping {
  /// The bounds of `.byValue`; nil of others. Set to nil: no clipping.
  var bounds: ClosedRange<Float>? {
    get {
      if case .byValue(let bounds) = self { return bounds }
      return nil
    }
    set { self = newValue.map { .byValue(bounds: $0) } ?? .none }
  }

  init(bounds: ClosedRange<Float>?) { self = bounds.map { .byValue(bounds: $0) } ?? .none }

  /// The fields of the C structures.
  var fields: (function: BNNSOptimizerClippingFunction, min: Float, max: Float, maxNorm: Float, useNorm: Float) {
    switch self {
    case .byGlobalNorm(let threshold, let norm): return (BNNSOptimizerClippingByGlobalNorm, 0, 0, threshold, norm)
    case .byNorm(let threshold): return (BNNSOptimizerClippingByNorm, 0, 0, threshold, 0)
    case .byValue(let bounds): return (BNNSOptimizerClippingByValue, bounds.lowerBound, bounds.upperBound, 0, 0)
    case .none: return (BNNSOptimizerClippingNone, 0, 0, 0, 0)
    }
  }
}

extension BNNSOptimizer {
  /// The step of an optimizer whose fields are a C structure. The C call takes pointers to mutable descriptors, and
  /// writes through their data.
  func step<Fields>(
    _ fields: Fields, _ parameters: [BNNSNDArrayDescriptor], _ gradients: [BNNSNDArrayDescriptor],
    _ accumulators: [BNNSNDArrayDescriptor], _ filterParameters: BNNSFilterParameters?
  ) throws {
    let call = Call(Self.self, "step")
    if gradients.count != parameters.count {
      throw call.refusal(.optimizerStepFail, "\(parameters.count) parameters, but \(gradients.count) gradients")
    }
    let needed = accumulatorCountMultiplier * parameters.count
    if accumulators.count != needed {
      throw call.refusal(.optimizerStepFail, "expected \(needed) accumulators, got \(accumulators.count)")
    }
    typealias Pointer = UnsafeMutablePointer<BNNSNDArrayDescriptor>
    try withUnsafePointer(to: fields) { fields in
      try withPointer(to: filterParameters) { options in
        try parameters.withMutablePointers { (parameters: UnsafeMutableBufferPointer<Pointer>) in
          try gradients.withMutablePointers { (gradients: UnsafeMutableBufferPointer<UnsafePointer<BNNSNDArrayDescriptor>>) in
            try accumulators.withMutablePointers { (accumulators: UnsafeMutableBufferPointer<Pointer?>) in
              try call.check(
                BNNSOptimizerStep(
                  bnnsOptimizerFunction, fields, parameters.count, parameters.baseAddress!, gradients.baseAddress!,
                  accumulators.isEmpty ? nil : accumulators.baseAddress, options), .optimizerStepFail)
            }
          }
        }
      }
    }
  }
}

/// Pointers to the descriptors of a list, in the types the C calls take.
protocol DescriptorPointing {
  init(descriptor: UnsafePointer<BNNSNDArrayDescriptor>)
}
extension UnsafePointer: DescriptorPointing where Pointee == BNNSNDArrayDescriptor {
  init(descriptor: UnsafePointer<BNNSNDArrayDescriptor>) { self = descriptor }
}
extension UnsafeMutablePointer: DescriptorPointing where Pointee == BNNSNDArrayDescriptor {
  init(descriptor: UnsafePointer<BNNSNDArrayDescriptor>) { self.init(mutating: descriptor) }
}
extension Optional: DescriptorPointing where Wrapped: DescriptorPointing {
  init(descriptor: UnsafePointer<BNNSNDArrayDescriptor>) { self = Wrapped(descriptor: descriptor) }
}

extension Array where Element == BNNSNDArrayDescriptor {
  func withMutablePointers<Pointer: DescriptorPointing>(
    _ body: (UnsafeMutableBufferPointer<Pointer>) throws -> Void
  ) throws {
    try withUnsafeBufferPointer { descriptors in
      // One more than needed: an empty list has an address too.
      try withUnsafeTemporaryAllocation(of: Pointer.self, capacity: count + 1) { pointers in
        for i in indices { pointers[i] = Pointer(descriptor: descriptors.baseAddress! + i) }
        try body(UnsafeMutableBufferPointer(rebasing: pointers[..<count]))
      }
    }
  }
}
