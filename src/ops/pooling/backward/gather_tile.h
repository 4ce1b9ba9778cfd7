// How the gathering gradient divides a plane: a tile of columns whose windows fit in a fixed amount of stack.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/ops/pooling/common/geometry.h"
#include "src/ops/pooling/common/kernels.h"

namespace bnns {

inline constexpr int64_t kTileFloats = 6144;  // rows of c, counts and t: 24 KiB
inline constexpr int64_t kTileColumns = 960;  // of dx
inline constexpr int64_t kTileOverlap = 32;   // window rows that reach a row of pixels
inline constexpr int64_t kTileStride = 256;
inline constexpr int64_t kTileRing = 16;  // window rows that are kept, at most

struct GatherTile {
  Span columns;      // of dx
  Span windows;      // that reach them
  int64_t ring = 1;  // window rows that are kept: a power of two, at least the overlap
  int64_t left;      // zeros before the first window of a row
  int64_t pitch;     // floats of a row

  // The widest tile for this geometry, from column 0.
  explicit GatherTile(const PoolingGeometry& g) : left(zeros_left(g.x)) {
    columns = {0, std::min(g.x.in, widest(g))};
    pitch = pitch_for(g.x, columns.size(), left);
    while (ring < g.y.overlap()) ring *= 2;
    while (ring < kTileRing && (2 * ring + kOtherRows) * pitch <= kTileFloats) ring *= 2;
  }
  // The same at another place; no wider.
  GatherTile(const GatherTile& like, const PoolingGeometry& g, Span at) : GatherTile(like) {
    columns = at;
    windows = {g.x.windows(at.begin).begin, g.x.windows(at.end - 1).end};
    windows.end = std::max(windows.begin, windows.end);
  }
  int64_t rows() const { return ring + kOtherRows; }

  static bool accepts(const PoolingGeometry& g) {
    return g.x.stride <= kTileStride && g.y.overlap() <= kTileOverlap && g.x.pad >= -kTileColumns &&
           g.x.reach() <= kTileColumns && widest(g) >= std::min<int64_t>(32, g.x.in);
  }

 private:
  static constexpr int64_t kVector = 16;    // the longest vector, in floats
  static constexpr int64_t kOtherRows = 2;  // t, and what c is divided by

  // A column of pixels looks for windows down to (pad - reach) / stride.
  static int64_t zeros_left(const PoolingAxis& x) {
    return (std::max<int64_t>(0, -floor_div(x.pad - x.reach(), x.stride)) + kVector) / kVector * kVector;
  }
  // The last column, and those a vector has beyond it, looks for window (columns + reach) / stride past the first.
  static int64_t pitch_for(const PoolingAxis& x, int64_t columns, int64_t left) {
    return (left + (columns + x.reach()) / x.stride + 4 * kVector) / kVector * kVector;
  }
  static int64_t widest(const PoolingGeometry& g) {
    int64_t ring = 1;
    while (ring < g.y.overlap()) ring *= 2;
    const int64_t pitch = std::min(kTileFloats / (ring + kOtherRows) / kVector * kVector, kChunk);  // windows <= kChunk
    const int64_t scratch = pitch - zeros_left(g.x) - 4 * kVector;
    return std::min(kTileColumns, (scratch * g.x.stride - g.x.reach()) / 2 * 2);  // even, so that parities stay
  }
};

}  // namespace bnns
