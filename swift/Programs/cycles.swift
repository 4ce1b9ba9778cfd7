// Makes, runs and releases layers, arrays, generators and stores, and compares the memory in use before and after.
//   cycles COUNT    from 1000 on it fails where memory grows; fewer are for valgrind, which looks closer
import Accelerate
import Glibc

let count = CommandLine.arguments.count > 1 ? Int(CommandLine.arguments[1])! : 10_000
let n = 2
typealias D = BNNSNDArrayDescriptor
func numbers(_ shape: BNNS.Shape, _ batch: Int = n) -> D {
  .allocate(randomIn: Float(0.1)...1, shape: shape, batchSize: batch)
}

/// Bytes of memory that the process has.
func resident() -> Int {
  guard let file = fopen("/proc/self/statm", "r") else { return 0 }
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 128)
  fgets(&line, 128, file)
  return Int(String(cString: line).split(separator: " ")[1])! * Int(sysconf(Int32(_SC_PAGESIZE)))
}

func cycle() throws {
  let image = BNNS.Shape.imageCHW(4, 4, 2), channels = BNNS.Shape.vector(2)
  let x = numbers(image), y = numbers(image), dx = numbers(image), dy = numbers(image)
  let w = numbers(.convolutionWeightsOIHW(3, 3, 2, 2), 1), dw = numbers(.convolutionWeightsOIHW(3, 3, 2, 2), 1)
  let (b, g, db, dg) = (numbers(channels, 1), numbers(channels, 1), numbers(channels, 1), numbers(channels, 1))
  let z = numbers(.vector(32)), dz = numbers(.vector(32)), loss = numbers(.vector(1), 1)
  let matrix = numbers(.matrixRowMajor(32, 32), 1)
  let pooled = numbers(.imageCHW(2, 2, 2)), dpooled = numbers(.imageCHW(2, 2, 2))
  defer { for d in [x, y, dx, dy, w, dw, b, g, db, dg, z, dz, loss, matrix, pooled, dpooled] { d.deallocate() } }

  let convolution = BNNS.ConvolutionLayer(
    type: .standard, input: x, weights: w, output: y, bias: b, padding: .symmetric(x: 1, y: 1), activation: .tanh,
    groupCount: 1, stride: (1, 1), dilationStride: (1, 1))!
  try convolution.apply(batchSize: n, input: x, output: y)
  try convolution.applyBackward(
    batchSize: n, input: x, output: y, outputGradient: dy, generatingInputGradient: dx, generatingWeightsGradient: dw,
    generatingBiasGradient: db)

  let fused = BNNS.FusedConvolutionNormalizationLayer(
    input: x, output: y, convolutionWeights: w, convolutionBias: b, convolutionStride: (1, 1),
    convolutionDilationStride: (1, 1), convolutionPadding: .symmetric(x: 1, y: 1),
    normalization: .batch(movingMean: nil, movingVariance: nil), normalizationBeta: b, normalizationGamma: g,
    normalizationMomentum: 0.9, normalizationEpsilon: 1e-5, normalizationActivation: .rectifiedLinear)!
  try fused.apply(batchSize: n, input: x, output: y, for: .training)
  try fused.applyBackward(
    batchSize: n, input: x, output: y, outputGradient: dy, generatingInputGradient: dx,
    generatingParameterGradients: [dw, db, dg, b])

  let add = BNNS.FusedParametersLayer(
    inputA: x, inputB: x, output: y,
    fusedLayerParameters: [
      BNNS.FusedBinaryArithmeticParameters(
        inputADescriptorType: .sample, inputBDescriptorType: .sample, outputDescriptorType: .sample, function: .add),
      BNNS.FusedNormalizationParameters(
        type: .group(groupCount: 2), beta: b, gamma: g, epsilon: 1e-5, activation: .identity),
    ])!
  try add.apply(batchSize: n, inputA: x, inputB: x, output: y, for: .training)
  try add.applyBackward(
    batchSize: n, inputA: x, inputB: x, output: y, outputGradient: dy, generatingInputAGradient: dx,
    generatingInputBGradient: dx, generatingParameterGradients: [db, dg])

  let multiply = BNNS.BinaryArithmeticLayer(
    inputA: x, inputADescriptorType: .sample, inputB: x, inputBDescriptorType: .sample, output: y,
    outputDescriptorType: .sample, function: .multiply)!
  try multiply.apply(batchSize: n, inputA: x, inputB: x, output: y)

  let normalization = BNNS.NormalizationLayer(
    type: .layer(normalizationAxis: 0), input: x, output: y, beta: z, gamma: z, epsilon: 1e-5, activation: .identity)!
  try normalization.apply(batchSize: n, input: x, output: y, for: .training)
  try normalization.applyBackward(
    batchSize: n, input: x, output: y, outputGradient: dy, generatingInputGradient: dx)

  let pooling = BNNS.PoolingLayer(
    type: .max(), input: x, output: pooled, bias: nil, activation: .identity, kernelSize: (2, 2), stride: (2, 2),
    padding: .zero)!
  try pooling.apply(batchSize: n, input: x, output: pooled)
  try pooling.applyBackward(
    batchSize: n, input: x, output: pooled, outputGradient: dpooled, generatingInputGradient: dx)

  let dense = BNNS.FullyConnectedLayer(input: z, output: z, weights: matrix, bias: nil, activation: .sigmoid)!
  try dense.apply(batchSize: n, input: x, output: z)
  let judge = BNNS.LossLayer(
    input: z, output: loss, lossFunction: .softmaxCrossEntropy(labelSmoothing: 0), lossReduction: .sum)!
  try judge.apply(batchSize: n, input: z, labels: z, output: loss, generatingInputGradient: dz)
  let adam = BNNS.SGDMomentumOptimizer(
    learningRate: 0.1, gradientScale: 1, regularizationScale: 0, gradientClipping: .none,
    regularizationFunction: BNNSOptimizerRegularizationNone, sgdMomentumVariant: BNNSSGDMomentumVariant0)
  try adam.step(parameters: [w, b], gradients: [dw, db], accumulators: [])

  let random = BNNS.RandomGenerator(method: .aesCtr, seed: 1)!
  random.state = random.state
  let store = BNNS.NearestNeighbors(capacity: 2, dimensionCount: 16, neighborCount: 1, dataType: .float)
  let copy = store
  copy.append(samples: z)

  // Refused: a layer that is nil, and calls that throw.
  precondition(BNNS.GramLayer(input: z, output: z, alpha: 1) == nil)
  precondition((try? convolution.apply(batchSize: n, input: b, output: y)) == nil)
  precondition(!BNNS.lastErrorReason.isEmpty)
}

for _ in 0..<20 { try cycle() }  // caches and pools fill
let before = resident()
for _ in 0..<count { try cycle() }
let grown = resident() - before
print("\(count) cycles, \(grown) bytes more resident")
exit(count < 1000 || grown < 512 * 1024 ? 0 : 1)  // a leak of 64 bytes a cycle is more
