// The tool's own random numbers: SplitMix64 (Steele, Lea, Flood 2014). Integer arithmetic and exact float scaling
// only, so a seed gives the same digits and the same shuffles on every machine and with any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bnns::tool {

// The SplitMix64 output function: a bijection that spreads every input bit over the whole word.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class Prng {
 public:
  // Independent streams come from one seed by naming them: Prng(seed, kind, index).
  explicit Prng(std::uint64_t seed, std::uint64_t kind = 0, std::uint64_t index = 0)
      : state_(mix64(mix64(mix64(seed) + kind) + index)) {}

  std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15u); }

  // Uniform in [0, 1) with 24 bits: exact in float.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }

  // Nearly normal, mean 0 and deviation 1: twelve uniforms, centred. Needs no libm, never leaves [-6, 6].
  float normal() {
    float sum = -6.0f;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

  // Uniform in [0, n), n > 0 and below 2^32. The bias is at most n / 2^32.
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32); }

  void shuffle(std::vector<std::uint32_t>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[below(static_cast<std::uint32_t>(i))]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace bnns::tool
