// A convolutional network:
//   two stages of  relu(batch_norm(convolution 3x3))  as one fused filter, then 2x2 max pooling;
//   z = W p + b     fully connected
// 16 and 32 channels; a picture of 28 x 28 becomes 14 x 14, then 7 x 7.
#pragma once

#include <array>

#include "tools/bnns/model/conv_norm.h"

namespace bnns::tool {

class Cnn final : public Network {
 public:
  static constexpr std::size_t kStages = 2, kChannels[kStages] = {16, 32}, kSmallestPicture = 4;

  // Weights are drawn from `seed`. Pictures have kSmallestPicture rows and columns or more. Throws LibraryError.
  Cnn(const Inputs& inputs, std::size_t classes, std::size_t max_batch, std::uint64_t seed, std::size_t threads);

  std::vector<NamedArray> state() override;

 private:
  struct Stage {
    ConvNorm layer;
    std::size_t pooled_pixels = 0;              // pooling halves rows and columns
    std::vector<float> y, dy, pooled, dpooled;  // after the rectifier; after pooling; and their gradients
    std::vector<std::size_t> indices;           // where each maximum was
    Filter pooling;
  };

  void forward(const float* x, std::size_t batch, bool training) override;
  void backward(const float* x, std::size_t batch) override;
  std::vector<BNNSNDArrayDescriptor> statistics() override;

  std::array<Stage, kStages> stages_;
  Filter last_;
};

}  // namespace bnns::tool
