// Pooling whose one window is the whole plane: reductions over runs of pixels, and gradients that fill a plane.
//
// Pixels are taken in runs of kChunk in raster order, from memory where the plane is packed, else through a buffer, so
// the order of operations does not depend on the layout. Within a run sums have four vector accumulators
// (src/simd/loops-inl.h); runs are added in double.

#include <algorithm>
#include <cmath>

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

constexpr size_t kGroup = 64;   // planes whose values get bias and activation together

// Pixels [first, first + n) of a plane in raster order.
HWY_INLINE const float* LoadRun(const Planes& x, const void* plane, int64_t width, int64_t first, int64_t n,
                                float* room) {
  if (x.is_packed(width)) return static_cast<const float*>(plane) + first;
  for (int64_t i = 0; i < n;) {
    const int64_t column = (first + i) % width, m = std::min(n - i, width - column);
    const float* from = load_pixels(x, plane, column, (first + i) / width, m, room + i);
    for (int64_t k = 0; from != room + i && k < m; ++k) room[i + k] = from[k];
    i += m;
  }
  return room;
}

void StoreRun(const Planes& dx, void* plane, int64_t width, int64_t first, int64_t n, const float* values, bool add) {
  for (int64_t i = 0; i < n;) {
    const int64_t column = (first + i) % width, m = std::min(n - i, width - column);
    store_pixels(dx, plane, column, (first + i) / width, m, values + i, add);
    i += m;
  }
}

// The first pixel that equals the maximum (the first NaN if that is one); it is there.
HWY_INLINE int64_t FindFirst(const float* x, int64_t n, float maximum) {
  const hn::ScalableTag<float> d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const auto wanted = hn::Set(d, maximum);
  int64_t i = 0;
  for (; i + N <= n; i += N) {
    const auto v = hn::LoadU(d, x + i);
    const intptr_t lane = hn::FindFirstTrue(d, hn::Or(hn::Eq(v, wanted), hn::IsNaN(v)));
    if (lane >= 0) return i + lane;
  }
  while (i + 1 < n && !(x[i] == maximum || std::isnan(x[i]))) ++i;
  return i;
}

struct Maximum {
  float value;
  int64_t position;
};
HWY_INLINE Maximum FindMaximum(const Planes& x, const void* plane, int64_t width, int64_t pixels, float* room) {
  Maximum best{0, -1};
  for (int64_t first = 0; first < pixels; first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    const float* run = LoadRun(x, plane, width, first, n, room);
    const float v = Reduce(run, static_cast<size_t>(n), MaxOp(), [](auto, auto pixel) HWY_ATTR { return pixel; });
    if (best.position < 0 || v > best.value || std::isnan(v)) {
      const int64_t at = FindFirst(run, n, v);
      best = {run[at], first + at};   // the pixel itself: of +0 and -0 the first
      if (std::isnan(v)) break;
    }
  }
  return best;
}

HWY_INLINE double Sum(const Planes& x, const void* plane, int64_t width, int64_t pixels, float* room) {
  double sum = 0;
  for (int64_t first = 0; first < pixels; first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    const float* run = LoadRun(x, plane, width, first, n, room);
    sum += Reduce(run, static_cast<size_t>(n), SumOp(), [](auto, auto pixel) HWY_ATTR { return pixel; });
  }
  return sum;
}

HWY_INLINE float Norm(const Planes& x, const void* plane, int64_t width, int64_t pixels, float* room) {
  double sum = 0;
  for (int64_t first = 0; first < pixels; first += kChunk) {
    const int64_t n = std::min(kChunk, pixels - first);
    const float* run = LoadRun(x, plane, width, first, n, room);
    const float squares = Reduce(run, static_cast<size_t>(n), SumOp(),
                                 [](auto, auto pixel) HWY_ATTR { return hn::Mul(pixel, pixel); });
    if (squares >= kNormLow && squares <= kNormHigh) {
      sum += squares;
    } else {   // out of the safe range: exact products in double
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(run[i]) * static_cast<double>(run[i]);
    }
  }
  return static_cast<float>(std::sqrt(sum));
}

float CountedTaps(const PoolingGeometry& g) {
  return static_cast<float>(g.x.count(0)) * static_cast<float>(g.y.count(0));
}

struct PlaneNumber {
  int64_t sample, channel;
  PlaneNumber(size_t plane, int64_t channels)
      : sample(static_cast<int64_t>(plane) / channels), channel(static_cast<int64_t>(plane) % channels) {}
};

}  // namespace

void GlobalForward(const PoolingForward& call, Range planes) {
  const PoolingGeometry& g = call.problem.geometry;
  const int64_t width = g.x.in, pixels = width * g.y.in;
  const float count = CountedTaps(g);
  alignas(64) float room[kChunk];
  float values[kGroup];
  for (size_t begin = planes.begin; begin < planes.end; begin += kGroup) {
    const size_t end = std::min(planes.end, begin + kGroup);
    for (size_t p = begin; p < end; ++p) {
      const PlaneNumber at(p, call.problem.channels);
      const void* x = call.x.at(at.sample, at.channel);
      float& value = values[p - begin];
      if (call.problem.function == PoolingFunction::average) {
        value = static_cast<float>(Sum(call.x, x, width, pixels, room)) / count;
      } else if (call.problem.function == PoolingFunction::l2_norm) {
        value = Norm(call.x, x, width, pixels, room);
      } else {
        const Maximum best = FindMaximum(call.x, x, width, pixels, room);
        value = best.value;
        if (call.index.data) {
          call.index.store(call.index.at(at.sample, at.channel), 0, 0, static_cast<uint64_t>(best.position));
        }
      }
      if (call.bias) value += pooling_bias(call.bias, at.channel);
    }
    if (!call.activation.is_identity()) activation_forward(call.activation, values, values, end - begin);
    for (size_t p = begin; p < end; ++p) {
      const PlaneNumber at(p, call.problem.channels);
      void* y = call.y.at(at.sample, at.channel);
      if (call.y.type == BNNSDataTypeFloat32) *static_cast<float*>(y) = values[p - begin];
      else store_pixels(call.y, y, 0, 0, 1, values + (p - begin), false);
    }
  }
}

void GlobalBackward(const PoolingBackward& call, Range planes) {
  const hn::ScalableTag<float> d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const PoolingGeometry& g = call.problem.geometry;
  const int64_t width = g.x.in, pixels = width * g.y.in;
  const float count = CountedTaps(g);
  const bool packed = call.dx.is_packed(width) && !call.accumulate;
  const bool l2 = call.problem.function == PoolingFunction::l2_norm;
  const bool plain = call.activation.is_identity() && call.dy.type == BNNSDataTypeFloat32;
  alignas(64) float room[kChunk + kWindowSlack], x_room[kChunk];
  GradientRoom gradient_room;
  RowWriter<float> writer(call.stream);
  for (size_t p = planes.begin; p < planes.end; ++p) {
    const PlaneNumber at(p, call.problem.channels);
    const void* x = call.x.data ? call.x.at(at.sample, at.channel) : nullptr;
    void* dx = call.dx.at(at.sample, at.channel);
    float upstream;
    if (plain) upstream = *static_cast<const float*>(call.dy.at(at.sample, at.channel));
    else pooling_gradient(call, at.sample, at.channel, 0, 0, 1, &upstream, &gradient_room);
    float fill = 0;            // what every pixel gets, times x for L2Norm
    int64_t position = -1;     // the one pixel that gets all of it, for Max
    if (l2) {
      const float norm = Norm(call.x, x, width, pixels, x_room);
      fill = norm == 0 ? 0 : upstream / norm;
    } else if (call.problem.function == PoolingFunction::average) {
      fill = upstream / count;
    } else if (call.index.data) {
      position = static_cast<int64_t>(call.index.load(call.index.at(at.sample, at.channel), 0, 0));
    } else {
      position = FindMaximum(call.x, x, width, pixels, x_room).position;
    }
    const auto value = hn::Set(d, fill);
    for (int64_t first = 0; first < pixels; first += kChunk) {
      const int64_t n = std::min(kChunk, pixels - first);
      float* to = packed ? writer.Reserve(static_cast<float*>(dx) + first, static_cast<size_t>(n)) : room;
      if (l2) {
        const float* run = LoadRun(call.x, x, width, first, n, x_room);
        Transform(run, to, static_cast<size_t>(n), [&](auto dd, auto pixel) HWY_ATTR {
          return hn::IfThenZeroElse(hn::Eq(value, hn::Zero(dd)), hn::Mul(pixel, value));   // 0 also where the pixel is inf
        });
      } else {
        for (int64_t i = 0; i < n; i += N) hn::StoreU(value, d, to + i);
      }
      if (position >= first && position < first + n) to[position - first] += upstream;
      if (packed) writer.Commit(static_cast<size_t>(n));
      else StoreRun(call.dx, dx, width, first, n, room, call.accumulate);
    }
  }
  writer.Finish();
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void pooling_forward_global(const PoolingForward& call, Range planes) noexcept {
  BNNS_DISPATCH(GlobalForward)(call, planes);
}
void pooling_backward_global(const PoolingBackward& call, Range planes) noexcept {
  BNNS_DISPATCH(GlobalBackward)(call, planes);
}

}  // namespace bnns
#endif  // HWY_ONCE
