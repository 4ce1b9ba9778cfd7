// Learns to write like a text, one character at a time, with BNNS alone: an LSTM, a fully connected layer, softmax
// cross-entropy, Adam; truncated back-propagation through 32 steps of 16 streams. Ends when the time is up or the loss
// is below 0.3 nats.
//   cc -std=c99 char_lstm.c -lbnns -lm -o char_lstm;   ./char_lstm [text file, else README.md] [--seconds 60]
#include <Accelerate/Accelerate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 32, STREAMS = 16, ROWS = STEPS * STREAMS, HIDDEN = 128, MOST = 128, GATES = 4, PARAMETERS = 14 };

static void check(const char* what, bool good) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static BNNSNDArrayDescriptor tensor(BNNSDataLayout layout, size_t a, size_t b, size_t c, float* data) {
  BNNSNDArrayDescriptor d = {.layout = layout, .size = {a, b, c}, .data = data, .data_type = BNNSDataTypeFloat32};
  return d;
}

static BNNSNDArrayDescriptor zeros(size_t columns, size_t rows) {  // a matrix, or a vector when rows is 0
  float* data = calloc(columns * (rows ? rows : 1), sizeof(float));
  check("allocating", data != NULL);
  return tensor(rows ? BNNSDataLayoutRowMajorMatrix : BNNSDataLayoutVector, columns, rows, 0, data);
}

// The gates' weights stand in `p` as input weights, hidden weights and bias of each gate: 12 descriptors. The states h
// and c are read, and overwritten with the last ones: the next part of a text continues there.
static BNNSLayerParametersLSTM lstm(size_t symbols, size_t batch, size_t steps, const BNNSNDArrayDescriptor* p,
                                    float* x, float* y, float* h, float* c) {
  BNNSLayerParametersLSTM layer = {.input_size = symbols, .hidden_size = HIDDEN, .batch_size = batch, .num_layers = 1};
  layer.seq_len = steps;
  layer.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  layer.input_descriptor.data_desc = tensor(BNNSDataLayoutSNE, symbols, batch, steps, x);
  layer.output_descriptor.data_desc = tensor(BNNSDataLayoutSNE, HIDDEN, batch, steps, y);
  layer.input_descriptor.hidden_desc = layer.output_descriptor.hidden_desc =
      tensor(BNNSDataLayoutSNE, HIDDEN, batch, 1, h);
  layer.input_descriptor.cell_state_desc = layer.output_descriptor.cell_state_desc =
      tensor(BNNSDataLayoutSNE, HIDDEN, batch, 1, c);
  BNNSLSTMGateDescriptor* gates[] = {&layer.input_gate, &layer.forget_gate, &layer.candidate_gate, &layer.output_gate};
  for (int k = 0; k < GATES; k++) {
    gates[k]->iw_desc[0] = p[3 * k];
    gates[k]->hw_desc = p[3 * k + 1];
    gates[k]->b_desc = p[3 * k + 2];
  }
  return layer;
}

static char* read_text(const char* path, size_t* length) {
  FILE* file = fopen(path, "rb");
  if (!file) fprintf(stderr, "%s: ", path);
  check("opening the text", file != NULL);
  char* text = malloc(1 << 20);
  *length = text ? fread(text, 1, 1 << 20, file) : 0;
  fclose(file);
  check("reading at least 1000 characters", *length >= 1000);
  return text;
}

int main(int argc, char** argv) {
  const char* path = "README.md";
  double seconds = 60;
  for (int i = 1; i < argc; i++) {
    const bool option = strcmp(argv[i], "--seconds") == 0 && i + 1 < argc;
    option ? (void)(seconds = atof(argv[++i])) : (void)(path = argv[i]);
  }
  size_t length, symbols = 0;
  char *text = read_text(path, &length), symbol[MOST];
  int index[256];
  memset(index, -1, sizeof index);
  for (size_t i = 0; i < length; i++) {  // bytes that find no place any more count as the first one
    int* at = &index[(unsigned char)text[i]];
    if (*at < 0 && symbols < MOST) *at = (int)symbols, symbol[symbols++] = text[i];
    if (*at < 0) *at = 0;
  }

  BNNSNDArrayDescriptor all[4][PARAMETERS], *p = all[0], *g = all[1];  // parameters, gradients, Adam's two moments
  BNNSNDArrayDescriptor *weights[PARAMETERS], *moments[2 * PARAMETERS];
  const BNNSNDArrayDescriptor* gradients[PARAMETERS];
  BNNSRandomGenerator random = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 1, NULL);
  for (int i = 0; i < PARAMETERS; i++) {  // three of each gate, then weights and bias of the last layer
    const bool last = i >= 3 * GATES, bias = last ? i == 13 : i % 3 == 2;
    const size_t out = last ? symbols : HIDDEN, in = !last && i % 3 == 0 ? symbols : HIDDEN;
    for (int k = 0; k < 4; k++) all[k][i] = bias ? zeros(out, 0) : zeros(in, out);
    weights[i] = &p[i], gradients[i] = &g[i], moments[i] = &all[2][i], moments[PARAMETERS + i] = &all[3][i];
    if (!bias) check("filling the weights", !BNNSRandomFillUniformFloat(random, &p[i], -0.09f, 0.09f));
  }
  for (int u = 0; u < HIDDEN; u++) ((float*)p[5].data)[u] = 1;  // to remember at first: the forget gate's bias

  float *x = zeros(symbols, ROWS).data, *labels = zeros(symbols, ROWS).data, *z = zeros(symbols, ROWS).data;
  float *dz = zeros(symbols, ROWS).data, *y = zeros(HIDDEN, ROWS).data, *dy = zeros(HIDDEN, ROWS).data;
  float *h = zeros(HIDDEN, STREAMS).data, *c = zeros(HIDDEN, STREAMS).data;
  BNNSLayerParametersLSTM layer = lstm(symbols, STREAMS, STEPS, p, x, y, h, c);
  BNNSLayerParametersLSTM deltas = lstm(symbols, STREAMS, STEPS, g, NULL, dy, NULL, NULL);  // truncated: no dh, dc
  const size_t capacity = BNNSComputeLSTMTrainingCacheCapacity(&layer);
  void* cache = capacity == SIZE_MAX ? NULL : malloc(capacity);
  check("the training cache", cache != NULL);

  const BNNSNDArrayDescriptor vh = tensor(BNNSDataLayoutVector, HIDDEN, 0, 0, NULL);
  const BNNSNDArrayDescriptor vs = tensor(BNNSDataLayoutVector, symbols, 0, 0, NULL);
  BNNSNDArrayDescriptor v1 = tensor(BNNSDataLayoutVector, 1, 0, 0, NULL);
  BNNSLayerParametersFullyConnected dense_layer = {.i_desc = vh, .w_desc = p[12], .o_desc = vs, .bias = p[13]};
  BNNSFilterParameters options = {.flags = BNNSFlagsUseClientPtr};  // the filter reads what Adam writes
  BNNSFilter dense = BNNSFilterCreateLayerFullyConnected(&dense_layer, &options);
  BNNSLayerParametersLossSoftmaxCrossEntropy loss_layer = {BNNSLossFunctionSoftmaxCrossEntropy, vs, v1,
                                                           BNNSLossReductionMean, 0};
  BNNSFilter judge = BNNSFilterCreateLayerLoss(&loss_layer, NULL);
  check("creating the filters", dense && judge);
  BNNSOptimizerAdamFields adam = {
      .learning_rate = 0.005f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f, .gradient_scale = 1};

  const time_t start = time(NULL);
  float loss = 0, mean = 0;
  for (int step = 1; difftime(time(NULL), start) < seconds && (step < 20 || mean > 0.3f); step++) {
    memset(x, 0, symbols * ROWS * sizeof(float));
    memset(labels, 0, symbols * ROWS * sizeof(float));
    for (size_t r = 0; r < ROWS; r++) {  // stream s reads from its own place in the text and goes round
      const size_t s = r % STREAMS, at = s * (length / STREAMS) + (size_t)(step - 1) * STEPS + r / STREAMS;
      x[r * symbols + (size_t)index[(unsigned char)text[at % length]]] = 1;
      labels[r * symbols + (size_t)index[(unsigned char)text[(at + 1) % length]]] = 1;
    }
    BNNSNDArrayDescriptor d_out = vs, d_hidden = vh;
    d_out.data = dz, d_hidden.data = dy;
    check("LSTM", !BNNSDirectApplyLSTMBatchTrainingCaching(&layer, NULL, cache, capacity));
    check("dense", !BNNSFilterApplyBatch(dense, ROWS, y, HIDDEN, z, symbols));
    check("loss", !BNNSLossFilterApplyBatch(judge, ROWS, z, symbols, labels, symbols, NULL, 0, &loss, &d_out, symbols));
    check("dense backward", !BNNSFilterApplyBackwardBatch(dense, ROWS, y, HIDDEN, &d_hidden, HIDDEN, z, symbols, &d_out,
                                                          symbols, &g[12], &g[13]));
    check("LSTM backward", !BNNSDirectApplyLSTMBatchBackward(&layer, &deltas, NULL, cache, capacity));
    adam.time_step = (float)step;
    check("Adam", !BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam, PARAMETERS, weights, gradients, moments, NULL));
    mean = step == 1 ? loss : 0.95f * mean + 0.05f * loss;
    if (step % 100 == 1) printf("%3.0f s  step %4d  loss %.3f nats\n", difftime(time(NULL), start), step, mean);
  }
  printf("loss %.3f nats after %.0f s; what it writes:\n", mean, difftime(time(NULL), start));

  // One character at a time: a batch of one sequence of one step, drawn from the softmax.
  BNNSLayerParametersLSTM one = lstm(symbols, 1, 1, p, x, y, h, c);
  size_t now_at = 0;
  for (int i = 0; i < 300; i++) {
    float draw = 0, sum = 0;
    v1.data = &draw;
    memset(x, 0, symbols * sizeof(float));
    x[now_at] = 1;
    check("LSTM", !BNNSDirectApplyLSTMBatchTrainingCaching(&one, NULL, NULL, 0));
    check("dense", !BNNSFilterApply(dense, y, z) && !BNNSRandomFillUniformFloat(random, &v1, 0, 1));
    for (size_t k = 0; k < symbols; k++) sum += z[k] = expf(z[k]);
    for (now_at = 0; now_at + 1 < symbols && (draw -= z[now_at] / sum) > 0;) now_at++;
    putchar(symbol[now_at]);
  }
  putchar('\n');
  BNNSFilterDestroy(dense);
  BNNSFilterDestroy(judge);
  BNNSDestroyRandomGenerator(random);
  return mean < 1.5f ? 0 : 1;
}
