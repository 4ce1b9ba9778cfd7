// Convolution with every fused activation against reference and activation in double, and a counting allocator's view
// of it.

#include <gtest/gtest.h>

#include "src/engine/activation/activation_testing.h"
#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

const std::vector<NamedShape>& shapes() {
  static const std::vector<NamedShape> all = {
      {"rows", make_shape(2, 3, 9, 37, 5, 3, 1, 1)},
      {"merged samples", make_shape(3, 4, 6, 7, 5, 3, 2, 1)},
      {"depthwise", make_shape(2, 4, 9, 21, 4, 3, 1, 1, 4)},
      {"transposed", make_shape(2, 3, 5, 8, 4, 3, 2, 1, 1, 1, true)},
  };
  return all;
}

// x and w are multiples of 1/4, b is 1/32: every pre-activation z is exact and an odd multiple of 1/32, so it lies on
// no kink of any function and the only errors are those of the activation and of the gradients' sums.
struct Problem {
  std::vector<float> x, w, b, dy;
  std::vector<double> z;

  explicit Problem(const ConvolutionShape& s) {
    Random random(s.x_count());
    const auto quarters = [&](size_t n) {
      auto v = random.integers(n);
      for (float& e : v) e /= 4;
      return v;
    };
    x = quarters(s.x_count()), w = quarters(s.w_count()), b.assign(s.o, 1.0f / 32), dy = quarters(s.y_count());
    z = ref::convolution_forward(s, widen(x), widen(w), widen(b));
  }
};

std::vector<double> absolute(std::vector<double> v) {
  for (double& e : v) e = std::fabs(e);
  return v;
}

// dX, dW and db of g, which is known within g_bound: sums of k terms add 2 eps k sum|terms|.
void expect_gradients(const ConvolutionShape& s, const Problem& p, const FormResults& got, const std::vector<double>& g,
                      const std::vector<double>& g_bound) {
  const auto want = ref::convolution_backward(s, widen(p.x), widen(p.w), g);
  const auto carried = ref::convolution_backward(s, absolute(widen(p.x)), absolute(widen(p.w)), g_bound);
  const auto size = ref::convolution_backward(s, absolute(widen(p.x)), absolute(widen(p.w)), absolute(g));
  const double eps = 0x1p-23, kx = double(s.o / s.groups * s.kh * s.kw),
               kw = double(s.n * std::max(s.oh * s.ow, s.ih * s.iw));
  EXPECT_TRUE(within(got.dx, want.dx, want.dx.size(), [&](size_t j) {
    return 2 * carried.dx[j] + 2 * eps * kx * size.dx[j];
  })) << "dx";
  EXPECT_TRUE(within(got.dw, want.dw, want.dw.size(), [&](size_t j) {
    return 2 * carried.dw[j] + 2 * eps * kw * size.dw[j];
  })) << "dw";
  EXPECT_TRUE(within(got.db, want.db, want.db.size(), [&](size_t j) {
    return 2 * carried.db[j] + 2 * eps * kw * size.db[j];
  })) << "db";
}

// From the output where the function has that form, else recomputed from `in` (K8).
TEST(ConvolutionActivation, EveryElementwiseFunction) {
  for_each_isa([&] {
    for (const NamedShape& c : shapes()) {
      const ConvolutionShape& s = c.shape;
      const Problem p(s);
      for (const Activation& a : element_cases()) {
        SCOPED_TRACE(c.name + std::string(" ") + activation_name(a.function));
        Form form(a.function);
        form.activation.alpha = a.alpha, form.activation.beta = a.beta;
        form.y = form.dy = {1, a.function % 2 ? 1u : 0u};
        const auto got = run_form(s, form, p.x, p.w, p.b, p.dy);
        std::vector<double> y(p.z.size()), g(p.z.size()), g_bound(p.z.size());
        const bool from_output = has_derivative_from_output(a);
        for (size_t j = 0; j < p.z.size(); ++j) {
          y[j] = ref::activation_forward(a, p.z[j]);
          const double slope =
              from_output ? ref::activation_derivative_from_output(a, got.y[j]) : ref::activation_derivative(a, p.z[j]);
          g[j] = double(p.dy[j]) * slope;
          g_bound[j] = std::fabs(double(p.dy[j])) *
                       (from_output ? backward_bound_from_output(a, got.y[j]) : backward_bound_from_input(a, p.z[j]));
        }
        EXPECT_TRUE(within(got.y, y, y.size(), [&](size_t j) { return forward_bound(a, p.z[j]); })) << "y";
        expect_gradients(s, p, got, g, g_bound);
        EXPECT_TRUE(got.gaps_untouched);
      }
    }
  });
}

// K10: along o_desc.size[0]. exp carries |z - max| ulp of the rounded difference; sums of a row its width.
TEST(ConvolutionActivation, SoftmaxAlongRows) {
  for_each_isa([&] {
    for (const NamedShape& c : shapes()) {
      const ConvolutionShape& s = c.shape;
      const Problem p(s);
      for (const bool log : {false, true}) {
        SCOPED_TRACE(c.name + std::string(log ? " log_softmax" : " softmax"));
        const Form form(log ? BNNSActivationFunctionLogSoftmax : BNNSActivationFunctionSoftmax);
        const auto got = run_form(s, form, p.x, p.w, p.b, p.dy);
        double largest = 0;
        for (const double z : p.z) largest = std::max(largest, std::fabs(z));
        const double ulps = kUlp * (8 + 4 * largest + double(s.ow));
        std::vector<double> y, g, g_bound;
        for (size_t first = 0; first < p.z.size(); first += s.ow) {
          const auto row = [&](const std::vector<double>& v) {
            return std::vector<double>(v.begin() + long(first), v.begin() + long(first + s.ow));
          };
          const auto want = ref::softmax_forward(log, row(p.z));
          const auto back = ref::softmax_backward(log, row(got.y), row(widen(p.dy)));
          y.insert(y.end(), want.begin(), want.end());
          g.insert(g.end(), back.begin(), back.end());
          double sum = 0;
          for (size_t j = first; j < first + s.ow; ++j) sum += std::fabs(double(p.dy[j]));
          for (size_t j = first; j < first + s.ow; ++j) {
            const double factor = log ? std::exp(got.y[j]) : got.y[j];
            g_bound.push_back(ulps * (std::fabs(double(p.dy[j])) + factor * sum));
          }
        }
        EXPECT_TRUE(within(got.y, y, y.size(), [&](size_t j) { return ulps * (log ? 1 + largest : y[j]); })) << "y";
        expect_gradients(s, p, got, g, g_bound);
      }
    }
  });
}

// A narrow output rounds once, after the softmax.
TEST(ConvolutionActivation, SoftmaxIntoNarrowTypes) {
  const ConvolutionShape s = make_shape(2, 3, 9, 37, 5, 3, 1, 1);
  const Problem p(s);
  std::vector<double> want;
  for (size_t first = 0; first < p.z.size(); first += s.ow) {
    const auto y = ref::softmax_forward(false, {p.z.begin() + long(first), p.z.begin() + long(first + s.ow)});
    want.insert(want.end(), y.begin(), y.end());
  }
  for (const auto type : {BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
    ImageBatch y(s.n, s.o, s.oh, s.ow, type, {1, 1});
    ConvolutionLayer layer(s, p.w.data(), p.b.data(), BNNSActivationFunctionSoftmax);
    layer.parameters.o_desc = y.descriptor();
    ASSERT_EQ(BNNSFilterApplyBatch(layer.make().get(), s.n, p.x.data(), 0, y.data(), y.batch_stride()), 0);
    const double half_place = type == BNNSDataTypeFloat16 ? 0x1p-11 : 0x1p-8;
    EXPECT_TRUE(
        within(y.values(), want, want.size(), [&](size_t j) { return want[j] * (half_place + 0x1p-16) + 0x1p-25; }));
    EXPECT_TRUE(y.gaps_untouched());
  }
}

}  // namespace
}  // namespace bnns
