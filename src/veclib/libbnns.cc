// The instruction set is libbnns's (src/core/internal.h), so that BNNS_MAX_ISA and BNNSExtSetMaxISA count here too. In
// libAccelerate only: tests have libbnns's objects.
#include "src/core/internal.h"
#include "src/core/isa.h"

namespace bnns {

std::atomic<int> detail::chosen_isa{-1};  // stays so: isa() asks libbnns every time

int detail::detect_isa() noexcept {
  return bnns_internal_isa();
}

}  // namespace bnns
