#include "src/ops/activation/gumbel_noise.h"

#include <unistd.h>

#include <atomic>
#include <chrono>

namespace bnns {
namespace {

// The output function of SplitMix64 (Steele, Lea, Flood 2014): a bijection whose outputs pass the usual batteries.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t fresh_key() noexcept {
  uint64_t key;
  if (getentropy(&key, sizeof key) == 0) return key;
  return mix(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
}

std::atomic<uint64_t> next_number{0}, seeded_key{0};  // key 0: not seeded

}  // namespace

NoiseStretch reserve_noise(size_t n) noexcept {
  static const uint64_t process_key = fresh_key();
  const uint64_t seeded = seeded_key.load(std::memory_order_relaxed);
  const uint64_t key = seeded ? seeded : process_key ^ mix(static_cast<uint64_t>(getpid()));
  return {key, next_number.fetch_add(n, std::memory_order_relaxed)};
}

void fill_uniform(const NoiseStretch& stretch, size_t first, float* u, size_t n) noexcept {
  for (size_t j = 0; j < n; ++j) {
    const uint64_t number = stretch.first + first + j;
    const uint64_t word = mix(mix(number * 0x9e3779b97f4a7c15u + stretch.key) + stretch.key);
    u[j] = (static_cast<float>(word >> 41) + 0.5f) * 0x1p-23f;
  }
}

void seed_noise(uint64_t seed) noexcept {
  seeded_key.store(mix(seed) | 1, std::memory_order_relaxed);
  next_number.store(0, std::memory_order_relaxed);
}

}  // namespace bnns
