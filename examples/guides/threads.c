// cc -std=c99 threads.c -o threads -lbnns && ./threads
// prints: 1 thread and all threads: the same bits
// The number of threads changes the time of a call, never its result.
#define _POSIX_C_SOURCE 199309L
#include <Accelerate/Accelerate.h>
#include <bnns/bnns_extensions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IN = 512, OUT = 512, BATCH = 256 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static BNNSNDArrayDescriptor vec(size_t n, float* p) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data = p;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

int main(void) {
  static float w[IN * OUT], x[BATCH * IN], one[BATCH * OUT], all[BATCH * OUT];
  for (int i = 0; i < IN * OUT; i++) w[i] = (float)(i % 17) * 0.01f;
  for (int i = 0; i < BATCH * IN; i++) x[i] = (float)(i % 13) * 0.1f;
  BNNSLayerParametersFullyConnected p;
  memset(&p, 0, sizeof p);
  p.i_desc = vec(IN, NULL);
  p.o_desc = vec(OUT, NULL);
  p.w_desc = vec(IN, w);
  p.w_desc.layout = BNNSDataLayoutRowMajorMatrix;
  p.w_desc.size[1] = OUT;
  BNNSFilter layer = BNNSFilterCreateLayerFullyConnected(&p, NULL);
  if (layer == NULL) return 1;

  int status = 0;
  for (int round = 0; round < 2; round++) {
    BNNSExtSetNumThreads(round == 0 ? 1 : 0);  // 0: as many as the process may use, or BNNS_NUM_THREADS
    float* y = round == 0 ? one : all;
    status |= BNNSFilterApplyBatch(layer, BATCH, x, IN, y, OUT);  // the first call also fills caches
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
      const double began = now();
      status |= BNNSFilterApplyBatch(layer, BATCH, x, IN, y, OUT);
      if (now() - began < best) best = now() - began;
    }
    fprintf(stderr, "%zu threads: %.3f ms, %.0f GFLOP/s\n", BNNSExtGetNumThreads(), 1e3 * best,
            2e-9 * IN * OUT * BATCH / best);
  }
  printf("1 thread and all threads: %s\n", memcmp(one, all, sizeof one) == 0 ? "the same bits" : "other bits");
  BNNSFilterDestroy(layer);
  return status;
}
