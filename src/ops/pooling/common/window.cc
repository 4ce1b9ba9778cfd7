// One window at a time, in plain loops: windows and strides of hundreds of pixels, and those in which the vector
// kernels find a NaN, nothing but -inf, or squares out of range. Order of operations as there, so bit-identical.

#include <cmath>
#include <cstring>
#include <limits>

#include "src/core/half.h"
#include "src/ops/pooling/common/kernels.h"

namespace bnns {
namespace {

struct FloatPixels {
  using Stored = float;
  static float value(float stored) { return stored; }
};
struct HalfPixels {
  using Stored = uint16_t;
  static float value(uint16_t stored) { return half_to_float(stored); }
};
struct Bfloat16Pixels {
  using Stored = uint16_t;
  static float value(uint16_t stored) { return bfloat16_to_float(stored); }
};

// The window's taps in memory.
struct Taps {
  Span x, y;
  int64_t first, column, row;  // element of tap (x.begin, y.begin), and the steps between taps
};

template <class Pixels>
float load(const PixelSource& source, const Taps& taps, int64_t tx, int64_t ty) {
  const auto* data = static_cast<const typename Pixels::Stored*>(source.data);
  return Pixels::value(data[taps.first + (ty - taps.y.begin) * taps.row + (tx - taps.x.begin) * taps.column]);
}

// The first NaN wins over everything, else the first of the largest.
template <class Pixels>
void fold_max(const PoolingGeometry& g, const PixelSource& source, const Taps& taps, float* value, int32_t* offset) {
  float best = load<Pixels>(source, taps, taps.x.begin, taps.y.begin);
  int64_t at = g.tap_offset(taps.x.begin, taps.y.begin);
  for (int64_t ty = taps.y.begin; ty < taps.y.end; ++ty) {
    for (int64_t tx = taps.x.begin; tx < taps.x.end; ++tx) {
      const float v = load<Pixels>(source, taps, tx, ty);
      if (v > best || (std::isnan(v) && !std::isnan(best))) {
        best = v;
        at = g.tap_offset(tx, ty);
      }
    }
  }
  *value = best;
  if (offset) *offset = static_cast<int32_t>(at);
}

// Sums are over columns first, as in pooling/forward/separable_simd.cc.
template <class Pixels>
float fold_average(const PixelSource& source, const Taps& taps, float count) {
  float sum = 0;
  for (int64_t tx = taps.x.begin; tx < taps.x.end; ++tx) {
    float column = 0;
    for (int64_t ty = taps.y.begin; ty < taps.y.end; ++ty) column += load<Pixels>(source, taps, tx, ty);
    sum += column;
  }
  return sum / count;
}

template <class Pixels>
float fold_norm(const PixelSource& source, const Taps& taps) {
  float sum = 0;
  double exact = 0;  // f32 squares are exact in double, and their sum keeps the whole range of f32
  for (int64_t tx = taps.x.begin; tx < taps.x.end; ++tx) {
    float column = 0;
    for (int64_t ty = taps.y.begin; ty < taps.y.end; ++ty) {
      const float v = load<Pixels>(source, taps, tx, ty);
      column += v * v;
      exact += static_cast<double>(v) * static_cast<double>(v);
    }
    sum += column;
  }
  if (sum >= kNormLow && sum <= kNormHigh) return std::sqrt(sum);
  return static_cast<float>(std::sqrt(exact));
}

template <class Pixels>
void fold_window(PoolingFold fold, const PoolingGeometry& g, const PixelSource& source, int64_t wx, int64_t wy,
                 float* value, int32_t* offset) {
  Taps taps;
  taps.x = g.x.taps(wx);
  taps.y = g.y.taps(wy);
  if (taps.x.empty() || taps.y.empty()) {
    *value = 0;
    if (offset) *offset = kNoPixel;
    return;
  }
  taps.column = g.x.dilation * source.column;
  taps.row = g.y.dilation * source.row;
  taps.first = (g.y.start(wy) + taps.y.begin * g.y.dilation - source.y.begin) * source.row +
               (g.x.start(wx) + taps.x.begin * g.x.dilation - source.x.begin) * source.column;
  switch (fold) {
    case PoolingFold::max:
    case PoolingFold::arg_max:
      return fold_max<Pixels>(g, source, taps, value, offset);
    case PoolingFold::average:
      *value =
          fold_average<Pixels>(source, taps, static_cast<float>(g.x.count(wx)) * static_cast<float>(g.y.count(wy)));
      return;
    case PoolingFold::norm:
      *value = fold_norm<Pixels>(source, taps);
      return;
  }
}

}  // namespace

void pooling_window(PoolingFold fold, const PoolingGeometry& geometry, const PixelSource& source, int64_t wx,
                    int64_t wy, float* value, int32_t* offset) noexcept {
  switch (source.type) {
    case BNNSDataTypeFloat16:
      return fold_window<HalfPixels>(fold, geometry, source, wx, wy, value, offset);
    case BNNSDataTypeBFloat16:
      return fold_window<Bfloat16Pixels>(fold, geometry, source, wx, wy, value, offset);
    default:
      return fold_window<FloatPixels>(fold, geometry, source, wx, wy, value, offset);
  }
}

void pooling_window_block(const WindowBlock& block) noexcept {
  for (int64_t wy = block.rows.begin; wy < block.rows.end; ++wy) {
    for (int64_t wx = block.columns.begin; wx < block.columns.end; ++wx) {
      const int64_t i = (wy - block.rows.begin) * block.pitch + wx - block.columns.begin;
      pooling_window(block.fold, *block.geometry, block.source, wx, wy, block.values + i,
                     block.offsets ? block.offsets + i : nullptr);
    }
  }
}

}  // namespace bnns
