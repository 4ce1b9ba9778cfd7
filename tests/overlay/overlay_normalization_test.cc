// NormalizationLayer against the C calls, to the bit: four kinds, training, inference, gradients.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

struct Case {
  const char* name;
  NormalizationType type;
  BNNSFilterType filter;
  Shape parameters;
};

TEST(OverlayNormalization, EqualsC) {
  const Shape shape = Shape::imageCHW(5, 4, 6), channels = {6};
  NDArray mean = NDArray::repeating(0.25f, channels), variance = NDArray::repeating(2.0f, channels),
          cmean = NDArray::repeating(0.25f, channels), cvariance = NDArray::repeating(2.0f, channels);
  const Case cases[] = {{"batch", NormalizationType::batch(mean, variance), BNNSBatchNorm, channels},
                        {"instance", NormalizationType::instance(mean, variance), BNNSInstanceNorm, channels},
                        {"group", NormalizationType::group(3), BNNSGroupNorm, channels},
                        {"layer", NormalizationType::layer(1), BNNSLayerNorm, Shape::imageCHW(5, 4, 1)}};
  for (const Case& k : cases) {
    SCOPED_TRACE(k.name);
    const NDArray x = data(shape, 1), dy = data(shape, 2), beta = data(k.parameters, 3, 1),
                  gamma = data(k.parameters, 4, 1);
    NormalizationLayer layer({.type = k.type,
                              .input = descriptor(shape),
                              .output = descriptor(shape),
                              .beta = beta,
                              .gamma = gamma,
                              .momentum = 0.75f,
                              .epsilon = 1e-3f,
                              .activation = ActivationFunction::tanh(),
                              .filterParameters = useClientPointer});
    BNNSLayerParametersNormalization c{};
    c.i_desc = c.o_desc = descriptor(shape), c.beta_desc = beta, c.gamma_desc = gamma;
    if (k.type.movingMean) c.moving_mean_desc = cmean, c.moving_variance_desc = cvariance;
    c.momentum = 0.75f, c.epsilon = 1e-3f, c.activation.function = BNNSActivationFunctionTanh;
    c.num_groups = k.filter == BNNSGroupNorm ? 3 : 0, c.normalization_axis = k.filter == BNNSLayerNorm ? 1 : 0;
    BNNSFilterParameters client{};
    client.flags = BNNSFlagsUseClientPtr;
    const Filter filter(BNNSFilterCreateLayerNormalization(k.filter, &c, &client));

    NDArray y = output(shape), cy = output(shape), dx = output(shape), cdx = output(shape),
            dbeta = output(k.parameters, 1), cdbeta = output(k.parameters, 1), dgamma = output(k.parameters, 1),
            cdgamma = output(k.parameters, 1);
    const Desc xd = x, yd = cy;
    EXPECT_TRUE(refuses(kApply, {"BNNSNormalizationFilterApplyBackwardBatch"},
                        [&] { layer.applyBackward(kBatch, x, y, dy, dx); }));  // no training pass yet
    layer.apply(kBatch, x, y, LearningPhase::training);
    ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0, true), 0);
    EXPECT_TRUE(same(y, cy));
    EXPECT_TRUE(same(mean, cmean));
    EXPECT_TRUE(same(variance, cvariance));
    layer.applyBackward(kBatch, x, y, dy, dx, dbeta, dgamma);
    Desc dxd = cdx, dyd = dy, b = cdbeta, g = cdgamma;
    ASSERT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter, kBatch, &dxd, 0, yd.data, 0, &dyd, 0, &b, &g), 0);
    EXPECT_TRUE(same(dx, cdx));
    EXPECT_TRUE(same(dbeta, cdbeta));
    EXPECT_TRUE(same(dgamma, cdgamma));
    NDArray alone = output(k.parameters, 1);
    layer.applyBackward(kBatch, x, y, dy, std::nullopt, std::nullopt, alone);
    EXPECT_TRUE(same(alone, dgamma));
    layer.apply(kBatch, x, y, LearningPhase::inference);
    ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter, kBatch, xd.data, 0, yd.data, 0, false), 0);
    EXPECT_TRUE(same(y, cy));
  }
}

TEST(OverlayNormalization, Refusals) {
  const Shape shape = Shape::imageCHW(5, 4, 6);
  const NDArray short_beta = data({5}, 1, 1);
  const NormalizationLayer::Parameters p{.type = NormalizationType::batch({}, {}),
                                         .input = descriptor(shape),
                                         .output = descriptor(shape),
                                         .beta = short_beta,
                                         .epsilon = 1e-3f};
  EXPECT_TRUE(refuses(kCreate, {"BNNSFilterCreateLayerNormalization", "beta"}, [&] { NormalizationLayer bad(p); }));
  EXPECT_FALSE(make<NormalizationLayer>(p));
  NormalizationLayer::Parameters q = p;
  q.beta.reset(), q.type = NormalizationType::group(4);  // six channels are no four groups
  EXPECT_TRUE(refuses(kCreate, {"group"}, [&] { NormalizationLayer bad(q); }));
}

}  // namespace
}  // namespace overlay
