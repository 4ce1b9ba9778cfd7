// Layouts of arrays: the order of their axes in memory.

extension BNNS {
  /// How indices map to memory.
  ///
  /// Sizes are listed as BNNS lists them. In a last-major layout, and in all that have a name of their own, the first
  /// size is that of the fastest axis; a first-major layout lists its sizes the other way round, slowest first. The first
  /// stride always belongs to the fastest axis.
  public enum DataLayout: CaseIterable, Sendable {
    /// n elements.
    case vector
    /// A matrix, row after row: columns, rows.
    case matrixRowMajor
    /// A matrix, column after column: rows, columns.
    case matrixColumnMajor
    /// Rank 2, the last index fastest.
    case matrixFirstMajor
    /// Rank 2, the first index fastest.
    case matrixLastMajor
    /// An image, plane after plane: width, height, channels.
    case imageCHW
    /// Rank 3, the last index fastest.
    case tensor3DFirstMajor
    /// Rank 3, the first index fastest.
    case tensor3DLastMajor
    /// A sequence, the batch outermost: embedding, sequence, batch.
    case tensor3DNSE
    /// A sequence, the sequence outermost: embedding, batch, sequence.
    case tensor3DSNE
    /// Kernels: kernel width, kernel height, input channels, output channels.
    case convolutionWeightsOIHW
    /// Rank 4, the last index fastest.
    case tensor4DFirstMajor
    /// Rank 4, the first index fastest.
    case tensor4DLastMajor
    /// Rank 5, the last index fastest.
    case tensor5DFirstMajor
    /// Rank 5, the first index fastest.
    case tensor5DLastMajor
    /// Rank 6, the last index fastest.
    case tensor6DFirstMajor
    /// Rank 6, the first index fastest.
    case tensor6DLastMajor
    /// Rank 7, the last index fastest.
    case tensor7DFirstMajor
    /// Rank 7, the first index fastest.
    case tensor7DLastMajor
    /// Rank 8, the last index fastest.
    case tensor8DFirstMajor
    /// Rank 8, the first index fastest.
    case tensor8DLastMajor

    /// The number of axes.
    public var rank: Int { bnnsDataLayout.axisCount }

    /// The constant of the C interface.
    var bnnsDataLayout: BNNSDataLayout {
      switch self {
      case .vector: return BNNSDataLayoutVector
      case .matrixRowMajor: return BNNSDataLayoutRowMajorMatrix
      case .matrixColumnMajor: return BNNSDataLayoutColumnMajorMatrix
      case .matrixFirstMajor: return BNNSDataLayout2DFirstMajor
      case .matrixLastMajor: return BNNSDataLayout2DLastMajor
      case .imageCHW: return BNNSDataLayoutImageCHW
      case .tensor3DFirstMajor: return BNNSDataLayout3DFirstMajor
      case .tensor3DLastMajor: return BNNSDataLayout3DLastMajor
      case .tensor3DNSE: return BNNSDataLayoutNSE
      case .tensor3DSNE: return BNNSDataLayoutSNE
      case .convolutionWeightsOIHW: return BNNSDataLayoutConvolutionWeightsOIHW
      case .tensor4DFirstMajor: return BNNSDataLayout4DFirstMajor
      case .tensor4DLastMajor: return BNNSDataLayout4DLastMajor
      case .tensor5DFirstMajor: return BNNSDataLayout5DFirstMajor
      case .tensor5DLastMajor: return BNNSDataLayout5DLastMajor
      case .tensor6DFirstMajor: return BNNSDataLayout6DFirstMajor
      case .tensor6DLastMajor: return BNNSDataLayout6DLastMajor
      case .tensor7DFirstMajor: return BNNSDataLayout7DFirstMajor
      case .tensor7DLastMajor: return BNNSDataLayout7DLastMajor
      case .tensor8DFirstMajor: return BNNSDataLayout8DFirstMajor
      case .tensor8DLastMajor: return BNNSDataLayout8DLastMajor
      }
    }

    /// The layout of a C constant, where it has a case: rotated and packed convolution weights, attention weights and
    /// sparse weights have none.
    init?(_ layout: BNNSDataLayout) {
      switch layout {
      case BNNSDataLayoutVector: self = .vector
      case BNNSDataLayoutRowMajorMatrix: self = .matrixRowMajor
      case BNNSDataLayoutColumnMajorMatrix: self = .matrixColumnMajor
      case BNNSDataLayout2DFirstMajor: self = .matrixFirstMajor
      case BNNSDataLayout2DLastMajor: self = .matrixLastMajor
      case BNNSDataLayoutImageCHW: self = .imageCHW
      case BNNSDataLayout3DFirstMajor: self = .tensor3DFirstMajor
      case BNNSDataLayout3DLastMajor: self = .tensor3DLastMajor
      case BNNSDataLayoutNSE: self = .tensor3DNSE
      case BNNSDataLayoutSNE: self = .tensor3DSNE
      case BNNSDataLayoutConvolutionWeightsOIHW: self = .convolutionWeightsOIHW
      case BNNSDataLayout4DFirstMajor: self = .tensor4DFirstMajor
      case BNNSDataLayout4DLastMajor: self = .tensor4DLastMajor
      case BNNSDataLayout5DFirstMajor: self = .tensor5DFirstMajor
      case BNNSDataLayout5DLastMajor: self = .tensor5DLastMajor
      case BNNSDataLayout6DFirstMajor: self = .tensor6DFirstMajor
      case BNNSDataLayout6DLastMajor: self = .tensor6DLastMajor
      case BNNSDataLayout7DFirstMajor: self = .tensor7DFirstMajor
      case BNNSDataLayout7DLastMajor: self = .tensor7DLastMajor
      case BNNSDataLayout8DFirstMajor: self = .tensor8DFirstMajor
      case BNNSDataLayout8DLastMajor: self = .tensor8DLastMajor
      default: return nil
      }
    }
  }
}
