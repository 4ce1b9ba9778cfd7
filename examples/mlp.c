// Trains a small network to tell two spirals apart, with BNNS alone: what runs on a Mac against Accelerate runs here.
//   cc -std=c99 mlp.c -lbnns -lm -o mlp
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 400, INPUTS = 2, HIDDEN = 64, CLASSES = 2, LAYERS = 3, PARAMETERS = 2 * LAYERS, STEPS = 600 };

typedef struct {
  size_t in, out;
  float *w, *dw, *b, *db, *y, *dy;  // weights, biases, output for all points, and their gradients
  BNNSFilter filter;
} Layer;

static void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static float* zeros(size_t count) {  // from one static block: a small program needs no free()
  static float block[1 << 18];
  static size_t used = 0;
  used += count;
  check(used <= sizeof block / sizeof *block, "zeros");
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
  Layer l = {in,         out,        zeros(in * out),     zeros(in * out),
             zeros(out), zeros(out), zeros(POINTS * out), zeros(POINTS * out),
             NULL};
  BNNSNDArrayDescriptor w = matrix(in, out, l.w);
  const float bound = sqrtf(6.0f / (float)in);
  check(BNNSRandomFillUniformFloat(random, &w, -bound, bound) == 0, "filling the weights");
  BNNSLayerParametersFullyConnected layer = {0};
  layer.i_desc = vector(in, NULL);
  layer.w_desc = w;
  layer.o_desc = vector(out, NULL);
  layer.bias = vector(out, l.b);
  layer.activation.function = activation;
  BNNSFilterParameters options = {BNNSFlagsUseClientPtr, 0, NULL, NULL};  // so that it sees what Adam writes
  l.filter = BNNSFilterCreateLayerFullyConnected(&layer, &options);
  check(l.filter != NULL, "creating a layer");
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
  BNNSFilter loss_filter = BNNSFilterCreateLayerLoss(&loss_layer, NULL);
  check(loss_filter != NULL, "creating the loss");

  // Adam wants all parameters, all gradients, then all first and all second moments.
  BNNSNDArrayDescriptor p[PARAMETERS], g[PARAMETERS], m[2 * PARAMETERS];
  BNNSNDArrayDescriptor *params[PARAMETERS], *moments[2 * PARAMETERS];
  const BNNSNDArrayDescriptor* gradients[PARAMETERS];
  for (int i = 0; i < PARAMETERS; i++) {
    const Layer l = net[i / 2];
    p[i] = i % 2 ? vector(l.out, l.b) : matrix(l.in, l.out, l.w);
    g[i] = i % 2 ? vector(l.out, l.db) : matrix(l.in, l.out, l.dw);
    m[i] = m[i + PARAMETERS] = p[i];
    m[i].data = zeros(l.in * l.out + l.out);
    m[i + PARAMETERS].data = zeros(l.in * l.out + l.out);
    params[i] = &p[i], gradients[i] = &g[i], moments[i] = &m[i], moments[i + PARAMETERS] = &m[i + PARAMETERS];
  }
  BNNSOptimizerAdamFields adam = {.learning_rate = 0.005f, .beta1 = 0.9f, .beta2 = 0.999f, .gradient_scale = 1};
  adam.epsilon = 1e-8f;

  float first = 0, loss = 0;
  for (int step = 1; step <= STEPS; step++) {
    const float* in = &x[0][0];
    for (int k = 0; k < LAYERS; in = net[k++].y) {
      check(BNNSFilterApplyBatch(net[k].filter, POINTS, in, net[k].in, net[k].y, net[k].out) == 0, "forward");
    }
    BNNSNDArrayDescriptor dz = vector(CLASSES, net[LAYERS - 1].dy);
    int status =
        BNNSLossFilterApplyBatch(loss_filter, POINTS, in, CLASSES, labels, CLASSES, NULL, 0, &loss, &dz, CLASSES);
    check(status == 0, "loss");
    for (int k = LAYERS - 1; k >= 0; k--) {  // the points themselves need no gradient: NULL below the first layer
      const Layer l = net[k];
      BNNSNDArrayDescriptor dy = vector(l.out, l.dy), dx = vector(l.in, k > 0 ? net[k - 1].dy : NULL);
      status = BNNSFilterApplyBackwardBatch(l.filter, POINTS, k > 0 ? net[k - 1].y : &x[0][0], l.in, k > 0 ? &dx : NULL,
                                            l.in, l.y, l.out, &dy, l.out, &g[2 * k], &g[2 * k + 1]);
      check(status == 0, "backward");
    }
    adam.time_step = (float)step;
    status = BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam, PARAMETERS, params, gradients, moments, NULL);
    check(status == 0, "Adam");
    if (step == 1) first = loss;
    if (step == 1 || step % 100 == 0) printf("step %4d  loss %.4f\n", step, loss);
  }
  for (int k = 0; k < LAYERS; k++) BNNSFilterDestroy(net[k].filter);
  BNNSFilterDestroy(loss_filter);
  BNNSDestroyRandomGenerator(random);
  return loss < 0.05f * first ? 0 : 1;
}
