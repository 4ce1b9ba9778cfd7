// Shuffle: hand-worked numbers, the reference on every instruction set, thread count and type, inverses, refusals.

#include "src/ops/shuffle/shuffle.h"

#include <functional>

#include "src/ops/shuffle/shuffle_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

constexpr auto kLayout = BNNSDataLayout4DFirstMajor;

TEST(Shuffle, HandWorked) {
  // Four channels of one pixel become one channel of 2 x 2; with two channels the two orders differ.
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8];
  auto in = descriptor(kLayout, {1, 8, 1, 1}, x), out = descriptor(kLayout, {1, 2, 2, 2}, y);
  ASSERT_EQ(BNNSShuffle(BNNSShuffleTypePixelShuffleNCHW, &in, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 8), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  ASSERT_EQ(BNNSShuffle(BNNSShuffleTypeDepthToSpaceNCHW, &in, &out, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 8), (std::vector<float>{1, 3, 5, 7, 2, 4, 6, 8}));
  // One channel, two pixels wide: 1 2 | 3 4 | 5 6 | 7 8 are the four channels.
  auto wide = descriptor(kLayout, {1, 4, 1, 2}, x), image = descriptor(kLayout, {1, 1, 2, 4}, y);
  ASSERT_EQ(BNNSShuffle(BNNSShuffleTypePixelShuffleNCHW, &wide, &image, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 8), (std::vector<float>{1, 3, 2, 4, 5, 7, 6, 8}));
}

// All four types against the reference: sizes, types, strides, guard pages; the inverse brings the input back.
TEST(Shuffle, BC18_BC33_MatchesReference) {
  for_each_isa([&] {
    for (size_t r : {1, 2, 3, 4, 5}) {
      for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeUInt8, BNNSDataTypeInt64}) {
        for (bool channel_outermost : {true, false}) {
          for (const auto& shape : {Coordinates{2, 3, 2, 35}, {1, 1, 4, 3}, {3, 2, 1, 64}}) {
            for (size_t gap : {0, 1}) {
              const size_t N = shape[0], C = shape[1], H = shape[2] * r, W = shape[3] * r;
              LayoutTensor deep(kLayout, {N, C * r * r, H / r, W / r}, type, 1, gap), back(kLayout, deep.size(), type);
              LayoutTensor space(kLayout, {N, C, H, W}, type, 1 + gap, 2 * gap);
              const auto at = [](size_t i, const Coordinates& s) {
                return Coordinates{i / s[3] / s[2] / s[1], i / s[3] / s[2] % s[1], i / s[3] % s[2], i % s[3]};
              };
              for (size_t i = 0; i < deep.count(); ++i) deep.set(at(i, deep.size()), double(i % 120));
              auto d = deep.descriptor(), s = space.descriptor(), b = back.descriptor();
              const auto to_space =
                  channel_outermost ? BNNSShuffleTypePixelShuffleNCHW : BNNSShuffleTypeDepthToSpaceNCHW;
              const auto to_depth =
                  channel_outermost ? BNNSShuffleTypePixelUnshuffleNCHW : BNNSShuffleTypeSpaceToDepthNCHW;
              ASSERT_EQ(BNNSShuffle(to_space, &d, &s, nullptr), 0) << BNNSExtLastError();
              ASSERT_TRUE(space.gaps_untouched());
              ref::for_each_shuffled(channel_outermost, N, C, H, W, r, [&](size_t from, size_t to) {
                ASSERT_EQ(space.get(at(to, space.size())), deep.get(at(from, deep.size()))) << "r " << r;
              });
              ASSERT_EQ(BNNSShuffle(to_depth, &s, &b, nullptr), 0) << BNNSExtLastError();
              ASSERT_EQ(read(back), read(deep));
            }
          }
        }
      }
    }
  });
}

TEST(Shuffle, BC53_SameBitsForAnyThreadCount) {
  Random random(1);
  auto x = random.normals(2 * 36 * 50 * 70);
  std::vector<float> first;
  for (size_t threads : kThreadCounts) {
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    std::vector<float> y(x.size(), poison());
    auto in = descriptor(kLayout, {2, 36, 50, 70}, x.data()), out = descriptor(kLayout, {2, 4, 150, 210}, y.data());
    ASSERT_EQ(BNNSShuffle(BNNSShuffleTypePixelShuffleNCHW, &in, &out, &options), 0) << BNNSExtLastError();
    ref::for_each_shuffled(true, 2, 4, 150, 210, 3, [&](size_t from, size_t to) { ASSERT_EQ(y[to], x[from]); });
    if (first.empty()) first = y;
    ASSERT_TRUE(same_bits(y, first));
  }
}

TEST(ShuffleMisuse, BC34_BC37_CallsSayWhyAndWriteNothing) {
  struct Call {
    std::vector<float> x = std::vector<float>(24, 3), y = std::vector<float>(24, 9);
    BNNSNDArrayDescriptor in = descriptor(kLayout, {1, 4, 2, 3}, x.data()),
                          out = descriptor(kLayout, {1, 1, 4, 6}, y.data());
    BNNSNDArrayDescriptor *in_pointer = &in, *out_pointer = &out;
    BNNSShuffleType type = BNNSShuffleTypePixelShuffleNCHW;
  };
  const std::pair<std::function<void(Call&)>, const char*> refusals[] = {
      {[](Call& c) { c.in_pointer = nullptr; }, "input is NULL"},
      {[](Call& c) { c.out_pointer = nullptr; }, "output is NULL"},
      {[](Call& c) { c.in.data = nullptr; }, "input.data is NULL"},
      {[](Call& c) { c.type = BNNSShuffleType(4); }, "type is 4"},
      {[](Call& c) { c.in.layout = BNNSDataLayout4DLastMajor; },
       "input.layout is BNNSDataLayout4DLastMajor (0x48000), expected BNNSDataLayout4DFirstMajor"},
      {[](Call& c) { c.out.layout = BNNSDataLayoutVector; }, "output.layout"},
      {[](Call& c) { c.out.size[2] = 5; }, "output.size[2] is 5, expected a multiple of input.size[2] = 2"},
      {[](Call& c) { c.out.size[2] = 1; }, "output.size[2] is 1"},
      {[](Call& c) { c.out.size[3] = 3; }, "output.size[3] is 3, expected 2 times input.size[3] = 3"},
      {[](Call& c) { c.in.size[1] = 5; }, "input.size[1] is 5, expected 2 * 2 times output.size[1] = 1"},
      {[](Call& c) { c.out.size[0] = 2; }, "output.size[0] is 2, expected 1"},
      {[](Call& c) { c.out.data_type = BNNSDataTypeInt32; }, "output is i32"},
      {[](Call& c) { c.out.data = c.x.data(); }, "output and input overlap"},
      {[](Call& c) { c.type = BNNSShuffleTypeSpaceToDepthNCHW; }, "input.size[2] is 2, expected a multiple"},
  };
  for (const auto& [spoil, reason] : refusals) {
    Call call;
    spoil(call);
    EXPECT_EQ(BNNSShuffle(call.type, call.in_pointer, call.out_pointer, nullptr), -1);
    EXPECT_TRUE(refused_because({"shuffle", reason}));
    EXPECT_EQ(call.x, std::vector<float>(24, 3));
    EXPECT_EQ(call.y, std::vector<float>(24, 9));
  }
}

}  // namespace
}  // namespace bnns::testing
