// cc -std=c99 fused.c -o fused -lbnns && ./fused
// prints: y = -1 1
// A fully connected layer and a batch normalization as one filter.
#include "tensor.h"

int main(void) {
  float w[2] = {1, 1}, x[4] = {1, 2, 3, 4}, y[2], gamma = 1, beta = 0;  // two samples of two numbers
  BNNSLayerParametersFullyConnected first;
  memset(&first, 0, sizeof first);
  first.i_desc = vec(2, NULL);
  first.o_desc = vec(1, NULL);
  first.w_desc = matrix(2, 1, w);
  BNNSLayerParametersNormalization second;
  memset(&second, 0, sizeof second);
  second.i_desc = second.o_desc = vec(1, NULL);
  second.gamma_desc = vec(1, &gamma);
  second.beta_desc = vec(1, &beta);
  const BNNSFilterType types[2] = {BNNSFullyConnected, BNNSBatchNorm};
  const void* layers[2] = {&first, &second};
  BNNSFilter filter = BNNSFilterCreateFusedLayer(2, types, layers, NULL);
  int status = BNNSFusedFilterApplyBatch(filter, 2, x, 2, y, 1, true);
  show("y", y, 2);  // 3 and 7 have mean 5 and deviation 2
  BNNSFilterDestroy(filter);
  return status;
}
