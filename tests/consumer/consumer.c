/* Code as it is written on a Mac: one include, one layer, one gradient step. Exits 0 when the loss falls. */
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <string.h>

static BNNSNDArrayDescriptor vector(size_t n, float* data) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

int main(void) {
  float w[2] = {0.5f, -0.5f}, dw[2], x[2] = {1.0f, 2.0f}, y[1], label[1] = {3.0f}, dy[1], first = 0, loss = 0;
  BNNSLayerParametersFullyConnected layer;
  BNNSLayerParametersLossBase mse;
  BNNSFilterParameters options;
  BNNSOptimizerSGDMomentumFields sgd;
  BNNSFilter fc, criterion;
  BNNSNDArrayDescriptor dy_desc = vector(1, dy), w_desc, dw_desc, *parameters[1];
  const BNNSNDArrayDescriptor* gradients[1];
  int step;

  memset(&layer, 0, sizeof layer);
  memset(&mse, 0, sizeof mse);
  memset(&options, 0, sizeof options);
  memset(&sgd, 0, sizeof sgd);
  options.flags = BNNSFlagsUseClientPtr;
  w_desc = vector(2, w);
  w_desc.layout = BNNSDataLayoutRowMajorMatrix;
  w_desc.size[1] = 1;
  dw_desc = w_desc;
  dw_desc.data = dw;
  layer.i_desc = vector(2, NULL);
  layer.o_desc = vector(1, NULL);
  layer.w_desc = w_desc;
  mse.function = BNNSLossFunctionMeanSquareError;
  mse.i_desc = vector(1, NULL);
  mse.o_desc = vector(1, NULL);
  mse.reduction = BNNSLossReductionMean;
  sgd.learning_rate = 0.05f;
  sgd.gradient_scale = 1.0f;
  parameters[0] = &w_desc;
  gradients[0] = &dw_desc;

  fc = BNNSFilterCreateLayerFullyConnected(&layer, &options);
  criterion = BNNSFilterCreateLayerLoss(&mse, NULL);
  if (!fc || !criterion) return 1;
  for (step = 0; step < 20; ++step) {
    if (BNNSFilterApply(fc, x, y)) return 2;
    if (BNNSLossFilterApplyBatch(criterion, 1, y, 0, label, 0, NULL, 0, &loss, &dy_desc, 0)) return 3;
    if (step == 0) first = loss;
    if (BNNSFilterApplyBackwardBatch(fc, 1, x, 0, NULL, 0, y, 0, &dy_desc, 0, &dw_desc, NULL)) return 4;
    if (BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &sgd, 1, parameters, gradients, NULL, NULL)) return 5;
  }
  BNNSFilterDestroy(fc);
  BNNSFilterDestroy(criterion);
  printf("loss %g -> %g\n", first, loss);
  return loss < first * 1e-3f ? 0 : 6;
}
