// Texels and windows in shared memory, for the kernels of mps_pooling/cuda/band.cuh and mps_pooling/cuda/global.cu.
#pragma once

#include "src/ops/mps_pooling/cuda/band.h"
#include "src/ops/mps_pooling/cuda/texel.cuh"

namespace bnns::mps {

template <int kBytes>
__device__ __forceinline__ void fetch(void* shared, const void* global) {
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(global));
  }
}
__device__ __forceinline__ void wait_for_fetches() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// Launches a kernel of kBandThreads threads that begins with wait_for_stream(). On Hopper and later its blocks are set
// up while the last ones of the stream's previous kernel still run: a microsecond or two of every call.
template <class Plan>
inline cudaError_t launch_in_stream(void (*kernel)(Plan), dim3 grid, unsigned shared, cudaStream_t stream,
                                    const Plan& plan) {
  int device = 0, major = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  if (const cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
      error != cudaSuccess) {
    return error;
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = dim3(kBandThreads), config.dynamicSmemBytes = shared, config.stream = stream;
  config.attrs = &early, config.numAttrs = major >= 9 ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, plan);
}

// Nothing of the stream's earlier work may be read or overwritten before this.
__device__ __forceinline__ void wait_for_stream() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Calls f(column, first row, step of rows) for the columns of this thread.
template <class F>
__device__ __forceinline__ void walk(const BandWalk& w, F&& f) {
  const uint32_t columns = 1u << w.shift;
  for (uint32_t column = threadIdx.x & (columns - 1); column < w.columns; column += columns) {
    f(column, threadIdx.x >> w.shift, static_cast<uint32_t>(kBandThreads) >> w.shift);
  }
}

__device__ __forceinline__ bool within(int32_t i, int32_t count) {
  return static_cast<uint32_t>(i) < static_cast<uint32_t>(count);
}

// ---- texels in shared memory ----------------------------------------------------------------------------------------

template <PixelType kType>
__device__ __forceinline__ Texel shared_texel(const void* at) {
  Texel t;
  if constexpr (kType == PixelType::f32) {
    const float4 v = *static_cast<const float4*>(at);
    t.v[0] = v.x, t.v[1] = v.y, t.v[2] = v.z, t.v[3] = v.w;
  } else {
    const uint2 v = *static_cast<const uint2*>(at);
    const float2 a = __half22float2(*reinterpret_cast<const __half2*>(&v.x));
    const float2 b = __half22float2(*reinterpret_cast<const __half2*>(&v.y));
    t.v[0] = a.x, t.v[1] = a.y, t.v[2] = b.x, t.v[3] = b.y;
  }
  return t;
}

__device__ __forceinline__ uint2 halves_of(const Texel& t) {
  const __half2 a = __floats2half2_rn(t.v[0], t.v[1]), b = __floats2half2_rn(t.v[2], t.v[3]);
  return make_uint2(*reinterpret_cast<const uint32_t*>(&a), *reinterpret_cast<const uint32_t*>(&b));
}

template <PixelType kType>
__device__ __forceinline__ void store_texel(char* at, const Texel& t) {
  if constexpr (kType == PixelType::f32) {
    *reinterpret_cast<float4*>(at) = make_float4(t.v[0], t.v[1], t.v[2], t.v[3]);
  } else {
    *reinterpret_cast<uint2*>(at) = halves_of(t);
  }
}

// ---- windows --------------------------------------------------------------------------------------------------------

// The greatest tap of each channel; NaN (also the fill outside the image) loses to every number. zero: so does what
// is less than the zero outside.
template <PixelType kType, int K>
__device__ __forceinline__ Texel greatest(const char* taps, uint32_t pitch, bool zero) {
  Texel m;
  if constexpr (kType == PixelType::f32) {
    m = shared_texel<kType>(taps);
#pragma unroll
    for (int k = 1; k < K * K; ++k) {
      const Texel t = shared_texel<kType>(taps + (k / K) * pitch + (k % K) * 16);
#pragma unroll
      for (int l = 0; l < 4; ++l) m.v[l] = fmaxf(m.v[l], t.v[l]);
    }
  } else {
    __half2 top[2];
#pragma unroll
    for (int k = 0; k < K * K; ++k) {
      const uint2 v = *reinterpret_cast<const uint2*>(taps + (k / K) * pitch + (k % K) * 8);
      const __half2 a = *reinterpret_cast<const __half2*>(&v.x), b = *reinterpret_cast<const __half2*>(&v.y);
      top[0] = k == 0 ? a : __hmax2(top[0], a), top[1] = k == 0 ? b : __hmax2(top[1], b);
    }
    const float2 a = __half22float2(top[0]), b = __half22float2(top[1]);
    m = {{a.x, a.y, b.x, b.y}};
  }
  if (zero) {
#pragma unroll
    for (int l = 0; l < 4; ++l) m.v[l] = m.v[l] >= 0.0f ? m.v[l] : 0.0f;
  }
  return m;
}

// One bit per tap, 16 per channel: that of the first of the greatest taps; of a window of nothing but NaN, of tap
// `none`. zero: no bit where the zero outside is greater.
template <PixelType kType, int K>
__device__ __forceinline__ uint2 greatest_taps(const char* taps, uint32_t pitch, uint32_t none, bool zero) {
  if constexpr (kType == PixelType::f32) {
    Texel t[K * K];
#pragma unroll
    for (int k = 0; k < K * K; ++k) t[k] = shared_texel<kType>(taps + (k / K) * pitch + (k % K) * 16);
    uint32_t bit[4];
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      float m = t[0].v[l];
#pragma unroll
      for (int k = 1; k < K * K; ++k) m = fmaxf(m, t[k].v[l]);
      bit[l] = 1u << none;
#pragma unroll
      for (int k = K * K - 1; k >= 0; --k) bit[l] = t[k].v[l] == m ? 1u << k : bit[l];
      if (zero && !(m >= 0.0f)) bit[l] = 0;
    }
    return make_uint2(bit[0] | bit[1] << 16, bit[2] | bit[3] << 16);
  } else {
    __half2 t[K * K][2];
#pragma unroll
    for (int k = 0; k < K * K; ++k) {
      const uint2 v = *reinterpret_cast<const uint2*>(taps + (k / K) * pitch + (k % K) * 8);
      t[k][0] = *reinterpret_cast<const __half2*>(&v.x), t[k][1] = *reinterpret_cast<const __half2*>(&v.y);
    }
    uint32_t bit[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      __half2 m = t[0][h];
#pragma unroll
      for (int k = 1; k < K * K; ++k) m = __hmax2(m, t[k][h]);
      bit[h] = 0x00010001u << none;
#pragma unroll
      for (int k = K * K - 1; k >= 0; --k) {
        const uint32_t equal = __heq2_mask(t[k][h], m);
        bit[h] = (equal & (0x00010001u << k)) | (~equal & bit[h]);
      }
      if (zero) bit[h] &= __hge2_mask(m, __half2half2(__ushort_as_half(0)));
    }
    return make_uint2(bit[0], bit[1]);
  }
}

template <PixelType kType, int K, bool kSquares>
__device__ __forceinline__ Texel sum_of(const char* taps, uint32_t pitch) {
  constexpr int kBytes = kType == PixelType::f32 ? 16 : 8;
  Texel sum = {{0, 0, 0, 0}};
#pragma unroll
  for (int k = 0; k < K * K; ++k) {
    const Texel t = shared_texel<kType>(taps + (k / K) * pitch + (k % K) * kBytes);
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      if constexpr (!kSquares) {
        sum.v[l] += t.v[l];
      } else if constexpr (kType == PixelType::f16) {
        sum.v[l] = __fmaf_rn(t.v[l], t.v[l], sum.v[l]);  // the square of a half is exact: no other rounding
      } else {
        sum.v[l] += t.v[l] * t.v[l];
      }
    }
  }
  return sum;
}

__device__ __forceinline__ int32_t divisor_of(int32_t first, int32_t kernel, const BandAxis& a, bool clamp) {
  if (!clamp) return kernel;
  return max(min(first + kernel, a.size + a.zero_pad) - max(first, -a.zero_pad), 0);
}

// The average of n <= kUsual numbers, where n is almost always kUsual: sum / n, correctly rounded but for results below
// 2^-126 (all significands were tried for 3 and 9; kUsual is 4 or 9). A division takes four times the instructions,
// and one path for all n keeps the threads at an image's edge with their warp.
template <int kUsual>
__device__ __forceinline__ Texel averaged(Texel sum, int32_t n) {
  float inverse = 1.0f / static_cast<float>(kUsual);
  if (n != kUsual) inverse = n == 0 ? 0.0f : __frcp_rn(static_cast<float>(n));
  const float number = static_cast<float>(n);
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    const float q = sum.v[l] * inverse;
    const float better = __fmaf_rn(__fmaf_rn(q, -number, sum.v[l]), inverse, q);
    sum.v[l] = fabsf(q) < __int_as_float(0x7f800000) ? better : q;  // infinities have no remainder
  }
  return sum;
}

// sum += v where bits has `bit`: two instructions, where the compiler would select and add.
__device__ __forceinline__ void add_if(float& sum, float v, uint32_t bits, uint32_t bit) {
  asm("{\n\t.reg .pred p;\n\t.reg .b32 t;\n\tand.b32 t, %2, %3;\n\tsetp.ne.u32 p, t, 0;\n\t@p add.f32 %0, %0, %1;\n\t}"
      : "+f"(sum)
      : "f"(v), "r"(bits), "r"(bit));
}

// How many taps of the window from `first` on resolve to pixel p, one of them at p itself (clamp edge).
template <int K>
__device__ __forceinline__ float taps_at(int32_t p, int32_t first, int32_t size) {
  int32_t count = 1;
  if (p == 0) count += max(-first, 0);
  if (p == size - 1) count += max(first + K - size, 0);
  return static_cast<float>(count);
}

}  // namespace bnns::mps
