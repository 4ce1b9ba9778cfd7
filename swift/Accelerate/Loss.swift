// Losses: how far a prediction is from its labels, and the gradient of that.

extension BNNS {
  /// A loss of predictions x and labels t.
  public enum LossFunction {
    /// Softmax, then cross entropy over labels of any number of classes.
    case categoricalCrossEntropy
    /// 1 minus the sum of x t.
    case cosineDistance
    /// max(0, 1 - (2 t - 1) x).
    case hinge
    /// Quadratic within delta, linear outside.
    case huber(huberDelta: Float)
    /// -t log x - (1 - t) log(1 - x).
    case log
    /// |x - t|.
    case meanAbsoluteError
    /// (x - t)².
    case meanSquareError
    /// -t log s - (1 - t) log(1 - s) of the sigmoid s.
    case sigmoidCrossEntropy(labelSmoothing: Float)
    /// Minus the sum of t log of the softmax.
    case softmaxCrossEntropy(labelSmoothing: Float)
    /// Position, size, confidence and class of boxes on a grid.
    case yolo(parameters: BNNS.LossFunction.YoloParameters)

    /// The grid and the weights of the terms of the yolo loss.
    public struct YoloParameters {
      /// Where the loss of width and height turns from quadratic to linear.
      public let huberDelta: Float
      /// Columns of the grid.
      public let gridColumnCount: Int
      /// Rows of the grid.
      public let gridRowsCount: Int
      /// Anchor boxes of a cell.
      public let anchorBoxCount: Int
      /// Values of a box: 5 and the number of classes.
      public let anchorBoxSize: Int
      /// Whether the target of the confidence is the overlap instead of 1.
      public let rescore: Bool
      /// Weight of the loss of position.
      public let xyScale: Float
      /// Weight of the loss of size.
      public let whScale: Float
      /// Weight of the loss of confidence with an object.
      public let objectScale: Float
      /// Weight of the loss of confidence without one.
      public let noObjectScale: Float
      /// Weight of the loss of the class.
      public let classificationScale: Float
      /// The overlap from which a box holds an object.
      public let objectMinimumIoU: Float
      /// The overlap up to which it does not.
      public let noObjectMaximumIoU: Float
      /// Width and height of each anchor box, copied when the layer is made.
      public let anchorsData: UnsafeMutablePointer<Float>

      /// The grid and the weights of the terms of the yolo loss.
      public init(
        huberDelta: Float, gridColumnCount: Int, gridRowsCount: Int, anchorBoxCount: Int, anchorBoxSize: Int,
        rescore: Bool, xyScale: Float, whScale: Float, objectScale: Float, noObjectScale: Float,
        classificationScale: Float, objectMinimumIoU: Float, noObjectMaximumIoU: Float,
        anchorsData: UnsafeMutablePointer<Float>
      ) {
        self.huberDelta = huberDelta
        self.gridColumnCount = gridColumnCount
        self.gridRowsCount = gridRowsCount
        self.anchorBoxCount = anchorBoxCount
        self.anchorBoxSize = anchorBoxSize
        self.rescore = rescore
        self.xyScale = xyScale
        self.whScale = whScale
        self.objectScale = objectScale
        self.noObjectScale = noObjectScale
        self.classificationScale = classificationScale
        self.objectMinimumIoU = objectMinimumIoU
        self.noObjectMaximumIoU = noObjectMaximumIoU
        self.anchorsData = anchorsData
      }
    }

    /// The constant of the C interface.
    public var bnnsLossFunction: BNNSLossFunction {
      switch self {
      case .categoricalCrossEntropy: return BNNSLossFunctionCategoricalCrossEntropy
      case .cosineDistance: return BNNSLossFunctionCosineDistance
      case .hinge: return BNNSLossFunctionHinge
      case .huber: return BNNSLossFunctionHuber
      case .log: return BNNSLossFunctionLog
      case .meanAbsoluteError: return BNNSLossFunctionMeanAbsoluteError
      case .meanSquareError: return BNNSLossFunctionMeanSquareError
      case .sigmoidCrossEntropy: return BNNSLossFunctionSigmoidCrossEntropy
      case .softmaxCrossEntropy: return BNNSLossFunctionSoftmaxCrossEntropy
      case .yolo: return BNNSLossFunctionYolo
      }
    }
  }

  /// How the losses of a batch become one.
  public enum LossReduction: Sendable {
    /// They do not: one for each sample, or for each element.
    case none
    /// Their mean.
    case reductionMean
    /// Their sum.
    case sum
    /// Their sum over the sum of the weights.
    case weightedMean
    /// Their sum over the number of weights that are not 0.
    case zeroWeightMean

    /// The constant of the C interface.
    public var bnnsLossReductionFunction: BNNSLossReductionFunction {
      switch self {
      case .none: return BNNSLossReductionNone
      case .reductionMean: return BNNSLossReductionMean
      case .sum: return BNNSLossReductionSum
      case .weightedMean: return BNNSLossReductionWeightedMean
      case .zeroWeightMean: return BNNSLossReductionNonZeroWeightMean
      }
    }
  }

  /// A loss. Its value and its gradient come from one call.
  public class LossLayer: Layer {
    private final let input: Expected
    private final let outputType: BNNSDataType

    /// A layer; nil where the library refuses (`BNNS.lastErrorReason`).
    /// - Parameters:
    ///   - input: The prediction of one sample.
    ///   - output: One number, or without a reduction one for each sample or element.
    ///   - lossFunction: The loss.
    ///   - lossReduction: How the losses of a batch become one.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public convenience init?(
      input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor, lossFunction: BNNS.LossFunction,
      lossReduction: BNNS.LossReduction, filterParameters: BNNSFilterParameters? = nil
    ) {
      let function = lossFunction.bnnsLossFunction
      let reduction = lossReduction.bnnsLossReductionFunction
      let made = withPointer(to: filterParameters) { options -> BNNSFilter? in
        switch lossFunction {
        case .softmaxCrossEntropy(let smoothing):
          var layer = BNNSLayerParametersLossSoftmaxCrossEntropy(
            function: function, i_desc: input, o_desc: output, reduction: reduction, label_smooth: smoothing)
          return BNNSFilterCreateLayerLoss(&layer, options)
        case .sigmoidCrossEntropy(let smoothing):
          var layer = BNNSLayerParametersLossSigmoidCrossEntropy(
            function: function, i_desc: input, o_desc: output, reduction: reduction, label_smooth: smoothing)
          return BNNSFilterCreateLayerLoss(&layer, options)
        case .huber(let delta):
          var layer = BNNSLayerParametersLossHuber(
            function: function, i_desc: input, o_desc: output, reduction: reduction, huber_delta: delta)
          return BNNSFilterCreateLayerLoss(&layer, options)
        case .yolo(let p):
          var layer = BNNSLayerParametersLossYolo(
            function: function, i_desc: input, o_desc: output, reduction: reduction, huber_delta: p.huberDelta,
            number_of_grid_columns: p.gridColumnCount, number_of_grid_rows: p.gridRowsCount,
            number_of_anchor_boxes: p.anchorBoxCount, anchor_box_size: p.anchorBoxSize, rescore: p.rescore,
            scale_xy: p.xyScale, scale_wh: p.whScale, scale_object: p.objectScale, scale_no_object: p.noObjectScale,
            scale_classification: p.classificationScale, object_minimum_iou: p.objectMinimumIoU,
            no_object_maximum_iou: p.noObjectMaximumIoU, anchors_data: p.anchorsData)
          return BNNSFilterCreateLayerLoss(&layer, options)
        default:
          var layer = BNNSLayerParametersLossBase(
            function: function, i_desc: input, o_desc: output, reduction: reduction)
          return BNNSFilterCreateLayerLoss(&layer, options)
        }
      }
      guard let made else { return nil }
      self.init(made, input, output)
    }

    private init(_ filter: BNNSFilter, _ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor) {
      self.input = Expected(input)
      outputType = output.data_type.rawValue == 0 ? input.data_type : output.data_type
      super.init(filter: filter)
    }

    /// Computes the loss of a batch, and the gradient of the input.
    /// - Parameters:
    ///   - batchSize: The number of samples of each array.
    ///   - input: Predictions.
    ///   - labels: As many elements, of the same type.
    ///   - output: Receives the loss.
    ///   - inputGradient: Receives the gradient of what was written to `output`.
    public func apply(
      batchSize: Int, input: BNNSNDArrayDescriptor, labels: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      generatingInputGradient inputGradient: BNNSNDArrayDescriptor
    ) throws {
      try apply(
        batchSize: batchSize, input: input, labels: labels, output: output, weights: nil, broadcastsWeights: false,
        generatingInputGradient: inputGradient)
    }

    /// The same with weights: one number if `broadcastsWeights`, else as many as samples, or as inputs of the batch, in
    /// one array.
    public func apply(
      batchSize: Int, input: BNNSNDArrayDescriptor, labels: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      weights: BNNSNDArrayDescriptor?, broadcastsWeights: Bool,
      generatingInputGradient inputGradient: BNNSNDArrayDescriptor
    ) throws {
      let call = call("apply")
      let x = try self.input.fitting(call, "input", input)
      let t = try self.input.fitting(call, "labels", labels)
      let (w, weightCount) = try weightsOf(call, weights, broadcastsWeights)
      var number = Expected()
      number.type = outputType
      let y = try number.fitting(call, "output", output)
      let dxStride = try self.input.described(call, "generatingInputGradient", inputGradient)
      var dx = inputGradient
      try call.check(
        BNNSLossFilterApplyBatch(
          bnnsFilter, batchSize, x.data!, x.stride, t.data!, t.stride, w, weightCount, y.data!, &dx, dxStride))
    }

    private func weightsOf(_ call: Call, _ weights: BNNSNDArrayDescriptor?, _ broadcasts: Bool) throws
      -> (UnsafeRawPointer?, Int)
    {
      guard let weights else { return (nil, 0) }
      var expected = Expected(weights)
      expected.type = input.type
      let data = try expected.fitting(call, "weights", weights).data
      if expected.count != expected.span {
        throw call.refusal(.arrayDescriptorInvalidData, "weights have gaps, expected numbers one after the other")
      }
      return (UnsafeRawPointer(data), broadcasts ? 1 : expected.count)
    }
  }
}
