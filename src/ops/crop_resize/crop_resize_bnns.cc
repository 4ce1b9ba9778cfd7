// BNNSCropResize and BNNSCropResizeBackward.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/crop_resize/crop_resize.h"

int BNNSCropResize(const BNNSLayerParametersCropResize* layer_params, const BNNSNDArrayDescriptor* input,
                   const BNNSNDArrayDescriptor* roi, BNNSNDArrayDescriptor* output,
                   const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSCropResize", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "crop_resize");
    const bnns::CropResizeProblem problem = bnns::make_crop_resize_problem(layer_params, input, roi, output, false);
    bnns::crop_resize_forward(problem, options);
    if (timer.active()) timer.finish(problem.text(), 1);
  });
}

int BNNSCropResizeBackward(const BNNSLayerParametersCropResize* layer_params, BNNSNDArrayDescriptor* in_delta,
                           const BNNSNDArrayDescriptor* roi, const BNNSNDArrayDescriptor* out_delta,
                           const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSCropResizeBackward", [&] {
    const bnns::CallTimer timer("backward");
    const bnns::Options options = bnns::read_options(filter_params, "crop_resize_backward");
    const bnns::CropResizeProblem problem =
        bnns::make_crop_resize_problem(layer_params, in_delta, roi, out_delta, true);
    bnns::crop_resize_backward(problem, options);
    if (timer.active()) timer.finish(problem.text(), 1);
  });
}
