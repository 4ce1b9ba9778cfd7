// cc -std=c99 resize.c -o resize -lbnns && ./resize
// prints: y = 0 1 3 4
// Two pixels become four, by linear interpolation between pixel centres.
#include "tensor.h"

int main(void) {
  float x[2] = {0, 4}, y[4];
  BNNSLayerParametersResize p;
  memset(&p, 0, sizeof p);
  p.method = BNNSInterpolationMethodLinear;
  p.i_desc = image(2, 1, 1, NULL);
  p.o_desc = image(4, 1, 1, NULL);
  BNNSFilter filter = BNNSFilterCreateLayerResize(&p, NULL);
  int status = BNNSFilterApply(filter, x, y);
  show("y", y, 4);
  BNNSFilterDestroy(filter);
  return status;
}
