// The network of examples/swift/digits.swift in C: it ends with the same weights, bit for bit.
#include <Accelerate/Accelerate.h>
#include <stdint.h>

enum {
  SIZE = 20,
  HALF = 10,
  CHANNELS = 32,
  CLASSES = 10,
  BATCH = 32,
  FEATURES = HALF * HALF * CHANNELS,
  EPOCHS = 4000
};
enum { W1, BIAS, BETA, GAMMA, W2, PARAMETERS };

static const char* const glyphs[CLASSES] = {
    ".####.#....##....##....##....#.####.", "..##...#.#.....#.....#.....#...#####",
    ".####.#....#....#...##...#....######", "#####......#..###......#.....######.",
    "...##...#.#..#..#.######....#.....#.", "#######.....#####......#.....######.",
    ".####.#.....#####.#....##....#.####.", "######.....#....#....#....#.....#...",
    ".####.#....#.####.#....##....#.####.", ".####.#....##....#.#####.....#.####.",
};

static float pictures[BATCH][SIZE * SIZE], labels[BATCH][CLASSES];
static float y[BATCH][CHANNELS * SIZE * SIZE], dy[BATCH][CHANNELS * SIZE * SIZE], dx[BATCH][SIZE * SIZE];
static float pooled[BATCH][FEATURES], dp[BATCH][FEATURES], z[BATCH][CLASSES], dz[BATCH][CLASSES];
static float mean[CHANNELS], variance[CHANNELS], losses[EPOCHS];
static float memory[4][PARAMETERS][CLASSES * FEATURES];  // parameters, gradients, first and second moments

static void check(const char* what, bool good) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static BNNSNDArrayDescriptor describe(BNNSDataLayout layout, size_t a, size_t b, size_t c, size_t d, float* data) {
  BNNSNDArrayDescriptor made = {.layout = layout, .size = {a, b, c, d}, .data = data, .data_type = BNNSDataTypeFloat32};
  return made;
}
static BNNSNDArrayDescriptor image(size_t size, size_t channels, float* data) {
  return describe(BNNSDataLayoutImageCHW, size, size, channels, 0, data);
}
static BNNSNDArrayDescriptor vector(size_t size, float* data) {
  return describe(BNNSDataLayoutVector, size, 0, 0, 0, data);
}

static unsigned roll(unsigned sides) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % sides;
}

static void draw(void) {
  for (unsigned n = 0; n < BATCH; n++) {
    const unsigned digit = roll(10), top = roll(15), left = roll(15);
    for (unsigned k = 0; k < CLASSES; k++) labels[n][k] = k == digit;
    memset(pictures[n], 0, sizeof pictures[n]);
    for (unsigned k = 0; k < 36; k++) {
      if (glyphs[digit][k] == '#') pictures[n][(top + k / 6) * SIZE + left + k % 6] = 1;
    }
  }
}

int main(void) {
  BNNSNDArrayDescriptor t[4][PARAMETERS], *weights[PARAMETERS], *moments[2 * PARAMETERS], *deltas[4];
  const BNNSNDArrayDescriptor* gradients[PARAMETERS];
  for (int k = 0; k < 4; k++) {
    t[k][W1] = describe(BNNSDataLayoutConvolutionWeightsOIHW, 3, 3, 1, CHANNELS, memory[k][W1]);
    for (int i = BIAS; i <= GAMMA; i++) t[k][i] = vector(CHANNELS, memory[k][i]);
    t[k][W2] = describe(BNNSDataLayoutRowMajorMatrix, FEATURES, CLASSES, 0, 0, memory[k][W2]);
  }
  for (int i = 0; i < PARAMETERS; i++) {
    weights[i] = &t[0][i], gradients[i] = &t[1][i], moments[i] = &t[2][i], moments[PARAMETERS + i] = &t[3][i];
    if (i < W2) deltas[i] = &t[1][i];
  }
  for (int c = 0; c < CHANNELS; c++) memory[0][GAMMA][c] = variance[c] = 1;
  BNNSRandomGenerator random = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 1, NULL);
  BNNSNDArrayDescriptor flat[] = {vector(9 * CHANNELS, memory[0][W1]), vector(FEATURES * CLASSES, memory[0][W2])};
  check("filling", !BNNSRandomFillUniformFloat(random, &flat[0], -1, 1));
  check("filling", !BNNSRandomFillUniformFloat(random, &flat[1], -0.5f, 0.5f));
  BNNSDestroyRandomGenerator(random);

  BNNSFilterParameters options = {.flags = BNNSFlagsUseClientPtr};
  BNNSLayerParametersConvolution convolution = {.i_desc = image(SIZE, 1, NULL), .w_desc = t[0][W1]};
  convolution.o_desc = image(SIZE, CHANNELS, NULL), convolution.bias = t[0][BIAS];
  convolution.x_stride = convolution.y_stride = convolution.x_dilation_stride = convolution.y_dilation_stride = 1;
  convolution.x_padding = convolution.y_padding = 1, convolution.groups = 1;
  BNNSLayerParametersNormalization norm = {.beta_desc = t[0][BETA], .gamma_desc = t[0][GAMMA], .momentum = 0.9f};
  norm.i_desc = norm.o_desc = convolution.o_desc, norm.epsilon = 1e-7f;
  norm.moving_mean_desc = vector(CHANNELS, mean), norm.moving_variance_desc = vector(CHANNELS, variance);
  norm.activation.function = BNNSActivationFunctionRectifiedLinear;
  const BNNSFilterType types[] = {BNNSConvolution, BNNSBatchNorm};
  const void* layers[] = {&convolution, &norm};
  BNNSFilter fused = BNNSFilterCreateFusedLayer(2, types, layers, &options);
  BNNSLayerParametersPooling pool = {.i_desc = norm.o_desc, .o_desc = image(HALF, CHANNELS, NULL)};
  pool.pooling_function = BNNSPoolingFunctionMax, pool.k_width = pool.k_height = pool.x_stride = pool.y_stride = 2;
  BNNSFilter pooling = BNNSFilterCreateLayerPooling(&pool, NULL);
  BNNSLayerParametersFullyConnected full = {.i_desc = vector(FEATURES, NULL), .w_desc = t[0][W2]};
  full.o_desc = vector(CLASSES, NULL);
  BNNSFilter last = BNNSFilterCreateLayerFullyConnected(&full, &options);
  BNNSLayerParametersLossSoftmaxCrossEntropy ce = {.function = BNNSLossFunctionSoftmaxCrossEntropy};
  ce.i_desc = vector(CLASSES, NULL), ce.o_desc = vector(1, NULL), ce.reduction = BNNSLossReductionMean;
  BNNSFilter judge = BNNSFilterCreateLayerLoss(&ce, NULL);
  check("creating the layers", fused && pooling && last && judge);

  BNNSOptimizerAdamWithClippingFields adam = {.learning_rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
  adam.gradient_scale = 1, adam.regularization_scale = 0.01f, adam.regularization_func = BNNSOptimizerRegularizationL2;
  adam.clipping_func = BNNSOptimizerClippingByValue, adam.clip_gradients_min = -0.5f, adam.clip_gradients_max = 0.5f;
  BNNSNDArrayDescriptor dz_t = vector(CLASSES, dz[0]), dp_t = image(HALF, CHANNELS, dp[0]),
                        dy_t = image(SIZE, CHANNELS, dy[0]), dx_t = image(SIZE, 1, dx[0]);
  int epoch = 0;
  for (; epoch < EPOCHS; epoch++) {
    if (epoch == 500) adam.learning_rate = 0.001f;
    draw();
    check("fused", !BNNSFusedFilterApplyBatch(fused, BATCH, pictures, 0, y, 0, true));
    check("pooling", !BNNSPoolingFilterApplyBatch(pooling, BATCH, y, 0, pooled, 0, NULL, 0));
    check("last", !BNNSFilterApplyBatch(last, BATCH, pooled, 0, z, 0));
    check("loss", !BNNSLossFilterApplyBatch(judge, BATCH, z, 0, labels, 0, NULL, 0, &losses[epoch], &dz_t, 0));
    float recent = 1;
    if (epoch >= 20) vDSP_meanv(&losses[epoch - 19], 1, &recent, 20);
    if (recent < 0.125f) break;
    check("last", !BNNSFilterApplyBackwardBatch(last, BATCH, pooled, 0, &dp_t, 0, z, 0, &dz_t, 0, &t[1][W2], NULL));
    check("pooling",
          !BNNSPoolingFilterApplyBackwardBatch(pooling, BATCH, y, 0, &dy_t, 0, pooled, 0, &dp_t, 0, NULL, NULL, 0));
    check("fused", !BNNSFusedFilterApplyBackwardBatch(fused, BATCH, pictures, 0, &dx_t, 0, y, 0, &dy_t, 0, deltas));
    adam.time_step = (float)(epoch + 1);
    check("Adam", !BNNSOptimizerStep(BNNSOptimizerFunctionAdamWithClipping, &adam, PARAMETERS, weights, gradients,
                                     moments, NULL));
  }
  BNNSFilterDestroy(fused), BNNSFilterDestroy(pooling), BNNSFilterDestroy(last), BNNSFilterDestroy(judge);

  static const size_t counts[PARAMETERS] = {9 * CHANNELS, CHANNELS, CHANNELS, CHANNELS, FEATURES * CLASSES};
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (int i = 0; i < PARAMETERS; i++) {
    const unsigned char* bytes = (const unsigned char*)memory[0][i];
    for (size_t k = 0; k < counts[i] * sizeof(float); k++) hash = (hash ^ bytes[k]) * 1099511628211u;
  }
  printf("ended after %d epochs\nweights %llx\n", epoch + 1, (unsigned long long)hash);
  return 0;
}
