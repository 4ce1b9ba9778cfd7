// The Swift overlay of BNNS: a namespace, what calls throw, and why the last one was refused.
//
// The module has the name of the Clang module below it, and exports it: one `import Accelerate` gives the C names too.

@_exported import Accelerate  // the Clang module
import BNNSExtensions

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Layers, losses, optimizers and functions of tensors. A namespace: it has no values.
public enum BNNS {
  /// What kind of call was refused. `BNNS.lastErrorReason` says why, in words.
  public enum Error: Swift.Error {
    /// An array has no data, or its type, size or strides do not fit.
    case arrayDescriptorInvalidData
    /// The library refused an apply, a gradient or a function.
    case layerApplyFail
    /// The library refused the step of an optimizer, or its lists differ in length.
    case optimizerStepFail
    /// A layer could not be made. Initializers return nil instead.
    case unableToCreateLayer
  }

  /// Why the last call on this thread was refused, one line; "" if none was. A call that succeeds leaves it unchanged.
  ///
  ///     guard let layer = BNNS.GramLayer(input: x, output: y, alpha: 1) else { fatalError(BNNS.lastErrorReason) }
  ///
  /// (An addition: Apple's module has no such property.)
  public static var lastErrorReason: String {
    let reason = String(cString: BNNSExtLastError())
    return reason.isEmpty ? OverlayReason.text : reason
  }
}

/// The reason of a refusal that the overlay found itself, one for each thread. It counts while the C library has none:
/// `set` clears that one, and a later refusal of the library brings a new one.
enum OverlayReason {
  private final class Box {
    let text: String
    init(_ text: String) { self.text = text }
  }

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let status = pthread_key_create(&key) { box in
      if let box = box as UnsafeMutableRawPointer? { Unmanaged<Box>.fromOpaque(box).release() }
    }
    precondition(status == 0, "BNNS: the process has no room for one more thread-specific value")
    return key
  }()

  static var text: String {
    guard let box = pthread_getspecific(key) else { return "" }
    return Unmanaged<Box>.fromOpaque(box).takeUnretainedValue().text
  }

  static func set(_ text: String) {
    BNNSExtClearLastError()
    if let old = pthread_getspecific(key) { Unmanaged<Box>.fromOpaque(old).release() }
    pthread_setspecific(key, Unmanaged.passRetained(Box(text)).toOpaque())
  }
}

/// A call, as reasons name it: "FullyConnectedLayer.apply", or one name alone.
struct Call {
  let scope: Any.Type?
  let name: StaticString

  init(_ name: StaticString) { self.scope = nil; self.name = name }
  init(_ scope: Any.Type, _ name: StaticString) { self.scope = scope; self.name = name }

  var text: String { scope.map { "\($0).\(name)" } ?? "\(name)" }

  /// What is thrown where the overlay refuses. A call that succeeds builds no text.
  @inline(never)
  func refusal(_ error: BNNS.Error, _ reason: String) -> BNNS.Error {
    OverlayReason.set("\(text): \(reason)")
    return error
  }

  /// What a C function returned: anything but 0 is thrown, and its reason is the library's.
  @inline(__always)
  func check(_ status: Int32, _ error: BNNS.Error = .layerApplyFail) throws {
    if status != 0 { throw error }
  }
}

/// A pointer to a value, or nil where there is none, for the length of a call.
@inline(__always)
func withPointer<Value, Result>(
  to value: Value?, _ body: (UnsafePointer<Value>?) throws -> Result
) rethrows -> Result {
  if case .none = value { return try body(nil) }
  // The value of an optional is at its beginning: no copy is made.
  return try withUnsafePointer(to: value) { try body(UnsafeRawPointer($0).assumingMemoryBound(to: Value.self)) }
}

typealias DescriptorPointer = UnsafeMutablePointer<BNNSNDArrayDescriptor>

/// The same for gradients: the C calls take pointers to mutable descriptors, and write through their data only.
@inline(__always)
func withMutablePointer<Result>(
  ifGiven value: BNNSNDArrayDescriptor?, _ body: (DescriptorPointer?) throws -> Result
) rethrows -> Result {
  try withPointer(to: value) { try body(DescriptorPointer(mutating: $0)) }
}
@inline(__always)
func withMutablePointer<Result>(
  to value: BNNSNDArrayDescriptor, _ body: (DescriptorPointer) throws -> Result
) rethrows -> Result {
  try withUnsafePointer(to: value) { try body(DescriptorPointer(mutating: $0)) }
}
