// Pooling in 2x2 stride 2, 3x3 stride 2 and 3x3 stride 1 windows on the CPU at memory speed: the plan that
// mps_pooling/cpu/band.cc makes and mps_pooling/cpu/band_simd.cc runs.
//
// A task is a band of target rows of a group of planes. Rows of the group's planes lie side by side in scratch, so that
// narrow planes fill vectors too. Along a row everything is kept by slot: slot i of a plane belongs to window low + i
// and holds the texels on the window's first columns, one array per column of a stride (first + stride (low + i) + c),
// so that taps, what windows send and what texels get are all contiguous vectors.
//
//   plane 0: [ low ... windows and texels ... ] reach slots | plane 1: ...       pitch slots
//
// A window's taps reach `reach` slots on (0, 1, 2 for the three windows), a texel's windows as many back.
#pragma once

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

struct BandSide {
  int64_t first = 0, size = 0;            // the first tap of window 0; pixels of the source
  int64_t windows = 0, window_at = 0;     // how many; where window 0 lies in the image of one pixel per window
  int64_t source = 0, at = 0, count = 0;  // backward: target pixel at + t is source pixel source + t, t < count
  int64_t zero_pad = 0;
};

struct BandPlan {
  PoolKind kind = PoolKind::max;
  PoolEdge edge = PoolEdge::zero;
  PixelType type = PixelType::f32;
  bool backward = false, stream = false;
  int kernel = 2, stride = 2, reach = 0;
  // Stride 2, backward: a slot's two target texels begin `phase` columns before its first source texel, so that they
  // begin on even texels of the target; aligned: vectors of slots are whole cache lines of the target.
  int phase = 0;
  bool aligned = false;
  BandSide x, y;
  int64_t low = 0;                               // the window of slot 0
  int64_t slots = 0, pitch = 0, group = 1;       // of a plane; planes side by side
  int64_t planes = 0, bands = 1, band_rows = 0;  // of the encode
  int64_t column_begin = 0, column_end = 0;      // source columns that exist among a plane's slots

  int64_t tasks() const { return (planes + group - 1) / group * bands; }

  // Scratch: arrays of `line` floats, slot 0 of plane 0 at kFront floats.
  static constexpr int64_t kFront = 16, kBack = 48;
  static constexpr int64_t kRing = 4;  // source rows kept
  int64_t line() const { return (kFront + 4 * group * pitch + kBack + 15) / 16 * 16; }
  enum Line : int64_t {
    ring = 0,
    outside = 2 * kRing,
    zeros = outside + 2,
    sent,
    code,
    later,
    column = later + 2,
    out,
    lines = out + 4
  };
  int64_t carry_bytes() const { return 192 * group; }
  size_t scratch_bytes() const { return static_cast<size_t>(64 + 4 * line() * lines + carry_bytes()); }
};

// What the kernels ask a plan about columns. Max: the least that a window's maximum counts as (0 where zeros outside or
// no window at all, -inf elsewhere). Average: what divides a sum, and in a gradient its reciprocal, for windows of
// `rows` counted rows. L2: 1.
void fill_columns(const BandPlan& plan, int64_t rows, float* to) noexcept;
// Average: rows that count in the divisor of window row v.
int64_t divisor_rows(const BandPlan& plan, int64_t v) noexcept;
// Whether window v has taps outside.
inline bool overhangs(const BandPlan& p, const BandSide& s, int64_t v) {
  const int64_t first = s.first + v * p.stride;
  return first < 0 || first + p.kernel > s.size;
}

// One plane's beginning in the three images.
struct BandPlane {
  const char* source;
  const char* gradient;
  char* target;
};
BandPlane plane_at(const BandPlan& plan, const PoolEncode& e, int64_t plane) noexcept;

// Runs one task in `scratch` (prepared by band_prepare, once per thread). False: a maximum was -inf or of NaNs alone,
// where vectors do not tell which tap takes it; the caller must redo the task.
void band_prepare(const BandPlan& plan, void* scratch) noexcept;
bool band_task(const BandPlan& plan, const PoolEncode& e, int64_t task, void* scratch) noexcept;

}  // namespace bnns::mps
