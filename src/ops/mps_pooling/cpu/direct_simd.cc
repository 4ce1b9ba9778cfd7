// Runs whole planes in one pass (mps_pooling/cpu/direct.h).

#include <type_traits>

#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/cpu/direct.h"
#include "src/ops/mps_pooling/pixels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/cpu/direct_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/mps_pooling/cpu/columns-inl.h"
#include "src/ops/mps_pooling/cpu/halves-inl.h"
#include "src/ops/mps_pooling/cpu/narrow-inl.h"
#include "src/ops/mps_pooling/cpu/plane-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
using mps::DirectPlan;
using mps::PoolBackward;
using mps::PoolKind;

#if HWY_TARGET == HWY_AVX3

template <typename T, class Kernel, bool kBackward>
HWY_NOINLINE void RunDirectPlanes(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  const Kernel prepared(p, scratch);
  Kernel run = prepared;  // a copy that nothing else points to: its members live in registers
  TexelStream<T> out[2] = {TexelStream<T>(p.stream), TexelStream<T>(p.stream)};
  const int64_t slices = e.channels / 4;
  for (size_t i = planes.begin; i < planes.end; ++i) {
    const int64_t image = static_cast<int64_t>(i) / slices, slice = static_cast<int64_t>(i) % slices;
    const auto at = [&](const mps::ImageView& v, int64_t first, int64_t channel) {
      return reinterpret_cast<T*>(plane_of(v, first + image, channel / 4 + slice, 4).data);
    };
    const T* x = run.kReads ? at(e.source, e.source_image, e.source_channel) : nullptr;
    const T* g = nullptr;
    if (kBackward) {
      g = at(e.gradient, e.gradient_image, e.gradient_channel) + 4 * (e.gradient_y * e.gradient.width + e.gradient_x);
    }
    T* to = at(e.target, e.target_image, e.target_channel) + 4 * (e.target_y * e.target.width + e.target_x);
    if (run.Run(x, g, to, out)) continue;
    out[0].Finish(), out[1].Finish();
    if (kBackward) {
      mps::pool_backward_plain_rows(e, image, slice, 0, e.height, nullptr, 0);
    } else {
      mps::pool_forward_plain_rows(mps::as_forward(e), image, slice, 0, e.height);
    }
  }
  run.Finish(out);
  out[0].Finish(), out[1].Finish();
  if (p.stream) hwy::FlushStream();
}

template <typename T, PoolKind kKind, bool kBackward>
void RunDirectWindows(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  using Halves = DirectPlane<T, kKind, 2, 2, kBackward>;
  using Overlapping = DirectPlane<T, kKind, 3, 2, kBackward>;
  using Dense = DirectPlane<T, kKind, 3, 1, kBackward>;
  using Small = std::conditional_t<sizeof(T) == 2, HalfPlane<kKind, kBackward>, ColumnPlane<kKind, kBackward>>;
  if (p.kernel == 2) return RunDirectPlanes<T, Halves, kBackward>(p, e, planes, scratch);
  if (p.stride == 2) return RunDirectPlanes<T, Overlapping, kBackward>(p, e, planes, scratch);
  if constexpr (sizeof(T) == 2 && kKind == PoolKind::average) {
    if (p.narrow) return RunDirectPlanes<T, NarrowPlane<kBackward>, kBackward>(p, e, planes, scratch);
  }
  if (p.small) return RunDirectPlanes<T, Small, kBackward>(p, e, planes, scratch);
  RunDirectPlanes<T, Dense, kBackward>(p, e, planes, scratch);
}
template <typename T, bool kBackward>
void RunDirectKinds(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  if (p.kind == PoolKind::max) return RunDirectWindows<T, PoolKind::max, kBackward>(p, e, planes, scratch);
  if (p.kind == PoolKind::average) return RunDirectWindows<T, PoolKind::average, kBackward>(p, e, planes, scratch);
  RunDirectWindows<T, PoolKind::l2_norm, kBackward>(p, e, planes, scratch);
}
template <typename T>
void RunDirectType(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  p.backward ? RunDirectKinds<T, true>(p, e, planes, scratch) : RunDirectKinds<T, false>(p, e, planes, scratch);
}

// Where these kernels exist.
bool HasDirect() {
  return true;
}
void RunDirect(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  e.target.type == mps::PixelType::f32 ? RunDirectType<float>(p, e, planes, scratch)
                                       : RunDirectType<hwy::float16_t>(p, e, planes, scratch);
}

#else

bool HasDirect() {
  return false;
}
void RunDirect(const DirectPlan&, const PoolBackward&, Range, float*) {}

#endif  // AVX3
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::mps {

bool has_direct() noexcept {
  return BNNS_DISPATCH(HasDirect)();
}

void direct_planes(const DirectPlan& p, const PoolBackward& e, Range planes, void* scratch) noexcept {
  BNNS_DISPATCH(RunDirect)(p, e, planes, static_cast<float*>(scratch));
}

}  // namespace bnns::mps
#endif
