// The walk: the random generator.
//
// Seed 0 is the key of 16 zero bytes; AES-128 of a block of zeros under it is the published vector
// 66e94bd4 ef8a2c3b 884cfa59 ca342b2e, so the first four words are known.

#include "tests/api/every_function_testing.h"

namespace bnns::testing {
namespace {

constexpr BNNSRandomGeneratorMethod kAes = BNNSRandomGeneratorMethodAES_CTR;
constexpr uint32_t kWords[] = {0xd44be966, 0x3b2c8aef, 0x59fa4c88, 0x2e2b34ca};

struct Generator {
  BNNSRandomGenerator handle = BNNSCreateRandomGeneratorWithSeed(kAes, 0, nullptr);
  ~Generator() { BNNSDestroyRandomGenerator(handle); }
};

std::vector<uint32_t> take_words(BNNSRandomGenerator generator, size_t n) {
  std::vector<uint32_t> words(n);
  Array desc = vector_descriptor(n, words.data(), BNNSDataTypeUInt32);
  EXPECT_EQ(BNNSRandomFillUniformInt(generator, &desc, 0, int64_t{1} << 32), 0);
  return words;
}

void create_good() {
  BNNSRandomGenerator first = BNNSCreateRandomGenerator(kAes, nullptr);
  BNNSRandomGenerator second = BNNSCreateRandomGenerator(kAes, nullptr);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(take_words(first, 4), take_words(second, 4));  // seeds of their own: equal once in 2^64
  BNNSDestroyRandomGenerator(first);
  BNNSDestroyRandomGenerator(second);
}
void create_bad() {
  EXPECT_EQ(BNNSCreateRandomGenerator(BNNSRandomGeneratorMethod(1), nullptr), nullptr);
}

void create_with_seed_good() {
  const Generator generator;
  ASSERT_NE(generator.handle, nullptr);
  EXPECT_EQ(take_words(generator.handle, 4), std::vector<uint32_t>(kWords, kWords + 4));
}
void create_with_seed_bad() {
  EXPECT_EQ(BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethod(1), 0, nullptr), nullptr);
}

void destroy_good() {
  const BNNSFilterParameters options = Accountant::options();
  BNNSRandomGenerator generator = BNNSCreateRandomGeneratorWithSeed(kAes, 0, &options);
  EXPECT_GT(Accountant::live, 0);
  BNNSDestroyRandomGenerator(generator);
  EXPECT_EQ(Accountant::live, 0);
}
void destroy_bad() {
  BNNSDestroyRandomGenerator(nullptr);
}

// ---- state ----------------------------------------------------------------------------------------------------------

void state_size_good() {
  const Generator generator;
  EXPECT_EQ(BNNSRandomGeneratorStateSize(generator.handle), 40u);
}
void state_size_bad() {
  EXPECT_EQ(BNNSRandomGeneratorStateSize(nullptr), 0u);
}

void get_state_good() {
  const Generator generator, other;
  std::vector<char> before(40), after(40), others(40);
  EXPECT_EQ(BNNSRandomGeneratorGetState(generator.handle, 40, before.data()), 0);
  take_words(generator.handle, 1);
  EXPECT_EQ(BNNSRandomGeneratorGetState(generator.handle, 40, after.data()), 0);
  EXPECT_NE(before, after);
  EXPECT_EQ(BNNSRandomGeneratorGetState(other.handle, 40, others.data()), 0);
  EXPECT_EQ(before, others);  // the same seed at the same place
}
void get_state_bad() {
  const Generator generator;
  std::vector<char> state(40, 'x');
  EXPECT_EQ(BNNSRandomGeneratorGetState(generator.handle, 39, state.data()), -1);
  EXPECT_EQ(state, std::vector<char>(40, 'x'));
}

void set_state_good() {
  const Generator generator;
  std::vector<char> state(40);
  take_words(generator.handle, 1);
  EXPECT_EQ(BNNSRandomGeneratorGetState(generator.handle, 40, state.data()), 0);
  take_words(generator.handle, 10);
  EXPECT_EQ(BNNSRandomGeneratorSetState(generator.handle, 40, state.data()), 0);
  EXPECT_EQ(take_words(generator.handle, 3), std::vector<uint32_t>(kWords + 1, kWords + 4));
}
void set_state_bad() {
  const Generator generator;
  std::vector<char> state(40, 'x');  // no state of ours
  EXPECT_EQ(BNNSRandomGeneratorSetState(generator.handle, 40, state.data()), -1);
  EXPECT_EQ(take_words(generator.handle, 1)[0], kWords[0]);
}

// ---- fills ----------------------------------------------------------------------------------------------------------

void uniform_float_good() {
  const Generator generator;
  Floats y(4);
  Array desc = vec(y);
  EXPECT_EQ(BNNSRandomFillUniformFloat(generator.handle, &desc, -1, 1), 0);
  std::vector<double> want;
  for (uint32_t word : kWords) want.push_back(-1 + 2 * (word * 0x1p-32));
  expect_close(y, want, 4);
}
void uniform_float_bad() {
  const Generator generator;
  Floats y = untouched(4);
  Array desc = vec(y);
  EXPECT_EQ(BNNSRandomFillUniformFloat(generator.handle, &desc, 1, -1), -1);
  EXPECT_TRUE(is_untouched(y));
}

void uniform_int_good() {
  const Generator generator;
  std::vector<int8_t> y(4);
  Array desc = vector_descriptor(4, y.data(), BNNSDataTypeInt8);
  EXPECT_EQ(BNNSRandomFillUniformInt(generator.handle, &desc, 0, 100), 0);
  EXPECT_EQ(y, (std::vector<int8_t>{82, 23, 35, 18}));  // floor(100 word / 2^32)
}
void uniform_int_bad() {
  const Generator generator;
  std::vector<int8_t> y(4, -77);
  Array desc = vector_descriptor(4, y.data(), BNNSDataTypeInt8);
  EXPECT_EQ(BNNSRandomFillUniformInt(generator.handle, &desc, 0, 1000), -1);  // more than the type holds
  EXPECT_EQ(y, std::vector<int8_t>(4, -77));
}

// Quantiles of the standard normal distribution at (word + 1/2) / 2^32 = 0.829283, 0.231148, 0.351476, 0.180347.
void normal_good() {
  const Generator generator;
  Floats y(4);
  Array desc = vec(y);
  EXPECT_EQ(BNNSRandomFillNormalFloat(generator.handle, &desc, 10, 2), 0);
  expect_close(y, {10 + 2 * 0.951336945, 10 - 2 * 0.735070046, 10 - 2 * 0.381339944, 10 - 2 * 0.914044337}, 4);
}
void normal_bad() {
  const Generator generator;
  Floats y = untouched(4);
  Array desc = vec(y);
  EXPECT_EQ(BNNSRandomFillNormalFloat(generator.handle, &desc, 0, -1), -1);
  EXPECT_TRUE(is_untouched(y));
}

// Running sums 1, 2, 4 of the weights against 4 word / 2^32 = 3.32, 0.92, 1.41, 0.72.
void categorical_good() {
  const Generator generator;
  Floats y(4), p = {1, 1, 2};
  const Array desc = vec(y), probabilities = vec(p);
  EXPECT_EQ(BNNSRandomFillCategoricalFloat(generator.handle, &desc, &probabilities, false), 0);
  EXPECT_EQ(y, (Floats{2, 0, 1, 0}));
}
void categorical_bad() {
  const Generator generator;
  Floats y = untouched(4), p = {1, -1, 2};
  const Array desc = vec(y), probabilities = vec(p);
  EXPECT_EQ(BNNSRandomFillCategoricalFloat(generator.handle, &desc, &probabilities, false), -1);
  EXPECT_TRUE(is_untouched(y));
}

}  // namespace

std::vector<Entry> random_entries() {
  return {
      {"BNNSCreateRandomGenerator", create_good, create_bad},
      {"BNNSCreateRandomGeneratorWithSeed", create_with_seed_good, create_with_seed_bad},
      {"BNNSDestroyRandomGenerator", destroy_good, destroy_bad, "releasing NULL is allowed, as with free"},
      {"BNNSRandomGeneratorStateSize", state_size_good, state_size_bad},
      {"BNNSRandomGeneratorGetState", get_state_good, get_state_bad},
      {"BNNSRandomGeneratorSetState", set_state_good, set_state_bad},
      {"BNNSRandomFillUniformFloat", uniform_float_good, uniform_float_bad},
      {"BNNSRandomFillUniformInt", uniform_int_good, uniform_int_bad},
      {"BNNSRandomFillNormalFloat", normal_good, normal_bad},
      {"BNNSRandomFillCategoricalFloat", categorical_good, categorical_bad},
  };
}

}  // namespace bnns::testing
