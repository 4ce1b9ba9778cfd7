// Layers with one input give the bits of the C calls, forward and backward.

import Accelerate
import XCTest

final class UnaryLayerTests: XCTestCase {
  private let arrays = Arrays()

  func testActivation() throws {
    let functions: [BNNS.ActivationFunction] = [
      .rectifiedLinear, .sigmoid, .tanh, .abs, .softmax, .logSoftmax, .logSigmoid, .softsign, .selu, .silu,
      .tanhShrink, .leakyRectifiedLinear(alpha: 0.1), .linear(alpha: 2), .elu(alpha: 0.5), .celu(alpha: 0.5),
      .hardShrink(alpha: 0.3), .softShrink(alpha: 0.3), .scaledTanh(alpha: 2, beta: 0.5),
      .linearWithBias(alpha: 2, beta: 1), .clampedLeakyRectifiedLinear(alpha: 0.1, beta: 0.5),
      .softplus(alpha: 1, beta: 1), .threshold(alpha: 0.2, beta: 0.1), .hardSigmoid(alpha: 0.2, beta: 0.5),
      .hardSwish(alpha: 0, beta: 0), .geluApproximation(alpha: 0.8, beta: 0.04),
      .geluApproximation2(alpha: 0, beta: 0), .clamp(bounds: -0.5...0.5), .identity,
    ]
    for function in functions {
      let d = D(dataType: .float, shape: .vector(17))
      var layer = BNNSLayerParametersActivation()
      (layer.i_desc, layer.o_desc, layer.activation) = (d, d, function.bnnsActivation)
      try assertSame(
        BNNS.ActivationLayer(function: function, input: d, output: d), BNNSFilterCreateLayerActivation(&layer, nil),
        .vector(17), .vector(17))
    }
  }

  func testActivationAlongAxes() throws {
    let shape: BNNS.Shape = [4, 5]
    let d = D(dataType: .float, shape: shape)
    var layer = BNNSLayerParametersActivation()
    (layer.i_desc, layer.o_desc, layer.activation) = (d, d, BNNS.ActivationFunction.softmax.bnnsActivation)
    layer.axis_flags = 2
    try assertSame(
      BNNS.ActivationLayer(function: .softmax, axes: [1], input: d, output: d),
      BNNSFilterCreateLayerActivation(&layer, nil), shape, shape)
    XCTAssertNil(BNNS.ActivationLayer(function: .softmax, axes: [32], input: d, output: d))
    XCTAssertEqual(BNNS.lastErrorReason, "ActivationLayer: no array has an axis 32")
  }

  func testConvolution() throws {
    let input = BNNS.Shape.imageCHW(9, 8, 4), output = BNNS.Shape.imageCHW(4, 4, 6)
    let kernels = BNNS.Shape.convolutionWeightsOIHW(3, 2, 2, 6)
    let weights = arrays.numbers(kernels), bias = arrays.numbers(.vector(6))
    var layer = BNNSLayerParametersConvolution()
    (layer.i_desc, layer.w_desc) = (D(dataType: .float, shape: input), weights)
    (layer.o_desc, layer.bias) = (D(dataType: .float, shape: output), bias)
    layer.activation = BNNS.ActivationFunction.tanh.bnnsActivation
    (layer.x_stride, layer.y_stride, layer.groups) = (2, 2, 2)
    layer.pad = (0, 1, 1, 0)
    try assertSame(
      BNNS.ConvolutionLayer(
        type: .standard, input: layer.i_desc, weights: weights, output: layer.o_desc, bias: bias,
        padding: .asymmetric(left: 0, right: 1, up: 1, down: 0), activation: .tanh, groupCount: 2, stride: (2, 2),
        dilationStride: (1, 1)), BNNSFilterCreateLayerConvolution(&layer, nil), input, output, weights: kernels,
      bias: .vector(6))
  }

  func testTransposedConvolution() throws {
    let input = BNNS.Shape.imageCHW(4, 4, 3), output = BNNS.Shape.imageCHW(8, 8, 2)
    let kernels = BNNS.Shape.convolutionWeightsOIHW(4, 4, 3, 2)
    let weights = arrays.numbers(kernels)
    var layer = BNNSLayerParametersConvolution()
    (layer.i_desc, layer.w_desc, layer.o_desc) = (
      D(dataType: .float, shape: input), weights, D(dataType: .float, shape: output)
    )
    (layer.x_stride, layer.y_stride, layer.x_padding, layer.y_padding) = (2, 2, 1, 1)
    try assertSame(
      BNNS.ConvolutionLayer(
        type: .transposed, input: layer.i_desc, weights: weights, output: layer.o_desc, bias: nil,
        padding: .symmetric(x: 1, y: 1), activation: .identity, groupCount: 1, stride: (2, 2), dilationStride: (1, 1)),
      BNNSFilterCreateLayerTransposedConvolution(&layer, nil), input, output, weights: kernels)
  }

  func testFullyConnected() throws {
    let matrix = BNNS.Shape.matrixRowMajor(7, 5)
    let weights = arrays.numbers(matrix), bias = arrays.numbers(.vector(5))
    var layer = BNNSLayerParametersFullyConnected()
    (layer.i_desc, layer.w_desc) = (D(dataType: .float, shape: .vector(7)), weights)
    (layer.o_desc, layer.bias) = (D(dataType: .float, shape: .vector(5)), bias)
    layer.activation = BNNS.ActivationFunction.sigmoid.bnnsActivation
    try assertSame(
      BNNS.FullyConnectedLayer(
        input: layer.i_desc, output: layer.o_desc, weights: weights, bias: bias, activation: .sigmoid),
      BNNSFilterCreateLayerFullyConnected(&layer, nil), .vector(7), .vector(5), weights: matrix, bias: .vector(5))
  }

  func testSparseWeightsAreThoseOfTheDenseMatrix() throws {
    let values = arrays.keep(.allocate(initializingFrom: [2, 3] as [Float], shape: .vector(2)))
    let places = arrays.keep(.allocate(initializingFrom: [0, 0, 2, 1] as [Int32], shape: .matrixRowMajor(2, 2)))
    let columns = arrays.keep(.allocate(initializingFrom: [0, 2] as [Int32], shape: .vector(2)))
    let rows = arrays.keep(.allocate(initializingFrom: [0, 1, 2] as [Int32], shape: .vector(3)))
    let dense = D(dataType: .float, shape: .matrixRowMajor(3, 2))
    let x = arrays.keep(.allocate(initializingFrom: [1, 10, 100] as [Float], shape: .vector(3)))
    let y = arrays.zeros(.vector(2))
    for layout in [BNNS.SparseLayout.coo(indices: places), .csr(columnIndices: columns, rowStarts: rows)] {
      var packed = D()
      try BNNS.FullyConnectedLayer.sparsify(
        inputLayout: layout, inputDenseShape: dense, inputValues: values, output: &packed,
        sparseParameters: .init(ratio: (1, 2), targetSystem: BNNSTargetSystemGeneric))
      defer { packed.deallocate() }
      let layer = try XCTUnwrap(
        BNNS.FullyConnectedLayer(input: x, output: y, weights: packed, bias: nil, activation: .identity))
      try layer.apply(batchSize: 1, input: x, output: y)
      XCTAssertEqual(y.floats(), [2, 300])
    }
  }

  func testDropout() throws {
    let d = D(dataType: .float, shape: .imageCHW(5, 4, 3))
    var layer = BNNSLayerParametersDropout(i_desc: d, o_desc: d, rate: 0.4, seed: 7, control: 1)
    try assertSame(
      BNNS.DropoutLayer(input: d, output: d, rate: 0.4, seed: 7, control: 1),
      BNNSFilterCreateLayerDropout(&layer, nil), d.shape, d.shape)
  }

  func testGram() throws {
    let input = D(dataType: .float, shape: .imageCHW(5, 4, 3)), output = D(dataType: .float, shape: .matrixRowMajor(3, 3))
    var layer = BNNSLayerParametersGram(alpha: 0.5, i_desc: input, o_desc: output)
    try assertSame(
      BNNS.GramLayer(input: input, output: output, alpha: 0.5), BNNSFilterCreateLayerGram(&layer, nil), input.shape,
      output.shape)
  }

  func testPadding() throws {
    let input = D(dataType: .float, shape: .imageCHW(5, 4, 3)), output = D(dataType: .float, shape: .imageCHW(8, 5, 3))
    for mode in [BNNS.PaddingMode.constantScalar(1.5), .constantBitPattern(0x3fc0_0000), .reflect, .symmetric] {
      var layer = BNNSLayerParametersPadding()
      (layer.i_desc, layer.o_desc, layer.padding_mode) = (input, output, mode.bnnsPaddingMode)
      layer.padding_size.0 = (1, 2)
      layer.padding_size.1 = (0, 1)
      layer.padding_value = mode.paddingBitPattern
      try assertSame(
        BNNS.PaddingLayer(input: input, output: output, mode: mode, size: [(1, 2), (0, 1), (0, 0)]),
        BNNSFilterCreateLayerPadding(&layer, nil), input.shape, output.shape)
    }
    let bytes = D(dataType: .int8, shape: .vector(2)), longer = D(dataType: .int8, shape: .vector(3))
    XCTAssertNotNil(BNNS.PaddingLayer(input: bytes, output: longer, mode: .constantScalar(-7), size: [(0, 1)]))
    XCTAssertNil(BNNS.PaddingLayer(input: bytes, output: longer, mode: .constantScalar(0.5), size: [(0, 1)]))
    XCTAssertEqual(
      BNNS.lastErrorReason,
      "PaddingLayer: the constant is no value of Int8: constantBitPattern takes the bytes of any element")
  }

  func testPermute() throws {
    let input = D(dataType: .float, shape: [2, 3, 4]), output = D(dataType: .float, shape: [4, 2, 3])
    var layer = BNNSLayerParametersPermute()
    (layer.i_desc, layer.o_desc) = (input, output)
    layer.permutation = (2, 0, 1, 0, 0, 0, 0, 0)
    try assertSame(
      BNNS.PermuteLayer(input: input, output: output, permutation: [2, 0, 1]),
      BNNSFilterCreateLayerPermute(&layer, nil), input.shape, output.shape)
    XCTAssertNil(BNNS.PermuteLayer(input: input, output: output, permutation: [0, 1]))
    XCTAssertEqual(BNNS.lastErrorReason, "PermuteLayer: permutation has 2 entries, the rank of input is 3")
  }

  func testReduction() throws {
    let input = D(dataType: .float, shape: [4, 5]), output = D(dataType: .float, shape: [4, 1])
    for function in [BNNS.ReductionFunction.sum, .mean, .max, .sumOfSquares, .sumOfAbsolutes, .l2Norm] {
      var layer = BNNSLayerParametersReduction()
      (layer.i_desc, layer.o_desc, layer.reduce_func) = (input, output, function.bnnsReduceFunction)
      try assertSame(
        BNNS.ReductionLayer(function: function, input: input, output: output, weights: nil),
        BNNSFilterCreateLayerReduction(&layer, nil), input.shape, output.shape)
    }
    let weights = arrays.numbers(input.shape)
    var layer = BNNSLayerParametersReduction()
    (layer.i_desc, layer.o_desc, layer.w_desc, layer.reduce_func) = (input, output, weights, BNNSReduceFunctionSum)
    try assertSame(
      BNNS.ReductionLayer(function: .sum, input: input, output: output, weights: weights),
      BNNSFilterCreateLayerReduction(&layer, nil), input.shape, output.shape, weights: input.shape)
  }

  func testResize() throws {
    let input = D(dataType: .float, shape: .imageCHW(4, 3, 2)), output = D(dataType: .float, shape: .imageCHW(8, 6, 2))
    for method in [BNNS.InterpolationMethod.linear, .nearestNeighbor] {
      var layer = BNNSLayerParametersResize()
      layer.method = method == .linear ? BNNSInterpolationMethodLinear : BNNSInterpolationMethodNearest
      (layer.i_desc, layer.o_desc, layer.align_corners) = (input, output, true)
      try assertSame(
        BNNS.ResizeLayer(interpolationMethod: method, input: input, output: output, alignsCorners: true),
        BNNSFilterCreateLayerResize(&layer, nil), input.shape, output.shape)
    }
  }
}
