// cc -std=c99 permute.c -o permute -lbnns && ./permute
// prints: y = 1 4 2 5 3 6
// A matrix of 2 rows becomes one of 3: axes change places.
#include "tensor.h"

int main(void) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
  BNNSLayerParametersPermute p;
  memset(&p, 0, sizeof p);
  p.i_desc = matrix(3, 2, NULL);
  p.o_desc = matrix(2, 3, NULL);
  p.permutation[0] = 1;  // size[0] of the output is size[1] of the input
  p.permutation[1] = 0;
  BNNSFilter filter = BNNSFilterCreateLayerPermute(&p, NULL);
  int status = BNNSFilterApply(filter, x, y);
  show("y", y, 6);
  BNNSFilterDestroy(filter);
  return status;
}
