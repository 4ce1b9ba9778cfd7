// Learns to write like a text on many machines: the LSTM of char_lstm.c, its streams split into shards. However many
// ranks there are, the weights end with the same bits.
//   cc -std=c99 distributed.c -lbnns_mpi -lbnns -o distributed
//   mpirun -n 4 ./distributed [text file, else README.md] [--steps 100] [--save FILE]
#include <Accelerate/Accelerate.h>
#include <bnns/bnns_distributed.h>
#include <bnns/bnns_extensions.h>
#include <bnns/bnns_io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 32, STREAMS = 16, HIDDEN = 128, MOST = 128, GATES = 4, PARAMETERS = 14 };

static void check(const char* what, bool good) {
  if (good) return;
  fprintf(stderr, "%s failed: %s\n", what, BNNSExtLastError());
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

// As in char_lstm.c: input weights, hidden weights and bias of each gate stand in p.
static BNNSLayerParametersLSTM lstm(size_t symbols, size_t batch, const BNNSNDArrayDescriptor* p, float* x, float* y,
                                    float* h, float* c) {
  BNNSLayerParametersLSTM layer = {.input_size = symbols, .hidden_size = HIDDEN, .batch_size = batch, .num_layers = 1};
  layer.seq_len = STEPS;
  layer.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  layer.input_descriptor.data_desc = tensor(BNNSDataLayoutSNE, symbols, batch, STEPS, x);
  layer.output_descriptor.data_desc = tensor(BNNSDataLayoutSNE, HIDDEN, batch, STEPS, y);
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
  check(path, file != NULL);
  char* text = malloc(1 << 20);
  *length = text ? fread(text, 1, 1 << 20, file) : 0;
  fclose(file);
  check("reading at least 1000 characters", *length >= 1000);
  return text;
}

int main(int argc, char** argv) {
  const char *path = "README.md", *save = NULL;
  int steps = 100;
  for (int i = 1; i < argc; i++) {
    const bool pair = i + 1 < argc;
    if (pair && strcmp(argv[i], "--steps") == 0)
      steps = atoi(argv[++i]);
    else if (pair && strcmp(argv[i], "--save") == 0)
      save = argv[++i];
    else
      path = argv[i];
  }
  BNNSExtGroup group = BNNSExtGroupCreate(NULL, NULL);  // all ranks that mpirun started, or this process alone
  check("creating the group", group != NULL);
  const size_t rank = BNNSExtGroupRank(group), shards = BNNSExtGroupShards(group);

  size_t length, symbols = 0;
  char* text = read_text(path, &length);
  int index[256];
  memset(index, -1, sizeof index);
  for (size_t i = 0; i < length; i++) {  // bytes that find no place any more count as the first one
    int* at = &index[(unsigned char)text[i]];
    if (*at < 0) *at = symbols < MOST ? (int)symbols++ : 0;
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
    if (!bias && rank == 0) check("filling", !BNNSRandomFillUniformFloat(random, &p[i], -0.09f, 0.09f));
  }
  check("broadcasting", !BNNSExtGroupBroadcast(group, 0, PARAMETERS, weights));

  // The streams of one shard at a time; their states stay with the rank from step to step.
  size_t first, streams;
  check("dividing the streams", !BNNSExtGroupItems(group, STREAMS, 0, &first, &streams));
  const size_t rows = STEPS * streams;
  float *x = zeros(symbols, rows).data, *labels = zeros(symbols, rows).data, *z = zeros(symbols, rows).data;
  float *dz = zeros(symbols, rows).data, *y = zeros(HIDDEN, rows).data, *dy = zeros(HIDDEN, rows).data;
  float *h = zeros(HIDDEN, shards * streams).data, *c = zeros(HIDDEN, shards * streams).data, loss = 0;
  BNNSLayerParametersLSTM deltas = lstm(symbols, streams, g, NULL, dy, NULL, NULL);  // truncated: no dh, dc
  BNNSLayerParametersLSTM layer = lstm(symbols, streams, p, x, y, h, c);
  const size_t capacity = BNNSComputeLSTMTrainingCacheCapacity(&layer);
  void* cache = malloc(capacity);

  const BNNSNDArrayDescriptor vh = tensor(BNNSDataLayoutVector, HIDDEN, 0, 0, NULL);
  const BNNSNDArrayDescriptor vs = tensor(BNNSDataLayoutVector, symbols, 0, 0, NULL);
  const BNNSNDArrayDescriptor v1 = tensor(BNNSDataLayoutVector, 1, 0, 0, NULL);
  const BNNSNDArrayDescriptor loss_array = tensor(BNNSDataLayoutVector, 1, 0, 0, &loss), *figures[] = {&loss_array};
  BNNSLayerParametersFullyConnected dense_layer = {.i_desc = vh, .w_desc = p[12], .o_desc = vs, .bias = p[13]};
  BNNSFilterParameters options = {.flags = BNNSFlagsUseClientPtr};  // the filter reads what Adam writes
  BNNSFilter dense = BNNSFilterCreateLayerFullyConnected(&dense_layer, &options);
  BNNSLayerParametersLossSoftmaxCrossEntropy loss_layer = {BNNSLossFunctionSoftmaxCrossEntropy, vs, v1,
                                                           BNNSLossReductionMean, 0};
  BNNSFilter judge = BNNSFilterCreateLayerLoss(&loss_layer, NULL);
  check("creating the filters", cache && dense && judge);
  BNNSOptimizerAdamFields adam = {
      .learning_rate = 0.005f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-8f, .gradient_scale = 1};

  for (int step = 1; step <= steps; step++) {
    for (size_t shard = 0; shard < shards; shard++) {
      check("dividing the streams", !BNNSExtGroupItems(group, STREAMS, shard, &first, &streams));
      memset(x, 0, symbols * rows * sizeof(float));
      memset(labels, 0, symbols * rows * sizeof(float));
      for (size_t r = 0; r < rows; r++) {  // stream s reads from its own place in the text and goes round
        const size_t s = first + r % streams;
        const size_t at = s * (length / STREAMS) + (size_t)(step - 1) * STEPS + r / streams;
        x[r * symbols + (size_t)index[(unsigned char)text[at % length]]] = 1;
        labels[r * symbols + (size_t)index[(unsigned char)text[(at + 1) % length]]] = 1;
      }
      layer = lstm(symbols, streams, p, x, y, h + shard * streams * HIDDEN, c + shard * streams * HIDDEN);
      BNNSNDArrayDescriptor d_out = vs, d_hidden = vh;
      d_out.data = dz, d_hidden.data = dy;
      check("LSTM", !BNNSDirectApplyLSTMBatchTrainingCaching(&layer, NULL, cache, capacity));
      check("dense", !BNNSFilterApplyBatch(dense, rows, y, HIDDEN, z, symbols));
      check("loss",
            !BNNSLossFilterApplyBatch(judge, rows, z, symbols, labels, symbols, NULL, 0, &loss, &d_out, symbols));
      check("dense backward", !BNNSFilterApplyBackwardBatch(dense, rows, y, HIDDEN, &d_hidden, HIDDEN, z, symbols,
                                                            &d_out, symbols, &g[12], &g[13]));
      // What is ready travels while the LSTM goes back through time.
      check("reducing", !BNNSExtGroupReduceStart(group, BNNSExtGroupMean, shard, 2, gradients + 12));
      check("LSTM backward", !BNNSDirectApplyLSTMBatchBackward(&layer, &deltas, NULL, cache, capacity));
      check("reducing", !BNNSExtGroupReduceStart(group, BNNSExtGroupMean, shard, 12, gradients));
      check("reducing", !BNNSExtGroupReduceStart(group, BNNSExtGroupMean, shard, 1, figures));
    }
    adam.time_step = (float)step;
    check("Adam", !BNNSExtGroupOptimizerStep(group, BNNSOptimizerFunctionAdam, &adam, PARAMETERS, weights, gradients,
                                             moments, NULL));
    if (rank == 0 && (step % 20 == 0 || step == steps)) printf("step %4d  loss %.4f nats\n", step, loss);
  }
  if (rank == 0 && save) {
    BNNSExtNamedArray arrays[PARAMETERS];
    char names[PARAMETERS][16];
    for (int i = 0; i < PARAMETERS; i++) {
      snprintf(names[i], sizeof names[i], "parameter%02d", i);
      arrays[i] = (BNNSExtNamedArray){names[i], &p[i]};
    }
    check("saving", !BNNSExtArraysSave(save, PARAMETERS, arrays, 0, NULL));
  }
  BNNSFilterDestroy(dense), BNNSFilterDestroy(judge), BNNSDestroyRandomGenerator(random);
  return BNNSExtGroupFinalize(group) == 0 ? 0 : 1;
}
