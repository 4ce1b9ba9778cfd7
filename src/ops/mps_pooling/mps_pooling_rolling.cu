// Gradients of the common windows at memory speed: every source texel is read once, every target texel written once.
//
// windows   2x2 stride 2 (no two windows share a pixel): a thread per window reads its four texels and writes them
// rolling   3x3 stride 2 and 3x3 stride 1: a warp owns a strip of columns and walks down it. A lane keeps what the rows
//           above gave, gets its neighbours' texels and windows by shuffles, and reduces each window once:
//             stride 2   lane j: window column j and the two target columns that begin it
//             stride 1   lane j: target column j and the window that begins there
//           The outermost lanes of a strip are its halo: they reduce windows but write nothing.
// average   a thread per target texel adds its windows' G / N; G meets in L1
//
// A window's maximum travels as the number of its tap (0 to 8, one byte per channel; 255: lost to an outside zero).
// All arithmetic on coordinates is 32-bit. Sums run over windows in row-major order, as on the CPU.

#include "src/ops/mps_pooling/mps_pooling_texel.cuh"

namespace bnns::mps {
namespace {

constexpr int kThreads = 256;
constexpr uint32_t kAll = 0xffffffffu;

// One axis of the encode in 32 bits.
struct Axis32 {
  int32_t first, size, windows;   // first tap of window 0; source pixels; windows
  int32_t source, target, count;  // clip: first source pixel, first target pixel, pixels
  int32_t gradient, zero_pad;     // first gradient pixel
};

struct Encode32 {
  Axis32 x, y;
  bool clamp;
  int32_t slices, strips, rows_per_strip;  // slices of 4 channels; strips of columns; quads or rows per warp
};

struct PlaneSet {
  DevicePlane source, gradient, target;
  __device__ __forceinline__ PlaneSet(const PoolBackward& e, uint32_t plane, uint32_t slices) {
    const uint32_t n = plane / slices, slice = plane - n * slices;
    source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, 4);
    gradient = plane_of(e.gradient, e.gradient_image + n, e.gradient_channel / 4 + slice, 4);
    target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, 4);
  }
};

__device__ __forceinline__ Texel fill(float v) {
  return {{v, v, v, v}};
}

__device__ __forceinline__ void add_share(Texel& sum, const Texel& g) {
#pragma unroll
  for (int l = 0; l < 4; ++l) sum.v[l] += g.v[l];
}
// A source texel; outside: NaN for max (it loses to every number), 0 or the nearest texel for L2.
template <PixelType kType, PoolKind kKind>
__device__ __forceinline__ Texel source_texel(const DevicePlane& p, const Encode32& e, int32_t y, int32_t x) {
  if constexpr (kKind == PoolKind::l2_norm) {
    if (e.clamp) y = min(max(y, 0), e.y.size - 1), x = min(max(x, 0), e.x.size - 1);
  }
  if (static_cast<uint32_t>(y) < static_cast<uint32_t>(e.y.size) &&
      static_cast<uint32_t>(x) < static_cast<uint32_t>(e.x.size)) {
    return read_texel<kType, true>(p, kType, y, x);
  }
  return fill(kKind == PoolKind::max ? __int_as_float(0x7fc00000) : 0.0f);
}

template <PixelType kType>
__device__ __forceinline__ Texel gradient_texel(const DevicePlane& p, const Encode32& e, int32_t wy, int32_t wx) {
  if (static_cast<uint32_t>(wy) < static_cast<uint32_t>(e.y.windows) &&
      static_cast<uint32_t>(wx) < static_cast<uint32_t>(e.x.windows)) {
    return read_texel<kType, true>(p, kType, e.y.gradient + wy, e.x.gradient + wx);
  }
  return fill(0);
}

// Writes source pixel (y, x)'s gradient where the clip has it; pixels beyond the image get 0.
template <PixelType kType>
__device__ __forceinline__ void target_texel(const DevicePlane& p, const Encode32& e, int32_t y, int32_t x, Texel t) {
  const int32_t row = y - e.y.source, column = x - e.x.source;
  if (static_cast<uint32_t>(row) >= static_cast<uint32_t>(e.y.count) ||
      static_cast<uint32_t>(column) >= static_cast<uint32_t>(e.x.count)) {
    return;
  }
  if (y >= e.y.size || x >= e.x.size) t = fill(0);
  write_texel<kType, true>(p, kType, e.y.target + row, e.x.target + column, t);
}

// ---- maxima ---------------------------------------------------------------------------------------------------------

// The larger of two candidates with their taps; the first wins ties and NaN loses (bits 8 l.. of a code: channel l).
struct Best {
  Texel v;
  uint32_t code;
};
__device__ __forceinline__ void challenge(Best& best, const Texel& v, uint32_t code) {
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    const bool better = !(v.v[l] <= best.v.v[l]) && v.v[l] == v.v[l];
    best.v.v[l] = better ? v.v[l] : best.v.v[l];
    const uint32_t mask = 0xffu << (8 * l);
    best.code = better ? (best.code & ~mask) | (code & mask) : best.code;
  }
}
__device__ __forceinline__ constexpr uint32_t bytes_of_code(uint32_t tap) {
  return tap * 0x01010101u;
}
__device__ __forceinline__ Best row_best(const Texel& a, const Texel& b, const Texel& c) {
  Best r{a, 0};
  challenge(r, b, bytes_of_code(1));
  challenge(r, c, bytes_of_code(2));
  return r;
}

// Three rows of a window joined. y0, x0: its first tap.
__device__ __forceinline__ uint32_t window_code(const Encode32& e, const Best& top, const Best& middle,
                                                const Best& bottom, int32_t y0, int32_t x0) {
  Best r = top;
  challenge(r, middle.v, middle.code + bytes_of_code(3));
  challenge(r, bottom.v, bottom.code + bytes_of_code(6));
  const bool inside = y0 >= 0 && x0 >= 0 && y0 + 3 <= e.y.size && x0 + 3 <= e.x.size;
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    const float v = r.v.v[l];
    const uint32_t mask = 0xffu << (8 * l);
    if (!inside && !e.clamp && !(v >= 0.0f)) r.code |= mask;  // an outside zero is greater
    if (v != v && (inside || e.clamp)) {                      // nothing but NaN: the first tap inside
      const uint32_t tap = static_cast<uint32_t>(max(-y0, 0) * 3 + max(-x0, 0));
      r.code = (r.code & ~mask) | (bytes_of_code(tap) & mask);
    }
  }
  return r.code;
}

// What a window sends: G and the code of its maximum, or G / norm.
template <PoolKind kKind>
struct Sent {
  Texel value;
  uint32_t code;
};

template <PoolKind kKind>
__device__ __forceinline__ void add_sent(Texel& sum, const Sent<kKind>& s, uint32_t tap, float weight) {
  if constexpr (kKind == PoolKind::max) {
    const uint32_t hit = __vcmpeq4(s.code, bytes_of_code(tap));
#pragma unroll
    for (int l = 0; l < 4; ++l) sum.v[l] += hit & (1u << (8 * l)) ? s.value.v[l] : 0.0f;
  } else {
#pragma unroll
    for (int l = 0; l < 4; ++l) sum.v[l] += s.value.v[l] * weight;
  }
}

template <PoolKind kKind>
__device__ __forceinline__ Sent<kKind> shuffle_up(const Sent<kKind>& s, int delta, int width) {
  Sent<kKind> r;
#pragma unroll
  for (int l = 0; l < 4; ++l) r.value.v[l] = __shfl_up_sync(kAll, s.value.v[l], delta, width);
  r.code = kKind == PoolKind::max ? __shfl_up_sync(kAll, s.code, delta, width) : 0;
  return r;
}
__device__ __forceinline__ Texel shuffle_down(const Texel& t, int delta, int width) {
  Texel r;
#pragma unroll
  for (int l = 0; l < 4; ++l) r.v[l] = __shfl_down_sync(kAll, t.v[l], delta, width);
  return r;
}

// A row of a window: its best tap, or the sum of its squares.
template <PoolKind kKind>
__device__ __forceinline__ Best row_of(const Texel& a, const Texel& b, const Texel& c) {
  if constexpr (kKind == PoolKind::max) return row_best(a, b, c);
  Best r;
  r.code = 0;
#pragma unroll
  for (int l = 0; l < 4; ++l) r.v.v[l] = a.v[l] * a.v[l] + b.v[l] * b.v[l] + c.v[l] * c.v[l];
  return r;
}

template <PoolKind kKind>
__device__ __forceinline__ Sent<kKind> send(const Encode32& e, const Texel& g, const Best& top, const Best& middle,
                                            const Best& bottom, int32_t y0, int32_t x0) {
  Sent<kKind> s;
  s.value = g, s.code = 0;
  if constexpr (kKind == PoolKind::max) {
    s.code = window_code(e, top, middle, bottom, y0, x0);
  } else {
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      const float sum = top.v.v[l] + middle.v.v[l] + bottom.v.v[l];
      s.value.v[l] = sum == 0.0f ? 0.0f : g.v[l] / sqrtf(sum);
    }
  }
  return s;
}

// L2 with the clamp edge: how many taps of the window from `first` on resolve to pixel p, one of its taps.
__device__ __forceinline__ float tap_weight(bool clamp, int32_t p, int32_t first, int32_t size) {
  if (!clamp) return 1.0f;
  int32_t count = 1;
  if (p == 0) count += max(-first, 0);
  if (p == size - 1) count += max(first + 3 - size, 0);
  return static_cast<float>(count);
}

template <PoolKind kKind>
__device__ __forceinline__ Texel times_own(Texel sum, const Texel& own) {
  if constexpr (kKind == PoolKind::l2_norm) {
#pragma unroll
    for (int l = 0; l < 4; ++l) sum.v[l] *= own.v[l];
  }
  return sum;
}

// ---- 3x3 stride 2 ---------------------------------------------------------------------------------------------------

template <PixelType kType, PoolKind kKind, int kWidth>
__global__ void __launch_bounds__(kThreads)
    rolling_two_kernel(const __grid_constant__ PoolBackward b, const __grid_constant__ Encode32 e, uint32_t tasks,
                       int32_t row_strips) {
  constexpr int kOut = kWidth - 1;  // quads that a segment of lanes writes
  const int lane = threadIdx.x % kWidth;
  const uint32_t task = (blockIdx.x * kThreads + threadIdx.x) / kWidth;
  const bool works = task < tasks;
  const uint32_t clamped = works ? task : tasks - 1;
  const uint32_t per_plane = static_cast<uint32_t>(e.strips * row_strips), plane = clamped / per_plane;
  const int32_t part = static_cast<int32_t>(clamped - plane * per_plane), strip = part % e.strips,
                row_strip = part / e.strips;
  const PlaneSet p(b, plane, e.slices);
  // Quads of the clip: quad q begins at pixel first + 2 q.
  const int32_t quad0 = (e.x.source - e.x.first) >> 1, row0 = (e.y.source - e.y.first) >> 1;
  const int32_t last_row = (e.y.source + e.y.count - 1 - e.y.first) >> 1;
  const int32_t wx = quad0 + strip * kOut + lane - 1;
  const int32_t begin = row0 + row_strip * e.rows_per_strip, end = min(begin + e.rows_per_strip - 1, last_row);
  const int32_t x = e.x.first + 2 * wx, strip_x = x - 2 * lane;
  const float here = tap_weight(e.clamp, x, x, e.x.size), left = tap_weight(e.clamp, x, x - 2, e.x.size);
  const float second = tap_weight(e.clamp, x + 1, x, e.x.size);

  const auto load_row = [&](int32_t y, Texel& a, Texel& c) {
    a = source_texel<kType, kKind>(p.source, e, y, x);
    c = source_texel<kType, kKind>(p.source, e, y, x + 1);
  };
  const auto reduce = [&](int32_t y, const Texel& a, const Texel& c) {
    Texel next = shuffle_down(a, 1, kWidth);
    if (lane == kWidth - 1) next = source_texel<kType, kKind>(p.source, e, y, x + 2);
    return row_of<kKind>(a, c, next);
  };
  int32_t y = e.y.first + 2 * (begin - 1);
  Texel a0, b0, a1, b1, a2, b2, g;
  load_row(y, a0, b0), load_row(y + 1, a1, b1), load_row(y + 2, a2, b2);
  g = gradient_texel<kType>(p.gradient, e, begin - 1, wx);
  Best top = reduce(y, a0, b0);
  Sent<kKind> above, above_left;
  // The same number of rounds for every segment of a warp: shuffles need all lanes.
  for (int32_t round = 0, wy = begin - 1; round <= e.rows_per_strip; ++round, ++wy, y += 2) {
    // The next two rows are on their way while this window is reduced.
    Texel na, nb, ma, mb, ng;
    const bool more = round < e.rows_per_strip;
    if (more) load_row(y + 3, na, nb), load_row(y + 4, ma, mb), ng = gradient_texel<kType>(p.gradient, e, wy + 1, wx);
    const Best middle = reduce(y + 1, a1, b1), bottom = reduce(y + 2, a2, b2);
    const Sent<kKind> own = send<kKind>(e, g, top, middle, bottom, y, x);
    const Sent<kKind> own_left = shuffle_up(own, 1, kWidth);
    Texel out[4];
    if (round > 0) {
      const float top_weight = tap_weight(e.clamp, y, y, e.y.size),
                  above_weight = tap_weight(e.clamp, y, y - 2, e.y.size);
      const float next_weight = tap_weight(e.clamp, y + 1, y, e.y.size);
      Texel s = fill(0);
      add_sent(s, above_left, 8, above_weight * left);
      add_sent(s, above, 6, above_weight * here);
      Texel lower = fill(0);
      add_sent(lower, own_left, 2, top_weight * left);
      add_sent(lower, own, 0, top_weight * here);
      add_share(s, lower);
      out[0] = times_own<kKind>(s, a0);
      s = fill(0);
      add_sent(s, above, 7, above_weight * second);
      add_sent(s, own, 1, top_weight * second);
      out[1] = times_own<kKind>(s, b0);
      s = fill(0);
      add_sent(s, own_left, 5, next_weight * left);
      add_sent(s, own, 3, next_weight * here);
      out[2] = times_own<kKind>(s, a1);
      s = fill(0);
      add_sent(s, own, 4, next_weight * second);
      out[3] = times_own<kKind>(s, b1);
    }
    if (round > 0) {
      // Lane l holds columns 2 l and 2 l + 1 of the strip; it writes columns l and l + kWidth, so that a warp's stores
      // are neighbours.
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int from = lane / 2 + half * (kWidth / 2), column = lane + half * kWidth;
          Texel t;
#pragma unroll
          for (int l = 0; l < 4; ++l) {
            const float even = __shfl_sync(kAll, out[2 * r].v[l], from, kWidth);
            const float odd = __shfl_sync(kAll, out[2 * r + 1].v[l], from, kWidth);
            t.v[l] = lane % 2 == 0 ? even : odd;
          }
          // Columns 0 and 1 belong to the halo lane.
          if (works && wy <= end && column >= 2) target_texel<kType>(p.target, e, y + r, strip_x + column, t);
        }
      }
    }
    above = own, above_left = own_left, top = bottom;
    a0 = a2, b0 = b2;
    if (more) a1 = na, b1 = nb, a2 = ma, b2 = mb, g = ng;
  }
}

// ---- 3x3 stride 1 ---------------------------------------------------------------------------------------------------

template <PixelType kType, PoolKind kKind, int kWidth>
__global__ void __launch_bounds__(kThreads)
    rolling_one_kernel(const __grid_constant__ PoolBackward b, const __grid_constant__ Encode32 e, uint32_t tasks,
                       int32_t row_strips) {
  constexpr int kOut = kWidth - 2;  // columns that a segment of lanes writes
  const int lane = threadIdx.x % kWidth;
  const uint32_t task = (blockIdx.x * kThreads + threadIdx.x) / kWidth;
  const bool works = task < tasks;
  const uint32_t clamped = works ? task : tasks - 1;
  const uint32_t per_plane = static_cast<uint32_t>(e.strips * row_strips), plane = clamped / per_plane;
  const int32_t part = static_cast<int32_t>(clamped - plane * per_plane), strip = part % e.strips,
                row_strip = part / e.strips;
  const PlaneSet p(b, plane, e.slices);
  const int32_t x = e.x.source + strip * kOut - 2 + lane;  // the lane's pixel column
  const int32_t wx = x - e.x.first;
  const bool writes = works && lane >= 2;
  const int32_t begin = e.y.source + row_strip * e.rows_per_strip;
  const int32_t end = min(begin + e.rows_per_strip, e.y.source + e.y.count);  // pixel rows
  float weight_x[3];
#pragma unroll
  for (int k = 0; k < 3; ++k) weight_x[k] = tap_weight(e.clamp, x, x - k, e.x.size);

  const auto reduce = [&](int32_t y, const Texel& t) {
    Texel second = shuffle_down(t, 1, kWidth), third = shuffle_down(t, 2, kWidth);
    if (lane == kWidth - 1) second = source_texel<kType, kKind>(p.source, e, y, x + 1);
    if (lane >= kWidth - 2) third = source_texel<kType, kKind>(p.source, e, y, x + 2);
    return row_of<kKind>(t, second, third);
  };
  // Windows begin at rows begin - 2 and on; pixel row r is complete with the window row that begins at r.
  int32_t y = begin - 2;
  Texel t0 = source_texel<kType, kKind>(p.source, e, y, x), t1 = source_texel<kType, kKind>(p.source, e, y + 1, x);
  Texel t2 = source_texel<kType, kKind>(p.source, e, y + 2, x), t3 = source_texel<kType, kKind>(p.source, e, y + 3, x);
  Texel g = gradient_texel<kType>(p.gradient, e, y - e.y.first, wx),
        ng = gradient_texel<kType>(p.gradient, e, y + 1 - e.y.first, wx);
  Best r0 = reduce(y, t0), r1 = reduce(y + 1, t1);
  Sent<kKind> rows[2][3];  // of the two window rows above, from columns x, x - 1, x - 2
  for (int32_t round = 0; round < e.rows_per_strip + 2; ++round, ++y) {
    const Texel t4 = y + 2 < end ? source_texel<kType, kKind>(p.source, e, y + 4, x) : fill(0);
    const Texel g2 = gradient_texel<kType>(p.gradient, e, y + 2 - e.y.first, wx);
    const Best r2 = reduce(y + 2, t2);
    Sent<kKind> now[3];
    now[0] = send<kKind>(e, g, r0, r1, r2, y, x);
    now[1] = shuffle_up(now[0], 1, kWidth);
    now[2] = shuffle_up(now[0], 2, kWidth);
    if (y >= begin && y < end && writes) {
      Texel s = fill(0);
#pragma unroll
      for (int k = 2; k >= 0; --k)
        add_sent(s, rows[0][k], 6 + k, tap_weight(e.clamp, y, y - 2, e.y.size) * weight_x[k]);
      Texel part = fill(0);
#pragma unroll
      for (int k = 2; k >= 0; --k)
        add_sent(part, rows[1][k], 3 + k, tap_weight(e.clamp, y, y - 1, e.y.size) * weight_x[k]);
      add_share(s, part), part = fill(0);
#pragma unroll
      for (int k = 2; k >= 0; --k) add_sent(part, now[k], k, tap_weight(e.clamp, y, y, e.y.size) * weight_x[k]);
      add_share(s, part);
      target_texel<kType>(p.target, e, y, x, times_own<kKind>(s, t0));
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) rows[0][k] = rows[1][k], rows[1][k] = now[k];
    r0 = r1, r1 = r2, t0 = t1, t1 = t2, t2 = t3, t3 = t4, g = ng, ng = g2;
  }
}

// ---- 2x2 stride 2 ---------------------------------------------------------------------------------------------------

constexpr int kWindowsPerThread = 4;

// A lane per target column; the two lanes of a window exchange their texels and both reduce it, so that loads and
// stores of a warp are neighbours.
template <PixelType kType, PoolKind kKind>
__global__ void __launch_bounds__(kThreads)
    windows_kernel(const __grid_constant__ PoolBackward b, const __grid_constant__ Encode32 e) {
  const PlaneSet p(b, blockIdx.z, static_cast<uint32_t>(e.slices));
  const int32_t begin = e.x.first + 2 * ((e.x.source - e.x.first) >> 1);  // the first column of the clip's first window
  const int32_t x = begin + static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  const int32_t wx = (x - e.x.first) >> 1, x0 = e.x.first + 2 * wx;
  const bool right = x != x0;
  int32_t wy =
      ((e.y.source - e.y.first) >> 1) + static_cast<int32_t>(blockIdx.y * blockDim.y * kWindowsPerThread + threadIdx.y);
#pragma unroll
  for (int32_t step = 0; step < kWindowsPerThread; ++step, wy += static_cast<int32_t>(blockDim.y)) {
    const int32_t y = e.y.first + 2 * wy;
    const Texel upper = source_texel<kType, kKind>(p.source, e, y, x),
                lower = source_texel<kType, kKind>(p.source, e, y + 1, x);
    const Texel g = gradient_texel<kType>(p.gradient, e, wy, wx);
    const bool inside = y >= 0 && x0 >= 0 && y + 2 <= e.y.size && x0 + 2 <= e.x.size;
    Texel out_upper, out_lower;
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      const float other_upper = __shfl_xor_sync(kAll, upper.v[l], 1),
                  other_lower = __shfl_xor_sync(kAll, lower.v[l], 1);
      const float t[4] = {right ? other_upper : upper.v[l], right ? upper.v[l] : other_upper,
                          right ? other_lower : lower.v[l], right ? lower.v[l] : other_lower};
      if constexpr (kKind == PoolKind::max) {
        float best = t[0];
        int at = 0;
#pragma unroll
        for (int k = 1; k < 4; ++k) {
          const bool better = !(t[k] <= best) && t[k] == t[k];
          best = better ? t[k] : best, at = better ? k : at;
        }
        if (!inside && !e.clamp && !(best >= 0.0f)) at = -1;
        if (best != best && (inside || e.clamp)) at = (y < 0 ? 2 : 0) + (x0 < 0 ? 1 : 0);
        out_upper.v[l] = at == (right ? 1 : 0) ? g.v[l] : 0.0f;
        out_lower.v[l] = at == (right ? 3 : 2) ? g.v[l] : 0.0f;
      } else {
        const float sum = t[0] * t[0] + t[1] * t[1] + t[2] * t[2] + t[3] * t[3];
        const float factor = sum == 0.0f ? 0.0f : g.v[l] / sqrtf(sum);
        out_upper.v[l] = factor * upper.v[l];
        out_lower.v[l] = factor * lower.v[l];
      }
    }
    target_texel<kType>(p.target, e, y, x, out_upper);
    target_texel<kType>(p.target, e, y + 1, x, out_lower);
  }
}

// ---- average --------------------------------------------------------------------------------------------------------

__device__ __forceinline__ int32_t divisor32(int32_t first, int32_t kernel, const Axis32& a, bool clamp) {
  if (!clamp) return kernel;
  return max(min(first + kernel, a.size + a.zero_pad) - max(first, -a.zero_pad), 0);
}

__device__ __forceinline__ float share_of(int32_t ny, int32_t nx, int32_t usual, float usual_share) {
  const int32_t n = ny * nx;
  return n == usual ? usual_share : n == 0 ? 0.0f : 1.0f / static_cast<float>(n);
}
__device__ __forceinline__ Texel scaled(Texel g, float share) {
#pragma unroll
  for (int l = 0; l < 4; ++l) g.v[l] *= share;
  return g;
}

constexpr int kRowsPerThread = 8;

// Stride 2: a thread walks down a column of target texels, two rows per row of windows; neighbouring lanes write
// neighbouring texels and meet the same G in L1.
template <PixelType kType, int K>
__global__ void __launch_bounds__(kThreads)
    average_two_kernel(const __grid_constant__ PoolBackward b, const __grid_constant__ Encode32 e) {
  const PlaneSet p(b, blockIdx.z, static_cast<uint32_t>(e.slices));
  const int32_t x = e.x.source + static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  int32_t wy =
      ((e.y.source - e.y.first) >> 1) + static_cast<int32_t>((blockIdx.y * blockDim.y + threadIdx.y) * kRowsPerThread);
  if (x >= e.x.source + e.x.count) return;
  constexpr float kShare = 1.0f / static_cast<float>(K * K);
  const int32_t wx = (x - e.x.first) >> 1, first = e.x.first + 2 * wx;
  const bool two = K == 3 && x == first;  // the window to the left reaches this column too
  const int32_t nx = divisor32(first, K, e.x, e.clamp), nx_left = divisor32(first - 2, K, e.x, e.clamp);
  const auto row = [&](int32_t w) {
    const int32_t ny = divisor32(e.y.first + 2 * w, K, e.y, e.clamp);
    Texel s = fill(0);
    if (two)
      add_share(s, scaled(gradient_texel<kType>(p.gradient, e, w, wx - 1), share_of(ny, nx_left, K * K, kShare)));
    add_share(s, scaled(gradient_texel<kType>(p.gradient, e, w, wx), share_of(ny, nx, K * K, kShare)));
    return s;
  };
  Texel above = K == 3 ? row(wy - 1) : fill(0);
#pragma unroll 4
  for (int32_t k = 0; k < kRowsPerThread; ++k, ++wy) {
    const int32_t y = e.y.first + 2 * wy;
    if (y >= e.y.source + e.y.count) return;
    const Texel here = row(wy);
    Texel s = fill(0);
    if constexpr (K == 3) add_share(s, above);
    add_share(s, here);
    target_texel<kType>(p.target, e, y, x, s);
    s = fill(0), add_share(s, here);
    target_texel<kType>(p.target, e, y + 1, x, s);
    above = here;
  }
}

// 3x3 stride 1: a thread walks down a column; the sums of three windows side by side are kept for three rows.
template <PixelType kType>
__global__ void __launch_bounds__(kThreads)
    average_one_kernel(const __grid_constant__ PoolBackward b, const __grid_constant__ Encode32 e) {
  const PlaneSet p(b, blockIdx.z, static_cast<uint32_t>(e.slices));
  const int32_t x = e.x.source + static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  int32_t y = e.y.source + static_cast<int32_t>((blockIdx.y * blockDim.y + threadIdx.y) * kRowsPerThread);
  if (x >= e.x.source + e.x.count) return;
  constexpr float kShare = 1.0f / 9.0f;
  int32_t nx[3];
#pragma unroll
  for (int k = 0; k < 3; ++k) nx[k] = divisor32(x - k, 3, e.x, e.clamp);
  const auto row = [&](int32_t first) {  // windows that begin at row `first` and reach column x
    const int32_t ny = divisor32(first, 3, e.y, e.clamp);
    Texel s = fill(0);
#pragma unroll
    for (int k = 2; k >= 0; --k) {
      const Texel g = gradient_texel<kType>(p.gradient, e, first - e.y.first, x - k - e.x.first);
      add_share(s, scaled(g, share_of(ny, nx[k], 9, kShare)));
    }
    return s;
  };
  Texel r0 = row(y - 2), r1 = row(y - 1);
#pragma unroll 2
  for (int32_t k = 0; k < kRowsPerThread; ++k, ++y) {
    if (y >= e.y.source + e.y.count) return;
    const Texel r2 = row(y);
    Texel s = fill(0);
    add_share(s, r0), add_share(s, r1), add_share(s, r2);
    target_texel<kType>(p.target, e, y, x, s);
    r0 = r1, r1 = r2;
  }
}

// ---- launcher -------------------------------------------------------------------------------------------------------

constexpr int64_t kLimit = 1 << 24;

// The axis in 32 bits; false where coordinates are large or a window lies wholly outside.
bool make_axis(const PoolAxis& a, int64_t size, int64_t windows, int64_t source, int64_t target, int64_t count,
               int64_t gradient, Axis32* out) {
  const int64_t first = a.first_centre - a.before(), last = first + (windows - 1) * a.stride;
  for (const int64_t v : {size, windows, source, target, count, gradient, a.zero_pad}) {
    if (v < 0 || v > kLimit) return false;
  }
  if (a.dilation != 1 || first <= -a.kernel || last >= size || first > kLimit) return false;
  *out = {int32_t(first),  int32_t(size),  int32_t(windows),  int32_t(source),
          int32_t(target), int32_t(count), int32_t(gradient), int32_t(a.zero_pad)};
  return true;
}

template <PixelType kType>
cudaError_t launch(const PoolBackward& b, Encode32 e, const Planes& planes, cudaStream_t stream) {
  const int64_t k = b.x.kernel, s = b.x.stride;
  if (b.kind == PoolKind::average || k == 2) {
    const bool average = b.kind == PoolKind::average, quads = s == 2;
    const auto units = [&](const Axis32& a) {  // pairs of pixels, or pixels, of the clip
      return static_cast<unsigned>(quads ? ((a.source + a.count - 1 - a.first) >> 1) - ((a.source - a.first) >> 1) + 1
                                         : a.count);
    };
    const unsigned columns = average ? static_cast<unsigned>(e.x.count) : 2 * units(e.x),
                   per_thread = average ? kRowsPerThread : kWindowsPerThread,
                   rows = (units(e.y) + per_thread - 1) / per_thread;
    unsigned block_rows = columns <= 8 ? 32 : columns <= 16 ? 16 : 8;
    while (block_rows > 1 && block_rows / 2 >= rows) block_rows /= 2;
    const dim3 block(columns <= 8 ? 8 : columns <= 16 ? 16 : 32, block_rows);
    const dim3 grid((columns + block.x - 1) / block.x, (rows + block.y - 1) / block.y,
                    static_cast<unsigned>(planes.count));
    if (b.kind == PoolKind::max) {
      windows_kernel<kType, PoolKind::max><<<grid, block, 0, stream>>>(b, e);
    } else if (b.kind == PoolKind::l2_norm) {
      windows_kernel<kType, PoolKind::l2_norm><<<grid, block, 0, stream>>>(b, e);
    } else if (k == 2) {
      average_two_kernel<kType, 2><<<grid, block, 0, stream>>>(b, e);
    } else if (s == 2) {
      average_two_kernel<kType, 3><<<grid, block, 0, stream>>>(b, e);
    } else {
      average_one_kernel<kType><<<grid, block, 0, stream>>>(b, e);
    }
    return cudaGetLastError();
  }
  // Strips of columns per segment of lanes, strips of rows per warp.
  const int32_t units_x =
      s == 2 ? ((e.x.source + e.x.count - 1 - e.x.first) >> 1) - ((e.x.source - e.x.first) >> 1) + 1 : e.x.count;
  const int32_t units_y =
      s == 2 ? ((e.y.source + e.y.count - 1 - e.y.first) >> 1) - ((e.y.source - e.y.first) >> 1) + 1 : e.y.count;
  const bool narrow = s == 2 ? units_x <= 15 : e.x.count <= 14;
  const int32_t out = (narrow ? 16 : 32) - (s == 2 ? 1 : 2);
  e.strips = (units_x + out - 1) / out;
  const int32_t most = s == 2 ? 16 : 32, row_strips = (units_y + most - 1) / most;
  e.rows_per_strip = (units_y + row_strips - 1) / row_strips;
  const int64_t all = planes.count * e.strips * row_strips, lanes = all * (narrow ? 16 : 32);
  const auto tasks = static_cast<uint32_t>(all);
  const auto blocks = static_cast<unsigned>((lanes + kThreads - 1) / kThreads);
  const auto go = [&]<PoolKind kKind>() {
    if (s == 2 && narrow) {
      rolling_two_kernel<kType, kKind, 16><<<blocks, kThreads, 0, stream>>>(b, e, tasks, row_strips);
    } else if (s == 2) {
      rolling_two_kernel<kType, kKind, 32><<<blocks, kThreads, 0, stream>>>(b, e, tasks, row_strips);
    } else if (narrow) {
      rolling_one_kernel<kType, kKind, 16><<<blocks, kThreads, 0, stream>>>(b, e, tasks, row_strips);
    } else {
      rolling_one_kernel<kType, kKind, 32><<<blocks, kThreads, 0, stream>>>(b, e, tasks, row_strips);
    }
    return cudaGetLastError();
  };
  return b.kind == PoolKind::max ? go.template operator()<PoolKind::max>()
                                 : go.template operator()<PoolKind::l2_norm>();
}

}  // namespace

bool pool_backward_rolling(const PoolBackward& b, cudaStream_t stream, cudaError_t* error) noexcept {
  const int64_t k = b.x.kernel, s = b.x.stride;
  if (b.y.kernel != k || b.y.stride != s || !((k == 2 && s == 2) || (k == 3 && (s == 1 || s == 2)))) return false;
  const bool whole = b.source.lanes == 4 && b.target.lanes == 4 && b.gradient.lanes == 4 && b.channels % 4 == 0 &&
                     b.source.type == b.target.type && b.source.type == b.gradient.type &&
                     (b.source.type == PixelType::f32 || b.source.type == PixelType::f16);
  const Planes planes(b);
  Encode32 e{};
  if (!whole ||
      !make_axis(b.x, b.source.width, b.gradient_width, b.source_x, b.target_x, b.width, b.gradient_x, &e.x) ||
      !make_axis(b.y, b.source.height, b.gradient_height, b.source_y, b.target_y, b.height, b.gradient_y, &e.y)) {
    return false;
  }
  // Clamped L2 of 2x2 windows that overhang would count edge texels twice: the general kernel does.
  e.clamp = b.edge == PoolEdge::clamp;
  if (k == 2 && b.kind == PoolKind::l2_norm && e.clamp &&
      (e.x.first < 0 || e.y.first < 0 || e.x.first + 2 * e.x.windows > e.x.size ||
       e.y.first + 2 * e.y.windows > e.y.size)) {
    return false;
  }
  const bool flat = b.kind == PoolKind::average || k == 2;  // planes in grid.z, rows in grid.y
  if (flat && (planes.count > 65535 || e.y.count > 8 * 65535)) return false;
  if (planes.count * ((b.width + 13) / 14) * ((b.height + 15) / 16) * 32 >= (int64_t{1} << 31)) return false;
  e.slices = planes.slices;
  *error = b.source.type == PixelType::f32 ? launch<PixelType::f32>(b, e, planes, stream)
                                           : launch<PixelType::f16>(b, e, planes, stream);
  return true;
}

}  // namespace bnns::mps
