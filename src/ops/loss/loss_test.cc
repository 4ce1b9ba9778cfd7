// Losses: the reference by hand-worked numbers and central differences, the kernels against the reference, properties.
// What calls may and may not do is in loss_call_test.cc, Yolo in yolo_test.cc.

#include "src/ops/loss/loss_testing.h"

namespace bnns::testing {
namespace {

// ---- 1. the reference ---------------------------------------------------------------------------------------------

struct Worked {
  const char* name;
  LossCase c;
  Numbers terms, gradient;  // with reduction None and dy = 1
};

LossCase worked_case(BNNSLossFunction function, Numbers x, Numbers labels, Numbers weights = {}, double extra = 0) {
  LossCase c;
  c.function = function;
  c.reduction = BNNSLossReductionNone;
  c.n = x.size();
  c.x = x;
  c.labels = labels;
  c.weights = weights;
  if (function == 4)
    c.huber_delta = extra;
  else
    c.label_smooth = extra;
  return c;
}

std::vector<Worked> worked_examples() {
  const double ln2 = std::log(2.0), ln5 = std::log(5.0);
  const Numbers x = {0, ln2, ln5};  // softmax 1/8, 2/8, 5/8
  return {
      {"mse", worked_case(BNNSLossFunctionMeanSquareError, {1, 2, 3}, {0, 2, 6}), {1, 0, 9}, {2, 0, -6}},
      {"mse weighted",
       worked_case(BNNSLossFunctionMeanSquareError, {1, 2, 3}, {0, 2, 6}, {2, 5, 0}),
       {2, 0, 0},
       {4, 0, 0}},
      {"mae", worked_case(BNNSLossFunctionMeanAbsoluteError, {1, 2, 3}, {0, 2, 6}, {2}), {2, 0, 6}, {2, 2, -2}},
      // |e| = 1 is inside: 1/2; |e| = 3 is outside: 2 * (3 - 1).
      {"huber", worked_case(BNNSLossFunctionHuber, {1, 5, 2}, {0, 2, 5}, {}, 2), {0.5, 4, 4}, {1, 2, -2}},
      // 1 - x for l = 1, 1 + x for l = 0; at 1 - x = 0 the gradient is still -1.
      {"hinge", worked_case(BNNSLossFunctionHinge, {0.5, 0.5, 1, 3}, {1, 0, 1, 1}), {0.5, 1.5, 0, 0}, {-1, 1, -1, 0}},
      {"softmax",
       worked_case(BNNSLossFunctionSoftmaxCrossEntropy, x, {0, 0, 1}),
       {std::log(1.6)},
       {0.125, 0.25, -0.375}},
      // Smoothing 0.3 makes the labels 0.1, 0.1, 0.8: -0.1 (log 1/8 + log 2/8) - 0.8 log 5/8.
      {"softmax smooth",
       worked_case(BNNSLossFunctionSoftmaxCrossEntropy, x, {0, 0, 1}, {}, 0.3),
       {0.5 * ln2 + 0.8 * std::log(1.6)},
       {0.025, 0.15, -0.175}},
      {"softmax weighted",
       worked_case(BNNSLossFunctionSoftmaxCrossEntropy, x, {0, 0, 1}, {4}),
       {4 * std::log(1.6)},
       {0.5, 1, -1.5}},
      // Two labels, m = 2: -(log 2/8 + log 5/8) / 2; p - 1/2 where a label is, p elsewhere.
      {"categorical",
       worked_case(BNNSLossFunctionCategoricalCrossEntropy, x, {0, 1, 1}),
       {(std::log(4.0) + std::log(1.6)) / 2},
       {0.125, -0.25, 0.125}},
      // The formula leaves p alone where there is no label, whatever the weight.
      {"categorical weighted",
       worked_case(BNNSLossFunctionCategoricalCrossEntropy, x, {0, 1, 1}, {3}),
       {1.5 * (std::log(4.0) + std::log(1.6))},
       {0.125, -0.75, 0.375}},
      // l.x = 0.96: 1 - 0.96; 0.96 x - l.
      {"cosine",
       worked_case(BNNSLossFunctionCosineDistance, {0.6, 0.8}, {0.8, 0.6}),
       {0.04},
       {0.576 - 0.8, 0.768 - 0.6}},
      {"cosine weighted",
       worked_case(BNNSLossFunctionCosineDistance, {0.6, 0.8}, {0.8, 0.6}, {0.5}),
       {0.52},
       {0.5 * (0.576 - 0.8), 0.5 * (0.768 - 0.6)}},
      // sigmoid(log 4) = 0.8.
      {"sigmoid",
       worked_case(BNNSLossFunctionSigmoidCrossEntropy, {2 * ln2, 2 * ln2}, {1, 0}),
       {-std::log(0.8), ln5},
       {-0.2, 0.8}},
      // Smoothing 0.4 makes the labels 0.8 and 0.2.
      {"sigmoid smooth",
       worked_case(BNNSLossFunctionSigmoidCrossEntropy, {2 * ln2, 2 * ln2}, {1, 0}, {}, 0.4),
       {-0.8 * std::log(0.8) + 0.2 * ln5, -0.2 * std::log(0.8) + 0.8 * ln5},
       {0, 0.6}},
      // epsilon moves P, Q and P - l by 2e-7 of themselves each.
      {"log", worked_case(BNNSLossFunctionLog, {0.5, 0.5}, {1, 0}), {ln2, ln2}, {-2, 2}},
  };
}

TEST(LossReference, WorkedExamples) {
  for (const Worked& w : worked_examples()) {
    SCOPED_TRACE(w.name);
    const Numbers ones(w.terms.size(), 1.0);
    const double tolerance = w.c.function == BNNSLossFunctionLog ? 1.3e-6 : 1e-14;
    EXPECT_TRUE(near(ref::loss_forward(w.c), w.terms, Numbers(w.terms.size(), tolerance)));
    EXPECT_TRUE(near(ref::loss_backward(w.c, ones), w.gradient, Numbers(w.c.n, tolerance)));
  }
}

// The library gives the same numbers, rounded to float: once for the input, and as the bounds say.
TEST(LossLibrary, WorkedExamples) {
  for_each_isa([] {
    for (const Worked& w : worked_examples()) {
      SCOPED_TRACE(w.name);
      const Numbers ones(w.terms.size(), 1.0);
      const Bounds bounds = loss_bounds(w.c);
      const Result forward = run_case(w.c, {}), backward = run_case(w.c, {}, &ones);
      Numbers value_bounds = forward_bounds(w.c, bounds, w.terms, BNNSDataTypeFloat32);
      Numbers slope_bounds = backward_bounds(w.c, bounds, ones, w.gradient, BNNSDataTypeFloat32);
      // Inputs such as log 5 are rounded to float; epsilon as above.
      const double extra = w.c.function == BNNSLossFunctionLog ? 1.3e-6 : 8 * kU;
      for (double& b : value_bounds) b += extra;
      for (double& b : slope_bounds) b += extra;
      EXPECT_TRUE(near(forward.out, w.terms, value_bounds));
      EXPECT_TRUE(near(forward.dx, w.gradient, slope_bounds));
      EXPECT_TRUE(near(backward.dx, w.gradient, slope_bounds));
    }
  });
}

// Numbers that Apple's documentation and tests on the real framework give (exact in float).
TEST(LossLibrary, GroundTruth) {
  for_each_isa([] {
    LossCase c;
    c.n = 10;
    c.x = {9, 1, 6, 3, 4, 5, 6, 7, 8, 9};
    c.labels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const Result sum = run_case(c, {});
    EXPECT_EQ(sum.out, Numbers{97});
    EXPECT_EQ(sum.dx, (Numbers{18, 0, 8, 0, 0, 0, 0, 0, 0, 0}));

    c.n = 3;
    c.x = {1, 2, 3};
    c.labels = {0, 2, 6};
    c.reduction = BNNSLossReductionNone;
    EXPECT_EQ(run_case(c, {}).out, (Numbers{1, 0, 9}));
    EXPECT_EQ(run_case(c, {}).dx, (Numbers{2, 0, -6}));
    c.reduction = BNNSLossReductionSum;
    EXPECT_EQ(run_case(c, {}).out, Numbers{10});
    c.reduction = BNNSLossReductionMean;
    EXPECT_EQ(run_case(c, {}).out, Numbers{double(10.0f / 3.0f)});

    c.reduction = BNNSLossReductionNone;
    c.labels = {0, 0, 0};
    const Numbers ones = {1, 1, 1};
    EXPECT_EQ(run_case(c, {}, &ones).dx, (Numbers{2, 4, 6}));
  });
}

// ---- 2. gradients of the reference --------------------------------------------------------------------------------

// Unit rows, as the cosine distance takes them.
Numbers normalised(const Numbers& x, size_t n) {
  Numbers result = x;
  for (size_t b = 0; b < x.size() / n; ++b) {
    double square = 0;
    for (size_t i = 0; i < n; ++i) square += x[b * n + i] * x[b * n + i];
    for (size_t i = 0; i < n; ++i) result[b * n + i] /= std::sqrt(square);
  }
  return result;
}

TEST(LossGradient, ReferenceAgainstCentralDifferences) {
  Random random(1);
  for (BNNSLossFunction function : kFunctions) {
    for (BNNSLossReductionFunction reduction : kReductions) {
      for (int weight_form = 0; weight_form < 4; ++weight_form) {
        LossCase c = random_case(random, function, reduction, 3, 5, weight_form);
        SCOPED_TRACE(case_text(c));
        // Categorical's documented gradient is the exact one for labels 0 and 1 and weights 1 (K17).
        if (function == 10) c.weights.assign(c.weights.size(), 1.0);
        if (function == 7) c.x = normalised(c.x, c.n);
        Numbers dy(reduction == BNNSLossReductionNone ? c.terms() : 1);
        for (double& d : dy) d = random.normal();
        const auto f = [&](const Numbers& x) {
          LossCase moved = c;
          moved.x = function == 7 ? normalised(x, c.n) : x;
          const Numbers values = ref::loss_forward(moved);
          double sum = 0;
          for (size_t t = 0; t < values.size(); ++t) sum += dy[t] * values[t];
          return sum;
        };
        Numbers analytic = ref::loss_backward(c, dy);
        if (function == 6) {  // the documented form leaves out 2 epsilon l / (P Q)
          for (size_t k = 0; k < analytic.size(); ++k) {
            const double P = c.x[k] + ref::kLogLossEpsilon, Q = 1 - c.x[k] + ref::kLogLossEpsilon;
            const double w = ref::loss_weight(c, k / c.n, k % c.n), by = ref::loss_divisor(c);
            const double up = reduction == BNNSLossReductionNone ? dy[k] : dy[0];
            if (by != 0) analytic[k] -= up / by * w * 2 * ref::kLogLossEpsilon * c.labels[k] / (P * Q);
          }
        }
        EXPECT_LE(gradient_error(analytic, central_differences(c.x, f)), 1e-7);
      }
    }
  }
}

// ---- 3. kernels against the reference -----------------------------------------------------------------------------

void compare(const LossCase& c, const Setting& s, const Numbers& values, const Numbers& gradient, const Numbers& dy,
             const Numbers& pulled, const Bounds& bounds) {
  const Numbers ones(values.size(), 1.0);
  const Result forward = run_case(c, s), backward = run_case(c, s, &dy), only = run_case(c, s, nullptr, false);
  EXPECT_TRUE(near(forward.out, values, forward_bounds(c, bounds, values, s.out_type)));
  EXPECT_TRUE(near(forward.dx, gradient, backward_bounds(c, bounds, ones, gradient, s.delta_type)));
  EXPECT_TRUE(near(backward.dx, pulled, backward_bounds(c, bounds, dy, pulled, s.delta_type)));
  EXPECT_EQ(only.out, forward.out) << "the value depends on whether a gradient is asked for";
}

// Runs a case on every instruction set; the reference runs once.
void check(Random& random, const LossCase& c, const std::vector<Setting>& settings) {
  SCOPED_TRACE(case_text(c));
  const Numbers values = ref::loss_forward(c), ones(values.size(), 1.0);
  Numbers dy(values.size());
  for (double& d : dy) d = coarse(random.normal());
  const Numbers gradient = ref::loss_backward(c, ones), pulled = ref::loss_backward(c, dy);
  const Bounds bounds = loss_bounds(c);
  for_each_isa([&] {
    for (const Setting& s : settings) compare(c, s, values, gradient, dy, pulled, bounds);
  });
}

Setting placed(bool at_end, size_t element_stride = 1, size_t gap = 0) {
  Setting s;
  s.at_end = at_end;
  s.element_stride = element_stride;
  s.gap = gap;
  return s;
}

// n = 1 ... 67 straddles every vector width and the four-vector rows; 511 ... 1025 the blocks.
TEST(LossKernel, EveryLength) {
  Random random(2);
  int turn = 0;
  for (BNNSLossFunction function : kFunctions) {
    std::vector<size_t> lengths = {127, 511, 512, 513, 1000, 1025};
    for (size_t n = 1; n <= 67; ++n) lengths.push_back(n);
    for (size_t n : lengths) {
      const BNNSLossReductionFunction reduction = kReductions[turn % 5];
      check(random, random_case(random, function, reduction, n > 100 ? 2 : 3, n, turn / 5 % 4),
            {placed(true), placed(false)});
      ++turn;
    }
  }
}

TEST(LossKernel, EveryReductionAndWeightForm) {
  Random random(3);
  for (BNNSLossFunction function : kFunctions) {
    for (BNNSLossReductionFunction reduction : kReductions) {
      for (int weight_form = 0; weight_form < 4; ++weight_form) {
        for (size_t n : {10, 77}) {
          check(random, random_case(random, function, reduction, 5, n, weight_form),
                {placed(true), placed(true, 1, 3), placed(true, 2, 0), placed(false, 3, 1)});
        }
      }
    }
  }
}

// f16 and bf16 tensors in every place; the values are exact in all types, so that only storage rounds.
TEST(LossKernel, HalfPrecision) {
  Random random(4);
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};
  int turn = 0;
  for (BNNSLossFunction function : kFunctions) {
    for (size_t n : {9, 64, 700}) {
      std::vector<Setting> settings;
      for (BNNSDataType type : types) {
        for (BNNSDataType delta_type : types) {
          Setting s = placed(true, 1 + turn % 2, size_t(turn % 3));
          s.type = type;
          s.delta_type = delta_type;
          s.out_type = types[size_t(turn++) % 3];
          settings.push_back(s);
        }
      }
      const BNNSLossReductionFunction reduction = kReductions[turn % 5];
      check(random, random_case(random, function, reduction, 2, n, turn % 4), settings);
    }
  }
}

// Accumulated gradients are what was there plus the gradient, rounded once.
TEST(LossKernel, Accumulate) {
  Random random(5);
  for (BNNSLossFunction function : kFunctions) {
    for (size_t n : {7, 40, 600}) {
      const LossCase c = random_case(random, function, BNNSLossReductionMean, 3, n, int(n % 4));
      SCOPED_TRACE(case_text(c));
      for_each_isa([&] {
        Setting s;
        const Numbers dy = {0.75};
        const Result set = run_case(c, s), pulled = run_case(c, s, &dy);
        s.accumulate = true;
        s.before = 0.5;
        const Result added = run_case(c, s), pulled_added = run_case(c, s, &dy);
        EXPECT_EQ(added.out, set.out);
        for (size_t k = 0; k < set.dx.size(); ++k) {
          EXPECT_EQ(added.dx[k], double(0.5f + float(set.dx[k])));
          EXPECT_EQ(pulled_added.dx[k], double(0.5f + float(pulled.dx[k])));
        }
      });
    }
  }
}

// Integers: every sum is exact, so the kernels equal the reference to the bit, on every path.
TEST(LossKernel, ExactOnIntegers) {
  Random random(6);
  for (BNNSLossFunction function : {BNNSLossFunctionMeanSquareError, BNNSLossFunctionHuber, BNNSLossFunctionHinge,
                                    BNNSLossFunctionMeanAbsoluteError}) {
    for (size_t n : {1, 3, 17, 300}) {
      LossCase c = random_case(random, function, BNNSLossReductionSum, 4, n, 0);
      c.huber_delta = 2;
      for (double& x : c.x) x = random.integer(-4, 4);
      for (double& l : c.labels) l = function == 8 ? random.integer(0, 1) : random.integer(-4, 4);
      for (size_t forms : {size_t{0}, size_t{1}, c.batch, c.batch * n}) {
        c.weights.resize(forms);
        for (double& w : c.weights) w = random.integer(0, 3);
        const Numbers dy = {2};
        for_each_isa([&] {
          EXPECT_EQ(run_case(c, {}).out, ref::loss_forward(c)) << case_text(c);
          EXPECT_EQ(run_case(c, {}, &dy).dx, ref::loss_backward(c, dy)) << case_text(c);
        });
      }
    }
  }
}

// A million terms: a sum in float would be off by 1e-3 and more.
TEST(LossKernel, BC20_LongSums) {
  const size_t batch = 1000, n = 1000;
  LossCase c;
  c.batch = batch;
  c.n = n;
  c.x.assign(batch * n, 0.1f);
  c.labels.assign(batch * n, 0);
  for_each_isa([&] {
    const double want = double(batch * n) * double(0.1f * 0.1f);
    EXPECT_NEAR(run_case(c, {}, nullptr, false).out[0], want, kU * want);
    LossCase mae = c;
    mae.function = BNNSLossFunctionMeanAbsoluteError;
    mae.reduction = BNNSLossReductionMean;
    EXPECT_NEAR(run_case(mae, {}, nullptr, false).out[0], double(0.1f), kU * 0.1);
  });
}

// ---- 4. properties ------------------------------------------------------------------------------------------------

TEST(LossProperty, SoftmaxGradientRowsSumToZero) {
  Random random(7);
  for (size_t n : {2, 10, 100, 1500}) {
    LossCase c = random_case(random, BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossReductionSum, 4, n, 2);
    c.label_smooth = 0;
    for_each_isa([&] {
      const Numbers dx = run_case(c, {}).dx;
      const Bounds bounds = loss_bounds(c);
      for (size_t b = 0; b < c.batch; ++b) {
        double sum = 0, bound = 0;
        for (size_t i = 0; i < n; ++i) sum += dx[b * n + i], bound += bounds.slopes[b * n + i];
        EXPECT_LE(std::fabs(sum), bound) << "n " << n << " row " << b;
      }
    });
  }
}

// Adding 512 to small multiples of 1/16 is exact in float, and so is every difference: the bits must not change.
TEST(LossProperty, SoftmaxIgnoresAShift) {
  Random random(8);
  for (BNNSLossFunction function : {BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossFunctionCategoricalCrossEntropy}) {
    for (size_t n : {5, 33, 900}) {
      LossCase c = random_case(random, function, BNNSLossReductionNone, 3, n, 0), moved;
      for (double& x : c.x) x = random.integer(-80, 80) / 16.0;
      moved = c;
      for (double& x : moved.x) x += 512;
      for_each_isa([&] {
        const Result a = run_case(c, {}), b = run_case(moved, {});
        EXPECT_EQ(a.out, b.out);
        EXPECT_EQ(a.dx, b.dx);
      });
    }
  }
}

// Sum = T Mean, for T a power of two to the bit; equal weights mean the same in all forms.
TEST(LossProperty, ReductionsAndWeightFormsAgree) {
  Random random(9);
  for (BNNSLossFunction function : kFunctions) {
    LossCase sum = random_case(random, function, BNNSLossReductionSum, 4, 16, 0), mean = sum;
    mean.reduction = BNNSLossReductionMean;
    const double terms = double(sum.terms());
    for_each_isa([&] {
      const Result a = run_case(sum, {}), b = run_case(mean, {});
      EXPECT_EQ(a.out[0], terms * b.out[0]);
      for (size_t k = 0; k < a.dx.size(); ++k) EXPECT_EQ(a.dx[k], terms * b.dx[k]);
      for (BNNSLossReductionFunction reduction : kReductions) {
        LossCase c = sum;
        c.reduction = reduction;
        c.weights = {0.5};
        const Result one = run_case(c, {});
        for (size_t size : {c.batch, c.batch * c.n}) {
          c.weights.assign(size, 0.5);
          const Result many = run_case(c, {});
          EXPECT_EQ(many.out, one.out) << case_text(c);
          EXPECT_EQ(many.dx, one.dx) << case_text(c);
        }
        c.weights.assign(c.batch, 1.0);
        EXPECT_EQ(run_case(c, {}).dx, [&] {
          LossCase none = c;
          none.weights.clear();
          return run_case(none, {}).dx;
        }());
      }
    });
  }
}

// With reduction None or Sum a sample's losses and gradients do not depend on its neighbours, and out_delta 1 gives the
// gradient of forward: to the bit.
TEST(LossProperty, ABatchEqualsItsItems) {
  Random random(10);
  for (BNNSLossFunction function : kFunctions) {
    for (size_t n : {1, 10, 70, 600}) {
      LossCase c = random_case(random, function, BNNSLossReductionNone, 5, n, int(n % 2 ? 2 : 3));
      for_each_isa([&] {
        const Numbers ones(c.terms(), 1.0);
        const Result whole = run_case(c, {}), backward = run_case(c, {}, &ones);
        EXPECT_EQ(whole.dx, backward.dx) << case_text(c);
        for (size_t b = 0; b < c.batch; ++b) {
          LossCase item = c;
          item.batch = 1;
          const auto part = [&](const Numbers& v, size_t size) {
            return Numbers(v.begin() + ptrdiff_t(b * size), v.begin() + ptrdiff_t((b + 1) * size));
          };
          item.x = part(c.x, n);
          item.labels = part(c.labels, n);
          item.weights = part(c.weights, c.weights.size() / c.batch);
          const Result alone = run_case(item, {});
          EXPECT_EQ(alone.out, part(whole.out, c.terms() / c.batch)) << case_text(c);
          EXPECT_EQ(alone.dx, part(whole.dx, n)) << case_text(c);
        }
      });
    }
  }
}

// Where elements lie changes nothing: dense, strided and shifted tensors give the same gradients to the bit.
TEST(LossProperty, StridesDoNotChangeGradients) {
  Random random(11);
  for (BNNSLossFunction function : kFunctions) {
    for (size_t n : {10, 130, 1300}) {
      const LossCase c = random_case(random, function, BNNSLossReductionNone, 3, n, 2);
      for_each_isa([&] {
        const Result dense = run_case(c, {});
        for (const Setting& s : {placed(true, 1, 5), placed(false, 2, 0), placed(true, 3, 7)}) {
          const Result other = run_case(c, s);
          EXPECT_EQ(dense.out, other.out) << case_text(c);
          EXPECT_EQ(dense.dx, other.dx) << case_text(c);
        }
      });
    }
  }
}

// Large enough for seven threads: the same bits for every number of them, and when repeated.
TEST(LossProperty, BC53_SameBitsForAnyNumberOfThreads) {
  Random random(12);
  for (BNNSLossFunction function : kFunctions) {
    for (size_t n : {1000, 41000}) {
      const LossCase c = random_case(random, function, BNNSLossReductionWeightedMean, 41000 / n, n, n == 1000 ? 2 : 3);
      for_each_isa([&] {
        const Numbers dy = {0.3};
        const Result one = run_case(c, {}), one_backward = run_case(c, {}, &dy);
        for (size_t threads : kThreadCounts) {
          Setting s;
          s.threads = threads;
          const Result more = run_case(c, s), more_backward = run_case(c, s, &dy);
          EXPECT_EQ(more.out, one.out) << case_text(c) << " threads " << threads;
          EXPECT_EQ(more.dx, one.dx) << case_text(c) << " threads " << threads;
          EXPECT_EQ(more_backward.dx, one_backward.dx) << case_text(c) << " threads " << threads;
        }
      });
    }
  }
}

}  // namespace
}  // namespace bnns::testing
