// cc -std=c99 reduction.c -o reduction -lbnns && ./reduction
// prints: sums of rows = 6 15
// prints: max = 6
// prints: at = 5
// The sums of the rows of a matrix, the largest of all, and where it is.
#include "tensor.h"

int main(void) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[2];
  BNNSLayerParametersReduction p;
  memset(&p, 0, sizeof p);
  p.i_desc = matrix(3, 2, x);
  p.o_desc = matrix(1, 2, y);  // an axis of 1 is reduced
  p.reduce_func = BNNSReduceFunctionSum;
  int status = BNNSDirectApplyReduction(&p, NULL);
  show("sums of rows", y, 2);
  p.o_desc = matrix(1, 1, y);
  p.reduce_func = BNNSReduceFunctionMax;
  status |= BNNSDirectApplyReduction(&p, NULL);
  show("max", y, 1);
  p.reduce_func = BNNSReduceFunctionArgMax;  // size[0] counts fastest
  status |= BNNSDirectApplyReduction(&p, NULL);
  show("at", y, 1);
  return status;
}
