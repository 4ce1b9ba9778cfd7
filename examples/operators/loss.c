// cc -std=c99 loss.c -o loss -lbnns && ./loss
// prints: loss = 0.7531
// prints: dx = -0.167 0.122 0.045 | 0.167 0.167 -0.333
// Softmax cross-entropy of two samples, and its gradient in the same call.
#include "tensor.h"

int main(void) {
  float logits[6] = {2, 1, 0, 0, 0, 0}, labels[6] = {1, 0, 0, 0, 0, 1}, loss, dx[6];
  BNNSLayerParametersLossSoftmaxCrossEntropy p;
  memset(&p, 0, sizeof p);
  p.function = BNNSLossFunctionSoftmaxCrossEntropy;
  p.i_desc = vec(3, NULL);
  p.o_desc = vec(1, NULL);
  p.reduction = BNNSLossReductionMean;
  BNNSFilter judge = BNNSFilterCreateLayerLoss(&p, NULL);
  BNNSNDArrayDescriptor down = vec(3, dx);
  int status = BNNSLossFilterApplyBatch(judge, 2, logits, 3, labels, 3, NULL, 0, &loss, &down, 3);
  printf("loss = %.4f\n", (double)loss);
  printf("dx = %.3f %.3f %.3f | %.3f %.3f %.3f\n", (double)dx[0], (double)dx[1], (double)dx[2], (double)dx[3],
         (double)dx[4], (double)dx[5]);
  BNNSFilterDestroy(judge);
  return status;
}
