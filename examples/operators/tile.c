// cc -std=c99 tile.c -o tile -lbnns && ./tile
// prints: y = 1 2 1 2 1 2
// prints: dx = 3 6
// A row three times, and the gradient: the sum of the copies.
#include "tensor.h"

int main(void) {
  float x[2] = {1, 2}, y[6], dx[2];
  BNNSNDArrayDescriptor in = vec(2, x), out = vec(6, y), down = vec(2, dx);
  int status = BNNSTile(&in, &out, NULL);
  show("y", y, 6);
  status |= BNNSTileBackward(&down, &out, NULL);  // y as the gradient: three times x
  show("dx", dx, 2);
  return status;
}
