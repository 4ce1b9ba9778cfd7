// Up over a stride: its phases, row by row, each by the algorithm that accepts it.

#include "src/ops/convolution/strided.h"

#include <optional>

#include "src/ops/convolution/common/fill.h"
#include "src/ops/convolution/gemm/patches.h"
#include "src/ops/convolution/implementations.h"

namespace bnns {
namespace {

bool is_product(const MapImplementation& entry) {
  return entry.run == run_gemm_patches;
}

// Both phases of rows of a stride of 2 along x, where they are products or nothing: one pass that writes whole rows,
// and those below them if no tap reaches these. Their bits are those of two products, which run where blocks differ.
bool run_both(const PatchMap& first, const PatchMap& second, bool fill_next_row, CallScratch& scratch) {
  std::optional<PatchProduct> even, odd;
  if (first.has_taps()) even.emplace(first);
  if (second.has_taps()) odd.emplace(second);
  const PatchProduct *a = even ? &*even : nullptr, *b = odd ? &*odd : nullptr;
  if (!PatchProduct::can_pair(a, b)) return false;
  CallScratch::Lease workspace(scratch, PatchProduct::pair_bytes(a, b));
  if (!scratch.measuring()) PatchProduct::run_pair(a, b, fill_next_row, first.source, workspace.data());
  return true;
}

}  // namespace

void run_strided(const PatchMap& p, CallScratch& scratch) {
  const size_t phases_y = p.phases_y(), phases_x = p.phases_x();
  const bool whole_rows = p.map.x.stride == 2 && p.map.x.large % 2 == 0 && !p.target.accumulate && !p.target.sink;
  PatchMap first = p, second = p;
  PatchAxis first_x;
  for (size_t ry = 0; ry < phases_y; ++ry) {
    first.y = second.y = up_axis(p.map.y, ry);
    first.x = up_axis(p.map.x, 0);
    if (first.y.taps == 0) {  // whole rows
      first.x = {};
      first.x.pixels = p.map.x.large;
      choose(kMaps, first).run(first, scratch);
      continue;
    }
    if (whole_rows) {
      first_x = first.x;
      second.x = up_axis(p.map.x, 1);
      first.pair = second.pair = &first_x;
      const MapImplementation &a = choose(kMaps, first), &b = choose(kMaps, second);
      const bool products = (is_product(a) || a.run == run_fill) && (is_product(b) || b.run == run_fill) &&
                            (is_product(a) || is_product(b));
      const bool fill_next_row = ry + 1 < phases_y && up_axis(p.map.y, ry + 1).taps == 0;
      if (products && run_both(first, second, fill_next_row, scratch)) {
        if (fill_next_row) ++ry;
        continue;
      }
      a.run(first, scratch);
      b.run(second, scratch);
      continue;
    }
    for (size_t rx = 0; rx < phases_x; ++rx) {
      if (rx > 0) first.x = up_axis(p.map.x, rx);
      choose(kMaps, first).run(first, scratch);
    }
  }
}

}  // namespace bnns
