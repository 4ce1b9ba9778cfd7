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
std::atomic<uint64_t> first_key{0};                   // 0: not drawn yet

// Drawn once; of threads that draw at the same time one wins. A function's static variable would do, but for a child
// that is forked while another thread initialises it, and waits for that thread for ever.
uint64_t process_key() noexcept {
  uint64_t key = first_key.load(std::memory_order_relaxed);
  if (key != 0) return key;
  const uint64_t drawn = fresh_key() | 1;
  return first_key.compare_exchange_strong(key, drawn, std::memory_order_relaxed) ? drawn : key;
}

}  // namespace

NoiseStretch reserve_noise(size_t n) noexcept {
  const uint64_t seeded = seeded_key.load(std::memory_order_relaxed);
  const uint64_t key = seeded ? seeded : process_key() ^ mix(static_cast<uint64_t>(getpid()));
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
