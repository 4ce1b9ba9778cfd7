// Any encode: a thread per target texel (16 bytes of f32, 8 of f16). Forward its taps meet in L1; a gradient reduces
// the windows of its texel itself. The same lines as on the CPU (mps_pooling/window.h), compiled with -fmad=false: the
// same order gives the same bits.

#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/cuda/texel.cuh"

namespace bnns::mps {
namespace {

constexpr int kThreads = 256;

struct Planes {  // of 4 channels
  int32_t slices;
  int64_t count;
  explicit Planes(const PoolEncode& e) : slices(static_cast<int32_t>((e.channels + 3) / 4)), count(e.images * slices) {}
};

// ---- windows --------------------------------------------------------------------------------------------------------

template <PoolKind kKind, class Read>
__device__ __forceinline__ Texel forward_window(const PoolEncode& e, int32_t wy, int32_t wx, Read read) {
  const int64_t fy = e.y.first_centre + wy * e.y.stride - e.y.before();
  const int64_t fx = e.x.first_centre + wx * e.x.stride - e.x.before();
  const AxisTaps ty(fy, e.y, e.source.height), tx(fx, e.x, e.source.width);
  if constexpr (kKind == PoolKind::max) {
    return max_window(ty, tx, e.edge, read);
  } else {
    Texel r = kKind == PoolKind::average ? sum_window(ty, tx, adds_columns(e.x, e.y), read)
                                         : square_sum_window(ty, tx, e.edge, adds_columns(e.x, e.y), read);
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
    const Texel sum = square_sum_window(ty, tx, e.edge, adds_columns(e.x, e.y), read);
    for (int l = 0; l < 4; ++l) value.v[l] = sum.v[l] == 0.0f ? 0.0f : value.v[l] / sqrtf(sum.v[l]);
  }
}

template <PoolKind kKind>
__device__ __forceinline__ PoolEdge gather_edge(const PoolEncode& e) {
  return kKind == PoolKind::average ? PoolEdge::zero : e.edge;
}

// One window's part of a target texel.
template <PoolKind kKind>
__device__ __forceinline__ void add_window(const PoolEncode& e, int32_t y, int32_t x, int64_t wx, int64_t count_y,
                                           const Texel& value, const TexelIndex& index, Texel& sum) {
  if constexpr (kKind == PoolKind::max) {
    const int32_t self = y * static_cast<int32_t>(e.source.width) + x;
#pragma unroll
    for (int l = 0; l < 4; ++l) sum.v[l] += index.v[l] == self ? value.v[l] : 0.0f;
    return;
  }
  const float count = static_cast<float>(count_y * taps_on(x, e.x.first_centre + wx * e.x.stride - e.x.before(), e.x,
                                                           e.x.extent(), e.source.width, gather_edge<kKind>(e)));
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
    const bool columns_first = adds_columns(e.x, e.y);  // a pixel that is several taps counts by columns, then by rows
    for (int64_t wy = wr.first; wy <= wr.last; ++wy) {
      const int64_t count_y =
          taps_on(y, e.y.first_centre + wy * e.y.stride - e.y.before(), e.y, e.y.extent(), e.source.height, edge);
      Texel part = {{0, 0, 0, 0}};
      for (int64_t wx = wc.first; wx <= wc.last; ++wx) {
        Texel value = read_texel<kType, kWhole>(gradient, e.gradient.type, static_cast<int32_t>(e.gradient_y + wy),
                                                static_cast<int32_t>(e.gradient_x + wx));
        TexelIndex index;
        backward_window<kKind>(e, wy, wx, read, value, index);
        add_window<kKind>(e, static_cast<int32_t>(y), static_cast<int32_t>(x), wx, columns_first ? 1 : count_y, value,
                          index, part);
      }
      for (int l = 0; l < 4; ++l) {
        sum.v[l] += columns_first && kKind != PoolKind::max ? part.v[l] * static_cast<float>(count_y) : part.v[l];
      }
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
int cuda::launch_plain(const PoolEncode& e, void* stream) noexcept {
  const Planes planes(e);
  const auto blocks = static_cast<unsigned>((e.width * e.height * planes.count + kThreads - 1) / kThreads);
  const auto queue = static_cast<cudaStream_t>(stream);
  return with_type_and_kind(e, [&]<PixelType kType, bool kWhole, PoolKind kKind>() {
    if (e.backward) {
      backward_plain_kernel<kType, kWhole, kKind><<<blocks, kThreads, 0, queue>>>(e, planes);
    } else {
      forward_kernel<kType, kWhole, kKind><<<blocks, kThreads, 0, queue>>>(e, planes);
    }
    return static_cast<int>(cudaGetLastError());
  });
}

int cuda::synchronize(void* stream) noexcept {
  return static_cast<int>(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}

}  // namespace bnns::mps
