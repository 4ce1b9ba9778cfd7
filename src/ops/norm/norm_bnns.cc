// BNNSClipByValue, BNNSClipByNorm, BNNSClipByGlobalNorm, BNNSComputeNorm, BNNSComputeNormBackward.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/norm/norm.h"

namespace {

// The verbose line names the shape; it is only put together when somebody listens, after the call was accepted.
void finish(const bnns::CallTimer& timer, const char* name, const BNNSNDArrayDescriptor* x) {
  if (timer.active()) timer.finish(std::string(name) + " " + bnns::resolve(*x, name, "src").text(), 1);
}

}  // namespace

int BNNSClipByValue(BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, float min_val,
                    float max_val) noexcept {
  return bnns::guarded_status("BNNSClipByValue", [&] {
    const bnns::CallTimer timer("apply");
    bnns::clip_by_value(dest, src, min_val, max_val);
    finish(timer, "clip_by_value", src);
  });
}

int BNNSClipByNorm(BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, float max_norm,
                   uint32_t axis_flags) noexcept {
  return bnns::guarded_status("BNNSClipByNorm", [&] {
    const bnns::CallTimer timer("apply");
    bnns::clip_by_norm(dest, src, max_norm, axis_flags);
    finish(timer, "clip_by_norm", src);
  });
}

int BNNSClipByGlobalNorm(BNNSNDArrayDescriptor** dest, const BNNSNDArrayDescriptor** src, size_t count, float max_norm,
                         float use_norm) noexcept {
  return bnns::guarded_status("BNNSClipByGlobalNorm", [&] {
    const bnns::CallTimer timer("apply");
    bnns::clip_by_global_norm(dest, src, count, max_norm, use_norm);
    if (timer.active()) timer.finish("clip_by_global_norm tensors" + std::to_string(count), 1);
  });
}

int BNNSComputeNorm(BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, BNNSNormType norm_type,
                    uint32_t axis_flags) noexcept {
  return bnns::guarded_status("BNNSComputeNorm", [&] {
    const bnns::CallTimer timer("apply");
    bnns::compute_norm(dest, src, norm_type, axis_flags);
    finish(timer, "compute_norm", src);
  });
}

int BNNSComputeNormBackward(const void* in, BNNSNDArrayDescriptor* in_delta, const void* out,
                            const BNNSNDArrayDescriptor* out_delta, BNNSNormType norm_type,
                            uint32_t axis_flags) noexcept {
  return bnns::guarded_status("BNNSComputeNormBackward", [&] {
    const bnns::CallTimer timer("backward");
    bnns::compute_norm_backward(in, in_delta, out, out_delta, norm_type, axis_flags);
    finish(timer, "compute_norm_backward", in_delta);
  });
}
