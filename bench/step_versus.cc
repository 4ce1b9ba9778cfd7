// Whole training steps beside PyTorch: MLP 784-128-10, LeNet on 28x28, an 8-layer residual network on 32x32 pictures.

#include "bench/network.h"

namespace bnns::bench {
namespace {

void build_mlp(Network& net) {
  net.loss(net.full(net.full(net.input(784), 128, true), 10, false));
}

void build_lenet(Network& net) {
  const auto first = net.max_pool(net.convolution(net.input(1, 28), 20, 5, 1, 0, false), 2);
  const auto second = net.max_pool(net.convolution(first, 50, 5, 1, 0, false), 2);
  net.loss(net.full(net.full(second, 500, true), 10, false));
}

// One convolution, three blocks of two (16, 32, 64 channels), one fully connected layer.
void build_residual(Network& net) {
  auto x = net.convolution_norm(net.input(3, 32), 16, 3, 1, 1, true);
  for (const size_t channels : {16, 32, 64}) {
    const size_t stride = channels == 16 ? 1 : 2;
    const auto skip = stride == 1 ? x : net.convolution_norm(x, channels, 1, stride, 0, false);
    const auto y =
        net.convolution_norm(net.convolution_norm(x, channels, 3, stride, 1, true), channels, 3, 1, 1, false);
    x = net.add_relu(y, skip);
  }
  net.loss(net.full(net.average_pool(x), 10, false));
}

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
