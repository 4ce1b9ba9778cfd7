// The weight gradient by Winograd's algorithm behind the public calls, for kernels of every size and for steps of two
// pixels: its error bound, how sums are shared out, layouts, threads, what a NaN reaches.

#include <gtest/gtest.h>

#include "src/ops/convolution/tests/convolution_forms_testing.h"
#include "src/ops/convolution/tests/convolution_winograd_testing.h"
#include "src/ops/convolution/winograd/dw.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// Slices and parts, tails of every kind: tiles, groups and blocks of channels, taps that a phase lacks.
std::vector<NamedShape> cases() {
  return {
      {"5x5", make_shape(9, 20, 12, 12, 50, 5, 1, 0)},
      {"5x5 odd pixels", make_shape(3, 13, 15, 9, 17, 5, 1, 2)},
      {"5x5 parts", make_shape(1, 70, 12, 11, 40, 5, 1, 2)},
      {"5x5 transposed", make_shape(3, 20, 7, 8, 24, 5, 1, 1, 1, 1, true)},
      {"4x4", make_shape(4, 16, 10, 13, 21, 4, 1, 1)},
      {"3x3 few channels", make_shape(4, 12, 13, 14, 16, 3, 1, 1)},
      {"3x3 slices", make_shape(2, 32, 42, 30, 33, 3, 1, 1)},
      {"3x3 many parts", make_shape(1, 64, 104, 108, 32, 3, 1, 1)},
      {"7x7 over 2", make_shape(2, 3, 40, 41, 64, 7, 2, 3)},
      {"7x7 over 2, long rows", make_shape(1, 3, 9, 700, 16, 7, 2, 3)},
      {"7x7 over 2, two groups", make_shape(3, 5, 24, 27, 20, 7, 2, 2)},
      {"8x8 over 2", make_shape(3, 4, 23, 24, 18, 8, 2, 3)},
      {"7x7 over 2, parts", make_shape(2, 20, 31, 40, 40, 7, 2, 1)},
      {"8x8 over 2, transposed", make_shape(4, 18, 12, 13, 7, 8, 2, 3, 1, 1, true)},
      {"9x9 over 2", make_shape(2, 3, 27, 24, 16, 9, 2, 4)},
  };
}

std::vector<float> rough(Random& random, size_t n) {
  auto v = random.normals(n);
  for (size_t i = 0; i < n; ++i) v[i] *= i % 5 == 0 ? 1000.0f : (i % 7 == 0 ? -0.001f : 1.0f);
  return v;
}

std::vector<float> weight_gradient(const ConvolutionShape& s, const std::vector<float>& xs,
                                   const std::vector<float>& dys, size_t threads = 0) {
  Guarded<float> x(xs), dy(dys), dw(s.w_count());
  std::fill_n(dw.data(), dw.size(), poison());
  const std::vector<float> w(s.w_count());
  ConvolutionLayer layer(s, w.data(), nullptr);
  layer.options.n_threads = threads;
  const auto filter = layer.make();
  auto dy_desc = image(s.ow, s.oh, s.o, dy.data());
  auto dw_desc = layer.parameters.w_desc;
  dw_desc.data = dw.data();
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), s.n, x.data(), 0, nullptr, 0, nullptr, 0, &dy_desc, 0, &dw_desc,
                                         nullptr),
            0)
      << BNNSExtLastError();
  return {dw.data(), dw.data() + dw.size()};
}

TEST(WinogradWeights, CasesUseIt) {
  for (const NamedShape& c : cases()) {
    for_each_isa([&] {
      EXPECT_EQ(accepts_winograd_dw(make_weight_map(map_of(c.shape), c.shape.n)), isa() != Isa::baseline) << c.name;
    });
  }
}

// |error| <= eps (tiles + 24) S, and on data without cancellation the bound of the other algorithms.
TEST(WinogradWeights, WithinTheBound) {
  const double eps = std::numeric_limits<float>::epsilon();
  for (const NamedShape& c : cases()) {
    const ConvolutionShape& s = c.shape;
    for (const bool hard : {false, true}) {
      if (hard && s.x_count() > 100000) continue;  // the reference takes a second
      Random random(s.x_count());
      const auto x = hard ? rough(random, s.x_count()) : random.normals(s.x_count());
      const auto dy = hard ? rough(random, s.y_count()) : random.normals(s.y_count());
      std::vector<double> want(s.w_count()), size(s.w_count());
      ref::for_each_product(s, [&](size_t xi, size_t wi, size_t yi) {
        const double term = double{x[xi]} * double{dy[yi]};
        want[wi] += term, size[wi] += std::fabs(term);
      });
      const Spreads spreads(s, absolute(x), std::vector<double>(s.w_count()), absolute(dy), false, false, false, true);
      const double pixels = double(s.n * (s.transposed ? s.ih * s.iw : s.oh * s.ow));
      for_each_isa([&] {
        SCOPED_TRACE(c.name);
        const auto dw = weight_gradient(s, x, dy);
        EXPECT_TRUE(
            within(dw, want, dw.size(), [&](size_t j) { return eps * double(spreads.tiles + 24) * spreads.dw[j]; }));
        if (hard) return;
        EXPECT_TRUE(within(dw, want, dw.size(), [&](size_t j) { return 2 * eps * pixels * size[j]; })) << "terms";
      });
    }
  }
}

TEST(WinogradWeights, SameBitsForAnyNumberOfThreads) {
  for_each_isa([&] {
    for (const NamedShape& c : cases()) {
      const ConvolutionShape& s = c.shape;
      Random random(5);
      const auto x = random.normals(s.x_count()), dy = random.normals(s.y_count());
      const auto one = weight_gradient(s, x, dy, 1);
      for (const size_t threads : {2, 3, 7}) {
        EXPECT_TRUE(same_bits(one, weight_gradient(s, x, dy, threads))) << c.name << " " << threads;
      }
    }
  });
}

// Layouts and strides do not change a bit; accumulation adds the finished sum; other types are converted before.
TEST(WinogradWeights, SameBitsForEveryLayout) {
  for (const NamedShape& c : cases()) {
    const ConvolutionShape& s = c.shape;
    if (s.x_count() > 100000) continue;
    SCOPED_TRACE(c.name);
    Random random(6);
    const auto x = random.normals(s.x_count()), w = random.normals(s.w_count()), dy = random.normals(s.y_count());
    const auto plain = run_form(s, Form(), x, w, {}, dy).dw;
    for (const BNNSDataLayout layout : kWeightLayouts) {
      if (s.transposed && layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) continue;
      Form form;
      form.w_layout = layout;
      form.x = {2, 3}, form.dy = {1, 5};
      if (layout != BNNSDataLayoutConvolutionWeightsOIHW_Pack32) form.dw = {3, 1};
      const auto spaced = run_form(s, form, x, w, {}, dy);
      EXPECT_EQ(spaced.dw, plain) << "layout " << layout;
      EXPECT_TRUE(spaced.gaps_untouched);
    }
    Form form;
    form.accumulate = true, form.old = 3;
    const auto more = run_form(s, form, x, w, {}, dy).dw;
    for (size_t j = 0; j < more.size(); ++j) ASSERT_EQ(more[j], double{float(plain[j]) + 3.0f}) << j;
    if (s.transposed) continue;  // f32 only
    const auto rounded_x = rounded(BNNSDataTypeFloat16, widen(x));
    const std::vector<float> as_float(rounded_x.begin(), rounded_x.end());
    Form half;
    half.x_type = BNNSDataTypeFloat16;
    EXPECT_EQ(run_form(s, half, x, w, {}, dy).dw, run_form(s, Form(), as_float, w, {}, dy).dw);
  }
}

// A NaN of either image stays with its channel: it reaches no other weight.
TEST(WinogradWeights, NaNsStayWithTheirChannels) {
  for (const NamedShape& c : cases()) {
    const ConvolutionShape& s = c.shape;
    if (s.x_count() > 100000) continue;
    SCOPED_TRACE(c.name);
    const std::vector<float> ones(s.y_count(), 1.0f);
    std::vector<float> x(s.x_count(), 1.0f);
    const size_t channel = s.i - 1, middle = (channel * s.ih + s.ih / 2) * s.iw + s.iw / 2;
    x[middle] = std::numeric_limits<float>::quiet_NaN();
    const auto dw = weight_gradient(s, x, ones);
    size_t count = 0;
    for (size_t j = 0; j < dw.size(); ++j) {
      const bool is_nan = std::isnan(dw[j]);
      count += is_nan;
      ASSERT_TRUE(!is_nan || j / (s.kh * s.kw) % s.i == channel) << j;
    }
    EXPECT_GT(count, 0u);
  }
}

}  // namespace
}  // namespace bnns
