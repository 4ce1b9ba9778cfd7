// The reduction of a copy to few axes.

#include "src/engine/copy/copy.h"

namespace bnns {

void set_copy_axes(CopyProblem* p, const CopyAxis* axes, size_t n, ptrdiff_t from_offset, ptrdiff_t to_offset) {
  CopyAxis sorted[kMaxCopyAxes];
  size_t rank = 0;
  for (size_t k = 0; k < n; ++k) {
    if (axes[k].extent == 1) continue;
    CopyAxis a = axes[k];
    if (a.to < 0) {  // walk it from the other end, on both sides
      const ptrdiff_t last = static_cast<ptrdiff_t>(a.extent - 1);
      from_offset += last * a.from;
      to_offset += last * a.to;
      a.from = -a.from;
      a.to = -a.to;
    }
    size_t at = rank++;  // sorted by insertion: there are few
    for (; at > 0 && sorted[at - 1].to > a.to; --at) sorted[at] = sorted[at - 1];
    sorted[at] = a;
  }
  p->rank = 0;
  for (size_t k = 0; k < rank; ++k) {
    CopyAxis* last = p->rank ? &p->axes[p->rank - 1] : nullptr;
    const ptrdiff_t extent = last ? static_cast<ptrdiff_t>(last->extent) : 0;
    if (last && sorted[k].from == last->from * extent && sorted[k].to == last->to * extent) {
      last->extent *= sorted[k].extent;
    } else {
      p->axes[p->rank++] = sorted[k];
    }
  }
  if (p->rank == 0) p->axes[p->rank++] = CopyAxis{1, 1, 1};  // one element
  p->from_offset = static_cast<size_t>(from_offset);
  p->to_offset = static_cast<size_t>(to_offset);
}

std::string CopyProblem::text(const char* name) const {
  return std::string(name) + " " + from.text() + " to " + to.text();
}

}  // namespace bnns
