// Operands whose rows or depth run over several axes, as the GEMM core packs them: a panel at a time, in stretches
// along the first axis. Nothing is copied but the panels themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/core/half.h"
#include "src/engine/product/product_plan.h"
#include "src/gemm/pack.h"

namespace bnns::detail {

inline constexpr size_t kMaxPackRows = 64;  // at least the tile of any instruction set

// Several axes flattened into one, first axis fastest.
struct FlatAxis {
  size_t n = 0, extent[kMaxIndices], stride[kMaxIndices];

  FlatAxis(const AxisList& axes, ProductSide side) : n(axes.n) {
    for (size_t i = 0; i < n; ++i) extent[i] = axes.axis[i].extent, stride[i] = axes.axis[i].stride[side];
  }
  size_t offset(size_t index) const {
    size_t result = 0;
    for (size_t i = 0; i < n; ++i) {
      result += index % extent[i] * stride[i];
      index /= extent[i];
    }
    return result;
  }
  // Steps from index along axis 0 before the next wrap.
  size_t run(size_t index) const { return n ? extent[0] - index % extent[0] : 1; }
  size_t step() const { return n ? stride[0] : 0; }
};

// An operand whose rows and depth run over several axes each.
struct GridLens {
  const char* data = nullptr;
  FloatType type = FloatType::f32;
  const FlatAxis *rows = nullptr, *depth = nullptr;
  size_t first_row = 0;

  float widened(size_t offset) const {
    const uint16_t bits = reinterpret_cast<const uint16_t*>(data)[offset];
    return type == FloatType::f16 ? half_to_float(bits) : bfloat16_to_float(bits);
  }
  static void pack_block(const void* context, Range rows, Range depth, const PackedBlock& out) {
    static_cast<const GridLens*>(context)->pack_panels(rows, depth, out);
  }

 private:
  // Rows of a panel that lie `rows->step()` apart.
  struct Stretch {
    size_t first, count, offset;
  };

  void pack_panels(Range range, Range deep, const PackedBlock& out) const {
    for (size_t r = range.begin, g = 0; r < range.end; r += out.tile, ++g) {
      const size_t n = std::min(out.tile, range.end - r);
      Stretch stretch[kMaxPackRows];
      size_t stretches = 0;
      for (size_t i = 0; i < n; i += stretch[stretches++].count) {
        const size_t at = first_row + r + i;
        stretch[stretches] = {i, rows->n ? std::min(rows->run(at), n - i) : n - i, rows->offset(at)};
      }
      for (size_t k = deep.begin; k < deep.end;) {
        const size_t length = std::min(depth->run(k), deep.end - k);
        float* to = out.data + g * out.panel_stride + (k - deep.begin) * out.tile;
        if (stretches == 1) {
          // What it leaves behind its last row is overwritten by the next stretch of depth.
          const char* from = data + (depth->offset(k) + stretch[0].offset) * bytes_of(type);
          pack_strided(
              strided_lens(from, type, static_cast<ptrdiff_t>(rows->step()), static_cast<ptrdiff_t>(depth->step())),
              {0, n}, {0, length}, {to, out.tile, length * out.tile + 16});
        } else {
          for (size_t s = 0; s < stretches; ++s) pack_stretch(stretch[s], depth->offset(k), length, to, out.tile);
        }
        k += length;
      }
    }
  }

  void pack_stretch(const Stretch& s, size_t base, size_t length, float* to, size_t tile) const {
    const size_t step = rows->step();
    to += s.first;
    for (size_t k = 0; k < length; ++k, to += tile) {
      const size_t at = base + s.offset + k * depth->step();
      if (type != FloatType::f32) {
        for (size_t i = 0; i < s.count; ++i) to[i] = widened(at + i * step);
      } else if (const float* from = reinterpret_cast<const float*>(data) + at; step == 1) {
        for (size_t i = 0; i < s.count; ++i) to[i] = from[i];
      } else {
        for (size_t i = 0; i < s.count; ++i) to[i] = from[i * step];
      }
    }
  }
};

}  // namespace bnns::detail
