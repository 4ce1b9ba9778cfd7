// Convolution of bf16 images with bf16 weights, on every instruction set of the machine: the pair products of
// convolution_bf16*.cc where there are such, the f32 maps elsewhere. Exact on small integers, the bound on real
// numbers, the same bits for any number of threads. Images and weights of run_form lie against guard pages.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

constexpr BNNSDataType kBf16 = BNNSDataTypeBFloat16;

// n, i, height, width, o, kernel, stride, pad, groups, dilation: odd channels and pixels, planes that share blocks,
// long rows, several depth blocks, phases, groups, taps that see nothing.
std::vector<ConvolutionShape> shapes() {
  return {make_shape(1, 1, 5, 5, 1, 3, 1, 1),         make_shape(5, 7, 7, 7, 15, 3, 1, 1),
          make_shape(3, 31, 14, 14, 37, 3, 1, 1),     make_shape(2, 64, 9, 28, 20, 3, 1, 1),
          make_shape(2, 16, 10, 31, 14, 1, 1, 0),     make_shape(3, 21, 7, 9, 33, 1, 1, 0),
          make_shape(2, 5, 13, 17, 6, 3, 2, 1),       make_shape(1, 3, 30, 30, 8, 7, 2, 3),
          make_shape(2, 6, 12, 11, 9, 3, 1, 2, 3, 2), make_shape(1, 9, 3, 400, 5, 3, 1, 1),
          make_shape(1, 130, 6, 6, 4, 3, 1, 1),       make_shape(9, 4, 1, 1, 40, 1, 1, 0),
          make_shape(1, 2, 4, 4, 3, 3, 1, 6),         make_shape(2, 8, 16, 16, 5, 5, 3, 2),
          make_shape(1, 4, 26, 26, 3, 24, 1, 2)};
}

// Two bf16 images are multiplied as such, but on AVX-512 BF16 where Winograd's algorithm may take dW. Else they are
// f32.
bool multiplies_pairs(const ConvolutionShape& s) {
  return isa() == Isa::amx || (isa() == Isa::avx512_bf16 && (s.kh != 3 || s.sy != 1 || s.sx != 1));
}

TEST(ConvolutionBf16, ExactOnIntegers) {
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(text(s));
    const IntegerData data(s, 8);
    for_each_isa([&] {
      for (const auto layout : {BNNSDataLayoutConvolutionWeightsOIHW, BNNSDataLayoutConvolutionWeightsOIHrWr}) {
        for (const bool wide : {false, true}) {  // f32 results, rows apart
          Form f;
          f.x_type = f.w_type = kBf16, f.y_type = wide ? BNNSDataTypeFloat32 : kBf16;
          f.w_layout = layout, f.threads = wide ? 2 : 3;
          if (wide) f.x = f.y = f.dx = f.dy = Spacing{1, 3};
          const FormResults got = run_form(s, f, data.x, data.w, data.b, data.dy);
          EXPECT_EQ(got.y, rounded(f.y_type, data.y));
          EXPECT_EQ(got.dx, rounded(kBf16, data.gradients.dx));
          if (has_exact_weights(s) || (!wide && multiplies_pairs(s))) {
            EXPECT_EQ(got.dw, rounded(kBf16, data.gradients.dw));
          }
          EXPECT_EQ(got.db, data.gradients.db);
          EXPECT_TRUE(got.gaps_untouched);
        }
      }
    });
  }
}

// Old + new, rounded once. Where dW is not exact, to the nearest bf16 or its neighbour.
TEST(ConvolutionBf16, AccumulatesOnce) {
  for (const ConvolutionShape& s : {make_shape(4, 10, 9, 9, 17, 3, 1, 1), make_shape(4, 18, 9, 9, 17, 3, 1, 1),
                                    make_shape(1, 70, 12, 12, 65, 3, 1, 1)}) {
    const IntegerData data(s, 9);
    for_each_isa([&] {
      Form f;
      f.x_type = f.w_type = f.y_type = kBf16, f.accumulate = true, f.old = 3, f.threads = 2;
      const FormResults got = run_form(s, f, data.x, data.w, data.b, data.dy);
      const bool exact = has_exact_weights(s) || multiplies_pairs(s);
      for (size_t j = 0; j < got.dx.size() && s.i < 32; ++j) {
        ASSERT_EQ(got.dx[j], rounded(kBf16, data.gradients.dx[j] + 3)) << j;
      }
      for (size_t j = 0; j < got.dw.size(); ++j) {
        const double want = data.gradients.dw[j] + 3;
        ASSERT_NEAR(got.dw[j], rounded(kBf16, want), exact ? 0 : 0x1p-7 * std::abs(want) + 1e-3) << j;
      }
    });
  }
}

// 16 MB of results without bias: the kernels round them and use non-temporal stores.
TEST(ConvolutionBf16, LargeResultsGoStraightToTheTarget) {
  const ConvolutionShape s = make_shape(1, 16, 128, 256, 256, 1, 1, 0);
  Random random(10);
  const auto x = random.integers(s.x_count()), w = random.integers(s.w_count()), dy = random.integers(s.y_count());
  const auto y = rounded(kBf16, ref::convolution_forward(s, widen(x), widen(w), {}));
  for_each_isa([&] {
    Form f;
    f.x_type = f.w_type = f.y_type = kBf16, f.threads = 2;
    EXPECT_TRUE(run_form(s, f, x, w, {}, dy).y == y);
  });
}

// |error| <= 2 eps k sum|terms| for a sum of k terms, then half a unit of the last of bf16's eight bits.
TEST(ConvolutionBf16, WithinBoundAndSameBitsForAnyThreadCount) {
  for (const ConvolutionShape& s : {make_shape(5, 34, 14, 14, 30, 3, 1, 1), make_shape(3, 64, 7, 7, 65, 3, 1, 1),
                                    make_shape(2, 128, 12, 12, 160, 3, 1, 1)}) {  // the last: cut for many threads
    Random random(11);
    const auto numbers = [&](size_t count) {
      auto v = random.normals(count);
      for (float& x : v) x = float(rounded(kBf16, x));
      return v;
    };
    const auto x = numbers(s.x_count()), w = numbers(s.w_count()), dy = numbers(s.y_count());
    const auto magnitude = [](const std::vector<float>& v) {
      auto sizes = widen(v);
      for (double& e : sizes) e = std::abs(e);
      return sizes;
    };
    const auto y = ref::convolution_forward(s, widen(x), widen(w), {});
    const auto y_size = ref::convolution_forward(s, magnitude(x), magnitude(w), {});
    const auto d = ref::convolution_backward(s, widen(x), widen(w), widen(dy));
    const auto d_size = ref::convolution_backward(s, magnitude(x), magnitude(w), magnitude(dy));
    const auto check = [](const std::vector<double>& got, const std::vector<double>& want,
                          const std::vector<double>& size, size_t terms) {
      const double eps = std::numeric_limits<float>::epsilon();
      for (size_t j = 0; j < got.size(); ++j) {
        ASSERT_LE(std::abs(got[j] - want[j]), 2 * eps * double(terms) * size[j] + 0x1p-8 * std::abs(want[j])) << j;
      }
    };
    for_each_isa([&] {
      Form f;
      f.x_type = f.w_type = f.y_type = kBf16, f.threads = 1;
      const FormResults one = run_form(s, f, x, w, {}, dy);
      check(one.y, y, y_size, s.i * 9);
      check(one.dx, d.dx, d_size.dx, s.o * 9);
      check(one.dw, d.dw, d_size.dw, s.n * s.oh * s.ow);
      for (const size_t threads : {2, 3, 7, 16}) {
        f.threads = threads;
        const FormResults many = run_form(s, f, x, w, {}, dy);
        EXPECT_EQ(one.y, many.y);
        EXPECT_EQ(one.dx, many.dx);
        EXPECT_EQ(one.dw, many.dw);
      }
    });
  }
}

}  // namespace
}  // namespace bnns
