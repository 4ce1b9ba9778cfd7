// Pooling whose one window is its whole plane, up to 16 by 16: a pass over the plane's texels, and for gradients one
// over the target's. Some planes are a task.
//
// Sums and maxima are kept per lane and per texel number modulo 4, on every instruction set, and joined as (0 1)(2 3):
// the same bits on all, but another order than the plain loops'.

#include <algorithm>

#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/pixels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/cpu/global_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/core/parallel.h"
#include "src/ops/mps_pooling/cpu/writer-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using mps::Plane;
using mps::PoolEncode;
using mps::PoolKind;

constexpr size_t kAheadBytes = 4096;    // how far before its use a plane is prefetched
constexpr size_t kParts = 16 / kLanes;  // vectors that hold 4 texels

// Calls f(part, i, vector) for floats [i, i + kLanes) of n, `rest` where there are none.
template <OnLoad kOn, typename T, class F>
HWY_INLINE void ForEachVector(const T* x, size_t n, float rest, F&& f) {
  const DF d;
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (size_t part = 0; part < kParts; ++part) {
      f(part, i + part * kLanes, Loaded<kOn>(d, LoadFloat(d, x + i + part * kLanes)));
    }
  }
  for (size_t part = 0; part < kParts && i < n; ++part, i += kLanes) {
    const size_t left = n - i;
    if (left >= kLanes) {
      f(part, i, Loaded<kOn>(d, LoadFloat(d, x + i)));
    } else {
      const VF v = Loaded<kOn>(d, LoadFloatPartial(d, x + i, left));
      f(part, i, hn::IfThenElse(hn::FirstN(d, left), v, hn::Set(d, rest)));
    }
  }
}

template <bool kSquares, typename T>
HWY_INLINE hn::Vec<DTexel> SumPlane(const T* x, size_t n) {
  const DF d;
  const DTexel d4;
  HWY_ALIGN float parts[16];
  VF sum[kParts];
  for (VF& s : sum) s = hn::Zero(d);
  ForEachVector<OnLoad::keep>(x, n, 0.0f, [&](size_t part, size_t, VF v) HWY_ATTR {
    sum[part] = hn::Add(sum[part], kSquares ? hn::Mul(v, v) : v);
  });
  for (size_t part = 0; part < kParts; ++part) hn::Store(sum[part], d, parts + part * kLanes);
  return hn::Add(hn::Add(hn::Load(d4, parts), hn::Load(d4, parts + 4)),
                 hn::Add(hn::Load(d4, parts + 8), hn::Load(d4, parts + 12)));
}

struct Peak {
  hn::Vec<DTexel> best, texel;  // the maximum and the number of the first texel that has it
};

HWY_INLINE Peak Join(Peak a, Peak b) {
  const auto take = hn::Or(hn::Gt(b.best, a.best), hn::And(hn::Eq(b.best, a.best), hn::Lt(b.texel, a.texel)));
  return {hn::IfThenElse(take, b.best, a.best), hn::IfThenElse(take, b.texel, a.texel)};
}

// The number of each lane's texel.
HWY_INLINE VF TexelNumbers(size_t part) {
  HWY_ALIGN static constexpr float kNumbers[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  return hn::Load(DF(), kNumbers + part * kLanes);
}

template <typename T>
HWY_INLINE Peak MaxPlane(const T* x, size_t n) {
  const DF d;
  const DTexel d4;
  VF best[kParts], texel[kParts], number[kParts];
  const VF four = hn::Set(d, 4.0f);
  for (size_t part = 0; part < kParts; ++part) {
    best[part] = hn::Set(d, -HUGE_VALF), texel[part] = hn::Zero(d), number[part] = TexelNumbers(part);
  }
  ForEachVector<OnLoad::no_nan>(x, n, -HUGE_VALF, [&](size_t part, size_t, VF v) HWY_ATTR {
    texel[part] = hn::IfThenElse(hn::Gt(v, best[part]), number[part], texel[part]);
    best[part] = Greater(d, v, best[part]);
    number[part] = hn::Add(number[part], four);
  });
  HWY_ALIGN float bests[16], texels[16];
  for (size_t part = 0; part < kParts; ++part) {
    hn::Store(best[part], d, bests + part * kLanes), hn::Store(texel[part], d, texels + part * kLanes);
  }
  Peak peak[4];
  for (size_t k = 0; k < 4; ++k) peak[k] = {hn::Load(d4, bests + 4 * k), hn::Load(d4, texels + 4 * k)};
  return Join(Join(peak[0], peak[1]), Join(peak[2], peak[3]));
}

// A vector of one texel over and over.
HWY_INLINE VF Repeat(hn::Vec<DTexel> v) {
  HWY_ALIGN float lanes[4];
  hn::Store(v, DTexel(), lanes);
  return hn::LoadDup128(DF(), lanes);
}

// Writes the gradient of a plane of n floats. False: see band_task.
template <typename T>
HWY_INLINE bool BackwardPlane(PoolKind kind, const T* x, const T* gradient, size_t n, T* to, PlaneWriter<T>& out) {
  const DF d;
  const DTexel d4;
  const auto zero = hn::Zero(d4);
  const auto g = hn::Add(LoadFloat(d4, gradient), zero);
  if (kind == PoolKind::max) {
    const Peak peak = MaxPlane(x, n);
    const VF texel = Repeat(peak.texel), sent = Repeat(g), step = hn::Set(d, static_cast<float>(kLanes / 4));
    VF number = TexelNumbers(0);
    out.Write(to, n, [&](size_t, size_t) HWY_ATTR {
      const VF v = hn::IfThenElseZero(hn::Eq(number, texel), sent);
      number = hn::Add(number, step);
      return v;
    });
    return hn::AllFalse(d4, hn::Eq(peak.best, hn::Set(d4, -HUGE_VALF)));
  }
  if (kind == PoolKind::average) {
    const float share = 1.0f / static_cast<float>(n / 4);
    const VF sent = Repeat(hn::Add(hn::Mul(g, hn::Set(d4, share)), zero));
    out.Write(to, n, [&](size_t, size_t) HWY_ATTR { return sent; });
    return true;
  }
  const auto sum = SumPlane<true>(x, n);
  const auto quotient = hn::Add(hn::Div(g, hn::Sqrt(sum)), zero);
  const VF sent = Repeat(hn::IfThenZeroElse(hn::Eq(sum, zero), quotient));
  const auto none = hn::Eq(sent, hn::Zero(d));
  out.Write(to, n, [&](size_t i, size_t m) HWY_ATTR {
    const VF own = m == kLanes ? LoadFloat(d, x + i) : LoadFloatPartial(d, x + i, m);
    return hn::IfThenZeroElse(none, hn::Mul(sent, own));
  });
  return true;
}

// The maximum alone. Of zeros of both signs not always the first.
template <typename T>
HWY_INLINE hn::Vec<DTexel> LargestOfPlane(const T* x, size_t n) {
  const DF d;
  const DTexel d4;
  VF best[kParts];
  for (VF& v : best) v = hn::Set(d, -HUGE_VALF);
  ForEachVector<OnLoad::keep>(x, n, -HUGE_VALF,
                              [&](size_t part, size_t, VF v) HWY_ATTR { best[part] = Greater(d, v, best[part]); });
  HWY_ALIGN float parts[16];
  for (size_t part = 0; part < kParts; ++part) hn::Store(best[part], d, parts + part * kLanes);
  return Greater(d4, Greater(d4, hn::Load(d4, parts), hn::Load(d4, parts + 4)),
                 Greater(d4, hn::Load(d4, parts + 8), hn::Load(d4, parts + 12)));
}

template <typename T>
HWY_INLINE bool ForwardPlane(PoolKind kind, const T* x, size_t n, T* to) {
  const DTexel d4;
  if (kind == PoolKind::max) {
    auto best = LargestOfPlane(x, n);
    if (!hn::AllFalse(d4, hn::Eq(best, hn::Zero(d4)))) best = MaxPlane(x, n).best;
    StoreFloat(d4, best, to);
    return hn::AllFalse(d4, hn::Eq(best, hn::Set(d4, -HUGE_VALF)));
  }
  if (kind == PoolKind::average) {
    StoreFloat(d4, hn::Div(SumPlane<false>(x, n), hn::Set(d4, static_cast<float>(n / 4))), to);
  } else {
    StoreFloat(d4, hn::Sqrt(SumPlane<true>(x, n)), to);
  }
  return true;
}

template <typename T>
void RunPlanes(const PoolEncode& e, bool stream, Range planes) {
  PlaneWriter<T> out(stream);
  const auto n = static_cast<size_t>(4 * e.source.width * e.source.height);
  const int64_t slices = e.channels / 4;
  const bool reads = e.reads_source(), backward = e.backward;
  const auto at = [&](const mps::ImageView& v, int64_t image, int64_t slice) {
    return reinterpret_cast<T*>(plane_of(v, image, slice, 4).data);
  };
  const int64_t corner = 4 * (e.target_y * e.target.width + e.target_x);
  const int64_t corner_of_gradient = 4 * (e.gradient_y * e.gradient.width + e.gradient_x);
  const T *x = nullptr, *g = nullptr;
  T* to = nullptr;
  int64_t image = static_cast<int64_t>(planes.begin) / slices, slice = static_cast<int64_t>(planes.begin) % slices;
  for (size_t i = planes.begin; i < planes.end; ++i, ++slice) {
    if (slice == slices) ++image, slice = 0;
    if (slice == 0 || i == planes.begin) {
      to = at(e.target, e.target_image + image, e.target_channel / 4 + slice) + corner;
      if (reads) x = at(e.source, e.source_image + image, e.source_channel / 4 + slice);
      if (backward) {
        g = at(e.gradient, e.gradient_image + image, e.gradient_channel / 4 + slice) + corner_of_gradient;
      }
    } else {
      to += 4 * e.target.width * e.target.height;
      if (reads) x += n;
      if (backward) g += 4 * e.gradient.width * e.gradient.height;
    }
    if (reads) PrefetchLines(x + kAheadBytes / sizeof(T), n);
    const bool good = backward ? BackwardPlane(e.kind, x, g, n, to, out) : ForwardPlane(e.kind, x, n, to);
    if (good) continue;
    out.Finish();
    mps::plain_rows(e, image, slice, 0, e.height, nullptr, 0);
  }
  out.Finish();
  if (stream) hwy::FlushStream();
}

void RunGlobal(const PoolEncode& e, bool stream, Range planes) {
  e.target.type == mps::PixelType::f32 ? RunPlanes<float>(e, stream, planes)
                                       : RunPlanes<hwy::float16_t>(e, stream, planes);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::mps {
namespace {

constexpr size_t kTaskBytes = 128 * 1024;  // what is prefetched may be another task's: that must be little

}  // namespace

// One window, exactly the plane; a gradient's clip too, so that target planes are contiguous.
bool accepts_global(const PoolEncode& e) noexcept {
  const PixelType type = e.target.type;
  const auto usable = [&](const ImageView& v) {
    return v.type == type && v.lanes == 4 && reinterpret_cast<uintptr_t>(v.data) % bytes_of(type) == 0;
  };
  const auto fits = [](const PoolAxis& a, int64_t size) {
    return a.kernel == size && a.dilation == 1 && a.first_centre == a.before();
  };
  if ((type != PixelType::f32 && type != PixelType::f16) || e.channels % 4 != 0 || !usable(e.target)) return false;
  if (!fits(e.x, e.source.width) || !fits(e.y, e.source.height) || (e.reads_source() && !usable(e.source)))
    return false;
  if (e.source.width > 16 || e.source.height > 16) return false;
  if (!e.backward) return e.width == 1 && e.height == 1;
  if (reinterpret_cast<uintptr_t>(e.target.data) % (4 * bytes_of(type)) != 0) return false;  // whole texels in lines
  return usable(e.gradient) && e.gradient_width == 1 && e.gradient_height == 1 && e.source_x == 0 && e.source_y == 0 &&
         e.target_x == 0 && e.target_y == 0 && e.width == e.source.width && e.height == e.source.height &&
         e.target.width == e.width && e.target.height == e.height;
}

void run_global(const PoolEncode& e, size_t wanted) noexcept {
  const auto planes = static_cast<size_t>(e.images * (e.channels / 4));
  const size_t plane = static_cast<size_t>(4 * e.source.width * e.source.height) * bytes_of(e.target.type);
  const size_t some = std::max<size_t>(1, kTaskBytes / plane), tasks = (planes + some - 1) / some;
  const bool stream = e.backward && planes * plane >= kStreamBytes;
  parallel_for(tasks, threads_for(wanted, tasks, 2 * planes * plane), [&](size_t task, size_t) {
    BNNS_DISPATCH(RunGlobal)(e, stream, {task * some, std::min(planes, (task + 1) * some)});
  });
}

}  // namespace bnns::mps
#endif
