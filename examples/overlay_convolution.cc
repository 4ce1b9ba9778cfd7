// A convolution learns the kernel of another one from its output; a transposed convolution is its adjoint.
#include <bnns/bnns.hpp>
#include <cmath>
#include <cstdio>

int main() {
  using namespace bnns;
  constexpr std::size_t n = 8;
  const Shape image = Shape::imageCHW(12, 12, 1), kernel = Shape::convolutionWeightsOIHW(3, 3, 1, 1);
  RandomGenerator random({.seed = 2});
  const NDArray edges = NDArray::from({-1.0f, 0.0f, 1.0f, -2.0f, 0.0f, 2.0f, -1.0f, 0.0f, 1.0f}, kernel);
  NDArray x = NDArray::uniform(random, 0.0f, 1.0f, image, n), y = NDArray::repeating(0.0f, image, n);
  NDArray labels = NDArray::repeating(0.0f, image, n), dy = NDArray::repeating(0.0f, image, n);
  NDArray w = NDArray::repeating(0.0f, kernel), dw = NDArray::repeating(0.0f, kernel);
  NDArray m = NDArray::repeating(0.0f, kernel), v = NDArray::repeating(0.0f, kernel),
          loss = NDArray::repeating(0.0f, {1});

  ConvolutionLayer::Parameters p{
      .input = x, .weights = edges, .output = y, .padding = ConvolutionPadding::symmetric(1, 1)};
  ConvolutionLayer teacher(p);
  teacher.apply(n, x, labels);
  p.weights = w, p.filterParameters = useClientPointer;
  ConvolutionLayer pupil(p);
  LossLayer judge({.input = y,
                   .output = loss,
                   .lossFunction = LossFunction::meanSquareError(),
                   .lossReduction = LossReduction::reductionMean});
  AdamOptimizer adam{.learningRate = 0.05f};
  for (; adam.timeStep <= 400; adam.timeStep += 1) {
    pupil.apply(n, x, y);
    judge.apply(n, y, labels, loss, dy);
    pupil.applyBackward(n, x, y, dy, std::nullopt, dw);
    adam.step({w}, {dw}, {m, v});
  }
  for (std::size_t i = 0; i < 9; ++i) std::printf("%6.2f%s", double(w.span<float>()[i]), i % 3 == 2 ? "\n" : " ");

  // <conv x, u> = <x, transposed conv u>: what makes backward of one the forward of the other.
  p.weights = edges, p.filterParameters.reset();
  TransposedConvolutionLayer adjoint(p);
  const NDArray u = NDArray::uniform(random, 0.0f, 1.0f, image, n);
  NDArray back = NDArray::repeating(0.0f, image, n);
  adjoint.apply(n, u, back);
  double left = 0, right = 0;
  for (std::size_t i = 0; i < n * 144; ++i) {
    left += double(labels.span<float>()[i]) * double(u.span<float>()[i]);
    right += double(x.span<float>()[i]) * double(back.span<float>()[i]);
  }
  std::printf("loss %g, adjoint %.4f and %.4f\n", double(loss.span<float>()[0]), left, right);
  return loss.span<float>()[0] < 1e-4f && std::fabs(left - right) < 1e-3 ? 0 : 1;
}
