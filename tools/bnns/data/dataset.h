// Labelled grey pictures in memory: what the digit generator makes and the IDX reader reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bnns::tool {

inline constexpr std::size_t kClasses = 10;

struct Dataset {
  std::size_t rows = 0, columns = 0;
  std::vector<std::uint8_t> pixels;  // count() x rows x columns, 0 = paper, 255 = ink
  std::vector<std::uint8_t> labels;  // each below kClasses

  std::size_t count() const { return labels.size(); }
  std::size_t pixels_per_image() const { return rows * columns; }
  const std::uint8_t* image(std::size_t i) const { return pixels.data() + i * pixels_per_image(); }
};

struct DataSplit {
  Dataset train, test;
  std::string source;  // one line for people: where the pictures come from
};

}  // namespace bnns::tool
