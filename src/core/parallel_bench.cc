// What a parallel loop costs before anything is computed: `threads` empty tasks, with workers that are awake (loop
// after loop) and that sleep (a loop after a pause). Beside it OpenMP's, which is oneDNN's and PyTorch's pool.
//   parallel_bench [threads ...]        2, 4, 8, 16 unless told
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/timing.h"
#include "src/core/parallel.h"

namespace {

using namespace bnns;

// Medians: the fastest of many would be a loop whose workers came too late to matter.
template <class Loop>
double awake(Loop&& loop) {
  std::vector<double> times;
  for (int round = 0; round < 50; ++round) {
    const double start = bench::now();
    for (int i = 0; i < 200; ++i) loop();
    times.push_back((bench::now() - start) / 200);
  }
  return 1e6 * bench::median(times);
}

template <class Loop>
double asleep(Loop&& loop) {
  std::vector<double> times;
  const timespec pause{0, 3000000};
  for (int round = 0; round < 100; ++round) {
    nanosleep(&pause, nullptr);
    const double start = bench::now();
    loop();
    times.push_back(bench::now() - start);
  }
  return 1e6 * bench::median(times);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<size_t> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::strtoul(argv[i], nullptr, 10));
  if (counts.empty()) counts = {2, 4, 8, 16};
  std::printf("%8s %12s %12s %14s %14s   us, medians\n", "threads", "ours awake", "asleep", "OpenMP awake", "asleep");
  for (const size_t threads : counts) {
    volatile size_t sink[256] = {};
    const auto ours = [&] { parallel_for(threads, threads, [&](size_t i, size_t) { sink[i] = i; }); };
    std::printf("%8zu %12.2f %12.2f", threads, awake(ours), asleep(ours));
#ifdef _OPENMP
    const auto openmp = [&] {
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(threads))
      for (size_t i = 0; i < threads; ++i) sink[i] = i;
    };
    bench::settle();
    std::printf(" %14.2f %14.2f", awake(openmp), asleep(openmp));
    bench::settle();
#endif
    std::printf("\n");
  }
  return 0;
}
