// The C entry points of the activation layer.

#include "bnns/bnns.h"
#include "src/filter/nan_check.h"
#include "src/ops/activation/activation_filter.h"

using bnns::ActivationFilter;
using bnns::fail_invalid;
using bnns::FilterKind;
using bnns::from_handle;
using bnns::guarded;
using bnns::guarded_status;
using bnns::make_activation_problem;
using bnns::make_filter;
using bnns::Options;
using bnns::read_options;

BNNSFilter BNNSFilterCreateLayerActivation(const BNNSLayerParametersActivation* layer_params,
                                           const BNNSFilterParameters* filter_params) noexcept {
  return guarded("BNNSFilterCreateLayerActivation", BNNSFilter{}, [&] {
    const Options options = read_options(filter_params, "activation");
    return make_filter<ActivationFilter>(options, make_activation_problem(layer_params));
  });
}

namespace {

BNNSNDArrayDescriptor vector_of(const BNNSVectorDescriptor& v) {
  BNNSNDArrayDescriptor d = {};
  d.layout = BNNSDataLayoutVector;
  d.size[0] = v.size;
  d.data_type = v.data_type;
  d.data_scale = v.data_scale;
  d.data_bias = v.data_bias;
  return d;
}

}  // namespace

BNNSFilter BNNSFilterCreateVectorActivationLayer(const BNNSVectorDescriptor* in_desc,
                                                 const BNNSVectorDescriptor* out_desc, const BNNSActivation* activation,
                                                 const BNNSFilterParameters* filter_params) noexcept {
  return guarded("BNNSFilterCreateVectorActivationLayer", BNNSFilter{}, [&] {
    const Options options = read_options(filter_params, "activation");
    if (!in_desc || !out_desc || !activation) {
      fail_invalid("activation: %s is NULL, expected a descriptor", !in_desc    ? "in_desc"
                                                                    : !out_desc ? "out_desc"
                                                                                : "activation");
    }
    const BNNSLayerParametersActivation layer = {vector_of(*in_desc), vector_of(*out_desc), *activation, 0};
    return make_filter<ActivationFilter>(options, make_activation_problem(&layer));
  });
}

int BNNSDirectApplyActivationBatch(const BNNSLayerParametersActivation* layer_params,
                                   const BNNSFilterParameters* filter_params, size_t batch_size, size_t in_stride,
                                   size_t out_stride) noexcept {
  return guarded_status("BNNSDirectApplyActivationBatch", [&] {
    const Options options = read_options(filter_params, "activation");
    ActivationFilter filter(options, make_activation_problem(layer_params));
    timed("direct", filter, batch_size, [&] {
      filter.forward(batch_size, layer_params->i_desc.data, in_stride, layer_params->o_desc.data, out_stride);
    });
    if (bnns::nan_check_wanted()) {
      bnns::check_written(filter.text(), "o_desc", *filter.result(), layer_params->o_desc.data, batch_size, out_stride);
    }
  });
}

BNNSNDArrayDescriptor BNNSGetPointer(BNNSFilter filter, BNNSPointerSpecifier target) noexcept {
  return guarded("BNNSGetPointer", BNNSNDArrayDescriptor{},
                 [&] { return from_handle<ActivationFilter>(filter, FilterKind::activation).pointer(target); });
}
