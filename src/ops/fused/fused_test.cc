// Fused layers: the reference against differences, the filters against the reference, properties. Refusals are in
// fused_misuse_test.cc.

#include <gtest/gtest.h>

#include <thread>

#include "src/ops/fused/fused_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

ConvolutionShape shape(size_t n, size_t i, size_t ih, size_t iw, size_t o, size_t k, size_t stride, size_t pad,
                       size_t groups = 1, bool transposed = false) {
  ConvolutionShape s;
  s.n = n, s.i = i, s.ih = ih, s.iw = iw, s.o = o, s.kh = s.kw = k, s.sy = s.sx = stride, s.top = s.left = pad;
  s.groups = groups, s.transposed = transposed;
  s.oh = transposed ? (ih - 1) * stride + k - 2 * pad : (ih + 2 * pad - k) / stride + 1;
  s.ow = transposed ? (iw - 1) * stride + k - 2 * pad : (iw + 2 * pad - k) / stride + 1;
  return s;
}
ConvolutionShape matrix(size_t n, size_t i, size_t o) {
  return shape(n, i, 1, 1, o, 1, 1, 0);
}
ConvolutionShape picture(size_t n, size_t c, size_t h, size_t w) {
  return shape(n, c, h, w, c, 1, 1, 0);
}

// Every pair, every way blocks are handed over: merged samples, rows, pieces of rows that divide a row and that do not,
// phases, depthwise, samples in parts.
std::vector<FusedCase> cases() {
  std::vector<FusedCase> all = {
      {"rows", First::convolution, shape(3, 3, 14, 19, 6, 3, 1, 1)},
      {"winograd", First::convolution, shape(2, 20, 9, 11, 24, 5, 1, 2)},
      {"from the small side", First::convolution, shape(8, 32, 6, 6, 12, 5, 1, 0, 1, true)},
      {"folded", First::convolution, shape(2, 16, 14, 14, 1, 5, 1, 2)},
      {"scattered", First::convolution, shape(7, 32, 6, 6, 12, 5, 1, 0, 1, true)},
      {"scattered, few channels", First::convolution, shape(1, 64, 8, 8, 4, 5, 1, 0, 1, true)},
      {"merged samples", First::convolution, shape(7, 2, 5, 6, 5, 3, 1, 1)},
      {"single pixels", First::convolution, shape(70, 2, 3, 3, 4, 3, 1, 0)},
      {"pieces of rows", First::convolution, shape(2, 1, 2, 512, 3, 1, 1, 0)},
      {"uneven pieces of rows", First::convolution, shape(2, 1, 2, 601, 3, 1, 1, 0)},
      {"stride 2", First::convolution, shape(2, 3, 17, 16, 4, 3, 2, 1)},
      {"depthwise", First::convolution, shape(2, 5, 12, 40, 5, 3, 1, 1, 5)},
      {"transposed", First::convolution, shape(2, 4, 6, 7, 3, 3, 1, 1, 1, true)},
      {"transposed stride 2", First::convolution, shape(2, 4, 6, 7, 3, 4, 2, 1, 1, true)},
      {"fully connected", First::fully_connected, matrix(9, 13, 18)},
      {"fully connected, parts", First::fully_connected, matrix(130, 5, 70)},
      {"square", First::arithmetic, picture(4, 3, 6, 7), 1},
      {"multiply", First::arithmetic, picture(3, 5, 9, 4), 2},
      {"multiply-add", First::arithmetic, picture(3, 4, 5, 8), 3},
      {"multiply of single pixels", First::arithmetic, picture(67, 3, 1, 1), 2},
  };
  const FusedCase one = {"kinds", First::convolution, shape(3, 3, 9, 8, 6, 3, 1, 1)};
  for (const Norm norm : {Norm::instance, Norm::layer, Norm::group}) {
    for (size_t axis = 0; axis < (norm == Norm::layer ? 3 : 1); ++axis) {
      FusedCase c = one;
      c.norm = norm, c.axis = axis, c.groups = norm == Norm::group ? 3 : 1;
      all.push_back(c);
      c.name = "arithmetic kinds", c.first = First::arithmetic, c.inputs = 2, c.s = picture(3, 6, 5, 4);
      all.push_back(c);
    }
  }
  FusedCase layer = {"fully connected, layer", First::fully_connected, matrix(6, 7, 24), 1, Norm::layer, 1, 0};
  all.push_back(layer);
  return all;
}

std::string text(const FusedCase& c) {
  return std::string(c.name) + ", " + c.norm_case().text();
}

// The composition of the two references is the derivative of the composed function.
TEST(FusedReference, GradientsAreTheDerivatives) {
  for (const FusedCase& c : cases()) {
    if (c.x_count() > 500) continue;  // differences of every element
    SCOPED_TRACE(text(c));
    const FusedData d(c, 5);
    Doubles x[3] = {widen(d.x[0]), widen(d.x[1]), widen(d.x[2])};
    Doubles w = widen(d.w), b = widen(d.b), gamma = widen(d.gamma), beta = widen(d.beta), dy = widen(d.dy);
    const auto loss = [&] {
      const auto y = ref::normalization_forward(c.norm_case(), fused_middle(c, x, w, b), gamma, beta).y;
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
      return sum;
    };
    const auto want = fused_backward(c, x, w, b, gamma, beta, dy);
    const auto check = [&](Doubles& variable, const Doubles& gradient, const char* name) {
      const auto numeric = central_differences(variable, [&](const Doubles& v) {
        const Doubles old = variable;
        variable = v;
        const double value = loss();
        variable = old;
        return value;
      });
      EXPECT_LE(gradient_error(gradient, numeric), 1e-6) << name;
    };
    for (size_t k = 0; k < c.inputs; ++k) check(x[k], want.dx[k], "dx");
    check(gamma, want.dgamma, "dgamma");
    check(beta, want.dbeta, "dbeta");
    if (c.first != First::arithmetic) check(w, want.dw, "dw");
  }
}

// Section 6: fully connected with the identity matrix, then batch normalization; and the same by addition.
TEST(Fused, Vectors) {
  for (const bool adds : {false, true}) {
    FusedCase c = {"vectors", First::fully_connected, matrix(2, 2, 2)};
    FusedData d(c, 1);
    d.x[0] = {1, 2, 3, 4}, d.w = {1, 0, 0, 1}, d.b = {0, 0}, d.gamma = {1, 1}, d.beta = {0, 0}, d.dy = {1, 0, 0, 2};
    if (adds) {
      c.first = First::arithmetic, c.inputs = 2, c.s = picture(2, 2, 1, 1);
      d.x[0] = {0.5f, 1, 1, 2}, d.x[1] = {0.5f, 1, 2, 2};
    }
    FusedLayer layer(c, d);
    layer.normalization.epsilon = 0;
    layer.arithmetic.arithmetic_function = BNNSArithmeticAdd;
    const FusedResults r = train_fused(layer, d);
    const float y[] = {-1, -1, 1, 1}, dbeta[] = {1, 2}, dgamma[] = {-1, 2};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(r.y[i], y[i], 1e-6);
      EXPECT_NEAR(r.dx[0][i], 0, 1e-6);
      EXPECT_NEAR(adds ? r.dx[1][i] : r.dw[i], 0, 1e-6);
    }
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(r.dbeta[i], dbeta[i], 1e-6);
      EXPECT_NEAR(r.dgamma[i], dgamma[i], 1e-6);
      EXPECT_NEAR(adds ? 0 : r.db[i], 0, 1e-6);
    }
  }
}

// y within some eps of x^ and gradients within some eps of the largest: sums of both stages, of some hundred terms
// each.
constexpr double kUnits = 256 * 0x1p-23;  // of the largest value, or of the sum of the absolute terms

TEST(Fused, EqualsTheReference) {
  for_each_isa([&] {
    for (const FusedCase& c : cases()) {
      SCOPED_TRACE(text(c));
      const FusedData d(c, 7);
      const Doubles x[3] = {widen(d.x[0]), widen(d.x[1]), widen(d.x[2])};
      FusedLayer layer(c, d);
      const FusedResults got = train_fused(layer, d);
      const auto forward = ref::normalization_forward(c.norm_case(), fused_middle(c, x, widen(d.w), widen(d.b)),
                                                      widen(d.gamma), widen(d.beta));
      const auto want = fused_backward(c, x, widen(d.w), widen(d.b), widen(d.gamma), widen(d.beta), widen(d.dy));
      EXPECT_LE(gradient_error(forward.y, widen(got.y)), kUnits) << "y";
      for (size_t k = 0; k < c.inputs; ++k)
        EXPECT_LE(gradient_error(want.dx[k], widen(got.dx[k])), kUnits) << "dx" << k;
      EXPECT_LE(gradient_error(want.dbeta, widen(got.dbeta)), kUnits) << "dbeta";
      EXPECT_LE(gradient_error(want.dgamma, widen(got.dgamma)), kUnits) << "dgamma";
      if (c.first != First::arithmetic) {
        // A normalization takes back the scale and shift of what it gets, so these sums may cancel.
        EXPECT_TRUE(within(got.dw, want.dw, want.dw.size(), [&](size_t i) { return kUnits * want.dw_size[i]; }))
            << "dw";
        EXPECT_TRUE(within(got.db, want.db, want.db.size(), [&](size_t i) { return kUnits * want.db_size[i]; }))
            << "db";
      }
      if (layer.moving_mean.empty()) continue;
      const auto mean = ref::moving_after(c.norm_case(), double(0.9f), Doubles(c.s.o, 0.25), forward.mean);
      const auto variance = ref::moving_after(c.norm_case(), double(0.9f), Doubles(c.s.o, 2.0), forward.variance);
      EXPECT_LE(gradient_error(mean, widen(layer.moving_mean)), kUnits) << "moving mean";
      EXPECT_LE(gradient_error(variance, widen(layer.moving_variance)), kUnits) << "moving variance";
    }
  });
}

TEST(Fused, SameBitsForAnyNumberOfThreads) {
  for_each_isa([&] {
    for (const FusedCase& c : cases()) {
      SCOPED_TRACE(text(c));
      const FusedData d(c, 9);
      FusedResults first;
      for (const size_t threads : kThreadCounts) {
        FusedLayer layer(c, d);
        layer.options.n_threads = threads;
        layer.normalization.activation.function = BNNSActivationFunctionRectifiedLinear;
        const FusedResults r = train_fused(layer, d);
        if (threads == 1) {
          first = r;
          continue;
        }
        EXPECT_TRUE(same_bits(first.y, r.y)) << threads;
        for (size_t k = 0; k < c.inputs; ++k) EXPECT_TRUE(same_bits(first.dx[k], r.dx[k])) << threads;
        EXPECT_TRUE(same_bits(first.dbeta, r.dbeta)) << threads;
        EXPECT_TRUE(same_bits(first.dgamma, r.dgamma)) << threads;
        if (c.first == First::arithmetic) continue;
        EXPECT_TRUE(same_bits(first.dw, r.dw)) << threads;
        EXPECT_TRUE(same_bits(first.db, r.db)) << threads;
      }
    }
  });
}

// Inference gives the bits of the two layers one after the other, with moving statistics and without.
TEST(Fused, InferenceEqualsTheTwoLayers) {
  for_each_isa([&] {
    for (const FusedCase& c : cases()) {
      if (c.inputs > 1) continue;
      SCOPED_TRACE(text(c));
      const FusedData d(c, 11);
      FusedLayer layer(c, d);
      layer.normalization.activation.function = BNNSActivationFunctionTanh;
      std::vector<float> fused(c.s.y_count(), poison()), middle(c.s.y_count()), y(c.s.y_count());
      const auto filter = layer.make();
      ASSERT_EQ(apply_fused(filter.get(), c, d, fused.data(), false), 0) << BNNSExtLastError();
      const FilterHandle second(
          BNNSFilterCreateLayerNormalization(layer.norm_type(), &layer.normalization, &layer.options),
          &BNNSFilterDestroy);
      const void* in = d.x[0].data();
      if (c.first == First::arithmetic) {
        const FilterHandle first(BNNSFilterCreateLayerArithmetic(&layer.arithmetic, &layer.options),
                                 &BNNSFilterDestroy);
        const size_t stride = 0;
        ASSERT_EQ(BNNSArithmeticFilterApplyBatch(first.get(), c.n(), 1, &in, &stride, middle.data(), 0), 0);
      } else {
        const FilterHandle first(c.first == First::fully_connected
                                     ? BNNSFilterCreateLayerFullyConnected(&layer.fully_connected, &layer.options)
                                 : c.s.transposed
                                     ? BNNSFilterCreateLayerTransposedConvolution(&layer.convolution, &layer.options)
                                     : BNNSFilterCreateLayerConvolution(&layer.convolution, &layer.options),
                                 &BNNSFilterDestroy);
        ASSERT_EQ(BNNSFilterApplyBatch(first.get(), c.n(), in, 0, middle.data(), 0), 0);
      }
      ASSERT_EQ(BNNSNormalizationFilterApplyBatch(second.get(), c.n(), middle.data(), 0, y.data(), 0, false), 0);
      if (!layer.moving_mean.empty()) {
        EXPECT_TRUE(same_bits(fused, y));
      } else {
        EXPECT_LE(gradient_error(widen(y), widen(fused)), kUnits);  // statistics of other parts
      }
    }
  });
}

// A quantizer as second stage has the bits of the layer and then BNNSDirectApplyQuantizer.
TEST(Fused, QuantizerEqualsTheTwoSteps) {
  for_each_isa([&] {
    for (const FusedCase& c : cases()) {
      if (c.first == First::arithmetic || c.norm != Norm::batch) continue;
      SCOPED_TRACE(text(c));
      FusedData d(c, 21);
      FusedLayer layer(c, d);
      Random random(22);
      std::vector<float> scale = random.normals(c.s.o, 20), bias = random.normals(c.s.o, 5), middle(c.s.y_count());
      auto q = quantizer(layer, BNNSDataTypeInt8, scale.data(), bias.data());
      const BNNSFilterType types[] = {layer.first_type(), BNNSQuantization};
      const void* layers[] = {layer.first_layer(), &q};
      const FilterHandle fused(BNNSFilterCreateFusedLayer(2, types, layers, &layer.options), &BNNSFilterDestroy);
      ASSERT_TRUE(fused) << BNNSExtLastError();
      std::vector<int8_t> got(c.s.y_count(), 1), want(c.s.y_count(), 2);
      ASSERT_EQ(BNNSFusedFilterApplyBatch(fused.get(), c.n(), d.x[0].data(), 0, got.data(), 0, false), 0)
          << BNNSExtLastError();
      const FilterHandle first(
          c.first == First::fully_connected ? BNNSFilterCreateLayerFullyConnected(&layer.fully_connected, nullptr)
          : c.s.transposed                  ? BNNSFilterCreateLayerTransposedConvolution(&layer.convolution, nullptr)
                                            : BNNSFilterCreateLayerConvolution(&layer.convolution, nullptr),
          &BNNSFilterDestroy);
      ASSERT_EQ(BNNSFilterApplyBatch(first.get(), c.n(), d.x[0].data(), 0, middle.data(), 0), 0);
      q.i_desc.data = middle.data(), q.o_desc.data = want.data();
      const size_t sample = c.s.y_count() / c.n();
      ASSERT_EQ(BNNSDirectApplyQuantizer(&q, nullptr, c.n(), sample, sample), 0) << BNNSExtLastError();
      EXPECT_EQ(got, want);
    }
  });
}

// Entries of delta_parameters may be NULL, and so may the array; flags decide between set and add.
TEST(Fused, GradientsAreOptionalAndAccumulate) {
  const FusedCase c = {"optional", First::convolution, shape(2, 3, 6, 7, 4, 3, 1, 1)};
  const FusedData d(c, 13);
  FusedLayer layer(c, d);
  const FusedResults want = train_fused(layer, d);
  const auto filter = layer.make();
  std::vector<float> y(c.s.y_count());
  ASSERT_EQ(apply_fused(filter.get(), c, d, y.data(), true), 0);
  auto dy = layer.y_descriptor(const_cast<float*>(d.dy.data()));
  for (unsigned mask = 0; mask < 32; ++mask) {
    const auto fresh = [](size_t n) { return std::vector<float>(n, 1.0f); };
    std::vector<float> dx = fresh(c.x_count()), dw = fresh(c.s.w_count()), db = fresh(c.s.o), dbeta = db, dgamma = db;
    auto dx_desc = layer.x_descriptor(dx.data()), dw_desc = layer.convolution.w_desc,
         db_desc = vector_descriptor(c.s.o, db.data()), dbeta_desc = vector_descriptor(c.s.o, dbeta.data()),
         dgamma_desc = vector_descriptor(c.s.o, dgamma.data());
    dw_desc.data = dw.data();
    for (auto* delta : {&dx_desc, &dw_desc, &db_desc, &dbeta_desc, &dgamma_desc}) {
      delta->flags = BNNSNDArrayFlagBackpropAccumulate;
    }
    BNNSNDArrayDescriptor* parameters[] = {mask & 1 ? &dw_desc : nullptr, mask & 2 ? &db_desc : nullptr,
                                           mask & 4 ? &dbeta_desc : nullptr, mask & 8 ? &dgamma_desc : nullptr};
    const bool input = mask & 16;
    ASSERT_EQ(BNNSFusedFilterApplyBackwardBatch(filter.get(), 2, d.x[0].data(), 0, input ? &dx_desc : nullptr, 0,
                                                nullptr, 0, &dy, 0, mask == 16 ? nullptr : parameters),
              0)
        << BNNSExtLastError();
    const auto check = [&](const std::vector<float>& got, const std::vector<float>& gradient, bool wanted) {
      for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], wanted ? 1.0f + gradient[i] : 1.0f) << mask;
    };
    check(dw, want.dw, mask & 1);
    check(db, want.db, mask & 2);
    check(dbeta, want.dbeta, mask & 4);
    check(dgamma, want.dgamma, mask & 8);
    check(dx, want.dx[0], input);
  }
}

// One filter, many threads: training passes wait for each other, inference does not tear.
TEST(Fused, ManyThreadsShareAFilter) {
  const FusedCase c = {"shared", First::convolution, shape(2, 3, 9, 9, 4, 3, 1, 1)};
  const FusedData d(c, 15);
  FusedLayer layer(c, d);
  layer.normalization.momentum = 1;  // moving statistics stay
  const auto filter = layer.make();
  std::vector<float> want(c.s.y_count()), trained(c.s.y_count());
  ASSERT_EQ(apply_fused(filter.get(), c, d, want.data(), false), 0);
  ASSERT_EQ(apply_fused(filter.get(), c, d, trained.data(), true), 0);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<float> y(c.s.y_count());
      for (int i = 0; i < 20; ++i) {
        const bool training = t % 2 == 0;
        if (apply_fused(filter.get(), c, d, y.data(), training) != 0 || y != (training ? trained : want)) ++wrong;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace bnns
