// cc -std=c99 pooling.c -o pooling -lbnns && ./pooling
// prints: y = 5 7 8 9
// prints: at = 1 7 8 15
// prints: dx, first rows = 0 1 0 0 0 0 0 1
// Max pooling 2x2 with the indices of the maxima, and the gradient that goes back to them.
#include "tensor.h"

int main(void) {
  float x[16] = {1, 5, 2, 0, 3, 4, 1, 7, 8, 0, 2, 2, 6, 1, 3, 9}, y[4], dy[4] = {1, 1, 1, 1}, dx[16];
  size_t at[4];
  BNNSLayerParametersPooling p;
  memset(&p, 0, sizeof p);
  p.i_desc = image(4, 4, 1, NULL);
  p.o_desc = image(2, 2, 1, NULL);
  p.pooling_function = BNNSPoolingFunctionMax;
  p.k_width = p.k_height = p.x_stride = p.y_stride = 2;
  BNNSFilter layer = BNNSFilterCreateLayerPooling(&p, NULL);
  int status = BNNSPoolingFilterApplyBatch(layer, 1, x, 16, y, 4, at, 4);
  BNNSNDArrayDescriptor up = image(2, 2, 1, dy), down = image(4, 4, 1, dx);
  status |= BNNSPoolingFilterApplyBackwardBatch(layer, 1, x, 16, &down, 16, y, 4, &up, 4, NULL, at, 4);
  show("y", y, 4);
  printf("at = %zu %zu %zu %zu\n", at[0], at[1], at[2], at[3]);  // y * width + x
  show("dx, first rows", dx, 8);
  BNNSFilterDestroy(layer);
  return status;
}
