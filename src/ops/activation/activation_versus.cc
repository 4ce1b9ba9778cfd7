// Activations and their gradients beside PyTorch.

#include <cmath>

#include "bench/description.h"

namespace bnns::bench {
namespace {

struct Function {
  const char* name;
  BNNSActivationFunction function;
  float alpha, beta;
  float (*plain)(float);  // nullptr: no plain loop
};
const Function kFunctions[] = {
    {"relu", BNNSActivationFunctionRectifiedLinear, 0, 0, [](float x) { return x > 0 ? x : 0; }},
    {"leaky", BNNSActivationFunctionLeakyRectifiedLinear, 0.1f, 0, [](float x) { return x < 0 ? 0.1f * x : x; }},
    {"sigmoid", BNNSActivationFunctionSigmoid, 0, 0, [](float x) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", BNNSActivationFunctionTanh, 0, 0, [](float x) { return std::tanh(x); }},
    {"abs", BNNSActivationFunctionAbs, 0, 0, [](float x) { return std::fabs(x); }},
    {"clamp", BNNSActivationFunctionClamp, -0.5f, 0.5f,
     [](float x) { return x < -0.5f  ? -0.5f
                          : x > 0.5f ? 0.5f
                                     : x; }},
    {"gelu", BNNSActivationFunctionGELU, 0, 0, [](float x) { return 0.5f * x * (1 + std::erf(x * 0.70710678f)); }},
    {"gelu_tanh", BNNSActivationFunctionGELUApproximation, 0.7978845608f, 0.044715f, nullptr},
    {"silu", BNNSActivationFunctionSiLU, 0, 0, [](float x) { return x / (1 + std::exp(-x)); }},
    {"elu", BNNSActivationFunctionELU, 1, 0, [](float x) { return x < 0 ? std::exp(x) - 1 : x; }},
    {"softplus", BNNSActivationFunctionSoftplus, 1, 1, [](float x) { return std::log1p(std::exp(x)); }},
    {"hard_swish", BNNSActivationFunctionHardSwish, 0, 0, nullptr},
    {"hard_sigmoid", BNNSActivationFunctionHardSigmoid, 1 / 6.0f, 0.5f, nullptr},
    {"log_sigmoid", BNNSActivationFunctionLogSigmoid, 0, 0, [](float x) { return -std::log1p(std::exp(-x)); }},
    {"erf", BNNSActivationFunctionErf, 0, 0, [](float x) { return std::erf(x); }},
    {"softmax", BNNSActivationFunctionSoftmax, 0, 0, nullptr},
    {"log_softmax", BNNSActivationFunctionLogSoftmax, 0, 0, nullptr},
};

// rows= of columns=; softmax runs along a row.
Row make(const Description& d) {
  const Function* found = nullptr;
  for (const Function& f : kFunctions) {
    if (d.op == f.name) found = &f;
  }
  if (!found) throw std::runtime_error("no activation \"" + d.op + "\"");
  const size_t rows = d("rows"), columns = d("columns");
  const OneInput u{{rows, columns}, {rows, columns}, d.type, false, is_backward(d)};
  const auto layer = [=](size_t threads) {
    BNNSLayerParametersActivation p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = tensor(u.in, u.type), p.o_desc = tensor(u.out, u.type);
    p.activation.function = found->function;
    p.activation.alpha = found->alpha, p.activation.beta = found->beta;
    p.axis_flags = 2;
    const BNNSFilterParameters f = options(threads);
    return own(BNNSFilterCreateLayerActivation(&p, &f));
  };
  const auto loop = [plain = found->plain, n = rows * columns](const float* from, float* to, Data&) {
    for (size_t i = 0; i < n; ++i) to[i] = plain(from[i]);
  };
  Row r = start(d);
  complete(r, u, layer, found->plain && !u.backward ? Loop(loop) : Loop());
  return r;
}

}  // namespace

void add_activation_rows() {
  makers()["activation"] = make;
}

}  // namespace bnns::bench
