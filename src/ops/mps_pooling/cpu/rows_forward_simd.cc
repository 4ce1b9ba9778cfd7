// Forward pooling of whole planes in one pass, row by row (mps_pooling/cpu/direct.h). A file for each direction: they
// compile side by side.

#include "src/ops/mps_pooling/cpu/direct.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/cpu/rows_forward_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/mps_pooling/cpu/planes-inl.h"
#include "src/ops/mps_pooling/cpu/rows-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

DirectKernel RowsForward(const DirectPlan& p, const PoolEncode& e) {
  return WithTypeAndKind(e, [&]<typename T, PoolKind kKind>() -> DirectKernel {
    return p.kernel == 2   ? RunPlanes<T, DirectPlane<T, kKind, 2, 2, false>>
           : p.stride == 2 ? RunPlanes<T, DirectPlane<T, kKind, 3, 2, false>>
                           : RunPlanes<T, DirectPlane<T, kKind, 3, 1, false>>;
  });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#if HWY_ONCE
namespace bnns::mps {

DirectKernel rows_forward_kernel([[maybe_unused]] const DirectPlan& p, [[maybe_unused]] const PoolEncode& e) noexcept {
#if HWY_ARCH_X86_64
  return N_AVX3::RowsForward(p, e);
#else
  return nullptr;  // no plan is made there
#endif
}

}  // namespace bnns::mps
#endif
