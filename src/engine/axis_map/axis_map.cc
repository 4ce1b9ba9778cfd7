// The tables of a map: taps by destination, and which destinations read a source.

#include "src/engine/axis_map/axis_map.h"

#include <algorithm>

#include "src/core/checked.h"

namespace bnns {

AxisTable::AxisTable(const Options& options, size_t in, size_t out, bool linear, const char* op) : in_(in), out_(out) {
  for (const size_t extent : {in, out}) {
    if (extent > INT32_MAX) {
      fail_unsupported("%s: an axis that changes has %zu elements, expected at most %d", op, extent, INT32_MAX);
    }
  }
  const size_t words = out * 2 + in + 1;  // below 2^33
  memory_ = Buffer(options, words * sizeof(uint32_t), "the taps of an axis");
  index_ = memory_.as<uint32_t>();
  first_ = index_ + out;
  if (linear) {
    fraction_ = reinterpret_cast<float*>(first_ + in + 1);
  } else {
    rows_ = first_ + in + 1;
  }
}

void AxisTable::finish() {
  std::fill_n(first_, in_ + 1, uint32_t{0});
  for (size_t o = 0; o < out_; ++o) {
    if (index_[o] != kNone) ++first_[index_[o] + 1];
  }
  for (size_t i = 0; i < in_; ++i) {
    const size_t before = fraction_ && i > 0 ? first_[i] - (i > 1 ? first_[i - 1] : 0) : 0;
    most_ = std::max(most_, before + first_[i + 1]);
    first_[i + 1] += first_[i];
  }
  if (rows_) {  // by rising output, so that every list of the transpose rises
    for (size_t o = 0; o < out_; ++o) {
      if (index_[o] != kNone) rows_[first_[index_[o]]++] = static_cast<uint32_t>(o);
    }
    for (size_t i = in_; i > 0; --i) first_[i] = first_[i - 1];
    first_[0] = 0;
  }
  for (const MapDirection d : {MapDirection::forward, MapDirection::backward}) {
    const size_t rows = d == MapDirection::forward ? out_ : in_;
    if (fraction_) continue;
    const auto source = [&](size_t row) {
      const Taps t = taps(d, row);
      return t.end - t.begin == 1 ? this->source(d, row) : kNone;
    };
    Run& longest = runs_[d == MapDirection::forward ? 0 : 1];
    for (size_t o = 0; o < rows;) {
      size_t end = o + 1;
      while (end < rows && source(o) != kNone && source(end) == source(end - 1) + 1) ++end;
      if (source(o) != kNone && end - o > longest.end - longest.begin) longest = {o, end};
      o = end;
    }
  }
}

}  // namespace bnns
