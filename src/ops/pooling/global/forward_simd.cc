// Pooling whose one window is the whole plane: reductions over runs of pixels. Within a run four vector accumulators
// take turns; a maximum is found together with its position, without a branch on the data.

#include <algorithm>
#include <cmath>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/global/forward_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/global/global-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr size_t kGroup = 64;  // planes whose values get bias and activation together

HWY_INLINE float Average(const Planes& x, const void* plane, int64_t width, int64_t pixels, float count,
                         float* scratch) {
  double sum = 0;
  for (int64_t first = 0; first < pixels; first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    sum += SumRun(LoadRun(x, plane, width, first, n, scratch), n, [](V pixel) HWY_ATTR { return pixel; });
  }
  return static_cast<float>(sum) / count;
}

// The value of a plane, and where it is if it is a maximum.
HWY_INLINE float Value(const PoolingProblem& problem, const Planes& x, const void* plane, float count, float* scratch,
                       int64_t* position) {
  const int64_t width = problem.geometry.x.in, pixels = width * problem.geometry.y.in;
  if (problem.function == PoolingFunction::average) return Average(x, plane, width, pixels, count, scratch);
  if (problem.function == PoolingFunction::l2_norm) return Norm(x, plane, width, pixels, scratch);
  const Maximum best = FindMaximum(x, plane, width, pixels, scratch);
  *position = best.position;
  return best.value;
}

// The same of all planes of a group of at most kChunk pixels.
HWY_INLINE void Values(PoolingFunction function, const PlaneGroup& group, float count, float* values) {
  const D d;
  V value;
  if (function == PoolingFunction::average) {
    value = hn::Div(group.Sums([](V pixel) HWY_ATTR { return pixel; }), hn::Set(d, count));
    return hn::StoreU(value, d, values);
  }
  if (function == PoolingFunction::l2_norm) return hn::StoreU(GroupNorms(group), d, values);
  const bool found = group.Maxima(&value);
  hn::StoreU(value, d, values);
  for (int64_t p = 0; HWY_UNLIKELY(!found) && p < group.planes; ++p)
    values[p] = MaximumOfRun(group.x[p], group.n).value;
}
HWY_INLINE void ValuesAndPositions(const PlaneGroup& group, float* values, int64_t* positions) {
  HWY_ALIGN int32_t found[hn::MaxLanes(D())];
  group.Positions(found);
  for (int64_t p = 0; p < group.planes; ++p) {
    positions[p] = found[p];
    values[p] = group.x[p][found[p]];  // the pixel itself: of +0 and -0 the first
  }
}

// Values of planes [0, n), n <= kGroup, from plane `at` on; positions of maxima if wanted.
void GroupValues(const PoolingProblem& problem, const Planes& x, PlaneNumber* at, size_t n, bool want_positions,
                 float* values, int64_t* positions) {
  const float count = CountedTaps(problem.geometry);
  alignas(64) GroupBuffers buffers;
  if (problem.geometry.x.in * problem.geometry.y.in > kChunk) {
    for (size_t i = 0; i < n; ++i, at->next()) {
      values[i] = Value(problem, x, x.at(at->sample, at->channel), count, buffers[0], positions + i);
    }
    return;
  }
  for (size_t i = 0; i < n; i += static_cast<size_t>(kLanes)) {
    const PlaneGroup group = LoadGroup(problem, x, at, std::min(static_cast<size_t>(kLanes), n - i), buffers);
    if (want_positions)
      ValuesAndPositions(group, values + i, positions + i);
    else
      Values(problem.function, group, count, values + i);
  }
}

}  // namespace

float GlobalValue(const PoolingProblem& problem, const Planes& x, const void* plane) {
  PlaneNumber at(0, 1);
  Planes one = x;
  one.data = const_cast<void*>(plane);
  float values[kGroup];
  int64_t positions[kGroup];
  GroupValues(problem, one, &at, 1, false, values, positions);
  return values[0];
}

void GlobalForward(const PoolingForward& call, Range planes) {
  float values[kGroup];
  int64_t positions[kGroup];
  const bool indices = call.index.data != nullptr;
  PlaneNumber read(planes.begin, call.problem.channels), written = read;
  for (size_t begin = planes.begin; begin < planes.end; begin += kGroup) {
    const size_t n = std::min(kGroup, planes.end - begin);
    GroupValues(call.problem, call.x, &read, n, indices, values, positions);
    if (call.bias) {
      PlaneNumber at = written;
      for (size_t i = 0; i < n; ++i, at.next()) values[i] += pooling_bias(call.bias, at.channel);
    }
    if (!call.activation.is_identity()) activation_forward(call.activation, values, values, n);
    for (size_t i = 0; i < n; ++i, written.next()) {
      void* y = call.y.at(written.sample, written.channel);
      if (call.y.type == BNNSDataTypeFloat32)
        *static_cast<float*>(y) = values[i];
      else
        store_pixels(call.y, y, 0, 0, 1, values + i, false);
      if (indices) {
        void* index = call.index.at(written.sample, written.channel);
        call.index.store(index, 0, 0, static_cast<uint64_t>(positions[i]));
      }
    }
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

float pooling_global_value(const PoolingProblem& problem, const Planes& x, const void* plane) noexcept {
  return BNNS_DISPATCH(GlobalValue)(problem, x, plane);
}
bool accepts_global(const PoolingForward& call) noexcept {
  return call.problem.geometry.is_global();
}
void pooling_global_forward(const PoolingForward& call, Range planes, Span /*rows*/) noexcept {
  BNNS_DISPATCH(GlobalForward)(call, planes);
}

}  // namespace bnns
#endif  // HWY_ONCE
