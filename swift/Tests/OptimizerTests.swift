// Optimizers change parameters as the C call does, bit for bit.

import Accelerate
import XCTest

final class OptimizerTests: XCTestCase {
  private let arrays = Arrays()

  /// Three steps of an optimizer and of the C call with fields of the same meaning.
  private func assertSame<Fields>(
    _ optimizer: any BNNSOptimizer, _ function: BNNSOptimizerFunction, accumulators: Int, line: UInt = #line,
    _ fields: Fields
  ) throws {
    XCTAssertEqual(optimizer.bnnsOptimizerFunction, function, line: line)
    XCTAssertEqual(optimizer.accumulatorCountMultiplier, accumulators, line: line)
    let shapes = [BNNS.Shape.vector(7), .matrixRowMajor(3, 4)]
    let w1 = shapes.map { arrays.numbers($0) }
    let dw = shapes.map { arrays.numbers($0) }
    let w2 = zip(w1, shapes).map { arrays.keep(.allocate(initializingFrom: $0.floats(), shape: $1)) }
    let before = w1.map { $0.floats() }
    let state1 = (0..<accumulators).flatMap { _ in shapes.map { arrays.zeros($0) } }
    let state2 = (0..<accumulators).flatMap { _ in shapes.map { arrays.zeros($0) } }
    for _ in 0..<3 {
      try optimizer.step(parameters: w1, gradients: dw, accumulators: state1, filterParameters: nil)
      var (w, g, s, f) = (w2, dw, state2, fields)
      w.withUnsafeMutableBufferPointer { w in
        g.withUnsafeMutableBufferPointer { g in
          s.withUnsafeMutableBufferPointer { s in
            var parameters = w.indices.map { w.baseAddress! + $0 }
            var gradients = g.indices.map { UnsafePointer(g.baseAddress! + $0) }
            var accumulators: [UnsafeMutablePointer<D>?] = s.indices.map { s.baseAddress! + $0 }
            XCTAssertEqual(
              BNNSOptimizerStep(function, &f, 2, &parameters, &gradients, &accumulators, nil), 0, BNNS.lastErrorReason,
              line: line)
          }
        }
      }
    }
    for k in 0..<2 {
      assertSameBits(w1[k], w2[k], 1, "parameter \(k)", line: line)
      XCTAssertNotEqual(w1[k].floats(), before[k], line: line)
    }
  }

  func testAdam() throws {
    let clippings: [BNNS.GradientClipping] = [
      .none, .byValue(bounds: -0.5...0.5), .byNorm(threshold: 0.3), .byGlobalNorm(threshold: 0.3),
    ]
    for (kind, clipping) in clippings.enumerated() {
      for amsGrad in [false, true] {
        var fields = BNNSOptimizerAdamWithClippingFields()
        (fields.learning_rate, fields.beta1, fields.beta2, fields.time_step) = (0.01, 0.9, 0.999, 2)
        (fields.epsilon, fields.gradient_scale, fields.regularization_scale) = (1e-8, 0.5, 0.01)
        fields.regularization_func = BNNSOptimizerRegularizationL2
        fields.clipping_func = BNNSOptimizerClippingFunction(UInt32(kind))
        (fields.clip_gradients_min, fields.clip_gradients_max, fields.clip_gradients_max_norm) =
          kind == 1 ? (-0.5, 0.5, 0) : (0, 0, kind > 1 ? 0.3 : 0)
        try assertSame(
          BNNS.AdamOptimizer(
            learningRate: 0.01, timeStep: 2, gradientScale: 0.5, regularizationScale: 0.01, gradientClipping: clipping,
            regularizationFunction: BNNSOptimizerRegularizationL2, usesAMSGrad: amsGrad),
          amsGrad ? BNNSOptimizerFunctionAdamAMSGradWithClipping : BNNSOptimizerFunctionAdamWithClipping,
          accumulators: amsGrad ? 3 : 2, fields)
        fields.regularization_func = BNNSOptimizerRegularizationNone
        fields.time_step = 1
        try assertSame(
          BNNS.AdamWOptimizer(
            learningRate: 0.01, gradientScale: 0.5, weightDecay: 0.01, gradientClipping: clipping,
            usesAMSGrad: amsGrad),
          amsGrad ? BNNSOptimizerFunctionAdamWAMSGradWithClipping : BNNSOptimizerFunctionAdamWWithClipping,
          accumulators: amsGrad ? 3 : 2, fields)
      }
    }
  }

  func testRMSProp() throws {
    for (centered, momentum) in [(false, Float(0)), (true, 0), (false, 0.9), (true, 0.9)] {
      var fields = BNNSOptimizerRMSPropWithClippingFields()
      (fields.learning_rate, fields.alpha, fields.epsilon) = (0.01, 0.99, 1e-8)
      (fields.centered, fields.momentum) = (centered, momentum)
      (fields.gradient_scale, fields.regularization_scale) = (1, 0.01)
      fields.regularization_func = BNNSOptimizerRegularizationL1
      try assertSame(
        BNNS.RMSPropOptimizer(
          centered: centered, momentum: momentum, gradientScale: 1, regularizationScale: 0.01, gradientClipping: .none,
          regularizationFunction: BNNSOptimizerRegularizationL1), BNNSOptimizerFunctionRMSPropWithClipping,
        accumulators: 1 + (centered ? 1 : 0) + (momentum != 0 ? 1 : 0), fields)
    }
  }

  func testSGD() throws {
    for (momentum, nesterov) in [(Float(0), false), (0.9, false), (0.9, true)] {
      for variant in [BNNSSGDMomentumVariant0, BNNSSGDMomentumVariant1, BNNSSGDMomentumVariant2] {
        var fields = BNNSOptimizerSGDMomentumWithClippingFields()
        (fields.learning_rate, fields.momentum, fields.nesterov) = (0.1, momentum, nesterov)
        (fields.gradient_scale, fields.regularization_scale) = (1, 0)
        fields.sgd_momentum_variant = variant
        fields.clipping_func = BNNSOptimizerClippingByValue
        (fields.clip_gradients_min, fields.clip_gradients_max) = (-0.25, 0.25)
        try assertSame(
          BNNS.SGDMomentumOptimizer(
            learningRate: 0.1, momentum: momentum, gradientScale: 1, regularizationScale: 0,
            clipsGradientsTo: -0.25...0.25, usesNesterovMomentum: nesterov,
            regularizationFunction: BNNSOptimizerRegularizationNone, sgdMomentumVariant: variant),
          BNNSOptimizerFunctionSGDMomentumWithClipping, accumulators: momentum != 0 ? 1 : 0, fields)
      }
    }
  }

  func testBoundsAreTheClippingByValue() {
    var adam = BNNS.AdamOptimizer(
      learningRate: 0.01, beta1: 0.9, beta2: 0.999, timeStep: 1, epsilon: 1e-8, gradientScale: 1,
      regularizationScale: 0, clipsGradientsTo: -1...1, regularizationFunction: BNNSOptimizerRegularizationNone)
    XCTAssertEqual(adam.gradientBounds, -1...1)
    adam.gradientBounds = nil
    if case .none = adam.gradientClipping {} else { XCTFail("bounds of nil are no clipping") }
    adam.gradientClipping = .byNorm(threshold: 1)
    XCTAssertNil(adam.gradientBounds)
    adam.gradientBounds = 0...2
    if case .byValue(0...2) = adam.gradientClipping {} else { XCTFail("bounds are a clipping by value") }
    var sgd = BNNS.SGDMomentumOptimizer(
      learningRate: 1, momentum: 0, gradientScale: 1, regularizationScale: 0, usesNestrovMomentum: true,
      regularizationFunction: BNNSOptimizerRegularizationNone, sgdMomentumVariant: BNNSSGDMomentumVariant0)
    XCTAssertTrue(sgd.usesNesterovMomentum)
    sgd.usesNestrovMomentum = false
    XCTAssertFalse(sgd.usesNesterovMomentum)
  }
}
