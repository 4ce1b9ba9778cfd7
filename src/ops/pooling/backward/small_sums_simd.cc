// Gradient of Average and L2Norm over 2 x 2 and 3 x 3 windows with stride 2, and 3 x 3 with stride 1, plain f32 in and
// out: from registers. It adds in the order of pooling/backward/gather_simd.cc, which does the same for everything
// else.
//
// With c(w) what window w hands to each of its pixels, a pair of rows of dx gets
//   2 x 2         c(r) in both
//   3 x 3         c(r) in the one, c(r) and c of a neighbour in the other; columns likewise
// and a row of dx under windows with stride 1 the sum of three rows of c, then of three neighbours;
// so each c is loaded once and the sums move by one lane for the other window of a column. Rows of c are made some at a
// time in L1, with zeros on all sides for the windows that do not exist.

#include <algorithm>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/small_sums_simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/lanes-inl.h"
#include "src/ops/pooling/common/windows-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/line_writer-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using V = VLane;

constexpr int64_t kScratchFloats = 4096;  // rows of c: half of L1
constexpr int64_t kMargin = 16;           // zeros before a row

// A pair of rows of dx: the one that gets c alone, and the one that gets c + other.
struct TwoRows {
  const float *c, *other;
  const float* pixels[2];  // L2Norm
  float* to[2];
  int64_t width;
};

HWY_INLINE V Product(V sum, V pixel) {  // 0 also where the pixel is inf
  return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(D())), hn::Mul(pixel, sum));
}

// kOdd: the padding is odd, so that odd columns have two windows; else even columns have.
template <int kKernel, bool kOdd, bool kTimes, bool kStream>
HWY_INLINE void Spread(const TwoRows& p) {
  const D d;
  constexpr int kRows = kKernel == 2 ? 1 : 2;  // rows that differ
  V here[kRows], beside[kRows];                // the vector before, or the next one
  const auto load = [&](V* v, int64_t i) HWY_ATTR {
    v[0] = hn::LoadU(d, p.c + i);
    if constexpr (kRows == 2) v[1] = hn::Add(v[0], hn::LoadU(d, p.other + i));
  };
  load(here, 0);
  for (int r = 0; r < kRows; ++r) beside[r] = hn::Zero(d);
  V low[kRows], high[kRows];
  const auto columns = [&](int64_t i) HWY_ATTR {
    if constexpr (kKernel == 3 && kOdd) load(beside, i + kLanes);
    for (int r = 0; r < kRows; ++r) {
      V even = here[r], odd = here[r];
      if constexpr (kKernel == 3 && kOdd) odd = hn::Add(odd, NextLanes(here[r], beside[r]));
      if constexpr (kKernel == 3 && !kOdd) even = hn::Add(even, PreviousLanes(beside[r], here[r]));
      TakeTurns(even, odd, &low[r], &high[r]);
      const V was = here[r];
      here[r] = beside[r];
      beside[r] = was;
    }
    if constexpr (kKernel == 2 || !kOdd) load(here, i + kLanes);
  };
  int64_t i = 0;
  for (; 2 * (i + kLanes) <= p.width; i += kLanes) {
    columns(i);
    for (int r = 0; r < 2; ++r) {
      const int s = kRows == 2 ? r : 0;
      if constexpr (kTimes) {
        const float* pixels = p.pixels[r] + 2 * i;
        PutWhole<kStream>(Product(low[s], hn::LoadU(d, pixels)), Product(high[s], hn::LoadU(d, pixels + kLanes)),
                          p.to[r] + 2 * i);
      } else {
        PutWhole<kStream>(low[s], high[s], p.to[r] + 2 * i);
      }
    }
  }
  const int64_t left = p.width - 2 * i;
  if (left == 0) return;
  columns(i);
  for (int r = 0; r < 2; ++r) {
    const int s = kRows == 2 ? r : 0;
    V a = low[s], b = high[s];
    if constexpr (kTimes) {
      a = Product(a, LoadLanes(p.pixels[r] + 2 * i, left, hn::Zero(d)));
      b = Product(b, LoadLanes(p.pixels[r] + 2 * i + kLanes, left - kLanes, hn::Zero(d)));
    }
    PutEnd<kStream>(a, b, p.to[r] + 2 * i, left);
  }
}

// Stride 1: a row of dx from three rows of c.
template <bool kTimes>
HWY_INLINE void SpreadNeighbours(const float* const* c, const float* pixels, float* to, int64_t width) {
  const D d;
  const auto load = [&](int64_t i) HWY_ATTR {
    return hn::Add(hn::Add(hn::LoadU(d, c[0] + i), hn::LoadU(d, c[1] + i)), hn::LoadU(d, c[2] + i));
  };
  V before = hn::Zero(d), here = load(0);
  int64_t i = 0;
  const auto columns = [&]() HWY_ATTR {
    const V next = load(i + kLanes);
    const V sum = hn::Add(hn::Add(PreviousLanes(before, here), here), NextLanes(here, next));
    before = here;
    here = next;
    return sum;
  };
  for (; i + kLanes <= width; i += kLanes) {
    V sum = columns();
    if constexpr (kTimes) sum = Product(sum, hn::LoadU(d, pixels + i));
    hn::StoreU(sum, d, to + i);
  }
  if (i == width) return;
  V sum = columns();
  if constexpr (kTimes) sum = Product(sum, LoadLanes(pixels + i, width - i, hn::Zero(d)));
  StorePartial(d, sum, to + i, static_cast<size_t>(width - i));
}

template <int kKernel, int kStride, bool kTimes>
class SumsTask {
 public:
  explicit SumsTask(const PoolingBackward& call);
  void Plane(int64_t sample, int64_t channel, Span rows);
  void Finish() {
    writer_.Finish();
    if (call_.stream) hwy::FlushStream();
  }

 private:
  float* C(int64_t k) { return scratch_ + k * pitch_ + kMargin; }
  void MakeRows(int64_t first, int64_t count);
  HWY_INLINE void Rows(const TwoRows& p, bool stream) {
    if (g_.x.pad & 1)
      stream ? Spread<kKernel, true, kTimes, true>(p) : Spread<kKernel, true, kTimes, false>(p);
    else
      stream ? Spread<kKernel, false, kTimes, true>(p) : Spread<kKernel, false, kTimes, false>(p);
  }

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  int64_t pitch_, capacity_;  // of the rows of c
  bool fetch_;                // FetchRows of x
  WindowsFunction norms_ = nullptr;
  const float *x_ = nullptr, *dy_ = nullptr;
  LineWriter<float> writer_;
  alignas(64) float scratch_[kScratchFloats];
  alignas(64) float counts_[kChunk + 16];  // what windows are divided by along x
  float nowhere_[kPairColumns];            // for rows that do not exist
};

template <int kKernel, int kStride, bool kTimes>
SumsTask<kKernel, kStride, kTimes>::SumsTask(const PoolingBackward& call)
    : call_(call), g_(call.problem.geometry), writer_(call.stream) {
  const int64_t windows = std::max(g_.x.out, (g_.x.in + kStride - 1) / kStride);
  pitch_ = kMargin + (windows + 15) / 16 * 16 + 32;
  fetch_ = kTimes && kStride == 2 && call.stream && g_.x.in >= kLongRow && g_.x.in % 16 == 0;
  // Few at a time: reading and writing take turns in short steps, in long ones each would wait for the other.
  capacity_ = std::min<int64_t>(kScratchFloats / pitch_, kKernel == 2 ? (fetch_   ? 1
                                                                         : kTimes ? 8
                                                                                  : 2)
                                                         : fetch_     ? 6
                                                                      : 10);
  std::fill(scratch_, scratch_ + capacity_ * pitch_, 0.0f);
  if (kTimes) norms_ = pooling_windows(PoolingFold::norm, g_);
  std::fill(counts_, counts_ + kChunk + 16, static_cast<float>(kKernel));
  for (int64_t i : {int64_t{0}, g_.x.out - 1}) counts_[i] = static_cast<float>(g_.x.count(i));  // others are inside
}

// Rows [0, count) of c are those of the windows from `first` on.
template <int kKernel, int kStride, bool kTimes>
void SumsTask<kKernel, kStride, kTimes>::MakeRows(int64_t first, int64_t count) {
  const D d;
  const int64_t n = g_.x.out;
  const Span exist{std::max<int64_t>(0, first), std::min(g_.y.out, first + count)};
  if (kTimes && !exist.empty()) {
    if (fetch_) FetchRows(g_, x_, call_.x.row, exist);
    norms_({PoolingFold::norm,
            &g_,
            {x_, BNNSDataTypeFloat32, 1, call_.x.row, {0, g_.x.in}, {0, g_.y.in}},
            exist,
            {0, n},
            C(exist.begin - first),
            nullptr,
            pitch_});
  }
  for (int64_t k = 0; k < count; ++k) {
    float* c = C(k);
    const int64_t wy = first + k;
    if (wy < 0 || wy >= g_.y.out) {
      std::fill(c, c + (n + 15) / 16 * 16, 0.0f);
      continue;
    }
    const float* g = dy_ + wy * call_.dy.row;
    const V rows = hn::Set(d, kTimes ? 1.0f : static_cast<float>(g_.y.count(wy)));
    for (int64_t i = 0; i < n; i += kLanes) {
      if (i % 16 == 0) FetchAhead(g + i);
      const V upstream = LoadLanes(g + i, n - i, hn::Zero(d));
      const V by = kTimes ? hn::Load(d, c + i) : hn::Mul(hn::Load(d, counts_ + i), rows);
      V share = hn::Add(hn::Div(upstream, by), hn::Zero(d));  // never -0, and so no sum is
      if constexpr (kTimes) share = hn::IfThenZeroElse(hn::Eq(by, hn::Zero(d)), share);
      if (kTimes && n - i < kLanes) share = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), share);
      hn::Store(share, d, c + i);
    }
  }
}

template <int kKernel, int kStride, bool kTimes>
void SumsTask<kKernel, kStride, kTimes>::Plane(int64_t sample, int64_t channel, Span rows) {
  const int64_t width = g_.x.in, pitch = call_.dx.row;
  x_ = kTimes ? static_cast<const float*>(call_.x.at(sample, channel)) : nullptr;
  dy_ = static_cast<const float*>(call_.dy.at(sample, channel));
  float* dx = static_cast<float*>(call_.dx.at(sample, channel));
  // Rows of whole lines go to memory from registers, and those that may go through the caches; others are put together.
  const bool lines =
      (reinterpret_cast<uintptr_t>(dx) | static_cast<uintptr_t>(pitch | width) * sizeof(float)) % 64 == 0;
  const bool stream = call_.stream && lines && kStride == 2, together = call_.stream && !stream && pitch == width;
  if constexpr (kStride == 1) {
    const int64_t most = std::min(capacity_ - 2, static_cast<int64_t>(LineWriter<float>::kLongest) / width);
    for (int64_t first = rows.begin; first < rows.end; first += most) {
      const int64_t count = std::min(most, rows.end - first);
      MakeRows(first - 1, count + 2);
      float* to = dx + first * pitch;
      if (together) to = writer_.Reserve(to, static_cast<size_t>(count * width));
      for (int64_t k = 0; k < count; ++k, to += pitch) {
        const float* c[3] = {C(k), C(k + 1), C(k + 2)};
        SpreadNeighbours<kTimes>(c, kTimes ? x_ + (first + k) * call_.x.row : nullptr, to, width);
      }
      if (together) writer_.Commit(static_cast<size_t>(count * width));
    }
    return;
  }
  const int64_t step = kKernel == 3 && g_.y.pad == 0 ? -1 : 1;  // to the other window row of a pair's second row
  const int64_t beside = kKernel - 2;                           // rows of c above and below those of a pair
  const int64_t end = (rows.end + 1) / 2, most = capacity_ - 2 * beside;
  for (int64_t r = rows.begin / 2; r < end; r += most) {
    const int64_t count = std::min(most, end - r);
    MakeRows(r - beside, count + 2 * beside);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t y = 2 * (r + k), exist = std::min<int64_t>(2, rows.end - y);
      float* to = together ? writer_.Reserve(dx + y * pitch, static_cast<size_t>(exist * width)) : dx + y * pitch;
      TwoRows p;
      p.c = C(beside + k);
      p.other = kKernel == 3 ? p.c + step * pitch_ : nullptr;
      p.width = width;
      const int second = step < 0 ? 0 : 1;  // the row that gets both
      for (int i = 0; i < 2; ++i) {
        const int at = i == 1 ? second : 1 - second;
        p.to[i] = at < exist ? to + at * pitch : nowhere_;
        p.pixels[i] = kTimes ? x_ + (at < exist ? y + at : y) * call_.x.row : nullptr;
      }
      Rows(p, stream && exist == 2);
      if (together) writer_.Commit(static_cast<size_t>(exist * width));
    }
  }
}

template <int kKernel, int kStride, bool kTimes>
void RunSums(const PoolingBackward& call, Range planes, Span rows) {
  SumsTask<kKernel, kStride, kTimes> task(call);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) task.Plane(at.sample, at.channel, rows);
  task.Finish();
}

}  // namespace

void SmallSumPlanes(const PoolingBackward& call, Range planes, Span rows) {
  const PoolingAxis& x = call.problem.geometry.x;
  const bool times = call.problem.function == PoolingFunction::l2_norm;
  if (x.stride == 1)
    times ? RunSums<3, 1, true>(call, planes, rows) : RunSums<3, 1, false>(call, planes, rows);
  else if (x.kernel == 2)
    times ? RunSums<2, 2, true>(call, planes, rows) : RunSums<2, 2, false>(call, planes, rows);
  else
    times ? RunSums<3, 2, true>(call, planes, rows) : RunSums<3, 2, false>(call, planes, rows);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_small_sums(const PoolingBackward& call) noexcept {
  const PoolingGeometry& g = call.problem.geometry;
  return call.is_average_or_norm() &&
         ((g.is_small_stride_2() && g.x.in <= kPairColumns) || (g.is_small_stride_1() && g.x.in <= kChunk)) &&
         call.activation.is_identity() && !call.accumulate && call.dy.has_f32_rows() && call.dx.has_f32_rows() &&
         (!call.x.data || call.x.has_f32_rows());
}
void pooling_backward_small_sums(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(SmallSumPlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
