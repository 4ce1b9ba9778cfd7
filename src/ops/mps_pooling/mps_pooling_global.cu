// Global pooling: one window that covers a small plane exactly (7x7 before a classifier), and its gradient.
//
// A plane of w x h texels is 4 w h neighbouring numbers. A warp reads them as they lie, 32 at a time: lane l always
// meets channel l % 4, keeps its numbers in registers, and 3 shuffles join the 8 lanes of a channel. Each byte moves
// once.

#include "src/ops/mps_pooling/mps_pooling_texel.cuh"

namespace bnns::mps {
namespace {

constexpr int kThreads = 256;
constexpr int kMost = 16;  // numbers per lane: planes of up to 128 texels

template <PixelType kType>
__device__ __forceinline__ float load(const void* data, uint32_t i) {
  if constexpr (kType == PixelType::f32) return __ldg(static_cast<const float*>(data) + i);
  return __half2float(static_cast<const __half*>(data)[i]);
}
template <PixelType kType>
__device__ __forceinline__ void store(void* data, uint32_t i, float v) {
  if constexpr (kType == PixelType::f32) {
    static_cast<float*>(data)[i] = v;
  } else {
    static_cast<__half*>(data)[i] = __float2half_rn(v);
  }
}

// The maximum of a channel's numbers and where it is: the first; a number beats NaN.
struct Best {
  float v;
  uint32_t at;
};
__device__ __forceinline__ Best join(Best a, Best b) {
  const bool better = b.v > a.v || (a.v != a.v && b.v == b.v);
  const bool equal = b.v == a.v || (a.v != a.v && b.v != b.v);
  return better || (equal && b.at < a.at) ? b : a;
}

// kNumbers: numbers per lane, rounded up; a lane without a number holds at = none.
template <PixelType kType, PoolKind kKind, int kNumbers, bool kBackward>
__global__ void __launch_bounds__(kThreads)
    global_kernel(const __grid_constant__ PoolBackward e, uint32_t planes, uint32_t slices, uint32_t count) {
  constexpr uint32_t kAll = 0xffffffffu, kNone = 0xffffffffu;
  const uint32_t plane = (blockIdx.x * kThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (plane >= planes) return;
  const uint32_t n = plane / slices, slice = plane - n * slices;
  const DevicePlane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, 4);
  float t[kNumbers];
  if constexpr (!(kBackward && kKind == PoolKind::average)) {
#pragma unroll
    for (int k = 0; k < kNumbers; ++k) {
      const uint32_t i = 32 * k + lane;
      t[k] = i < count ? load<kType>(source.data, i) : 0.0f;
    }
  }
  float sum = 0;
  Best best{0, kNone};
  if constexpr (kKind == PoolKind::max) {
    best = {lane < count ? t[0] : __int_as_float(0x7fc00000), lane < count ? lane : kNone};
#pragma unroll
    for (int k = 1; k < kNumbers; ++k) {
      const uint32_t i = 32 * k + lane;
      if (i < count) best = join(best, {t[k], i});
    }
#pragma unroll
    for (int step = 4; step < 32; step *= 2) {
      best = join(best, {__shfl_xor_sync(kAll, best.v, step), __shfl_xor_sync(kAll, best.at, step)});
    }
  } else if constexpr (!(kBackward && kKind == PoolKind::average)) {
#pragma unroll
    for (int k = 0; k < kNumbers; ++k) sum += kKind == PoolKind::average ? t[k] : t[k] * t[k];
#pragma unroll
    for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(kAll, sum, step);
  }
  const float number = static_cast<float>(count / 4);
  if constexpr (!kBackward) {
    const DevicePlane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, 4);
    const uint32_t at = static_cast<uint32_t>(e.target_y * e.target.width + e.target_x) * 4;
    const float v = kKind == PoolKind::max ? best.v : kKind == PoolKind::average ? sum / number : sqrtf(sum);
    if (lane < 4) store<kType>(target.data, at + lane, v);
  } else {
    const DevicePlane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, 4);
    const DevicePlane gradient = plane_of(e.gradient, e.gradient_image + n, e.gradient_channel / 4 + slice, 4);
    const uint32_t at = static_cast<uint32_t>(e.gradient_y * e.gradient.width + e.gradient_x) * 4;
    const float g = load<kType>(gradient.data, at + lane % 4);
    const float factor = kKind == PoolKind::average ? g * (1.0f / number) : sum == 0.0f ? 0.0f : g / sqrtf(sum);
#pragma unroll
    for (int k = 0; k < kNumbers; ++k) {
      const uint32_t i = 32 * k + lane;
      if (i >= count) continue;
      const float v = kKind == PoolKind::max       ? (i == best.at ? g : 0.0f)
                      : kKind == PoolKind::average ? factor
                                                   : factor * t[k];
      store<kType>(target.data, i, v);
    }
  }
}

template <bool kBackward>
bool launch(const PoolBackward& e, cudaStream_t stream, cudaError_t* error) {
  // One window whose taps are the plane's texels, all four lanes of one float type, whole planes.
  const auto exact = [](const PoolAxis& a, int64_t size) {
    return a.dilation == 1 && a.kernel == size && a.first_centre == a.before();
  };
  const bool whole = e.source.lanes == 4 && e.target.lanes == 4 && e.channels % 4 == 0 &&
                     e.source.type == e.target.type &&
                     (e.source.type == PixelType::f32 || e.source.type == PixelType::f16);
  const Planes planes(e);
  const int64_t count = e.source.width * e.source.height * 4;
  if (!whole || !exact(e.x, e.source.width) || !exact(e.y, e.source.height) || count > 32 * kMost ||
      planes.count * 32 >= (int64_t{1} << 31)) {
    return false;
  }
  if (kBackward) {
    if (e.gradient.lanes != 4 || e.gradient.type != e.source.type || e.gradient_width != 1 || e.gradient_height != 1 ||
        e.source_x != 0 || e.source_y != 0 || e.target_x != 0 || e.target_y != 0 || e.width != e.source.width ||
        e.height != e.source.height || e.target.width != e.source.width) {
      return false;
    }
  } else if (e.width != 1 || e.height != 1) {
    return false;
  }
  const auto blocks = static_cast<unsigned>((planes.count * 32 + kThreads - 1) / kThreads);
  const auto go = [&]<PixelType kType, PoolKind kKind, int kNumbers>() {
    global_kernel<kType, kKind, kNumbers, kBackward><<<blocks, kThreads, 0, stream>>>(
        e, static_cast<uint32_t>(planes.count), static_cast<uint32_t>(planes.slices), static_cast<uint32_t>(count));
    *error = cudaGetLastError();
  };
  const auto by_size = [&]<PixelType kType, PoolKind kKind>() {
    count <= 32 * 7 ? go.template operator()<kType, kKind, 7>() : go.template operator()<kType, kKind, kMost>();
  };
  const auto by_kind = [&]<PixelType kType>() {
    e.kind == PoolKind::max       ? by_size.template operator()<kType, PoolKind::max>()
    : e.kind == PoolKind::average ? by_size.template operator()<kType, PoolKind::average>()
                                  : by_size.template operator()<kType, PoolKind::l2_norm>();
  };
  e.source.type == PixelType::f32 ? by_kind.template operator()<PixelType::f32>()
                                  : by_kind.template operator()<PixelType::f16>();
  return true;
}

}  // namespace

bool pool_forward_global(const PoolForward& encode, cudaStream_t stream, cudaError_t* error) noexcept {
  PoolBackward e;
  static_cast<PoolEncode&>(e) = encode;
  return launch<false>(e, stream, error);
}

bool pool_backward_global(const PoolBackward& encode, cudaStream_t stream, cudaError_t* error) noexcept {
  return launch<true>(encode, stream, error);
}

}  // namespace bnns::mps
