// cc -std=c99 padding.c -o padding -lbnns && ./padding
// prints: y = 2 1 2 3 2
// Three numbers, reflected at both ends.
#include "tensor.h"

int main(void) {
  float x[3] = {1, 2, 3}, y[5];
  BNNSLayerParametersPadding p;
  memset(&p, 0, sizeof p);
  p.i_desc = vec(3, NULL);
  p.o_desc = vec(5, NULL);
  p.padding_size[0][0] = p.padding_size[0][1] = 1;  // axis 0: before, after
  p.padding_mode = BNNSPaddingModeReflect;
  BNNSFilter filter = BNNSFilterCreateLayerPadding(&p, NULL);
  int status = BNNSFilterApply(filter, x, y);
  show("y", y, 5);
  BNNSFilterDestroy(filter);
  return status;
}
