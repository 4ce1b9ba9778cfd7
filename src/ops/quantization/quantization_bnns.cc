// BNNSDirectApplyQuantizer. The API has no call that makes a quantization filter: the layer exists as this direct call
// and as the second stage of fused filters.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/quantization/quantization.h"

using namespace bnns;

int BNNSDirectApplyQuantizer(const BNNSLayerParametersQuantization* layer, const BNNSFilterParameters* parameters,
                             size_t batch, size_t in_stride, size_t out_stride) noexcept {
  return guarded_status("BNNSDirectApplyQuantizer", [&] {
    const CallTimer timer("direct");
    Options options = read_options(parameters, "quantization");
    options.use_client_pointers = true;  // one call: a copy of scale and bias would serve nobody
    const QuantizationProblem problem = make_quantization_problem(layer);
    quantize_batch(problem, QuantizationParameters(problem, options), batch, layer->i_desc.data, in_stride,
                   layer->o_desc.data, out_stride, options.n_threads);
    if (timer.active()) timer.finish(problem.text(), batch);
  });
}
