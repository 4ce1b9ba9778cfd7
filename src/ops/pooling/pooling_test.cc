#include <gtest/gtest.h>
#include "src/ops/pooling/pooling_test_layer.h"
namespace bnns { namespace {
using namespace bnns::testing;
TEST(Quick, Random) {
  for_each_isa([&] {
  Random random(1);
  for (int round = 0; round < 4000; ++round) {
    const PoolShape s = random_shape(random, round % 2 ? 9 : 40);
    const size_t N = 1 + random.below(2);
    for (Pool f : kPools) {
      SCOPED_TRACE(text(s) + " f" + std::to_string(int(f)) + " round " + std::to_string(round));
      const auto x = random.integers(N * s.large());
      auto g = exact_gradients(random, N * s.small());
      const auto want = ref::pool_forward(f, s, N, widen(x));
      std::vector<double> mag;
      const auto dwant = ref::pool_backward(f, s, N, widen(x), widen(g), &mag);
      const auto filter = PoolLayer(f, s).make();
      ASSERT_TRUE(filter);
      Guarded<float> xg(x), yg(N * s.small()), gg(g), dxg(N * s.large());
      Guarded<size_t> ig(N * s.small());
      for (size_t i = 0; i < N*s.large(); ++i) dxg[i] = poison();
      ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), N, xg.data(), 0, yg.data(), 0, ig.data(), 0), 0) << BNNSExtLastError();
      auto bound = [&](size_t i) { return f == Pool::max ? 0.0 : 1e-6 * (1 + want.magnitude[i]); };
      ASSERT_TRUE(within(yg.data(), want.y, N * s.small(), bound));
      if (f == Pool::max) { for (size_t i = 0; i < N * s.small(); ++i) { ASSERT_EQ(ig[i], want.index[i]) << i; } }
      auto dxd = large_descriptor(s, dxg.data()), dyd = small_descriptor(s, gg.data());
      auto dbound = [&](size_t i) { return f == Pool::l2 ? 1e-5 * mag[i] : f == Pool::max ? 0.0 : 1e-6 * mag[i]; };
      ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), N, xg.data(), 0, &dxd, 0, nullptr, 0, &dyd, 0, nullptr, nullptr, 0), 0) << BNNSExtLastError();
      ASSERT_TRUE(within(dxg.data(), dwant, N * s.large(), dbound));
      if (f == Pool::max) {
        for (size_t i = 0; i < N*s.large(); ++i) dxg[i] = poison();
        ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), N, nullptr, 0, &dxd, 0, nullptr, 0, &dyd, 0, nullptr, ig.data(), 0), 0) << BNNSExtLastError();
        ASSERT_TRUE(within(dxg.data(), dwant, N * s.large(), dbound));
      }
    }
  } });
}
}}
