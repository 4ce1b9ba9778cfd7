// Gradient of Max, Average and L2Norm, gathered row by row of dx: no two tasks write one pixel, and each row is written
// once, complete.
//
// With c(w) what window w hands down (g for Max, g / count for Average, g / norm for L2Norm) and t(kx, wx) the part of
// column wx of windows that goes to its kx-th column of pixels in the row,
//   t(kx, wx) = sum over the window rows wy that reach the row, in order, of c(wy, wx)    (Max: if its maximum is here)
//   dx(x)     = sum over the windows wx that reach x, in order, of t(kx, wx)              (L2Norm: times the pixel)
// A ring holds c, and for Max the offset of the maximum, of the window rows that reach the current row of dx. All
// rows of the ring and of t have zeros on both sides, so that windows that do not exist add nothing.

#include <algorithm>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_backward_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_index-inl.h"
#include "src/ops/pooling/pooling_tile.h"
#include "src/ops/pooling/pooling_windows-inl.h"
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

// Memory of one task.
struct Workspace {
  alignas(64) float room[kTileFloats];                    // the rows of GatherTile
  alignas(64) float row[kTileColumns + 2 * RowWriter<float>::kLine];   // of dx, where it cannot go to the writer
  GradientRoom gradient;
};

// Rows of windows that reach a row of dx: the tap that does, as part of the offset, and the ring row.
struct Reaching {
  int64_t n = 0;
  const float* c[kTileOverlap];
  const int32_t* offset[kTileOverlap];
  int64_t tap[kTileOverlap];
};

class GatherTask {
 public:
  GatherTask(const PoolingBackward& call, const GatherTile& tile, Workspace* w)
      : call_(call), g_(call.problem.geometry), tile_(tile), w_(*w),
        is_max_(call.problem.function == PoolingFunction::max), is_l2_(call.problem.function == PoolingFunction::l2_norm) {
    if (is_max_ && !call.index.data) windows_ = Vectorised(PoolingFold::arg_max);
    if (is_l2_) windows_ = Vectorised(PoolingFold::norm);
    std::fill(w_.room, w_.room + tile.rows() * tile.pitch, 0.0f);
    float* counts = Scratch() + tile_.left;
    for (int64_t i = 0; !is_max_ && !is_l2_ && i < tile_.windows.size() + kWindowSlack; ++i) {
      counts[i] = i < tile_.windows.size() ? static_cast<float>(g_.x.count(tile_.windows.begin + i)) : 1;
    }
  }

  // dx of a plane's rows, columns tile_.columns.
  void Plane(int64_t sample, int64_t channel, Span rows, RowWriter<float>* writer) {
    sample_ = sample;
    channel_ = channel;
    x_ = call_.x.data ? call_.x.at(sample, channel) : nullptr;
    void* dx = call_.dx.at(sample, channel);
    int64_t next = g_.y.windows(rows.begin).begin;   // the next row of windows to compute
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const Span reach = g_.y.windows(y);
      next = std::max(next, reach.begin);
      for (; next < reach.end; ++next) ComputeRow(next);
      const int64_t n = tile_.columns.size();
      float* to = w_.row;
      if (writer) to = writer->Reserve(static_cast<float*>(dx) + y * call_.dx.row + tile_.columns.begin, static_cast<size_t>(n));
      GatherRow(y, reach, to);
      if (is_l2_) TimesPixels(y, to);
      if (writer) writer->Commit(static_cast<size_t>(n));
      else store_pixels(call_.dx, dx, tile_.columns.begin, y, n, to, call_.accumulate);
    }
  }

 private:
  WindowsFunction Vectorised(PoolingFold fold) const {
    return call_.x.has_f32_rows() ? ChooseWindows(fold, g_) : nullptr;
  }
  float* C(int64_t wy) { return w_.room + wy % tile_.overlap * tile_.pitch; }
  int32_t* Offsets(int64_t wy) {
    return reinterpret_cast<int32_t*>(w_.room + (tile_.overlap + wy % tile_.overlap) * tile_.pitch);
  }
  float* Scratch() { return w_.room + (tile_.rows() - 1) * tile_.pitch; }   // counts of Average, norms of L2Norm
  float* T() { return w_.room + (is_max_ ? 2 : 1) * tile_.overlap * tile_.pitch; }

  void ComputeRow(int64_t wy);
  void OffsetsFromIndices(int64_t wy, int32_t* offsets) const;
  void GatherRow(int64_t y, Span reach, float* to);
  template <int kKernel>
  void SplitByColumn(const Reaching& r);
  const float* SumRows(const Reaching& r);
  void TimesPixels(int64_t y, float* to);

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  const GatherTile& tile_;
  Workspace& w_;
  const bool is_max_, is_l2_;
  WindowsFunction windows_ = nullptr;
  int64_t sample_ = 0, channel_ = 0;
  const void* x_ = nullptr;
};

// Index minus the position of the window's first tap. Every index is in its window, so the low 32 bits tell.
void GatherTask::OffsetsFromIndices(int64_t wy, int32_t* offsets) const {
  const DI d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), n = tile_.windows.size(), stride = g_.x.stride;
  const IndexPlanes& index = call_.index;
  const void* plane = index.at(sample_, channel_);
  const int64_t origin = g_.origin(tile_.windows.begin, wy), first = wy * index.row + tile_.windows.begin;
  if (index.column != 1) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t position = static_cast<int64_t>(index.load(plane, tile_.windows.begin + i, wy));
      offsets[i] = static_cast<int32_t>(position - origin - i * stride);
    }
    return;
  }
  auto at = hn::Add(hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<int32_t>(stride))),
                    hn::Set(d, static_cast<int32_t>(origin)));
  const auto step = hn::Set(d, static_cast<int32_t>(stride * N));
  for (int64_t i = 0; i < n; i += N, at = hn::Add(at, step)) {
    const size_t count = static_cast<size_t>(std::min(N, n - i));
    const auto low = index.wide ? LoadIndices(d, static_cast<const uint64_t*>(plane) + first + i, count).low
                                : LoadIndices(d, static_cast<const uint32_t*>(plane) + first + i, count).low;
    hn::StoreU(hn::Sub(low, at), d, offsets + i);
  }
}

// Fills the ring row of window row wy.
void GatherTask::ComputeRow(int64_t wy) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), n = tile_.windows.size();
  if (n == 0) return;
  float* c = C(wy) + tile_.left;
  float* values = Scratch() + tile_.left;
  int32_t* offsets = is_max_ ? Offsets(wy) + tile_.left : nullptr;
  if (call_.activation.is_identity() && call_.dy.has_f32_rows()) {
    const float* dy = static_cast<const float*>(call_.dy.at(sample_, channel_)) + wy * call_.dy.row + tile_.windows.begin;
    Transform(dy, c, static_cast<size_t>(n), [](auto, auto v) HWY_ATTR { return v; });
  } else {
    pooling_gradient(call_, sample_, channel_, tile_.windows.begin, wy, n, c, &w_.gradient);
  }
  if (is_max_ && call_.index.data) {
    OffsetsFromIndices(wy, offsets);
  } else if (windows_) {
    windows_({&g_, {x_, call_.x.type, 1, call_.x.row, {0, g_.x.in}, {0, g_.y.in}, 0}, {wy, wy + 1}, tile_.windows,
              values, offsets, 0});
  } else if (is_max_ || is_l2_) {
    pooling_windows_of(is_max_ ? PoolingFold::arg_max : PoolingFold::norm, g_, call_.x, x_, {wy, wy + 1}, tile_.windows,
                       values, offsets, 0, w_.gradient.stage);
  }
  if (is_max_) return;
  const V rows = hn::Set(d, static_cast<float>(g_.y.count(wy)));
  for (int64_t i = 0; i < n; i += N) {
    const V by = is_l2_ ? hn::LoadU(d, values + i) : hn::Mul(hn::LoadU(d, values + i), rows);
    const V quotient = hn::Div(hn::LoadU(d, c + i), by);
    hn::StoreU(hn::IfThenZeroElse(hn::Eq(by, hn::Zero(d)), quotient), d, c + i);
  }
  hn::StoreU(hn::Zero(d), d, c + n);   // the last vector may have gone past the row
}

// t(kx, wx) of Max.
template <int kKernel>
void GatherTask::SplitByColumn(const Reaching& r) {
  const D d;
  const DI di;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), n = tile_.windows.size(), dilation = g_.x.dilation;
  float* t = T() + tile_.left;
  if constexpr (kKernel != 0) {
    for (int64_t i = 0; i < n; i += N) {
      V sum[kKernel];
      for (int k = 0; k < kKernel; ++k) sum[k] = hn::Zero(d);
      for (int64_t j = 0; j < r.n; ++j) {
        const auto offset = hn::LoadU(di, r.offset[j] + i);
        const V c = hn::LoadU(d, r.c[j] + i);
        for (int k = 0; k < kKernel; ++k) {
          const auto here = hn::Eq(offset, hn::Set(di, static_cast<int32_t>(r.tap[j] + k * dilation)));
          sum[k] = hn::IfThenElse(hn::RebindMask(d, here), hn::Add(sum[k], c), sum[k]);
        }
      }
      for (int k = 0; k < kKernel; ++k) hn::StoreU(sum[k], d, t + k * tile_.pitch + i);
    }
  } else {
    for (int64_t k = 0; k < g_.x.kernel; ++k, t += tile_.pitch) {
      for (int64_t i = 0; i < n; i += N) {
        V sum = hn::Zero(d);
        for (int64_t j = 0; j < r.n; ++j) {
          const auto here = hn::Eq(hn::LoadU(di, r.offset[j] + i), hn::Set(di, static_cast<int32_t>(r.tap[j] + k * dilation)));
          sum = hn::IfThenElse(hn::RebindMask(d, here), hn::Add(sum, hn::LoadU(d, r.c[j] + i)), sum);
        }
        hn::StoreU(sum, d, t + i);
      }
    }
  }
}

// t(wx) of Average and L2Norm: the same for every kx.
const float* GatherTask::SumRows(const Reaching& r) {
  const D d;
  if (r.n == 1) return r.c[0] - tile_.left;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), n = tile_.windows.size();
  float* t = T() + tile_.left;
  for (int64_t i = 0; i < n; i += N) {
    V sum = hn::LoadU(d, r.c[0] + i);
    for (int64_t j = 1; j < r.n; ++j) sum = hn::Add(sum, hn::LoadU(d, r.c[j] + i));
    hn::StoreU(sum, d, t + i);
  }
  return t - tile_.left;
}

// dx(x) for column stride 1: n columns, tap k of window position i + k's share. `t` points at the place of the window
// whose last tap is column 0; each smaller tap is `dilation` windows further and `rows` floats back.
template <int kKernel>
HWY_INLINE void Spread1(const float* t, int64_t kernel, int64_t step, int64_t n, float* to) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), taps = kKernel ? kKernel : kernel;
  for (int64_t i = 0; i < n; i += N) {
    V sum = hn::LoadU(d, t + i);
    for (int64_t k = 1; k < taps; ++k) sum = hn::Add(sum, hn::LoadU(d, t + i + k * step));
    hn::StoreU(sum, d, to + i);
  }
}

// The same for column stride 2: even and odd columns have taps of their own.
template <int kEven, int kOdd>
HWY_INLINE void Spread2(const float* even, const float* odd, int64_t even_taps, int64_t odd_taps, int64_t step,
                        int64_t n, float* to) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const int64_t evens = kEven ? kEven : even_taps, odds = kOdd ? kOdd : odd_taps;
  for (int64_t i = 0; 2 * i < n; i += N) {
    V first = hn::Zero(d), second = hn::Zero(d);
    if (evens > 0) first = hn::LoadU(d, even + i);
    for (int64_t k = 1; k < evens; ++k) first = hn::Add(first, hn::LoadU(d, even + i + k * step));
    if (odds > 0) second = hn::LoadU(d, odd + i);
    for (int64_t k = 1; k < odds; ++k) second = hn::Add(second, hn::LoadU(d, odd + i + k * step));
    hn::StoreInterleaved2(first, second, d, to + 2 * i);
  }
}

void GatherTask::GatherRow(int64_t y, Span reach, float* to) {
  const D d;
  const int64_t n = tile_.columns.size(), kernel = g_.x.kernel;
  Reaching r;
  for (int64_t wy = reach.begin; wy < reach.end && tile_.windows.size() > 0; ++wy) {
    const int64_t down = y - g_.y.start(wy);
    if (down % g_.y.dilation != 0) continue;
    r.c[r.n] = C(wy) + tile_.left;
    r.offset[r.n] = is_max_ ? Offsets(wy) + tile_.left : nullptr;
    r.tap[r.n++] = down * g_.x.in;
  }
  if (r.n == 0) {
    for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d))) hn::StoreU(hn::Zero(d), d, to + i);
    return;
  }
  const float* t = T();
  const int64_t rows = is_max_ ? tile_.pitch : 0;   // from t(kx) to t(kx + 1)
  if (!is_max_) t = SumRows(r);
  else if (kernel == 2) SplitByColumn<2>(r);
  else if (kernel == 3) SplitByColumn<3>(r);
  else SplitByColumn<0>(r);
  const int64_t base = tile_.columns.begin + g_.x.pad;
  const auto place = [&](int64_t k, int64_t column) {   // where t(k) of the window with tap k on that column is
    return t + k * rows + tile_.left + (base + column - k * g_.x.dilation) / g_.x.stride - tile_.windows.begin;
  };
  if (g_.x.stride == 1) {
    const float* last = place(kernel - 1, 0);
    const int64_t step = g_.x.dilation - rows;
    if (kernel == 3) Spread1<3>(last, kernel, step, n, to);
    else Spread1<0>(last, kernel, step, n, to);
    return;
  }
  // The largest tap of each parity: tap k is on even columns of the tile if base - k is even.
  const int64_t largest[2] = {kernel - 1, kernel - 2};
  const int64_t even = (base - largest[0]) % 2 == 0 ? largest[0] : largest[1], odd = largest[0] + largest[1] - even;
  const float* at_even = even < 0 ? t : place(even, 0);
  const float* at_odd = odd < 0 ? t : place(odd, 1);
  const int64_t evens = (even + 2) / 2, odds = (odd + 2) / 2, step = 1 - 2 * rows;
  if (kernel == 2) Spread2<1, 1>(at_even, at_odd, evens, odds, step, n, to);
  else if (evens == 2 && odds == 1) Spread2<2, 1>(at_even, at_odd, evens, odds, step, n, to);
  else if (evens == 1 && odds == 2) Spread2<1, 2>(at_even, at_odd, evens, odds, step, n, to);
  else Spread2<0, 0>(at_even, at_odd, evens, odds, step, n, to);
}

void GatherTask::TimesPixels(int64_t y, float* to) {
  const int64_t n = tile_.columns.size();
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = std::min(kChunk, n - i);
    const float* x = load_pixels(call_.x, x_, tile_.columns.begin + i, y, m, w_.gradient.value);
    Transform2(x, to + i, to + i, static_cast<size_t>(m), [](auto d, auto pixel, auto sum) HWY_ATTR {
      return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Mul(pixel, sum));   // 0 also where the pixel is inf
    });
  }
}

}  // namespace

void GatherPlanes(const PoolingBackward& call, Range planes, Span rows) {
  const PoolingGeometry& g = call.problem.geometry;
  Workspace workspace;
  RowWriter<float> writer(call.stream);
  const GatherTile whole(g, call.problem.function == PoolingFunction::max);
  for (int64_t first = 0; first < g.x.in; first += whole.columns.size()) {
    const GatherTile tile(whole, g, {first, std::min(g.x.in, first + whole.columns.size())});
    GatherTask task(call, tile, &workspace);
    const bool direct = call.dx.has_f32_rows() && !call.accumulate;
    for (size_t p = planes.begin; p < planes.end; ++p) {
      task.Plane(static_cast<int64_t>(p) / call.problem.channels, static_cast<int64_t>(p) % call.problem.channels, rows,
                 direct ? &writer : nullptr);
    }
  }
  writer.Finish();
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool pooling_backward_is_gather(const PoolingGeometry& geometry) noexcept {
  return GatherTile::accepts(geometry);
}
void pooling_backward_gather(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(GatherPlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
