// BNNSFilterCreateLayerPermute, BNNSPermuteFilterApplyBackwardBatch.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/ops/permute/permute.h"

BNNSFilter BNNSFilterCreateLayerPermute(const BNNSLayerParametersPermute* layer_params,
                                        const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded("BNNSFilterCreateLayerPermute", BNNSFilter{}, [&] {
    const bnns::Options options = bnns::read_options(filter_params, "permute");
    return bnns::make_filter<bnns::PermuteFilter>(options, bnns::make_permute_problem(layer_params));
  });
}

int BNNSPermuteFilterApplyBackwardBatch(BNNSFilter filter, size_t batch_size, BNNSNDArrayDescriptor* in_delta,
                                        size_t in_delta_stride, const BNNSNDArrayDescriptor* out_delta,
                                        size_t out_delta_stride) noexcept {
  return bnns::guarded_status("BNNSPermuteFilterApplyBackwardBatch", [&] {
    auto& permute = bnns::from_handle<bnns::PermuteFilter>(filter, bnns::FilterKind::permute);
    if (!in_delta) bnns::fail_invalid("permute: in_delta is NULL, expected a descriptor");
    bnns::BackwardCall call{};
    call.batch = batch_size;
    call.in_delta = in_delta;
    call.in_delta_stride = in_delta_stride;
    call.out_delta = out_delta;
    call.out_delta_stride = out_delta_stride;
    bnns::timed("backward", permute, batch_size, [&] { permute.backward(call); });
  });
}
