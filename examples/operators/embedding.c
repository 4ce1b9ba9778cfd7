// cc -std=c99 embedding.c -o embedding -lbnns && ./embedding
// prints: y = 5 6 1 2
// prints: dtable = 1 1 0 0 1 1
// Two indices choose two rows of a table of three; the gradient of the table.
#include "tensor.h"

int main(void) {
  float table[6] = {1, 2, 3, 4, 5, 6}, y[4], dy[4] = {1, 1, 1, 1}, dtable[6];
  int32_t x[2] = {2, 0};
  BNNSLayerParametersEmbedding p;
  memset(&p, 0, sizeof p);
  p.i_desc = vec(2, NULL);
  p.i_desc.data_type = BNNSDataTypeInt32;
  p.o_desc = tensor(BNNSDataLayout2DLastMajor, NULL, 2, 2, 0, 0);       // numbers of an item, indices
  p.dictionary = tensor(BNNSDataLayout2DLastMajor, table, 2, 3, 0, 0);  // numbers of an item, items
  p.padding_idx = SIZE_MAX;                                             // none
  BNNSFilter layer = BNNSFilterCreateLayerEmbedding(&p, NULL);
  int status = BNNSFilterApply(layer, x, y);
  BNNSNDArrayDescriptor up = p.o_desc, dw = p.dictionary;
  up.data = dy;
  dw.data = dtable;
  status |= BNNSFilterApplyBackwardBatch(layer, 1, x, 2, NULL, 0, y, 4, &up, 4, &dw, NULL);
  show("y", y, 4);
  show("dtable", dtable, 6);
  BNNSFilterDestroy(layer);
  return status;
}
