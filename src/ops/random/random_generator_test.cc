// The generator object: state, threads, misuse, memory. The values are tested in the other two.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "src/ops/random/random.h"
#include "src/ops/random/random_ref.h"
#include "tests/support/testing.h"

namespace bnns {
namespace {

using testing::descriptor;
using testing::Guarded;
using testing::refused_because;
using testing::same_bits;
using testing::vector_descriptor;

constexpr BNNSRandomGeneratorMethod kAes = BNNSRandomGeneratorMethodAES_CTR;
constexpr size_t kState = kRandomStateBytes;
using State = std::array<uint8_t, kState>;

BNNSRandomGenerator make(uint64_t seed, size_t n_threads = 0) {
  BNNSFilterParameters parameters = {};
  parameters.n_threads = n_threads;
  return BNNSCreateRandomGeneratorWithSeed(kAes, seed, &parameters);
}

State get_state(BNNSRandomGenerator generator) {
  State state{};
  EXPECT_EQ(BNNSRandomGeneratorGetState(generator, kState, state.data()), 0);
  return state;
}

// n words as they are: integers of [0, 2^32).
std::vector<uint32_t> words(BNNSRandomGenerator generator, size_t n) {
  std::vector<uint32_t> result(n);
  auto desc = vector_descriptor(n, result.data(), BNNSDataTypeUInt32);
  EXPECT_EQ(BNNSRandomFillUniformInt(generator, &desc, 0, int64_t{1} << 32), 0) << BNNSExtLastError();
  return result;
}

// ---- state ---------------------------------------------------------------------------------------------------------

TEST(RandomState, RoundTripsAtEveryPositionInABlock) {
  BNNSRandomGenerator generator = make(31), other = make(99);
  ASSERT_EQ(BNNSRandomGeneratorStateSize(generator), kState);
  for (size_t used = 0; used < 9; ++used) {
    SCOPED_TRACE(used);
    words(generator, 1);
    Guarded<uint8_t> state(kState);  // exactly 40 bytes are written and read
    ASSERT_EQ(BNNSRandomGeneratorGetState(generator, kState, state.data()), 0);
    const std::vector<uint32_t> next = words(generator, 13);
    ASSERT_EQ(next[0], ref::word(31, used * 1 + 1)) << "getting the state takes no words";
    ASSERT_EQ(BNNSRandomGeneratorSetState(generator, kState, state.data()), 0);
    EXPECT_EQ(words(generator, 13), next);
    ASSERT_EQ(BNNSRandomGeneratorSetState(other, kState, state.data()), 0);  // into a generator of another seed
    EXPECT_EQ(words(other, 13), next);
    ASSERT_EQ(BNNSRandomGeneratorSetState(generator, kState, state.data()), 0);
    State again = get_state(generator);
    EXPECT_TRUE(std::equal(again.begin(), again.end(), state.data()));
  }
  BNNSDestroyRandomGenerator(generator);
  BNNSDestroyRandomGenerator(other);
}

// How many words each fill takes: the position that README.md promises.
TEST(RandomState, EveryFillTakesOneWordPerElement) {
  BNNSRandomGenerator generator = make(3);
  std::vector<float> y(7), p = {1, 2, 3};
  std::vector<int64_t> integers(5);
  auto y_desc = vector_descriptor(7, y.data()), p_desc = vector_descriptor(3, p.data());
  auto i_desc = vector_descriptor(5, integers.data(), BNNSDataTypeInt64);
  uint64_t position = 0;
  const auto expect_position = [&] { EXPECT_EQ(words(generator, 1)[0], ref::word(3, position++)); };
  expect_position();
  BNNSRandomFillUniformFloat(generator, &y_desc, 0, 1), position += 7;
  expect_position();
  BNNSRandomFillUniformFloat(generator, &y_desc, 2, 2), position += 7;  // also where the values are known
  expect_position();
  BNNSRandomFillNormalFloat(generator, &y_desc, 0, 1), position += 7;
  expect_position();
  BNNSRandomFillCategoricalFloat(generator, &y_desc, &p_desc, false), position += 7;
  expect_position();
  BNNSRandomFillUniformInt(generator, &i_desc, 0, int64_t{1} << 32), position += 5;
  expect_position();
  BNNSRandomFillUniformInt(generator, &i_desc, 0, (int64_t{1} << 32) + 1), position += 10;  // 64-bit draws
  expect_position();
  BNNSDestroyRandomGenerator(generator);
}

TEST(RandomState, GarbageIsRefusedAndChangesNothing) {
  BNNSRandomGenerator generator = make(8);
  words(generator, 5);
  const State good = get_state(generator);
  for (size_t byte = 0; byte < kState; ++byte) {
    State bad = good;
    bad[byte] ^= 0x10;
    EXPECT_NE(BNNSRandomGeneratorSetState(generator, kState, bad.data()), 0) << byte;
    EXPECT_TRUE(refused_because({"BNNSRandomGeneratorSetState", "state"}));
  }
  for (uint8_t fill : {uint8_t{0}, uint8_t{0xFF}}) {
    State bad;
    bad.fill(fill);
    EXPECT_NE(BNNSRandomGeneratorSetState(generator, kState, bad.data()), 0);
  }
  EXPECT_EQ(get_state(generator), good);
  State state = good;
  for (size_t size : {size_t{0}, size_t{39}, size_t{41}, SIZE_MAX}) {
    EXPECT_NE(BNNSRandomGeneratorSetState(generator, size, state.data()), 0);
    EXPECT_TRUE(refused_because({"state_size", "expected 40"}));
    EXPECT_NE(BNNSRandomGeneratorGetState(generator, size, state.data()), 0);
    EXPECT_TRUE(refused_because({"state_size", "expected 40"}));
  }
  EXPECT_EQ(state, good);
  uint8_t* no_state = nullptr;
  EXPECT_NE(BNNSRandomGeneratorGetState(generator, kState, no_state), 0);
  EXPECT_TRUE(refused_because({"state is NULL"}));
  EXPECT_NE(BNNSRandomGeneratorSetState(generator, kState, no_state), 0);
  EXPECT_TRUE(refused_because({"state is NULL"}));
  EXPECT_EQ(words(generator, 1)[0], ref::word(8, 5));
  BNNSDestroyRandomGenerator(generator);
}

// A state that our own hand made: position and reserved bytes as given, check sum (FNV-1a of the first 32 bytes) right.
State forged_state(State state, uint64_t position, uint64_t reserved) {
  const auto store = [&](size_t at, uint64_t value) {
    for (size_t i = 0; i < 8; ++i) state[at + i] = uint8_t(value >> 8 * i);
  };
  store(16, position);
  store(24, reserved);
  uint64_t check = 0xcbf29ce484222325;
  for (size_t i = 0; i < 32; ++i) check = (check ^ state[i]) * 0x100000001b3;
  store(32, check);
  return state;
}

// The last words of the stream: they can be drawn, and then no word comes twice.
TEST(RandomState, EndOfTheStream) {
  BNNSRandomGenerator generator = make(8);
  const uint64_t position = ~uint64_t{0} - 6;
  State reserved = forged_state(get_state(generator), position, 1);
  EXPECT_NE(BNNSRandomGeneratorSetState(generator, kState, reserved.data()), 0) << "reserved bytes are not zero";
  State state = forged_state(get_state(generator), position, 0);
  ASSERT_EQ(BNNSRandomGeneratorSetState(generator, kState, state.data()), 0);
  const std::vector<uint32_t> last = words(generator, 5);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(last[i], ref::word(8, position + i));
  std::vector<float> y(2, 9.0f);
  auto desc = vector_descriptor(2, y.data());
  EXPECT_NE(BNNSRandomFillUniformFloat(generator, &desc, 0, 1), 0);
  EXPECT_TRUE(refused_because({"2 words", "1 left"}));
  EXPECT_EQ(y, (std::vector<float>{9, 9}));
  BNNSDestroyRandomGenerator(generator);
}

TEST(RandomState, SeedsAndMethods) {
  BNNSRandomGenerator zero = make(0);
  ASSERT_NE(zero, nullptr);
  EXPECT_EQ(words(zero, 1)[0], 0xd44be966u);
  BNNSDestroyRandomGenerator(zero);
  // Two unseeded generators: 128 equal bits by chance have probability 2^-128.
  BNNSRandomGenerator a = BNNSCreateRandomGenerator(kAes, nullptr), b = BNNSCreateRandomGenerator(kAes, nullptr);
  ASSERT_TRUE(a && b);
  EXPECT_NE(words(a, 4), words(b, 4));
  BNNSDestroyRandomGenerator(a);
  BNNSDestroyRandomGenerator(b);
  for (uint32_t method : {1u, 2u, 0xffffffffu}) {
    EXPECT_EQ(BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethod(method), 1, nullptr), nullptr);
    EXPECT_TRUE(refused_because({"BNNSCreateRandomGeneratorWithSeed", "method", "AES_CTR"}));
    EXPECT_EQ(BNNSCreateRandomGenerator(BNNSRandomGeneratorMethod(method), nullptr), nullptr);
  }
  BNNSFilterParameters half = {};
  half.alloc_memory = [](void**, size_t, size_t) { return 1; };
  EXPECT_EQ(BNNSCreateRandomGeneratorWithSeed(kAes, 1, &half), nullptr);
  EXPECT_TRUE(refused_because({"alloc_memory", "free_memory"}));
}

// ---- threads -------------------------------------------------------------------------------------------------------

// BC53: every fill, 1, 2, 3 and 7 threads, from a position inside a block: the same bits.
TEST(RandomThreads, BC53_SameBitsForAnyThreadCount) {
  constexpr size_t kCount = 100003, kRows = 3000, kClasses = 12, kManyClasses = 600;
  std::vector<float> p(kRows * kClasses);
  testing::Random random(5);
  for (float& v : p) v = float(random.uniform(0, 1));
  std::vector<std::vector<float>> first;
  for (size_t n_threads : testing::kThreadCounts) {
    SCOPED_TRACE(n_threads);
    BNNSRandomGenerator generator = make(1234, n_threads);
    words(generator, 3);
    std::vector<std::vector<float>> results(6, std::vector<float>(kCount));
    const auto desc_of = [&](size_t i) { return vector_descriptor(kCount, results[i].data()); };
    auto uniform = desc_of(0), normal = desc_of(1), integer = desc_of(2);
    integer.data_type = BNNSDataTypeInt32;
    auto p_desc = descriptor(BNNSDataLayout2DFirstMajor, {kRows, kClasses}, p.data());
    auto rows = vector_descriptor(kRows, results[3].data());
    auto one_row = vector_descriptor(kClasses, p.data()), samples = desc_of(4);
    // As many rows of classes that need tables of their own: overlapping rows, which an input may have.
    auto wide = descriptor(BNNSDataLayout2DFirstMajor, {kRows, kManyClasses}, p.data());
    wide.stride[0] = 1;
    wide.stride[1] = kClasses - 2;
    auto wide_rows = vector_descriptor(kRows, results[5].data());
    ASSERT_EQ(BNNSRandomFillUniformFloat(generator, &uniform, -1, 1), 0);
    ASSERT_EQ(BNNSRandomFillNormalFloat(generator, &normal, 0, 1), 0);
    ASSERT_EQ(BNNSRandomFillUniformInt(generator, &integer, -100000, 100000), 0);
    ASSERT_EQ(BNNSRandomFillCategoricalFloat(generator, &rows, &p_desc, false), 0);
    ASSERT_EQ(BNNSRandomFillCategoricalFloat(generator, &samples, &one_row, true), 0);
    ASSERT_EQ(BNNSRandomFillCategoricalFloat(generator, &wide_rows, &wide, false), 0) << BNNSExtLastError();
    if (first.empty()) first = results;
    for (size_t i = 0; i < results.size(); ++i) ASSERT_TRUE(same_bits(results[i], first[i])) << "fill " << i;
    BNNSDestroyRandomGenerator(generator);
  }
  EXPECT_EQ(first[0][0], ref::uniform_float(ref::word(1234, 3), BNNSDataTypeFloat32, -1, 1));
}

// BC46: eight threads on one generator. Each fill is one stretch of the stream, and all stretches together are the
// stream without gap or repeat. Fills are short, so that the threads meet at the lock all the time; two neighbouring
// words (64 bits) name a place in the stream.
TEST(RandomThreads, BC46_ConcurrentFillsTakeDisjointWords) {
  constexpr size_t kThreads = 8, kFills = 5000;
  BNNSRandomGenerator generator = make(64, 1);
  std::vector<std::vector<std::vector<uint32_t>>> drawn(kThreads);
  std::vector<std::thread> threads;
  std::atomic<size_t> ready{0};
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      drawn[t].resize(kFills);
      for (size_t i = 0; i < kFills; ++i) drawn[t][i].resize(2 + (t + i) % 4);
      ++ready;
      while (ready != kThreads) std::this_thread::yield();  // all at once
      for (std::vector<uint32_t>& fill : drawn[t]) {
        auto desc = vector_descriptor(fill.size(), fill.data(), BNNSDataTypeUInt32);
        BNNSRandomFillUniformInt(generator, &desc, 0, int64_t{1} << 32);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  size_t total = 0;
  for (const auto& of_thread : drawn) {
    for (const auto& fill : of_thread) total += fill.size();
  }
  BNNSRandomGenerator serial = make(64);
  const std::vector<uint32_t> stream = words(serial, total);
  std::unordered_map<uint64_t, size_t> places;
  for (size_t i = 0; i + 1 < total; ++i) places[stream[i] | uint64_t(stream[i + 1]) << 32] = i;
  std::vector<bool> used(total, false);
  for (const auto& of_thread : drawn) {
    for (const auto& fill : of_thread) {
      const auto place = places.find(fill[0] | uint64_t(fill[1]) << 32);
      ASSERT_NE(place, places.end()) << "a fill is no stretch of the stream";
      for (size_t i = 0; i < fill.size(); ++i) {
        ASSERT_EQ(fill[i], stream[place->second + i]);
        ASSERT_FALSE(used[place->second + i]) << "word " << place->second + i << " was given twice";
        used[place->second + i] = true;
      }
    }
  }
  EXPECT_EQ(std::count(used.begin(), used.end(), true), ptrdiff_t(total));
  BNNSDestroyRandomGenerator(generator);
  BNNSDestroyRandomGenerator(serial);
}

// States that are read and set while others fill are whole: every fill lies in the stream of one of the two seeds.
TEST(RandomThreads, StateIsNeverTorn) {
  BNNSRandomGenerator generator = make(1), other = make(2);
  const State one = get_state(generator), two = get_state(other);
  std::atomic<bool> done{false};
  std::thread setter([&] {
    for (int i = 0; !done; ++i) {
      State state = i % 2 ? one : two;
      EXPECT_EQ(BNNSRandomGeneratorSetState(generator, kState, state.data()), 0);
      State seen = get_state(generator);
      EXPECT_EQ(BNNSRandomGeneratorSetState(other, kState, seen.data()), 0);
    }
  });
  BNNSRandomGenerator first = make(1), second = make(2);
  const std::vector<uint32_t> stream_one = words(first, 20000), stream_two = words(second, 20000);
  for (int i = 0; i < 2000; ++i) {  // no more than 18000 words even if the setter never runs
    const std::vector<uint32_t> got = words(generator, 9);
    const auto holds = [&](const std::vector<uint32_t>& stream) {
      return std::search(stream.begin(), stream.end(), got.begin(), got.end()) != stream.end();
    };
    EXPECT_TRUE(holds(stream_one) || holds(stream_two)) << i;
  }
  done = true;
  setter.join();
  for (BNNSRandomGenerator g : {generator, other, first, second}) BNNSDestroyRandomGenerator(g);
}

// ---- misuse --------------------------------------------------------------------------------------------------------

struct Misuse {
  const char* name;
  std::function<int(BNNSRandomGenerator)> call;
  std::vector<const char*> words;
};

bool mentions(const std::vector<const char*>& words) {
  const std::string reason = BNNSExtLastError();
  return std::all_of(words.begin(), words.end(),
                     [&](const char* word) { return reason.find(word) != std::string::npos; });
}

// BC35, BC37: every refusal has its reason, writes nothing and takes no words.
TEST(RandomMisuse, RefusedWithAReasonAndNothingWritten) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  std::vector<float> y(64, 7.0f), p(64, 1.0f);
  const std::vector<float> untouched = y;
  const auto vec = [&](size_t n, BNNSDataType type = BNNSDataTypeFloat32) {
    return vector_descriptor(n, y.data(), type);
  };
  const auto uniform = [](BNNSNDArrayDescriptor desc, float a, float b) {
    return [=](BNNSRandomGenerator g) mutable { return BNNSRandomFillUniformFloat(g, &desc, a, b); };
  };
  const auto integers = [](BNNSNDArrayDescriptor desc, int64_t a, int64_t b) {
    return [=](BNNSRandomGenerator g) mutable { return BNNSRandomFillUniformInt(g, &desc, a, b); };
  };
  const auto normal = [](BNNSNDArrayDescriptor desc, float mean, float stddev) {
    return [=](BNNSRandomGenerator g) mutable { return BNNSRandomFillNormalFloat(g, &desc, mean, stddev); };
  };
  // Rows of three classes with one value changed; the vector lives as long as the call.
  const auto categorical = [](BNNSNDArrayDescriptor desc, BNNSNDArrayDescriptor probabilities,
                              std::vector<float> values, bool logarithms) {
    return [=](BNNSRandomGenerator g) mutable {
      probabilities.data = values.data();
      return BNNSRandomFillCategoricalFloat(g, &desc, &probabilities, logarithms);
    };
  };
  auto null_data = vec(4), no_layout = vec(4), overlapping = descriptor(BNNSDataLayout2DLastMajor, {3, 3}, y.data());
  null_data.data = nullptr;
  no_layout.layout = BNNSDataLayout(0x12345);
  overlapping.stride[0] = 1;
  overlapping.stride[1] = 2;
  auto unaligned = vec(4), pack = descriptor(BNNSDataLayoutConvolutionWeightsOIHW_Pack32, {1, 1, 1, 32}, y.data());
  unaligned.data = reinterpret_cast<char*>(y.data()) + 1;
  const auto rows = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, p.data());
  auto shared = rows;
  shared.data = y.data() + 1;
  const size_t kHuge = size_t{1} << 62;
  BNNSNDArrayDescriptor* no_descriptor = nullptr;  // a variable: compilers warn about a literal NULL

  const Misuse kTable[] = {
      {"a above b", uniform(vec(4), 1, 0), {"BNNSRandomFillUniformFloat", "a is 1", "b is 0"}},
      {"a is NaN", uniform(vec(4), kNan, 0), {"a is nan"}},
      {"b is NaN", uniform(vec(4), 0, kNan), {"b is nan"}},
      {"no f16 value", uniform(vec(4, BNNSDataTypeFloat16), 1.0001f, 1.0002f), {"no f16 value"}},
      {"no bf16 value", uniform(vec(4, BNNSDataTypeBFloat16), 1.001f, 1.002f), {"no bf16 value"}},
      {"float fill of i32", uniform(vec(4, BNNSDataTypeInt32), 0, 1), {"desc.data_type is i32", "f32"}},
      {"float fill of bool", uniform(vec(4, BNNSDataTypeBoolean), 0, 1), {"bool"}},
      {"unknown type", uniform(vec(4, BNNSDataType(0x12345)), 0, 1), {"desc.data_type"}},
      {"NULL data", uniform(null_data, 0, 1), {"desc.data is NULL"}},
      {"unaligned data", uniform(unaligned, 0, 1), {"desc.data", "multiple of 4"}},
      {"unknown layout", uniform(no_layout, 0, 1), {"desc.layout"}},
      {"zero extent", uniform(vec(0), 0, 1), {"desc.size[0] is 0"}},
      {"BC34 huge extent", uniform(vec(kHuge), 0, 1), {"desc"}},
      {"BC34 huge product", uniform(descriptor(BNNSDataLayout2DLastMajor, {kHuge, 8}, y.data()), 0, 1), {"desc"}},
      {"overlapping elements", uniform(overlapping, 0, 1), {"desc is f32 3x3", "(0, 1) and (2, 0) share an address"}},
      {"packed layout", uniform(pack, 0, 1), {"Pack32"}},
      {"a equals b", integers(vec(4, BNNSDataTypeInt32), 3, 3), {"BNNSRandomFillUniformInt", "a is 3", "b is excluded"}},
      {"int a above b", integers(vec(4, BNNSDataTypeInt32), 4, 3), {"a is 4"}},
      {"below int8", integers(vec(4, BNNSDataTypeInt8), -129, 0), {"-129", "i8", "-128 to 127"}},
      {"above int8", integers(vec(4, BNNSDataTypeInt8), 0, 129), {"129", "i8"}},
      {"negative uint8", integers(vec(4, BNNSDataTypeUInt8), -1, 5), {"u8", "0 to 255"}},
      {"above uint32", integers(vec(4, BNNSDataTypeUInt32), 0, (int64_t{1} << 32) + 1), {"u32"}},
      {"negative uint64", integers(vec(4, BNNSDataTypeUInt64), -1, 5), {"u64"}},
      {"above uint4", integers(vec(4, BNNSDataTypeUInt4), 0, 17), {"u4", "0 to 15"}},
      {"int fill of f32", integers(vec(4), 0, 5), {"desc.data_type is f32", "integer"}},
      {"int fill of bool", integers(vec(4, BNNSDataTypeBoolean), 0, 2), {"bool"}},
      {"negative stddev", normal(vec(4), 0, -1), {"BNNSRandomFillNormalFloat", "stddev is -1"}},
      {"NaN stddev", normal(vec(4), 0, kNan), {"stddev is nan"}},
      {"infinite stddev", normal(vec(4), 0, kInf), {"stddev is inf"}},
      {"NaN mean", normal(vec(4), kNan, 1), {"mean is nan"}},
      {"infinite mean", normal(vec(4), kInf, 1), {"mean is inf"}},
      {"normal int", normal(vec(4, BNNSDataTypeInt8), 0, 1), {"i8"}},
      {"negative probability", categorical(vec(2), rows, {1, 1, 1, 1, -0.5f, 1}, false),
       {"BNNSRandomFillCategoricalFloat", "row 1", "class 1 is -0.5"}},
      {"NaN probability", categorical(vec(2), rows, {1, kNan, 1, 1, 1, 1}, false), {"row 0", "class 1 is nan"}},
      {"infinite probability", categorical(vec(2), rows, {1, 1, kInf, 1, 1, 1}, false), {"row 0", "class 2 is inf"}},
      {"all zero", categorical(vec(2), rows, {1, 1, 1, 0, 0, 0}, false), {"row 1", "no class"}},
      {"NaN logarithm", categorical(vec(2), rows, {kNan, 1, 1, 1, 1, 1}, true), {"row 0", "class 0 is nan"}},
      {"inf logarithm", categorical(vec(2), rows, {1, 1, 1, 1, kInf, 1}, true), {"row 1", "class 1 is inf"}},
      {"all -inf", categorical(vec(2), rows, {-kInf, -kInf, -kInf, 1, 1, 1}, true), {"row 0", "no class"}},
      {"wrong rows", categorical(vec(3), rows, {1, 1, 1, 1, 1, 1}, false), {"desc.size[0] is 3", "expected 2"}},
      {"wrong rank", categorical(descriptor(BNNSDataLayout3DFirstMajor, {2, 1, 1}, y.data()), rows,
                                 {1, 1, 1, 1, 1, 1}, false),
       {"rank 3", "rank 2"}},
      {"integer classes", categorical(vec(2, BNNSDataTypeInt32), rows, {1, 1, 1, 1, 1, 1}, false), {"desc", "i32"}},
      {"shared memory",
       [=](BNNSRandomGenerator g) {
         auto desc = vector_descriptor(2, static_cast<float*>(shared.data) + 1);
         return BNNSRandomFillCategoricalFloat(g, &desc, &shared, false);
       },
       {"desc", "probabilities", "overlap"}},
      {"too many classes for bf16",
       categorical(vec(2, BNNSDataTypeBFloat16), vector_descriptor(258, nullptr), std::vector<float>(258, 1.0f), false),
       {"258", "bf16", "256"}},
      {"NULL desc", [=](BNNSRandomGenerator g) { return BNNSRandomFillUniformFloat(g, no_descriptor, 0, 1); },
       {"desc is NULL"}},
      {"NULL int desc", [=](BNNSRandomGenerator g) { return BNNSRandomFillUniformInt(g, no_descriptor, 0, 1); },
       {"desc is NULL"}},
      {"NULL normal desc", [=](BNNSRandomGenerator g) { return BNNSRandomFillNormalFloat(g, no_descriptor, 0, 1); },
       {"desc is NULL"}},
      {"NULL probabilities",
       [=](BNNSRandomGenerator g) {
         auto desc = vec(2);
         return BNNSRandomFillCategoricalFloat(g, &desc, no_descriptor, false);
       },
       {"probabilities is NULL"}},
  };
  BNNSRandomGenerator generator = make(5);
  const State before = get_state(generator);
  for (const Misuse& misuse : kTable) {
    SCOPED_TRACE(misuse.name);
    BNNSExtClearLastError();
    EXPECT_EQ(misuse.call(generator), -1);
    EXPECT_TRUE(mentions(misuse.words)) << BNNSExtLastError();
    EXPECT_EQ(y, untouched);
    EXPECT_EQ(get_state(generator), before);
  }
  BNNSDestroyRandomGenerator(generator);
}

TEST(RandomMisuse, BadHandles) {
  std::vector<float> y(4, 7.0f), p = {1, 1};
  auto desc = vector_descriptor(4, y.data()), p_desc = vector_descriptor(2, p.data());
  alignas(64) unsigned char no_generator[512] = {};
  State state{};
  for (BNNSRandomGenerator bad :
       {BNNSRandomGenerator{}, BNNSRandomGenerator(no_generator), BNNSRandomGenerator(no_generator + 1)}) {
    EXPECT_EQ(BNNSRandomGeneratorStateSize(bad), 0u);
    EXPECT_TRUE(refused_because({"BNNSRandomGeneratorStateSize", "generator"}));
    EXPECT_EQ(BNNSRandomGeneratorGetState(bad, kState, state.data()), -1);
    EXPECT_EQ(BNNSRandomGeneratorSetState(bad, kState, state.data()), -1);
    EXPECT_EQ(BNNSRandomFillUniformFloat(bad, &desc, 0, 1), -1);
    EXPECT_EQ(BNNSRandomFillUniformInt(bad, &desc, 0, 1), -1);
    EXPECT_EQ(BNNSRandomFillNormalFloat(bad, &desc, 0, 1), -1);
    EXPECT_EQ(BNNSRandomFillCategoricalFloat(bad, &desc, &p_desc, false), -1);
    EXPECT_TRUE(refused_because({"BNNSRandomFillCategoricalFloat", "generator"}));
  }
  EXPECT_EQ(y, (std::vector<float>(4, 7.0f)));
  BNNSDestroyRandomGenerator(nullptr);
  BNNSDestroyRandomGenerator(no_generator);  // not ours: left alone
}

// ---- memory --------------------------------------------------------------------------------------------------------

int live_blocks = 0, requests = 0, fail_at = 0;

int counting_alloc(void** memory, size_t alignment, size_t size) {
  if (++requests == fail_at) return 12;
  if (posix_memalign(memory, alignment, size) != 0) return 12;
  std::memset(*memory, 0xA5, size);
  ++live_blocks;
  return 0;
}
void counting_free(void* memory) {
  --live_blocks;
  std::free(memory);
}

// BC42, BC45: generator and scratch come from the client, all of it goes back, and a failed request is a refusal that
// writes nothing and takes no words.
TEST(RandomMemory, BC42_ClientAllocator) {
  BNNSFilterParameters parameters = {};
  parameters.alloc_memory = counting_alloc;
  parameters.free_memory = counting_free;
  live_blocks = requests = 0;
  fail_at = 1;
  EXPECT_EQ(BNNSCreateRandomGeneratorWithSeed(kAes, 1, &parameters), nullptr);
  EXPECT_TRUE(refused_because({"out of memory", "generator"}));
  EXPECT_EQ(BNNSCreateRandomGenerator(BNNSRandomGeneratorMethod(9), &parameters), nullptr);
  EXPECT_EQ(live_blocks, 0);

  fail_at = 0;
  BNNSRandomGenerator generator = BNNSCreateRandomGeneratorWithSeed(kAes, 1, &parameters);
  ASSERT_NE(generator, nullptr);
  EXPECT_EQ(live_blocks, 1);
  EXPECT_EQ(words(generator, 1000)[999], ref::word(1, 999));
  EXPECT_EQ(live_blocks, 1);

  // 300 classes need a table: one request.
  std::vector<float> p(300, 1.0f), y(10, 7.0f);
  auto p_desc = vector_descriptor(300, p.data()), y_desc = vector_descriptor(10, y.data());
  const State before = get_state(generator);
  fail_at = requests + 1;
  EXPECT_EQ(BNNSRandomFillCategoricalFloat(generator, &y_desc, &p_desc, false), -1);
  EXPECT_TRUE(refused_because({"out of memory", "cumulative probabilities"}));
  EXPECT_EQ(y, (std::vector<float>(10, 7.0f)));
  EXPECT_EQ(get_state(generator), before);
  EXPECT_EQ(live_blocks, 1);
  fail_at = 0;
  EXPECT_EQ(BNNSRandomFillCategoricalFloat(generator, &y_desc, &p_desc, false), 0);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], float(ref::categorical(ref::word(1, 1000 + i), std::vector<double>(300, 1.0))));
  }
  EXPECT_EQ(live_blocks, 1);
  BNNSDestroyRandomGenerator(generator);
  EXPECT_EQ(live_blocks, 0);
}

}  // namespace
}  // namespace bnns
