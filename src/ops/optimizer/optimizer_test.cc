// The optimizer: reference by hand, kernels against the reference, properties. Refusals are in
// optimizer_refusal_test.cc.

#include "src/ops/optimizer/optimizer.h"

#include <chrono>
#include <cmath>
#include <memory>

#include "src/ops/optimizer/optimizer_testing.h"

namespace bnns::testing {
namespace {

using Memory = std::vector<std::vector<float>>;  // parameters, gradients, accumulators by role: one vector per tensor

// Parameters in +-[2, 4]: they do not cross 0, where L1's sign would turn an error of one bit into one of 2 lambda lr.
Memory make_memory(const std::vector<size_t>& sizes, size_t states, uint64_t seed) {
  Random random(seed);
  Memory memory;
  for (size_t n : sizes) {
    std::vector<float> w(n);
    for (float& x : w) x = float(random.uniform(2, 4) * (random.below(2) ? 1 : -1));
    memory.push_back(w);
  }
  for (size_t n : sizes) memory.push_back(random.normals(n));
  for (size_t k = 0; k < states * sizes.size(); ++k) memory.emplace_back(sizes[k % sizes.size()], 0.0f);
  return memory;
}

OptimizerLists lists_of(Memory* memory, const std::vector<size_t>& sizes) {
  std::vector<float*> pointers;
  for (auto& tensor : *memory) pointers.push_back(tensor.data());
  return OptimizerLists(pointers, sizes);
}

ref::Model model_of(const Memory& memory, size_t n) {
  ref::Model model;
  for (size_t k = 0; k < memory.size(); ++k) {
    std::vector<double> values(memory[k].begin(), memory[k].end());
    if (k < n)
      model.w.push_back(values);
    else if (k < 2 * n)
      model.g.push_back(values);
    else if (k % n == 0)
      model.state.push_back({values});
    else
      model.state.back().push_back(values);
  }
  return model;
}

const std::vector<double>& tensor_of(const ref::Model& model, size_t k, size_t n) {
  return k < n ? model.w[k] : k < 2 * n ? model.g[k - n] : model.state[k / n - 2][k % n];
}

// Error allowed after some steps, relative to the largest value of the tensor (and at least to 1).
//   stored in f32 after each step, as the caller's tensors are: 1e-6, the bound of BC29, for any number of steps
//   exact: each step rounds a value by up to half a unit in its last place, 2^-24 of it; with the same clipped gradient
//   at every step the errors even have one sign, so T steps may add up to T 2^-24
constexpr double kStoredBound = 1e-6;
double exact_bound(int steps) {
  return std::max(kStoredBound, 0x1p-24 * steps);
}

::testing::AssertionResult close(const Memory& got, const ref::Model& want, size_t n, double bound = kStoredBound) {
  for (size_t k = 0; k < got.size(); ++k) {
    const std::vector<double>& tensor = tensor_of(want, k, n);
    double largest = 1;
    for (double x : tensor) largest = std::max(largest, std::fabs(x));
    const auto result = within(got[k], tensor, tensor.size(), [&](size_t) { return bound * largest; });
    if (!result)
      return ::testing::AssertionFailure() << "tensor " << k << " of " << got.size() << ": " << result.message();
  }
  return ::testing::AssertionSuccess();
}

void round_to_f32(ref::Model* model) {
  for (auto& tensor : model->w)
    for (double& x : tensor) x = float(x);
  for (auto& role : model->state)
    for (auto& tensor : role)
      for (double& x : tensor) x = float(x);
}

// ---- 1. reference -----------------------------------------------------------------------------------------------

// W - lr g: 1 - .1 * .5 = .95 and so on (printed by the test authors of the real framework).
TEST(Optimizer, HandWorkedSgd) {
  OptimizerCase c;
  c.sgd.learning_rate = 0.1f;
  c.sgd.gradient_scale = 1;
  ref::Model model{{{1, 2, 3, 4}}, {{.5, -1, 2, 0}}, {}};
  ref::sgd(c.sgd, &model);
  const double want[] = {.95, 2.1, 2.8, 4};
  EXPECT_TRUE(within(model.w[0], want, 4, [](size_t) { return 1e-8; }));
  Memory memory = {{1, 2, 3, 4}, {.5f, -1, 2, 0}};
  OptimizerLists lists = lists_of(&memory, {4});
  ASSERT_EQ(run_step(c, 1, &lists), 0) << BNNSExtLastError();
  EXPECT_TRUE(within(memory[0], want, 4, [](size_t) { return 4 * 0x1p-24 * 2; }));
}

// Variant 1, m .9, lr .1, g 2: V 2, W 10 - .2 = 9.8; V .9 * 2 + 2 = 3.8, W 9.8 - .38 = 9.42.
TEST(Optimizer, HandWorkedMomentum) {
  OptimizerCase c;
  c.sgd.learning_rate = 0.1f;
  c.sgd.gradient_scale = 1;
  c.sgd.momentum = 0.9f;
  c.sgd.sgd_momentum_variant = BNNSSGDMomentumVariant1;
  ref::Model model{{{10}}, {{2}}, {{{0}}}};
  Memory memory = {{10}, {2}, {0}};
  OptimizerLists lists = lists_of(&memory, {1});
  const double want_w[] = {9.8, 9.42}, want_v[] = {2, 3.8};
  for (int step = 0; step < 2; ++step) {
    ref::sgd(c.sgd, &model);
    ASSERT_EQ(run_step(c, 1, &lists), 0) << BNNSExtLastError();
    EXPECT_NEAR(model.w[0][0], want_w[step], 1e-7);
    EXPECT_NEAR(memory[0][0], want_w[step], 2e-6);
    EXPECT_NEAR(memory[2][0], want_v[step], 1e-6);
  }
}

// Adam's first step without epsilon moves by lr whatever the gradient: M = .1 g, U = .001 g^2, so M / sqrt U =
// .1 / sqrt .001, times sqrt(1 - .999) / (1 - .9) = 1. The second, with the same g, again.
// With epsilon .5 and g 2: sqrt U = .0632456, M = .2: 1 - lr .316228 * .2 / .5632456 = 1 - .112287 lr.
TEST(Optimizer, BC29_HandWorkedAdam) {
  OptimizerCase c;
  c.family = OptimizerCase::Family::adam;
  c.adam.learning_rate = 0.25f;
  c.adam.beta1 = 0.9f;
  c.adam.beta2 = 0.999f;
  c.adam.gradient_scale = 1;
  Memory memory = {{1, 1}, {2, -30}, {0, 0}, {0, 0}};
  OptimizerLists lists = lists_of(&memory, {2});
  for (int step = 1; step <= 2; ++step) {
    ASSERT_EQ(run_step(c, float(step), &lists), 0) << BNNSExtLastError();
    EXPECT_NEAR(memory[0][0], 1 - 0.25 * step, 1e-6);
    EXPECT_NEAR(memory[0][1], 1 + 0.25 * step, 1e-6);
  }
  c.adam.epsilon = 0.5f;
  memory = {{1}, {2}, {0}, {0}};
  OptimizerLists one = lists_of(&memory, {1});
  ASSERT_EQ(run_step(c, 1, &one), 0) << BNNSExtLastError();
  EXPECT_NEAR(memory[0][0], 1 - 0.25 * 0.112287, 1e-6);
}

// ---- 2. kernels against the reference ---------------------------------------------------------------------------

// Every function and option, sizes around the vector width, fields re-read and new gradients at every step.
TEST(Optimizer, BC29_StepsMatchReference) {
  const std::vector<size_t> sizes = {19, 1, 33};
  const size_t n = sizes.size();
  for (const OptimizerCase& c : optimizer_cases()) {
    SCOPED_TRACE(c.name);
    for_each_isa([&] {
      Random random(7);
      Memory memory = make_memory(sizes, c.states(), 1);
      ref::Model exact = model_of(memory, n), stored = exact;
      OptimizerLists lists = lists_of(&memory, sizes);
      for (int step = 1; step <= 1000; ++step) {
        for (size_t t = 0; t < n; ++t) {
          for (size_t i = 0; i < sizes[t]; ++i) {
            memory[n + t][i] = float(random.uniform(-1.5, 2));
            exact.g[t][i] = stored.g[t][i] = memory[n + t][i];
          }
        }
        ASSERT_EQ(run_step(c, float(step), &lists), 0) << BNNSExtLastError();
        reference_step(c, float(step), &exact);
        reference_step(c, float(step), &stored);
        round_to_f32(&stored);
        if (step == 1 || step == 2 || step == 10 || step == 1000) {
          ASSERT_TRUE(close(memory, stored, n)) << "step " << step;
          ASSERT_TRUE(close(memory, exact, n, exact_bound(step))) << "step " << step;
        }
      }
    });
  }
}

// No read or write beyond the elements: every tensor ends, then begins, at a page that faults; and pointers of any
// alignment. Gradients keep their bits.
TEST(Optimizer, BC33_BC40_SizesAtGuardPages) {
  std::vector<OptimizerCase> cases = optimizer_cases();
  for (size_t at = 0; at < cases.size(); at += 7) {  // 7 is prime to 15, so every form comes up
    const OptimizerCase& c = cases[at];
    SCOPED_TRACE(c.name);
    for_each_isa([&] {
      for (size_t size = 1; size <= 68; ++size) {
        const size_t count = size == 68 ? 1000 : size;
        const Memory values = make_memory({count}, c.states(), size);
        ref::Model model = model_of(values, 1);
        reference_step(c, 3, &model);
        for (auto side : {Guarded<float>::Side::end, Guarded<float>::Side::begin}) {
          std::vector<std::unique_ptr<Guarded<float>>> guarded;
          std::vector<float*> pointers;
          for (const auto& v : values) {
            guarded.push_back(std::make_unique<Guarded<float>>(v, side));
            pointers.push_back(guarded.back()->data());
          }
          OptimizerLists lists(pointers, {count});
          ASSERT_EQ(run_step(c, 3, &lists), 0) << BNNSExtLastError();
          Memory result;
          for (auto& g : guarded) result.emplace_back(g->data(), g->data() + count);
          ASSERT_TRUE(close(result, model, 1)) << count << " elements";
          ASSERT_TRUE(same_bits(result[1], values[1])) << "gradients changed";
        }
      }
    });
  }
}

// ---- 3. properties ----------------------------------------------------------------------------------------------

// An element's result does not depend on where it stands (vector body or tail) nor on the other tensors of the call.
TEST(Optimizer, ElementsAreIndependent) {
  for (const OptimizerCase& c : optimizer_cases()) {
    const auto clipping = c.family == OptimizerCase::Family::sgd    ? c.sgd.clipping_func
                          : c.family == OptimizerCase::Family::adam ? c.adam.clipping_func
                                                                    : c.rmsprop.clipping_func;
    if (clipping > BNNSOptimizerClippingByValue) continue;  // norms tie elements together
    SCOPED_TRACE(c.name);
    for_each_isa([&] {
      Memory whole = make_memory({70}, c.states(), 3), single = whole;
      OptimizerLists lists = lists_of(&whole, {70});
      ASSERT_EQ(run_step(c, 2, &lists), 0) << BNNSExtLastError();
      const std::vector<size_t> ones(70, 1);  // 70 tensors of one element over the same memory
      std::vector<float*> pointers;
      for (auto& tensor : single)
        for (float& x : tensor) pointers.push_back(&x);
      OptimizerLists split(pointers, ones);
      ASSERT_EQ(run_step(c, 2, &split), 0) << BNNSExtLastError();
      for (size_t k = 0; k < whole.size(); ++k) ASSERT_TRUE(same_bits(whole[k], single[k])) << "tensor " << k;
    });
  }
}

TEST(Optimizer, BC53_SameBitsForAnyThreadCount) {
  const std::vector<size_t> sizes = {300'001, 17, 150'000, 1, 99'999};
  std::vector<OptimizerCase> cases = optimizer_cases();
  for (size_t at = 0; at < cases.size(); at += 11) {
    const OptimizerCase& c = cases[at];
    SCOPED_TRACE(c.name);
    Memory first;
    for (size_t threads : kThreadCounts) {
      Memory memory = make_memory(sizes, c.states(), 5);
      OptimizerLists lists = lists_of(&memory, sizes);
      for (int step = 1; step <= 2; ++step)
        ASSERT_EQ(run_step(c, float(step), &lists, threads), 0) << BNNSExtLastError();
      if (first.empty()) first = memory;
      for (size_t k = 0; k < memory.size(); ++k) ASSERT_TRUE(same_bits(memory[k], first[k])) << threads << " threads";
    }
  }
}

// A norm given by the caller and the same norm computed give the same step; a norm below the limit changes nothing.
TEST(Optimizer, BC30_GlobalNorm) {
  for_each_isa([&] {
    OptimizerCase c;
    c.with_clipping = true;
    c.sgd.learning_rate = 1;
    c.sgd.gradient_scale = 1;
    c.sgd.clipping_func = BNNSOptimizerClippingByGlobalNorm;
    c.sgd.clip_gradients_max_norm = 6.5f;
    const auto step = [&](float use_norm) {  // norm of {3, 4}, {12} is 13
      c.sgd.clip_gradients_use_norm = use_norm;
      Memory memory = {{0, 0}, {0}, {3, 4}, {12}};
      OptimizerLists lists = lists_of(&memory, {2, 1});
      EXPECT_EQ(run_step(c, 1, &lists), 0) << BNNSExtLastError();
      return std::vector<float>{memory[0][0], memory[0][1], memory[1][0]};
    };
    EXPECT_EQ(step(0), (std::vector<float>{-1.5f, -2, -6}));
    EXPECT_EQ(step(13), (std::vector<float>{-1.5f, -2, -6}));
    EXPECT_EQ(step(26), (std::vector<float>{-0.75f, -1, -3}));
    c.sgd.clip_gradients_max_norm = 13;
    EXPECT_EQ(step(0), (std::vector<float>{-3, -4, -12}));
    c.sgd.clipping_func = BNNSOptimizerClippingByNorm;  // each tensor by itself: 5 stays, 12 becomes 6
    c.sgd.clip_gradients_max_norm = 6;
    EXPECT_EQ(step(0), (std::vector<float>{-3, -4, -6}));
  });
}

// Squares of 1e30 overflow f32; a norm of 1e38 over a limit of 1e-5 needs a factor below f32's normal range.
TEST(Optimizer, BC30_HugeGradientsClipRight) {
  for_each_isa([&] {
    for (const auto& [value, limit] : {std::pair{1e30f, 1.0f}, {3e38f, 1e-5f}, {1e-30f, 1e-32f}}) {
      OptimizerCase c;
      c.with_clipping = true;
      c.sgd.learning_rate = 1;
      c.sgd.gradient_scale = 1;
      c.sgd.clipping_func = BNNSOptimizerClippingByGlobalNorm;
      c.sgd.clip_gradients_max_norm = limit;
      Memory memory = {std::vector<float>(100, 0), std::vector<float>(100, value)};
      OptimizerLists lists = lists_of(&memory, {100});
      ASSERT_EQ(run_step(c, 1, &lists), 0) << BNNSExtLastError();
      const double want = -double(limit) / 10;  // norm is 10 |value|
      for (float w : memory[0]) ASSERT_NEAR(w, want, std::fabs(want) * 4 * 0x1p-24);
    }
  });
}

TEST(Optimizer, BC30_ZeroNormLeavesGradients) {
  for (auto function : {BNNSOptimizerClippingByNorm, BNNSOptimizerClippingByGlobalNorm}) {
    OptimizerCase c;
    c.with_clipping = true;
    c.sgd.learning_rate = 1;
    c.sgd.gradient_scale = 1;
    c.sgd.clipping_func = function;
    c.sgd.clip_gradients_max_norm = 0;
    Memory memory = {{5, 6}, {0, 0}};
    OptimizerLists lists = lists_of(&memory, {2});
    ASSERT_EQ(run_step(c, 1, &lists), 0) << BNNSExtLastError();
    EXPECT_EQ(memory[0], (std::vector<float>{5, 6}));
  }
}

// No NaN where gradient and accumulators are 0, even with epsilon 0; and one appears where the gradient is NaN.
TEST(Optimizer, BC29_ZeroGradientsGiveNoNan) {
  for (OptimizerCase c : optimizer_cases()) {
    SCOPED_TRACE(c.name);
    c.sgd.regularization_func = c.adam.regularization_func = c.rmsprop.regularization_func =
        BNNSOptimizerRegularizationNone;
    c.adam.epsilon = c.rmsprop.epsilon = 0;
    c.adam.regularization_scale = 0;
    for_each_isa([&] {
      Memory memory = make_memory({37}, c.states(), 9);
      std::fill(memory[1].begin(), memory[1].end(), 0.0f);
      const Memory before = memory;
      OptimizerLists lists = lists_of(&memory, {37});
      for (int step = 1; step <= 3; ++step) ASSERT_EQ(run_step(c, float(step), &lists), 0) << BNNSExtLastError();
      for (size_t k = 0; k < memory.size(); ++k) ASSERT_TRUE(same_bits(memory[k], before[k])) << "tensor " << k;
      memory[1][36] = NAN;
      if (run_step(c, 4, &lists) == 0) {  // refused when clipping by a norm that it makes NaN
        EXPECT_TRUE(std::isnan(memory[0][36]));
      }
    });
  }
}

// Centered RMSProp with a constant gradient: n - q^2 tends to 0 and rounds below it.
TEST(Optimizer, CenteredVarianceNeverNegative) {
  for_each_isa([&] {
    OptimizerCase c;
    c.family = OptimizerCase::Family::rmsprop;
    c.rmsprop.learning_rate = 1e-6f;
    c.rmsprop.alpha = 0.5f;
    c.rmsprop.epsilon = 1e-3f;
    c.rmsprop.centered = true;
    c.rmsprop.gradient_scale = 1;
    Memory memory = make_memory({64}, 2, 4);
    OptimizerLists lists = lists_of(&memory, {64});
    for (int step = 1; step <= 200; ++step) ASSERT_EQ(run_step(c, 1, &lists), 0) << BNNSExtLastError();
    for (float w : memory[0]) ASSERT_TRUE(std::isfinite(w));
  });
}

// Accumulators that decay below the normal range become 0 and stay fast: no later step meets a subnormal.
TEST(Optimizer, BC59_SubnormalAccumulatorsVanish) {
  const size_t count = 40'000;
  for (const OptimizerCase& c : optimizer_cases()) {
    if (c.states() == 0 || c.name.find("regularization 0 clipping 0") == std::string::npos) continue;
    SCOPED_TRACE(c.name);
    const auto fastest = [&](float state) {
      Memory memory = make_memory({count}, c.states(), 6);
      std::fill(memory[1].begin(), memory[1].end(), 0.0f);
      for (size_t k = 2; k < memory.size(); ++k) std::fill(memory[k].begin(), memory[k].end(), state);
      OptimizerLists lists = lists_of(&memory, {count});
      double best = 1e9;
      for (int step = 1; step <= 30; ++step) {
        const auto start = std::chrono::steady_clock::now();
        EXPECT_EQ(run_step(c, 1, &lists, 1), 0) << BNNSExtLastError();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
      if (state < 1e-30f) {
        for (size_t k = 2; k < memory.size(); ++k) EXPECT_EQ(memory[k][count - 1], 0.0f) << "tensor " << k;
      }
      return best;
    };
    const double normal = fastest(0.01f), subnormal = fastest(1e-41f);
    EXPECT_LE(subnormal, 2 * normal + 20e-6);  // 20 us of slack for the timer of a shared machine
  }
}

TEST(Optimizer, NoTensorsIsSuccess) {
  BNNSOptimizerSGDMomentumFields fields = {};
  BNNSNDArrayDescriptor** none = nullptr;
  const BNNSNDArrayDescriptor** no_gradients = nullptr;
  EXPECT_EQ(BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &fields, 0, none, no_gradients, none, nullptr), 0);
}

}  // namespace
}  // namespace bnns::testing
