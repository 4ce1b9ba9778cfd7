// cc -std=c99 contraction.c -o contraction -lbnns && ./contraction
// prints: y = 12 34
// A sum over named indices: y_i = sum over j of a_ij b_j.
#include "tensor.h"

int main(void) {
  float a[4] = {1, 2, 3, 4}, b[2] = {10, 1}, y[2];
  BNNSLayerParametersTensorContraction p;
  memset(&p, 0, sizeof p);
  p.operation = "a_ij, b_j -> y_i";
  p.alpha = 1;
  p.iA_desc = matrix(2, 2, NULL);  // i counts rows, j columns
  p.iB_desc = vec(2, NULL);
  p.o_desc = vec(2, NULL);
  BNNSFilter filter = BNNSFilterCreateLayerTensorContraction(&p, NULL);
  int status = BNNSFilterApplyTwoInput(filter, a, b, y);
  show("y", y, 2);
  BNNSFilterDestroy(filter);
  return status;
}
