// A PNG file as one grey picture, as the networks of bnns take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bnns::tool {

struct Picture {
  std::size_t rows = 0, columns = 0;
  std::vector<std::uint8_t> pixels;  // rows x columns, 0 is black
};

// Whether the file begins as a PNG file does. Throws DataError where it cannot be read.
bool is_png(const std::string& file);

// Colours become grey, what is transparent black. Throws DataError for a damaged file, a picture of other than rows x
// columns pixels (0 x 0: any, with sides of at most kMaxPngSide), and where bnns was built without libpng.
inline constexpr std::size_t kMaxPngSide = 4096;
Picture read_png(const std::string& file, std::size_t rows, std::size_t columns);

}  // namespace bnns::tool
