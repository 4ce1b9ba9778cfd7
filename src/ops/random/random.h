// Random numbers: a stream of 32-bit words from AES-128 in counter mode, and four distributions that fill a tensor from
// it.
//
//   key      the 64-bit seed, little-endian, twice
//   word i   little-endian 32-bit word i mod 4 of AES(key, i / 4), the counter as a 128-bit big-endian number
//
// A fill of n elements takes the next n unused words (2 n for integer ranges above 2^32) and gives word i to element i
// in memory order, so a value depends on the generator's state and on i alone: same bits for any thread count.
//
//   uniform float  u = min(float(word) 2^-32, 1 - 2^-24),  y = fma(u, b - a, a), kept inside [a, b)
//   uniform int    y = a + floor(word (b - a) / 2^32)
//   normal float   y = mean + stddev * quantile((word + 1/2) 2^-32)
//   categorical    y = the first class whose cumulative probability exceeds word 2^-32 times the total
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/memory.h"
#include "src/core/process/fork.h"
#include "src/ops/random/aes.h"
#include "src/tensor/tensor.h"

namespace bnns {

// ---- the words -----------------------------------------------------------------------------------------------------

// The words that one fill owns, by their index in the fill.
struct WordStream {
  AesKey key;
  uint64_t first = 0;  // position of the fill's first word in the generator's stream

  // Words [index, index + n) to out.
  void words(uint64_t index, size_t n, uint32_t* out) const noexcept;
};

inline constexpr size_t kRandomStateBytes = 40;

// The object behind a BNNSRandomGenerator handle. All members may be called from many threads at once: a fill takes
// its words under the lock and writes outside it, so two fills never share a word and never wait for each other.
class Generator {
 public:
  Generator(const Options& options, uint64_t seed) noexcept;
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // The next n words. Refuses when the stream's 2^64 - 1 words are used up.
  WordStream take(uint64_t n);

  // State: "BNNSrng1", seed, position of the next unused word, zero, check sum; 8 bytes each, little-endian.
  void get_state(uint8_t state[kRandomStateBytes]) noexcept;
  // Refuses bytes that no get_state wrote; the generator is then unchanged.
  void set_state(const uint8_t state[kRandomStateBytes]);

  const Options& options() const { return options_; }
  bool alive() const { return magic_ == kMagic; }
  void retire() { magic_ = 0; }

 private:
  static constexpr uint64_t kMagic = 0x676e72534e4e4253;  // no filter and no text begins with it
  volatile uint64_t magic_ = kMagic;  // volatile: the store in retire() must survive dead-store elimination
  Options options_;
  // In a child that was forked during a set_state the key may be half-written; seed and position are each whole.
  void repair_after(const ForkLock& lock) noexcept;

  ForkMutex mutex_;  // guards what follows
  uint64_t seed_;
  uint64_t position_ = 0;
  AesKey key_;
};

// The generator behind a handle; refuses NULL and pointers that are no living generator.
Generator& generator_from_handle(BNNSRandomGenerator handle);

// A seed from the operating system.
uint64_t random_seed() noexcept;

// ---- the fills -----------------------------------------------------------------------------------------------------
// Each checks everything before it takes words: a refused call changes neither the tensor nor the generator.

void fill_uniform_float(Generator& generator, const BNNSNDArrayDescriptor* desc, float a, float b);
void fill_uniform_int(Generator& generator, const BNNSNDArrayDescriptor* desc, int64_t a, int64_t b);
void fill_normal_float(Generator& generator, const BNNSNDArrayDescriptor* desc, float mean, float stddev);
void fill_categorical_float(Generator& generator, const BNNSNDArrayDescriptor* desc,
                            const BNNSNDArrayDescriptor* probabilities, bool log_probabilities);

// A descriptor that a fill writes: resolved, with data, no packed layout, and no two elements at one address.
Tensor resolve_fill(const BNNSNDArrayDescriptor* desc);

// ---- kernels: random_simd.cc ---------------------------------------------------------------------------------------
// The same bits on every instruction set: they use only operations that IEEE 754 rounds, and FMA where it is named.

// [a, b) in a float type: y = clamp(scale * fma(u, width, a), low, high); low and high are values of the type.
struct UniformRule {
  float a = 0, width = 1;
  float scale = 1;  // 2 when b - a overflows; a and width are then halved
  float low = 0, high = 1;
};
UniformRule make_uniform_rule(BNNSDataType type, float a, float b);
void uniform_from_words(const UniformRule& rule, const uint32_t* words, size_t n, float* y) noexcept;

// y = mean + stddev z, kept within +-limit, the largest finite value of the type.
struct NormalRule {
  double mean = 0, stddev = 1, limit = 0;
};
NormalRule make_normal_rule(BNNSDataType type, float mean, float stddev);
void normal_from_words(const NormalRule& rule, const uint32_t* words, size_t n, float* y) noexcept;

}  // namespace bnns
