// Pooling whose one window is the whole plane: reductions over runs of pixels, and gradients that fill a plane.
//
// Pixels are taken in runs of kChunk in raster order, from memory where the plane is packed, else through a buffer, so
// the order of operations does not depend on the layout. Within a run four vector accumulators take turns; runs are
// added in double. A maximum is found together with its position, without a branch on the data.

#include <algorithm>
#include <cmath>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_global_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_plane_group-inl.h"
#include "src/ops/pooling/pooling_writer-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr size_t kGroup = 64;  // planes whose values get bias and activation together

// Pixels [first, first + n) of a plane in raster order.
HWY_NOINLINE const float* GatherRun(const Planes& x, const void* plane, int64_t width, int64_t first, int64_t n,
                                    float* room) {
  for (int64_t i = 0; i < n;) {
    const int64_t column = (first + i) % width, m = std::min(n - i, width - column);
    const float* from = load_pixels(x, plane, column, (first + i) / width, m, room + i);
    for (int64_t k = 0; from != room + i && k < m; ++k) room[i + k] = from[k];
    i += m;
  }
  return room;
}
HWY_INLINE const float* LoadRun(const Planes& x, const void* plane, int64_t width, int64_t first, int64_t n,
                                float* room) {
  return x.is_packed(width) ? static_cast<const float*>(plane) + first : GatherRun(x, plane, width, first, n, room);
}
void StoreRun(const Planes& dx, void* plane, int64_t width, int64_t first, int64_t n, const float* values, bool add) {
  for (int64_t i = 0; i < n;) {
    const int64_t column = (first + i) % width, m = std::min(n - i, width - column);
    store_pixels(dx, plane, column, (first + i) / width, m, values + i, add);
    i += m;
  }
}

template <class Map>
HWY_INLINE float SumRun(const float* x, int64_t n, Map map) {
  return hn::GetLane(hn::SumOfLanes(D(), SumLanes(x, n, map)));
}

HWY_INLINE Maximum FindMaximum(const Planes& x, const void* plane, int64_t width, int64_t pixels, float* room) {
  Maximum best = MaximumOfRun(LoadRun(x, plane, width, 0, std::min(kChunk, pixels), room), std::min(kChunk, pixels));
  for (int64_t first = kChunk; first < pixels && !std::isnan(best.value); first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    const Maximum next = MaximumOfRun(LoadRun(x, plane, width, first, n, room), n);
    if (next.value > best.value || std::isnan(next.value)) best = {next.value, first + next.position};
  }
  return best;
}

HWY_INLINE float Average(const Planes& x, const void* plane, int64_t width, int64_t pixels, float count, float* room) {
  double sum = 0;
  for (int64_t first = 0; first < pixels; first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    sum += SumRun(LoadRun(x, plane, width, first, n, room), n, [](V pixel) HWY_ATTR { return pixel; });
  }
  return static_cast<float>(sum) / count;
}

// Squares out of the safe range: exact products in double.
HWY_NOINLINE double ExactSquares(const float* run, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(run[i]) * static_cast<double>(run[i]);
  return sum;
}

HWY_INLINE float Norm(const Planes& x, const void* plane, int64_t width, int64_t pixels, float* room) {
  double sum = 0;
  for (int64_t first = 0; first < pixels; first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    const float* run = LoadRun(x, plane, width, first, n, room);
    const float squares = SumRun(run, n, [](V pixel) HWY_ATTR { return hn::Mul(pixel, pixel); });
    sum += HWY_LIKELY(squares >= kNormLow && squares <= kNormHigh) ? squares : ExactSquares(run, n);
  }
  return static_cast<float>(std::sqrt(sum));
}

float CountedTaps(const PoolingGeometry& g) {
  return static_cast<float>(g.x.count(0)) * static_cast<float>(g.y.count(0));
}

// The value of a plane, and where it is if it is a maximum.
HWY_INLINE float Value(const PoolingProblem& problem, const Planes& x, const void* plane, float count, float* room,
                       int64_t* position) {
  const int64_t width = problem.geometry.x.in, pixels = width * problem.geometry.y.in;
  if (problem.function == PoolingFunction::average) return Average(x, plane, width, pixels, count, room);
  if (problem.function == PoolingFunction::l2_norm) return Norm(x, plane, width, pixels, room);
  const Maximum best = FindMaximum(x, plane, width, pixels, room);
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
  if (function == PoolingFunction::l2_norm) {
    value = group.Sums([](V pixel) HWY_ATTR { return hn::Mul(pixel, pixel); });
    hn::StoreU(hn::Sqrt(value), d, values);
    const auto safe = hn::And(hn::Ge(value, hn::Set(d, kNormLow)), hn::Le(value, hn::Set(d, kNormHigh)));
    if (HWY_LIKELY(hn::AllTrue(d, hn::Or(safe, hn::Not(hn::FirstN(d, static_cast<size_t>(group.planes))))))) return;
    for (int64_t p = 0; p < group.planes; ++p) {
      if (!(values[p] >= 0x1p-45f && values[p] <= 0x1p63f)) {
        values[p] = static_cast<float>(std::sqrt(ExactSquares(group.x[p], group.n)));
      }
    }
    return;
  }
  const bool found = group.Maxima(&value);
  hn::StoreU(value, d, values);
  for (int64_t p = 0; HWY_UNLIKELY(!found) && p < group.planes; ++p)
    values[p] = MaximumOfRun(group.x[p], group.n).value;
}

// Values of planes [0, n), n <= kGroup, from plane `at` on; positions of maxima if wanted.
void GroupValues(const PoolingProblem& problem, const Planes& x, PlaneNumber* at, size_t n, bool want_positions,
                 float* values, int64_t* positions) {
  const int64_t width = problem.geometry.x.in, pixels = width * problem.geometry.y.in;
  const float count = CountedTaps(problem.geometry);
  alignas(64) float room[kLanes][kChunk];
  if (pixels > kChunk || want_positions) {  // positions would go through the lanes a second time
    for (size_t i = 0; i < n; ++i, at->next()) {
      values[i] = Value(problem, x, x.at(at->sample, at->channel), count, room[0], positions + i);
    }
    return;
  }
  PlaneGroup group;
  group.n = pixels;
  for (size_t i = 0; i < n; i += static_cast<size_t>(kLanes)) {
    group.planes = std::min(kLanes, static_cast<int64_t>(n - i));
    for (int64_t p = 0; p < group.planes; ++p, at->next()) {
      group.x[p] = LoadRun(x, x.at(at->sample, at->channel), width, 0, pixels, room[p]);
    }
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

void GlobalBackward(const PoolingBackward& call, Range planes) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const PoolingGeometry& g = call.problem.geometry;
  const PoolingFunction function = call.problem.function;
  const int64_t width = g.x.in, pixels = width * g.y.in;
  const float count = CountedTaps(g);
  const bool packed = call.dx.is_packed(width) && !call.accumulate;
  const bool plain = call.activation.is_identity() && call.dy.type == BNNSDataTypeFloat32;
  alignas(64) float room[kChunk + kWindowSlack], x_room[kChunk];
  GradientRoom gradient_room;
  RowWriter<float> writer(call.stream);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) {
    const void* x = call.x.data ? call.x.at(at.sample, at.channel) : nullptr;
    void* dx = call.dx.at(at.sample, at.channel);
    float upstream;
    if (plain)
      upstream = *static_cast<const float*>(call.dy.at(at.sample, at.channel));
    else
      pooling_gradient(call, at.sample, at.channel, 0, 0, 1, &upstream, &gradient_room);
    float fill = 0;         // what every pixel gets, times the pixel for L2Norm
    int64_t position = -1;  // the one pixel that gets all of it, for Max
    if (function == PoolingFunction::l2_norm) {
      const float norm = Norm(call.x, x, width, pixels, x_room);
      fill = norm == 0 ? 0 : upstream / norm;
    } else if (function == PoolingFunction::average) {
      fill = upstream / count;
    } else if (call.index.data) {
      position = static_cast<int64_t>(call.index.load(call.index.at(at.sample, at.channel), 0, 0));
    } else {
      position = FindMaximum(call.x, x, width, pixels, x_room).position;
    }
    const V value = hn::Set(d, fill);
    for (int64_t first = 0; first < pixels; first += kChunk) {
      const int64_t n = std::min(kChunk, pixels - first);
      float* to = packed ? writer.Reserve(static_cast<float*>(dx) + first, static_cast<size_t>(n)) : room;
      if (function == PoolingFunction::l2_norm && fill != 0) {  // 0 also where the pixel is inf
        Transform(LoadRun(call.x, x, width, first, n, x_room), to, static_cast<size_t>(n),
                  [&](auto, V pixel) HWY_ATTR { return hn::Mul(pixel, value); });
      } else {
        for (int64_t i = 0; i < n; i += N) hn::StoreU(value, d, to + i);
      }
      if (position >= first && position < first + n) to[position - first] = 0.0f + upstream;
      if (packed)
        writer.Commit(static_cast<size_t>(n));
      else
        StoreRun(call.dx, dx, width, first, n, room, call.accumulate);
    }
  }
  writer.Finish();
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

float pooling_global_value(const PoolingProblem& problem, const Planes& x, const void* plane) noexcept {
  return BNNS_DISPATCH(GlobalValue)(problem, x, plane);
}
void pooling_forward_global(const PoolingForward& call, Range planes) noexcept {
  BNNS_DISPATCH(GlobalForward)(call, planes);
}
void pooling_backward_global(const PoolingBackward& call, Range planes) noexcept {
  BNNS_DISPATCH(GlobalBackward)(call, planes);
}

}  // namespace bnns
#endif  // HWY_ONCE
