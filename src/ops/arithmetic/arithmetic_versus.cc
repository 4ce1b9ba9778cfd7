// Element-wise arithmetic and its gradients beside PyTorch.

#include <cmath>

#include "bench/description.h"

namespace bnns::bench {
namespace {

struct Function {
  const char* name;
  BNNSArithmeticFunction function;
  float (*unary)(float);
  float (*binary)(float, float);
  bool positive;  // inputs above 0
};
const Function kFunctions[] = {
    {"add", BNNSArithmeticAdd, nullptr, [](float a, float b) { return a + b; }, false},
    {"subtract", BNNSArithmeticSubtract, nullptr, [](float a, float b) { return a - b; }, false},
    {"multiply", BNNSArithmeticMultiply, nullptr, [](float a, float b) { return a * b; }, false},
    {"divide", BNNSArithmeticDivide, nullptr, [](float a, float b) { return a / b; }, true},
    {"minimum", BNNSArithmeticMinimum, nullptr, [](float a, float b) { return a < b ? a : b; }, false},
    {"maximum", BNNSArithmeticMaximum, nullptr, [](float a, float b) { return a > b ? a : b; }, false},
    {"pow", BNNSArithmeticPow, nullptr, [](float a, float b) { return std::pow(a, b); }, true},
    {"sqrt", BNNSArithmeticSquareRoot, [](float a) { return std::sqrt(a); }, nullptr, true},
    {"rsqrt", BNNSArithmeticReciprocalSquareRoot, [](float a) { return 1 / std::sqrt(a); }, nullptr, true},
    {"exp", BNNSArithmeticExp, [](float a) { return std::exp(a); }, nullptr, false},
    {"log", BNNSArithmeticLog, [](float a) { return std::log(a); }, nullptr, true},
    {"sin", BNNSArithmeticSin, [](float a) { return std::sin(a); }, nullptr, false},
    {"cos", BNNSArithmeticCos, [](float a) { return std::cos(a); }, nullptr, false},
    {"tan", BNNSArithmeticTan, [](float a) { return std::tan(a); }, nullptr, false},
    {"asin", BNNSArithmeticAsin, [](float a) { return std::asin(a); }, nullptr, false},
    {"acos", BNNSArithmeticAcos, [](float a) { return std::acos(a); }, nullptr, false},
    {"atan", BNNSArithmeticAtan, [](float a) { return std::atan(a); }, nullptr, false},
    {"sinh", BNNSArithmeticSinh, [](float a) { return std::sinh(a); }, nullptr, false},
    {"cosh", BNNSArithmeticCosh, [](float a) { return std::cosh(a); }, nullptr, false},
    {"tanh", BNNSArithmeticTanh, [](float a) { return std::tanh(a); }, nullptr, false},
    {"asinh", BNNSArithmeticAsinh, [](float a) { return std::asinh(a); }, nullptr, false},
    {"atanh", BNNSArithmeticAtanh, [](float a) { return std::atanh(a); }, nullptr, false},
    {"abs", BNNSArithmeticAbs, [](float a) { return std::fabs(a); }, nullptr, false},
    {"negate", BNNSArithmeticNegate, [](float a) { return -a; }, nullptr, false},
    {"reciprocal", BNNSArithmeticReciprocal, [](float a) { return 1 / a; }, nullptr, true},
    {"square", BNNSArithmeticSquare, [](float a) { return a * a; }, nullptr, false},
    {"floor", BNNSArithmeticFloor, [](float a) { return std::floor(a); }, nullptr, false},
    {"round", BNNSArithmeticRound, [](float a) { return std::nearbyint(a); }, nullptr, false},
    {"erf", BNNSArithmeticErf, [](float a) { return std::erf(a); }, nullptr, false},
};

// a=, b=, ...: the shape. broadcast=: bit k: the second operand has extent 1 on axis k. last=1: fastest axis first.
Row make(const Description& d) {
  const Function* found = nullptr;
  for (const Function& f : kFunctions) {
    if (d.op == f.name) found = &f;
  }
  if (!found) throw std::runtime_error("no function \"" + d.op + "\"");
  const std::vector<size_t> shape = axes(d);
  const bool two = found->binary != nullptr, backward = is_backward(d), last = d("last", 0) != 0;
  std::vector<size_t> second = shape;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (d("broadcast", 0) >> k & 1) second[k] = 1;
  }
  const Type type = d.type;
  Row r = start(d);
  r.bytes = double(kTypeBytes[int(type)]) * double(product(shape) * 2 + (two ? product(second) : 0));
  r.fill = [=](Data& data) {
    const auto fill = [&](Array& a, uint32_t state) {
      a.fill(0.99f, state);
      for (size_t i = 0; found->positive && i < a.count(); ++i) a.set(i, std::fabs(a.get(i)) + 0.25f);
    };
    fill(data.add("x", shape, type), 1);
    if (two) fill(data.add("z", second, type), 5);
    if (!backward) data.add("y", shape, type), data.add("peer_y", shape, type);
    if (backward) data.add("dy", shape, type).fill(1, 9), data.add("dx", shape, type), data.add("dz", second, type);
  };
  r.open = [=](Case& c, size_t threads) {
    BNNSArithmeticUnary one;
    BNNSArithmeticBinary pair;
    std::memset(&one, 0, sizeof one), std::memset(&pair, 0, sizeof pair);
    one.in = one.out = pair.in1 = pair.out = tensor(shape, type, nullptr, last);
    pair.in2 = tensor(second, type, nullptr, last);
    one.in_type = one.out_type = pair.in1_type = pair.in2_type = pair.out_type = BNNSSample;
    BNNSLayerParametersArithmetic p;
    std::memset(&p, 0, sizeof p);
    p.arithmetic_function = found->function;
    p.arithmetic_function_fields = two ? static_cast<void*>(&pair) : &one;
    const BNNSFilterParameters f = options(threads);
    const Filter filter = own(BNNSFilterCreateLayerArithmetic(&p, &f));
    const auto call = [=](Data& data) {
      const void* in[] = {data["x"].data(), two ? data["z"].data() : nullptr};
      const size_t strides[] = {product(shape), product(second)};
      if (!backward) {
        return check(BNNSArithmeticFilterApplyBatch(filter.get(), 1, two ? 2 : 1, in, strides, data["y"].data(),
                                                    product(shape)));
      }
      auto dx = tensor(shape, type, data["dx"].data(), last), dz = tensor(second, type, data["dz"].data(), last);
      auto dy = tensor(shape, type, data["dy"].data(), last);
      BNNSNDArrayDescriptor* deltas[] = {&dx, &dz};
      check(BNNSArithmeticFilterApplyBackwardBatch(filter.get(), 1, two ? 2 : 1, in, strides, deltas, strides, nullptr,
                                                   0, &dy, product(shape)));
    };
    c.contenders.push_back({"ours", call, backward ? "dx" : "y"});
    if (type != Type::f32 || backward || (two && second != shape)) return;
    const auto loop = [=, n = product(shape)](Data& data) {
      const float *x = data["x"].as(), *z = two ? data["z"].as() : nullptr;
      float* y = data["peer_y"].as();
      for (size_t i = 0; i < n; ++i) y[i] = two ? found->binary(x[i], z[i]) : found->unary(x[i]);
    };
    c.contenders.push_back({"plain loop", loop, "peer_y"});
  };
  return r;
}

}  // namespace

void add_arithmetic_rows() {
  makers()["arithmetic"] = make;
}

}  // namespace bnns::bench
