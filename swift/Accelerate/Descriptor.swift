// Descriptors of arrays: views of memory, and memory that is allocated and released by hand.

/// The types of elements.
public protocol BNNSScalar {
  /// The constant of the C interface for the type.
  static var bnnsDataType: BNNSDataType { get }
}

extension Float: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeFloat32 } }
extension Float16: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeFloat16 } }
extension Bool: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeBoolean } }
extension Int8: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeInt8 } }
extension Int16: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeInt16 } }
extension Int32: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeInt32 } }
extension Int64: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeInt64 } }
extension UInt8: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeUInt8 } }
extension UInt16: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeUInt16 } }
extension UInt32: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeUInt32 } }
extension UInt64: BNNSScalar { public static var bnnsDataType: BNNSDataType { BNNSDataTypeUInt64 } }

extension BNNSNDArrayDescriptor {
  /// A descriptor without data, for the shapes of a layer.
  public init(dataType: BNNSDataType, shape: BNNS.Shape) { self = shape.describe(dataType) }

  /// A view of one sample; nil where the memory is too small for the shape.
  public init?<T>(data: UnsafeMutableBufferPointer<T>, shape: BNNS.Shape) where T: BNNSScalar {
    self.init(data: data, shape: shape, batchSize: 1)
  }

  /// A view of the samples of a batch, one after the other; nil where the memory is too small for them.
  public init?<T>(data: UnsafeMutableBufferPointer<T>, shape: BNNS.Shape, batchSize: Int) where T: BNNSScalar {
    self.init(data: UnsafeMutableRawBufferPointer(data), scalarType: T.self, shape: shape, batchSize: batchSize)
  }

  /// A view of one sample; nil where the memory is too small for the shape.
  public init?(data: UnsafeMutableRawBufferPointer, scalarType: any BNNSScalar.Type, shape: BNNS.Shape) {
    self.init(data: data, scalarType: scalarType, shape: shape, batchSize: 1)
  }

  /// A view of the samples of a batch, one after the other; nil where the memory is too small for them.
  public init?(
    data: UnsafeMutableRawBufferPointer, scalarType: any BNNSScalar.Type, shape: BNNS.Shape, batchSize: Int
  ) {
    self = shape.describe(scalarType.bnnsDataType)
    guard let base = data.baseAddress, let bytes = byteCount(batchSize: batchSize), data.count >= bytes else {
      return nil
    }
    self.data = base
  }

  /// Memory for the samples of a batch, with numbers of a collection, in memory order.
  ///
  /// A collection may be shorter than the array, which is zero beyond it, and not longer: the program ends there.
  /// Release the memory with `deallocate()`.
  public static func allocate<C>(initializingFrom source: C, shape: BNNS.Shape, batchSize: Int = 1)
    -> BNNSNDArrayDescriptor where C: Collection, C.Element: BNNSScalar
  {
    let (d, elements) = allocated(C.Element.self, shape, batchSize)
    precondition(
      source.count <= elements.count, "BNNS: the shape holds \(elements.count) elements, got \(source.count)")
    let (_, filled) = elements.initialize(from: source)
    let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(elements)[(filled * MemoryLayout<C.Element>.stride)...])
    rest.initializeMemory(as: UInt8.self, repeating: 0)
    return d
  }

  /// Memory for the samples of a batch, each element the same. Release it with `deallocate()`.
  public static func allocate<T>(repeating repeatedValue: T, shape: BNNS.Shape, batchSize: Int = 1)
    -> BNNSNDArrayDescriptor where T: BNNSScalar
  {
    let (d, elements) = allocated(T.self, shape, batchSize)
    elements.initialize(repeating: repeatedValue)
    return d
  }

  /// Memory for the samples of a batch, with whatever is in it. Release it with `deallocate()`.
  public static func allocateUninitialized(scalarType: any BNNSScalar.Type, shape: BNNS.Shape, batchSize: Int = 1)
    -> BNNSNDArrayDescriptor
  {
    var d = shape.describe(scalarType.bnnsDataType)
    guard let bytes = d.byteCount(batchSize: batchSize) else {
      preconditionFailure("BNNS: the size of the array does not fit in Int")
    }
    d.data = .allocate(byteCount: max(bytes, 1), alignment: 64)
    return d
  }

  /// Releases the memory of an array made by `allocate`. Layers that use it must not run any more.
  public func deallocate() { data?.deallocate() }

  /// The elements of the samples of a batch, in memory order; nil where `scalarType` is not their type, or there are none.
  public func makeArray<T>(of scalarType: T.Type, batchSize: Int = 1) -> [T]? where T: BNNSScalar {
    guard let data, data_type == T.bnnsDataType, let count = elementCount(batchSize: batchSize) else { return nil }
    return Array(UnsafeBufferPointer(start: data.assumingMemoryBound(to: T.self), count: count))
  }

  /// Layout, sizes and strides. A layout without a case in `BNNS.Shape` is given as the last-major one of its rank.
  public var shape: BNNS.Shape {
    let rank = min(max(layout.axisCount, 1), 8)
    let fallback: [BNNS.DataLayout] = [
      .vector, .matrixLastMajor, .tensor3DLastMajor, .tensor4DLastMajor, .tensor5DLastMajor, .tensor6DLastMajor,
      .tensor7DLastMajor, .tensor8DLastMajor,
    ]
    return BNNS.Shape(layout: BNNS.DataLayout(layout) ?? fallback[rank - 1], size: size, stride: stride)
  }

  /// Bytes that one sample spans, gaps included; 0 without data.
  public var dataSize: Int { withUnsafePointer(to: self) { BNNSNDArrayGetDataSize($0) } }

  /// Memory for all samples, as elements.
  static func allocated<T: BNNSScalar>(_: T.Type, _ shape: BNNS.Shape, _ batchSize: Int)
    -> (BNNSNDArrayDescriptor, UnsafeMutableBufferPointer<T>)
  {
    let d = allocateUninitialized(scalarType: T.self, shape: shape, batchSize: batchSize)
    let count = d.elementCount(batchSize: batchSize)!
    return (d, UnsafeMutableBufferPointer(start: d.data!.bindMemory(to: T.self, capacity: count), count: count))
  }

  /// Elements from the first to the last one of a batch; nil where that is no size.
  func elementCount(batchSize: Int) -> Int? {
    guard batchSize >= 0, layout.axisCount >= 1, layout.axisCount <= 8, hasSizes else { return nil }
    let s = sampleSize
    if batchSize == 0 || s.count == 0 { return 0 }
    let (before, tooMany) = s.stride.multipliedReportingOverflow(by: batchSize - 1)
    let (count, tooLong) = before.addingReportingOverflow(s.span)
    return tooMany || tooLong ? nil : count
  }

  /// Bytes of them, of a type of whole bytes.
  private func byteCount(batchSize: Int) -> Int? {
    guard let count = elementCount(batchSize: batchSize) else { return nil }
    let (bytes, overflow) = count.multipliedReportingOverflow(by: Int(data_type.rawValue & 0x7fff) / 8)
    return overflow ? nil : bytes
  }

  /// Whether no size or stride is negative, and their products are numbers.
  private var hasSizes: Bool {
    withAxes { size, stride in
      var packed = 1
      for k in 0..<layout.axisCount {
        let extent = size[layout.axis(ofStride: k, rank: layout.axisCount)]
        guard extent >= 0, stride[k] >= 0 else { return false }
        let (next, overflow) = (stride[k] != 0 ? stride[k] : packed).multipliedReportingOverflow(by: extent)
        if overflow { return false }
        packed = next
      }
      return true
    }
  }
}
