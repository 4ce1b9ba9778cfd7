// The C entry points of fused filters.

#include "bnns/bnns.h"
#include "src/filter/nan_check.h"
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
    if (nan_check_wanted()) check_forward_result(filter, batch, out, out_stride);
  });
}

int apply_backward(const char* function, BNNSFilter handle, const FusedBackward& call) noexcept {
  return guarded_status(function, [&] {
    auto& filter = from_handle<FusedFilter>(handle, FusedFilter::kKind);
    timed("backward", filter, call.batch, [&] { filter.apply_backward(call); });
    if (!nan_check_wanted()) return;
    for (size_t k = 0; call.in_delta && k < call.inputs; ++k) {
      const bool sample = filter.is_sample(k);
      check_gradient(filter, call.in_delta[k], "in_delta", sample ? call.batch : 1,
                     sample && call.in_delta_stride ? call.in_delta_stride[k] : 0);
    }
    for (size_t k = 0; call.parameter_deltas && k < filter.parameters(); ++k) {
      check_gradient(filter, call.parameter_deltas[k], "delta_parameters");
    }
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
