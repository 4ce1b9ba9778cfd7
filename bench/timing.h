// What every benchmark that meets a peer needs: a clock, medians, and silence before each turn.
#pragma once

#include <time.h>

#include <algorithm>
#include <vector>

namespace bnns::bench {

inline double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The workers of the last contender spin for a while (OpenBLAS and libgomp for many milliseconds) and would take half
// of the machine from the next one: wait until this process uses no more CPU.
inline void settle() {
  const auto cpu_seconds = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const timespec pause{0, 10000000};  // more than two ticks: the clock of a running thread moves at ticks only
  for (int tries = 0; tries < 40; ++tries) {
    const double before = cpu_seconds();
    nanosleep(&pause, nullptr);
    if (cpu_seconds() - before < 1e-3) return;
  }
}

}  // namespace bnns::bench
