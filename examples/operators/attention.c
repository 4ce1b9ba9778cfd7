// cc -std=c99 attention.c -o attention -lbnns && ./attention
// prints: y = 1.01 2.01
// One head, no projections to speak of (identity matrices): a query takes the values of the keys it fits.
#include "tensor.h"

int main(void) {
  float one[4] = {1, 0, 0, 1}, q[2] = {8, 0}, k[4] = {1, 0, 0, 1}, v[4] = {1, 2, 3, 4}, y[2];
  BNNSLayerParametersMultiheadAttention p;
  memset(&p, 0, sizeof p);
  p.query.target_desc = matrix(2, 1, NULL);  // 1 query of 2 numbers
  p.key.target_desc = matrix(2, 2, NULL);    // 2 keys
  p.value.target_desc = matrix(2, 2, NULL);  // 2 values
  p.output.target_desc = matrix(2, 1, NULL);
  p.query.weights = p.key.weights = p.value.weights =
      tensor(BNNSDataLayout3DLastMajor, one, 2, 2, 1, 0);  // d_model, d, heads
  p.output.weights = matrix(2, 2, one);
  BNNSFilter attention = BNNSFilterCreateLayerMultiheadAttention(&p, NULL);
  int status = BNNSApplyMultiheadAttention(attention, 1, q, 2, k, 4, NULL, 0, v, 4, y, 2, NULL, NULL, NULL, NULL, NULL);
  printf("y = %.2f %.2f\n", (double)y[0], (double)y[1]);  // almost the first value, 1 2
  BNNSFilterDestroy(attention);
  return status;
}
