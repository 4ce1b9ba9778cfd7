// The generator: its stream of words, its state, its handle.

#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

#include "src/core/error.h"
#include "src/ops/random/random.h"

namespace bnns {
namespace {

constexpr const char* kOp = "random";
constexpr uint64_t kStateTag = 0x31676e72534e4e42;  // "BNNSrng1"
constexpr size_t kWordsPerBlock = kAesBlockBytes / sizeof(uint32_t);

AesKey key_of_seed(uint64_t seed) noexcept {
  uint8_t key[16];
  for (size_t i = 0; i < 16; ++i) key[i] = static_cast<uint8_t>(seed >> (8 * (i % 8)));
  return aes128_expand_key(key);
}

void store_u64(uint8_t* to, uint64_t value) noexcept {
  for (size_t i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(value >> (8 * i));
}
uint64_t load_u64(const uint8_t* from) noexcept {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= static_cast<uint64_t>(from[i]) << (8 * i);
  return value;
}

// FNV-1a of the state's other 32 bytes: tells a saved state from bytes that never were one.
uint64_t state_check(const uint8_t* state) noexcept {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < kRandomStateBytes - 8; ++i) hash = (hash ^ state[i]) * 0x100000001b3;
  return hash;
}

}  // namespace

void WordStream::words(uint64_t index, size_t n, uint32_t* out) const noexcept {
  const uint64_t at = first + index;
  uint64_t block = at / kWordsPerBlock;
  uint32_t partial[kWordsPerBlock];
  if (const size_t used = at % kWordsPerBlock) {
    const size_t head = std::min(n, kWordsPerBlock - used);
    aes128_counter_blocks(key, block++, 1, reinterpret_cast<uint8_t*>(partial));
    std::memcpy(out, partial + used, head * sizeof(uint32_t));
    out += head;
    n -= head;
  }
  const size_t whole = n / kWordsPerBlock, tail = n % kWordsPerBlock;
  aes128_counter_blocks(key, block, whole, reinterpret_cast<uint8_t*>(out));
  if (tail) {
    aes128_counter_blocks(key, block + whole, 1, reinterpret_cast<uint8_t*>(partial));
    std::memcpy(out + whole * kWordsPerBlock, partial, tail * sizeof(uint32_t));
  }
}

Generator::Generator(const Options& options, uint64_t seed) noexcept
    : options_(options), seed_(seed), key_(key_of_seed(seed)) {}

void Generator::repair_after(const ForkLock& lock) noexcept {
  if (!lock.intact()) key_ = key_of_seed(seed_);
}

WordStream Generator::take(uint64_t n) {
  const ForkLock lock(mutex_);
  repair_after(lock);
  if (n > std::numeric_limits<uint64_t>::max() - position_) {
    fail_invalid("%s: the fill takes %llu words, but the generator has %llu left", kOp,
                 static_cast<unsigned long long>(n), static_cast<unsigned long long>(~position_));
  }
  const WordStream stream{key_, position_};
  position_ += n;
  return stream;
}

void Generator::get_state(uint8_t state[kRandomStateBytes]) noexcept {
  uint64_t seed, position;
  {
    const ForkLock lock(mutex_);
    repair_after(lock);
    seed = seed_;
    position = position_;
  }
  store_u64(state, kStateTag);
  store_u64(state + 8, seed);
  store_u64(state + 16, position);
  store_u64(state + 24, 0);
  store_u64(state + 32, state_check(state));
}

void Generator::set_state(const uint8_t state[kRandomStateBytes]) {
  uint8_t copy[kRandomStateBytes];  // checked and used from one reading
  std::memcpy(copy, state, sizeof copy);
  if (load_u64(copy) != kStateTag || load_u64(copy + 24) != 0 || load_u64(copy + 32) != state_check(copy)) {
    fail_invalid("%s: state is not one that BNNSRandomGeneratorGetState of this library wrote", kOp);
  }
  const uint64_t seed = load_u64(copy + 8);
  const AesKey key = key_of_seed(seed);
  const ForkLock lock(mutex_);
  repair_after(lock);
  seed_ = seed;
  key_ = key;
  position_ = load_u64(copy + 16);
}

Generator& generator_from_handle(BNNSRandomGenerator handle) {
  if (!handle) fail_invalid("%s: generator is NULL, expected one that BNNSCreateRandomGenerator returned", kOp);
  Generator* generator = static_cast<Generator*>(handle);
  if (reinterpret_cast<uintptr_t>(handle) % alignof(Generator) != 0 || !generator->alive()) {
    fail_invalid("%s: generator %p is not a living generator of this library", kOp, handle);
  }
  return *generator;
}

uint64_t random_seed() noexcept {
  uint64_t seed;
  ssize_t got;
  do {
    got = getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof seed) return seed;
  // Kernels before 3.17 and strict sandboxes: time and a count, so that two generators differ.
  static std::atomic<uint64_t> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return static_cast<uint64_t>(now) ^ (count.fetch_add(1) + 1) * 0x9e3779b97f4a7c15;
}

}  // namespace bnns
