// PairStepProduct on any machine with AVX-512: its tile kernel, which needs AMX, is replaced by plain loops. Down and
// up equal the reference on integers, an infinity stays with the pixels that see it, and images, weights and scratch
// lie against guard pages. What the real kernel makes is covered by convolution_bf16_test.cc where there is AMX.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "src/core/half.h"
#include "src/ops/convolution/bf16/bf16.h"
#include "src/ops/convolution/common/fill.h"
#include "src/ops/convolution/tests/convolution_forms_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

float half_of(const float* word, size_t index) {
  uint16_t halves[2];
  std::memcpy(halves, word, sizeof(halves));
  return bfloat16_to_float(halves[index]);
}

// PairSteps as its comment says it, with whole tiles of 16 rows and columns.
void plain_steps(const PairSteps& g) {
  const auto up = [](size_t n) { return (n + 15) / 16 * 16; };
  for (size_t line = 0; line < g.samples * g.lines; ++line) {
    const size_t n = line / g.lines, u = line % g.lines;
    for (size_t r = 0; r < up(g.rows); ++r) {
      for (size_t j = 0; j < up(g.columns); ++j) {
        float* c = g.c + r * g.c_stride + n * g.sample_c + u * g.line_c + j;
        float sum = g.accumulate ? *c : 0;
        for (size_t k = 0; k < 2 * g.pairs * g.steps; ++k) {
          const size_t s = k / 2 / g.pairs, p = k / 2 % g.pairs;
          const float* a = g.a + r / 32 * g.a_tile_stride + (s * 32 + r % 32) * 16 + p;
          const float* b = g.b + n * g.sample_b + u * g.line_b + j + p * g.b_stride + g.offsets[s];
          sum += half_of(a, k % 2) * half_of(b, k % 2);
        }
        *c = sum;
      }
    }
  }
}

Tensor image(size_t width, size_t height, size_t channels) {
  BNNSNDArrayDescriptor d = {};
  d.layout = BNNSDataLayoutImageCHW, d.data_type = BNNSDataTypeBFloat16;
  d.size[0] = width, d.size[1] = height, d.size[2] = channels;
  return resolve(d, "test", "image");
}

Guarded<uint16_t> narrow(const std::vector<float>& v) {
  std::vector<uint16_t> halves(v.size());
  for (size_t i = 0; i < v.size(); ++i) halves[i] = float_to_bfloat16(v[i]);
  return Guarded<uint16_t>(halves);
}

struct Layer {
  const ConvolutionShape s;
  const ConvolutionMap map{{s.oh, s.ih, s.kh, s.sy, s.dy, s.top},
                           {s.ow, s.iw, s.kw, s.sx, s.dx, s.left},
                           s.groups,
                           s.o / s.groups,
                           s.i / s.groups};
  const Tensor large = image(s.iw, s.ih, s.i), small = image(s.ow, s.oh, s.o);

  ImageSource source(bool is_small, const uint16_t* data) const {
    ImageSource source;
    source.tensor = is_small ? &small : &large, source.data = data;
    source.batch_stride = source.tensor->size[2] * source.tensor->stride[2];
    return source;
  }
  void describe_weights(WeightStrides* w) const {
    const auto taps = static_cast<ptrdiff_t>(s.kh * s.kw), channels = static_cast<ptrdiff_t>(map.large_channels);
    w->small = channels * taps, w->large = taps, w->y = static_cast<ptrdiff_t>(s.kw), w->x = 1;
    w->group = static_cast<ptrdiff_t>(map.small_channels) * w->small;
  }
};

std::vector<float> widened(Guarded<uint16_t>& v) {
  std::vector<float> wide(v.size());
  for (size_t j = 0; j < wide.size(); ++j) wide[j] = bfloat16_to_float(v.data()[j]);
  return wide;
}

// down: y of x; up: dx of dy.
std::vector<float> run(const ConvolutionShape& s, bool up, const std::vector<float>& from, const std::vector<float>& w,
                       size_t threads) {
  const Layer layer{s};
  Guarded<uint16_t> halves = narrow(from), weights = narrow(w), out(up ? s.x_count() : s.y_count());
  Bf16Weights strides;
  strides.data = weights.data();
  layer.describe_weights(&strides);
  ImageTarget target;
  target.tensor = up ? &layer.large : &layer.small, target.data = out.data();
  target.batch_stride = target.tensor->size[2] * target.tensor->stride[2];
  for (size_t ry = 0; ry < (up ? s.sy : 1); ++ry) {
    for (size_t rx = 0; rx < (up ? s.sx : 1); ++rx) {
      PatchMap map = make_patch_map(layer.map, up, s.n);
      map.target = target, map.threads = threads;
      if (up) map = map.phase(ry, rx);
      if (!map.has_taps()) {
        fill_pixels(map.y, map.x, s.n, s.i, target, threads);
        continue;
      }
      const PairStepProduct product(map, strides, &plain_steps);
      Guarded<float> workspace(product.workspace_bytes() / sizeof(float));
      product.run(layer.source(up, halves.data()), workspace.data());
    }
  }
  return widened(out);
}

std::vector<float> run_weights(const ConvolutionShape& s, const std::vector<float>& dy, const std::vector<float>& x,
                               size_t threads) {
  const Layer layer{s};
  Guarded<uint16_t> small = narrow(dy), large = narrow(x), out(s.w_count());
  Bf16WeightTarget target;
  target.bf16 = out.data();
  layer.describe_weights(&target);
  WeightMap map = make_weight_map(layer.map, s.n);
  map.threads = threads;
  const PairWeightSteps product(map, &plain_steps);
  Guarded<float> workspace(product.workspace_bytes() / sizeof(float));
  product.run(layer.source(true, small.data()), layer.source(false, large.data()), target, workspace.data());
  return widened(out);
}

// n, i, height, width, o, kernel, stride, pad, groups, dilation: lines of a whole sample and lines of a row, pieces of
// a row, several passes, odd channels, several samples in a block, phases, groups, more taps than a gather takes.
std::vector<ConvolutionShape> shapes() {
  return {make_shape(3, 64, 7, 7, 33, 3, 1, 1),
          make_shape(2, 31, 14, 14, 37, 3, 1, 1),
          make_shape(1, 34, 9, 28, 16, 3, 1, 1),
          make_shape(1, 17, 13, 17, 20, 3, 2, 1),
          make_shape(1, 16, 2, 700, 5, 3, 1, 1),
          make_shape(2, 36, 12, 11, 48, 3, 1, 2, 2, 2),
          make_shape(1, 16, 10, 10, 18, 5, 1, 2),
          make_shape(5, 130, 4, 4, 40, 1, 2, 0),
          make_shape(11, 33, 6, 6, 40, 3, 1, 0),
          make_shape(1, 96, 12, 12, 96, 3, 1, 1)};  // the last: cut for many threads
}

TEST(ConvolutionBf16Steps, ExactOnIntegersForAnyThreadCount) {
  if (best_isa() < Isa::avx512) GTEST_SKIP() << "its copies need AVX-512";
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(text(s));
    const IntegerData data(s, 12);
    const auto y = rounded(BNNSDataTypeBFloat16, ref::convolution_forward(s, widen(data.x), widen(data.w), {}));
    const auto dx = rounded(BNNSDataTypeBFloat16, data.gradients.dx);
    for (const size_t threads : {1, 3, 16}) {
      EXPECT_EQ(widen(run(s, false, data.x, data.w, threads)), y);
      EXPECT_EQ(widen(run(s, true, data.dy, data.w, threads)), dx);
      if (!PairWeightSteps::accepts(make_weight_map(Layer{s}.map, s.n))) continue;
      EXPECT_EQ(widen(run_weights(s, data.dy, data.x, threads)), rounded(BNNSDataTypeBFloat16, data.gradients.dw));
    }
  }
}

void expect_same(const std::vector<float>& got, const std::vector<double>& want) {
  for (size_t j = 0; j < got.size(); ++j) {
    ASSERT_EQ(std::isfinite(got[j]), std::isfinite(want[j])) << j;
    if (!std::isfinite(want[j])) continue;
    ASSERT_EQ(got[j], rounded(BNNSDataTypeBFloat16, want[j])) << j;
  }
}

TEST(ConvolutionBf16Steps, AnInfinityStaysWhereItIsSeen) {
  if (best_isa() < Isa::avx512) GTEST_SKIP() << "its copies need AVX-512";
  for (const ConvolutionShape& s : shapes()) {
    SCOPED_TRACE(text(s));
    IntegerData data(s, 13);
    for (const size_t at : {size_t{0}, s.iw - 1, s.x_count() / 2, s.x_count() - 1}) {
      data.x[at] = std::numeric_limits<float>::infinity();
      const auto want = ref::convolution_forward(s, widen(data.x), widen(data.w), {});
      expect_same(run(s, false, data.x, data.w, 2), want);
      if (!PairWeightSteps::accepts(make_weight_map(Layer{s}.map, s.n))) continue;
      const auto gradients = ref::convolution_backward(s, widen(data.x), widen(data.w), widen(data.dy));
      expect_same(run_weights(s, data.dy, data.x, 2), gradients.dw);
      data.x[at] = 1;
    }
  }
}

}  // namespace
}  // namespace bnns
