// BNNSFilterCreateLayerReduction and BNNSDirectApplyReduction.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/filter/nan_check.h"
#include "src/ops/reduction/reduction.h"

BNNSFilter BNNSFilterCreateLayerReduction(const BNNSLayerParametersReduction* layer_params,
                                          const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded("BNNSFilterCreateLayerReduction", BNNSFilter{}, [&] {
    const bnns::Options options = bnns::read_options(filter_params, "reduction");
    return bnns::make_filter<bnns::ReductionFilter>(options, bnns::make_reduction_problem(layer_params));
  });
}

int BNNSDirectApplyReduction(const BNNSLayerParametersReduction* layer_params,
                             const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSDirectApplyReduction", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "reduction");
    const bnns::ReductionProblem p = bnns::make_reduction_problem(layer_params);
    bnns::check_data(p.x.data, p.x.type, "reduction", "i_desc", ".data");
    bnns::check_data(p.y.data, p.y.type, "reduction", "o_desc", ".data");
    bnns::check_disjoint(p.y.data, p.y.span_bytes(), "o_desc", p.x.data, p.x.span_bytes(), "i_desc", "reduction");
    if (p.weighted()) {
      bnns::check_disjoint(p.y.data, p.y.span_bytes(), "o_desc", p.w.data, p.w.span_bytes(), "w_desc", "reduction");
    }
    bnns::ScratchShelf shelf(options);
    bnns::reduce_batch(p, 1, p.x.span, p.y.span, options.n_threads, shelf);
    if (timer.active()) timer.finish(p.text(), 1);
    if (bnns::nan_check_wanted()) bnns::check_written(p.text(), "o_desc", p.y, p.y.data);
  });
}
