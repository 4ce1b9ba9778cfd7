// A convolution and batch normalization, with a rectifier where wanted, as one fused filter.
#pragma once

#include "tools/bnns/model/network.h"

namespace bnns::tool {

class ConvNorm {
 public:
  struct Sizes {
    std::size_t rows, columns, in, out;  // of x; channels of x and y
    std::size_t kernel = 3, stride = 1;  // y keeps the size of x but for the stride
    bool rectified = true;

    std::size_t out_rows() const { return (rows - 1) / stride + 1; }
    std::size_t out_columns() const { return (columns - 1) / stride + 1; }
    std::size_t inputs() const { return rows * columns * in; }
    std::size_t outputs() const { return out_rows() * out_columns() * out; }
  };
  // Parameters: weights, beta, gamma. The convolution has no bias: beta does its work.
  static constexpr std::size_t kParameters = 3;
  static void add_shapes(std::vector<NamedArray>& all, const std::string& convolution, const std::string& norm,
                         const Sizes& sizes);

  // Draws the weights, parameters[first] and on. Throws LibraryError.
  void create(Parameters& parameters, std::size_t first, const Sizes& sizes, const std::string& norm,
              const BNNSFilterParameters& options, BNNSRandomGenerator generator);

  const Sizes& sizes() const { return sizes_; }
  void forward(const float* x, std::size_t batch, float* y, bool training);
  // dx is written, or added to; NULL: it is not wanted. dy is overwritten.
  void backward(const float* x, std::size_t batch, const float* y, float* dy, float* dx, bool add = false);
  std::size_t first() const { return first_; }

  // What inference normalizes with: with the names of a file, and as what training changes.
  void add_moving(std::vector<NamedArray>& all);
  void add_moving(std::vector<BNNSNDArrayDescriptor>& all);

 private:
  Sizes sizes_{};
  Parameters* parameters_ = nullptr;
  std::size_t first_ = 0;
  std::string norm_;
  std::vector<float> moving_mean_, moving_variance_;
  Filter fused_;
};

}  // namespace bnns::tool
