// BNNSBandPart.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/memory.h"
#include "src/ops/band_part/band_part.h"

int BNNSBandPart(const int num_lower, const int num_upper, const BNNSNDArrayDescriptor* input,
                 BNNSNDArrayDescriptor* output, const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSBandPart", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "band_part");
    const bnns::BandPartProblem problem = bnns::make_band_part_problem(num_lower, num_upper, input, output);
    bnns::band_part(problem, options.n_threads);
    if (timer.active()) timer.finish(problem.text(), 1);
  });
}
