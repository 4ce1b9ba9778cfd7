// The plan of a band kernel: an encode in the common windows, in 32 bits and cut into tiles
// (mps_pooling/cuda/band.cuh).
#pragma once

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

constexpr int kBandThreads = 128;
constexpr int64_t kMostGrid = 65535;  // blocks along y and z

// A quad's first pixel lies on tap P of its base window; windows [base - kBefore, base + kAfter] reach the quad's two
// pixels.
template <int K, int S, int P>
struct BandReach {
  static constexpr int kBefore = (K - 1 - P) / S;
  static constexpr int kAfter = (P + 1) / S;
};

struct BandAxis {
  int32_t first, size, windows;             // first tap of window 0; source pixels; windows
  int32_t source, target, count, gradient;  // clip: first source pixel, first target pixel, pixels; first gradient
  int32_t zero_pad;
  int32_t origin, base;        // first pixel of quad 0 and its base window (forward: 0)
  int32_t units, tile, tiles;  // quads (forward: windows) of the clip; of a tile; tiles
};

// How the threads of a block walk over rows and columns: 2^shift of them side by side.
struct BandWalk {
  uint32_t columns = 1, rows = 1, shift = 0;
};

// Plane s of the encode's image n begins at data + n * image_bytes + s * plane_bytes.
struct BandImage {
  char* data;
  int64_t image_bytes, plane_bytes;
};

inline BandImage band_image(const ImageView& v, int64_t image, int64_t channel) {
  const int64_t plane = v.width * v.height * v.lanes * static_cast<int64_t>(bytes_of(v.type));
  return {static_cast<char*>(v.data) + (image * v.slices + channel / 4) * plane, v.slices * plane, plane};
}

struct Band {
  BandAxis x, y;
  BandImage source, gradient, target;
  bool clamp, paired, fetch_pairs;  // two f16 texels are one aligned store; one aligned copy
  int32_t target_width, gradient_width;
  uint32_t slices, planes_per_block;
  uint32_t hits_at, source_at, pitch, plane_pitch;  // shared memory, in bytes
  BandWalk pixels, windows, quads, texels;          // of a tile; pixels: pairs of them with fetch_pairs
};

enum class BandKind : uint8_t { max, average, l2, l2_clamped };

// Which kernel runs the plan, and how it is launched. pair: the tap P on which quads begin.
struct BandLaunch {
  BandKind kind;
  int kernel, stride, pair;
  bool backward;
  uint32_t grid[3], shared;
};

// False: not for this encode.
bool plan_band(const PoolEncode& encode, Band* plan, BandLaunch* launch) noexcept;

}  // namespace bnns::mps
