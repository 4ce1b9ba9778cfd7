// The C entry points of fused filters.

#include "bnns/bnns.h"
#include "src/ops/fused/fused.h"

using namespace bnns;

BNNSFilter BNNSFilterCreateFusedLayer(const size_t count, const BNNSFilterType* types, const void** layers,
                                      const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateFusedLayer", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "fused");
    return make_filter<FusedFilter>(options, make_fused_problem(count, types, layers));
  });
}

namespace {

int apply(const char* function, BNNSFilter handle, size_t batch, size_t inputs, const void* const* in,
          const size_t* in_stride, void* out, size_t out_stride, bool training) noexcept {
  return guarded_status(function, [&] {
    auto& filter = from_handle<FusedFilter>(handle, FusedFilter::kKind);
    timed("apply", filter, batch, [&] { filter.apply(batch, inputs, in, in_stride, out, out_stride, training); });
  });
}

int apply_backward(const char* function, BNNSFilter handle, const FusedBackward& call) noexcept {
  return guarded_status(function, [&] {
    auto& filter = from_handle<FusedFilter>(handle, FusedFilter::kKind);
    timed("backward", filter, call.batch, [&] { filter.apply_backward(call); });
  });
}

}  // namespace

int BNNSFusedFilterApplyBatch(BNNSFilter filter, size_t batch, const void* in, size_t in_stride, void* out,
                              size_t out_stride, bool training) noexcept {
  return apply("BNNSFusedFilterApplyBatch", filter, batch, 1, &in, &in_stride, out, out_stride, training);
}

int BNNSFusedFilterApplyMultiInputBatch(BNNSFilter filter, size_t batch, size_t inputs, const void** in,
                                        const size_t* in_stride, void* out, size_t out_stride, bool training) noexcept {
  return apply("BNNSFusedFilterApplyMultiInputBatch", filter, batch, inputs, in, in_stride, out, out_stride, training);
}

int BNNSFusedFilterApplyBackwardBatch(BNNSFilter filter, size_t batch, const void* in, size_t in_stride,
                                      BNNSNDArrayDescriptor* in_delta, size_t in_delta_stride, const void* out,
                                      size_t out_stride, BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride,
                                      BNNSNDArrayDescriptor** delta_parameters) noexcept {
  return apply_backward("BNNSFusedFilterApplyBackwardBatch", filter,
                        {batch, 1, &in, &in_stride, &in_delta, &in_delta_stride, out, out_stride, out_delta,
                         out_delta_stride, delta_parameters});
}

int BNNSFusedFilterApplyBackwardMultiInputBatch(BNNSFilter filter, size_t batch, size_t inputs, const void** in,
                                                const size_t* in_stride, BNNSNDArrayDescriptor** in_delta,
                                                const size_t* in_delta_stride, const void* out, size_t out_stride,
                                                BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride,
                                                BNNSNDArrayDescriptor** delta_parameters) noexcept {
  return apply_backward("BNNSFusedFilterApplyBackwardMultiInputBatch", filter,
                        {batch, inputs, in, in_stride, in_delta, in_delta_stride, out, out_stride, out_delta,
                         out_delta_stride, delta_parameters});
}
