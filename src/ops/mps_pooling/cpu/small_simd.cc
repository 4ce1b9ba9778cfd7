// Small planes in 3x3 stride 1 windows in one pass (mps_pooling/cpu/direct.h): f32 column by column, f16 through a
// plane with a border in scratch.

#include "src/ops/mps_pooling/cpu/direct.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/cpu/small_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/mps_pooling/cpu/columns-inl.h"
#include "src/ops/mps_pooling/cpu/halves-inl.h"
#include "src/ops/mps_pooling/cpu/planes-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

void SmallPlanes(const DirectPlan& p, const PoolEncode& e, Range planes, void* scratch) {
  WithTypeAndKind(e, [&]<typename T, PoolKind kKind>() {
    if constexpr (sizeof(T) == 2) {
      p.backward ? RunPlanes<T, HalfPlane<kKind, true>>(p, e, planes, scratch)
                 : RunPlanes<T, HalfPlane<kKind, false>>(p, e, planes, scratch);
    } else {
      p.backward ? RunPlanes<T, ColumnPlane<kKind, true>>(p, e, planes, scratch)
                 : RunPlanes<T, ColumnPlane<kKind, false>>(p, e, planes, scratch);
    }
  });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#if HWY_ONCE
namespace bnns::mps {

void small_planes([[maybe_unused]] const DirectPlan& p, [[maybe_unused]] const PoolEncode& e,
                  [[maybe_unused]] Range planes, [[maybe_unused]] void* scratch) noexcept {
#if HWY_ARCH_X86_64
  N_AVX3::SmallPlanes(p, e, planes, scratch);
#endif
}

}  // namespace bnns::mps
#endif
