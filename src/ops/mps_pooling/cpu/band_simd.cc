// Runs the tasks of a band plan (mps_pooling/cpu/band.h): each source row is fetched once into a ring of rows; row by
// row windows are reduced; forward that is the result, backward each row of windows sends to the target rows under it.

#include "src/ops/mps_pooling/cpu/band.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/cpu/band_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/mps_pooling/cpu/band_windows-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using mps::BandPlan;
using mps::BandPlane;
using mps::PoolEdge;
using mps::PoolEncode;

constexpr int64_t kNoRow = -1;
// In groups of small planes the next task's rows are prefetched while this one's are loaded, if they are not too far
// on: the hardware follows rows that lie one after the other, but not these.
constexpr int64_t kFarAhead = 32768;

template <typename T>
class BandTask {
 public:
  BandTask(const BandPlan& plan, const PoolEncode& e, int64_t task, float* scratch)
      : p_(plan), e_(e), scratch_(scratch), line_(plan.line()), stride_(plan.stride) {
    carry_ = reinterpret_cast<RowCarry<T>*>(scratch + BandPlan::lines * line_);
    first_plane_ = task / plan.bands * plan.group;
    planes_ = HWY_MIN(plan.group, plan.planes - first_plane_);
    begin_ = task % plan.bands * plan.band_rows;
    end_ = HWY_MIN(e.height, begin_ + plan.band_rows);
    width_ = static_cast<size_t>(4 * planes_ * plan.pitch);
    for (int64_t g = 0; g < planes_; ++g) {
      const BandPlane plane = mps::plane_at(plan, e, first_plane_ + g);
      carry_[g].line = nullptr, carry_[g].begin = carry_[g].fill = 0;
      carry_[g].source = reinterpret_cast<const T*>(plane.source);
      carry_[g].gradient = reinterpret_cast<const T*>(plane.gradient);
      carry_[g].target = reinterpret_cast<T*>(plane.target);
    }
    const auto ahead_in = [&](int64_t plane) {
      const auto bytes = static_cast<int64_t>(4 * sizeof(T)) * plane * plan.group;
      return static_cast<ptrdiff_t>((plan.bands == 1 && plan.group > 1 && bytes < kFarAhead ? bytes : 0) /
                                    int64_t{sizeof(T)});
    };
    source_ahead_ = ahead_in(e.source.width * e.source.height);
    gradient_ahead_ = ahead_in(e.gradient.width * e.gradient.height);
  }

  template <PoolKind kKind, int K, int S>
  bool Forward() {
    bool good = true;
    for (int64_t v = begin_; v < end_ && good; ++v) {
      const BandTaps<K, S> taps = Taps<kKind, K, S>(v);
      float* out = Line(BandPlan::out);
      if (kKind == PoolKind::max) good = MaxWindows<K, S, false>(taps, Least(v), width_, out);
      if (kKind == PoolKind::average) AverageWindows<K, S>(taps, Divisor(v), width_, out);
      if (kKind == PoolKind::l2_norm) NormWindows<K, S>(taps, width_, out);
      for (int64_t g = 0; g < planes_; ++g) {
        Write(g, p_.y.window_at + v, p_.x.window_at, out + 4 * g * p_.pitch, p_.x.windows);
      }
    }
    Finish();
    return good;
  }

  template <PoolKind kKind, int K, int S>
  bool Backward() {
    const int64_t y0 = p_.y.source + begin_, y1 = p_.y.source + end_;
    for (int i = 0; i < 2; ++i) std::memset(Line(BandPlan::later + i), 0, width_ * sizeof(float));
    const int64_t last = FloorDiv(y1 - 1 - p_.y.first, S);
    bool good = true;
    for (int64_t v = FloorDiv(y0 - p_.y.first, S) - p_.reach; v <= last && good; ++v) {
      BandScatter<T> s;
      s.sent = Line(BandPlan::zeros), s.code = Line(BandPlan::code);
      if (v >= 0 && v < p_.y.windows) {
        float* sent = Line(BandPlan::sent);
        FetchGradient(v, sent);
        if (kKind == PoolKind::max) {
          good = MaxWindows<K, S, true>(Taps<kKind, K, S>(v), Least(v), width_, Line(BandPlan::code));
        } else if (kKind == PoolKind::average) {
          AverageSent(Divisor(v), width_, sent);
        } else {
          NormSent<K, S>(Taps<kKind, K, S>(v), Line(BandPlan::column), width_, sent);
        }
        s.sent = sent;
      }
      const int64_t y = p_.y.first + S * v;
      s.odd = static_cast<size_t>(line_);
      for (int i = 0; i < 2; ++i) {
        s.later[i] = Line(BandPlan::later + i);
        s.out[i] = Line(BandPlan::out + 2 * i) - BandPlan::kFront;
        const bool wanted = kKind == PoolKind::l2_norm && i < S && y + i >= y0 && y + i < y1;
        s.own[i] = wanted ? Row<OnLoad::keep>(y + i) : Line(BandPlan::outside);
      }
      for (int i = 0; i < 2; ++i) s.to[i] = i < S && y + i >= y0 && y + i < y1 ? TargetRow(y + i) : nullptr;
      DirectRange(y, &s);
      if constexpr (S == 2 && K == 3) {
        p_.phase == 0 ? Scatter<kKind, K, S, 0>(s, width_) : Scatter<kKind, K, S, 1>(s, width_);
      } else {
        Scatter<kKind, K, S, 0>(s, width_);
      }
      for (int i = 0; i < S; ++i) {
        if (good && y + i >= y0 && y + i < y1) Emit(y + i, s.out[i], s.begin, s.end);
      }
    }
    Finish();
    return good;
  }

 private:
  static int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
  float* Line(int64_t line) const { return scratch_ + line * line_ + BandPlan::kFront; }

  // A source row, fetched if it is not in the ring.
  template <OnLoad kOn>
  const float* Row(int64_t y) {
    if (y < 0 || y >= p_.y.size) return Line(BandPlan::outside);
    float* row = Line(BandPlan::ring + 2 * (y % BandPlan::kRing));
    if (held_[y % BandPlan::kRing] == y) return row;
    held_[y % BandPlan::kRing] = y;
    const int64_t n = p_.column_end - p_.column_begin;
    if (n <= 0) return row;
    const int64_t from = p_.column_begin - p_.x.first - stride_ * p_.low;  // columns after slot 0
    for (int64_t g = 0; g < planes_; ++g) {
      const T* texels = carry_[g].source + 4 * (y * p_.x.size + p_.column_begin);
      float* to = row + 4 * (g * p_.pitch + from / stride_);
      const auto count = static_cast<size_t>(n);
      if (stride_ == 1) {
        LoadTexels<kOn>(texels, count, to, source_ahead_);
      } else if (from % 2 == 0) {
        LoadPairs<kOn>(texels, count, to, to + line_, source_ahead_);
      } else {
        LoadPairs<kOn>(texels, count, to + line_, to + 4, source_ahead_);
      }
    }
    return row;
  }

  template <PoolKind kKind, int K, int S>
  BandTaps<K, S> Taps(int64_t v) {
    BandTaps<K, S> taps;
    taps.odd = static_cast<size_t>(line_);
    constexpr OnLoad kOn = kKind == PoolKind::max ? OnLoad::no_nan : OnLoad::keep;
    for (int r = 0; r < K; ++r) taps.row[r] = Row<kOn>(p_.y.first + S * v + r);
    return taps;
  }

  void FetchGradient(int64_t v, float* sent) {
    const int64_t begin = HWY_MAX(p_.low, int64_t{0}), end = HWY_MIN(p_.low + p_.slots, p_.x.windows);
    if (begin >= end) return;
    for (int64_t g = 0; g < planes_; ++g) {
      const int64_t at = (p_.y.window_at + v) * e_.gradient.width + p_.x.window_at + begin;
      LoadTexels<OnLoad::no_negative_zero>(carry_[g].gradient + 4 * at, static_cast<size_t>(end - begin),
                                           sent + 4 * (g * p_.pitch + begin - p_.low), gradient_ahead_);
    }
  }

  const float* Least(int64_t v) const {
    const bool zero = p_.edge == PoolEdge::zero && mps::overhangs(p_, p_.y, v);
    return Line(zero ? BandPlan::zeros : BandPlan::column);
  }
  const float* Divisor(int64_t v) {
    const int64_t rows = mps::divisor_rows(p_, v);
    if (rows != rows_) mps::fill_columns(p_, rows, Line(BandPlan::column)), rows_ = rows;
    return Line(BandPlan::column);
  }

  // Texels of the out arrays before the clip's first.
  int64_t Skip() const { return p_.x.source + p_.phase - p_.x.first - stride_ * p_.low; }
  // Texels of the clip in row y that have a source.
  int64_t Inside(int64_t y) const {
    return y >= p_.y.size ? 0 : HWY_MIN(HWY_MAX(p_.x.size - p_.x.source, int64_t{0}), p_.x.count);
  }
  // Where float 0 of an out array would lie in the target.
  T* TargetRow(int64_t y) const {
    return carry_[0].target + 4 * ((p_.y.at + y - p_.y.source) * e_.target.width + p_.x.at - Skip());
  }

  // Which floats of Scatter's arrays are whole lines inside the clip, to be written straight from registers.
  void DirectRange(int64_t y, BandScatter<T>* s) const {
    s->begin = s->end = 0;
    if (HWY_TARGET != HWY_AVX3 || !p_.aligned || !p_.stream || planes_ != 1) return;
    const int64_t inside = HWY_MIN(Inside(y), Inside(y + 1));
    // Vectors of 4 slots are 8 texels.
    const int64_t begin = (Skip() + 7) / 8, end = (Skip() + inside) / 8;
    if (begin >= end) return;
    s->begin = static_cast<size_t>(16 * begin), s->end = static_cast<size_t>(16 * end);
  }

  // Target row for source row y; 0 beyond the source. Floats [begin, end) of Scatter's arrays are there already.
  void Emit(int64_t y, const float* row, size_t begin, size_t end) {
    const int64_t inside = Inside(y), at = p_.y.at + y - p_.y.source, skip = Skip();
    for (int64_t g = 0; g < planes_; ++g) {
      const float* from = row + 4 * (stride_ * g * p_.pitch + skip);
      if (end > begin) {
        const int64_t first = static_cast<int64_t>(begin) / 2 - skip, last = static_cast<int64_t>(end) / 2 - skip;
        T* to = carry_[g].target + 4 * (at * e_.target.width + p_.x.at);
        FromFloat(from, static_cast<size_t>(4 * first), to);
        FromFloat(from + 4 * last, static_cast<size_t>(4 * (inside - last)), to + 4 * last);
      } else if (inside > 0) {
        Write(g, at, p_.x.at, from, inside);
      }
      for (int64_t x = inside; x < p_.x.count; ++x) Write(g, at, p_.x.at + x, Line(BandPlan::zeros), 1);
    }
  }

  void Write(int64_t g, int64_t y, int64_t x, const float* row, int64_t texels) {
    T* to = carry_[g].target + 4 * (y * e_.target.width + x);
    StoreRow(row, static_cast<size_t>(4 * texels), to, p_.stream, carry_[g]);
  }

  void Finish() {
    for (int64_t g = 0; g < planes_; ++g) carry_[g].Spill();
    if (p_.stream) hwy::FlushStream();
  }

  const BandPlan& p_;
  const PoolEncode& e_;
  float* scratch_;
  int64_t line_, stride_, first_plane_, planes_, begin_, end_;
  size_t width_;
  RowCarry<T>* carry_;  // a group's planes
  ptrdiff_t source_ahead_, gradient_ahead_;
  int64_t held_[BandPlan::kRing] = {kNoRow, kNoRow, kNoRow, kNoRow};
  int64_t rows_ = kNoRow;
};

template <typename T, int K, int S>
bool RunKinds(BandTask<T>& task, PoolKind kind, bool backward) {
  switch (kind) {
    case PoolKind::max:
      return backward ? task.template Backward<PoolKind::max, K, S>() : task.template Forward<PoolKind::max, K, S>();
    case PoolKind::average:
      return backward ? task.template Backward<PoolKind::average, K, S>()
                      : task.template Forward<PoolKind::average, K, S>();
    default:
      return backward ? task.template Backward<PoolKind::l2_norm, K, S>()
                      : task.template Forward<PoolKind::l2_norm, K, S>();
  }
}

template <typename T>
bool RunTask(const BandPlan& p, const PoolEncode& e, int64_t task, float* scratch) {
  BandTask<T> run(p, e, task, scratch);
  if (p.kernel == 2) return RunKinds<T, 2, 2>(run, p.kind, p.backward);
  return p.stride == 2 ? RunKinds<T, 3, 2>(run, p.kind, p.backward) : RunKinds<T, 3, 1>(run, p.kind, p.backward);
}

bool BandTaskOn(const BandPlan& p, const PoolEncode& e, int64_t task, float* scratch) {
  return p.type == mps::PixelType::f32 ? RunTask<float>(p, e, task, scratch)
                                       : RunTask<hwy::float16_t>(p, e, task, scratch);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::mps {

// All slots 0 but those that a row never loads: what a tap outside reads as (-inf never wins a maximum).
void band_prepare(const BandPlan& p, void* scratch) noexcept {
  float* lines = static_cast<float*>(scratch);
  const int64_t line = p.line();
  std::memset(scratch, 0, p.scratch_bytes() - 64);
  fill_columns(p, p.kernel, lines + BandPlan::column * line + BandPlan::kFront);
  if (p.kind != PoolKind::max) return;
  for (int64_t i = 0; i < 2 * line; ++i) lines[BandPlan::outside * line + i] = -HUGE_VALF;
  for (int64_t row = 0; row < 2 * BandPlan::kRing; ++row) {
    if (p.stride == 1 && row % 2 == 1) continue;
    for (int64_t i = 0; i < p.group * p.pitch; ++i) {
      const int64_t x = p.x.first + p.stride * (p.low + i % p.pitch) + row % 2;
      float* slot = lines + row * line + BandPlan::kFront + 4 * i;
      for (int l = 0; l < 4; ++l) slot[l] = x < 0 || x >= p.x.size ? -HUGE_VALF : 0.0f;
    }
  }
}

bool band_task(const BandPlan& p, const PoolEncode& e, int64_t task, void* scratch) noexcept {
  return BNNS_DISPATCH(BandTaskOn)(p, e, task, static_cast<float*>(scratch));
}

}  // namespace bnns::mps
#endif
