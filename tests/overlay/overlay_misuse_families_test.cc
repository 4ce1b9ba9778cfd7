// Arrays that do not fit: losses, layers of several inputs, lookups, index buffers, lists. See overlay_misuse_test.cc.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

constexpr auto kSample = DescriptorType::sample;

TEST(OverlayMisuse, Loss) {
  LossLayer layer({.input = descriptor({2}),
                   .output = descriptor({1}),
                   .lossFunction = LossFunction::softmaxCrossEntropy(0),
                   .lossReduction = LossReduction::sum});
  const NDArray x = data({2}, 1), labels = data({2}, 2), wide = data({3}, 3), few = data({2}, 4, 2);
  const NDArray classes = NDArray::repeating(1, {2}, kBatch), half = NDArray::repeating(BFloat16(1), {2}, kBatch);
  NDArray y = output({1}, 1), dx = output({2}), dx2 = output({2}, 2), odd = output({5}),
          whole = NDArray::repeating(1, {1});
  EXPECT_NO_THROW(layer.apply(kBatch, x, labels, y, dx));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: labels are Int32, the layer takes Float32"},
                      [&] { layer.apply(kBatch, x, classes, y, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: labels have 3 elements a sample, the layer takes 2"},
                      [&] { layer.apply(kBatch, x, wide, y, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: labels hold 2 samples, the batch is 3"},
                      [&] { layer.apply(kBatch, x, few, y, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: input is BFloat16, the layer takes Float32"},
                      [&] { layer.apply(kBatch, half, labels, y, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: input holds 2 samples, the batch is 3"},
                      [&] { layer.apply(kBatch, few, labels, y, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: generatingInputGradient has 5 elements", "takes 2"},
                      [&] { layer.apply(kBatch, x, labels, y, odd); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: generatingInputGradient holds 2 samples, the batch is 3"},
                      [&] { layer.apply(kBatch, x, labels, y, dx2); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: output is Int32, the layer takes Float32"},
                      [&] { layer.apply(kBatch, x, labels, whole, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: weights are Int32, the layer takes Float32"},
                      [&] { layer.apply(kBatch, x, labels, y, whole, true, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::applyBackward: labels are Int32"},
                      [&] { layer.applyBackward(kBatch, x, classes, y, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::applyBackward: generatingInputGradient holds 2 samples"},
                      [&] { layer.applyBackward(kBatch, x, labels, y, dx2); }));

  // Without a reduction every element, or every sample, has a loss of its own.
  LossLayer each({.input = descriptor({2}),
                  .output = descriptor({2}),
                  .lossFunction = LossFunction::meanSquareError(),
                  .lossReduction = LossReduction::none});
  NDArray losses = output({2}), one = output({6}, 1), scant = output({2}, 2);
  EXPECT_NO_THROW(each.apply(kBatch, x, labels, losses, dx));
  EXPECT_NO_THROW(each.apply(kBatch, x, labels, one, dx));
  EXPECT_TRUE(refuses(kData, {"LossLayer::apply: output holds 4 losses, the batch has 6"},
                      [&] { each.apply(kBatch, x, labels, scant, dx); }));
  EXPECT_TRUE(refuses(kData, {"LossLayer::applyBackward: outputGradient holds 2 samples, the batch is 3"},
                      [&] { each.applyBackward(kBatch, x, labels, scant, dx); }));

  // One weight for each sample, as a batch of numbers: all of them count.
  const NDArray rows = data({1}, 5, kBatch, 0.5f, 1.5f), flat = NDArray::from(rows.makeArray<float>(), {kBatch});
  NDArray a = output({1}, 1), b = output({1}, 1);
  layer.apply(kBatch, x, labels, a, rows, false, dx);
  layer.apply(kBatch, x, labels, b, flat, false, dx);
  EXPECT_TRUE(same(a, b));
}

TEST(OverlayMisuse, LayersOfSeveralInputs) {
  const Desc v = descriptor({4});
  const NDArray x = data({4}, 1), odd = data({5}, 2), few = data({4}, 3, 2),
                half = NDArray::repeating(Float16(1), {4}, kBatch);
  NDArray y = output({4}), y2 = output({4}, 2), da = output({4}), wrong = output({5});
  BinaryArithmeticLayer add({.inputA = v,
                             .inputADescriptorType = kSample,
                             .inputB = v,
                             .inputBDescriptorType = DescriptorType::parameter,
                             .output = v,
                             .outputDescriptorType = kSample,
                             .function = ArithmeticBinaryFunction::add});
  const NDArray shared = data({4}, 4, 1);
  NDArray dshared = output({4}, 1);
  EXPECT_NO_THROW(add.apply(kBatch, x, shared, y));  // a parameter is one array for the batch
  EXPECT_NO_THROW(add.applyBackward(kBatch, x, shared, y, x, da, dshared));
  EXPECT_TRUE(refuses(kData, {"BinaryArithmeticLayer::apply: inputA holds 1 sample, the batch is 3"},
                      [&] { add.apply(kBatch, shared, shared, y); }));
  EXPECT_TRUE(refuses(kData, {"BinaryArithmeticLayer::apply: inputB has 5 elements", "takes 4"},
                      [&] { add.apply(kBatch, x, odd, y); }));
  EXPECT_TRUE(refuses(kData, {"BinaryArithmeticLayer::apply: inputA is Float16, the layer takes Float32"},
                      [&] { add.apply(kBatch, half, shared, y); }));
  EXPECT_TRUE(refuses(kData, {"BinaryArithmeticLayer::apply: output holds 2 samples"},
                      [&] { add.apply(kBatch, x, shared, y2); }));
  EXPECT_TRUE(refuses(kData, {"BinaryArithmeticLayer::applyBackward: generatingInputBGradient has 5"},
                      [&] { add.applyBackward(kBatch, x, shared, y, x, da, wrong); }));
  EXPECT_TRUE(refuses(kData, {"BinaryArithmeticLayer::applyBackward: outputGradient holds 2 samples"},
                      [&] { add.applyBackward(kBatch, x, shared, y, few, da, dshared); }));

  BroadcastMatrixMultiplyLayer product(
      {.inputA = descriptor({2, 3}), .inputB = descriptor({3, 2}), .output = descriptor({2, 2})});
  const NDArray a = data({2, 3}, 5), b = data({3, 2}, 6), b2 = data({3, 2}, 6, 2);
  NDArray square = output({2, 2}), six = output({2, 3});
  EXPECT_NO_THROW(product.apply(kBatch, a, b, square));
  EXPECT_TRUE(refuses(kData, {"BroadcastMatrixMultiplyLayer::apply: inputB holds 2 samples"},
                      [&] { product.apply(kBatch, a, b2, square); }));
  EXPECT_TRUE(refuses(kData, {"BroadcastMatrixMultiplyLayer::apply: output has 6 elements", "takes 4"},
                      [&] { product.apply(kBatch, a, b, six); }));
  EXPECT_TRUE(refuses(kData, {"BroadcastMatrixMultiplyLayer::applyBackward: generatingInputAGradient has 4"},
                      [&] { product.applyBackward(kBatch, a, b, square, square, square, {}); }));
  BroadcastMatrixMultiplyLayer fixed(
      {.inputA = a, .aIsWeights = true, .inputB = descriptor({3, 2}), .output = descriptor({2, 2})});
  EXPECT_TRUE(refuses(kData, {"BroadcastMatrixMultiplyLayer::apply: input holds 2 samples"},
                      [&] { fixed.apply(kBatch, a, b2, square); }));
  TensorContractionLayer contraction(
      {.operation = " w_ip, b_iq -> o_pq", .inputA = a, .inputB = descriptor({2, 4}), .output = descriptor({3, 4})});
  const NDArray q = data({2, 4}, 7);
  NDArray pq = output({3, 4});
  EXPECT_NO_THROW(contraction.apply(kBatch, q, pq));  // the first operand is weights: the input is the second
  EXPECT_TRUE(refuses(kData, {"TensorContractionLayer::apply: input has 6 elements", "takes 8"},
                      [&] { contraction.apply(kBatch, a, pq); }));
  EXPECT_TRUE(refuses(
      kData, {"TensorContractionLayer::applyBackward: generatingWeightsGradient has 4 elements, the layer takes 6"},
      [&] { contraction.applyBackward(kBatch, q, pq, pq, {}, square); }));

  // Fused arithmetic of two and of three inputs.
  const FusableLayerParameters norm =
      FusedNormalizationParameters{.type = NormalizationType::batch({}, {}), .epsilon = 1e-5f};
  const FusableLayerParameters two[] = {FusedBinaryArithmeticParameters{.inputADescriptorType = kSample,
                                                                        .inputBDescriptorType = kSample,
                                                                        .outputDescriptorType = kSample,
                                                                        .function = ArithmeticBinaryFunction::add},
                                        norm};
  FusedParametersLayer fused(v, v, v, two);
  constexpr auto training = LearningPhase::training;
  EXPECT_NO_THROW(fused.apply(kBatch, x, x, y, training));
  EXPECT_TRUE(refuses(kData, {"FusedParametersLayer::apply: inputB holds 2 samples"},
                      [&] { fused.apply(kBatch, x, few, y, training); }));
  EXPECT_TRUE(refuses(kData, {"FusedParametersLayer::apply: output has 5 elements", "takes 4"},
                      [&] { fused.apply(kBatch, x, x, wrong, training); }));
  EXPECT_TRUE(refuses(kData, {"FusedParametersLayer::applyBackward: generatingInputBGradient holds 2 samples"},
                      [&] { fused.applyBackward(kBatch, x, x, y, x, da, y2, std::span<const Desc>()); }));
  const FusableLayerParameters three[] = {
      FusedTernaryArithmeticParameters{.inputADescriptorType = kSample,
                                       .inputBDescriptorType = DescriptorType::parameter,
                                       .inputCDescriptorType = kSample,
                                       .outputDescriptorType = kSample,
                                       .function = ArithmeticTernaryFunction::multiplyAdd},
      norm};
  FusedParametersLayer scaled(v, v, v, v, three);
  EXPECT_NO_THROW(scaled.apply(kBatch, x, shared, x, y, training));
  EXPECT_TRUE(refuses(kData, {"FusedParametersLayer::apply: inputC is Float16, the layer takes Float32"},
                      [&] { scaled.apply(kBatch, x, shared, half, y, training); }));
}

TEST(OverlayMisuse, LookupsAndIndices) {
  const NDArray table = data(Shape::matrixLastMajor(2, 4), 1, 1), words = NDArray::from({1, 3, 0}, {1}, kBatch),
                far = NDArray::repeating(std::int64_t{1}, {1}, kBatch), dy = data({2}, 2);
  EmbeddingLayer embedding(
      {.input = descriptor<int>({1}), .output = descriptor(Shape::matrixLastMajor(2, 1)), .dictionary = table});
  NDArray items = output({2}), few = output({2}, 2), slope = output({8}, 1), wrong = output({7}, 1);
  EXPECT_NO_THROW(embedding.apply(kBatch, words, items));
  EXPECT_NO_THROW(embedding.applyBackward(kBatch, words, items, dy, slope));
  EXPECT_TRUE(refuses(kData, {"EmbeddingLayer::apply: input is Int64, the layer takes Int32"},
                      [&] { embedding.apply(kBatch, far, items); }));
  EXPECT_TRUE(
      refuses(kData, {"EmbeddingLayer::apply: output holds 2 samples"}, [&] { embedding.apply(kBatch, words, few); }));
  EXPECT_TRUE(refuses(kData,
                      {"EmbeddingLayer::applyBackward: generatingWeightsGradient has 7 elements, the layer takes 8"},
                      [&] { embedding.applyBackward(kBatch, words, items, dy, wrong); }));

  const Shape in = Shape::imageCHW(4, 4, 1), out = Shape::imageCHW(2, 2, 1);
  NDArray at = NDArray::repeating(std::uint32_t{0}, out, 2);
  PoolingLayer pool({.type = PoolingType::maxEx(at),
                     .input = descriptor(in),
                     .output = descriptor(out),
                     .kernelSize = {2, 2},
                     .stride = {2, 2}});
  const NDArray x = data(in, 3);
  NDArray y = output(out), dx = output(in);
  EXPECT_NO_THROW(pool.apply(2, x, y));
  EXPECT_TRUE(refuses(kData, {"PoolingLayer::apply: indicesDescriptor holds 2 samples, the batch is 3"},
                      [&] { pool.apply(kBatch, x, y); }));
  EXPECT_TRUE(refuses(kData, {"PoolingLayer::applyBackward: indicesDescriptor holds 2 samples, the batch is 3"},
                      [&] { pool.applyBackward(kBatch, x, y, y, dx); }));

  NearestNeighbors store(8, 2, 1, BNNSDataTypeFloat32);
  store.append(dy);  // three samples of two numbers, as a batch
  NDArray near = NDArray::repeating(-1, {1}, kBatch), nearer = NDArray::repeating(-1, {1}, 2);
  EXPECT_NO_THROW(store.apply({}, near, {}));
  EXPECT_EQ(near.makeArray<int>(), (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(refuses(kData, {"NearestNeighbors::apply: outputIndices have 2 elements, expected 3"},
                      [&] { store.apply({}, nearer, {}); }));
}

TEST(OverlayMisuse, Attention) {
  const Shape target = {3, 2}, heads = Shape::tensor3DLastMajor(2, 2, 1);
  const NDArray w = data(heads, 1, 1), wo = data({2, 2}, 2, 1);
  const AttentionProjection in{.target = descriptor(target), .weights = w},
      out{.target = descriptor(target), .weights = wo};
  MultiheadAttentionLayer layer({.query = in, .key = in, .value = in, .output = out});
  const NDArray x = data(target, 3), few = data(target, 4, 2), odd = data({3, 3}, 5),
                mask = NDArray::repeating(false, {3}, 2), bias = data({3, 3}, 6, 2);
  NDArray y = output(target), y2 = output(target, 2), dw = output({5}, 1);
  EXPECT_NO_THROW(layer.apply(kBatch, x, x, x, y));
  EXPECT_TRUE(refuses(kData, {"MultiheadAttentionLayer::apply: key holds 2 samples"},
                      [&] { layer.apply(kBatch, x, few, x, y); }));
  EXPECT_TRUE(refuses(kData, {"MultiheadAttentionLayer::apply: value has 9 elements", "takes 6"},
                      [&] { layer.apply(kBatch, x, x, odd, y); }));
  EXPECT_TRUE(refuses(kData, {"MultiheadAttentionLayer::apply: output holds 2 samples"},
                      [&] { layer.apply(kBatch, x, x, x, y2); }));
  EXPECT_TRUE(refuses(kData, {"MultiheadAttentionLayer::apply: keyMask holds 2 samples"},
                      [&] { layer.apply(kBatch, x, x, x, y, {.keyMask = mask}); }));
  EXPECT_TRUE(refuses(kData, {"MultiheadAttentionLayer::apply: addToAttention holds 2 samples"},
                      [&] { layer.apply(kBatch, x, x, x, y, {.addToAttention = bias}); }));
  EXPECT_TRUE(
      refuses(kData, {"MultiheadAttentionLayer::applyBackward: generatingKeyGradients.target holds 2 samples"}, [&] {
        layer.applyBackward({.batchSize = kBatch,
                             .query = x,
                             .key = x,
                             .value = x,
                             .output = y,
                             .outputGradient = x,
                             .generatingKeyGradients = {.target = y2}});
      }));
  EXPECT_TRUE(refuses(
      kData,
      {"MultiheadAttentionLayer::applyBackward: generatingValueGradients.weights have 5 elements, the layer takes 4"},
      [&] {
        layer.applyBackward({.batchSize = kBatch,
                             .query = x,
                             .key = x,
                             .value = x,
                             .output = y,
                             .outputGradient = x,
                             .generatingValueGradients = {.weights = dw}});
      }));
}

// A step would train the first sample only.
TEST(OverlayMisuse, Optimizer) {
  NDArray w = output({4}, 2), one = output({4}, 1), five = output({5}, 1);
  const SGDMomentumOptimizer sgd{.learningRate = 1};
  const Desc wd = one, gd = five;
  const std::vector<Desc> parameters{wd}, gradients{gd};
  EXPECT_TRUE(
      refuses(kStep, {"SGDMomentumOptimizer::step: BNNSOptimizerStep"}, [&] { sgd.step(parameters, gradients, {}); }));
  EXPECT_TRUE(refuses(kData, {"SGDMomentumOptimizer::step: gradients[1] holds 2 samples", "takes one"}, [&] {
    sgd.step({one, one}, {one, w}, {});
  }));
}

}  // namespace
}  // namespace overlay
