// Trains the convolutional network of cnn.c with the C++ overlay: fused convolution + batch normalization + ReLU, max
// pooling, fully connected, softmax cross-entropy, Adam. It ends with the same weights as the C program, bit for bit.
//   c++ -std=c++20 overlay_digits.cc -lbnns -o overlay_digits
#include <bnns/bnns.hpp>
#include <cstdio>

using namespace bnns;

constexpr std::size_t kSize = 16, kHalf = 8, kChannels = 8, kClasses = 4, kBatch = 64, kSteps = 150;

static unsigned roll(unsigned sides) {
  static unsigned state = 1;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % sides;
}

static void drawBatch(std::span<float> pictures, std::span<float> labels) {  // a bar, a pole, a cross or a frame
  for (std::size_t n = 0; n < kBatch; ++n) {
    const unsigned shape = roll(kClasses), top = 1 + roll(6), left = 1 + roll(6);
    float* picture = &pictures[n * kSize * kSize];
    for (unsigned k = 0; k < kClasses; ++k) labels[n * kClasses + k] = k == shape ? 1.0f : 0.0f;
    for (std::size_t i = 0; i < kSize * kSize; ++i) picture[i] = static_cast<float>(roll(100)) / 200;
    for (unsigned k = 0; k < 81; ++k) {
      const unsigned i = k / 9, j = k % 9;
      const bool row = i == 4, column = j == 4, frame = i % 8 == 0 || j % 8 == 0;
      const bool ink = shape == 0 ? row : shape == 1 ? column : shape == 2 ? row || column : frame;
      if (ink) picture[(top + i) * kSize + left + j] += 0.6f;
    }
  }
}

static NDArray zeros(const Shape& shape, std::size_t batchSize = 1) {
  return NDArray::repeating(0.0f, shape, batchSize);
}

int main() try {
  const Shape image = Shape::imageCHW(kSize, kSize, 1), maps = Shape::imageCHW(kSize, kSize, kChannels);
  const Shape half = Shape::imageCHW(kHalf, kHalf, kChannels), classes = {kClasses}, channels = {kChannels};
  const Shape kernels = Shape::convolutionWeightsOIHW(3, 3, 1, kChannels),
              matrix = Shape::matrixRowMajor(half.batchStride(), kClasses);
  const Shape shapes[] = {kernels, channels, channels, matrix, classes};
  std::vector<NDArray> memory;  // parameters, gradients, first and second moments
  for (int k = 0; k < 20; ++k) memory.push_back(zeros(shapes[k % 5]));
  const std::vector<Desc> all(memory.begin(), memory.end());
  const std::span<const Desc> parameters(&all[0], 5), gradients(&all[5], 5), moments(&all[10], 10);
  NDArray &w1 = memory[0], &beta = memory[1], &gamma = memory[2], &w2 = memory[3], &b2 = memory[4];
  NDArray mean = zeros(channels), variance = NDArray::repeating(1.0f, channels);
  for (float& g : gamma.span<float>()) g = 1;
  RandomGenerator random({.seed = 1});
  random.fillUniform(w1, -0.8f, 0.8f), random.fillUniform(w2, -0.1f, 0.1f);
  NDArray pictures = zeros(image, kBatch), labels = zeros(classes, kBatch), loss = zeros({1});
  NDArray y = zeros(maps, kBatch), p = zeros(half, kBatch), z = zeros(classes, kBatch);
  NDArray dy = zeros(maps, kBatch), dp = zeros(half, kBatch), dz = zeros(classes, kBatch);
  std::vector<std::size_t> indices(kBatch * half.batchStride());
  FusedConvolutionNormalizationLayer convolution({.input = pictures,
                                                  .output = y,
                                                  .convolutionWeights = w1,
                                                  .convolutionPadding = ConvolutionPadding::symmetric(1, 1),
                                                  .normalization = NormalizationType::batch(mean, variance),
                                                  .normalizationBeta = beta,
                                                  .normalizationGamma = gamma,
                                                  .normalizationMomentum = 0.9f,
                                                  .normalizationEpsilon = 1e-5f,
                                                  .normalizationActivation = ActivationFunction::rectifiedLinear(),
                                                  .filterParameters = useClientPointer});
  PoolingLayer pool(
      {.type = PoolingType::max(indices), .input = y, .output = p, .kernelSize = {2, 2}, .stride = {2, 2}});
  FullyConnectedLayer last({.input = p, .output = z, .weights = w2, .bias = b2, .filterParameters = useClientPointer});
  LossLayer judge({.input = z,
                   .output = loss,
                   .lossFunction = LossFunction::softmaxCrossEntropy(0),
                   .lossReduction = LossReduction::reductionMean});

  const Desc convolutionGradients[] = {gradients[0], {}, gradients[1], gradients[2]};  // the convolution has no bias
  AdamOptimizer adam{.learningRate = 0.01f};
  for (std::size_t step = 1; step <= kSteps + 1; ++step, adam.timeStep += 1) {
    const bool training = step <= kSteps;  // the last batch is only read, with the moving statistics
    drawBatch(pictures.span<float>(), labels.span<float>());
    convolution.apply(kBatch, pictures, y, training ? LearningPhase::training : LearningPhase::inference);
    pool.apply(kBatch, y, p);
    last.apply(kBatch, p, z);
    judge.apply(kBatch, z, labels, loss, dz);
    if (step % 50 == 0) std::printf("step %3zu  loss %.4f\n", step, static_cast<double>(loss.span<float>()[0]));
    if (!training) break;
    last.applyBackward(kBatch, p, z, dz, dp, gradients[3], gradients[4]);
    pool.applyBackward(kBatch, y, p, dp, dy);
    convolution.applyBackward(kBatch, pictures, y, dy, std::nullopt, convolutionGradients);
    adam.step(parameters, gradients, moments);
  }
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a of all parameters
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::byte b : std::as_bytes(memory[i].span<float>())) hash = (hash ^ std::uint64_t(b)) * 1099511628211u;
  }
  std::printf("new pictures: loss %.4f\nweights %016llx\n", static_cast<double>(loss.span<float>()[0]),
              static_cast<unsigned long long>(hash));
  return loss.span<float>()[0] < 0.1f ? 0 : 1;
} catch (const Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
