// A small residual network:
//   y = relu(batch_norm(convolution 3x3))                      16 channels
//   three blocks  relu(f(y) + g(y)),  16, 32 and 64 channels, the second and third at half the size:
//     f  two convolutions 3x3, each with batch normalization, a rectifier between them
//     g  y itself, or, where size and channels change, a convolution 1x1 with batch normalization
//   z = W mean(y) + b     the mean over all pixels, then fully connected
// The names of its weights are torchvision's.
#pragma once

#include <array>
#include <memory>

#include "tools/bnns/model/conv_norm.h"

namespace bnns::tool {

class ResNet final : public Network {
 public:
  static constexpr std::size_t kBlocks = 3, kChannels[kBlocks] = {16, 32, 64}, kSmallestPicture = 4;

  // Weights are drawn from `seed`. Pictures have kSmallestPicture rows and columns or more. Throws LibraryError.
  ResNet(const Inputs& inputs, std::size_t classes, std::size_t max_batch, std::uint64_t seed, std::size_t threads);

  std::vector<NamedArray> state() override;

 private:
  struct Value {
    std::vector<float> y, dy;
  };
  struct Block {
    ConvNorm first, second, shortcut;
    bool projected = false;        // by the shortcut's convolution
    Value middle, sum, side, out;  // after the first convolution, the second, the shortcut, the rectifier
    Filter add;
  };

  void forward(const float* x, std::size_t batch, bool training) override;
  void backward(const float* x, std::size_t batch) override;
  std::vector<BNNSNDArrayDescriptor> statistics() override;
  std::vector<ConvNorm*> layers();
  void backward(Block& block, Value& in, std::size_t batch);

  ConvNorm stem_;
  Value stem_out_, mean_;
  std::array<Block, kBlocks> blocks_;
  std::size_t last_ = 0;  // the last layer's parameters
  Filter pooling_, full_;
};

}  // namespace bnns::tool
