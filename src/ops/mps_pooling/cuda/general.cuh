// The general kernels of the MPS pooling family: any window, any type, any number of channels.
//
// clang-format off
//   forward            a thread per target texel (16 bytes of f32, 8 of f16); taps meet in L1
//   backward, tiles    a block owns a tile of target texels of one plane (or several small planes): first each window
//                      that touches the tile is reduced once into shared memory (which pixel takes the gradient, or the
//                      factor it sends), then each target texel gathers from its windows, in row-major order. No atomics.
//   backward, plain    anything whose windows do not fit in shared memory: each texel reduces its windows itself
// clang-format on
//
// The same lines as on the CPU (mps_pooling/window.h), compiled with -fmad=false: the same order gives the same bits.
#pragma once

#include "src/ops/mps_pooling/cuda/texel.cuh"
#include "src/ops/mps_pooling/cuda/tiling.h"

namespace bnns::mps {
namespace {

constexpr int kThreads = 256;

// ---- windows --------------------------------------------------------------------------------------------------------

template <PoolKind kKind, class Read>
__device__ __forceinline__ Texel forward_window(const PoolEncode& e, int32_t wy, int32_t wx, Read read) {
  const int64_t fy = e.y.first_centre + wy * e.y.stride - e.y.before();
  const int64_t fx = e.x.first_centre + wx * e.x.stride - e.x.before();
  const AxisTaps ty(fy, e.y, e.source.height), tx(fx, e.x, e.source.width);
  if constexpr (kKind == PoolKind::max) {
    return max_window(ty, tx, e.edge, read);
  } else {
    Texel r = kKind == PoolKind::average ? sum_window(ty, tx, read) : square_sum_window(ty, tx, e.edge, read);
    const int64_t n = kKind == PoolKind::average ? divisor_extent(fy, e.y, e.source.height, e.edge) *
                                                       divisor_extent(fx, e.x, e.source.width, e.edge)
                                                 : 0;
    for (int l = 0; l < 4; ++l) {
      r.v[l] = kKind == PoolKind::l2_norm ? sqrtf(r.v[l]) : n == 0 ? 0.0f : r.v[l] / static_cast<float>(n);
    }
    return r;
  }
}

// What window (wy, wx) sends: value (G, G / N or G / norm), and for max the pixel it goes to.
template <PoolKind kKind, class Read>
__device__ __forceinline__ void backward_window(const PoolEncode& e, int64_t wy, int64_t wx, Read read, Texel& value,
                                                TexelIndex& index) {
  const int64_t fy = e.y.first_centre + wy * e.y.stride - e.y.before();
  const int64_t fx = e.x.first_centre + wx * e.x.stride - e.x.before();
  if constexpr (kKind == PoolKind::average) {
    const int64_t n =
        divisor_extent(fy, e.y, e.source.height, e.edge) * divisor_extent(fx, e.x, e.source.width, e.edge);
    const float share = n == 0 ? 0.0f : 1.0f / static_cast<float>(n);
    for (int l = 0; l < 4; ++l) value.v[l] *= share;
    return;
  }
  const AxisTaps ty(fy, e.y, e.source.height), tx(fx, e.x, e.source.width);
  if constexpr (kKind == PoolKind::max) {
    index = max_window_index(ty, tx, e.edge, e.source.width, read);
  } else {
    const Texel sum = square_sum_window(ty, tx, e.edge, read);
    for (int l = 0; l < 4; ++l) value.v[l] = sum.v[l] == 0.0f ? 0.0f : value.v[l] / sqrtf(sum.v[l]);
  }
}

template <PoolKind kKind>
__device__ __forceinline__ PoolEdge gather_edge(const PoolEncode& e) {
  return kKind == PoolKind::average ? PoolEdge::zero : e.edge;
}

// One window's part of a target texel.
template <PoolKind kKind>
__device__ __forceinline__ void add_window(const PoolEncode& e, int32_t y, int32_t x, int64_t wy, int64_t wx,
                                           const Texel& value, const TexelIndex& index, Texel& sum) {
  if constexpr (kKind == PoolKind::max) {
    const int32_t self = y * static_cast<int32_t>(e.source.width) + x;
#pragma unroll
    for (int l = 0; l < 4; ++l) sum.v[l] += index.v[l] == self ? value.v[l] : 0.0f;
    return;
  }
  const int64_t ey = e.y.extent(), ex = e.x.extent();
  const PoolEdge edge = gather_edge<kKind>(e);
  const float count =
      static_cast<float>(taps_on(y, e.y.first_centre + wy * e.y.stride - ey / 2, e.y, ey, e.source.height, edge) *
                         taps_on(x, e.x.first_centre + wx * e.x.stride - ex / 2, e.x, ex, e.source.width, edge));
  if (count == 0) return;
#pragma unroll
  for (int l = 0; l < 4; ++l) sum.v[l] += value.v[l] * count;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

template <PixelType kType, bool kWhole, PoolKind kKind>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(const __grid_constant__ PoolEncode e, const __grid_constant__ Planes planes) {
  const int64_t pixels = e.width * e.height, all = pixels * planes.count;
  const int64_t id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (id >= all) return;
  // 64-bit divisions take a hundred instructions: only where they are needed.
  const bool narrow = all < (int64_t{1} << 31);
  const uint32_t plane =
      narrow ? static_cast<uint32_t>(id) / static_cast<uint32_t>(pixels) : static_cast<uint32_t>(id / pixels);
  const uint32_t pixel = static_cast<uint32_t>(id - plane * pixels), width = static_cast<uint32_t>(e.width);
  const uint32_t n = plane / static_cast<uint32_t>(planes.slices),
                 slice = plane - n * static_cast<uint32_t>(planes.slices);
  const int32_t lanes = lanes_of(e, static_cast<int32_t>(slice));
  const int32_t row = static_cast<int32_t>(pixel / width),
                column = static_cast<int32_t>(pixel) - row * static_cast<int32_t>(width);
  const DevicePlane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
  const DevicePlane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, lanes);
  const auto read = [&](int64_t y, int64_t x) {
    return read_texel<kType, kWhole>(source, e.source.type, static_cast<int32_t>(y), static_cast<int32_t>(x));
  };
  const Texel t = forward_window<kKind>(e, row, column, read);
  write_texel<kType, kWhole>(target, e.target.type, static_cast<int32_t>(e.target_y) + row,
                             static_cast<int32_t>(e.target_x) + column, t);
}

template <PixelType kType, bool kWhole, PoolKind kKind>
__global__ void __launch_bounds__(kThreads)
    backward_tile_kernel(const __grid_constant__ PoolEncode e, const __grid_constant__ Planes planes,
                         const __grid_constant__ Tiling tiling) {
  extern __shared__ Texel shared[];
  Texel* const values = shared;
  TexelIndex* const indices = reinterpret_cast<TexelIndex*>(shared + tiling.windows * tiling.planes_per_block);
  const int32_t tiles = tiling.across * tiling.down;
  const int32_t tile = static_cast<int32_t>(blockIdx.x % tiles);
  const int64_t first_plane = static_cast<int64_t>(blockIdx.x / tiles) * tiling.planes_per_block;
  const int32_t block_planes = static_cast<int32_t>(
      planes.count - first_plane < tiling.planes_per_block ? planes.count - first_plane : tiling.planes_per_block);
  const int32_t row0 = tile / tiling.across * tiling.height, column0 = tile % tiling.across * tiling.width;
  const int32_t rows = min(tiling.height, static_cast<int32_t>(e.height) - row0);
  const int32_t columns = min(tiling.width, static_cast<int32_t>(e.width) - column0);
  const PoolEdge edge = gather_edge<kKind>(e);
  // Source pixels of the tile that exist, and the windows that touch them.
  const int32_t y0 = static_cast<int32_t>(e.source_y) + row0, x0 = static_cast<int32_t>(e.source_x) + column0;
  const int32_t y1 = min(y0 + rows, static_cast<int32_t>(e.source.height));
  const int32_t x1 = min(x0 + columns, static_cast<int32_t>(e.source.width));
  int32_t wy0 = 0, wx0 = 0, wh = 0, ww = 0;
  if (y0 < y1 && x0 < x1) {
    // The first and last windows of the range belong to the first and last pixels, or, where the edge pixels belong to
    // every window beyond them, to those.
    wy0 = static_cast<int32_t>(windows_of(y0, e.y, e.y.extent(), e.gradient_height, e.source.height, edge).first);
    wx0 = static_cast<int32_t>(windows_of(x0, e.x, e.x.extent(), e.gradient_width, e.source.width, edge).first);
    wh = static_cast<int32_t>(windows_of(y1 - 1, e.y, e.y.extent(), e.gradient_height, e.source.height, edge).last) -
         wy0 + 1;
    ww = static_cast<int32_t>(windows_of(x1 - 1, e.x, e.x.extent(), e.gradient_width, e.source.width, edge).last) -
         wx0 + 1;
    wh = max(wh, 0), ww = max(ww, 0);
  }
  const int32_t count = wh * ww;
  for (int32_t i = threadIdx.x; i < count * block_planes; i += kThreads) {
    const int32_t local = i / max(count, 1), w = i - local * count, wy = wy0 + w / ww, wx = wx0 + w % ww;
    const int64_t plane = first_plane + local;
    const int32_t n = static_cast<int32_t>(plane / planes.slices), slice = static_cast<int32_t>(plane % planes.slices);
    const int32_t lanes = lanes_of(e, slice);
    const DevicePlane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
    const DevicePlane gradient = plane_of(e.gradient, e.gradient_image + n, e.gradient_channel / 4 + slice, lanes);
    const auto read = [&](int64_t y, int64_t x) {
      return read_texel<kType, kWhole>(source, e.source.type, static_cast<int32_t>(y), static_cast<int32_t>(x));
    };
    Texel value = read_texel<kType, kWhole>(gradient, e.gradient.type, static_cast<int32_t>(e.gradient_y) + wy,
                                            static_cast<int32_t>(e.gradient_x) + wx);
    TexelIndex index;
    backward_window<kKind>(e, wy, wx, read, value, index);
    values[local * tiling.windows + w] = value;
    if constexpr (kKind == PoolKind::max) indices[local * tiling.windows + w] = index;
  }
  __syncthreads();
  const int32_t texels = rows * columns;
  for (int32_t i = threadIdx.x; i < texels * block_planes; i += kThreads) {
    const int32_t local = i / texels, texel = i - local * texels, row = texel / columns, column = texel - row * columns;
    const int64_t plane = first_plane + local;
    const int32_t n = static_cast<int32_t>(plane / planes.slices), slice = static_cast<int32_t>(plane % planes.slices);
    const int32_t lanes = lanes_of(e, slice), y = y0 + row, x = x0 + column;
    Texel sum = {{0, 0, 0, 0}};
    if (y < y1 && x < x1) {
      const WindowRange wr = windows_of(y, e.y, e.y.extent(), e.gradient_height, e.source.height, edge);
      const WindowRange wc = windows_of(x, e.x, e.x.extent(), e.gradient_width, e.source.width, edge);
      for (int32_t wy = static_cast<int32_t>(wr.first); wy <= static_cast<int32_t>(wr.last); ++wy) {
        Texel part = {{0, 0, 0, 0}};
        for (int32_t wx = static_cast<int32_t>(wc.first); wx <= static_cast<int32_t>(wc.last); ++wx) {
          const int32_t at = local * tiling.windows + (wy - wy0) * ww + wx - wx0;
          const TexelIndex index = kKind == PoolKind::max ? indices[at] : TexelIndex{};
          add_window<kKind>(e, y, x, wy, wx, values[at], index, part);
        }
        for (int l = 0; l < 4; ++l) sum.v[l] += part.v[l];
      }
      if constexpr (kKind == PoolKind::l2_norm) {
        const DevicePlane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
        const Texel own = read_texel<kType, kWhole>(source, e.source.type, y, x);
#pragma unroll
        for (int l = 0; l < 4; ++l) sum.v[l] = sum.v[l] == 0.0f ? 0.0f : sum.v[l] * own.v[l];
      }
    }
    const DevicePlane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, lanes);
    write_texel<kType, kWhole>(target, e.target.type, static_cast<int32_t>(e.target_y) + row0 + row,
                               static_cast<int32_t>(e.target_x) + column0 + column, sum);
  }
}

// Every texel reduces its own windows: any geometry, no scratch.
template <PixelType kType, bool kWhole, PoolKind kKind>
__global__ void __launch_bounds__(kThreads)
    backward_plain_kernel(const __grid_constant__ PoolEncode e, const __grid_constant__ Planes planes) {
  const int64_t pixels = e.width * e.height, id = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (id >= pixels * planes.count) return;
  const int64_t plane = id / pixels, pixel = id % pixels, row = pixel / e.width, column = pixel % e.width;
  const int32_t n = static_cast<int32_t>(plane / planes.slices), slice = static_cast<int32_t>(plane % planes.slices);
  const int32_t lanes = lanes_of(e, slice);
  const DevicePlane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
  const DevicePlane gradient = plane_of(e.gradient, e.gradient_image + n, e.gradient_channel / 4 + slice, lanes);
  const DevicePlane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, lanes);
  const auto read = [&](int64_t y, int64_t x) {
    return read_texel<kType, kWhole>(source, e.source.type, static_cast<int32_t>(y), static_cast<int32_t>(x));
  };
  const int64_t y = e.source_y + row, x = e.source_x + column;
  Texel sum = {{0, 0, 0, 0}};
  if (y < e.source.height && x < e.source.width) {
    const PoolEdge edge = gather_edge<kKind>(e);
    const WindowRange wr = windows_of(y, e.y, e.y.extent(), e.gradient_height, e.source.height, edge);
    const WindowRange wc = windows_of(x, e.x, e.x.extent(), e.gradient_width, e.source.width, edge);
    for (int64_t wy = wr.first; wy <= wr.last; ++wy) {
      Texel part = {{0, 0, 0, 0}};
      for (int64_t wx = wc.first; wx <= wc.last; ++wx) {
        Texel value = read_texel<kType, kWhole>(gradient, e.gradient.type, static_cast<int32_t>(e.gradient_y + wy),
                                                static_cast<int32_t>(e.gradient_x + wx));
        TexelIndex index;
        backward_window<kKind>(e, wy, wx, read, value, index);
        add_window<kKind>(e, static_cast<int32_t>(y), static_cast<int32_t>(x), wy, wx, value, index, part);
      }
      for (int l = 0; l < 4; ++l) sum.v[l] += part.v[l];
    }
    if constexpr (kKind == PoolKind::l2_norm) {
      const Texel own = read(y, x);
      for (int l = 0; l < 4; ++l) sum.v[l] = sum.v[l] == 0.0f ? 0.0f : sum.v[l] * own.v[l];
    }
  }
  write_texel<kType, kWhole>(target, e.target.type, static_cast<int32_t>(e.target_y + row),
                             static_cast<int32_t>(e.target_x + column), sum);
}

// ---- which of them --------------------------------------------------------------------------------------------------

// Calls launch.operator()<type, whole, kind>(): texels of one float type with four lanes each are one vector access.
template <class F>
int with_type_and_kind(const PoolEncode& e, F&& launch) {
  const auto fits = [&](const ImageView& v) { return v.lanes == 4 && v.type == e.source.type; };
  const bool whole = fits(e.source) && fits(e.target) && (!e.backward || fits(e.gradient)) && e.channels % 4 == 0;
  const auto with_kind = [&]<PixelType kType, bool kWhole>() {
    if (e.kind == PoolKind::max) return launch.template operator()<kType, kWhole, PoolKind::max>();
    if (e.kind == PoolKind::average) return launch.template operator()<kType, kWhole, PoolKind::average>();
    return launch.template operator()<kType, kWhole, PoolKind::l2_norm>();
  };
  if (whole && e.source.type == PixelType::f32) return with_kind.template operator()<PixelType::f32, true>();
  if (whole && e.source.type == PixelType::f16) return with_kind.template operator()<PixelType::f16, true>();
  return with_kind.template operator()<PixelType::f32, false>();
}

}  // namespace
}  // namespace bnns::mps
