// The C entry points of losses.

#include "bnns/bnns.h"
#include "src/filter/nan_check.h"
#include "src/ops/loss/loss.h"

using namespace bnns;

BNNSFilter BNNSFilterCreateLayerLoss(const void* layer_params, const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerLoss", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "loss");
    return make_filter<LossFilter>(options, make_loss_problem(layer_params));
  });
}

int BNNSLossFilterApplyBatch(BNNSFilter handle, size_t batch, const void* in, size_t in_stride, const void* labels,
                             size_t labels_stride, const void* weights, size_t weights_size, void* out,
                             BNNSNDArrayDescriptor* in_delta, size_t in_delta_stride) noexcept {
  return guarded_status("BNNSLossFilterApplyBatch", [&] {
    const LossFilter& filter = from_handle<LossFilter>(handle, FilterKind::loss);
    const LossCall call{batch, in, in_stride, labels, labels_stride, weights, weights_size, in_delta, in_delta_stride};
    timed("apply", filter, batch, [&] { filter.forward(call, out); });
    if (notes_wanted()) note_loss(filter, call);
    if (!nan_check_wanted() || batch == 0) return;
    const LossProblem& p = filter.problem();
    Tensor values = vector_tensor(p.reduced() ? 1 : batch * p.terms(), out);
    values.type = p.out_type;
    check_written(filter, Note::forward_nan, "out", values, out);
    check_gradient(filter, in_delta, "in_delta", batch, in_delta_stride);
  });
}

int BNNSLossFilterApplyBackwardBatch(BNNSFilter handle, size_t batch, const void* in, size_t in_stride,
                                     BNNSNDArrayDescriptor* in_delta, size_t in_delta_stride, const void* labels,
                                     size_t labels_stride, const void* weights, size_t weights_size,
                                     const BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride) noexcept {
  return guarded_status("BNNSLossFilterApplyBackwardBatch", [&] {
    const LossFilter& filter = from_handle<LossFilter>(handle, FilterKind::loss);
    const LossCall call{batch, in, in_stride, labels, labels_stride, weights, weights_size, in_delta, in_delta_stride};
    timed("backward", filter, batch, [&] { filter.backward(call, out_delta, out_delta_stride); });
    if (notes_wanted()) note_loss(filter, call);
    if (nan_check_wanted()) check_gradient(filter, in_delta, "in_delta", batch, in_delta_stride);
  });
}
