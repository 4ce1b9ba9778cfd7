// cc -std=c99 matmul.c -o matmul -lbnns && ./matmul
// prints: A B = 19 22 43 50
// prints: A B' = 17 23 39 53
// A product of two matrices, and with the second one transposed.
#include "tensor.h"

int main(void) {
  float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];
  BNNSNDArrayDescriptor A = matrix(2, 2, a), B = matrix(2, 2, b), C = matrix(2, 2, c);
  int status = BNNSMatMul(false, false, 1, &A, &B, &C, NULL, NULL);
  show("A B", c, 4);
  status |= BNNSMatMul(false, true, 1, &A, &B, &C, NULL, NULL);
  show("A B'", c, 4);
  return status;
}
