// cc -std=c99 activation.c -o activation -lbnns && ./activation
// prints: y = 0 0 0 1 2
// prints: dx = 0 0 0 1 1
// prints: softmax = 0.5 0.5 0.5 0.5
// ReLU of five numbers, its gradient, and a softmax over rows.
#include "tensor.h"

int main(void) {
  float x[5] = {-2, -1, 0, 1, 2}, y[5], dy[5] = {1, 1, 1, 1, 1}, dx[5];
  BNNSLayerParametersActivation p;
  memset(&p, 0, sizeof p);
  p.i_desc = p.o_desc = vec(5, NULL);
  p.activation.function = BNNSActivationFunctionRectifiedLinear;
  BNNSFilter relu = BNNSFilterCreateLayerActivation(&p, NULL);
  BNNSNDArrayDescriptor up = vec(5, dy), down = vec(5, dx);
  int status = BNNSFilterApply(relu, x, y);
  status |= BNNSFilterApplyBackwardBatch(relu, 1, x, 5, &down, 5, y, 5, &up, 5, NULL, NULL);
  show("y", y, 5);
  show("dx", dx, 5);
  BNNSFilterDestroy(relu);

  float logits[4] = {0, 0, 1, 1}, p4[4];  // two rows of two: softmax runs along size[0]
  memset(&p, 0, sizeof p);
  p.i_desc = p.o_desc = matrix(2, 2, NULL);
  p.i_desc.data = logits;
  p.o_desc.data = p4;
  p.activation.function = BNNSActivationFunctionSoftmax;
  status |= BNNSDirectApplyActivationBatch(&p, NULL, 1, 4, 4);  // once, without a filter
  show("softmax", p4, 4);
  return status;
}
