// Tile: documented numbers, the reference on every instruction set, thread count, layout and type, properties,
// refusals.

#include "src/ops/tile/tile.h"

#include <functional>
#include <numeric>

#include "src/ops/tile/tile_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Sizes = std::vector<size_t>;

// ---- 1. documented ----------------------------------------------------------------------------------------------

TEST(Tile, DocumentedBackward) {
  // dy is two copies of {1, 2, 3}, one of them times ten.
  float dy[6] = {1, 2, 3, 10, 20, 30}, dx[3];
  auto dx_desc = vector_descriptor(3, dx), dy_desc = vector_descriptor(6, dy);
  ASSERT_EQ(BNNSTileBackward(&dx_desc, &dy_desc, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(dx, dx + 3), (std::vector<float>{11, 22, 33}));
  // A matrix tiled 2 x 3 and summed back is six times itself, in every matrix layout.
  for (auto layout : {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutColumnMajorMatrix, BNNSDataLayout2DFirstMajor,
                      BNNSDataLayout2DLastMajor}) {
    float m[6] = {1, 2, 3, 4, 5, 6}, tiled[36], back[6];
    auto x = descriptor(layout, {2, 3}, m), y = descriptor(layout, {4, 9}, tiled), b = descriptor(layout, {2, 3}, back);
    ASSERT_EQ(BNNSTile(&x, &y, nullptr), 0) << BNNSExtLastError();
    ASSERT_EQ(BNNSTileBackward(&b, &y, nullptr), 0) << BNNSExtLastError();
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(back[i], 6 * m[i]);
  }
}

// K35: FirstMajor has its last index fastest, in tiles too.
TEST(Tile, FirstMajorFollowsItsLayout) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[12];
  auto in = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, x), out = descriptor(BNNSDataLayout2DFirstMajor, {2, 6}, y);
  ASSERT_EQ(BNNSTile(&in, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 12), (std::vector<float>{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
}

TEST(Tile, ReferenceGradient) {
  const Sizes in = {2, 3}, out = {6, 6};
  Random random(1);
  const auto x = random_normals(&random, 6), g = random_normals(&random, 36);
  const auto loss = [&](const std::vector<double>& at) {
    const auto y = ref::tile(in, out, at);
    return std::inner_product(y.begin(), y.end(), g.begin(), 0.0);
  };
  EXPECT_LE(gradient_error(ref::tile_backward(in, out, g), central_differences(x, loss)), 1e-7);
}

// ---- 2. against the reference -----------------------------------------------------------------------------------

TEST(Tile, BC15_BC33_LayoutsStridesTypes) {
  struct Case {
    BNNSDataLayout from, to;
    Sizes in, out;
  };
  const Case cases[] = {
      {BNNSDataLayoutVector, BNNSDataLayoutVector, {1}, {67}},
      {BNNSDataLayoutVector, BNNSDataLayoutVector, {5}, {5 * 41}},
      {BNNSDataLayoutVector, BNNSDataLayoutVector, {33}, {33}},
      {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix, {3, 7}, {12, 14}},
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {1, 1, 7}, {9, 6, 7}},  // one value per channel
      {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {20, 1, 1}, {20, 5, 4}},
      {BNNSDataLayout3DFirstMajor, BNNSDataLayout3DFirstMajor, {4, 1, 3}, {8, 5, 6}},
      {BNNSDataLayout3DFirstMajor, BNNSDataLayoutImageCHW, {4, 2, 3}, {8, 2, 9}},
      {BNNSDataLayout8DLastMajor, BNNSDataLayout8DFirstMajor, {2, 1, 2, 1, 1, 2, 1, 2}, {4, 2, 2, 3, 1, 4, 2, 4}},
  };
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16,
                                BNNSDataTypeInt8,    BNNSDataTypeInt64,   BNNSDataTypeBoolean};
  for_each_isa([&] {
    for (const Case& c : cases) {
      for (BNNSDataType type : types) {
        for (unsigned gaps = 0; gaps < 4; ++gaps) {
          SCOPED_TRACE("layout " + std::to_string(c.from) + " type " + std::to_string(type) + " gaps " +
                       std::to_string(gaps));
          LayoutTensor x(c.from, c.in, type, gaps & 1 ? 2 : 1, gaps & 1 ? 3 : 0);
          LayoutTensor y(c.to, c.out, type, gaps & 2 ? 3 : 1, gaps & 2 ? 1 : 0);
          std::vector<double> numbers(x.count());
          for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = double(i % (type == BNNSDataTypeBoolean ? 2 : 120));
          fill(&x, numbers);
          auto x_desc = x.descriptor(), y_desc = y.descriptor();
          ASSERT_EQ(BNNSTile(&x_desc, &y_desc, nullptr), 0) << BNNSExtLastError();
          ASSERT_TRUE(y.gaps_untouched());
          ASSERT_EQ(read(y), ref::tile(c.in, c.out, numbers));
          if (!is_float(type)) continue;
          Random random(gaps);
          const auto g = random_integers(&random, y.count(), 1);
          fill(&y, g);
          LayoutTensor dx(c.from, c.in, BNNSDataTypeFloat32, gaps & 2 ? 2 : 1, gaps & 1);
          auto dx_desc = dx.descriptor();
          ASSERT_EQ(BNNSTileBackward(&dx_desc, &y_desc, nullptr), 0) << BNNSExtLastError();
          ASSERT_TRUE(dx.gaps_untouched());
          auto want = ref::tile_backward(c.in, c.out, g);
          ASSERT_EQ(read(dx), want);
          dx_desc.flags = BNNSNDArrayFlagBackpropAccumulate;  // BC14
          ASSERT_EQ(BNNSTileBackward(&dx_desc, &y_desc, nullptr), 0);
          for (double& v : want) v *= 2;
          ASSERT_EQ(read(dx), want);
        }
      }
    }
  });
}

TEST(Tile, BC53_SameBitsForAnyThreadCount) {
  const Sizes in = {31, 1, 40}, out = {31 * 4, 50, 80};
  Random random(3);
  auto x = random.normals(count_of(in)), dy = random.normals(count_of(out));
  for_each_isa([&] {
    std::vector<float> want, want_dx;
    for (size_t threads : kThreadCounts) {
      BNNSFilterParameters options = {};
      options.n_threads = threads;
      std::vector<float> y(count_of(out), poison()), dx(x.size(), poison());
      auto x_desc = descriptor(BNNSDataLayoutImageCHW, in, x.data()), dx_desc = x_desc;
      auto y_desc = descriptor(BNNSDataLayoutImageCHW, out, y.data()), dy_desc = y_desc;
      dx_desc.data = dx.data(), dy_desc.data = dy.data();
      ASSERT_EQ(BNNSTile(&x_desc, &y_desc, &options), 0) << BNNSExtLastError();
      ASSERT_EQ(BNNSTileBackward(&dx_desc, &dy_desc, &options), 0) << BNNSExtLastError();
      if (want.empty()) {
        want = y, want_dx = dx;
        ASSERT_EQ(to_double(y), ref::tile(in, out, to_double(x)));
        const auto gradient = ref::tile_backward(in, out, to_double(dy));
        std::vector<double> size = to_double(dy);
        for (double& v : size) v = std::fabs(v);
        const auto sum = ref::tile_backward(in, out, size);
        // 4 * 50 * 2 copies, one rounding each
        ASSERT_TRUE(within(dx, gradient, dx.size(), [&](size_t i) { return 400 * 0x1p-24 * sum[i]; }));
      }
      ASSERT_TRUE(same_bits(y, want) && same_bits(dx, want_dx)) << threads << " threads";
    }
  });
}

// ---- 3. properties ----------------------------------------------------------------------------------------------

TEST(Tile, AdjointIdentityOnRandomShapes) {
  Random random(5);
  for (int round = 0; round < 800; ++round) {
    const size_t rank = 1 + random.below(5);
    Sizes in(rank), out(rank);
    for (size_t k = 0; k < rank; ++k) {
      in[k] = 1 + random.below(rank < 3 ? 30 : 4);
      out[k] = in[k] * (1 + random.below(2) * random.below(rank < 3 ? 20 : 4));
    }
    const auto from = generic_layout(rank, random.below(2)), to = generic_layout(rank, random.below(2));
    auto x = random.integers(count_of(in)), g = random.integers(count_of(out));
    std::vector<float> y(g.size()), dx(x.size());
    auto x_desc = descriptor(from, in, x.data()), dx_desc = descriptor(from, in, dx.data());
    auto y_desc = descriptor(to, out, y.data()), g_desc = descriptor(to, out, g.data());
    ASSERT_EQ(BNNSTile(&x_desc, &y_desc, nullptr), 0) << BNNSExtLastError();
    ASSERT_EQ(BNNSTileBackward(&dx_desc, &g_desc, nullptr), 0) << BNNSExtLastError();
    double left = 0, right = 0;
    for (size_t i = 0; i < y.size(); ++i) left += double(y[i]) * g[i];
    for (size_t i = 0; i < x.size(); ++i) right += double(x[i]) * dx[i];
    ASSERT_EQ(left, right) << "round " << round;
    if (from == to && !(from & 1)) {
      ASSERT_EQ(to_double(y), ref::tile(in, out, to_double(x)));
    }
  }
}

// ---- 4. refusals ------------------------------------------------------------------------------------------------

TEST(TileMisuse, BC34_BC37_CallsSayWhyAndWriteNothing) {
  struct Call {
    std::vector<float> x = std::vector<float>(24, 3), y = std::vector<float>(24, 9);
    BNNSNDArrayDescriptor small = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, nullptr);
    BNNSNDArrayDescriptor large = descriptor(BNNSDataLayout2DFirstMajor, {4, 3}, nullptr);
    BNNSNDArrayDescriptor *small_pointer = &small, *large_pointer = &large;
    BNNSFilterParameters options = {};
  };
  struct Refusal {
    std::function<void(Call&)> spoil;
    const char *forward, *backward;
  };
  const Refusal refusals[] = {
      {[](Call& c) { c.small_pointer = nullptr; }, "input is NULL", "in_delta is NULL"},
      {[](Call& c) { c.large_pointer = nullptr; }, "output is NULL", "out_delta is NULL"},
      {[](Call& c) { c.small.data = nullptr; }, "input.data is NULL", "in_delta.data is NULL"},
      {[](Call& c) { c.large.data = nullptr; }, "output.data is NULL", "out_delta.data is NULL"},
      {[](Call& c) { c.large.size[0] = 3; }, "output.size[0] is 3, expected a multiple of input.size[0] = 2",
       "out_delta.size[0] is 3"},
      {[](Call& c) { c.large = vector_descriptor(6, c.large.data); }, "output has rank 1, expected 2", "rank"},
      {[](Call& c) { c.large.size[0] = 0; }, "output.size[0] is 0", "out_delta.size[0] is 0"},
      {[](Call& c) { c.small.size[0] = SIZE_MAX; }, "input", "in_delta"},
      {[](Call& c) { c.large.data_type = BNNSDataTypeInt32; }, "output is i32", "out_delta has type i32"},
      {[](Call& c) { c.small.data = c.large.data; }, "overlap", "overlap"},
      {[](Call& c) { c.small.layout = BNNSDataLayout(4); }, "input.layout", "in_delta.layout"},
      {[](Call& c) { c.options.flags = 2; }, "flags is 0x2", "flags is 0x2"},
  };
  for (const Refusal& refusal : refusals) {
    for (bool backward : {false, true}) {
      Call call;
      call.small.data = backward ? call.y.data() : call.x.data();
      call.large.data = backward ? call.x.data() : call.y.data();
      refusal.spoil(call);
      EXPECT_EQ(backward ? BNNSTileBackward(call.small_pointer, call.large_pointer, &call.options)
                         : BNNSTile(call.small_pointer, call.large_pointer, &call.options),
                -1);
      EXPECT_TRUE(refused_because({backward ? refusal.backward : refusal.forward}));
      EXPECT_EQ(call.x, std::vector<float>(24, 3));
      EXPECT_EQ(call.y, std::vector<float>(24, 9));
    }
  }
}

TEST(TileMisuse, BC42_FailingAllocations) {
  std::vector<float> dx(6, 7), dy(36, 1);
  auto dx_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, dx.data());
  auto dy_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 9}, dy.data());
  const BNNSFilterParameters options = Accountant::options();
  int failures = 0;
  for (;; ++failures) {
    Accountant::requests = 0;
    Accountant::fail_at = failures;
    if (BNNSTileBackward(&dx_desc, &dy_desc, &options) == 0) break;
    EXPECT_TRUE(refused_because({"out of memory"}));
    EXPECT_EQ(dx[0], 7);
    EXPECT_EQ(Accountant::live, 0);
  }
  EXPECT_EQ(failures, 1);  // scratch
  EXPECT_EQ(Accountant::live, 0);
}

}  // namespace
}  // namespace bnns::testing
