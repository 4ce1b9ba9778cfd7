// The C entry points of multi-head attention.

#include "bnns/bnns.h"
#include "src/filter/nan_check.h"
#include "src/ops/attention/attention.h"

using namespace bnns;

BNNSFilter BNNSFilterCreateLayerMultiheadAttention(const BNNSLayerParametersMultiheadAttention* layer,
                                                   const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerMultiheadAttention", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "attention");
    return make_filter<AttentionFilter>(options, make_attention_problem(layer));
  });
}

int BNNSApplyMultiheadAttention(BNNSFilter handle, size_t batch, const void* query, size_t query_stride,
                                const void* key, size_t key_stride, const BNNSNDArrayDescriptor* key_mask,
                                size_t key_mask_stride, const void* value, size_t value_stride, void* output,
                                size_t output_stride, const BNNSNDArrayDescriptor* add_to_attention, size_t* cache_size,
                                void* cache, size_t* workspace_size, void* workspace) noexcept {
  return guarded_status("BNNSApplyMultiheadAttention", [&] {
    AttentionFilter& filter = from_handle<AttentionFilter>(handle, AttentionFilter::kKind);
    timed("forward", filter, batch, [&] {
      filter.apply({batch, query, key, value, query_stride, key_stride, value_stride, key_mask, key_mask_stride,
                    add_to_attention},
                   output, output_stride, {cache_size, cache}, {workspace_size, workspace});
    });
    const bool is_question = (cache_size && !cache) || (workspace_size && !workspace);
    if (nan_check_wanted() && !is_question) check_forward_result(filter, batch, output, output_stride);
  });
}

int BNNSApplyMultiheadAttentionBackward(BNNSFilter handle, size_t batch, const void* query, size_t query_stride,
                                        BNNSMHAProjectionParameters* query_delta, const void* key, size_t key_stride,
                                        const BNNSNDArrayDescriptor* key_mask, size_t key_mask_stride,
                                        BNNSMHAProjectionParameters* key_delta, const void* value, size_t value_stride,
                                        BNNSMHAProjectionParameters* value_delta,
                                        const BNNSNDArrayDescriptor* add_to_attention,
                                        BNNSNDArrayDescriptor* key_row_delta, BNNSNDArrayDescriptor* value_row_delta,
                                        const void* /*output*/, size_t /*output_stride*/,
                                        BNNSMHAProjectionParameters* output_delta, size_t cache_size, void* cache,
                                        size_t* workspace_size, void* workspace) noexcept {
  return guarded_status("BNNSApplyMultiheadAttentionBackward", [&] {
    AttentionFilter& filter = from_handle<AttentionFilter>(handle, AttentionFilter::kKind);
    timed("backward", filter, batch, [&] {
      filter.apply_backward({batch, query, key, value, query_stride, key_stride, value_stride, key_mask,
                             key_mask_stride, add_to_attention},
                            {query_delta, key_delta, value_delta, output_delta, key_row_delta, value_row_delta},
                            {&cache_size, cache}, {workspace_size, workspace});
    });
    if (!nan_check_wanted() || (workspace_size && !workspace)) return;
    const BNNSMHAProjectionParameters* deltas[] = {query_delta, key_delta, value_delta, output_delta};
    for (const BNNSMHAProjectionParameters* delta : deltas) {
      if (!delta) continue;
      check_gradient(filter, &delta->weights, "weights");
      check_gradient(filter, &delta->bias, "bias");
    }
  });
}
