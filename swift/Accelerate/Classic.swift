// The older conveniences: short names and initializers of the C structures.

extension BNNSDataType {
  /// Float.
  public static var float: BNNSDataType { BNNSDataTypeFloat32 }
  /// Float16.
  public static var float16: BNNSDataType { BNNSDataTypeFloat16 }
  /// Bytes that index a table of 256 values.
  public static var indexed8: BNNSDataType { BNNSDataTypeIndexed8 }
  /// Int16.
  public static var int16: BNNSDataType { BNNSDataTypeInt16 }
  /// Int32.
  public static var int32: BNNSDataType { BNNSDataTypeInt32 }
  /// Int8.
  public static var int8: BNNSDataType { BNNSDataTypeInt8 }
  /// UInt16.
  public static var uint16: BNNSDataType { BNNSDataTypeUInt16 }
  /// UInt32.
  public static var uint32: BNNSDataType { BNNSDataTypeUInt32 }
  /// UInt8.
  public static var uint8: BNNSDataType { BNNSDataTypeUInt8 }
}

extension BNNSFlags {
  /// A layer reads weights and bias where the program keeps them, at every call.
  public static var useClientPointer: BNNSFlags { BNNSFlagsUseClientPtr }
}

extension BNNSFilterParameters {
  /// Options of a filter.
  /// - Parameters:
  ///   - options: `.useClientPointer`, or `BNNSFlags(0)`.
  ///   - threadCount: Threads to use; 0: the library chooses.
  ///   - allocator: As posix_memalign; nil: that.
  ///   - deallocator: As free; nil: that.
  public init(options: BNNSFlags, threadCount: Int, allocator: BNNSAlloc?, deallocator: BNNSFree?) {
    self.init(flags: options.rawValue, n_threads: threadCount, alloc_memory: allocator, free_memory: deallocator)
  }

  /// Where the memory of a filter comes from; nil: posix_memalign.
  public var allocator: BNNSAlloc? {
    get { alloc_memory }
    set { alloc_memory = newValue }
  }
  /// Where it goes; nil: free.
  public var deallocator: BNNSFree? {
    get { free_memory }
    set { free_memory = newValue }
  }
  /// Flags.
  public var options: BNNSFlags {
    get { BNNSFlags(flags) }
    set { flags = newValue.rawValue }
  }
  /// Threads to use; 0: the library chooses.
  public var threadCount: Int {
    get { n_threads }
    set { n_threads = newValue }
  }
}

extension BNNSPoolingFunction {
  /// The mean of a window, padding counted as zeros.
  public static var average: BNNSPoolingFunction { BNNSPoolingFunctionAverage }
  /// The maximum of a window.
  public static var max: BNNSPoolingFunction { BNNSPoolingFunctionMax }
}

extension BNNSActivationFunction {
  /// |x|.
  public static var abs: BNNSActivationFunction { BNNSActivationFunctionAbs }
  /// x limited to [alpha, beta].
  public static var clamp: BNNSActivationFunction { BNNSActivationFunctionClamp }
  /// x.
  public static var identity: BNNSActivationFunction { BNNSActivationFunctionIdentity }
  /// (scale x + offset) >> shift, as integers.
  public static var integerLinearSaturate: BNNSActivationFunction { BNNSActivationFunctionIntegerLinearSaturate }
  /// The same, with numbers for each channel.
  public static var integerLinearSaturatePerChannel: BNNSActivationFunction {
    BNNSActivationFunctionIntegerLinearSaturatePerChannel
  }
  /// x, below 0 alpha x.
  public static var leakyRectifiedLinear: BNNSActivationFunction { BNNSActivationFunctionLeakyRectifiedLinear }
  /// alpha x.
  public static var linear: BNNSActivationFunction { BNNSActivationFunctionLinear }
  /// x, below 0 0.
  public static var rectifiedLinear: BNNSActivationFunction { BNNSActivationFunctionRectifiedLinear }
  /// alpha tanh(beta x).
  public static var scaledTanh: BNNSActivationFunction { BNNSActivationFunctionScaledTanh }
  /// 1 / (1 + exp(-x)).
  public static var sigmoid: BNNSActivationFunction { BNNSActivationFunctionSigmoid }
  /// exp(x) over the sum of all exp(x).
  public static var softmax: BNNSActivationFunction { BNNSActivationFunctionSoftmax }
  /// tanh(x).
  public static var tanh: BNNSActivationFunction { BNNSActivationFunctionTanh }
}

extension BNNSActivation {
  /// x.
  public static var identity: BNNSActivation { BNNSActivation(function: .identity) }

  /// A function with its parameters.
  public init(function: BNNSActivationFunction, alpha: Float = .nan, beta: Float = .nan) {
    self.init()
    self.function = function
    self.alpha = alpha
    self.beta = beta
  }

  /// (scale x + offset) >> shift, as integers.
  public static func integerLinearSaturate(scale: Int32 = 1, offset: Int32 = 0, shift: Int32 = 0) -> BNNSActivation {
    var activation = BNNSActivation(function: .integerLinearSaturate)
    activation.iscale = scale
    activation.ioffset = offset
    activation.ishift = shift
    return activation
  }

  /// The same, with numbers for each channel, which must outlive the use of the activation.
  public static func integerLinearSaturatePerChannel(
    scale: UnsafePointer<Int32>, offset: UnsafePointer<Int32>, shift: UnsafePointer<Int32>
  ) -> BNNSActivation {
    var activation = BNNSActivation(function: .integerLinearSaturatePerChannel)
    activation.iscale_per_channel = scale
    activation.ioffset_per_channel = offset
    activation.ishift_per_channel = shift
    return activation
  }
}

extension BNNSLayerData {
  /// None.
  public static var zero: BNNSLayerData { BNNSLayerData() }

  /// Weights or bias: numbers that stand for data_scale x + data_bias.
  public init(data: UnsafeRawPointer?, data_type: BNNSDataType, data_scale: Float = 1, data_bias: Float = 0) {
    self.init(data: data, data_type: data_type, data_scale: data_scale, data_bias: data_bias, data_table: nil)
  }

  /// Weights or bias as bytes that index a table of 256 values.
  public static func indexed8(data: UnsafePointer<Int8>?, data_table: UnsafePointer<Float>) -> BNNSLayerData {
    BNNSLayerData(data: data, data_type: .indexed8, data_scale: 1, data_bias: 0, data_table: data_table)
  }
}

extension BNNSImageStackDescriptor {
  /// A stack of images.
  public init(
    width: Int, height: Int, channels: Int, row_stride: Int, image_stride: Int, data_type: BNNSDataType
  ) {
    self.init(
      width: width, height: height, channels: channels, row_stride: row_stride, image_stride: image_stride,
      data_type: data_type, data_scale: 1, data_bias: 0)
  }
}

extension BNNSVectorDescriptor {
  /// A vector.
  public init(size: Int, data_type: BNNSDataType) {
    self.init(size: size, data_type: data_type, data_scale: 1, data_bias: 0)
  }
}

extension BNNSConvolutionLayerParameters {
  /// A convolution without bias and activation.
  public init(
    x_stride: Int, y_stride: Int, x_padding: Int, y_padding: Int, k_width: Int, k_height: Int, in_channels: Int,
    out_channels: Int, weights: BNNSLayerData
  ) {
    self.init(
      x_stride: x_stride, y_stride: y_stride, x_padding: x_padding, y_padding: y_padding, k_width: k_width,
      k_height: k_height, in_channels: in_channels, out_channels: out_channels, weights: weights, bias: .zero,
      activation: .identity)
  }
}

extension BNNSFullyConnectedLayerParameters {
  /// A fully connected layer without bias and activation.
  public init(in_size: Int, out_size: Int, weights: BNNSLayerData) {
    self.init(in_size: in_size, out_size: out_size, weights: weights, bias: .zero, activation: .identity)
  }
}

extension BNNSPoolingLayerParameters {
  /// A pooling without bias and activation.
  public init(
    x_stride: Int, y_stride: Int, x_padding: Int, y_padding: Int, k_width: Int, k_height: Int, in_channels: Int,
    out_channels: Int, pooling_function: BNNSPoolingFunction
  ) {
    self.init(
      x_stride: x_stride, y_stride: y_stride, x_padding: x_padding, y_padding: y_padding, k_width: k_width,
      k_height: k_height, in_channels: in_channels, out_channels: out_channels, pooling_function: pooling_function,
      bias: .zero, activation: .identity)
  }
}
