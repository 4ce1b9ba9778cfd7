// The steps of steps.py in C, which compiles this file against the package's libbnns and calls it in the same process.
#include "bench/networks.h"

namespace {

using namespace bnns::bench;

struct Step {
  Data data;
  std::unique_ptr<Network> net;
};

}  // namespace

extern "C" {

// model: 0 MLP, 1 LeNet, 2 the residual network; one thread. Null where a layer was refused.
void* step_open(int model, size_t batch) try {
  auto step = std::make_unique<Step>();
  step->net = std::make_unique<Network>(step->data, batch, Optimizer::adam, 1);
  (model == 0 ? build_mlp : model == 1 ? build_lenet : build_residual)(*step->net);
  return step.release();
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return nullptr;
}

// x[batch][...], labels[batch][10] of ones and zeros; returns the loss.
float step_run(void* step, const float* x, const float* labels) {
  return static_cast<Step*>(step)->net->step(x, labels);
}
}
