// The shortest layer: output = weights * input + bias.
//   swiftc layer.swift -lswiftAccelerate && ./layer
import Accelerate

let input = BNNSNDArrayDescriptor.allocate(initializingFrom: [1, 1, 1] as [Float], shape: .vector(3))
let output = BNNSNDArrayDescriptor.allocate(repeating: Float(0), shape: .vector(2))
let weights = BNNSNDArrayDescriptor.allocate(
  initializingFrom: [1, 2, 3, 4, 5, 6] as [Float], shape: .matrixRowMajor(3, 2))
let bias = BNNSNDArrayDescriptor.allocate(initializingFrom: [0.5, -1] as [Float], shape: .vector(2))
defer { for array in [input, output, weights, bias] { array.deallocate() } }

guard
  let layer = BNNS.FullyConnectedLayer(
    input: input, output: output, weights: weights, bias: bias, activation: .identity)
else { fatalError(BNNS.lastErrorReason) }

try layer.apply(batchSize: 1, input: input, output: output)
let y = output.makeArray(of: Float.self)!
print("y =", y)  // y = [6.5, 14.0]
precondition(y == [6.5, 14])
