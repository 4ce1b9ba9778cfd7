// Copies of a few elements, in line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bnns {

// n elements of few bytes by loads that overlap in the middle: rows of 3 to 32 floats must not pay for a call.
template <class T>
inline void copy_row(const T* from, T* to, size_t n) {
  const size_t bytes = n * sizeof(T);
  const char* source = reinterpret_cast<const char*>(from);
  char* target = reinterpret_cast<char*>(to);
  const auto ends = [&](auto piece) {
    auto last = piece;
    std::memcpy(&piece, source, sizeof piece);
    std::memcpy(&last, source + bytes - sizeof last, sizeof last);
    std::memcpy(target, &piece, sizeof piece);
    std::memcpy(target + bytes - sizeof last, &last, sizeof last);
  };
  struct Bytes16 {
    uint64_t half[2];
  };
  struct Bytes32 {
    uint64_t quarter[4];
  };
  if (bytes < 4 || bytes > 128) {
    if (bytes > 128) {
      std::memcpy(target, source, bytes);
    } else {
      for (size_t i = 0; i < n; ++i) to[i] = from[i];
    }
  } else if (bytes < 8) {
    ends(uint32_t{});
  } else if (bytes <= 16) {
    ends(uint64_t{});
  } else if (bytes <= 32) {
    ends(Bytes16{});
  } else if (bytes <= 64) {
    ends(Bytes32{});
  } else {
    std::memcpy(target, source, 64);
    std::memcpy(target + bytes - 64, source + bytes - 64, 64);
  }
}

}  // namespace bnns
