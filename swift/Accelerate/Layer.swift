// What every layer has, and the calls of layers with one input and with two.
//
// A layer owns its filter: made by the initializer, released when the layer is. A call compares its arrays with the
// layer (Checks.swift), passes data pointers and strides between samples on, and throws where the C library refuses.
// It copies no array. An argument may have another layout than the layer, if the counts agree.

extension BNNS {
  /// A layer: a filter of the C library, destroyed with it.
  ///
  /// Layers do not own arrays. Without `filterParameters` a layer copies weights and bias when it is made, and an
  /// optimizer's steps have no effect; with `BNNSFlags.useClientPointer` it reads them where they are, and that memory
  /// must outlive it.
  public class Layer {
    /// The C filter, for calls that have no counterpart here. The layer still owns it.
    public final let bnnsFilter: BNNSFilter

    init(filter: BNNSFilter) { bnnsFilter = filter }

    deinit { BNNSFilterDestroy(bnnsFilter) }

    final func call(_ name: StaticString) -> Call { Call(type(of: self), name) }
  }

  /// A layer with one input and one output.
  public class UnaryLayer: Layer {
    final let input, output, weights, bias: Expected

    init(
      filter: BNNSFilter, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      weights: BNNSNDArrayDescriptor? = nil, bias: BNNSNDArrayDescriptor? = nil
    ) {
      self.input = Expected(input)
      self.output = Expected(output)
      self.weights = Expected(weights)
      self.bias = Expected(bias)
      super.init(filter: filter)
    }

    /// Computes the output of each sample of a batch.
    /// - Parameters:
    ///   - batchSize: The number of samples at `input.data` and at `output.data`, one after the other.
    ///   - input: As many elements of a sample as the layer's input, of its type.
    ///   - output: Receives the result.
    public func apply(batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor) throws {
      let call = call("apply")
      let x = try self.input.fitting(call, "input", input)
      let y = try self.output.fitting(call, "output", output)
      try call.check(BNNSFilterApplyBatch(bnnsFilter, batchSize, x.data!, x.stride, y.data!, y.stride))
    }

    /// Computes the gradient of the input, given that of the output.
    /// - Parameters:
    ///   - batchSize: The number of samples of each array.
    ///   - input: What `apply` read; may be without data where the layer's gradient does not read it.
    ///   - output: What `apply` wrote; likewise.
    ///   - outputGradient: The gradient of the output.
    ///   - inputGradient: Receives the gradient of the input, or has it added (its `flags`).
    public func applyBackward(
      batchSize: Int, input: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputGradient inputGradient: BNNSNDArrayDescriptor
    ) throws {
      try backward(batchSize, input, output, outputGradient, inputGradient, nil, nil)
    }

    final func backward(
      _ batchSize: Int, _ input: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor,
      _ outputGradient: BNNSNDArrayDescriptor, _ inputGradient: BNNSNDArrayDescriptor,
      _ weightsGradient: BNNSNDArrayDescriptor?, _ biasGradient: BNNSNDArrayDescriptor?
    ) throws {
      let call = call("applyBackward")
      let x = try self.input.fittingIfGiven(call, "input", input)
      let y = try self.output.fittingIfGiven(call, "output", output)
      let dyStride = try self.output.described(call, "outputGradient", outputGradient)
      let dxStride = try self.input.described(call, "generatingInputGradient", inputGradient)
      try weights.describedIfGiven(call, "generatingWeightsGradient", weightsGradient)
      try bias.describedIfGiven(call, "generatingBiasGradient", biasGradient)
      try withMutablePointer(to: outputGradient) { dy in
        try withMutablePointer(to: inputGradient) { dx in
          try withMutablePointer(ifGiven: weightsGradient) { dw in
            try withMutablePointer(ifGiven: biasGradient) { db in
              try call.check(
                BNNSFilterApplyBackwardBatch(
                  bnnsFilter, batchSize, x.data, x.stride, dx, dxStride, y.data, y.stride, dy, dyStride, dw, db))
            }
          }
        }
      }
    }
  }

  /// A layer with two inputs and one output.
  public class BinaryLayer: Layer {
    final let arrays: TwoInputs

    init(filter: BNNSFilter, arrays: TwoInputs) {
      self.arrays = arrays
      super.init(filter: filter)
    }

    /// Computes the output of each sample of a batch from those of two arrays.
    public func apply(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor
    ) throws {
      try arrays.apply(bnnsFilter, call("apply"), batchSize, inputA, inputB, output)
    }

    /// Computes the gradients of both inputs, given that of the output.
    public func applyBackward(
      batchSize: Int, inputA: BNNSNDArrayDescriptor, inputB: BNNSNDArrayDescriptor, output: BNNSNDArrayDescriptor,
      outputGradient: BNNSNDArrayDescriptor, generatingInputAGradient inputAGradient: BNNSNDArrayDescriptor,
      generatingInputBGradient inputBGradient: BNNSNDArrayDescriptor
    ) throws {
      try arrays.backward(
        bnnsFilter, call("applyBackward"), batchSize, inputA, inputB, output, outputGradient, inputAGradient,
        inputBGradient)
    }
  }
}

/// The arrays of a layer with two inputs, and its calls.
struct TwoInputs {
  let a, b, output: Expected

  init(_ inputA: BNNSNDArrayDescriptor, _ inputB: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor) {
    a = Expected(inputA)
    b = Expected(inputB)
    self.output = Expected(output)
  }

  func apply(
    _ filter: BNNSFilter, _ call: Call, _ batchSize: Int, _ inputA: BNNSNDArrayDescriptor,
    _ inputB: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor
  ) throws {
    let xa = try a.fitting(call, "inputA", inputA)
    let xb = try b.fitting(call, "inputB", inputB)
    let y = try self.output.fitting(call, "output", output)
    try call.check(
      BNNSFilterApplyTwoInputBatch(filter, batchSize, xa.data!, xa.stride, xb.data!, xb.stride, y.data!, y.stride))
  }

  func backward(
    _ filter: BNNSFilter, _ call: Call, _ batchSize: Int, _ inputA: BNNSNDArrayDescriptor,
    _ inputB: BNNSNDArrayDescriptor, _ output: BNNSNDArrayDescriptor, _ outputGradient: BNNSNDArrayDescriptor,
    _ aGradient: BNNSNDArrayDescriptor, _ bGradient: BNNSNDArrayDescriptor
  ) throws {
    let xa = try a.fittingIfGiven(call, "inputA", inputA)
    let xb = try b.fittingIfGiven(call, "inputB", inputB)
    let y = try self.output.fittingIfGiven(call, "output", output)
    let daStride = try a.described(call, "generatingInputAGradient", aGradient)
    let dbStride = try b.described(call, "generatingInputBGradient", bGradient)
    let dyStride = try self.output.described(call, "outputGradient", outputGradient)
    try withMutablePointer(to: aGradient) { da in
      try withMutablePointer(to: bGradient) { db in
        try withMutablePointer(to: outputGradient) { dy in
          try call.check(
            BNNSFilterApplyBackwardTwoInputBatch(
              filter, batchSize, xa.data, xa.stride, da, daStride, xb.data, xb.stride, db, dbStride, y.data, y.stride,
              dy, dyStride, nil, nil))
        }
      }
    }
  }
}
