// Fused layers forward and backward: a convolution with one input, arithmetic with two and with three, each before a batch
// normalization.
import Accelerate

let batch = 4, image = BNNS.Shape.imageCHW(8, 8, 3), channels = BNNS.Shape.vector(3)
func numbers(_ shape: BNNS.Shape, _ count: Int = 1) -> BNNSNDArrayDescriptor {
  .allocate(randomIn: Float(-1)...1, shape: shape, batchSize: count)
}
let x = (0..<3).map { _ in numbers(image, batch) }, dx = (0..<3).map { _ in numbers(image, batch) }
let y = numbers(image, batch), dy = numbers(image, batch)
let kernels = BNNS.Shape.convolutionWeightsOIHW(3, 3, 3, 3)
let weights = numbers(kernels), weightsGradient = numbers(kernels)
let (bias, beta, gamma) = (numbers(channels), numbers(channels), numbers(channels))
let (biasGradient, betaGradient, gammaGradient) = (numbers(channels), numbers(channels), numbers(channels))
defer {
  for d in x + dx + [y, dy, weights, weightsGradient, bias, beta, gamma, biasGradient, betaGradient, gammaGradient] {
    d.deallocate()
  }
}
let normalization = BNNS.FusedNormalizationParameters(
  type: .batch(movingMean: nil, movingVariance: nil), beta: beta, gamma: gamma, momentum: 0.9, epsilon: 1e-5,
  activation: .identity)

/// The gradient of what a batch normalization writes does not change where a constant is added: its sum is 0.
func check(_ name: String, _ gradient: BNNSNDArrayDescriptor) {
  let sum = abs(vDSP.sum(gradient.makeArray(of: Float.self, batchSize: batch)!))
  print("\(name): sum of the input gradient \(sum)")
  precondition(sum < 1e-2)
}

let one = BNNS.FusedParametersLayer(
  input: x[0], output: y,
  fusedLayerParameters: [
    BNNS.FusedConvolutionParameters(
      type: .standard, weights: weights, bias: bias, stride: (1, 1), dilationStride: (1, 1), groupSize: 1,
      padding: .symmetric(x: 1, y: 1)), normalization,
  ])!
try one.apply(batchSize: batch, input: x[0], output: y, for: .training)
try one.applyBackward(
  batchSize: batch, input: x[0], output: y, outputGradient: dy, generatingInputGradient: dx[0],
  generatingParameterGradients: [weightsGradient, biasGradient, betaGradient, gammaGradient])
print("one input: the gradient of beta is the sum of dy:", betaGradient.makeArray(of: Float.self)!)

let two = BNNS.FusedParametersLayer(
  inputA: x[0], inputB: x[1], output: y,
  fusedLayerParameters: [
    BNNS.FusedBinaryArithmeticParameters(
      inputADescriptorType: .sample, inputBDescriptorType: .sample, outputDescriptorType: .sample, function: .add),
    normalization,
  ])!
try two.apply(batchSize: batch, inputA: x[0], inputB: x[1], output: y, for: .training)
try two.applyBackward(
  batchSize: batch, inputA: x[0], inputB: x[1], output: y, outputGradient: dy, generatingInputAGradient: dx[0],
  generatingInputBGradient: dx[1], generatingParameterGradients: [betaGradient, gammaGradient])
check("two inputs", dx[1])

let three = BNNS.FusedParametersLayer(
  inputA: x[0], inputB: x[1], inputC: x[2], output: y,
  fusedLayerParameters: [
    BNNS.FusedTernaryArithmeticParameters(
      inputADescriptorType: .sample, inputBDescriptorType: .sample, inputCDescriptorType: .sample,
      outputDescriptorType: .sample, function: .multiplyAdd), normalization,
  ])!
try three.apply(batchSize: batch, inputA: x[0], inputB: x[1], inputC: x[2], output: y, for: .training)
try three.applyBackward(
  batchSize: batch, inputA: x[0], inputB: x[1], inputC: x[2], output: y, outputGradient: dy,
  generatingInputAGradient: dx[0], generatingInputBGradient: dx[1], generatingInputCGradient: dx[2],
  generatingParameterGradients: [betaGradient, gammaGradient])
check("three inputs", dx[2])
