// The MPS pooling family on NVIDIA GPUs. Bound by memory: every byte should move once.
//
// forward            a thread per target texel (16 bytes of f32, 8 of f16); taps meet in L1
// The common gradients are in mps_pooling_rolling.cu and mps_pooling_global.cu; here is what remains:
// backward, tiles    a block owns a tile of target texels of one plane (or several small planes): first each window
// that
//                    touches the tile is reduced once into shared memory (which pixel takes the gradient, or the factor
//                    it sends), then each target texel gathers from its windows, in row-major order. No atomics.
// backward, plain    anything whose windows do not fit in shared memory: each texel reduces its windows itself
//
// K and S are the kernel and stride of the common windows (2x2 s2, 3x3 s2, 3x3 s1); 0 is any geometry. The same lines
// as on the CPU (mps_pooling_window.h), compiled with -fmad=false: the same order gives the same bits.

#include <algorithm>

#include "src/ops/mps_pooling/mps_pooling_texel.cuh"

namespace bnns::mps {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 32;  // target texels on a side, at most

// ---- windows --------------------------------------------------------------------------------------------------------

// Axis numbers in 32 bits where K and S are known.
template <int K, int S>
struct Geometry {
  int32_t first_y, first_x;  // first tap of window 0
  __device__ __forceinline__ explicit Geometry(const PoolEncode& e)
      : first_y(static_cast<int32_t>(e.y.first_centre - K / 2)),
        first_x(static_cast<int32_t>(e.x.first_centre - K / 2)) {}
  __device__ __forceinline__ bool inside(int32_t first, int64_t size) const { return first >= 0 && first + K <= size; }
};

// A common window: taps outside are handled by predicates, so that a warp with a border does not run two paths.
template <PoolKind kKind, int K, int S, class Read>
__device__ __forceinline__ Texel common_window(const PoolForward& e, int32_t wy, int32_t wx, Read read) {
  const Geometry<K, S> g(e);
  const int32_t fy = g.first_y + wy * S, fx = g.first_x + wx * S;
  const int32_t height = static_cast<int32_t>(e.source.height), width = static_cast<int32_t>(e.source.width);
  const bool clamp = e.edge == PoolEdge::clamp;
  Texel t[K * K];
#pragma unroll
  for (int k = 0; k < K * K; ++k) {
    int32_t y = fy + k / K, x = fx + k % K;
    if (clamp && kKind == PoolKind::l2_norm) y = min(max(y, 0), height - 1), x = min(max(x, 0), width - 1);
    const bool inside = static_cast<uint32_t>(y) < static_cast<uint32_t>(height) &&
                        static_cast<uint32_t>(x) < static_cast<uint32_t>(width);
    const float none = kKind == PoolKind::max ? __int_as_float(0x7fc00000) : 0.0f;  // NaN loses to every number
    t[k] = inside ? read(y, x) : Texel{{none, none, none, none}};
  }
  const bool whole = g.inside(fy, height) && g.inside(fx, width);
  float divisor = static_cast<float>(K * K);
  if (kKind == PoolKind::average && !whole) {
    divisor = static_cast<float>(divisor_extent(fy, e.y, height, e.edge) * divisor_extent(fx, e.x, width, e.edge));
  }
  Texel r;
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    float v = kKind == PoolKind::l2_norm ? t[0].v[l] * t[0].v[l] : t[0].v[l];
#pragma unroll
    for (int k = 1; k < K * K; ++k) {
      const float next = t[k].v[l];
      if constexpr (kKind == PoolKind::max) {
        v = next > v || is_nan(v) ? next : v;
      } else {
        v += kKind == PoolKind::average ? next : next * next;
      }
    }
    if (kKind == PoolKind::max && !whole && !clamp && !(v >= 0.0f)) v = 0.0f;
    if constexpr (kKind == PoolKind::average) v = divisor == 0.0f ? 0.0f : v / divisor;
    if constexpr (kKind == PoolKind::l2_norm) v = sqrtf(v);
    r.v[l] = v;
  }
  return r;
}

template <PoolKind kKind, int K, int S, class Read>
__device__ __forceinline__ Texel forward_window(const PoolForward& e, int32_t wy, int32_t wx, Read read) {
  if constexpr (K > 0) {
    return common_window<kKind, K, S>(e, wy, wx, read);
  } else {
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
}

// What window (wy, wx) sends: value (G, G / N or G / norm), and for max the pixel it goes to.
template <PoolKind kKind, int K, int S, class Read>
__device__ __forceinline__ void backward_window(const PoolBackward& e, int64_t wy, int64_t wx, Read read, Texel& value,
                                                TexelIndex& index) {
  if constexpr (K > 0) {
    const Geometry<K, S> g(e);
    const int32_t fy = g.first_y + static_cast<int32_t>(wy) * S, fx = g.first_x + static_cast<int32_t>(wx) * S;
    if (g.inside(fy, e.source.height) && g.inside(fx, e.source.width)) {
      if constexpr (kKind == PoolKind::average) {
#pragma unroll
        for (int l = 0; l < 4; ++l) value.v[l] *= 1.0f / static_cast<float>(K * K);
        return;
      }
      Texel t[K * K];
#pragma unroll
      for (int k = 0; k < K * K; ++k) t[k] = read(fy + k / K, fx + k % K);
      const int32_t width = static_cast<int32_t>(e.source.width), base = fy * width + fx;
#pragma unroll
      for (int l = 0; l < 4; ++l) {
        float r = kKind == PoolKind::max ? t[0].v[l] : t[0].v[l] * t[0].v[l];
        int32_t at = base;
#pragma unroll
        for (int k = 1; k < K * K; ++k) {
          if constexpr (kKind == PoolKind::max) {
            const bool better = t[k].v[l] > r || (is_nan(r) && !is_nan(t[k].v[l]));
            r = better ? t[k].v[l] : r;
            at = better ? base + k / K * width + k % K : at;
          } else {
            r += t[k].v[l] * t[k].v[l];
          }
        }
        if constexpr (kKind == PoolKind::max) index.v[l] = at;
        if constexpr (kKind == PoolKind::l2_norm) value.v[l] = r == 0.0f ? 0.0f : value.v[l] / sqrtf(r);
      }
      return;
    }
  }
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

template <PoolKind kKind, int K, int S>
__device__ __forceinline__ WindowRange windows_of_pixel(int32_t p, const PoolAxis& a, int64_t count, int64_t size,
                                                        PoolEdge edge) {
  if constexpr (K > 0) {
    // Operands are not negative: p >= 0 and first taps are at least -K.
    const int32_t at = p - static_cast<int32_t>(a.first_centre - K / 2);
    const bool border = edge == PoolEdge::clamp && (p == 0 || p == static_cast<int32_t>(size) - 1);
    if (at >= K && !border) {
      const int32_t first = (at - K) / S + 1, last = at / S, top = static_cast<int32_t>(count) - 1;
      return {first, last < top ? last : top};
    }
  }
  return windows_of(p, a, a.extent(), count, size, edge);
}

// One window's part of a target texel.
template <PoolKind kKind>
__device__ __forceinline__ void add_window(const PoolBackward& e, int32_t y, int32_t x, int64_t wy, int64_t wx,
                                           bool counts_one, const Texel& value, const TexelIndex& index, Texel& sum) {
  if constexpr (kKind == PoolKind::max) {
    const int32_t self = y * static_cast<int32_t>(e.source.width) + x;
#pragma unroll
    for (int l = 0; l < 4; ++l) sum.v[l] += index.v[l] == self ? value.v[l] : 0.0f;
    return;
  }
  float count = 1;
  if (!counts_one) {
    const int64_t ey = e.y.extent(), ex = e.x.extent();
    const PoolEdge edge = gather_edge<kKind>(e);
    count = static_cast<float>(taps_on(y, e.y.first_centre + wy * e.y.stride - ey / 2, e.y, ey, e.source.height, edge) *
                               taps_on(x, e.x.first_centre + wx * e.x.stride - ex / 2, e.x, ex, e.source.width, edge));
    if (count == 0) return;
  }
#pragma unroll
  for (int l = 0; l < 4; ++l) sum.v[l] += value.v[l] * count;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

template <PixelType kType, bool kWhole, PoolKind kKind, int K, int S>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(const __grid_constant__ PoolForward e, const __grid_constant__ Planes planes) {
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
  const Texel t = forward_window<kKind, K, S>(e, row, column, read);
  write_texel<kType, kWhole>(target, e.target.type, static_cast<int32_t>(e.target_y) + row,
                             static_cast<int32_t>(e.target_x) + column, t);
}

// Tiles of a plane and how many planes share a block.
struct Tiling {
  int32_t width, height, across, down;  // texels of a tile; tiles of a plane
  int32_t planes_per_block;
  int32_t windows;  // of a tile, at most
};

template <PixelType kType, bool kWhole, PoolKind kKind, int K, int S>
__global__ void __launch_bounds__(kThreads)
    backward_tile_kernel(const __grid_constant__ PoolBackward e, const __grid_constant__ Planes planes,
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
    wy0 = static_cast<int32_t>(windows_of_pixel<kKind, K, S>(y0, e.y, e.gradient_height, e.source.height, edge).first);
    wx0 = static_cast<int32_t>(windows_of_pixel<kKind, K, S>(x0, e.x, e.gradient_width, e.source.width, edge).first);
    wh = static_cast<int32_t>(
             windows_of_pixel<kKind, K, S>(y1 - 1, e.y, e.gradient_height, e.source.height, edge).last) -
         wy0 + 1;
    ww = static_cast<int32_t>(windows_of_pixel<kKind, K, S>(x1 - 1, e.x, e.gradient_width, e.source.width, edge).last) -
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
    backward_window<kKind, K, S>(e, wy, wx, read, value, index);
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
      const WindowRange wr = windows_of_pixel<kKind, K, S>(y, e.y, e.gradient_height, e.source.height, edge);
      const WindowRange wc = windows_of_pixel<kKind, K, S>(x, e.x, e.gradient_width, e.source.width, edge);
      const bool counts_one =
          K > 0 && (edge == PoolEdge::zero || (y > 0 && x > 0 && y < e.source.height - 1 && x < e.source.width - 1));
      for (int32_t wy = static_cast<int32_t>(wr.first); wy <= static_cast<int32_t>(wr.last); ++wy) {
        Texel part = {{0, 0, 0, 0}};
        for (int32_t wx = static_cast<int32_t>(wc.first); wx <= static_cast<int32_t>(wc.last); ++wx) {
          const int32_t at = local * tiling.windows + (wy - wy0) * ww + wx - wx0;
          const TexelIndex index = kKind == PoolKind::max ? indices[at] : TexelIndex{};
          add_window<kKind>(e, y, x, wy, wx, counts_one, values[at], index, part);
        }
        for (int l = 0; l < 4; ++l) sum.v[l] += part.v[l];
      }
      if constexpr (kKind == PoolKind::l2_norm) {
        const DevicePlane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
        const Texel own = read_texel<kType, kWhole>(source, e.source.type, y, x);
#pragma unroll
        for (int l = 0; l < 4; ++l) sum.v[l] *= own.v[l];
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
    backward_plain_kernel(const __grid_constant__ PoolBackward e, const __grid_constant__ Planes planes) {
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
        backward_window<kKind, 0, 0>(e, wy, wx, read, value, index);
        add_window<kKind>(e, static_cast<int32_t>(y), static_cast<int32_t>(x), wy, wx, false, value, index, part);
      }
      for (int l = 0; l < 4; ++l) sum.v[l] += part.v[l];
    }
    if constexpr (kKind == PoolKind::l2_norm) {
      const Texel own = read(y, x);
      for (int l = 0; l < 4; ++l) sum.v[l] *= own.v[l];
    }
  }
  write_texel<kType, kWhole>(target, e.target.type, static_cast<int32_t>(e.target_y + row),
                             static_cast<int32_t>(e.target_x + column), sum);
}

// ---- launchers ------------------------------------------------------------------------------------------------------

enum class Window { any, two_two, three_two, three_one };

// K and S of the common windows. 32-bit fast paths: first taps lie at most K before the image.
Window window_of(const PoolEncode& e) {
  const auto is = [&](int64_t k, int64_t s) {
    for (const PoolAxis* a : {&e.x, &e.y}) {
      if (a->kernel != k || a->stride != s || a->dilation != 1) return false;
      if (a->first_centre < 0 || a->first_centre > 1 << 20) return false;
    }
    return true;
  };
  return is(2, 2) ? Window::two_two : is(3, 2) ? Window::three_two : is(3, 1) ? Window::three_one : Window::any;
}

// No window lies wholly outside the source.
bool meets_image(const PoolForward& e) {
  const auto meets = [](const PoolAxis& a, int64_t count, int64_t size) {
    const int64_t first = a.first_centre - a.before();
    return first > -a.kernel && first + (count - 1) * a.stride < size && size < (1 << 24) && count < (1 << 24);
  };
  return meets(e.x, e.width, e.source.width) && meets(e.y, e.height, e.source.height);
}

bool is_whole(const ImageView& v) {
  return v.lanes == 4;
}

template <class F>
int with_type(PixelType type, bool whole, F&& launch) {
  if (whole && type == PixelType::f32) return launch.template operator()<PixelType::f32, true>();
  if (whole && type == PixelType::f16) return launch.template operator()<PixelType::f16, true>();
  return launch.template operator()<PixelType::f32, false>();
}

template <class F>
int with_kind(PoolKind kind, F&& launch) {
  if (kind == PoolKind::max) return launch.template operator()<PoolKind::max>();
  if (kind == PoolKind::average) return launch.template operator()<PoolKind::average>();
  return launch.template operator()<PoolKind::l2_norm>();
}

template <class F>
int with_window(Window window, F&& launch) {
  switch (window) {
    case Window::two_two:
      return launch.template operator()<2, 2>();
    case Window::three_two:
      return launch.template operator()<3, 2>();
    case Window::three_one:
      return launch.template operator()<3, 1>();
    default:
      return launch.template operator()<0, 0>();
  }
}

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

// Windows that touch the pixels [p0, p1) of an axis.
int64_t windows_between(int64_t p0, int64_t p1, const PoolAxis& a, int64_t count, int64_t size, PoolEdge edge) {
  p1 = std::min(p1, size);
  if (p0 >= p1) return 0;
  const int64_t first = windows_of(p0, a, a.extent(), count, size, edge).first;
  return std::max<int64_t>(0, windows_of(p1 - 1, a, a.extent(), count, size, edge).last - first + 1);
}

Tiling make_tiling(const PoolBackward& e, const Planes& planes) {
  Tiling t;
  t.width = static_cast<int32_t>(std::min<int64_t>(e.width, kTile));
  t.height = static_cast<int32_t>(std::min<int64_t>(e.height, kTile));
  t.across = static_cast<int32_t>((e.width + t.width - 1) / t.width);
  t.down = static_cast<int32_t>((e.height + t.height - 1) / t.height);
  const PoolEdge edge = e.kind == PoolKind::average ? PoolEdge::zero : e.edge;
  int64_t most_y = 0, most_x = 0;
  for (int32_t i = 0; i < t.down; ++i) {
    const int64_t y = e.source_y + static_cast<int64_t>(i) * t.height;
    most_y = std::max(most_y, windows_between(y, y + t.height, e.y, e.gradient_height, e.source.height, edge));
  }
  for (int32_t i = 0; i < t.across; ++i) {
    const int64_t x = e.source_x + static_cast<int64_t>(i) * t.width;
    most_x = std::max(most_x, windows_between(x, x + t.width, e.x, e.gradient_width, e.source.width, edge));
  }
  t.windows = static_cast<int32_t>(std::min<int64_t>(most_y * most_x, 1 << 20));
  const int32_t texels = t.width * t.height;
  t.planes_per_block = t.across * t.down == 1 && texels < kTile * kTile
                           ? static_cast<int32_t>(std::min<int64_t>(planes.count, kTile * kTile / texels))
                           : 1;
  return t;
}

}  // namespace

int pool_forward_cuda(const PoolForward& e, void* stream) noexcept {
  cudaError_t error = cudaSuccess;
  if (pool_forward_global(e, static_cast<cudaStream_t>(stream), &error)) return static_cast<int>(error);
  const Planes planes(e);
  const unsigned blocks = blocks_for(e.width * e.height * planes.count);
  const bool whole = is_whole(e.source) && is_whole(e.target) && e.channels % 4 == 0 && e.source.type == e.target.type;
  return with_type(e.source.type, whole, [&]<PixelType kType, bool kWhole>() {
    return with_kind(e.kind, [&]<PoolKind kKind>() {
      return with_window(meets_image(e) ? window_of(e) : Window::any, [&]<int K, int S>() {
        forward_kernel<kType, kWhole, kKind, K, S>
            <<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(e, planes);
        return static_cast<int>(cudaGetLastError());
      });
    });
  });
}

int pool_backward_cuda(const PoolBackward& e, void* stream) noexcept {
  const auto queue = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaSuccess;
  if (pool_backward_global(e, queue, &error) || pool_backward_rolling(e, queue, &error)) return static_cast<int>(error);
  const Planes planes(e);
  const bool whole = is_whole(e.source) && is_whole(e.target) && is_whole(e.gradient) && e.channels % 4 == 0 &&
                     e.source.type == e.target.type && e.source.type == e.gradient.type;
  return with_type(e.source.type, whole, [&]<PixelType kType, bool kWhole>() {
    return with_kind(e.kind, [&]<PoolKind kKind>() {
      const Tiling tiling = make_tiling(e, planes);
      const size_t shared = static_cast<size_t>(tiling.windows) * static_cast<size_t>(tiling.planes_per_block) *
                            (kKind == PoolKind::max ? sizeof(Texel) + sizeof(TexelIndex) : sizeof(Texel));
      if (shared > 48 * 1024) {
        backward_plain_kernel<kType, kWhole, kKind>
            <<<blocks_for(e.width * e.height * planes.count), kThreads, 0, queue>>>(e, planes);
        return static_cast<int>(cudaGetLastError());
      }
      const int64_t groups = (planes.count + tiling.planes_per_block - 1) / tiling.planes_per_block;
      const auto blocks = static_cast<unsigned>(groups * tiling.across * tiling.down);
      return with_window(window_of(e), [&]<int K, int S>() {
        backward_tile_kernel<kType, kWhole, kKind, K, S><<<blocks, kThreads, shared, queue>>>(e, planes, tiling);
        return static_cast<int>(cudaGetLastError());
      });
    });
  });
}

}  // namespace bnns::mps
