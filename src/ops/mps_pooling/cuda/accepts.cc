// Which encodes the kernels of mps_pooling/cuda/global.cu and mps_pooling/cuda/halving.cu take.

#include "src/ops/mps_pooling/cuda/band.h"
#include "src/ops/mps_pooling/cuda/cuda.h"

namespace bnns::mps::cuda {
namespace {

// Windows 0, 2, 4, ... of the whole axis, and results that fill the target.
bool halves(const PoolAxis& a, int64_t source, int64_t target, int64_t at, int64_t count) {
  return a.kernel == 2 && a.stride == 2 && a.dilation == 1 && a.first_centre == a.before() && at == 0 &&
         count == target && source == 2 * target;
}

bool is_plain(const ImageView& v) {
  return v.type == PixelType::f16 && v.lanes == 4 && reinterpret_cast<uintptr_t>(v.data) % 16 == 0;
}

}  // namespace

bool accepts_halving(const PoolEncode& e) noexcept {
  if (e.backward || !is_plain(e.source) || !is_plain(e.target) || e.channels % 4 != 0 || e.images > kMostGrid ||
      !halves(e.x, e.source.width, e.target.width, e.target_x, e.width) ||
      !halves(e.y, e.source.height, e.target.height, e.target_y, e.height)) {
    return false;
  }
  const int64_t count = e.width * e.height * (e.channels / 4);
  // Where the kernel's reciprocal of the width is exact.
  return count != 0 && e.images != 0 && e.width >= 2 && count * e.width < int64_t{1} << 32;
}

bool accepts_global(const PoolEncode& e) noexcept {
  // One window whose taps are the plane's texels, all four lanes of one float type, whole planes.
  const auto exact = [](const PoolAxis& a, int64_t size) {
    return a.dilation == 1 && a.kernel == size && a.first_centre == a.before();
  };
  const PixelType type = e.source.type;
  const auto fits = [&](const ImageView& v) {
    return v.lanes == 4 && v.type == type && reinterpret_cast<uintptr_t>(v.data) % (4 * bytes_of(type)) == 0;
  };
  const int64_t slices = e.channels / 4;
  const int64_t texels = e.source.width * e.source.height;
  if ((type != PixelType::f32 && type != PixelType::f16) || !fits(e.source) || !fits(e.target) || e.channels % 4 != 0 ||
      !exact(e.x, e.source.width) || !exact(e.y, e.source.height) || texels > kMostGlobalTexels ||
      slices > kMostGrid * kMostGlobalPlanes || e.images > kMostGrid) {
    return false;
  }
  if (e.backward) {
    return fits(e.gradient) && e.gradient_width == 1 && e.gradient_height == 1 && e.source_x == 0 && e.source_y == 0 &&
           e.target_x == 0 && e.target_y == 0 && e.width == e.source.width && e.height == e.source.height &&
           e.target.width == e.source.width && e.target.height == e.source.height;
  }
  return e.width == 1 && e.height == 1;
}

}  // namespace bnns::mps::cuda
