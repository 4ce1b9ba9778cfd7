// What a fused layer calls: a first stage hands over blocks, in any order and on any thread; gradients into f32
// buffers.

#include <gtest/gtest.h>

#include "src/ops/normalization/common/kernels.h"
#include "src/ops/normalization/normalization.h"
#include "src/ops/normalization/tests/normalization_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;
using Part = NormalizationPass::Part;
using Block = NormalizationPass::Block;

// A fused layer of which x is the first stage's output.
struct Fused {
  NormCase c;
  NormalizationProblem problem;
  Options options;
  NormalizationParameters parameters;
  NormalizationState state;
  ScratchShelf scratch;

  explicit Fused(const NormLayer& layer)
      : c(layer.c),
        problem(make_normalization_problem(filter_type(c.kind), &layer.parameters)),
        options(read_options(&layer.options, "test")),
        parameters(problem, options),
        state(options),
        scratch(options) {}

  // Blocks of `channels` channels and one part, the last first when `backwards`. apart: handed over from a copy with
  // strides of its own, as from a tile that is not in place yet.
  void forward(const std::vector<float>& x, void* y, bool training, const Part& part, size_t channels, size_t threads,
               bool backwards = false, bool apart = false) {
    const size_t plane = c.H * c.W, sample = c.C * plane;
    NormalizationPass pass(problem, parameters, {c.N, y, sample, training ? &state : nullptr, part}, scratch, threads);
    std::vector<Block> blocks;
    for (size_t n = 0; n < c.N; n += part.samples)
      for (size_t k = 0; k < c.C; k += channels)
        for (size_t p = 0; p < plane; p += part.pixels) {
          Block b{{n, std::min(c.N, n + part.samples)},
                  {k, std::min(c.C, k + channels)},
                  {p, std::min(plane, p + part.pixels)}};
          b.x = &x[n * sample + k * plane + p], b.sample_stride = sample, b.channel_stride = plane;
          blocks.push_back(b);
        }
    if (backwards) std::reverse(blocks.begin(), blocks.end());
    parallel_for(blocks.size(), threads, [&](size_t i, size_t) {
      Block b = blocks[i];
      std::vector<float> tile;
      if (apart) {
        const size_t step = b.pixels.size() + 3;
        tile.assign(b.samples.size() * b.channels.size() * step, poison());
        for (size_t s = 0; s < b.samples.size(); ++s)
          for (size_t k = 0; k < b.channels.size(); ++k)
            std::copy_n(b.x + s * b.sample_stride + k * b.channel_stride, b.pixels.size(),
                        &tile[(s * b.channels.size() + k) * step]);
        b.x = tile.data(), b.sample_stride = b.channels.size() * step, b.channel_stride = step;
      }
      if (pass.immediate()) return pass.normalize(b);
      for (size_t s = b.samples.begin; s < b.samples.end; ++s)
        for (size_t k = b.channels.begin; k < b.channels.end; ++k)
          std::copy_n(b.x + (s - b.samples.begin) * b.sample_stride + (k - b.channels.begin) * b.channel_stride,
                      b.pixels.size(), pass.values(s) + k * plane + b.pixels.begin);
      pass.gather(b);
    });
    pass.finish();
  }

  // Gradients with dx in a dense f32 buffer, as the first stage's backward reads it.
  TrainingResult backward(const std::vector<float>& y, std::vector<float> dy, size_t threads) {
    const size_t sample = c.count() / c.N;
    TrainingResult r{y, std::vector<float>(c.count(), poison()), std::vector<float>(c.parameters(), poison()),
                     std::vector<float>(c.parameters(), poison())};
    const Tensor dy_tensor = vector_tensor(sample, dy.data()), dx = vector_tensor(sample, r.dx.data()),
                 dbeta = vector_tensor(c.parameters(), r.dbeta.data()),
                 dgamma = vector_tensor(c.parameters(), r.dgamma.data());
    state.check_ready(c.N);
    normalization_backward(problem, parameters, state,
                           {c.N, y.data(), sample, &dy_tensor, sample, &dx, sample, &dbeta, &dgamma}, scratch, threads);
    return r;
  }
};

std::vector<NormCase> shapes() {
  return {{Norm::batch, 3, 5, 30, 31},       {Norm::batch, 2, 3, 5, 7},         {Norm::batch, 150, 70, 1, 1},
          {Norm::batch, 9, 3, 1, 3},         {Norm::instance, 2, 3, 40, 29},    {Norm::instance, 3, 2, 1, 5},
          {Norm::group, 2, 6, 17, 16, 3},    {Norm::group, 2, 6, 1, 2, 3},      {Norm::layer, 3, 4, 20, 20},
          {Norm::layer, 3, 4, 20, 20, 1, 1}, {Norm::layer, 3, 4, 20, 20, 1, 2}, {Norm::layer, 70, 90, 1, 1}};
}
std::vector<Part> parts(const NormCase& c) {
  if (c.H * c.W == 1) return {{64, 1}, {16, 1}, {1, 1}};
  return {{1, 256}, {1, 48}, {1, 1024}, {1, 7}, {c.H * c.W < 16 ? size_t{8} : size_t{1}, 128}};
}

// Against the reference, for every part; the same bits for any number of threads and order of the blocks (BC53).
TEST(NormalizationFused, BC53_TrainingFromBlocksOfAFirstStage) {
  Random random(17);
  for (const NormCase& c : shapes()) {
    auto x = random.normals(c.count(), 2);
    for (float& v : x) v += 3;
    const auto gamma = random.normals(c.parameters()), beta = random.normals(c.parameters()),
               dy = random.normals(c.count());
    const auto want = ref::normalization_forward(c, widen(x), widen(gamma), widen(beta));
    const auto gradient = ref::normalization_backward(c, want, widen(gamma), widen(dy));
    double largest = 0;
    for (double d : gradient.dx) largest = std::max(largest, std::fabs(d));
    std::vector<double> sums(c.parameters()), products(c.parameters()), y_bound(c.count());
    c.for_each([&](size_t e, size_t, size_t p) {
      y_bound[e] = kForwardUnits * std::fabs(gamma[p]) * (std::fabs(want.values[e]) + 1) + kEps * std::fabs(beta[p]);
      sums[p] += std::fabs(dy[e]), products[p] += std::fabs(dy[e]) * (std::fabs(want.values[e]) + 1);
    });
    for_each_isa([&] {
      for (const Part& part : parts(c)) {
        SCOPED_TRACE(c.text() + " part " + std::to_string(part.samples) + " x " + std::to_string(part.pixels));
        for (bool apart : {false, true}) {  // planes of one value: another kernel, other bits
          TrainingResult first;
          for (size_t threads : kThreadCounts) {
            Fused fused(NormLayer(c, &gamma, &beta));
            std::vector<float> y(c.count(), poison());
            fused.forward(x, y.data(), true, part, 1 + threads, threads, threads % 2 == 0, apart);
            const auto got = fused.backward(y, dy, threads);
            if (threads != 1) {
              ASSERT_TRUE(same_bits(got.y, first.y) && same_bits(got.dx, first.dx) &&
                          same_bits(got.dbeta, first.dbeta) && same_bits(got.dgamma, first.dgamma))
                  << threads << " threads";
              continue;
            }
            first = got;
            EXPECT_TRUE(within(y, want.y, c.count(), [&](size_t i) { return y_bound[i]; }));
            EXPECT_TRUE(within(got.dx, gradient.dx, c.count(), [&](size_t) { return 8 * kForwardUnits * largest; }));
            EXPECT_TRUE(
                within(got.dbeta, gradient.dbeta, c.parameters(), [&](size_t i) { return kForwardUnits * sums[i]; }));
            EXPECT_TRUE(within(got.dgamma, gradient.dgamma, c.parameters(),
                               [&](size_t i) { return 2 * kForwardUnits * products[i]; }));
          }
        }
      }
    });
    if (HasFailure()) return;
  }
}

// The layer alone reads blocks of 1024: parts of as many give its bits.
TEST(NormalizationFused, SameBitsAsTheLayerAlone) {
  Random random(19);
  for (const NormCase& c : {NormCase{Norm::instance, 3, 4, 40, 40}, NormCase{Norm::batch, 2, 3, 40, 30},
                            NormCase{Norm::batch, 150, 70, 1, 1}, NormCase{Norm::layer, 4, 3, 5, 5, 1, 2},
                            NormCase{Norm::group, 2, 4, 33, 32, 2}}) {
    const auto x = random.normals(c.count()), dy = random.normals(c.count()), gamma = random.normals(c.parameters());
    const NormLayer layer(c, &gamma, nullptr, BNNSActivationFunctionTanh);
    const auto want = train(layer, x, dy);
    Fused fused(layer);
    std::vector<float> y(c.count());
    fused.forward(x, y.data(), true, c.H * c.W == 1 ? Part{64, 1} : Part{1, 1024}, 3, 2);
    const auto got = fused.backward(y, dy, 2);
    EXPECT_TRUE(same_bits(y, want.y) && same_bits(got.dx, want.dx) && same_bits(got.dbeta, want.dbeta) &&
                same_bits(got.dgamma, want.dgamma))
        << c.text();
  }
}

// BC19 and BC22 through the slots: large offsets keep their digits, moving statistics follow the recurrence.
TEST(NormalizationFused, BC19_BC22_MovingStatisticsFromBlocks) {
  for_each_isa([] {
    for (const NormCase& c : {NormCase{Norm::batch, 4, 3, 20, 21}, NormCase{Norm::batch, 130, 5, 1, 1},
                              NormCase{Norm::instance, 4, 3, 20, 21}}) {
      for (double offset : {0.0, 1e4, 1e7}) {
        Random random(23);
        std::vector<float> mean = random.normals(c.C), variance(c.C, 2), y(c.count());
        std::vector<double> want_mean = widen(mean), want_variance = widen(variance);
        NormLayer layer(c);
        layer.options.flags = BNNSFlagsUseClientPtr;
        layer.parameters.moving_mean_desc = vector_descriptor(c.C, mean.data());
        layer.parameters.moving_variance_desc = vector_descriptor(c.C, variance.data());
        Fused fused(layer);
        for (int step = 0; step < 3; ++step) {
          std::vector<float> x(c.count());
          for (float& v : x) v = float(offset + random.normal());
          const auto forward = ref::normalization_forward(c, widen(x), {}, {});
          want_mean = ref::moving_after(c, double(0.9f), want_mean, forward.mean);
          want_variance = ref::moving_after(c, double(0.9f), want_variance, forward.variance);
          fused.forward(x, y.data(), true, c.H * c.W == 1 ? Part{64, 1} : Part{1, 100}, 2, 2);
          for (size_t k = 0; k < c.C; ++k) {
            ASSERT_NEAR(mean[k], want_mean[k], 1e-6 * (1 + std::fabs(want_mean[k]))) << c.text();
            ASSERT_NEAR(variance[k], want_variance[k], 1e-5 * want_variance[k]) << c.text();
          }
          ASSERT_TRUE(within(y, forward.y, c.count(),
                             [&](size_t i) { return 2 * kForwardUnits * (std::fabs(forward.y[i]) + 1); }));
        }
      }
    }
  });
}

// Inference: with moving statistics block by block, else from the blocks' moments; f32 in place, other types through
// scratch. The bits of the layer alone wherever it sums the same blocks or none.
TEST(NormalizationFused, Inference) {
  Random random(29);
  for (const NormCase& c : {NormCase{Norm::batch, 3, 70, 1, 1}, NormCase{Norm::batch, 2, 5, 40, 30},
                            NormCase{Norm::instance, 2, 5, 6, 6}, NormCase{Norm::layer, 3, 4, 5, 6, 1, 1}}) {
    for (bool moving : {true, false}) {
      for (auto type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16}) {
        for (auto function :
             {BNNSActivationFunctionIdentity, BNNSActivationFunctionRectifiedLinear, BNNSActivationFunctionSiLU}) {
          SCOPED_TRACE(c.text() + (moving ? " moving " : " own ") + std::to_string(type));
          const auto x = random.normals(c.count()), gamma = random.normals(c.parameters());
          std::vector<float> mean = random.normals(c.C), variance(c.C, 3);
          NormLayer layer(c, &gamma, nullptr, function);
          layer.parameters.o_desc.data_type = type;
          if (moving) {
            layer.parameters.moving_mean_desc = vector_descriptor(c.C, mean.data());
            layer.parameters.moving_variance_desc = vector_descriptor(c.C, variance.data());
          }
          const size_t bytes = type == BNNSDataTypeFloat32 ? 4 : 2;
          std::vector<float> want(c.count()), got(c.count());
          const auto filter = layer.make();
          ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, want.data(), 0, false), 0)
              << BNNSExtLastError();
          for (bool apart : {false, true}) {
            Fused fused(layer);
            if (apart && c.H * c.W == 1 && !moving) continue;  // sums of another kernel
            fused.forward(x, got.data(), false, c.H * c.W == 1 ? Part{64, 1} : Part{1, 1024}, 3, 2, true, apart);
            EXPECT_EQ(std::memcmp(got.data(), want.data(), bytes * c.count()), 0);
            EXPECT_THROW(fused.state.check_ready(c.N), Error) << "inference keeps nothing";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace bnns
