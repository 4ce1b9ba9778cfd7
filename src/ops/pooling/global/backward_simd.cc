// Gradients of one window that is the whole plane.
//
// Of small planes, as many as a vector has lanes are taken at once: what each of them hands to its pixels is a lane of
// a vector. Where the planes follow each other in memory dx is one run of pixels, and a permutation brings a vector of
// pixels what their planes have for them: it leaves as whole lines, without a fill of each plane in a buffer first.

#include <algorithm>
#include <new>
#include <type_traits>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/global/backward_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/stream-inl.h"
#include "src/ops/pooling/global/global-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/line_writer-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using DIndex = hn::RebindToSigned<D>;
using VIndex = hn::Vec<DIndex>;

constexpr int64_t kRunPixels = 64;  // of planes that are written as one run

// What planes hand out: give to every pixel, times the pixel for L2Norm; Max: to the pixel at position only.
struct Shares {
  V give;
  VIndex position;
};

// Planes filled one after the other, in runs of at most kChunk pixels.
class PlaneFiller {
 public:
  explicit PlaneFiller(const PoolingBackward& call)
      : call_(call),
        width_(call.problem.geometry.x.in),
        function_(call.problem.function),
        packed_(call.dx.is_packed(width_) && !call.accumulate),
        writer_(call.stream) {}
  // In the thread's scratch: with what else a task needs it is too much for the stack.
  static PlaneFiller& InRoom(const PoolingBackward& call) {
    static_assert(std::is_trivially_destructible_v<PlaneFiller> && sizeof(PlaneFiller) <= sizeof PoolingScratch::tile);
    return *new (call.scratch->tile) PlaneFiller(call);
  }

  // Pixels [first, first + n) of the plane dx; those of x for L2Norm.
  void Fill(void* dx, int64_t first, int64_t n, const float* x, float give, int64_t position) {
    const D d;
    float* to = packed_ ? writer_.Reserve(static_cast<float*>(dx) + first, static_cast<size_t>(n)) : scratch_;
    const V value = hn::Set(d, function_ == PoolingFunction::max ? 0.0f : give);
    if (function_ == PoolingFunction::l2_norm && give != 0) {  // 0 also where the pixel is inf
      Transform(x, to, static_cast<size_t>(n), [&](auto, V pixel) HWY_ATTR { return hn::Mul(pixel, value); });
    } else {
      for (int64_t i = 0; i < n; i += kLanes) hn::StoreU(value, d, to + i);
    }
    const bool here = position >= first && position < first + n;
    if (function_ == PoolingFunction::max && here) to[position - first] = give;
    if (packed_) return writer_.Commit(static_cast<size_t>(n));
    for (int64_t i = 0; i < n;) {
      const int64_t column = (first + i) % width_, m = std::min(n - i, width_ - column);
      store_pixels(call_.dx, dx, column, (first + i) / width_, m, scratch_ + i, call_.accumulate);
      i += m;
    }
  }
  void Finish() { writer_.Finish(); }

 private:
  const PoolingBackward& call_;
  const int64_t width_;
  const PoolingFunction function_;
  const bool packed_;
  LineWriter<float> writer_;
  alignas(64) float scratch_[kChunk + kWindowSlack];
};

bool IsPlain(const PoolingBackward& call) {  // dy is g
  return call.activation.is_identity() && call.dy.type == BNNSDataTypeFloat32;
}
float Upstream(const PoolingBackward& call, const PlaneNumber& at, GradientScratch* scratch) {
  float g;
  if (IsPlain(call))
    g = *static_cast<const float*>(call.dy.at(at.sample, at.channel));
  else
    pooling_gradient(call, at.sample, at.channel, 0, 0, 1, &g, scratch);
  return g;
}
int64_t GivenPosition(const PoolingBackward& call, const PlaneNumber& at) {
  return static_cast<int64_t>(call.index.load(call.index.at(at.sample, at.channel), 0, 0));
}

void LargePlanes(const PoolingBackward& call, Range planes) {
  const int64_t width = call.problem.geometry.x.in, pixels = width * call.problem.geometry.y.in;
  const PoolingFunction function = call.problem.function;
  alignas(64) float x_buffer[kChunk];
  GradientScratch& gradient_scratch = call.scratch->gradient;
  PlaneFiller& filler = PlaneFiller::InRoom(call);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) {
    const void* x = call.x.data ? call.x.at(at.sample, at.channel) : nullptr;
    float give = Upstream(call, at, &gradient_scratch);
    int64_t position = -1;
    if (function == PoolingFunction::l2_norm) {
      const float norm = Norm(call.x, x, width, pixels, x_buffer);
      give = norm == 0 ? 0 : give / norm;
    } else if (function == PoolingFunction::average) {
      give /= CountedTaps(call.problem.geometry);
    } else {
      position = call.index.data ? GivenPosition(call, at) : FindMaximum(call.x, x, width, pixels, x_buffer).position;
    }
    give += 0.0f;  // as a sum from 0
    for (int64_t first = 0; first < pixels; first += kChunk) {
      const int64_t n = std::min(kChunk, pixels - first);
      const bool times_x = function == PoolingFunction::l2_norm;
      const float* run = times_x ? LoadRun(call.x, x, width, first, n, x_buffer) : nullptr;
      filler.Fill(call.dx.at(at.sample, at.channel), first, n, run, give, position);
    }
  }
  filler.Finish();
}

// Planes of at most kChunk pixels.
class SmallPlanes {
 public:
  explicit SmallPlanes(const PoolingBackward& call)
      : call_(call), function_(call.problem.function), count_(hn::Set(D(), CountedTaps(call.problem.geometry))) {
    const PoolingGeometry& g = call.problem.geometry;
    pixels_ = g.x.in * g.y.in;
    reads_x_ = function_ == PoolingFunction::l2_norm || (function_ == PoolingFunction::max && !call.index.data);
    const auto one_run = [&](const Planes& p) {
      return p.is_packed(g.x.in) && p.plane == pixels_ && p.sample == p.plane * call.problem.channels;
    };
    is_run_ = pixels_ <= kRunPixels && !call.accumulate && one_run(call.dx) && (!reads_x_ || one_run(call.x));
    for (int64_t p = 0; is_run_ && p < kLanes; ++p) {
      for (int64_t i = 0; i < pixels_; i += kLanes) {  // the next plane's are written later
        hn::StoreU(hn::Set(DIndex(), static_cast<int32_t>(p)), DIndex(), plane_ + p * pixels_ + i);
      }
    }
  }

  void Run(Range planes) {
    PixelStream stream(call_.stream);
    PlaneFiller& filler = PlaneFiller::InRoom(call_);
    PlaneNumber at(planes.begin, call_.problem.channels);
    for (size_t first = planes.begin; first < planes.end; first += static_cast<size_t>(kLanes)) {
      const size_t n = std::min(static_cast<size_t>(kLanes), planes.end - first);
      const PlaneNumber begin = at;
      PlaneGroup group;
      if (reads_x_) {
        PlaneNumber reading = at;
        group = LoadGroup(call_.problem, call_.x, &reading, n, buffers_);
      }
      const Shares shares = Hand(group, n, &at);
      if (is_run_) {
        stream.Start(static_cast<float*>(call_.dx.at(begin.sample, begin.channel)));
        WriteRun(shares, group.x[0], static_cast<int64_t>(n) * pixels_, &stream);
      } else {
        Fill(shares, group, n, begin, &filler);
      }
    }
    stream.Finish();
    filler.Finish();
  }

 private:
  // Shares of n planes from `at` on, which moves past them.
  HWY_INLINE Shares Hand(const PlaneGroup& group, size_t n, PlaneNumber* at) {
    const D d;
    const DIndex di;
    const bool by_index = call_.index.data != nullptr && function_ == PoolingFunction::max;
    HWY_ALIGN float upstream[hn::MaxLanes(D())];
    HWY_ALIGN int32_t given[hn::MaxLanes(D())];
    hn::Store(hn::Zero(d), d, upstream);
    hn::Store(hn::Zero(di), di, given);
    PlaneNumber reading = *at;
    for (size_t p = 0; by_index && p < n; ++p, reading.next()) {
      given[p] = static_cast<int32_t>(GivenPosition(call_, reading));
    }
    const bool plain = IsPlain(call_);
    const float* dy = static_cast<const float*>(call_.dy.data);
    for (size_t p = 0; plain && p < n; ++p, at->next()) {
      upstream[p] = dy[at->sample * call_.dy.sample + at->channel * call_.dy.plane];
    }
    for (size_t p = 0; !plain && p < n; ++p, at->next()) upstream[p] = Upstream(call_, *at, &gradient_scratch_);
    if (function_ == PoolingFunction::max && !by_index) group.Positions(given);
    Shares shares{hn::Load(d, upstream), hn::Load(di, given)};
    if (function_ == PoolingFunction::l2_norm) {
      const V norms = GroupNorms(group);
      shares.give = hn::IfThenZeroElse(hn::Eq(norms, hn::Zero(d)), hn::Div(shares.give, norms));
    } else if (function_ == PoolingFunction::average) {
      shares.give = hn::Div(shares.give, count_);
    }
    shares.give = hn::Add(shares.give, hn::Zero(d));
    return shares;
  }

  // Vectors of dx that follow each other, n pixels.
  HWY_INLINE void WriteRun(const Shares& shares, const float* x, int64_t n, PixelStream* stream) const {
    const D d;
    const DIndex di;
    const auto write = [&](auto pixels_at) HWY_ATTR {
      PixelStream to = *stream;
      int64_t i = 0;
      for (; i + kLanes <= n; i += kLanes) to.Append(pixels_at(i, hn::SetTableIndices(d, plane_ + i)));
      if (i < n) to.Append(pixels_at(i, hn::SetTableIndices(d, plane_ + i)), n - i);
      *stream = to;
    };
    if (function_ == PoolingFunction::average) {
      write([&](int64_t, auto plane) HWY_ATTR { return hn::TableLookupLanes(shares.give, plane); });
    } else if (function_ == PoolingFunction::l2_norm) {
      write([&](int64_t i, auto plane) HWY_ATTR {
        const V give = hn::TableLookupLanes(shares.give, plane), pixels = LoadLanes(x + i, n - i, hn::Zero(d));
        return hn::IfThenZeroElse(hn::Eq(give, hn::Zero(d)), hn::Mul(pixels, give));  // 0 also where the pixel is inf
      });
    } else {
      const VIndex lane = hn::Iota(di, 0), begin = hn::Mul(lane, hn::Set(di, static_cast<int32_t>(pixels_)));
      const V position = hn::BitCast(d, hn::Add(begin, shares.position));
      write([&](int64_t i, auto plane) HWY_ATTR {
        const VIndex here = hn::Add(lane, hn::Set(di, static_cast<int32_t>(i)));
        const VIndex from = hn::BitCast(di, hn::TableLookupLanes(position, plane));
        return hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(from, here)), hn::TableLookupLanes(shares.give, plane));
      });
    }
  }

  void Fill(const Shares& shares, const PlaneGroup& group, size_t n, PlaneNumber at, PlaneFiller* filler) const {
    HWY_ALIGN float give[hn::MaxLanes(D())];
    HWY_ALIGN int32_t position[hn::MaxLanes(D())];
    hn::Store(shares.give, D(), give);
    hn::Store(shares.position, DIndex(), position);
    for (size_t p = 0; p < n; ++p, at.next()) {
      const float* x = reads_x_ ? group.x[p] : nullptr;
      filler->Fill(call_.dx.at(at.sample, at.channel), 0, pixels_, x, give[p], position[p]);
    }
  }

  const PoolingBackward& call_;
  const PoolingFunction function_;
  const V count_;
  int64_t pixels_;
  bool reads_x_, is_run_;
  alignas(64) int32_t plane_[kLanes * (kRunPixels + 1)];  // of each pixel of a run
  alignas(64) GroupBuffers buffers_;
  GradientScratch& gradient_scratch_ = call_.scratch->gradient;
};

}  // namespace

void GlobalBackward(const PoolingBackward& call, Range planes) {
  const PoolingGeometry& g = call.problem.geometry;
  if (g.x.in * g.y.in > kChunk) return LargePlanes(call, planes);
  SmallPlanes small(call);
  small.Run(planes);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_global(const PoolingBackward& call) noexcept {
  return call.problem.geometry.is_global();
}
void pooling_global_backward(const PoolingBackward& call, Range planes, Span /*rows*/) noexcept {
  BNNS_DISPATCH(GlobalBackward)(call, planes);
}

}  // namespace bnns
#endif  // HWY_ONCE
