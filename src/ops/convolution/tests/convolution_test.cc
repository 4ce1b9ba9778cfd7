// Convolution and transposed convolution: reference, kernels against it, gradients, properties. Layouts, types,
// activations, refusals, scratch and bug classes have files of their own.

#include <gtest/gtest.h>

#include "src/ops/convolution/tests/convolution_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// ---- 1. The reference: worked by hand, and against central differences --------------------------------------------

TEST(ConvolutionReference, HandWorked) {
  ConvolutionShape s;
  s.ih = s.iw = 3, s.kh = s.kw = 2;
  s = fitted(s);
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(ref::convolution_forward(s, x, {1, 1, 1, 1}, {}), (std::vector<double>{12, 16, 24, 28}));
  // An asymmetric kernel: correlation, so tap (0,1) reads the right neighbour.
  EXPECT_EQ(ref::convolution_forward(s, x, {0, 1, 0, 0}, {10}), (std::vector<double>{12, 13, 15, 16}));
}

TEST(ConvolutionReference, GradientsAreTheDerivatives) {
  for (const bool transposed : {false, true}) {
    ConvolutionShape s;
    s.transposed = transposed;
    s.n = 2, s.i = 4, s.o = 6, s.groups = 2, s.ih = 5, s.iw = 6, s.kh = 3, s.kw = 2, s.sy = 2, s.dx = 2, s.top = 1;
    s = fitted(s);
    Random random(3);
    const auto make = [&](size_t n) { return widen(random.normals(n)); };
    const auto x = make(s.x_count()), w = make(s.w_count()), b = make(s.o), g = make(s.y_count());
    const auto loss = [&](const std::vector<double>& xs, const std::vector<double>& ws, const std::vector<double>& bs) {
      const auto y = ref::convolution_forward(s, xs, ws, bs);
      double sum = 0;
      for (size_t j = 0; j < y.size(); ++j) sum += g[j] * y[j];
      return sum;
    };
    const auto r = ref::convolution_backward(s, x, w, g);
    EXPECT_LE(gradient_error(r.dx, central_differences(x, [&](auto& v) { return loss(v, w, b); })), 1e-7);
    EXPECT_LE(gradient_error(r.dw, central_differences(w, [&](auto& v) { return loss(x, v, b); })), 1e-7);
    EXPECT_LE(gradient_error(r.db, central_differences(b, [&](auto& v) { return loss(x, w, v); })), 1e-7);
  }
}

// Section 6 of the specification, through the public calls.
TEST(Convolution, Vectors) {
  ConvolutionShape s;
  s.i = 3, s.ih = s.iw = s.kh = s.kw = 2;
  s = fitted(s);
  const float x[] = {10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33};
  const std::vector<float> w(12, 1.0f / 12);
  float y = 0;
  ASSERT_EQ(BNNSFilterApply(ConvolutionLayer(s, w.data(), nullptr).make().get(), x, &y), 0);
  EXPECT_NEAR(y, 21.5f, 1e-5);

  ConvolutionShape s2;
  s2.ih = s2.iw = 3, s2.kh = s2.kw = 2;
  s2 = fitted(s2);
  const float x2[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  float y2[4];
  ASSERT_EQ(BNNSFilterApply(ConvolutionLayer(s2, ones, nullptr).make().get(), x2, y2), 0);
  EXPECT_EQ(std::vector<float>(y2, y2 + 4), (std::vector<float>{12, 16, 24, 28}));

  // Transposed: 2x2 ones, 3x3 ones kernel.
  ConvolutionShape t;
  t.transposed = true, t.ih = t.iw = 2, t.kh = t.kw = 3;
  t = fitted(t);
  float y3[16];
  ASSERT_EQ(BNNSFilterApply(ConvolutionLayer(t, ones, nullptr).make().get(), ones, y3), 0);
  EXPECT_EQ(std::vector<float>(y3, y3 + 16), (std::vector<float>{1, 2, 2, 1, 2, 4, 4, 2, 2, 4, 4, 2, 1, 2, 2, 1}));
}

// ---- 2. Kernels against the reference -----------------------------------------------------------------------------

// Every path of the implementation table at least once: merged samples, whole rows, pieces of rows, several depth
// blocks, many taps, weights in place and packed, slices, phases, groups, depthwise.
std::vector<NamedShape> cases() {
  return {
      {"point", make_shape(1, 1, 1, 1, 1, 1, 1, 0)},
      {"lenet1", make_shape(2, 1, 28, 28, 6, 5, 1, 2)},
      {"lenet2", make_shape(3, 6, 14, 14, 16, 5, 1, 0)},
      {"merged samples", make_shape(7, 9, 7, 7, 17, 3, 1, 1)},
      {"merged with stride", make_shape(5, 5, 9, 9, 33, 3, 2, 1)},
      {"rows", make_shape(2, 8, 19, 23, 20, 3, 1, 1)},
      {"rows stride 2", make_shape(2, 4, 31, 33, 15, 3, 2, 1)},
      {"stride 3 kernel 2", make_shape(2, 3, 20, 22, 5, 2, 3, 0)},
      {"long rows", make_shape(1, 3, 3, 600, 4, 3, 1, 1)},
      {"long rows stride 2", make_shape(1, 2, 4, 1100, 3, 3, 2, 1)},
      {"first layer", make_shape(1, 3, 37, 37, 18, 7, 2, 3)},
      {"one by one", make_shape(2, 40, 13, 13, 37, 1, 1, 0)},
      {"one by one stride 2", make_shape(2, 12, 14, 14, 9, 1, 2, 0)},
      {"deep", make_shape(2, 130, 6, 6, 30, 3, 1, 1)},
      {"weights in place", make_shape(1, 70, 5, 5, 31, 3, 1, 1)},
      {"many taps", make_shape(1, 2, 30, 31, 3, 25, 1, 3)},
      {"dilated", make_shape(2, 5, 17, 18, 7, 3, 1, 2, 1, 2)},
      {"dilated stride 2", make_shape(1, 3, 23, 22, 4, 3, 2, 3, 1, 3)},
      {"dilation 2 stride 4", make_shape(1, 2, 21, 21, 3, 3, 4, 1, 1, 2)},
      {"groups", make_shape(2, 12, 9, 10, 15, 3, 1, 1, 3)},
      {"depthwise", make_shape(2, 19, 12, 35, 19, 3, 1, 1, 19)},
      {"depthwise stride 2", make_shape(2, 7, 15, 37, 7, 3, 2, 1, 7)},
      {"depthwise 5x5 stride 3", make_shape(1, 3, 22, 40, 3, 5, 3, 2, 3)},
      {"depthwise dilated", make_shape(1, 4, 20, 21, 4, 3, 1, 2, 4, 2)},
      {"depth multiplier", make_shape(2, 5, 11, 11, 15, 3, 1, 1, 5)},
      {"padding beyond the kernel", make_shape(1, 2, 4, 5, 3, 2, 1, 5)},
      {"transposed", make_shape(2, 6, 8, 9, 5, 3, 1, 1, 1, 1, true)},
      {"transposed stride 2", make_shape(2, 10, 7, 8, 9, 4, 2, 1, 1, 1, true)},
      {"transposed stride 3 kernel 2", make_shape(1, 4, 6, 5, 3, 2, 3, 0, 1, 1, true)},
      {"transposed dilated", make_shape(1, 3, 9, 7, 4, 3, 2, 1, 1, 2, true)},
      {"transposed groups", make_shape(2, 6, 5, 6, 8, 3, 2, 1, 2, 1, true)},
  };
}

void expect_reference(const ConvolutionShape& s, const ConvolutionResults& got, const std::vector<float>& x,
                      const std::vector<float>& w, const std::vector<float>& b, const std::vector<float>& dy) {
  EXPECT_TRUE(within(got.y, ref::convolution_forward(s, widen(x), widen(w), widen(b)), s.y_count(), kExact)) << "y";
  const auto r = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
  EXPECT_TRUE(within(got.dx, r.dx, s.x_count(), kExact)) << "dx";
  if (has_exact_weights(s)) {
    EXPECT_TRUE(within(got.dw, r.dw, s.w_count(), kExact)) << "dw";
  }
  EXPECT_TRUE(within(got.db, r.db, s.o, kExact)) << "db";
}

// Small integers: every sum is exact, so kernels equal the reference. Buffers end at guard pages, results are poisoned.
TEST(Convolution, ExactOnIntegers) {
  for_each_isa([&] {
    for (const NamedShape& c : cases()) {
      SCOPED_TRACE(c.name + std::string(": ") + text(c.shape));
      Random random(c.shape.x_count());
      const auto x = random.integers(c.shape.x_count()), w = random.integers(c.shape.w_count()),
                 b = random.integers(c.shape.o), dy = random.integers(c.shape.y_count());
      for (const size_t threads : {1, 2}) {
        expect_reference(c.shape, run_convolution(c.shape, x, w, b, dy, threads), x, w, b, dy);
      }
    }
  });
}

// Ordinary data: |error| <= 2 eps k sum |terms| for sums of k terms.
TEST(Convolution, WithinTheBoundOnRealData) {
  for_each_isa([&] {
    for (const NamedShape& c : cases()) {
      const ConvolutionShape& s = c.shape;
      SCOPED_TRACE(c.name);
      Random random(7);
      const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), b = random.normals(s.o),
                 dy = random.normals(s.y_count());
      const auto got = run_convolution(s, x, w, b, dy);
      const auto absolute = [](std::vector<double> v) {
        for (double& e : v) e = std::fabs(e);
        return v;
      };
      const auto want_y = ref::convolution_forward(s, widen(x), widen(w), widen(b));
      const auto want = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
      const auto size_y = ref::convolution_forward(s, absolute(widen(x)), absolute(widen(w)), absolute(widen(b)));
      const auto size = ref::convolution_backward(s, absolute(widen(x)), absolute(widen(w)), absolute(widen(dy)));
      const double eps = std::numeric_limits<float>::epsilon();
      const double ky = double(s.i / s.groups * s.kh * s.kw + 1), kx = double(s.o / s.groups * s.kh * s.kw + 1),
                   kw = double(s.n * std::max(s.oh * s.ow, s.ih * s.iw));
      EXPECT_TRUE(within(got.y, want_y, s.y_count(), [&](size_t j) { return 2 * eps * ky * size_y[j]; })) << "y";
      EXPECT_TRUE(within(got.dx, want.dx, s.x_count(), [&](size_t j) { return 2 * eps * kx * size.dx[j]; })) << "dx";
      EXPECT_TRUE(within(got.dw, want.dw, s.w_count(), [&](size_t j) { return 2 * eps * kw * size.dw[j]; })) << "dw";
      EXPECT_TRUE(within(got.db, want.db, s.o, [&](size_t j) { return 2 * eps * kw * size.db[j]; })) << "db";
    }
  });
}

// ---- 3. Properties ------------------------------------------------------------------------------------------------

TEST(Convolution, SameBitsForAnyNumberOfThreads) {
  std::vector<NamedShape> all = cases();
  all.push_back({"slices", make_shape(9, 16, 20, 20, 24, 3, 1, 1)});
  all.push_back({"blocks of dW", make_shape(3, 64, 9, 9, 300, 3, 1, 1)});
  all.push_back({"blocks of dW that threads cut", make_shape(2, 300, 12, 12, 200, 1, 1, 0)});
  // Of the two phases of dX along x only the second is for few/tile, and they want different numbers of threads.
  ConvolutionShape phases = make_shape(1, 19, 5, 8, 109, 7, 2, 0);
  phases.top = 5;
  all.push_back({"phases of dX", fitted(phases, 1, 3)});
  for_each_isa([&] {
    for (const NamedShape& c : all) {
      SCOPED_TRACE(c.name);
      Random random(11);
      const auto x = random.normals(c.shape.x_count()), w = random.normals(c.shape.w_count()),
                 b = random.normals(c.shape.o), dy = random.normals(c.shape.y_count());
      const auto one = run_convolution(c.shape, x, w, b, dy, 1, BNNSActivationFunctionTanh);
      for (const size_t threads : {2, 3, 7, 16}) {
        const auto many = run_convolution(c.shape, x, w, b, dy, threads, BNNSActivationFunctionTanh);
        EXPECT_TRUE(same_bits(one.y, many.y)) << "y " << threads;
        EXPECT_TRUE(same_bits(one.dx, many.dx)) << "dx " << threads;
        EXPECT_TRUE(same_bits(one.dw, many.dw)) << "dw " << threads;
        EXPECT_TRUE(same_bits(one.db, many.db)) << "db " << threads;
      }
    }
  });
}

// <F x, g> = <x, F' g> for the input and = <w, dW> for the weights, exactly on integers, over random geometry.
TEST(Convolution, BC11_AdjointIdentityOfThousandsOfProblems) {
  Random random(2024);
  const auto dot = [](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (size_t j = 0; j < a.size(); ++j) sum += double(a[j]) * double(b[j]);
    return sum;
  };
  const Isa isas[] = {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx};
  for (int i = 0; i < 3000; ++i) {
    set_max_isa(std::min(isas[i % 5], best_isa()));
    const ConvolutionShape s = random_shape(random, i % 2);
    const auto x = random.integers(s.x_count()), w = random.integers(s.w_count()), g = random.integers(s.y_count());
    const auto r = run_convolution(s, x, w, {}, g, 1 + size_t(i) % 3);
    const double forward = dot(r.y, g);
    ASSERT_EQ(forward, dot(x, r.dx)) << i << ": " << text(s);
    ASSERT_EQ(forward, dot(w, r.dw)) << i << ": " << text(s);
    double total = 0, bias = 0;
    for (const float v : g) total += double(v);
    for (const float v : r.db) bias += double(v);
    ASSERT_EQ(total, bias) << i << ": " << text(s);
  }
  set_max_isa(best_isa());
}

}  // namespace
}  // namespace bnns
