// cc -std=c99 band_part.c -o band_part -lbnns && ./band_part
// prints: y = 1 2 3 0 5 6 0 0 9
// Keeps the diagonal and what is above it.
#include "tensor.h"

int main(void) {
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[9];
  BNNSNDArrayDescriptor in = matrix(3, 3, x), out = matrix(3, 3, y);
  int status = BNNSBandPart(0, -1, &in, &out, NULL);  // 0 diagonals below, all above
  show("y", y, 9);
  return status;
}
