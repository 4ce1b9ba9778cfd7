// What the machine can do, measured in the same run as everything else.
#pragma once

#include <cstddef>

namespace bnns::bench {

// f32 multiplications and additions per second of FMA on registers alone, the widest vectors the CPU has.
double fma_rate(size_t threads);
// Bytes per second (read and written) of a copy of 128 MB with non-temporal stores.
double copy_rate(size_t threads);

}  // namespace bnns::bench
