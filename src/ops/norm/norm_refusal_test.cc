// Calls that the clipping and norm functions refuse: -1, a reason that names the field, and not one byte written.

#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/testing.h"

namespace bnns::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// A 3 x 2 source, a destination of its shape, norms of the rows, and gradients of both.
struct Call {
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, y = std::vector<float>(8, 9), norm = std::vector<float>(4, 9);
  std::vector<float> dx = std::vector<float>(8, 9), dy = std::vector<float>(4, 9);
  BNNSNDArrayDescriptor src = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, x.data());
  BNNSNDArrayDescriptor dest = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, y.data());
  BNNSNDArrayDescriptor norms = vector_descriptor(3, norm.data());
  BNNSNDArrayDescriptor in_delta = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, dx.data());
  BNNSNDArrayDescriptor out_delta = vector_descriptor(3, dy.data());
  BNNSNDArrayDescriptor *src_pointer = &src, *dest_pointer = &dest, *norms_pointer = &norms;
  BNNSNDArrayDescriptor *in_delta_pointer = &in_delta, *out_delta_pointer = &out_delta;
  const void *in = x.data(), *out = norm.data();
  float low = -1, high = 1, max_norm = 1, use_norm = 0;
  uint32_t axes = 2;
  BNNSNormType type = BNNSL2Norm;
  size_t count = 1;

  std::vector<float> all() const {
    std::vector<float> result = x;
    for (const auto* part : {&y, &norm, &dx, &dy}) result.insert(result.end(), part->begin(), part->end());
    return result;
  }
};

const std::function<int(Call&)> kEntries[] = {
    [](Call& c) { return BNNSClipByValue(c.dest_pointer, c.src_pointer, c.low, c.high); },
    [](Call& c) { return BNNSClipByNorm(c.dest_pointer, c.src_pointer, c.max_norm, c.axes); },
    [](Call& c) {
      const BNNSNDArrayDescriptor* sources[] = {c.src_pointer};
      BNNSNDArrayDescriptor* dests[] = {c.dest_pointer};
      return BNNSClipByGlobalNorm(dests, sources, c.count, c.max_norm, c.use_norm);
    },
    [](Call& c) { return BNNSComputeNorm(c.norms_pointer, c.src_pointer, c.type, c.axes); },
    [](Call& c) {
      return BNNSComputeNormBackward(c.in, c.in_delta_pointer, c.out, c.out_delta_pointer, c.type, c.axes);
    },
};
enum Entries : unsigned { kValue = 1, kNorm = 2, kGlobal = 4, kCompute = 8, kBackward = 16, kClips = 7, kSources = 15 };

struct Refusal {
  const char* name;
  unsigned entries;
  std::function<void(Call&)> spoil;
  std::initializer_list<const char*> words;
};

const Refusal kRefusals[] = {
    {"no source", kSources, [](Call& c) { c.src_pointer = nullptr; }, {"src", "is NULL"}},
    {"no destination", kClips, [](Call& c) { c.dest_pointer = nullptr; }, {"dest", "is NULL"}},
    {"no norms", kCompute, [](Call& c) { c.norms_pointer = nullptr; }, {"dest is NULL"}},
    {"no in_delta", kBackward, [](Call& c) { c.in_delta_pointer = nullptr; }, {"in_delta is NULL"}},
    {"no out_delta", kBackward, [](Call& c) { c.out_delta_pointer = nullptr; }, {"out_delta is NULL"}},
    {"no in", kBackward, [](Call& c) { c.in = nullptr; }, {"in is NULL"}},
    {"no out", kBackward, [](Call& c) { c.out = nullptr; }, {"out is NULL"}},
    {"source data", kSources, [](Call& c) { c.src.data = nullptr; }, {"src", "data is NULL"}},
    {"destination data", kClips, [](Call& c) { c.dest.data = nullptr; }, {"dest", "data is NULL"}},
    {"norms data", kCompute, [](Call& c) { c.norms.data = nullptr; }, {"dest", "data is NULL"}},
    {"in_delta data", kBackward, [](Call& c) { c.in_delta.data = nullptr; }, {"in_delta.data is NULL"}},
    {"out_delta data", kBackward, [](Call& c) { c.out_delta.data = nullptr; }, {"out_delta.data is NULL"}},
    {"destination shape", kClips, [](Call& c) { c.dest.size[0] = 2, c.dest.size[1] = 3; }, {"dest", "2x3", "3x2"}},
    {"destination layout", kClips, [](Call& c) { c.dest.layout = BNNSDataLayoutRowMajorMatrix; }, {"dest", "0x20000"}},
    {"norms shape", kCompute, [](Call& c) { c.norms.size[0] = 2; }, {"dest is f32 2", "0x2"}},
    {"norms of another rank", kCompute, [](Call& c) { c.axes = 3; }, {"dest is f32 3", "one element"}},
    {"out_delta shape", kBackward, [](Call& c) { c.out_delta.size[0] = 4; }, {"out_delta is f32 4"}},
    {"extent 0", kSources, [](Call& c) { c.src.size[1] = 0; }, {"src", "size[1] is 0"}},
    {"extents overflow", kSources, [](Call& c) { c.src.size[0] = c.src.size[1] = size_t{1} << 33; }, {"src"}},
    {"shared addresses",
     kClips,
     [](Call& c) { c.dest.stride[0] = c.dest.stride[1] = 1; },
     {"dest", "(0, 1) and (1, 0) share an address"}},
    {"no layout", kSources, [](Call& c) { c.src.layout = BNNSDataLayout(3); }, {"src", "layout"}},
    {"integers", kSources, [](Call& c) { c.src.data_type = BNNSDataTypeInt32; }, {"src", "i32"}},
    {"integer gradient", kBackward, [](Call& c) { c.in_delta.data_type = BNNSDataTypeInt32; }, {"in_delta", "i32"}},
    {"no type", kSources, [](Call& c) { c.src.data_type = BNNSDataType(1); }, {"src", "data_type"}},
    {"axis beyond the rank",
     kNorm | kCompute | kBackward,
     [](Call& c) { c.axes = 4; },
     {"axis_flags is 0x4", "rank 2"}},
    {"norm type", kCompute | kBackward, [](Call& c) { c.type = BNNSNormType(2); }, {"norm_type is 2"}},
    {"range", kValue, [](Call& c) { c.low = 2; }, {"min_val is 2", "min <= max"}},
    {"range nan", kValue, [](Call& c) { c.high = NAN; }, {"max_val is nan"}},
    {"negative limit", kNorm | kGlobal, [](Call& c) { c.max_norm = -1; }, {"max_norm is -1"}},
    {"nan limit", kNorm | kGlobal, [](Call& c) { c.max_norm = NAN; }, {"max_norm is nan"}},
    {"negative norm", kGlobal, [](Call& c) { c.use_norm = -1; }, {"use_norm is -1"}},
    {"infinite norm given", kGlobal, [](Call& c) { c.use_norm = kInf; }, {"use_norm is inf"}},
    {"infinite element", kNorm | kGlobal, [](Call& c) { c.x[5] = kInf; }, {"norm", "not finite"}},
    {"nan element", kNorm | kGlobal, [](Call& c) { c.x[5] = NAN; }, {"norm", "not finite"}},
    {"overlap by one", kClips, [](Call& c) { c.dest.data = c.x.data() + 1; }, {"dest", "src"}},
    {"same start, other strides",
     kClips,
     [](Call& c) { c.dest.data = c.x.data(), c.dest.stride[1] = 3; },
     {"dest", "src"}},
    {"norms inside the source", kCompute, [](Call& c) { c.norms.data = c.x.data() + 2; }, {"dest", "src"}},
    {"in_delta over out_delta",
     kBackward,
     [](Call& c) { c.dy.resize(8, 9), c.in_delta.data = c.out_delta.data = c.dy.data(); },
     {"in_delta", "out_delta"}},
    {"in_delta across in", kBackward, [](Call& c) { c.in = c.dx.data() + 1; }, {"in_delta and in overlap"}},
};

TEST(NormRefusal, TableIsRefusedWithReasonAndNothingWritten) {
  for (const auto& entry : kEntries) {
    Call good;
    ASSERT_EQ(entry(good), 0) << BNNSExtLastError();  // what the table spoils does work
  }
  for (const Refusal& refusal : kRefusals) {
    for (unsigned e = 0; e < 5; ++e) {
      if (!(refusal.entries >> e & 1)) continue;
      SCOPED_TRACE(std::string(refusal.name) + " entry " + std::to_string(e));
      Call call;
      refusal.spoil(call);
      const std::vector<float> before = call.all();
      EXPECT_EQ(kEntries[e](call), -1);
      EXPECT_TRUE(refused_because(refusal.words));
      EXPECT_TRUE(same_bits(call.all(), before));
    }
  }
}

TEST(NormRefusal, GlobalNormLists) {
  float a[2] = {3, 4}, b[2] = {1, 1};
  BNNSNDArrayDescriptor da = vector_descriptor(2, a), db = vector_descriptor(2, b);
  const BNNSNDArrayDescriptor* sources[] = {&da, &db};
  BNNSNDArrayDescriptor *dests[] = {&da, &db}, *crossed[] = {&db, &da}, *missing[] = {&da, nullptr};
  BNNSNDArrayDescriptor** no_dests = nullptr;
  const BNNSNDArrayDescriptor** no_sources = nullptr;
  EXPECT_EQ(BNNSClipByGlobalNorm(no_dests, sources, 2, 1, 0), -1);
  EXPECT_TRUE(refused_because({"dest is NULL"}));
  EXPECT_EQ(BNNSClipByGlobalNorm(dests, no_sources, 2, 1, 0), -1);
  EXPECT_TRUE(refused_because({"src is NULL"}));
  EXPECT_EQ(BNNSClipByGlobalNorm(missing, sources, 2, 1, 0), -1);
  EXPECT_TRUE(refused_because({"dest[1] is NULL"}));
  // Each destination is another entry's source: the second would read what the first wrote.
  EXPECT_EQ(BNNSClipByGlobalNorm(crossed, sources, 2, 1, 0), -1);
  EXPECT_TRUE(refused_because({"share memory"}));
  EXPECT_EQ(a[0], 3);
  EXPECT_EQ(b[0], 1);
  EXPECT_EQ(BNNSClipByGlobalNorm(no_dests, no_sources, 0, 1, 0), 0);  // nothing to do
}

// Backward in place: the gradient may take the place of the input.
TEST(NormRefusal, BackwardOverItsInput) {
  Call call;
  call.norm = {std::sqrt(5.0f), 5, std::sqrt(61.0f), 0};
  std::vector<float> separate = call.dx;
  ASSERT_EQ(kEntries[4](call), 0) << BNNSExtLastError();
  separate = call.dx;
  call.in_delta.data = call.x.data();
  ASSERT_EQ(kEntries[4](call), 0) << BNNSExtLastError();
  EXPECT_TRUE(same_bits(call.x.data(), separate.data(), 6));
}

}  // namespace
}  // namespace bnns::testing
