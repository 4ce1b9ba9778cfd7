// The networks whose training steps are timed: MLP 784-128-10, LeNet on 28x28, an 8-layer residual network on 32x32
// pictures. bench/peers_torch.py and python/bench/steps.py have the same ones.
#pragma once

#include "bench/network.h"

namespace bnns::bench {

inline void build_mlp(Network& net) {
  net.loss(net.full(net.full(net.input(784), 128, true), 10, false));
}

inline void build_lenet(Network& net) {
  const auto first = net.max_pool(net.convolution(net.input(1, 28), 20, 5, 1, 0, false), 2);
  const auto second = net.max_pool(net.convolution(first, 50, 5, 1, 0, false), 2);
  net.loss(net.full(net.full(second, 500, true), 10, false));
}

// One convolution, three blocks of two (16, 32, 64 channels), one fully connected layer.
inline void build_residual(Network& net) {
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

}  // namespace bnns::bench
