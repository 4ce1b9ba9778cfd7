// cc -std=c99 normalization.c -o normalization -lbnns && ./normalization
// prints: training = -1 1 -1 1
// prints: moving mean 2.5, variance 2.5
// prints: inference = 0.316 2.846
// Batch normalization of one channel: in training by the batch's own mean and variance.
#include "tensor.h"

int main(void) {
  float x[4] = {3, 7, 3, 7}, y[4], gamma = 1, beta = 0, mean = 0, variance = 1;
  BNNSLayerParametersNormalization p;
  memset(&p, 0, sizeof p);
  p.i_desc = p.o_desc = image(2, 1, 1, NULL);  // two samples of two pixels
  p.gamma_desc = vec(1, &gamma);
  p.beta_desc = vec(1, &beta);
  p.moving_mean_desc = vec(1, &mean);
  p.moving_variance_desc = vec(1, &variance);
  p.momentum = 0.5f;  // moving = momentum * moving + (1 - momentum) * batch
  BNNSFilterParameters options;
  memset(&options, 0, sizeof options);
  options.flags = BNNSFlagsUseClientPtr;  // the statistics are updated where they are kept
  BNNSFilter layer = BNNSFilterCreateLayerNormalization(BNNSBatchNorm, &p, &options);
  int status = BNNSNormalizationFilterApplyBatch(layer, 2, x, 2, y, 2, true);
  show("training", y, 4);
  printf("moving mean %g, variance %g\n", (double)mean, (double)variance);
  status |= BNNSNormalizationFilterApplyBatch(layer, 2, x, 2, y, 2, false);  // now by the moving statistics
  printf("inference = %.3f %.3f\n", (double)y[0], (double)y[1]);
  BNNSFilterDestroy(layer);
  return status;
}
