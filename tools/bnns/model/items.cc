// Pictures, rows of numbers and texts into a network, and what it makes of them.
#include <algorithm>

#include "tools/bnns/data/prng.h"
#include "tools/bnns/model/network.h"
#include "tools/bnns/model/ranks.h"
#include "tools/bnns/model/train.h"
#include "tools/bnns/trace_range.h"

namespace bnns::tool {

void load_item(const Dataset& set, std::size_t index, Change change, float* out) {
  if (set.is_text()) {
    std::copy_n(set.image(index), set.columns, out);
    return;
  }
  if (!set.is_pictures()) {
    std::copy_n(set.values.begin() + static_cast<std::ptrdiff_t>(index * set.columns), set.columns, out);
    return;
  }
  const auto rows = static_cast<std::ptrdiff_t>(set.rows), columns = static_cast<std::ptrdiff_t>(set.columns);
  const auto [dx, dy, mirrored] = change;
  if (dx != 0 || dy != 0) std::fill(out, out + set.inputs(), 0.0f);
  const std::ptrdiff_t x0 = std::max(0, dx), x1 = std::min(columns, columns + dx);
  const std::uint8_t* in = set.image(index);
  for (std::size_t c = 0; c < set.channels; ++c, in += rows * columns, out += rows * columns) {
    for (std::ptrdiff_t y = std::max(0, dy); y < std::min(rows, rows + dy); ++y) {
      const std::uint8_t* const row = in + (y - dy) * columns;
      for (std::ptrdiff_t x = x0; x < x1; ++x) {
        const std::ptrdiff_t from = mirrored ? columns - 1 - (x - dx) : x - dx;
        out[y * columns + x] = static_cast<float>(row[from]) * (1.0f / 255);
      }
    }
  }
}

std::vector<float> predict_all(Network& model, const Dataset& set, Ranks* ranks) {
  const TraceRange range("test");
  const std::size_t inputs = set.inputs(), outputs = set.steps * set.classes,
                    rank = ranks != nullptr ? ranks->rank() : 0, size = ranks != nullptr ? ranks->size() : 1,
                    last = set.count() * (rank + 1) / size;
  std::vector<float> x(kTestBatch * inputs), probabilities(set.count() * outputs);
  for (std::size_t begin = set.count() * rank / size; begin < last; begin += kTestBatch) {
    const std::size_t batch = std::min(kTestBatch, last - begin);
    for (std::size_t i = 0; i < batch; ++i) load_item(set, begin + i, {}, x.data() + i * inputs);
    model.predict(x.data(), batch, probabilities.data() + begin * outputs);
  }
  // Zeros but for each rank's own: the sum is exact.
  if (ranks != nullptr) ranks->all_reduce(Ranks::Reduction::sum, vector(probabilities.size(), probabilities.data()));
  return probabilities;
}

std::size_t index_of_largest(const float* values, std::size_t count) {
  return static_cast<std::size_t>(std::max_element(values, values + count) - values);
}

std::size_t count_right(const std::vector<float>& probabilities, const Dataset& set) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < set.labels.size(); ++i) {
    right += index_of_largest(&probabilities[i * set.classes], set.classes) == set.labels[i] ? 1 : 0;
  }
  return right;
}

std::vector<std::uint8_t> generate(Network& model, std::vector<std::uint8_t> text, std::size_t count,
                                   std::size_t classes, std::size_t steps, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 5;  // names of the others are in run.h
  Prng random(seed, kStream);
  std::vector<float> x(steps), probabilities(steps * classes);
  const std::size_t before = text.size();
  while (text.size() < before + count) {
    // A window that is not full yet says nothing of its rest: an answer depends on what is before it.
    const std::size_t seen = std::min(text.size(), steps);
    std::copy_n(text.end() - static_cast<std::ptrdiff_t>(seen), seen, x.begin());
    model.predict(x.data(), 1, probabilities.data());
    const float* const p = &probabilities[(seen - 1) * classes];
    float left = random.uniform();
    std::size_t k = 0;
    while (k + 1 < classes && left >= p[k]) left -= p[k++];
    text.push_back(static_cast<std::uint8_t>(k));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(before), text.end()};
}

}  // namespace bnns::tool
