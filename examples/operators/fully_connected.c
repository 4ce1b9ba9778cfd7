// cc -std=c99 fully_connected.c -o fully_connected -lbnns && ./fully_connected
// prints: y = 6.5 14
// prints: dx = 41 52 63
// prints: dw = 1 1 1 10 10 10
// A layer of 3 inputs and 2 outputs, forward and its three gradients.
#include "tensor.h"

int main(void) {
  float w[6] = {1, 2, 3, 4, 5, 6}, b[2] = {0.5f, -1}, x[3] = {1, 1, 1}, y[2], dy[2] = {1, 10}, dx[3], dw[6], db[2];
  BNNSLayerParametersFullyConnected p;
  memset(&p, 0, sizeof p);
  p.i_desc = vec(3, NULL);
  p.o_desc = vec(2, NULL);
  p.w_desc = matrix(3, 2, w);  // columns = inputs, rows = outputs
  p.bias = vec(2, b);
  BNNSFilter layer = BNNSFilterCreateLayerFullyConnected(&p, NULL);
  int status = BNNSFilterApply(layer, x, y);
  BNNSNDArrayDescriptor up = vec(2, dy), down = vec(3, dx), dw_desc = matrix(3, 2, dw), db_desc = vec(2, db);
  status |= BNNSFilterApplyBackwardBatch(layer, 1, x, 3, &down, 3, y, 2, &up, 2, &dw_desc, &db_desc);
  show("y", y, 2);
  show("dx", dx, 3);
  show("dw", dw, 6);
  BNNSFilterDestroy(layer);
  return status;
}
