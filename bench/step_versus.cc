// Whole training steps beside PyTorch.

#include "bench/networks.h"

namespace bnns::bench {
namespace {

struct Model {
  const char* name;
  void (*build)(Network&);
  std::vector<size_t> input;
};

}  // namespace

void add_step_rows() {
  const Model models[] = {{"MLP 784-128-10", build_mlp, {784}},
                          {"LeNet", build_lenet, {1, 28, 28}},
                          {"residual network", build_residual, {3, 32, 32}}};
  for (const size_t batch : {1, 32, 128}) {
    for (const Model& model : models) {
      for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam}) {
        Row r;
        const bool residual = model.input[0] == 3;
        r.family = batch == 1 ? "step_small" : "step_large";
        if (batch == 1 && residual) r.family = "step_residual_1";  // no bar
        r.op = model.name, r.direction = optimizer == Optimizer::sgd ? "SGD" : "Adam";
        r.shape = "batch ";
        r.shape += std::to_string(batch);
        r.quick = optimizer == Optimizer::sgd || batch == 1;
        r.fill = [=](Data& d) {
          std::vector<size_t> shape = model.input;
          shape.insert(shape.begin(), batch);
          d.add("x", shape).fill(), d.add("labels", {batch, 10}), d.add("loss", {1});
          for (size_t n = 0; n < batch; ++n) d["labels"].set(n * 10 + n % 10, 1);
        };
        r.open = [=](Case& c, size_t threads) {
          auto net = std::make_shared<Network>(c.sets[0], batch, optimizer, threads);
          model.build(*net);
          const auto call = [net](Data& d) {
            d["loss"].as<float>()[0] = net->step(d["x"].as<float>(), d["labels"].as<float>());
          };
          c.contenders.push_back({"ours", call, "loss"});
        };
        rows().push_back(std::move(r));
      }
    }
  }
}

}  // namespace bnns::bench
