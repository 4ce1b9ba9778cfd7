// Global pooling: one window that covers a small plane exactly (7x7 before a classifier), and its gradient.
//
// A block owns up to 32 neighbouring planes of an image and fetches them as they lie; then a thread per plane and
// channel walks its numbers in shared memory in row-major order, as the CPU does; then the gradient is written as it
// lies. A plane takes an odd number of texels in shared memory, so that the threads of a warp meet different banks.

#include <algorithm>

#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/cuda/shared.cuh"

namespace bnns::mps {
namespace {

constexpr uint32_t kPlanes = cuda::kMostGlobalPlanes;  // of a block, at most
constexpr uint32_t kTexels = 1600;                     // of a block, about

struct GlobalPlan {
  BandImage source, gradient, target;                // gradient, forward's target: of their one pixel
  uint32_t slices, texels, pitch, planes_per_block;  // texels of a plane; of a plane in shared memory
  uint32_t magic;                                    // i / texels is the high word of i * magic (i below 65,536)
};

template <PixelType kType>
__device__ __forceinline__ float load_number(const char* data, uint32_t i) {
  if constexpr (kType == PixelType::f32) return reinterpret_cast<const float*>(data)[i];
  return __half2float(reinterpret_cast<const __half*>(data)[i]);
}

// A block per group of slices (x) and image (y).
template <PixelType kType, PoolKind kKind, bool kBackward>
__global__ void __launch_bounds__(kBandThreads) global_kernel(const __grid_constant__ GlobalPlan e) {
  constexpr int kBytes = kType == PixelType::f32 ? 16 : 8;
  constexpr bool kReads = !(kBackward && kKind == PoolKind::average);
  extern __shared__ __align__(16) char source[];
  __shared__ __align__(16) float sent[kPlanes][4];      // G, G / N or G / norm
  __shared__ __align__(16) uint32_t taker[kPlanes][4];  // max: the texel that takes G
  const uint32_t slice = blockIdx.x * e.planes_per_block, count = min(e.planes_per_block, e.slices - slice);
  const auto plane_of = [&](const BandImage& image, uint32_t p) {
    return image.data + blockIdx.y * image.image_bytes + (slice + p) * image.plane_bytes;
  };
  const uint32_t texels = count * e.texels, own = threadIdx.x / 4, channel = threadIdx.x % 4;
  const auto plane_of_texel = [&](uint32_t i) { return e.texels == 1 ? i : __umulhi(i, e.magic); };
  wait_for_stream();
  if constexpr (kReads) {
    const char* const from = plane_of(e.source, 0);
    for (uint32_t i = threadIdx.x; i < texels; i += kBandThreads) {
      const uint32_t p = plane_of_texel(i);
      fetch<kBytes>(source + (i + p * (e.pitch - e.texels)) * kBytes, from + i * kBytes);
    }
  }
  float g = 0;
  if (kBackward && own < count) g = load_number<kType>(plane_of(e.gradient, own), channel);
  if constexpr (kReads) {
    wait_for_fetches();
    __syncthreads();
  } else if (own < count) {
    sent[own][channel] = __fmaf_rn(g, 1.0f / static_cast<float>(e.texels), 0.0f);
  }
  if (kReads && own < count) {
    const char* const numbers = source + own * e.pitch * kBytes;
    float r = load_number<kType>(numbers, channel);
    uint32_t at = 0;
    if constexpr (kKind == PoolKind::l2_norm) r *= r;
#pragma unroll 8
    for (uint32_t k = 1; k < e.texels; ++k) {
      const float v = load_number<kType>(numbers, 4 * k + channel);
      if constexpr (kKind == PoolKind::max && !kBackward) {
        r = fmaxf(r, v);
      } else if constexpr (kKind == PoolKind::max) {
        const bool better = v > r || (r != r && v == v);  // the first; a number beats NaN
        r = better ? v : r, at = better ? k : at;
      } else {
        r += kKind == PoolKind::average ? v : v * v;
      }
    }
    if constexpr (kBackward) {
      sent[own][channel] = kKind == PoolKind::max ? g : r == 0.0f ? 0.0f : g / sqrtf(r);
      taker[own][channel] = at;
    } else {
      const float v = kKind == PoolKind::max       ? r
                      : kKind == PoolKind::average ? r / static_cast<float>(e.texels)
                                                   : sqrtf(r);
      char* const to = plane_of(e.target, own);
      if constexpr (kType == PixelType::f32) {
        reinterpret_cast<float*>(to)[channel] = v;
      } else {
        reinterpret_cast<__half*>(to)[channel] = __float2half_rn(v);
      }
    }
  }
  if constexpr (kBackward) {
    __syncthreads();
    char* const to = plane_of(e.target, 0);
    for (uint32_t i = threadIdx.x; i < texels; i += kBandThreads) {
      const uint32_t p = plane_of_texel(i), texel = i - p * e.texels;
      Texel t = shared_texel<PixelType::f32>(sent[p]);
      if constexpr (kKind == PoolKind::max) {
        const uint4 at = *reinterpret_cast<const uint4*>(taker[p]);
        t = {{at.x == texel ? t.v[0] : 0.0f, at.y == texel ? t.v[1] : 0.0f, at.z == texel ? t.v[2] : 0.0f,
              at.w == texel ? t.v[3] : 0.0f}};
      } else if constexpr (kKind == PoolKind::l2_norm) {
        const Texel s = shared_texel<kType>(source + (p * e.pitch + texel) * kBytes);
#pragma unroll
        for (int l = 0; l < 4; ++l) t.v[l] = t.v[l] == 0.0f ? 0.0f : t.v[l] * s.v[l];
      }
      store_texel<kType>(to + i * kBytes, t);
    }
  }
}

template <bool kBackward>
cudaError_t launch(const PoolEncode& e, cudaStream_t stream) {
  GlobalPlan plan{};
  const auto pixel = [&](BandImage image, const ImageView& v, int64_t y, int64_t x) {
    image.data += (y * v.width + x) * v.lanes * static_cast<int64_t>(bytes_of(v.type));
    return image;
  };
  plan.source = band_image(e.source, e.source_image, e.source_channel);
  plan.target = band_image(e.target, e.target_image, e.target_channel);
  if (!kBackward) plan.target = pixel(plan.target, e.target, e.target_y, e.target_x);
  plan.gradient =
      pixel(band_image(e.gradient, e.gradient_image, e.gradient_channel), e.gradient, e.gradient_y, e.gradient_x);
  plan.slices = static_cast<uint32_t>(e.channels / 4);
  plan.texels = static_cast<uint32_t>(e.source.width * e.source.height);
  plan.pitch = plan.texels | 1;
  const bool reads = !(kBackward && e.kind == PoolKind::average);
  plan.planes_per_block = std::clamp(kTexels / plan.texels, 1u, kPlanes);
  plan.magic = plan.texels == 1 ? 0 : static_cast<uint32_t>(((uint64_t{1} << 32) + plan.texels - 1) / plan.texels);
  const dim3 grid((plan.slices + plan.planes_per_block - 1) / plan.planes_per_block, static_cast<unsigned>(e.images));
  const auto go = [&]<PixelType kType, PoolKind kKind>() {
    const unsigned shared = reads ? plan.planes_per_block * plan.pitch * (kType == PixelType::f32 ? 16 : 8) : 0;
    return launch_in_stream(global_kernel<kType, kKind, kBackward>, grid, shared, stream, plan);
  };
  const auto by_kind = [&]<PixelType kType>() {
    return e.kind == PoolKind::max       ? go.template operator()<kType, PoolKind::max>()
           : e.kind == PoolKind::average ? go.template operator()<kType, PoolKind::average>()
                                         : go.template operator()<kType, PoolKind::l2_norm>();
  };
  return e.source.type == PixelType::f32 ? by_kind.template operator()<PixelType::f32>()
                                         : by_kind.template operator()<PixelType::f16>();
}

}  // namespace

int cuda::launch_global(const PoolEncode& e, void* stream) noexcept {
  const auto queue = static_cast<cudaStream_t>(stream);
  return static_cast<int>(e.backward ? launch<true>(e, queue) : launch<false>(e, queue));
}

}  // namespace bnns::mps
