// The C entry points of arithmetic filters.

#include "bnns/bnns.h"
#include "src/filter/filter.h"
#include "src/filter/nan_check.h"
#include "src/ops/arithmetic/arithmetic.h"

using bnns::ArithmeticBackward;
using bnns::ArithmeticFilter;
using bnns::FilterKind;
using bnns::from_handle;
using bnns::guarded;
using bnns::guarded_status;
using bnns::timed;

BNNSFilter BNNSFilterCreateLayerArithmetic(const BNNSLayerParametersArithmetic* layer,
                                           const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerArithmetic", BNNSFilter{}, [&] {
    const bnns::Options options = bnns::read_options(parameters, "arithmetic");
    return bnns::make_filter<ArithmeticFilter>(options, bnns::make_arithmetic_problem(layer));
  });
}

int BNNSArithmeticFilterApplyBatch(BNNSFilter handle, size_t batch, size_t inputs, const void** in,
                                   const size_t* in_stride, void* out, size_t out_stride) noexcept {
  return guarded_status("BNNSArithmeticFilterApplyBatch", [&] {
    auto& filter = from_handle<ArithmeticFilter>(handle, FilterKind::arithmetic);
    timed("apply", filter, batch, [&] { filter.forward(batch, inputs, in, in_stride, out, out_stride); });
    if (bnns::nan_check_wanted()) check_forward_result(filter, batch, out, out_stride);
  });
}

int BNNSArithmeticFilterApplyBackwardBatch(BNNSFilter handle, size_t batch, size_t inputs, const void** in,
                                           const size_t* in_stride, BNNSNDArrayDescriptor** in_delta,
                                           const size_t* in_delta_stride, const void* out, const size_t out_stride,
                                           BNNSNDArrayDescriptor* out_delta, const size_t out_delta_stride) noexcept {
  return guarded_status("BNNSArithmeticFilterApplyBackwardBatch", [&] {
    auto& filter = from_handle<ArithmeticFilter>(handle, FilterKind::arithmetic);
    ArithmeticBackward call;
    call.batch = batch;
    call.inputs = inputs;
    call.in = in;
    call.in_stride = in_stride;
    call.in_delta = in_delta;
    call.in_delta_stride = in_delta_stride;
    call.out = out;
    call.out_stride = out_stride;
    call.out_delta = out_delta;
    call.out_delta_stride = out_delta_stride;
    timed("backward", filter, batch, [&] { filter.backward(call); });
    for (size_t k = 0; bnns::nan_check_wanted() && in_delta && k < inputs; ++k) {
      const bool sample = filter.problem().is_sample(k);
      bnns::check_gradient(filter, in_delta[k], "in_delta", sample ? batch : 1,
                           sample && in_delta_stride ? in_delta_stride[k] : 0);
    }
  });
}
