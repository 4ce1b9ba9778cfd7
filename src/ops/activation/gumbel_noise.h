// Uniform numbers for Gumbel and GumbelMax (K9): a process-wide counter through a mixing function.
//
// An apply takes a stretch of the counter at once, so element i of that apply has the same number on any thread, and
// calls at the same time never share numbers. There is no lock and nothing to seed; a forked child draws others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bnns {

// Where one apply draws from.
struct NoiseStretch {
  uint64_t key = 0, first = 0;
};

NoiseStretch reserve_noise(size_t n) noexcept;

// u[j] = number first + j of the stretch, in (0, 1): the middles of 2^23 equal parts, so neither end is reached.
void fill_uniform(const NoiseStretch& stretch, size_t first, float* u, size_t n) noexcept;

// Makes the numbers repeatable, for tests.
void seed_noise(uint64_t seed) noexcept;

}  // namespace bnns
