// Functions without a layer give what the C calls give.

import Accelerate
import XCTest

final class FunctionTests: XCTestCase {
  private let arrays = Arrays()

  private func list(_ numbers: [Float], _ shape: BNNS.Shape) -> D {
    arrays.keep(.allocate(initializingFrom: numbers, shape: shape))
  }

  /// `call` writes into one array and `c` into another of the shape: the same bits.
  private func assertSame(
    _ shape: BNNS.Shape, line: UInt = #line, _ call: (D) throws -> Void, _ c: (UnsafeMutablePointer<D>) -> Int32
  ) throws {
    let y1 = arrays.zeros(shape)
    var y2 = arrays.zeros(shape)
    try call(y1)
    XCTAssertEqual(c(&y2), 0, BNNS.lastErrorReason, line: line)
    assertSameBits(y1, y2, 1, "output", line: line)
  }

  func testClippingAndNorms() throws {
    var x = arrays.numbers([3, 4])
    try assertSame([3, 4]) { try BNNS.clip(to: -0.2...0.3, input: x, output: $0) } _: { BNNSClipByValue($0, &x, -0.2, 0.3) }
    try assertSame([3, 4]) { try BNNS.clipByNorm(threshold: 0.5, input: x, output: $0) } _: { BNNSClipByNorm($0, &x, 0.5, 0) }
    try assertSame([3, 4]) { try BNNS.clipByNorm(threshold: 0.5, input: x, output: $0, axes: [1]) } _: { BNNSClipByNorm($0, &x, 0.5, 2) }
    try assertSame([3]) { try BNNS.computeNorm(input: x, output: $0, axes: [1]) } _: { BNNSComputeNorm($0, &x, BNNSL2Norm, 2) }
    let y = arrays.zeros([3]), dy = arrays.numbers([3])
    try BNNS.computeNorm(input: x, output: y, axes: [1])
    var dyC = dy
    try assertSame([3, 4]) {
      try BNNS.computeNormBackward(input: x, output: y, axes: [1], outputGradient: dy, generatingInputGradient: $0)
    } _: { BNNSComputeNormBackward(x.data!, $0, y.data!, &dyC, BNNSL2Norm, 2) }
    let (a, b) = (list([3, 0], .vector(2)), list([0, 4], .vector(2)))
    try BNNS.clipByGlobalNorm(threshold: 1, inputs: [a, b], outputs: [a, b])
    XCTAssertEqual(a.floats() + b.floats(), [0.6, 0, 0, 0.8])
    XCTAssertThrowsError(try BNNS.clipByGlobalNorm(threshold: 1, inputs: [a, b], outputs: [a]))
    XCTAssertEqual(BNNS.lastErrorReason, "clipByGlobalNorm: 2 inputs, but 1 outputs")
  }

  func testCopies() throws {
    var x = arrays.numbers([3, 4])
    try assertSame(.matrixRowMajor(4, 3)) { try BNNS.copy(x, to: $0) } _: { BNNSCopy($0, &x, nil) }
    try assertSame([3, 4]) {
      try BNNS.copyBandPart(x, to: $0, lowerBandCount: 1, upperBandCount: nil)
    } _: { BNNSBandPart(1, -1, &x, $0, nil) }
    try assertSame([4, 3]) {
      try BNNS.transpose(input: x, output: $0, firstTransposeAxis: 0, secondTransposeAxis: 1)
    } _: { BNNSTranspose($0, &x, 0, 1, nil) }
    try assertSame([6, 4]) { try BNNS.tile(input: x, output: $0) } _: { BNNSTile(&x, $0, nil) }
    var dy = arrays.numbers([6, 4])
    try assertSame([3, 4]) {
      try BNNS.tileBackward(outputGradient: dy, generatingInputGradient: $0)
    } _: { BNNSTileBackward($0, &dy, nil) }
    var blocks = arrays.numbers([1, 4, 2, 3])
    try assertSame([1, 1, 4, 6]) {
      try BNNS.shuffle(.depthToSpaceNCHW, input: blocks, output: $0)
    } _: { BNNSShuffle(BNNSShuffleTypeDepthToSpaceNCHW, &blocks, $0, nil) }
  }

  func testGatherAndScatter() throws {
    var x = arrays.numbers([4, 3])
    var rows = arrays.keep(.allocate(initializingFrom: [2, 0] as [Int32], shape: .vector(2)))
    try assertSame([2, 3]) { try BNNS.gather(input: x, indices: rows, output: $0, axis: 0) } _: { BNNSGather(0, &x, &rows, $0, nil) }
    var small = arrays.numbers([2, 3])
    try assertSame([4, 3]) { try BNNS.scatter(input: small, indices: rows, output: $0, axis: 0) } _: {
      BNNSScatter(0, BNNSReduceFunctionNone, &small, &rows, $0, nil)
    }
    try assertSame([4, 3]) {
      try BNNS.scatter(input: small, indices: rows, output: $0, axis: 0, reductionFunction: .sum)
    } _: { BNNSScatter(0, BNNSReduceFunctionSum, &small, &rows, $0, nil) }
    var places = arrays.keep(.allocate(initializingFrom: [3, 1, 0, 2] as [Int32], shape: [2, 2]))
    try assertSame(.vector(2)) { try BNNS.gatherND(input: x, indices: places, output: $0) } _: { BNNSGatherND(&x, &places, $0, nil) }
    var two = arrays.numbers(.vector(2))
    try assertSame([4, 3]) { try BNNS.scatterND(input: two, indices: places, output: $0) } _: {
      BNNSScatterND(BNNSReduceFunctionNone, &two, &places, $0, nil)
    }
    try assertSame([4, 3]) {
      try BNNS.scatterND(input: two, indices: places, output: $0, reductionFunction: .sum)
    } _: { BNNSScatterND(BNNSReduceFunctionSum, &two, &places, $0, nil) }
  }

  func testActivationReductionAndQuantization() throws {
    let x = arrays.numbers([3, 4])
    var activation = BNNSLayerParametersActivation()
    (activation.i_desc, activation.activation, activation.axis_flags) = (x, BNNS.ActivationFunction.softmax.bnnsActivation, 2)
    try assertSame([3, 4]) {
      try BNNS.applyActivation(activation: .softmax, axes: [1], input: x, output: $0, batchSize: 1)
    } _: {
      activation.o_desc = $0.pointee
      return BNNSDirectApplyActivationBatch(&activation, nil, 1, 12, 12)
    }
    activation.axis_flags = 0
    try assertSame([3, 4]) {
      try BNNS.applyActivation(activation: .softmax, input: x, output: $0, batchSize: 1)
    } _: {
      activation.o_desc = $0.pointee
      return BNNSDirectApplyActivationBatch(&activation, nil, 1, 12, 12)
    }
    var reduction = BNNSLayerParametersReduction()
    (reduction.i_desc, reduction.reduce_func, reduction.epsilon) = (x, BNNSReduceFunctionSumSquare, 0)
    try assertSame([3, 1]) { try BNNS.applyReduction(.sumOfSquares, input: x, output: $0, weights: nil) } _: {
      reduction.o_desc = $0.pointee
      return BNNSDirectApplyReduction(&reduction, nil)
    }
    let positive = list([1, 2, 3, 4], [2, 2]), logs = arrays.zeros([2, 1])
    try BNNS.applyReduction(.sumOfLogs(epsilon: 1), input: positive, output: logs, weights: nil)
    XCTAssertEqual(Double(logs.floats()[0]), 1.791759, accuracy: 1e-5)  // log 2 + log 3
    let scale = list([2], .vector(1)), bias = list([1], .vector(1)), y = arrays.zeros([2, 2])
    try BNNS.quantize(batchSize: 1, input: positive, output: y, scale: scale, bias: bias)
    XCTAssertEqual(y.floats(), [3, 5, 7, 9])
    try BNNS.dequantize(batchSize: 1, input: positive, output: y, scale: scale, bias: bias)
    XCTAssertEqual(y.floats(), [0, 0.5, 1, 1.5])
    XCTAssertThrowsError(
      try BNNS.quantize(batchSize: 1, input: positive, output: y, axis: -1, scale: scale, bias: bias))
  }

  func testComparisons() throws {
    let a = list([1, 2, 3], .vector(3)), b = list([2, 2, 2], .vector(3))
    let y = arrays.keep(.allocate(repeating: false, shape: .vector(3)))
    let expected: [(BNNS.RelationalOperator, [Bool])] = [
      (.equal, [false, true, false]), (.notEqual, [true, false, true]), (.less, [true, false, false]),
      (.lessEqual, [true, true, false]), (.greater, [false, false, true]), (.greaterEqual, [false, true, true]),
    ]
    for (relation, truth) in expected {
      try BNNS.compare(a, b, using: relation, output: y)
      XCTAssertEqual(y.makeArray(of: Bool.self), truth)
    }
    let p = arrays.keep(.allocate(initializingFrom: [false, false, true, true], shape: .vector(4)))
    let q = arrays.keep(.allocate(initializingFrom: [false, true, false, true], shape: .vector(4)))
    let z = arrays.keep(.allocate(repeating: false, shape: .vector(4)))
    let logic: [(BNNS.RelationalOperator, [Bool])] = [
      (.and, [false, false, false, true]), (.or, [false, true, true, true]), (.nand, [true, true, true, false]),
      (.nor, [true, false, false, false]), (.xor, [false, true, true, false]), (.not, [true, true, false, false]),
    ]
    for (relation, truth) in logic {
      try BNNS.compare(p, q, using: relation, output: z)
      XCTAssertEqual(z.makeArray(of: Bool.self), truth)
    }
  }

  func testTopK() throws {
    let x = list([1, 5, 3, 4], .vector(4)), best = arrays.zeros(.vector(2))
    let at = arrays.keep(.allocate(repeating: Int32(-1), shape: .vector(2)))
    try BNNS.applyTopK(k: 2, input: x, bestValues: best, bestIndices: at, axis: 0, batchSize: 1)
    XCTAssertEqual(best.floats(), [5, 4])
    XCTAssertEqual(at.makeArray(of: Int32.self), [1, 3])
    let asked = arrays.keep(.allocate(initializingFrom: [3] as [Int32], shape: .vector(1)))
    let truth = arrays.keep(.allocate(repeating: false, shape: .vector(1)))
    try BNNS.applyInTopK(k: 2, input: x, testIndices: asked, output: truth, axis: 0, batchSize: 1)
    XCTAssertEqual(truth.makeArray(of: Bool.self), [true])
  }

  func testCropAndResize() throws {
    var x = arrays.numbers(.tensor4DLastMajor(6, 6, 2, 1))
    var boxes = list([0, 0, 0, 3, 4, 0, 1, 1, 5, 4], .matrixRowMajor(5, 2))
    let cropped = BNNS.Shape.tensor4DLastMajor(2, 3, 2, 2)
    let layer = BNNS.CropResizeLayer(
      coordinatesAreNormalized: false, spatialScale: 1, samplingMode: .alignCorners,
      boxCoordinateMode: .cornersHeightFirst)
    var parameters = BNNSLayerParametersCropResize(
      normalized_coordinates: false, spatial_scale: 1, extrapolation_value: 0,
      sampling_mode: BNNSLinearSamplingAlignCorners, box_coordinate_mode: BNNSCornersHeightFirst,
      method: BNNSInterpolationMethodLinear)
    try assertSame(cropped) { try layer.apply(input: x, regionOfInterest: boxes, output: $0) } _: {
      BNNSCropResize(&parameters, &x, &boxes, $0, nil)
    }
    var dy = arrays.numbers(cropped)
    try assertSame(x.shape) {
      try layer.applyBackward(regionOfInterest: boxes, outputGradient: dy, generatingInputGradient: $0)
    } _: { BNNSCropResizeBackward(&parameters, $0, &boxes, &dy, nil) }
  }

  func testNearestNeighbors() {
    let store = BNNS.NearestNeighbors(capacity: 4, dimensionCount: 2, neighborCount: 2, dataType: .float)
    store.append(samples: list([0, 0, 3, 4, 1, 0], .matrixRowMajor(2, 3)))
    let at = arrays.keep(.allocate(repeating: Int32(-1), shape: .vector(2))), far = arrays.zeros(.vector(2))
    store.apply(index: 0, outputIndices: at, outputDistances: far)
    XCTAssertEqual(at.makeArray(of: Int32.self), [0, 2])
    XCTAssertEqual(far.floats(), [0, 1])
    let all = arrays.keep(.allocate(repeating: Int32(-1), shape: .matrixRowMajor(2, 3)))
    store.apply(index: nil, outputIndices: all, outputDistances: D())
    XCTAssertEqual(all.makeArray(of: Int32.self), [0, 2, 1, 2, 2, 0])
    store.apply(index: nil, outputIndices: at, outputDistances: far)  // too small for all
    XCTAssertEqual(BNNS.lastErrorReason, "NearestNeighbors.apply: outputIndices have 2 elements, expected 6")
    store.append(samples: list([1, 2, 3], .vector(3)))
    XCTAssertEqual(
      BNNS.lastErrorReason, "NearestNeighbors.append: 3 elements are not a whole number of samples of 2")
  }
}
