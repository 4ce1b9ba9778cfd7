// cc -std=c99 norms.c -o norms -lbnns && ./norms
// prints: norm = 5
// prints: by norm = 0.6 0.8
// prints: by value = 3 3.5
// The norm of a vector, and clipping to it.
#include "tensor.h"

int main(void) {
  float x[2] = {3, 4}, norm, y[2];
  BNNSNDArrayDescriptor source = vec(2, x), one = vec(1, &norm), target = vec(2, y);
  int status = BNNSComputeNorm(&one, &source, BNNSL2Norm, 0);
  printf("norm = %g\n", (double)norm);
  status |= BNNSClipByNorm(&target, &source, 1, 0);
  printf("by norm = %.1f %.1f\n", (double)y[0], (double)y[1]);
  status |= BNNSClipByValue(&target, &source, 0, 3.5f);
  show("by value", y, 2);
  return status;
}
