// Pooling in any window: columns first, then rows, so that the cost grows with the window's sides and not with its
// area.
//
//   forward, max    each source row is reduced over the columns of the windows, then these rows over their rows: of
//   equal
//                   maxima the first in row-major order
//   forward, sums   each row of windows is summed over its rows, then over its columns
//   gradients       a row of windows at a time. columns: each source column over the rows of the windows, a maximum
//   with
//                   its tap. windows: over those columns, with the column that takes a maximum. parts: what a row of
//                   windows sends to each column, from left to right. Then each part goes to its target row (max), or
//                   to all rows of the windows
//
// All windows of a row that choose a column choose the same pixel of it, its first maximum: so a part of a maximum has
// one target row. The order of sums is that of the plain loops (mps_pooling/window.h).

#include <algorithm>

#include "src/core/parallel.h"
#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/window.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/cpu/separable_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/mps_pooling/cpu/separable_rows-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

class Band : public SeparableRows {
 public:
  Band(const CpuSeparable& plan, const PoolEncode& encode, int64_t n, int64_t slice, float* scratch)
      : SeparableRows(plan, encode, n, slice, scratch) {}

  bool Forward(int64_t begin, int64_t end) {
    const int64_t top = first_y_ + begin * e.y.stride, bottom = first_y_ + (end - 1) * e.y.stride + e.y.extent() - 1;
    LoadSource(Into(top, H), Into(bottom, H));
    if (e.kind == PoolKind::max) {  // in place: a row of windows is not longer than its row of pixels, and lies there
      for (int64_t y = row_begin_; y < row_end_; ++y) {
        MaxOfWindows(Row(y), best_);
        std::memcpy(Row(y), best_, static_cast<size_t>(4 * windows_) * sizeof(float));
      }
    }
    for (int64_t v = begin; v < end; ++v) {
      const AxisTaps taps(first_y_ + v * e.y.stride, e.y, H);
      if (e.kind == PoolKind::max) {
        Reduce<PoolKind::max>(taps, 4 * windows_, best_);
        if (!Finish(taps)) return false;
      } else {
        e.kind == PoolKind::average ? Reduce<PoolKind::average>(taps, 4 * p.extended, column_)
                                    : Reduce<PoolKind::l2_norm>(taps, 4 * p.extended, column_);
        SumOfWindows(best_);
        DivideOrRoot(taps, best_);
      }
      StoreTexels(target_, e.target_y + v, e.target_x, windows_, best_);
    }
    return true;
  }

  bool Backward(int64_t begin, int64_t end) {
    y_begin_ = e.source_y + begin, y_end_ = std::min(e.source_y + end, H);
    std::fill(sums_, sums_ + (end - begin) * p.target_row, 0.0f);
    if (y_begin_ < y_end_ && e.source_x < W) {
      const PoolEdge edge = clamp_ ? PoolEdge::clamp : PoolEdge::zero;
      const WindowRange rows{windows_of(y_begin_, e.y, e.y.extent(), e.gradient_height, H, edge).first,
                             windows_of(y_end_ - 1, e.y, e.y.extent(), e.gradient_height, H, edge).last};
      if (rows.first <= rows.last && e.reads_source()) {
        LoadSource(Into(first_y_ + rows.first * e.y.stride, H),
                   Into(first_y_ + rows.last * e.y.stride + e.y.extent() - 1, H));
      }
      std::fill(sent_, sent_ + p.slot_row, 0.0f);
      for (int64_t v = rows.first; v <= rows.last; ++v) {
        const AxisTaps taps(first_y_ + v * e.y.stride, e.y, H);
        LoadTexels(gradient_, e.gradient_y + v, e.gradient_x, windows_, sent_ + 4 * p.before);
        if (!SendRow(taps)) return false;
      }
    }
    const int64_t columns = std::max<int64_t>(0, std::min(e.width, W - e.source_x));
    const float zeros[64] = {};
    for (int64_t i = begin; i < end; ++i) {
      float* const sum = sums_ + (i - begin) * p.target_row + 4 * (columns > 0 ? e.source_x : 0);
      const bool inside = e.source_y + i < H;
      if (e.kind == PoolKind::l2_norm && inside && columns > 0) {
        LoadTexels(source_, e.source_y + i, e.source_x, columns, column_);
        for (int64_t x = 0; x < 4 * columns; ++x) sum[x] = sum[x] == 0.0f ? 0.0f : sum[x] * column_[x];
      }
      StoreTexels(target_, e.target_y + i, e.target_x, columns, sum);
      for (int64_t x = columns; x < e.width; x += 16) {
        StoreTexels(target_, e.target_y + i, e.target_x + x, std::min<int64_t>(16, e.width - x), zeros);
      }
    }
    return true;
  }

 private:
  bool Overhangs(const AxisTaps& taps) const { return !taps.all_inside(); }

  // Outside zeros of a forward pass. False: see SeparableBand.
  bool Finish(const AxisTaps& taps) {
    const bool zero_row = e.edge == PoolEdge::zero && Overhangs(taps);
    for (int64_t w = 0; w < windows_; ++w) {
      const bool zero = zero_row || (e.edge == PoolEdge::zero && OverhangsAcross(w));
      for (int64_t i = 4 * w; i < 4 * w + 4; ++i) {
        if (zero && !(best_[i] >= 0.0f)) best_[i] = 0.0f;
        if (best_[i] == kLeast) return false;
      }
    }
    return true;
  }
  bool OverhangsAcross(int64_t w) const {
    const int64_t first = first_x_ + w * e.x.stride;
    return first < 0 || first + e.x.extent() > W;
  }

  void DivideOrRoot(const AxisTaps& taps, float* row) {
    const int64_t n_y = mps::divisor_extent(taps.first, e.y, H, e.edge);
    for (int64_t w = 0; w < windows_; ++w) {
      const int64_t n =
          e.kind == PoolKind::average ? n_y * mps::divisor_extent(first_x_ + w * e.x.stride, e.x, W, e.edge) : 0;
      for (int64_t i = 4 * w; i < 4 * w + 4; ++i) {
        row[i] = e.kind == PoolKind::l2_norm ? std::sqrt(row[i]) : n == 0 ? 0.0f : row[i] / static_cast<float>(n);
      }
    }
  }

  // One row of windows, whose gradients lie in sent_.
  bool SendRow(const AxisTaps& taps) {
    float* const sent = sent_ + 4 * p.before;
    std::fill(part_, part_ + p.target_row, 0.0f);
    if (e.kind == PoolKind::max) {
      ReduceWithTaps(taps);
      RouteWindows();
      const bool zero_row = e.edge == PoolEdge::zero && Overhangs(taps);
      for (int64_t w = 0; w < windows_; ++w) {
        const bool zero = zero_row || (e.edge == PoolEdge::zero && OverhangsAcross(w));
        for (int64_t l = 0; l < 4; ++l) {
          const float best = best_[4 * w + l];
          if (zero && !(best >= 0.0f)) continue;  // lost to the zero outside
          if (best == kLeast) return false;
          const auto k = static_cast<int64_t>(route_[4 * w + l]);
          part_[4 * Into(first_x_ + w * e.x.stride + k * e.x.dilation, W) + l] += sent[4 * w + l];
        }
      }
      AddPartsOfMaxima(taps);
      return true;
    }
    const int64_t n_y = mps::divisor_extent(taps.first, e.y, H, e.edge);
    if (e.kind == PoolKind::l2_norm) {
      Reduce<PoolKind::l2_norm>(taps, 4 * p.extended, column_);
      SumOfWindows(best_);
    }
    for (int64_t w = 0; w < windows_; ++w) {
      float share = 0;
      if (e.kind == PoolKind::average) {
        const int64_t n = n_y * mps::divisor_extent(first_x_ + w * e.x.stride, e.x, W, e.edge);
        share = n == 0 ? 0.0f : 1.0f / static_cast<float>(n);
      }
      for (int64_t i = 4 * w; i < 4 * w + 4; ++i) {
        sent[i] = e.kind == PoolKind::average ? sent[i] * share
                  : best_[i] == 0.0f          ? 0.0f
                                              : sent[i] / std::sqrt(best_[i]);
      }
    }
    SpreadAcross(sent);
    const DF d;
    for (int32_t j = clamp_ ? 0 : taps.begin, next = j; j < (clamp_ ? taps.kernel : taps.end); j = next) {
      const int64_t y = clamp_ ? taps.clamped(j) : taps.at(j);
      next = PastTaps(taps, j);
      if (y < y_begin_ || y >= y_end_) continue;
      float* const sum = sums_ + (y - y_begin_) * p.target_row;
      const auto count = hn::Set(d, static_cast<float>(next - j));
      for (int64_t i = 0; i < 4 * W; i += static_cast<int64_t>(hn::Lanes(d))) {
        hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::Mul(hn::LoadU(d, part_ + i), count)), d, sum + i);
      }
    }
    return true;
  }

  // The first tap after tap j that resolves to another pixel.
  int32_t PastTaps(const AxisTaps& taps, int32_t j) const {
    int32_t next = j + 1;
    while (clamp_ && next < taps.kernel && taps.clamped(next) == taps.clamped(j)) ++next;
    return next;
  }

  // Each column's part of what a row of windows sends, from left to right.
  void SpreadAcross(const float* sent) {
    if (e.x.stride == 1 && !clamp_) {
      const DF d;
      for (int64_t i = 0; i < 4 * W; i += static_cast<int64_t>(hn::Lanes(d))) {
        auto sum = hn::Zero(d);
        // The leftmost window begins kernel - 1 pixels before. Slots without a window hold 0.
        for (int64_t k = e.x.kernel - 1; k >= 0; --k) sum = hn::Add(sum, hn::LoadU(d, sent + i - 4 * (first_x_ + k)));
        hn::StoreU(sum, d, part_ + i);
      }
      return;
    }
    const DTexel d;
    for (int64_t w = 0; w < windows_; ++w) {
      const AxisTaps taps(first_x_ + w * e.x.stride, e.x, W);
      const auto v = hn::LoadU(d, sent + 4 * w);
      for (int32_t k = clamp_ ? 0 : taps.begin, next = k; k < (clamp_ ? taps.kernel : taps.end); k = next) {
        float* const to = part_ + 4 * (clamp_ ? taps.clamped(k) : taps.at(k));
        next = PastTaps(taps, k);
        hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Mul(v, hn::Set(d, static_cast<float>(next - k)))), d, to);
      }
    }
  }

  // Each part to the row of its column's tap.
  void AddPartsOfMaxima(const AxisTaps& taps) {
    const DF d;
    const float* const tap = tap_ + 4 * p.left;
    for (int32_t j = clamp_ ? 0 : taps.begin; j < (clamp_ ? taps.kernel : taps.end); ++j) {
      const int64_t y = clamp_ ? taps.clamped(j) : taps.at(j);
      if (y < y_begin_ || y >= y_end_) continue;
      float* const sum = sums_ + (y - y_begin_) * p.target_row;
      const auto own = hn::Set(d, static_cast<float>(j));
      for (int64_t i = 0; i < 4 * W; i += static_cast<int64_t>(hn::Lanes(d))) {
        const auto part = hn::IfThenElseZero(hn::Eq(hn::LoadU(d, tap + i), own), hn::LoadU(d, part_ + i));
        hn::StoreU(hn::Add(hn::LoadU(d, sum + i), part), d, sum + i);
      }
    }
  }

  int64_t y_begin_ = 0, y_end_ = 0;  // source rows of a gradient's band
};

// Target rows [begin, end) of slice `slice` of image n. False: a maximum is -inf or of NaN alone; nothing is done then,
// or not all of it.
bool SeparableBand(const CpuSeparable& plan, const PoolEncode& e, int64_t n, int64_t slice, int64_t begin, int64_t end,
                   float* scratch) {
  Band band(plan, e, n, slice, scratch);
  return e.backward ? band.Backward(begin, end) : band.Forward(begin, end);
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::mps {
namespace {

constexpr int64_t kLimit = 1 << 20;                // of coordinates: they are floats in scratch
constexpr int64_t kBandFloats = 32 * 1024;         // of a band's target, about: it stays in the second-level cache
constexpr size_t kMostScratch = size_t{64} << 20;  // of a thread

int64_t padded(int64_t floats) {
  return (floats + 31) / 16 * 16;
}

bool make_plan(const PoolEncode& e, CpuSeparable* p) {
  const int64_t wx = e.backward ? e.gradient_width : e.width, wy = e.backward ? e.gradient_height : e.height;
  const bool sums = e.kind != PoolKind::max, adds = sums && !(e.backward && e.kind == PoolKind::average);
  if (adds && !adds_columns(e.x, e.y)) return false;
  for (const PoolAxis* a : {&e.x, &e.y}) {
    const int64_t windows = a == &e.x ? wx : wy, first = a->first_centre - a->before();
    if (a->kernel > kMostSeparableKernel || a->extent() > kLimit || (sums && a->dilation != 1)) return false;
    if (windows < 1 || windows > kLimit || a->stride > kLimit || first < -kLimit || first > kLimit) return false;
  }
  if (e.source.width < 1 || e.source.height < 1 || e.source.width > kLimit || e.source.height > kLimit) return false;
  const int64_t first = e.x.first_centre - e.x.before(), end = first + (wx - 1) * e.x.stride + e.x.extent();
  p->left = std::max<int64_t>(0, -first);
  p->extended = p->left + std::max(end, e.source.width);
  // One more window than reaches the first and last pixel.
  p->before = std::max<int64_t>(0, first + e.x.extent());
  p->slots = p->before + std::max(wx, e.source.width - first) + 1;
  if (p->extended > kLimit || p->slots > kLimit) return false;
  p->row = padded(4 * p->extended), p->slot_row = padded(4 * p->slots), p->target_row = padded(4 * e.source.width);
  const int64_t step = e.backward ? 1 : e.y.stride;
  const int64_t most = std::max<int64_t>(1, kBandFloats / (step * p->row));
  p->band = std::min(e.height, std::max(most, std::min<int64_t>(e.y.extent() / step, 32)));
  const int64_t reach = e.backward ? 2 * e.y.extent() + p->band : (p->band - 1) * step + e.y.extent();
  // With the clamp edge the outermost rows meet windows anywhere.
  p->rows = e.backward && e.edge == PoolEdge::clamp ? e.source.height : std::min(e.source.height, reach);
  return p->scratch_bytes() <= kMostScratch;
}

}  // namespace

size_t CpuSeparable::scratch_bytes() const {
  // Source rows (forward max: their rows of windows), the band's target, and two rows of pixels, three of windows, one
  // of parts.
  const int64_t floats = rows * std::max(row, slot_row) + band * target_row + 2 * row + 3 * slot_row + target_row;
  return static_cast<size_t>(floats) * sizeof(float);
}

bool accepts_separable(const PoolEncode& e) noexcept {
  CpuSeparable plan;
  return make_plan(e, &plan);
}

void run_separable(const PoolEncode& e, size_t wanted) noexcept {
  CpuSeparable plan;
  make_plan(e, &plan);
  const int64_t slices = (e.channels + 3) / 4, bands = (e.height + plan.band - 1) / plan.band;
  const auto tasks = static_cast<size_t>(e.images * slices * bands);
  const size_t work = tasks * static_cast<size_t>(plan.band * e.width * (e.x.kernel + e.y.kernel)) * 16;
  const size_t threads = threads_for(wanted, tasks, work);
  const ThreadScratch scratch(threads, plan.scratch_bytes());
  if (!scratch) return run_plain(e, wanted);
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const auto t = static_cast<int64_t>(task);
    const int64_t n = t / bands / slices, slice = t / bands % slices, begin = t % bands * plan.band;
    const int64_t end = std::min(e.height, begin + plan.band);
    if (BNNS_DISPATCH(SeparableBand)(plan, e, n, slice, begin, end, static_cast<float*>(scratch.of(worker)))) return;
    plain_rows(e, n, slice, begin, end, scratch.of(worker), scratch.bytes());
  });
}

}  // namespace bnns::mps
#endif
