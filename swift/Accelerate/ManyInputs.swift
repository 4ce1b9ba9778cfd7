// Several inputs of one call: what arithmetic layers and fused layers share.

/// An input of an arithmetic function.
struct Operand {
  let expected: Expected

  init(_ d: BNNSNDArrayDescriptor, _ type: BNNS.DescriptorType) { expected = Expected(d) }
}

/// Descriptors of up to three inputs, and of their gradients, for the length of a call.
struct Inputs {
  private var pointers: (DescriptorPointer?, DescriptorPointer?, DescriptorPointer?)
  let count: Int

  init(_ a: DescriptorPointer, _ b: DescriptorPointer? = nil, _ c: DescriptorPointer? = nil) {
    pointers = (a, b, c)
    count = c != nil ? 3 : b != nil ? 2 : 1
  }
  subscript(i: Int) -> DescriptorPointer { (i == 0 ? pointers.0 : i == 1 ? pointers.1 : pointers.2)! }
}

extension Array where Element == Operand {
  private func label(_ i: Int) -> StaticString { count == 1 ? "input" : i == 0 ? "inputA" : i == 1 ? "inputB" : "inputC" }
  private func gradientLabel(_ i: Int) -> StaticString {
    count == 1
      ? "generatingInputGradient"
      : i == 0 ? "generatingInputAGradient" : i == 1 ? "generatingInputBGradient" : "generatingInputCGradient"
  }

  /// Whether a call has as many inputs as the layer.
  func requireCount(_ call: Call, _ given: Int) throws {
    if given == count { return }
    throw call.refusal(
      .layerApplyFail, "called with \(given) input(s), but the first stage takes \(count)")
  }

  /// The inputs as the C calls take them: pointers, and strides between samples.
  func withInputs(
    _ call: Call, _ inputs: Inputs,
    _ body: (UnsafeMutablePointer<UnsafeRawPointer>, UnsafePointer<Int>) throws -> Void
  ) throws {
    try withUnsafeTemporaryAllocation(of: UnsafeRawPointer.self, capacity: count) { x in
      try withUnsafeTemporaryAllocation(of: Int.self, capacity: count) { strides in
        for i in 0..<count {
          let (data, stride) = try self[i].expected.fitting(call, label(i), inputs[i].pointee)
          x[i] = UnsafeRawPointer(data!)
          strides[i] = stride
        }
        try body(x.baseAddress!, UnsafePointer(strides.baseAddress!))
      }
    }
  }

  /// The inputs and their gradients. Inputs without data are left out: the function's gradient does not read them.
  @inline(__always)
  func withGradients(
    _ call: Call, _ inputs: Inputs, _ gradients: Inputs,
    _ body: (
      UnsafeMutablePointer<UnsafeRawPointer?>?, UnsafePointer<Int>?, UnsafeMutablePointer<DescriptorPointer>,
      UnsafePointer<Int>
    ) throws -> Void
  ) throws {
    // One block on the stack for all: of each input the pointer, the gradient's descriptor, and both strides.
    try withUnsafeTemporaryAllocation(of: Int.self, capacity: 12) { block in
      let words = UnsafeMutableRawPointer(block.baseAddress!)
      let x = words.bindMemory(to: UnsafeRawPointer?.self, capacity: 3)
      let dx = (words + 24).bindMemory(to: DescriptorPointer.self, capacity: 3)
      let strides = block.baseAddress! + 6
      var any = false
      try withUnsafeBufferPointer { operands in
        for i in operands.indices {
          let (data, stride) = try operands[i].expected.fittingIfGiven(call, label(i), inputs[i].pointee)
          x[i] = UnsafeRawPointer(data)
          strides[i] = stride
          strides[3 + i] = try operands[i].expected.described(call, gradientLabel(i), gradients[i].pointee)
          dx[i] = gradients[i]
          any = any || data != nil
        }
      }
      try body(any ? x : nil, any ? UnsafePointer(strides) : nil, dx, UnsafePointer(strides + 3))
    }
  }
}

/// Descriptors of two and of three arrays, for the length of a call.
@inline(__always)
func withInputs<Result>(
  _ a: BNNSNDArrayDescriptor, _ b: BNNSNDArrayDescriptor, _ body: (Inputs) throws -> Result
) rethrows -> Result {
  try withMutablePointer(to: a) { a in try withMutablePointer(to: b) { b in try body(Inputs(a, b)) } }
}
@inline(__always)
func withInputs<Result>(
  _ a: BNNSNDArrayDescriptor, _ b: BNNSNDArrayDescriptor, _ c: BNNSNDArrayDescriptor,
  _ body: (Inputs) throws -> Result
) rethrows -> Result {
  try withMutablePointer(to: a) { a in
    try withMutablePointer(to: b) { b in try withMutablePointer(to: c) { c in try body(Inputs(a, b, c)) } }
  }
}

/// The arrays of an arithmetic layer, and its calls.
struct ArithmeticArrays {
  let inputs: [Operand]
  let output: Expected

  init(_ inputs: [Operand], _ output: Expected) {
    self.inputs = inputs
    self.output = output
  }

  func apply(
    _ filter: BNNSFilter, _ call: Call, _ batchSize: Int, _ inputs: Inputs, _ output: BNNSNDArrayDescriptor
  ) throws {
    let y = try self.output.fitting(call, "output", output)
    try self.inputs.withInputs(call, inputs) { x, strides in
      try call.check(
        BNNSArithmeticFilterApplyBatch(filter, batchSize, inputs.count, x, strides, y.data!, y.stride))
    }
  }

  func backward(
    _ filter: BNNSFilter, _ call: Call, _ batchSize: Int, _ inputs: Inputs, _ gradients: Inputs,
    _ output: BNNSNDArrayDescriptor, _ outputGradient: BNNSNDArrayDescriptor
  ) throws {
    let y = try self.output.fittingIfGiven(call, "output", output)
    let dyStride = try self.output.described(call, "outputGradient", outputGradient)
    try self.inputs.withGradients(call, inputs, gradients) { x, strides, dx, dxStrides in
      try withMutablePointer(to: outputGradient) { dy in
        try call.check(
          BNNSArithmeticFilterApplyBackwardBatch(
            filter, batchSize, inputs.count, x, strides, dx, dxStrides, y.data, y.stride, dy, dyStride))
      }
    }
  }
}

/// The structure of an arithmetic layer, which points to that of its operands, for the length of a call.
func withArithmetic<Operands, Result>(
  _ function: BNNSArithmeticFunction, _ operands: inout Operands, _ activation: BNNS.ActivationFunction,
  _ body: (UnsafePointer<BNNSLayerParametersArithmetic>) -> Result
) -> Result {
  withUnsafeMutablePointer(to: &operands) { operands in
    let layer = BNNSLayerParametersArithmetic(
      arithmetic_function: function, arithmetic_function_fields: operands, activation: activation.bnnsActivation)
    return withUnsafePointer(to: layer) { body($0) }
  }
}

extension BNNSArithmeticUnary {
  init(
    _ input: BNNSNDArrayDescriptor, _ inputType: BNNS.DescriptorType, _ output: BNNSNDArrayDescriptor,
    _ outputType: BNNS.DescriptorType
  ) {
    self.init(
      in: input, in_type: inputType.bnnsDescriptorType, out: output, out_type: outputType.bnnsDescriptorType)
  }
}

extension BNNSArithmeticBinary {
  init(
    _ inputA: BNNSNDArrayDescriptor, _ aType: BNNS.DescriptorType, _ inputB: BNNSNDArrayDescriptor,
    _ bType: BNNS.DescriptorType, _ output: BNNSNDArrayDescriptor, _ outputType: BNNS.DescriptorType
  ) {
    self.init(
      in1: inputA, in1_type: aType.bnnsDescriptorType, in2: inputB, in2_type: bType.bnnsDescriptorType, out: output,
      out_type: outputType.bnnsDescriptorType)
  }
}

extension BNNSArithmeticTernary {
  init(
    _ inputA: BNNSNDArrayDescriptor, _ aType: BNNS.DescriptorType, _ inputB: BNNSNDArrayDescriptor,
    _ bType: BNNS.DescriptorType, _ inputC: BNNSNDArrayDescriptor, _ cType: BNNS.DescriptorType,
    _ output: BNNSNDArrayDescriptor, _ outputType: BNNS.DescriptorType
  ) {
    self.init(
      in1: inputA, in1_type: aType.bnnsDescriptorType, in2: inputB, in2_type: bType.bnnsDescriptorType, in3: inputC,
      in3_type: cType.bnnsDescriptorType, out: output, out_type: outputType.bnnsDescriptorType)
  }
}
