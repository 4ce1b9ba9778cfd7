// vDSP over arrays and buffer pointers: arithmetic of two vectors, and of a vector and a number.
//
// Each function comes twice: it returns an array, or writes to `result`, which may be one of the vectors.

/// An array of n elements that a call writes.
@inline(__always)
private func array<T>(_ n: Int, _ body: (inout UnsafeMutableBufferPointer<T>) -> Void) -> [T] {
  Array(unsafeUninitializedCapacity: n) { buffer, count in
    var vector = UnsafeMutableBufferPointer(rebasing: buffer[..<n])
    body(&vector)
    count = n
  }
}

extension vDSP {
  /// a + b, element by element.
  public static func add<T, U>(_ vectorA: T, _ vectorB: U) -> [Float]
  where T: AccelerateBuffer, U: AccelerateBuffer, T.Element == Float, U.Element == Float {
    array(vectorA.count) { add(vectorA, vectorB, result: &$0) }
  }
  /// a + b, element by element, to `result`.
  public static func add<T, U, V>(_ vectorA: T, _ vectorB: U, result: inout V)
  where
    T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateMutableBuffer, T.Element == Float, U.Element == Float,
    V.Element == Float
  {
    requireEqual("add", vectorA.count, vectorB.count)
    requireEqual("add", vectorA.count, result.count)
    vectorA.withVector { a, _ in
      vectorB.withVector { b, _ in result.withMutableVector { vDSP_vadd(a, 1, b, 1, $0, 1, $1) } }
    }
  }
  /// a + b, element by element.
  public static func add<T, U>(_ vectorA: T, _ vectorB: U) -> [Double]
  where T: AccelerateBuffer, U: AccelerateBuffer, T.Element == Double, U.Element == Double {
    array(vectorA.count) { add(vectorA, vectorB, result: &$0) }
  }
  /// a + b, element by element, to `result`.
  public static func add<T, U, V>(_ vectorA: T, _ vectorB: U, result: inout V)
  where
    T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateMutableBuffer, T.Element == Double, U.Element == Double,
    V.Element == Double
  {
    requireEqual("add", vectorA.count, vectorB.count)
    requireEqual("add", vectorA.count, result.count)
    vectorA.withVector { a, _ in
      vectorB.withVector { b, _ in result.withMutableVector { vDSP_vaddD(a, 1, b, 1, $0, 1, $1) } }
    }
  }
  /// a - b, element by element.
  public static func subtract<T, U>(_ vectorA: T, _ vectorB: U) -> [Float]
  where T: AccelerateBuffer, U: AccelerateBuffer, T.Element == Float, U.Element == Float {
    array(vectorA.count) { subtract(vectorA, vectorB, result: &$0) }
  }
  /// a - b, element by element, to `result`.
  public static func subtract<T, U, V>(_ vectorA: T, _ vectorB: U, result: inout V)
  where
    T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateMutableBuffer, T.Element == Float, U.Element == Float,
    V.Element == Float
  {
    requireEqual("subtract", vectorA.count, vectorB.count)
    requireEqual("subtract", vectorA.count, result.count)
    vectorA.withVector { a, _ in
      vectorB.withVector { b, _ in result.withMutableVector { vDSP_vsub(b, 1, a, 1, $0, 1, $1) } }
    }
  }
  /// a - b, element by element.
  public static func subtract<T, U>(_ vectorA: T, _ vectorB: U) -> [Double]
  where T: AccelerateBuffer, U: AccelerateBuffer, T.Element == Double, U.Element == Double {
    array(vectorA.count) { subtract(vectorA, vectorB, result: &$0) }
  }
  /// a - b, element by element, to `result`.
  public static func subtract<T, U, V>(_ vectorA: T, _ vectorB: U, result: inout V)
  where
    T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateMutableBuffer, T.Element == Double, U.Element == Double,
    V.Element == Double
  {
    requireEqual("subtract", vectorA.count, vectorB.count)
    requireEqual("subtract", vectorA.count, result.count)
    vectorA.withVector { a, _ in
      vectorB.withVector { b, _ in result.withMutableVector { vDSP_vsubD(b, 1, a, 1, $0, 1, $1) } }
    }
  }
  /// a b, element by element.
  public static func multiply<T, U>(_ vectorA: T, _ vectorB: U) -> [Float]
  where T: AccelerateBuffer, U: AccelerateBuffer, T.Element == Float, U.Element == Float {
    array(vectorA.count) { multiply(vectorA, vectorB, result: &$0) }
  }
  /// a b, element by element, to `result`.
  public static func multiply<T, U, V>(_ vectorA: T, _ vectorB: U, result: inout V)
  where
    T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateMutableBuffer, T.Element == Float, U.Element == Float,
    V.Element == Float
  {
    requireEqual("multiply", vectorA.count, vectorB.count)
    requireEqual("multiply", vectorA.count, result.count)
    vectorA.withVector { a, _ in
      vectorB.withVector { b, _ in result.withMutableVector { vDSP_vmul(a, 1, b, 1, $0, 1, $1) } }
    }
  }
  /// a b, element by element.
  public static func multiply<T, U>(_ vectorA: T, _ vectorB: U) -> [Double]
  where T: AccelerateBuffer, U: AccelerateBuffer, T.Element == Double, U.Element == Double {
    array(vectorA.count) { multiply(vectorA, vectorB, result: &$0) }
  }
  /// a b, element by element, to `result`.
  public static func multiply<T, U, V>(_ vectorA: T, _ vectorB: U, result: inout V)
  where
    T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateMutableBuffer, T.Element == Double, U.Element == Double,
    V.Element == Double
  {
    requireEqual("multiply", vectorA.count, vectorB.count)
    requireEqual("multiply", vectorA.count, result.count)
    vectorA.withVector { a, _ in
      vectorB.withVector { b, _ in result.withMutableVector { vDSP_vmulD(a, 1, b, 1, $0, 1, $1) } }
    }
  }
  /// a / b, element by element.
  public static func divide<T, U>(_ vectorA: T, _ vectorB: U) -> [Float]
  where T: AccelerateBuffer, U: AccelerateBuffer, T.Element == Float, U.Element == Float {
    array(vectorA.count) { divide(vectorA, vectorB, result: &$0) }
  }
  /// a / b, element by element, to `result`.
  public static func divide<T, U, V>(_ vectorA: T, _ vectorB: U, result: inout V)
  where
    T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateMutableBuffer, T.Element == Float, U.Element == Float,
    V.Element == Float
  {
    requireEqual("divide", vectorA.count, vectorB.count)
    requireEqual("divide", vectorA.count, result.count)
    vectorA.withVector { a, _ in
      vectorB.withVector { b, _ in result.withMutableVector { vDSP_vdiv(b, 1, a, 1, $0, 1, $1) } }
    }
  }
  /// a / b, element by element.
  public static func divide<T, U>(_ vectorA: T, _ vectorB: U) -> [Double]
  where T: AccelerateBuffer, U: AccelerateBuffer, T.Element == Double, U.Element == Double {
    array(vectorA.count) { divide(vectorA, vectorB, result: &$0) }
  }
  /// a / b, element by element, to `result`.
  public static func divide<T, U, V>(_ vectorA: T, _ vectorB: U, result: inout V)
  where
    T: AccelerateBuffer, U: AccelerateBuffer, V: AccelerateMutableBuffer, T.Element == Double, U.Element == Double,
    V.Element == Double
  {
    requireEqual("divide", vectorA.count, vectorB.count)
    requireEqual("divide", vectorA.count, result.count)
    vectorA.withVector { a, _ in
      vectorB.withVector { b, _ in result.withMutableVector { vDSP_vdivD(b, 1, a, 1, $0, 1, $1) } }
    }
  }
}

// MARK: A vector and a number

extension vDSP {
  /// scalar + each element.
  public static func add<U>(_ scalar: Float, _ vector: U) -> [Float] where U: AccelerateBuffer, U.Element == Float {
    array(vector.count) { add(scalar, vector, result: &$0) }
  }
  /// scalar + each element, to `result`.
  public static func add<U, V>(_ scalar: Float, _ vector: U, result: inout V)
  where U: AccelerateBuffer, V: AccelerateMutableBuffer, U.Element == Float, V.Element == Float {
    requireEqual("add", vector.count, result.count)
    var scalar = scalar
    vector.withVector { a, _ in result.withMutableVector { vDSP_vsadd(a, 1, &scalar, $0, 1, $1) } }
  }
  /// scalar + each element.
  public static func add<U>(_ scalar: Double, _ vector: U) -> [Double] where U: AccelerateBuffer, U.Element == Double {
    array(vector.count) { add(scalar, vector, result: &$0) }
  }
  /// scalar + each element, to `result`.
  public static func add<U, V>(_ scalar: Double, _ vector: U, result: inout V)
  where U: AccelerateBuffer, V: AccelerateMutableBuffer, U.Element == Double, V.Element == Double {
    requireEqual("add", vector.count, result.count)
    var scalar = scalar
    vector.withVector { a, _ in result.withMutableVector { vDSP_vsaddD(a, 1, &scalar, $0, 1, $1) } }
  }
  /// scalar times each element.
  public static func multiply<U>(_ scalar: Float, _ vector: U) -> [Float] where U: AccelerateBuffer, U.Element == Float {
    array(vector.count) { multiply(scalar, vector, result: &$0) }
  }
  /// scalar times each element, to `result`.
  public static func multiply<U, V>(_ scalar: Float, _ vector: U, result: inout V)
  where U: AccelerateBuffer, V: AccelerateMutableBuffer, U.Element == Float, V.Element == Float {
    requireEqual("multiply", vector.count, result.count)
    var scalar = scalar
    vector.withVector { a, _ in result.withMutableVector { vDSP_vsmul(a, 1, &scalar, $0, 1, $1) } }
  }
  /// scalar times each element.
  public static func multiply<U>(_ scalar: Double, _ vector: U) -> [Double] where U: AccelerateBuffer, U.Element == Double {
    array(vector.count) { multiply(scalar, vector, result: &$0) }
  }
  /// scalar times each element, to `result`.
  public static func multiply<U, V>(_ scalar: Double, _ vector: U, result: inout V)
  where U: AccelerateBuffer, V: AccelerateMutableBuffer, U.Element == Double, V.Element == Double {
    requireEqual("multiply", vector.count, result.count)
    var scalar = scalar
    vector.withVector { a, _ in result.withMutableVector { vDSP_vsmulD(a, 1, &scalar, $0, 1, $1) } }
  }
  /// Each element over scalar.
  public static func divide<U>(_ vector: U, _ scalar: Float) -> [Float] where U: AccelerateBuffer, U.Element == Float {
    array(vector.count) { divide(vector, scalar, result: &$0) }
  }
  /// Each element over scalar, to `result`.
  public static func divide<U, V>(_ vector: U, _ scalar: Float, result: inout V)
  where U: AccelerateBuffer, V: AccelerateMutableBuffer, U.Element == Float, V.Element == Float {
    requireEqual("divide", vector.count, result.count)
    var scalar = scalar
    vector.withVector { a, _ in result.withMutableVector { vDSP_vsdiv(a, 1, &scalar, $0, 1, $1) } }
  }
  /// scalar over each element.
  public static func divide<U>(_ scalar: Float, _ vector: U) -> [Float] where U: AccelerateBuffer, U.Element == Float {
    array(vector.count) { divide(scalar, vector, result: &$0) }
  }
  /// scalar over each element, to `result`.
  public static func divide<U, V>(_ scalar: Float, _ vector: U, result: inout V)
  where U: AccelerateBuffer, V: AccelerateMutableBuffer, U.Element == Float, V.Element == Float {
    requireEqual("divide", vector.count, result.count)
    var scalar = scalar  // with stride 0 it is every element
    vector.withVector { a, _ in result.withMutableVector { vDSP_vdiv(a, 1, &scalar, 0, $0, 1, $1) } }
  }
  /// Each element over scalar.
  public static func divide<U>(_ vector: U, _ scalar: Double) -> [Double] where U: AccelerateBuffer, U.Element == Double {
    array(vector.count) { divide(vector, scalar, result: &$0) }
  }
  /// Each element over scalar, to `result`.
  public static func divide<U, V>(_ vector: U, _ scalar: Double, result: inout V)
  where U: AccelerateBuffer, V: AccelerateMutableBuffer, U.Element == Double, V.Element == Double {
    requireEqual("divide", vector.count, result.count)
    var scalar = scalar
    vector.withVector { a, _ in result.withMutableVector { vDSP_vsdivD(a, 1, &scalar, $0, 1, $1) } }
  }
  /// scalar over each element.
  public static func divide<U>(_ scalar: Double, _ vector: U) -> [Double] where U: AccelerateBuffer, U.Element == Double {
    array(vector.count) { divide(scalar, vector, result: &$0) }
  }
  /// scalar over each element, to `result`.
  public static func divide<U, V>(_ scalar: Double, _ vector: U, result: inout V)
  where U: AccelerateBuffer, V: AccelerateMutableBuffer, U.Element == Double, V.Element == Double {
    requireEqual("divide", vector.count, result.count)
    var scalar = scalar  // with stride 0 it is every element
    vector.withVector { a, _ in result.withMutableVector { vDSP_vdivD(a, 1, &scalar, 0, $0, 1, $1) } }
  }
}
