// Small planes in 3x3 stride 1 windows in one pass (mps_pooling/cpu/direct.h): f32 column by column, f16 through a
// plane with a border in scratch.

#include "src/ops/mps_pooling/cpu/direct.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/cpu/small_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/mps_pooling/cpu/bordered-inl.h"
#include "src/ops/mps_pooling/cpu/columns-inl.h"
#include "src/ops/mps_pooling/cpu/planes-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

DirectKernel SmallPlanes(const DirectPlan& p, const PoolEncode& e) {
  return WithTypeAndKind(e, [&]<typename T, PoolKind kKind>() -> DirectKernel {
    if constexpr (sizeof(T) == 2) {
      return p.backward ? RunPlanes<T, BorderedPlane<kKind, true>> : RunPlanes<T, BorderedPlane<kKind, false>>;
    } else {
      return p.backward ? RunPlanes<T, ColumnPlane<kKind, true>> : RunPlanes<T, ColumnPlane<kKind, false>>;
    }
  });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#if HWY_ONCE
namespace bnns::mps {

DirectKernel small_kernel([[maybe_unused]] const DirectPlan& p, [[maybe_unused]] const PoolEncode& e) noexcept {
#if HWY_ARCH_X86_64
  return N_AVX3::SmallPlanes(p, e);
#else
  return nullptr;  // no plan is made there
#endif
}

}  // namespace bnns::mps
#endif
