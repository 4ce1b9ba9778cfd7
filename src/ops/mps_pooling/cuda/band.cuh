// Pooling in 2x2 stride 2, 3x3 stride 2 and 3x3 stride 1 windows at memory speed: every source texel is fetched once,
// every target texel written once. mps_pooling/cuda/band.cu plans and launches it.
//
// A block owns a tile: a band of rows of one plane, or several small planes, so that what it reads and writes lies
// together. It fetches the tile's source texels and gradients into shared memory with asynchronous copies; then
//   windows   a thread per window reduces its taps, once: of the forward pass the result; of a gradient what the window
//             sends: G and one bit per channel and tap (max), G / N (average), G / norm (L2)
//   quads     a thread per 2x2 target texels adds what its windows sent, in row-major order, a sum per row of windows
//             first, as the CPU does
// Several blocks share a multiprocessor, so that one fetches while another computes. Instructions are what limits f16:
// a thread keeps its column through a loop (BandWalk), so that a step costs a row's worth of arithmetic only, and which
// taps of which windows meet a quad is known to the compiler. P is the place of a quad's first column in its window (0
// or 1; rows always begin with their window), chosen so that a pair of f16 texels is one aligned store.
#pragma once

#include "src/ops/mps_pooling/cuda/shared.cuh"

namespace bnns::mps {

// l2_clamped: L2 whose windows overhang with the clamp edge, where an edge texel is several taps of a window.
template <PixelType kType, BandKind kKind, int K, int S, int P, bool kBackward>
struct BandTile {
  static constexpr int kBytes = kType == PixelType::f32 ? 16 : 8;
  static constexpr bool kReads = !(kBackward && kKind == BandKind::average);
  static constexpr bool kSquares = kKind == BandKind::l2 || kKind == BandKind::l2_clamped;
  static constexpr int kWindowsPerUnit = kBackward && S == 1 ? 2 : 1;
  using Columns = BandReach<K, S, P>;
  using Rows = BandReach<K, S, 0>;

  const Band& e;
  int32_t unit_x, unit_y;  // first quad (forward: window) of the tile
  uint32_t units_x, units_y;
  int32_t wx0, wy0, x0, y0;  // first window, and its first pixel
  int32_t x_even;            // rows of f16 texels begin at an even pixel
  float4* values;            // of one plane, in shared memory
  uint2* hits;
  char* source;

  __device__ __forceinline__ BandTile(const Band& band, char* memory) : e(band) {
    const auto tile = static_cast<int32_t>(blockIdx.x), tile_y = e.x.tiles == 1 ? tile : tile / e.x.tiles;
    unit_x = (tile - tile_y * e.x.tiles) * e.x.tile, unit_y = tile_y * e.y.tile;
    units_x = static_cast<uint32_t>(min(e.x.tile, e.x.units - unit_x));
    units_y = static_cast<uint32_t>(min(e.y.tile, e.y.units - unit_y));
    wx0 = e.x.base + kWindowsPerUnit * unit_x - (kBackward ? Columns::kBefore : 0);
    wy0 = e.y.base + kWindowsPerUnit * unit_y - (kBackward ? Rows::kBefore : 0);
    x0 = e.x.first + S * wx0, y0 = e.y.first + S * wy0;
    x_even = kType == PixelType::f16 ? x0 & ~1 : x0;
    values = reinterpret_cast<float4*>(memory), hits = reinterpret_cast<uint2*>(memory + e.hits_at);
    source = memory + e.source_at;
  }
  __device__ __forceinline__ void next_plane() {
    values += e.windows.columns * e.windows.rows, hits += e.windows.columns * e.windows.rows, source += e.plane_pitch;
  }

  template <int kTexels>
  __device__ __forceinline__ void fetch_source(const char* plane) const {
    walk(e.pixels, [&](uint32_t column, uint32_t row, uint32_t step) {
      int32_t x = x_even + static_cast<int32_t>(column) * kTexels, y = y0 + static_cast<int32_t>(row);
      if constexpr (kKind == BandKind::l2_clamped) x = min(max(x, 0), e.x.size - 1);
      const bool inside = within(x, e.x.size);
      char* to = source + row * e.pitch + column * (kTexels * kBytes);
      const char* from = plane + static_cast<int64_t>(y * e.x.size + x) * kBytes;
      for (; row < e.pixels.rows; row += step, y += step, to += step * e.pitch, from += step * e.x.size * kBytes) {
        if constexpr (kKind == BandKind::l2_clamped) {
          from = plane + static_cast<int64_t>(min(max(y, 0), e.y.size - 1) * e.x.size + x) * kBytes;
          fetch<kTexels * kBytes>(to, from);
        } else if (inside && within(y, e.y.size)) {
          fetch<kTexels * kBytes>(to, from);
        } else {
          const uint32_t fill = kKind != BandKind::max ? 0 : kType == PixelType::f32 ? 0x7fc00000u : 0x7e007e00u;
          if constexpr (kTexels * kBytes == 16) *reinterpret_cast<uint4*>(to) = make_uint4(fill, fill, fill, fill);
          if constexpr (kTexels * kBytes == 8) *reinterpret_cast<uint2*>(to) = make_uint2(fill, fill);
        }
      }
    });
  }

  __device__ __forceinline__ void fetch_gradient(const char* plane) const {
    walk(e.windows, [&](uint32_t column, uint32_t row, uint32_t step) {
      int32_t wy = wy0 + static_cast<int32_t>(row);
      const int32_t wx = wx0 + static_cast<int32_t>(column);
      const bool inside = within(wx, e.x.windows);
      uint32_t w = row * e.windows.columns + column;
      const char* from =
          plane + static_cast<int64_t>((e.y.gradient + wy) * e.gradient_width + e.x.gradient + wx) * kBytes;
      for (; row < e.windows.rows; row += step, wy += step, w += step * e.windows.columns) {
        if (inside && within(wy, e.y.windows)) {
          fetch<kBytes>(&values[w], from);
        } else {
          values[w] = make_float4(0, 0, 0, 0);
          if constexpr (kKind == BandKind::max) hits[w] = make_uint2(0, 0);
        }
        from += step * e.gradient_width * kBytes;
      }
    });
  }

  // What a window sends (forward: its result), from the taps at `taps` and its gradient g. Its first tap is (fy, fx).
  __device__ __forceinline__ Texel reduce(const char* taps, Texel g, int32_t fy, int32_t fx, bool inside,
                                          uint2* bits) const {
    if constexpr (kKind == BandKind::max) {
      const bool zero = !inside && !e.clamp;  // an outside zero may be greater
      if constexpr (!kBackward) return greatest<kType, K>(taps, e.pitch, zero);
      *bits = greatest_taps<kType, K>(taps, e.pitch, static_cast<uint32_t>(max(-fy, 0) * K + max(-fx, 0)), zero);
      return g;
    }
    if constexpr (kKind == BandKind::average) {
      const int32_t n = inside ? K * K : divisor_of(fy, K, e.y, e.clamp) * divisor_of(fx, K, e.x, e.clamp);
      if constexpr (!kBackward) return averaged<K * K>(sum_of<kType, K, false>(taps, e.pitch), n);
      const float share = n == K * K ? 1.0f / static_cast<float>(K * K) : n == 0 ? 0.0f : 1.0f / static_cast<float>(n);
#pragma unroll
      for (int l = 0; l < 4; ++l) g.v[l] = __fmaf_rn(g.v[l], share, 0.0f);  // never -0, as sums from 0 on
      return g;
    }
    const Texel sum = sum_of<kType, K, true>(taps, e.pitch);
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      const float norm = sqrtf(sum.v[l]);
      g.v[l] = !kBackward ? norm : sum.v[l] == 0.0f ? 0.0f : g.v[l] / norm + 0.0f;
    }
    return g;
  }

  __device__ __forceinline__ void reduce_windows(char* plane) const {
    walk(e.windows, [&](uint32_t column, uint32_t row, uint32_t step) {
      const int32_t wx = wx0 + static_cast<int32_t>(column), fx = e.x.first + S * wx;
      int32_t wy = wy0 + static_cast<int32_t>(row), fy = e.y.first + S * wy;
      if (!within(wx, e.x.windows) || (!kBackward && column >= units_x)) return;
      const bool inside_x = fx >= 0 && fx + K <= e.x.size;
      const char* taps = source + row * S * e.pitch + (column * S + static_cast<uint32_t>(x0 - x_even)) * kBytes;
      uint32_t w = row * e.windows.columns + column;
      char* to = plane + static_cast<int64_t>((e.y.target + wy) * e.target_width + e.x.target + wx) * kBytes;
      const uint32_t rows = kBackward ? e.windows.rows : units_y;
      for (; row < rows; row += step, wy += step, fy += S * step, taps += S * step * e.pitch) {
        if (within(wy, e.y.windows)) {
          const bool inside = inside_x && fy >= 0 && fy + K <= e.y.size;
          Texel g{};
          if constexpr (kBackward) g = shared_texel<kType>(&values[w]);
          uint2 bits = make_uint2(0, 0);
          const Texel t = reduce(taps, g, fy, fx, inside, &bits);
          if constexpr (kBackward) values[w] = make_float4(t.v[0], t.v[1], t.v[2], t.v[3]);
          if constexpr (kBackward && kKind == BandKind::max) hits[w] = bits;
          if constexpr (!kBackward) store_texel<kType>(to, t);
        }
        w += step * e.windows.columns, to += step * e.target_width * kBytes;
      }
    });
  }

  // The gradients of the 2x2 texels from pixel (y, x) on; w is their base window, own their place in the source tile.
  __device__ __forceinline__ void gather(Texel (&out)[2][2], uint32_t w, const char* own, int32_t y, int32_t x) const {
#pragma unroll
    for (int jy = Rows::kBefore; jy >= -Rows::kAfter; --jy) {
      Texel part[2][2];
      bool begun[2][2] = {};  // known to the compiler, as everything of this loop but v and bits
#pragma unroll
      for (int jx = Columns::kBefore; jx >= -Columns::kAfter; --jx) {
        const uint32_t at = w - static_cast<uint32_t>(jy * static_cast<int>(e.windows.columns) + jx);
        const Texel v = shared_texel<PixelType::f32>(&values[at]);
        uint2 bits = make_uint2(0, 0);
        if constexpr (kKind == BandKind::max) bits = hits[at];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          const int dy = q / 2, dx = q % 2, ty = dy + S * jy, tx = P + dx + S * jx;
          if (ty < 0 || ty >= K || tx < 0 || tx >= K) continue;
          Texel& sum = part[dy][dx];
          if constexpr (kKind == BandKind::max) {
            if (!begun[dy][dx]) sum = {{0, 0, 0, 0}};
#pragma unroll
            for (int l = 0; l < 4; ++l) {
              add_if(sum.v[l], v.v[l], l < 2 ? bits.x : bits.y, 1u << (ty * K + tx + 16 * (l % 2)));
            }
          } else {
            float weight = 1;
            if constexpr (kKind == BandKind::l2_clamped) {
              weight = taps_at<K>(y + dy, y + dy - ty, e.y.size) * taps_at<K>(x + dx, x + dx - tx, e.x.size);
            }
#pragma unroll
            for (int l = 0; l < 4; ++l) {
              const float term = kKind == BandKind::l2_clamped ? v.v[l] * weight : v.v[l];
              sum.v[l] = begun[dy][dx] ? sum.v[l] + term : term;
            }
          }
          begun[dy][dx] = true;
        }
      }
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        if (!begun[q / 2][q % 2]) continue;
        // The first row of windows that reaches a texel begins its sum.
        const bool first = jy == Rows::kBefore || q / 2 + S * (jy + 1) >= K;
#pragma unroll
        for (int l = 0; l < 4; ++l) {
          float& sum = out[q / 2][q % 2].v[l];
          sum = first ? part[q / 2][q % 2].v[l] : sum + part[q / 2][q % 2].v[l];
        }
      }
    }
    if constexpr (kSquares) {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const Texel t = shared_texel<kType>(own + (q / 2) * e.pitch + (q % 2) * kBytes);
#pragma unroll
        for (int l = 0; l < 4; ++l) {
          float& sum = out[q / 2][q % 2].v[l];
          sum = sum == 0.0f ? 0.0f : sum * t.v[l];
        }
      }
    }
  }

  __device__ __forceinline__ void gather_quads(char* plane) const {
    walk(e.quads, [&](uint32_t column, uint32_t row, uint32_t step) {
      if (column >= units_x) return;
      const int32_t x = e.x.origin + 2 * (unit_x + static_cast<int32_t>(column)), tx = x - e.x.source;
      const bool left = tx >= 0, right = tx + 1 < e.x.count;
      int32_t y = e.y.origin + 2 * (unit_y + static_cast<int32_t>(row));
      uint32_t w =
          (row * kWindowsPerUnit + Rows::kBefore) * e.windows.columns + column * kWindowsPerUnit + Columns::kBefore;
      char* own = source + static_cast<uint32_t>(y - y0) * e.pitch + static_cast<uint32_t>(x - x_even) * kBytes;
      char* to =
          plane + static_cast<int64_t>((e.y.target + y - e.y.source) * e.target_width + e.x.target + tx) * kBytes;
      const int64_t line = static_cast<int64_t>(e.target_width) * kBytes;
      for (; row < units_y; row += step, y += 2 * step, own += 2 * step * e.pitch, to += 2 * step * line) {
        Texel out[2][2];
        gather(out, w, own, y, x);
        w += kWindowsPerUnit * step * e.windows.columns;
        if (y + 1 >= e.y.size || x + 1 >= e.x.size) {  // what lies beyond the source is 0
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            if (y + q / 2 >= e.y.size || x + q % 2 >= e.x.size) out[q / 2][q % 2] = {{0, 0, 0, 0}};
          }
        }
#pragma unroll
        for (int dy = 0; dy < 2; ++dy) {
          if constexpr (kType == PixelType::f32) {
            // In place of the source texels, which nobody else reads any more, to be written as the tile lies.
            store_texel<kType>(own + dy * e.pitch, out[dy][0]);
            store_texel<kType>(own + dy * e.pitch + kBytes, out[dy][1]);
          } else if (within(y + dy - e.y.source, e.y.count)) {
            const uint2 a = halves_of(out[dy][0]), b = halves_of(out[dy][1]);
            if (e.paired && left && right) {
              *reinterpret_cast<uint4*>(to + dy * line) = make_uint4(a.x, a.y, b.x, b.y);
            } else {
              if (left) *reinterpret_cast<uint2*>(to + dy * line) = a;
              if (right) *reinterpret_cast<uint2*>(to + dy * line + kBytes) = b;
            }
          }
        }
      }
    });
  }

  __device__ __forceinline__ void write_texels(char* plane) const {
    const int32_t y_first = e.y.origin + 2 * unit_y, x_first = e.x.origin + 2 * unit_x;
    walk(e.texels, [&](uint32_t column, uint32_t row, uint32_t step) {
      const int32_t x = x_first + static_cast<int32_t>(column), tx = x - e.x.source;
      if (column >= 2 * units_x || !within(tx, e.x.count)) return;
      int32_t y = y_first + static_cast<int32_t>(row), ty = y - e.y.source;
      const char* from = source + static_cast<uint32_t>(y - y0) * e.pitch + static_cast<uint32_t>(x - x_even) * kBytes;
      char* to = plane + static_cast<int64_t>((e.y.target + ty) * e.target_width + e.x.target + tx) * kBytes;
      for (; row < 2 * units_y; row += step, ty += step, from += step * e.pitch) {
        if (within(ty, e.y.count)) store_texel<kType>(to, shared_texel<kType>(from));
        to += step * e.target_width * kBytes;
      }
    });
  }
};

// A block per tile (x), group of slices (y) and image (z).
template <PixelType kType, BandKind kKind, int K, int S, int P, bool kBackward>
__global__ void __launch_bounds__(kBandThreads) band_kernel(const __grid_constant__ Band e) {
  using Tile = BandTile<kType, kKind, K, S, P, kBackward>;
  extern __shared__ __align__(16) char memory[];
  const uint32_t slice = blockIdx.y * e.planes_per_block, count = min(e.planes_per_block, e.slices - slice);
  const auto each_plane = [&](auto&& call) {
    Tile tile(e, memory);
    for (uint32_t p = 0; p < count; ++p, tile.next_plane()) call(tile, slice + p);
  };
  const auto plane_of = [&](const BandImage& image, uint32_t s) {
    return image.data + blockIdx.z * image.image_bytes + s * image.plane_bytes;
  };
  wait_for_stream();
  each_plane([&](const Tile& tile, uint32_t s) {
    if constexpr (Tile::kReads) {
      if constexpr (kType == PixelType::f16 && kKind != BandKind::l2_clamped) {
        e.fetch_pairs ? tile.template fetch_source<2>(plane_of(e.source, s))
                      : tile.template fetch_source<1>(plane_of(e.source, s));
      } else {
        tile.template fetch_source<1>(plane_of(e.source, s));
      }
    }
    if constexpr (kBackward) tile.fetch_gradient(plane_of(e.gradient, s));
  });
  wait_for_fetches();
  __syncthreads();
  each_plane([&](const Tile& tile, uint32_t s) { tile.reduce_windows(kBackward ? nullptr : plane_of(e.target, s)); });
  if constexpr (kBackward) {
    __syncthreads();
    each_plane([&](const Tile& tile, uint32_t s) { tile.gather_quads(plane_of(e.target, s)); });
    if constexpr (kType == PixelType::f32) {
      __syncthreads();
      each_plane([&](const Tile& tile, uint32_t s) { tile.write_texels(plane_of(e.target, s)); });
    }
  }
}

}  // namespace bnns::mps
