// Every entry of the tables of algorithms (pooling/implementations.h), by name: problems that it accepts, on every
// instruction set and number of threads, against the reference, in buffers that end at a page that faults.

#include <gtest/gtest.h>

#include "src/ops/pooling/implementations.h"
#include "src/ops/pooling/tests/pooling_testing.h"
#include "tests/support/implementations.h"

namespace bnns {
namespace {

using namespace bnns::testing;

struct Case {
  PoolShape s;
  size_t N;
};

PoolShape oblong(long C, long H, long W, long kh, long kw, long sy, long sx, long dilation = 1, long pad = 0) {
  PoolShape s;
  s.C = C, s.H = H, s.W = W, s.kh = kh, s.kw = kw, s.sy = sy, s.sx = sx, s.dx = s.dy = dilation;
  s.left = s.right = s.top = s.bottom = pad;
  s.OH = (H + 2 * pad - (kh - 1) * dilation - 1) / sy + 1;
  s.OW = (W + 2 * pad - (kw - 1) * dilation - 1) / sx + 1;
  return s;
}

// Small ones around the lengths of vectors, and one of each kind that several threads share.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list;
    for (const long size : {8, 17, 33}) {
      for (const PoolShape& s : one_of_each_kernel(2, size)) list.push_back({s, 1});
      list.push_back({square(2, size, 3, 1, 1), 2});
      list.push_back({square(1, size, 3, 2), 1});
      list.push_back({square(1, size, 5, 4, 2), 1});
      list.push_back({square(1, size, 4, 2, 1), 1});
      list.push_back({oblong(1, size + 6, size + 9, 3, 2, 2, 3, 2, 1), 1});
      list.push_back({oblong(1, size, 70, 1, 65, 1, 1), 1});
      list.push_back({oblong(1, size, 90, 2, 1, 1, 40), 1});
      list.push_back({oblong(1, size + 20, 70, size + 15, 3, 1, 2), 1});
    }
    list.push_back({square(20, 28, 2, 2), 8});
    list.push_back({square(40, 14, 3, 1, 1), 12});
    list.push_back({square(8, 64, 3, 2, 1), 4});
    list.push_back({square(6, 50, 3, 1, 1), 8});
    list.push_back({square(90, 7, 7, 1), 30});
    list.push_back({square(2, 200, 2, 2), 1});
    list.push_back({square(6, 60, 3, 3), 5});
    list.push_back({oblong(6, 60, 60, 3, 3, 1, 1, 2), 5});
    list.push_back({oblong(5, 60, 180, 4, 1, 3, 60), 2});
    return list;
  }();
  return all;
}

// Both passes of every case with the entries before `name` left out; returns how many runs of a pass were its own.
size_t force(const char* name, const std::string& before) {
  const Skip skip(before);
  size_t runs = 0;
  Random random(31);
  for (const auto& [s, N] : cases()) {
    for (const Pool f : kPools) {
      SCOPED_TRACE(std::string(name) + " " + text(s) + " function " + std::to_string(int(f)));
      const auto x = random.normals(N * s.large()), g = random.normals(N * s.small());
      Results one;
      {
        const CallRecord record;
        one = run(f, s, N, x, g, 1);
        if (!record.has(name)) continue;
        ++runs;
      }
      expect_reference(f, s, N, x, g, false, one);
      for (const size_t threads : kThreadCounts) {
        if (threads == 1 || s.large() * N < 40000) continue;  // less is one task
        const Results many = run(f, s, N, x, g, threads, Guarded<float>::Side::begin);
        EXPECT_TRUE(same_bits(one.y, many.y) && same_bits(one.dx, many.dx) && one.index == many.index) << threads;
        EXPECT_TRUE(same_bits(one.dx_by_index, many.dx_by_index)) << threads;
      }
      if (::testing::Test::HasFailure()) return runs;
    }
  }
  return runs;
}

template <class Entry, size_t N>
void force_all(const Entry (&table)[N]) {
  for (size_t k = 0; k < N; ++k) {
    size_t runs = 0;
    for_each_isa([&] { runs = force(table[k].name, names_before(table, k)); });  // the widest comes last
    EXPECT_GT(runs, 0u) << table[k].name << " was run by no problem";
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(PoolingImplementations, ForwardOneByOne) {
  force_all(kPoolingForward);
}

TEST(PoolingImplementations, BackwardOneByOne) {
  force_all(kPoolingBackward);
}

// Tables of one entry: what runs, and that leaving it out changes nothing.
TEST(PoolingImplementations, UnMax) {
  const Skip skip(kUnmaxForward[0].name);
  for_each_isa([] {
    Random random(32);
    for (const auto& [s, N] : {Case{square(2, 17, 3, 2, 1), 2}, Case{square(3, 300, 2, 2), 2}}) {
      const Results max = run(Pool::max, s, N, random.normals(N * s.large()), random.normals(N * s.small()), 0);
      const auto x = random.normals(N * s.small()), g = random.normals(N * s.large());
      for (const size_t threads : kThreadCounts) {
        PoolLayer layer(BNNSPoolingFunctionUnMax, s);
        layer.options.n_threads = threads;
        const auto filter = layer.make();
        EXPECT_STREQ(BNNSExtImplementation(filter.get(), BNNSExtPassForward, N), kUnmaxForward[0].name);
        EXPECT_STREQ(BNNSExtImplementation(filter.get(), BNNSExtPassInputGradient, N), kUnmaxBackward[0].name);
        Guarded<float> xs(x), gs(g), us(N * s.large()), dxs(N * s.small());
        Guarded<size_t> index(max.index);
        const CallRecord record;
        ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), N, xs.data(), 0, us.data(), 0, index.data(), 0), 0);
        auto dx = small_descriptor(s, dxs.data()), dy = large_descriptor(s, gs.data());
        ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), N, xs.data(), 0, &dx, 0, nullptr, 0, &dy, 0,
                                                      nullptr, index.data(), 0),
                  0);
        EXPECT_TRUE(record.has(kUnmaxForward[0].name));
        const auto exactly = [](size_t) { return 0.0; };
        EXPECT_TRUE(within(std::vector<float>(us.data(), us.data() + us.size()),
                           ref::unmax_forward(s, N, widen(x), max.index), us.size(), exactly));
        EXPECT_TRUE(within(std::vector<float>(dxs.data(), dxs.data() + dxs.size()),
                           ref::unmax_backward(s, N, widen(g), max.index), dxs.size(), exactly));
      }
    }
  });
}

// BNNSExtImplementation names what a call takes, 16-bit types too.
TEST(PoolingImplementations, AskedAndRunAreTheSame) {
  Random random(33);
  for (const auto& [s, N] : cases()) {
    if (s.large() * N > 20000) continue;
    for (const Pool f : kPools) {
      for (const BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16}) {
        PoolLayer layer(f, s);
        layer.parameters.i_desc.data_type = layer.parameters.o_desc.data_type = type;
        const auto filter = layer.make();
        std::vector<float> x(N * s.large()), y(N * s.small());
        const CallRecord forward;
        ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), N, x.data(), 0, y.data(), 0), 0) << BNNSExtLastError();
        EXPECT_TRUE(forward.has(BNNSExtImplementation(filter.get(), BNNSExtPassForward, N))) << text(s);
        auto dx = large_descriptor(s, x.data(), type), dy = small_descriptor(s, y.data(), type);
        std::vector<float> in(N * s.large());
        const CallRecord backward;
        ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), N, in.data(), 0, &dx, 0, nullptr, 0, &dy, 0,
                                                      nullptr, nullptr, 0),
                  0)
            << BNNSExtLastError();
        EXPECT_TRUE(backward.has(BNNSExtImplementation(filter.get(), BNNSExtPassInputGradient, N)))
            << text(s) << " " << BNNSExtImplementation(filter.get(), BNNSExtPassInputGradient, N);
      }
    }
  }
}

// 16-bit types in pieces and converted by the kernels: the same bits.
TEST(PoolingImplementations, ConvertedInPiecesOrByTheKernel) {
  for_each_isa([] {
    Random random(34);
    for (const auto& [s, N] : cases()) {
      if (s.large() * N > 20000) continue;
      PoolLayer layer(Pool::average_exclude, s);
      layer.parameters.i_desc.data_type = BNNSDataTypeBFloat16;
      const auto filter = layer.make();
      std::vector<uint16_t> x(N * s.large());
      for (uint16_t& v : x) v = uint16_t(bits(float(random.integer(-99, 99))) >> 16);
      Guarded<uint16_t> xs(x);
      std::vector<float> y[2];
      for (int k = 0; k < 2; ++k) {
        const Skip skip(k ? kConvertName : "");
        Guarded<float> ys(N * s.small());
        const CallRecord record;
        ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), N, xs.data(), 0, ys.data(), 0), 0) << BNNSExtLastError();
        EXPECT_TRUE(k == 0 || !record.has(kConvertName));
        y[k].assign(ys.data(), ys.data() + ys.size());
      }
      EXPECT_TRUE(same_bits(y[0], y[1])) << text(s);
    }
  });
}

TEST(PoolingImplementations, TablesInTheReadme) {
  const std::string readme = "src/ops/pooling/README.md";
  expect_table_in_readme(kPoolingForward, "forward", readme);
  expect_table_in_readme(kPoolingBackward, "backward", readme);
  expect_table_in_readme(kUnmaxForward, "UnMax forward", readme);
  expect_table_in_readme(kUnmaxBackward, "UnMax backward", readme);
  expect_table_in_readme(kPoolingWindows, "blocks of windows", readme);
}

}  // namespace
}  // namespace bnns
