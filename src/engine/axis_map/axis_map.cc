// The tables of a map: taps by destination, and by source for the transpose.

#include "src/engine/axis_map/axis_map.h"

#include <algorithm>

#include "src/core/checked.h"

namespace bnns {

AxisTable::AxisTable(const Options& options, const Tap* taps, size_t in, size_t out) {
  size_t count = 0, most = 0;
  bool moves = true;
  for (size_t o = 0; o < out; ++o) {
    count += taps[o].index < 0 ? 0 : taps[o].fraction != 0 ? 2 : 1;
    moves &= taps[o].fraction == 0;
  }
  const char* what = "the taps of an axis";
  const size_t words =
      checked_add(checked_add(checked_mul(out, 2, what), in, what), checked_mul(2, count, what) + 2, what);
  memory_ =
      Buffer(options, checked_add(checked_mul(words, sizeof(size_t), what), 2 * count * sizeof(float), what), what);
  size_t* forward_first = memory_.as<size_t>();
  size_t* backward_first = forward_first + out + 1;
  size_t* forward_index = backward_first + in + 1;
  size_t* backward_index = forward_index + count;
  ptrdiff_t* source = reinterpret_cast<ptrdiff_t*>(backward_index + count);
  float* forward_weight = reinterpret_cast<float*>(source + out);
  float* backward_weight = forward_weight + count;

  std::fill_n(backward_first, in + 1, size_t{0});
  size_t at = 0;
  for (size_t o = 0; o < out; ++o) {
    const Tap tap = taps[o];
    forward_first[o] = at;
    source[o] = tap.index;
    for (ptrdiff_t k = 0; k < (tap.index < 0 ? 0 : tap.fraction != 0 ? 2 : 1); ++k) {
      forward_index[at] = static_cast<size_t>(tap.index + k);
      forward_weight[at] = k ? tap.fraction : 1 - tap.fraction;
      ++backward_first[forward_index[at++] + 1];
    }
  }
  forward_first[out] = at;
  // Counts become starts; walking the taps by rising o then leaves every list of the transpose in rising order.
  for (size_t i = 1, start = 0; i <= in; ++i) {
    most = std::max(most, backward_first[i]);
    backward_first[i] = start += backward_first[i];
  }
  for (size_t o = 0; o < out; ++o) {
    for (size_t k = forward_first[o]; k < forward_first[o + 1]; ++k) {
      const size_t to = backward_first[forward_index[k]]++;
      backward_index[to] = o;
      backward_weight[to] = forward_weight[k];
    }
  }
  for (size_t i = in; i > 0; --i) backward_first[i] = backward_first[i - 1];
  backward_first[0] = 0;

  forward_ = {forward_first, forward_index, moves ? nullptr : forward_weight, moves ? size_t{1} : size_t{2}};
  backward_ = {backward_first, backward_index, moves ? nullptr : backward_weight, most};
  source_ = source;
  for (size_t o = 0; o < out;) {
    size_t end = o + 1;
    while (end < out && source[o] >= 0 && source[end] == source[end - 1] + 1) ++end;
    if (source[o] >= 0 && end - o > run_end_ - run_begin_) run_begin_ = o, run_end_ = end;
    o = end;
  }
}

}  // namespace bnns
