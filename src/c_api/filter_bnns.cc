// The entry points that belong to no single operator: apply, backward, destroy.

#include "bnns/bnns.h"
#include "src/core/filter.h"

using bnns::BackwardCall;
using bnns::fail_unsupported;
using bnns::Filter;
using bnns::filter_kind_name;
using bnns::from_handle;
using bnns::guarded_status;
using bnns::timed;

int BNNSFilterApply(BNNSFilter handle, const void* in, void* out) noexcept {
  return guarded_status("BNNSFilterApply", [&] {
    Filter& filter = from_handle(handle);
    timed("apply", filter, 1, [&] { filter.forward(1, in, 0, out, 0); });
  });
}

int BNNSFilterApplyBatch(BNNSFilter handle, size_t batch, const void* in, size_t in_stride, void* out,
                         size_t out_stride) noexcept {
  return guarded_status("BNNSFilterApplyBatch", [&] {
    Filter& filter = from_handle(handle);
    timed("apply", filter, batch, [&] { filter.forward(batch, in, in_stride, out, out_stride); });
  });
}

int BNNSFilterApplyBackwardBatch(BNNSFilter handle, size_t batch, const void* in, size_t in_stride,
                                 BNNSNDArrayDescriptor* in_delta, size_t in_delta_stride, const void* out,
                                 size_t out_stride, const BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride,
                                 BNNSNDArrayDescriptor* weights_delta, BNNSNDArrayDescriptor* bias_delta) noexcept {
  return guarded_status("BNNSFilterApplyBackwardBatch", [&] {
    Filter& filter = from_handle(handle);
    const BackwardCall call{batch,      in,        in_stride,        in_delta,      in_delta_stride, out,
                            out_stride, out_delta, out_delta_stride, weights_delta, bias_delta};
    timed("backward", filter, batch, [&] { filter.backward(call); });
  });
}

// Two-input filters (matrix product, contraction) arrive with a later release; every filter of this one takes one
// input, or an array of inputs through the arithmetic calls.
namespace {
[[noreturn]] void refuse_two_inputs(BNNSFilter handle) {
  const Filter& filter = from_handle(handle);
  fail_unsupported("%s: this filter does not take two inputs", filter_kind_name(filter.kind()));
}
}  // namespace

int BNNSFilterApplyTwoInput(BNNSFilter handle, const void*, const void*, void*) noexcept {
  return guarded_status("BNNSFilterApplyTwoInput", [&] { refuse_two_inputs(handle); });
}

int BNNSFilterApplyTwoInputBatch(BNNSFilter handle, size_t, const void*, size_t, const void*, size_t, void*,
                                 size_t) noexcept {
  return guarded_status("BNNSFilterApplyTwoInputBatch", [&] { refuse_two_inputs(handle); });
}

int BNNSFilterApplyBackwardTwoInputBatch(BNNSFilter handle, size_t, const void*, size_t, BNNSNDArrayDescriptor*, size_t,
                                         const void*, size_t, BNNSNDArrayDescriptor*, size_t, const void*, size_t,
                                         const BNNSNDArrayDescriptor*, size_t, BNNSNDArrayDescriptor*,
                                         BNNSNDArrayDescriptor*) noexcept {
  return guarded_status("BNNSFilterApplyBackwardTwoInputBatch", [&] { refuse_two_inputs(handle); });
}

void BNNSFilterDestroy(BNNSFilter handle) noexcept {
  bnns::destroy_filter(handle);
}
