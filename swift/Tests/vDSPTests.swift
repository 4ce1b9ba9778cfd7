// vDSP over arrays, slices and buffer pointers.

import Accelerate
import XCTest

final class vDSPTests: XCTestCase {
  func testOneNumberOfAVector() {
    let x: [Float] = [3, -1, 4, -1, 5], d: [Double] = [3, -1, 4, -1, 5]
    XCTAssertEqual(vDSP.sum(x), 10)
    XCTAssertEqual(vDSP.mean(x), 2)
    XCTAssertEqual(vDSP.maximum(x), 5)
    XCTAssertEqual(vDSP.minimum(x), -1)
    XCTAssertTrue(vDSP.indexOfMaximum(x) == (4, 5))
    XCTAssertTrue(vDSP.indexOfMinimum(x) == (1, -1))
    XCTAssertEqual(vDSP.sum(d), 10)
    XCTAssertEqual(vDSP.mean(d), 2)
    XCTAssertTrue(vDSP.indexOfMaximum(d) == (4, 5))
    XCTAssertEqual(vDSP.sum(x[1...3]), 2)
    XCTAssertEqual(vDSP.sum([] as [Float]), 0)
    XCTAssertTrue(vDSP.mean([] as [Float]).isNaN)
    x.withUnsafeBufferPointer { XCTAssertEqual(vDSP.sum($0), 10) }
    x.withUnsafeBufferPointer { XCTAssertEqual(vDSP.sum($0[2..<4]), 3) }
    XCTAssertEqual(vDSP.sum(ContiguousArray(x)), 10)
  }

  func testArithmetic() {
    let a: [Float] = [1, 2, 3], b: [Float] = [4, 5, 6], c: [Double] = [1, 2, 4]
    XCTAssertEqual(vDSP.add(a, b), [5, 7, 9])
    XCTAssertEqual(vDSP.subtract(a, b), [-3, -3, -3])
    XCTAssertEqual(vDSP.multiply(a, b), [4, 10, 18])
    XCTAssertEqual(vDSP.divide(b, a), [4, 2.5, 2])
    XCTAssertEqual(vDSP.add(1, a), [2, 3, 4])
    XCTAssertEqual(vDSP.multiply(2, a), [2, 4, 6])
    XCTAssertEqual(vDSP.divide(a, 2), [0.5, 1, 1.5])
    XCTAssertEqual(vDSP.divide(12, b), [3, 2.4, 2])
    XCTAssertEqual(vDSP.divide(4, c), [4, 2, 1])
    XCTAssertEqual(vDSP.subtract(c, c), [0, 0, 0])
    var y = [Float](repeating: 0, count: 3)
    vDSP.add(a, b[0..<3], result: &y)
    XCTAssertEqual(y, [5, 7, 9])
    vDSP.multiply(0.5, y, result: &y)
    XCTAssertEqual(y, [2.5, 3.5, 4.5])
  }

  func testInPlace() {
    var x: [Float] = [3, 1, 2]
    vDSP.sort(&x, sortOrder: .ascending)
    XCTAssertEqual(x, [1, 2, 3])
    vDSP.sort(&x, sortOrder: .descending)
    XCTAssertEqual(x, [3, 2, 1])
    vDSP.fill(&x, with: 7)
    XCTAssertEqual(x, [7, 7, 7])
    vDSP.clear(&x)
    XCTAssertEqual(x, [0, 0, 0])
    var d: [Double] = [2, 1]
    vDSP.sort(&d, sortOrder: .ascending)
    XCTAssertEqual(d, [1, 2])
  }

  func testCNames() {
    var x: [Float] = [1, 4, 2], y = [Float](repeating: 9, count: 3), largest: Float = 0, at: vDSP_Length = 0
    let stride: vDSP_Stride = 1
    vDSP_maxvi(x, stride, &largest, &at, vDSP_Length(x.count))
    XCTAssertEqual(largest, 4)
    XCTAssertEqual(at, 1)
    vDSP_vsq(x, 1, &y, 1, 3)
    XCTAssertEqual(y, [1, 16, 4])
    vDSP_vclr(&x, 1, 3)
    var n: Int32 = 3
    vvexpf(&y, x, &n)
    XCTAssertEqual(y, [1, 1, 1])
  }
}
