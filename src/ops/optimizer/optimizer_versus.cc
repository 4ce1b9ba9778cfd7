// A step of each optimizer over 25 million parameters in one array, beside PyTorch's fastest implementation of it.

#include "bench/description.h"

namespace bnns::bench {
namespace {

constexpr size_t kParameters = 25'000'000;

struct Optimizer {
  const char* name;
  size_t arrays;  // of accumulators
};
constexpr Optimizer kOptimizers[] = {{"SGD", 0}, {"SGD with momentum", 1}, {"Adam", 2}, {"RMSProp", 1}};

Call step(const std::string& name, size_t arrays, size_t count, size_t threads) {
  BNNSOptimizerSGDMomentumFields sgd = {};
  sgd.learning_rate = 1e-3f, sgd.gradient_scale = 1;
  if (name == "SGD with momentum") sgd.momentum = 0.9f, sgd.sgd_momentum_variant = BNNSSGDMomentumVariant1;
  BNNSOptimizerAdamFields adam = {};
  adam.learning_rate = 1e-3f, adam.beta1 = 0.9f, adam.beta2 = 0.999f, adam.time_step = 10, adam.epsilon = 1e-8f;
  adam.gradient_scale = 1;
  BNNSOptimizerRMSPropFields rms = {};
  rms.learning_rate = 1e-3f, rms.alpha = 0.99f, rms.epsilon = 1e-8f, rms.gradient_scale = 1;
  return [=](Data& d) {
    const auto vector = [&](const char* key) {
      return describe(BNNSDataLayoutVector, {count}, Type::f32, d[key].data());
    };
    auto w = vector("w"), g = vector("g");
    BNNSNDArrayDescriptor moments[2];
    BNNSNDArrayDescriptor *ws[] = {&w}, *ms[] = {&moments[0], &moments[1]};
    const BNNSNDArrayDescriptor* gs[] = {&g};
    if (arrays > 0) moments[0] = vector("m0");
    if (arrays > 1) moments[1] = vector("m1");
    const BNNSFilterParameters o = options(threads);
    const auto run = [&](BNNSOptimizerFunction function, const void* fields) {
      check(BNNSOptimizerStep(function, fields, 1, ws, gs, arrays ? ms : nullptr, &o));
    };
    if (name == "Adam") return run(BNNSOptimizerFunctionAdam, &adam);
    if (name == "RMSProp") return run(BNNSOptimizerFunctionRMSProp, &rms);
    run(BNNSOptimizerFunctionSGDMomentum, &sgd);
  };
}

void complete(Row& r, const Optimizer& o, size_t count) {
  r.bytes = 4.0 * double(count) * double(3 + 2 * o.arrays);  // w, g and accumulators read, all but g written
  r.fill = [=](Data& d) {
    d.add("w", {count}).fill(0.1f), d.add("g", {count}).fill(1e-2f, 3);
    if (o.arrays > 0) d.add("m0", {count});
    if (o.arrays > 1) d.add("m1", {count});
  };
  r.open = [=](Case& c, size_t threads) {
    c.contenders.push_back({"ours", step(o.name, o.arrays, count, threads), ""});
  };
}

// count= parameters.
Row make(const Description& d) {
  constexpr const char* ops[] = {"sgd", "momentum", "adam", "rmsprop"};
  const Optimizer& o = kOptimizers[find_name(ops, d.op)];
  if (d.type_name != "f32") throw std::runtime_error("optimizers have f32");
  Row r = start(d);
  r.op = o.name;
  complete(r, o, d("count"));
  return r;
}

}  // namespace

void add_optimizer_rows() {
  makers()["optimizer"] = make;
  for (const Optimizer& o : kOptimizers) {
    Row r;
    r.family = "optimizer", r.op = o.name, r.direction = "step", r.shape = "25000000", r.quick = true;
    complete(r, o, kParameters);
    rows().push_back(std::move(r));
  }
}

}  // namespace bnns::bench
