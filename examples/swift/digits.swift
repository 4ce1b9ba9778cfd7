// Trains a convolutional network to recognize digits: fused convolution, batch normalization and ReLU, max pooling, a
// fully connected layer, softmax cross-entropy, Adam. A picture has 20 x 20 pixels, with a digit of 6 x 6 somewhere.
// It ends with the same weights as the same network in C (swift/Programs/digits.c), bit for bit.
import Accelerate

let size = 20, channels = 32, classes = 10, batch = 32
let half = size / 2, features = half * half * channels

let glyphs = [
  ".####.|#....#|#....#|#....#|#....#|.####.", "..##..|.#.#..|...#..|...#..|...#..|.#####",
  ".####.|#....#|....#.|..##..|.#....|######", "#####.|.....#|..###.|.....#|.....#|#####.",
  "...##.|..#.#.|.#..#.|######|....#.|....#.", "######|#.....|#####.|.....#|.....#|#####.",
  ".####.|#.....|#####.|#....#|#....#|.####.", "######|.....#|....#.|...#..|..#...|..#...",
  ".####.|#....#|.####.|#....#|#....#|.####.", ".####.|#....#|#....#|.#####|.....#|.####.",
].map { $0.split(separator: "|").map { $0.map { $0 == "#" } } }

struct Dice {  // the same numbers in C
  var state: UInt32 = 1
  mutating func roll(_ sides: UInt32) -> Int {
    state = state &* 1_664_525 &+ 1_013_904_223
    return Int((state >> 8) % sides)
  }
}
var dice = Dice()

/// Fills a batch of pictures and of one-hot labels.
func draw(_ pictures: BNNSNDArrayDescriptor, _ labels: BNNSNDArrayDescriptor) {
  let pixels = pictures.data!.assumingMemoryBound(to: Float.self)
  let ones = labels.data!.assumingMemoryBound(to: Float.self)
  for n in 0..<batch {
    let digit = dice.roll(10), top = dice.roll(15), left = dice.roll(15)
    for k in 0..<classes { ones[n * classes + k] = k == digit ? 1 : 0 }
    for i in 0..<size * size { pixels[n * size * size + i] = 0 }
    for i in 0..<6 {
      for j in 0..<6 where glyphs[digit][i][j] { pixels[(n * size + top + i) * size + left + j] = 1 }
    }
  }
}

// Arrays: parameters, their gradients, Adam's accumulators, and what flows between layers.
let image = BNNS.Shape.imageCHW(size, size, 1), maps = BNNS.Shape.imageCHW(size, size, channels)
let pooled = BNNS.Shape.imageCHW(half, half, channels)
let shapes: [BNNS.Shape] = [
  .convolutionWeightsOIHW(3, 3, 1, channels), .vector(channels), .vector(channels), .vector(channels),
  .matrixRowMajor(features, classes),
]
func zeros(_ shape: BNNS.Shape, _ count: Int = 1) -> BNNSNDArrayDescriptor {
  .allocate(repeating: Float(0), shape: shape, batchSize: count)
}
guard let random = BNNS.RandomGenerator(method: .aesCtr, seed: 1),
  let kernels = BNNSNDArrayDescriptor.allocate(randomUniformUsing: random, range: Float(-1)...1, shape: shapes[0]),
  let matrix = BNNSNDArrayDescriptor.allocate(randomUniformUsing: random, range: Float(-0.5)...0.5, shape: shapes[4])
else { fatalError(BNNS.lastErrorReason) }
let bias = zeros(.vector(channels)), beta = zeros(.vector(channels))
let gamma = BNNSNDArrayDescriptor.allocate(repeating: Float(1), shape: .vector(channels))
let mean = zeros(.vector(channels))
let variance = BNNSNDArrayDescriptor.allocate(repeating: Float(1), shape: .vector(channels))
let parameters = [kernels, bias, beta, gamma, matrix], gradients = shapes.map { zeros($0) }
let accumulators = (shapes + shapes).map { zeros($0) }

let pictures = zeros(image, batch), labels = zeros(.vector(classes), batch), loss = zeros(.vector(1))
let y = zeros(maps, batch), p = zeros(pooled, batch), z = zeros(.vector(classes), batch)
let dx = zeros(image, batch), dy = zeros(maps, batch), dp = zeros(pooled, batch), dz = zeros(.vector(classes), batch)
defer {
  for array in parameters + gradients + accumulators { array.deallocate() }
  for array in [mean, variance, pictures, labels, loss, y, p, z, dx, dy, dp, dz] { array.deallocate() }
}

// The layers read the parameters where the optimizer writes them.
let options = BNNSFilterParameters(options: .useClientPointer, threadCount: 0, allocator: nil, deallocator: nil)
guard
  let convolution = BNNS.FusedConvolutionNormalizationLayer(
    input: pictures, output: y, convolutionWeights: kernels, convolutionBias: bias, convolutionStride: (1, 1),
    convolutionDilationStride: (1, 1), convolutionPadding: .symmetric(x: 1, y: 1),
    normalization: .batch(movingMean: mean, movingVariance: variance), normalizationBeta: beta,
    normalizationGamma: gamma, normalizationMomentum: 0.9, normalizationEpsilon: 1e-7,
    normalizationActivation: .rectifiedLinear, filterParameters: options),
  let pooling = BNNS.PoolingLayer(
    type: .max(), input: y, output: p, bias: nil, activation: .identity, kernelSize: (2, 2), stride: (2, 2),
    padding: .zero),
  let last = BNNS.FullyConnectedLayer(
    input: BNNSNDArrayDescriptor(dataType: .float, shape: .vector(features)), output: z, weights: matrix, bias: nil,
    activation: .identity, filterParameters: options),
  let judge = BNNS.LossLayer(
    input: z, output: loss, lossFunction: .softmaxCrossEntropy(labelSmoothing: 0), lossReduction: .reductionMean)
else { fatalError(BNNS.lastErrorReason) }

func forward(_ phase: BNNS.LearningPhase) throws {
  try convolution.apply(batchSize: batch, input: pictures, output: y, for: phase)
  try pooling.apply(batchSize: batch, input: y, output: p)
  try last.apply(batchSize: batch, input: p, output: z)
}

var adam = BNNS.AdamOptimizer(
  learningRate: 0.01, timeStep: 1, gradientScale: 1, regularizationScale: 0.01,
  gradientClipping: .byValue(bounds: -0.5...0.5), regularizationFunction: BNNSOptimizerRegularizationL2)
var losses: [Float] = []
for epoch in 0..<4000 {
  if epoch == 500 { adam.learningRate = 0.001 }
  draw(pictures, labels)
  try forward(.training)
  try judge.apply(batchSize: batch, input: z, labels: labels, output: loss, generatingInputGradient: dz)
  losses.append(loss.makeArray(of: Float.self)![0])
  if epoch % 100 == 0 { print("epoch \(epoch)  loss \(losses[epoch])") }
  if epoch >= 20 && vDSP.mean(losses.suffix(20)) < 0.125 { break }
  try last.applyBackward(
    batchSize: batch, input: p, output: z, outputGradient: dz, generatingInputGradient: dp,
    generatingWeightsGradient: gradients[4])
  try pooling.applyBackward(
    batchSize: batch, input: y, output: p, outputGradient: dp, generatingInputGradient: dy)
  try convolution.applyBackward(
    batchSize: batch, input: pictures, output: y, outputGradient: dy, generatingInputGradient: dx,
    generatingParameterGradients: Array(gradients[..<4]))
  try adam.step(parameters: parameters, gradients: gradients, accumulators: accumulators)
  adam.timeStep += 1
}
print("ended after \(losses.count) epochs, mean of the last 20 losses \(vDSP.mean(losses.suffix(20)))")

// New pictures, with the moving statistics.
var right = 0
for _ in 0..<40 {
  draw(pictures, labels)
  try forward(.inference)
  let guesses = z.makeArray(of: Float.self, batchSize: batch)!, truth = labels.makeArray(of: Float.self, batchSize: batch)!
  for n in 0..<batch {
    let one = n * classes..<(n + 1) * classes
    if vDSP.indexOfMaximum(guesses[one]).0 == vDSP.indexOfMaximum(truth[one]).0 { right += 1 }
  }
}
let accuracy = Double(right) / Double(40 * batch)
var hash: UInt64 = 14_695_981_039_346_656_037  // FNV-1a of all parameters
for parameter in parameters {
  for byte in UnsafeRawBufferPointer(start: parameter.data, count: parameter.dataSize) {
    hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211
  }
}
print("accuracy \(accuracy * 100) %")
print("weights \(String(hash, radix: 16))")

let learned = (20...45).contains(losses[0]) && losses[100] < 3 && losses[min(800, losses.count - 1)] < 0.5 && accuracy > 0.95
exit(learned ? 0 : 1)
