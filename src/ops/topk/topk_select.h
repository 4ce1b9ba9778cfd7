// The first k of a row in the order of TopK: largest first, NaN before numbers, equals by index.
//
// A key is an unsigned number that holds the value, so that larger means earlier, and below it the complement of the
// index: no two are equal, and one comparison orders them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

namespace bnns::topk {

using Key = uint64_t;
__extension__ using WideKey = unsigned __int128;  // of integers of 64 bits

// Zeros of both signs are equal, and so are all NaN.
inline uint32_t ordered(float x) {
  if (x != x) return UINT32_MAX;
  const uint32_t bits = std::bit_cast<uint32_t>(x == 0 ? 0.0f : x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
template <class T>
std::make_unsigned_t<T> ordered_integer(T x) {
  using U = std::make_unsigned_t<T>;
  return static_cast<U>(static_cast<U>(x) ^ (std::is_signed_v<T> ? U{1} << (sizeof(T) * 8 - 1) : U{0}));
}

template <class K, class Value>
K make_key(Value ordered_value, size_t index) {
  return static_cast<K>(ordered_value) << 32 | (UINT32_MAX - static_cast<uint32_t>(index));
}
template <class K>
size_t index_of(K key) {
  return UINT32_MAX - static_cast<uint32_t>(key);
}

inline constexpr size_t kFewKeys = 256;  // that are sorted by comparing

// Sorts n keys that come by rising index, the largest first, byte by byte from the lowest of the value; a byte that all
// have alike costs nothing but its count. Returns where they are: in keys or in other.
template <class K>
K* sort_all(K* keys, K* other, size_t n) {
  if (n <= kFewKeys) {
    std::sort(keys, keys + n, std::greater<>());
    return keys;
  }
  constexpr size_t kBytes = sizeof(K) == sizeof(Key) ? 4 : 8;
  size_t count[kBytes][256] = {};
  const auto byte_of = [](K key, size_t b) { return 255 - static_cast<size_t>(key >> (32 + 8 * b) & 255); };
  for (size_t i = 0; i < n; ++i) {
    for (size_t b = 0; b < kBytes; ++b) ++count[b][byte_of(keys[i], b)];
  }
  for (size_t b = 0; b < kBytes; ++b) {
    if (count[b][byte_of(keys[0], b)] == n) continue;
    size_t first[256], sum = 0;
    for (size_t d = 0; d < 256; ++d) first[d] = sum, sum += count[b][d];
    for (size_t i = 0; i < n; ++i) other[first[byte_of(keys[i], b)]++] = keys[i];
    std::swap(keys, other);
  }
  return keys;
}

// Few of many: candidates are kept as they pass the k-th best so far, and cut to k when there are 2 k.
template <class K>
class Candidates {
 public:
  Candidates(K* keys, size_t k) : keys_(keys), k_(k) {}
  // Whether the k-th best has changed.
  bool add(K key) {
    keys_[count_++] = key;
    if (count_ < 2 * k_) return false;
    cut();
    return true;
  }
  K worst() const { return keys_[k_ - 1]; }  // after the first cut
  const K* finish() {
    if (count_ > k_) cut();
    std::sort(keys_, keys_ + count_, std::greater<>());
    return keys_;
  }

 private:
  void cut() {
    std::nth_element(keys_, keys_ + (k_ - 1), keys_ + count_, std::greater<>());
    count_ = k_;
  }

  K* keys_;
  size_t k_, count_ = 0;
};

inline constexpr size_t kSelectShare = 8;  // of a row, or less: select; else sort

// Keys that select and sort_all need.
inline size_t key_count(size_t n, size_t k) {
  return k <= n / kSelectShare ? 2 * k : 2 * n;
}

// The first i in [begin, n) with x[i] > least or NaN; n if there is none.
size_t find_above(const float* x, size_t begin, size_t n, float least) noexcept;

// value(i) is the ordered value of element i. x: the same elements where they are f32, or NULL.
template <class K, class Value>
const K* first_keys(size_t n, size_t k, K* memory, const float* x, Value&& value) {
  if (k > n / kSelectShare) {
    for (size_t i = 0; i < n; ++i) memory[i] = make_key<K>(value(i), i);
    return sort_all(memory, memory + n, n);
  }
  Candidates<K> best(memory, k);
  size_t i = 0;
  for (; i < 2 * k; ++i) best.add(make_key<K>(value(i), i));
  if (x) {
    for (;;) {
      const float least = x[index_of(best.worst())];
      if (least != least) break;  // NaN, and those that follow are no larger
      bool changed = false;
      while (!changed && (i = find_above(x, i, n, least)) < n) changed = best.add(make_key<K>(value(i), i)), ++i;
      if (!changed) break;
    }
  } else {
    for (K worst = best.worst(); i < n; ++i) {
      const K key = make_key<K>(value(i), i);
      if (key > worst && best.add(key)) worst = best.worst();
    }
  }
  return best.finish();
}

}  // namespace bnns::topk
