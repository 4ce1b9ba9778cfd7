// Where rows of dx go, for the kernels that make them one after the other from registers.

#if defined(BNNS_OPS_POOLING_ROWS_OF_DX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_ROWS_OF_DX_INL_H_
#undef BNNS_OPS_POOLING_ROWS_OF_DX_INL_H_
#else
#define BNNS_OPS_POOLING_ROWS_OF_DX_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/ops/pooling/common/kernels.h"
#include "src/ops/pooling/common/lanes-inl.h"
#include "src/ops/pooling/convert/pieces.h"
#include "src/simd/line_writer-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How a row is written: by non-temporal stores, in whole vectors past its end where that may be written, or exactly.
enum class RowEnd { stream, whole_vectors, exact };

// The row's vectors [i, ...), two at a time: n floats of them exist.
template <RowEnd kEnd>
HWY_INLINE void PutLast(VLane low, VLane high, float* to, int64_t n) {
  if constexpr (kEnd == RowEnd::whole_vectors)
    PutWhole<false>(low, high, to);
  else
    PutEnd<kEnd == RowEnd::stream>(low, high, to, n);
}

// Rows of dx from top to bottom, plane by plane. Rows of whole lines go to memory from registers, and those that may go
// through the caches; others are put together first, and those that are no f32 converted.
class RowsOfDx {
 public:
  RowsOfDx(const PoolingBackward& call, bool whole_lines)
      : call_(call), width_(call.problem.geometry.x.in), pitch_(call.dx.row), writer_(call.stream) {
    direct_ = call.dx.has_f32_rows() && !call.accumulate;
    streams_ = direct_ && call.stream && whole_lines && (width_ | pitch_) % 16 == 0;
    gathers_ = call.dx.type != BNNSDataTypeFloat32 && call.dx.column == 1 && pitch_ == width_ && !call.accumulate;
  }

  HWY_INLINE void StartPlane(int64_t sample, int64_t channel) {
    FlushRows();
    plane_ = call_.dx.at(sample, channel);
    const bool stream = streams_ && reinterpret_cast<uintptr_t>(plane_) % 64 == 0;
    together_ = direct_ && call_.stream && !stream && pitch_ == width_;
    end_ = stream ? RowEnd::stream : direct_ && !together_ ? RowEnd::exact : RowEnd::whole_vectors;
  }
  // make(to, end) writes row y: end is a constant of RowEnd.
  template <class Make>
  HWY_INLINE void Row(int64_t y, Make make) {
    float* to = static_cast<float*>(plane_) + y * pitch_;
    if (end_ == RowEnd::stream) {
      make(to, std::integral_constant<RowEnd, RowEnd::stream>());
    } else if (end_ == RowEnd::exact) {
      make(to, std::integral_constant<RowEnd, RowEnd::exact>());
    } else if (together_) {
      make(writer_.Reserve(to, static_cast<size_t>(width_)), std::integral_constant<RowEnd, RowEnd::whole_vectors>());
      writer_.Commit(static_cast<size_t>(width_));
    } else if (gathers_) {
      if (waiting_ + width_ > kRowFloats) FlushRows();
      if (waiting_ == 0) first_ = y;
      make(row_ + waiting_, std::integral_constant<RowEnd, RowEnd::whole_vectors>());
      waiting_ += width_;
    } else {
      make(row_, std::integral_constant<RowEnd, RowEnd::whole_vectors>());
      store_pixels(call_.dx, plane_, 0, y, width_, row_, call_.accumulate);
    }
  }
  void Finish() {
    FlushRows();
    writer_.Finish();
    if (call_.stream) hwy::FlushStream();
  }

 private:
  // Rows of 16-bit floats that wait, as one run: mostly whole lines.
  HWY_INLINE void FlushRows() {
    if (waiting_ > 0) pooling_store_run(call_.dx, plane_, first_, waiting_, row_, call_.stream);
    waiting_ = 0;
  }

  static constexpr int64_t kRowFloats = PoolingScratch::kRowFloats;
  static_assert(kRowFloats >= kPairColumns);

  const PoolingBackward& call_;
  const int64_t width_, pitch_;
  bool direct_, streams_, gathers_, together_ = false;
  int64_t first_ = 0, waiting_ = 0;  // rows from first_ on, floats of row_
  RowEnd end_ = RowEnd::exact;
  void* plane_ = nullptr;
  LineWriter<float> writer_;
  static_assert(LineWriter<float>::kSlack <= 2 * PoolingScratch::kLine);
  float* const row_ = call_.scratch->row;
};

// Task<stride, odd> of 3 x 3 windows over some planes; odd: a window begins at an odd column.
template <class Task>
void RunRouteTask(const PoolingBackward& call, Range planes, Span rows) {
  Task task(call);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) task.Plane(at.sample, at.channel, rows);
  task.Finish();
}
template <template <int, bool> class Task>
void RunRoutes(const PoolingBackward& call, Range planes, Span rows) {
  const PoolingAxis& x = call.problem.geometry.x;
  if (x.stride == 1)
    RunRouteTask<Task<1, true>>(call, planes, rows);
  else if (x.pad & 1)
    RunRouteTask<Task<2, true>>(call, planes, rows);
  else
    RunRouteTask<Task<2, false>>(call, planes, rows);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_ROWS_OF_DX_INL_H_
