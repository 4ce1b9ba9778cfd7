// What the tests share: arrays that are released, numbers that are always the same, and the comparison with C filters.

import Accelerate
import XCTest

typealias D = BNNSNDArrayDescriptor

/// Arrays of one test. Numbers depend on how many arrays were made before only.
final class Arrays {
  private var made: [D] = []
  private var state: UInt32 = 1

  deinit { for d in made { d.deallocate() } }

  func zeros(_ shape: BNNS.Shape, _ batch: Int = 1) -> D { keep(.allocate(repeating: Float(0), shape: shape, batchSize: batch)) }
  func ones(_ shape: BNNS.Shape) -> D { keep(.allocate(repeating: Float(1), shape: shape)) }
  func keep(_ d: D) -> D {
    made.append(d)
    return d
  }

  /// Numbers in (-1, 1).
  func numbers(_ shape: BNNS.Shape, _ batch: Int = 1) -> D {
    let d = zeros(shape, batch)
    for i in 0..<shape.batchStride * batch {
      state = state &* 1_664_525 &+ 1_013_904_223
      d.data!.assumingMemoryBound(to: Float.self)[i] = Float(Int(state >> 8) % 2001 - 1000) / 1001
    }
    return d
  }

  /// An array like another one, zeros.
  func like(_ d: D, _ batch: Int = 1) -> D { zeros(d.shape, batch) }
}

extension D {
  func floats(_ batch: Int = 1) -> [Float] { makeArray(of: Float.self, batchSize: batch)! }
  /// The same shape without data, as layers are made with.
  var described: D {
    var d = self
    d.data = nil
    return d
  }
}

/// Bit for bit, and not all zeros: a gradient that nobody wrote is no gradient.
func assertSameBits(_ a: D, _ b: D, _ batch: Int = 1, _ what: String, line: UInt = #line) {
  XCTAssertEqual(a.floats(batch).map(\.bitPattern), b.floats(batch).map(\.bitPattern), what, line: line)
  XCTAssertTrue(a.floats(batch).contains { $0 != 0 }, "\(what) is all zeros", line: line)
}

extension XCTestCase {
  static let batch = 3

  /// A layer with one input and a C filter of the same parameters: forward and backward.
  func assertSame(
    _ layer: BNNS.UnaryLayer?, _ filter: BNNSFilter?, _ input: BNNS.Shape, _ output: BNNS.Shape,
    weights: BNNS.Shape? = nil, bias: BNNS.Shape? = nil, line: UInt = #line
  ) throws {
    let n = Self.batch
    let layer = try XCTUnwrap(layer, BNNS.lastErrorReason, line: line)
    let filter = try XCTUnwrap(filter, line: line)
    defer { BNNSFilterDestroy(filter) }
    let arrays = Arrays()
    let x = arrays.numbers(input, n), dy = arrays.numbers(output, n)
    let (y1, y2) = (arrays.zeros(output, n), arrays.zeros(output, n))
    try layer.apply(batchSize: n, input: x, output: y1)
    XCTAssertEqual(
      BNNSFilterApplyBatch(filter, n, x.data!, input.batchStride, y2.data!, output.batchStride), 0, line: line)
    assertSameBits(y1, y2, n, "output", line: line)

    let dx1 = arrays.zeros(input, n)
    var dx2 = arrays.zeros(input, n)
    var dyC = dy
    let (dw1, dw2) = (weights.map { arrays.zeros($0) }, weights.map { arrays.zeros($0) })
    let (db1, db2) = (bias.map { arrays.zeros($0) }, bias.map { arrays.zeros($0) })
    if let layer = layer as? BNNS.ConvolutionLayer {
      try layer.applyBackward(
        batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1,
        generatingWeightsGradient: dw1, generatingBiasGradient: db1)
    } else if let layer = layer as? BNNS.ReductionLayer {
      try layer.applyBackward(
        batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1,
        generatingWeightsGradient: dw1)
    } else {
      try layer.applyBackward(batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1)
    }
    var (dw, db) = (dw2 ?? D(), db2 ?? D())
    let status = withUnsafeMutablePointer(to: &dw) { dw in
      withUnsafeMutablePointer(to: &db) { db in
        BNNSFilterApplyBackwardBatch(
          filter, n, x.data, input.batchStride, &dx2, input.batchStride, y2.data, output.batchStride, &dyC,
          output.batchStride, dw2 == nil ? nil : dw, db2 == nil ? nil : db)
      }
    }
    XCTAssertEqual(status, 0, BNNS.lastErrorReason, line: line)
    assertSameBits(dx1, dx2, n, "input gradient", line: line)
    if let dw1, let dw2 { assertSameBits(dw1, dw2, 1, "weights gradient", line: line) }
    if let db1, let db2 { assertSameBits(db1, db2, 1, "bias gradient", line: line) }
  }
}
