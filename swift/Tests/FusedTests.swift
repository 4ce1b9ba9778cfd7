// Fused layers of one, two and three inputs give the bits of the C calls, forward and backward.

import Accelerate
import XCTest

final class FusedTests: XCTestCase {
  private let arrays = Arrays()
  private let n = 3

  /// Stage structures of a C filter: what the first is, and a batch normalization after it.
  private func filter<First>(_ type: BNNSFilterType, _ first: First, _ norm: BNNSLayerParametersNormalization) throws
    -> BNNSFilter
  {
    let made = withUnsafePointer(to: first) { first in
      withUnsafePointer(to: norm) { norm in
        var layers = [UnsafeRawPointer(first), UnsafeRawPointer(norm)]
        return BNNSFilterCreateFusedLayer(2, [type, BNNSBatchNorm], &layers, nil)
      }
    }
    return try XCTUnwrap(made)
  }

  private func normalization(_ shape: D, _ beta: D, _ gamma: D) -> BNNSLayerParametersNormalization {
    var norm = BNNSLayerParametersNormalization()
    (norm.i_desc, norm.o_desc, norm.beta_desc, norm.gamma_desc) = (shape, shape, beta, gamma)
    (norm.momentum, norm.epsilon) = (0.9, 1e-5)
    norm.activation = BNNS.ActivationFunction.rectifiedLinear.bnnsActivation
    return norm
  }

  /// One input: the layer and the filter, forward and backward with all parameter gradients.
  private func assertSame(
    _ layer: BNNS.FusedLayer?, _ filter: BNNSFilter, _ input: BNNS.Shape, _ output: BNNS.Shape,
    _ parameters: [BNNS.Shape], line: UInt = #line
  ) throws {
    let layer = try XCTUnwrap(layer, BNNS.lastErrorReason, line: line)
    defer { BNNSFilterDestroy(filter) }
    let x = arrays.numbers(input, n), dy = arrays.numbers(output, n)
    let (xs, ys) = (input.batchStride, output.batchStride)
    let (y1, y2, dx1) = (arrays.zeros(output, n), arrays.zeros(output, n), arrays.zeros(input, n))
    let dw1 = parameters.map { arrays.zeros($0) }
    var (dx2, dw2, dyC) = (arrays.zeros(input, n), parameters.map { arrays.zeros($0) }, dy)
    try layer.apply(batchSize: n, input: x, output: y1, for: .training)
    try layer.applyBackward(
      batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1,
      generatingParameterGradients: dw1)
    XCTAssertEqual(BNNSFusedFilterApplyBatch(filter, n, x.data!, xs, y2.data!, ys, true), 0)
    dw2.withUnsafeMutableBufferPointer { buffer in
      var at: [UnsafeMutablePointer<D>?] = (0..<parameters.count).map { buffer.baseAddress! + $0 }
      XCTAssertEqual(
        BNNSFusedFilterApplyBackwardBatch(filter, n, x.data, xs, &dx2, xs, y2.data, ys, &dyC, ys, &at), 0)
    }
    assertSameBits(y1, y2, n, "output", line: line)
    assertSameBits(dx1, dx2, n, "input gradient", line: line)
    // A bias before a batch normalization has no gradient but rounding: its bits count too.
    for k in parameters.indices {
      XCTAssertEqual(dw1[k].floats().map(\.bitPattern), dw2[k].floats().map(\.bitPattern), "gradient \(k)", line: line)
    }
    // An entry without data is skipped, and an empty list asks for none.
    var some = dw1
    some[0].data = nil
    try layer.applyBackward(
      batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1,
      generatingParameterGradients: some)
    try layer.applyBackward(
      batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1,
      generatingParameterGradients: [])
    assertSameBits(dx1, dx2, n, "input gradient alone", line: line)
  }

  func testConvolutionAndNormalization() throws {
    let input = BNNS.Shape.imageCHW(6, 5, 2), output = BNNS.Shape.imageCHW(6, 5, 4)
    let kernels = BNNS.Shape.convolutionWeightsOIHW(3, 3, 2, 4), channels = BNNS.Shape.vector(4)
    let (x, y) = (D(dataType: .float, shape: input), D(dataType: .float, shape: output))
    let (w, b) = (arrays.numbers(kernels), arrays.numbers(channels))
    let (beta, gamma) = (arrays.numbers(channels), arrays.numbers(channels))
    var convolution = BNNSLayerParametersConvolution()
    (convolution.i_desc, convolution.w_desc, convolution.o_desc, convolution.bias) = (x, w, y, b)
    (convolution.x_padding, convolution.y_padding) = (1, 1)
    let norm = normalization(y, beta, gamma)
    let type = BNNS.NormalizationType.batch(movingMean: nil, movingVariance: nil)
    let parameters = [kernels, channels, channels, channels]
    try assertSame(
      BNNS.FusedConvolutionNormalizationLayer(
        input: x, output: y, convolutionWeights: w, convolutionBias: b, convolutionStride: (1, 1),
        convolutionDilationStride: (1, 1), convolutionPadding: .symmetric(x: 1, y: 1), normalization: type,
        normalizationBeta: beta, normalizationGamma: gamma, normalizationMomentum: 0.9, normalizationEpsilon: 1e-5,
        normalizationActivation: .rectifiedLinear), filter(BNNSConvolution, convolution, norm), input, output,
      parameters)
    try assertSame(
      BNNS.FusedParametersLayer(
        input: x, output: y,
        fusedLayerParameters: [
          BNNS.FusedConvolutionParameters(
            type: .standard, weights: w, bias: b, stride: (1, 1), dilationStride: (1, 1), groupSize: 1,
            padding: .symmetric(x: 1, y: 1)),
          BNNS.FusedNormalizationParameters(
            type: type, beta: beta, gamma: gamma, momentum: 0.9, epsilon: 1e-5, activation: .rectifiedLinear),
        ]), filter(BNNSConvolution, convolution, norm), input, output, parameters)
  }

  func testFullyConnectedAndNormalization() throws {
    let matrix = BNNS.Shape.matrixRowMajor(5, 4), outputs = BNNS.Shape.vector(4)
    let (x, y) = (D(dataType: .float, shape: .vector(5)), D(dataType: .float, shape: outputs))
    let (w, b) = (arrays.numbers(matrix), arrays.numbers(outputs))
    let (beta, gamma) = (arrays.numbers(outputs), arrays.numbers(outputs))
    var dense = BNNSLayerParametersFullyConnected()
    (dense.i_desc, dense.w_desc, dense.o_desc, dense.bias) = (x, w, y, b)
    let type = BNNS.NormalizationType.batch(movingMean: nil, movingVariance: nil)
    let parameters = [matrix, outputs, outputs, outputs]
    let norm = normalization(y, beta, gamma)
    try assertSame(
      BNNS.FusedFullyConnectedNormalizationLayer(
        input: x, output: y, fullyConnectedWeights: w, fullyConnectedBias: b, normalization: type,
        normalizationBeta: beta, normalizationGamma: gamma, normalizationMomentum: 0.9, normalizationEpsilon: 1e-5,
        normalizationActivation: .rectifiedLinear), filter(BNNSFullyConnected, dense, norm), .vector(5), outputs,
      parameters)
    try assertSame(
      BNNS.FusedParametersLayer(
        input: x, output: y,
        fusedLayerParameters: [
          BNNS.FusedFullyConnectedParameters(weights: w, bias: b),
          BNNS.FusedNormalizationParameters(
            type: type, beta: beta, gamma: gamma, momentum: 0.9, epsilon: 1e-5, activation: .rectifiedLinear),
        ]), filter(BNNSFullyConnected, dense, norm), .vector(5), outputs, parameters)
  }

  func testArithmeticAndNormalization() throws {
    let shape = BNNS.Shape.imageCHW(4, 3, 2), channels = BNNS.Shape.vector(2)
    let d = D(dataType: .float, shape: shape), beta = arrays.numbers(channels), gamma = arrays.numbers(channels)
    let stage = BNNS.FusedNormalizationParameters(
      type: .batch(movingMean: nil, movingVariance: nil), beta: beta, gamma: gamma, momentum: 0.9, epsilon: 1e-5,
      activation: .rectifiedLinear)
    var unary = BNNSArithmeticUnary(in: d, in_type: BNNSSample, out: d, out_type: BNNSSample)
    let one = try withUnsafeMutablePointer(to: &unary) {
      try filter(
        BNNSArithmetic,
        BNNSLayerParametersArithmetic(
          arithmetic_function: BNNSArithmeticSquare, arithmetic_function_fields: $0, activation: .identity),
        normalization(d, beta, gamma))
    }
    try assertSame(
      BNNS.FusedParametersLayer(
        input: d, output: d,
        fusedLayerParameters: [
          BNNS.FusedUnaryArithmeticParameters(
            inputDescriptorType: .sample, outputDescriptorType: .sample, function: .square), stage,
        ]), one, shape, shape, [channels, channels])

    var binary = BNNSArithmeticBinary(
      in1: d, in1_type: BNNSSample, in2: d, in2_type: BNNSSample, out: d, out_type: BNNSSample)
    let two = try withUnsafeMutablePointer(to: &binary) {
      try filter(
        BNNSArithmetic,
        BNNSLayerParametersArithmetic(
          arithmetic_function: BNNSArithmeticMultiply, arithmetic_function_fields: $0, activation: .identity),
        normalization(d, beta, gamma))
    }
    let twoLayer = BNNS.FusedParametersLayer(
      inputA: d, inputB: d, output: d,
      fusedLayerParameters: [
        BNNS.FusedBinaryArithmeticParameters(
          inputADescriptorType: .sample, inputBDescriptorType: .sample, outputDescriptorType: .sample,
          function: .multiply), stage,
      ])
    try assertSameMany(twoLayer, two, shape, channels, inputs: 2)

    var ternary = BNNSArithmeticTernary(
      in1: d, in1_type: BNNSSample, in2: d, in2_type: BNNSSample, in3: d, in3_type: BNNSSample, out: d,
      out_type: BNNSSample)
    let three = try withUnsafeMutablePointer(to: &ternary) {
      try filter(
        BNNSArithmetic,
        BNNSLayerParametersArithmetic(
          arithmetic_function: BNNSArithmeticMultiplyAdd, arithmetic_function_fields: $0, activation: .identity),
        normalization(d, beta, gamma))
    }
    let threeLayer = BNNS.FusedParametersLayer(
      inputA: d, inputB: d, inputC: d, output: d,
      fusedLayerParameters: [
        BNNS.FusedTernaryArithmeticParameters(
          inputADescriptorType: .sample, inputBDescriptorType: .sample, inputCDescriptorType: .sample,
          outputDescriptorType: .sample, function: .multiplyAdd), stage,
      ])
    try assertSameMany(threeLayer, three, shape, channels, inputs: 3)
  }

  private func assertSameMany(
    _ layer: BNNS.FusedParametersLayer?, _ filter: BNNSFilter, _ shape: BNNS.Shape, _ channels: BNNS.Shape, inputs: Int
  ) throws {
    let layer = try XCTUnwrap(layer, BNNS.lastErrorReason)
    defer { BNNSFilterDestroy(filter) }
    let s = shape.batchStride
    let x = (0..<inputs).map { _ in arrays.numbers(shape, n) }, dy = arrays.numbers(shape, n)
    let (y1, y2) = (arrays.zeros(shape, n), arrays.zeros(shape, n))
    let dx1 = x.map { _ in arrays.zeros(shape, n) }, dw1 = [arrays.zeros(channels), arrays.zeros(channels)]
    var (dx2, dw2, dyC) = (x.map { _ in arrays.zeros(shape, n) }, [arrays.zeros(channels), arrays.zeros(channels)], dy)
    if inputs == 2 {
      try layer.apply(batchSize: n, inputA: x[0], inputB: x[1], output: y1, for: .training)
      try layer.applyBackward(
        batchSize: n, inputA: x[0], inputB: x[1], output: y1, outputGradient: dy, generatingInputAGradient: dx1[0],
        generatingInputBGradient: dx1[1], generatingParameterGradients: dw1)
    } else {
      try layer.apply(batchSize: n, inputA: x[0], inputB: x[1], inputC: x[2], output: y1, for: .training)
      try layer.applyBackward(
        batchSize: n, inputA: x[0], inputB: x[1], inputC: x[2], output: y1, outputGradient: dy,
        generatingInputAGradient: dx1[0], generatingInputBGradient: dx1[1], generatingInputCGradient: dx1[2],
        generatingParameterGradients: dw1)
    }
    var forward = x.map { UnsafeRawPointer($0.data!) }
    var backward = x.map { UnsafeRawPointer($0.data) }
    let strides = x.map { _ in s }
    XCTAssertEqual(BNNSFusedFilterApplyMultiInputBatch(filter, n, inputs, &forward, strides, y2.data!, s, true), 0)
    dx2.withUnsafeMutableBufferPointer { dx in
      dw2.withUnsafeMutableBufferPointer { dw in
        var gradients = (0..<inputs).map { dx.baseAddress! + $0 }
        var slots: [UnsafeMutablePointer<D>?] = [dw.baseAddress!, dw.baseAddress! + 1]
        XCTAssertEqual(
          BNNSFusedFilterApplyBackwardMultiInputBatch(
            filter, n, inputs, &backward, strides, &gradients, strides, y2.data, s, &dyC, s, &slots), 0)
      }
    }
    assertSameBits(y1, y2, n, "output")
    for k in 0..<inputs { assertSameBits(dx1[k], dx2[k], n, "gradient of input \(k)") }
    for k in 0..<2 { assertSameBits(dw1[k], dw2[k], 1, "gradient of parameter \(k)") }
  }

  func testQuantization() throws {
    let x = arrays.numbers(.vector(5)), w = arrays.numbers(.matrixRowMajor(5, 4))
    let scale = arrays.keep(.allocate(initializingFrom: [50, 60, 70, 80] as [Float], shape: .vector(4)))
    let y = arrays.keep(.allocate(repeating: Int8(0), shape: .vector(4)))
    var quantization = BNNS.FusedQuantizationParameters(scale: scale, bias: nil)
    quantization.axis = 0
    let fused = try XCTUnwrap(
      BNNS.FusedParametersLayer(
        input: x, output: y,
        fusedLayerParameters: [BNNS.FusedFullyConnectedParameters(weights: w, bias: nil), quantization]),
      BNNS.lastErrorReason)
    try fused.apply(batchSize: 1, input: x, output: y, for: .inference)
    let plain = arrays.zeros(.vector(4)), expected = arrays.keep(.allocate(repeating: Int8(0), shape: .vector(4)))
    let dense = try XCTUnwrap(
      BNNS.FullyConnectedLayer(input: x, output: plain, weights: w, bias: nil, activation: .identity))
    try dense.apply(batchSize: 1, input: x, output: plain)
    try BNNS.quantize(batchSize: 1, input: plain, output: expected, axis: 0, scale: scale, bias: nil)
    XCTAssertEqual(y.makeArray(of: Int8.self), expected.makeArray(of: Int8.self))
    XCTAssertTrue(y.makeArray(of: Int8.self)!.contains { $0 != 0 })
  }
}
