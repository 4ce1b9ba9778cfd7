#include "src/core/overlap.h"

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

}  // namespace

void check_in_place_or_apart(const BatchExtent& input, const BatchExtent& output, size_t batch, const char* op) {
  if (batch == 0 || !input.base || !output.base || same_elements(input, output, batch)) return;
  const uintptr_t a = reinterpret_cast<uintptr_t>(input.base), b = reinterpret_cast<uintptr_t>(output.base);
  const size_t a_span = input.sample.span_bytes(), b_span = output.sample.span_bytes();
  const size_t a_step = input.stride * type_bytes(input.sample.type);
  const size_t b_step = output.stride * type_bytes(output.sample.type);
  // Two rows of intervals by rising address: the one that ends first cannot meet anything further.
  for (size_t i = 0, j = 0; i < batch && j < batch;) {
    const uintptr_t from_a = a + i * a_step, from_b = b + j * b_step;
    if (from_a < from_b + b_span && from_b < from_a + a_span) {
      fail_invalid("%s: %s and %s overlap, expected memory apart, or the same elements (in place)", op, output.name,
                   input.name);
    }
    from_a + a_span <= from_b + b_span ? ++i : ++j;
  }
}

}  // namespace bnns
