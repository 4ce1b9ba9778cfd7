// Collections whose elements lie one after the other in memory: what the functions of vDSP take.

/// A collection of elements that lie one after the other.
public protocol AccelerateBuffer {
  /// The type of the elements.
  associatedtype Element
  /// How many there are.
  var count: Int { get }
  /// Calls a closure with them.
  func withUnsafeBufferPointer<R>(_ body: (UnsafeBufferPointer<Element>) throws -> R) rethrows -> R
}

/// A collection of elements that lie one after the other, and can be written.
public protocol AccelerateMutableBuffer: AccelerateBuffer {
  /// Calls a closure with them.
  mutating func withUnsafeMutableBufferPointer<R>(
    _ body: (inout UnsafeMutableBufferPointer<Element>) throws -> R
  ) rethrows -> R
}

extension Array: AccelerateMutableBuffer {}
extension ContiguousArray: AccelerateMutableBuffer {}
extension ArraySlice: AccelerateMutableBuffer {}

extension UnsafeBufferPointer: AccelerateBuffer {
  /// Calls a closure with the elements.
  public func withUnsafeBufferPointer<R>(_ body: (UnsafeBufferPointer<Element>) throws -> R) rethrows -> R {
    try body(self)
  }
}

extension UnsafeMutableBufferPointer: AccelerateMutableBuffer {
  /// Calls a closure with the elements.
  public func withUnsafeBufferPointer<R>(_ body: (UnsafeBufferPointer<Element>) throws -> R) rethrows -> R {
    try body(UnsafeBufferPointer(self))
  }
  /// Calls a closure with the elements.
  public func withUnsafeMutableBufferPointer<R>(
    _ body: (inout UnsafeMutableBufferPointer<Element>) throws -> R
  ) rethrows -> R {
    var buffer = self
    return try body(&buffer)
  }
}

extension Slice: AccelerateBuffer where Base: AccelerateBuffer, Base.Element == Element, Base.Index == Int {
  /// Calls a closure with the elements of the slice.
  public func withUnsafeBufferPointer<R>(_ body: (UnsafeBufferPointer<Element>) throws -> R) rethrows -> R {
    // Indices of a buffer pointer and of what it points to are the same.
    try base.withUnsafeBufferPointer { try body(UnsafeBufferPointer(rebasing: $0[startIndex..<endIndex])) }
  }
}
