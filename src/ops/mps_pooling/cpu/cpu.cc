// The MPS pooling family on the CPU: which kernels run an encode.

#include "src/ops/mps_pooling/cpu/cpu.h"

namespace bnns::mps {

void pool_forward_cpu(const PoolForward& e, size_t threads) noexcept {
  const PoolBackward b = as_backward(e);
  if (pool_global(b, false, threads) || pool_direct(b, false, threads) || pool_band(b, false, threads)) return;
  pool_forward_plain(e, threads);
}

void pool_backward_cpu(const PoolBackward& e, size_t threads) noexcept {
  if (pool_global(e, true, threads) || pool_direct(e, true, threads) || pool_band(e, true, threads)) return;
  pool_backward_plain(e, threads);
}

}  // namespace bnns::mps
