// Optimizers against BNNSOptimizerStep, to the bit: every function and kind of clipping.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

// Three steps of an optimizer through the overlay and through C, on two parameters.
template <class O, class Fields>
void expect_optimizer(O optimizer, BNNSOptimizerFunction function, Fields fields, std::size_t accumulators,
                      float* time_step = nullptr) {
  SCOPED_TRACE(static_cast<int>(function));
  EXPECT_EQ(optimizer.bnnsOptimizerFunction(), function);
  ASSERT_EQ(optimizer.accumulatorCountMultiplier(), accumulators);
  const Shape shapes[] = {Shape::matrixRowMajor(5, 3), Shape::vector(7)};
  std::vector<NDArray> w, cw, g, s, cs;
  for (unsigned i = 0; i < 2; ++i) {
    w.push_back(data(shapes[i], i + 1, 1)), cw.push_back(data(shapes[i], i + 1, 1));
    g.push_back(data(shapes[i], i + 3, 1));
  }
  for (std::size_t a = 0; a < accumulators; ++a) {
    for (const Shape& shape : shapes) {
      s.push_back(NDArray::repeating(0.0f, shape)), cs.push_back(NDArray::repeating(0.0f, shape));
    }
  }
  const std::vector<Desc> parameters(w.begin(), w.end()), gradients(g.begin(), g.end()), state(s.begin(), s.end());
  std::vector<Desc> cp(cw.begin(), cw.end()), cg(g.begin(), g.end()), cstate(cs.begin(), cs.end());
  Desc* p[] = {&cp[0], &cp[1]};
  const Desc* gp[] = {&cg[0], &cg[1]};
  std::vector<Desc*> sp;
  for (Desc& d : cstate) sp.push_back(&d);
  for (int step = 1; step <= 3; ++step) {
    if (time_step) *time_step = static_cast<float>(step);
    if constexpr (requires { optimizer.timeStep; }) optimizer.timeStep = static_cast<float>(step);
    if constexpr (requires { fields.time_step; }) fields.time_step = static_cast<float>(step);
    optimizer.step(parameters, gradients, state);
    ASSERT_EQ(BNNSOptimizerStep(function, &fields, 2, p, gp, sp.empty() ? nullptr : sp.data(), nullptr), 0)
        << BNNSExtLastError();
  }
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(same(w[i], cw[i])) << i;
  for (std::size_t i = 0; i < s.size(); ++i) EXPECT_TRUE(same(s[i], cs[i])) << i;
  EXPECT_NE(w[0].makeArray<float>(), numbers(15, 1));  // it moved
}

template <class Fields>
void set_clipping(Fields& f, int kind) {
  f.clipping_func = static_cast<BNNSOptimizerClippingFunction>(kind);
  if (kind == 1) f.clip_gradients_min = -0.25f, f.clip_gradients_max = 0.5f;
  if (kind >= 2) f.clip_gradients_max_norm = 0.75f;
  if (kind == 3) f.clip_gradients_use_norm = 2.0f;
}
const GradientClipping kClippings[] = {GradientClipping::none(), GradientClipping::byValue({-0.25f, 0.5f}),
                                       GradientClipping::byNorm(0.75f), GradientClipping::byGlobalNorm(0.75f, 2.0f)};

TEST(OverlayOptimizer, AdamEqualsC) {
  for (int k = 0; k < 4; ++k) {
    for (bool ams : {false, true}) {
      BNNSOptimizerAdamWithClippingFields f{};
      f.learning_rate = 0.05f, f.beta1 = 0.8f, f.beta2 = 0.95f, f.epsilon = 1e-4f, f.gradient_scale = 0.5f;
      f.regularization_scale = 0.1f, f.regularization_func = BNNSOptimizerRegularizationL2;
      set_clipping(f, k);
      expect_optimizer(AdamOptimizer{.learningRate = 0.05f,
                                     .beta1 = 0.8f,
                                     .beta2 = 0.95f,
                                     .epsilon = 1e-4f,
                                     .gradientScale = 0.5f,
                                     .regularizationScale = 0.1f,
                                     .gradientClipping = kClippings[k],
                                     .regularizationFunction = BNNSOptimizerRegularizationL2,
                                     .usesAMSGrad = ams},
                       ams ? BNNSOptimizerFunctionAdamAMSGradWithClipping : BNNSOptimizerFunctionAdamWithClipping, f,
                       ams ? 3 : 2);
      f.regularization_func = BNNSOptimizerRegularizationNone;
      expect_optimizer(AdamWOptimizer{.learningRate = 0.05f,
                                      .beta1 = 0.8f,
                                      .beta2 = 0.95f,
                                      .epsilon = 1e-4f,
                                      .gradientScale = 0.5f,
                                      .weightDecay = 0.1f,
                                      .gradientClipping = kClippings[k],
                                      .usesAMSGrad = ams},
                       ams ? BNNSOptimizerFunctionAdamWAMSGradWithClipping : BNNSOptimizerFunctionAdamWWithClipping, f,
                       ams ? 3 : 2);
    }
  }
  EXPECT_FALSE(GradientClipping::none().bounds());
  EXPECT_EQ(kClippings[1].bounds()->lower, -0.25f);
}

// The function without clipping, which C programs use, gives the same bits.
TEST(OverlayOptimizer, PlainAdamGivesTheSame) {
  NDArray w = data({9}, 1, 1), cw = data({9}, 1, 1), m = NDArray::repeating(0.0f, {9}),
          v = NDArray::repeating(0.0f, {9}), cm = NDArray::repeating(0.0f, {9}), cv = NDArray::repeating(0.0f, {9});
  const NDArray g = data({9}, 2, 1);
  const Desc parameters[] = {w}, gradients[] = {g}, state[] = {m, v};
  AdamOptimizer{.learningRate = 0.01f}.step(parameters, gradients, state);
  BNNSOptimizerAdamFields f{};
  f.learning_rate = 0.01f, f.beta1 = 0.9f, f.beta2 = 0.999f, f.time_step = 1, f.epsilon = 1e-8f, f.gradient_scale = 1;
  Desc wd = cw, md = cm, vd = cv, *p[] = {&wd}, *s[] = {&md, &vd};
  const Desc gd = g, *gp[] = {&gd};
  ASSERT_EQ(BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &f, 1, p, gp, s, nullptr), 0);
  EXPECT_TRUE(same(w, cw));
}

TEST(OverlayOptimizer, RMSPropAndSGDEqualC) {
  for (int k = 0; k < 4; ++k) {
    for (bool more : {false, true}) {
      BNNSOptimizerRMSPropWithClippingFields f{};
      f.learning_rate = 0.05f, f.alpha = 0.9f, f.epsilon = 1e-4f, f.centered = more, f.momentum = more ? 0.5f : 0.0f;
      f.gradient_scale = 0.5f, f.regularization_scale = 0.1f, f.regularization_func = BNNSOptimizerRegularizationL1;
      set_clipping(f, k);
      expect_optimizer(RMSPropOptimizer{.learningRate = 0.05f,
                                        .alpha = 0.9f,
                                        .epsilon = 1e-4f,
                                        .centered = more,
                                        .momentum = more ? 0.5f : 0.0f,
                                        .gradientScale = 0.5f,
                                        .regularizationScale = 0.1f,
                                        .gradientClipping = kClippings[k],
                                        .regularizationFunction = BNNSOptimizerRegularizationL1},
                       BNNSOptimizerFunctionRMSPropWithClipping, f, more ? 3 : 1);
      BNNSOptimizerSGDMomentumWithClippingFields s{};
      s.learning_rate = 0.05f, s.momentum = more ? 0.5f : 0.0f, s.gradient_scale = 0.5f, s.nesterov = more;
      s.regularization_scale = 0.1f, s.regularization_func = BNNSOptimizerRegularizationL2;
      s.sgd_momentum_variant = BNNSSGDMomentumVariant1;
      set_clipping(s, k);
      expect_optimizer(SGDMomentumOptimizer{.learningRate = 0.05f,
                                            .momentum = more ? 0.5f : 0.0f,
                                            .gradientScale = 0.5f,
                                            .regularizationScale = 0.1f,
                                            .gradientClipping = kClippings[k],
                                            .usesNesterovMomentum = more,
                                            .regularizationFunction = BNNSOptimizerRegularizationL2,
                                            .sgdMomentumVariant = BNNSSGDMomentumVariant1},
                       BNNSOptimizerFunctionSGDMomentumWithClipping, s, more ? 1 : 0);
    }
  }
}

TEST(OverlayOptimizer, Refusals) {
  NDArray w = data({4}, 1, 1);
  const NDArray g = data({4}, 2, 1), longer = data({5}, 3, 1);
  const Desc one[] = {w}, two[] = {w, g}, wrong[] = {longer};
  const SGDMomentumOptimizer sgd{.learningRate = 0.1f};
  EXPECT_TRUE(
      refuses(kStep, {"SGDMomentumOptimizer::step: 1 parameters, but 2 gradients"}, [&] { sgd.step(one, two, {}); }));
  EXPECT_TRUE(refuses(kStep, {"expected 0 accumulators, got 1"}, [&] { sgd.step(one, one, one); }));
  EXPECT_TRUE(refuses(kStep, {"expected 2 accumulators, got 0"}, [&] { AdamOptimizer{}.step(one, one, {}); }));
  EXPECT_TRUE(refuses(kStep, {"BNNSOptimizerStep", "5", "4"}, [&] { sgd.step(one, wrong, {}); }));
  // More parameters than the stack holds pointers for.
  NDArray many = NDArray::repeating(1.0f, {100});
  const NDArray ones = NDArray::repeating(1.0f, {100});
  std::vector<Desc> list, slopes;
  for (std::size_t i = 0; i < 100; ++i) {
    list.push_back(NDArray::view(many.span<float>().subspan(i), {1}));
    slopes.push_back(NDArray::inputView(ones.span<float>().subspan(i), {1}));
  }
  SGDMomentumOptimizer{.learningRate = 0.5f}.step(list, slopes, {});
  EXPECT_EQ(many.makeArray<float>(), std::vector<float>(100, 0.5f));
}

}  // namespace
}  // namespace overlay
