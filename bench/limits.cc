#include "bench/limits.h"

#include <algorithm>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/row.h"
#include "bench/timing.h"
#include "src/core/parallel.h"

namespace bnns::bench {
namespace {

constexpr size_t kSteps = 200'000, kChains = 12;  // twelve sums hide the latency of an FMA on every CPU we know

#if defined(__x86_64__)
// In assembler, since compilers like to keep an array of vectors in memory.
#define BENCH_FMA(v, n) "vfmadd213ps %%" v "14, %%" v "13, %%" v n "\n"
#define BENCH_FMA_LOOP(v)                                                                                              \
  size_t steps = kSteps;                                                                                               \
  asm volatile("vxorps %%xmm13, %%xmm13, %%xmm13\n vxorps %%xmm14, %%xmm14, %%xmm14\n1:\n" BENCH_FMA(v, "0")           \
                   BENCH_FMA(v, "1") BENCH_FMA(v, "2") BENCH_FMA(v, "3") BENCH_FMA(v, "4") BENCH_FMA(v, "5")           \
                       BENCH_FMA(v, "6") BENCH_FMA(v, "7") BENCH_FMA(v, "8") BENCH_FMA(v, "9") BENCH_FMA(v, "10")      \
                           BENCH_FMA(v, "11") "dec %0\n jnz 1b\n vzeroupper\n"                                         \
               : "+r"(steps)::"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                 "xmm11", "xmm13", "xmm14", "cc")
void run_fma_512() {
  BENCH_FMA_LOOP("zmm");
}
void run_fma_256() {
  BENCH_FMA_LOOP("ymm");
}
#endif

// The median over at least `least` seconds: what our own figures are.
template <class Body>
double usual(double least, Body&& body) {
  std::vector<double> times;
  body();
  for (double total = 0; total < least || times.size() < 5; total += times.back()) {
    const double start = now();
    body();
    times.push_back(now() - start);
  }
  return median(times);
}

}  // namespace

double fma_rate(size_t threads) {
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512f");
  const double seconds = usual(
      0.03, [&] { parallel_for(threads, threads, [&](size_t, size_t) { wide ? run_fma_512() : run_fma_256(); }); });
  return 2.0 * double(kSteps * kChains * threads * (wide ? 16 : 8)) / seconds;
#else
  return 0 * double(threads);
#endif
}

double copy_rate(size_t threads) {
  constexpr size_t kFloats = 32u << 20, kPiece = 64 * 1024;
  // Data, as the layers have it: a Zen 4 copies zeros 5 to 20 % faster.
  static const Array from = [] {
    Array a({kFloats}, Type::f32);
    for (size_t i = 0; i < kFloats; ++i) a.as<float>()[i] = static_cast<float>(i % 8191);
    return a;
  }();
  static Array to({kFloats}, Type::f32);
  const double seconds = usual(0.03, [&] {
    parallel_for(kFloats / kPiece, threads, [&](size_t task, size_t) {
      const float* x = from.as<float>() + task * kPiece;
      float* y = to.as<float>() + task * kPiece;
#if defined(__x86_64__)
      for (size_t i = 0; i < kPiece; i += 4) _mm_stream_ps(y + i, _mm_loadu_ps(x + i));
      _mm_sfence();
#else
      std::memcpy(y, x, kPiece * sizeof(float));
#endif
    });
  });
  return 2.0 * kFloats * sizeof(float) / seconds;
}

}  // namespace bnns::bench
