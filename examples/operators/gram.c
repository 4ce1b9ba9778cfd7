// cc -std=c99 gram.c -o gram -lbnns && ./gram
// prints: G = 5 11 11 25
// Products of every two channels of an image.
#include "tensor.h"

int main(void) {
  float x[4] = {1, 2, 3, 4}, g[4];  // two channels of two pixels
  BNNSLayerParametersGram p;
  memset(&p, 0, sizeof p);
  p.alpha = 1;
  p.i_desc = image(2, 1, 2, NULL);
  p.o_desc = tensor(BNNSDataLayout2DLastMajor, NULL, 2, 2, 0, 0);
  BNNSFilter filter = BNNSFilterCreateLayerGram(&p, NULL);
  int status = BNNSFilterApply(filter, x, g);
  show("G", g, 4);
  BNNSFilterDestroy(filter);
  return status;
}
