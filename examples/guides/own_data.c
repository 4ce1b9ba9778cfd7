// cc -std=c99 own_data.c -o own_data -lbnns -lm && ./own_data measurements.csv
// prints: 150 rows, 4 columns, 3 classes
// prints: 30 of 30 unseen rows are right
// Trains a classifier on a table of yours: a CSV file, numbers in all columns, the class (0, 1, ...) in the last.
#include <Accelerate/Accelerate.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 1024, MOST_CLASSES = 1000, HIDDEN = 32, EPOCHS = 60, BATCH = 16 };

typedef struct {
  size_t rows, columns, classes;
  float* x;    // rows x columns
  int* label;  // of each row
} Table;

typedef struct {
  size_t in, out;
  float *w, *b, *dw, *db, *y, *dy;  // weights, biases, their gradients; output of a batch and its gradient
  BNNSFilter filter;
} Layer;

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);  // the library has said why on the line before
  exit(1);
}
static float* zeros(size_t n) {
  return calloc(n, sizeof(float));
}
static BNNSNDArrayDescriptor vec(size_t n, float* p) {
  BNNSNDArrayDescriptor d;
  memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutVector;
  d.size[0] = n;
  d.data = p;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}
static BNNSNDArrayDescriptor matrix(size_t columns, size_t rows, float* p) {
  BNNSNDArrayDescriptor d = vec(columns, p);
  d.layout = BNNSDataLayoutRowMajorMatrix;
  d.size[1] = rows;
  return d;
}

static void refuse(const char* file, size_t line, const char* what) {
  fprintf(stderr, "%s:%zu: %s\n", file, line, what);
  exit(1);
}

// Blank lines and a first line of names are skipped. Anything else that is not understood ends the program.
static Table read_table(const char* name) {
  static char line[1 << 20];
  float value[MOST_COLUMNS + 1];
  Table t = {0, 0, 0, NULL, NULL};
  char separator = 0;
  FILE* file = fopen(name, "r");
  if (!file) {
    perror(name);
    exit(1);
  }
  for (size_t number = 1; fgets(line, sizeof line, file); number++) {
    if (strlen(line) + 1 == sizeof line) refuse(name, number, "the line is too long");
    char* at = strncmp(line, "\xef\xbb\xbf", 3) ? line : line + 3;  // a mark that some programs write first
    if (!at[strspn(at, " \t\r\n")]) continue;
    if (!separator) {
      separator = strchr(at, ';') ? ';' : ',';
      if (isalpha((unsigned char)at[strspn(at, " \"")])) {
        fprintf(stderr, "%s:%zu: taken for the names of the columns\n", name, number);
        continue;
      }
    }
    size_t n = 0;
    for (char* end;; at = end + 1) {
      if (n > MOST_COLUMNS) refuse(name, number, "more columns than MOST_COLUMNS");
      value[n++] = strtof(at, &end);
      const int found = end != at && isfinite(value[n - 1]);
      end += strspn(end, " \t\r\n");
      if (!found || (*end && *end != separator)) refuse(name, number, "a field is not a number such as 6.07");
      if (!*end) break;
    }
    if (t.rows == 0) t.columns = n - 1;
    if (n < 2 || n != t.columns + 1) refuse(name, number, "all rows need as many columns, two or more");
    const float label = value[n - 1];
    if (!(label >= 0 && label < MOST_CLASSES) || label != floorf(label))
      refuse(name, number, "the last column is the class: 0, 1, 2, ...");
    if (t.rows % 1024 == 0) {
      t.x = realloc(t.x, (t.rows + 1024) * t.columns * sizeof(float));
      t.label = realloc(t.label, (t.rows + 1024) * sizeof(int));
      if (!t.x || !t.label) refuse(name, number, "out of memory");
    }
    memcpy(t.x + t.rows * t.columns, value, t.columns * sizeof(float));
    t.label[t.rows++] = (int)label;
    if ((size_t)label >= t.classes) t.classes = (size_t)label + 1;
  }
  if (ferror(file)) {
    perror(name);
    exit(1);
  }
  fclose(file);
  if (t.rows < 5 || t.classes < 2) {
    fprintf(stderr, "%s: %zu rows and %zu classes, expected five and two or more\n", name, t.rows, t.classes);
    exit(1);
  }
  return t;
}
// Every fifth row is kept for the test and never trained on.
static int is_test(size_t row) {
  return row % 5 == 4;
}

static Layer make_layer(size_t in, size_t out, BNNSActivationFunction f, BNNSRandomGenerator random) {
  Layer l = {in,  out, zeros(in * out), zeros(out), zeros(in * out), zeros(out), zeros(BATCH * out), zeros(BATCH * out),
             NULL};
  BNNSNDArrayDescriptor w = matrix(in, out, l.w);
  const float bound = sqrtf(6.0f / (float)in);
  BNNSRandomFillUniformFloat(random, &w, -bound, bound);
  BNNSLayerParametersFullyConnected p;
  memset(&p, 0, sizeof p);
  p.i_desc = vec(in, NULL);
  p.o_desc = vec(out, NULL);
  p.w_desc = w;
  p.bias = vec(out, l.b);
  p.activation.function = f;
  BNNSFilterParameters options;
  memset(&options, 0, sizeof options);
  options.flags = BNNSFlagsUseClientPtr;  // without it the layer copies its weights, and training has no effect
  l.filter = BNNSFilterCreateLayerFullyConnected(&p, &options);
  check(l.filter != NULL, "creating a layer");
  return l;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE.csv\n", argv[0]);
    return 1;
  }
  const Table table = read_table(argv[1]);
  const size_t rows = table.rows, columns = table.columns, classes = table.classes;
  printf("%zu rows, %zu columns, %zu classes\n", rows, columns, classes);

  // Every column to mean 0 and variance 1, measured on the rows that are trained on: most networks that do not learn
  // lack this.
  for (size_t c = 0; c < columns; c++) {
    double sum = 0, squares = 0, count = 0;
    for (size_t r = 0; r < rows; r++)
      if (!is_test(r)) sum += table.x[r * columns + c], count++;
    const double mean = sum / count;
    for (size_t r = 0; r < rows; r++)
      if (!is_test(r)) squares += pow(table.x[r * columns + c] - mean, 2);
    const double deviation = sqrt(squares / count);
    for (size_t r = 0; r < rows; r++) {
      float* const x = &table.x[r * columns + c];
      *x = deviation > 0 ? (float)((*x - mean) / deviation) : 0;
    }
  }

  BNNSRandomGenerator random = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 1, NULL);
  enum { LAYERS = 2 };
  Layer net[LAYERS] = {make_layer(columns, HIDDEN, BNNSActivationFunctionRectifiedLinear, random),
                       make_layer(HIDDEN, classes, BNNSActivationFunctionIdentity, random)};
  BNNSLayerParametersLossSoftmaxCrossEntropy loss_layer;
  memset(&loss_layer, 0, sizeof loss_layer);
  loss_layer.function = BNNSLossFunctionSoftmaxCrossEntropy;
  loss_layer.i_desc = vec(classes, NULL);
  loss_layer.o_desc = vec(1, NULL);
  loss_layer.reduction = BNNSLossReductionMean;
  BNNSFilter judge = BNNSFilterCreateLayerLoss(&loss_layer, NULL);
  check(judge != NULL, "creating the loss");

  // Adam: all parameters, all gradients, then all first and all second moments.
  BNNSNDArrayDescriptor p[2 * LAYERS], g[2 * LAYERS], m[4 * LAYERS], *ps[2 * LAYERS], *ms[4 * LAYERS];
  const BNNSNDArrayDescriptor* gs[2 * LAYERS];
  for (int k = 0; k < LAYERS; k++) {
    Layer* l = &net[k];
    p[2 * k] = vec(l->in * l->out, l->w);
    g[2 * k] = vec(l->in * l->out, l->dw);
    p[2 * k + 1] = vec(l->out, l->b);
    g[2 * k + 1] = vec(l->out, l->db);
  }
  for (int i = 0; i < 4 * LAYERS; i++)
    m[i] = vec(p[i % (2 * LAYERS)].size[0], zeros(p[i % (2 * LAYERS)].size[0])), ms[i] = &m[i];
  for (int i = 0; i < 2 * LAYERS; i++) ps[i] = &p[i], gs[i] = &g[i];
  BNNSOptimizerAdamFields adam;
  memset(&adam, 0, sizeof adam);
  adam.learning_rate = 0.01f;
  adam.beta1 = 0.9f;
  adam.beta2 = 0.999f;
  adam.epsilon = 1e-8f;
  adam.gradient_scale = 1;

  float* in = zeros(BATCH * columns);
  float* target = zeros(BATCH * classes);
  size_t* order = calloc(rows, sizeof *order);
  uint64_t state = 1;
  for (size_t r = 0; r < rows; r++) order[r] = r;
  for (int epoch = 0; epoch < EPOCHS; epoch++) {
    for (size_t r = rows; r > 1; r--) {  // another order in every epoch
      state = state * 6364136223846793005u + 1442695040888963407u;
      const size_t at = (size_t)(state >> 33) % r, row = order[at];
      order[at] = order[r - 1], order[r - 1] = row;
    }
    for (size_t r = 0; r < rows;) {
      size_t n = 0;
      memset(target, 0, BATCH * classes * sizeof(float));
      for (; r < rows && n < BATCH; r++) {
        const size_t row = order[r];
        if (is_test(row)) continue;
        memcpy(in + n * columns, table.x + row * columns, columns * sizeof(float));
        target[n++ * classes + (size_t)table.label[row]] = 1;
      }
      if (n == 0) break;
      float loss;
      const float* source = in;
      for (int k = 0; k < LAYERS; source = net[k++].y)
        check(!BNNSFilterApplyBatch(net[k].filter, n, source, net[k].in, net[k].y, net[k].out), "forward");
      BNNSNDArrayDescriptor dz = vec(classes, net[LAYERS - 1].dy);
      check(!BNNSLossFilterApplyBatch(judge, n, source, classes, target, classes, NULL, 0, &loss, &dz, classes),
            "the loss");
      for (int k = LAYERS - 1; k >= 0; k--) {
        Layer* l = &net[k];
        BNNSNDArrayDescriptor dy = vec(l->out, l->dy), dw = matrix(l->in, l->out, l->dw), db = vec(l->out, l->db);
        BNNSNDArrayDescriptor dx = vec(l->in, k ? net[k - 1].dy : NULL);
        check(!BNNSFilterApplyBackwardBatch(l->filter, n, k ? net[k - 1].y : in, l->in, k ? &dx : NULL, l->in, l->y,
                                            l->out, &dy, l->out, &dw, &db),
              "backward");
      }
      adam.time_step += 1;
      check(!BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam, 2 * LAYERS, ps, gs, ms, NULL), "Adam's step");
    }
  }

  size_t right = 0, tested = 0;
  for (size_t r = 4; r < rows; r += 5, tested++) {
    const float* source = table.x + r * columns;
    for (int k = 0; k < LAYERS; source = net[k++].y)
      check(!BNNSFilterApply(net[k].filter, source, net[k].y), "forward");
    size_t best = 0;
    for (size_t c = 1; c < classes; c++)
      if (source[c] > source[best]) best = c;
    right += best == (size_t)table.label[r];
  }
  printf("%zu of %zu unseen rows are right\n", right, tested);
  for (int k = 0; k < LAYERS; k++) BNNSFilterDestroy(net[k].filter);
  BNNSFilterDestroy(judge);
  BNNSDestroyRandomGenerator(random);
  return 0;
}
