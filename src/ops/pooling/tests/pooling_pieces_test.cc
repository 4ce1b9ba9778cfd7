// 16-bit images go through the kernels of f32 in pieces: groups of planes, or bands of rows. What comes out is what f32
// gives for the same numbers, rounded once, wherever the pieces end.

#include <limits>

#include "src/core/half.h"
#include "src/ops/pooling/tests/pooling_testing.h"

namespace bnns::testing {
namespace {

constexpr BNNSDataType kHalves[] = {BNNSDataTypeFloat16, BNNSDataTypeBFloat16};

uint16_t narrow(BNNSDataType type, float v) {
  return type == BNNSDataTypeFloat16 ? float_to_half(v) : float_to_bfloat16(v);
}
float widened(BNNSDataType type, uint16_t v) {
  return type == BNNSDataTypeFloat16 ? half_to_float(v) : bfloat16_to_float(v);
}
// Numbers of the type, in both forms.
std::vector<uint16_t> narrow_all(BNNSDataType type, std::vector<float>* values) {
  std::vector<uint16_t> stored(values->size());
  for (size_t i = 0; i < stored.size(); ++i) {
    stored[i] = narrow(type, (*values)[i]);
    (*values)[i] = widened(type, stored[i]);
  }
  return stored;
}
::testing::AssertionResult is_rounded(BNNSDataType type, const Guarded<uint16_t>& got, const std::vector<float>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] != narrow(type, want[i])) {
      return ::testing::AssertionFailure()
             << "element " << i << " of " << want.size() << ": " << widened(type, got[i]) << " from " << want[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// Both directions in a 16-bit type beside f32.
void compare(BNNSDataType type, Pool f, const PoolShape& s, size_t N, std::vector<float> x, std::vector<float> g,
             size_t threads, bool at_end) {
  const auto side = at_end ? Guarded<uint16_t>::Side::end : Guarded<uint16_t>::Side::begin;
  const auto x16 = narrow_all(type, &x), g16 = narrow_all(type, &g);
  const Results want = run(f, s, N, x, g, threads);
  PoolLayer layer(f, s);
  layer.options.n_threads = threads;
  layer.parameters.i_desc.data_type = layer.parameters.o_desc.data_type = type;
  const auto filter = layer.make();
  Guarded<uint16_t> xs(x16, side), gs(g16, side), ys(N * s.small(), side), dxs(N * s.large(), side);
  Guarded<size_t> index(N * s.small());
  const auto poisoned = [](Guarded<uint16_t>& to) { std::fill_n(to.data(), to.size(), uint16_t(0x7FFF)); };
  auto dx = large_descriptor(s, dxs.data(), type), dy = small_descriptor(s, gs.data(), type);
  const auto backward = [&](const void* in, size_t* indices) {
    poisoned(dxs);
    return BNNSPoolingFilterApplyBackwardBatch(filter.get(), N, in, 0, &dx, 0, nullptr, 0, &dy, 0, nullptr, indices, 0);
  };
  poisoned(ys);
  ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), N, xs.data(), 0, ys.data(), 0, nullptr, 0), 0);
  EXPECT_TRUE(is_rounded(type, ys, want.y)) << "y";
  ASSERT_EQ(backward(xs.data(), nullptr), 0) << BNNSExtLastError();
  EXPECT_TRUE(is_rounded(type, dxs, want.dx)) << "dx";
  if (f != Pool::max) return;
  poisoned(ys);
  ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), N, xs.data(), 0, ys.data(), 0, index.data(), 0), 0);
  EXPECT_TRUE(is_rounded(type, ys, want.y)) << "y with indices";
  EXPECT_TRUE(std::equal(want.index.begin(), want.index.end(), index.data())) << "indices";
  ASSERT_EQ(backward(nullptr, index.data()), 0) << BNNSExtLastError();
  EXPECT_TRUE(is_rounded(type, dxs, want.dx_by_index)) << "dx by index";
}

PoolShape rectangle(long C, long W, long H, long k, long s, long p) {
  PoolShape shape = square(C, W, k, s, p);
  shape.H = H;
  shape.OH = (H + 2 * p - k) / s + 1;
  return shape;
}

// Several planes a piece with a rest, one plane, bands of a plane, and rows too long for either.
std::vector<std::pair<PoolShape, size_t>> problems() {
  std::vector<std::pair<PoolShape, size_t>> list;
  for (const auto& [k, s, p] : {std::array<long, 3>{2, 2, 0}, {3, 2, 1}, {3, 2, 0}, {3, 1, 1}, {5, 3, 2}, {2, 1, 0}}) {
    list.push_back({square(7, 13, k, s, p), 5});
    list.push_back({rectangle(2, 46, 47, k, s, p), 2});
    list.push_back({rectangle(1, 112, 113, k, s, p), 2});
    list.push_back({rectangle(1, 14, 700, k, s, p), 1});
    list.push_back({rectangle(1, 33, 301, k, s, p), 1});
    list.push_back({rectangle(1, 530, 41, k, s, p), 1});
    list.push_back({overhanging(rectangle(1, 131, 77, k, s, p)), 1});
  }
  list.push_back({rectangle(1, 1500, 20, 3, 2, 1), 1});
  list.push_back({square(150, 7, 7, 1), 3});  // one window a plane
  list.push_back({square(3, 90, 90, 1), 1});
  PoolShape dilated = rectangle(1, 120, 90, 2, 1, 0);
  dilated.dx = dilated.dy = 3, dilated.OW = 117, dilated.OH = 87;
  list.push_back({dilated, 1});
  return list;
}

TEST(PoolingStage, HalvesAreRoundedF32WhereverPiecesEnd) {
  for_each_isa([] {
    Random random(31);
    for (const auto& [s, N] : problems()) {
      for (const Pool f : kPools) {
        for (const BNNSDataType type : kHalves) {
          SCOPED_TRACE(text(s) + " function " + std::to_string(int(f)) + " type " + std::to_string(unsigned(type)));
          compare(type, f, s, N, random.normals(N * s.large()), random.normals(N * s.small()), 1 + random.below(3),
                  random.below(2));
          if (HasFailure()) return;
        }
      }
    }
  });
}

// Ties, NaN, infinities and numbers that are subnormal in f16. No -0: a maximum of 0 has the sign of either.
TEST(PoolingStage, SpecialNumbers) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {0, 0, 1, 1, 2, -1, 0x1p-24f, 0x1.8p-120f, 60000, inf, -inf, nan};
  for_each_isa([&] {
    Random random(32);
    for (const auto& [s, N] : problems()) {
      if (s.large() > 6000) continue;
      for (const BNNSDataType type : kHalves) {
        SCOPED_TRACE(text(s) + " type " + std::to_string(unsigned(type)));
        std::vector<float> x(N * s.large()), g(N * s.small());
        const size_t most = random.below(2) ? 9 : std::size(values);
        for (float& v : x) v = values[random.below(most)];
        for (float& v : g) v = values[random.below(9)];
        compare(type, Pool::max, s, N, x, g, 1, true);
        if (HasFailure()) return;
      }
    }
  });
}

// Large enough for non-temporal stores, from addresses that are not the beginning of a line.
TEST(PoolingStage, LargeTensors) {
  for (const PoolShape& s : {square(3, 200, 2, 2), square(3, 203, 3, 2, 1), square(60, 44, 3, 1, 1)}) {
    const size_t N = 2200000 / s.large() + 1;
    Random random(33);
    const auto x = random.normals(N * s.large()), g = random.normals(N * s.small());
    for (const Pool f : {Pool::max, Pool::average_exclude, Pool::l2}) {
      for (const BNNSDataType type : kHalves) {
        SCOPED_TRACE(text(s) + " function " + std::to_string(int(f)) + " type " + std::to_string(unsigned(type)));
        compare(type, f, s, N, x, g, 2, true);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace bnns::testing
