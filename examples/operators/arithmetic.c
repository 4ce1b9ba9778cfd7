// cc -std=c99 arithmetic.c -o arithmetic -lbnns && ./arithmetic
// prints: y = 11 22 13 24
// prints: db = 4 6
// A row is added to every row of a matrix; its gradient is the sum over the rows.
#include "tensor.h"

int main(void) {
  float a[4] = {1, 2, 3, 4}, b[2] = {10, 20}, y[4], dy[4] = {1, 2, 3, 4}, da[4], db[2];
  BNNSArithmeticBinary fields;
  memset(&fields, 0, sizeof fields);
  fields.in1 = matrix(2, 2, NULL);
  fields.in1_type = BNNSSample;
  fields.in2 = matrix(2, 1, NULL);
  fields.in2_type = BNNSParameter;  // one row: repeats, one for all samples
  fields.out = matrix(2, 2, NULL);
  fields.out_type = BNNSSample;
  BNNSLayerParametersArithmetic p;
  memset(&p, 0, sizeof p);
  p.arithmetic_function = BNNSArithmeticAdd;
  p.arithmetic_function_fields = &fields;
  BNNSFilter add = BNNSFilterCreateLayerArithmetic(&p, NULL);
  const void* in[2] = {a, b};
  const size_t strides[2] = {4, 0};
  int status = BNNSArithmeticFilterApplyBatch(add, 1, 2, in, strides, y, 4);
  BNNSNDArrayDescriptor up = matrix(2, 2, dy), down[2] = {matrix(2, 2, da), matrix(2, 1, db)},
                        *deltas[2] = {&down[0], &down[1]};
  status |= BNNSArithmeticFilterApplyBackwardBatch(add, 1, 2, in, strides, deltas, strides, y, 4, &up, 4);
  show("y", y, 4);
  show("db", db, 2);
  BNNSFilterDestroy(add);
  return status;
}
