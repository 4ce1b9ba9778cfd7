// Learns y = 2 a - 3 b + 1 with a fully connected layer, the mean squared error, and SGD with momentum.
import Accelerate

let n = 64
let x = BNNSNDArrayDescriptor.allocate(randomIn: Float(-1)...1, shape: .vector(2), batchSize: n)
let inputs = x.makeArray(of: Float.self, batchSize: n)!
let truth = (0..<n).map { (k: Int) -> Float in
  let (a, b) = (inputs[2 * k], inputs[2 * k + 1])
  return 2 * a - 3 * b + 1
}
let labels = BNNSNDArrayDescriptor.allocate(initializingFrom: truth, shape: .vector(1), batchSize: n)
func zeros(_ shape: BNNS.Shape, _ count: Int = 1) -> BNNSNDArrayDescriptor {
  .allocate(repeating: Float(0), shape: shape, batchSize: count)
}
let y = zeros(.vector(1), n), dy = zeros(.vector(1), n), dx = zeros(.vector(2), n), loss = zeros(.vector(1))
let parameters = [zeros(.matrixRowMajor(2, 1)), zeros(.vector(1))]  // weights, bias
let gradients = [zeros(.matrixRowMajor(2, 1)), zeros(.vector(1))]
let velocities = [zeros(.matrixRowMajor(2, 1)), zeros(.vector(1))]
defer { for d in [x, labels, y, dy, dx, loss] + parameters + gradients + velocities { d.deallocate() } }

// The layer reads weights and bias where the optimizer writes them.
let options = BNNSFilterParameters(options: .useClientPointer, threadCount: 0, allocator: nil, deallocator: nil)
guard
  let layer = BNNS.FullyConnectedLayer(
    input: x, output: y, weights: parameters[0], bias: parameters[1], activation: .identity, filterParameters: options),
  let judge = BNNS.LossLayer(
    input: y, output: loss, lossFunction: .meanSquareError, lossReduction: .reductionMean)
else { fatalError(BNNS.lastErrorReason) }
let sgd = BNNS.SGDMomentumOptimizer(
  learningRate: 0.05, momentum: 0.9, gradientScale: 1, regularizationScale: 0, gradientClipping: .none,
  regularizationFunction: BNNSOptimizerRegularizationNone, sgdMomentumVariant: BNNSSGDMomentumVariant0)

for _ in 0..<400 {
  try layer.apply(batchSize: n, input: x, output: y)
  try judge.apply(batchSize: n, input: y, labels: labels, output: loss, generatingInputGradient: dy)
  try layer.applyBackward(
    batchSize: n, input: x, output: y, outputGradient: dy, generatingInputGradient: dx,
    generatingWeightsGradient: gradients[0], generatingBiasGradient: gradients[1])
  try sgd.step(parameters: parameters, gradients: gradients, accumulators: velocities)
}
let w = parameters[0].makeArray(of: Float.self)!, b = parameters[1].makeArray(of: Float.self)!
print("y = \(w[0]) a + \(w[1]) b + \(b[0])")
precondition(loss.makeArray(of: Float.self)![0] < 1e-6)
