// The C entry points of pooling.

#include <cstring>

#include "bnns/bnns.h"
#include "src/filter/nan_check.h"
#include "src/ops/pooling/pooling.h"
#include "src/tensor/legacy.h"

using namespace bnns;

BNNSFilter BNNSFilterCreateLayerPooling(const BNNSLayerParametersPooling* layer,
                                        const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerPooling", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "pooling");
    return make_filter<PoolingFilter>(options, make_pooling_layer(layer));
  });
}

namespace {

int apply(const char* function, BNNSFilter handle, size_t batch, const void* in, size_t in_stride, void* out,
          size_t out_stride, const PoolingIndices& indices) noexcept {
  return guarded_status(function, [&] {
    auto& filter = from_handle<PoolingFilter>(handle, PoolingFilter::kKind);
    timed("apply", filter, batch, [&] { filter.forward(batch, in, in_stride, out, out_stride, indices); });
    if (nan_check_wanted()) check_forward_result(filter, batch, out, out_stride);
  });
}

int apply_backward(const char* function, BNNSFilter handle, const BackwardCall& call,
                   const PoolingIndices& indices) noexcept {
  return guarded_status(function, [&] {
    auto& filter = from_handle<PoolingFilter>(handle, PoolingFilter::kKind);
    timed("backward", filter, call.batch, [&] { filter.backward(call, indices); });
    if (nan_check_wanted()) check_gradients(filter, call);
  });
}

}  // namespace

int BNNSPoolingFilterApplyBatch(BNNSFilter filter, size_t batch, const void* in, size_t in_stride, void* out,
                                size_t out_stride, size_t* indices, size_t idx_stride) noexcept {
  static_assert(sizeof(size_t) == 8, "size_t indices are read as UInt64");
  return apply("BNNSPoolingFilterApplyBatch", filter, batch, in, in_stride, out, out_stride,
               {indices, BNNSDataTypeUInt64, idx_stride});
}

int BNNSPoolingFilterApplyBatchEx(BNNSFilter filter, size_t batch, const void* in, size_t in_stride, void* out,
                                  size_t out_stride, const BNNSDataType type, void* indices,
                                  size_t idx_stride) noexcept {
  return apply("BNNSPoolingFilterApplyBatchEx", filter, batch, in, in_stride, out, out_stride,
               {indices, type, idx_stride});
}

int BNNSPoolingFilterApplyBackwardBatch(BNNSFilter filter, size_t batch, const void* in, size_t in_stride,
                                        BNNSNDArrayDescriptor* in_delta, size_t in_delta_stride, const void* out,
                                        size_t out_stride, BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride,
                                        BNNSNDArrayDescriptor* bias_delta, const size_t* indices,
                                        size_t idx_stride) noexcept {
  return apply_backward("BNNSPoolingFilterApplyBackwardBatch", filter,
                        {batch, in, in_stride, in_delta, in_delta_stride, out, out_stride, out_delta, out_delta_stride,
                         nullptr, bias_delta},
                        {const_cast<size_t*>(indices), BNNSDataTypeUInt64, idx_stride});
}

int BNNSPoolingFilterApplyBackwardBatchEx(BNNSFilter filter, size_t batch, const void* in, size_t in_stride,
                                          BNNSNDArrayDescriptor* in_delta, size_t in_delta_stride, const void* out,
                                          size_t out_stride, BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride,
                                          BNNSNDArrayDescriptor* bias_delta, const BNNSDataType type,
                                          const void* indices, size_t idx_stride) noexcept {
  return apply_backward("BNNSPoolingFilterApplyBackwardBatchEx", filter,
                        {batch, in, in_stride, in_delta, in_delta_stride, out, out_stride, out_delta, out_delta_stride,
                         nullptr, bias_delta},
                        {const_cast<void*>(indices), type, idx_stride});
}

// The constructor of 2016, in terms of today's.
BNNSFilter BNNSFilterCreatePoolingLayer(const BNNSImageStackDescriptor* in_desc,
                                        const BNNSImageStackDescriptor* out_desc, const BNNSPoolingLayerParameters* old,
                                        const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreatePoolingLayer", BNNSFilter{}, [&] {
    if (!in_desc || !out_desc || !old) {
      fail_invalid("pooling: in_desc, out_desc or layer_params is NULL, expected all three");
    }
    if (old->in_channels != in_desc->channels || old->out_channels != out_desc->channels) {
      fail_invalid("pooling: layer_params has %zu to %zu channels, expected %zu to %zu as in in_desc and out_desc",
                   old->in_channels, old->out_channels, in_desc->channels, out_desc->channels);
    }
    BNNSLayerParametersPooling layer;
    std::memset(&layer, 0, sizeof layer);
    layer.i_desc = from_image_stack(*in_desc);
    layer.o_desc = from_image_stack(*out_desc);
    layer.bias = from_bias(old->bias, old->out_channels);
    layer.activation = old->activation;
    layer.pooling_function = old->pooling_function;
    layer.k_width = old->k_width;
    layer.k_height = old->k_height;
    layer.x_stride = old->x_stride;
    layer.y_stride = old->y_stride;
    layer.x_padding = old->x_padding;
    layer.y_padding = old->y_padding;
    const Options options = read_options(parameters, "pooling");
    return make_filter<PoolingFilter>(options, make_pooling_layer(&layer));
  });
}
