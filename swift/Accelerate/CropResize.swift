// Boxes cropped from an image and resized.

extension BNNS {
  /// Crops boxes and resizes each, bilinearly. It holds parameters only: there is no filter behind it.
  public class CropResizeLayer {
    private final let layer: BNNSLayerParametersCropResize

    /// What the four numbers of a box are.
    public enum BoxCoordinateMode: Sendable {
      /// yc, xc, height, width of the box around a center.
      case centerSizeHeightFirst
      /// xc, yc, width, height of the box around a center.
      case centerSizeWidthFirst
      /// y0, x0, y1, x1 of two corners.
      case cornersHeightFirst
      /// x0, y0, x1, y1 of two corners.
      case cornersWidthFirst

      var bnnsBoxCoordinateMode: BNNSBoxCoordinateMode {
        switch self {
        case .centerSizeHeightFirst: return BNNSCenterSizeHeightFirst
        case .centerSizeWidthFirst: return BNNSCenterSizeWidthFirst
        case .cornersHeightFirst: return BNNSCornersHeightFirst
        case .cornersWidthFirst: return BNNSCornersWidthFirst
        }
      }
    }

    /// Where n points of an axis of m elements are sampled.
    public enum LinearSamplingMode: Sendable {
      /// As `strictAlignCorners`, but one point samples the middle.
      case alignCorners
      /// Steps of (m - m / n) / (n - 1).
      case `default`
      /// Steps of max(1, m - 1) / n, from half a step on.
      case offsetCorners
      /// Steps of (m - 1) / (n - 1).
      case strictAlignCorners
      /// Steps of m / n, from half an element on.
      case unalignCorners

      var bnnsLinearSamplingMode: BNNSLinearSamplingMode {
        switch self {
        case .alignCorners: return BNNSLinearSamplingAlignCorners
        case .default: return BNNSLinearSamplingDefault
        case .offsetCorners: return BNNSLinearSamplingOffsetCorners
        case .strictAlignCorners: return BNNSLinearSamplingStrictAlignCorners
        case .unalignCorners: return BNNSLinearSamplingUnalignCorners
        }
      }
    }

    /// Parameters of a crop-and-resize.
    /// - Parameters:
    ///   - coordinatesAreNormalized: Whether boxes are in [0, 1] instead of pixels.
    ///   - spatialScale: A factor of the coordinates.
    ///   - extrapolationValue: The value outside the image.
    ///   - samplingMode: Where points are sampled.
    ///   - boxCoordinateMode: What the four numbers of a box are.
    public init(
      coordinatesAreNormalized: Bool, spatialScale: Float, extrapolationValue: Float = 0,
      samplingMode: BNNS.CropResizeLayer.LinearSamplingMode = .default,
      boxCoordinateMode: BNNS.CropResizeLayer.BoxCoordinateMode
    ) {
      layer = BNNSLayerParametersCropResize(
        normalized_coordinates: coordinatesAreNormalized, spatial_scale: spatialScale,
        extrapolation_value: extrapolationValue, sampling_mode: samplingMode.bnnsLinearSamplingMode,
        box_coordinate_mode: boxCoordinateMode.bnnsBoxCoordinateMode, method: BNNSInterpolationMethodLinear)
    }

    /// Crops and resizes the boxes of `regionOfInterest`.
    public func apply(
      input: BNNSNDArrayDescriptor, regionOfInterest: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      filterParameters: BNNSFilterParameters? = nil
    ) throws {
      var (layer, x, boxes, y) = (layer, input, regionOfInterest, output)
      let call = Call(CropResizeLayer.self, "apply")
      try withPointer(to: filterParameters) { try call.check(BNNSCropResize(&layer, &x, &boxes, &y, $0)) }
    }

    /// Computes the gradient of the image, given that of the output.
    public func applyBackward(
      regionOfInterest: BNNSNDArrayDescriptor, outputGradient: BNNSNDArrayDescriptor,
      generatingInputGradient inputGradient: BNNSNDArrayDescriptor, filterParameters: BNNSFilterParameters? = nil
    ) throws {
      var (layer, boxes, dy, dx) = (layer, regionOfInterest, outputGradient, inputGradient)
      let call = Call(CropResizeLayer.self, "applyBackward")
      try withPointer(to: filterParameters) { try call.check(BNNSCropResizeBackward(&layer, &dx, &boxes, &dy, $0)) }
    }
  }
}
