// UnMax: forward and backward against the reference, by the indices of a Max layer and by any others.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/engine/activation/activation.h"
#include "src/ops/pooling/tests/pooling_testing.h"
#include "tests/support/layouts.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// The example of Apple's documentation: what Max kept comes back to its place.
TEST(UnMax, KeepsTheMaxima) {
  const PoolShape s = square(1, 4, 2, 1);
  const float x[] = {1, 1, 1, 9, 1, 9, 9, 1, 1, 1, 1, 1, 1, 9, 1, 9};
  float y[9], u[16];
  size_t index[9];
  ASSERT_EQ(BNNSPoolingFilterApplyBatch(PoolLayer(Pool::max, s).make().get(), 1, x, 0, y, 0, index, 0), 0);
  const auto unmax = PoolLayer(BNNSPoolingFunctionUnMax, s).make();
  ASSERT_EQ(BNNSPoolingFilterApplyBatch(unmax.get(), 1, y, 0, u, 0, index, 0), 0) << BNNSExtLastError();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(u[i], x[i] == 9 ? 9 : 0) << i;
}

struct UnMaxCall {
  PoolShape s;
  size_t N;
  std::vector<size_t> index;
  bool wide = true;
  size_t threads = 0;

  std::vector<float> forward(const std::vector<float>& x) const {
    PoolLayer layer(BNNSPoolingFunctionUnMax, s);
    layer.options.n_threads = threads;
    const auto filter = layer.make();
    Guarded<float> xs(x), us(N * s.large());
    std::fill_n(us.data(), us.size(), poison());
    Guarded<uint64_t> wide_index(std::vector<uint64_t>(index.begin(), index.end()));
    Guarded<uint32_t> narrow_index(std::vector<uint32_t>(index.begin(), index.end()));
    EXPECT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), N, xs.data(), 0, us.data(), 0,
                                            wide ? BNNSDataTypeUInt64 : BNNSDataTypeUInt32,
                                            wide ? static_cast<void*>(wide_index.data()) : narrow_index.data(), 0),
              0)
        << BNNSExtLastError();
    return {us.data(), us.data() + us.size()};
  }
  std::vector<float> backward(const std::vector<float>& g) const {
    PoolLayer layer(BNNSPoolingFunctionUnMax, s);
    layer.options.n_threads = threads;
    const auto filter = layer.make();
    Guarded<float> gs(g), dxs(N * s.small());
    std::fill_n(dxs.data(), dxs.size(), poison());
    Guarded<uint64_t> wide_index(std::vector<uint64_t>(index.begin(), index.end()));
    Guarded<uint32_t> narrow_index(std::vector<uint32_t>(index.begin(), index.end()));
    auto dx = small_descriptor(s, dxs.data()), dy = large_descriptor(s, gs.data());
    EXPECT_EQ(
        BNNSPoolingFilterApplyBackwardBatchEx(filter.get(), N, nullptr, 0, &dx, 0, nullptr, 0, &dy, 0, nullptr,
                                              wide ? BNNSDataTypeUInt64 : BNNSDataTypeUInt32,
                                              wide ? static_cast<void*>(wide_index.data()) : narrow_index.data(), 0),
        0)
        << BNNSExtLastError();
    return {dxs.data(), dxs.data() + dxs.size()};
  }
};

// Indices of a Max layer, random ones (with repeats: the last in raster order stays), and large planes.
TEST(UnMax, EqualsTheReference) {
  for_each_isa([] {
    Random random(21);
    for (int round = 0; round < 300; ++round) {
      UnMaxCall call;
      call.s = random_shape(random, round % 50 == 0 ? 150 : 20);
      call.N = 1 + random.below(2);
      call.wide = random.below(2);
      const size_t n = call.N * call.s.small(), pixels = size_t(call.s.H * call.s.W);
      if (round % 2) {
        call.index = ref::pool_forward(Pool::max, call.s, call.N, widen(random.normals(call.N * call.s.large()))).index;
      } else {
        for (size_t i = 0; i < n; ++i) call.index.push_back(random.below(pixels));
      }
      SCOPED_TRACE(text(call.s) + " round " + std::to_string(round));
      const auto x = random.normals(n), g = random.normals(call.N * call.s.large());
      const auto u = call.forward(x), dx = call.backward(g);
      EXPECT_TRUE(
          within(u, ref::unmax_forward(call.s, call.N, widen(x), call.index), u.size(), [](size_t) { return 0.0; }));
      EXPECT_TRUE(
          within(dx, ref::unmax_backward(call.s, call.N, widen(g), call.index), dx.size(), [](size_t) { return 0.0; }));
      for (const size_t threads : kThreadCounts) {
        call.threads = threads;
        EXPECT_TRUE(same_bits(u, call.forward(x)) && same_bits(dx, call.backward(g)));
      }
      if (HasFailure()) return;
    }
  });
}

// <U x, g> = <x, U' g> where no index repeats.
TEST(UnMax, AdjointIdentityOfThousandsOfProblems) {
  Random random(22);
  for (int round = 0; round < 1200; ++round) {
    UnMaxCall call;
    call.N = 1;
    call.s = random_shape(random, 12);
    const long pixels = call.s.H * call.s.W;
    call.s.OW = std::min(call.s.OW, pixels), call.s.OH = std::min(call.s.OH, pixels / call.s.OW);
    for (long c = 0; c < call.s.C; ++c) {  // a shuffle of the plane's pixels, the first OW * OH of them
      std::vector<size_t> all(static_cast<size_t>(pixels));
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
      call.index.insert(call.index.end(), all.begin(), all.begin() + call.s.OW * call.s.OH);
    }
    const auto x = random.integers(call.s.small()), g = random.integers(call.s.large());
    const auto u = call.forward(x), dx = call.backward(g);
    double left = 0, right = 0;
    for (size_t i = 0; i < u.size(); ++i) left += double(u[i]) * g[i];
    for (size_t i = 0; i < x.size(); ++i) right += double(x[i]) * dx[i];
    ASSERT_EQ(left, right) << text(call.s) << " round " << round;
  }
}

// y = act(u + b) everywhere; g = dy act'; dx(i) = g at its index; db = sum of g over the whole large image.
TEST(UnMax, BiasAndActivation) {
  const PoolShape s = square(2, 9, 2, 2);
  Random random(23);
  const auto x = random.normals(s.small());
  auto dy = random.normals(s.large());
  const auto index = ref::pool_forward(Pool::max, s, 1, widen(random.normals(s.large()))).index;
  const std::vector<float> bias = {0.5f, -0.5f};
  const size_t plane = size_t(s.H * s.W), small = size_t(s.OH * s.OW);
  std::vector<float> z(s.large());
  for (size_t i = 0; i < z.size(); ++i) z[i] = bias[i / plane];
  for (size_t i = 0; i < x.size(); ++i) z[i / small * plane + index[i]] = x[i] + bias[i / small];
  for (const auto function : {BNNSActivationFunctionIdentity, BNNSActivationFunctionTanh, BNNSActivationFunctionSiLU}) {
    PoolLayer layer(BNNSPoolingFunctionUnMax, s);
    layer.parameters.bias = vector_descriptor(2, const_cast<float*>(bias.data()));
    layer.parameters.activation.function = function;
    const auto filter = layer.make();
    const Activation activation = make_fused_activation(layer.parameters.activation, "test");
    std::vector<float> y(s.large()), want(s.large()), g(s.large()), dx(s.small(), 1.0f);
    activation_forward(activation, z.data(), want.data(), z.size());
    ASSERT_EQ(
        BNNSPoolingFilterApplyBatch(filter.get(), 1, x.data(), 0, y.data(), 0, const_cast<size_t*>(index.data()), 0), 0)
        << BNNSExtLastError();
    EXPECT_TRUE(same_bits(y, want));
    activation_backward_from_input(activation, z.data(), dy.data(), g.data(), g.size());
    if (has_derivative_from_output(activation))
      activation_backward_from_output(activation, y.data(), dy.data(), g.data(), g.size());
    float db[2];
    auto dx_desc = small_descriptor(s, dx.data()), dy_desc = large_descriptor(s, dy.data()),
         db_desc = vector_descriptor(2, db);
    dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
    ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                                  &db_desc, index.data(), 0),
              0)
        << BNNSExtLastError();
    for (size_t i = 0; i < dx.size(); ++i) EXPECT_EQ(dx[i], 1.0f + g[i / small * plane + index[i]]);
    for (size_t c = 0; c < 2; ++c) {
      double sum = 0, magnitude = 0;
      for (size_t i = 0; i < plane; ++i)
        sum += double(g[c * plane + i]), magnitude += std::fabs(double(g[c * plane + i]));
      EXPECT_NEAR(db[c], sum, 0x1p-22 * magnitude);
    }
  }
}

TEST(UnMax, TypesAndStrides) {
  const PoolShape s = square(2, 6, 2, 2);
  Random random(24);
  const auto x = random.integers(s.small()), g = random.integers(s.large());
  const auto index = ref::pool_forward(Pool::max, s, 1, widen(random.normals(s.large()))).index;
  const auto want = ref::unmax_forward(s, 1, widen(x), index), dx_want = ref::unmax_backward(s, 1, widen(g), index);
  for (const auto type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
    LayoutTensor xs(BNNSDataLayoutImageCHW, {size_t(s.OW), size_t(s.OH), size_t(s.C)}, type, 2, 1);
    LayoutTensor us(BNNSDataLayoutImageCHW, {size_t(s.W), size_t(s.H), size_t(s.C)}, type, 1, 3);
    LayoutTensor gs(BNNSDataLayoutImageCHW, us.size(), type, 2, 2), dxs(BNNSDataLayoutImageCHW, xs.size(), type, 1, 2);
    LayoutTensor indices(BNNSDataLayoutImageCHW, xs.size(), BNNSDataTypeUInt32, 2, 1);
    size_t i = 0;
    for_each_coordinate(xs.size(),
                        [&](const Coordinates& at) { xs.set(at, x[i]), indices.put_raw(at, uint32_t(index[i])), ++i; });
    i = 0;
    for_each_coordinate(gs.size(), [&](const Coordinates& at) { gs.set(at, g[i++]); });
    PoolLayer layer(BNNSPoolingFunctionUnMax, s);
    layer.parameters.i_desc = xs.descriptor(), layer.parameters.o_desc = us.descriptor();
    const auto filter = layer.make();
    ASSERT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), 1, xs.data(), 0, us.data(), 0, BNNSDataTypeUInt32,
                                            indices.data(), 0),
              0)
        << BNNSExtLastError();
    i = 0;
    for_each_coordinate(us.size(), [&](const Coordinates& at) { EXPECT_EQ(us.get(at), want[i++]); });
    auto dx = dxs.descriptor(), dy = gs.descriptor();
    ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(filter.get(), 1, nullptr, 0, &dx, 0, nullptr, 0, &dy, 0, nullptr,
                                                    BNNSDataTypeUInt32, indices.data(), 0),
              0)
        << BNNSExtLastError();
    i = 0;
    for_each_coordinate(dxs.size(), [&](const Coordinates& at) { EXPECT_EQ(dxs.get(at), dx_want[i++]); });
    EXPECT_TRUE(us.gaps_untouched() && dxs.gaps_untouched());
  }
}

}  // namespace
}  // namespace bnns
