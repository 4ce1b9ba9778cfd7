// SHA-256 (FIPS 180-4), enough to name a set of weights.
#pragma once

#include <cstddef>
#include <string>

namespace bnns::tool {

// The digest of `size` bytes as 64 lower-case hexadecimal digits.
std::string sha256_hex(const void* data, std::size_t size);

}  // namespace bnns::tool
