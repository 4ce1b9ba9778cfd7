// The entry points that belong to no single operator: apply, backward, destroy.

#include "bnns/bnns.h"
#include "src/filter/filter.h"
#include "src/filter/nan_check.h"

using bnns::BackwardCall;
using bnns::Filter;
using bnns::from_handle;
using bnns::guarded_status;
using bnns::timed;
using bnns::TwoInputBackwardCall;

int BNNSFilterApply(BNNSFilter handle, const void* in, void* out) noexcept {
  return guarded_status("BNNSFilterApply", [&] {
    Filter& filter = from_handle(handle);
    timed("apply", filter, 1, [&] { filter.forward(1, in, 0, out, 0); });
    if (bnns::nan_check_wanted()) check_forward_result(filter, 1, out, 0);
  });
}

int BNNSFilterApplyBatch(BNNSFilter handle, size_t batch, const void* in, size_t in_stride, void* out,
                         size_t out_stride) noexcept {
  return guarded_status("BNNSFilterApplyBatch", [&] {
    Filter& filter = from_handle(handle);
    timed("apply", filter, batch, [&] { filter.forward(batch, in, in_stride, out, out_stride); });
    if (bnns::nan_check_wanted()) check_forward_result(filter, batch, out, out_stride);
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
    if (bnns::nan_check_wanted()) check_gradients(filter, call);
  });
}

int BNNSFilterApplyTwoInput(BNNSFilter handle, const void* in_a, const void* in_b, void* out) noexcept {
  return guarded_status("BNNSFilterApplyTwoInput", [&] {
    Filter& filter = from_handle(handle);
    timed("apply", filter, 1, [&] { filter.forward_two({1, in_a, 0, in_b, 0, out, 0}); });
    if (bnns::nan_check_wanted()) check_forward_result(filter, 1, out, 0);
  });
}

int BNNSFilterApplyTwoInputBatch(BNNSFilter handle, size_t batch, const void* in_a, size_t in_a_stride,
                                 const void* in_b, size_t in_b_stride, void* out, size_t out_stride) noexcept {
  return guarded_status("BNNSFilterApplyTwoInputBatch", [&] {
    Filter& filter = from_handle(handle);
    timed("apply", filter, batch, [&] {
      filter.forward_two({batch, in_a, in_a_stride, in_b, in_b_stride, out, out_stride});
    });
    if (bnns::nan_check_wanted()) check_forward_result(filter, batch, out, out_stride);
  });
}

// out is not needed: no filter of two inputs has an activation.
int BNNSFilterApplyBackwardTwoInputBatch(BNNSFilter handle, size_t batch, const void* in_a, size_t in_a_stride,
                                         BNNSNDArrayDescriptor* in_a_delta, size_t in_a_delta_stride, const void* in_b,
                                         size_t in_b_stride, BNNSNDArrayDescriptor* in_b_delta,
                                         size_t in_b_delta_stride, const void*, size_t,
                                         const BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride,
                                         BNNSNDArrayDescriptor* weights_delta,
                                         BNNSNDArrayDescriptor* bias_delta) noexcept {
  return guarded_status("BNNSFilterApplyBackwardTwoInputBatch", [&] {
    Filter& filter = from_handle(handle);
    const TwoInputBackwardCall call{
        batch,       in_a,       in_a_stride,       in_a_delta, in_a_delta_stride, in_b,
        in_b_stride, in_b_delta, in_b_delta_stride, out_delta,  out_delta_stride,  weights_delta,
        bias_delta};
    timed("backward", filter, batch, [&] { filter.backward_two(call); });
    if (!bnns::nan_check_wanted()) return;
    bnns::check_gradient(filter, in_a_delta, "in_a_delta", batch, in_a_delta_stride);
    bnns::check_gradient(filter, in_b_delta, "in_b_delta", batch, in_b_delta_stride);
    bnns::check_gradient(filter, weights_delta, "weights_delta");
    bnns::check_gradient(filter, bias_delta, "bias_delta");
  });
}

void BNNSFilterDestroy(BNNSFilter handle) noexcept {
  bnns::destroy_filter(handle);
}
