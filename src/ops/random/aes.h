// AES-128 encryption (FIPS-197), as a counter generator. Not hardened against timing: no secrets go through here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bnns {

inline constexpr size_t kAesBlockBytes = 16;
inline constexpr size_t kAesRounds = 10;

// The expanded key: one block per round and one before the first.
struct alignas(16) AesKey {
  uint32_t words[4 * (kAesRounds + 1)] = {};  // column words, first byte lowest
};

AesKey aes128_expand_key(const uint8_t key[16]) noexcept;

// One block, by tables. in and out may be the same.
void aes128_encrypt(const AesKey& key, const uint8_t in[16], uint8_t out[16]) noexcept;

// Encrypts the counters first, first + 1, ..., each as a 128-bit big-endian number: 16 * blocks bytes to out (any
// alignment). Uses the CPU's AES instructions where it has them, under any ISA cap: they belong to none of our sets,
// and small CPUs without AVX2 have them too. The bits are the same either way.
void aes128_counter_blocks(const AesKey& key, uint64_t first, size_t blocks, uint8_t* out) noexcept;

// The two implementations by name, for tests. The second may only be called where aes_instructions() is true.
void aes128_counter_blocks_tables(const AesKey& key, uint64_t first, size_t blocks, uint8_t* out) noexcept;
void aes128_counter_blocks_instructions(const AesKey& key, uint64_t first, size_t blocks, uint8_t* out) noexcept;
bool aes_instructions() noexcept;

}  // namespace bnns
