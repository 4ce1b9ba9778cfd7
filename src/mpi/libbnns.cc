// The parts of src/core that a process has once, from libbnns (src/core/internal.h): last error, log and instruction
// set. This file is in libbnns_mpi only; tests have libbnns's objects.
#include "src/core/error.h"
#include "src/core/internal.h"
#include "src/core/isa.h"

namespace bnns {

std::atomic<int> detail::chosen_isa{-1};  // stays so: isa() asks libbnns every time

int detail::detect_isa() noexcept {
  return bnns_internal_isa();
}

void report(const char* function, const Error& error) noexcept {
  bnns_internal_report(function, static_cast<int>(error.kind()), error.what());
}

void report_out_of_memory(const char* function) noexcept {
  bnns_internal_report(function, static_cast<int>(ErrorKind::out_of_memory), "out of memory");
}

}  // namespace bnns
