// Trains one attention block to copy and to reverse sequences, with BNNS alone. The first token of a sequence says
// which: COPY a b c d -> a b c d, REVERSE a b c d -> d c b a. Fresh sequences are the judge.
//   cc -std=c99 attention.c -lbnns -lm -o attention
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYMBOLS = 10, COPY = SYMBOLS, REVERSE, TOKENS, LENGTH = 12, ROWS = LENGTH + 1, INPUTS = TOKENS + ROWS };
enum { MODEL = 64, HEADS = 4, HEAD = MODEL / HEADS, HIDDEN = 128, BATCH = 32, POINTS = BATCH * ROWS };
enum { PARAMETERS = 14, STEPS = 6000, TRIALS = 40 };

typedef BNNSNDArrayDescriptor Tensor;
typedef struct {
  size_t in, out;
  Tensor w, dw, b, db;  // weights and biases with their gradients
  float *y, *dy;        // output for all positions of the batch, and its gradient
  BNNSFilter filter;
} Layer;

static BNNSRandomGenerator generator;
static Tensor *weights[PARAMETERS], *moments[2 * PARAMETERS], moment[2 * PARAMETERS];
static const Tensor* gradients[PARAMETERS];
static int parameters = 0;

static void check(const char* what, bool good) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static float* zeros(size_t count) {  // from one static block: a small program needs no free()
  static float block[1 << 19];
  static size_t used = 0;
  used += count;
  check("zeros", used <= sizeof block / sizeof *block);
  return block + used - count;
}

static Tensor tensor(BNNSDataLayout layout, size_t s0, size_t s1, size_t s2, float* data) {
  Tensor d = {0};
  d.layout = layout, d.data_type = BNNSDataTypeFloat32, d.data = data;
  d.size[0] = s0, d.size[1] = s1, d.size[2] = s2;
  return d;
}
static Tensor vector(size_t size, float* data) {
  return tensor(BNNSDataLayoutVector, size, 0, 0, data);
}

// A trained tensor and its gradient, random within the bound, known to Adam from now on.
static void train(Tensor* w, Tensor* dw, Tensor shape, size_t count, float bound) {
  *w = *dw = shape;
  w->data = zeros(count), dw->data = zeros(count);
  if (bound > 0) check("weights", !BNNSRandomFillUniformFloat(generator, w, -bound, bound));
  for (int m = parameters; m < 2 * PARAMETERS; m += PARAMETERS) {  // two moments each
    moment[m] = shape, moment[m].data = zeros(count);
    moments[m] = &moment[m];
  }
  weights[parameters] = w, gradients[parameters++] = dw;
}

static const BNNSFilterParameters options = {.flags = BNNSFlagsUseClientPtr};  // filters read what Adam writes

static void make_layer(Layer* l, size_t in, size_t out, BNNSActivationFunction activation) {
  l->in = in, l->out = out, l->y = zeros(POINTS * out), l->dy = zeros(POINTS * out);
  train(&l->w, &l->dw, tensor(BNNSDataLayoutRowMajorMatrix, in, out, 0, NULL), in * out, sqrtf(3.0f / (float)in));
  train(&l->b, &l->db, vector(out, NULL), out, 0);
  BNNSLayerParametersFullyConnected layer = {.i_desc = vector(in, NULL), .w_desc = l->w, .bias = l->b};
  layer.o_desc = vector(out, NULL);
  layer.activation.function = activation;
  l->filter = BNNSFilterCreateLayerFullyConnected(&layer, &options);
  check("creating a layer", l->filter != NULL);
}

static void forward(const Layer* l, const float* x) {
  check("forward", !BNNSFilterApplyBatch(l->filter, POINTS, x, l->in, l->y, l->out));
}
static void backward(Layer* l, const float* x, float* dx) {
  Tensor dy = vector(l->out, l->dy), in = vector(l->in, dx);
  check("backward", !BNNSFilterApplyBackwardBatch(l->filter, POINTS, x, l->in, dx ? &in : NULL, l->in, l->y, l->out,
                                                  &dy, l->out, &l->dw, &l->db));
}

static Layer embed, widen, decide;  // one-hot token and position -> MODEL; the feed-forward part
static BNNSMHAProjectionParameters projection[4], delta[4];  // of query, key, value and output
static BNNSFilter attention, judge;
static float x[POINTS][INPUTS], labels[POINTS][TOKENS];
static float mixed[POINTS * MODEL], sum[POINTS * MODEL], dsum[POINTS * MODEL], dmixed[POINTS * MODEL];
static int tokens[BATCH][ROWS], answers[BATCH][ROWS];
static size_t cache_size = 0;
static void* cache = NULL;

static void draw(void) {
  memset(x, 0, sizeof x), memset(labels, 0, sizeof labels);
  for (int n = 0; n < BATCH; n++) {
    tokens[n][0] = answers[n][0] = rand() % 2 ? REVERSE : COPY;
    for (int i = 1; i < ROWS; i++) tokens[n][i] = rand() % SYMBOLS;
    for (int i = 1; i < ROWS; i++) answers[n][i] = tokens[n][tokens[n][0] == COPY ? i : ROWS - i];
    for (int i = 0; i < ROWS; i++) {
      x[n * ROWS + i][tokens[n][i]] = x[n * ROWS + i][TOKENS + i] = 1;
      labels[n * ROWS + i][answers[n][i]] = 1;
    }
  }
}

static int attend(size_t* size, void* data) {
  return BNNSApplyMultiheadAttention(attention, BATCH, embed.y, 0, embed.y, 0, NULL, 0, embed.y, 0, mixed, 0, NULL,
                                     size, data, NULL, NULL);
}

static float predict(void) {  // the share of tokens that are right
  forward(&embed, &x[0][0]);
  check("attention", !attend(&cache_size, cache));
  for (int i = 0; i < POINTS * MODEL; i++) sum[i] = embed.y[i] + mixed[i];
  forward(&widen, sum);
  forward(&decide, widen.y);
  int right = 0;
  for (int i = 0; i < POINTS; i++) {
    int best = 0;
    for (int t = 1; t < TOKENS; t++) best = decide.y[i * TOKENS + t] > decide.y[i * TOKENS + best] ? t : best;
    right += i % ROWS > 0 && best == answers[i / ROWS][i % ROWS];
  }
  return (float)right / (BATCH * LENGTH);
}

int main(void) {
  srand(7);
  generator = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 1, NULL);
  make_layer(&embed, INPUTS, MODEL, BNNSActivationFunctionIdentity);
  const Tensor target = tensor(BNNSDataLayout2DFirstMajor, ROWS, MODEL, 0, NULL);
  for (int i = 0; i < 4; i++) {
    const Tensor heads = tensor(BNNSDataLayout3DLastMajor, MODEL, HEAD, HEADS, NULL);
    const Tensor out = tensor(BNNSDataLayout2DFirstMajor, MODEL, MODEL, 0, NULL);
    projection[i].target_desc = delta[i].target_desc = target;
    train(&projection[i].weights, &delta[i].weights, i < 3 ? heads : out, MODEL * MODEL, sqrtf(3.0f / MODEL));
    train(&projection[i].bias, &delta[i].bias, vector(MODEL, NULL), MODEL, 0);
    delta[i].target_desc.data = i < 3 ? dmixed : dsum;  // one gradient for the three inputs: they are one
  }
  BNNSLayerParametersMultiheadAttention block = {.query = projection[0], .key = projection[1]};
  block.value = projection[2], block.output = projection[3];
  attention = BNNSFilterCreateLayerMultiheadAttention(&block, &options);
  check("creating the attention", attention != NULL);
  check("asking for the cache's size", !attend(&cache_size, NULL));
  check("allocating the cache", (cache = malloc(cache_size)) != NULL);
  make_layer(&widen, MODEL, HIDDEN, BNNSActivationFunctionRectifiedLinear);
  make_layer(&decide, HIDDEN, TOKENS, BNNSActivationFunctionIdentity);
  BNNSLayerParametersLossSoftmaxCrossEntropy loss_layer = {BNNSLossFunctionSoftmaxCrossEntropy, vector(TOKENS, NULL),
                                                           vector(1, NULL), BNNSLossReductionMean, 0};
  judge = BNNSFilterCreateLayerLoss(&loss_layer, NULL);
  check("creating the loss", judge != NULL);
  BNNSOptimizerAdamFields adam = {.learning_rate = 0.002f, .beta1 = 0.9f, .beta2 = 0.99f};
  adam.gradient_scale = 1, adam.epsilon = 1e-8f;

  float loss = 0, recent = 0;
  for (int step = 1; step <= STEPS && recent < 0.9995f; step++) {
    draw();
    recent += 0.02f * (predict() - recent);
    Tensor dz = vector(TOKENS, decide.dy);
    check("loss",
          !BNNSLossFilterApplyBatch(judge, POINTS, decide.y, TOKENS, labels, TOKENS, NULL, 0, &loss, &dz, TOKENS));
    backward(&decide, widen.y, widen.dy);
    backward(&widen, sum, dsum);
    check("attention's gradient",
          !BNNSApplyMultiheadAttentionBackward(attention, BATCH, embed.y, 0, &delta[0], embed.y, 0, NULL, 0, &delta[1],
                                               embed.y, 0, &delta[2], NULL, NULL, NULL, NULL, 0, &delta[3], cache_size,
                                               cache, NULL, NULL));
    for (int i = 0; i < POINTS * MODEL; i++) embed.dy[i] = dsum[i] + dmixed[i];
    backward(&embed, &x[0][0], NULL);
    adam.time_step = (float)step;
    check("Adam", !BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam, PARAMETERS, weights, gradients, moments, NULL));
    if (step == 1 || step % 200 == 0) printf("step %4d  loss %.4f  tokens right %.1f %%\n", step, loss, 100 * recent);
  }
  float right = 0;
  for (int trial = 0; trial < TRIALS; trial++) draw(), right += predict() / TRIALS;
  printf("%d fresh sequences: %.2f %% of the tokens are right\n", TRIALS * BATCH, 100 * right);
  BNNSFilter filters[] = {embed.filter, widen.filter, decide.filter, attention, judge};
  for (int i = 0; i < 5; i++) BNNSFilterDestroy(filters[i]);
  BNNSDestroyRandomGenerator(generator), free(cache);
  return right >= 0.99f ? 0 : 1;
}
