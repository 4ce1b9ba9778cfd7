// Trains a small network to tell two spirals apart, with BNNS alone: what runs on a Mac against Accelerate runs here.
//   cc -std=c99 mlp.c -lbnns -lm -o mlp
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 400, INPUTS = 2, HIDDEN = 64, CLASSES = 2, LAYERS = 3, PARAMETERS = 2 * LAYERS, STEPS = 600 };

typedef struct {
  size_t in, out;
  BNNSNDArrayDescriptor w, dw, b, db;  // weights and biases with their gradients
  float *y, *dy;                       // output for all points, and its gradient
  BNNSFilter filter;
} Layer;

static void check(const char* what, bool good) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static float* zeros(size_t count) {  // from one static block: a small program needs no free()
  static float block[1 << 18];
  static size_t used = 0;
  used += count;
  check("zeros", used <= sizeof block / sizeof *block);
  return block + used - count;
}

static BNNSNDArrayDescriptor vector(size_t size, float* data) {
  BNNSNDArrayDescriptor d = {0};
  d.layout = BNNSDataLayoutVector;
  d.size[0] = size;
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

static BNNSNDArrayDescriptor matrix(size_t columns, size_t rows, float* data) {
  BNNSNDArrayDescriptor d = vector(columns, data);
  d.layout = BNNSDataLayoutRowMajorMatrix;
  d.size[1] = rows;
  return d;
}

static Layer make_layer(size_t in, size_t out, BNNSActivationFunction activation, BNNSRandomGenerator random) {
  Layer l = {.in = in, .out = out, .y = zeros(POINTS * out), .dy = zeros(POINTS * out)};
  l.w = matrix(in, out, zeros(in * out));
  l.dw = matrix(in, out, zeros(in * out));
  l.b = vector(out, zeros(out));
  l.db = vector(out, zeros(out));
  const float bound = sqrtf(6.0f / (float)in);
  check("filling the weights", BNNSRandomFillUniformFloat(random, &l.w, -bound, bound) == 0);
  BNNSLayerParametersFullyConnected layer = {.i_desc = vector(in, NULL), .w_desc = l.w, .bias = l.b};
  layer.o_desc = vector(out, NULL);
  layer.activation.function = activation;
  BNNSFilterParameters options = {.flags = BNNSFlagsUseClientPtr};  // the filter reads what Adam writes
  l.filter = BNNSFilterCreateLayerFullyConnected(&layer, &options);
  check("creating a layer", l.filter != NULL);
  return l;
}

int main(void) {
  static float x[POINTS][INPUTS], labels[POINTS][CLASSES];
  for (int i = 0; i < POINTS; i++) {  // two arms, half a turn apart, one and a half turns long
    const float t = (float)(i / 2) / (POINTS / 2), angle = 9.42f * t + (i % 2 ? 3.1416f : 0.0f);
    x[i][0] = (0.1f + t) * cosf(angle);
    x[i][1] = (0.1f + t) * sinf(angle);
    labels[i][i % 2] = 1;
  }

  BNNSRandomGenerator random = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 1, NULL);
  Layer net[LAYERS] = {make_layer(INPUTS, HIDDEN, BNNSActivationFunctionTanh, random),
                       make_layer(HIDDEN, HIDDEN, BNNSActivationFunctionTanh, random),
                       make_layer(HIDDEN, CLASSES, BNNSActivationFunctionIdentity, random)};
  BNNSLayerParametersLossSoftmaxCrossEntropy loss_layer = {BNNSLossFunctionSoftmaxCrossEntropy, vector(CLASSES, NULL),
                                                           vector(1, NULL), BNNSLossReductionMean, 0};
  BNNSFilter judge = BNNSFilterCreateLayerLoss(&loss_layer, NULL);
  check("creating the loss", judge != NULL);

  // Adam takes all parameters, all gradients, then all first and all second moments.
  BNNSNDArrayDescriptor *weights[PARAMETERS], *moments[2 * PARAMETERS], moment[2 * PARAMETERS];
  const BNNSNDArrayDescriptor* gradients[PARAMETERS];
  for (int i = 0; i < PARAMETERS; i++) {
    weights[i] = i % 2 ? &net[i / 2].b : &net[i / 2].w;
    gradients[i] = i % 2 ? &net[i / 2].db : &net[i / 2].dw;
  }
  for (int i = 0; i < 2 * PARAMETERS; i++) {
    moment[i] = *weights[i % PARAMETERS];
    moment[i].data = zeros(HIDDEN * HIDDEN);  // enough for the largest
    moments[i] = &moment[i];
  }
  BNNSOptimizerAdamFields adam = {.learning_rate = 0.005f, .beta1 = 0.9f, .beta2 = 0.999f, .gradient_scale = 1};
  adam.epsilon = 1e-8f;

  float first = 0, loss = 0;
  for (int step = 1; step <= STEPS; step++) {
    const float* in = &x[0][0];
    for (int k = 0; k < LAYERS; in = net[k++].y) {
      check("forward", !BNNSFilterApplyBatch(net[k].filter, POINTS, in, net[k].in, net[k].y, net[k].out));
    }
    BNNSNDArrayDescriptor dz = vector(CLASSES, net[LAYERS - 1].dy);
    check("loss", !BNNSLossFilterApplyBatch(judge, POINTS, in, CLASSES, labels, CLASSES, NULL, 0, &loss, &dz, CLASSES));
    for (int k = LAYERS - 1; k >= 0; k--) {  // the points themselves need no gradient: NULL below the first layer
      Layer* l = &net[k];
      BNNSNDArrayDescriptor dy = vector(l->out, l->dy), dx = vector(l->in, k > 0 ? net[k - 1].dy : NULL);
      check("backward",
            !BNNSFilterApplyBackwardBatch(l->filter, POINTS, k > 0 ? net[k - 1].y : &x[0][0], l->in, k > 0 ? &dx : NULL,
                                          l->in, l->y, l->out, &dy, l->out, &l->dw, &l->db));
    }
    adam.time_step = (float)step;
    check("Adam", !BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam, PARAMETERS, weights, gradients, moments, NULL));
    if (step == 1) first = loss;
    if (step == 1 || step % 100 == 0) printf("step %4d  loss %.4f\n", step, loss);
  }
  for (int k = 0; k < LAYERS; k++) BNNSFilterDestroy(net[k].filter);
  BNNSFilterDestroy(judge);
  BNNSDestroyRandomGenerator(random);
  return loss < 0.05f * first ? 0 : 1;
}
