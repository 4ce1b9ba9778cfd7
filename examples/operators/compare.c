// cc -std=c99 compare.c -o compare -lbnns && ./compare
// prints: y = 0 1 0
// Which elements of a are greater than those of b?
#include "tensor.h"

int main(void) {
  float a[3] = {1, 5, 3}, b[3] = {2, 4, 3};
  uint8_t y[3];
  BNNSNDArrayDescriptor in0 = vec(3, a), in1 = vec(3, b), out = vec(3, y);
  out.data_type = BNNSDataTypeBoolean;
  int status = BNNSCompareTensor(&in0, &in1, BNNSRelationalOperatorGreater, &out);
  printf("y = %d %d %d\n", y[0], y[1], y[2]);
  return status;
}
