// Values of planes under one window: runs of kChunk pixels in raster order, from memory where the plane is packed, else
// through a buffer, so the order of operations does not depend on the layout. Runs are added in double. Forward and
// backward share this: they find the same maxima and norms.

#if defined(BNNS_OPS_POOLING_GLOBAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_GLOBAL_INL_H_
#undef BNNS_OPS_POOLING_GLOBAL_INL_H_
#else
#define BNNS_OPS_POOLING_GLOBAL_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "src/ops/pooling/common/kernels.h"
#include "src/ops/pooling/global/plane_group-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using V = VLane;

// Pixels [first, first + n) of a plane in raster order.
HWY_NOINLINE const float* GatherRun(const Planes& x, const void* plane, int64_t width, int64_t first, int64_t n,
                                    float* scratch) {
  for (int64_t i = 0; i < n;) {
    const int64_t column = (first + i) % width, m = std::min(n - i, width - column);
    const float* from = load_pixels(x, plane, column, (first + i) / width, m, scratch + i);
    for (int64_t k = 0; from != scratch + i && k < m; ++k) scratch[i + k] = from[k];
    i += m;
  }
  return scratch;
}
HWY_INLINE const float* LoadRun(const Planes& x, const void* plane, int64_t width, int64_t first, int64_t n,
                                float* scratch) {
  return x.is_packed(width) ? static_cast<const float*>(plane) + first : GatherRun(x, plane, width, first, n, scratch);
}

template <class Map>
HWY_INLINE float SumRun(const float* x, int64_t n, Map map) {
  return hn::GetLane(hn::SumOfLanes(D(), SumLanes(x, n, map)));
}

HWY_INLINE Maximum FindMaximum(const Planes& x, const void* plane, int64_t width, int64_t pixels, float* scratch) {
  Maximum best = MaximumOfRun(LoadRun(x, plane, width, 0, std::min(kChunk, pixels), scratch), std::min(kChunk, pixels));
  for (int64_t first = kChunk; first < pixels && !std::isnan(best.value); first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    const Maximum next = MaximumOfRun(LoadRun(x, plane, width, first, n, scratch), n);
    if (next.value > best.value || std::isnan(next.value)) best = {next.value, first + next.position};
  }
  return best;
}

// Squares out of the safe range: exact products in double.
HWY_NOINLINE double ExactSquares(const float* run, int64_t n) {
  double sum = 0;
  if (AllZero(run, n, 1, n)) return sum;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(run[i]) * static_cast<double>(run[i]);
  return sum;
}

HWY_INLINE float Norm(const Planes& x, const void* plane, int64_t width, int64_t pixels, float* scratch) {
  double sum = 0;
  for (int64_t first = 0; first < pixels; first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    const float* run = LoadRun(x, plane, width, first, n, scratch);
    const float squares = SumRun(run, n, [](V pixel) HWY_ATTR { return hn::Mul(pixel, pixel); });
    sum += HWY_LIKELY(squares >= kNormLow && squares <= kNormHigh) ? squares : ExactSquares(run, n);
  }
  return static_cast<float>(std::sqrt(sum));
}

// Small planes, at most kChunk pixels: buffers for those of a group that are not packed.
using GroupBuffers = float[kLanes][kChunk];
HWY_INLINE PlaneGroup LoadGroup(const PoolingProblem& problem, const Planes& x, PlaneNumber* at, size_t planes,
                                GroupBuffers& buffers) {
  const int64_t width = problem.geometry.x.in;
  PlaneGroup group;
  group.n = width * problem.geometry.y.in;
  group.planes = static_cast<int64_t>(planes);
  const bool packed = x.is_packed(width);
  const float* first = static_cast<const float*>(x.data);
  for (int64_t p = 0; packed && p < group.planes; ++p, at->next()) {
    group.x[p] = first + at->sample * x.sample + at->channel * x.plane;
  }
  for (int64_t p = 0; !packed && p < group.planes; ++p, at->next()) {
    group.x[p] = GatherRun(x, x.at(at->sample, at->channel), width, 0, group.n, buffers[p]);
  }
  return group;
}
HWY_INLINE V GroupNorms(const PlaneGroup& group) {
  const D d;
  const V squares = group.Sums([](V pixel) HWY_ATTR { return hn::Mul(pixel, pixel); });
  const MLane safe = hn::And(hn::Ge(squares, hn::Set(d, kNormLow)), hn::Le(squares, hn::Set(d, kNormHigh)));
  const MLane unused = hn::Not(hn::FirstN(d, static_cast<size_t>(group.planes)));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Or(safe, unused)))) return hn::Sqrt(squares);
  HWY_ALIGN float norms[hn::MaxLanes(D())];
  hn::Store(hn::Sqrt(squares), d, norms);
  for (int64_t p = 0; p < group.planes; ++p) {
    if (norms[p] >= 0x1p-45f && norms[p] <= 0x1p63f) continue;
    norms[p] = static_cast<float>(std::sqrt(ExactSquares(group.x[p], group.n)));
  }
  return hn::Load(d, norms);
}
inline float CountedTaps(const PoolingGeometry& g) {
  return static_cast<float>(g.x.count(0)) * static_cast<float>(g.y.count(0));
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_GLOBAL_INL_H_
