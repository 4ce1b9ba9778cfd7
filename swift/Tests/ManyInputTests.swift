// Layers with several inputs give the bits of the C calls, forward and backward.

import Accelerate
import XCTest

final class ManyInputTests: XCTestCase {
  private let arrays = Arrays()
  private let n = 3

  private func filter<Fields>(_ function: BNNSArithmeticFunction, _ fields: Fields) throws -> BNNSFilter {
    var fields = fields
    let made = withUnsafeMutablePointer(to: &fields) { pointer in
      var layer = BNNSLayerParametersArithmetic(
        arithmetic_function: function, arithmetic_function_fields: pointer,
        activation: BNNS.ActivationFunction.tanh.bnnsActivation)
      return BNNSFilterCreateLayerArithmetic(&layer, nil)
    }
    return try XCTUnwrap(made)
  }

  /// The C calls with as many inputs as arrays.
  private func apply(_ filter: BNNSFilter, _ x: [D], _ y: D) {
    var pointers = x.map { UnsafeRawPointer($0.data!) }
    let s = y.shape.batchStride
    XCTAssertEqual(
      BNNSArithmeticFilterApplyBatch(filter, n, x.count, &pointers, x.map { $0.shape.batchStride }, y.data!, s), 0)
  }
  private func applyBackward(_ filter: BNNSFilter, _ x: [D], _ y: D, _ dy: D, _ dx: [D]) {
    var pointers = x.map { UnsafeRawPointer($0.data) }
    var (gradients, dy) = (dx, dy)
    let s = y.shape.batchStride
    gradients.withUnsafeMutableBufferPointer { buffer in
      var at = (0..<x.count).map { buffer.baseAddress! + $0 }
      let strides = x.map { $0.shape.batchStride }
      XCTAssertEqual(
        BNNSArithmeticFilterApplyBackwardBatch(
          filter, n, x.count, &pointers, strides, &at, strides, y.data, s, &dy, s), 0)
    }
  }

  func testUnaryArithmetic() throws {
    let shape = BNNS.Shape.imageCHW(4, 3, 2)
    let x = arrays.numbers(shape, n), dy = arrays.numbers(shape, n)
    for function in BNNS.ArithmeticUnaryFunction.allCases {
      let fields = BNNSArithmeticUnary(in: x, in_type: BNNSSample, out: x, out_type: BNNSSample)
      let filter = try filter(function.bnnsArithmeticFunction, fields)
      defer { BNNSFilterDestroy(filter) }
      let layer = try XCTUnwrap(
        BNNS.UnaryArithmeticLayer(
          input: x, inputDescriptorType: .sample, output: x, outputDescriptorType: .sample, function: function,
          activation: .tanh))
      let (y1, y2) = (arrays.zeros(shape, n), arrays.zeros(shape, n))
      let (dx1, dx2) = (arrays.zeros(shape, n), arrays.zeros(shape, n))
      try layer.apply(batchSize: n, input: x, output: y1)
      try layer.applyBackward(
        batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1)
      apply(filter, [x], y2)
      applyBackward(filter, [x], y2, dy, [dx2])
      XCTAssertEqual(y1.floats(n).map(\.bitPattern), y2.floats(n).map(\.bitPattern), "\(function)")
      XCTAssertEqual(dx1.floats(n).map(\.bitPattern), dx2.floats(n).map(\.bitPattern), "\(function) gradient")
    }
  }

  func testBinaryArithmetic() throws {
    let shape = BNNS.Shape.imageCHW(4, 3, 2), row = BNNS.Shape.imageCHW(4, 1, 2)
    let a = arrays.numbers(shape, n), b = arrays.numbers(row), dy = arrays.numbers(shape, n)
    for function in BNNS.ArithmeticBinaryFunction.allCases {
      let fields = BNNSArithmeticBinary(
        in1: a, in1_type: BNNSSample, in2: b, in2_type: BNNSParameter, out: a, out_type: BNNSSample)
      let filter = try filter(function.bnnsArithmeticFunction, fields)
      defer { BNNSFilterDestroy(filter) }
      let layer = try XCTUnwrap(
        BNNS.BinaryArithmeticLayer(
          inputA: a, inputADescriptorType: .sample, inputB: b, inputBDescriptorType: .parameter, output: a,
          outputDescriptorType: .sample, function: function, activation: .tanh))
      let (y1, y2) = (arrays.zeros(shape, n), arrays.zeros(shape, n))
      let (da1, da2, db1, db2) = (arrays.zeros(shape, n), arrays.zeros(shape, n), arrays.zeros(row), arrays.zeros(row))
      try layer.apply(batchSize: n, inputA: a, inputB: b, output: y1)
      apply(filter, [a, b], y2)
      XCTAssertEqual(y1.floats(n).map(\.bitPattern), y2.floats(n).map(\.bitPattern), "\(function)")
      func backward() throws {
        try layer.applyBackward(
          batchSize: n, inputA: a, inputB: b, output: y1, outputGradient: dy, generatingInputAGradient: da1,
          generatingInputBGradient: db1)
      }
      if [.flooringDivide, .truncatingDivide, .truncatingRemainder].contains(function) {
        XCTAssertThrowsError(try backward())
        XCTAssertTrue(BNNS.lastErrorReason.hasSuffix("has no gradient"), BNNS.lastErrorReason)
        continue
      }
      try backward()
      applyBackward(filter, [a, b], y2, dy, [da2, db2])
      XCTAssertEqual(da1.floats(n).map(\.bitPattern), da2.floats(n).map(\.bitPattern), "\(function) gradient of A")
      XCTAssertEqual(db1.floats().map(\.bitPattern), db2.floats().map(\.bitPattern), "\(function) gradient of B")
    }
  }

  func testTernaryArithmetic() throws {
    let shape = BNNS.Shape.vector(6)
    let x = (0..<3).map { _ in arrays.numbers(shape, n) }, dy = arrays.numbers(shape, n)
    let fields = BNNSArithmeticTernary(
      in1: x[0], in1_type: BNNSSample, in2: x[1], in2_type: BNNSSample, in3: x[2], in3_type: BNNSSample, out: dy,
      out_type: BNNSSample)
    let filter = try filter(BNNSArithmeticMultiplyAdd, fields)
    defer { BNNSFilterDestroy(filter) }
    let layer = try XCTUnwrap(
      BNNS.TernaryArithmeticLayer(
        inputA: x[0], inputADescriptorType: .sample, inputB: x[1], inputBDescriptorType: .sample, inputC: x[2],
        inputCDescriptorType: .sample, output: dy, outputDescriptorType: .sample, function: .multiplyAdd,
        activation: .tanh))
    let (y1, y2) = (arrays.zeros(shape, n), arrays.zeros(shape, n))
    let dx1 = (0..<3).map { _ in arrays.zeros(shape, n) }, dx2 = (0..<3).map { _ in arrays.zeros(shape, n) }
    try layer.apply(batchSize: n, inputA: x[0], inputB: x[1], inputC: x[2], output: y1)
    try layer.applyBackward(
      batchSize: n, inputA: x[0], inputB: x[1], inputC: x[2], output: y1, outputGradient: dy,
      generatingInputAGradient: dx1[0], generatingInputBGradient: dx1[1], generatingInputCGradient: dx1[2])
    apply(filter, x, y2)
    applyBackward(filter, x, y2, dy, dx2)
    assertSameBits(y1, y2, n, "output")
    for k in 0..<3 { assertSameBits(dx1[k], dx2[k], n, "gradient \(k)") }
  }

  func testBroadcastMatrixMultiply() throws {
    let left = BNNS.Shape.matrixFirstMajor(4, 5), right = BNNS.Shape.matrixFirstMajor(5, 3)
    let product = BNNS.Shape.matrixFirstMajor(4, 3)
    let a = arrays.numbers(left, n), b = arrays.numbers(right, n), dy = arrays.numbers(product, n)
    for weights in [nil, "a", "b"] {
      var parameters = BNNSLayerParametersBroadcastMatMul()
      (parameters.alpha, parameters.iA_desc, parameters.iB_desc, parameters.o_desc) = (0.5, a, b, dy)
      (parameters.a_is_weights, parameters.b_is_weights) = (weights == "a", weights == "b")
      let filter = try XCTUnwrap(BNNSFilterCreateLayerBroadcastMatMul(&parameters, nil))
      defer { BNNSFilterDestroy(filter) }
      let layer = try XCTUnwrap(
        BNNS.BroadcastMatrixMultiplyLayer(
          inputA: a, transposed: false, isWeights: weights == "a", inputB: b, transposed: false,
          isWeights: weights == "b", output: dy, alpha: 0.5, accumulatesToOutput: false, isQuadratic: false))
      let (y1, y2) = (arrays.zeros(product, n), arrays.zeros(product, n))
      let (da1, db1) = (arrays.zeros(left, n), arrays.zeros(right, n))
      var (da2, db2, dyC) = (arrays.zeros(left, n), arrays.zeros(right, n), dy)
      try layer.apply(batchSize: n, inputA: a, inputB: b, output: y1)
      try layer.applyBackward(
        batchSize: n, inputA: a, inputB: b, output: y1, outputGradient: dy, generatingInputAGradient: da1,
        generatingInputBGradient: db1)
      switch weights {
      case nil:
        XCTAssertEqual(BNNSFilterApplyTwoInputBatch(filter, n, a.data!, 20, b.data!, 15, y2.data!, 12), 0)
        XCTAssertEqual(
          BNNSFilterApplyBackwardTwoInputBatch(
            filter, n, a.data, 20, &da2, 20, b.data, 15, &db2, 15, y2.data, 12, &dyC, 12, nil, nil), 0)
      case "a":
        XCTAssertEqual(BNNSFilterApplyBatch(filter, n, b.data!, 15, y2.data!, 12), 0)
        XCTAssertEqual(
          BNNSFilterApplyBackwardBatch(filter, n, b.data, 15, &db2, 15, y2.data, 12, &dyC, 12, &da2, nil), 0)
      default:
        XCTAssertEqual(BNNSFilterApplyBatch(filter, n, a.data!, 20, y2.data!, 12), 0)
        XCTAssertEqual(
          BNNSFilterApplyBackwardBatch(filter, n, a.data, 20, &da2, 20, y2.data, 12, &dyC, 12, &db2, nil), 0)
      }
      assertSameBits(y1, y2, n, "output")
      assertSameBits(da1, da2, n, "gradient of A")
      assertSameBits(db1, db2, n, "gradient of B")
    }
  }

  func testMatrixMultiplication() throws {
    let a = arrays.numbers(.matrixFirstMajor(4, 5)), b = arrays.numbers(.matrixFirstMajor(3, 5))
    let y1 = arrays.zeros(.matrixFirstMajor(4, 3)), y2 = arrays.zeros(.matrixFirstMajor(4, 3))
    var (aC, bC, yC) = (a, b, y2)
    XCTAssertEqual(BNNSMatMul(false, true, 2, &aC, &bC, &yC, nil, nil), 0)
    let bytes = try XCTUnwrap(
      BNNS.matrixMultiplicationWorkspaceSize(
        inputA: a, transposed: false, inputB: b, transposed: true, output: y1, alpha: 2))
    let workspace = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes + 64, alignment: 64)
    defer { workspace.deallocate() }
    for scratch in [nil, workspace] {
      try BNNS.applyMatrixMultiplication(
        inputA: a, transposed: false, inputB: b, transposed: true, output: y1, alpha: 2, workspace: scratch)
      assertSameBits(y1, y2, 1, "product")
    }
    XCTAssertNil(
      BNNS.matrixMultiplicationWorkspaceSize(
        inputA: a, transposed: true, inputB: b, transposed: true, output: y1, alpha: 2))
  }
}
