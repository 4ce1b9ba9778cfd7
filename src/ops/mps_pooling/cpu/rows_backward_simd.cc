// Gradients of whole planes in one pass, row by row (mps_pooling/cpu/direct.h). A file for each direction: they
// compile side by side.

#include "src/ops/mps_pooling/cpu/direct.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/cpu/rows_backward_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/mps_pooling/cpu/plane-inl.h"
#include "src/ops/mps_pooling/cpu/planes-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

void RowsBackward(const DirectPlan& p, const PoolEncode& e, Range planes, void* scratch) {
  WithTypeAndKind(e, [&]<typename T, PoolKind kKind>() {
    p.kernel == 2   ? RunPlanes<T, DirectPlane<T, kKind, 2, 2, true>>(p, e, planes, scratch)
    : p.stride == 2 ? RunPlanes<T, DirectPlane<T, kKind, 3, 2, true>>(p, e, planes, scratch)
                    : RunPlanes<T, DirectPlane<T, kKind, 3, 1, true>>(p, e, planes, scratch);
  });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#if HWY_ONCE
namespace bnns::mps {

void rows_backward([[maybe_unused]] const DirectPlan& p, [[maybe_unused]] const PoolEncode& e,
                   [[maybe_unused]] Range planes, [[maybe_unused]] void* scratch) noexcept {
#if HWY_ARCH_X86_64
  N_AVX3::RowsBackward(p, e, planes, scratch);
#endif
}

}  // namespace bnns::mps
#endif
