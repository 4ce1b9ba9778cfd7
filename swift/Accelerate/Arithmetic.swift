// Functions of the elements of one, two and three arrays.

extension BNNS {
  /// How an operand of an arithmetic function takes part.
  public enum DescriptorType: Sendable {
    /// The same for every sample, without a gradient.
    case constant
    /// Trained: the same for every sample, the gradient summed over the batch.
    case parameter
    /// One for each sample.
    case sample

    var bnnsDescriptorType: BNNSDescriptorType {
      switch self {
      case .constant: return BNNSConstant
      case .parameter: return BNNSParameter
      case .sample: return BNNSSample
      }
    }
  }

  /// A function of each element x.
  public enum ArithmeticUnaryFunction: CaseIterable, Sendable {
    /// |x|.
    case abs
    /// The arc cosine.
    case acos
    /// The inverse hyperbolic cosine.
    case acosh
    /// The arc sine.
    case asin
    /// The inverse hyperbolic sine.
    case asinh
    /// The arc tangent.
    case atan
    /// The inverse hyperbolic tangent.
    case atanh
    /// x rounded up.
    case ceil
    /// The cosine.
    case cos
    /// The hyperbolic cosine.
    case cosh
    /// The error function.
    case erf
    /// e to the power x.
    case exp
    /// 2 to the power x.
    case exp2
    /// x rounded down.
    case floor
    /// The natural logarithm.
    case log
    /// The logarithm to base 2.
    case log2
    /// -x.
    case negate
    /// 1 / x.
    case reciprocal
    /// 1 / √x.
    case reciprocalSquareRoot
    /// x rounded to the nearest integer.
    case round
    /// -1, 0 or 1.
    case sign
    /// The sine.
    case sin
    /// The hyperbolic sine.
    case sinh
    /// x x.
    case square
    /// √x.
    case squareRoot
    /// The tangent.
    case tan
    /// The hyperbolic tangent.
    case tanh

    /// The constant of the C interface.
    public var bnnsArithmeticFunction: BNNSArithmeticFunction {
      switch self {
      case .abs: return BNNSArithmeticAbs
      case .acos: return BNNSArithmeticAcos
      case .acosh: return BNNSArithmeticAcosh
      case .asin: return BNNSArithmeticAsin
      case .asinh: return BNNSArithmeticAsinh
      case .atan: return BNNSArithmeticAtan
      case .atanh: return BNNSArithmeticAtanh
      case .ceil: return BNNSArithmeticCeil
      case .cos: return BNNSArithmeticCos
      case .cosh: return BNNSArithmeticCosh
      case .erf: return BNNSArithmeticErf
      case .exp: return BNNSArithmeticExp
      case .exp2: return BNNSArithmeticExp2
      case .floor: return BNNSArithmeticFloor
      case .log: return BNNSArithmeticLog
      case .log2: return BNNSArithmeticLog2
      case .negate: return BNNSArithmeticNegate
      case .reciprocal: return BNNSArithmeticReciprocal
      case .reciprocalSquareRoot: return BNNSArithmeticReciprocalSquareRoot
      case .round: return BNNSArithmeticRound
      case .sign: return BNNSArithmeticSign
      case .sin: return BNNSArithmeticSin
      case .sinh: return BNNSArithmeticSinh
      case .square: return BNNSArithmeticSquare
      case .squareRoot: return BNNSArithmeticSquareRoot
      case .tan: return BNNSArithmeticTan
      case .tanh: return BNNSArithmeticTanh
      }
    }
  }

  /// A function of two elements a and b.
  public enum ArithmeticBinaryFunction: CaseIterable, Sendable {
    /// a + b.
    case add
    /// a / b.
    case divide
    /// a / b, 0 where b is 0.
    case divideNoNaN
    /// a / b rounded down.
    case flooringDivide
    /// The larger one.
    case max
    /// The smaller one.
    case min
    /// a b.
    case multiply
    /// a b, 0 where b is 0.
    case multiplyNoNaN
    /// a to the power b.
    case pow
    /// a - b.
    case subtract
    /// a / b rounded towards 0.
    case truncatingDivide
    /// What truncatingDivide leaves.
    case truncatingRemainder

    /// The constant of the C interface.
    public var bnnsArithmeticFunction: BNNSArithmeticFunction {
      switch self {
      case .add: return BNNSArithmeticAdd
      case .divide: return BNNSArithmeticDivide
      case .divideNoNaN: return BNNSArithmeticDivideNoNaN
      case .flooringDivide: return BNNSArithmeticFloorDivide
      case .max: return BNNSArithmeticMaximum
      case .min: return BNNSArithmeticMinimum
      case .multiply: return BNNSArithmeticMultiply
      case .multiplyNoNaN: return BNNSArithmeticMultiplyNoNaN
      case .pow: return BNNSArithmeticPow
      case .subtract: return BNNSArithmeticSubtract
      case .truncatingDivide: return BNNSArithmeticTruncDivide
      case .truncatingRemainder: return BNNSArithmeticTruncRemainder
      }
    }
  }

  /// A function of three elements a, b and c.
  public enum ArithmeticTernaryFunction: CaseIterable, Sendable {
    /// a b + c.
    case multiplyAdd

    /// The constant of the C interface.
    public var bnnsArithmeticFunction: BNNSArithmeticFunction {
      switch self {
      case .multiplyAdd: return BNNSArithmeticMultiplyAdd
      }
    }
  }
}
