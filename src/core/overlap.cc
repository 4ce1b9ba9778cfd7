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

}  // namespace bnns
