// What benchmarks share: a clock, the fastest of many calls, medians, and silence before each turn.
#pragma once

#include <time.h>

#include <algorithm>
#include <vector>

namespace bnns::bench {

inline double now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Seconds of the fastest call of `body`, which is called in groups of `calls`; runs for at least `least` seconds.
template <class Body>
double fastest(double least, Body&& body, int calls = 1) {
  double best = 1e9, total = 0;
  body();
  for (int i = 0; total < least || i < 5; ++i) {
    const double start = now();
    for (int k = 0; k < calls; ++k) body();
    const double seconds = now() - start;
    best = std::min(best, seconds / calls);
    total += seconds;
  }
  return best;
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The workers of the last contender spin for a while (OpenBLAS and libgomp for many milliseconds) and would take half
// of the machine from the next one: wait until this process uses no more CPU.
inline void settle() {
  const auto cpu_seconds = [] { return now(CLOCK_PROCESS_CPUTIME_ID); };
  const timespec pause{0, 10000000};  // more than two ticks: the clock of a running thread moves at ticks only
  for (int tries = 0; tries < 40; ++tries) {
    const double before = cpu_seconds();
    nanosleep(&pause, nullptr);
    if (cpu_seconds() - before < 1e-3) return;
  }
}

}  // namespace bnns::bench
