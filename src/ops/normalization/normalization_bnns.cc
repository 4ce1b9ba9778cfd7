// The C entry points of normalization filters.

#include "bnns/bnns.h"
#include "src/filter/nan_check.h"
#include "src/ops/normalization/normalization.h"

using namespace bnns;

BNNSFilter BNNSFilterCreateLayerNormalization(BNNSFilterType type, const BNNSLayerParametersNormalization* layer,
                                              const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerNormalization", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "normalization");
    return make_filter<NormalizationFilter>(options, make_normalization_problem(type, layer));
  });
}

int BNNSNormalizationFilterApplyBatch(BNNSFilter handle, size_t batch, const void* in, size_t in_stride, void* out,
                                      size_t out_stride, bool training) noexcept {
  return guarded_status("BNNSNormalizationFilterApplyBatch", [&] {
    auto& filter = from_handle<NormalizationFilter>(handle, NormalizationFilter::kKind);
    timed(training ? "train" : "apply", filter, batch,
          [&] { filter.apply(batch, in, in_stride, out, out_stride, training); });
    if (nan_check_wanted()) check_forward_result(filter, batch, out, out_stride);
  });
}

int BNNSNormalizationFilterApplyBackwardBatch(BNNSFilter handle, size_t batch, BNNSNDArrayDescriptor* in_delta,
                                              size_t in_delta_stride, const void* out, size_t out_stride,
                                              BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride,
                                              BNNSNDArrayDescriptor* beta_delta,
                                              BNNSNDArrayDescriptor* gamma_delta) noexcept {
  return guarded_status("BNNSNormalizationFilterApplyBackwardBatch", [&] {
    auto& filter = from_handle<NormalizationFilter>(handle, NormalizationFilter::kKind);
    const NormalizationBackwardCall call{batch,     in_delta,         in_delta_stride, out,        out_stride,
                                         out_delta, out_delta_stride, beta_delta,      gamma_delta};
    timed("backward", filter, batch, [&] { filter.apply_backward(call); });
    if (!nan_check_wanted()) return;
    check_gradient(filter, in_delta, "in_delta", batch, in_delta_stride);
    check_gradient(filter, beta_delta, "beta_delta");
    check_gradient(filter, gamma_delta, "gamma_delta");
  });
}
