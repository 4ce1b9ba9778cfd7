// Depthwise 3x3 windows on planes, for the kernels of convolution/depthwise/tile_simd.cc: reading the taps, and the
// loops over planes, rows and columns.

#if defined(BNNS_CONVOLUTION_DEPTHWISE_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_CONVOLUTION_DEPTHWISE_PLANES_INL_H_
#undef BNNS_CONVOLUTION_DEPTHWISE_PLANES_INL_H_
#else
#define BNNS_CONVOLUTION_DEPTHWISE_PLANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "src/ops/convolution/common/span-inl.h"
#include "src/ops/convolution/depthwise/tile.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kBlockRows = 7;
constexpr size_t kReadAhead = 640, kWriteAhead = 320;  // floats: what a core takes while memory answers
constexpr ptrdiff_t kLeastWidthAhead = 48;             // hardware follows rows of a vector or two

// Reads the three taps of a source row for one vector of pixels: lane j of tap k is column + kStep * j + k. Only the
// first `pixels` lanes count; the others are zero, and so is what lies outside the row.
template <class Tag, int kStep, bool kMasked>
class TapReader {
  using V = hn::Vec<Tag>;

 public:
  HWY_INLINE TapReader(Tag d, ptrdiff_t column, ptrdiff_t width, ptrdiff_t pixels) : column_(column) {
    if constexpr (kMasked && kStep == 1) {
      for (int k = 0; k < 3; ++k) span_[k] = Span<Tag>(d, column + k, HWY_MIN(width, column + k + pixels));
    } else if constexpr (kMasked) {
      const ptrdiff_t lanes = SignedLanes(d);
      for (int k = 0; k < 2; ++k) {
        const ptrdiff_t first = column + 2 * k, end = HWY_MIN(width, first + 2 * pixels);
        span_[2 * k] = Span<Tag>(d, first, end), span_[2 * k + 1] = Span<Tag>(d, first + lanes, end);
      }
    }
  }
  HWY_INLINE void Read(Tag d, const float* row, V& t0, V& t1, V& t2) const {
    const float* at = row + column_;
    if constexpr (kStep == 1) {
      t0 = Load(d, at, 0), t1 = Load(d, at + 1, 1), t2 = Load(d, at + 2, 2);
    } else {
      const ptrdiff_t lanes = SignedLanes(d);
      const V a = Load(d, at, 0), b = Load(d, at + lanes, 1);
      t0 = hn::ConcatEven(d, b, a), t1 = hn::ConcatOdd(d, b, a);
      t2 = hn::ConcatEven(d, Load(d, at + 2 + lanes, 3), Load(d, at + 2, 2));
    }
  }

 private:
  HWY_INLINE V Load(Tag d, const float* at, int k) const {
    if constexpr (kMasked) {
      return span_[k].Load(d, at);
    } else {
      return hn::LoadU(d, at);
    }
  }
  ptrdiff_t column_;
  Span<Tag> span_[4];
};

// Rows of the source that target rows [u, u + kCount) read.
template <int kStepRows, size_t kTargets>
struct SourceRows {
  static constexpr size_t kStep = kStepRows, kCount = kTargets, kSize = (kCount - 1) * kStep + 3;
  const float* row[kSize];
  HWY_INLINE SourceRows(const DepthwiseWindow& s, const float* x, size_t u) {
    const ptrdiff_t first = static_cast<ptrdiff_t>(u * kStep) + s.top;
    const float* at = x + first * s.row_stride;
    HWY_UNROLL(15)
    for (size_t i = 0; i < kSize; ++i, at += s.row_stride) {
      row[i] = static_cast<size_t>(first) + i < static_cast<size_t>(s.height) ? at : s.zeros;  // above the plane wraps
    }
  }
};

// Prefetches the lines of planes shortly before their rows are read or written. A block takes one vector of several
// rows, then the next of the same rows: the hardware's prefetchers take long to see a stream in that, and begin anew
// with every page. Here lines come strictly in order and each once, some with every column of blocks, at the pace of a
// loop: more than are needed, or all in a burst, and most of the gain is lost.
template <bool kWrite>
class PlanesAhead {
 public:
  // For `count` planes; blocks are `height` rows high, and `columns` of them lie side by side.
  HWY_INLINE PlanesAhead(const DepthwisePlanes& planes, size_t count, size_t height, size_t columns)
      : planes_(planes),
        size_(count * planes.plane_stride),
        next_(planes.next ? planes.next - size_ : planes.first),
        block_(height * planes.row_stride),
        lines_((block_ / 16 + columns) / columns) {}
  // The blocks from row u of plane p on begin.
  HWY_INLINE void Rows(size_t p, size_t u) {
    const size_t at = p * planes_.plane_stride + u * planes_.row_stride + (kWrite ? kWriteAhead : kReadAhead);
    at_ = HWY_MAX(at_, at);
    end_ = at + block_;
  }
  HWY_INLINE void Column() {
    for (size_t i = 0; i < lines_ && at_ < end_; ++i, at_ += 16) {
      __builtin_prefetch((at_ < size_ ? planes_.first : next_) + at_, kWrite ? 1 : 0);
    }
  }

 private:
  DepthwisePlanes planes_;
  size_t size_;
  const float* next_;  // less size
  size_t block_, lines_;
  size_t at_ = 0, end_ = 0;  // offsets: prefetched, to be prefetched
};

// Cuts rows into blocks and hands them to the pass. Whole vectors away from the borders need no masks.
template <class Tag, int kStep, size_t kCount, class Work, class Ask>
HWY_INLINE void ForEachColumn(const DepthwiseWindow& s, const float* x, size_t u, size_t pixels, Work& work, Ask ask) {
  const Tag d;
  const hn::Half<Tag> half;
  const ptrdiff_t lanes = SignedLanes(d), end = static_cast<ptrdiff_t>(pixels);
  const SourceRows<kStep, kCount> rows(s, x, u);
  for (ptrdiff_t v = 0; v < end; v += lanes) {
    const ptrdiff_t column = v * kStep + s.left, left = end - v;
    ask();
    if (left >= lanes && column >= 0 && column + kStep * lanes + 2 <= s.width) {
      work.Block(d, TapReader<Tag, kStep, false>(d, column, s.width, lanes), rows, u, v, lanes);
    } else if (left > lanes / 2 || !Work::kHalves) {
      const ptrdiff_t some = HWY_MIN(left, lanes);
      work.Block(d, TapReader<Tag, kStep, true>(d, column, s.width, some), rows, u, v, some);
    } else if constexpr (Work::kHalves) {
      work.Block(half, TapReader<hn::Half<Tag>, kStep, true>(half, column, s.width, left), rows, u, v, left);
    }
  }
}

// kAhead: source planes come from memory, and so do, or go to it, the other ones.
template <class Tag, int kStep, bool kAhead, class Work>
HWY_NOINLINE void WidePlanes(const DepthwiseWindow& s, size_t planes, Range rows, size_t pixels, Work work) {
  const size_t samples = Work::kWrites ? 1 : s.samples;
  const size_t columns = (pixels + hn::Lanes(Tag()) - 1) / hn::Lanes(Tag());
  PlanesAhead<false> source(s.planes(), planes, kStep * kBlockRows, columns);
  PlanesAhead<Work::kWrites> other(work.planes(), planes, kBlockRows, columns);  // not over a stride: rows are short
  for (size_t p = 0; p < planes; ++p) {
    work.Begin(p);
    for (size_t i = 0; i < samples; ++i) {
      const float* x = s.x + i * s.sample_stride + p * s.plane_stride;
      work.Plane(p, i);
      size_t u = rows.begin;
      for (; u + kBlockRows <= rows.end; u += kBlockRows) {
        if constexpr (kAhead) source.Rows(p, kStep * u);
        if constexpr (kAhead && kStep == 1) other.Rows(p, u);
        ForEachColumn<Tag, kStep, kBlockRows>(s, x, u, pixels, work, [&] {
          if constexpr (kAhead) source.Column();
          if constexpr (kAhead && kStep == 1) other.Column();
        });
      }
      for (; u < rows.end; ++u) ForEachColumn<Tag, kStep, 1>(s, x, u, pixels, work, [] {});
    }
    work.End(p);
  }
}

// The same for rows of at most a line.
template <size_t kRows>
HWY_INLINE void AskRows(const float* row, ptrdiff_t stride) {
  HWY_UNROLL(14)
  for (size_t r = 0; r < kRows; ++r, row += stride) __builtin_prefetch(row);
}

// Rows of one vector: its masks serve all planes. Where they are written, prefetching gains nothing.
template <class Tag, int kStep, class Work>
HWY_NOINLINE void NarrowPlanes(const DepthwiseWindow& s, size_t planes, Range rows, size_t pixels, Work work) {
  const Tag d;
  const auto count = static_cast<ptrdiff_t>(pixels);
  const size_t samples = Work::kWrites ? 1 : s.samples;
  const TapReader<Tag, kStep, true> reader(d, s.left, s.width, count);
  for (size_t p = 0; p < planes; ++p) {
    work.Begin(p);
    for (size_t i = 0; i < samples; ++i) {
      const float* x = s.x + i * s.sample_stride + p * s.plane_stride;
      work.Plane(p, i);
      size_t u = rows.begin;
      for (; u + kBlockRows <= rows.end; u += kBlockRows) {
        if (s.far && !Work::kWrites) {
          AskRows<kBlockRows * kStep>(x + kReadAhead + u * kStep * static_cast<size_t>(s.row_stride), s.row_stride);
          work.AskRows(u);
        }
        work.Block(d, reader, SourceRows<kStep, kBlockRows>(s, x, u), u, 0, count);
      }
      for (; u < rows.end; ++u) work.Block(d, reader, SourceRows<kStep, 1>(s, x, u), u, 0, count);
    }
    work.End(p);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_CONVOLUTION_DEPTHWISE_PLANES_INL_H_
