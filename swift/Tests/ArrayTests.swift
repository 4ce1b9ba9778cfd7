// Shapes, descriptors, random numbers, and the older conveniences.

import Accelerate
import XCTest

final class ArrayTests: XCTestCase {
  private let arrays = Arrays()

  func testShapes() {
    let shapes: [(BNNS.Shape, BNNSDataLayout, Int, Int)] = [
      (.vector(5), BNNSDataLayoutVector, 1, 5), ([5], BNNSDataLayoutVector, 1, 5),
      ([2, 3], BNNSDataLayout2DFirstMajor, 2, 6), ([2, 3, 4], BNNSDataLayout3DFirstMajor, 3, 24),
      (.matrixRowMajor(4, 3), BNNSDataLayoutRowMajorMatrix, 2, 12),
      (.matrixRowMajor(4, 3, stride: (1, 6)), BNNSDataLayoutRowMajorMatrix, 2, 18),
      (.matrixFirstMajor(4, 3, stride: (1, 6)), BNNSDataLayout2DFirstMajor, 2, 24),
      (.imageCHW(5, 4, 3), BNNSDataLayoutImageCHW, 3, 60), (.tensor3DNSE(2, 3, 4), BNNSDataLayoutNSE, 3, 24),
      (.convolutionWeightsOIHW(3, 3, 2, 4), BNNSDataLayoutConvolutionWeightsOIHW, 4, 72),
      (BNNS.Shape([2, 3, 4], dataLayout: .imageCHW), BNNSDataLayoutImageCHW, 3, 24),
      (.tensor8DLastMajor(1, 2, 1, 2, 1, 2, 1, 2), BNNSDataLayout8DLastMajor, 8, 16),
    ]
    for (shape, layout, rank, stride) in shapes {
      XCTAssertEqual(shape.layout, layout)
      XCTAssertEqual(shape.rank, rank)
      XCTAssertEqual(shape.batchStride, stride, "\(shape)")
    }
    let s = BNNS.Shape.imageCHW(5, 4, 3, stride: (1, 6, 30))
    XCTAssertEqual([s.size.0, s.size.1, s.size.2, s.size.3], [5, 4, 3, 0])
    XCTAssertEqual([s.stride.0, s.stride.1, s.stride.2, s.stride.7], [1, 6, 30, 0])
    for layout in BNNS.DataLayout.allCases {
      let sizes = Array(1...layout.rank)
      let d = D(dataType: .float, shape: BNNS.Shape(sizes, dataLayout: layout, stride: sizes))
      XCTAssertEqual(d.shape.layout, d.layout)
      XCTAssertEqual(BNNSDataLayoutGetRank(d.layout), layout.rank)
    }
    var rotated = D(dataType: .float, shape: .convolutionWeightsOIHW(3, 3, 2, 4))
    rotated.layout = BNNSDataLayoutConvolutionWeightsOIHrWr
    XCTAssertEqual(rotated.shape.layout, BNNSDataLayout4DLastMajor)
  }

  func testArrays() {
    let d = arrays.keep(.allocate(initializingFrom: [1, 2, 3, 4] as [Int16], shape: .vector(2), batchSize: 2))
    XCTAssertEqual(d.makeArray(of: Int16.self, batchSize: 2), [1, 2, 3, 4])
    XCTAssertEqual(d.makeArray(of: Int16.self), [1, 2])
    XCTAssertNil(d.makeArray(of: Float.self))
    XCTAssertEqual(d.dataSize, 4)
    XCTAssertEqual(Int(bitPattern: d.data) % 64, 0)
    let short = arrays.keep(.allocate(initializingFrom: [7] as [Float], shape: .vector(3)))
    XCTAssertEqual(short.floats(), [7, 0, 0])
    let gaps = arrays.keep(.allocate(repeating: Float(1), shape: .vector(3, stride: 2), batchSize: 2))
    XCTAssertEqual(gaps.makeArray(of: Float.self, batchSize: 2)?.count, 11)  // two strides of 6, less what follows the last
    let memory = UnsafeMutableBufferPointer<Float>.allocate(capacity: 6)
    defer { memory.deallocate() }
    let view = BNNSNDArrayDescriptor(data: memory, shape: .vector(3), batchSize: 2)
    XCTAssertEqual(view?.data, UnsafeMutableRawPointer(memory.baseAddress!))
    XCTAssertEqual(view?.data_type, .float)
    let types: [(any BNNSScalar.Type, BNNSDataType)] = [
      (Float.self, .float), (Float16.self, .float16), (Bool.self, BNNSDataTypeBoolean), (Int8.self, .int8),
      (Int16.self, .int16), (Int32.self, .int32), (Int64.self, BNNSDataTypeInt64), (UInt8.self, .uint8),
      (UInt16.self, .uint16), (UInt32.self, .uint32), (UInt64.self, BNNSDataTypeUInt64),
    ]
    for (type, expected) in types {
      let d = arrays.keep(.allocateUninitialized(scalarType: type, shape: .vector(2)))
      XCTAssertEqual(d.data_type, expected)
    }
  }

  func testRandomNumbers() throws {
    let first = try XCTUnwrap(BNNS.RandomGenerator(method: .aesCtr, seed: 5))
    let second = try XCTUnwrap(BNNS.RandomGenerator(method: .aesCtr, seed: 5))
    func draw(_ generator: BNNS.RandomGenerator) throws -> [Float] {
      arrays.keep(
        try XCTUnwrap(.allocate(randomUniformUsing: generator, range: Float(2)...3, shape: .vector(50), batchSize: 2))
      ).floats(2)
    }
    let state = first.state
    let numbers = try draw(first)
    XCTAssertEqual(numbers, try draw(second))
    XCTAssertNotEqual(numbers, try draw(first))
    first.state = state
    XCTAssertEqual(numbers, try draw(first))
    XCTAssertTrue(numbers.allSatisfy { (2..<3).contains($0) })
    let dice = arrays.keep(
      try XCTUnwrap(.allocate(randomUniformUsing: first, range: Int8(1)...6, shape: .vector(500))))
    XCTAssertEqual(Set(dice.makeArray(of: Int8.self)!), [1, 2, 3, 4, 5, 6])  // both ends are there
    let normal = arrays.keep(
      try XCTUnwrap(.allocate(randomNormalUsing: first, mean: Float(10), standardDeviation: 1, shape: .vector(1000)))
    ).floats()
    XCTAssertEqual(normal.reduce(0, +) / 1000, 10, accuracy: 0.2)
    XCTAssertNil(D.allocate(randomUniformUsing: first, range: UInt64(0)...UInt64.max, shape: .vector(1)))

    struct Counter: RandomNumberGenerator {
      var count: UInt64 = 0
      mutating func next() -> UInt64 {
        count &+= 0x9e37_79b9_7f4a_7c15
        return count
      }
    }
    var a = Counter(), b = Counter()
    let x = arrays.keep(.allocate(randomIn: Float(-1)...1, using: &a, shape: .vector(9)))
    XCTAssertEqual(x.floats(), (0..<9).map { _ in Float.random(in: -1...1, using: &b) })
    let bytes = arrays.keep(.allocate(randomIn: UInt8(3)...4, shape: .vector(200)))
    XCTAssertEqual(Set(bytes.makeArray(of: UInt8.self)!), [3, 4])
  }

  func testOlderConveniences() throws {
    let flags = BNNSFilterParameters(options: .useClientPointer, threadCount: 2, allocator: nil, deallocator: nil)
    XCTAssertEqual(flags.flags, BNNSFlagsUseClientPtr.rawValue)
    XCTAssertEqual(flags.options, .useClientPointer)
    XCTAssertEqual(flags.n_threads, 2)
    let activation = BNNSActivation(function: .scaledTanh, alpha: 2, beta: 3)
    XCTAssertEqual([activation.alpha, activation.beta], [2, 3])
    XCTAssertTrue(BNNSActivation.identity.alpha.isNaN)
    XCTAssertEqual(BNNSActivation.integerLinearSaturate(shift: 4).iscale, 1)
    // A layer of the first API: y = relu(2 x - 1).
    let weights: [Float] = [2], bias: [Float] = [-1], x: [Float] = [3]
    var y: [Float] = [0]
    try weights.withUnsafeBytes { w in
      try bias.withUnsafeBytes { b in
        var layer = BNNSFullyConnectedLayerParameters(
          in_size: 1, out_size: 1, weights: BNNSLayerData(data: w.baseAddress, data_type: .float))
        layer.bias = BNNSLayerData(data: b.baseAddress, data_type: .float)
        layer.activation = BNNSActivation(function: .rectifiedLinear)
        var vector = BNNSVectorDescriptor(size: 1, data_type: .float)
        let filter = try XCTUnwrap(BNNSFilterCreateFullyConnectedLayer(&vector, &vector, &layer, nil))
        XCTAssertEqual(BNNSFilterApply(filter, x, &y), 0)
        BNNSFilterDestroy(filter)
      }
    }
    XCTAssertEqual(y, [5])
  }
}
