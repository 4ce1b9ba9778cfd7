// Random numbers: the generator of the library, and arrays of random numbers.

extension BNNS {
  /// Algorithms of random numbers.
  public enum RandomGeneratorMethod: Sendable {
    /// AES in counter mode; not for cryptography.
    case aesCtr
  }

  /// What a generator continues from: equal states give equal numbers.
  public class RandomGeneratorState {
    final let bytes: [UInt8]
    init(bytes: [UInt8]) { self.bytes = bytes }
  }

  /// A generator of random numbers. It is locked inside, so that threads may share one.
  public class RandomGenerator {
    final let generator: BNNSRandomGenerator

    /// A generator; nil where the library refuses.
    /// - Parameters:
    ///   - method: The algorithm.
    ///   - seed: Equal seeds give equal numbers; nil: a seed of the operating system's.
    ///   - filterParameters: Threads and memory; nil: the defaults.
    public init?(method: RandomGeneratorMethod, seed: UInt64? = nil, filterParameters: BNNSFilterParameters? = nil) {
      let algorithm = method.bnnsRandomGeneratorMethod
      let made = withPointer(to: filterParameters) { options in
        seed.map { BNNSCreateRandomGeneratorWithSeed(algorithm, $0, options) }
          ?? BNNSCreateRandomGenerator(algorithm, options)
      }
      guard let made else { return nil }
      generator = made
    }

    deinit { BNNSDestroyRandomGenerator(generator) }

    /// Where the generator stands. Set to a state of this or another generator, it continues from there; one that the
    /// library refuses is not taken (`BNNS.lastErrorReason`).
    public var state: RandomGeneratorState {
      get {
        var bytes = [UInt8](repeating: 0, count: BNNSRandomGeneratorStateSize(generator))
        _ = BNNSRandomGeneratorGetState(generator, bytes.count, &bytes)
        return RandomGeneratorState(bytes: bytes)
      }
      set {
        var bytes = newValue.bytes  // the C call takes a mutable pointer
        _ = BNNSRandomGeneratorSetState(generator, bytes.count, &bytes)
      }
    }
  }
}

extension BNNS.RandomGeneratorMethod {
  var bnnsRandomGeneratorMethod: BNNSRandomGeneratorMethod { BNNSRandomGeneratorMethodAES_CTR }
}

extension BNNSNDArrayDescriptor {
  /// Memory for the samples of a batch, with uniform random numbers of a range.
  public static func allocate<Scalar>(randomIn range: ClosedRange<Scalar>, shape: BNNS.Shape, batchSize: Int = 1)
    -> BNNSNDArrayDescriptor
  where Scalar: BNNSScalar, Scalar: BinaryFloatingPoint, Scalar.RawSignificand: FixedWidthInteger {
    var generator = SystemRandomNumberGenerator()
    return allocate(randomIn: range, using: &generator, shape: shape, batchSize: batchSize)
  }

  /// Memory for the samples of a batch, with uniform random integers of a range.
  public static func allocate<Scalar>(randomIn range: ClosedRange<Scalar>, shape: BNNS.Shape, batchSize: Int = 1)
    -> BNNSNDArrayDescriptor
  where Scalar: BNNSScalar, Scalar: FixedWidthInteger {
    var generator = SystemRandomNumberGenerator()
    return allocate(randomIn: range, using: &generator, shape: shape, batchSize: batchSize)
  }

  /// The same, of integers, from a generator of the program's.
  public static func allocate<Scalar, Generator>(
    randomIn range: ClosedRange<Scalar>, using generator: inout Generator, shape: BNNS.Shape, batchSize: Int = 1
  ) -> BNNSNDArrayDescriptor
  where Scalar: BNNSScalar, Scalar: FixedWidthInteger, Generator: RandomNumberGenerator {
    let (d, elements) = allocated(Scalar.self, shape, batchSize)
    for i in elements.indices { elements.initializeElement(at: i, to: .random(in: range, using: &generator)) }
    return d
  }

  /// The same, of floating-point numbers, from a generator of the program's.
  public static func allocate<Scalar, Generator>(
    randomIn range: ClosedRange<Scalar>, using generator: inout Generator, shape: BNNS.Shape, batchSize: Int = 1
  ) -> BNNSNDArrayDescriptor
  where
    Scalar: BNNSScalar, Scalar: BinaryFloatingPoint, Generator: RandomNumberGenerator,
    Scalar.RawSignificand: FixedWidthInteger
  {
    let (d, elements) = allocated(Scalar.self, shape, batchSize)
    for i in elements.indices { elements.initializeElement(at: i, to: .random(in: range, using: &generator)) }
    return d
  }

  /// Memory for the samples of a batch, with normally distributed numbers of a generator of the library; nil where it
  /// refuses.
  public static func allocate<Scalar>(
    randomNormalUsing randomGenerator: BNNS.RandomGenerator, mean: Scalar, standardDeviation: Scalar,
    shape: BNNS.Shape, batchSize: Int = 1
  ) -> BNNSNDArrayDescriptor? where Scalar: BNNSScalar, Scalar: BinaryFloatingPoint {
    filled(Scalar.self, shape, batchSize) {
      BNNSRandomFillNormalFloat(randomGenerator.generator, $0, Float(mean), Float(standardDeviation))
    }
  }

  /// Memory for the samples of a batch, with uniform numbers of a generator of the library, the upper bound excluded;
  /// nil where it refuses.
  public static func allocate<Scalar>(
    randomUniformUsing randomGenerator: BNNS.RandomGenerator, range: ClosedRange<Scalar>, shape: BNNS.Shape,
    batchSize: Int = 1
  ) -> BNNSNDArrayDescriptor? where Scalar: BNNSScalar, Scalar: BinaryFloatingPoint {
    filled(Scalar.self, shape, batchSize) {
      BNNSRandomFillUniformFloat(randomGenerator.generator, $0, Float(range.lowerBound), Float(range.upperBound))
    }
  }

  /// Memory for the samples of a batch, with uniform integers of a generator of the library, both bounds included; nil
  /// where it refuses, or where the upper bound is not below the largest Int64.
  public static func allocate<Scalar>(
    randomUniformUsing randomGenerator: BNNS.RandomGenerator, range: ClosedRange<Scalar>, shape: BNNS.Shape,
    batchSize: Int = 1
  ) -> BNNSNDArrayDescriptor? where Scalar: BNNSScalar, Scalar: FixedWidthInteger {
    guard let lower = Int64(exactly: range.lowerBound), let upper = Int64(exactly: range.upperBound), upper < .max
    else {
      _ = Call("allocate").refusal(.layerApplyFail, "the upper end may not be the largest 64-bit integer, or exceed it")
      return nil
    }
    return filled(Scalar.self, shape, batchSize) {  // the C range is half open
      BNNSRandomFillUniformInt(randomGenerator.generator, $0, lower, upper + 1)
    }
  }

  /// All samples are one vector to the C call.
  private static func filled<Scalar: BNNSScalar>(
    _: Scalar.Type, _ shape: BNNS.Shape, _ batchSize: Int,
    _ fill: (UnsafeMutablePointer<BNNSNDArrayDescriptor>) -> Int32
  ) -> BNNSNDArrayDescriptor? {
    let (d, elements) = allocated(Scalar.self, shape, batchSize)
    var all = BNNS.Shape.vector(elements.count).describe(d.data_type)
    all.data = d.data
    if fill(&all) == 0 { return d }
    d.deallocate()
    return nil
  }
}
