// Gradient of Average and L2Norm, gathered row by row of dx: no two tasks write one pixel, and each row is written
// once, complete.
//
// With c(w) what window w hands to each of its pixels (g / count for Average, g / norm for L2Norm),
//   t(wx)  = sum over the window rows wy that reach the row, in order, of c(wy, wx)
//   dx(x)  = sum over the window columns wx that reach x, in order, of t(wx)          (L2Norm: times the pixel)
// A ring holds c of the window rows that reach the current rows of dx. All rows of the ring have zeros on both sides,
// so that windows that do not exist add nothing.

#include <algorithm>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/gather_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/backward/gather_tile.h"
#include "src/ops/pooling/backward/spread-inl.h"
#include "src/ops/pooling/common/windows-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/line_writer-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

static_assert(kTileFloats * sizeof(float) <= sizeof PoolingScratch::tile);
constexpr int64_t kRunFloats = 512;  // rows of dx that are made at once, if they follow each other in memory

// Memory of one task.
struct Workspace {
  alignas(64) float row[2 * (kTileColumns + 2 * LineWriter<float>::kLine)];  // of dx, where it cannot go to the writer
  float pixels[kTileColumns];                                                // of x, where it is not f32
};

class GatherTask {
 public:
  GatherTask(const PoolingBackward& call, const GatherTile& tile, Workspace* w);
  // dx of a plane's rows, columns tile.columns; to the writer if there is one.
  void Plane(int64_t sample, int64_t channel, Span rows, LineWriter<float>* writer);

 private:
  float* C(int64_t wy) { return scratch_ + (wy & (tile_.ring - 1)) * tile_.pitch + tile_.left; }
  float* Total() { return scratch_ + tile_.ring * tile_.pitch + tile_.left; }
  float* Counts() { return Total() + tile_.pitch; }

  void ComputeRows(int64_t begin, int64_t end);
  void GatherRow(int64_t y, Span reach, const Target& target);

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  const GatherTile& tile_;
  Workspace& w_;
  float* const scratch_ = call_.scratch->tile;  // the rows of GatherTile
  const bool is_l2_;
  const Spreader spreader_;
  WindowsFunction norms_ = nullptr;
  int64_t sample_ = 0, channel_ = 0;
  const void* x_ = nullptr;
};

GatherTask::GatherTask(const PoolingBackward& call, const GatherTile& tile, Workspace* w)
    : call_(call),
      g_(call.problem.geometry),
      tile_(tile),
      w_(*w),
      is_l2_(call.problem.function == PoolingFunction::l2_norm),
      spreader_(g_.x, tile) {
  if (is_l2_) norms_ = pooling_windows(PoolingFold::norm, g_);
  FillZeros(tile.rows() * tile.pitch, scratch_);
  for (int64_t i = 0; !is_l2_ && i < tile_.windows.size() + kWindowSlack; ++i) {
    Counts()[i] = i < tile_.windows.size() ? static_cast<float>(g_.x.count(tile_.windows.begin + i)) : 1;
  }
}

void GatherTask::Plane(int64_t sample, int64_t channel, Span rows, LineWriter<float>* writer) {
  sample_ = sample;
  channel_ = channel;
  x_ = call_.x.data ? call_.x.at(sample, channel) : nullptr;
  void* dx = call_.dx.at(sample, channel);
  const int64_t n = tile_.columns.size(), out_end = g_.y.windows(rows.end - 1).end;
  // Windows that do not overlap downwards give the same row to all their rows of pixels: two at a time.
  const bool twins = !is_l2_ && g_.x.stride > 1 && g_.y.overlap() == 1 && g_.y.dilation == 1 && g_.y.kernel > 1;
  // Rows that follow each other in memory are one reservation; the ring must hold all their windows.
  const int64_t together =
      writer && call_.dx.row == n
          ? std::clamp<int64_t>(std::min(kRunFloats / n, (tile_.ring - g_.y.overlap()) * g_.y.stride), 1, 64)
          : 1;
  int64_t computed = g_.y.windows(rows.begin).begin;  // rows of windows before this one are in the ring, or not needed
  for (int64_t y = rows.begin; y < rows.end;) {
    const int64_t count = std::min(together, rows.end - y);
    const Span first = g_.y.windows(y), last = g_.y.windows(y + count - 1);
    if (last.end > computed && tile_.windows.size() > 0) {
      // As many as the ring holds beside the rows that are still needed.
      computed = std::max(computed, first.begin);
      const int64_t end = std::max(last.end, std::min(first.begin + tile_.ring, out_end));
      ComputeRows(computed, end);
      computed = end;
    }
    Target target{w_.row, n, 1, n, nullptr};
    if (writer)
      target.to = writer->Reserve(static_cast<float*>(dx) + y * call_.dx.row + tile_.columns.begin,
                                  static_cast<size_t>(count * n));
    for (int64_t done = 0; done < count;) {
      const Span reach = g_.y.windows(y + done);
      target.copies =
          twins && done + 1 < count && !reach.empty() && y + done + 1 < g_.y.start(reach.end - 1) + g_.y.kernel ? 2 : 1;
      if (is_l2_) target.pixels = load_pixels(call_.x, x_, tile_.columns.begin, y + done, n, w_.pixels);
      GatherRow(y + done, reach, target);
      done += target.copies;
      if (writer) target.to += target.copies * n;
    }
    if (writer)
      writer->Commit(static_cast<size_t>(count * n));
    else
      store_pixels(call_.dx, dx, tile_.columns.begin, y, n, w_.row, call_.accumulate);
    y += count;
  }
}

void GatherTask::GatherRow(int64_t y, Span reach, const Target& target) {
  const float* rows[kTileOverlap];
  int64_t count = 0;
  for (int64_t wy = reach.begin; wy < reach.end && tile_.windows.size() > 0; ++wy) {
    if (g_.y.dilation == 1 || (y - g_.y.start(wy)) % g_.y.dilation == 0) rows[count++] = C(wy);
  }
  if (count > 3 || (count > 1 && spreader_.wants_sums())) {
    SumRows(rows, count, tile_.windows.size(), Total());
    rows[0] = Total();
    count = 1;
  }
  if (count > 0) return spreader_.Row(rows, count, target);
  for (int64_t c = 0; c < target.copies; ++c) FillZeros(target.n, target.to + c * target.pitch);
}

// Fills the ring rows of window rows [begin, end).
void GatherTask::ComputeRows(int64_t begin, int64_t end) {
  const D d;
  const int64_t n = tile_.windows.size();
  for (int64_t wy = begin, next; wy < end && is_l2_; wy = next) {  // the norms first, in runs that do not wrap
    next = std::min(end, (wy & ~(tile_.ring - 1)) + tile_.ring);
    pooling_fold(
        norms_,
        {PoolingFold::norm, &g_, whole_plane(g_, call_.x, x_), {wy, next}, tile_.windows, C(wy), nullptr, tile_.pitch},
        call_.scratch->gradient.pixels);
  }
  const bool direct = call_.activation.is_identity() && call_.dy.has_f32_rows();
  const float* dy = direct ? static_cast<const float*>(call_.dy.at(sample_, channel_)) + tile_.windows.begin : nullptr;
  const float* counts = Counts();
  for (int64_t wy = begin; wy < end; ++wy) {
    float* c = C(wy);
    const float* upstream = w_.row;  // free here
    if (direct)
      upstream = dy + wy * call_.dy.row;
    else
      pooling_gradient(call_, sample_, channel_, tile_.windows.begin, wy, n, w_.row, &call_.scratch->gradient);
    const auto quotient = [&](auto dd, V g, V by) HWY_ATTR {
      const V share = hn::Add(hn::Div(g, by), hn::Zero(dd));       // never -0, and so no sum is
      return hn::IfThenZeroElse(hn::Eq(by, hn::Zero(dd)), share);  // a window without pixels, or a norm of 0
    };
    if (is_l2_) {
      Transform2(upstream, c, c, static_cast<size_t>(n), quotient);
    } else {
      const V rows = hn::Set(d, static_cast<float>(g_.y.count(wy)));
      Transform2(upstream, counts, c, static_cast<size_t>(n),
                 [&](auto dd, V g, V columns) HWY_ATTR { return quotient(dd, g, hn::Mul(columns, rows)); });
    }
    if (is_l2_) hn::StoreU(hn::Zero(d), d, c + n);  // the norms' last vector may have gone past the row
  }
}

}  // namespace

void GatherPlanes(const PoolingBackward& call, Range planes, Span rows) {
  const PoolingGeometry& g = call.problem.geometry;
  Workspace workspace;
  LineWriter<float> writer(call.stream);
  const bool direct = call.dx.has_f32_rows() && !call.accumulate;
  const GatherTile whole(g);
  for (int64_t first = 0; first < g.x.in; first += whole.columns.size()) {
    const GatherTile tile(whole, g, {first, std::min(g.x.in, first + whole.columns.size())});
    GatherTask task(call, tile, &workspace);
    PlaneNumber at(planes.begin, call.problem.channels);
    for (size_t p = planes.begin; p < planes.end; ++p, at.next()) {
      task.Plane(at.sample, at.channel, rows, direct ? &writer : nullptr);
    }
  }
  writer.Finish();
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_gather(const PoolingBackward& call) noexcept {
  return call.is_average_or_norm() && GatherTile::accepts(call.problem.geometry);
}
void pooling_backward_gather(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(GatherPlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
