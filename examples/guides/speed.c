// cc -std=c99 speed.c -o speed -lbnns && ./speed
// prints: convolution 3x3, 64 channels of 56x56, batch 8: forward 1.85 GFLOP
// Measures one layer and says which algorithm ran: how to find out whether a layer is slow, and why.
#define _POSIX_C_SOURCE 199309L
#include <Accelerate/Accelerate.h>
#include <bnns/bnns_extensions.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { C = 64, W = 56, H = 56, K = 3, BATCH = 8, ROUNDS = 7 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static int by_value(const void* a, const void* b) {
  return *(const double*)a < *(const double*)b ? -1 : 1;
}
static BNNSNDArrayDescriptor image(size_t w, size_t h, size_t c) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutImageCHW;
  d.size[0] = w;
  d.size[1] = h;
  d.size[2] = c;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

int main(void) {
  float* x = calloc((size_t)BATCH * C * H * W, sizeof *x);
  float* y = calloc((size_t)BATCH * C * H * W, sizeof *y);
  float* w = calloc((size_t)C * C * K * K, sizeof *w);
  if (!x || !y || !w) return 1;
  for (int i = 0; i < BATCH * C * H * W; i++) x[i] = (float)(i % 7) - 3;  // not zeros: memory that was never written
  for (int i = 0; i < C * C * K * K; i++) w[i] = (float)(i % 5) - 2;      // is one page, which is too good to be true
  BNNSLayerParametersConvolution p;
  memset(&p, 0, sizeof p);
  p.i_desc = image(W, H, C);
  p.o_desc = image(W, H, C);
  p.w_desc = image(K, K, C);
  p.w_desc.layout = BNNSDataLayoutConvolutionWeightsOIHW;
  p.w_desc.size[3] = C;
  p.w_desc.data = w;
  p.x_stride = p.y_stride = p.x_dilation_stride = p.y_dilation_stride = p.groups = 1;
  p.x_padding = p.y_padding = 1;
  BNNSFilter layer = BNNSFilterCreateLayerConvolution(&p, NULL);
  if (layer == NULL) return 1;

  const double work = 2.0 * BATCH * C * C * K * K * H * W;
  printf("convolution 3x3, 64 channels of 56x56, batch 8: forward %.2f GFLOP\n", 1e-9 * work);
  double seconds[ROUNDS];
  int status = BNNSFilterApplyBatch(layer, BATCH, x, C * H * W, y, C * H * W);  // the first call is not measured
  for (int i = 0; i < ROUNDS; i++) {
    const double began = now();
    status |= BNNSFilterApplyBatch(layer, BATCH, x, C * H * W, y, C * H * W);
    seconds[i] = now() - began;
  }
  qsort(seconds, ROUNDS, sizeof *seconds, by_value);  // the median: others use the machine too
  const char* algorithm = BNNSExtImplementation(layer, BNNSExtPassForward, BATCH);
  fprintf(stderr, "%.2f ms, %.0f GFLOP/s by %s, %s, %zu threads\n", 1e3 * seconds[ROUNDS / 2],
          1e-9 * work / seconds[ROUNDS / 2], algorithm, BNNSExtGetISA(), BNNSExtGetNumThreads());
  BNNSFilterDestroy(layer);
  free(x);
  free(y);
  free(w);
  return status;
}
