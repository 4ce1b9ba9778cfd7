// Launches the separable kernels (mps_pooling/cuda/separable_block.h) that mps_pooling/cuda/separable_plan.cc plans.

#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/cuda/separable_block.h"
#include "src/ops/mps_pooling/cuda/texel.cuh"

namespace bnns::mps {
namespace {

// The images of a block's planes.
template <PixelType kType, bool kWhole>
struct DeviceImages {
  const PoolEncode& e;
  int32_t slices;
  int64_t first;  // plane

  __device__ __forceinline__ DevicePlane plane(const ImageView& v, int64_t image, int64_t channel, int32_t p) const {
    const uint32_t n = static_cast<uint32_t>(first + p) / static_cast<uint32_t>(slices);
    const auto slice = static_cast<int32_t>(static_cast<uint32_t>(first + p) - n * static_cast<uint32_t>(slices));
    return plane_of(v, image + n, channel / 4 + slice, lanes_of(e, slice));
  }
  __device__ __forceinline__ DevicePlane source(int32_t p) const {
    return plane(e.source, e.source_image, e.source_channel, p);
  }
  __device__ __forceinline__ DevicePlane gradient(int32_t p) const {
    return plane(e.gradient, e.gradient_image, e.gradient_channel, p);
  }
  __device__ __forceinline__ DevicePlane target(int32_t p) const {
    return plane(e.target, e.target_image, e.target_channel, p);
  }
  __device__ __forceinline__ Texel read_source(const DevicePlane& plane, int32_t y, int32_t x) const {
    // Planes are below 2^27 texels: offsets in 32 bits.
    if constexpr (kWhole && kType == PixelType::f32) {
      const float4 v = __ldg(static_cast<const float4*>(plane.data) + (y * plane.width + x));
      return {{v.x, v.y, v.z, v.w}};
    } else if constexpr (kWhole) {
      const uint2 v = __ldg(static_cast<const uint2*>(plane.data) + (y * plane.width + x));
      const float2 a = __half22float2(*reinterpret_cast<const __half2*>(&v.x));
      const float2 b = __half22float2(*reinterpret_cast<const __half2*>(&v.y));
      return {{a.x, a.y, b.x, b.y}};
    }
    return read_texel<kType, kWhole>(plane, e.source.type, y, x);
  }
  __device__ __forceinline__ Texel read_gradient(const DevicePlane& plane, int32_t y, int32_t x) const {
    return read_texel<kType, kWhole>(plane, e.gradient.type, y, x);
  }
  __device__ __forceinline__ void write(const DevicePlane& plane, int32_t y, int32_t x, const Texel& t) const {
    write_texel<kType, kWhole>(plane, e.target.type, y, x, t);
  }
};

struct BlockTeam {
  template <class F>
  __device__ __forceinline__ void each(F&& f) const {
    f(static_cast<int32_t>(threadIdx.x), static_cast<int32_t>(blockDim.x));
    __syncthreads();
  }
};

template <PixelType kType, bool kWhole, PoolKind kKind, bool kBackward>
__global__ void __launch_bounds__(kSeparableMostThreads, 3)
    separable_kernel(const __grid_constant__ PoolEncode e, const __grid_constant__ Separable plan) {
  extern __shared__ __align__(16) char memory[];
  const uint32_t tiles = static_cast<uint32_t>(plan.x.tiles * plan.y.tiles);
  const uint32_t group = blockIdx.x / tiles, tile = blockIdx.x - group * tiles;
  const auto chunk = static_cast<int32_t>(tile / static_cast<uint32_t>(plan.x.tiles));
  const int32_t strip = static_cast<int32_t>(tile) - chunk * plan.x.tiles;
  const int64_t first = static_cast<int64_t>(group) * plan.planes_per_block, left = plan.planes - first;
  const DeviceImages<kType, kWhole> images{e, plan.slices, first};
  const int32_t planes = left < plan.planes_per_block ? static_cast<int32_t>(left) : plan.planes_per_block;
  SeparableBlock<kKind, kBackward, DeviceImages<kType, kWhole>> block(plan, images, memory, strip, chunk, planes);
  block.run(BlockTeam{});
}

template <PixelType kType, bool kWhole, PoolKind kKind, bool kBackward>
cudaError_t launch(const PoolEncode& e, const Separable& plan, cudaStream_t stream) {
  const auto kernel = separable_kernel<kType, kWhole, kKind, kBackward>;
  if (plan.shared > 48u << 10) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(plan.shared));
    if (error != cudaSuccess) return error;
  }
  kernel<<<static_cast<unsigned>(plan.blocks), static_cast<unsigned>(plan.threads), plan.shared, stream>>>(e, plan);
  return cudaGetLastError();
}

// Texels of one float type with four lanes each are one vector access.
template <PoolKind kKind, bool kBackward>
cudaError_t launch_type(const PoolEncode& e, const Separable& plan, cudaStream_t stream) {
  const auto fits = [&](const ImageView& v) { return v.lanes == 4 && v.type == e.source.type; };
  const bool whole = fits(e.source) && fits(e.target) && (!kBackward || fits(e.gradient)) && e.channels % 4 == 0;
  if (whole && e.source.type == PixelType::f32) return launch<PixelType::f32, true, kKind, kBackward>(e, plan, stream);
  if (whole && e.source.type == PixelType::f16) return launch<PixelType::f16, true, kKind, kBackward>(e, plan, stream);
  return launch<PixelType::f32, false, kKind, kBackward>(e, plan, stream);
}

template <PoolKind kKind>
int launch_kind(const PoolEncode& e, const Separable& plan, cudaStream_t stream) {
  return static_cast<int>(e.backward ? launch_type<kKind, true>(e, plan, stream)
                                     : launch_type<kKind, false>(e, plan, stream));
}

}  // namespace

int cuda::launch_separable(const PoolEncode& encode, void* stream) noexcept {
  const PoolEncode e = without_choice(encode);
  Separable plan;
  plan_separable(e, &plan);
  const auto queue = static_cast<cudaStream_t>(stream);
  if (e.kind == PoolKind::max) return launch_kind<PoolKind::max>(e, plan, queue);
  if (e.kind == PoolKind::average) return launch_kind<PoolKind::average>(e, plan, queue);
  return launch_kind<PoolKind::l2_norm>(e, plan, queue);
}

}  // namespace bnns::mps
