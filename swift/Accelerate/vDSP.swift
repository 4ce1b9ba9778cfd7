// vDSP over arrays and buffer pointers: sums, extremes, and arithmetic of two vectors and of a vector and a number.
//
// Each function is a call of the C function of its name. Vectors of one call have equally many elements: a mistake there
// ends the program.

/// Functions of vectors. A namespace: it has no values.
public enum vDSP {
  /// Which way `sort` sorts.
  public enum SortOrder: Int32, Sendable {
    /// The smallest first.
    case ascending = 1
    /// The largest first.
    case descending = -1
  }
}

extension AccelerateBuffer {
  /// A pointer to the elements, and how many there are. A vector without elements has a pointer too, which is not read.
  @inline(__always)
  func withVector<R>(_ body: (UnsafePointer<Element>, vDSP_Length) -> R) -> R {
    withUnsafeBufferPointer { buffer in
      if let first = buffer.baseAddress { return body(first, vDSP_Length(buffer.count)) }
      return withUnsafeTemporaryAllocation(of: Element.self, capacity: 1) { body(UnsafePointer($0.baseAddress!), 0) }
    }
  }
}

extension AccelerateMutableBuffer {
  @inline(__always)
  mutating func withMutableVector<R>(_ body: (UnsafeMutablePointer<Element>, vDSP_Length) -> R) -> R {
    withUnsafeMutableBufferPointer { buffer in
      if let first = buffer.baseAddress { return body(first, vDSP_Length(buffer.count)) }
      return withUnsafeTemporaryAllocation(of: Element.self, capacity: 1) { body($0.baseAddress!, 0) }
    }
  }
}

/// The vectors of a call have equally many elements.
@inline(__always)
func requireEqual(_ name: StaticString, _ a: Int, _ b: Int) {
  precondition(a == b, "vDSP.\(name): vectors of \(a) and \(b) elements")
}

// MARK: One number of a vector

extension vDSP {
  /// The sum of a vector.
  public static func sum<U>(_ vector: U) -> Float where U: AccelerateBuffer, U.Element == Float {
    var result: Float = 0
    vector.withVector { vDSP_sve($0, 1, &result, $1) }
    return result
  }
  /// The sum of a vector.
  public static func sum<U>(_ vector: U) -> Double where U: AccelerateBuffer, U.Element == Double {
    var result: Double = 0
    vector.withVector { vDSP_sveD($0, 1, &result, $1) }
    return result
  }
  /// The mean of a vector; NaN of one without elements.
  public static func mean<U>(_ vector: U) -> Float where U: AccelerateBuffer, U.Element == Float {
    var result: Float = 0
    vector.withVector { vDSP_meanv($0, 1, &result, $1) }
    return result
  }
  /// The mean of a vector; NaN of one without elements.
  public static func mean<U>(_ vector: U) -> Double where U: AccelerateBuffer, U.Element == Double {
    var result: Double = 0
    vector.withVector { vDSP_meanvD($0, 1, &result, $1) }
    return result
  }
  /// The largest element; -infinity of a vector without elements.
  public static func maximum<U>(_ vector: U) -> Float where U: AccelerateBuffer, U.Element == Float {
    var result: Float = 0
    vector.withVector { vDSP_maxv($0, 1, &result, $1) }
    return result
  }
  /// The largest element; -infinity of a vector without elements.
  public static func maximum<U>(_ vector: U) -> Double where U: AccelerateBuffer, U.Element == Double {
    var result: Double = 0
    vector.withVector { vDSP_maxvD($0, 1, &result, $1) }
    return result
  }
  /// The smallest element; infinity of a vector without elements.
  public static func minimum<U>(_ vector: U) -> Float where U: AccelerateBuffer, U.Element == Float {
    var result: Float = 0
    vector.withVector { vDSP_minv($0, 1, &result, $1) }
    return result
  }
  /// The smallest element; infinity of a vector without elements.
  public static func minimum<U>(_ vector: U) -> Double where U: AccelerateBuffer, U.Element == Double {
    var result: Double = 0
    vector.withVector { vDSP_minvD($0, 1, &result, $1) }
    return result
  }
  /// The largest element and its first position, of a vector with elements.
  public static func indexOfMaximum<U>(_ vector: U) -> (UInt, Float) where U: AccelerateBuffer, U.Element == Float {
    var result: Float = 0
    var index: vDSP_Length = 0
    vector.withVector { vDSP_maxvi($0, 1, &result, &index, $1) }
    return (index, result)
  }
  /// The largest element and its first position, of a vector with elements.
  public static func indexOfMaximum<U>(_ vector: U) -> (UInt, Double) where U: AccelerateBuffer, U.Element == Double {
    var result: Double = 0
    var index: vDSP_Length = 0
    vector.withVector { vDSP_maxviD($0, 1, &result, &index, $1) }
    return (index, result)
  }
  /// The smallest element and its first position, of a vector with elements.
  public static func indexOfMinimum<U>(_ vector: U) -> (UInt, Float) where U: AccelerateBuffer, U.Element == Float {
    var result: Float = 0
    var index: vDSP_Length = 0
    vector.withVector { vDSP_minvi($0, 1, &result, &index, $1) }
    return (index, result)
  }
  /// The smallest element and its first position, of a vector with elements.
  public static func indexOfMinimum<U>(_ vector: U) -> (UInt, Double) where U: AccelerateBuffer, U.Element == Double {
    var result: Double = 0
    var index: vDSP_Length = 0
    vector.withVector { vDSP_minviD($0, 1, &result, &index, $1) }
    return (index, result)
  }
}

// MARK: Vectors in place

extension vDSP {
  /// Sets each element to 0.
  public static func clear<V>(_ vector: inout V) where V: AccelerateMutableBuffer, V.Element == Float {
    vector.withMutableVector { vDSP_vclr($0, 1, $1) }
  }
  /// Sets each element to a number.
  public static func fill<V>(_ vector: inout V, with value: Float) where V: AccelerateMutableBuffer, V.Element == Float {
    vector.withMutableVector { destination, n in withUnsafePointer(to: value) { vDSP_vfill($0, destination, 1, n) } }
  }
  /// Sorts the elements; NaN comes last.
  public static func sort<V>(_ vector: inout V, sortOrder: SortOrder)
  where V: AccelerateMutableBuffer, V.Element == Float {
    vector.withMutableVector { vDSP_vsort($0, $1, sortOrder.rawValue) }
  }
  /// Sets each element to 0.
  public static func clear<V>(_ vector: inout V) where V: AccelerateMutableBuffer, V.Element == Double {
    vector.withMutableVector { vDSP_vclrD($0, 1, $1) }
  }
  /// Sets each element to a number.
  public static func fill<V>(_ vector: inout V, with value: Double) where V: AccelerateMutableBuffer, V.Element == Double {
    vector.withMutableVector { destination, n in withUnsafePointer(to: value) { vDSP_vfillD($0, destination, 1, n) } }
  }
  /// Sorts the elements; NaN comes last.
  public static func sort<V>(_ vector: inout V, sortOrder: SortOrder)
  where V: AccelerateMutableBuffer, V.Element == Double {
    vector.withMutableVector { vDSP_vsortD($0, $1, sortOrder.rawValue) }
  }
}
