// Activations and arithmetic: softmax along an axis, and the gradient of tanh(a * b).
#include <bnns/bnns.hpp>
#include <cmath>
#include <cstdio>

int main() {
  using namespace bnns;
  const Shape table = Shape::matrixRowMajor(3, 2);
  const NDArray x = NDArray::from({1.0f, 2.0f, 3.0f, 0.0f, 0.0f, 5.0f}, table);
  NDArray y = NDArray::repeating(0.0f, table);
  ActivationLayer softmax({.function = ActivationFunction::softmax(), .input = x, .output = y, .axes = {0}});
  softmax.apply(1, x, y);
  for (std::size_t r = 0; r < 2; ++r) {
    const auto row = y.span<float>().subspan(3 * r, 3);
    std::printf("softmax %.4f %.4f %.4f\n", double(row[0]), double(row[1]), double(row[2]));
  }

  constexpr auto sample = DescriptorType::sample;
  const NDArray a = NDArray::from({0.5f, -1.0f}, {2}), b = NDArray::from({2.0f, 0.25f}, {2}),
                one = NDArray::repeating(1.0f, {2});
  NDArray t = NDArray::repeating(0.0f, {2}), da = NDArray::repeating(0.0f, {2}), db = NDArray::repeating(0.0f, {2});
  BinaryArithmeticLayer product({.inputA = a,
                                 .inputADescriptorType = sample,
                                 .inputB = b,
                                 .inputBDescriptorType = sample,
                                 .output = t,
                                 .outputDescriptorType = sample,
                                 .function = ArithmeticBinaryFunction::multiply,
                                 .activation = ActivationFunction::tanh()});
  product.apply(1, a, b, t);
  product.applyBackward(1, a, b, t, one, da, db);
  bool right = true;
  for (std::size_t i = 0; i < 2; ++i) {
    const float slope = 1 - t.span<float>()[i] * t.span<float>()[i];
    right = right && std::fabs(da.span<float>()[i] - slope * b.span<float>()[i]) < 1e-6f &&
            std::fabs(db.span<float>()[i] - slope * a.span<float>()[i]) < 1e-6f;
    std::printf("tanh(ab) %.4f, d/da %.4f, d/db %.4f\n", double(t.span<float>()[i]), double(da.span<float>()[i]),
                double(db.span<float>()[i]));
  }
  return right && std::fabs(y.span<float>()[0] - 0.0900306f) < 1e-6f ? 0 : 1;
}
