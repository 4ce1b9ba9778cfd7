// Fused layers against the C calls, to the bit; labelled calls, absent gradients, refusals.

#include "tests/overlay/overlay_fused_testing.h"

namespace overlay {
namespace {

TEST(OverlayFused, EqualsC) {
  for (const auto& [name, k] : cases()) {
    SCOPED_TRACE(name);
    Fixture o(k), c(k);
    FusedParametersLayer layer = o.make_layer();
    EXPECT_EQ(layer.inputCount(), k.inputs.size());
    EXPECT_EQ(layer.parameterGradientCount(), k.parameters.size());
    const Filter filter(k.filter(c.w));
    for (bool training : {false, true}) {
      o.forward(layer, training ? LearningPhase::training : LearningPhase::inference);
      std::vector<const void*> x;
      std::vector<std::size_t> zero(3);
      for (const NDArray& a : c.x) x.push_back(static_cast<const Desc&>(a).data);
      const Desc y = c.y;
      const int status = x.size() == 1 ? BNNSFusedFilterApplyBatch(filter, kBatch, x[0], 0, y.data, 0, training)
                                       : BNNSFusedFilterApplyMultiInputBatch(filter, kBatch, x.size(), x.data(),
                                                                             zero.data(), y.data, 0, training);
      ASSERT_EQ(status, 0) << BNNSExtLastError();
      EXPECT_TRUE(same(o.y, c.y));
    }
    o.backward(layer);
    std::vector<Desc> dx(c.dx.begin(), c.dx.end()), dw(c.slots);
    std::vector<Desc*> dxp, dwp;
    for (Desc& d : dx) dxp.push_back(&d);
    for (Desc& d : dw) dwp.push_back(&d);
    std::vector<const void*> x;
    std::vector<std::size_t> zero(3);
    for (const NDArray& a : c.x) x.push_back(static_cast<const Desc&>(a).data);
    const Desc y = c.y;
    Desc dy = c.dy;
    const int status =
        x.size() == 1
            ? BNNSFusedFilterApplyBackwardBatch(filter, kBatch, x[0], 0, dxp[0], 0, y.data, 0, &dy, 0, dwp.data())
            : BNNSFusedFilterApplyBackwardMultiInputBatch(filter, kBatch, x.size(), x.data(), zero.data(), dxp.data(),
                                                          zero.data(), y.data, 0, &dy, 0, dwp.data());
    ASSERT_EQ(status, 0) << BNNSExtLastError();
    for (std::size_t i = 0; i < o.dx.size(); ++i) EXPECT_TRUE(same(o.dx[i], c.dx[i])) << i;
    for (std::size_t i = 0; i < o.dw.size(); ++i) EXPECT_TRUE(same(o.dw[i], c.dw[i])) << i;
  }
}

// The labelled forms, and gradients that are left out.
TEST(OverlayFused, LabelledCallsAndAbsentGradients) {
  const auto all = cases();
  {
    Fixture f(all[0].second), g(all[0].second);
    FusedParametersLayer layer = f.make_layer();
    f.forward(layer);
    f.backward(layer);
    layer.applyBackward({.batchSize = kBatch,
                         .input = f.x[0],
                         .output = f.y,
                         .outputGradient = f.dy,
                         .generatingInputGradient = g.dx[0],
                         .generatingParameterGradients = g.slots});
    EXPECT_TRUE(same(g.dx[0], f.dx[0]));
    EXPECT_TRUE(same(g.dw[0], f.dw[0]));
    NDArray alone = output(f.k.parameters[3], 1);
    const Desc only_gamma[] = {Desc{}, Desc{}, Desc{}, alone};
    layer.applyBackward(kBatch, f.x[0], f.y, f.dy, std::nullopt, only_gamma);
    EXPECT_TRUE(same(alone, f.dw[3]));
    layer.applyBackward({.batchSize = kBatch,
                         .input = f.x[0],
                         .output = f.y,
                         .outputGradient = f.dy,
                         .generatingInputGradient = g.dx[0]});
    EXPECT_TRUE(same(g.dx[0], f.dx[0]));
  }
  {
    Fixture f(all[3].second), g(all[3].second);
    FusedParametersLayer layer = f.make_layer();
    f.forward(layer);
    f.backward(layer);
    layer.applyBackward({.batchSize = kBatch,
                         .inputA = f.x[0],
                         .inputB = f.x[1],
                         .output = f.y,
                         .outputGradient = f.dy,
                         .generatingInputBGradient = g.dx[1],
                         .generatingParameterGradients = g.slots});
    EXPECT_TRUE(same(g.dx[1], f.dx[1]));
    EXPECT_EQ(g.dx[0].span<float>()[0], -77.25f);  // left out
    EXPECT_TRUE(same(g.dw[1], f.dw[1]));
  }
  Fixture f(all[4].second), g(all[4].second);
  FusedParametersLayer layer = f.make_layer();
  f.forward(layer);
  f.backward(layer);
  layer.applyBackward({.batchSize = kBatch,
                       .inputA = f.x[0],
                       .inputB = f.x[1],
                       .inputC = f.x[2],
                       .output = f.y,
                       .outputGradient = f.dy,
                       .generatingInputAGradient = g.dx[0],
                       .generatingInputCGradient = g.dx[2]});
  EXPECT_TRUE(same(g.dx[0], f.dx[0]));
  EXPECT_TRUE(same(g.dx[2], f.dx[2]));
}

// The two classes that Swift has for the common pairs make the same filters.
TEST(OverlayFused, NamedPairs) {
  const auto all = cases();
  Fixture a(all[0].second), b(all[1].second);
  FusedParametersLayer conv = a.make_layer(), dense = b.make_layer();
  FusedConvolutionNormalizationLayer conv2({.input = descriptor(a.k.inputs[0]),
                                            .output = descriptor(a.k.out),
                                            .convolutionWeights = a.w[0],
                                            .convolutionBias = a.w[1],
                                            .normalization = NormalizationType::batch({}, {}),
                                            .normalizationBeta = a.w[2],
                                            .normalizationGamma = a.w[3],
                                            .normalizationMomentum = 0,
                                            .normalizationEpsilon = 1e-2f,
                                            .normalizationActivation = ActivationFunction::tanh()});
  FusedFullyConnectedNormalizationLayer dense2({.input = descriptor(b.k.inputs[0]),
                                                .output = descriptor(b.k.out),
                                                .fullyConnectedWeights = b.w[0],
                                                .fullyConnectedBias = b.w[1],
                                                .normalization = NormalizationType::layer(0),
                                                .normalizationBeta = b.w[2],
                                                .normalizationGamma = b.w[3],
                                                .normalizationMomentum = 0,
                                                .normalizationEpsilon = 1e-2f,
                                                .normalizationActivation = ActivationFunction::tanh()});
  const auto compare_layers = [](Fixture& f, FusedParametersLayer& layer, FusedLayer& twin) {
    Fixture g(f.k);
    f.forward(layer);
    twin.apply(kBatch, g.x[0], g.y, LearningPhase::training);
    EXPECT_TRUE(same(f.y, g.y));
    f.backward(layer);
    twin.applyBackward(kBatch, g.x[0], g.y, g.dy, g.dx[0], g.slots);
    EXPECT_TRUE(same(f.dx[0], g.dx[0]));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(same(f.dw[i], g.dw[i])) << i;
  };
  compare_layers(a, conv, conv2);
  compare_layers(b, dense, dense2);
}

// Convolution, then quantization to bytes: inference only.
TEST(OverlayFused, Quantization) {
  const NDArray x = data({4}, 1), w = data(Shape::matrixRowMajor(4, 3), 2, 1), scale = NDArray::from({50.0f}, {1}),
                bias = NDArray::from({3.0f}, {1});
  NDArray y = NDArray::repeating(std::int8_t{0}, {3}, kBatch);
  FusedParametersLayer layer({.inputs = {descriptor({4})},
                              .output = descriptor<std::int8_t>({3}),
                              .fusedLayerParameters = {FusedFullyConnectedParameters{.weights = w},
                                                       FusedQuantizationParameters{.scale = scale, .bias = bias}}});
  EXPECT_EQ(layer.parameterGradientCount(), 2u);
  layer.apply(kBatch, x, y, LearningPhase::inference);
  FullyConnectedLayer dense({.input = descriptor({4}), .output = descriptor({3}), .weights = w});
  NDArray z = output({3}), q = NDArray::repeating(std::int8_t{0}, {3}, kBatch);
  dense.apply(kBatch, x, z);
  quantize(kBatch, z, q, {}, scale, bias);
  EXPECT_EQ(y.makeArray<std::int8_t>(), q.makeArray<std::int8_t>());
  EXPECT_NE(q.makeArray<std::int8_t>(), std::vector<std::int8_t>(9, 0));
}

TEST(OverlayFused, Refusals) {
  const auto all = cases();
  Fixture f(all[3].second);
  FusedParametersLayer layer = f.make_layer();
  EXPECT_TRUE(refuses(kApply, {"called with 1 input(s)", "takes 2"},
                      [&] { layer.apply(kBatch, f.x[0], f.y, LearningPhase::training); }));
  EXPECT_TRUE(refuses(kApply, {"called with 3 input(s)"},
                      [&] { layer.apply(kBatch, f.x[0], f.x[0], f.x[0], f.y, LearningPhase::training); }));
  EXPECT_TRUE(
      refuses(kApply, {"BNNSFusedFilterApplyBackwardMultiInputBatch"}, [&] { f.backward(layer); }));  // untrained
  f.forward(layer);
  const Desc one[] = {f.dw[0]};
  EXPECT_TRUE(refuses(kApply, {"expected 2 parameter gradients", "got 1"},
                      [&] { layer.applyBackward(kBatch, f.x[0], f.x[1], f.y, f.dy, f.dx[0], f.dx[1], one); }));
  EXPECT_TRUE(refuses(kData, {"outputGradient", "no data"}, [&] {
    layer.applyBackward(kBatch, f.x[0], f.x[1], f.y, descriptor(f.k.out), f.dx[0], f.dx[1], f.slots);
  }));
  EXPECT_TRUE(refuses(kData, {"generatingInputAGradient", "no data"}, [&] {
    layer.applyBackward(kBatch, f.x[0], f.x[1], f.y, f.dy, descriptor(f.k.inputs[0]), f.dx[1], f.slots);
  }));
  EXPECT_TRUE(refuses(kApply, {"BNNSFusedFilterApplyBackwardMultiInputBatch", "batch"},
                      [&] { layer.applyBackward(kBatch - 1, f.x[0], f.x[1], f.y, f.dy, f.dx[0], f.dx[1], f.slots); }));
  FusedParametersLayer moved = std::move(layer);
  f.forward(moved);
  EXPECT_TRUE(refuses(kApply, {"moved from"}, [&] { f.forward(layer); }));   // NOLINT: on purpose
  EXPECT_TRUE(refuses(kApply, {"moved from"}, [&] { f.backward(layer); }));  // NOLINT

  const auto stages = f.k.stages(f.w);
  const Desc d = descriptor(kImage);
  EXPECT_TRUE(
      refuses(kCreate, {"2 stages, got 1"}, [&] { FusedParametersLayer(d, d, d, std::span(stages).first(1)); }));
  EXPECT_TRUE(refuses(kCreate, {"takes 2 input(s), got 1"}, [&] { FusedParametersLayer(d, d, stages); }));
  EXPECT_TRUE(refuses(kCreate, {"1 to 3 inputs, got none"}, [&] {
    FusedParametersLayer(FusedParametersLayer::Parameters{.inputs = {}, .output = d, .fusedLayerParameters = stages});
  }));
  const FusableLayerParameters twisted[] = {stages[1], stages[0]};
  EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreateFusedLayer"}, [&] { FusedParametersLayer(d, d, twisted); }));
  EXPECT_FALSE(make<FusedParametersLayer>({.inputs = {d}, .output = d, .fusedLayerParameters = stages}));
}

}  // namespace
}  // namespace overlay
