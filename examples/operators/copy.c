// cc -std=c99 copy.c -o copy -lbnns && ./copy
// prints: column major = 1 3 2 4
// prints: bytes = 1 2 3 4
// prints: transposed = 1 3 2 4
// Another layout, another type, and a transpose.
#include "tensor.h"

int main(void) {
  float x[4] = {1, 2, 3, 4}, y[4];
  uint8_t bytes[4];
  BNNSNDArrayDescriptor row = matrix(2, 2, x), column = tensor(BNNSDataLayoutColumnMajorMatrix, y, 2, 2, 0, 0);
  int status = BNNSCopy(&column, &row, NULL);  // the same matrix, columns first
  show("column major", y, 4);
  BNNSNDArrayDescriptor integers = matrix(2, 2, bytes);
  integers.data_type = BNNSDataTypeUInt8;
  integers.data_scale = 1;
  status |= BNNSCopy(&integers, &row, NULL);  // types are converted, rounded and saturated
  printf("bytes = %d %d %d %d\n", bytes[0], bytes[1], bytes[2], bytes[3]);
  BNNSNDArrayDescriptor target = matrix(2, 2, y);
  status |= BNNSTranspose(&target, &row, 0, 1, NULL);
  show("transposed", y, 4);
  return status;
}
