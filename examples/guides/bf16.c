// cc -std=c99 bf16.c -o bf16 -lbnns -lm && ./bf16
// prints: with f32 master weights: loss below 0.01
// prints: with bf16 weights alone: it stops learning
// Mixed precision: layers read and write bf16, half the memory; the optimizer keeps f32 weights, the master. A step of
// a thousandth changes no bf16 weight, which has 8 bits, but adds up in the master.
#include <Accelerate/Accelerate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64, IN = 8, STEPS = 2000 };

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}
static BNNSNDArrayDescriptor vec(BNNSDataType type, size_t n, void* p) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data = p;
  d.data_type = type;
  return d;
}
// BNNSCopy between two types converts, and rounds to nearest.
static void convert(BNNSDataType to, void* target, BNNSDataType from, void* source, size_t n) {
  BNNSNDArrayDescriptor d = vec(to, n, target), s = vec(from, n, source);
  check(BNNSCopy(&d, &s, NULL) == 0, "converting");
}

static float train(int with_master) {
  const BNNSDataType f32 = BNNSDataTypeFloat32, bf16 = BNNSDataTypeBFloat16;
  static float x[N * IN], labels[N], dw[IN], master[IN];
  static uint16_t x16[N * IN], y16[N], dy16[N], w16[IN], labels16[N];
  memset(master, 0, sizeof master);
  memset(w16, 0, sizeof w16);
  BNNSRandomGenerator random = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 1, NULL);
  BNNSNDArrayDescriptor all = vec(f32, N * IN, x);
  check(BNNSRandomFillUniformFloat(random, &all, -1, 1) == 0, "drawing numbers");
  BNNSDestroyRandomGenerator(random);
  for (int i = 0; i < N; i++) {  // what is to be learnt: weights 1, 2, 3, ...
    labels[i] = 0;
    for (int k = 0; k < IN; k++) labels[i] += (float)(k + 1) * x[i * IN + k];
  }
  convert(bf16, x16, f32, x, N * IN);
  convert(bf16, labels16, f32, labels, N);

  BNNSLayerParametersFullyConnected p;
  memset(&p, 0, sizeof p);
  p.i_desc = vec(bf16, IN, NULL);
  p.o_desc = vec(bf16, 1, NULL);
  p.w_desc = vec(bf16, IN, w16);
  p.w_desc.layout = BNNSDataLayoutRowMajorMatrix;
  p.w_desc.size[1] = 1;
  BNNSFilterParameters options;
  memset(&options, 0, sizeof options);
  options.flags = BNNSFlagsUseClientPtr;  // the layer reads w16 anew in every call
  BNNSFilter layer = BNNSFilterCreateLayerFullyConnected(&p, &options);
  BNNSLayerParametersLossBase loss_layer;
  memset(&loss_layer, 0, sizeof loss_layer);
  loss_layer.function = BNNSLossFunctionMeanSquareError;
  loss_layer.i_desc = vec(bf16, 1, NULL);
  loss_layer.o_desc = vec(f32, 1, NULL);
  loss_layer.reduction = BNNSLossReductionMean;
  BNNSFilter judge = BNNSFilterCreateLayerLoss(&loss_layer, NULL);
  check(layer && judge, "creating the layers");

  BNNSOptimizerSGDMomentumFields sgd;
  memset(&sgd, 0, sizeof sgd);
  sgd.learning_rate = 0.005f;
  sgd.gradient_scale = 1;
  BNNSNDArrayDescriptor w = vec(f32, IN, master), g = vec(f32, IN, dw), *ws[] = {&w};
  const BNNSNDArrayDescriptor* gs[] = {&g};
  float loss = 0;
  for (int step = 0; step < STEPS; step++) {
    check(!BNNSFilterApplyBatch(layer, N, x16, IN, y16, 1), "forward");
    BNNSNDArrayDescriptor dy = vec(bf16, 1, dy16), dw_out = g;
    check(!BNNSLossFilterApplyBatch(judge, N, y16, 1, labels16, 1, NULL, 0, &loss, &dy, 1), "the loss");
    dw_out.layout = BNNSDataLayoutRowMajorMatrix;
    dw_out.size[1] = 1;  // the gradient is f32: sums are f32 anyway
    check(!BNNSFilterApplyBackwardBatch(layer, N, x16, IN, NULL, 0, y16, 1, &dy, 1, &dw_out, NULL), "backward");
    if (!with_master) convert(f32, master, bf16, w16, IN);  // what was rounded away stays away
    check(!BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &sgd, 1, ws, gs, NULL, NULL), "the step");
    convert(bf16, w16, f32, master, IN);  // the layer's weights: the master, rounded
  }
  BNNSFilterDestroy(layer);
  BNNSFilterDestroy(judge);
  return loss;
}

int main(void) {
  const float mixed = train(1), alone = train(0);
  printf("with f32 master weights: loss %s 0.01\n", mixed < 0.01f ? "below" : "above");
  printf("with bf16 weights alone: it %s\n", alone > 2 * mixed ? "stops learning" : "learns as well");
  return mixed < 0.01f && alone > 2 * mixed ? 0 : 1;
}
