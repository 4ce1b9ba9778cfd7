// Whether the arguments of a call fit the layer.
//
// The C calls see bare pointers for most arrays; the descriptors are known here only. A layer keeps the numbers it
// needs (type, elements of a sample), and every call compares: nothing is allocated unless a call is refused.

/// One sample of an array: the elements its sizes name, the memory from the first to the last of them, and the distance
/// to the next sample, all in elements. A packed sample has the same number three times.
struct SampleSize {
  var count = 0, span = 0, stride = 0
}

extension BNNSDataLayout {
  /// The number of axes; 0 of what is no layout.
  var axisCount: Int { Int((rawValue >> 16) & 0xf) }

  /// The axis that stride[k] belongs to.
  @inline(__always)
  func axis(ofStride k: Int, rank: Int) -> Int {
    if rawValue & 0x8001 == 0x8001 { return rank - 1 - k }  // first-major
    if self == BNNSDataLayoutMHA_DHK && k > 0 && k < 3 { return 3 - k }
    return k
  }
}

extension BNNSNDArrayDescriptor {
  /// The eight sizes and the eight strides, for the length of a call.
  @inline(__always)
  func withAxes<Result>(_ body: (UnsafePointer<Int>, UnsafePointer<Int>) -> Result) -> Result {
    withUnsafeBytes(of: size) { sizes in
      withUnsafeBytes(of: stride) { strides in
        body(
          sizes.baseAddress!.assumingMemoryBound(to: Int.self),
          strides.baseAddress!.assumingMemoryBound(to: Int.self))
      }
    }
  }

  /// Sizes are taken as they come: what overflows fits no layer.
  var sampleSize: SampleSize {
    let rank = layout.axisCount
    if rank == 0 || rank > 8 { return SampleSize() }  // no layout: the C call says so
    return withAxes { size, stride in
      var s = SampleSize(count: 1, span: 0, stride: 1)
      for k in 0..<rank {
        let extent = size[layout.axis(ofStride: k, rank: rank)]
        let step = stride[k] != 0 ? stride[k] : s.stride
        s.count &*= extent
        s.span &+= step &* (extent &- 1)
        s.stride = step &* extent
      }
      s.span = s.count != 0 ? s.span &+ 1 : 0
      return s
    }
  }

  /// Which elements of its memory a sample with gaps covers: equal for shapes that name the same ones, in any order of
  /// axes. 0 for a sample without gaps.
  func gapPattern(_ s: SampleSize) -> Int {
    if s.span == s.count { return 0 }
    let rank = layout.axisCount
    var axes: [(step: Int, extent: Int)] = []
    withAxes { size, stride in
      var packed = 1
      for k in 0..<rank {
        let axis = (step: stride[k] != 0 ? stride[k] : packed, extent: size[layout.axis(ofStride: k, rank: rank)])
        packed = axis.step &* axis.extent
        if axis.extent != 1 { axes.append(axis) }
      }
    }
    axes.sort { $0.step < $1.step }
    var pattern = 1
    var i = 0
    while i < axes.count {
      var (step, extent) = axes[i]
      while i + 1 < axes.count && axes[i + 1].step == step &* extent {  // one run
        i += 1
        extent &*= axes[i].extent
      }
      for number in [step, extent] { pattern = (pattern ^ number) &* -0x61c8_8646_80b5_83eb }
      i += 1
    }
    return pattern | 1
  }
}

extension BNNSDataType {
  /// "Float32", "Int8", as reasons name it.
  var text: String {
    if self == BNNSDataTypeBoolean { return "Boolean" }
    if self == BNNSDataTypeBFloat16 { return "BFloat16" }
    let width = rawValue & 0xff
    switch rawValue & ~0xff {
    case BNNSDataTypeFloatBit.rawValue: return "Float\(width)"
    case BNNSDataTypeIntBit.rawValue: return "Int\(width)"
    case BNNSDataTypeUIntBit.rawValue: return "UInt\(width)"
    case BNNSDataTypeIndexedBit.rawValue: return "Indexed\(width)"
    default: return "data type \(rawValue)"
    }
  }
}

/// The data pointer of an array and the elements from one sample to the next, as the C calls take them.
typealias Samples = (data: UnsafeMutableRawPointer?, stride: Int)

/// What an argument of a layer must be. Zeros: not known, and not compared.
struct Expected {
  var type = BNNSDataType(0)
  var count = 0, span = 0, gaps = 0
  // Most calls pass a descriptor of the layer's own shape. What the numbers above were made of is kept, so that such a
  // one costs a comparison.
  private var stride = 0
  private var own = BNNSNDArrayDescriptor()

  init() {}
  init(_ d: BNNSNDArrayDescriptor?) {
    guard let d else { return }
    let s = d.sampleSize
    type = d.data_type
    count = s.count
    span = s.span
    gaps = d.gapPattern(s)
    stride = s.stride
    own = d
  }

  /// Whether layout, sizes and strides are those of the layer's descriptor. The sizes and strides that the layout does
  /// not use count too: at worst the numbers are made anew.
  @inline(__always)
  func isOwnShape(_ d: BNNSNDArrayDescriptor) -> Bool {
    var different = Int(own.layout.rawValue ^ d.layout.rawValue)
    different |= (own.size.0 ^ d.size.0) | (own.size.1 ^ d.size.1) | (own.size.2 ^ d.size.2) | (own.size.3 ^ d.size.3)
    different |= (own.size.4 ^ d.size.4) | (own.size.5 ^ d.size.5) | (own.size.6 ^ d.size.6) | (own.size.7 ^ d.size.7)
    different |= (own.stride.0 ^ d.stride.0) | (own.stride.1 ^ d.stride.1)
    different |= (own.stride.2 ^ d.stride.2) | (own.stride.3 ^ d.stride.3)
    different |= (own.stride.4 ^ d.stride.4) | (own.stride.5 ^ d.stride.5)
    different |= (own.stride.6 ^ d.stride.6) | (own.stride.7 ^ d.stride.7)
    return different == 0
  }

  /// An array that the C call knows by its data only. It uses the strides of the layer, so that the type, the count and
  /// the extent in memory must be the layer's.
  @inline(__always)
  func fitting(_ call: Call, _ label: StaticString, _ d: BNNSNDArrayDescriptor) throws -> Samples {
    guard let data = d.data else { throw missing(call, label) }
    return (data, try fit(call, label, d))
  }

  /// The same of an array that some layers do not read: without data it is left out.
  @inline(__always)
  func fittingIfGiven(_ call: Call, _ label: StaticString, _ d: BNNSNDArrayDescriptor) throws -> Samples {
    guard let data = d.data else { return (nil, 0) }
    return (data, try fit(call, label, d))
  }

  /// The stride of a gradient, which the C call takes with its descriptor: layout, strides and type may be its own.
  @inline(__always)
  func described(_ call: Call, _ label: StaticString, _ d: BNNSNDArrayDescriptor, shared: Bool = false) throws -> Int {
    guard d.data != nil else { throw missing(call, label) }
    if isOwnShape(d) { return stride }
    let s = d.sampleSize
    if s.count != count && count != 0 { throw misfit(call, label, d, s, compareType: false, shared: shared) }
    return s.stride
  }

  /// The same of the gradient of a parameter, which the samples share, where one is wanted.
  @inline(__always)
  func describedIfGiven(_ call: Call, _ label: StaticString, _ d: BNNSNDArrayDescriptor?) throws {
    try withPointer(to: d) { if let d = $0 { _ = try described(call, label, d.pointee, shared: true) } }
  }

  @inline(__always)
  private func fit(_ call: Call, _ label: StaticString, _ d: BNNSNDArrayDescriptor) throws -> Int {
    let typeFits = d.data_type == type || type.rawValue == 0
    if typeFits && isOwnShape(d) { return stride }
    let s = d.sampleSize
    let sizeFits = count == 0 || (s.count == count && s.span == span && d.gapPattern(s) == gaps)
    if !typeFits || !sizeFits { throw misfit(call, label, d, s, compareType: true, shared: false) }
    return s.stride
  }

  @inline(never)
  private func missing(_ call: Call, _ label: StaticString) -> BNNS.Error {
    call.refusal(.arrayDescriptorInvalidData, "\(label): the descriptor has no data")
  }

  /// The first thing that does not fit, in words.
  @inline(never)
  private func misfit(
    _ call: Call, _ label: StaticString, _ d: BNNSNDArrayDescriptor, _ s: SampleSize, compareType: Bool, shared: Bool
  ) -> BNNS.Error {
    let many = "\(label)".hasSuffix("s")
    if compareType && type.rawValue != 0 && d.data_type != type {
      return call.refusal(
        .arrayDescriptorInvalidData, "\(label) \(many ? "are" : "is") \(d.data_type.text), the layer takes \(type.text)")
    }
    if s.count != count {
      return call.refusal(
        .arrayDescriptorInvalidData,
        "\(label) \(many ? "have" : "has") \(counted(s.count, "element"))\(shared ? "" : " a sample"), the layer takes \(count)")
    }
    return call.refusal(
      .arrayDescriptorInvalidData,
      "\(label) \(many ? "spread" : "spreads") \(s.count) elements over \(s.span), the layer over \(span): "
        + "the strides of the shapes differ")
  }
}

/// "1 element", "2 elements".
func counted(_ n: Int, _ what: String) -> String { "\(n) \(what)\(n == 1 ? "" : "s")" }

/// Axis numbers as the C calls take them, bit k for axis k; no list: 0, all of them.
func axisMask(_ axes: [Int]?, _ call: Call, _ error: BNNS.Error = .layerApplyFail) throws -> UInt32 {
  var mask: UInt32 = 0
  for axis in axes ?? [] {
    guard (0..<32).contains(axis) else { throw call.refusal(error, "no array has an axis \(axis)") }
    mask |= 1 << UInt32(axis)
  }
  return mask
}
