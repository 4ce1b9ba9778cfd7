// What runs the planes of a task through a one-pass kernel (mps_pooling/cpu/direct.h).

#if defined(BNNS_OPS_MPS_POOLING_CPU_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_PLANES_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_PLANES_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_PLANES_INL_H_
#endif

#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/cpu/scratch-inl.h"
#include "src/ops/mps_pooling/pixels.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
using mps::DirectKernel;
using mps::PoolEncode;

template <typename T, class Kernel>
HWY_NOINLINE void RunPlanes(const DirectPlan& p, const PoolEncode& e, Range planes, void* scratch) {
  const Kernel prepared(p, static_cast<float*>(scratch));
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
    if (p.backward) {
      g = at(e.gradient, e.gradient_image, e.gradient_channel) + 4 * (e.gradient_y * e.gradient.width + e.gradient_x);
    }
    T* to = at(e.target, e.target_image, e.target_channel) + 4 * (e.target_y * e.target.width + e.target_x);
    if (run.Run(x, g, to, out)) continue;
    out[0].Finish(), out[1].Finish();
    mps::plain_rows(e, image, slice, 0, e.height, nullptr, 0);
  }
  run.Finish(out);
  out[0].Finish(), out[1].Finish();
  if (p.stream) hwy::FlushStream();
}

// What choose.operator()<T, kKind>() returns for the encode's element type and kind.
template <class Choose>
DirectKernel WithTypeAndKind(const PoolEncode& e, Choose&& choose) {
  const bool f32 = e.target.type == mps::PixelType::f32;
  switch (e.kind) {
    case PoolKind::max:
      return f32 ? choose.template operator()<float, PoolKind::max>()
                 : choose.template operator()<hwy::float16_t, PoolKind::max>();
    case PoolKind::average:
      return f32 ? choose.template operator()<float, PoolKind::average>()
                 : choose.template operator()<hwy::float16_t, PoolKind::average>();
    case PoolKind::l2_norm:
      return f32 ? choose.template operator()<float, PoolKind::l2_norm>()
                 : choose.template operator()<hwy::float16_t, PoolKind::l2_norm>();
  }
  return nullptr;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_PLANES_INL_H_
