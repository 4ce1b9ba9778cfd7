// Pooling, normalization, losses and embedding give the bits of the C calls, forward and backward.

import Accelerate
import XCTest

final class LayerTests: XCTestCase {
  private let arrays = Arrays()
  private let n = 3

  func testPooling() throws {
    let input = BNNS.Shape.imageCHW(7, 6, 3), output = BNNS.Shape.imageCHW(4, 3, 3)
    let count = output.batchStride * n
    let words = UnsafeMutableBufferPointer<Int>.allocate(capacity: count)
    let typed = arrays.keep(.allocate(repeating: Int32(0), shape: output, batchSize: n))
    let wordsC = UnsafeMutablePointer<Int>.allocate(capacity: count)
    defer {
      words.deallocate()
      wordsC.deallocate()
    }
    let types: [(BNNS.PoolingType, Bool)] = [
      (.max(), false), (.max(indices: words), true), (.maxEx(), false), (.maxEx(indicesDescriptor: typed), true),
      (.average(countIncludesPadding: true), false), (.average(countIncludesPadding: false), false), (.l2Norm, false),
    ]
    let x = arrays.numbers(input, n), dy = arrays.numbers(output, n), bias = arrays.numbers(.vector(3))
    for (type, indexed) in types {
      let layer = try XCTUnwrap(
        BNNS.PoolingLayer(
          type: type, input: x, output: dy, bias: bias, activation: .tanh, kernelSize: (2, 3), stride: (2, 2),
          padding: .symmetric(x: 1, y: 1)))
      var parameters = BNNSLayerParametersPooling()
      (parameters.i_desc, parameters.o_desc, parameters.bias) = (x, dy, bias)
      (parameters.activation, parameters.pooling_function) = (
        BNNS.ActivationFunction.tanh.bnnsActivation, type.bnnsPoolingFunction
      )
      (parameters.k_width, parameters.k_height, parameters.x_stride, parameters.y_stride) = (2, 3, 2, 2)
      (parameters.x_padding, parameters.y_padding) = (1, 1)
      let filter = try XCTUnwrap(BNNSFilterCreateLayerPooling(&parameters, nil))
      defer { BNNSFilterDestroy(filter) }
      let (y1, y2, dx1) = (arrays.zeros(output, n), arrays.zeros(output, n), arrays.zeros(input, n))
      var (dx2, db1, db2, dyC) = (arrays.zeros(input, n), arrays.zeros(.vector(3)), arrays.zeros(.vector(3)), dy)
      try layer.apply(batchSize: n, input: x, output: y1)
      try layer.applyBackward(
        batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1,
        generatingBiasGradient: db1)
      db1 = arrays.keep(.allocate(initializingFrom: db1.floats(), shape: .vector(3)))
      let (xs, ys) = (input.batchStride, output.batchStride)
      XCTAssertEqual(
        BNNSPoolingFilterApplyBatch(filter, n, x.data!, xs, y2.data!, ys, indexed ? wordsC : nil, indexed ? ys : 0), 0)
      XCTAssertEqual(
        BNNSPoolingFilterApplyBackwardBatch(
          filter, n, x.data, xs, &dx2, xs, y2.data, ys, &dyC, ys, &db2, indexed ? wordsC : nil, indexed ? ys : 0), 0)
      assertSameBits(y1, y2, n, "output")
      assertSameBits(dx1, dx2, n, "input gradient")
      assertSameBits(db1, db2, 1, "bias gradient")
      if case .max(let buffer?, _, _) = type { XCTAssertEqual(Array(buffer), (0..<count).map { wordsC[$0] }) }
      if case .maxEx(let d?, _, _) = type {
        XCTAssertEqual(d.makeArray(of: Int32.self, batchSize: n)!.map(Int.init), (0..<count).map { wordsC[$0] })
      }
    }
  }

  func testUnpoolingPutsValuesBack() throws {
    let small = BNNS.Shape.imageCHW(2, 2, 1), large = BNNS.Shape.imageCHW(4, 4, 1)
    let indices = UnsafeMutableBufferPointer<Int>.allocate(capacity: 4)
    defer { indices.deallocate() }
    let x = arrays.numbers(large), y = arrays.zeros(small), back = arrays.zeros(large)
    for (type, from, to) in [(BNNS.PoolingType.max(indices: indices), x, y), (.unMax(indices: indices), y, back)] {
      let layer = try XCTUnwrap(
        BNNS.PoolingLayer(
          type: type, input: from, output: to, bias: nil, activation: .identity, kernelSize: (2, 2), stride: (2, 2),
          padding: .zero))
      try layer.apply(batchSize: 1, input: from, output: to)
    }
    var expected = [Float](repeating: 0, count: 16)
    for (k, at) in indices.enumerated() { expected[at] = y.floats()[k] }
    XCTAssertEqual(back.floats(), expected)
  }

  func testNormalization() throws {
    let image = BNNS.Shape.imageCHW(5, 4, 6), channels = BNNS.Shape.vector(6)
    let x = arrays.numbers(image, n), dy = arrays.numbers(image, n)
    let beta = arrays.numbers(channels), gamma = arrays.numbers(channels)
    var options = BNNSFilterParameters(
      options: .useClientPointer, threadCount: 0, allocator: nil, deallocator: nil)  // the moving statistics are ours
    func statistics() -> (D, D) { (arrays.zeros(channels), arrays.ones(channels)) }
    let (m1, v1) = statistics(), (m2, v2) = statistics()
    let types: [(BNNS.NormalizationType, BNNSFilterType)] = [
      (.batch(movingMean: m1, movingVariance: v1), BNNSBatchNorm),
      (.instance(movingMean: nil, movingVariance: nil), BNNSInstanceNorm), (.group(groupCount: 3), BNNSGroupNorm),
      (.layer(normalizationAxis: 0), BNNSLayerNorm),
    ]
    for (type, kind) in types {
      let whole = kind == BNNSLayerNorm
      let (b, g) = whole ? (arrays.numbers(image), arrays.numbers(image)) : (beta, gamma)
      let layer = try XCTUnwrap(
        BNNS.NormalizationLayer(
          type: type, input: x, output: x, beta: b, gamma: g, momentum: 0.9, epsilon: 1e-5, activation: .sigmoid,
          filterParameters: options),
        BNNS.lastErrorReason)
      var parameters = BNNSLayerParametersNormalization()
      (parameters.i_desc, parameters.o_desc, parameters.beta_desc, parameters.gamma_desc) = (x, x, b, g)
      (parameters.momentum, parameters.epsilon) = (0.9, 1e-5)
      parameters.activation = BNNS.ActivationFunction.sigmoid.bnnsActivation
      if kind == BNNSBatchNorm { (parameters.moving_mean_desc, parameters.moving_variance_desc) = (m2, v2) }
      parameters.num_groups = 3
      let filter = try XCTUnwrap(BNNSFilterCreateLayerNormalization(kind, &parameters, &options))
      defer { BNNSFilterDestroy(filter) }
      let s = image.batchStride
      for phase in [BNNS.LearningPhase.training, .inference] {
        let (y1, y2) = (arrays.zeros(image, n), arrays.zeros(image, n))
        try layer.apply(batchSize: n, input: x, output: y1, for: phase)
        XCTAssertEqual(
          BNNSNormalizationFilterApplyBatch(filter, n, x.data!, s, y2.data!, s, phase == .training), 0)
        assertSameBits(y1, y2, n, "output")
        guard phase == .training else { continue }
        var (dx2, db2, dg2, dyC) = (arrays.zeros(image, n), arrays.like(b), arrays.like(b), dy)
        let (dx1, db1, dg1) = (arrays.zeros(image, n), arrays.like(b), arrays.like(b))
        try layer.applyBackward(
          batchSize: n, input: x, output: y1, outputGradient: dy, generatingInputGradient: dx1,
          generatingBetaGradient: db1, generatingGammaGradient: dg1)
        XCTAssertEqual(
          BNNSNormalizationFilterApplyBackwardBatch(filter, n, &dx2, s, y2.data, s, &dyC, s, &db2, &dg2), 0)
        assertSameBits(dx1, dx2, n, "input gradient")
        assertSameBits(db1, db2, 1, "beta gradient")
        assertSameBits(dg1, dg2, 1, "gamma gradient")
      }
    }
    assertSameBits(m1, m2, 1, "moving mean")
    assertSameBits(v1, v2, 1, "moving variance")
  }

  func testLosses() throws {
    let shape = BNNS.Shape.vector(5)
    let x = arrays.keep(.allocate(initializingFrom: arrays.numbers(shape, n).floats(n).map { abs($0) * 0.9 + 0.05 }, shape: shape, batchSize: n))
    let labels = arrays.keep(.allocate(initializingFrom: (0..<5 * n).map { Float($0 % 5 == $0 / 5 ? 1 : 0) }, shape: shape, batchSize: n))
    let weights = arrays.keep(.allocate(initializingFrom: [0.5, 1, 2] as [Float], shape: .vector(3)))
    let functions: [BNNS.LossFunction] = [
      .softmaxCrossEntropy(labelSmoothing: 0.1), .sigmoidCrossEntropy(labelSmoothing: 0.1), .meanSquareError,
      .huber(huberDelta: 0.3), .log, .cosineDistance, .hinge, .meanAbsoluteError, .categoricalCrossEntropy,
    ]
    for function in functions {
      for reduction in [BNNS.LossReduction.none, .sum, .weightedMean, .reductionMean, .zeroWeightMean] {
        let output: BNNS.Shape = reduction.bnnsLossReductionFunction == BNNSLossReductionNone ? shape : .vector(1)
        let (y1, y2, dx1) = (arrays.zeros(output, n), arrays.zeros(output, n), arrays.zeros(shape, n))
        var dx2 = arrays.zeros(shape, n)
        let layer = try XCTUnwrap(
          BNNS.LossLayer(input: x, output: y1, lossFunction: function, lossReduction: reduction), BNNS.lastErrorReason)
        var huber = BNNSLayerParametersLossHuber(
          function: function.bnnsLossFunction, i_desc: x, o_desc: y2, reduction: reduction.bnnsLossReductionFunction,
          huber_delta: 0.3)
        if case .softmaxCrossEntropy = function { huber.huber_delta = 0.1 }  // label_smooth is at the same place
        if case .sigmoidCrossEntropy = function { huber.huber_delta = 0.1 }
        let filter = try XCTUnwrap(BNNSFilterCreateLayerLoss(&huber, nil))
        defer { BNNSFilterDestroy(filter) }
        try layer.apply(
          batchSize: n, input: x, labels: labels, output: y1, weights: weights, broadcastsWeights: false,
          generatingInputGradient: dx1)
        XCTAssertEqual(
          BNNSLossFilterApplyBatch(filter, n, x.data!, 5, labels.data!, 5, weights.data, 3, y2.data!, &dx2, 5), 0)
        assertSameBits(y1, y2, n, "\(function) \(reduction)")
        assertSameBits(dx1, dx2, n, "\(function) \(reduction) gradient")
        guard reduction.bnnsLossReductionFunction == BNNSLossReductionSum else { continue }
        try layer.apply(batchSize: n, input: x, labels: labels, output: y1, generatingInputGradient: dx1)
        XCTAssertEqual(BNNSLossFilterApplyBatch(filter, n, x.data!, 5, labels.data!, 5, nil, 0, y2.data!, &dx2, 5), 0)
        assertSameBits(y1, y2, n, "\(function) without weights")
        assertSameBits(dx1, dx2, n, "\(function) without weights, gradient")
      }
    }
  }

  func testYolo() throws {
    let shape = BNNS.Shape.vector(2 * 2 * 1 * 6)
    let anchors = UnsafeMutablePointer<Float>.allocate(capacity: 2)
    (anchors[0], anchors[1]) = (1, 2)
    defer { anchors.deallocate() }
    let x = arrays.numbers(shape, n), labels = arrays.zeros(shape, n), y1 = arrays.zeros(.vector(1)), y2 = arrays.zeros(.vector(1))
    let (dx1, t) = (arrays.zeros(shape, n), labels.data!.assumingMemoryBound(to: Float.self))
    var dx2 = arrays.zeros(shape, n)
    for (k, value) in [0.5, 0.5, 0.4, 0.4, 1, 1].enumerated() { t[k] = Float(value) }
    let parameters = BNNS.LossFunction.YoloParameters(
      huberDelta: 1, gridColumnCount: 2, gridRowsCount: 2, anchorBoxCount: 1, anchorBoxSize: 6, rescore: true,
      xyScale: 1, whScale: 2, objectScale: 3, noObjectScale: 4, classificationScale: 5, objectMinimumIoU: 0.7,
      noObjectMaximumIoU: 0.3, anchorsData: anchors)
    var layer = BNNSLayerParametersLossYolo(
      function: BNNSLossFunctionYolo, i_desc: x, o_desc: y1, reduction: BNNSLossReductionSum, huber_delta: 1,
      number_of_grid_columns: 2, number_of_grid_rows: 2, number_of_anchor_boxes: 1, anchor_box_size: 6, rescore: true,
      scale_xy: 1, scale_wh: 2, scale_object: 3, scale_no_object: 4, scale_classification: 5, object_minimum_iou: 0.7,
      no_object_maximum_iou: 0.3, anchors_data: anchors)
    let made = BNNS.LossLayer(input: x, output: y1, lossFunction: .yolo(parameters: parameters), lossReduction: .sum)
    let filter = BNNSFilterCreateLayerLoss(&layer, nil)
    defer { BNNSFilterDestroy(filter) }
    let swift = try XCTUnwrap(made, BNNS.lastErrorReason)
    try swift.apply(batchSize: n, input: x, labels: labels, output: y1, generatingInputGradient: dx1)
    XCTAssertEqual(BNNSLossFilterApplyBatch(filter, n, x.data!, 24, labels.data!, 24, nil, 0, y2.data!, &dx2, 24), 0)
    assertSameBits(y1, y2, 1, "yolo")
    assertSameBits(dx1, dx2, n, "yolo gradient")
  }

  func testEmbedding() throws {
    let x = arrays.keep(.allocate(initializingFrom: [0, 3, 3, 1, 2, 0] as [Int32], shape: .vector(2), batchSize: n))
    let table = arrays.numbers(.matrixRowMajor(4, 5)), dy = arrays.numbers(.matrixRowMajor(4, 2), n)
    let (y1, y2) = (arrays.zeros(.matrixRowMajor(4, 2), n), arrays.zeros(.matrixRowMajor(4, 2), n))
    let dw1 = arrays.like(table)
    var (dw2, dyC) = (arrays.like(table), dy)
    let layer = try XCTUnwrap(
      BNNS.EmbeddingLayer(
        input: x, output: y1, dictionary: table, paddingIndex: 2, maximumNorm: 1, normType: .l2,
        scalesGradientByFrequency: true), BNNS.lastErrorReason)
    var parameters = BNNSLayerParametersEmbedding()
    parameters.flags = BNNSEmbeddingFlagScaleGradientByFrequency
    (parameters.i_desc, parameters.o_desc, parameters.dictionary) = (x, y1, table)
    (parameters.padding_idx, parameters.max_norm, parameters.norm_type) = (2, 1, 2)
    let filter = try XCTUnwrap(BNNSFilterCreateLayerEmbedding(&parameters, nil))
    defer { BNNSFilterDestroy(filter) }
    try layer.apply(batchSize: n, input: x, output: y1)
    try layer.applyBackward(
      batchSize: n, input: x, output: y1, outputGradient: dy, generatingWeightsGradient: dw1)
    XCTAssertEqual(BNNSFilterApplyBatch(filter, n, x.data!, 2, y2.data!, 8), 0)
    XCTAssertEqual(
      BNNSFilterApplyBackwardBatch(filter, n, x.data, 2, nil, 0, y2.data, 8, &dyC, 8, &dw2, nil), 0)
    assertSameBits(y1, y2, n, "output")
    assertSameBits(dw1, dw2, 1, "dictionary gradient")
  }
}
