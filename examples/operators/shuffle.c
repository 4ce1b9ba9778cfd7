// cc -std=c99 shuffle.c -o shuffle -lbnns && ./shuffle
// prints: y = 1 2 3 4
// Four channels of one pixel become one channel of four.
#include "tensor.h"

int main(void) {
  float x[4] = {1, 2, 3, 4}, y[4];
  BNNSNDArrayDescriptor in = tensor(BNNSDataLayout4DFirstMajor, x, 1, 4, 1, 1);  // N, C, H, W: as NumPy writes it
  BNNSNDArrayDescriptor out = tensor(BNNSDataLayout4DFirstMajor, y, 1, 1, 2, 2);
  int status = BNNSShuffle(BNNSShuffleTypePixelShuffleNCHW, &in, &out, NULL);
  show("y", y, 4);
  return status;
}
