// Forward pooling of a range of planes: y = act(window value + bias), and the positions of the maxima.
//
// Windows are computed in blocks of rows that lie one behind the other, straight into the buffer from which they are
// written; bias and activation run on the block while it is in L1.

#include <algorithm>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/forward/planes_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/lanes-inl.h"
#include "src/ops/pooling/common/windows-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/line_writer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int64_t kBlockWindows = 512;    // 2 KiB of values and as much of offsets
constexpr int64_t kFetchedWindows = 256;  // where their pixels, 4 KiB, are asked for at once

// values[0, n) += b, in whole vectors: the buffer has slack behind.
HWY_INLINE void AddBias(float* values, int64_t n, float b) {
  const hn::ScalableTag<float> d;
  const auto bias = hn::Set(d, b);
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += N) hn::StoreU(hn::Add(hn::LoadU(d, values + i), bias), d, values + i);
}

// Offsets of the maxima of a row of windows as positions in the plane; 0 for an empty window. Planes have fewer than
// 2^31 pixels here, so 32-bit arithmetic is enough.
template <typename T>
HWY_INLINE void Positions(const int32_t* offsets, int64_t n, int64_t origin, int64_t stride, T* positions) {
  const hn::ScalableTag<int32_t> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  auto at = hn::Add(hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<int32_t>(stride))),
                    hn::Set(d, static_cast<int32_t>(origin)));
  const auto step = hn::Set(d, static_cast<int32_t>(stride * N));
  for (int64_t i = 0; i < n; i += N, at = hn::Add(at, step)) {
    const auto offset = hn::LoadU(d, offsets + i);
    const auto position =
        hn::BitCast(du, hn::IfThenElseZero(hn::Gt(offset, hn::Set(d, kNoPixel)), hn::Add(at, offset)));
    if constexpr (sizeof(T) == 4) {
      hn::StoreU(position, du, reinterpret_cast<uint32_t*>(positions) + i);
    } else {
      const hn::ScalableTag<uint64_t> d64;
      const hn::Half<decltype(du)> dh;
      hn::StoreU(hn::PromoteTo(d64, hn::LowerHalf(dh, position)), d64, positions + i);
      hn::StoreU(hn::PromoteTo(d64, hn::UpperHalf(dh, position)), d64, positions + i + N / 2);
    }
  }
}

struct ForwardWriters {
  explicit ForwardWriters(bool stream) : y(stream), wide(stream), narrow(stream) {}
  void Finish() {
    y.Finish();
    wide.Finish();
    narrow.Finish();
  }
  // Maxima of a block and their positions, where a row of indices follows the other.
  void Positions(PositionsFunction kernel, const PoolingForward& call, const WindowBlock& block, void* plane) {
    const int64_t first = block.rows.begin * call.index.row + block.columns.begin;
    const size_t n = static_cast<size_t>(block.rows.size() * block.pitch);
    if (call.index.wide) {
      kernel(block, wide.Reserve(static_cast<uint64_t*>(plane) + first, n));
      wide.Commit(n);
    } else {
      kernel(block, narrow.Reserve(static_cast<uint32_t*>(plane) + first, n));
      narrow.Commit(n);
    }
  }
  LineWriter<float> y;
  LineWriter<uint64_t> wide;
  LineWriter<uint32_t> narrow;
};

// Positions of a block of windows whose offsets lie one row behind the other. Rows that follow each other in memory are
// one reservation.
template <typename T>
void StreamPositions(const PoolingForward& call, T* plane, Span rows, Span columns, const int32_t* offsets,
                     LineWriter<T>* writer) {
  const PoolingGeometry& g = call.problem.geometry;
  const int64_t n = columns.size(), together = call.index.row == n ? rows.size() : 1;
  for (int64_t wy = rows.begin; wy < rows.end; wy += together) {
    const size_t count = static_cast<size_t>(together * n);
    T* to = writer->Reserve(plane + wy * call.index.row + columns.begin, count);
    for (int64_t k = 0; k < together; ++k, to += n, offsets += n) {
      Positions(offsets, n, g.origin(columns.begin, wy + k), g.x.stride, to);
    }
    writer->Commit(count);
  }
}

void WritePositions(const PoolingForward& call, void* plane, Span rows, Span columns, const int32_t* offsets,
                    ForwardWriters* writers) {
  const PoolingGeometry& g = call.problem.geometry;
  const IndexPlanes& index = call.index;
  if (index.column == 1 && g.x.in * g.y.in <= INT32_MAX) {
    if (index.wide)
      StreamPositions(call, static_cast<uint64_t*>(plane), rows, columns, offsets, &writers->wide);
    else
      StreamPositions(call, static_cast<uint32_t*>(plane), rows, columns, offsets, &writers->narrow);
    return;
  }
  for (int64_t wy = rows.begin; wy < rows.end; ++wy, offsets += columns.size()) {
    const int64_t origin = g.origin(columns.begin, wy);
    for (int64_t i = 0; i < columns.size(); ++i) {
      const int64_t position = offsets[i] == kNoPixel ? 0 : origin + i * g.x.stride + offsets[i];
      index.store(plane, columns.begin + i, wy, static_cast<uint64_t>(position));
    }
  }
}

}  // namespace

// positions: the kernel of maxima with their positions, or NULL.
void ForwardPlanes(const PoolingForward& call, Range planes, Span rows, PositionsFunction positions) {
  const PoolingGeometry& g = call.problem.geometry;
  const PoolingFold fold = call.fold();
  const WindowsFunction windows = positions ? nullptr : pooling_windows(fold, g);
  const int64_t width = g.x.out, chunk = std::min(width, kChunk);
  const bool packed = call.y.is_packed(width);
  // Where positions are kept: without them a kernel reads as fast as it would prefetch.
  const bool fetch = positions && call.stream && chunk == width && g.x.in >= kLongRow;
  const int64_t together = std::max<int64_t>(1, (fetch ? kFetchedWindows : kBlockWindows) / chunk);
  const int64_t block_rows = chunk == width ? together : 1;  // blocks follow each other in a packed plane
  alignas(64) float buffer[kBlockWindows + kWindowSlack];
  alignas(64) int32_t offsets[kBlockWindows + kWindowSlack];
  ForwardWriters writers(call.stream);
  WindowBlock block;
  block.fold = fold;
  block.geometry = &g;
  block.offsets = fold == PoolingFold::arg_max ? offsets : nullptr;
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) {
    const void* x = call.x.at(at.sample, at.channel);
    void* y = call.y.at(at.sample, at.channel);
    const float bias = pooling_bias(call.bias, at.channel);
    block.source = whole_plane(g, call.x, x);
    for (int64_t wy = rows.begin; wy < rows.end; wy += block_rows) {
      for (int64_t wx = 0; wx < width; wx += chunk) {
        block.rows = {wy, std::min(rows.end, wy + block_rows)};
        block.columns = {wx, std::min(width, wx + chunk)};
        block.pitch = block.columns.size();
        const int64_t n = block.rows.size() * block.pitch;
        float* to = static_cast<float*>(y) + wy * call.y.row + wx;
        block.values = packed ? writers.y.Reserve(to, static_cast<size_t>(n)) : buffer;
        if (fetch) FetchRows(g, static_cast<const float*>(x), call.x.row, block.rows);
        if (positions)
          writers.Positions(positions, call, block, call.index.at(at.sample, at.channel));
        else
          pooling_fold(windows, block, call.scratch->gradient.pixels);
        if (call.bias) AddBias(block.values, n, bias);
        if (!call.activation.is_identity()) {
          activation_forward(call.activation, block.values, block.values, static_cast<size_t>(n));
        }
        if (packed) {
          writers.y.Commit(static_cast<size_t>(n));
        } else {
          for (int64_t r = block.rows.begin; r < block.rows.end; ++r) {
            const float* row = buffer + (r - block.rows.begin) * block.pitch;
            store_pixels(call.y, y, wx, r, block.columns.size(), row, false);
          }
        }
        if (block.offsets && !positions) {
          WritePositions(call, call.index.at(at.sample, at.channel), block.rows, block.columns, offsets, &writers);
        }
      }
    }
  }
  writers.Finish();
}

bool AcceptsPositions(const PoolingForward& call) {
  const PoolingGeometry& g = call.problem.geometry;
  return call.fold() == PoolingFold::arg_max && call.x.has_f32_rows() && call.index.column == 1 &&
         call.index.row == g.x.out && g.x.in * g.y.in <= INT32_MAX && ChoosePositions(g, call.index.wide) != nullptr;
}
void ForwardPositions(const PoolingForward& call, Range planes, Span rows) {
  ForwardPlanes(call, planes, rows, ChoosePositions(call.problem.geometry, call.index.wide));
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_positions(const PoolingForward& call) noexcept {
  return BNNS_DISPATCH(AcceptsPositions)(call);
}
void pooling_forward_positions(const PoolingForward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(ForwardPositions)(call, planes, rows);
}
bool accepts_row_windows(const PoolingForward& call) noexcept {
  return accepts_row_windows(WindowsProblem{call.fold(), call.problem.geometry});
}
bool accepts_separable(const PoolingForward& call) noexcept {
  return accepts_separable(WindowsProblem{call.fold(), call.problem.geometry});
}
void pooling_forward_windows(const PoolingForward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(ForwardPlanes)(call, planes, rows, nullptr);
}

}  // namespace bnns
#endif  // HWY_ONCE
