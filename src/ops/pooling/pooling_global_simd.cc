// Pooling whose one window is the whole plane: reductions over runs of pixels, and gradients that fill a plane.
//
// Pixels are taken in runs of kChunk in raster order, from memory where the plane is packed, else through a buffer, so
// the order of operations does not depend on the layout. Within a run four vector accumulators take turns; runs are
// added in double. A maximum is found together with its position, without a branch on the data.

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_global_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_writer-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
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

// The sum of map(x[i]): vector k goes to accumulator k mod 4, so the order depends on n alone.
template <class Map>
HWY_INLINE float SumRun(const float* x, int64_t n, Map map) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  int64_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    a0 = hn::Add(a0, map(hn::LoadU(d, x + i)));
    a1 = hn::Add(a1, map(hn::LoadU(d, x + i + N)));
    a2 = hn::Add(a2, map(hn::LoadU(d, x + i + 2 * N)));
    a3 = hn::Add(a3, map(hn::LoadU(d, x + i + 3 * N)));
  }
  if (i + N <= n) a0 = hn::Add(a0, map(hn::LoadU(d, x + i))), i += N;
  if (i + N <= n) a1 = hn::Add(a1, map(hn::LoadU(d, x + i))), i += N;
  if (i + N <= n) a2 = hn::Add(a2, map(hn::LoadU(d, x + i))), i += N;
  if (i < n) a3 = hn::Add(a3, map(LoadPartial(d, x + i, static_cast<size_t>(n - i))));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a0, a1), hn::Add(a2, a3))));
}

struct Maximum {
  float value;
  int64_t position = 0;
};

// The first largest pixel of a run, or the first NaN.
HWY_INLINE Maximum MaximumOfRun(const float* x, int64_t n) {
  const D d;
  const DI di;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  V best = lowest, check = hn::Zero(d);
  auto at = hn::Iota(di, 0), here = at;
  const auto step = hn::Set(di, static_cast<int32_t>(N));
  int64_t i = 0;
  for (; i + N <= n; i += N, here = hn::Add(here, step)) {
    const V v = hn::LoadU(d, x + i);
    const auto larger = hn::Gt(v, best);
    best = hn::IfThenElse(larger, v, best);
    at = hn::IfThenElse(hn::RebindMask(di, larger), here, at);
    check = hn::Add(check, v);
  }
  if (i < n) {
    const size_t left = static_cast<size_t>(n - i);
    const V v = hn::IfThenElse(hn::FirstN(d, left), LoadPartial(d, x + i, left), lowest);
    const auto larger = hn::Gt(v, best);
    best = hn::IfThenElse(larger, v, best);
    at = hn::IfThenElse(hn::RebindMask(di, larger), here, at);
    check = hn::Add(check, v);
  }
  // Of the lanes that have the maximum, the smallest position. A lane that found nothing above -inf has its first one,
  // which is past the end only if the run is shorter than a vector; then another lane's is smaller.
  const V most = hn::MaxOfLanes(d, best);
  const auto last = hn::Set(di, std::numeric_limits<int32_t>::max());
  const auto candidates = hn::IfThenElse(hn::RebindMask(di, hn::Eq(best, most)), at, last);
  int64_t position = hn::GetLane(hn::MinOfLanes(di, candidates));
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(check)))) {  // a NaN, or inf - inf
    position = 0;
    for (int64_t k = 1; k < n && !std::isnan(x[position]); ++k) {
      if (x[k] > x[position] || std::isnan(x[k])) position = k;
    }
  }
  return {x[position], position};  // the pixel itself: of +0 and -0 the first
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

HWY_INLINE float Norm(const Planes& x, const void* plane, int64_t width, int64_t pixels, float* room) {
  double sum = 0;
  for (int64_t first = 0; first < pixels; first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    const float* run = LoadRun(x, plane, width, first, n, room);
    const float squares = SumRun(run, n, [](V pixel) HWY_ATTR { return hn::Mul(pixel, pixel); });
    if (HWY_LIKELY(squares >= kNormLow && squares <= kNormHigh)) {
      sum += squares;
    } else {  // out of the safe range: exact products in double
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(run[i]) * static_cast<double>(run[i]);
    }
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

}  // namespace

float GlobalValue(const PoolingProblem& problem, const Planes& x, const void* plane, float* room) {
  int64_t position = 0;
  return Value(problem, x, plane, CountedTaps(problem.geometry), room, &position);
}

void GlobalForward(const PoolingForward& call, Range planes) {
  const float count = CountedTaps(call.problem.geometry);
  alignas(64) float room[kChunk];
  float values[kGroup];
  PlaneNumber read(planes.begin, call.problem.channels), written = read;
  for (size_t begin = planes.begin; begin < planes.end; begin += kGroup) {
    const size_t n = std::min(kGroup, planes.end - begin);
    for (size_t i = 0; i < n; ++i, read.next()) {
      const void* x = call.x.at(read.sample, read.channel);
      int64_t position = 0;
      values[i] = Value(call.problem, call.x, x, count, room, &position);
      if (call.index.data) {
        call.index.store(call.index.at(read.sample, read.channel), 0, 0, static_cast<uint64_t>(position));
      }
      if (call.bias) values[i] += pooling_bias(call.bias, read.channel);
    }
    if (!call.activation.is_identity()) activation_forward(call.activation, values, values, n);
    for (size_t i = 0; i < n; ++i, written.next()) {
      void* y = call.y.at(written.sample, written.channel);
      if (call.y.type == BNNSDataTypeFloat32)
        *static_cast<float*>(y) = values[i];
      else
        store_pixels(call.y, y, 0, 0, 1, values + i, false);
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

float pooling_global_value(const PoolingProblem& problem, const Planes& x, const void* plane, float* room) noexcept {
  return BNNS_DISPATCH(GlobalValue)(problem, x, plane, room);
}
void pooling_forward_global(const PoolingForward& call, Range planes) noexcept {
  BNNS_DISPATCH(GlobalForward)(call, planes);
}
void pooling_backward_global(const PoolingBackward& call, Range planes) noexcept {
  BNNS_DISPATCH(GlobalBackward)(call, planes);
}

}  // namespace bnns
#endif  // HWY_ONCE
