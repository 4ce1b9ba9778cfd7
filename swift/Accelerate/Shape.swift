// Shapes: a layout, up to eight sizes and up to eight strides.

/// Eight numbers, as a descriptor holds sizes and strides.
typealias Eight = (Int, Int, Int, Int, Int, Int, Int, Int)

extension BNNS {
  /// The shape of an array: layout, sizes and strides.
  ///
  /// Sizes are written as the layout lists them: `.matrixRowMajor(columns, rows)`, `.imageCHW(width, height, channels)`.
  /// Strides are in elements, the fastest axis first; 0 means packed. An array literal is a vector, or the first-major
  /// layout of its rank.
  public enum Shape {
    /// n elements.
    case vector(Int, stride: Int = 0)
    /// A matrix, row after row: columns, rows.
    case matrixRowMajor(Int, Int, stride: (Int, Int) = (0, 0))
    /// A matrix, column after column: rows, columns.
    case matrixColumnMajor(Int, Int, stride: (Int, Int) = (0, 0))
    /// Rank 2, the last index fastest.
    case matrixFirstMajor(Int, Int, stride: (Int, Int) = (0, 0))
    /// Rank 2, the first index fastest.
    case matrixLastMajor(Int, Int, stride: (Int, Int) = (0, 0))
    /// An image, plane after plane: width, height, channels.
    case imageCHW(Int, Int, Int, stride: (Int, Int, Int) = (0, 0, 0))
    /// Rank 3, the last index fastest.
    case tensor3DFirstMajor(Int, Int, Int, stride: (Int, Int, Int) = (0, 0, 0))
    /// Rank 3, the first index fastest.
    case tensor3DLastMajor(Int, Int, Int, stride: (Int, Int, Int) = (0, 0, 0))
    /// A sequence, the batch outermost: embedding, sequence, batch.
    case tensor3DNSE(Int, Int, Int, stride: (Int, Int, Int) = (0, 0, 0))
    /// A sequence, the sequence outermost: embedding, batch, sequence.
    case tensor3DSNE(Int, Int, Int, stride: (Int, Int, Int) = (0, 0, 0))
    /// Kernels: kernel width, kernel height, input channels, output channels.
    case convolutionWeightsOIHW(Int, Int, Int, Int, stride: (Int, Int, Int, Int) = (0, 0, 0, 0))
    /// Rank 4, the last index fastest.
    case tensor4DFirstMajor(Int, Int, Int, Int, stride: (Int, Int, Int, Int) = (0, 0, 0, 0))
    /// Rank 4, the first index fastest.
    case tensor4DLastMajor(Int, Int, Int, Int, stride: (Int, Int, Int, Int) = (0, 0, 0, 0))
    /// Rank 5, the last index fastest.
    case tensor5DFirstMajor(Int, Int, Int, Int, Int, stride: (Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0))
    /// Rank 5, the first index fastest.
    case tensor5DLastMajor(Int, Int, Int, Int, Int, stride: (Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0))
    /// Rank 6, the last index fastest.
    case tensor6DFirstMajor(Int, Int, Int, Int, Int, Int, stride: (Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0))
    /// Rank 6, the first index fastest.
    case tensor6DLastMajor(Int, Int, Int, Int, Int, Int, stride: (Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0))
    /// Rank 7, the last index fastest.
    case tensor7DFirstMajor(
      Int, Int, Int, Int, Int, Int, Int, stride: (Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0))
    /// Rank 7, the first index fastest.
    case tensor7DLastMajor(
      Int, Int, Int, Int, Int, Int, Int, stride: (Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0))
    /// Rank 8, the last index fastest.
    case tensor8DFirstMajor(
      Int, Int, Int, Int, Int, Int, Int, Int, stride: (Int, Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0, 0))
    /// Rank 8, the first index fastest.
    case tensor8DLastMajor(
      Int, Int, Int, Int, Int, Int, Int, Int, stride: (Int, Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0, 0))

    /// A shape of sizes and strides in a list.
    /// - Parameters:
    ///   - size: One to eight sizes.
    ///   - dataLayout: A layout of as many axes. nil: a vector, or the first-major layout of that rank.
    ///   - stride: As many strides; nil or zeros: packed.
    ///
    /// Other numbers of sizes and strides are a mistake of the program, which ends there.
    public init(_ size: [Int], dataLayout: BNNS.DataLayout? = nil, stride: [Int]? = nil) {
      precondition((1...8).contains(size.count), "BNNS.Shape: an array has 1 to 8 sizes, got \(size.count)")
      let layout = dataLayout ?? Shape.firstMajor[size.count - 1]
      precondition(
        layout.rank == size.count, "BNNS.Shape: the layout has \(layout.rank) sizes, got \(size.count)")
      precondition(
        stride == nil || stride!.count == size.count,
        "BNNS.Shape: expected \(size.count) strides, got \(stride?.count ?? 0)")
      self.init(layout: layout, size: Shape.eight(size), stride: Shape.eight(stride ?? []))
    }

    /// The constant of the C interface for the layout.
    public var layout: BNNSDataLayout { parts.layout.bnnsDataLayout }
    /// The number of axes.
    public var rank: Int { parts.layout.rank }
    /// The sizes; 0 beyond the rank.
    public var size: (Int, Int, Int, Int, Int, Int, Int, Int) { parts.size }
    /// The strides as they were given: 0 is packed.
    public var stride: (Int, Int, Int, Int, Int, Int, Int, Int) { parts.stride }
    /// Elements from one sample of a batch to the next.
    public var batchStride: Int { describe(BNNSDataTypeFloat32).sampleSize.stride }

    /// A descriptor of this shape, without data.
    func describe(_ dataType: BNNSDataType) -> BNNSNDArrayDescriptor {
      let parts = parts
      var d = BNNSNDArrayDescriptor()
      d.layout = parts.layout.bnnsDataLayout
      d.size = parts.size
      d.stride = parts.stride
      d.data_type = dataType
      return d
    }

    private static let firstMajor: [BNNS.DataLayout] = [
      .vector, .matrixFirstMajor, .tensor3DFirstMajor, .tensor4DFirstMajor, .tensor5DFirstMajor, .tensor6DFirstMajor,
      .tensor7DFirstMajor, .tensor8DFirstMajor,
    ]
    private static func eight(_ list: [Int]) -> Eight {
      func at(_ k: Int) -> Int { k < list.count ? list[k] : 0 }
      return (at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7))
    }

    private var parts: (layout: BNNS.DataLayout, size: Eight, stride: Eight) {
      switch self {
      case let .vector(a, s): return (.vector, (a, 0, 0, 0, 0, 0, 0, 0), (s, 0, 0, 0, 0, 0, 0, 0))
      case let .matrixRowMajor(a, b, s): return (.matrixRowMajor, (a, b, 0, 0, 0, 0, 0, 0), (s.0, s.1, 0, 0, 0, 0, 0, 0))
      case let .matrixColumnMajor(a, b, s): return (.matrixColumnMajor, (a, b, 0, 0, 0, 0, 0, 0), (s.0, s.1, 0, 0, 0, 0, 0, 0))
      case let .matrixFirstMajor(a, b, s): return (.matrixFirstMajor, (a, b, 0, 0, 0, 0, 0, 0), (s.0, s.1, 0, 0, 0, 0, 0, 0))
      case let .matrixLastMajor(a, b, s): return (.matrixLastMajor, (a, b, 0, 0, 0, 0, 0, 0), (s.0, s.1, 0, 0, 0, 0, 0, 0))
      case let .imageCHW(a, b, c, s): return (.imageCHW, (a, b, c, 0, 0, 0, 0, 0), (s.0, s.1, s.2, 0, 0, 0, 0, 0))
      case let .tensor3DFirstMajor(a, b, c, s): return (.tensor3DFirstMajor, (a, b, c, 0, 0, 0, 0, 0), (s.0, s.1, s.2, 0, 0, 0, 0, 0))
      case let .tensor3DLastMajor(a, b, c, s): return (.tensor3DLastMajor, (a, b, c, 0, 0, 0, 0, 0), (s.0, s.1, s.2, 0, 0, 0, 0, 0))
      case let .tensor3DNSE(a, b, c, s): return (.tensor3DNSE, (a, b, c, 0, 0, 0, 0, 0), (s.0, s.1, s.2, 0, 0, 0, 0, 0))
      case let .tensor3DSNE(a, b, c, s): return (.tensor3DSNE, (a, b, c, 0, 0, 0, 0, 0), (s.0, s.1, s.2, 0, 0, 0, 0, 0))
      case let .convolutionWeightsOIHW(a, b, c, d, s): return (.convolutionWeightsOIHW, (a, b, c, d, 0, 0, 0, 0), (s.0, s.1, s.2, s.3, 0, 0, 0, 0))
      case let .tensor4DFirstMajor(a, b, c, d, s): return (.tensor4DFirstMajor, (a, b, c, d, 0, 0, 0, 0), (s.0, s.1, s.2, s.3, 0, 0, 0, 0))
      case let .tensor4DLastMajor(a, b, c, d, s): return (.tensor4DLastMajor, (a, b, c, d, 0, 0, 0, 0), (s.0, s.1, s.2, s.3, 0, 0, 0, 0))
      case let .tensor5DFirstMajor(a, b, c, d, e, s): return (.tensor5DFirstMajor, (a, b, c, d, e, 0, 0, 0), (s.0, s.1, s.2, s.3, s.4, 0, 0, 0))
      case let .tensor5DLastMajor(a, b, c, d, e, s): return (.tensor5DLastMajor, (a, b, c, d, e, 0, 0, 0), (s.0, s.1, s.2, s.3, s.4, 0, 0, 0))
      case let .tensor6DFirstMajor(a, b, c, d, e, f, s): return (.tensor6DFirstMajor, (a, b, c, d, e, f, 0, 0), (s.0, s.1, s.2, s.3, s.4, s.5, 0, 0))
      case let .tensor6DLastMajor(a, b, c, d, e, f, s): return (.tensor6DLastMajor, (a, b, c, d, e, f, 0, 0), (s.0, s.1, s.2, s.3, s.4, s.5, 0, 0))
      case let .tensor7DFirstMajor(a, b, c, d, e, f, g, s): return (.tensor7DFirstMajor, (a, b, c, d, e, f, g, 0), (s.0, s.1, s.2, s.3, s.4, s.5, s.6, 0))
      case let .tensor7DLastMajor(a, b, c, d, e, f, g, s): return (.tensor7DLastMajor, (a, b, c, d, e, f, g, 0), (s.0, s.1, s.2, s.3, s.4, s.5, s.6, 0))
      case let .tensor8DFirstMajor(a, b, c, d, e, f, g, h, s): return (.tensor8DFirstMajor, (a, b, c, d, e, f, g, h), (s.0, s.1, s.2, s.3, s.4, s.5, s.6, s.7))
      case let .tensor8DLastMajor(a, b, c, d, e, f, g, h, s): return (.tensor8DLastMajor, (a, b, c, d, e, f, g, h), (s.0, s.1, s.2, s.3, s.4, s.5, s.6, s.7))
      }
    }

    init(layout: BNNS.DataLayout, size n: Eight, stride s: Eight) {
      switch layout {
      case .vector: self = .vector(n.0, stride: s.0)
      case .matrixRowMajor: self = .matrixRowMajor(n.0, n.1, stride: (s.0, s.1))
      case .matrixColumnMajor: self = .matrixColumnMajor(n.0, n.1, stride: (s.0, s.1))
      case .matrixFirstMajor: self = .matrixFirstMajor(n.0, n.1, stride: (s.0, s.1))
      case .matrixLastMajor: self = .matrixLastMajor(n.0, n.1, stride: (s.0, s.1))
      case .imageCHW: self = .imageCHW(n.0, n.1, n.2, stride: (s.0, s.1, s.2))
      case .tensor3DFirstMajor: self = .tensor3DFirstMajor(n.0, n.1, n.2, stride: (s.0, s.1, s.2))
      case .tensor3DLastMajor: self = .tensor3DLastMajor(n.0, n.1, n.2, stride: (s.0, s.1, s.2))
      case .tensor3DNSE: self = .tensor3DNSE(n.0, n.1, n.2, stride: (s.0, s.1, s.2))
      case .tensor3DSNE: self = .tensor3DSNE(n.0, n.1, n.2, stride: (s.0, s.1, s.2))
      case .convolutionWeightsOIHW: self = .convolutionWeightsOIHW(n.0, n.1, n.2, n.3, stride: (s.0, s.1, s.2, s.3))
      case .tensor4DFirstMajor: self = .tensor4DFirstMajor(n.0, n.1, n.2, n.3, stride: (s.0, s.1, s.2, s.3))
      case .tensor4DLastMajor: self = .tensor4DLastMajor(n.0, n.1, n.2, n.3, stride: (s.0, s.1, s.2, s.3))
      case .tensor5DFirstMajor: self = .tensor5DFirstMajor(n.0, n.1, n.2, n.3, n.4, stride: (s.0, s.1, s.2, s.3, s.4))
      case .tensor5DLastMajor: self = .tensor5DLastMajor(n.0, n.1, n.2, n.3, n.4, stride: (s.0, s.1, s.2, s.3, s.4))
      case .tensor6DFirstMajor:
        self = .tensor6DFirstMajor(n.0, n.1, n.2, n.3, n.4, n.5, stride: (s.0, s.1, s.2, s.3, s.4, s.5))
      case .tensor6DLastMajor:
        self = .tensor6DLastMajor(n.0, n.1, n.2, n.3, n.4, n.5, stride: (s.0, s.1, s.2, s.3, s.4, s.5))
      case .tensor7DFirstMajor:
        self = .tensor7DFirstMajor(n.0, n.1, n.2, n.3, n.4, n.5, n.6, stride: (s.0, s.1, s.2, s.3, s.4, s.5, s.6))
      case .tensor7DLastMajor:
        self = .tensor7DLastMajor(n.0, n.1, n.2, n.3, n.4, n.5, n.6, stride: (s.0, s.1, s.2, s.3, s.4, s.5, s.6))
      case .tensor8DFirstMajor:
        self = .tensor8DFirstMajor(n.0, n.1, n.2, n.3, n.4, n.5, n.6, n.7, stride: (s.0, s.1, s.2, s.3, s.4, s.5, s.6, s.7))
      case .tensor8DLastMajor:
        self = .tensor8DLastMajor(n.0, n.1, n.2, n.3, n.4, n.5, n.6, n.7, stride: (s.0, s.1, s.2, s.3, s.4, s.5, s.6, s.7))
      }
    }
  }
}

extension BNNS.Shape: ExpressibleByArrayLiteral {
  /// `[n]` is a vector; two to eight sizes are the first-major layout of that rank.
  public init(arrayLiteral: Int...) { self.init(arrayLiteral) }
}
