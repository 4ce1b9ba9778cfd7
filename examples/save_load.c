// Trains a layer, saves it half-way to a safetensors file, loads that into a fresh layer and goes on: the weights end
// as if nothing had happened. PyTorch opens the file too (safetensors.torch.load_file), with the same names and shapes.
//   cc -std=c99 save_load.c -lbnns -o save_load && ./save_load [FILE]
#include <bnns/bnns.h>
#include <bnns/bnns_io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 3, OUTPUTS = 2, SAMPLES = 32, STEPS = 60 };

typedef struct {
  float w[OUTPUTS * INPUTS], b[OUTPUTS], dw[OUTPUTS * INPUTS], db[OUTPUTS];
  BNNSNDArrayDescriptor w_desc, b_desc, dw_desc, db_desc;
  BNNSFilter filter;
} Layer;

static void check(const char* what, int good) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);  // the reason is on the line before
  exit(1);
}

static BNNSNDArrayDescriptor vector(size_t size, float* data) {
  BNNSNDArrayDescriptor d = {.layout = BNNSDataLayoutVector, .size = {size}, .data = data};
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

static BNNSNDArrayDescriptor matrix(size_t columns, size_t rows, float* data) {  // in the file: [rows, columns]
  BNNSNDArrayDescriptor d = vector(columns, data);
  d.layout = BNNSDataLayoutRowMajorMatrix;
  d.size[1] = rows;
  return d;
}

static void set_up(Layer* l) {
  l->w_desc = matrix(INPUTS, OUTPUTS, l->w), l->b_desc = vector(OUTPUTS, l->b);
  l->dw_desc = matrix(INPUTS, OUTPUTS, l->dw), l->db_desc = vector(OUTPUTS, l->db);
  BNNSLayerParametersFullyConnected layer = {.i_desc = vector(INPUTS, NULL), .w_desc = l->w_desc, .bias = l->b_desc};
  layer.o_desc = vector(OUTPUTS, NULL);
  BNNSFilterParameters options = {.flags = BNNSFlagsUseClientPtr};  // the filter reads what training writes
  l->filter = BNNSFilterCreateLayerFullyConnected(&layer, &options);
  check("creating the layer", l->filter != NULL);
}

// One step towards (x0 + x1, x2 - 1), on samples that the number of the step decides.
static void train_step(Layer* l, int step) {
  float x[SAMPLES * INPUTS], y[SAMPLES * OUTPUTS], dy[SAMPLES * OUTPUTS];
  for (int i = 0; i < SAMPLES * INPUTS; i++) x[i] = (float)((step * 31 + i * 17 + i / 5) % 23) / 11 - 1;
  check("forward", BNNSFilterApplyBatch(l->filter, SAMPLES, x, INPUTS, y, OUTPUTS) == 0);
  for (int s = 0; s < SAMPLES; s++) {
    dy[2 * s] = (y[2 * s] - (x[3 * s] + x[3 * s + 1])) / SAMPLES;
    dy[2 * s + 1] = (y[2 * s + 1] - (x[3 * s + 2] - 1)) / SAMPLES;
  }
  BNNSNDArrayDescriptor delta = vector(OUTPUTS, dy);
  check("backward", BNNSFilterApplyBackwardBatch(l->filter, SAMPLES, x, INPUTS, NULL, 0, y, OUTPUTS, &delta, OUTPUTS,
                                                 &l->dw_desc, &l->db_desc) == 0);
  for (int i = 0; i < OUTPUTS * INPUTS; i++) l->w[i] -= 0.5f * l->dw[i];
  for (int i = 0; i < OUTPUTS; i++) l->b[i] -= 0.5f * l->db[i];
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "save_load.safetensors";
  static Layer whole, half, later;  // zeros
  set_up(&whole), set_up(&half), set_up(&later);
  for (int step = 0; step < STEPS; step++) train_step(&whole, step);

  for (int step = 0; step < STEPS / 2; step++) train_step(&half, step);
  const BNNSExtNamedArray arrays[] = {{"fc.weight", &half.w_desc}, {"fc.bias", &half.b_desc}};
  const BNNSExtMetadata notes[] = {{"step", "30"}};
  check("saving", BNNSExtArraysSave(path, 2, arrays, 1, notes) == 0);

  BNNSExtArrayFile file = BNNSExtArrayFileOpen(path, BNNSExtArrayFileRead);
  check("opening", file != NULL);
  check("loading", BNNSExtArrayFileCopy(file, "fc.weight", &later.w_desc) == 0 &&
                       BNNSExtArrayFileCopy(file, "fc.bias", &later.b_desc) == 0);  // shape and type are compared
  const char* text = BNNSExtArrayFileMetadata(file, "step");
  for (int step = text ? atoi(text) : 0; step < STEPS; step++) train_step(&later, step);
  BNNSExtArrayFileClose(file);  // `text` points into it

  printf("y0 = %.2f x0 %+.2f x1 %+.2f x2 %+.2f, y1 = %.2f x0 %+.2f x1 %+.2f x2 %+.2f\n", later.w[0], later.w[1],
         later.w[2], later.b[0], later.w[3], later.w[4], later.w[5], later.b[1]);
  BNNSFilterDestroy(whole.filter), BNNSFilterDestroy(half.filter), BNNSFilterDestroy(later.filter);
  if (argc < 2) remove(path);
  return memcmp(whole.w, later.w, sizeof whole.w) != 0 || memcmp(whole.b, later.b, sizeof whole.b) != 0;
}
