// A residual connection, relu(batchNorm(a + b)), as one layer of two inputs, with its gradients; then scale * a + b
// with three. The labels are those of the Swift calls.
#include <bnns/bnns.hpp>
#include <cmath>
#include <cstdio>

int main() {
  using namespace bnns;
  constexpr std::size_t n = 4;
  constexpr auto sample = DescriptorType::sample;
  const Shape image = Shape::imageCHW(8, 8, 2);
  RandomGenerator random({.seed = 4});
  const NDArray a = NDArray::normal(random, 0.0f, 1.0f, image, n), b = NDArray::normal(random, 1.0f, 1.0f, image, n),
                scale = NDArray::uniform(random, 0.5f, 1.5f, image), dy = NDArray::normal(random, 0.0f, 1.0f, image, n);
  NDArray y = NDArray::repeating(0.0f, image, n), da = NDArray::repeating(0.0f, image, n),
          db = NDArray::repeating(0.0f, image, n), dscale = NDArray::repeating(0.0f, image);
  NDArray beta = NDArray::repeating(0.0f, {2}), gamma = NDArray::repeating(1.0f, {2}),
          dbeta = NDArray::repeating(0.0f, {2}), dgamma = NDArray::repeating(0.0f, {2});

  const FusedNormalizationParameters normalization{.type = NormalizationType::batch({}, {}),
                                                   .beta = beta,
                                                   .gamma = gamma,
                                                   .epsilon = 1e-5f,
                                                   .activation = ActivationFunction::rectifiedLinear()};
  const FusedBinaryArithmeticParameters sum{.inputADescriptorType = sample,
                                            .inputBDescriptorType = sample,
                                            .outputDescriptorType = sample,
                                            .function = ArithmeticBinaryFunction::add};
  FusedParametersLayer residual(a, b, y, {sum, normalization}, useClientPointer);
  residual.apply(n, a, b, y, LearningPhase::training);
  residual.applyBackward({.batchSize = n,
                          .inputA = a,
                          .inputB = b,
                          .output = y,
                          .outputGradient = dy,
                          .generatingInputAGradient = da,
                          .generatingInputBGradient = db,
                          .generatingParameterGradients = {dbeta, dgamma}});
  const bool equal = da.makeArray<float>() == db.makeArray<float>();  // both are added: the same gradient
  std::printf("two inputs: y[0] %.4f, dA[0] %.4f, dBeta %.4f\n", double(y.span<float>()[0]),
              double(da.span<float>()[0]), double(dbeta.span<float>()[0]));

  const FusedTernaryArithmeticParameters product{.inputADescriptorType = sample,
                                                 .inputBDescriptorType = DescriptorType::parameter,
                                                 .inputCDescriptorType = sample,
                                                 .outputDescriptorType = sample,
                                                 .function = ArithmeticTernaryFunction::multiplyAdd};
  FusedParametersLayer scaled(a, scale, b, y, {product, normalization}, useClientPointer);
  scaled.apply(n, a, scale, b, y, LearningPhase::training);
  scaled.applyBackward({.batchSize = n,
                        .inputA = a,
                        .inputB = scale,
                        .inputC = b,
                        .output = y,
                        .outputGradient = dy,
                        .generatingInputAGradient = da,
                        .generatingInputBGradient = dscale,
                        .generatingInputCGradient = db,
                        .generatingParameterGradients = {dbeta, dgamma}});
  double worst = 0;  // d(scale * a + b): dA = scale * dC
  for (std::size_t i = 0; i < 128; ++i) {
    worst =
        std::fmax(worst, std::fabs(double(da.span<float>()[i]) - double(scale.span<float>()[i] * db.span<float>()[i])));
  }
  std::printf("three inputs: dScale[0] %.4f, |dA - scale * dC| at most %.2g\n", double(dscale.span<float>()[0]), worst);
  return equal && worst < 1e-6 && dscale.span<float>()[0] != 0 ? 0 : 1;
}
