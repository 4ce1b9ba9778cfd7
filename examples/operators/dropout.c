// cc -std=c99 dropout.c -o dropout -lbnns && ./dropout
// prints: between 450 and 550 kept: yes, the gradient agrees: yes
// About half of many numbers become 0, the others double; the gradient takes the same decisions.
#include "tensor.h"

int main(void) {
  static float x[1000], y[1000], dy[1000], dx[1000];
  for (int i = 0; i < 1000; i++) x[i] = dy[i] = 1;
  BNNSLayerParametersDropout p;
  memset(&p, 0, sizeof p);
  p.i_desc = p.o_desc = vec(1000, NULL);
  p.rate = 0.5f;
  p.seed = 1;  // the same seed drops the same elements on every machine
  BNNSFilter layer = BNNSFilterCreateLayerDropout(&p, NULL);
  int status = BNNSFilterApply(layer, x, y);
  BNNSNDArrayDescriptor up = vec(1000, dy), down = vec(1000, dx);
  status |= BNNSFilterApplyBackwardBatch(layer, 1, x, 1000, &down, 1000, y, 1000, &up, 1000, NULL, NULL);
  int kept = 0, same = 1;
  for (int i = 0; i < 1000; i++) kept += y[i] == 2, same &= dx[i] == y[i];
  printf("between 450 and 550 kept: %s, the gradient agrees: %s\n", kept > 450 && kept < 550 ? "yes" : "no",
         same ? "yes" : "no");
  BNNSFilterDestroy(layer);
  return status;
}
