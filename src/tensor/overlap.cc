#include "src/tensor/overlap.h"

#include <algorithm>

#include "src/core/error.h"

namespace bnns {

void check_extents(Extent* extents, size_t n, const char* op) {
  std::sort(extents, extents + n, [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  // Of all extents that begin before this one, only the ones that reach furthest can be the first to collide.
  const Extent* furthest = nullptr;
  const Extent* furthest_written = nullptr;
  for (size_t i = 0; i < n; ++i) {
    const Extent& e = extents[i];
    const Extent* other = e.written ? furthest : furthest_written;
    if (other && e.begin < other->end) {
      fail_invalid("%s: %s[%zu] and %s[%zu] share memory", op, other->list, other->index, e.list, e.index);
    }
    if (!furthest || e.end > furthest->end) furthest = &e;
    if (e.written && (!furthest_written || e.end > furthest_written->end)) furthest_written = &e;
  }
}

namespace {

bool same_elements(const BatchExtent& a, const BatchExtent& b, size_t batch) {
  const Tensor &x = a.sample, &y = b.sample;
  if (a.base != b.base || type_bits(x.type) != type_bits(y.type) || (batch > 1 && a.stride != b.stride)) return false;
  if (x.dense && y.dense) return true;  // any two layouts of as many elements, in memory order
  return x.layout == y.layout && std::equal(x.size, x.size + x.rank, y.size) &&
         std::equal(x.stride, x.stride + x.rank, y.stride);
}

__extension__ typedef __int128 Wide;  // addresses of samples that are not there may leave 64 bits

// Samples [base + i * step, + span) for i < count.
struct Row {
  Wide base, step, span, count;
  Wide last() const { return base + (count - 1) * step; }
};

// Whether a sample of `row` meets [begin, end).
bool meets(const Row& row, Wide begin, Wide end) {
  // base + i step > begin - span and base + i step < end, for some i
  const Wide above = begin - row.span - row.base;
  const Wide i = above < 0 ? 0 : above / row.step + 1;
  return i < row.count && row.base + i * row.step < end;
}

// The least i >= 0 with low <= (factor * i) mod modulus <= high, or -1. Euclid's algorithm: each step halves the
// modulus.
Wide first_in_range(Wide factor, Wide modulus, Wide low, Wide high) {
  if (low == 0) return 0;
  factor %= modulus;
  if (factor == 0) return -1;
  const Wide i = (low + factor - 1) / factor;
  if (i * factor <= high) return i;
  // i factor - j modulus in [low, high] means (j modulus) mod factor in [-high, -low] mod factor
  const Wide j =
      first_in_range(modulus % factor, factor, (factor - high % factor) % factor, (factor - low % factor) % factor);
  return j < 0 ? -1 : (low + j * modulus + factor - 1) / factor;
}

// Whether any sample of a meets one of b. Not by walking along them: a batch may be 2^40, and refusals are quick.
bool meet(const Row& a, const Row& b) {
  if (a.last() + a.span <= b.base || b.last() + b.span <= a.base) return false;
  if (meets(a, b.base, b.base + b.span) || meets(a, b.last(), b.last() + b.span)) return true;
  // Samples of a between the first and the last of b. What they could meet of b continued in both directions is there.
  const Wide first = std::max<Wide>(0, (b.base + b.span - a.base + a.step - 1) / a.step);
  const Wide room = b.last() - a.span - a.base;
  if (room < 0) return false;
  const Wide end = std::min(a.count, room / a.step + 1);
  if (first >= end) return false;
  // a_i - b_j in (-a.span, b.span): with c = a_first - b.base + a.span - 1, (c + i a.step) mod b.step <= width
  const Wide width = a.span + b.span - 2;
  if (width >= b.step - 1) return true;
  const Wide c = (a.base + first * a.step - b.base + a.span - 1) % b.step;
  if (c <= width) return true;
  const Wide i = first_in_range(a.step, b.step, b.step - c, b.step - c + width);
  return i >= 0 && i < end - first;
}

}  // namespace

void check_in_place_or_apart(const BatchExtent& input, const BatchExtent& output, size_t batch, const char* op) {
  if (batch == 0 || !input.base || !output.base || same_elements(input, output, batch)) return;
  const auto row = [&](const BatchExtent& e) {
    const size_t step = e.stride * type_bytes(e.sample.type);
    const auto base = reinterpret_cast<uintptr_t>(e.base);
    return Row{base, static_cast<Wide>(step ? step : 1), static_cast<Wide>(e.sample.span_bytes()),
               static_cast<Wide>(step ? batch : 1)};
  };
  if (meet(row(input), row(output))) {
    fail_invalid("%s: %s and %s overlap, expected memory apart, or the same elements (in place)", op, output.name,
                 input.name);
  }
}

}  // namespace bnns
