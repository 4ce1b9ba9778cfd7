// The CPU device's table, and how a command buffer runs an encode on each device.
#include "src/ops/mps_pooling/implementations.h"

#include "src/core/log.h"
#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/cpu/direct.h"
#include "src/ops/mps_pooling/cuda/cuda.h"

namespace bnns::mps {

const CpuImplementation kOnCpu[kCpuImplementations] = {
    {"mps_pooling/cpu/global", "one window, the whole plane of at most 16x16 pixels; f32 or f16, whole slices",
     accepts_global, run_global},
    {"mps_pooling/cpu/bordered", "as rows: f16, 3x3 stride 1, planes of at most 1024 pixels, 4 columns or more",
     accepts_direct<DirectForm::bordered>, run_direct<DirectForm::bordered>},
    {"mps_pooling/cpu/columns", "as rows: f32, 3x3 stride 1, planes of at most 1024 pixels; no gradients of averages",
     accepts_direct<DirectForm::columns>, run_direct<DirectForm::columns>},
    {"mps_pooling/cpu/rows",
     "as band, with AVX-512: 8 planes or more, windows that begin at most 1 pixel outside, gradients of whole planes",
     accepts_direct<DirectForm::rows>, run_direct<DirectForm::rows>},
    {"mps_pooling/cpu/band",
     "2x2 stride 2, 3x3 stride 1 or 2 of f32 or f16, whole slices; every window meets the image; L2 with Clamp inside "
     "it",
     accepts_band, run_band},
    {"mps_pooling/cpu/separable",
     "windows of at most 1024 taps on a side; sums without dilation, but not those of band's windows",
     accepts_separable, run_separable},
    {"mps_pooling/cpu/plain", "anything", accepts_any, run_plain},
};

namespace {

void encode_cpu(const void* encode) noexcept {
  const auto& e = *static_cast<const PoolEncode*>(encode);
  const CallTimer timer("encode");
  pool_cpu(e, 0);
  if (timer.active()) timer.finish(text_of(e), static_cast<size_t>(e.images));
}

}  // namespace

void pool_cpu(const PoolEncode& e, size_t threads) noexcept {
  choose(kOnCpu, e).run(e, threads);
}

#if BNNS_MPS_CUDA
namespace {

// A call that is timed is waited for.
int encode_cuda(const void* encode, void* stream) noexcept {
  const auto& e = *static_cast<const PoolEncode*>(encode);
  if (!verbose() && !recording()) return pool_cuda(e, stream);
  int error = cuda::synchronize(stream);
  const CallTimer timer("encode");
  if (error == 0) error = pool_cuda(e, stream);
  if (error == 0) error = cuda::synchronize(stream);
  timer.finish(text_of(e), static_cast<size_t>(e.images), nullptr, "cuda");
  return error;
}

}  // namespace

const Encode::Devices kPoolDevices = {encode_cpu, encode_cuda};
#else
const Encode::Devices kPoolDevices = {encode_cpu, nullptr};
#endif

}  // namespace bnns::mps
