// Trains a small convolutional network to name shapes in noisy pictures: fused convolution + batch normalization +
// ReLU, max pooling, fully connected, softmax cross-entropy, Adam. Nothing but the BNNS API.
//   cc -std=c99 cnn.c -lbnns -o cnn
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 16, HALF = 8, CHANNELS = 8, FEATURES = CHANNELS * HALF * HALF, CLASSES = 4, BATCH = 64, STEPS = 150 };
enum { W1, BETA, GAMMA, W2, B2, PARAMETERS };

static float pictures[BATCH][SIZE * SIZE], labels[BATCH][CLASSES];
static float y[BATCH][CHANNELS * SIZE * SIZE], dy[BATCH][CHANNELS * SIZE * SIZE];
static float pooled[BATCH][FEATURES], dp[BATCH][FEATURES], z[BATCH][CLASSES], dz[BATCH][CLASSES];
static size_t indices[BATCH][FEATURES];
static float mean[CHANNELS], variance[CHANNELS];         // moving statistics, for inference
static float memory[4][PARAMETERS][CLASSES * FEATURES];  // parameters, gradients, first and second moments

static void check(const char* what, bool good) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static BNNSNDArrayDescriptor describe(BNNSDataLayout layout, size_t a, size_t b, size_t c, size_t d, float* data) {
  return (BNNSNDArrayDescriptor){0, layout, {a, b, c, d}, {0}, data, BNNSDataTypeFloat32, NULL, 0, 0, 0};
}
static BNNSNDArrayDescriptor image(size_t size, size_t channels, float* data) {
  return describe(BNNSDataLayoutImageCHW, size, size, channels, 0, data);
}
static BNNSNDArrayDescriptor vector(size_t size, float* data) {
  return describe(BNNSDataLayoutVector, size, 0, 0, 0, data);
}

static unsigned roll(unsigned sides) {
  static unsigned state = 1;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % sides;
}

static void draw_batch(void) {  // a bar, a pole, a cross or a frame, somewhere, over noise
  for (int n = 0; n < BATCH; n++) {
    const unsigned shape = roll(CLASSES), top = 1 + roll(6), left = 1 + roll(6);
    for (int k = 0; k < CLASSES; k++) labels[n][k] = (unsigned)k == shape;
    for (int i = 0; i < SIZE * SIZE; i++) pictures[n][i] = (float)roll(100) / 200;
    for (unsigned k = 0; k < 81; k++) {
      const unsigned i = k / 9, j = k % 9;
      const bool row = i == 4, column = j == 4, frame = i % 8 == 0 || j % 8 == 0;
      const bool ink = shape == 0 ? row : shape == 1 ? column : shape == 2 ? row || column : frame;
      if (ink) pictures[n][(top + i) * SIZE + left + j] += 0.6f;
    }
  }
}

int main(void) {
  BNNSNDArrayDescriptor t[4][PARAMETERS], *weights[PARAMETERS], *moments[2 * PARAMETERS];
  const BNNSNDArrayDescriptor* gradients[PARAMETERS];
  for (int k = 0; k < 4; k++) {
    t[k][W1] = describe(BNNSDataLayoutConvolutionWeightsOIHW, 3, 3, 1, CHANNELS, memory[k][W1]);
    t[k][BETA] = vector(CHANNELS, memory[k][BETA]);
    t[k][GAMMA] = vector(CHANNELS, memory[k][GAMMA]);
    t[k][W2] = describe(BNNSDataLayoutRowMajorMatrix, FEATURES, CLASSES, 0, 0, memory[k][W2]);
    t[k][B2] = vector(CLASSES, memory[k][B2]);
  }
  for (int i = 0; i < PARAMETERS; i++) {
    weights[i] = &t[0][i], gradients[i] = &t[1][i], moments[i] = &t[2][i], moments[PARAMETERS + i] = &t[3][i];
  }
  for (int c = 0; c < CHANNELS; c++) memory[0][GAMMA][c] = variance[c] = 1;
  BNNSRandomGenerator random = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 1, NULL);
  check("filling", !BNNSRandomFillUniformFloat(random, &t[0][W1], -0.8f, 0.8f));
  check("filling", !BNNSRandomFillUniformFloat(random, &t[0][W2], -0.1f, 0.1f));

  BNNSFilterParameters options = {.flags = BNNSFlagsUseClientPtr};  // the filters read what Adam writes
  BNNSLayerParametersConvolution convolution = {.i_desc = image(SIZE, 1, NULL), .w_desc = t[0][W1]};
  convolution.o_desc = image(SIZE, CHANNELS, NULL);
  convolution.x_padding = convolution.y_padding = 1;
  BNNSLayerParametersNormalization norm = {.beta_desc = t[0][BETA], .gamma_desc = t[0][GAMMA], .momentum = 0.9f};
  norm.i_desc = norm.o_desc = convolution.o_desc;
  norm.moving_mean_desc = vector(CHANNELS, mean), norm.moving_variance_desc = vector(CHANNELS, variance);
  norm.epsilon = 1e-5f, norm.activation.function = BNNSActivationFunctionRectifiedLinear;
  const BNNSFilterType types[] = {BNNSConvolution, BNNSBatchNorm};
  const void* layers[] = {&convolution, &norm};
  BNNSFilter fused = BNNSFilterCreateFusedLayer(2, types, layers, &options);
  BNNSLayerParametersPooling pool = {.i_desc = norm.o_desc, .o_desc = image(HALF, CHANNELS, NULL)};
  pool.pooling_function = BNNSPoolingFunctionMax, pool.k_width = pool.k_height = pool.x_stride = pool.y_stride = 2;
  BNNSFilter pooling = BNNSFilterCreateLayerPooling(&pool, NULL);
  BNNSLayerParametersFullyConnected full = {.i_desc = vector(FEATURES, NULL), .w_desc = t[0][W2], .bias = t[0][B2]};
  full.o_desc = vector(CLASSES, NULL);
  BNNSFilter last = BNNSFilterCreateLayerFullyConnected(&full, &options);
  BNNSLayerParametersLossSoftmaxCrossEntropy ce = {BNNSLossFunctionSoftmaxCrossEntropy, vector(CLASSES, NULL),
                                                   vector(1, NULL), BNNSLossReductionMean, 0};
  BNNSFilter loss_filter = BNNSFilterCreateLayerLoss(&ce, NULL);
  check("creating the layers", fused && pooling && last && loss_filter);

  BNNSOptimizerAdamFields adam = {.learning_rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .gradient_scale = 1};
  adam.epsilon = 1e-8f;
  BNNSNDArrayDescriptor dz_t = vector(CLASSES, dz[0]), dp_t = vector(FEATURES, dp[0]),
                        dy_t = image(SIZE, CHANNELS, dy[0]);
  BNNSNDArrayDescriptor* deltas[] = {&t[1][W1], NULL, &t[1][BETA], &t[1][GAMMA]};  // the convolution has no bias
  float loss = 0;
  for (int step = 1; step <= STEPS + 1; step++) {
    const bool training = step <= STEPS;  // the last batch is only read, with the moving statistics
    draw_batch();
    check("fused", !BNNSFusedFilterApplyBatch(fused, BATCH, pictures, 0, y, 0, training));
    check("pooling", !BNNSPoolingFilterApplyBatch(pooling, BATCH, y, 0, pooled, 0, indices[0], 0));
    check("last layer", !BNNSFilterApplyBatch(last, BATCH, pooled, 0, z, 0));
    check("loss", !BNNSLossFilterApplyBatch(loss_filter, BATCH, z, 0, labels, 0, NULL, 0, &loss, &dz_t, 0));
    if (step % 50 == 0 || !training) printf("%s %3d  loss %.4f\n", training ? "step" : "new pictures", step, loss);
    if (!training) break;
    check("last layer",
          !BNNSFilterApplyBackwardBatch(last, BATCH, pooled, 0, &dp_t, 0, z, 0, &dz_t, 0, &t[1][W2], &t[1][B2]));
    check("pooling", !BNNSPoolingFilterApplyBackwardBatch(pooling, BATCH, NULL, 0, &dy_t, 0, NULL, 0, &dp_t, 0, NULL,
                                                          indices[0], 0));
    check("fused", !BNNSFusedFilterApplyBackwardBatch(fused, BATCH, pictures, 0, NULL, 0, y, 0, &dy_t, 0, deltas));
    adam.time_step = (float)step;
    check("Adam", !BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam, PARAMETERS, weights, gradients, moments, NULL));
  }
  BNNSFilterDestroy(fused), BNNSFilterDestroy(pooling), BNNSFilterDestroy(last), BNNSFilterDestroy(loss_filter);
  BNNSDestroyRandomGenerator(random);
  return loss < 0.1f ? 0 : 1;
}
