// What a call of a layer costs beyond the C call: the difference of the fastest of many runs of both, in nanoseconds.
//   overhead LIMIT    fails where one costs more than LIMIT ns
import Accelerate
import Glibc

typealias D = BNNSNDArrayDescriptor
func floats(_ shape: BNNS.Shape, _ batch: Int = 1) -> D { .allocate(repeating: Float(1), shape: shape, batchSize: batch) }

func now() -> Int {
  var t = timespec()
  clock_gettime(CLOCK_MONOTONIC, &t)
  return t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// Nanoseconds of one call: the fastest of 400 blocks of 50, the two calls taking turns.
func fastest(_ swift: () throws -> Void, _ c: () throws -> Void) rethrows -> (swift: Double, c: Double) {
  var best = (swift: Double.infinity, c: Double.infinity)
  for _ in 0..<400 {
    let t0 = now()
    for _ in 0..<50 { try swift() }
    let t1 = now()
    for _ in 0..<50 { try c() }
    let t2 = now()
    best = (min(best.swift, Double(t1 - t0) / 50), min(best.c, Double(t2 - t1) / 50))
  }
  return best
}

var worst = 0.0
func report(_ name: String, _ time: (swift: Double, c: Double)) {
  print("\(name): Swift \(Int(time.swift)) ns, C \(Int(time.c)) ns, overhead \(Int(time.swift - time.c)) ns")
  worst = max(worst, time.swift - time.c)
}

// In functions, since constants of a file are copied to be passed.
func dense() throws {
  let v = BNNS.Shape.vector(8)
  let x = floats(v), y = floats(v), dx = floats(v), dy = floats(v)
  let w = floats(.matrixRowMajor(8, 8)), dw = floats(.matrixRowMajor(8, 8)), b = floats(v), db = floats(v)
  let layer = BNNS.FullyConnectedLayer(input: x, output: y, weights: w, bias: b, activation: .identity)!
  let filter = layer.bnnsFilter
  report("fully connected, forward", try fastest {
    try layer.apply(batchSize: 1, input: x, output: y)
  } _: { _ = BNNSFilterApplyBatch(filter, 1, x.data!, 8, y.data!, 8) })
  var (dxC, dyC, dwC, dbC) = (dx, dy, dw, db)
  report("fully connected, backward", try fastest {
    try layer.applyBackward(
      batchSize: 1, input: x, output: y, outputGradient: dy, generatingInputGradient: dx, generatingWeightsGradient: dw,
      generatingBiasGradient: db)
  } _: { _ = BNNSFilterApplyBackwardBatch(filter, 1, x.data, 8, &dxC, 8, y.data, 8, &dyC, 8, &dwC, &dbC) })
}

func arithmetic() throws {
  let v = BNNS.Shape.vector(8)
  let x = floats(v), y = floats(v), b = floats(v)
  let layer = BNNS.BinaryArithmeticLayer(
    inputA: x, inputADescriptorType: .sample, inputB: b, inputBDescriptorType: .sample, output: y,
    outputDescriptorType: .sample, function: .add)!
  var inputs: [UnsafeRawPointer] = [UnsafeRawPointer(x.data!), UnsafeRawPointer(b.data!)]
  let strides = [8, 8]
  report("arithmetic of two inputs, forward", try fastest {
    try layer.apply(batchSize: 1, inputA: x, inputB: b, output: y)
  } _: { _ = BNNSArithmeticFilterApplyBatch(layer.bnnsFilter, 1, 2, &inputs, strides, y.data!, 8) })
}

func fused() throws {
  let strides = [8, 8]
  let image = BNNS.Shape.imageCHW(2, 2, 2)
  let (p, q, dp, dq) = (floats(image), floats(image), floats(image), floats(image))
  let (beta, gamma, dbeta, dgamma) = (floats(.vector(2)), floats(.vector(2)), floats(.vector(2)), floats(.vector(2)))
  let layer = BNNS.FusedParametersLayer(
    inputA: p, inputB: p, output: q,
    fusedLayerParameters: [
      BNNS.FusedBinaryArithmeticParameters(
        inputADescriptorType: .sample, inputBDescriptorType: .sample, outputDescriptorType: .sample, function: .multiply),
      BNNS.FusedNormalizationParameters(
        type: .batch(movingMean: nil, movingVariance: nil), beta: beta, gamma: gamma, epsilon: 1e-5,
        activation: .identity),
    ])!
  try layer.apply(batchSize: 1, inputA: p, inputB: p, output: q, for: .training)
  var images: [UnsafeRawPointer?] = [UnsafeRawPointer(p.data!), UnsafeRawPointer(p.data!)]
  var (dpA, dpB, dqC, dbetaC, dgammaC) = (dp, dp, dq, dbeta, dgamma)
  report("fused layer of two inputs, backward", try fastest {
    try layer.applyBackward(
      batchSize: 1, inputA: p, inputB: p, output: q, outputGradient: dq, generatingInputAGradient: dp,
      generatingInputBGradient: dp, generatingParameterGradients: [dbeta, dgamma])
  } _: {
    withUnsafeMutablePointer(to: &dpA) { a in
      withUnsafeMutablePointer(to: &dpB) { b in
        withUnsafeMutablePointer(to: &dbetaC) { beta in
          withUnsafeMutablePointer(to: &dgammaC) { gamma in
            var gradients = [a, b]
            var slots: [UnsafeMutablePointer<D>?] = [beta, gamma]
            _ = BNNSFusedFilterApplyBackwardMultiInputBatch(
              layer.bnnsFilter, 1, 2, &images, strides, &gradients, strides, q.data, 8, &dqC, 8, &slots)
          }
        }
      }
    }
  })
}

/// A copy of a megabyte would take longer than all of it: arrays are not copied.
func large() throws {
  let (x, y) = (floats(.vector(1 << 18)), floats(.vector(1 << 18)))
  let layer = BNNS.PermuteLayer(input: x, output: y, permutation: [0])!
  report("a megabyte, no samples of it", try fastest {
    try layer.apply(batchSize: 0, input: x, output: y)
  } _: { _ = BNNSFilterApplyBatch(layer.bnnsFilter, 0, x.data!, 1 << 18, y.data!, 1 << 18) })
}

try dense()
try arithmetic()
try fused()
try large()
exit(worst <= Double(CommandLine.arguments.dropFirst().first ?? "250")! ? 0 : 1)
