// Pictures into a network, and what it makes of them.
#include <algorithm>

#include "tools/bnns/model/network.h"
#include "tools/bnns/model/ranks.h"
#include "tools/bnns/model/train.h"

namespace bnns::tool {

void load_picture(const Dataset& set, std::size_t index, int dx, int dy, float* out) {
  const auto rows = static_cast<std::ptrdiff_t>(set.rows), columns = static_cast<std::ptrdiff_t>(set.columns);
  const std::uint8_t* in = set.image(index);
  if (dx != 0 || dy != 0) std::fill(out, out + rows * columns, 0.0f);
  const std::ptrdiff_t x0 = std::max(0, dx), x1 = std::min(columns, columns + dx);
  for (std::ptrdiff_t y = std::max(0, dy); y < std::min(rows, rows + dy); ++y) {
    for (std::ptrdiff_t x = x0; x < x1; ++x) {
      out[y * columns + x] = static_cast<float>(in[(y - dy) * columns + x - dx]) * (1.0f / 255);
    }
  }
}

std::vector<float> predict_all(Network& model, const Dataset& set, Ranks* ranks) {
  const std::size_t inputs = set.pixels_per_image(), rank = ranks != nullptr ? ranks->rank() : 0,
                    size = ranks != nullptr ? ranks->size() : 1, last = set.count() * (rank + 1) / size;
  std::vector<float> x(kTestBatch * inputs), probabilities(set.count() * kClasses);
  for (std::size_t begin = set.count() * rank / size; begin < last; begin += kTestBatch) {
    const std::size_t batch = std::min(kTestBatch, last - begin);
    for (std::size_t i = 0; i < batch; ++i) load_picture(set, begin + i, 0, 0, x.data() + i * inputs);
    model.predict(x.data(), batch, probabilities.data() + begin * kClasses);
  }
  // Zeros but for each rank's own: the sum is exact.
  if (ranks != nullptr) ranks->all_reduce(Ranks::Reduction::sum, vector(probabilities.size(), probabilities.data()));
  return probabilities;
}

}  // namespace bnns::tool
