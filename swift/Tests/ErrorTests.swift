// What is refused: initializers return nil, calls throw, and the reason is in words.

import Accelerate
import OpenBNNS
import XCTest

final class ErrorTests: XCTestCase {
  private func floats(_ shape: BNNS.Shape, batch: Int = 1) -> BNNSNDArrayDescriptor {
    let d = BNNSNDArrayDescriptor.allocate(repeating: Float(0), shape: shape, batchSize: batch)
    addTeardownBlock { d.deallocate() }
    return d
  }

  /// The call throws `error`, and the reason is `reason`.
  private func assertRefused(
    _ error: BNNS.Error, _ reason: String, line: UInt = #line, _ call: () throws -> Void
  ) {
    XCTAssertThrowsError(try call(), line: line) { XCTAssertEqual($0 as? BNNS.Error, error, line: line) }
    XCTAssertEqual(BNNS.lastErrorReason, reason, line: line)
  }

  func testCreationReturnsNilWithTheReasonOfTheLibrary() {
    let layer = BNNS.GramLayer(input: floats(.vector(3)), output: floats(.vector(3)), alpha: 1)
    XCTAssertNil(layer)
    XCTAssertEqual(
      BNNS.lastErrorReason,
      "BNNSFilterCreateLayerGram: gram: i_desc has rank 1, expected at least 3: i, j and features")
  }

  func testArraysThatDoNotFitTheLayer() throws {
    let x = floats(.vector(3)), y = floats(.vector(3))
    let layer = try XCTUnwrap(BNNS.ActivationLayer(function: .tanh, input: x, output: y))
    let none = BNNSNDArrayDescriptor(dataType: .float, shape: .vector(3))
    assertRefused(.arrayDescriptorInvalidData, "ActivationLayer.apply: input: the descriptor has no data") {
      try layer.apply(batchSize: 1, input: none, output: y)
    }
    let short = floats(.vector(2))
    assertRefused(
      .arrayDescriptorInvalidData, "ActivationLayer.apply: input has 2 elements a sample, the layer takes 3"
    ) { try layer.apply(batchSize: 1, input: short, output: y) }
    let half = BNNSNDArrayDescriptor.allocate(repeating: Float16(0), shape: .vector(3))
    defer { half.deallocate() }
    assertRefused(.arrayDescriptorInvalidData, "ActivationLayer.apply: output is Float16, the layer takes Float32") {
      try layer.apply(batchSize: 1, input: x, output: half)
    }
    let spread = floats(.vector(3, stride: 2))
    assertRefused(
      .arrayDescriptorInvalidData,
      "ActivationLayer.apply: input spreads 3 elements over 5, the layer over 3: the strides of the shapes differ"
    ) { try layer.apply(batchSize: 1, input: spread, output: y) }
    assertRefused(
      .arrayDescriptorInvalidData,
      "ActivationLayer.applyBackward: generatingInputGradient has 2 elements a sample, the layer takes 3"
    ) {
      try layer.applyBackward(
        batchSize: 1, input: x, output: y, outputGradient: y, generatingInputGradient: short)
    }
  }

  func testABatchThatIsNoNumberIsRefused() throws {
    let x = floats(.vector(3)), y = floats(.vector(3))
    let layer = try XCTUnwrap(BNNS.ActivationLayer(function: .tanh, input: x, output: y))
    XCTAssertThrowsError(try layer.apply(batchSize: -1, input: x, output: y))
    XCTAssertTrue(BNNS.lastErrorReason.hasPrefix("BNNSFilterApplyBatch: "), BNNS.lastErrorReason)
  }

  func testPoolingIndicesAreCounted() throws {
    let x = floats(.imageCHW(4, 4, 1), batch: 2), y = floats(.imageCHW(2, 2, 1), batch: 2)
    let indices = UnsafeMutableBufferPointer<Int>.allocate(capacity: 7)
    defer { indices.deallocate() }
    let layer = try XCTUnwrap(
      BNNS.PoolingLayer(
        type: .max(indices: indices), input: x, output: y, bias: nil, activation: .identity, kernelSize: (2, 2),
        stride: (2, 2), padding: .zero))
    try layer.apply(batchSize: 1, input: x, output: y)
    assertRefused(.arrayDescriptorInvalidData, "PoolingLayer.apply: indices hold 7 entries, the batch has 4 x 2") {
      try layer.apply(batchSize: 2, input: x, output: y)
    }
  }

  func testFusedLayersCountStagesInputsAndGradients() throws {
    let x = floats(.imageCHW(4, 4, 2)), y = floats(.imageCHW(4, 4, 2)), beta = floats(.vector(2))
    let add = BNNS.FusedBinaryArithmeticParameters(
      inputADescriptorType: .sample, inputBDescriptorType: .sample, outputDescriptorType: .sample, function: .add)
    let norm = BNNS.FusedNormalizationParameters(
      type: .batch(movingMean: nil, movingVariance: nil), beta: beta, gamma: beta, epsilon: 1e-5,
      activation: .identity)
    XCTAssertNil(BNNS.FusedParametersLayer(inputA: x, inputB: x, output: y, fusedLayerParameters: [add]))
    XCTAssertEqual(BNNS.lastErrorReason, "FusedParametersLayer: a fused layer has 2 stages, got 1")
    XCTAssertNil(BNNS.FusedParametersLayer(input: x, output: y, fusedLayerParameters: [add, norm]))
    XCTAssertEqual(BNNS.lastErrorReason, "FusedParametersLayer: the first stage takes 2 inputs, got 1")
    struct Foreign: FusableLayerParameters {}
    XCTAssertNil(BNNS.FusedParametersLayer(inputA: x, inputB: x, output: y, fusedLayerParameters: [Foreign(), norm]))
    XCTAssertEqual(
      BNNS.lastErrorReason, "FusedParametersLayer: a stage is none of the structures BNNS.Fused…Parameters")

    let layer = try XCTUnwrap(
      BNNS.FusedParametersLayer(inputA: x, inputB: x, output: y, fusedLayerParameters: [add, norm]))
    assertRefused(
      .layerApplyFail, "FusedParametersLayer.apply: called with 1 input(s), but the first stage takes 2"
    ) { try layer.apply(batchSize: 1, input: x, output: y, for: .training) }
    try layer.apply(batchSize: 1, inputA: x, inputB: x, output: y, for: .training)
    assertRefused(
      .layerApplyFail,
      "FusedParametersLayer.applyBackward: expected 2 parameter gradients in the order of the stages, got 1"
    ) {
      try layer.applyBackward(
        batchSize: 1, inputA: x, inputB: x, output: y, outputGradient: y, generatingInputAGradient: x,
        generatingInputBGradient: x, generatingParameterGradients: [beta])
    }
  }

  func testOptimizersCountTheirLists() {
    let w = floats(.vector(2))
    let adam = BNNS.AdamOptimizer(
      timeStep: 1, gradientScale: 1, regularizationScale: 0, gradientClipping: .none,
      regularizationFunction: BNNSOptimizerRegularizationNone)
    assertRefused(.optimizerStepFail, "AdamOptimizer.step: expected 2 accumulators, got 1") {
      try adam.step(parameters: [w], gradients: [w], accumulators: [w])
    }
    assertRefused(.optimizerStepFail, "AdamOptimizer.step: 1 parameters, but 0 gradients") {
      try adam.step(parameters: [w], gradients: [], accumulators: [w, w])
    }
  }

  func testTheReasonIsOfTheLastRefusalOnThisThread() async throws {
    let x = floats(.vector(3))
    XCTAssertThrowsError(try BNNS.computeNorm(input: x, output: x, axes: [40]))
    XCTAssertEqual(BNNS.lastErrorReason, "computeNorm: no array has an axis 40")  // the overlay's
    XCTAssertNil(BNNS.GramLayer(input: x, output: x, alpha: 1))
    XCTAssertTrue(BNNS.lastErrorReason.hasPrefix("BNNSFilterCreateLayerGram: "))  // then the library's
    XCTAssertThrowsError(try BNNS.computeNorm(input: x, output: x, axes: [40]))
    XCTAssertEqual(BNNS.lastErrorReason, "computeNorm: no array has an axis 40")  // and the overlay's again
    let other = Thread { XCTAssertEqual(BNNS.lastErrorReason, "") }
    other.start()
    while !other.isFinished { usleep(1000) }
  }

  func testViewsThatDoNotFitAreNil() {
    let memory = UnsafeMutableBufferPointer<Float>.allocate(capacity: 5)
    defer { memory.deallocate() }
    XCTAssertNotNil(BNNSNDArrayDescriptor(data: memory, shape: .vector(5)))
    XCTAssertNil(BNNSNDArrayDescriptor(data: memory, shape: .vector(6)))
    XCTAssertNil(BNNSNDArrayDescriptor(data: memory, shape: .vector(3), batchSize: 2))
    XCTAssertNil(BNNSNDArrayDescriptor(data: memory, shape: .vector(-1)))
    XCTAssertNil(BNNSNDArrayDescriptor(data: memory, shape: .tensor3DLastMajor(.max, 4, 1)))
    XCTAssertNil(BNNSNDArrayDescriptor(data: memory, shape: .vector(5))?.makeArray(of: Int32.self))
  }
}
