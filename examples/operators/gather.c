// cc -std=c99 gather.c -o gather -lbnns && ./gather
// prints: gathered = 40 20
// prints: scattered = 0 20 0 40
// Takes elements 3 and 1, and puts them back by adding.
#include "tensor.h"

int main(void) {
  float x[4] = {10, 20, 30, 40}, y[2], sum[4] = {0, 0, 0, 0};
  int32_t at[2] = {3, 1};
  BNNSNDArrayDescriptor source = vec(4, x), taken = vec(2, y), indices = vec(2, at), target = vec(4, sum);
  indices.data_type = BNNSDataTypeInt32;
  int status = BNNSGather(0, &source, &indices, &taken, NULL);
  show("gathered", y, 2);
  status |= BNNSScatter(0, BNNSReduceFunctionSum, &taken, &indices, &target, NULL);
  show("scattered", sum, 4);
  return status;
}
