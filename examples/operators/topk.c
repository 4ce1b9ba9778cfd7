// cc -std=c99 topk.c -o topk -lbnns && ./topk
// prints: best = 9 7 at 1 3
// prints: element 0 is not among them
// The two largest and where they stand; is element 0 among them?
#include "tensor.h"

int main(void) {
  float x[4] = {3, 9, 1, 7}, best[2];
  int32_t at[2], asked[1] = {0};
  uint8_t answer[1];
  BNNSNDArrayDescriptor in = vec(4, x), values = vec(2, best), indices = vec(2, at), test = vec(1, asked),
                        out = vec(1, answer);
  indices.data_type = test.data_type = BNNSDataTypeInt32;
  out.data_type = BNNSDataTypeBoolean;
  int status = BNNSDirectApplyTopK(2, 0, 1, &in, 4, &values, 2, &indices, 2, NULL);
  printf("best = %g %g at %d %d\n", (double)best[0], (double)best[1], at[0], at[1]);
  status |= BNNSDirectApplyInTopK(2, 0, 1, &in, 4, &test, 1, &out, 1, NULL);
  printf("element 0 is %samong them\n", answer[0] ? "" : "not ");
  return status;
}
