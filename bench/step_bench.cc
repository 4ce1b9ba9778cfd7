// Time of one training step of a 784-128-10 network through the C interface; bench/step_torch.py is the same in
// PyTorch. Prints one JSON object per line: {"family":"step_small","case":"mlp batch 1 sgd","us":...}

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bench/mlp_step.h"

int main() {
  using bnns::bench::MlpStep;
  using Clock = std::chrono::steady_clock;
  for (size_t batch : {1, 32, 128}) {
    for (auto optimizer : {MlpStep::Optimizer::sgd, MlpStep::Optimizer::adam}) {
      MlpStep step(batch, optimizer);
      for (int i = 0; i < 20; ++i) step.run();
      std::vector<double> times;
      const auto start = Clock::now();
      while (times.size() < 9 || Clock::now() - start < std::chrono::milliseconds(500)) {
        constexpr int kInner = 10;
        const auto before = Clock::now();
        for (int i = 0; i < kInner; ++i) step.run();
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count() / kInner);
      }
      std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
      std::printf("{\"family\":\"%s\",\"case\":\"mlp batch %zu %s\",\"us\":%.2f}\n",
                  batch == 1 ? "step_small" : "step_large", batch,
                  optimizer == MlpStep::Optimizer::sgd ? "sgd" : "adam", times[times.size() / 2]);
    }
  }
}
