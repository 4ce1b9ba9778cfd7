// Scale and shift of planes that are dense f32: whole vectors, then one partial vector.
//   forward    y = a x + b, one FMA where the instruction set has it
//   backward   dx = a dy, and the plane's share of da = sum of x dy and db = sum of dy

#include <algorithm>

#include "examples/operator_skeleton/implementations.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "examples/operator_skeleton/planes_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {

// dy, x and dx of a chunk stay in L1 between its three loops. A chunk is summed in f32, chunks are added in double: the
// error of a sum does not grow with the batch.
constexpr size_t kChunk = 2048;

}  // namespace

void PlaneForward(float a, float b, const float* x, float* y, size_t n) {
  Transform(x, y, n, [=](auto d, auto v) HWY_ATTR { return hn::MulAdd(hn::Set(d, a), v, hn::Set(d, b)); });
}

// x and dx may be NULL; dx may be dy or x.
void PlaneBackward(float a, const float* x, const float* dy, float* dx, bool accumulate, size_t n, double* da,
                   double* db) {
  for (size_t first = 0; first < n; first += kChunk, dy += kChunk) {
    const size_t m = std::min(kChunk, n - first);
    *db += double(Reduce(dy, m, SumOp(), [](auto /*d*/, auto v) HWY_ATTR { return v; }));
    if (x) {
      *da +=
          double(Reduce2(x + first, dy, m, SumOp(), [](auto /*d*/, auto u, auto v) HWY_ATTR { return hn::Mul(u, v); }));
    }
    if (!dx) continue;
    if (accumulate) {
      Transform2(dy, dx + first, dx + first, m,
                 [=](auto d, auto v, auto sum) HWY_ATTR { return hn::MulAdd(hn::Set(d, a), v, sum); });
    } else {
      Transform(dy, dx + first, m, [=](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Set(d, a), v); });
    }
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_planes_forward(const ScaleShiftRun& run) {
  return run.x.is_dense_f32() && run.y.is_dense_f32();
}

bool accepts_planes_backward(const ScaleShiftRun& run) {
  return run.x.is_dense_f32() && run.dy.is_dense_f32() && run.dx.is_dense_f32();
}

void planes_forward(const ScaleShiftRun& run) {
  const auto kernel = BNNS_DISPATCH(PlaneForward);
  for_each_plane(run, [&](size_t n, size_t c) {
    const auto* x = reinterpret_cast<const float*>(run.x.at(n, c));
    kernel(run.scale(c), run.shift(c), x, reinterpret_cast<float*>(run.y.at(n, c)), run.plane);
  });
}

void planes_backward(const ScaleShiftRun& run) {
  const auto kernel = BNNS_DISPATCH(PlaneBackward);
  for_each_channel(run, [&](size_t c) {
    double da = 0, db = 0;
    for (size_t n = 0; n < run.batch; ++n) {
      const float* x = run.x.base ? reinterpret_cast<const float*>(run.x.at(n, c)) : nullptr;
      float* dx = run.dx.base ? reinterpret_cast<float*>(run.dx.at(n, c)) : nullptr;
      const auto* dy = reinterpret_cast<const float*>(run.dy.at(n, c));
      kernel(run.scale(c), x, dy, dx, run.accumulate, run.plane, &da, &db);
    }
    run.da.put(c, da);
    run.db.put(c, db);
  });
}

}  // namespace bnns
#endif
